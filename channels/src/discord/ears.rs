//! Handling of an event: it is decoded, completed by look-ups, and stored.

use super::{
    Config,
    decode::{Decoder, Rules},
    failure::ApiError,
    looks::unplaced,
    office::{Me, Office},
    unplaced::Unplaced,
    wire::{ChannelInfo, Deleted, Guild, Interaction, Message, Role},
};
use crate::{
    AcceptError, Address, ChatCommand, EventKey, EventSink, HealthCell, Inbound, InboundKind, Sender,
    clock::now, pace::Pacer,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

/// Maximum number of messages remembered for the case that they are deleted.
const MAX_RECENT_MESSAGES: usize = 2000;
/// Event handler of one account.
pub(super) struct Ears {
    pub(super) account: String,
    pub(super) office: Arc<Office>,
    pub(super) rules: Rules,
    commands: Vec<ChatCommand>,
    pub(super) health: HealthCell,
    /// Authors of recent messages: Discord does not name the author when a message is deleted.
    written: Mutex<VecDeque<Written>>,
    /// The channels and servers that are not looked up again yet: the last try failed.
    pub(super) failed_looks: Pacer<String>,
    /// The messages that wait until it is known where they stand.
    pub(super) unplaced: Unplaced,
}

/// Data of a message that its deletion needs.
#[derive(Clone, Debug)]
struct Written {
    message: String,
    address: Address,
    private: bool,
    sender: Sender,
    addressed: bool,
}

/// An event was not kept: it has to come again.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotKept {
    #[error(transparent)]
    Refused(#[from] AcceptError),
    #[error("where it stands could not be asked for: {0}")]
    Unknown(#[from] ApiError),
}

/// Work that remains after an event was stored.
#[derive(Clone, Debug)]
pub(super) enum Todo {
    Nothing,
    /// The bot is there: Discord is told its commands.
    Register,
    /// The press of a button that Discord shows as pending until it is answered.
    Press {
        id: String,
        token: String,
    },
    /// A command, likewise.
    Command {
        id: String,
        token: String,
    },
}

impl Ears {
    pub(super) fn new(config: &Config, office: Arc<Office>) -> Self {
        Self {
            account: config.account.clone(),
            office,
            rules: config.rules.clone(),
            commands: config.commands.clone(),
            health: HealthCell::default(),
            written: Mutex::default(),
            failed_looks: Pacer::default(),
            unplaced: Unplaced::default(),
        }
    }

    /// Keeps what an event tells. What cannot be read or does not concern the bot is passed over.
    pub(super) async fn hear(
        &self,
        kind: &str,
        data: Value,
        intake: &dyn EventSink,
    ) -> Result<Todo, NotKept> {
        let Some(me) = self.office.me.get() else { return Ok(Todo::Nothing) };
        match kind {
            "MESSAGE_CREATE" => {
                if let Some(message) = read::<Message>(data, kind) {
                    self.said(me, message, intake).await?;
                }
            }
            "MESSAGE_UPDATE" => {
                if let Some(message) = read::<Message>(data, kind) {
                    self.changed(me, &message, intake).await?;
                }
            }
            "MESSAGE_DELETE" | "MESSAGE_DELETE_BULK" => {
                if let Some(deleted) = read::<Deleted>(data, kind) {
                    self.gone(deleted, intake).await?;
                }
            }
            "INTERACTION_CREATE" => {
                if let Some(told) = read::<Interaction>(data, kind) {
                    return self.interaction(me, &told, intake).await;
                }
            }
            _ => self.learn(me, kind, data),
        }
        Ok(Todo::Nothing)
    }

    /// Learns what there is.
    fn learn(&self, me: &Me, kind: &str, data: Value) {
        #[derive(Deserialize)]
        struct Of {
            role: Role,
        }
        #[derive(Deserialize)]
        struct Many {
            #[serde(default)]
            threads: Vec<ChannelInfo>,
        }
        let places = &self.office.places;
        match kind {
            "GUILD_CREATE" => {
                if let Some(guild) = read::<Guild>(data, kind) {
                    places.guild(guild, &me.user);
                }
            }
            "CHANNEL_CREATE" | "CHANNEL_UPDATE" | "THREAD_CREATE" | "THREAD_UPDATE" => {
                if let Some(channel) = read::<ChannelInfo>(data, kind) {
                    places.channel(channel);
                }
            }
            "THREAD_LIST_SYNC" => {
                for thread in read::<Many>(data, kind).map(|many| many.threads).unwrap_or_default() {
                    places.channel(thread);
                }
            }
            "GUILD_ROLE_CREATE" | "GUILD_ROLE_UPDATE" => {
                if let Some(Of { role }) = read::<Of>(data, kind) {
                    places.role(role, &me.user);
                }
            }
            _ => {}
        }
    }

    /// Keeps a message that an event tells of. Where it stands may not be known now: if it is for the bot in any
    /// case it is kept as it is, otherwise it waits, as does what is said behind it, and keeps no other waiting.
    async fn said(&self, me: &Me, message: Message, intake: &dyn EventSink) -> Result<(), NotKept> {
        self.office.saw(&message.id);
        let (place, sure) = match self.place(&message).await {
            Ok(place) => (place, true),
            Err(error) => (self.somewhere(&message, &error), false),
        };
        let inbound = self.decoder(me).message(&message, &place);
        let waits = |inbound: &Inbound| {
            if sure { self.unplaced.holds(&message.channel_id) } else { !inbound.addressed }
        };
        if inbound.as_ref().is_some_and(waits) {
            self.unplaced.add(message);
            return Ok(());
        }
        self.keep(inbound, intake).await
    }

    /// Keeps a message that the history tells of.
    pub(super) async fn told(
        &self,
        me: &Me,
        message: &Message,
        intake: &dyn EventSink,
    ) -> Result<(), NotKept> {
        self.office.saw(&message.id);
        let place = self.place(message).await?;
        self.keep(self.decoder(me).message(message, &place), intake).await
    }

    pub(super) async fn keep(&self, inbound: Option<Inbound>, intake: &dyn EventSink) -> Result<(), NotKept> {
        let Some(inbound) = inbound else { return Ok(()) };
        self.health.event(now());
        self.remember(&inbound);
        intake.accept(inbound).await?;
        Ok(())
    }

    async fn changed(&self, me: &Me, message: &Message, intake: &dyn EventSink) -> Result<(), NotKept> {
        let place = self.place(message).await.unwrap_or_else(|error| self.somewhere(message, &error));
        if let Some(inbound) = self.decoder(me).edit(message, &place) {
            intake.accept(inbound).await?;
        }
        Ok(())
    }

    async fn gone(&self, deleted: Deleted, intake: &dyn EventSink) -> Result<(), NotKept> {
        for id in deleted.id.into_iter().chain(deleted.ids) {
            self.unplaced.remove(&id);
            let found = {
                let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
                written.iter().find(|written| written.message == id).cloned()
            };
            let Some(Written { message, address, private, sender, addressed }) = found else { continue };
            let inbound = Inbound {
                key: EventKey(format!("d{message}")),
                address,
                private,
                message,
                reply_to: None,
                sender,
                addressed,
                at: now(),
                hint: None,
                kind: InboundKind::Recall,
            };
            intake.accept(inbound).await?;
        }
        Ok(())
    }

    async fn interaction(
        &self,
        me: &Me,
        told: &Interaction,
        intake: &dyn EventSink,
    ) -> Result<Todo, NotKept> {
        self.office.saw(&told.id);
        let channel = told.channel_id.as_deref().unwrap_or_default();
        let place = self.place_of(channel, told.guild_id.as_deref()).await;
        let place = place.unwrap_or_else(|error| unplaced(told.guild_id.as_deref(), &error));
        let now = now();
        let Some(inbound) = self.decoder(me).interaction(told, &place, now) else { return Ok(Todo::Nothing) };
        let (id, token) = (told.id.clone(), told.token.clone());
        let press = matches!(inbound.kind, InboundKind::Press { .. });
        if !press {
            // Before it is kept: the reply may be there at once.
            self.office.deferred.expect(&token);
        }
        self.health.event(now);
        intake.accept(inbound).await?;
        Ok(if press { Todo::Press { id, token } } else { Todo::Command { id, token } })
    }

    fn remember(&self, inbound: &Inbound) {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if written.len() >= MAX_RECENT_MESSAGES {
            written.pop_front();
        }
        written.push_back(Written {
            message: inbound.message.clone(),
            address: inbound.address.clone(),
            private: inbound.private,
            sender: inbound.sender.clone(),
            addressed: inbound.addressed,
        });
    }

    pub(super) fn decoder<'a>(&'a self, me: &'a Me) -> Decoder<'a> {
        Decoder {
            account: &self.account,
            me,
            rules: &self.rules,
            places: &self.office.places,
            commands: &self.commands,
        }
    }
}

fn read<T: DeserializeOwned>(data: Value, what: &str) -> Option<T> {
    match serde_json::from_value(data) {
        Ok(read) => Some(read),
        Err(_) => {
            // The error may quote what was written.
            tracing::warn!(what, "something from Discord cannot be read and is passed over");
            None
        }
    }
}
