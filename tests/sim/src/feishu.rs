//! A Feishu (Lark) open platform with one self-built app and its bot, faithful to the documented behavior.
//!
//! The bot talks to [`Feishu::url`]: REST, the long connection with its binary frames, CardKit. A test controls the
//! users through [`Platform`](crate::Platform), and platform-specific events through this handle: a missing scope, an
//! expired token, reordered fragments, an admin who removes the bot. Deliberately absent: user tokens, store apps,
//! documents, calendars and everything else outside of chats; such a call is recorded as `unknown` and refused.

mod ask;
mod cards;
mod content;
mod control;
mod deliver;
mod events;
mod files;
mod frame;
mod markdown;
mod messages;
mod pace;
mod people;
mod platform;
mod refusal;
mod routes;
mod server;
mod socket;
#[cfg(test)]
mod tests;
mod token;
mod types;
mod webhook;
mod wire;
mod world;

pub use deliver::{Chunks, Order};
pub use people::Said;
pub use types::{Press, Reaction};
pub use webhook::{Encrypted, seal, signature};
pub use world::Options;

use crate::{Hold, Platform, When, http::Server, stage::Stage};
use std::{
    fmt, io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};
use tokio_util::sync::{CancellationToken, DropGuard};
use world::World;

/// Internals of the server.
type Core = Stage<World>;

/// Handle of a running server. Clones share the server, which stops with the last one.
#[derive(Clone)]
pub struct Feishu {
    core: Arc<Core>,
    /// Resources that end with the last handle. `None` in the server's own handle, which controls users over HTTP.
    _life: Option<Arc<(Server, DropGuard)>>,
}

