//! From an event to the inbox, however it came: over the long connection or by post.
//!
//! Nothing is dropped for its age: an event comes again for as long as six hours when nobody took it, and a
//! question that waited through an outage is still a question. What had been kept before is known by its
//! message's id.

use super::{
    client::Client,
    content::{self, Mention, Said},
    event::{Envelope, Pressed, Recalled, Received, Told, millis},
    places::{Place, Places, plain},
};
use crate::{Address, Attachment, EventKey, HealthCell, Inbound, Intake, Kind, Refusal, Sender};
use pudu_net::reqwest::Method;
use serde_json::{Value, json};
use std::{
    sync::{Arc, OnceLock},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::time::timeout;

/// The platform waits three seconds for an answer; what has to be looked up gets two of them.
const LOOKUP: Duration = Duration::from_secs(2);
/// Conversations of messages are remembered for so long, in milliseconds.
const MONTH: i64 = 30 * 24 * 60 * 60 * 1000;
/// So many messages of a forwarded bundle are read.
const BUNDLE: usize = 100;

/// Takes the events of one account.
#[derive(Clone)]
pub(super) struct Inlet {
    pub(super) account: String,
    pub(super) client: Arc<Client>,
    pub(super) places: Arc<Places>,
    /// The bot's own id.
    pub(super) me: Arc<OnceLock<String>>,
    pub(super) require_mention: bool,
    pub(super) health: HealthCell,
}

impl Inlet {
    /// Keeps what an event tells; returns what the platform is to be told.
    pub(super) async fn take(&self, event: &Envelope, intake: &dyn Intake) -> Result<Option<Value>, Refusal> {
        self.health.event(now());
        let told = event.told();
        let pressed = matches!(told, Told::Press(_));
        let inbound = match told {
            Told::Message(received) => self.message(received, intake).await,
            Told::Recall(recalled) => self.within(self.recall(recalled)).await,
            Told::Press(pressed) => self.within(self.press(&event.header.event_id, pressed)).await,
            Told::Other => None,
        };
        let known = inbound.is_some();
        if let Some(inbound) = inbound {
            intake.accept(inbound).await?;
        }
        Ok(pressed.then(|| {
            if known { toast("info", "👌") } else { toast("warning", "This button is not in use.") }
        }))
    }

    async fn within<T>(&self, work: impl Future<Output = Option<T>>) -> Option<T> {
        timeout(LOOKUP, work).await.unwrap_or_else(|_| {
            tracing::warn!("an event is dropped: where it was could not be looked up in time");
            None
        })
    }

    async fn message(&self, Received { sender, message }: Received, intake: &dyn Intake) -> Option<Inbound> {
        let me = self.me.get()?;
        let from = sender.sender_id.open_id.filter(|id| !id.is_empty())?;
        if sender.sender_type == "app" || sender.sender_type == "bot" || from == *me {
            return None;
        }
        let (chat, id) = (plain(&message.chat_id)?, plain(&message.message_id)?);
        let private = message.chat_type == "p2p";
        let thread = message.thread_id.filter(|thread| !thread.is_empty());
        for mention in &message.mentions {
            mention.open_id().into_iter().for_each(|person| self.places.named(person, &mention.name));
        }
        let mentioned = message.mentions.iter().any(|mention| mention.open_id() == Some(me));
        let mut said = content::read(&message.message_type, &message.content, id, &message.mentions, me);
        if message.message_type == "merge_forward"
            && let Ok(Some(text)) = timeout(LOOKUP, self.bundle(id)).await
        {
            said.text = text;
        }
        let parent = message.parent_id.filter(|id| !id.is_empty());
        let addressed = private || mentioned || !self.require_mention;
        if let Some(parent) = parent.as_deref().filter(|_| !private && addressed) {
            said.files.extend(self.files_of(parent).await);
        }
        // A thread under a message of a conversation goes on with it; any other is a conversation of its own.
        let root = message.root_id.filter(|id| !id.is_empty());
        let ordinary = thread.is_some() && message.chat_type == "group";
        let chain = match root.as_deref().filter(|_| ordinary) {
            Some(root) => self.is_known(chat, root, intake).await,
            None => false,
        };
        let topic = thread.clone().filter(|_| !private && !chain);
        if addressed {
            self.places.talked(id, true);
        }
        let place =
            Place { chat: chat.to_owned(), topic: topic.clone(), private, sender: Some(from.clone()) };
        self.places.saw(id, place);
        // Only where others are there does the agent have to know who speaks.
        let name = if !private && (addressed || parent.is_some()) {
            self.places.ask_name(&self.client, &from).await
        } else {
            self.places.name(&from)
        };
        Some(Inbound {
            key: EventKey(format!("m:{id}")),
            address: self.address(chat, topic),
            private,
            message: id.to_owned(),
            reply_to: if chain { root } else { parent },
            sender: Sender { name, id: from.clone() },
            addressed,
            at: millis(message.create_time.as_ref()).unwrap_or_else(now),
            // Where a thread is no conversation of its own its answers belong into it all the same.
            hint: thread.filter(|_| private || chain).map(|thread| json!({"thread": thread})),
            kind: kind(said, private, &from),
        })
    }

    /// Tells whether a message belongs to a conversation.
    async fn is_known(&self, chat: &str, message: &str, intake: &dyn Intake) -> bool {
        if let Some(part) = self.places.has_talked(message) {
            return part;
        }
        // What cannot be read now is asked for again.
        let Ok(known) = intake.known(&self.account, now() - MONTH).await else { return false };
        let found = known.iter().any(|one| one.chat == chat && one.message == message);
        self.places.talked(message, found);
        found
    }

    /// Returns the files of a message that is answered. In a group a file cannot mention the bot: who wants it
    /// read answers it. Words of others are not taken along.
    async fn files_of(&self, message: &str) -> Vec<Attachment> {
        let Some(id) = plain(message) else { return Vec::new() };
        let path = format!("im/v1/messages/{id}");
        let asked = timeout(LOOKUP / 2, self.client.call(Method::GET, &path, None)).await;
        let Ok(Ok(told)) = asked else { return Vec::new() };
        let text = |at: &str| told.pointer(at).and_then(Value::as_str).unwrap_or_default();
        if text("/items/0/sender/sender_type") != "user"
            || told.pointer("/items/0/deleted") == Some(&json!(true))
        {
            return Vec::new();
        }
        content::read(text("/items/0/msg_type"), text("/items/0/body/content"), id, &[], "").files
    }

    async fn recall(&self, recalled: Recalled) -> Option<Inbound> {
        let id = plain(&recalled.message_id)?;
        let place = self.places.find(&self.client, id).await?;
        if place.chat != recalled.chat_id {
            return None;
        }
        let sender = place.sender?;
        Some(Inbound {
            key: EventKey(format!("r:{id}")),
            address: self.address(&place.chat, place.topic),
            private: place.private,
            message: id.to_owned(),
            reply_to: None,
            sender: Sender { name: self.places.name(&sender), id: sender },
            addressed: true,
            at: now(),
            hint: None,
            kind: Kind::Recall,
        })
    }

    /// Who pressed comes from the platform; where, from the message that it says the button is under.
    async fn press(&self, event: &str, pressed: Pressed) -> Option<Inbound> {
        let action = pressed.action.action()?.to_owned();
        let person = pressed.operator.open_id.filter(|id| !id.is_empty())?;
        let id = plain(&pressed.context.open_message_id)?;
        let place = self.places.find(&self.client, id).await?;
        if place.sender.is_some() || place.chat != pressed.context.open_chat_id || event.is_empty() {
            tracing::warn!("a press is dropped: it is not under a message of ours in its chat");
            return None;
        }
        Some(Inbound {
            key: EventKey(format!("p:{event}")),
            address: self.address(&place.chat, place.topic),
            private: place.private,
            message: id.to_owned(),
            reply_to: None,
            sender: Sender { name: self.places.name(&person), id: person },
            addressed: true,
            at: now(),
            hint: None,
            kind: Kind::Press { action },
        })
    }

    /// Reads a forwarded bundle: who wrote what, line by line.
    async fn bundle(&self, id: &str) -> Option<String> {
        let told = self.client.call(Method::GET, &format!("im/v1/messages/{id}"), None).await;
        let told =
            told.inspect_err(|failure| tracing::warn!(error = %failure.error, "a bundle cannot be read"));
        let told = told.ok()?;
        let items = told["items"].as_array()?.iter();
        let inner = items.filter(|item| item["upper_message_id"].is_string()).take(BUNDLE);
        let lines: Vec<String> = inner.map(|item| self.quoted(item)).collect();
        (!lines.is_empty()).then(|| format!("[forwarded messages]\n{}", lines.join("\n")))
    }

    fn quoted(&self, item: &Value) -> String {
        let mentions: Vec<Mention> = serde_json::from_value(item["mentions"].clone()).unwrap_or_default();
        let text = |at: &str| item.pointer(at).and_then(Value::as_str).unwrap_or_default();
        let Said { text: said, files } =
            content::read(text("/msg_type"), text("/body/content"), text("/message_id"), &mentions, "");
        let names: Vec<String> = files.iter().map(|file| format!("[{}]", file.name)).collect();
        format!("{}: {said}{}", self.places.name(text("/sender/id")), names.join(" "))
    }

    fn address(&self, chat: &str, topic: Option<String>) -> Address {
        Address { account: self.account.clone(), chat: chat.to_owned(), topic }
    }
}

/// Files come one by one and before the words that belong to them: alone with the bot they wait for each other.
fn kind(said: Said, private: bool, from: &str) -> Kind {
    let alone = private && said.text.is_empty() && !said.files.is_empty();
    Kind::Message { album: alone.then(|| from.to_owned()), text: said.text, attachments: said.files }
}

fn toast(kind: &str, content: &str) -> Value {
    json!({"toast": {"type": kind, "content": content}})
}

/// Milliseconds since 1970.
pub(super) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
