//! Slack's payloads, as far as they are needed. Every field may be missing; unknown ones are ignored.

use serde::Deserialize;
use serde_json::Value;

/// The bot itself, as `auth.test` tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SlackIdentity {
    pub(super) user: String,
    pub(super) bot: String,
    pub(super) team: String,
}

/// A frame of Socket Mode.
#[derive(Debug, Default, Deserialize)]
pub(super) struct SocketModeFrame {
    #[serde(rename = "type", default)]
    pub(super) kind: String,
    pub(super) envelope_id: Option<String>,
    #[serde(default)]
    pub(super) payload: Value,
    /// Why the connection has to end.
    pub(super) reason: Option<String>,
}

/// An event with what stands around it.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Callback {
    pub(super) team_id: Option<String>,
    #[serde(default)]
    pub(super) event: Value,
}

/// A message, or what happened to one.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct SlackMessage {
    #[serde(rename = "type", default)]
    pub(super) kind: String,
    pub(super) subtype: Option<String>,
    pub(super) channel: Option<String>,
    pub(super) channel_type: Option<String>,
    pub(super) user: Option<String>,
    pub(super) bot_id: Option<String>,
    pub(super) user_team: Option<String>,
    pub(super) team: Option<String>,
    #[serde(default)]
    pub(super) text: String,
    pub(super) ts: Option<String>,
    pub(super) event_ts: Option<String>,
    pub(super) thread_ts: Option<String>,
    pub(super) parent_user_id: Option<String>,
    #[serde(default)]
    pub(super) files: Vec<SlackFile>,
    /// In a change, the message as it is now.
    pub(super) message: Option<Box<SlackMessage>>,
    /// In a change or a deletion, the message as it was.
    pub(super) previous_message: Option<Box<SlackMessage>>,
    pub(super) deleted_ts: Option<String>,
    pub(super) edited: Option<Edited>,
    /// In a history: the newest reply of the thread that begins here.
    pub(super) latest_reply: Option<String>,
    pub(super) metadata: Option<Metadata>,
}

impl SlackMessage {
    /// Returns whether the bot wrote it.
    pub(super) fn is_by(&self, me: &SlackIdentity) -> bool {
        let bot = !me.bot.is_empty() && self.bot_id.as_deref() == Some(&me.bot);
        bot || self.user.as_deref() == Some(&me.user)
    }
}

/// When a message was changed by a person.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Edited {
    pub(super) ts: Option<String>,
}

/// Metadata that an app attached to a message.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Metadata {
    #[serde(default)]
    pub(super) event_type: String,
    #[serde(default)]
    pub(super) event_payload: Value,
}

/// A file.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct SlackFile {
    #[serde(default)]
    pub(super) id: String,
    pub(super) name: Option<String>,
    pub(super) title: Option<String>,
    pub(super) size: Option<u64>,
    pub(super) mode: Option<String>,
    pub(super) file_access: Option<String>,
    pub(super) url_private: Option<String>,
    pub(super) url_private_download: Option<String>,
}

/// A button that was pressed.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Actions {
    #[serde(rename = "type", default)]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) user: SlackRef,
    pub(super) team: Option<SlackRef>,
    pub(super) container: Option<Container>,
    pub(super) message: Option<SlackMessage>,
    #[serde(default)]
    pub(super) actions: Vec<BlockAction>,
}

/// Somebody or something with an id.
#[derive(Debug, Default, Deserialize)]
pub(super) struct SlackRef {
    #[serde(default)]
    pub(super) id: String,
    pub(super) name: Option<String>,
    pub(super) team_id: Option<String>,
}

/// Message and channel that hold a button.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Container {
    pub(super) message_ts: Option<String>,
    pub(super) channel_id: Option<String>,
    pub(super) thread_ts: Option<String>,
}

/// A button's identifier and value.
#[derive(Debug, Default, Deserialize)]
pub(super) struct BlockAction {
    #[serde(default)]
    pub(super) action_id: String,
    pub(super) value: Option<String>,
    pub(super) action_ts: Option<String>,
}

/// A slash command.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Slash {
    #[serde(default)]
    pub(super) command: String,
    #[serde(default)]
    pub(super) text: String,
    pub(super) channel_id: Option<String>,
    pub(super) user_id: Option<String>,
    pub(super) user_name: Option<String>,
    pub(super) team_id: Option<String>,
    pub(super) trigger_id: Option<String>,
    /// Response URL, valid for half an hour. Whoever knows it can answer: it is never logged.
    pub(super) response_url: Option<String>,
}

/// A page of messages.
#[derive(Debug, Default, Deserialize)]
pub(super) struct HistoryPage {
    #[serde(default)]
    pub(super) messages: Vec<SlackMessage>,
    #[serde(default)]
    pub(super) response_metadata: Next,
}

/// Cursor of the next page.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Next {
    #[serde(default)]
    pub(super) next_cursor: String,
}
