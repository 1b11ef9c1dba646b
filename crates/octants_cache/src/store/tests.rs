//! Entries under faults: of the disk, of processes, of people.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use super::*;
use crate::key::KeyBuilder;
use crate::{remove_all, usage, verify};

/// What goes wrong with the next write: after so many bytes the disk is full, or the process ends.
#[derive(Default)]
pub(crate) struct WriteFaults {
    /// Plus one; 0 is none.
    full_after: AtomicUsize,
    ends_after: AtomicUsize,
    ended: AtomicBool,
    /// The number of an error of the system's; 0 is none.
    fails_with: std::sync::atomic::AtomicI32,
}

impl WriteFaults {
    pub(super) fn before_write(&self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        let code = self.fails_with.swap(0, Ordering::Relaxed);
        if code != 0 {
            return Err(io::Error::from_raw_os_error(code));
        }
        for (after, ends) in [(&self.full_after, false), (&self.ends_after, true)] {
            if let Some(count) = after.swap(0, Ordering::Relaxed).checked_sub(1) {
                file.write_all(&bytes[..count.min(bytes.len())])?;
                self.ended.store(ends, Ordering::Relaxed);
                return Err(io::ErrorKind::StorageFull.into());
            }
        }
        Ok(())
    }

    pub(super) fn process_ended(&self) -> bool {
        self.ended.swap(false, Ordering::Relaxed)
    }
}

/// A folder of the test's own, removed at its end.
struct TestFolder(PathBuf);

impl TestFolder {
    fn new() -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("octants-store-{}-{number}", std::process::id()));
        drop(fs::remove_dir_all(&path));
        Self(path)
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

fn options(folder: &Path) -> StoreOptions {
    StoreOptions {
        folder: folder.to_owned(),
        namespace: "one".to_owned(),
        policy: CleaningPolicy::Lru,
        max_bytes: 1 << 30,
        cleaning_factor: 0.25,
    }
}

fn key(number: u64) -> Key {
    KeyBuilder::new("test").part(number.to_le_bytes()).finish()
}

/// What is kept under a number.
fn payload(number: u64) -> Vec<u8> {
    (0..number * 37 % 700).map(|byte| (byte * byte + number) as u8).collect()
}

/// A few bits of a sequence that is the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound.max(1)
    }
}

#[test]
fn ten_thousand_faults_give_misses_and_never_another_entry() {
    const ENTRIES: u64 = 24;
    let folder = TestFolder::new();
    let store = Store::new(options(&folder.0));
    let mut random = Random(7);
    for number in 0..ENTRIES {
        store.put(&key(number), &payload(number));
    }
    let inside = folder.0.join("one");
    let mut misses = 0;
    for _ in 0..10_000 {
        let number = random.below(ENTRIES as usize) as u64;
        let path = inside.join(key(number).to_string());
        let other = (number + 1 + random.below(ENTRIES as usize - 1) as u64) % ENTRIES;
        let other_path = inside.join(key(other).to_string());
        let mut bytes = fs::read(&path).unwrap_or_default();
        let at = random.below(bytes.len());
        match random.below(11) {
            0 => {
                bytes.truncate(at);
                fs::write(&path, &bytes).unwrap();
            }
            1 if !bytes.is_empty() => {
                bytes[at] ^= 1 << random.below(8);
                fs::write(&path, &bytes).unwrap();
            }
            2 => drop(fs::copy(&other_path, &path)),
            3 => {
                bytes.extend(b"more");
                fs::write(&path, &bytes).unwrap();
            }
            4 => drop(fs::remove_file(&path)),
            5 => {
                drop(fs::remove_file(&path));
                symlink(&other_path, &path).unwrap();
            }
            6 => {
                drop(fs::remove_file(&path));
                fs::create_dir(&path).unwrap();
            }
            7 => {
                store.faults.full_after.store(1 + random.below(800), Ordering::Relaxed);
                store.put(&key(number), &payload(number));
                store.full.store(false, Ordering::Relaxed);
            }
            8 => {
                store.faults.ends_after.store(1 + random.below(800), Ordering::Relaxed);
                store.put(&key(number), &payload(number));
                store.full.store(false, Ordering::Relaxed);
            }
            9 if path.is_file() => fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap(),
            _ => fs::write(&path, b"").unwrap(),
        }
        for number in [number, other] {
            if let Some(found) = store.get(&key(number)) {
                assert_eq!(found, payload(number), "entry {number}");
            } else {
                misses += 1;
                drop(fs::remove_dir(inside.join(key(number).to_string())));
                store.put(&key(number), &payload(number));
                assert!(store.get(&key(number)).is_some(), "entry {number} is there again");
            }
        }
    }
    assert!((5000..20_000).contains(&misses), "{misses} misses");
    assert_eq!(verify(&folder.0), Ok((ENTRIES, Vec::new())));
    // What processes left behind that ended while they wrote is there, until it is an hour old.
    let unfinished = |name: &str| name.starts_with(UNFINISHED_PREFIX);
    let names =
        || fs::read_dir(&inside).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    assert!(names().filter(|name| unfinished(name)).count() > 500);
    let old = SystemTime::now() - Duration::from_hours(2);
    for name in names().filter(|name| unfinished(name)) {
        File::open(inside.join(name)).unwrap().set_modified(old).unwrap();
    }
    wait_for_cleaner(&store);
    clean::clean(&options(&folder.0));
    assert_eq!(names().count() as u64, ENTRIES);
}

