//! Discord's objects, as far as pudu reads them. All fields are optional.

use crate::lenient::payloads;
use serde_json::Value;

payloads! {
    /// A frame of the gateway. Its data is decoded separately, so that invalid data affects no other event.
    pub(super) struct GatewayFrame {
        exact op: u64,
        #[serde(default)]
        exact s: Option<u64>,
        #[serde(default)]
        exact t: Option<String>,
        #[serde(default)]
        exact d: Value,
    }

    /// `READY`
    pub(super) struct Ready {
        exact session_id: String,
        resume_gateway_url: String,
        exact user: DiscordUser,
        application: Option<Application>,
        guilds: Vec<Value>,
    }

    /// The gateway's URL, and the number of sessions that may still begin.
    pub(super) struct GatewayInfo {
        exact url: String,
        session_start_limit: Option<SessionStartLimit>,
    }

    pub(super) struct SessionStartLimit {
        exact remaining: u64,
        total: u64,
        /// In milliseconds.
        exact reset_after: u64,
    }

    /// The bot's application.
    pub(super) struct Application {
        id: String,
        flags: u64,
    }

    /// A user or a bot.
    pub(super) struct DiscordUser {
        exact id: String,
        username: String,
        global_name: Option<String>,
        bot: bool,
        /// The user's membership of this server. Present only in lists of mentioned users.
        member: Option<Member>,
    }

    /// Membership of a user in a server.
    pub(super) struct Member {
        nick: Option<String>,
        user: Option<Box<DiscordUser>>,
    }

    /// A message.
    pub(super) struct DiscordMessage {
        exact id: String,
        exact channel_id: String,
        guild_id: Option<String>,
        author: Option<DiscordUser>,
        member: Option<Member>,
        content: String,
        edited_timestamp: Option<String>,
        mentions: Vec<DiscordUser>,
        mention_roles: Vec<String>,
        attachments: Vec<DiscordAttachment>,
        sticker_items: Vec<Sticker>,
        #[serde(rename = "type")]
        kind: u64,
        webhook_id: Option<String>,
        application_id: Option<String>,
        message_reference: Option<Reference>,
        referenced_message: Option<Box<DiscordMessage>>,
        message_snapshots: Vec<Snapshot>,
        embeds: Vec<Embed>,
        components: Vec<Value>,
        poll: Option<DiscordPoll>,
    }

    /// A preview of a page, or a card of a bot.
    pub(super) struct Embed {
        title: String,
        url: String,
        description: String,
        fields: Vec<EmbedField>,
        author: EmbedName,
        provider: EmbedName,
        footer: EmbedText,
        image: EmbedImage,
    }

    pub(super) struct EmbedField {
        name: String,
        value: String,
    }

    pub(super) struct EmbedName {
        name: String,
    }

    /// A text of an embed or a poll.
    pub(super) struct EmbedText {
        text: String,
    }

    pub(super) struct EmbedImage {
        url: String,
    }

    /// A poll.
    pub(super) struct DiscordPoll {
        question: EmbedText,
        answers: Vec<PollAnswer>,
        results: PollResults,
    }

    pub(super) struct PollAnswer {
        answer_id: u64,
        poll_media: EmbedText,
    }

    pub(super) struct PollResults {
        answer_counts: Vec<AnswerCount>,
    }

    pub(super) struct AnswerCount {
        id: u64,
        count: u64,
    }

    /// The fields of a channel that determine who may read it.
    pub(super) struct ReadableChannel {
        #[serde(rename = "type")]
        kind: u64,
        guild_id: Option<String>,
        parent_id: Option<String>,
        /// Strict: an unreadable overwrite might deny access.
        #[serde(default)]
        exact permission_overwrites: Vec<Overwrite>,
    }

    /// Permission overwrite for a role or a user in one channel. Bit sets, in decimal digits.
    pub(super) struct Overwrite {
        exact id: String,
        allow: String,
        deny: String,
    }

    /// Roles of a user in a server.
    pub(super) struct MemberRoles {
        roles: Vec<String>,
    }

    /// Owner and roles of a server.
    pub(super) struct GuildAccess {
        owner_id: String,
        roles: Vec<RolePermissions>,
    }

    /// Permissions of a role: a bit set, in decimal digits.
    pub(super) struct RolePermissions {
        exact id: String,
        permissions: String,
    }

    /// Reference to a message that this one answers (type 0) or forwards (type 1).
    pub(super) struct Reference {
        #[serde(rename = "type")]
        kind: u64,
        message_id: Option<String>,
        channel_id: Option<String>,
    }

    /// A forwarded message.
    pub(super) struct Snapshot {
        message: Passed,
    }

    /// Content of a forwarded message.
    pub(super) struct Passed {
        content: String,
        attachments: Vec<DiscordAttachment>,
        mentions: Vec<DiscordUser>,
        embeds: Vec<Embed>,
        sticker_items: Vec<Sticker>,
        components: Vec<Value>,
    }

    /// A file.
    pub(super) struct DiscordAttachment {
        exact id: String,
        filename: String,
        size: Option<u64>,
        url: String,
    }

    /// A sticker. Only its name is readable.
    pub(super) struct Sticker {
        name: String,
    }

    /// One or more deleted messages.
    pub(super) struct Deleted {
        id: Option<String>,
        ids: Vec<String>,
    }

    /// A server.
    pub(super) struct Guild {
        exact id: String,
        channels: Vec<ChannelInfo>,
        threads: Vec<ChannelInfo>,
        roles: Vec<DiscordRole>,
    }

    /// A channel or a thread.
    pub(super) struct ChannelInfo {
        exact id: String,
        #[serde(rename = "type")]
        kind: u64,
        guild_id: Option<String>,
        name: String,
        parent_id: Option<String>,
        owner_id: Option<String>,
        last_message_id: Option<String>,
    }

    /// A role.
    pub(super) struct DiscordRole {
        exact id: String,
        name: String,
        tags: Option<Tags>,
    }

    /// Owner of a role.
    pub(super) struct Tags {
        bot_id: Option<String>,
    }

    /// A pressed button (type 3), an invoked command (type 2) or a submitted modal (type 5).
    pub(super) struct Interaction {
        exact id: String,
        #[serde(rename = "type")]
        kind: u64,
        token: String,
        channel_id: Option<String>,
        guild_id: Option<String>,
        user: Option<DiscordUser>,
        member: Option<Member>,
        message: Option<DiscordMessage>,
        data: Chosen,
        /// Language of the user's app.
        locale: Option<String>,
    }

    /// Data of a pressed button, an invoked command or a submitted modal.
    pub(super) struct Chosen {
        name: String,
        custom_id: String,
        options: Vec<CommandOption>,
        /// The labelled inputs of a modal.
        components: Vec<Value>,
    }

    /// Argument of an invoked command.
    pub(super) struct CommandOption {
        value: Value,
    }
}

