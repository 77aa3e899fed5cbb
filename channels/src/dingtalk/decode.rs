//! Decodes DingTalk events into messages and presses. Every part of an event may be missing or malformed.

pub(super) mod pointed;

use super::seal::NameSeal;
use crate::{Address, Attachment, EventKey, Inbound, InboundKind, Sender, name};
use pointed::{FORWARDED_TYPES, pointed};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Maximum number of files accepted per message.
const FILES: usize = 20;
/// Maximum length of an accepted text, in characters. DingTalk's own messages are far shorter.
const TEXT: usize = 100_000;
/// Topic of a group that is one conversation. Without a topic, each question would begin a new conversation.
const WHOLE_GROUP: &str = "all";
/// Maximum length of a button's action, in bytes.
const ACTION: usize = 64;

/// Boundaries of conversations in a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GroupConversations {
    /// The whole group is one conversation.
    #[default]
    Group,
    /// Each user has a separate conversation.
    User,
}

/// Event decoder of one bot.
pub(super) struct DingTalkDecoder {
    pub(super) account: String,
    pub(super) groups: GroupConversations,
    pub(super) reads_groups: bool,
    pub(super) seal: NameSeal,
}

/// Data from a message that its reply needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DingTalkHint {
    /// Whether the user has a staff id. Robot messages reach only users with one.
    pub(super) staff: bool,
    /// The message's session URL, which accepts answers.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) session: String,
    /// Expiry of the session URL, in milliseconds since 1970.
    #[serde(default)]
    pub(super) until: i64,
}

impl DingTalkDecoder {
    /// Decodes a bot message. Returns `None` for a message that cannot be meant for the bot.
    pub(super) fn message(&self, data: &Value) -> Option<Inbound> {
        let id = text(data, "msgId");
        let staff = text(data, "senderStaffId");
        let sender = if staff.is_empty() { text(data, "senderId") } else { staff.clone() };
        let robot = !sender.is_empty() && text(data, "senderId") == text(data, "chatbotUserId");
        if id.is_empty() || sender.is_empty() || robot {
            return None;
        }
        let private = self.is_private(data)?;
        let group = text(data, "conversationId");
        if !private && group.is_empty() {
            return None;
        }
        let pointed = pointed(data);
        let (words, attachments) = content(data).or_else(|| (!pointed.is_empty()).then(Default::default))?;
        // A file message has no text: the text that belongs to it arrives as the next message.
        let album = (words.is_empty() && private).then(|| id.clone());
        let hint = DingTalkHint {
            staff: !staff.is_empty(),
            session: text(data, "sessionWebhook"),
            until: number(&data["sessionWebhookExpiredTime"]).unwrap_or(0),
        };
        Some(Inbound {
            key: EventKey(format!("msg:{id}")),
            address: self.address(private, group, &sender),
            private,
            message: id,
            reply_to: replied_to(data),
            sender: Sender { name: named(data, &sender), id: sender, language: None },
            // Some groups let users address the robot without a mention. If the bot stores group messages, only a
            // mention asks for an answer.
            addressed: private || !self.reads_groups || data["isInAtList"].as_bool() != Some(false),
            at: number(&data["createAt"]).unwrap_or(0),
            pointed,
            hint: serde_json::to_value(hint).ok(),
            kind: InboundKind::Message { text: words, attachments, album },
        })
    }

    /// Decodes a card button press. The card's name proves the conversation.
    pub(super) fn press(&self, frame: &str, data: &Value, now: i64) -> Option<Inbound> {
        let (card, person) = (text(data, "outTrackId"), text(data, "userId"));
        let private = NameSeal::private(&card)?;
        let space = text(data, "spaceId");
        let group = space.rsplit_once("IM_GROUP.").map_or(space.as_str(), |(_, group)| group).to_owned();
        if person.is_empty() || (!private && group.is_empty()) {
            return None;
        }
        let address = self.address(private, group, &person);
        if !self.seal.verify(&card, &address) {
            tracing::info!(person, "dropped press: the card belongs to another conversation or user");
            return None;
        }
        let action = action(data).filter(|action| (1..=ACTION).contains(&action.len()))?;
        Some(Inbound {
            key: EventKey(format!("press:{frame}")),
            address,
            private,
            message: card,
            reply_to: None,
            sender: Sender { id: person.clone(), name: person, language: None },
            addressed: true,
            at: now,
            pointed: Vec::new(),
            hint: serde_json::to_value(DingTalkHint { staff: true, ..DingTalkHint::default() }).ok(),
            kind: InboundKind::Press { action },
        })
    }

