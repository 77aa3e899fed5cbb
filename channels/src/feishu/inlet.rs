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
use crate::{Address, EventKey, HealthCell, Inbound, Intake, Kind, Refusal, Sender};
use pudu_net::reqwest::Method;
use serde_json::{Value, json};
use std::{
    sync::{Arc, OnceLock},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::time::timeout;

/// The platform waits three seconds for an answer; what has to be looked up gets two of them.
const LOOKUP: Duration = Duration::from_secs(2);
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
        let pressed = matches!(event.told(), Told::Press(_));
        let inbound = match event.told() {
            Told::Message(received) => self.message(received).await,
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

    async fn message(&self, Received { sender, message }: Received) -> Option<Inbound> {
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
        let topic = thread.clone().filter(|_| !private);
        let place =
            Place { chat: chat.to_owned(), topic: topic.clone(), private, sender: Some(from.clone()) };
        self.places.saw(id, place);
        let addressed = private || mentioned || !self.require_mention;
        // Only where others are there does the agent have to know who speaks.
        let name = if !private && (addressed || message.parent_id.is_some()) {
            self.places.ask_name(&self.client, &from).await
        } else {
            self.places.name(&from)
        };
        Some(Inbound {
            key: EventKey(format!("m:{id}")),
            address: self.address(chat, topic),
            private,
            message: id.to_owned(),
            reply_to: message.parent_id.filter(|id| !id.is_empty()),
            sender: Sender { name, id: from.clone() },
            addressed,
            at: millis(message.create_time.as_ref()).unwrap_or_else(now),
            // In a private chat a thread is no conversation of its own, but its answers belong into it.
            hint: thread.filter(|_| private).map(|thread| json!({"thread": thread})),
            kind: kind(said, private, &from),
        })
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
