//! Arrays in a session's memory.

use std::sync::Arc;

use octants_hal::Cancel;
use octants_ir::{Const, Data, Order, Scalar, TensorShape};
use octants_runtime::{Context, HostQueue, Memory, MemoryError, Stride, Strided};

use crate::compiled::CompiledKernel;
use crate::error::Error;
use crate::session::Session;
use crate::wait::{runs_at_once, told_late, wait_for_memory};

/// An array of scalars or small tensors, dense, tensor entries innermost. Its memory is given back when it is dropped.
///
/// After [`Session::reset`] every method that would touch the memory gives [`Error::Stale`]; the memory itself lives on until the
/// array is dropped, so that views of it never dangle.
#[derive(Debug)]
pub struct NdArray {
    memory: Arc<Memory>,
    element: Data,
    shape: Box<[i32]>,
    order: Order,
}

impl NdArray {
    /// A zeroed array of scalars or small tensors, row-major. An empty `shape` is one element; an extent of zero is no element at all.
    pub fn new(session: &Session, element: Data, shape: &[i32]) -> Result<Self, Error> {
        Self::with_order(session, element, shape, Order::ROW_MAJOR, &Cancel::new())
    }

    /// Likewise, with its axes in another order in memory. Indices, extents and copies to and from the host know nothing of it. Raising
    /// `cancel` ends a wait for memory that is on its way back.
    pub fn with_order(
        session: &Session,
        element: Data,
        shape: &[i32],
        order: Order,
        cancel: &Cancel,
    ) -> Result<Self, Error> {
        if !order.fits(shape.len()) {
            return Err(Error::invalid(format!("an array of {} axes has no order {order}", shape.len())));
        }
        if element.elem().is_none() {
            return Err(Error::invalid("an array holds scalars, vectors or matrices"));
        }
        let bytes = bytes_of(element, shape)?;
        let memory = Memory::allocate_or_cancel(session.context(), bytes, cancel)
            .map_err(|error| not_allocated(error, refused))?;
        Ok(Self { memory: Arc::new(memory), element, shape: shape.into(), order })
    }

    #[inline]
    pub fn element(&self) -> Data {
        self.element
    }

    /// The type of a scalar, or of a tensor's entries.
    pub fn scalar(&self) -> Scalar {
        self.element.elem().expect("checked when it was made")
    }

    #[inline]
    pub fn shape(&self) -> &[i32] {
        &self.shape
    }

    /// In which order its axes lie in memory.
    #[inline]
    pub fn order(&self) -> Order {
        self.order
    }

    /// Bytes from one element to the next, by axis.
    pub fn strides(&self) -> Vec<usize> {
        let mut strides = vec![0; self.shape.len()];
        let mut stride = self.entries() * self.scalar().bytes() as usize;
        for axis in self.order.axes(self.shape.len()).collect::<Vec<_>>().into_iter().rev() {
            strides[axis] = stride;
            stride *= self.shape[axis] as usize;
        }
        strides
    }

    pub fn bytes(&self) -> usize {
        self.memory.bytes()
    }

    /// How many scalars lie in one element.
    pub fn entries(&self) -> usize {
        self.element.tensor_shape().map_or(1, |shape| shape.count() as usize)
    }

    /// The address for a launch's block of arguments, in the session that the kernel was compiled in.
    pub fn address(&self, session: &Session) -> Result<u64, Error> {
        self.address_in(session.context())
    }

    /// Likewise, in the session of a kernel.
    #[inline]
    pub fn address_for(&self, kernel: &CompiledKernel) -> Result<u64, Error> {
        self.address_in(kernel.context())
    }

    /// Likewise, for a launch whose stream is noted: [`CompiledKernel::after_launch`].
    pub fn noted_address_for(&self, kernel: &CompiledKernel) -> Result<u64, Error> {
        self.noted_address_in(kernel.context())
    }

    #[inline]
    fn address_in(&self, context: &Arc<Context>) -> Result<u64, Error> {
        self.memory.note_default_use();
        self.noted_address_in(context)
    }

    #[inline]
    fn noted_address_in(&self, context: &Arc<Context>) -> Result<u64, Error> {
        if !Arc::ptr_eq(context, self.memory.context()) {
            // An array of an ended session is stale whatever the other session is.
            self.memory.noted_address().map_err(|_| Error::Stale { what: "array" })?;
            return Err(Error::OtherSession { what: "array" });
        }
        match self.memory.noted_address() {
            Ok(address) => Ok(address.0),
            Err(_) => Err(Error::Stale { what: "array" }),
        }
    }

