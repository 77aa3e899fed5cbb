//! From an event to the inbox, however it came: over the long connection or by post.
//!
//! No event is dropped for its age: the platform repeats an event for up to six hours until it is acknowledged, and a
//! question that waited through an outage is still a question. Events kept before are recognised by the id of their
//! message.

use super::{
    chat_cache::{ChatCache, ChatKind, MessageInfo, MessageLocation, plain},
    client::FeishuClient,
    content::{self, MessageContent},
    event::{CardPress, EventEnvelope, FeishuEvent, Recalled, Received, millis},
    failure::FeishuCase,
    pointed,
};
use crate::{
    AcceptError, Address, EventKey, EventSink, HealthCell, Inbound, InboundKind, PointedAt, PointedKind,
    Sender,
    clock::now,
    reply::NumberedChoices,
    transport::{CallError, IntakeError, KeyedLocks},
};
use pudu_texts::Language;
use serde_json::{Value, json};
use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::time::timeout;

/// Timeout of look-ups: two of the three seconds that the platform waits for an answer.
const LOOKUP: Duration = Duration::from_secs(2);

/// Takes the events of one account.
#[derive(Clone)]
pub(super) struct FeishuEventParser {
    pub(super) account: String,
    pub(super) client: Arc<FeishuClient>,
    pub(super) places: Arc<ChatCache>,
    pub(super) numbered: Arc<NumberedChoices>,
    /// The bot's own id.
    pub(super) me: Arc<OnceLock<String>>,
    pub(super) require_mention: bool,
    pub(super) health: HealthCell,
    /// Events of one chat are kept one after the other, those of others side by side: an event may need a look-up, and
    /// a message must not be overtaken by the next one or by its own recall.
    pub(super) order: Arc<KeyedLocks<String>>,
}

/// Why an event was not kept: it has to come again.
pub(super) type FeishuIntakeError = IntakeError<FeishuCase>;

/// Maximum number of a chat's events under way; as many as one connection brings at a time.
const MAX_EVENTS_PER_CHAT: usize = 64;

impl FeishuEventParser {
    /// Keeps the content of an event; returns the answer to the platform. Events of one chat are kept in the order in
    /// which this is first polled.
    pub(super) async fn on_event(
        &self,
        event: &EventEnvelope,
        sink: &dyn EventSink,
    ) -> Result<Option<Value>, FeishuIntakeError> {
        self.health.event(now());
        let told = event.decode();
        let _turn = match told.chat() {
            Some(chat) => Some(
                self.order
                    .lock_within(&chat.to_owned(), MAX_EVENTS_PER_CHAT)
                    .await
                    .ok_or(AcceptError::Full)?,
            ),
            None => None,
        };
        let pressed = matches!(told, FeishuEvent::Press(_));
        let inbound = match told {
            FeishuEvent::Message(received) => self.message(received, sink).await,
            FeishuEvent::Recall(recalled) => with_timeout(self.recall(recalled, sink)).await,
            FeishuEvent::Press(pressed) => {
                with_timeout(self.press(&event.header.event_id, pressed, sink)).await
            }
            FeishuEvent::Other => Ok(None),
        };
        let inbound = match inbound {
            // The platform does not repeat a press: the person is asked to press again.
            Err(IntakeError::Lookup(_) | IntakeError::Store(_)) if pressed => {
                return Ok(Some(toast("warning", Language::press_again)));
            }
            inbound => inbound?,
        };
        let known = inbound.is_some();
        if let Some(inbound) = inbound {
            sink.accept(self.numbered.resolve(inbound)).await?;
        }
        Ok(pressed
            .then(|| if known { toast("info", |_| "👌") } else { toast("warning", Language::press_unused) }))
    }

