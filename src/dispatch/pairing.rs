//! People make themselves known by a code, once: `/connect CODE`.
//!
//! A code is 128 bits of chance, good for ten minutes and one person, and only its hash is kept. Whoever
//! runs the bot makes it (`pudu connect`, or the HTTP API) and hands it on.

use super::{Account, Shared, command::SlashCommand, conversation::ConversationActor};
use crate::{bus::InboxItem, clock};
use anyhow::{Context, Result};
use pudu_channels::{FinalView, InboundKind};
use pudu_client::store::{Db, Paired, StoreError};
use sha2::{Digest, Sha256};
use std::{
    collections::BTreeSet,
    fmt::Write,
    sync::{Arc, PoisonError, RwLock},
    time::{Duration, Instant},
};

/// How long a code is good.
pub(crate) const GOOD_FOR: Duration = Duration::from_secs(600);

/// Who is known to which account, as the store has it.
#[derive(Default)]
pub(crate) struct PairedPeople(RwLock<BTreeSet<(String, String)>>);

impl PairedPeople {
    /// Reads who is known.
    pub(crate) async fn read(db: &Db) -> Result<Self, StoreError> {
        let paired = db.paired().await?.into_iter().map(|paired| (paired.account, paired.person));
        Ok(Self(RwLock::new(paired.collect())))
    }

    pub(super) fn has(&self, account: &str, person: &str) -> bool {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.contains(&(account.to_owned(), person.to_owned()))
    }

    fn add(&self, account: &str, person: &str) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        known.insert((account.to_owned(), person.to_owned()));
    }

    fn remove(&self, account: &str, person: &str) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        known.remove(&(account.to_owned(), person.to_owned()));
    }
}

impl Shared {
    /// Makes a code for an account; `None` when too many are unused.
    pub(crate) async fn offer_code(&self, account: &str) -> Result<Option<String>> {
        let code = fresh().context("no randomness")?;
        let now = clock::now();
        let expires = now + i64::try_from(GOOD_FOR.as_millis()).unwrap_or(i64::MAX);
        let offered = self.db.offer_code(account, &hash(&code), expires, now).await?;
        Ok(offered.then_some(code))
    }

    /// Forgets a person whom an account knows by a code.
    pub(crate) async fn unpair(&self, account: &str, person: &str) -> Result<bool, StoreError> {
        let was = self.db.unpair(account, person).await?;
        self.known.remove(account, person);
        Ok(was)
    }

    /// Takes a code that somebody shows, and says what came of it. A wrong one is answered once an hour.
    pub(super) async fn connect(self: &Arc<Self>, account: &Arc<Account>, arrival: InboxItem, code: &str) {
        let (name, sender) = (&arrival.inbound.address.account, &arrival.inbound.sender);
        let person = Paired {
            account: name.clone(),
            person: sender.id.clone(),
            name: sender.name.clone(),
            at: clock::now(),
        };
        let redeemed = self.db.redeem_code(&hash(code), person).await;
        let text = match redeemed {
            Ok(true) => {
                self.known.add(name, &sender.id);
                tracing::info!(account = name, person = sender.id, "somebody connected by a code");
                "Connected: I know you now. Say hello!"
            }
            Ok(false) if !self.refusals.due(name, &format!("code:{}", sender.id), Instant::now()) => {
                self.ignore(&arrival);
                return;
            }
            Ok(false) => "This code is not valid, or not any more. Ask whoever runs this bot for a new one.",
            Err(error) => {
                tracing::error!(%error, "a code could not be looked up");
                "I could not look that code up just now. Try again in a moment."
            }
        };
        self.say(account, arrival, text);
    }

    /// Answers a code of somebody who needs none: listed, or known by one, this one perhaps, of which a restart
    /// cut the answer.
    pub(super) fn greet(self: &Arc<Self>, account: &Arc<Account>, arrival: InboxItem) {
        self.say(account, arrival, "I know you already. Say hello!");
    }

    fn say(self: &Arc<Self>, account: &Arc<Account>, arrival: InboxItem, text: &str) {
        let view = FinalView { text: text.to_owned(), ..FinalView::default() };
        let answer = ConversationActor::new(self.clone(), account.clone(), arrival.inbound.address.key());
        answer.answer_with(arrival, view, Vec::new());
    }
}

/// Returns the code that somebody shows with a message.
pub(super) fn shown(kind: &InboundKind) -> Option<String> {
    let InboundKind::Message { text, .. } = kind else { return None };
    match SlashCommand::parse(text)? {
        SlashCommand::Connect(code) | SlashCommand::Start(code) => code,
        _ => None,
    }
}

/// Makes a code: 22 letters, digits, `-` and `_`.
fn fresh() -> Result<String, getrandom::Error> {
    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

fn hash(code: &str) -> String {
    let digest = Sha256::digest(code.trim().as_bytes());
    digest.iter().fold(String::with_capacity(64), |mut hex, byte| {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_128_bits_and_only_their_hash_is_kept() {
        let (one, two) = (fresh().unwrap(), fresh().unwrap());
        assert_ne!(one, two);
        assert_eq!(one.len(), 22);
        assert!(!hash(&one).contains(&one));
        assert_eq!(hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn a_code_is_shown_by_a_command_and_by_nothing_else() {
        let said =
            |text: &str| InboundKind::Message { text: text.into(), attachments: Vec::new(), album: None };
        let check =
            |text: &str, expect: Option<&str>| assert_eq!(shown(&said(text)).as_deref(), expect, "{text}");
        check("/connect abc", Some("abc"));
        check("/start abc", Some("abc"));
        check("/connect", None);
        check("connect abc", None);
        assert_eq!(shown(&InboundKind::Press { action: "/connect abc".into() }), None);
    }
}
