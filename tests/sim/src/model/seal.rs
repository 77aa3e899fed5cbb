//! Content that a provider signs or encrypts and expects back unchanged, and generated IDs.

use base64::{Engine, engine::general_purpose::STANDARD};
use sha2::{Digest, Sha256};

/// Number of random bytes at the beginning of a seal, so that two seals of the same content differ, like real ones. The
/// total length is a multiple of three, so that no seal ends in `=` and two can be concatenated.
const NONCE: usize = 10;

/// Seals content so that the server recognizes it without storing it.
pub(crate) fn seal(kind: &str, content: &str) -> String {
    let nonce: Vec<u8> = (0..NONCE).map(|_| fastrand::u8(..)).collect();
    sealed(kind, content, &nonce)
}

/// Returns whether a seal is one of this server for this content, byte for byte.
pub(crate) fn holds(kind: &str, content: &str, seal: &str) -> bool {
    let bytes = STANDARD.decode(seal).unwrap_or_default();
    bytes.get(..NONCE).is_some_and(|nonce| sealed(kind, content, nonce) == seal)
}

/// Returns the encrypted part of an item: valid alone, or with that item's ID.
pub(crate) fn item(id: &str) -> String {
    seal("item", "") + &seal("item", id)
}

/// Returns whether an item's encrypted part is from this server, and matches the item's ID if present.
pub(crate) fn is_item(sealed: &str, id: Option<&str>) -> bool {
    let Some((any, mine)) = sealed.split_at_checked(sealed.len() / 2) else { return false };
    holds("item", "", any) && id.is_none_or(|id| holds("item", id, mine))
}

/// Four digests make it about as long as the shorter real ones.
fn sealed(kind: &str, content: &str, nonce: &[u8]) -> String {
    let mut bytes = nonce.to_vec();
    for round in 0..4_u8 {
        let digest = Sha256::new().chain_update(nonce).chain_update([round]).chain_update(kind);
        bytes.extend(digest.chain_update([0]).chain_update(content).finalize());
    }
    STANDARD.encode(bytes)
}

/// Returns an ID of letters and digits, determined by the seed.
pub(crate) fn letters(seed: &str, length: usize) -> String {
    const ALPHABET: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    digits(seed, length).map(|byte| char::from(ALPHABET[usize::from(byte) % ALPHABET.len()])).collect()
}

/// Returns an ID of hexadecimal digits, determined by the seed.
pub(crate) fn hex(seed: &str, length: usize) -> String {
    digits(seed, length).filter_map(|byte| char::from_digit(u32::from(byte) % 16, 16)).collect()
}

fn digits(seed: &str, length: usize) -> impl Iterator<Item = u8> {
    let rounds = (0_u32..).flat_map(move |round| {
        Sha256::new().chain_update(round.to_be_bytes()).chain_update(seed).finalize().to_vec()
    });
    rounds.take(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_holds_for_what_it_was_made_for_and_for_nothing_else() {
        let made = seal("thinking", "hm");
        assert!(holds("thinking", "hm", &made));
        assert_ne!(made, seal("thinking", "hm"), "two seals differ");
        for (kind, content, seal) in [
            ("thinking", "hmm", &made),
            ("other", "hm", &made),
            ("thinking", "hm", &made.replacen(|c| c != 'A', "A", 1)),
            ("thinking", "hm", &String::new()),
        ] {
            assert!(!holds(kind, content, seal), "{kind} {content} {seal}");
        }
        let encrypted = item("rs_1");
        assert!(is_item(&encrypted, Some("rs_1")) && is_item(&encrypted, None));
        assert!(!is_item(&encrypted, Some("rs_2")) && !is_item("", None) && !is_item(&made, None));
        assert_eq!((letters("a", 22).len(), hex("a", 40)), (22, hex("a", 40)));
    }
}
