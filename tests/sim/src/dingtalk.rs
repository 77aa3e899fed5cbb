//! A DingTalk server with one app and its robot, faithful to the documented behavior: both hosts, the stream, session
//! webhooks and cards on one port.
//!
//! The bot talks to [`DingTalk::url`]; a test controls the users through [`Platform`] and causes failures through the
//! handle. Deliberately absent: HTTP callbacks, interactive cards of the older kind, pinned cards, work notices,
//! contacts, and every API that a chat bot does not need; a call of one is answered as unknown.

mod cards;
mod error;
mod files;
mod people;
mod robot;
mod server;
mod session;
mod stream;
mod view;
mod world;

use crate::{
    Call, Hold, When, control,
    http::Server,
    platform::{Platform, Shown, Words},
    stage::Stage,
};
use axum::{Json, Router, routing::post};
use serde_json::{Value, json};
use std::{
    fmt, io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};
use tokio::time::{Instant, sleep};
use tokio_util::sync::{CancellationToken, DropGuard};
use world::World;
pub use world::{Options, Standing};

/// Internals of the server.
pub(crate) type Core = Stage<World>;

/// Handle of a running server. Clones share the server, which stops with the last one.
#[derive(Clone)]
pub struct DingTalk {
    core: Arc<Core>,
    /// `None` in the handle of the server's own control, which must not keep the server alive.
    _running: Option<Arc<Running>>,
}

/// Resources that end with the last handle.
struct Running {
    _server: Server,
    /// Ends the sockets and the courier, which outlive their requests.
    _stop: DropGuard,
}

impl DingTalk {
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
        let people: Arc<dyn Platform> = Arc::new(Self { core: Arc::clone(&core), _running: None });
        let router = control::router(people)
            .merge(special(&core))
            .merge(server::router(Arc::clone(&core), stop.clone()));
        let server = Server::start(address, router).await?;
        core.lock().url = format!("http://{}", server.address());
        tokio::spawn(stop.clone().run_until_cancelled_owned(stream::courier(Arc::clone(&core))));
        let running = Running { _server: server, _stop: stop.drop_guard() };
        Ok(Self { core, _running: Some(Arc::new(running)) })
    }

    /// Returns the address to configure for both hosts, without a trailing slash.
    #[must_use]
    pub fn url(&self) -> String {
        self.core.look(|world| world.url.clone())
    }

    /// Returns the options.
    #[must_use]
    pub fn options(&self) -> Options {
        self.core.look(|world| world.options.clone())
    }

    /// Adds a user from outside the organization: without a staff ID, robot messages cannot reach them.
    pub fn outsider(&self, name: &str) -> String {
        self.core.act(|world| world.add_person(name, false))
    }

    /// Sets the fate of messages that the robot sends to a user.
    pub fn standing(&self, person: &str, standing: Standing) {
        self.core.act(|world| {
            let found = world.people.iter_mut().filter(|one| one.id() == person);
            found.for_each(|one| one.standing = standing);
        });
    }

    /// Sends a user's message with a custom body, for kinds that users here cannot cause.
    pub fn post(&self, words: &Words, body: &Value) -> String {
        self.core.act(|world| world.post(words, body))
    }

    /// Tells the bot of an event that the test specifies.
    pub fn tell(&self, kind: &'static str, topic: &'static str, data: Value) {
        self.core.act(|world| {
            let of = format!("own-{}", world.fresh());
            world.tell(kind, topic, &of, data);
        });
    }

    /// Announces the end of the sockets; the platform is silent on them from now on.
    pub fn disconnect(&self) {
        self.core.act(World::disconnect);
    }

    /// Pings every socket.
    pub fn ping(&self) {
        self.core.act(World::ping_now);
    }

    /// Stops all traffic on open sockets, like a lost route.
    pub fn freeze(&self) {
        self.core.act(World::freeze_links);
    }

    /// Returns the number of sockets that accept events.
    #[must_use]
    pub fn sockets(&self) -> usize {
        self.core.look(|world| world.links.len())
    }

    /// Returns the number of unacknowledged events.
    #[must_use]
    pub fn unacknowledged(&self) -> usize {
        self.core.look(|world| world.deliveries.len())
    }

    /// Sets the time after which an unacknowledged event is repeated; `None` is never.
    pub fn repeat(&self, after: Option<Duration>) {
        self.core.act(|world| world.options.repeat = after);
    }

    /// Revokes a permission of the app, or restores it.
    pub fn permit(&self, scope: &str, given: bool) {
        self.core.act(
            |world| {
                if given { world.lost.remove(scope) } else { world.lost.insert(scope.to_owned()) }
            },
        );
    }

    /// Limits the calls of one API per second; `None` is unlimited.
    pub fn limit_qps(&self, most: Option<u32>) {
        self.core.act(|world| world.qps = most);
    }

    /// Limits the remaining calls of the month; `None` is unlimited.
    pub fn limit_month(&self, left: Option<u64>) {
        self.core.act(|world| world.month = left);
    }

    /// Bans the bot's address, or lifts the ban.
    pub fn ban(&self, banned: bool) {
        self.core.act(|world| world.banned = banned);
    }

    /// Makes the delivery of the next `count` cards fail, with HTTP 200.
    pub fn lose_cards(&self, count: u32) {
        self.core.act(|world| world.undelivered = count);
    }

    /// Limits the characters of a card; `None` is unlimited.
    pub fn limit_card(&self, most: Option<usize>) {
        self.core.act(|world| world.card_limit = most);
    }

    /// Permanently refuses texts that contain a word.
    pub fn forbid(&self, word: &str) {
        self.core.act(|world| world.taboo = Some(word.to_owned()));
    }

    /// Invalidates the current access token.
    pub fn expire_token(&self) {
        self.core.act(|world| world.token = None);
    }

    /// Invalidates all session webhooks.
    pub fn expire_sessions(&self) {
        self.core.act(|world| world.sessions.clear());
    }

    /// Changes the app's secret.
    pub fn change_secret(&self, secret: &str) {
        self.core.act(|world| world.options.client_secret = secret.to_owned());
    }

    /// Holds the nth call of a method from now on, before or after its effect, until it is released.
    #[must_use]
    pub fn hold(&self, method: &str, nth: u64, when: When) -> Hold<Call> {
        self.core.act(|world| world.books.faults.hold(method, nth, when))
    }

    /// Returns the number of calls of a method.
    #[must_use]
    pub fn count(&self, method: &str) -> u64 {
        self.core.look(|world| world.books.calls.count(method))
    }

    /// Waits until a socket without an announced end is open. Returns `false` on timeout.
    pub async fn renewed(&self, within: Duration) -> bool {
        let deadline = Instant::now() + within;
        while self.core.look(|world| world.lasting_links()) == 0 {
            if Instant::now() >= deadline {
                return false;
            }
            sleep(Duration::from_millis(10)).await;
        }
        true
    }

    /// Waits until a socket that accepts events is open. Returns `false` on timeout.
    pub async fn connected(&self, within: Duration) -> bool {
        let deadline = Instant::now() + within;
        while self.sockets() == 0 {
            if Instant::now() >= deadline {
                return false;
            }
            sleep(Duration::from_millis(10)).await;
        }
        true
    }
}

