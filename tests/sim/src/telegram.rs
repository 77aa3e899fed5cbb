//! A Telegram Bot API server with one bot, faithful to the documented behavior.
//!
//! The bot talks to [`Telegram::url`]; a test controls the users through the handle, reads their chats ([`View`]) and
//! makes calls fail ([`Fault`], [`Telegram::on_call`], [`Telegram::hold`]). Deliberately absent: channels, members'
//! rights, inline mode, the Markdown parse modes, stickers and other media, and the methods that need them; a call of
//! one is answered as an unknown method.

mod control;
mod core;
mod edit;
mod entity;
mod error;
mod files;
mod html;
mod methods;
mod pace;
mod params;
mod people;
mod platform;
mod send;
mod server;
#[cfg(test)]
mod tests;
mod types;
mod updates;
mod view;
mod webhook;
mod wire;
mod world;

pub use crate::{
    calls::{Call, Outcome},
    fault::{Fault, When},
};
pub use entity::Entity;
pub use pace::{Pace, Paces};
pub use people::{Impossible, Post};
pub use types::{Author, Button, ChatId, File, Kind, MessageId, Shown, UpdateId, Upload, UserId};
pub use view::{Seen, View};
use world::World;
pub use world::{Options, Press};

use self::{core::Core, params::Params, types::Access};
use crate::{Hold, Hook, Timeout, gate::Stop, http::Server, stage::Reply};
use axum::{extract::Request, response::Response};
use std::{
    fmt, io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};
use tokio::time::{Instant, sleep_until, timeout_at};

/// Handle of a running server. Clones share the server, which stops with the last one.
#[derive(Clone)]
pub struct Telegram {
    core: Arc<Core>,
    server: Arc<Server>,
}

