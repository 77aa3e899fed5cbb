//! People make themselves known by a code, once: `/connect CODE`.
//!
//! A code is 128 bits of chance, good for ten minutes and one person, and only its hash is kept. The operator makes it
//! (`pudu connect`, or the HTTP API) and hands it on.

use super::{account::Account, reply, shared::Shared};
use crate::bus::InboxItem;
use anyhow::{Context, Result};
use pudu_client::{
    base::digest,
    store::{AccountPerson, Paired, StoreError},
};
use pudu_kit::clock;
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

/// How long a code is good.
pub const GOOD_FOR: Duration = Duration::from_secs(600);

impl Shared {
    /// Makes a code for an account; `None` when too many are unused.
    pub async fn offer_code(&self, account: &str) -> Result<Option<String>> {
        let code = fresh().context("no randomness")?;
        let offered = self.db.offer_code(account, &hash(&code), expiry(), clock::now()).await?;
        Ok(offered.then_some(code))
    }

    /// Forgets a person that an account knows by a code.
    pub async fn unpair(&self, account: &str, person: &str) -> Result<bool, StoreError> {
        let was = self.db.unpair(account, person).await?;
        self.known.remove(account, person);
        Ok(was)
    }

    /// Takes people who were forgotten for unknown.
    pub fn forget_people(&self, people: &[AccountPerson]) {
        for AccountPerson { account, person, .. } in people {
            self.known.remove(account, person);
            self.users.part(account, person);
        }
    }

    /// Redeems the code of an event, and answers with the outcome. A wrong one is answered once an hour.
    pub(super) async fn connect(self: &Arc<Self>, account: &Arc<Account>, arrival: InboxItem, code: &str) {
        let (name, sender) = (&arrival.inbound.address.account, &arrival.inbound.sender);
        let person = Paired {
            account: name.clone(),
            person: sender.id.clone(),
            name: sender.name.clone(),
            at: clock::now(),
        };
        let redeemed = self.db.redeem_code(&hash(code), person).await;
        let language = account.policy().language(&arrival.inbound);
        let text = match redeemed {
            Ok(true) => {
                self.known.add(name, &sender.id);
                tracing::info!(account = name, person = sender.id, "connected person by a code");
                language.connected()
            }
            Ok(false) if !self.refusals.due(name, &format!("code:{}", sender.id), Instant::now()) => {
                self.ignore(&arrival);
                return;
            }
            Ok(false) => language.code_invalid(),
            Err(error) => {
                tracing::error!(%error, "failed to look up code");
                language.code_unreadable()
            }
        };
        reply::say(self, account, arrival, text);
    }
}

/// Answers the code of a person who needs none: listed, or known by a code, perhaps this one, whose answer a restart
/// cut.
pub(super) fn greet(shared: &Arc<Shared>, account: &Arc<Account>, arrival: InboxItem) {
    let text = account.policy().language(&arrival.inbound).known_already();
    reply::say(shared, account, arrival, text);
}

/// Makes a code: 22 letters, digits, `-` and `_`.
pub(super) fn fresh() -> Result<String, getrandom::Error> {
    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

pub(super) fn hash(code: &str) -> String {
    digest(code.trim())
}

/// Returns until when a code is good that is made now, in milliseconds since 1970.
pub(super) fn expiry() -> i64 {
    clock::now() + clock::millis(GOOD_FOR)
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
}