impl fmt::Debug for DingTalk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DingTalk").field("url", &self.url()).finish_non_exhaustive()
    }
}

/// DingTalk-specific controls over HTTP.
fn special(core: &Arc<Core>) -> Router {
    let act = |change: fn(&mut World)| {
        let core = Arc::clone(core);
        post(async move || {
            core.act(change);
            Json(json!({}))
        })
    };
    Router::new()
        .route("/sim/disconnect", act(World::disconnect))
        .route("/sim/freeze", act(World::freeze_links))
        .route("/sim/expire", act(|world| world.token = None))
}

/// Methods that show or change messages.
const SENDS: [&str; 6] = [
    "robot/oToMessages/batchSend",
    "robot/groupMessages/send",
    "sessionWebhook",
    "card/instances/createAndDeliver",
    "card/streaming",
    "card/instances",
];

impl Platform for DingTalk {
    fn name(&self) -> &'static str {
        "dingtalk"
    }

    fn settings(&self) -> String {
        self.core.look(|world| {
            let (options, url) = (&world.options, &world.url);
            let mut lines = format!(
                "client_id: {}\nclient_secret: {}\napi_url: {url}\noapi_url: {url}\n",
                options.client_id, options.client_secret
            );
            if options.cards {
                lines.push_str(&format!(
                    "card_template_id: {}\ncard_content_key: {}\ncard_buttons_key: {}\nstream_interval_ms: 200\n",
                    options.template, options.content_key, options.buttons_key
                ));
            }
            lines
        })
    }

    fn person(&self, name: &str) -> String {
        self.core.act(|world| world.add_person(name, true))
    }

    fn private(&self, person: &str) -> String {
        person.to_owned()
    }

    fn group(&self, title: &str, members: &[&str]) -> String {
        self.core.act(|world| world.add_group(title, members))
    }

    fn write(&self, words: &Words) -> String {
        self.core.act(|world| world.write(words))
    }

    fn edit(&self, _: &str, _: &str, _: &str) -> bool {
        false
    }

    fn recall(&self, _: &str, _: &str) -> bool {
        false
    }

    fn press(&self, chat: &str, person: &str, message: &str, label: &str) -> bool {
        self.core.act(|world| cards::press(world, chat, person, message, label))
    }

    fn shown(&self, chat: &str) -> Vec<Shown> {
        self.core.look(|world| view::shown(world, chat))
    }

    fn history(&self, chat: &str, message: &str) -> Vec<String> {
        self.core.look(|world| view::history(world, chat, message))
    }

    fn redeliver(&self, _: &str, message: &str) {
        self.core.act(|world| world.tell_again(message));
    }

    fn drop_connection(&self) {
        self.core.act(World::cut_links);
    }

    fn sends(&self) -> &'static [&'static str] {
        &SENDS
    }

    fn uploads(&self) -> &'static [&'static str] {
        &["media/upload"]
    }

    fn misused(&self) -> Vec<String> {
        self.refusals("param.cardFinished")
    }

    fn unchangeable(&self) -> &'static [(&'static str, u16, &'static str)] {
        &[("card/streaming", 400, "param.cardExpired"), ("card/instances", 400, "param.cardExpired")]
    }

    fn stage(&self) -> &dyn crate::Staged {
        &*self.core
    }
}
