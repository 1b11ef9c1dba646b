//! Rows inside the device, by the driver's own copies of two and three dimensions. On an H200 rows of 4 bytes are written at 31 GB/s.

use octants_hal::{Address, DeviceError, Rows, Stream};

use super::{GpuDevice, handle};
use crate::driver::table::{Copy2d, Copy3d};

/// The longest distance of rows that drivers take, in bytes: of all GPUs that we know.
const MAX_STRIDE: usize = i32::MAX as usize;

impl GpuDevice {
    /// # Safety
    /// As for the verb `scatter`.
    pub(super) unsafe fn scatter_rows(
        &self,
        stream: Stream,
        to: Address,
        from: Address,
        rows: &Rows,
    ) -> Result<(), DeviceError> {
        let (table, queue) = (self.enter()?, handle(stream.0));
        let Rows { bytes, count, stride, slices, slice_stride } = *rows;
        // SAFETY: the caller keeps the verb's contract.
        unsafe {
            if stride > MAX_STRIDE {
                for slice in 0..slices {
                    for row in 0..count {
                        let (at, packed) = (slice * slice_stride + row * stride, slice * count + row);
                        let (to, from) = (to.offset(at), from.offset(packed * bytes));
                        self.check("scatter", (table.copy)(to.0, from.0, bytes, queue))?;
                    }
                }
                return Ok(());
            }
            if let Some(copy_3d) = table.copy_3d
                && slices > 1
                && slice_stride.is_multiple_of(stride)
            {
                let copy = Copy3d::rows(to.0, from.0, rows, self.flags());
                return self.check("scatter", copy_3d(&raw const copy, queue));
            }
            for slice in 0..slices {
                let to = to.offset(slice * slice_stride);
                let copy = Copy2d::rows(to.0, from.offset(slice * count * bytes).0, rows, self.flags());
                self.check("scatter", (table.copy_2d)(&raw const copy, queue))?;
            }
        }
        Ok(())
    }
}
