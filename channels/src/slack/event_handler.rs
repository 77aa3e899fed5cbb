//! Handling of an event from socket or webhook: it is decoded, completed by look-ups, and stored.

use super::{
    account_state::SlackAccountState,
    decode::{DecodeContext, SlackDecoder, SlackEvent},
    failure::SlackCase,
    wire::{Actions, Callback, SlackIdentity, SlackMessage, Slash},
};
use crate::{
    ChatCommand, EventSink, HealthCell, Inbound, InboundKind,
    clock::now,
    transport::{IntakeError, KeyedLocks},
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;

/// Event handler of one account.
#[derive(Clone)]
pub(super) struct SlackEventHandler {
    pub(super) account: Arc<str>,
    pub(super) state: Arc<SlackAccountState>,
    pub(super) require_mention: bool,
    pub(super) commands: Arc<[ChatCommand]>,
    pub(super) health: HealthCell,
    /// Events of one chat are kept in the order in which they came, however long each waits for a name: what
    /// takes a message back has to find it.
    pub(super) order: Arc<KeyedLocks<String>>,
}

/// Why an event was not kept: Slack has to bring it again.
pub(super) type SlackIntakeError = IntakeError<SlackCase>;

/// How an event came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Event,
    Action,
    Command,
}

impl SlackEventHandler {
    /// Keeps the content of an event. Events that cannot be read or do not concern the bot are ignored.
    pub(super) async fn keep(
        &self,
        source: Source,
        payload: Value,
        sink: &dyn EventSink,
    ) -> Result<(), SlackIntakeError> {
        self.health.event(now());
        let me = self.me()?;
        let inbound = match source {
            Source::Event => {
                let Some(callback) = read::<Callback>(payload, "event") else { return Ok(()) };
                let Some(message) = read::<SlackMessage>(callback.event, "message") else { return Ok(()) };
                return self.message(&message, callback.team_id.as_deref(), sink).await;
            }
            Source::Action => {
                let pressed = read::<Actions>(payload, "action");
                pressed.and_then(|pressed| self.decoder(me).press(&pressed, now()))
            }
            Source::Command => {
                let slash = read::<Slash>(payload, "command");
                slash.and_then(|slash| self.decoder(me).slash(&slash, now()))
            }
        };
        if let Some(inbound) = inbound {
            // A button is ours and waits for no other message.
            let typed = source == Source::Command;
            let chat = inbound.address.chat.clone();
            let turn = async { if typed { Some(self.order.lock(&chat).await) } else { None } };
            let (_turn, inbound) = tokio::join!(turn, self.with_sender_name(inbound));
            sink.accept(inbound).await?;
        }
        Ok(())
    }

    /// Gives the sender the name that their messages carry: commands and presses contain another.
    async fn with_sender_name(&self, mut inbound: Inbound) -> Inbound {
        let id = inbound.sender.id.clone();
        let mut names = self.state.people.names(&self.state.client, std::slice::from_ref(&id)).await;
        if let Some(name) = names.remove(&id) {
            inbound.sender.name = name;
        }
        inbound.sender.language = self.state.people.language(&id);
        inbound
    }

    /// Keeps a message, an edit or a deletion.
    pub(super) async fn message(
        &self,
        message: &SlackMessage,
        team: Option<&str>,
        sink: &dyn EventSink,
    ) -> Result<(), SlackIntakeError> {
        let me = self.me()?;
        let decoder = self.decoder(me);
        let Some(heard) = decoder.read_event(message, team) else { return Ok(()) };
        // Look-ups run side by side; only the keeping takes turns.
        let (_turn, inbound) = tokio::join!(self.order.lock(&heard.channel), self.complete(&heard));
        if let Some(inbound) = inbound? {
            sink.accept(inbound).await?;
        }
        Ok(())
    }

    /// Makes an inbound from an event, with the data that has to be looked up.
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
            // Changes that other people make to their messages do not concern the bot.
            return Ok(None);
        }
        if inbound.addressed {
            // Names are looked up only where they will be read.
            context.names = self.state.people.names(&self.state.client, &heard.people(me)).await;
            inbound = decoder.decode(heard, &context).unwrap_or(inbound);
            inbound.sender.language = self.state.people.language(&inbound.sender.id);
        }
        Ok(Some(inbound))
    }

    pub(super) fn me(&self) -> Result<&SlackIdentity, SlackIntakeError> {
        self.state.me.get().ok_or(SlackIntakeError::Early)
    }

    fn decoder<'a>(&'a self, me: &'a SlackIdentity) -> SlackDecoder<'a> {
        SlackDecoder {
            account: &self.account,
            me,
            require_mention: self.require_mention,
            commands: &self.commands,
        }
    }
}

fn read<T: DeserializeOwned>(payload: Value, what: &str) -> Option<T> {
    match serde_json::from_value(payload) {
        Ok(read) => Some(read),
        Err(error) => {
            // The line and column give the position without any content.
            tracing::warn!(what, line = error.line(), "dropped Slack event: decode error");
            None
        }
    }
}
