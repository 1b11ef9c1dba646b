//! Everything that can go wrong, as values.

use std::fmt;
use std::sync::Arc;

use octants_hal::DeviceError;
use octants_ir::ops::AssertKind;
use octants_ir::{Const, LocData};
use octants_runtime::{Context, KernelOrigin, MemoryError};

/// Why a session, an array or a kernel was refused.
#[derive(Clone, Debug)]
pub enum Error {
    /// The device cannot allocate an array of this many bytes. The session is as usable as before.
    OutOfMemory { bytes: u64 },
    /// One iteration of a derivative keeps more bytes than all of them may: the limit of the session, or its share of one branch.
    TapeLimit { bytes: u64, limit: u64 },
    /// A check failed in a launch of before, for which nobody waited.
    Late(Box<Fault>),
    /// The session of an array or a kernel was reset.
    Stale { what: &'static str },
    /// The session itself was reset.
    SessionEnded,
    /// The tree that a field lies in, a stream or an event was destroyed.
    Destroyed { what: &'static str },
    /// An array of one session reached another.
    OtherSession { what: &'static str },
    /// The caller asked for what cannot be: a shape, a type, an index, a number of arguments.
    Invalid { message: String },
    /// The device cannot do this.
    Unsupported { message: String },
    /// There is no device of the kind that was asked for, and why.
    Unavailable { message: String },
    /// Likewise, to this process alone: code of its own has failed, and the driver refuses it for good.
    Refused { message: String },
    /// The device failed for good: what was on it is lost, and a new session is needed. One of the kernels that were `launched` last, the
    /// latest first, may be the reason.
    Lost { message: String, launched: Vec<Arc<KernelOrigin>> },
    /// The caller's flag was raised while compiling or waiting.
    Cancelled,
    /// A defect of Octants: the stage that failed, and its words.
    Internal { stage: &'static str, message: String },
}

impl Error {
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid { message: message.into() }
    }

    /// What a device's error means to the user.
    pub(crate) fn of_device(error: DeviceError) -> Self {
        match error {
            DeviceError::OutOfMemory { bytes } => Self::OutOfMemory { bytes: bytes as u64 },
            DeviceError::Unsupported { .. } | DeviceError::TooLarge { .. } => {
                Self::Unsupported { message: error.to_string() }
            }
            DeviceError::Lost { message } => Self::Lost { message, launched: Vec::new() },
            DeviceError::BadImage { .. } | DeviceError::Failed { .. } => Self::internal("device", error),
        }
    }

    /// Likewise; with a device that runs kernels later, it may have been one of those that were launched before.
    pub(crate) fn after_launches(error: DeviceError, context: &Context) -> Self {
        let mut error = Self::of_device(error);
        if let Self::Lost { launched, .. } = &mut error {
            *launched = context.launch_log().latest();
        }
        error
    }

    /// Why memory of an array or a field was not read or written.
    pub(crate) fn of_memory(error: MemoryError, what: &'static str) -> Self {
        match error {
            MemoryError::Stale(_) => Self::Stale { what },
            MemoryError::Device(error) => Self::of_device(error),
            MemoryError::Cancelled => Self::Cancelled,
            MemoryError::OtherContext => Self::OtherSession { what: "stream" },
            MemoryError::Range => Self::internal("memory", error),
        }
    }

    pub fn internal(stage: &'static str, message: impl fmt::Display) -> Self {
        Self::Internal { stage, message: message.to_string() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfMemory { bytes: 0 } => {
                f.write_str("out of memory: the device has no room for a kernel's code and stacks")
            }
            Self::OutOfMemory { bytes } => write!(f, "out of memory: cannot allocate {bytes} bytes"),
            Self::TapeLimit { bytes, limit } => write!(
                f,
                "one iteration of the derivative keeps {bytes} bytes of values, and the limit for all is {limit}: \
                 oc.init(tape_memory_limit={bytes}) is the least that it runs with"
            ),
            Self::Late(fault) => fault.fmt(f),
            Self::Stale { what } => write!(f, "this {what} belongs to a session that was reset"),
            Self::SessionEnded => f.write_str("this session was reset"),
            Self::Destroyed { what } => write!(f, "this {what} was destroyed"),
            Self::OtherSession { what } => write!(f, "this {what} belongs to another session"),
            Self::Invalid { message }
            | Self::Unsupported { message }
            | Self::Unavailable { message }
            | Self::Refused { message } => f.write_str(message),
            Self::Lost { message, launched } => {
                write!(f, "the device is lost: {message}")?;
                for (number, kernel) in launched.iter().enumerate() {
                    let before =
                        if number == 0 { "; kernels launched before, the latest first:" } else { "," };
                    write!(f, "{before} `{}`", kernel.name)?;
                }
                Ok(())
            }
            Self::Cancelled => f.write_str("interrupted"),
            Self::Internal { stage, message } => {
                write!(f, "internal error of Octants ({stage}): {message}")
            }
        }
    }
}

impl std::error::Error for Error {}

/// Why a launch did not finish. What it had written by then stays written.
#[derive(Clone, Debug)]
pub enum LaunchError {
    /// An `assert` of the program, or one of the compiler's own checks, failed.
    Fault(Box<Fault>),
    /// The caller's flag was raised.
    Cancelled,
    /// Nothing ran.
    Refused(Error),
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fault(fault) => fault.fmt(f),
            Self::Cancelled => f.write_str("interrupted"),
            Self::Refused(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for LaunchError {}

impl From<Error> for LaunchError {
    fn from(error: Error) -> Self {
        match error {
            Error::Late(fault) => Self::Fault(fault),
            error => Self::Refused(error),
        }
    }
}

/// The first check that failed in a launch.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The kernel's name in the user's program.
    pub kernel: Arc<str>,
    /// What kind of check it was.
    pub about: AssertKind,
    /// The message with its arguments put in.
    pub message: String,
    /// The arguments themselves.
    pub arguments: Vec<Const>,
    /// Where the check stands: first the place itself, then the call that was inlined there, and so on outward.
    pub locations: Vec<LocData>,
    /// Checks that failed in other branches of the kernel.
    pub others: Vec<Fault>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (in kernel `{}`)", self.message, self.kernel)
    }
}

impl std::error::Error for Fault {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_device_names_the_kernels_that_were_launched_last() {
        let label = |name: &str| Arc::new(KernelOrigin { name: name.to_owned(), place: LocData::NOWHERE });
        let lost = |launched| Error::Lost { message: "an illegal access".to_owned(), launched }.to_string();
        assert_eq!(lost(Vec::new()), "the device is lost: an illegal access");
        assert_eq!(
            lost(vec![label("second"), label("first")]),
            "the device is lost: an illegal access; kernels launched before, the latest first: `second`, `first`"
        );
    }
}
