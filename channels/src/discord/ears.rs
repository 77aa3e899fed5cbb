//! What becomes of an event: read, completed by what has to be asked for, and kept.

use super::{
    Config,
    decode::{Decoder, Rules},
    failure::ApiError,
    office::{Lane, Me, Office},
    places::Place,
    wire::{ChannelInfo, Deleted, Guild, Interaction, Message, Role},
};
use crate::{Address, Command, EventKey, HealthCell, Inbound, Intake, Kind, Refusal, Sender, clock::now};
use pudu_net::reqwest::Method;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::time::{Instant, timeout};

/// So many messages are remembered for the case that they are taken back.
const MOST: usize = 2000;
/// How long events wait for a channel to be looked up, and after how long it is tried again.
const LOOK_TIMEOUT: Duration = Duration::from_secs(2);
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// How often a message is looked up that is perhaps for the bot.
const LATER_TRIES: usize = 120;
/// So many servers are asked what they have.
const GUILDS: usize = 50;

/// What listens for one account.
pub(super) struct Ears {
    pub(super) account: String,
    pub(super) office: Arc<Office>,
    pub(super) rules: Rules,
    commands: Vec<Command>,
    pub(super) health: HealthCell,
    /// Who wrote the messages of late: Discord does not say it when one is deleted.
    written: Mutex<VecDeque<Written>>,
    /// Before then no channel is looked up again: the last try failed.
    look_again: Mutex<Option<Instant>>,
}

