//! A Slack workspace with one app, faithful to the documented behavior: Web API, Socket Mode and posted events.
//!
//! The bot talks to [`Slack::url`]; a test controls the users through [`Platform`] and the handle. Deliberately absent:
//! other apps, private channels, group messages, Enterprise Grid and the old real-time API; a call of an unknown
//! method is answered as such and recorded.

mod blocks;
mod chat;
mod core;
mod envelopes;
mod error;
mod files;
mod hook;
mod methods;
mod pace;
mod params;
mod people;
mod play;
mod server;
mod socket;
mod stream;
#[cfg(test)]
mod tests;
mod text;
mod views;
mod wire;
mod world;

pub use views::View;
pub use world::{Options, Status};

use self::{core::Core, envelopes::Frame, params::Params, socket::Link, world::World};
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
};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Handle of a running server. Clones share the server, which stops with the last one.
#[derive(Clone)]
pub struct Slack {
    core: Arc<Core>,
    running: Option<Arc<Running>>,
}

struct Running {
    _server: Server,
    _tasks: DropGuard,
}

impl Slack {
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
        let router = router.merge(server::router(link));
        let server = Server::start(address, router).await?;
        core.act(|world| world.url = format!("http://{}", server.address()));
        tokio::spawn(stop.clone().run_until_cancelled_owned(envelopes::deliver(Arc::clone(&core))));
        tokio::spawn(stop.clone().run_until_cancelled_owned(hook::deliver(Arc::clone(&core))));
        tokio::spawn(stop.clone().run_until_cancelled_owned(files::appear_late(Arc::clone(&core))));
        let running = Running { _server: server, _tasks: stop.drop_guard() };
        Ok(Self { core, running: Some(Arc::new(running)) })
    }

    /// Returns the address to configure as the API's, without a trailing slash.
    #[must_use]
    pub fn url(&self) -> String {
        self.core.look(|world| format!("{}/api", world.url))
    }

    /// Returns the options.
    #[must_use]
    pub fn options(&self) -> Options {
        self.core.look(|world| world.options.clone())
    }

    /// Sets the language of a user's app, such as `zh-CN`.
    pub fn speaks(&self, person: &str, locale: &str) {
        self.core.act(|world| world.locales.insert(person.to_owned(), locale.to_owned()));
    }

    /// Posts events to an address from now on, in place of Socket Mode.
    pub fn post_events(&self, url: &str) {
        self.core.act(|world| world.events_url = Some(url.to_owned()));
    }

    /// Sends a user's command of the app, for example `/pudu`, with arguments.
    pub fn command(&self, chat: &str, person: &str, command: &str, words: &str) -> bool {
        self.core.act(|world| world.command(chat, person, command, words))
    }

    /// Returns the modals of the app, oldest first.
    #[must_use]
    pub fn views(&self) -> Vec<View> {
        self.core.look(|world| world.views.clone())
    }

    /// Submits a modal with values by block: a text, the label of an option, a list of labels, a boolean, the name of a
    /// file, or the state of the block's element.
    pub fn submit(&self, view: &str, values: &Value) -> bool {
        self.core.act(|world| world.submit(view, values))
    }

    /// Announces the end of every connection: `warning`, `refresh_requested` or `link_disabled`, which disables Socket
    /// Mode. After anything but a warning the connection closes.
    pub fn disconnect(&self, reason: &str) {
        self.core.act(|world| {
            world.envelopes.disabled |= reason == "link_disabled";
            let frame = json!({
                "type": "disconnect", "reason": reason, "debug_info": {"host": "applink-simulated-1"},
            });
            for socket in &world.envelopes.sockets {
                socket.frames.try_send(Frame::Text(frame.clone())).ok();
                if reason != "warning" {
                    socket.frames.try_send(Frame::Close).ok();
                }
            }
        });
    }

    /// Sends every connection a frame that the test specifies.
    pub fn frame(&self, frame: &Value) {
        self.core.act(|world| {
            for socket in &world.envelopes.sockets {
                socket.frames.try_send(Frame::Text(frame.clone())).ok();
            }
        });
    }

    /// Tells the bot of an event that the test specifies.
    pub fn event(&self, event: &Value) {
        self.core.act(|world| {
            let id = world.id('E');
            world.tell("events_api", wire::callback(event, &id), false);
        });
    }

    /// Revokes a scope, or restores it.
    pub fn scope(&self, scope: &str, given: bool) {
        self.core.act(|world| {
            if given {
                world.scopes.insert(scope.to_owned())
            } else {
                world.scopes.remove(scope)
            };
        });
    }

    /// Invalidates both tokens: every call is refused with this error.
    pub fn revoke(&self, error: &str) {
        self.core.act(|world| world.revoked = Some(error.to_owned()));
    }

    /// Removes the bot from a channel.
    pub fn kick(&self, chat: &str) {
        self.core.act(|world| {
            if let Some(channel) = world.channels.get_mut(chat) {
                channel.bot_in = false;
            }
        });
    }

    /// Enables or disables the rate limits.
    pub fn pace(&self, on: bool) {
        self.core.act(|world| world.meter.on = on);
    }

    /// Closes all streams, like idle ones.
    pub fn close_streams(&self) {
        self.core.act(stream::close_all);
    }

    /// Returns the bot's statuses by thread; cleared ones have no text.
    #[must_use]
    pub fn statuses(&self) -> Vec<Status> {
        self.core.look(|world| world.statuses.clone())
    }

    /// Returns the bot's reactions to a message.
    #[must_use]
    pub fn reactions(&self, chat: &str, message: &str) -> Vec<String> {
        self.core.look(|world| {
            let found = world.channels.get(chat).and_then(|of| of.message(message));
            found.map(|message| message.reactions.clone()).unwrap_or_default()
        })
    }

    /// Returns the number of unacknowledged events.
    #[must_use]
    pub fn unacknowledged(&self) -> usize {
        self.core.look(World::unacknowledged)
    }

    /// Returns the number of open connections.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.core.look(|world| world.envelopes.sockets.len())
    }

    /// Returns events that were given up after all attempts, or that came without a connection.
    #[must_use]
    pub fn lost(&self) -> Vec<String> {
        self.core.look(|world| world.envelopes.lost.clone())
    }

    /// Returns whether a message of the bot lets Slack fetch its links.
    #[must_use]
    pub fn previews(&self, chat: &str, message: &str) -> bool {
        self.core.look(|world| {
            world
                .channels
                .get(chat)
                .and_then(|of| of.message(message))
                .is_some_and(|message| message.unfurled)
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

    /// Calls a method in process with the bot's token; returns the complete response, `null` if it was cut.
    pub async fn call(&self, method: &str, params: Value) -> Value {
        let token = self.core.look(|world| world.options.bot_token.clone());
        let fields = params.as_object().cloned().unwrap_or_default();
        let mut params = Params::from_record(fields);
        params.json = false;
        match self.core.call(method, Some(&token), params).await {
            Reply::Json(_, body) | Reply::Headed(_, _, body) => body,
            _ => Value::Null,
        }
    }

    /// Returns the platform's signature of a body.
    #[must_use]
    pub fn sign(&self, at: u64, body: &[u8]) -> String {
        hook::sign(&self.options().signing_secret, at, body)
    }
}

impl Platform for Slack {
    fn name(&self) -> &'static str {
        "slack"
    }

    fn settings(&self) -> String {
        let Options { bot_token, app_token, .. } = self.options();
        format!("bot_token: {bot_token}\napp_token: {app_token}\napi_url: {}\n", self.url())
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
            let messages = world.channels.get(chat).map(|of| of.messages.as_slice()).unwrap_or_default();
            let own = messages.iter().filter(|message| methods::is_own(message) && !message.deleted);
            own.map(|message| show(world, message)).collect()
        })
    }

    fn history(&self, chat: &str, message: &str) -> Vec<String> {
        self.core.look(|world| {
            let messages = world.channels.get(chat).map(|of| of.messages.as_slice()).unwrap_or_default();
            let found = messages.iter().find(|other| other.ts == message);
            found.map(|message| message.history.clone()).unwrap_or_default()
        })
    }

    fn redeliver(&self, chat: &str, message: &str) {
        self.core.act(|world| world.repeat(chat, message));
    }

    fn drop_connection(&self) {
        self.core.act(|world| {
            for socket in &world.envelopes.sockets {
                socket.frames.try_send(Frame::Drop).ok();
            }
        });
    }

    fn sends(&self) -> &'static [&'static str] {
        &["chat.postMessage", "chat.update", "chat.startStream", "chat.appendStream", "chat.stopStream"]
    }

    fn uploads(&self) -> &'static [&'static str] {
        &["files.getUploadURLExternal"]
    }

    fn unchangeable(&self) -> &'static [(&'static str, u16, &'static str)] {
        &[
            ("chat.update", 200, "edit_window_closed"),
            ("chat.appendStream", 200, "message_not_in_streaming_state"),
            ("chat.stopStream", 200, "message_not_in_streaming_state"),
        ]
    }

    fn stage(&self) -> &dyn crate::Staged {
        &*self.core
    }
}

fn show(world: &World, message: &world::Message) -> Shown {
    let files = message.files.iter().filter_map(|id| world.files.get(id));
    Shown {
        id: message.ts.clone(),
        text: text::visible(world, message),
        growing: stream::growing(world, message),
        buttons: blocks::buttons(&message.blocks).map(|(says, _)| says.to_owned()).collect(),
        files: files.map(|file| (file.name.clone(), file.bytes.clone())).collect(),
        answers: message.thread.clone(),
        pings: text::pings(message),
    }
}

impl fmt::Debug for Slack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slack")
            .field("url", &self.url())
            .field("served", &self.running.is_some())
            .finish_non_exhaustive()
    }
}
