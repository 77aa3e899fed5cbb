//! The used fields of Discord's objects; all are optional.

use crate::lenient::{each, lenient};
use serde::Deserialize;
use serde_json::Value;

/// A frame of the gateway. The data is read later, for itself: one that is strange harms no other.
#[derive(Debug, Deserialize)]
pub(super) struct GatewayFrame {
    pub(super) op: u64,
    #[serde(default)]
    pub(super) s: Option<u64>,
    #[serde(default)]
    pub(super) t: Option<String>,
    #[serde(default)]
    pub(super) d: Value,
}

/// `READY`
#[derive(Debug, Deserialize)]
pub(super) struct Ready {
    pub(super) session_id: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) resume_gateway_url: String,
    pub(super) user: DiscordUser,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) application: Option<Application>,
    #[serde(default, deserialize_with = "each")]
    pub(super) guilds: Vec<Value>,
}

/// The application, as far as Discord describes it.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Application {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) id: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) flags: u64,
}

/// A person or a bot.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct DiscordUser {
    pub(super) id: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) username: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) global_name: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) bot: bool,
    /// In the list of those who are mentioned: how they are called on this server.
    #[serde(default, deserialize_with = "lenient")]
    pub(super) member: Option<Member>,
}

/// A person on a server.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Member {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) nick: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) user: Option<Box<DiscordUser>>,
}

/// A message.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct DiscordMessage {
    pub(super) id: String,
    pub(super) channel_id: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) guild_id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) author: Option<DiscordUser>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) member: Option<Member>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) content: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) edited_timestamp: Option<String>,
    #[serde(default, deserialize_with = "each")]
    pub(super) mentions: Vec<DiscordUser>,
    #[serde(default, deserialize_with = "each")]
    pub(super) mention_roles: Vec<String>,
    #[serde(default, deserialize_with = "each")]
    pub(super) attachments: Vec<DiscordAttachment>,
    #[serde(default, deserialize_with = "each")]
    pub(super) sticker_items: Vec<Sticker>,
    #[serde(default, rename = "type", deserialize_with = "lenient")]
    pub(super) kind: u64,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) webhook_id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) application_id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) message_reference: Option<Reference>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) referenced_message: Option<Box<DiscordMessage>>,
    #[serde(default, deserialize_with = "each")]
    pub(super) message_snapshots: Vec<Snapshot>,
    #[serde(default, deserialize_with = "each")]
    pub(super) embeds: Vec<Embed>,
    #[serde(default, deserialize_with = "each")]
    pub(super) components: Vec<Value>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) poll: Option<DiscordPoll>,
}

/// A preview of a page, or a card of a bot.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Embed {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) title: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) url: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) description: String,
    #[serde(default, deserialize_with = "each")]
    pub(super) fields: Vec<EmbedField>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) author: EmbedName,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) provider: EmbedName,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) footer: EmbedText,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) image: EmbedImage,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct EmbedField {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) name: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) value: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct EmbedName {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) name: String,
}

/// A text of an embed or a poll.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct EmbedText {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) text: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct EmbedImage {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) url: String,
}

/// A poll.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct DiscordPoll {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) question: EmbedText,
    #[serde(default, deserialize_with = "each")]
    pub(super) answers: Vec<PollAnswer>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) results: PollResults,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct PollAnswer {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) answer_id: u64,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) poll_media: EmbedText,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct PollResults {
    #[serde(default, deserialize_with = "each")]
    pub(super) answer_counts: Vec<AnswerCount>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct AnswerCount {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) id: u64,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) count: u64,
}

/// The parts of a channel by which it is known who may read it.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct ReadableChannel {
    #[serde(default, rename = "type", deserialize_with = "lenient")]
    pub(super) kind: u64,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) guild_id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) parent_id: Option<String>,
    /// Strict: an overwrite that cannot be read may be one that forbids.
    #[serde(default)]
    pub(super) permission_overwrites: Vec<Overwrite>,
}

/// Change of the permissions of a role or a person in one channel: sets of bits in decimal digits.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Overwrite {
    pub(super) id: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) allow: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) deny: String,
}

/// The roles of a person on a server.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct MemberRoles {
    #[serde(default, deserialize_with = "each")]
    pub(super) roles: Vec<String>,
}

/// Owner and roles of a server.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct GuildAccess {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) owner_id: String,
    #[serde(default, deserialize_with = "each")]
    pub(super) roles: Vec<RolePermissions>,
}

