//! Decodes events from the long connection or the webhook, and passes them to the event sink.
//!
//! No event is dropped because of its age: the platform redelivers an event for up to six hours until it is
//! acknowledged, and a question that waited through an outage still needs an answer. Events that are already stored are
//! recognised by their message ids.

use super::{
    chat_cache::{ChatCache, ChatKind, MessageInfo, MessageLocation, plain},
    client::FeishuClient,
    content::{self, MessageContent},
    event::{CardPress, EventEnvelope, FeishuEvent, Recalled, Received, millis},
    facts::FeishuCase,
    form, pointed,
};
use crate::{
    AcceptError, Address, EventKey, EventSink, FORM_ACTION, FormAccess, HealthCell, Inbound, InboundKind,
    PointedAt, PointedKind, Sender,
    clock::now,
    form::{Submitted, blank},
    reply::NumberedChoices,
    transport::{CallError, IntakeError, KeyedLocks},
};
use pudu_base::FormField;
use pudu_texts::Language;
use serde_json::{Value, json};
use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::time::timeout;

/// Timeout of look-ups. The platform waits three seconds for an acknowledgement.
const LOOKUP: Duration = Duration::from_secs(2);

/// Event handler of one bot.
#[derive(Clone)]
pub(super) struct FeishuEventParser {
    pub(super) account: String,
    pub(super) client: Arc<FeishuClient>,
    pub(super) places: Arc<ChatCache>,
    pub(super) numbered: Arc<NumberedChoices>,
    /// The bot's id.
    pub(super) me: Arc<OnceLock<String>>,
    pub(super) require_mention: bool,
    pub(super) health: HealthCell,
    /// Locks that serialize the events of each chat. An event may need a look-up, and a message must not be overtaken
    /// by the next one or by its own recall.
    pub(super) order: Arc<KeyedLocks<String>>,
}

/// Reason why an event was not stored. It must be delivered again.
pub(super) type FeishuIntakeError = IntakeError<FeishuCase>;

/// Maximum number of events of a chat in progress. Equals the number of concurrent events of a connection.
const MAX_EVENTS_PER_CHAT: usize = 64;

