//! Entries by key, in a folder.

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime};

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::claim::{self, Claim};
use crate::clean::{self, CleaningPolicy};
use crate::entry::{self, MAX_PAYLOAD};
use crate::folder;
use crate::key::Key;

/// An entry's time of use is as exact as this. Chosen: a folder is cleaned after days, and a use of a fresh entry writes nothing.
const USE_INTERVAL: Duration = Duration::from_hours(1);

/// What files that are being written begin with.
pub(crate) const UNFINISHED_PREFIX: &str = "new-";

/// The folder is looked through whenever this part of its bound was written. Chosen: it is exceeded by as much.
const SCANS_PER_BOUND: u64 = 16;

#[derive(Clone, PartialEq, Debug)]
pub struct StoreOptions {
    pub folder: PathBuf,
    /// A folder inside it: entries of another version of the program are under another name, and are never looked at.
    pub namespace: String,
    pub policy: CleaningPolicy,
    /// Bytes of all entries, of all versions.
    pub max_bytes: u64,
    /// The part of `max_bytes` that is free after cleaning.
    pub cleaning_factor: f64,
}

/// Artifacts on disk. Any number of threads and processes may use the same folder.
pub struct Store {
    options: StoreOptions,
    /// Made and checked at the first use; nothing if it is not to be used.
    folder: OnceLock<Option<PathBuf>>,
    /// A write failed for a reason that stays.
    full: AtomicBool,
    notices: Mutex<Vec<String>>,
    /// Part of the names of unfinished files, so that no two processes have the same, on whatever machine.
    random: u64,
    written_files: AtomicU64,
    /// Since the folder was last looked through; that of earlier processes counts as much as asks for it.
    written_bytes: AtomicU64,
    /// A thread of this store looks through the folder.
    cleaning: Arc<AtomicBool>,
    #[cfg(test)]
    pub(crate) faults: crate::store::tests::WriteFaults,
}

impl Store {
    pub fn new(options: StoreOptions) -> Self {
        let written_bytes = AtomicU64::new(options.max_bytes / SCANS_PER_BOUND);
        Self {
            options,
            folder: OnceLock::new(),
            full: AtomicBool::new(false),
            notices: Mutex::default(),
            random: RandomState::new().build_hasher().finish(),
            written_files: AtomicU64::new(0),
            written_bytes,
            cleaning: Arc::default(),
            #[cfg(test)]
            faults: crate::store::tests::WriteFaults::default(),
        }
    }

    pub fn options(&self) -> &StoreOptions {
        &self.options
    }

    /// Why entries are not kept, if they are not; each reason is given once.
    pub fn notices(&self) -> Vec<String> {
        std::mem::take(&mut *self.notices.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What was put under the key.
    pub fn get(&self, key: &Key) -> Option<Vec<u8>> {
        let path = self.folder()?.join(key.to_string());
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
        let mut file = OpenOptions::new().read(true).custom_flags(flags).open(&path).ok()?;
        let found = read(&mut file).and_then(|bytes| entry::decode(key, bytes));
        if found.is_none() {
            // Somebody may have written it anew meanwhile: that is a miss, too.
            drop(fs::remove_file(&path));
        } else if matches!(self.options.policy, CleaningPolicy::Lru | CleaningPolicy::Version) {
            note_use(&file);
        }
        found
    }

    /// Keeps bytes under a key.
    pub fn put(&self, key: &Key, payload: &[u8]) {
        if payload.len() > MAX_PAYLOAD || self.full.load(Ordering::Relaxed) {
            return;
        }
        let Some(folder) = self.folder() else { return };
        let bytes = entry::encode(key, payload);
        let mut written = self.write(folder, key, &bytes);
        if written.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            // Somebody removed the folder.
            let prepared = folder::prepare(&self.options.folder, &self.options.namespace);
            written = prepared.map_err(io::Error::other).and_then(|_| self.write(folder, key, &bytes));
        }
        if let Err(error) = written {
            // This entry is not kept; the next one may be.
            if !passes(&error) && !self.full.swap(true, Ordering::Relaxed) {
                self.notice(format!("{} cannot be written: {error}", folder.display()));
            }
            return;
        }
        let written =
            self.written_bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed) + bytes.len() as u64;
        if written >= self.options.max_bytes / SCANS_PER_BOUND {
            self.clean_aside();
        }
    }

