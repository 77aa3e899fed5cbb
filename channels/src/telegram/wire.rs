//! Telegram's payloads, as far as pudu reads them.
//!
//! teloxide's types are deliberately not used: they are strict, so a single new kind of entity would make a whole
//! message undecodable, and its sender would get no answer. Here everything possible is optional, and unread fields
//! cannot break anything.

use crate::lenient::payloads;
use serde_json::value::RawValue;

/// Identity of the bot, as returned by `getMe`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TelegramIdentity {
    pub(super) id: i64,
    pub(super) username: String,
}

payloads! {
    /// An update of any kind.
    pub(super) struct UpdateEnvelope {
        exact update_id: i64,
    }

    pub(super) struct TelegramUpdate {
        exact update_id: i64,
        message: Option<TelegramMessage>,
        edited_message: Option<TelegramMessage>,
        callback_query: Option<CallbackQuery>,
    }

    pub(super) struct TelegramUser {
        exact id: i64,
        is_bot: bool,
        first_name: String,
        last_name: Option<String>,
        username: Option<String>,
        /// Language of the user's app.
        language_code: Option<String>,
        can_read_all_group_messages: bool,
    }

    pub(super) struct Chat {
        exact id: i64,
        #[serde(rename = "type")]
        kind: String,
        title: Option<String>,
    }

    pub(super) struct CallbackQuery {
        exact id: String,
        exact from: TelegramUser,
        message: Option<TelegramMessage>,
        data: Option<String>,
    }

    pub(super) struct TelegramMessage {
        exact message_id: i64,
        message_thread_id: Option<i64>,
        is_topic_message: bool,
        is_automatic_forward: bool,
        from: Option<TelegramUser>,
        sender_chat: Option<Chat>,
        forward_origin: Option<MessageOrigin>,
        exact chat: Chat,
        /// Time in seconds since 1970; 0 for a message that can no longer be read.
        date: i64,
        edit_date: Option<i64>,
        reply_to_message: Option<Box<TelegramMessage>>,
        external_reply: Option<Box<ExternalReply>>,
        quote: Option<TextQuote>,
        forum_topic_created: Option<Present>,
        media_group_id: Option<String>,
        migrate_to_chat_id: Option<i64>,
        text: Option<String>,
        entities: Vec<Entity>,
        caption: Option<String>,
        caption_entities: Vec<Entity>,
        #[serde(flatten)]
        exact content: TelegramContent,
    }

    /// Content of a message besides its text.
    pub(super) struct TelegramContent {
        photo: Vec<Media>,
        document: Option<Media>,
        animation: Option<Media>,
        audio: Option<Media>,
        voice: Option<Media>,
        video: Option<Media>,
        video_note: Option<Media>,
        sticker: Option<Media>,
        location: Option<TelegramLocation>,
        venue: Option<Venue>,
        contact: Option<Contact>,
        poll: Option<TelegramPoll>,
        dice: Option<Dice>,
        checklist: Option<Checklist>,
        game: Option<Offer>,
        invoice: Option<Offer>,
        story: Option<Present>,
        paid_media: Option<Present>,
    }

    /// Origin of a forwarded message, or of a message in another chat that is replied to. Contains a user only if that
    /// user does not hide their account.
    pub(super) struct MessageOrigin {
        sender_user: Option<TelegramUser>,
        sender_user_name: Option<String>,
        sender_chat: Option<Chat>,
        /// Channel of a channel post.
        chat: Option<Chat>,
        author_signature: Option<String>,
        /// Time in seconds since 1970.
        date: i64,
    }

    /// The part of the replied-to message that the sender quoted.
    pub(super) struct TextQuote {
        text: String,
    }

    /// A replied-to message in another chat: its origin and media. Telegram leaves out its text, except for the quote.
    pub(super) struct ExternalReply {
        origin: MessageOrigin,
        chat: Option<Chat>,
        #[serde(flatten)]
        exact content: TelegramContent,
    }

    /// An object whose mere presence matters.
    pub(super) struct Present {}

    pub(super) struct Entity {
        #[serde(rename = "type")]
        kind: String,
        exact offset: usize,
        exact length: usize,
        user: Option<TelegramUser>,
    }

    /// A file of any kind.
    pub(super) struct Media {
        exact file_id: String,
        file_unique_id: String,
        file_name: Option<String>,
        mime_type: Option<String>,
        file_size: Option<u64>,
        width: u32,
        height: u32,
        emoji: Option<String>,
        is_animated: bool,
        is_video: bool,
    }

    pub(super) struct TelegramLocation {
        exact latitude: f64,
        exact longitude: f64,
    }

    pub(super) struct Venue {
        title: String,
        address: String,
        exact location: TelegramLocation,
    }

    pub(super) struct Contact {
        phone_number: String,
        first_name: String,
        last_name: Option<String>,
    }

    pub(super) struct TelegramPoll {
        question: String,
        options: Vec<PollOption>,
    }

    pub(super) struct PollOption {
        voter_count: u64,
        text: String,
    }

    /// A list of tasks.
    pub(super) struct Checklist {
        title: String,
        tasks: Vec<ChecklistTask>,
    }

    pub(super) struct ChecklistTask {
        text: String,
        /// Completion time in seconds since 1970; 0 for an open task.
        completion_date: i64,
    }

    /// A game or an invoice.
    pub(super) struct Offer {
        title: String,
        description: String,
    }

    pub(super) struct Dice {
        emoji: String,
        value: i64,
    }
}

/// An undecoded update of a batch.
pub(super) type RawUpdate = Box<RawValue>;

impl TelegramUser {
    /// Returns the display name.
    pub(super) fn full_name(&self) -> String {
        full_name(&self.first_name, self.last_name.as_deref())
    }
}

/// Joins the parts of a name.
pub(super) fn full_name(first: &str, last: Option<&str>) -> String {
    format!("{first} {}", last.unwrap_or_default()).trim().to_owned()
}

impl TelegramMessage {
    /// Returns the topic. Plain replies also have a thread id; only the flag marks it as a topic.
    pub(super) fn topic(&self) -> Option<i64> {
        self.message_thread_id.filter(|_| self.is_topic_message)
    }

    /// Returns the message that this one replies to. Ignores the message that opened the topic: Telegram sends it for
    /// each topic message that is not a reply.
    pub(super) fn answered(&self) -> Option<&TelegramMessage> {
        self.reply_to_message.as_deref().filter(|answered| {
            answered.forum_topic_created.is_none() && Some(answered.message_id) != self.topic()
        })
    }
}
