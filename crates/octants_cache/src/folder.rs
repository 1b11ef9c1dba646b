//! The folder that entries lie in: private to the user, or not used at all.

use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Bits of a mode that let others write.
const OTHERS_WRITE: u32 = 0o022;

/// Makes sure that the folder and the one inside it are there and private; the reason if they are not to be used.
pub(crate) fn prepare(folder: &Path, namespace: &str) -> Result<PathBuf, String> {
    let inside = folder.join(namespace);
    for (path, recursive) in [(folder, true), (&inside, false)] {
        let made = DirBuilder::new().mode(0o700).recursive(recursive).create(path);
        if let Err(error) = made
            && error.kind() != io::ErrorKind::AlreadyExists
        {
            return Err(format!("{} cannot be made: {error}", path.display()));
        }
        check(path)?;
    }
    Ok(inside)
}

/// The reason why a folder is not to be trusted: what lies in it is run as code.
pub(crate) fn check(path: &Path) -> Result<(), String> {
    let about = match fs::symlink_metadata(path) {
        Ok(about) => about,
        Err(error) => return Err(format!("{} cannot be read: {error}", path.display())),
    };
    let reason = if about.file_type().is_symlink() {
        "is a symbolic link"
    } else if !about.is_dir() {
        "is no folder"
    } else if !is_mine(&about) {
        "belongs to another user"
    } else if about.permissions().mode() & OTHERS_WRITE != 0 {
        "can be written by other users"
    } else {
        return Ok(());
    };
    Err(format!("{} {reason}", path.display()))
}

/// Whether nobody but this user can have written the file.
pub(crate) fn is_private(about: &Metadata) -> bool {
    is_mine(about) && about.permissions().mode() & OTHERS_WRITE == 0
}

fn is_mine(about: &Metadata) -> bool {
    about.uid() == rustix::process::geteuid().as_raw()
}
