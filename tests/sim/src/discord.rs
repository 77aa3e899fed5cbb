//! A Discord server ("guild") with one application, faithful to the documented behavior: REST and gateway of version
//! 10, interactions, and files.
//!
//! The bot talks to [`Discord::url`]; a test controls the users through [`Platform`] and the handle. Deliberately
//! absent: voice, other bots, forums, private threads, webhooks of other kinds, compression and sharding; a call of an
//! unknown method is answered as such and recorded.

mod ask;
mod core;
mod error;
mod gateway;
mod interactions;
mod me;
mod messages;
mod modals;
mod pace;
mod people;
mod play;
mod server;
mod sessions;
#[cfg(test)]
mod tests;
mod text;
mod wire;
mod world;

pub use modals::Modal;
pub use world::Options;

use self::{
    ask::Ask,
    core::Core,
    gateway::Link,
    sessions::Frame,
    world::{LOADING, Message, SUPPRESS_EMBEDS, World},
};
use crate::{
    Call, Fault, Platform, When, control,
    gate::Hold,
    http::Server,
    platform::{Shown, Words},
    stage::Reply,
};
use serde_json::{Value, json};
use std::{
    fmt, io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Handle of a running server. Clones share the server, which stops with the last one.
#[derive(Clone)]
pub struct Discord {
    core: Arc<Core>,
    running: Option<Arc<Running>>,
}

struct Running {
    _server: Server,
    _stop: DropGuard,
}

impl Discord {
    /// Starts a server on a free loopback port.
    ///
    /// # Errors
    /// When no port is available.
    pub async fn start(options: Options) -> io::Result<Self> {
        Self::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), options).await
    }

    /// Starts a server on a given address.
    ///
    /// # Errors
    /// When the address is not available.
    pub async fn bind(address: SocketAddr, options: Options) -> io::Result<Self> {
        let core = Arc::new(Core::new(World::new(options)));
        let stop = CancellationToken::new();
        // The control's handle does not keep the server alive, because it is part of the server.
        let handle = Self { core: Arc::clone(&core), running: None };
        let link = Link { core: Arc::clone(&core), stop: stop.clone() };
        let router = control::router(Arc::new(handle.clone())).merge(play::router(handle));
        let server = Server::start(address, router.merge(server::router(link))).await?;
        core.act(|world| world.url = format!("http://{}", server.address()));
        let running = Running { _server: server, _stop: stop.drop_guard() };
        Ok(Self { core, running: Some(Arc::new(running)) })
    }

    /// Returns the address to configure as the API's, without version and without a trailing slash.
    #[must_use]
    pub fn url(&self) -> String {
        self.core.look(|world| format!("{}/api", world.url))
    }

    /// Returns the options.
    #[must_use]
    pub fn options(&self) -> Options {
        self.core.look(|world| world.options.clone())
    }

    /// Uses one of the bot's registered commands. Returns `false` if there is no such command.
    pub fn command(&self, chat: &str, person: &str, name: &str, words: &str) -> bool {
        self.core.act(|world| world.command(chat, person, name, words))
    }

    /// Returns the names of the bot's registered commands.
    #[must_use]
    pub fn commands(&self) -> Vec<String> {
        let name = |command: &Value| command["name"].as_str().unwrap_or_default().to_owned();
        self.core.look(|world| world.commands.iter().map(name).collect())
    }

    /// Returns the modals that the bot showed, oldest first.
    #[must_use]
    pub fn modals(&self) -> Vec<Modal> {
        self.core.look(|world| world.modals.clone())
    }

    /// Submits a modal with values by input: a text, the label of an option, or a list of labels.
    pub fn submit(&self, modal: usize, values: &Value) -> bool {
        self.core.act(|world| world.submit(modal, values))
    }

    /// Returns the number of interactions that the bot did not answer in time.
    #[must_use]
    pub fn unanswered(&self) -> usize {
        self.core.look(|world| {
            let most = world.options.answer_within;
            let late = |one: &&interactions::Interaction| one.answered.is_none() && one.at.elapsed() > most;
            world.interactions.values().filter(late).count()
        })
    }

    /// Starts a user's thread from a message; returns its ID.
    #[must_use]
    pub fn thread(&self, chat: &str, message: &str, person: &str, name: &str) -> String {
        self.core.act(|world| people::open_thread(world, chat, message, name, person));
        message.to_owned()
    }

    /// Returns the threads of a channel: IDs and names.
    #[must_use]
    pub fn threads(&self, chat: &str) -> Vec<(String, String)> {
        self.core.look(|world| {
            let ids = world.with_threads(chat).into_iter().filter(|id| id != chat);
            ids.filter_map(|id| world.channels.get(&id).map(|of| (id, of.name.clone()))).collect()
        })
    }

    /// Archives a thread.
    pub fn archive(&self, thread: &str) {
        self.core.act(|world| {
            if let Some(of) = world.channels.get_mut(thread) {
                of.archived = true;
            }
        });
    }

    /// Asks all connections to reconnect.
    pub fn ask_to_reconnect(&self) {
        self.to_all(&Frame::Text(json!({"op": 7, "s": null, "t": null, "d": null})));
    }

    /// Reports to all connections that their session is invalid.
    pub fn invalidate(&self, resumable: bool) {
        self.to_all(&Frame::Text(json!({"op": 9, "s": null, "t": null, "d": resumable})));
        if !resumable {
            self.core.act(|world| {
                for session in &mut world.sessions.all {
                    session.id.push('x');
                }
            });
        }
    }

    /// Closes all connections with a code.
    pub fn close(&self, code: u16) {
        self.to_all(&Frame::Close(code, "as a test wanted"));
    }

    /// Sends all connections a frame that the test specifies.
    pub fn frame(&self, frame: &Value) {
        self.to_all(&Frame::Text(frame.clone()));
    }

    /// Tells the bot of an event that the test specifies.
    pub fn event(&self, kind: &str, data: &Value) {
        self.core.act(|world| world.tell(kind, data));
    }

    /// Stops answering heartbeats, or resumes: the connection is a zombie.
    pub fn silence(&self, on: bool) {
        self.core.act(|world| world.sessions.deaf = on);
    }

    /// Breaks all connections and forgets their sessions: missed messages are only in the history.
    pub fn forget_sessions(&self) {
        self.to_all(&Frame::Drop);
        self.core.act(|world| world.sessions.all.clear());
    }

    fn to_all(&self, frame: &Frame) {
        self.core.act(|world| world.sessions.all.iter().for_each(|session| session.send(frame.clone())));
    }

    /// Returns the numbers of started and resumed sessions.
    #[must_use]
    pub fn sessions(&self) -> (u64, u64) {
        self.core.look(|world| (world.sessions.identified, world.sessions.resumed))
    }

    /// Returns the number of open connections.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.core.look(|world| world.sessions.all.iter().filter(|session| session.socket.is_some()).count())
    }

    /// Revokes a permission, or restores it: `SEND_MESSAGES`, `CREATE_PUBLIC_THREADS` and so on.
    pub fn permission(&self, name: &str, given: bool) {
        self.core.act(|world| {
            if given {
                world.forbidden.remove(name)
            } else {
                world.forbidden.insert(name.to_owned())
            };
        });
    }

    /// Invalidates the token.
    pub fn revoke(&self) {
        self.core.act(|world| world.revoked = true);
    }

    /// Sets the permissions of the bot's role on the server.
    pub fn permit(&self, permissions: u64) {
        self.core.act(|world| world.options.permissions = permissions);
    }

    /// Switches the message content intent in the developer portal.
    pub fn content_intent(&self, on: bool) {
        self.core.act(|world| world.options.content_intent = on);
    }

    /// Enables or disables the rate limits.
    pub fn pace(&self, on: bool) {
        self.core.act(|world| world.meter.on = on);
    }

    /// Refuses everything for a while, like the global limit.
    pub fn refuse_all(&self, within: Duration) {
        self.core.act(|world| world.meter.closed = Some(Instant::now() + within));
    }

    /// Returns the number of calls refused with 401, 403 or 429; ten thousand in ten minutes ban an address.
    #[must_use]
    pub fn invalid_calls(&self) -> u64 {
        self.core.look(|world| world.meter.invalid)
    }

    /// Expires the URLs of all files.
    pub fn age_links(&self) {
        self.core.act(|world| world.link_age += 1);
    }

    /// Returns whether the bot's token was ever sent to the file server.
    #[must_use]
    pub fn token_leaked(&self) -> bool {
        self.core.look(|world| world.leaked)
    }

    /// Returns the times of the typing indicators in a channel.
    #[must_use]
    pub fn typing(&self, channel: &str) -> Vec<Instant> {
        self.core
            .look(|world| world.typing.iter().filter(|(of, _)| of == channel).map(|(_, at)| *at).collect())
    }

    /// Returns the bot's reactions to a message.
    #[must_use]
    pub fn reactions(&self, chat: &str, message: &str) -> Vec<String> {
        self.core.look(|world| {
            let channel = world.place(chat, message).unwrap_or_default();
            world.message(&channel, message).map(|found| found.reactions.clone()).unwrap_or_default()
        })
    }

    /// Returns whether a message of the bot lets Discord fetch its links.
    #[must_use]
    pub fn previews(&self, chat: &str, message: &str) -> bool {
        self.core.look(|world| {
            let channel = world.place(chat, message).unwrap_or_default();
            let shows = |found: &Message| !found.embeds.is_empty() && found.flags & SUPPRESS_EMBEDS == 0;
            world.message(&channel, message).is_ok_and(shows)
        })
    }

    /// Holds the nth call of a method from now on, before or after its effect, until it is released.
    #[must_use]
    pub fn hold(&self, method: &str, nth: u64, when: When) -> Hold<Call> {
        self.core.act(|world| world.books.faults.hold(method, nth, when))
    }

    /// Makes calls of a method fail with a probability between 0 and 1.
    pub fn fail_often(&self, method: &str, chance: f64, fault: Fault) {
        self.core.act(|world| world.books.faults.fail_often(method, chance, fault));
    }

    /// Executes a call in process with the bot's token; returns status and response, nothing if it was cut.
    pub async fn call(&self, verb: &str, path: &str, body: Value) -> (u16, Value) {
        let token = Some(format!("Bot {}", self.options().token));
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let path = path.split('/').map(str::to_owned).collect();
        let query = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let agent = "DiscordBot (https://simulated.example, 1)".to_owned();
        let ask = Ask { verb: verb.to_owned(), path, query, body, files: Vec::new(), token, agent };
        match self.core.call(ask).await {
            Reply::Json(status, body) | Reply::Headed(status, _, body) => (status, body),
            _ => (0, Value::Null),
        }
    }
}

