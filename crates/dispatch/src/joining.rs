//! One person on two platforms: `/connect` gives a code; a person who shows it elsewhere and confirms it is the same
//! user.
//!
//! A code is asked for and shown in private, is good once and for a few minutes, and opens no account: it joins people
//! with access to the bot. A person who shows one first sees which user they join, because from then on both have one
//! memory, and the other one gets a notice. The memory of the person who shows it becomes a part of that memory.

use super::{
    pairing::{expiry, fresh, hash},
    reply,
    shared::Shared,
};
use crate::bus::OutboxItem;
use anyhow::{Context, Result};
use pudu_channels::{Address, FinalView, Hurry, Inbound, ReplyTarget};
use pudu_client::{
    base::UserId,
    store::{Identity, JoinCode, StoreError},
};
use pudu_config::LOCAL;
use pudu_kit::clock;
use pudu_texts::Language;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The one whose code it is, as the store keeps them beside it.
#[derive(Serialize, Deserialize)]
pub(super) struct JoinOffer {
    pub(super) account: String,
    person: String,
    pub(super) name: String,
    user: UserId,
    /// Target of the notice that a person joined them.
    #[serde(flatten)]
    route: JoinRoute,
}

/// Target of a notice to a person.
#[derive(Serialize, Deserialize)]
pub(super) struct JoinRoute {
    pub(super) target: ReplyTarget,
    pub(super) conversation: String,
}

/// Outcome of parting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartOutcome {
    /// They are a separate user now.
    Left,
    /// Others are separate users now: those who came by their code or were the user that they are.
    Others,
    /// They were a separate user already.
    Already,
}

/// Outcome of showing a code.
pub(super) enum JoinOutcome {
    /// Both are one user.
    With(Box<JoinOffer>),
    /// They have been one.
    Already,
    /// The code is not good, or not any more.
    Refused,
}

impl Shared {
    /// Makes a code by which the sender of an event lets another person be the same user.
    pub(super) async fn offer_join(&self, inbound: &Inbound, route: JoinRoute) -> Result<String> {
        let code = fresh().context("no randomness")?;
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

    /// Makes a code by which a user of the HTTP API lets another person be the same user. The user gets no notice: the
    /// API shows them the people who joined.
    pub async fn offer_join_of(&self, user: &UserId) -> Result<String> {
        let code = fresh().context("no randomness")?;
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

    /// Returns whose code this is, if it is good.
    pub(super) async fn join_offer(&self, code: &str) -> Result<Option<JoinOffer>, StoreError> {
        let offer = self.db.join_offer(&hash(code), clock::now()).await?;
        Ok(offer.and_then(|offer| serde_json::from_str(&offer).ok()))
    }

    /// Makes the sender of an event and the owner of the code that they show one user. `notice_route` is the target
    /// of the sender's notice when they are parted.
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
        let shows = identity(account, &sender.id, &sender.name);
        let issuer = identity(&offer.account, &offer.person, &offer.name);
        // The local user may be several people, whose memory is not theirs to bring.
        let brings = Some(self.user(account, &sender.id)).filter(|user| *user != UserId::local());
        let route = serde_json::to_string(&notice_route).unwrap_or_default();
        if !self.db.join(&hash(code), shows, issuer, brings, &route).await? {
            return Ok(JoinOutcome::Refused);
        }
        self.users.join(account, &sender.id, offer.user.clone());
        self.users.join(&offer.account, &offer.person, offer.user.clone());
        tracing::info!(account, person = sender.id, user = %offer.user, "joined two people to one user");
        self.client.merge_memories().await;
        let text = offer.route.target.language.joined_by(account, &sender.name);
        self.notify(&offer.account, &offer.route, text).await;
        Ok(JoinOutcome::With(Box::new(offer)))
    }

    /// Makes the sender of an event a separate user again, and all people who would be that user, too, or came by their
    /// code.
    pub(super) async fn part(self: &Arc<Self>, inbound: &Inbound) -> Result<PartOutcome, StoreError> {
        let Inbound { address, sender, .. } = inbound;
        self.part_person(&address.account, &sender.id, &sender.name).await
    }

    /// Makes a person of an account a separate user again, like [`Shared::part`].
    pub async fn part_person(
        self: &Arc<Self>,
        account: &str,
        person: &str,
        name: &str,
    ) -> Result<PartOutcome, StoreError> {
        let parted = self.client.part(account, person).await?;
        let mut outcome = PartOutcome::Already;
        for one in parted {
            self.users.part(&one.account, &one.person);
            tracing::info!(account = one.account, person = one.person, "made a person a user by themselves");
            if (one.account.as_str(), one.person.as_str()) == (account, person) {
                if outcome == PartOutcome::Already {
                    outcome = PartOutcome::Left;
                }
                continue;
            }
            outcome = PartOutcome::Others;
            if let Ok(route) = serde_json::from_str::<JoinRoute>(&one.route) {
                let text = route.target.language.parted_by(name);
                self.notify(&one.account, &route, text).await;
            }
        }
        Ok(outcome)
    }

    /// Sends a notice to a person of an account, in the chat where they last spoke of being one with another.
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