    fn is_private(&self, data: &Value) -> Option<bool> {
        match number(&data["conversationType"]) {
            Some(1) => Some(true),
            Some(2) => Some(false),
            _ => None,
        }
    }

    /// Returns the address. A private chat is identified by its user, because robot messages are addressed to users.
    fn address(&self, private: bool, group: String, sender: &str) -> Address {
        let topic = match (private, self.groups) {
            (true, _) => None,
            (false, GroupConversations::Group) => Some(WHOLE_GROUP.to_owned()),
            (false, GroupConversations::User) => Some(sender.to_owned()),
        };
        Address {
            account: self.account.clone(),
            chat: if private { sender.to_owned() } else { group },
            topic,
        }
    }
}

/// Returns the text and files of a message; `None` for a kind without content.
fn content(data: &Value) -> Option<(String, Vec<Attachment>)> {
    let content = object(&data["content"]);
    let file = |name: &str| file(&content, name).into_iter().collect::<Vec<_>>();
    Some(match text(data, "msgtype").as_str() {
        "text" => (trimmed(&object(&data["text"])["content"]), Vec::new()),
        "richText" => rich(&content),
        "picture" => (String::new(), file("picture.png")),
        // DingTalk has transcribed the speech; the audio file is attached.
        "audio" => (trimmed(&content["recognition"]), file("audio.amr")),
        "video" => (String::new(), file("video.mp4")),
        "file" => (String::new(), file("file")),
        kind => {
            if !FORWARDED_TYPES.contains(&kind) {
                tracing::info!(kind, "dropped message: unknown kind");
            }
            return None;
        }
    })
}

fn rich(content: &Value) -> (String, Vec<Attachment>) {
    let parts = content["richText"].as_array().map(Vec::as_slice).unwrap_or_default();
    let words: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
    let pictures = parts.iter().filter(|part| part["text"].is_null()).take(FILES);
    let pictures = pictures.enumerate();
    let files = pictures.filter_map(|(n, part)| file(part, &format!("picture-{}.png", n + 1))).collect();
    (cut(words.concat().trim()), files)
}

pub(super) fn file(content: &Value, default_name: &str) -> Option<Attachment> {
    let code = [text(content, "downloadCode"), text(content, "pictureDownloadCode")];
    let handle = code.into_iter().find(|code| !code.is_empty())?;
    let file_name = name::clean_file_name(&text(content, "fileName"));
    let name = if file_name.is_empty() { default_name.to_owned() } else { file_name };
    let size = number(&content["fileSize"]).and_then(|size| u64::try_from(size).ok());
    Some(Attachment { handle, name, size })
}

/// Returns the id of the quoted message. The bot's own messages are identified by their recall key.
fn replied_to(data: &Value) -> Option<String> {
    let quoted = &object(&data["text"])["repliedMsg"];
    let candidates =
        [text(data, "originalProcessQueryKey"), text(data, "originalMsgId"), text(quoted, "msgId")];
    candidates.into_iter().find(|id| !id.is_empty())
}

/// Returns the action of the pressed button.
fn action(data: &Value) -> Option<String> {
    let content = object(&data["content"]);
    let pressed = &content["cardPrivateData"];
    let action_name = pressed["params"]["action"].as_str();
    let id = pressed["actionIds"].as_array().and_then(|ids| ids.first()?.as_str());
    action_name.or(id).map(|action| action.trim().to_owned())
}

fn named(data: &Value, id: &str) -> String {
    let name: String = text(data, "senderNick").chars().filter(|c| !c.is_control()).take(80).collect();
    if name.trim().is_empty() { id.to_owned() } else { name }
}

pub(super) fn text(of: &Value, name: &str) -> String {
    of[name].as_str().unwrap_or_default().to_owned()
}

fn trimmed(value: &Value) -> String {
    cut(value.as_str().unwrap_or_default().trim())
}

fn cut(text: &str) -> String {
    text.chars().take(TEXT).collect()
}

/// Reads a number, sent as a number or as text.
pub(super) fn number(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.trim().parse().ok())
}

/// Reads an object, sent as an object or as JSON in a string.
pub(super) fn object(value: &Value) -> Value {
    match value {
        Value::String(text) => crate::lenient::from_bytes(text.as_bytes()).unwrap_or_default(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests;
