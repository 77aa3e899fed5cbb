//! Access control: one gate for messages, edits, buttons and commands. Decisions depend on ids, never on names.

use pudu_channels::Inbound;
use pudu_config::Allow;
use pudu_store::{Db, StoreError};
use std::{
    collections::{BTreeSet, HashMap},
    sync::{Mutex, PoisonError, RwLock},
    time::Duration,
};
use tokio::time::Instant;

/// People and chats that may use a bot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// Allowed people.
    pub users: Allow,
    /// Allowed chats.
    pub chats: Allow,
    /// Whether a person who is not listed must first redeem a code.
    pub pairing: bool,
}

/// Verdict of the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessVerdict {
    /// The sender may use the bot.
    Welcome,
    /// Send a polite refusal.
    Refuse,
    /// Give no answer.
    Ignore,
}

impl Access {
    /// Returns rules that admit everyone.
    pub fn everyone() -> Self {
        Self { users: Allow::Everyone, chats: Allow::Everyone, pairing: false }
    }

    /// Returns rules that admit no one.
    pub fn nobody() -> Self {
        Self { users: Allow::Only(BTreeSet::new()), chats: Allow::Only(BTreeSet::new()), pairing: false }
    }

    /// Returns whether everyone may write.
    pub fn is_open(&self) -> bool {
        !self.pairing && self.users == Allow::Everyone
    }

    /// Returns whether a person is listed, or `known` because they redeemed a code.
    pub fn knows(&self, person: &str, known: bool) -> bool {
        known
            || match self.users {
                Allow::Everyone => !self.pairing,
                Allow::Only(_) => self.users.permits(person),
            }
    }

    /// Returns whether a code in this event is accepted. Strangers may send one, except in chats where the bot does
    /// not answer.
    pub fn takes_code(&self, inbound: &Inbound) -> bool {
        inbound.addressed && (inbound.private || self.chats.permits(&inbound.address.chat))
    }

    /// Decides how to treat an event. `known` is whether its sender has redeemed a code.
    pub fn judge(&self, inbound: &Inbound, known: bool) -> AccessVerdict {
        if !inbound.addressed {
            return AccessVerdict::Ignore;
        }
        let user = self.knows(&inbound.sender.id, known);
        let closed = self.pairing || self.users != Allow::Everyone;
        let chat = self.chats.permits(&inbound.address.chat) || (inbound.private && closed);
        match (user && chat, inbound.private) {
            (true, _) => AccessVerdict::Welcome,
            (false, true) => AccessVerdict::Refuse,
            // In a group, a refusal would only disturb the people who may use the bot.
            (false, false) => AccessVerdict::Ignore,
        }
    }
}

/// Stored set of the people who paired with each bot.
#[derive(Default)]
pub struct PairedPeople(RwLock<BTreeSet<(String, String)>>);

impl PairedPeople {
    /// Reads the people who have redeemed a code.
    pub async fn read(db: &Db) -> Result<Self, StoreError> {
        let paired = db.paired().await?.into_iter().map(|paired| (paired.account, paired.person));
        Ok(Self(RwLock::new(paired.collect())))
    }

    pub(super) fn has(&self, account: &str, person: &str) -> bool {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.contains(&(account.to_owned(), person.to_owned()))
    }

    pub(super) fn add(&self, account: &str, person: &str) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        known.insert((account.to_owned(), person.to_owned()));
    }

    pub(super) fn remove(&self, account: &str, person: &str) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        known.remove(&(account.to_owned(), person.to_owned()));
    }
}

/// Minimum interval between two refusals to the same stranger.
const EVERY: Duration = Duration::from_secs(60 * 60);
/// Maximum number of strangers remembered.
const MAX_TRACKED_STRANGERS: usize = 4096;

/// Remembers refused strangers, so that they do not get a refusal for each message.
#[derive(Debug, Default)]
pub struct Refusals(Mutex<HashMap<String, Instant>>);

