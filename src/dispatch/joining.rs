//! One person on two platforms: `/connect` gives a code, and who shows it elsewhere and confirms it is the same user.
//!
//! A code is asked for and shown in private, is good once and for a few minutes, and opens no account: it joins people who
//! may speak already. Whoever shows one is told first whom they join, because from then on both have one memory, and the
//! other one is told of it. What was remembered of the one who shows it becomes a part of that memory.

use super::{
    pairing::{expiry, fresh, hash},
    reply,
    shared::Shared,
};
use crate::{bus::OutboxItem, clock};
use anyhow::{Context, Result};
use pudu_channels::{FinalView, Hurry, Inbound, ReplyTarget};
use pudu_client::{
    base::UserId,
    store::{Identity, JoinCode, StoreError},
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The one whose code it is, as the store keeps them beside it.
#[derive(Serialize, Deserialize)]
pub(super) struct JoinOffer {
    pub(super) account: String,
    person: String,
    pub(super) name: String,
    user: UserId,
    /// Target of the word that somebody joined them.
    target: ReplyTarget,
    conversation: String,
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
    /// Makes a code by which the sender of an event lets somebody be the same user.
    pub(super) async fn offer_join(
        &self,
        inbound: &Inbound,
        target: ReplyTarget,
        conversation: &str,
    ) -> Result<String> {
        let code = fresh().context("no randomness")?;
        let (account, person) = (inbound.address.account.clone(), inbound.sender.id.clone());
        let user = self.users.own(&account, &person);
        let (name, conversation) = (inbound.sender.name.clone(), conversation.to_owned());
        let offer =
            JoinOffer { account: account.clone(), person: person.clone(), name, user, target, conversation };
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

    /// Makes the sender of an event and the one whose code they show one user.
    pub(super) async fn join(
        self: &Arc<Self>,
        inbound: &Inbound,
        code: &str,
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
        if !self.db.join(&hash(code), shows, issuer, brings).await? {
            return Ok(JoinOutcome::Refused);
        }
        self.users.join(account, &sender.id, offer.user.clone());
        self.users.join(&offer.account, &offer.person, offer.user.clone());
        tracing::info!(account, person = sender.id, user = %offer.user, "joined two people to one user");
        self.client.merge_memories().await;
        self.tell_joined(&offer, inbound).await;
        Ok(JoinOutcome::With(Box::new(offer)))
    }

    /// Makes the sender of an event a user by themselves again. False when they are one.
    pub(super) async fn part(&self, inbound: &Inbound) -> Result<bool, StoreError> {
        let (account, person) = (&inbound.address.account, &inbound.sender.id);
        let parted = self.db.part(account, person).await?;
        self.users.part(account, person);
        Ok(parted)
    }

    /// Tells the owner of a code that somebody joined them.
    async fn tell_joined(self: &Arc<Self>, offer: &JoinOffer, inbound: &Inbound) {
        let Some(account) = self.accounts.get(&offer.account) else { return };
        let target = account.channel().beside(&offer.target);
        let text = target.language.joined_by(&inbound.address.account, &inbound.sender.name);
        let view = FinalView { text, ..FinalView::default() };
        let item: OutboxItem = reply::outbox_item(&offer.conversation, &target);
        let row = reply::new_turn(&item, &target, Vec::new(), serde_json::to_string(&view).ok());
        if self.outbox.open(&row).await {
            let shared = self.clone();
            self.tasks.spawn(async move {
                reply::deliver(&shared, &account, &item, target, &view, &Hurry::default()).await;
            });
        }
    }
}
