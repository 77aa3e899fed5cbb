//! Slack's payloads, as far as pudu reads them. Every field may be missing; unknown fields are ignored.

use crate::lenient::payloads;
use serde_json::Value;

/// Identity of the bot, as returned by `auth.test`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SlackIdentity {
    pub(super) user: String,
    pub(super) bot: String,
    pub(super) team: String,
}

payloads! {
    /// Response of `auth.test`.
    pub(super) struct AuthTest {
        exact user_id: String,
        bot_id: String,
        team_id: String,
        /// Names of the bot and the workspace.
        user: String,
        team: String,
    }

    /// A frame of Socket Mode.
    pub(super) struct SocketModeFrame {
        #[serde(rename = "type")]
        kind: String,
        envelope_id: Option<String>,
        payload: Value,
        /// Why the connection has to end.
        reason: Option<String>,
    }

    /// An event with its envelope.
    pub(super) struct Callback {
        team_id: Option<String>,
        event: Value,
    }

    /// A message, or a change to one.
    pub(super) struct SlackMessage {
        #[serde(rename = "type")]
        kind: String,
        subtype: Option<String>,
        channel: Option<String>,
        channel_type: Option<String>,
        user: Option<String>,
        bot_id: Option<String>,
        user_team: Option<String>,
        team: Option<String>,
        text: String,
        ts: Option<String>,
        event_ts: Option<String>,
        thread_ts: Option<String>,
        parent_user_id: Option<String>,
        files: Vec<SlackFile>,
        /// Shared messages, cards of apps and previews.
        attachments: Vec<SlackAttachment>,
        blocks: Vec<Value>,
        /// Display name of an app's message.
        username: Option<String>,
        bot_profile: SlackRef,
        /// In a change, the new state of the message.
        message: Option<Box<SlackMessage>>,
        /// In a change or a deletion, the previous state of the message.
        previous_message: Option<Box<SlackMessage>>,
        deleted_ts: Option<String>,
        edited: Option<Edited>,
        /// In a history: the newest reply of the thread that begins here.
        latest_reply: Option<String>,
        metadata: Option<Metadata>,
    }

    /// A shared message, a card of an app or a preview.
    pub(super) struct SlackAttachment {
        /// Whether it is a shared message.
        is_share: bool,
        /// Whether it is a linked message.
        is_msg_unfurl: bool,
        author_name: Option<String>,
        author_subname: Option<String>,
        author_id: Option<String>,
        bot_id: Option<String>,
        channel_id: Option<String>,
        channel_name: Option<String>,
        service_name: Option<String>,
        from_url: Option<String>,
        /// Timestamp of the shared message, or the app's own time: text or a number.
        ts: Value,
        pretext: String,
        title: String,
        title_link: Option<String>,
        text: String,
        fields: Vec<AttachmentField>,
        image_url: Option<String>,
        footer: String,
        /// Text for clients that cannot show the attachment.
        fallback: String,
        blocks: Vec<Value>,
        /// The blocks of a shared message.
        message_blocks: Vec<Value>,
        files: Vec<SlackFile>,
    }

    /// A short line of a card.
    pub(super) struct AttachmentField {
        title: String,
        value: String,
    }

    /// Information about an edit by a user.
    pub(super) struct Edited {
        ts: Option<String>,
    }

    /// Metadata that an app attached to a message.
    pub(super) struct Metadata {
        event_type: String,
        event_payload: Value,
    }

    /// A file.
    pub(super) struct SlackFile {
        id: String,
        name: Option<String>,
        title: Option<String>,
        size: Option<u64>,
        mode: Option<String>,
        file_access: Option<String>,
        url_private: Option<String>,
        url_private_download: Option<String>,
    }

    /// A pressed button.
    pub(super) struct Actions {
        #[serde(rename = "type")]
        kind: String,
        user: SlackRef,
        team: Option<SlackRef>,
        container: Option<Container>,
        message: Option<SlackMessage>,
        actions: Vec<BlockAction>,
        /// Permission to open a modal within three seconds.
        trigger_id: String,
    }

    /// A submitted modal.
    pub(super) struct Submission {
        user: SlackRef,
        team: Option<SlackRef>,
        view: SubmittedView,
    }

    /// The modal of a submission.
    pub(super) struct SubmittedView {
        id: String,
        callback_id: String,
        private_metadata: String,
        state: Value,
    }

    /// The message with a form's button, as kept in its modal.
    #[derive(serde::Serialize)]
    pub(super) struct FormPlace {
        channel: String,
        message: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        thread: Option<String>,
    }

    /// A user or an object with an id.
    pub(super) struct SlackRef {
        id: String,
        name: Option<String>,
        team_id: Option<String>,
    }

    /// Message and channel of a button.
    pub(super) struct Container {
        message_ts: Option<String>,
        channel_id: Option<String>,
        thread_ts: Option<String>,
    }

    /// A button's identifier and value.
    pub(super) struct BlockAction {
        action_id: String,
        value: Option<String>,
        action_ts: Option<String>,
    }

    /// A slash command.
    pub(super) struct Slash {
        command: String,
        text: String,
        channel_id: Option<String>,
        user_id: Option<String>,
        user_name: Option<String>,
        team_id: Option<String>,
        trigger_id: Option<String>,
        /// Response URL, valid for half an hour. It lets any client answer, so it is never logged.
        response_url: Option<String>,
    }

    /// A page of messages.
    pub(super) struct HistoryPage {
        messages: Vec<SlackMessage>,
        response_metadata: Next,
    }

    /// A page of a channel's members.
    pub(super) struct MembersPage {
        members: Vec<String>,
        response_metadata: Next,
    }

    /// Cursor of the next page.
    pub(super) struct Next {
        next_cursor: String,
    }
}

impl SlackMessage {
    /// Returns whether the bot wrote the message.
    pub(super) fn is_by(&self, me: &SlackIdentity) -> bool {
        let bot = !me.bot.is_empty() && self.bot_id.as_deref() == Some(&me.bot);
        bot || self.user.as_deref() == Some(&me.user)
    }
}