/// The permissions of a role: a set of bits in decimal digits.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct RolePermissions {
    pub(super) id: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) permissions: String,
}

/// Reference to a message that this one answers (type 0) or forwards (type 1).
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Reference {
    #[serde(default, rename = "type", deserialize_with = "lenient")]
    pub(super) kind: u64,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) message_id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) channel_id: Option<String>,
}

/// A message that is passed on.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Snapshot {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) message: Passed,
}

/// Content of a forwarded message.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Passed {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) content: String,
    #[serde(default, deserialize_with = "each")]
    pub(super) attachments: Vec<DiscordAttachment>,
    #[serde(default, deserialize_with = "each")]
    pub(super) mentions: Vec<DiscordUser>,
    #[serde(default, deserialize_with = "each")]
    pub(super) embeds: Vec<Embed>,
    #[serde(default, deserialize_with = "each")]
    pub(super) sticker_items: Vec<Sticker>,
    #[serde(default, deserialize_with = "each")]
    pub(super) components: Vec<Value>,
}

/// A file.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct DiscordAttachment {
    pub(super) id: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) filename: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) size: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) url: String,
}

/// A sticker, which has only a name to read.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Sticker {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) name: String,
}

/// A message that was taken back.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Deleted {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) id: Option<String>,
    #[serde(default, deserialize_with = "each")]
    pub(super) ids: Vec<String>,
}

/// A server.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Guild {
    pub(super) id: String,
    #[serde(default, deserialize_with = "each")]
    pub(super) channels: Vec<ChannelInfo>,
    #[serde(default, deserialize_with = "each")]
    pub(super) threads: Vec<ChannelInfo>,
    #[serde(default, deserialize_with = "each")]
    pub(super) roles: Vec<DiscordRole>,
}

/// A channel or a thread.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct ChannelInfo {
    pub(super) id: String,
    #[serde(default, rename = "type", deserialize_with = "lenient")]
    pub(super) kind: u64,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) guild_id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) name: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) parent_id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) owner_id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) last_message_id: Option<String>,
}

/// A role.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct DiscordRole {
    pub(super) id: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) name: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) tags: Option<Tags>,
}

/// Owner of a role.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Tags {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) bot_id: Option<String>,
}

/// A button that was pressed (type 3) or a command that was taken (type 2).
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Interaction {
    pub(super) id: String,
    #[serde(default, rename = "type", deserialize_with = "lenient")]
    pub(super) kind: u64,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) token: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) channel_id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) guild_id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) user: Option<DiscordUser>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) member: Option<Member>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) message: Option<DiscordMessage>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) data: Chosen,
    /// The language of the person's app.
    #[serde(default, deserialize_with = "lenient")]
    pub(super) locale: Option<String>,
}

/// Data of a pressed button or an invoked command.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Chosen {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) name: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) custom_id: String,
    #[serde(default, deserialize_with = "each")]
    pub(super) options: Vec<CommandOption>,
}

/// Value that was typed behind a command.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct CommandOption {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) value: Value,
}

/// Milliseconds between 1970 and the first of 2015, from which Discord counts.
const EPOCH: u64 = 1_420_070_400_000;

/// Returns when an id was made, in milliseconds since 1970.
pub(super) fn id_time(id: &str) -> Option<i64> {
    let id: u64 = id.parse().ok()?;
    i64::try_from((id >> 22) + EPOCH).ok()
}

/// Returns the lowest id that is made at a moment, in milliseconds since 1970.
pub(super) fn id_at(at: i64) -> u64 {
    u64::try_from(at).unwrap_or(0).saturating_sub(EPOCH) << 22
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_id_tells_its_time() {
        assert_eq!(id_time("175928847299117063"), Some(1_462_015_105_796));
        assert_eq!(id_time("x"), None);
        assert_eq!(id_time(&id_at(1_462_015_105_796).to_string()), Some(1_462_015_105_796));
    }

    #[test]
    fn what_is_strange_in_an_object_is_passed_over() {
        let strange = json!({
            "id": "1", "channel_id": "2", "content": null, "type": "text", "mentions": [{"x": 1}, {"id": "3"}],
            "attachments": "none", "author": 7, "member": [], "message_reference": {"message_id": 5},
        });
        let message: DiscordMessage = serde_json::from_value(strange).unwrap();
        assert_eq!((message.content.as_str(), message.kind, message.mentions.len()), ("", 0, 1));
        assert!(message.author.is_none() && message.attachments.is_empty());
    }
}
