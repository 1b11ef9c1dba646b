//! The driver library, loaded at run time: whether it is there, and what its errors mean.
//!
//! Nothing here is linked: a machine without a driver runs the same program and is told what is missing.

#[cfg(test)]
pub mod recording;
pub mod table;

use std::ffi::{CStr, CString, c_char};
use std::fmt;
use std::ptr;

use octants_hal::DeviceError;

use crate::vendor::Vendor;
use table::{DriverTable, Status};

/// Why there is no device to use.
pub struct Unavailable {
    vendor: &'static Vendor,
    pub reason: Reason,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reason {
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
    /// The version in the driver's numbering.
    DriverTooOld {
        found: i32,
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

impl Unavailable {
    pub fn of(vendor: &'static Vendor, reason: Reason) -> Self {
        Self { vendor, reason }
    }
}

impl fmt::Debug for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let &Vendor { name: maker, library, platform, oldest_driver, oldest_capability, .. } = self.vendor;
        let dotted = |version: i32| {
            let (major, minor) = (self.vendor.version)(version);
            format!("{major}.{minor}")
        };
        match &self.reason {
            Reason::NoLibrary { message } => {
                write!(f, "the {maker} driver is not installed: `{library}` cannot be loaded ({message})")
            }
            Reason::MissingSymbol { symbol } => {
                write!(f, "the {maker} driver is too old: `{library}` has no `{symbol}`")
            }
            Reason::Refused { message } => {
                write!(f, "the {maker} driver refuses this process after a fault: {message}")
            }
            Reason::Failed { message } => write!(f, "the {maker} driver does not start: {message}"),
            Reason::DriverTooOld { found } => write!(
                f,
                "the {maker} driver is too old: it supports {platform} {}, and {} is needed",
                dotted(*found),
                dotted(oldest_driver)
            ),
            Reason::NoDevice => write!(f, "the {maker} driver finds no GPU"),
            Reason::NoSuchDevice { ordinal, count } => {
                write!(
                    f,
                    "there is no GPU number {ordinal}: the {maker} driver finds {count}, counted from 0"
                )
            }
            Reason::DeviceTooOld { name, major, minor } => {
                let (oldest_major, oldest_minor) = oldest_capability;
                write!(
                    f,
                    "{name} has compute capability {major}.{minor}, and {oldest_major}.{oldest_minor} is needed"
                )
            }
        }
    }
}

impl std::error::Error for Unavailable {}

/// The driver in use. It is never unloaded: the library keeps threads of its own.
pub struct Driver {
    pub table: DriverTable,
    /// In the driver's own numbering.
    pub version: u32,
    pub vendor: &'static Vendor,
}

impl Driver {
    /// Loads and starts the driver.
    pub fn load(vendor: &'static Vendor) -> Result<Self, Unavailable> {
        let name = CString::new(vendor.library).expect("no zero inside");
        // SAFETY: loading the driver runs its constructors, which is what installing it means.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if library.is_null() {
            // SAFETY: after a failure the text is there, or null.
            let message = unsafe { text_at(libc::dlerror()) };
            return Err(Unavailable::of(vendor, Reason::NoLibrary { message }));
        }
        let find = |symbol: &str| {
            let symbol = CString::new(symbol).expect("no zero inside");
            // SAFETY: the library is loaded for good.
            let address = unsafe { libc::dlsym(library, symbol.as_ptr()) };
            (!address.is_null()).then_some(address.cast_const())
        };
        // SAFETY: these are the driver's own names, and their signatures are stable.
        let table = unsafe { DriverTable::resolve(&vendor.symbols, find) };
        let lacking = |symbol| Unavailable::of(vendor, Reason::MissingSymbol { symbol });
        Self::over(table.map_err(lacking)?, vendor)
    }

    /// Starts a driver whose functions were found already.
    pub fn over(table: DriverTable, vendor: &'static Vendor) -> Result<Self, Unavailable> {
        let mut driver = Self { table, version: 0, vendor };
        // SAFETY: the first call, as the driver asks for.
        let status = unsafe { (driver.table.init)(0) };
        match status {
            0 => {}
            none if none == vendor.statuses.no_device => return Err(driver.unavailable(Reason::NoDevice)),
            _ => return Err(driver.failed(status)),
        }
        let mut found = 0;
        // SAFETY: writes one integer.
        unsafe { (driver.table.driver_version)(&raw mut found) };
        if found < vendor.oldest_driver {
            return Err(driver.unavailable(Reason::DriverTooOld { found }));
        }
        driver.version = found as u32;
        Ok(driver)
    }

    /// Why there is no device of this vendor's.
    pub fn unavailable(&self, reason: Reason) -> Unavailable {
        Unavailable::of(self.vendor, reason)
    }

    /// There is none because of what a function returned.
    pub fn failed(&self, status: Status) -> Unavailable {
        self.unavailable(Reason::Failed { message: self.text(status) })
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
        (self.vendor.statuses.is_lost)(status)
    }

    #[cold]
    fn error(&self, verb: &'static str, status: Status) -> DeviceError {
        let message = self.text(status);
        let statuses = &self.vendor.statuses;
        if status == statuses.out_of_memory {
            DeviceError::OutOfMemory { bytes: 0 }
        } else if (statuses.is_bad_image)(status) {
            DeviceError::BadImage { message }
        } else if (statuses.is_lost)(status) {
            DeviceError::Lost { message }
        } else {
            DeviceError::Failed { verb, message }
        }
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