#[test]
fn folders_that_others_can_write_are_refused_and_that_is_said_once() {
    let folder = TestFolder::new();
    let refused = |reason: &str| {
        let store = Store::new(options(&folder.0));
        store.put(&key(1), b"code");
        assert_eq!(store.get(&key(1)), None);
        assert!(store.claim(&key(1)).is_some(), "whoever cannot keep it makes it");
        let notices = store.notices();
        assert!(notices.len() == 1 && notices[0].ends_with(reason), "{notices:?} is not about {reason}");
        assert_eq!(store.notices(), [""; 0]);
    };
    fs::create_dir(&folder.0).unwrap();
    fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o777)).unwrap();
    refused("can be written by other users");
    fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o700)).unwrap();
    let (elsewhere, inside) = (TestFolder::new(), folder.0.join("one"));
    fs::create_dir(&elsewhere.0).unwrap();
    symlink(&elsewhere.0, &inside).unwrap();
    refused("is a symbolic link");
    fs::remove_file(&inside).unwrap();
    fs::write(&inside, b"").unwrap();
    refused("is no folder");
    fs::remove_dir_all(&folder.0).unwrap();
    symlink(&elsewhere.0, &folder.0).unwrap();
    refused("is a symbolic link");
    fs::remove_file(&folder.0).unwrap();
    let nowhere = Store::new(options(Path::new("/proc/no/such/folder")));
    nowhere.put(&key(1), b"code");
    assert_eq!((nowhere.get(&key(1)), nowhere.notices().len()), (None, 1));
}

#[test]
fn a_full_disk_is_said_once_and_leaves_nothing_behind() {
    let folder = TestFolder::new();
    let store = Store::new(options(&folder.0));
    store.faults.full_after.store(1 + 50, Ordering::Relaxed);
    for _ in 0..3 {
        store.put(&key(1), b"code");
    }
    assert_eq!(store.get(&key(1)), None);
    assert_eq!(store.notices().len(), 1);
    assert_eq!(fs::read_dir(folder.0.join("one")).unwrap().count(), 0);
}

#[test]
fn after_a_failure_of_the_moment_entries_are_kept_again() {
    let folder = TestFolder::new();
    let store = Store::new(options(&folder.0));
    for (number, errno) in [Errno::MFILE, Errno::NFILE, Errno::NOMEM].into_iter().enumerate() {
        let key = key(number as u64);
        store.faults.fails_with.store(errno.raw_os_error(), Ordering::Relaxed);
        store.put(&key, b"code");
        assert_eq!(store.get(&key), None, "{errno}");
        store.put(&key, b"code");
        assert_eq!(store.get(&key).as_deref(), Some(&b"code"[..]), "{errno}");
    }
    assert_eq!(store.notices(), [""; 0]);
    // A folder that refuses refuses the next one, too.
    store.faults.fails_with.store(Errno::ROFS.raw_os_error(), Ordering::Relaxed);
    store.put(&key(9), b"code");
    store.put(&key(9), b"code");
    assert_eq!((store.get(&key(9)), store.notices().len()), (None, 1));
}

#[test]
fn two_cleaners_do_not_overlap() {
    let folder = TestFolder::new();
    let store = Store::new(options(&folder.0));
    for number in 0..12 {
        store.put(&key(number), &[0; 1000]);
    }
    let small = StoreOptions { max_bytes: 5000, ..options(&folder.0) };
    wait_for_cleaner(&store);
    let held = Claim::take(folder.0.join("claim-cleaning")).expect("nobody cleans");
    assert_eq!(clean::clean(&small), clean::Cleaned::default());
    drop(held);
    assert!(clean::clean(&small).files > 0);
    assert_eq!(usage(&folder.0).unwrap().len(), 1);
    // The flag of a store stands until its cleaner has ended, not until it was started.
    let held = Claim::take(folder.0.join("claim-cleaning")).expect("nobody cleans");
    let ended = LowerWhenDropped(Arc::clone(&store.cleaning));
    store.cleaning.store(true, Ordering::Relaxed);
    store.clean_aside();
    assert!(store.cleaning.load(Ordering::Relaxed), "the first one is still at it");
    drop((ended, held));
    store.clean_aside();
    let deadline = SystemTime::now() + Duration::from_secs(20);
    while store.cleaning.load(Ordering::Relaxed) && SystemTime::now() < deadline {
        thread::sleep(Duration::from_millis(1));
    }
    assert!(!store.cleaning.load(Ordering::Relaxed), "its end is seen");
}

#[test]
fn a_claim_is_on_the_file_that_has_the_name() {
    let folder = TestFolder::new();
    fs::create_dir(&folder.0).unwrap();
    let path = folder.0.join("claim-x");
    let (inside, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..5000 {
                    if let Some(claim) = Claim::take(path.clone()) {
                        most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                        drop(claim);
                    }
                }
            });
        }
    });
    assert_eq!(most.into_inner(), 1, "threads that had the claim at once");
}

