//! Slack's payloads, as far as they are needed. Every field may be missing; unknown ones are ignored.

use crate::lenient::{each, lenient};
use serde::Deserialize;
use serde_json::Value;

/// The bot itself, as `auth.test` describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SlackIdentity {
    pub(super) user: String,
    pub(super) bot: String,
    pub(super) team: String,
}

/// A frame of Socket Mode.
#[derive(Debug, Default, Deserialize)]
pub(super) struct SocketModeFrame {
    #[serde(default, rename = "type", deserialize_with = "lenient")]
    pub(super) kind: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) envelope_id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) payload: Value,
    /// Why the connection has to end.
    #[serde(default, deserialize_with = "lenient")]
    pub(super) reason: Option<String>,
}

/// An event with its envelope.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Callback {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) team_id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) event: Value,
}

/// A message, or a change of one.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct SlackMessage {
    #[serde(default, rename = "type", deserialize_with = "lenient")]
    pub(super) kind: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) subtype: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) channel: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) channel_type: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) user: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) bot_id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) user_team: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) team: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) text: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) ts: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) event_ts: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) thread_ts: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) parent_user_id: Option<String>,
    #[serde(default, deserialize_with = "each")]
    pub(super) files: Vec<SlackFile>,
    /// Shared messages, cards of apps and previews.
    #[serde(default, deserialize_with = "each")]
    pub(super) attachments: Vec<SlackAttachment>,
    #[serde(default, deserialize_with = "each")]
    pub(super) blocks: Vec<Value>,
    /// The name under which an app writes.
    #[serde(default, deserialize_with = "lenient")]
    pub(super) username: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) bot_profile: SlackRef,
    /// In a change, the message as it is now.
    #[serde(default, deserialize_with = "lenient")]
    pub(super) message: Option<Box<SlackMessage>>,
    /// In a change or a deletion, the message as it was.
    #[serde(default, deserialize_with = "lenient")]
    pub(super) previous_message: Option<Box<SlackMessage>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) deleted_ts: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) edited: Option<Edited>,
    /// In a history: the newest reply of the thread that begins here.
    #[serde(default, deserialize_with = "lenient")]
    pub(super) latest_reply: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) metadata: Option<Metadata>,
}

impl SlackMessage {
    /// Returns whether the bot wrote it.
    pub(super) fn is_by(&self, me: &SlackIdentity) -> bool {
        let bot = !me.bot.is_empty() && self.bot_id.as_deref() == Some(&me.bot);
        bot || self.user.as_deref() == Some(&me.user)
    }
}

/// A shared message, a card of an app or a preview.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SlackAttachment {
    /// Whether it is a message that was passed on.
    #[serde(deserialize_with = "lenient")]
    pub(super) is_share: bool,
    /// Whether it is a message that is linked to.
    #[serde(deserialize_with = "lenient")]
    pub(super) is_msg_unfurl: bool,
    #[serde(deserialize_with = "lenient")]
    pub(super) author_name: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) author_subname: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) author_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) bot_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) channel_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) channel_name: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) service_name: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) from_url: Option<String>,
    /// Time stamp of the shared message, or a time of the app's own: text or a number.
    #[serde(deserialize_with = "lenient")]
    pub(super) ts: Value,
    #[serde(deserialize_with = "lenient")]
    pub(super) pretext: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) title: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) title_link: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) text: String,
    #[serde(deserialize_with = "each")]
    pub(super) fields: Vec<AttachmentField>,
    #[serde(deserialize_with = "lenient")]
    pub(super) image_url: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) footer: String,
    /// Text for clients that show nothing else.
    #[serde(deserialize_with = "lenient")]
    pub(super) fallback: String,
    #[serde(deserialize_with = "each")]
    pub(super) blocks: Vec<Value>,
    /// The blocks of a shared message.
    #[serde(deserialize_with = "each")]
    pub(super) message_blocks: Vec<Value>,
    #[serde(deserialize_with = "each")]
    pub(super) files: Vec<SlackFile>,
}

/// A short line of a card.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct AttachmentField {
    #[serde(deserialize_with = "lenient")]
    pub(super) title: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) value: String,
}

/// When a message was changed by a person.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Edited {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) ts: Option<String>,
}

/// Metadata that an app attached to a message.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Metadata {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) event_type: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) event_payload: Value,
}

/// A file.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct SlackFile {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) id: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) name: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) title: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) size: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) mode: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) file_access: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) url_private: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) url_private_download: Option<String>,
}

/// A button that was pressed.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Actions {
    #[serde(default, rename = "type", deserialize_with = "lenient")]
    pub(super) kind: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) user: SlackRef,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) team: Option<SlackRef>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) container: Option<Container>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) message: Option<SlackMessage>,
    #[serde(default, deserialize_with = "each")]
    pub(super) actions: Vec<BlockAction>,
}

/// A user or an object with an id.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct SlackRef {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) id: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) name: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) team_id: Option<String>,
}

/// Message and channel that hold a button.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Container {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) message_ts: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) channel_id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) thread_ts: Option<String>,
}

/// A button's identifier and value.
#[derive(Debug, Default, Deserialize)]
pub(super) struct BlockAction {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) action_id: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) value: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) action_ts: Option<String>,
}

/// A slash command.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Slash {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) command: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) text: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) channel_id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) user_id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) user_name: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) team_id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) trigger_id: Option<String>,
    /// Response URL, valid for half an hour. It lets any client answer: it is never logged.
    #[serde(default, deserialize_with = "lenient")]
    pub(super) response_url: Option<String>,
}

/// A page of messages.
#[derive(Debug, Default, Deserialize)]
pub(super) struct HistoryPage {
    #[serde(default, deserialize_with = "each")]
    pub(super) messages: Vec<SlackMessage>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) response_metadata: Next,
}

/// A page of a channel's members.
#[derive(Debug, Default, Deserialize)]
pub(super) struct MembersPage {
    #[serde(default, deserialize_with = "each")]
    pub(super) members: Vec<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) response_metadata: Next,
}

/// Cursor of the next page.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Next {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) next_cursor: String,
}