/// What a deletion needs to know of its message.
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
    Refused(#[from] Refusal),
    #[error("where it stands could not be asked for: {0}")]
    Unknown(#[from] ApiError),
}

/// What is still to be done about an event that was kept.
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
    /// A message may be for the bot, and where it stands could not be asked for.
    Place(Box<Message>),
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
            look_again: Mutex::default(),
        }
    }

    /// Keeps what an event tells. What cannot be read or does not concern the bot is passed over.
    pub(super) async fn hear(&self, kind: &str, data: Value, intake: &dyn Intake) -> Result<Todo, NotKept> {
        let Some(me) = self.office.me.get() else { return Ok(Todo::Nothing) };
        match kind {
            "MESSAGE_CREATE" => {
                if let Some(message) = read::<Message>(data, kind) {
                    return self.said(me, message, intake).await;
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
    /// case it is kept as it is, otherwise it is asked for later, so that it keeps nobody waiting.
    async fn said(&self, me: &Me, message: Message, intake: &dyn Intake) -> Result<Todo, NotKept> {
        self.office.saw(&message.id);
        let (place, sure) = match self.place(&message).await {
            Ok(place) => (place, true),
            Err(error) => (self.somewhere(&message, &error), false),
        };
        let inbound = self.decoder(me).message(&message, &place);
        if !sure && inbound.as_ref().is_some_and(|inbound| !inbound.addressed) {
            return Ok(Todo::Place(Box::new(message)));
        }
        self.keep(inbound, intake).await?;
        Ok(Todo::Nothing)
    }

    /// Keeps a message of which it could not be asked where it stands, as soon as it can.
    pub(super) async fn place_later(&self, message: &Message, intake: &dyn Intake) {
        let Some(me) = self.office.me.get() else { return };
        for _ in 0..LATER_TRIES {
            self.office.client.recovery().pause(LOOK_AGAIN).await;
            if let Ok(place) = self.place(message).await {
                if let Err(error) = self.keep(self.decoder(me).message(message, &place), intake).await {
                    tracing::warn!(%error, "failed to keep a message that was looked up late");
                }
                return;
            }
        }
        tracing::warn!("dropped a message to others: where it stands cannot be asked for");
    }

    /// Keeps a message that the history tells of.
    pub(super) async fn told(&self, me: &Me, message: &Message, intake: &dyn Intake) -> Result<(), NotKept> {
        self.office.saw(&message.id);
        let place = self.place(message).await?;
        self.keep(self.decoder(me).message(message, &place), intake).await
    }

    async fn keep(&self, inbound: Option<Inbound>, intake: &dyn Intake) -> Result<(), NotKept> {
        let Some(inbound) = inbound else { return Ok(()) };
        self.health.event(now());
        self.remember(&inbound);
        intake.accept(inbound).await?;
        Ok(())
    }

    async fn changed(&self, me: &Me, message: &Message, intake: &dyn Intake) -> Result<(), NotKept> {
        let place = self.place(message).await.unwrap_or_else(|error| self.somewhere(message, &error));
        if let Some(inbound) = self.decoder(me).edit(message, &place) {
            intake.accept(inbound).await?;
        }
        Ok(())
    }

    async fn gone(&self, deleted: Deleted, intake: &dyn Intake) -> Result<(), NotKept> {
        for id in deleted.id.into_iter().chain(deleted.ids) {
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
                kind: Kind::Recall,
            };
            intake.accept(inbound).await?;
        }
        Ok(())
    }

    async fn interaction(&self, me: &Me, told: &Interaction, intake: &dyn Intake) -> Result<Todo, NotKept> {
        self.office.saw(&told.id);
        let channel = told.channel_id.as_deref().unwrap_or_default();
        let place = self.place_of(channel, told.guild_id.as_deref()).await;
        let place = place.unwrap_or_else(|error| unplaced(told.guild_id.as_deref(), &error));
        let now = now();
        let Some(inbound) = self.decoder(me).interaction(told, &place, now) else { return Ok(Todo::Nothing) };
        let (id, token) = (told.id.clone(), told.token.clone());
        let press = matches!(inbound.kind, Kind::Press { .. });
        if !press {
            // Before it is kept: the reply may be there at once.
            self.office.deferred.expect(&token);
        }
        self.health.event(now);
        intake.accept(inbound).await?;
        Ok(if press { Todo::Press { id, token } } else { Todo::Command { id, token } })
    }

    async fn place(&self, message: &Message) -> Result<Place, ApiError> {
        self.place_of(&message.channel_id, message.guild_id.as_deref()).await
    }

    fn somewhere(&self, message: &Message, error: &ApiError) -> Place {
        unplaced(message.guild_id.as_deref(), error)
    }

    /// Tells where a channel is. One that Discord has not told of is asked for: it may be a thread. So is its
    /// server, of which a session that was taken up tells nothing.
    async fn place_of(&self, channel: &str, guild: Option<&str>) -> Result<Place, ApiError> {
        let Some(guild) = guild else { return Ok(Place::default()) };
        let places = &self.office.places;
        if !places.knows(guild) {
            // Without it the channel is asked for by itself.
            self.soon(self.learn_guild(guild)).await.ok();
        }
        if let Some(place) = places.get(channel) {
            return Ok(place);
        }
        match self.soon(self.look(channel)).await {
            Ok(place) => Ok(place),
            Err(error @ (ApiError::Refused(_) | ApiError::Gone(_))) => Ok(unplaced(Some(guild), &error)),
            Err(error) => Err(error),
        }
    }

    /// Makes a call for which events wait: it may not take long, and not be made again and again in vain.
    async fn soon<T>(&self, call: impl Future<Output = Result<T, ApiError>>) -> Result<T, ApiError> {
        let again = || self.look_again.lock().unwrap_or_else(PoisonError::into_inner);
        if again().is_some_and(|again| Instant::now() < again) {
            return Err(ApiError::Unconnected("it could not be asked for a moment ago".to_owned()));
        }
        let told = timeout(LOOK_TIMEOUT, call).await;
        let told = told.unwrap_or_else(|_| Err(ApiError::Unknown("no answer in time".to_owned())));
        let failed =
            told.as_ref().is_err_and(|error| !matches!(error, ApiError::Refused(_) | ApiError::Gone(_)));
        *again() = failed.then(|| Instant::now() + LOOK_AGAIN);
        told
    }

    /// Asks what a server has: what it tells of itself when a session begins.
    async fn learn_guild(&self, guild: &str) -> Result<(), ApiError> {
        #[derive(Deserialize)]
        struct Active {
            #[serde(default)]
            threads: Vec<ChannelInfo>,
        }
        let office = &self.office;
        let call = |path: &'static [&'static str]| [["guilds", guild].as_slice(), path].concat();
        let none = &Value::Null;
        let channels = office.call(Lane::Read, Method::GET, &call(&["channels"]), none).await?;
        let roles = office.call(Lane::Read, Method::GET, &call(&["roles"]), none).await?;
        let Active { threads } =
            office.call(Lane::Read, Method::GET, &call(&["threads", "active"]), none).await?;
        office
            .places
            .learn(Guild { id: guild.to_owned(), channels, threads, roles }, &office.me().await?.user);
        Ok(())
    }

    /// Asks what the servers have that did not tell it themselves.
    pub(super) async fn learn_all(&self) -> Result<(), ApiError> {
        #[derive(Deserialize)]
        struct Joined {
            id: String,
        }
        let path = ["users", "@me", "guilds"];
        let joined: Vec<Joined> = self.office.call(Lane::Read, Method::GET, &path, &Value::Null).await?;
        for Joined { id } in joined.iter().take(GUILDS).filter(|one| !self.office.places.knows(&one.id)) {
            match self.learn_guild(id).await {
                Err(ApiError::Refused(why) | ApiError::Gone(why)) => {
                    tracing::debug!(why, "a server cannot be looked at");
                }
                result => result?,
            }
        }
        Ok(())
    }

    /// Asks what a channel is.
    pub(super) async fn look(&self, channel: &str) -> Result<Place, ApiError> {
        let path = ["channels", channel];
        let told = self.office.call::<ChannelInfo>(Lane::Read, Method::GET, &path, &Value::Null).await?;
        Ok(self.office.places.channel(told))
    }

    fn remember(&self, inbound: &Inbound) {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if written.len() >= MOST {
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

    fn decoder<'a>(&'a self, me: &'a Me) -> Decoder<'a> {
        Decoder {
            account: &self.account,
            me,
            rules: &self.rules,
            places: &self.office.places,
            commands: &self.commands,
        }
    }
}

/// Returns the place of something of which only the server is known.
fn unplaced(guild: Option<&str>, error: &ApiError) -> Place {
    tracing::debug!(%error, "a channel cannot be looked at");
    Place { guild: guild.map(str::to_owned), ..Place::default() }
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
