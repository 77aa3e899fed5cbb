//! Names of cards that prove the card's conversation.
//!
//! pudu chooses a card's name (`outTrackId`), and every press contains it. The name contains a MAC over the card's
//! conversation, so a press that claims to come from another conversation is rejected.

use crate::Address;
use hmac::{Hmac, KeyInit, Mac};
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;
use std::fmt::Write;

/// Length of the truncated MAC, in bytes. A guess needs 2⁶³ presses on average.
const KEPT: usize = 8;

/// Creates card names, and verifies that a name was created for a conversation.
#[derive(Clone)]
pub(super) struct NameSeal(SecretString);

impl NameSeal {
    pub(super) fn new(secret: SecretString) -> Self {
        Self(secret)
    }

    /// Returns a card's name: the same name for the same key and conversation.
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
    pub(super) fn fits(&self, name: &str, address: &Address) -> bool {
        let mut parts = name.splitn(3, '-');
        let (Some(kind), Some(key), Some(seal)) = (parts.next(), parts.next(), parts.next()) else {
            return false;
        };
        let good = self.sign(key, kind == "p", address);
        bool::from(subtle::ConstantTimeEq::ct_eq(good.as_bytes(), seal.as_bytes()))
    }

    fn sign(&self, key: &str, private: bool, address: &Address) -> String {
        let secret = self.0.expose_secret().as_bytes();
        // HMAC accepts keys of any length.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret) else { return String::new() };
        mac.update(format!("pudu card\n{key}\n{private}\n{}", address.key()).as_bytes());
        let mut text = String::new();
        for byte in mac.finalize().into_bytes().iter().take(KEPT) {
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
        let place = |chat: &str, topic: Option<&str>| Address {
            account: "dingtalk".into(),
            chat: chat.into(),
            topic: topic.map(Into::into),
        };
        let name = seal.name("key1", false, &place("cid1", None));
        assert_eq!(NameSeal::private(&name), Some(false));
        assert!(name.len() < 64 && seal.fits(&name, &place("cid1", None)), "{name}");
        assert!(!seal.fits(&name, &place("cid2", None)));
        assert!(!seal.fits(&name, &place("cid1", Some("u1"))));
        assert!(!seal.fits(&name.replacen('g', "p", 1), &place("cid1", None)));
        assert!(!NameSeal::new("other".into()).fits(&name, &place("cid1", None)));
        for garbage in ["", "g", "g-key1", "g-key1-", "x-y-z", "-"] {
            assert!(!seal.fits(garbage, &place("cid1", None)), "{garbage}");
        }
        assert_eq!(NameSeal::private("x-y-z"), None);
    }
}
