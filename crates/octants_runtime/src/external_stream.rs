//! Streams of other libraries on the same device.

use octants_hal::{DeviceError, Stream};

use crate::context::Context;

/// A queue that another library made and adds to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExternalStream(Stream);

impl ExternalStream {
    /// # Safety
    /// It is the device's own handle of a stream that lives as long as this.
    pub unsafe fn new(handle: u64) -> Self {
        Self(Stream(handle))
    }

    pub(crate) fn stream(self) -> Stream {
        self.0
    }

    /// What comes later on `stream` waits for what the library has told so far.
    pub fn before(self, context: &Context, stream: Stream) -> Result<(), DeviceError> {
        context.order(self.0, stream)
    }

    /// What the library tells later waits for what `stream` was told so far.
    pub fn after(self, context: &Context, stream: Stream) -> Result<(), DeviceError> {
        context.order(stream, self.0)
    }
}
