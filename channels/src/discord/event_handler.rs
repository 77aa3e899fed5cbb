//! Handles events: decodes them, completes them with look-ups, and stores them.

use super::{
    DiscordConfig,
    account_state::{DiscordAccountState, DiscordIdentity},
    decode::{DiscordDecoder, ListenRules},
    facts::DiscordCase,
    guild_cache::CachedChannel,
    unplaced::Unplaced,
    wire::{ChannelInfo, Deleted, DiscordMessage, DiscordRole, Guild, Interaction},
};
use crate::{
    Address, ChatCommand, EventKey, EventSink, HealthCell, Inbound, InboundKind, Sender,
    clock::now,
    form::opens,
    lenient::read,
    pace::Pacer,
    transport::{Cache, IntakeError},
};
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

/// Maximum number of messages remembered in case they are deleted.
const MAX_RECENT_MESSAGES: usize = 2000;
/// Event handler of one bot.
pub(super) struct DiscordEventHandler {
    pub(super) account: String,
    pub(super) state: Arc<DiscordAccountState>,
    pub(super) rules: ListenRules,
    commands: Vec<ChatCommand>,
    pub(super) health: HealthCell,
    /// Authors of recent messages: Discord does not name the author when a message is deleted.
    written: Cache<String, RecentMessage, MAX_RECENT_MESSAGES>,
    /// Channels and servers whose last look-up failed too recently for another attempt.
    pub(super) failed_looks: Pacer<String>,
    /// Messages that wait for the look-up of their channel.
    pub(super) unplaced: Unplaced,
}

/// Data of a message that is needed if it is deleted.
#[derive(Clone, Debug)]
struct RecentMessage {
    message: String,
    address: Address,
    private: bool,
    sender: Sender,
    addressed: bool,
}

/// Reason why an event was not stored. It must be delivered again.
pub(super) type DiscordIntakeError = IntakeError<DiscordCase>;

/// Work that remains after an event was stored.
#[derive(Clone, Debug)]
pub(super) enum EventResponse {
    Nothing,
    /// The bot is connected: its commands are registered with Discord.
    Register,
    /// A pressed button. Discord shows it as pending until it is answered.
    Press {
        id: String,
        token: String,
    },
    /// A button or a submission with a response of its own: a modal, or a message that one user sees.
    Respond {
        id: String,
        token: String,
        body: Value,
    },
    /// An invoked command. Discord shows it as pending until it is answered.
    Command {
        id: String,
        token: String,
    },
}

impl DiscordEventHandler {
    pub(super) fn new(config: &DiscordConfig, state: Arc<DiscordAccountState>) -> Self {
        Self {
            account: config.account.clone(),
            state,
            rules: config.rules.clone(),
            commands: config.commands.clone(),
            health: HealthCell::default(),
            written: Cache::default(),
            failed_looks: Pacer::default(),
            unplaced: Unplaced::default(),
        }
    }

    /// Stores the content of an event. Ignores invalid events and those that do not concern the bot.
    pub(super) async fn on_event(
        &self,
        kind: &str,
        data: Value,
        sink: &dyn EventSink,
    ) -> Result<EventResponse, DiscordIntakeError> {
        let Some(me) = self.state.me.get() else { return Ok(EventResponse::Nothing) };
        match kind {
            "MESSAGE_CREATE" => {
                if let Some(message) = read::<DiscordMessage>(data, kind) {
                    self.on_message(me, message, sink).await?;
                }
            }
            "MESSAGE_UPDATE" => {
                if let Some(message) = read::<DiscordMessage>(data, kind) {
                    self.changed(me, &message, sink).await?;
                }
            }
            "MESSAGE_DELETE" | "MESSAGE_DELETE_BULK" => {
                if let Some(deleted) = read::<Deleted>(data, kind) {
                    self.on_deleted(deleted, sink).await?;
                }
            }
            "INTERACTION_CREATE" => {
                if let Some(interaction) = read::<Interaction>(data, kind) {
                    return self.interaction(me, &interaction, sink).await;
                }
            }
            _ => self.learn(me, kind, data),
        }
        Ok(EventResponse::Nothing)
    }