    async fn message(
        &self,
        Received { sender, message }: Received,
        sink: &dyn EventSink,
    ) -> Result<Option<Inbound>, FeishuIntakeError> {
        let from = sender.sender_id.open_id.filter(|id| !id.is_empty());
        let ids = (self.me.get(), from, plain(&message.chat_id), plain(&message.message_id));
        let (Some(me), Some(from), Some(chat), Some(id)) = ids else { return Ok(None) };
        if sender.sender_type == "app" || sender.sender_type == "bot" || from == *me {
            return Ok(None);
        }
        let room = match message.chat_type.as_str() {
            "p2p" => ChatKind::Private,
            "group" => ChatKind::Group,
            _ => ChatKind::Topics,
        };
        let private = room == ChatKind::Private;
        // A group that shows all messages as threads is reported as a group here: only the chat itself has the exact
        // kind.
        if room != ChatKind::Group {
            self.places.entered(chat, room);
        }
        let thread = message.thread_id.filter(|thread| !thread.is_empty());
        for mention in &message.mentions {
            mention.open_id().into_iter().for_each(|person| self.places.named(person, &mention.name));
        }
        let mentioned = message.mentions.iter().any(|mention| mention.open_id() == Some(me));
        let mut said = content::read(&message.message_type, &message.content, id, &message.mentions, me);
        let parent = message.parent_id.filter(|id| !id.is_empty());
        let addressed = private || mentioned || !self.require_mention;
        let root = message.root_id.filter(|id| !id.is_empty());
        let passed = pointed::passed_on(&message.message_type, id, &mut said);
        // A message in a thread answers the message that opened the thread, unless it answers another one.
        let opening = thread.is_some() && parent == root;
        let kind_of = if opening { PointedKind::Opening } else { PointedKind::Reply };
        let answered = parent.as_deref().and_then(plain).map(|parent| PointedAt::unread(kind_of, parent));
        let stand = MessageLocation {
            chat: chat.to_owned(),
            room,
            thread: thread.clone(),
            root: root.clone(),
            sender: Some(from.clone()),
        };
        let chain = self.is_chain(&stand, sink).await?;
        let place = place(stand, chain);
        let topic = place.topic.clone();
        if addressed {
            self.places.record_part(id, true);
        }
        self.places.record_seen(id, place);
        // Only where others are there does the agent have to know who speaks.
        let name = if !private && (addressed || parent.is_some()) {
            self.places.ask_name(&self.client, &from).await
        } else {
            self.places.name(&from)
        };
        Ok(Some(Inbound {
            key: EventKey(format!("m:{id}")),
            address: self.address(chat, topic),
            private,
            message: id.to_owned(),
            reply_to: if chain { root } else { parent },
            sender: Sender { name, id: from.clone(), language: None },
            addressed,
            at: millis(message.create_time.as_ref()).unwrap_or_else(now),
            pointed: answered.into_iter().chain(passed).collect(),
            // Where a thread is no conversation of its own its answers belong into it all the same.
            hint: thread.filter(|_| private || chain).map(|thread| json!({"thread": thread})),
            kind: kind(said, private, &from),
        }))
    }

    /// Returns the place of a message; `None` if it cannot be found out.
    async fn find(&self, id: &str, sink: &dyn EventSink) -> Result<Option<MessageInfo>, FeishuIntakeError> {
        if let Some(place) = self.places.place(id) {
            return Ok(Some(place));
        }
        let stand = self.places.look_up(&self.client, id).await?;
        let Some(stand) = stand else { return Ok(None) };
        // In a group the message that opened a thread is in the group itself.
        let first = stand.room == ChatKind::Group && stand.root.is_none();
        let place = place(stand.clone(), first || self.is_chain(&stand, sink).await?);
        self.places.record_seen(id, place.clone());
        Ok(Some(place))
    }

    /// Returns whether a message is in a thread that continues a conversation of its group: one under a message of the
    /// conversation. Any other thread is a separate conversation.
    async fn is_chain(
        &self,
        stand: &MessageLocation,
        sink: &dyn EventSink,
    ) -> Result<bool, FeishuIntakeError> {
        let threaded = stand.thread.is_some() && stand.room == ChatKind::Group;
        let Some(root) = stand.root.as_deref().filter(|_| threaded) else { return Ok(false) };
        // A group that is shown as topics is reported as a group: the message that opened a topic is in the topic
        // itself, and not in the group.
        let opened = self.places.place(root).is_some_and(|place| place.topic == stand.thread);
        if opened
            || self.is_in_conversation(&self.address(&stand.chat, stand.thread.clone()), root, sink).await?
        {
            return Ok(false);
        }
        if let Some(part) = self.places.has_talked(root) {
            return Ok(part);
        }
        let part = self.is_in_conversation(&self.address(&stand.chat, None), root, sink).await?;
        self.places.record_part(root, part);
        Ok(part)
    }