    /// A claim on making the entry; `None` if another process, or another store, is making it.
    pub fn claim(&self, key: &Key) -> Option<Claim> {
        match self.folder().filter(|_| !self.full.load(Ordering::Relaxed)) {
            Some(folder) => Claim::take(folder.join(format!("{}{key}", claim::PREFIX))),
            None => Some(Claim::nothing()),
        }
    }

    fn folder(&self) -> Option<&Path> {
        let prepare = || match folder::prepare(&self.options.folder, &self.options.namespace) {
            Ok(folder) => Some(folder),
            Err(reason) => {
                self.notice(reason);
                None
            }
        };
        self.folder.get_or_init(prepare).as_deref()
    }

    fn notice(&self, reason: String) {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).push(reason);
    }

    /// Under another name first. No file is left behind that is not whole, unless the process ends.
    fn write(&self, folder: &Path, key: &Key, bytes: &[u8]) -> io::Result<()> {
        let (number, process) = (self.written_files.fetch_add(1, Ordering::Relaxed), std::process::id());
        let unfinished = folder.join(format!("{UNFINISHED_PREFIX}{:016x}-{process}-{number}", self.random));
        let write = || {
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished)?;
            #[cfg(test)]
            self.faults.before_write(&mut file, bytes)?;
            file.write_all(bytes)?;
            fs::rename(&unfinished, folder.join(key.to_string()))
        };
        let written = write();
        #[cfg(test)]
        if self.faults.process_ended() {
            return Ok(());
        }
        if written.is_err() {
            drop(fs::remove_file(&unfinished));
        }
        written
    }

    /// Looks through the folder on a thread of its own, unless one does already.
    fn clean_aside(&self) {
        if self.options.policy == CleaningPolicy::Never || self.cleaning.swap(true, Ordering::Relaxed) {
            return;
        }
        self.written_bytes.store(0, Ordering::Relaxed);
        let options = self.options.clone();
        // Also if the thread cannot be started.
        let ended = LowerWhenDropped(Arc::clone(&self.cleaning));
        // Nobody waits for its end: what it removes is removed whole.
        let started = thread::Builder::new().name("octants-cache".to_owned()).spawn(move || {
            clean::clean(&options);
            drop(ended);
        });
        drop(started);
    }
}

struct LowerWhenDropped(Arc<AtomicBool>);

impl Drop for LowerWhenDropped {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// Whether a failure is of the moment, and says nothing of the folder: the process or the system has too many open files or too little memory, or a
/// signal came.
fn passes(error: &io::Error) -> bool {
    let of_the_moment = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::INTR, Errno::AGAIN];
    error.raw_os_error().is_some_and(|code| of_the_moment.iter().any(|errno| errno.raw_os_error() == code))
}

/// All of a file that only this user can have written.
fn read(file: &mut File) -> Option<Vec<u8>> {
    let about = file.metadata().ok()?;
    let length = usize::try_from(about.len()).ok().filter(|&length| length <= MAX_PAYLOAD + 1024)?;
    if !about.is_file() || !folder::is_private(&about) {
        return None;
    }
    let mut bytes = Vec::with_capacity(length + 1);
    file.take(MAX_PAYLOAD as u64 + 1024).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// The entry was used just now. Where that cannot be noted it goes earlier.
fn note_use(file: &File) {
    let now = SystemTime::now();
    let noted = file.metadata().and_then(|about| about.modified());
    // A time that is yet to come is of a clock that was wrong.
    if noted.is_ok_and(|noted| now.duration_since(noted).is_ok_and(|age| age < USE_INTERVAL)) {
        return;
    }
    drop(file.set_modified(now));
}

#[cfg(test)]
mod tests;
