//! Short hashes of texts, which tell versions of documents and sources apart.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// The first 16 hexadecimal digits of the SHA-256 of a text.
pub(crate) fn hash(text: &str) -> String {
    Sha256::digest(text).iter().take(8).fold(String::new(), |mut hash, byte| {
        let _ = write!(hash, "{byte:02x}");
        hash
    })
}