impl Feishu {
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
        let people = Self { core: Arc::clone(&core), _life: None };
        let end = CancellationToken::new();
        let router = crate::control::router(Arc::new(people.clone()))
            .merge(control::router(people))
            .merge(server::router(Arc::clone(&core), end.clone()));
        let server = Server::start(address, router).await?;
        core.act(|world| world.url = format!("http://{}", server.address()));
        tokio::spawn(end.clone().run_until_cancelled_owned(deliver::run(Arc::clone(&core))));
        Ok(Self { core, _life: Some(Arc::new((server, end.drop_guard()))) })
    }

    /// Returns the address to configure as `domain`, without a trailing slash.
    #[must_use]
    pub fn url(&self) -> String {
        self.core.look(|world| world.url.clone())
    }

    /// Returns the app's ID.
    #[must_use]
    pub fn app_id(&self) -> String {
        self.core.look(|world| world.options.app_id.clone())
    }

    /// Returns the app's secret.
    #[must_use]
    pub fn app_secret(&self) -> String {
        self.core.look(|world| world.options.app_secret.clone())
    }

    /// Returns the bot's ID.
    #[must_use]
    pub fn bot(&self) -> String {
        self.core.look(|world| world.bot.clone())
    }

    /// Adds a group in which every message opens a topic.
    pub fn topics(&self, title: &str, members: &[&str]) -> String {
        self.core.act(|world| world.add_group(types::Kind::Topics, title, members))
    }

    /// Adds a group that shows its messages as topics, without telling so in events.
    pub fn threads(&self, title: &str, members: &[&str]) -> String {
        self.core.act(|world| world.add_group(types::Kind::Threads, title, members))
    }

    /// Permanently refuses texts that contain a word.
    pub fn forbid(&self, word: &str) {
        self.core.act(|world| world.taboo = Some(word.to_owned()));
    }

    /// Sends a user's message of any kind, including mentions; returns its ID.
    pub fn say(&self, said: &Said) -> String {
        self.core.act(|world| world.say(said))
    }

    /// Sends an event that the test specifies; returns its ID.
    pub fn event(&self, kind: &str, event: &serde_json::Value) -> String {
        self.core.act(|world| world.tell(kind, event))
    }

    /// Revokes a scope of the app.
    pub fn take_scope(&self, scope: &str) {
        self.core.act(|world| world.missing.insert(scope.to_owned()));
    }

    /// Restores a scope of the app.
    pub fn give_scope(&self, scope: &str) {
        self.core.act(|world| world.missing.remove(scope));
    }

    /// Refuses all issued tokens from now on, with this code.
    pub fn revoke_tokens(&self, code: i64) {
        self.core.act(|world| world.tokens.revoke(code));
    }

    /// Refuses every call for a chat with this code from now on; 0 reopens it.
    pub fn close_chat(&self, chat: &str, code: i64) {
        self.core.act(|world| world.close_chat(chat, code));
    }

    /// Enables or disables the documented rate limits.
    pub fn pace(&self, on: bool) {
        self.core.act(|world| world.meter.on = on);
    }

    /// Sets how events are split into fragments from now on.
    pub fn chunks(&self, chunks: Chunks) {
        self.core.act(|world| world.chunks = chunks);
    }

    /// Sets the interval of pings in seconds, sent in every pong from now on.
    pub fn ping_interval(&self, seconds: i64) {
        self.core.act(|world| world.options.ping_interval = seconds);
    }

    /// Stops answering pings and sending events, while the connections stay open.
    pub fn deaf(&self, deaf: bool) {
        self.core.act(|world| world.deaf = deaf);
    }

    /// Closes a card's stream as the platform does after ten minutes.
    pub fn expire_streams(&self) {
        self.core.act(|world| world.cards.values_mut().for_each(types::Card::expire));
    }

    /// Posts events to this address, sealed and signed, in place of the long connection.
    pub fn webhook(&self, url: Option<String>) {
        self.core.act(|world| world.webhook = url);
    }

    /// Submits the form of a message by its button, with values by input.
    pub fn submit(
        &self,
        chat: &str,
        person: &str,
        message: &str,
        label: &str,
        values: &serde_json::Value,
    ) -> bool {
        self.core.act(|world| world.press_with(chat, person, message, label, Some(values)))
    }

    /// Returns the pressed buttons with the bot's responses, oldest first.
    #[must_use]
    pub fn presses(&self) -> Vec<Press> {
        self.core.look(|world| world.presses.clone())
    }

    /// Returns the bot's reactions to a message, oldest first.
    #[must_use]
    pub fn reactions(&self, message: &str) -> Vec<Reaction> {
        self.core.look(|world| world.messages.get(message).map_or_else(Vec::new, |one| one.reactions.clone()))
    }

    /// Returns the client's violations of the protocol, as sentences.
    #[must_use]
    pub fn violations(&self) -> Vec<String> {
        self.core.look(|world| world.violations.clone())
    }

    /// Returns the number of received pings.
    #[must_use]
    pub fn pings(&self) -> u64 {
        self.core.look(|world| world.pings)
    }

    /// Returns the number of open long connections.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.core.look(|world| world.connections.len())
    }

    /// Returns a message's preview in the list of chats: the summary of a card.
    #[must_use]
    pub fn preview(&self, message: &str) -> String {
        self.core.look(|world| world.preview(message))
    }

    /// Returns the number of events that wait for their acknowledgement or their next delivery.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.core.look(|world| world.events.waiting())
    }

    /// Holds the nth call of a method from now on, before or after its effect, until it is released.
    #[must_use]
    pub fn hold(&self, method: &str, nth: u64, when: When) -> Hold<crate::Call> {
        self.core.act(|world| world.books.faults.hold(method, nth, when))
    }

    /// Waits until a probe returns a value, called at each change.
    ///
    /// # Errors
    /// On timeout, with the content of the chat.
    pub async fn wait<T>(
        &self,
        chat: &str,
        within: Duration,
        probe: impl FnMut(&(dyn Platform + 'static)) -> Option<T>,
    ) -> Result<T, crate::Timeout> {
        let platform: &(dyn Platform + 'static) = self;
        platform.wait(chat, within, probe).await
    }
}

impl fmt::Debug for Feishu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feishu").field("url", &self.url()).finish_non_exhaustive()
    }
}