impl Refusals {
    /// Returns whether this stranger gets a refusal now.
    pub fn due(&self, account: &str, sender: &str, now: Instant) -> bool {
        let mut refused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        refused.retain(|_, at| now.duration_since(*at) < EVERY);
        let stranger = format!("{account}:{sender}");
        if refused.contains_key(&stranger) || refused.len() >= MAX_TRACKED_STRANGERS {
            return false;
        }
        refused.insert(stranger, now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudu_channels::{Address, EventKey, InboundKind, Sender};

    fn inbound(user: &str, name: &str, private: bool, addressed: bool) -> Inbound {
        Inbound {
            key: EventKey("k".into()),
            address: Address { account: "telegram".into(), chat: "c".into(), topic: None },
            private,
            message: "1".into(),
            reply_to: None,
            sender: Sender { id: user.into(), name: name.into(), language: None },
            addressed,
            at: 0,
            pointed: Vec::new(),
            hint: None,
            kind: InboundKind::Press { action: "/stop".into() },
        }
    }

    #[test]
    fn access_depends_on_ids_and_not_on_names() {
        let only = |ids: &[&str]| Allow::Only(ids.iter().map(|id| (*id).to_owned()).collect());
        let check = |users: Allow, chats: Allow, inbound: Inbound, expect: AccessVerdict| {
            let access = Access { users, chats, pairing: false };
            assert_eq!(access.judge(&inbound, false), expect, "{inbound:?}");
        };
        check(Allow::Everyone, Allow::Everyone, inbound("7", "Eve", false, true), AccessVerdict::Welcome);
        check(Allow::Everyone, Allow::Everyone, inbound("7", "Eve", false, false), AccessVerdict::Ignore);
        check(only(&["1"]), Allow::Everyone, inbound("1", "Ada", true, true), AccessVerdict::Welcome);
        check(only(&["1"]), Allow::Everyone, inbound("7", "1", true, true), AccessVerdict::Refuse);
        check(only(&["1"]), Allow::Everyone, inbound("7", "Ada", false, true), AccessVerdict::Ignore);
        check(Allow::Everyone, only(&["x"]), inbound("1", "Ada", false, true), AccessVerdict::Ignore);
        check(only(&["1"]), only(&["x"]), inbound("1", "Ada", true, true), AccessVerdict::Welcome);
        check(only(&[]), Allow::Everyone, inbound("1", "Ada", true, true), AccessVerdict::Refuse);
    }

    #[test]
    fn with_pairing_only_listed_and_paired_people_are_admitted() {
        let ada = || Allow::Only(["1".to_owned()].into());
        let check = |users: Allow, user: &str, known: bool, private: bool, expect: AccessVerdict| {
            let access = Access { users, chats: Allow::Everyone, pairing: true };
            assert_eq!(access.judge(&inbound(user, "x", private, true), known), expect, "{user} {known}");
        };
        check(Allow::Everyone, "7", false, true, AccessVerdict::Refuse);
        check(Allow::Everyone, "7", false, false, AccessVerdict::Ignore);
        check(Allow::Everyone, "7", true, true, AccessVerdict::Welcome);
        check(Allow::Everyone, "7", true, false, AccessVerdict::Welcome);
        check(ada(), "1", false, true, AccessVerdict::Welcome);
        check(ada(), "7", true, true, AccessVerdict::Welcome);
        check(ada(), "7", false, true, AccessVerdict::Refuse);
    }

    #[test]
    fn codes_are_accepted_only_where_the_bot_answers() {
        let chats = Allow::Only(["x".to_owned()].into());
        let access = |chats: &Allow| Access { users: Allow::Everyone, chats: chats.clone(), pairing: true };
        let check = |chats: &Allow, private: bool, addressed: bool, expect: bool| {
            let shown = inbound("7", "Eve", private, addressed);
            assert_eq!(access(chats).takes_code(&shown), expect, "{chats:?} {private} {addressed}");
        };
        check(&Allow::Everyone, false, true, true);
        check(&chats, false, true, false);
        check(&chats, true, true, true);
        check(&Allow::Everyone, false, false, false);
    }

    #[test]
    fn a_stranger_is_refused_at_most_once_an_hour() {
        let (refusals, now) = (Refusals::default(), Instant::now());
        assert!(refusals.due("a", "7", now));
        assert!(!refusals.due("a", "7", now + EVERY / 2));
        assert!(refusals.due("b", "7", now + EVERY / 2));
        assert!(refusals.due("a", "7", now + EVERY));
    }
}
