//! Keys: what an artifact was made from, as a hash.

use std::fmt;

/// The name of an entry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key([u8; Key::BYTES]);

impl Key {
    pub const BYTES: usize = 32;

    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    pub fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }

    /// The key that a file name stands for; `None` for files that are no entries.
    pub(crate) fn from_file_name(name: &str) -> Option<Self> {
        let hash = blake3::Hash::from_hex(name).ok()?;
        // Capital letters would give a second name.
        (hash.to_hex().as_str() == name).then_some(Self(*hash.as_bytes()))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(blake3::Hash::from_bytes(self.0).to_hex().as_str())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Hashes a list of parts. Lists that differ in where one part ends have different keys.
pub struct KeyBuilder {
    hasher: blake3::Hasher,
}

impl KeyBuilder {
    /// `purpose` keeps keys of one kind of things from being keys of another.
    pub fn new(purpose: &str) -> Self {
        Self { hasher: blake3::Hasher::new() }.part(purpose)
    }

    #[must_use]
    pub fn part(mut self, part: impl AsRef<[u8]>) -> Self {
        let part = part.as_ref();
        self.hasher.update(&(part.len() as u64).to_le_bytes());
        self.hasher.update(part);
        self
    }

    pub fn finish(self) -> Key {
        Key(*self.hasher.finalize().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_run_together_and_names_read_back() {
        let key = |parts: &[&str]| parts.iter().fold(KeyBuilder::new("k"), KeyBuilder::part).finish();
        assert_ne!(key(&["ab", "c"]), key(&["a", "bc"]));
        assert_ne!(key(&["abc"]), key(&["abc", ""]));
        let one = key(&["x"]);
        assert_eq!(Key::from_file_name(&one.to_string()), Some(one));
        assert_eq!(Key::from_file_name(&one.to_string().to_uppercase()), None);
        assert_eq!(Key::from_file_name("short"), None);
    }
}