#[test]
fn a_folder_that_was_removed_is_made_again() {
    let folder = TestFolder::new();
    let store = Store::new(options(&folder.0));
    store.put(&key(1), b"code");
    wait_for_cleaner(&store);
    fs::remove_dir_all(&folder.0).unwrap();
    assert_eq!(store.get(&key(1)), None);
    store.put(&key(1), b"code");
    assert_eq!(store.get(&key(1)).as_deref(), Some(&b"code"[..]));
    assert_eq!(store.notices(), [""; 0]);
}

/// The first entry that a store writes has the folder looked through; until that has ended nobody else cleans.
fn wait_for_cleaner(store: &Store) {
    while store.cleaning.load(Ordering::Relaxed) {
        thread::yield_now();
    }
}

fn set_used(folder: &Path, number: u64, time: SystemTime) {
    File::open(folder.join("one").join(key(number).to_string())).unwrap().set_modified(time).unwrap();
}

#[test]
fn what_was_used_least_recently_goes_first_whatever_the_clock_does() {
    least_recently_used_goes_first(CleaningPolicy::Lru);
    least_recently_used_goes_first(CleaningPolicy::Version);
}

fn least_recently_used_goes_first(policy: CleaningPolicy) {
    let folder = TestFolder::new();
    let options = StoreOptions { policy, ..options(&folder.0) };
    let small = StoreOptions { max_bytes: 10 * 1100, ..options.clone() };
    let store = Store::new(options);
    let now = SystemTime::now();
    for number in 0..12 {
        store.put(&key(number), &[0; 1000]);
        set_used(&folder.0, number, now - Duration::from_secs(100_000 - 1000 * number));
    }
    // Of a clock that was a year ahead: counts as unused until it is used.
    set_used(&folder.0, 11, now + Duration::from_secs(31_000_000));
    set_used(&folder.0, 10, now + Duration::from_secs(31_000_000));
    assert!(store.get(&key(0)).is_some() && store.get(&key(11)).is_some());
    wait_for_cleaner(&store);
    let cleaned = clean::clean(&small);
    assert_eq!(cleaned.files, 5, "{cleaned:?}");
    let left: Vec<_> = (0..12).filter(|&number| store.get(&key(number)).is_some()).collect();
    assert_eq!(left, [0, 5, 6, 7, 8, 9, 11]);
}

#[test]
fn versions_share_a_folder_and_do_not_see_each_other() {
    let folder = TestFolder::new();
    let newer = StoreOptions { namespace: "two".to_owned(), ..options(&folder.0) };
    let (old, new) = (Store::new(options(&folder.0)), Store::new(newer.clone()));
    old.put(&key(1), &[1; 1000]);
    new.put(&key(1), &[2; 1000]);
    assert_eq!((old.get(&key(1)).unwrap()[0], new.get(&key(1)).unwrap()[0]), (1, 2));
    let used = usage(&folder.0).unwrap();
    assert_eq!(
        used.iter().map(|one| (&*one.namespace, one.entries)).collect::<Vec<_>>(),
        [("one", 1), ("two", 1)]
    );
    fs::write(folder.0.join("a file of the user"), b"").unwrap();
    fs::write(folder.0.join("two").join("notes.txt"), b"").unwrap();
    let policy = CleaningPolicy::Version;
    wait_for_cleaner(&old);
    wait_for_cleaner(&new);
    clean::clean(&StoreOptions { policy, max_bytes: 1500, ..newer });
    assert!(old.get(&key(1)).is_none() && new.get(&key(1)).is_some());
    remove_all(&folder.0);
    assert!(new.get(&key(1)).is_none() && folder.0.join("two").join("notes.txt").exists());
    assert!(folder.0.join("a file of the user").exists());
}

#[test]
fn a_folder_over_its_bound_is_cleaned_by_itself() {
    let folder = TestFolder::new();
    let store = Store::new(StoreOptions { max_bytes: 100_000, ..options(&folder.0) });
    for number in 0..300 {
        store.put(&key(number), &[0; 1000]);
    }
    let bytes = || usage(&folder.0).unwrap().iter().map(|one| one.bytes).sum::<u64>();
    let deadline = SystemTime::now() + Duration::from_secs(20);
    while bytes() > 110_000 && SystemTime::now() < deadline {
        thread::sleep(Duration::from_millis(5));
        store.put(&key(0), &[0; 1000]);
    }
    assert!(bytes() <= 110_000, "{} bytes", bytes());
}

#[test]
fn a_claim_keeps_others_off_until_it_is_dropped() {
    let folder = TestFolder::new();
    let (one, other) = (Store::new(options(&folder.0)), Store::new(options(&folder.0)));
    let claim = one.claim(&key(1)).expect("nobody has it");
    assert!(other.claim(&key(1)).is_none());
    assert!(other.claim(&key(2)).is_some());
    drop(claim);
    assert!(other.claim(&key(1)).is_some());
    assert_eq!(fs::read_dir(folder.0.join("one")).unwrap().count(), 0);
}
