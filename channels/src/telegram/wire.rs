//! Telegram's payloads, as far as they are read.
//!
//! Not the client library's types, on purpose: those are exact, so that one new kind of entity makes a
//! whole message unreadable, and a message that cannot be read is a person who gets no answer. Here
//! everything is optional that can be, and what is not read cannot break anything.

use serde::Deserialize;
use serde_json::value::RawValue;

/// The bot itself, as `getMe` tells.
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
    pub(super) message: Option<TelegramMessage>,
    pub(super) edited_message: Option<TelegramMessage>,
    pub(super) callback_query: Option<CallbackQuery>,
}

/// An update that came in a batch.
pub(super) type RawUpdate = Box<RawValue>;

#[derive(Clone, Debug, Deserialize)]
pub(super) struct TelegramUser {
    pub(super) id: i64,
    #[serde(default)]
    pub(super) is_bot: bool,
    #[serde(default)]
    pub(super) first_name: String,
    pub(super) last_name: Option<String>,
    pub(super) username: Option<String>,
    /// The language of the person's app.
    pub(super) language_code: Option<String>,
    #[serde(default)]
    pub(super) can_read_all_group_messages: bool,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Chat {
    pub(super) id: i64,
    #[serde(rename = "type", default)]
    pub(super) kind: String,
    pub(super) title: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct CallbackQuery {
    pub(super) id: String,
    pub(super) from: TelegramUser,
    pub(super) message: Option<TelegramMessage>,
    pub(super) data: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct TelegramMessage {
    pub(super) message_id: i64,
    pub(super) message_thread_id: Option<i64>,
    #[serde(default)]
    pub(super) is_topic_message: bool,
    #[serde(default)]
    pub(super) is_automatic_forward: bool,
    pub(super) from: Option<TelegramUser>,
    pub(super) sender_chat: Option<Chat>,
    pub(super) forward_origin: Option<ForwardOrigin>,
    pub(super) chat: Chat,
    /// Seconds since 1970; 0 for a message that can no longer be read.
    #[serde(default)]
    pub(super) date: i64,
    pub(super) edit_date: Option<i64>,
    pub(super) reply_to_message: Option<Box<TelegramMessage>>,
    pub(super) forum_topic_created: Option<Present>,
    pub(super) media_group_id: Option<String>,
    pub(super) migrate_to_chat_id: Option<i64>,

    pub(super) text: Option<String>,
    #[serde(default)]
    pub(super) entities: Vec<Entity>,
    pub(super) caption: Option<String>,
    #[serde(default)]
    pub(super) caption_entities: Vec<Entity>,

    #[serde(default)]
    pub(super) photo: Vec<Media>,
    pub(super) document: Option<Media>,
    pub(super) animation: Option<Media>,
    pub(super) audio: Option<Media>,
    pub(super) voice: Option<Media>,
    pub(super) video: Option<Media>,
    pub(super) video_note: Option<Media>,
    pub(super) sticker: Option<Media>,
    pub(super) location: Option<TelegramLocation>,
    pub(super) venue: Option<Venue>,
    pub(super) contact: Option<Contact>,
    pub(super) poll: Option<TelegramPoll>,
    pub(super) dice: Option<Dice>,
}

/// Source of a message that was passed on. It names a user only where that one does not hide.
#[derive(Debug, Deserialize)]
pub(super) struct ForwardOrigin {
    pub(super) sender_user: Option<TelegramUser>,
}

/// Something whose presence is all that matters.
#[derive(Debug, Deserialize)]
pub(super) struct Present {}

#[derive(Debug, Deserialize)]
pub(super) struct Entity {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) offset: usize,
    pub(super) length: usize,
    pub(super) user: Option<TelegramUser>,
}

/// A file of any kind.
#[derive(Debug, Deserialize)]
pub(super) struct Media {
    pub(super) file_id: String,
    #[serde(default)]
    pub(super) file_unique_id: String,
    pub(super) file_name: Option<String>,
    pub(super) mime_type: Option<String>,
    pub(super) file_size: Option<u64>,
    #[serde(default)]
    pub(super) width: u32,
    #[serde(default)]
    pub(super) height: u32,
    pub(super) emoji: Option<String>,
    #[serde(default)]
    pub(super) is_animated: bool,
    #[serde(default)]
    pub(super) is_video: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct TelegramLocation {
    pub(super) latitude: f64,
    pub(super) longitude: f64,
}

#[derive(Debug, Deserialize)]
pub(super) struct Venue {
    pub(super) title: String,
    #[serde(default)]
    pub(super) address: String,
    pub(super) location: TelegramLocation,
}

#[derive(Debug, Deserialize)]
pub(super) struct Contact {
    pub(super) phone_number: String,
    pub(super) first_name: String,
    pub(super) last_name: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct TelegramPoll {
    pub(super) question: String,
    #[serde(default)]
    pub(super) options: Vec<PollOption>,
}

#[derive(Debug, Deserialize)]
pub(super) struct PollOption {
    pub(super) text: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Dice {
    pub(super) emoji: String,
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
