//! Decodes updates into [`Inbound`]s: pure, no IO, no clock.
//!
//! Deliberately absent: access decisions. They are made by id in one place for all platforms.

use super::{
    media::{attachments, described},
    pointed::pointed,
    text::{MessageText, parse_text},
    wire::{CallbackQuery, TelegramIdentity, TelegramMessage, TelegramUpdate, TelegramUser},
};
use crate::{Address, EventKey, Inbound, InboundKind, Sender, pointed::lines};
use serde_json::{Value, json};

/// Update decoder of one bot.
#[derive(Debug)]
pub(super) struct TelegramDecoder<'a> {
    pub(super) account: &'a str,
    pub(super) me: &'a TelegramIdentity,
    /// Whether a message in a group has to address the bot.
    pub(super) require_mention: bool,
}

/// An update to deliver.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct UpdateDelivery {
    /// The decoded event.
    pub(super) inbound: Inbound,
    /// Id of a pressed button, which Telegram shows as pending until it is answered.
    pub(super) pressed: Option<String>,
}

impl UpdateDelivery {
    /// Returns the webhook's response once the event is stored. It ends the pending state of a pressed button.
    #[must_use]
    pub(super) fn response(&self) -> Option<Value> {
        let query = self.pressed.as_ref()?;
        Some(json!({"method": "answerCallbackQuery", "callback_query_id": query}))
    }
}

impl TelegramDecoder<'_> {
    /// Decodes an update; `None` for one that does not concern the bot. `now` is in milliseconds since 1970.
    pub(super) fn decode(&self, update: &TelegramUpdate, now: i64) -> Option<UpdateDelivery> {
        let key = EventKey(format!("u{}", update.update_id));
        if let Some(query) = &update.callback_query {
            return self.press(key, query, now);
        }
        let inbound = match (&update.message, &update.edited_message) {
            (Some(message), _) => self.message(key, message),
            (None, Some(message)) => self.edit(key, message),
            (None, None) => None,
        };
        inbound.map(|inbound| UpdateDelivery { inbound, pressed: None })
    }

    fn message(&self, key: EventKey, message: &TelegramMessage) -> Option<Inbound> {
        if let Some(to) = message.migrate_to_chat_id {
            tracing::info!(chat = message.chat.id, to, "noted group that became a supergroup");
        }
        let words = parse_text(message, self.me);
        let pointed = pointed(message, self.me);
        let album = message.media_group_id.clone();
        let kind = match message.is_passed_on() {
            // A forward has no text by the sender. Several forwards arrive one by one.
            true => {
                let album = album.or_else(|| (message.chat.kind == "private").then(|| "forward".to_owned()));
                InboundKind::Message { text: String::new(), attachments: Vec::new(), album }
            }
            false => {
                let text = lines([words.text.clone(), described(&message.content).unwrap_or_default()]);
                let attachments = attachments(&message.content);
                if text.is_empty() && attachments.is_empty() && !words.mentioned {
                    return None;
                }
                InboundKind::Message { text, attachments, album }
            }
        };
        Some(Inbound { pointed, ..self.inbound(key, message, &words, kind)? })
    }

    fn edit(&self, key: EventKey, message: &TelegramMessage) -> Option<Inbound> {
        // A live location moves by edits, which are ignored. An edited file without text may have lost its caption.
        if message.text.is_none() && message.caption.is_none() && attachments(&message.content).is_empty() {
            return None;
        }
        let words = parse_text(message, self.me);
        let kind = InboundKind::Edit { text: words.text.clone() };
        self.inbound(key, message, &words, kind)
    }

    fn inbound(
        &self,
        key: EventKey,
        message: &TelegramMessage,
        words: &MessageText,
        kind: InboundKind,
    ) -> Option<Inbound> {
        if message.chat.kind == "channel" {
            return None;
        }
        let private = message.chat.kind == "private";
        let sender = sender(message).or_else(|| self.other_bot(message))?;
        let is_person = !sender.id.is_empty();
        let answered = message.answered().filter(|_| is_person);
        let own =
            |answered: &TelegramMessage| answered.from.as_ref().is_some_and(|from| from.id == self.me.id);
        let addressed = private || !self.require_mention || words.addressed || answered.is_some_and(own);
        // An automatically forwarded post of the linked channel does not address the bot.
        let addressed = is_person && addressed && !message.is_automatic_forward;
        Some(Inbound {
            key,
            address: self.address(message),
            private,
            message: message.message_id.to_string(),
            // No conversation has to be looked up for messages to others: Telegram reports the author of the message
            // being replied to.
            reply_to: answered.filter(|_| addressed).map(|answered| answered.message_id.to_string()),
            sender,
            addressed,
            at: message.edit_date.unwrap_or(message.date).saturating_mul(1000),
            pointed: Vec::new(),
            hint: None,
            kind,
        })
    }

    /// Returns the sender if another bot wrote in a group. The id is empty, because bots may not address this bot.
    fn other_bot(&self, message: &TelegramMessage) -> Option<Sender> {
        let other = |from: &&TelegramUser| from.is_bot && from.id != self.me.id;
        let bot = message.from.as_ref().filter(other).filter(|_| message.chat.kind != "private")?;
        Some(Sender { id: String::new(), name: bot.full_name(), language: None })
    }

    fn press(&self, key: EventKey, query: &CallbackQuery, now: i64) -> Option<UpdateDelivery> {
        // A message that is too old has no date, and its content is no longer available.
        let message = query.message.as_ref().filter(|message| message.date != 0)?;
        if query.from.is_bot {
            return None;
        }
        let inbound = Inbound {
            key,
            address: self.address(message),
            private: message.chat.kind == "private",
            message: message.message_id.to_string(),
            reply_to: None,
            sender: person(&query.from),
            addressed: true,
            at: now,
            pointed: Vec::new(),
            hint: None,
            kind: InboundKind::Press { action: query.data.clone()? },
        };
        Some(UpdateDelivery { inbound, pressed: Some(query.id.clone()) })
    }

    fn address(&self, message: &TelegramMessage) -> Address {
        Address {
            account: self.account.to_owned(),
            chat: message.chat.id.to_string(),
            topic: message.topic().map(|topic| topic.to_string()),
        }
    }
}

impl TelegramMessage {
    /// Returns whether the message forwards one of another author.
    pub(super) fn is_passed_on(&self) -> bool {
        let id = |user: Option<&TelegramUser>| user.map(|user| user.id);
        let origin = self.forward_origin.as_ref();
        origin.is_some_and(|origin| {
            origin.sender_user.is_none() || id(origin.sender_user.as_ref()) != id(self.from.as_ref())
        })
    }
}

/// Returns the author of a message; `None` for a bot. Messages of an anonymous administrator, or of a user who writes
/// as a channel, also have a bot as author: their sender is the chat on whose behalf they are written.
fn sender(message: &TelegramMessage) -> Option<Sender> {
    if let Some(chat) = &message.sender_chat {
        return Some(Sender {
            id: chat.id.to_string(),
            name: chat.title.clone().unwrap_or_default(),
            language: None,
        });
    }
    let from = message.from.as_ref().filter(|from| !from.is_bot)?;
    Some(person(from))
}

fn person(user: &TelegramUser) -> Sender {
    Sender { id: user.id.to_string(), name: user.full_name(), language: user.language_code.clone() }
}

#[cfg(test)]
mod tests;