impl Platform for Discord {
    fn name(&self) -> &'static str {
        "discord"
    }

    fn settings(&self) -> String {
        format!("bot_token: {}\napi_url: {}\n", self.options().token, self.url())
    }

    fn person(&self, name: &str) -> String {
        self.core.act(|world| world.add_person(name))
    }

    fn private(&self, person: &str) -> String {
        self.core.look(|world| world.private(person))
    }

    fn group(&self, title: &str, members: &[&str]) -> String {
        self.core.act(|world| world.add_channel(title, members))
    }

    fn write(&self, words: &Words) -> String {
        self.core.act(|world| world.write(words))
    }

    fn edit(&self, chat: &str, message: &str, text: &str) -> bool {
        self.core.act(|world| world.person_edits(chat, message, text))
    }

    fn recall(&self, chat: &str, message: &str) -> bool {
        self.core.act(|world| world.person_recalls(chat, message))
    }

    fn press(&self, chat: &str, person: &str, message: &str, label: &str) -> bool {
        self.core.act(|world| world.press(chat, person, message, label))
    }

    fn shown(&self, chat: &str) -> Vec<Shown> {
        self.core.look(|world| {
            let places = world.with_threads(chat);
            let own = |message: &&Message| {
                message.is_own() && !message.deleted && places.contains(&message.channel)
            };
            world.messages.values().filter(own).map(|message| show(world, chat, message)).collect()
        })
    }

    fn history(&self, _: &str, message: &str) -> Vec<String> {
        self.core.look(|world| {
            let found = message.parse().ok().and_then(|id: u64| world.messages.get(&id));
            found.map(|message| message.history.clone()).unwrap_or_default()
        })
    }

    fn redeliver(&self, chat: &str, message: &str) {
        self.core.act(|world| people::repeat(world, chat, message));
    }

    fn drop_connection(&self) {
        self.to_all(&Frame::Drop);
    }

    /// Events are only stored for sessions that existed before.
    fn hears(&self) -> bool {
        self.core.look(|world| !world.sessions.all.is_empty())
    }

    fn sends(&self) -> &'static [&'static str] {
        &["message.create", "message.edit"]
    }

    /// A file is a message here.
    fn uploads(&self) -> &'static [&'static str] {
        &["message.create"]
    }

    fn unchangeable(&self) -> &'static [(&'static str, u16, &'static str)] {
        &[("message.edit", 403, "50005 Cannot edit a message authored by another user")]
    }

    fn stage(&self) -> &dyn crate::Staged {
        &*self.core
    }
}

fn show(world: &World, chat: &str, message: &Message) -> Shown {
    let files = message.files.iter().filter_map(|id| world.uploads.get(id));
    let label = |button: &Value| button["label"].as_str().unwrap_or_default().to_owned();
    let thread = (message.channel != chat).then(|| message.channel.clone());
    Shown {
        id: message.id.to_string(),
        text: people::seen(world, message),
        growing: message.flags & LOADING != 0,
        buttons: people::buttons(message).map(label).collect(),
        files: files.map(|file| (file.name.clone(), file.bytes.clone())).collect(),
        answers: message.answers.clone().or(thread),
        pings: message.pings,
    }
}

impl fmt::Debug for Discord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Discord")
            .field("url", &self.url())
            .field("served", &self.running.is_some())
            .finish_non_exhaustive()
    }
}
