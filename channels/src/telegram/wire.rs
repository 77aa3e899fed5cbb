//! Telegram's payloads, as far as they are read.
//!
//! Not the client library's types, on purpose: those are exact, so that one new kind of entity makes a whole message
//! unreadable, and a message that cannot be read is a person who gets no answer. Here everything is optional that can
//! be, and unread fields cannot break anything.

use crate::lenient::{each, lenient};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The bot itself, as `getMe` describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TelegramIdentity {
    pub(super) id: i64,
    pub(super) username: String,
}

/// One update, its kind not looked at yet.
#[derive(Debug, Deserialize)]
pub(super) struct UpdateEnvelope {
    pub(super) update_id: i64,
}

#[derive(Debug, Deserialize)]
pub(super) struct TelegramUpdate {
    pub(super) update_id: i64,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) message: Option<TelegramMessage>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) edited_message: Option<TelegramMessage>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) callback_query: Option<CallbackQuery>,
}

/// An update that came in a batch.
pub(super) type RawUpdate = Box<RawValue>;

#[derive(Clone, Debug, Deserialize)]
pub(super) struct TelegramUser {
    pub(super) id: i64,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) is_bot: bool,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) first_name: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) last_name: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) username: Option<String>,
    /// The language of the person's app.
    #[serde(default, deserialize_with = "lenient")]
    pub(super) language_code: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) can_read_all_group_messages: bool,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Chat {
    pub(super) id: i64,
    #[serde(default, rename = "type", deserialize_with = "lenient")]
    pub(super) kind: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) title: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct CallbackQuery {
    pub(super) id: String,
    pub(super) from: TelegramUser,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) message: Option<TelegramMessage>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) data: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct TelegramMessage {
    pub(super) message_id: i64,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) message_thread_id: Option<i64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) is_topic_message: bool,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) is_automatic_forward: bool,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) from: Option<TelegramUser>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) sender_chat: Option<Chat>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) forward_origin: Option<MessageOrigin>,
    pub(super) chat: Chat,
    /// Seconds since 1970; 0 for a message that can no longer be read.
    #[serde(default, deserialize_with = "lenient")]
    pub(super) date: i64,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) edit_date: Option<i64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) reply_to_message: Option<Box<TelegramMessage>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) external_reply: Option<Box<ExternalReply>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) quote: Option<TextQuote>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) forum_topic_created: Option<Present>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) media_group_id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) migrate_to_chat_id: Option<i64>,

    #[serde(default, deserialize_with = "lenient")]
    pub(super) text: Option<String>,
    #[serde(default, deserialize_with = "each")]
    pub(super) entities: Vec<Entity>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) caption: Option<String>,
    #[serde(default, deserialize_with = "each")]
    pub(super) caption_entities: Vec<Entity>,
    #[serde(flatten)]
    pub(super) content: TelegramContent,
}

/// Content of a message besides its text.
#[derive(Debug, Default, Deserialize)]
pub(super) struct TelegramContent {
    #[serde(default, deserialize_with = "each")]
    pub(super) photo: Vec<Media>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) document: Option<Media>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) animation: Option<Media>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) audio: Option<Media>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) voice: Option<Media>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) video: Option<Media>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) video_note: Option<Media>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) sticker: Option<Media>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) location: Option<TelegramLocation>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) venue: Option<Venue>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) contact: Option<Contact>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) poll: Option<TelegramPoll>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) dice: Option<Dice>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) checklist: Option<Checklist>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) game: Option<Offer>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) invoice: Option<Offer>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) story: Option<Present>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) paid_media: Option<Present>,
}

/// Source of a message that was passed on or is answered across chats. It names a user only where that one does not
/// hide.
#[derive(Debug, Default, Deserialize)]
pub(super) struct MessageOrigin {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) sender_user: Option<TelegramUser>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) sender_user_name: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) sender_chat: Option<Chat>,
    /// The channel of a channel's post.
    #[serde(default, deserialize_with = "lenient")]
    pub(super) chat: Option<Chat>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) author_signature: Option<String>,
    /// Seconds since 1970.
    #[serde(default, deserialize_with = "lenient")]
    pub(super) date: i64,
}

/// The part of an answered message that the sender marked.
#[derive(Debug, Default, Deserialize)]
pub(super) struct TextQuote {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) text: String,
}

/// A message of another chat that is answered: its source and its media. Telegram gives none of its text but the quote.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ExternalReply {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) origin: MessageOrigin,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) chat: Option<Chat>,
    #[serde(flatten)]
    pub(super) content: TelegramContent,
}

/// Something whose presence is all that matters.
#[derive(Debug, Deserialize)]
pub(super) struct Present {}

#[derive(Debug, Deserialize)]
pub(super) struct Entity {
    #[serde(default, rename = "type", deserialize_with = "lenient")]
    pub(super) kind: String,
    pub(super) offset: usize,
    pub(super) length: usize,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) user: Option<TelegramUser>,
}

/// A file of any kind.
#[derive(Debug, Deserialize)]
pub(super) struct Media {
    pub(super) file_id: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) file_unique_id: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) file_name: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) mime_type: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) file_size: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) width: u32,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) height: u32,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) emoji: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) is_animated: bool,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) is_video: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct TelegramLocation {
    pub(super) latitude: f64,
    pub(super) longitude: f64,
}

#[derive(Debug, Deserialize)]
pub(super) struct Venue {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) title: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) address: String,
    pub(super) location: TelegramLocation,
}

#[derive(Debug, Deserialize)]
pub(super) struct Contact {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) phone_number: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) first_name: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) last_name: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct TelegramPoll {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) question: String,
    #[serde(default, deserialize_with = "each")]
    pub(super) options: Vec<PollOption>,
}

#[derive(Debug, Deserialize)]
pub(super) struct PollOption {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) voter_count: u64,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) text: String,
}

/// A list of tasks.
#[derive(Debug, Deserialize)]
pub(super) struct Checklist {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) title: String,
    #[serde(default, deserialize_with = "each")]
    pub(super) tasks: Vec<ChecklistTask>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ChecklistTask {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) text: String,
    /// When it was done, in seconds since 1970; 0 for an open one.
    #[serde(default, deserialize_with = "lenient")]
    pub(super) completion_date: i64,
}

/// A game or an invoice.
#[derive(Debug, Deserialize)]
pub(super) struct Offer {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) title: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) description: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Dice {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) emoji: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) value: i64,
}

impl TelegramUser {
    /// Returns the name that people see.
    pub(super) fn full_name(&self) -> String {
        full_name(&self.first_name, self.last_name.as_deref())
    }
}

/// Puts the parts of a name together.
pub(super) fn full_name(first: &str, last: Option<&str>) -> String {
    format!("{first} {}", last.unwrap_or_default()).trim().to_owned()
}

impl TelegramMessage {
    /// Returns the topic. Plain replies carry a thread id too: only the flag makes it a topic.
    pub(super) fn topic(&self) -> Option<i64> {
        self.message_thread_id.filter(|_| self.is_topic_message)
    }

    /// Returns the message that this one answers. In a topic Telegram names the message that opened it
    /// where nothing is answered.
    pub(super) fn answered(&self) -> Option<&TelegramMessage> {
        self.reply_to_message.as_deref().filter(|answered| {
            answered.forum_topic_created.is_none() && Some(answered.message_id) != self.topic()
        })
    }
}