    /// The memory itself, for views without a copy. A view must keep the array alive. Null if there is no element.
    pub fn host_pointer(&self) -> Result<*mut u8, Error> {
        match self.memory.host_pointer() {
            Ok(Some(pointer)) => Ok(pointer),
            Ok(None) => {
                Err(Error::Unsupported { message: "the device's memory is not the host's".to_owned() })
            }
            Err(_) => Err(Error::Stale { what: "array" }),
        }
    }

    /// Sets every element: one constant for all entries, or one for each entry of the element. Each has the array's scalar type.
    pub fn fill(&self, value: &[Const], queue: HostQueue<'_>) -> Result<(), Error> {
        if value.len() != 1 && value.len() != self.entries() {
            let (found, entries) = (value.len(), self.entries());
            return Err(Error::invalid(format!(
                "an element has {entries} entries, but the value has {found}"
            )));
        }
        let mut pattern = Vec::with_capacity(value.len() * self.scalar().bytes() as usize);
        for &constant in value {
            pattern.extend_from_slice(self.encode(constant)?.as_slice());
        }
        self.memory.fill(queue, &pattern).map_err(refused)
    }

    /// Copies all elements of an array of the same session, element type and shape.
    pub fn copy_from(&self, other: &Self, queue: HostQueue<'_>) -> Result<(), Error> {
        if self.element != other.element || self.shape != other.shape {
            return Err(Error::invalid(format!(
                "cannot copy an array of shape {:?} into one of shape {:?}: element types and shapes must be equal",
                other.shape, self.shape
            )));
        }
        if self.order == other.order {
            return self.memory.copy_from(queue, &other.memory).map_err(refused);
        }
        let run = self.entries() * self.scalar().bytes() as usize;
        let strides = self.strides().into_iter().zip(other.strides());
        let extents = self.shape.iter().map(|&extent| extent as usize);
        let loops = extents.zip(strides).map(|(count, (device, host))| Stride { count, device, host });
        let what = Strided { offset: 0, loops: loops.collect(), run }.merged();
        if self.memory.copy_strided(queue, &what, &other.memory, 0).map_err(refused)? {
            return Ok(());
        }
        let mut rows = vec![0; other.bytes()];
        other.read(&mut rows, queue)?;
        self.write(&rows, queue)
    }

    /// Whether no work can be under way that a copy to the host would wait for.
    pub fn is_at_rest(&self) -> bool {
        runs_at_once(self.memory.context()) && !self.memory.is_used_by_streams()
    }

    /// Waits for what was launched before in the queue's stream, and in others that use the array; a copy to the host is soon over then.
    pub fn wait(&self, queue: HostQueue<'_>) -> Result<(), Error> {
        wait_for_memory(&self.memory, queue)
    }

    /// Copies all elements from the host, where they lie in row-major order.
    pub fn write(&self, from: &[u8], queue: HostQueue<'_>) -> Result<(), Error> {
        self.whole(from.len())?;
        self.memory.write_strided(queue, &self.rows(), from).map_err(refused)
    }

    /// Copies all elements to the host, in row-major order.
    pub fn read(&self, to: &mut [u8], queue: HostQueue<'_>) -> Result<(), Error> {
        self.whole(to.len())?;
        self.memory.read_strided(queue, &self.rows(), to).map_err(refused)?;
        told_late(self.memory.context())
    }

    /// A copy of all elements between this memory and rows on the host.
    fn rows(&self) -> Strided {
        let run = self.entries() * self.scalar().bytes() as usize;
        let mut host = run;
        let mut loops = Vec::with_capacity(self.shape.len());
        for (&extent, device) in self.shape.iter().zip(self.strides()).rev() {
            loops.push(Stride { count: extent as usize, device, host });
            host *= extent as usize;
        }
        loops.reverse();
        Strided { offset: 0, loops, run }.merged()
    }

    /// Copies bytes as they lie in memory, from this offset on, to the host.
    pub fn read_at(&self, offset: usize, to: &mut [u8], queue: HostQueue<'_>) -> Result<(), Error> {
        self.memory.read(queue, offset, to).map_err(refused)?;
        told_late(self.memory.context())
    }

