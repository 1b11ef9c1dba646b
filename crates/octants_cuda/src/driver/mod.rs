//! The driver library, loaded at run time: whether it is there, what its errors mean, which devices it has.
//!
//! Nothing here is linked: a machine without a driver runs the same program and is told what is missing.

#[cfg(test)]
pub mod recording;
pub mod table;

use std::ffi::{CStr, CString, c_char, c_int};
use std::fmt;
use std::ptr;
use std::sync::atomic::AtomicU64;

use octants_hal::DeviceError;

use table::{DriverTable, Status};

/// Where the driver's library is looked for.
const LIBRARY: &str = "libcuda.so.1";

/// The oldest driver whose compiler reads what we emit (PTX ISA 7.8), in the driver's own numbering: 11.8.
const OLDEST_DRIVER: c_int = 11_080;

/// Why there is no device to use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unavailable {
    /// The loader's words.
    NoLibrary {
        message: String,
    },
    MissingSymbol {
        symbol: &'static str,
    },
    /// The driver refused to start.
    Failed {
        message: String,
    },
    /// A fault of this process' code has made the driver refuse all that the process asks for: every context, old and new. Another
    /// process is not concerned.
    Refused {
        message: String,
    },
    /// Versions in the driver's numbering.
    DriverTooOld {
        found: i32,
        needed: i32,
    },
    NoDevice,
    NoSuchDevice {
        ordinal: u32,
        count: u32,
    },
    /// A device that lacks what our code needs.
    DeviceTooOld {
        name: String,
        major: i32,
        minor: i32,
    },
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dotted = |version: i32| format!("{}.{}", version / 1000, version % 1000 / 10);
        match self {
            Self::NoLibrary { message } => {
                write!(f, "the NVIDIA driver is not installed: `{LIBRARY}` cannot be loaded ({message})")
            }
            Self::MissingSymbol { symbol } => {
                write!(f, "the NVIDIA driver is too old: `{LIBRARY}` has no `{symbol}`")
            }
            Self::Refused { message } => {
                write!(f, "the NVIDIA driver refuses this process after a fault: {message}")
            }
            Self::Failed { message } => write!(f, "the NVIDIA driver does not start: {message}"),
            Self::DriverTooOld { found, needed } => write!(
                f,
                "the NVIDIA driver is too old: it supports CUDA {}, and {} is needed",
                dotted(*found),
                dotted(*needed)
            ),
            Self::NoDevice => f.write_str("the NVIDIA driver finds no GPU"),
            Self::NoSuchDevice { ordinal, count } => {
                write!(f, "there is no GPU number {ordinal}: the NVIDIA driver finds {count}, counted from 0")
            }
            Self::DeviceTooOld { name, major, minor } => {
                write!(f, "{name} has compute capability {major}.{minor}, and 7.0 is needed")
            }
        }
    }
}

impl std::error::Error for Unavailable {}

/// The driver in use. It is never unloaded: the library keeps threads of its own.
pub struct Driver {
    pub table: DriverTable,
    /// In the driver's own numbering: 12040 for CUDA 12.4.
    pub version: u32,
    pub resets: &'static ResetCounts,
}

/// Counts for each device how often its context was reset after it was lost. Handles of an earlier context are void: the driver may give the same ones to
/// others. Those of other devices are not concerned.
pub struct ResetCounts([AtomicU64; MAX_COUNTED_DEVICES]);

/// Devices beyond so many share the counts of others, and are taken for lost with them. Chosen: no machine has as many.
const MAX_COUNTED_DEVICES: usize = 64;

impl Default for ResetCounts {
    fn default() -> Self {
        Self::new()
    }
}

impl ResetCounts {
    pub const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; MAX_COUNTED_DEVICES])
    }

    pub fn of(&self, device: c_int) -> &AtomicU64 {
        &self.0[device.unsigned_abs() as usize % MAX_COUNTED_DEVICES]
    }
}

/// Of the process, as its contexts are.
static RESETS: ResetCounts = ResetCounts::new();

