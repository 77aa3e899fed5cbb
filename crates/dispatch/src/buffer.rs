//! Stores the messages of groups that do not address the bot, for accounts whose platform gives bots no history.

use super::{account::AccountRules, shared::Shared};
use crate::bus::{InboxItem, STORE_TIMEOUT, conceal};
use pudu_channels::{
    AcceptError, Accepted, Address, BoxFuture, EventSink, FormAccess, Inbound, InboundKind, KnownMessage,
    PointedAt, PointedKind, ReplyStoreError, StreamPosition,
};
use pudu_config::{GroupContext, GroupHistory};
use pudu_kit::clock;
use pudu_store::{BufferLimits, BufferPlace, BufferTake, BufferedMessage, StoreError};
use std::sync::Arc;

/// Passes events on to the inbox, and buffers messages that are not for the bot.
impl EventSink for Shared {
    fn accept<'a>(&'a self, inbound: Inbound) -> BoxFuture<'a, Result<Accepted, AcceptError>> {
        let Some(rules) = self.buffering(&inbound) else { return self.inbox.accept(inbound) };
        Box::pin(async move {
            let accepted = self.inbox.accept(inbound.clone()).await?;
            let buffered = self.buffer(&rules, &inbound, accepted).await;
            buffered.map_err(|error| AcceptError::Store(error.to_string()))?;
            Ok(accepted)
        })
    }

    /// Passes the event on. Platforms with positions have a history for bots, so buffering is unnecessary.
    fn accept_at<'a>(
        &'a self,
        inbound: Inbound,
        position: StreamPosition,
    ) -> BoxFuture<'a, Result<Accepted, AcceptError>> {
        self.inbox.accept_at(inbound, position)
    }

    fn save_position<'a>(
        &'a self,
        account: &'a str,
        position: StreamPosition,
    ) -> BoxFuture<'a, Result<(), ReplyStoreError>> {
        self.inbox.save_position(account, position)
    }

    fn position<'a>(
        &'a self,
        account: &'a str,
    ) -> BoxFuture<'a, Result<Option<StreamPosition>, ReplyStoreError>> {
        self.inbox.position(account)
    }

    fn known_messages<'a>(
        &'a self,
        account: &'a str,
        since: i64,
    ) -> BoxFuture<'a, Result<Vec<KnownMessage>, ReplyStoreError>> {
        self.inbox.known_messages(account, since)
    }

    fn is_in_conversation<'a>(
        &'a self,
        address: &'a Address,
        message: &'a str,
    ) -> BoxFuture<'a, Result<bool, ReplyStoreError>> {
        self.inbox.is_in_conversation(address, message)
    }

    fn form<'a>(&'a self, inbound: &'a Inbound) -> BoxFuture<'a, Result<FormAccess, ReplyStoreError>> {
        Box::pin(self.form_below(inbound))
    }
}

impl Shared {
    /// Returns the rules of an event's account if the account buffers messages of that chat.
    fn buffering(&self, inbound: &Inbound) -> Option<Arc<AccountRules>> {
        let rules = self.accounts.get(&inbound.address.account)?.policy();
        let is_buffered = rules.context.is_buffered() && !inbound.private;
        (is_buffered && rules.access.chats.permits(&inbound.address.chat)).then_some(rules)
    }

    /// Buffers a message that does not address the bot, or changes a buffered one.
    async fn buffer(
        &self,
        rules: &AccountRules,
        inbound: &Inbound,
        accepted: Accepted,
    ) -> Result<(), StoreError> {
        let (db, place) = (self.db.within(STORE_TIMEOUT), place(&inbound.address, rules.context));
        match &inbound.kind {
            InboundKind::Edit { text } => {
                let person = inbound.sender.id.as_str();
                // Other bots have no person id, and text of people who are not admitted is not stored.
                if person.is_empty() || !self.admits(&rules.access, &place.account, Some(person)) {
                    return Ok(());
                }
                db.edit_buffered(place, &inbound.message, person, &without_secret(text)).await
            }
            InboundKind::Message { .. } if accepted == Accepted::Unaddressed => {
                let Some(message) = self.buffered(rules, inbound, place) else { return Ok(()) };
                db.buffer_message(message, limits(rules.context)).await.map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Returns the stored form of a message; `None` for one without content. If the account does not admit the author,
    /// the row has neither text nor name, and only counts as a message.
    fn buffered(
        &self,
        rules: &AccountRules,
        inbound: &Inbound,
        place: BufferPlace,
    ) -> Option<BufferedMessage> {
        let now = clock::now();
        let at = if inbound.at > 0 { inbound.at.min(now) } else { now };
        let mut piece = inbound.to_recent()?;
        if !self.admits(&rules.access, &place.account, piece.author_id.as_deref()) {
            piece = PointedAt { kind: PointedKind::Recent, ..PointedAt::default() };
        }
        piece.at = Some(at);
        let text = without_secret(&std::mem::take(&mut piece.text));
        Some(BufferedMessage {
            place,
            event_key: inbound.key.0.clone(),
            message: inbound.message.clone(),
            person: piece.author_id.clone().unwrap_or_default(),
            name: piece.author.clone().unwrap_or_default(),
            text,
            piece: serde_json::to_string(&piece).ok()?,
            at,
        })
    }

    /// Takes the buffered messages of a turn's chat or topic, oldest first, up to the time of the turn's newest
    /// message. Later turns do not get them.
    pub(super) async fn take_buffered(
        &self,
        context: GroupContext,
        first: &InboxItem,
        newest: &Inbound,
    ) -> Result<Vec<PointedAt>, StoreError> {
        let BufferLimits { messages, oldest, now } = limits(context);
        let take = BufferTake {
            place: place(&first.inbound.address, context),
            by: first.id,
            max: messages,
            since: oldest,
            until: if newest.at > 0 { newest.at } else { now },
        };
        let rows = self.db.take_buffered(take).await?;
        let piece = |(text, piece): (String, String)| {
            let piece = serde_json::from_str::<PointedAt>(&piece).ok()?;
            Some(PointedAt { text, ..piece })
        };
        Ok(rows.into_iter().filter_map(piece).collect())
    }

    /// Deletes the buffered messages that are older than their account allows.
    pub async fn expire_buffered(&self) -> Result<(), StoreError> {
        let rules = self.accounts.all().into_iter().map(|(name, account)| (name, account.policy().context));
        let buffered = rules.filter(|(_, context)| context.is_buffered());
        let oldest = buffered.map(|(name, context)| (name, limits(context).oldest)).collect();
        self.db.expire_buffered(oldest).await
    }
}

/// Returns the buffer that a message belongs to.
fn place(address: &Address, context: GroupContext) -> BufferPlace {
    let topic = address.topic.clone().filter(|_| context.history == GroupHistory::TopicBuffer);
    BufferPlace {
        account: address.account.clone(),
        chat: address.chat.clone(),
        topic: topic.unwrap_or_default(),
    }
}

/// Returns the current limits of a buffer.
fn limits(context: GroupContext) -> BufferLimits {
    let now = clock::now();
    let messages = i64::try_from(context.messages).unwrap_or(i64::MAX);
    BufferLimits { messages, oldest: context.oldest(now), now }
}

/// Removes the secret from a text that passes one to a command.
fn without_secret(text: &str) -> String {
    conceal(text).map_or_else(|| text.to_owned(), |concealed| concealed.shown)
}
