//! Claims: one process makes an entry, and others wait for it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// What files of claims begin with.
pub(crate) const PREFIX: &str = "claim-";

/// This process makes the entry. Dropping it, or the end of the process, lets others try.
pub struct Claim {
    /// Locked; nothing where the file system has no locks.
    file: Option<File>,
    path: PathBuf,
}

impl Claim {
    /// Keeps nobody from anything.
    pub(crate) fn nothing() -> Self {
        Self { file: None, path: PathBuf::new() }
    }

    /// `None` if somebody else has it.
    pub(crate) fn take(path: PathBuf) -> Option<Self> {
        loop {
            let Ok(file) = open(&path) else { return Some(Self::nothing()) };
            match file.try_lock() {
                // Whoever had it before has removed the name since the file was opened: the next one has another file, and would have a lock, too.
                Ok(()) if file.metadata().is_ok_and(|about| about.nlink() == 0) => {}
                Ok(()) => return Some(Self { file: Some(file), path }),
                Err(TryLockError::WouldBlock) => return None,
                Err(TryLockError::Error(_)) => return Some(Self::nothing()),
            }
        }
    }
}

fn open(path: &Path) -> std::io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).custom_flags(flags).open(path)
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.file.is_some() {
            // Before the lock goes: whoever waits for it then has a file without a name, and looks for the entry first.
            drop(fs::remove_file(&self.path));
        }
    }
}
