//! The common interface of all simulated platforms, so that one table of scenarios runs on all. Platform-specific
//! functions are on the handles.

use crate::{Call, Fault, Hook, Outcome, Staged, Timeout, When};
use bytes::Bytes;
use std::time::Duration;
use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};

/// A simulated platform with one bot of ours.
pub trait Platform: Send + Sync {
    /// Returns the platform's name, as in the bot's `type:`.
    fn name(&self) -> &'static str;

    /// Returns the bot's settings: YAML lines `key: value` with credentials and redirected endpoints.
    fn settings(&self) -> String;

    /// Adds a user; returns the platform's ID of them.
    fn person(&self, name: &str) -> String;

    /// Returns the ID of a user's private chat with the bot.
    fn private(&self, person: &str) -> String;

    /// Adds a group with the bot in it.
    fn group(&self, title: &str, members: &[&str]) -> String;

    /// Sends a user's message; returns its ID.
    fn write(&self, words: &Words) -> String;

    /// Edits a user's message. Returns `false` if users cannot edit, or bots do not receive edits.
    fn edit(&self, chat: &str, message: &str, text: &str) -> bool;

    /// Recalls a user's message. Returns `false` if bots do not receive recalls.
    fn recall(&self, chat: &str, message: &str) -> bool;

    /// Presses the button with a label under a message. Returns `false` if there is no such button.
    fn press(&self, chat: &str, person: &str, message: &str, label: &str) -> bool;

    /// Returns the bot's messages in a chat, including threads, in the order of their first appearance.
    fn shown(&self, chat: &str) -> Vec<Shown>;

    /// Returns every text that a message of the bot has shown, in order.
    fn history(&self, chat: &str, message: &str) -> Vec<String>;

    /// Repeats the event of a message, as if the platform had received no answer.
    fn redeliver(&self, chat: &str, message: &str);

    /// Breaks the event connection without a close frame.
    fn drop_connection(&self);

    /// Returns whether the bot will receive events now. Always true for platforms that store events for the bot.
    fn hears(&self) -> bool {
        true
    }

    /// Returns the methods that show or change the bot's messages, by their names in the record: tests plan failures
    /// and kills there.
    fn sends(&self) -> &'static [&'static str];

    /// Returns the methods that upload files.
    fn uploads(&self) -> &'static [&'static str];

    /// Returns the recorded refusals that contain a text.
    fn refusals(&self, words: &str) -> Vec<String> {
        let refused = |call: Call| match call.outcome {
            Outcome::Refused(_, said) if said.contains(words) => Some(said),
            _ => None,
        };
        self.calls("*").into_iter().filter_map(refused).collect()
    }

    /// Returns violations of the platform's documentation by the bot.
    fn misused(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the platform's errors for a message that can never be edited again: method, status and text.
    fn unchangeable(&self) -> &'static [(&'static str, u16, &'static str)];

    /// Returns the platform's state, calls and planned failures.
    fn stage(&self) -> &dyn Staged;

    /// Makes the nth call of a method from now on fail; `*` is any method.
    fn fail(&self, method: &str, nth: u64, fault: Fault) {
        self.stage().fail(method, nth, fault);
    }

    /// Makes all edits of the bot's messages fail from now on.
    fn freeze(&self) {
        for (method, status, words) in self.unchangeable() {
            self.stage().fail_always(method, Fault::Refused(*status, (*words).to_owned()));
        }
    }

    /// Runs a hook at the nth call of a method from now on, before or after its effect.
    fn on_call(&self, method: &str, nth: u64, when: When, hook: Hook<Call>) {
        self.stage().on_call(method, nth, when, hook);
    }

    /// Removes all pending failures and hooks.
    fn heal(&self) {
        self.stage().heal();
    }

    /// Returns the calls of a method, oldest first; `*` is any method.
    fn calls(&self, method: &str) -> Vec<Call> {
        self.stage().calls(method)
    }

    /// Returns a receiver that is notified of changes.
    fn watch(&self) -> watch::Receiver<()> {
        self.stage().watch()
    }
}

/// A user's message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// The chat.
    pub chat: String,
    /// The user.
    pub person: String,
    /// The text.
    pub text: String,
    /// Whether it mentions the bot. Always true in a private chat.
    pub to_bot: bool,
    /// The message that it replies to, or whose thread it belongs to.
    pub answers: Option<String>,
    /// Attached files: names and contents.
    pub files: Vec<(String, Bytes)>,
}

/// A message of the bot, as users see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// The platform's id.
    pub id: String,
    /// The visible text: markup rendered, without buttons and files.
    pub text: String,
    /// Whether the platform shows it as still being written: its stream is open.
    pub growing: bool,
    /// Labels of the buttons.
    pub buttons: Vec<String>,
    /// The files: names and contents.
    pub files: Vec<(String, Bytes)>,
    /// The message that it visibly replies to, or whose thread it belongs to.
    pub answers: Option<String>,
    /// Whether it notifies a user or everyone: a model's text must not.
    pub pings: bool,
}

impl dyn Platform {
    /// Waits until `probe` returns a value, called at each change.
    ///
    /// # Errors
    /// On timeout, with the content of `chat`.
    pub async fn wait<T>(
        &self,
        chat: &str,
        within: Duration,
        mut probe: impl FnMut(&Self) -> Option<T>,
    ) -> Result<T, Timeout> {
        let deadline = Instant::now() + within;
        let mut changed = self.watch();
        loop {
            changed.borrow_and_update();
            if let Some(found) = probe(self) {
                return Ok(found);
            }
            if timeout_at(deadline, changed.changed()).await.is_err() {
                return Err(Timeout::new(within, format!("{:#?}", self.shown(chat))));
            }
        }
    }
}
