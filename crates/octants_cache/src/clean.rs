//! What keeps a folder small, and what people ask of it: how much there is, whether it is whole, all of it gone.
//!
//! Nothing is touched but files with names that entries, claims and unfinished files have, in folders with names that versions have.

use std::fs::{self, DirEntry};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::claim::{self, Claim};
use crate::entry;
use crate::folder;
use crate::key::Key;
use crate::store::{StoreOptions, UNFINISHED_PREFIX};

/// Unfinished files and claims older than this were left behind by processes that ended. Chosen: no write takes a minute.
const LEFT_BEHIND: Duration = Duration::from_hours(1);

/// The file of the claim that whoever cleans a folder has.
const CLEANING: &str = "claim-cleaning";

/// What goes when there is too much.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CleaningPolicy {
    /// Nothing.
    Never,
    /// Entries of other versions, then as [`CleaningPolicy::Lru`].
    Version,
    /// What was not used for longest.
    #[default]
    Lru,
    /// What was written first.
    Fifo,
}

impl CleaningPolicy {
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "never" => Self::Never,
            "version" => Self::Version,
            "lru" => Self::Lru,
            "fifo" => Self::Fifo,
            _ => return None,
        })
    }
}

/// What was removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cleaned {
    pub files: u64,
    pub bytes: u64,
}

/// What there is of one version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Usage {
    pub namespace: String,
    pub entries: u64,
    pub bytes: u64,
}

/// An entry that is not what its name says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Damage {
    pub path: PathBuf,
}

struct Found {
    path: PathBuf,
    namespace: String,
    kind: Kind,
    bytes: u64,
    used: SystemTime,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Entry(Key),
    /// Unfinished, or a claim.
    Aside,
}

fn kind_of(name: &str) -> Option<Kind> {
    if name.starts_with(UNFINISHED_PREFIX) || name.starts_with(claim::PREFIX) {
        return Some(Kind::Aside);
    }
    Key::from_file_name(name).map(Kind::Entry)
}

/// Whether a folder's name is a version's: letters, digits and dashes.
fn is_namespace(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// All files of ours; nothing of a folder that is not to be trusted.
fn scan(folder: &Path) -> Vec<Found> {
    let mut found = Vec::new();
    if folder::check(folder).is_err() {
        return found;
    }
    for inside in entries(folder) {
        let namespace = inside.file_name().to_string_lossy().into_owned();
        if is_namespace(&namespace) && folder::check(&inside.path()).is_ok() {
            found.extend(entries(&inside.path()).filter_map(|file| look_at(&file, &namespace)));
        }
    }
    found
}

fn entries(folder: &Path) -> impl Iterator<Item = DirEntry> {
    fs::read_dir(folder).into_iter().flatten().flatten()
}

fn look_at(file: &DirEntry, namespace: &str) -> Option<Found> {
    let kind = kind_of(file.file_name().to_str()?)?;
    let about = file.metadata().ok()?;
    let used = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    // A time that is yet to come is of a clock that was wrong, and would keep the entry for ever.
    let used = if used > SystemTime::now() + LEFT_BEHIND { SystemTime::UNIX_EPOCH } else { used };
    Some(Found { path: file.path(), namespace: namespace.to_owned(), kind, bytes: about.len(), used })
}

impl Cleaned {
    fn remove(&mut self, found: &Found) {
        // Another process may have removed it already.
        if fs::remove_file(&found.path).is_ok() {
            self.files += 1;
            self.bytes += found.bytes;
        }
    }
}

/// Removes what was left behind, and entries if there are too many bytes of them.
///
/// One at a time cleans a folder, of all threads, processes and versions: a second one would count what the first is about to remove, and remove as much
/// again. It does nothing instead.
pub fn clean(options: &StoreOptions) -> Cleaned {
    let mut cleaned = Cleaned::default();
    let Some(_claim) = Claim::take(options.folder.join(CLEANING)) else { return cleaned };
    let now = SystemTime::now();
    let mut kept = Vec::new();
    for found in scan(&options.folder) {
        match found.kind {
            Kind::Entry(_) => kept.push(found),
            Kind::Aside if now.duration_since(found.used).is_ok_and(|age| age > LEFT_BEHIND) => {
                cleaned.remove(&found);
            }
            Kind::Aside => {}
        }
    }
    let mut total: u64 = kept.iter().map(|found| found.bytes).sum();
    if total <= options.max_bytes || options.policy == CleaningPolicy::Never {
        return cleaned;
    }
    let versions_first = options.policy == CleaningPolicy::Version;
    let own = |found: &Found| versions_first && found.namespace == options.namespace;
    kept.sort_by_key(|found| (own(found), found.used, found.path.clone()));
    let wanted = (options.max_bytes as f64 * (1.0 - options.cleaning_factor.clamp(0.0, 1.0))) as u64;
    for found in &kept {
        let other_version = versions_first && !own(found);
        if total <= wanted && !other_version {
            break;
        }
        cleaned.remove(found);
        total = total.saturating_sub(found.bytes);
    }
    remove_empty(&options.folder);
    cleaned
}

/// Removes everything.
pub fn remove_all(folder: &Path) -> Cleaned {
    let mut cleaned = Cleaned::default();
    for found in scan(folder) {
        cleaned.remove(&found);
    }
    remove_empty(folder);
    cleaned
}

/// Folders of versions that have no file any more.
fn remove_empty(folder: &Path) {
    for inside in entries(folder) {
        if is_namespace(&inside.file_name().to_string_lossy()) {
            // Refused if there is something in it.
            drop(fs::remove_dir(inside.path()));
        }
    }
}

/// What there is of each version, by name; the reason if the folder is not to be used.
pub fn usage(folder: &Path) -> Result<Vec<Usage>, String> {
    folder::check(folder)?;
    let mut versions: Vec<Usage> = Vec::new();
    for found in scan(folder) {
        if found.kind == Kind::Aside {
            continue;
        }
        let known = versions.iter().position(|usage| usage.namespace == found.namespace);
        let place = known.unwrap_or_else(|| {
            versions.push(Usage { namespace: found.namespace.clone(), entries: 0, bytes: 0 });
            versions.len() - 1
        });
        versions[place].entries += 1;
        versions[place].bytes += found.bytes;
    }
    versions.sort_by(|a, b| a.namespace.cmp(&b.namespace));
    Ok(versions)
}

/// Reads every entry, and removes those that are damaged. How many are whole, and the others.
pub fn verify(folder: &Path) -> Result<(u64, Vec<Damage>), String> {
    folder::check(folder)?;
    let (mut whole, mut damaged) = (0, Vec::new());
    for found in scan(folder) {
        let Kind::Entry(key) = found.kind else { continue };
        let is_file = fs::symlink_metadata(&found.path).is_ok_and(|about| about.is_file());
        let bytes = if is_file { fs::read(&found.path) } else { Ok(Vec::new()) };
        if bytes.is_ok_and(|bytes| entry::decode(&key, bytes).is_some()) {
            whole += 1;
        } else {
            drop(fs::remove_file(&found.path));
            damaged.push(Damage { path: found.path });
        }
    }
    damaged.sort_by(|a, b| a.path.cmp(&b.path));
    Ok((whole, damaged))
}
