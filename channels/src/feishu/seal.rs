//! Verifies and decrypts posts. The signature covers the raw body. All input is untrusted.

use aes::cipher::{BlockModeDecrypt, KeyIvInit, block_padding::Pkcs7};
use base64::{Engine, prelude::BASE64_STANDARD};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Size of a cipher block, and of the initialization vector before the encrypted text, in bytes.
const BLOCK: usize = 16;

/// Returns whether a signature is valid: a hash of time, nonce, key and body.
pub(super) fn is_signed(signature: &[u8], time: &[u8], nonce: &[u8], key: &str, body: &[u8]) -> bool {
    let mut hash = Sha256::new();
    for part in [time, nonce, key.as_bytes(), body] {
        hash.update(part);
    }
    let expected: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    signature.to_ascii_lowercase().ct_eq(expected.as_bytes()).into()
}

/// Decrypts a text with the key; `None` if that fails.
pub(super) fn open(sealed: &str, key: &str) -> Option<Vec<u8>> {
    let bytes = BASE64_STANDARD.decode(sealed).ok()?;
    let (iv, text) = bytes.split_at_checked(BLOCK)?;
    if text.is_empty() || text.len() % BLOCK != 0 {
        return None;
    }
    let key: [u8; 32] = Sha256::digest(key.as_bytes()).into();
    let iv: [u8; BLOCK] = iv.try_into().ok()?;
    let decryptor = cbc::Decryptor::<aes::Aes256>::new(&key.into(), &iv.into());
    decryptor.decrypt_padded_vec::<Pkcs7>(text).ok()
}

/// Encrypts a text as the platform does.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn close(text: &[u8], key: &str) -> String {
    use aes::cipher::BlockModeEncrypt;
    let (key, iv): ([u8; 32], _) = (Sha256::digest(key.as_bytes()).into(), [7; BLOCK]);
    let encryptor = cbc::Encryptor::<aes::Aes256>::new(&key.into(), &iv.into());
    BASE64_STANDARD.encode([&iv[..], &encryptor.encrypt_padded_vec::<Pkcs7>(text)].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Example from the platform's documentation, with the key `test key`.
    const HELLO: &str = "P37w+VZImNgPEO1RBhJ6RtKl7n6zymIbEG1pReEzghk=";

    #[test]
    fn the_documented_example_opens() {
        assert_eq!(open(HELLO, "test key").as_deref(), Some(&b"hello world"[..]));
        for (sealed, key) in [(HELLO, "other"), ("", "test key"), ("AAAA", "test key"), ("?", "test key")] {
            assert_ne!(open(sealed, key).as_deref(), Some(&b"hello world"[..]));
        }
        assert_eq!(open(&BASE64_STANDARD.encode([0; 16]), "k"), None);
        assert_eq!(open(&BASE64_STANDARD.encode([0; 33]), "k"), None);
    }

    #[test]
    fn sealed_text_opens_only_with_its_key() {
        assert_eq!(open(&close(b"hello", "k"), "k").as_deref(), Some(&b"hello"[..]));
        assert_ne!(open(&close(b"hello", "k"), "l").as_deref(), Some(&b"hello"[..]));
    }

    #[test]
    fn a_signature_covers_every_part() {
        let hash = Sha256::digest(b"12keybody");
        let good: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(is_signed(good.as_bytes(), b"1", b"2", "key", b"body"));
        assert!(is_signed(good.to_ascii_uppercase().as_bytes(), b"1", b"2", "key", b"body"));
        for (time, nonce, key, body) in [
            ("2", "2", "key", "body"),
            ("1", "3", "key", "body"),
            ("1", "2", "kez", "body"),
            ("1", "2", "key", "x"),
        ] {
            assert!(!is_signed(good.as_bytes(), time.as_bytes(), nonce.as_bytes(), key, body.as_bytes()));
        }
        assert!(!is_signed(b"", b"1", b"2", "key", b"body"));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100), text in "\\PC{0,60}") {
            open(&BASE64_STANDARD.encode(&bytes), "key");
            open(&text, "key");
            is_signed(&bytes, text.as_bytes(), &bytes, &text, &bytes);
        }
    }
}
