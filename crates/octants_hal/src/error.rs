//! What can go wrong below.

use std::fmt;

/// Why a verb did not do what it was told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DeviceError {
    /// No room for this many bytes; for the code or the stacks of a kernel, where it is none.
    OutOfMemory { bytes: usize },
    /// A verb that needs a capability which the device does not have.
    Unsupported { verb: &'static str },
    /// The device refuses the image of a module.
    BadImage { message: String },
    /// A task's code takes more of the processor than the device has: registers, or memory of a block.
    TooLarge { message: String },
    /// The driver or the operating system failed, in its own words. The device is still usable.
    Failed { verb: &'static str, message: String },
    /// The device can no longer be used.
    Lost { message: String },
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfMemory { bytes: 0 } => {
                f.write_str("out of memory: the device has no room for a kernel's code and stacks")
            }
            Self::OutOfMemory { bytes } => write!(f, "out of memory: cannot allocate {bytes} bytes"),
            Self::Unsupported { verb } => write!(f, "the device does not support `{verb}`"),
            Self::BadImage { message } => write!(f, "the device refuses the code: {message}"),
            Self::TooLarge { message } => f.write_str(message),
            Self::Failed { verb, message } => write!(f, "`{verb}` failed: {message}"),
            Self::Lost { message } => write!(f, "the device is lost: {message}"),
        }
    }
}

impl std::error::Error for DeviceError {}
