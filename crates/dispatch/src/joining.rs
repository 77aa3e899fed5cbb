//! Links a person's accounts on two platforms: `/connect` creates a code, and a person who sends it on another
//! platform and confirms becomes the same user.
//!
//! A code is requested and shown in private, is valid once and for a few minutes, and grants no access: it links people
//! with existing access to the bot. The sender of a code first sees which user they join, because both then share one
//! memory, and the owner of the code gets a notice. The sender's memory is merged into the shared one.

use super::{
    pairing::{expiry, fresh, hash},
    reply,
    shared::Shared,
};
use crate::bus::OutboxItem;
use anyhow::{Context, Result};
use pudu_base::UserId;
use pudu_channels::{Address, FinalView, Hurry, Inbound, ReplyTarget};
use pudu_config::LOCAL;
use pudu_kit::clock;
use pudu_store::{Identity, JoinCode, StoreError};
use pudu_texts::Language;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The owner of a code, stored with it.
#[derive(Serialize, Deserialize)]
pub(super) struct JoinOffer {
    pub(super) account: String,
    person: String,
    pub(super) name: String,
    user: UserId,
    /// Where the owner is notified that a person joined them.
    #[serde(flatten)]
    route: JoinRoute,
}

/// Where a person is notified.
#[derive(Serialize, Deserialize)]
pub(super) struct JoinRoute {
    pub(super) target: ReplyTarget,
    pub(super) conversation: String,
}

/// Outcome of ending a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnlinkOutcome {
    /// The person is a separate user now.
    Left,
    /// Only other users were unlinked: those who joined with this user's code or shared their user.
    Others,
    /// The person was a separate user already.
    Already,
}

/// Outcome of sending a code.
pub(super) enum JoinOutcome {
    /// Both are one user.
    With(Box<JoinOffer>),
    /// Both were one user already.
    Already,
    /// The code is invalid or expired.
    Refused,
}

impl Shared {
    /// Creates a code that lets another person become the same user as the sender of an event.
    pub(super) async fn offer_join(&self, inbound: &Inbound, route: JoinRoute) -> Result<String> {
        let code = fresh().context("the system's random number generator failed")?;
        let (account, person) = (inbound.address.account.clone(), inbound.sender.id.clone());
        let user = self.users.own(&account, &person);
        let name = inbound.sender.name.clone();
        let offer = JoinOffer { account: account.clone(), person: person.clone(), name, user, route };
        let offer = serde_json::to_string(&offer)?;
        self.db
            .offer_join(JoinCode { hash: hash(&code), account, issuer: person, offer, expires: expiry() })
            .await?;
        Ok(code)
    }

    /// Creates a code that lets another person become the same user as a user of the HTTP API. That user gets no
    /// notice: the API shows them who joined.
    pub async fn offer_join_of(&self, user: &UserId) -> Result<String> {
        let code = fresh().context("the system's random number generator failed")?;
        let (account, person) = (LOCAL.to_owned(), user.to_string());
        if self.db.identity_of(&account, &person).await?.is_none() {
            let (user, name) = (user.clone(), person.clone());
            let (account, person, at) = (account.clone(), person.clone(), clock::now());
            self.db.identify(Identity { account, person, user, name, at }).await?;
        }
        let target = ReplyTarget {
            address: Address { account: account.clone(), chat: String::new(), topic: None },
            private: true,
            reply_to: None,
            sender: String::new(),
            language: Language::default(),
            hint: None,
            saved: None,
        };
        let route = JoinRoute { target, conversation: String::new() };
        let (name, user) = (person.clone(), user.clone());
        let offer = JoinOffer { account: account.clone(), person: person.clone(), name, user, route };
        let offer = serde_json::to_string(&offer)?;
        self.db
            .offer_join(JoinCode { hash: hash(&code), account, issuer: person, offer, expires: expiry() })
            .await?;
        Ok(code)
    }

    /// Returns the owner of a code, if it is valid.
    pub(super) async fn join_offer(&self, code: &str) -> Result<Option<JoinOffer>, StoreError> {
        let offer = self.db.join_offer(&hash(code), clock::now()).await?;
        Ok(offer.and_then(|offer| serde_json::from_str(&offer).ok()))
    }