    async fn is_in_conversation(
        &self,
        at: &Address,
        message: &str,
        sink: &dyn EventSink,
    ) -> Result<bool, FeishuIntakeError> {
        Ok(sink.is_in_conversation(at, message).await?)
    }

    async fn recall(
        &self,
        recalled: Recalled,
        sink: &dyn EventSink,
    ) -> Result<Option<Inbound>, FeishuIntakeError> {
        let Some(id) = plain(&recalled.message_id) else { return Ok(None) };
        let place = self.find(id, sink).await?.filter(|place| place.chat == recalled.chat_id);
        Ok(place.and_then(|place| {
            let sender = place.sender.clone()?;
            Some(self.about(format!("r:{id}"), id, place, sender, InboundKind::Recall))
        }))
    }

    /// Decodes the press of a button. The platform names the person; the place is that of the message which
    /// holds the button.
    async fn press(
        &self,
        event: &str,
        pressed: CardPress,
        sink: &dyn EventSink,
    ) -> Result<Option<Inbound>, FeishuIntakeError> {
        let action = pressed.action.action().map(str::to_owned);
        let person = pressed.operator.open_id.filter(|id| !id.is_empty());
        let (Some(action), Some(person), Some(id)) =
            (action, person, plain(&pressed.context.open_message_id))
        else {
            return Ok(None);
        };
        let Some(place) = self.find(id, sink).await? else { return Ok(None) };
        if place.sender.is_some() || place.chat != pressed.context.open_chat_id || event.is_empty() {
            tracing::warn!("dropped press: it is not under a message of ours in its chat");
            return Ok(None);
        }
        Ok(Some(self.about(format!("p:{event}"), id, place, person, InboundKind::Press { action })))
    }

    /// Makes the inbound of an action on a message.
    fn about(
        &self,
        key: String,
        message: &str,
        place: MessageInfo,
        person: String,
        kind: InboundKind,
    ) -> Inbound {
        Inbound {
            key: EventKey(key),
            address: self.address(&place.chat, place.topic),
            private: place.private,
            message: message.to_owned(),
            reply_to: None,
            sender: Sender { name: self.places.name(&person), id: person, language: None },
            addressed: true,
            at: now(),
            pointed: Vec::new(),
            hint: None,
            kind,
        }
    }

    fn address(&self, chat: &str, topic: Option<String>) -> Address {
        Address { account: self.account.clone(), chat: chat.to_owned(), topic }
    }
}

/// Gives a lookup its time.
async fn with_timeout<T>(
    work: impl Future<Output = Result<T, FeishuIntakeError>>,
) -> Result<T, FeishuIntakeError> {
    let late = || IntakeError::Lookup(CallError::Unknown("no answer in time".to_owned()));
    timeout(LOOKUP, work).await.unwrap_or_else(|_| Err(late()))
}

/// Returns the place of a message; `chain` is whether its thread continues a conversation of the chat.
fn place(stand: MessageLocation, chain: bool) -> MessageInfo {
    let private = stand.room == ChatKind::Private;
    let topic = stand.thread.filter(|_| !private && !chain);
    MessageInfo { chat: stand.chat, topic, private, sender: stand.sender }
}

/// Files come one by one and before the words that belong to them: alone with the bot they wait for each
/// other.
fn kind(said: MessageContent, private: bool, from: &str) -> InboundKind {
    let alone = private && said.text.is_empty() && !said.files.is_empty();
    InboundKind::Message { album: alone.then(|| from.to_owned()), text: said.text, attachments: said.files }
}

/// Returns the toast shown to the person who pressed. The app takes the text of its own language.
fn toast(kind: &str, content: fn(Language) -> &'static str) -> Value {
    let own = json!({"en_us": content(Language::English), "zh_cn": content(Language::Chinese)});
    json!({"toast": {"type": kind, "content": content(Language::English), "i18n": own}})
}

#[cfg(test)]
mod tests;