impl Telegram {
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
        let router = control::router(Arc::clone(&core)).merge(server::router(Arc::clone(&core)));
        let server = Server::start(address, router).await?;
        tokio::spawn(server.stopped().run_until_cancelled_owned(webhook::deliver(Arc::clone(&core))));
        Ok(Self { core, server: Arc::new(server) })
    }

    /// Makes a server without a socket and without webhooks, for [`Self::answer`].
    #[must_use]
    pub fn in_memory(options: Options) -> Self {
        let core = Arc::new(Core::new(World::new(options)));
        let server = Arc::new(Server::in_memory(server::router(Arc::clone(&core))));
        Self { core, server }
    }

    /// Answers a request in memory. `None` if the connection would close without a response.
    pub async fn answer(&self, request: Request) -> Option<Response> {
        self.server.answer(request).await
    }

    /// Returns the address to configure as the API's, without a trailing slash.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// Returns the bot's token.
    #[must_use]
    pub fn token(&self) -> String {
        self.core.look(|world| world.options.token.clone())
    }

    /// Changes the bot's token; the previous one becomes invalid.
    pub fn rotate(&self, token: &str) {
        self.core.act(|world| token.clone_into(&mut world.options.token));
    }

    /// Adds a user with a private chat with the bot.
    pub fn add_person(&self, name: &str, username: Option<&str>) -> UserId {
        self.core.act(|world| world.add_person(name, username))
    }

    /// Sets the language of a user's app, such as `zh-hans`.
    pub fn speaks(&self, person: UserId, language: &str) {
        self.core.act(|world| {
            if let Some(user) = world.users.get_mut(&person) {
                language.clone_into(&mut user.language);
            }
        });
    }

    /// Returns a user's private chat.
    #[must_use]
    pub fn private(&self, person: UserId) -> ChatId {
        ChatId(person.0)
    }

    /// Adds a group of this kind with the bot.
    pub fn add_group(&self, kind: Kind, title: &str, members: &[UserId]) -> ChatId {
        self.core.act(|world| world.add_chat(kind, title, members))
    }

    /// Opens a topic in a forum.
    ///
    /// # Errors
    /// When the chat is not a forum.
    pub fn open_topic(&self, chat: ChatId, name: &str) -> Result<MessageId, Impossible> {
        self.core.act(|world| world.open_topic(chat, name))
    }

    /// Sends a user's text.
    ///
    /// # Errors
    /// When the user is not in the chat.
    pub fn say(&self, chat: ChatId, person: UserId, text: &str) -> Result<MessageId, Impossible> {
        let ids = self.post(chat, person, &Post::text(text))?;
        ids.first().copied().ok_or(Impossible::Chat(chat))
    }

    /// Sends a user's post: one message per file, or one.
    ///
    /// # Errors
    /// When the user is not in the chat, or a referenced message does not exist.
    pub fn post(&self, chat: ChatId, person: UserId, post: &Post) -> Result<Vec<MessageId>, Impossible> {
        self.core.act(|world| world.say(chat, person, post))
    }

    /// Edits a user's message.
    ///
    /// # Errors
    /// When it does not exist, or is the bot's.
    pub fn edit(&self, chat: ChatId, message: MessageId, text: &str) -> Result<(), Impossible> {
        self.core.act(|world| world.person_edits(chat, message, text))
    }

    /// Deletes a user's message, without an event for the bot.
    ///
    /// # Errors
    /// When it does not exist.
    pub fn delete(&self, chat: ChatId, message: MessageId) -> Result<(), Impossible> {
        self.core.act(|world| world.person_deletes(chat, message))
    }

    /// Presses the button with this label or value; returns the query's ID.
    ///
    /// # Errors
    /// When there is no such button.
    pub fn press(
        &self,
        chat: ChatId,
        person: UserId,
        message: MessageId,
        button: &str,
    ) -> Result<String, Impossible> {
        self.core.act(|world| world.press(chat, person, message, button))
    }

    /// Lets a user block the bot.
    ///
    /// # Errors
    /// When there is no such chat.
    pub fn block(&self, person: UserId) -> Result<(), Impossible> {
        self.core.act(|world| world.set_access(self.private(person), Access::Blocked))
    }

    /// Removes the bot from a group.
    ///
    /// # Errors
    /// When there is no such chat.
    pub fn kick(&self, group: ChatId) -> Result<(), Impossible> {
        self.core.act(|world| world.set_access(group, Access::Kicked))
    }

    /// Converts a group to a supergroup; returns the new chat.
    ///
    /// # Errors
    /// When the chat is not a basic group.
    pub fn migrate(&self, group: ChatId) -> Result<ChatId, Impossible> {
        self.core.act(|world| world.migrate(group))
    }

    /// Calls a method in process, without HTTP; returns the complete response, `null` if it was cut.
    pub async fn call(&self, method: &str, params: serde_json::Value) -> serde_json::Value {
        let fields = params.as_object().cloned().unwrap_or_default();
        match self.core.call(method, Params::from_json(fields)).await {
            Reply::Json(_, body) => body,
            _ => serde_json::Value::Null,
        }
    }

    /// Queues an update that the test specifies, for kinds that users here cannot cause.
    pub fn update(&self, chat: ChatId, kind: &str, what: &serde_json::Value) -> Option<UpdateId> {
        self.core.act(|world| world.updates.push(chat, kind, what, Instant::now()))
    }

    /// Returns the number of the newest update.
    #[must_use]
    pub fn last_update(&self) -> Option<UpdateId> {
        self.core.look(|world| world.updates.newest())
    }

    /// Returns the update of a message; `None` if there was none, or long ago.
    #[must_use]
    pub fn update_of(&self, chat: ChatId, message: MessageId) -> Option<UpdateId> {
        self.core.look(|world| world.updates.of(chat, message))
    }

    /// Repeats an update with its old number, even if it was confirmed. Returns `false` if it is unknown.
    pub fn redeliver(&self, update: UpdateId) -> bool {
        self.core.act(|world| world.updates.repeat(update, Instant::now()))
    }

    /// Sets the rate limits.
    pub fn pace(&self, paces: Paces) {
        self.core.act(|world| world.meter.paces = paces);
    }

    /// Makes the next call of a method fail; `*` is any method, and `download` is downloading a file.
    pub fn fail_next(&self, method: &str, fault: Fault) {
        self.fail_nth(method, 1, fault);
    }

    /// Makes the nth call of a method from now on fail, counted from 1.
    pub fn fail_nth(&self, method: &str, nth: u64, fault: Fault) {
        self.core.act(|world| world.books.faults.fail_nth(method, nth, fault));
    }

    /// Makes calls of a method fail with a probability between 0 and 1, by the seed in the options.
    pub fn fail_often(&self, method: &str, chance: f64, fault: Fault) {
        self.core.act(|world| world.books.faults.fail_often(method, chance, fault));
    }

    /// Runs a hook at the nth call of a method from now on, before or after its effect.
    pub fn on_call(&self, method: &str, nth: u64, when: When, hook: Hook<Call>) {
        self.core.act(|world| world.books.faults.stop(method, nth, when, Stop::Hook(hook)));
    }

    /// Holds the nth call of a method from now on, before or after its effect, until it is released.
    #[must_use]
    pub fn hold(&self, method: &str, nth: u64, when: When) -> Hold<Call> {
        self.core.act(|world| world.books.faults.hold(method, nth, when))
    }

    /// Removes all pending failures, hooks and holds.
    pub fn heal(&self) {
        self.core.act(|world| world.books.faults.clear());
    }

    /// Reads the current state of the platform.
    pub fn look<T>(&self, read: impl FnOnce(&View<'_>) -> T) -> T {
        self.core.look(|world| read(&View { world }))
    }

    /// Returns the current messages of a chat.
    #[must_use]
    pub fn transcript(&self, chat: ChatId) -> Vec<Seen> {
        self.look(|view| view.transcript(chat))
    }

    /// Returns all texts that a message has shown.
    #[must_use]
    pub fn history(&self, chat: ChatId, message: MessageId) -> Vec<Shown> {
        self.look(|view| view.history(chat, message))
    }

    /// Returns the calls of a method, oldest first; `*` is any method.
    #[must_use]
    pub fn calls(&self, method: &str) -> Vec<Call> {
        self.look(|view| {
            view.calls().filter(|call| method == "*" || call.method == method).cloned().collect()
        })
    }

    /// Returns the number of calls of a method.
    #[must_use]
    pub fn count(&self, method: &str) -> u64 {
        self.look(|view| view.count(method))
    }

    /// Waits until `probe` returns a value; it is called after every change.
    ///
    /// # Errors
    /// On timeout, with the current state.
    pub async fn wait<T>(
        &self,
        within: Duration,
        mut probe: impl FnMut(&View<'_>) -> Option<T>,
    ) -> Result<T, Timeout> {
        let deadline = Instant::now() + within;
        let mut changed = self.core.watch();
        loop {
            changed.borrow_and_update();
            if let Some(found) = self.look(&mut probe) {
                return Ok(found);
            }
            let fading = self.core.look(|world| world.next_fading(Instant::now()));
            let change = async {
                tokio::select! {
                    _ = changed.changed() => {}
                    () = sleep_until(fading.unwrap_or(deadline)), if fading.is_some() => {}
                }
            };
            if timeout_at(deadline, change).await.is_err() {
                return Err(self.look(|view| Timeout::new(within, view)));
            }
        }
    }

    /// Waits until the bot's last message in a chat has this text.
    ///
    /// # Errors
    /// On timeout, with the current state.
    pub async fn wait_answer(&self, chat: ChatId, text: &str, within: Duration) -> Result<(), Timeout> {
        self.wait(within, |view| (view.last_answer(chat) == Some(text)).then_some(())).await
    }
}

impl fmt::Debug for Telegram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Telegram").field("url", &self.url()).finish_non_exhaustive()
    }
}
