//! Artifacts on disk: bytes under content keys, shared by processes, and bounded in size.
//!
//! It owns the files: their names, their form, who may read them, when they go. It must not know what the bytes are, nor how a key came
//! about: both are the caller's.
//!
//! Laws:
//! * **What [`Store::get`] gives is what somebody put under this key.** An entry holds its key and a checksum; one that is cut, changed or
//!   under another's name is a miss, and is removed.
//! * **No failure of a file system is an error of the caller**: without a folder, with a full disk, or if others may write to the folder,
//!   everything is a miss, and [`Store::notices`] says why, once. What fails for a reason of the moment (too many open files) costs one entry.
//! * One at a time cleans a folder.
//! * **Entries appear whole**: they are written under another name and renamed. Processes need no lock to read and write.
//! * A [`Claim`] keeps processes from making the same thing at the same time. It is advice: whoever cannot have it goes on without, and the
//!   system takes it back from a process that ends.
//! * Times of use decide what goes first when the folder is too large. **A clock that jumps costs entries, never a right result.**

mod claim;
mod clean;
mod entry;
mod folder;
mod key;
mod store;

pub use claim::Claim;
pub use clean::{Cleaned, CleaningPolicy, Damage, Usage, clean, remove_all, usage, verify};
pub use key::{Key, KeyBuilder};
pub use store::{Store, StoreOptions};
