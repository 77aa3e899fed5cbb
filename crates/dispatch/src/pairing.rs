//! Pairing: people identify themselves to a bot once, with `/connect CODE`.
//!
//! A code has 128 random bits, expires after ten minutes, and works for one person. Only its hash is stored. The
//! operator creates it (`pudu connect`, or the HTTP API) and passes it on.

use super::{account::Account, reply, shared::Shared};
use crate::bus::InboxItem;
use anyhow::{Context, Result};
use pudu_base::digest;
use pudu_kit::clock;
use pudu_store::{AccountPerson, Paired, StoreError};
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

/// Lifetime of a code.
pub const GOOD_FOR: Duration = Duration::from_secs(600);

impl Shared {
    /// Creates a code for a bot; `None` if too many are unused.
    pub async fn offer_code(&self, account: &str) -> Result<Option<String>> {
        let code = fresh().context("the system's random number generator failed")?;
        let offered = self.db.offer_code(account, &hash(&code), expiry(), clock::now()).await?;
        Ok(offered.then_some(code))
    }

    /// Removes a person's pairing with a bot. Returns whether there was one.
    pub async fn unpair(&self, account: &str, person: &str) -> Result<bool, StoreError> {
        let was = self.db.unpair(account, person).await?;
        self.known.remove(account, person);
        Ok(was)
    }

    /// Forgets the pairings and links of people whose data was deleted.
    pub fn forget_people(&self, people: &[AccountPerson]) {
        for AccountPerson { account, person, .. } in people {
            self.known.remove(account, person);
            self.users.part(account, person);
        }
    }

    /// Redeems the code of an event, and answers with the outcome. A wrong code is answered at most once an hour.
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
                tracing::info!(account = name, person = sender.id, "paired a person by code");
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

/// Answers a code from a person who already has access, because they are listed or have redeemed a code: an earlier
/// one, or this one before a restart.
pub(super) fn greet(shared: &Arc<Shared>, account: &Arc<Account>, arrival: InboxItem) {
    let text = account.policy().language(&arrival.inbound).known_already();
    reply::say(shared, account, arrival, text);
}

/// Creates a code of 22 letters, digits, `-` and `_`.
pub(super) fn fresh() -> Result<String, getrandom::Error> {
    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

pub(super) fn hash(code: &str) -> String {
    digest(code.trim())
}

/// Returns when a code created now expires, in milliseconds since 1970.
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