impl FeishuEventParser {
    /// Stores the content of an event and returns the response to the platform. Events of one chat are stored in the
    /// order in which these futures are first polled.
    pub(super) async fn on_event(
        &self,
        event: &EventEnvelope,
        sink: &dyn EventSink,
    ) -> Result<Option<Value>, FeishuIntakeError> {
        self.health.event(now());
        let decoded = event.decode();
        let _turn = match decoded.chat() {
            Some(chat) => Some(
                self.order
                    .lock_within(&chat.to_owned(), MAX_EVENTS_PER_CHAT)
                    .await
                    .ok_or(AcceptError::Full)?,
            ),
            None => None,
        };
        let pressed = matches!(decoded, FeishuEvent::Press(_));
        if let FeishuEvent::Press(pressed) = &decoded
            && pressed.action.action() == Some(FORM_ACTION)
        {
            return self.submit(&event.header.event_id, pressed, sink).await.map(Some);
        }
        let inbound = match decoded {
            FeishuEvent::Message(received) => self.message(received, sink).await,
            FeishuEvent::Recall(recalled) => with_timeout(self.recall(recalled, sink)).await,
            FeishuEvent::Press(pressed) => {
                with_timeout(self.press(&event.header.event_id, pressed, sink)).await
            }
            FeishuEvent::Other => Ok(None),
        };
        let inbound = match inbound {
            // The platform does not redeliver a press, so the user is asked to press again.
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
        // Events report a group that shows all messages as threads as an ordinary group. Only the chat has the exact
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
        // A message in a thread replies to the thread's first message, unless it replies to another one.
        let opening = thread.is_some() && parent == root;
        let kind_of = if opening { PointedKind::Opening } else { PointedKind::Reply };
        let answered = parent.as_deref().and_then(plain).map(|parent| PointedAt::unread(kind_of, parent));
        let location = MessageLocation {
            chat: chat.to_owned(),
            room,
            thread: thread.clone(),
            root: root.clone(),
            sender: Some(from.clone()),
        };
        let chain = self.is_chain(&location, sink).await?;
        let place = place(location, chain);
        let topic = place.topic.clone();
        if addressed {
            self.places.record_part(id, true);
        }
        self.places.record_seen(id, place);
        // The agent needs the sender's name only in chats with several users.
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
            // Even if a thread is not a separate conversation, answers to its messages are sent to the thread.
            hint: thread.filter(|_| private || chain).map(|thread| json!({"thread": thread})),
            kind: kind(said, private, &from),
        }))
    }

    /// Returns the conversation and author of a message; `None` if they cannot be determined.
    async fn find(&self, id: &str, sink: &dyn EventSink) -> Result<Option<MessageInfo>, FeishuIntakeError> {
        if let Some(place) = self.places.place(id) {
            return Ok(Some(place));
        }
        let location = self.places.look_up(&self.client, id).await?;
        let Some(location) = location else { return Ok(None) };
        // In a group, the first message of a thread belongs to the group itself.
        let first = location.room == ChatKind::Group && location.root.is_none();
        let place = place(location.clone(), first || self.is_chain(&location, sink).await?);
        self.places.record_seen(id, place.clone());
        Ok(Some(place))
    }

    /// Returns whether a message is in a thread that continues a conversation of its group, because the thread began
    /// under a message of that conversation. Any other thread is a separate conversation.
    async fn is_chain(
        &self,
        location: &MessageLocation,
        sink: &dyn EventSink,
    ) -> Result<bool, FeishuIntakeError> {
        let threaded = location.thread.is_some() && location.room == ChatKind::Group;
        let Some(root) = location.root.as_deref().filter(|_| threaded) else { return Ok(false) };
        // A group shown as topics is reported as an ordinary group. There, the first message of a topic belongs to the
        // topic, not to the group.
        let opened = self.places.place(root).is_some_and(|place| place.topic == location.thread);
        if opened
            || self
                .is_in_conversation(&self.address(&location.chat, location.thread.clone()), root, sink)
                .await?
        {
            return Ok(false);
        }
        if let Some(part) = self.places.has_talked(root) {
            return Ok(part);
        }
        let part = self.is_in_conversation(&self.address(&location.chat, None), root, sink).await?;
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

    /// Decodes the press of a button. The platform reports the user; the conversation is the one that contains the
    /// message with the button.
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
            tracing::warn!("dropped press: its message is not the bot's, or not in this chat");
            return Ok(None);
        }
        Ok(Some(self.about(format!("p:{event}"), id, place, person, InboundKind::Press { action })))
    }

    /// Stores the answers of a submitted form. Returns the toast for the user. The platform does not redeliver a press,
    /// so after a failure the user is asked to press again.
    async fn submit(
        &self,
        event: &str,
        pressed: &CardPress,
        sink: &dyn EventSink,
    ) -> Result<Value, FeishuIntakeError> {
        let inbound = match with_timeout(self.press(event, pressed.clone(), sink)).await {
            Ok(Some(inbound)) => blank(inbound),
            Ok(None) => return Ok(toast("warning", Language::press_unused)),
            Err(_) => return Ok(toast("warning", Language::press_again)),
        };
        let open = match sink.form(&inbound).await {
            Ok(FormAccess::Open(open)) => open,
            Ok(FormAccess::Refused(why)) => return Ok(plain_toast("warning", &why)),
            Err(_) => return Ok(toast("warning", Language::press_again)),
        };
        let values = &pressed.action.form_value;
        let answer = |at: usize, field: &FormField| form::answer(at, field, values);
        match open.submit(sink, inbound, Vec::new(), answer).await? {
            Submitted::Accepted => Ok(toast("success", |_| "👌")),
            Submitted::Wrong(problems) => Ok(plain_toast("error", &open.problems_in_words(&problems))),
        }
    }

    /// Returns the [`Inbound`] of an action on a message.
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

/// Runs a look-up with a timeout.
async fn with_timeout<T>(
    work: impl Future<Output = Result<T, FeishuIntakeError>>,
) -> Result<T, FeishuIntakeError> {
    let late = || IntakeError::Lookup(CallError::Unknown("the call timed out".to_owned()));
    timeout(LOOKUP, work).await.unwrap_or_else(|_| Err(late()))
}

/// Returns the conversation and author of a message. `chain` means that its thread continues a conversation of the
/// chat.
fn place(location: MessageLocation, chain: bool) -> MessageInfo {
    let private = location.room == ChatKind::Private;
    let topic = location.thread.filter(|_| !private && !chain);
    MessageInfo { chat: location.chat, topic, private, sender: location.sender }
}

/// Returns the kind of a message. Files arrive one by one, before the text that belongs to them; in a private chat, an
/// album id lets them wait for each other.
fn kind(said: MessageContent, private: bool, from: &str) -> InboundKind {
    let alone = private && said.text.is_empty() && !said.files.is_empty();
    InboundKind::Message { album: alone.then(|| from.to_owned()), text: said.text, attachments: said.files }
}

/// Returns the toast for the user who pressed a button. The app selects the text in its language.
fn toast(kind: &str, content: fn(Language) -> &'static str) -> Value {
    let own = json!({"en_us": content(Language::English), "zh_cn": content(Language::Chinese)});
    json!({"toast": {"type": kind, "content": content(Language::English), "i18n": own}})
}

/// Returns a toast with a text in the user's language.
fn plain_toast(kind: &str, text: &str) -> Value {
    json!({"toast": {"type": kind, "content": text}})
}

#[cfg(test)]
mod tests;
