//! Digests of texts and files, for comparison.

use sha2::{Digest, Sha256};

/// Returns the SHA-256 of bytes, in hexadecimal digits.
#[must_use]
pub fn digest(bytes: impl AsRef<[u8]>) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