/// Discord's epoch, the start of 2015, in milliseconds since 1970.
const EPOCH: u64 = 1_420_070_400_000;

/// Returns when an id was created, in milliseconds since 1970.
pub(super) fn id_time(id: &str) -> Option<i64> {
    let id: u64 = id.parse().ok()?;
    i64::try_from((id >> 22) + EPOCH).ok()
}

/// Returns the lowest id that can be created at `at`, in milliseconds since 1970.
pub(super) fn id_at(at: i64) -> u64 {
    u64::try_from(at).unwrap_or(0).saturating_sub(EPOCH) << 22
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_id_encodes_its_creation_time() {
        assert_eq!(id_time("175928847299117063"), Some(1_462_015_105_796));
        assert_eq!(id_time("x"), None);
        assert_eq!(id_time(&id_at(1_462_015_105_796).to_string()), Some(1_462_015_105_796));
    }

    #[test]
    fn malformed_fields_are_ignored() {
        let strange = json!({
            "id": "1", "channel_id": "2", "content": null, "type": "text", "mentions": [{"x": 1}, {"id": "3"}],
            "attachments": "none", "author": 7, "member": [], "message_reference": {"message_id": 5},
        });
        let message: DiscordMessage = serde_json::from_value(strange).unwrap();
        assert_eq!((message.content.as_str(), message.kind, message.mentions.len()), ("", 0, 1));
        assert!(message.author.is_none() && message.attachments.is_empty());
    }
}