    /// Merges the sender of an event and the owner of the sent code into one user. `notice_route` determines where the
    /// sender is notified if the link ends.
    pub(super) async fn join(
        self: &Arc<Self>,
        inbound: &Inbound,
        code: &str,
        notice_route: JoinRoute,
    ) -> Result<JoinOutcome, StoreError> {
        let Some(offer) = self.join_offer(code).await? else { return Ok(JoinOutcome::Refused) };
        let (account, sender, at) = (&inbound.address.account, &inbound.sender, clock::now());
        if self.user(account, &sender.id) == offer.user {
            return Ok(JoinOutcome::Already);
        }
        let identity = |account: &str, person: &str, name: &str| Identity {
            account: account.to_owned(),
            person: person.to_owned(),
            user: offer.user.clone(),
            name: name.to_owned(),
            at,
        };
        let joined = identity(account, &sender.id, &sender.name);
        let issuer = identity(&offer.account, &offer.person, &offer.name);
        // Several people may share the local user, so its memory is not merged.
        let merged_user = Some(self.user(account, &sender.id)).filter(|user| *user != UserId::local());
        let route = serde_json::to_string(&notice_route).unwrap_or_default();
        if !self.db.join(&hash(code), joined, issuer, merged_user, &route).await? {
            return Ok(JoinOutcome::Refused);
        }
        self.users.join(account, &sender.id, offer.user.clone());
        self.users.join(&offer.account, &offer.person, offer.user.clone());
        tracing::info!(account, person = sender.id, user = %offer.user, "linked two identities to one user");
        self.agent.merge_memories().await;
        let text = offer.route.target.language.joined_by(account, &sender.name);
        self.notify(&offer.account, &offer.route, text).await;
        Ok(JoinOutcome::With(Box::new(offer)))
    }

    /// Makes the sender of an event a separate user again, as well as everyone who joined by their code or shares their
    /// own user.
    pub(super) async fn part(self: &Arc<Self>, inbound: &Inbound) -> Result<UnlinkOutcome, StoreError> {
        let Inbound { address, sender, .. } = inbound;
        self.part_person(&address.account, &sender.id, &sender.name).await
    }

    /// Makes a person of an account a separate user again, like [`Shared::part`].
    pub async fn part_person(
        self: &Arc<Self>,
        account: &str,
        person: &str,
        name: &str,
    ) -> Result<UnlinkOutcome, StoreError> {
        let parted = self.agent.part(account, person).await?;
        let mut outcome = UnlinkOutcome::Already;
        for one in parted {
            self.users.part(&one.account, &one.person);
            tracing::info!(
                account = one.account,
                person = one.person,
                "unlinked a person, who is a separate user again"
            );
            if (one.account.as_str(), one.person.as_str()) == (account, person) {
                if outcome == UnlinkOutcome::Already {
                    outcome = UnlinkOutcome::Left;
                }
                continue;
            }
            outcome = UnlinkOutcome::Others;
            if let Ok(route) = serde_json::from_str::<JoinRoute>(&one.route) {
                let text = route.target.language.parted_by(name);
                self.notify(&one.account, &route, text).await;
            }
        }
        Ok(outcome)
    }

    /// Sends a notice to a person of an account, in the chat where they last used `/connect` to link.
    async fn notify(self: &Arc<Self>, account: &str, route: &JoinRoute, text: String) {
        // A user of the HTTP API has no chat.
        let Some(account) = self.accounts.get(account).filter(|_| !route.conversation.is_empty()) else {
            return;
        };
        let target = account.channel().second_target(&route.target);
        let view = FinalView { text, ..FinalView::default() };
        let item: OutboxItem = reply::outbox_item(&route.conversation, &target);
        let row = reply::new_turn(&item, &target, Vec::new(), serde_json::to_string(&view).ok());
        if self.outbox.open(&row).await {
            let shared = self.clone();
            self.tasks.spawn(async move {
                reply::deliver(&shared, &account, &item, target, &view, &Hurry::default()).await;
            });
        }
    }
}