    /// Updates the cache of servers, channels and roles.
    fn learn(&self, me: &DiscordIdentity, kind: &str, data: Value) {
        #[derive(Deserialize)]
        struct Of {
            role: DiscordRole,
        }
        #[derive(Deserialize)]
        struct Many {
            #[serde(default)]
            threads: Vec<ChannelInfo>,
        }
        let places = &self.state.guilds;
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

    /// Stores a message from an event. If its channel cannot be looked up now, a message that certainly addresses the
    /// bot is stored without it. Any other message waits, and so do later messages in the same channel; other channels
    /// are not affected.
    async fn on_message(
        &self,
        me: &DiscordIdentity,
        message: DiscordMessage,
        sink: &dyn EventSink,
    ) -> Result<(), DiscordIntakeError> {
        self.state.record_seen(&message.id);
        let (location, sure) = match self.channel(&message).await {
            Ok(location) => (location, true),
            Err(error) => (self.unknown_place(&message, &error), false),
        };
        let inbound = self.decoder(me).message(&message, &location);
        let waits = |inbound: &Inbound| {
            if sure { self.unplaced.has_messages_in(&message.channel_id) } else { !inbound.addressed }
        };
        if inbound.as_ref().is_some_and(waits) {
            self.unplaced.add(message);
            return Ok(());
        }
        self.keep(inbound, sink).await
    }

    /// Stores a message from the history.
    pub(super) async fn on_history_message(
        &self,
        me: &DiscordIdentity,
        message: &DiscordMessage,
        sink: &dyn EventSink,
    ) -> Result<(), DiscordIntakeError> {
        self.state.record_seen(&message.id);
        let location = self.channel(message).await?;
        self.keep(self.decoder(me).message(message, &location), sink).await
    }

    pub(super) async fn keep(
        &self,
        inbound: Option<Inbound>,
        sink: &dyn EventSink,
    ) -> Result<(), DiscordIntakeError> {
        let Some(inbound) = inbound else { return Ok(()) };
        self.health.event(now());
        self.remember(&inbound);
        sink.accept(inbound).await?;
        Ok(())
    }

    async fn changed(
        &self,
        me: &DiscordIdentity,
        message: &DiscordMessage,
        sink: &dyn EventSink,
    ) -> Result<(), DiscordIntakeError> {
        let location =
            self.channel(message).await.unwrap_or_else(|error| self.unknown_place(message, &error));
        if let Some(inbound) = self.decoder(me).edit(message, &location) {
            sink.accept(inbound).await?;
        }
        Ok(())
    }

    async fn on_deleted(&self, deleted: Deleted, sink: &dyn EventSink) -> Result<(), DiscordIntakeError> {
        for id in deleted.id.into_iter().chain(deleted.ids) {
            self.unplaced.remove(&id);
            let Some(RecentMessage { message, address, private, sender, addressed }) = self.written.get(&id)
            else {
                continue;
            };
            let inbound = Inbound {
                key: EventKey(format!("d{message}")),
                address,
                private,
                message,
                reply_to: None,
                sender,
                addressed,
                at: now(),
                pointed: Vec::new(),
                hint: None,
                kind: InboundKind::Recall,
            };
            sink.accept(inbound).await?;
        }
        Ok(())
    }

    async fn interaction(
        &self,
        me: &DiscordIdentity,
        interaction: &Interaction,
        sink: &dyn EventSink,
    ) -> Result<EventResponse, DiscordIntakeError> {
        self.state.record_seen(&interaction.id);
        let channel = interaction.channel_id.as_deref().unwrap_or_default();
        let location = self.channel_of_event(channel, interaction.guild_id.as_deref()).await;
        let location =
            location.unwrap_or_else(|error| CachedChannel::in_guild(interaction.guild_id.as_deref(), &error));
        let now = now();
        let Some(inbound) = self.decoder(me).interaction(interaction, &location, now) else {
            return Ok(EventResponse::Nothing);
        };
        if opens(&inbound) {
            return self.open_form(interaction, inbound, sink).await;
        }
        if matches!(inbound.kind, InboundKind::Submit { .. }) {
            return self.submit_form(interaction, inbound, sink).await;
        }
        let (id, token) = (interaction.id.clone(), interaction.token.clone());
        let press = matches!(inbound.kind, InboundKind::Press { .. });
        if !press {
            // Before the event is stored, because the reply may begin at once.
            self.state.deferred.expect(&token);
        }
        self.health.event(now);
        sink.accept(inbound).await?;
        Ok(if press { EventResponse::Press { id, token } } else { EventResponse::Command { id, token } })
    }

    fn remember(&self, inbound: &Inbound) {
        let recent = RecentMessage {
            message: inbound.message.clone(),
            address: inbound.address.clone(),
            private: inbound.private,
            sender: inbound.sender.clone(),
            addressed: inbound.addressed,
        };
        self.written.put(inbound.message.clone(), recent);
    }

    pub(super) fn decoder<'a>(&'a self, me: &'a DiscordIdentity) -> DiscordDecoder<'a> {
        DiscordDecoder {
            account: &self.account,
            me,
            rules: &self.rules,
            places: &self.state.guilds,
            commands: &self.commands,
        }
    }
}
