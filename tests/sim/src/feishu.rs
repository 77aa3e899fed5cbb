//! A Feishu (Lark) open platform with one self-built app and its bot, true to the documented behaviour.
//!
//! The bot talks to [`Feishu::url`]: REST, the long connection with its binary frames, CardKit. A test plays
//! the people through [`Platform`](crate::Platform), and through this handle does what only this platform
//! has: a scope that is missing, a token that dies, fragments that come out of order, an admin who throws the
//! bot out. Deliberately absent: user tokens, store apps, documents, calendars and all else that is no chat; a
//! call of those is recorded as `unknown` and refused.

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

/// The server's inside.
type Core = Stage<World>;

/// The handle of a running server. Clones are the same server; it ends with the last.
#[derive(Clone)]
pub struct Feishu {
    core: Arc<Core>,
    /// What ends with the last handle. The server's own handle, by which people act over HTTP, has none.
    _life: Option<Arc<(Server, DropGuard)>>,
}

impl Feishu {
    /// Starts a server on a free port of loopback.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn start(options: Options) -> io::Result<Self> {
        Self::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), options).await
    }

    /// Starts a server on a given address.
    ///
    /// # Errors
    /// When the address cannot be had.
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

    /// The address to configure as `domain`, without a slash at the end.
    #[must_use]
    pub fn url(&self) -> String {
        self.core.look(|world| world.url.clone())
    }

    /// The app's id.
    #[must_use]
    pub fn app_id(&self) -> String {
        self.core.look(|world| world.options.app_id.clone())
    }

    /// The app's secret.
    #[must_use]
    pub fn app_secret(&self) -> String {
        self.core.look(|world| world.options.app_secret.clone())
    }

    /// The bot's own id.
    #[must_use]
    pub fn bot(&self) -> String {
        self.core.look(|world| world.bot.clone())
    }

    /// Adds a group in which every message opens a topic.
    pub fn topics(&self, title: &str, members: &[&str]) -> String {
        self.core.act(|world| world.add_group(types::Kind::Topics, title, members))
    }

    /// Adds a group that shows its messages as topics, which its events do not tell.
    pub fn threads(&self, title: &str, members: &[&str]) -> String {
        self.core.act(|world| world.add_group(types::Kind::Threads, title, members))
    }

    /// Lets nobody say a word any more: what holds it is refused for good.
    pub fn forbid(&self, word: &str) {
        self.core.act(|world| world.taboo = Some(word.to_owned()));
    }

    /// A person sends a message of any kind, mentions and all; returns its id.
    pub fn say(&self, said: &Said) -> String {
        self.core.act(|world| world.say(said))
    }

    /// The bot is told of an event of a test's own making; returns the event's id.
    pub fn event(&self, kind: &str, event: &serde_json::Value) -> String {
        self.core.act(|world| world.tell(kind, event))
    }

    /// The app loses a scope, as when an admin takes it away.
    pub fn take_scope(&self, scope: &str) {
        self.core.act(|world| world.missing.insert(scope.to_owned()));
    }

    /// The app has a scope again.
    pub fn give_scope(&self, scope: &str) {
        self.core.act(|world| world.missing.remove(scope));
    }

    /// All tokens that were given out are refused from now on, with this code.
    pub fn revoke_tokens(&self, code: i64) {
        self.core.act(|world| world.tokens.revoke(code));
    }

    /// Every call that concerns a chat is refused with this code from now on; 0 opens it again.
    pub fn close_chat(&self, chat: &str, code: i64) {
        self.core.act(|world| world.close_chat(chat, code));
    }

    /// Switches the documented rate limits on or off.
    pub fn pace(&self, on: bool) {
        self.core.act(|world| world.meter.on = on);
    }

    /// How events are cut into fragments from now on.
    pub fn chunks(&self, chunks: Chunks) {
        self.core.act(|world| world.chunks = chunks);
    }

    /// The interval of pings in seconds, told in every pong from now on.
    pub fn ping_interval(&self, seconds: i64) {
        self.core.act(|world| world.options.ping_interval = seconds);
    }

    /// The platform stops answering pings and sending events, though the connections stay open.
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

    /// The buttons that were pressed, oldest first, with the bot's answers.
    #[must_use]
    pub fn presses(&self) -> Vec<Press> {
        self.core.look(|world| world.presses.clone())
    }

    /// What the bot put on a message: emoji, oldest first.
    #[must_use]
    pub fn reactions(&self, message: &str) -> Vec<Reaction> {
        self.core.look(|world| world.messages.get(message).map_or_else(Vec::new, |one| one.reactions.clone()))
    }

    /// What the client did that the protocol does not allow: each a sentence.
    #[must_use]
    pub fn violations(&self) -> Vec<String> {
        self.core.look(|world| world.violations.clone())
    }

    /// How many pings came.
    #[must_use]
    pub fn pings(&self) -> u64 {
        self.core.look(|world| world.pings)
    }

    /// How many long connections are open.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.core.look(|world| world.connections.len())
    }

    /// The short text by which the list of chats tells of a message: of a card, its summary.
    #[must_use]
    pub fn preview(&self, message: &str) -> String {
        self.core.look(|world| world.preview(message))
    }

    /// How many events wait for their acknowledgement or their next delivery.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.core.look(|world| world.events.waiting())
    }

    /// Stops the nth call of a method from now on, before or after its effect, until it is let go.
    #[must_use]
    pub fn hold(&self, method: &str, nth: u64, when: When) -> Hold<crate::Call> {
        self.core.act(|world| world.books.faults.hold(method, nth, when))
    }

    /// Waits until a probe finds something, looking at each change.
    ///
    /// # Errors
    /// When it does not in time, with what the chat shows instead.
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
