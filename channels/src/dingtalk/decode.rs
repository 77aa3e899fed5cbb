//! Decodes DingTalk's events into actions of people. Every part of an event may be missing or strange.

pub(super) mod pointed;

use super::seal::NameSeal;
use crate::{Address, Attachment, EventKey, Inbound, InboundKind, Sender, name};
use pointed::{PASSED_ON, pointed};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Most files of one message that are taken.
const FILES: usize = 20;
/// The longest text that is taken, in characters: DingTalk's own messages are far shorter.
const TEXT: usize = 100_000;
/// The topic of a group that is one conversation: without any topic each question would begin a new one.
const WHOLE_GROUP: &str = "all";
/// The longest action of a button, in bytes.
const ACTION: usize = 64;

/// Boundaries of conversations in a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GroupConversations {
    /// The whole group is one conversation.
    #[default]
    Group,
    /// Each person has an own one.
    User,
}

/// Reads events for one account.
pub(super) struct DingTalkDecoder {
    pub(super) account: String,
    pub(super) groups: GroupConversations,
    pub(super) reads_groups: bool,
    pub(super) seal: NameSeal,
}

/// Data of a message that its answer needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DingTalkHint {
    /// Whether the person has a staff id, without which no robot message reaches them.
    pub(super) staff: bool,
    /// The message's own address for answers.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) session: String,
    /// When that address ends, in milliseconds since 1970.
    #[serde(default)]
    pub(super) until: i64,
}

impl DingTalkDecoder {
    /// Reads a bot message. Returns `None` for a message that cannot be meant for the bot.
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
        // A file cannot have words with it: those come as the next message, and belong to it.
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
            reply_to: answered(data),
            sender: Sender { name: named(data, &sender), id: sender, language: None },
            // A group may let people speak to the robot without a mention. Where the account keeps messages of groups, only a
            // mention asks for an answer.
            addressed: private || !self.reads_groups || data["isInAtList"].as_bool() != Some(false),
            at: number(&data["createAt"]).unwrap_or(0),
            pointed,
            hint: serde_json::to_value(hint).ok(),
            kind: InboundKind::Message { text: words, attachments, album },
        })
    }

    /// Reads a press on a card. The place is the one that the card's name proves.
    pub(super) fn press(&self, frame: &str, data: &Value, now: i64) -> Option<Inbound> {
        let (card, person) = (text(data, "outTrackId"), text(data, "userId"));
        let private = NameSeal::private(&card)?;
        let space = text(data, "spaceId");
        let group = space.rsplit_once("IM_GROUP.").map_or(space.as_str(), |(_, group)| group).to_owned();
        if person.is_empty() || (!private && group.is_empty()) {
            return None;
        }
        let address = self.address(private, group, &person);
        if !self.seal.fits(&card, &address) {
            tracing::info!(person, "dropped press: the card does not belong to that place or person");
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

    /// A private chat is identified by the person: robot messages are addressed to people.
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

/// The words and files of a message; `None` for a kind that says nothing.
fn content(data: &Value) -> Option<(String, Vec<Attachment>)> {
    let content = object(&data["content"]);
    let file = |name: &str| file(&content, name).into_iter().collect::<Vec<_>>();
    Some(match text(data, "msgtype").as_str() {
        "text" => (trimmed(&object(&data["text"])["content"]), Vec::new()),
        "richText" => rich(&content),
        "picture" => (String::new(), file("picture.png")),
        // The spoken words are there as text already; the sound is attached.
        "audio" => (trimmed(&content["recognition"]), file("audio.amr")),
        "video" => (String::new(), file("video.mp4")),
        "file" => (String::new(), file("file")),
        kind => {
            if !PASSED_ON.contains(&kind) {
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

pub(super) fn file(content: &Value, otherwise: &str) -> Option<Attachment> {
    let code = [text(content, "downloadCode"), text(content, "pictureDownloadCode")];
    let handle = code.into_iter().find(|code| !code.is_empty())?;
    let given = name::clean_file_name(&text(content, "fileName"));
    let name = if given.is_empty() { otherwise.to_owned() } else { given };
    let size = number(&content["fileSize"]).and_then(|size| u64::try_from(size).ok());
    Some(Attachment { handle, name, size })
}

/// The message that is quoted: ours by the key under which it was sent, another by its id.
fn answered(data: &Value) -> Option<String> {
    let quoted = &object(&data["text"])["repliedMsg"];
    let candidates =
        [text(data, "originalProcessQueryKey"), text(data, "originalMsgId"), text(quoted, "msgId")];
    candidates.into_iter().find(|id| !id.is_empty())
}

/// Returns the action of the pressed button.
fn action(data: &Value) -> Option<String> {
    let content = object(&data["content"]);
    let pressed = &content["cardPrivateData"];
    let named = pressed["params"]["action"].as_str();
    let id = pressed["actionIds"].as_array().and_then(|ids| ids.first()?.as_str());
    named.or(id).map(|action| action.trim().to_owned())
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

/// Numbers come as numbers or as text.
pub(super) fn number(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.trim().parse().ok())
}

/// Objects come as objects or as JSON in a text.
pub(super) fn object(value: &Value) -> Value {
    match value {
        Value::String(text) => crate::lenient::from_bytes(text.as_bytes()).unwrap_or_default(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests;
