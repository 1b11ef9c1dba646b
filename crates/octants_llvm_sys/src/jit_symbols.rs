//! Names of generated functions for tools: profilers and debuggers.
//!
//! Off unless the environment asks for it, since both keep or write something for each object:
//! * `OCTANTS_PERF_MAP=1` appends to `/tmp/perf-PID.map`, where `perf report` looks for names;
//! * `OCTANTS_GDB=1` registers each object by gdb's interface for just-in-time compilers, so that backtraces and breakpoints
//!   know the functions.
//!
//! gdb's interface is two symbols of the process, which makes this the one place with a list that all threads share.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::elf::{Object, SECTION_ADDRESS, SECTION_HEADER};

/// A function in memory.
pub(crate) struct NamedCode<'a> {
    pub(crate) name: &'a str,
    pub(crate) address: usize,
    pub(crate) bytes: usize,
}

/// What tools know of an object until it is unloaded.
pub(crate) struct PublishedSymbols {
    /// In gdb's list.
    entry: Option<*mut GdbEntry>,
}

// SAFETY: the entry is linked and unlinked under the list's lock; nobody else writes to it.
unsafe impl Send for PublishedSymbols {}
// SAFETY: as above.
unsafe impl Sync for PublishedSymbols {}

/// Tells those tools of an object's functions that the environment asks for. `placed` is each section's address, if it has one.
pub(crate) fn publish(
    bytes: &[u8],
    object: &Object<'_>,
    placed: &[Option<usize>],
    functions: &[NamedCode<'_>],
) -> PublishedSymbols {
    if asked_for("OCTANTS_PERF_MAP", &PERF) {
        write_perf_map(functions);
    }
    let entry = asked_for("OCTANTS_GDB", &GDB).then(|| register(with_addresses(bytes, object, placed)));
    PublishedSymbols { entry }
}

impl Drop for PublishedSymbols {
    fn drop(&mut self) {
        if let Some(entry) = self.entry.take() {
            // SAFETY: made by `register`, and taken.
            unsafe { unregister(entry) };
        }
    }
}

static PERF: OnceLock<bool> = OnceLock::new();
static GDB: OnceLock<bool> = OnceLock::new();

fn asked_for(variable: &str, known: &OnceLock<bool>) -> bool {
    *known.get_or_init(|| std::env::var_os(variable).is_some_and(|value| !value.is_empty() && value != "0"))
}

/// A tool that cannot be told is no reason to fail.
fn write_perf_map(functions: &[NamedCode<'_>]) {
    let mut lines = String::new();
    for NamedCode { name, address, bytes } in functions {
        writeln!(lines, "{address:x} {bytes:x} octants:{name}").expect("writing to a string");
    }
    let path = format!("/tmp/perf-{}.map", std::process::id());
    if let Some(mut file) = open_own(Path::new(&path)) {
        drop(file.write_all(lines.as_bytes()));
    }
}

/// A file to append to under a name that anybody can foretell, in a folder that anybody can write to. Law: it is this user's own, and has no other name;
/// links that others have put there are not followed.
fn open_own(path: &Path) -> Option<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file =
        OpenOptions::new().create(true).append(true).mode(0o600).custom_flags(flags).open(path).ok()?;
    let about = file.metadata().ok()?;
    // SAFETY: asks the system who we are.
    let user = unsafe { libc::geteuid() };
    (about.is_file() && about.uid() == user && about.nlink() == 1).then_some(file)
}

/// The object with the addresses of its sections in their headers.
fn with_addresses(bytes: &[u8], object: &Object<'_>, placed: &[Option<usize>]) -> Vec<u8> {
    let mut copy = bytes.to_vec();
    for (index, address) in placed.iter().enumerate() {
        let at = object.headers_at + index * SECTION_HEADER + SECTION_ADDRESS;
        if let (Some(address), Some(field)) = (address, copy.get_mut(at..at + 8)) {
            field.copy_from_slice(&(*address as u64).to_le_bytes());
        }
    }
    copy
}

/// One object in gdb's list. Laid out as gdb reads it.
#[repr(C)]
struct GdbEntry {
    next: *mut GdbEntry,
    previous: *mut GdbEntry,
    symbol_file: *const u8,
    symbol_file_size: u64,
    /// Behind what gdb reads: what `symbol_file` points to.
    _object: Vec<u8>,
}

/// What gdb looks for, by its name.
#[repr(C)]
struct GdbDescriptor {
    version: u32,
    action: u32,
    relevant: *mut GdbEntry,
    first: *mut GdbEntry,
}

const NO_ACTION: u32 = 0;
const REGISTER: u32 = 1;
const UNREGISTER: u32 = 2;

static LIST: Mutex<()> = Mutex::new(());

#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
static mut __jit_debug_descriptor: GdbDescriptor =
    GdbDescriptor { version: 1, action: NO_ACTION, relevant: ptr::null_mut(), first: ptr::null_mut() };

/// gdb sets a breakpoint here and reads the descriptor when it is hit.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn __jit_debug_register_code() {
    // Not to be optimised away, though it does nothing.
    std::hint::black_box(());
}