    /// One element: one constant for each of its entries. Indices count from zero; a negative one counts from the end.
    pub fn get(&self, index: &[i64], queue: HostQueue<'_>) -> Result<Vec<Const>, Error> {
        let width = self.scalar().bytes() as usize;
        let mut bytes = vec![0; width * self.entries()];
        self.memory.read(queue, self.offset(index)?, &mut bytes).map_err(refused)?;
        told_late(self.memory.context())?;
        Ok(bytes.chunks_exact(width).map(|one| decode(self.scalar(), one)).collect())
    }

    /// Sets one element; see [`NdArray::get`] and [`NdArray::fill`].
    pub fn set(&self, index: &[i64], value: &[Const], queue: HostQueue<'_>) -> Result<(), Error> {
        let entries = self.entries();
        if value.len() != entries {
            let found = value.len();
            return Err(Error::invalid(format!(
                "an element has {entries} entries, but the value has {found}"
            )));
        }
        let mut bytes = Vec::with_capacity(8 * entries);
        for &constant in value {
            bytes.extend_from_slice(self.encode(constant)?.as_slice());
        }
        self.memory.write(queue, self.offset(index)?, &bytes).map_err(refused)
    }

    /// The memory, for records of what a launch uses, and for whoever looks at it without a copy and keeps it.
    pub fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    fn whole(&self, bytes: usize) -> Result<(), Error> {
        if bytes == self.bytes() {
            return Ok(());
        }
        Err(Error::invalid(format!("the array has {} bytes, not {bytes}", self.bytes())))
    }

    fn encode(&self, constant: Const) -> Result<Encoded, Error> {
        if constant.ty() == self.scalar() {
            return Ok(Encoded::of(constant));
        }
        let (expected, found) = (self.scalar().name(), constant.ty().name());
        Err(Error::invalid(format!("the array holds {expected}, but the value is {found}")))
    }

    /// Where an element begins, in bytes.
    fn offset(&self, index: &[i64]) -> Result<usize, Error> {
        let rank = self.shape.len();
        if index.len() != rank {
            let found = index.len();
            return Err(Error::invalid(format!("{rank}d ndarray indexed with {found}d indices")));
        }
        let mut element = 0;
        for axis in self.order.axes(rank) {
            let (i, extent) = (index[axis], i64::from(self.shape[axis]));
            let from_zero = if i < 0 { i + extent } else { i };
            if !(0..extent).contains(&from_zero) {
                return Err(Error::invalid(format!(
                    "index {i} is out of bounds for axis {axis} of size {extent}"
                )));
            }
            element = element * extent as usize + from_zero as usize;
        }
        Ok(element * self.entries() * self.scalar().bytes() as usize)
    }
}

fn bytes_of(element: Data, shape: &[i32]) -> Result<usize, Error> {
    let scalar = element.elem().map_or(0, Scalar::bytes) as usize;
    let mut bytes = scalar * element.tensor_shape().map_or(1, TensorShape::count) as usize;
    for &extent in shape {
        let Ok(extent) = usize::try_from(extent) else {
            return Err(Error::invalid(format!("{shape:?} is not a valid shape for ndarray")));
        };
        bytes = bytes.saturating_mul(extent);
    }
    // No allocation is longer than a pointer difference can say.
    if bytes > isize::MAX as usize { Err(Error::OutOfMemory { bytes: bytes as u64 }) } else { Ok(bytes) }
}

/// Why memory was not allocated: a session that has ended, or what `refused` says.
pub(crate) fn not_allocated(error: MemoryError, refused: impl FnOnce(MemoryError) -> Error) -> Error {
    if let MemoryError::Stale(_) = error { Error::SessionEnded } else { refused(error) }
}

fn refused(error: MemoryError) -> Error {
    match error {
        MemoryError::Range => Error::invalid("the two arrays belong to different sessions"),
        other => Error::of_memory(other, "array"),
    }
}

/// A constant's bytes in memory.
pub(crate) struct Encoded {
    bytes: [u8; 8],
    len: usize,
}

impl Encoded {
    pub(crate) fn of(constant: Const) -> Self {
        Self { bytes: constant.bits().to_le_bytes(), len: constant.ty().bytes() as usize }
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// A constant from its bytes in memory; a `u1` is any byte that is not zero.
pub(crate) fn decode(scalar: Scalar, bytes: &[u8]) -> Const {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    let bits = u64::from_le_bytes(word);
    Const::from_bits(scalar, if scalar == Scalar::U1 { (bits != 0).into() } else { bits })
}
