//! Card ids that authenticate the card's conversation.
//!
//! pudu chooses a card's name (`outTrackId`), and every press contains it. The name contains a MAC over the card's
//! conversation, so a press that claims to come from another conversation is rejected.

use crate::Address;
use hmac::{Hmac, KeyInit, Mac};
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;
use std::fmt::Write;

/// Length of the truncated MAC, in bytes. A guess needs 2⁶³ presses on average.
const MAC_BYTES: usize = 8;

/// Creates card names, and verifies that a name was created for a conversation.
#[derive(Clone)]
pub(super) struct NameSeal(SecretString);

impl NameSeal {
    pub(super) fn new(secret: SecretString) -> Self {
        Self(secret)
    }

    /// Returns a card's name. Deterministic for a given key and conversation.
    pub(super) fn name(&self, key: &str, private: bool, address: &Address) -> String {
        let kind = if private { 'p' } else { 'g' };
        format!("{kind}-{key}-{}", self.sign(key, private, address))
    }

    /// Returns whether the card of this name is in a private chat; `None` if the name has an unknown form.
    pub(super) fn private(name: &str) -> Option<bool> {
        match name.split_once('-')?.0 {
            "p" => Some(true),
            "g" => Some(false),
            _ => None,
        }
    }

    /// Returns whether a name was created for this conversation.
    pub(super) fn verify(&self, name: &str, address: &Address) -> bool {
        let mut parts = name.splitn(3, '-');
        let (Some(kind), Some(key), Some(seal)) = (parts.next(), parts.next(), parts.next()) else {
            return false;
        };
        let expected = self.sign(key, kind == "p", address);
        bool::from(subtle::ConstantTimeEq::ct_eq(expected.as_bytes(), seal.as_bytes()))
    }

    fn sign(&self, key: &str, private: bool, address: &Address) -> String {
        let secret = self.0.expose_secret().as_bytes();
        // HMAC accepts keys of any length.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret) else { return String::new() };
        mac.update(format!("pudu card\n{key}\n{private}\n{}", address.key()).as_bytes());
        let mut text = String::new();
        for byte in mac.finalize().into_bytes().iter().take(MAC_BYTES) {
            let _ = write!(text, "{byte:02x}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_fits_only_its_own_conversation() {
        let seal = NameSeal::new("secret".into());
        let address = |chat: &str, topic: Option<&str>| Address {
            account: "dingtalk".into(),
            chat: chat.into(),
            topic: topic.map(Into::into),
        };
        let name = seal.name("key1", false, &address("cid1", None));
        assert_eq!(NameSeal::private(&name), Some(false));
        assert!(name.len() < 64 && seal.verify(&name, &address("cid1", None)), "{name}");
        assert!(!seal.verify(&name, &address("cid2", None)));
        assert!(!seal.verify(&name, &address("cid1", Some("u1"))));
        assert!(!seal.verify(&name.replacen('g', "p", 1), &address("cid1", None)));
        assert!(!NameSeal::new("other".into()).verify(&name, &address("cid1", None)));
        for garbage in ["", "g", "g-key1", "g-key1-", "x-y-z", "-"] {
            assert!(!seal.verify(garbage, &address("cid1", None)), "{garbage}");
        }
        assert_eq!(NameSeal::private("x-y-z"), None);
    }
}
