//! Handles events from the socket or webhook: decodes them, looks up names and whether the bot has spoken in the
//! thread, and stores them.

use super::{
    account_state::SlackAccountState,
    decode::{DecodeContext, SlackDecoder, SlackEvent},
    facts::SlackCase,
    wire::{Actions, Callback, SlackIdentity, SlackMessage, Slash, Submission},
};
use crate::{
    ChatCommand, EventSink, HealthCell, Inbound, InboundKind,
    clock::now,
    form::opens,
    lenient::read,
    transport::{IntakeError, KeyedLocks},
};
use serde_json::Value;
use std::sync::Arc;

/// Event handler of one bot.
#[derive(Clone)]
pub(super) struct SlackEventHandler {
    pub(super) account: Arc<str>,
    pub(super) state: Arc<SlackAccountState>,
    pub(super) require_mention: bool,
    pub(super) commands: Arc<[ChatCommand]>,
    pub(super) health: HealthCell,
    /// Locks that keep the events of each chat in order of arrival, however long a look-up takes: a deletion must
    /// follow its message.
    pub(super) order: Arc<KeyedLocks<String>>,
}

/// Why an event was not stored. Slack has to deliver it again.
pub(super) type SlackIntakeError = IntakeError<SlackCase>;

/// Kind of payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Event,
    Action,
    Command,
}

impl SlackEventHandler {
    /// Stores the content of an event. Ignores invalid events and those that do not concern the bot. Returns the payload
    /// of the acknowledgement, if there is one.
    pub(super) async fn keep(
        &self,
        source: Source,
        payload: Value,
        sink: &dyn EventSink,
    ) -> Result<Option<Value>, SlackIntakeError> {
        self.health.event(now());
        let me = self.me()?;
        let inbound = match source {
            Source::Event => {
                let Some(callback) = read::<Callback>(payload, "event") else { return Ok(None) };
                let Some(message) = read::<SlackMessage>(callback.event, "message") else { return Ok(None) };
                return self.message(&message, callback.team_id.as_deref(), sink).await.map(|()| None);
            }
            Source::Action if payload["type"] == "view_submission" => {
                let Some(submission) = read::<Submission>(payload, "form") else { return Ok(None) };
                return self.submit_form(&submission, sink).await;
            }
            Source::Action => {
                let Some(pressed) = read::<Actions>(payload, "action") else { return Ok(None) };
                let press = self.decoder(me).press(&pressed, now());
                if let Some(press) = press.as_ref().filter(|press| opens(press)) {
                    self.open_form(&pressed, press.clone(), sink).await?;
                    return Ok(None);
                }
                press
            }
            Source::Command => {
                let slash = read::<Slash>(payload, "command");
                slash.and_then(|slash| self.decoder(me).slash(&slash, now()))
            }
        };
        if let Some(inbound) = inbound {
            // Buttons belong to the bot's messages, so a press does not wait for other messages.
            let typed = source == Source::Command;
            let chat = inbound.address.chat.clone();
            let turn = async { if typed { Some(self.order.lock(&chat).await) } else { None } };
            let (_turn, inbound) = tokio::join!(turn, self.with_sender_name(inbound));
            sink.accept(inbound).await?;
        }
        Ok(None)
    }

    /// Sets the sender's name to the one in their profile, as for messages, and the sender's language. Commands and
    /// button presses contain a different name.
    pub(super) async fn with_sender_name(&self, mut inbound: Inbound) -> Inbound {
        let id = inbound.sender.id.clone();
        let mut names = self.state.people.names(&self.state.client, std::slice::from_ref(&id)).await;
        if let Some(name) = names.remove(&id) {
            inbound.sender.name = name;
        }
        inbound.sender.language = self.state.people.language(&id);
        inbound
    }

    /// Stores a message, an edit or a deletion.
    pub(super) async fn message(
        &self,
        message: &SlackMessage,
        team: Option<&str>,
        sink: &dyn EventSink,
    ) -> Result<(), SlackIntakeError> {
        let me = self.me()?;
        let decoder = self.decoder(me);
        let Some(heard) = decoder.read_event(message, team) else { return Ok(()) };
        // Look-ups run concurrently; only storing takes turns.
        let (_turn, inbound) = tokio::join!(self.order.lock(&heard.channel), self.complete(&heard));
        if let Some(inbound) = inbound? {
            sink.accept(inbound).await?;
        }
        Ok(())
    }

    /// Converts an event to an [`Inbound`], with data from look-ups.
    async fn complete(&self, heard: &SlackEvent) -> Result<Option<Inbound>, SlackIntakeError> {
        let me = self.me()?;
        let decoder = self.decoder(me);
        let mut context = DecodeContext::default();
        if let Some((channel, thread)) = heard.thread(me).filter(|_| self.require_mention) {
            let SlackAccountState { client, threads, .. } = &*self.state;
            context.ours = threads.has_bot_spoken(client, me, channel, thread).await?;
        }
        let Some(mut inbound) = decoder.decode(heard, &context) else { return Ok(None) };
        if !inbound.addressed && !matches!(inbound.kind, InboundKind::Message { .. }) {
            // Edits and deletions of messages that do not address the bot do not concern it.
            return Ok(None);
        }
        if inbound.addressed {
            // Names are looked up only for messages that will be answered.
            context.names = self.state.people.names(&self.state.client, &heard.people(me)).await;
            inbound = decoder.decode(heard, &context).unwrap_or(inbound);
            inbound.sender.language = self.state.people.language(&inbound.sender.id);
        }
        Ok(Some(inbound))
    }

    pub(super) fn me(&self) -> Result<&SlackIdentity, SlackIntakeError> {
        self.state.me.get().ok_or(SlackIntakeError::Early)
    }

    pub(super) fn decoder<'a>(&'a self, me: &'a SlackIdentity) -> SlackDecoder<'a> {
        SlackDecoder {
            account: &self.account,
            me,
            require_mention: self.require_mention,
            commands: &self.commands,
        }
    }
}