impl Driver {
    /// Loads and starts the driver.
    pub fn load() -> Result<Self, Unavailable> {
        let name = CString::new(LIBRARY).expect("no zero inside");
        // SAFETY: loading the driver runs its constructors, which is what installing it means.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if library.is_null() {
            // SAFETY: after a failure the text is there, or null.
            let message = unsafe { text_at(libc::dlerror()) };
            return Err(Unavailable::NoLibrary { message });
        }
        let find = |symbol: &str| {
            let symbol = CString::new(symbol).expect("no zero inside");
            // SAFETY: the library is loaded for good.
            let address = unsafe { libc::dlsym(library, symbol.as_ptr()) };
            (!address.is_null()).then_some(address.cast_const())
        };
        // SAFETY: these are the driver's own names, and their signatures are stable.
        let table = unsafe { DriverTable::resolve(find) };
        Self::over(table.map_err(|symbol| Unavailable::MissingSymbol { symbol })?, &RESETS)
    }

    /// Starts a driver whose functions were found already.
    pub fn over(table: DriverTable, resets: &'static ResetCounts) -> Result<Self, Unavailable> {
        let mut driver = Self { table, version: 0, resets };
        // SAFETY: the first call, as the driver asks for.
        let status = unsafe { (driver.table.init)(0) };
        match status {
            0 => {}
            NO_DEVICE => return Err(Unavailable::NoDevice),
            _ => return Err(Unavailable::Failed { message: driver.text(status) }),
        }
        let mut found = 0;
        // SAFETY: writes one integer.
        unsafe { (driver.table.driver_version)(&raw mut found) };
        if found < OLDEST_DRIVER {
            return Err(Unavailable::DriverTooOld { found, needed: OLDEST_DRIVER });
        }
        driver.version = found as u32;
        Ok(driver)
    }

    /// What the driver says of a status.
    pub fn text(&self, status: Status) -> String {
        let ask = |question: unsafe extern "C" fn(Status, *mut *const c_char) -> Status| {
            let mut text = ptr::null();
            // SAFETY: gives the address of a text that stays.
            unsafe {
                question(status, &raw mut text);
                text_at(text)
            }
        };
        format!("{} ({})", ask(self.table.error_text), ask(self.table.error_name))
    }

    /// A status as an error of the verb that it came from.
    pub fn check(&self, verb: &'static str, status: Status) -> Result<(), DeviceError> {
        if status == 0 { Ok(()) } else { Err(self.error(verb, status)) }
    }

    /// Whether a status means that the context cannot be used any more.
    pub fn is_lost(&self, status: Status) -> bool {
        kind(status) == StatusKind::Lost
    }

    #[cold]
    fn error(&self, verb: &'static str, status: Status) -> DeviceError {
        let message = self.text(status);
        match kind(status) {
            StatusKind::OutOfMemory => DeviceError::OutOfMemory { bytes: 0 },
            StatusKind::BadImage => DeviceError::BadImage { message },
            StatusKind::Lost => DeviceError::Lost { message },
            StatusKind::Other => DeviceError::Failed { verb, message },
        }
    }
}

const NO_DEVICE: Status = 100;
/// What a query says of a stream or an event that is not done.
pub const NOT_READY: Status = 600;
/// What is said of a handle that does not fit; of an event that lives: that it was never recorded.
pub const INVALID_HANDLE: Status = 400;

/// What a status means for whoever goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum StatusKind {
    OutOfMemory,
    BadImage,
    /// The context is unusable until it is reset.
    Lost,
    Other,
}

fn kind(status: Status) -> StatusKind {
    match status {
        2 => StatusKind::OutOfMemory,
        // Invalid image, no code for this device, invalid PTX, PTX of an unknown version, a failed link, a missing symbol.
        200 | 209 | 218 | 220..=223 | 302 | 303 => StatusKind::BadImage,
        // Illegal address, timeout, assertion, stack, instruction, alignment, address space, program counter, launch failure.
        700 | 702 | 709 | 710 | 714..=719 | 721 | 226 | 214 => StatusKind::Lost,
        _ => StatusKind::Other,
    }
}

/// # Safety
/// The address is null or that of a text that ends with a zero.
unsafe fn text_at(text: *const c_char) -> String {
    if text.is_null() {
        return "no text".to_owned();
    }
    // SAFETY: as the caller vouches.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
