//! The bytes of an entry's file.
//!
//! ```text
//! magic (8) | key (32) | checksum of key and payload (32) | payload
//! ```

use crate::key::Key;

const MAGIC: [u8; 8] = *b"octants1";
const HEADER: usize = MAGIC.len() + 2 * Key::BYTES;

/// The largest payload that is kept. Code of a kernel is some ten kilobytes, of the largest ones some megabytes.
pub(crate) const MAX_PAYLOAD: usize = 1 << 28;

fn checksum(key: &Key, payload: &[u8]) -> [u8; Key::BYTES] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(key.as_bytes());
    hasher.update(payload);
    *hasher.finalize().as_bytes()
}

/// The file of a payload.
pub(crate) fn encode(key: &Key, payload: &[u8]) -> Vec<u8> {
    let mut file = Vec::with_capacity(HEADER + payload.len());
    file.extend(MAGIC);
    file.extend(key.as_bytes());
    file.extend(checksum(key, payload));
    file.extend(payload);
    file
}

/// The payload of a file, if that is whole and has this key.
pub(crate) fn decode(key: &Key, mut file: Vec<u8>) -> Option<Vec<u8>> {
    let (header, payload) = file.split_at_checked(HEADER)?;
    let rest = header.strip_prefix(&MAGIC)?;
    let (named, sum) = rest.split_at(Key::BYTES);
    if named != key.as_bytes() || sum != checksum(key, payload) {
        return None;
    }
    file.drain(..HEADER);
    Some(file)
}
