//! Numbers that people type for what was offered in words.
//!
//! An ordinary message has no buttons: its choices are a numbered list, each with what can be typed. Who
//! answers the newest message of a chat with such a number means that choice. This is a convenience that a
//! restart forgets; what stands in the list can always be typed.

use crate::{Address, Choice, Inbound, Kind};
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

/// How many chats' choices are remembered.
const MOST: usize = 1024;

/// What was offered last, by place.
#[derive(Debug, Default)]
pub(super) struct Offers(Mutex<HashMap<String, Vec<String>>>);

impl Offers {
    /// A finished message stands in a place now: with these choices, or with none.
    pub(super) fn set(&self, address: &Address, choices: &[Choice]) {
        let mut offers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        offers.remove(&address.key());
        if choices.is_empty() {
            return;
        }
        if offers.len() >= MOST {
            offers.clear();
        }
        offers.insert(address.key(), choices.iter().map(|choice| choice.action.clone()).collect());
    }

    /// Takes what a number means in a place.
    fn take(&self, address: &Address, text: &str) -> Option<String> {
        let number: usize = text.trim().trim_end_matches(['.', '。', ')']).parse().ok()?;
        let mut offers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let action = offers.get(&address.key())?.get(number.checked_sub(1)?)?.clone();
        offers.remove(&address.key());
        Some(action)
    }
}

/// Puts what a number means in its place.
pub(super) fn resolve(offers: &Offers, inbound: Inbound) -> Inbound {
    let Kind::Message { text, attachments, album } = &inbound.kind else { return inbound };
    match offers.take(&inbound.address, text).filter(|_| attachments.is_empty()) {
        Some(text) => {
            let kind = Kind::Message { text, attachments: Vec::new(), album: album.clone() };
            Inbound { kind, ..inbound }
        }
        None => inbound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(chat: &str) -> Address {
        Address { account: "dingtalk".into(), chat: chat.into(), topic: None }
    }

    #[test]
    fn a_number_means_what_was_offered_last_and_only_once() {
        let offers = Offers::default();
        let choice = |action: &str| Choice { label: "x".into(), action: action.into() };
        offers.set(&place("a"), &[choice("/retry"), choice("/stop")]);
        let take = |chat: &str, text: &str| offers.take(&place(chat), text);
        for other in ["0", "3", "2 apples", "-1", "two", "", "99999999999999999999999"] {
            assert_eq!(take("a", other), None, "{other}");
        }
        assert_eq!(take("b", "1"), None);
        assert_eq!(take("a", " 2. "), Some("/stop".into()));
        assert_eq!(take("a", "1"), None);
        offers.set(&place("a"), &[choice("/retry")]);
        offers.set(&place("a"), &[]);
        assert_eq!(take("a", "1"), None);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let offers = Offers::default();
        for n in 0..5000 {
            offers.set(&place(&n.to_string()), &[Choice { label: "x".into(), action: "/x".into() }]);
        }
        assert!(offers.0.lock().unwrap().len() <= MOST);
    }
}