fn register(object: Vec<u8>) -> *mut GdbEntry {
    let (symbol_file, symbol_file_size) = (object.as_ptr(), object.len() as u64);
    let (next, previous) = (ptr::null_mut(), ptr::null_mut());
    let entry =
        Box::into_raw(Box::new(GdbEntry { next, previous, symbol_file, symbol_file_size, _object: object }));
    let _list = LIST.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the descriptor and all entries are only touched under the lock; entries of the list are alive, as each is
    // unlinked before it is freed.
    unsafe {
        let descriptor = &raw mut __jit_debug_descriptor;
        (*entry).next = (*descriptor).first;
        if !(*entry).next.is_null() {
            (*(*entry).next).previous = entry;
        }
        (*descriptor).first = entry;
        register_with_gdb(entry, REGISTER);
    }
    entry
}

/// # Safety
/// Made by `register`, and not used again.
unsafe fn unregister(entry: *mut GdbEntry) {
    let _list = LIST.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: as in `register`; nobody refers to the entry when it is freed.
    unsafe {
        let (next, previous) = ((*entry).next, (*entry).previous);
        if previous.is_null() {
            __jit_debug_descriptor.first = next;
        } else {
            (*previous).next = next;
        }
        if !next.is_null() {
            (*next).previous = previous;
        }
        register_with_gdb(entry, UNREGISTER);
        drop(Box::from_raw(entry));
    }
}

/// # Safety
/// A live entry; the caller has the list's lock.
unsafe fn register_with_gdb(entry: *mut GdbEntry, action: u32) {
    // SAFETY: the descriptor is touched under the lock alone.
    unsafe {
        let descriptor = &raw mut __jit_debug_descriptor;
        (*descriptor).relevant = entry;
        (*descriptor).action = action;
        __jit_debug_register_code();
        (*descriptor).action = NO_ACTION;
        (*descriptor).relevant = ptr::null_mut();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::open_own;

    #[test]
    fn a_file_of_names_is_the_users_own_and_no_link() {
        let folder = std::env::temp_dir().join(format!("octants-publish-{}", std::process::id()));
        drop(fs::remove_dir_all(&folder));
        fs::create_dir(&folder).unwrap();
        let (target, path) = (folder.join("target"), folder.join("perf.map"));
        fs::write(&target, b"").unwrap();
        symlink(&target, &path).unwrap();
        assert!(open_own(&path).is_none(), "a symbolic link");
        fs::remove_file(&path).unwrap();
        symlink(folder.join("nothing"), &path).unwrap();
        assert!(open_own(&path).is_none() && !folder.join("nothing").exists(), "a link to nothing");
        fs::remove_file(&path).unwrap();
        fs::hard_link(&target, &path).unwrap();
        assert!(open_own(&path).is_none(), "a second name of a file");
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(open_own(&path).is_none(), "a folder");
        fs::remove_dir(&path).unwrap();
        let made = open_own(&path).expect("nothing is there").metadata().unwrap();
        assert_eq!(made.permissions().mode() & 0o777, 0o600);
        assert!(open_own(&path).is_some(), "one's own");
        fs::remove_dir_all(&folder).unwrap();
    }
}
