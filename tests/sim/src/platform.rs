//! What a test needs of any simulated platform, in words that all of them share, so that one table of
//! scenarios runs on all. What only one platform has is asked of its own handle.

use crate::{Call, Fault, Hook, Outcome, Staged, Timeout, When};
use bytes::Bytes;
use std::time::Duration;
use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};

/// A simulated platform with one bot of ours.
pub trait Platform: Send + Sync {
    /// The platform's name, as `type:` of an account names it.
    fn name(&self) -> &'static str;

    /// The account's settings: YAML lines `key: value` with credentials and redirected endpoints.
    fn settings(&self) -> String;

    /// Adds a person; returns the id by which the platform tells the bot of them.
    fn person(&self, name: &str) -> String;

    /// Returns the private chat of a person with the bot, by the id under which the bot knows it.
    fn private(&self, person: &str) -> String;

    /// Adds a group with the bot in it.
    fn group(&self, title: &str, members: &[&str]) -> String;

    /// A person writes; returns the message's id.
    fn write(&self, words: &Words) -> String;

    /// A person edits a message. False where the platform's people cannot, or its bots do not hear of it.
    fn edit(&self, chat: &str, message: &str, text: &str) -> bool;

    /// A person takes a message back. False where the platform's bots do not hear of it.
    fn recall(&self, chat: &str, message: &str) -> bool;

    /// A person presses the button that says `label` under a message. False where there is no such button.
    fn press(&self, chat: &str, person: &str, message: &str, label: &str) -> bool;

    /// Returns what the bot shows in a chat, threads included, in the order in which it was first shown.
    fn shown(&self, chat: &str) -> Vec<Shown>;

    /// Returns every text that a message of the bot has shown, in order.
    fn history(&self, chat: &str, message: &str) -> Vec<String>;

    /// Tells the bot of a message once more, as the platform does when it got no answer.
    fn redeliver(&self, chat: &str, message: &str);

    /// Breaks the connection over which events come, without a goodbye.
    fn drop_connection(&self);

    /// Tells whether the bot will hear of what happens now. A platform that keeps events until the bot is
    /// there says so always.
    fn hears(&self) -> bool {
        true
    }

    /// The methods by which the bot's words become visible or change, as the record of calls names them:
    /// where a test plans failures and deaths.
    fn sends(&self) -> &'static [&'static str];

    /// The methods by which the bot brings files.
    fn uploads(&self) -> &'static [&'static str];

    /// Returns the words of the refusals that hold these.
    fn refusals(&self, words: &str) -> Vec<String> {
        let refused = |call: Call| match call.outcome {
            Outcome::Refused(_, said) if said.contains(words) => Some(said),
            _ => None,
        };
        self.calls("*").into_iter().filter_map(refused).collect()
    }

    /// Returns what the bot did that the platform's documents forbid, in the platform's words.
    fn misused(&self) -> Vec<String> {
        Vec::new()
    }

    /// How the platform says that a message of the bot can never be changed again: method, status and words.
    fn unchangeable(&self) -> &'static [(&'static str, u16, &'static str)];

    /// Where the platform keeps its state, its calls and what is to go wrong.
    fn stage(&self) -> &dyn Staged;

    /// Makes the nth call of a method from now on fail; `*` is any method.
    fn fail(&self, method: &str, nth: u64, fault: Fault) {
        self.stage().fail(method, nth, fault);
    }

    /// From now on no message of the bot can be changed.
    fn freeze(&self) {
        for (method, status, words) in self.unchangeable() {
            self.stage().fail_always(method, Fault::Refused(*status, (*words).to_owned()));
        }
    }

    /// Runs a hook at the nth call of a method from now on, before or after its effect.
    fn on_call(&self, method: &str, nth: u64, when: When, hook: Hook<Call>) {
        self.stage().on_call(method, nth, when, hook);
    }

    /// Takes back all failures and hooks that have not come yet.
    fn heal(&self) {
        self.stage().heal();
    }

    /// Returns the calls of a method, oldest first; `*` is any method.
    fn calls(&self, method: &str) -> Vec<Call> {
        self.stage().calls(method)
    }

    /// Tells of changes from now on.
    fn watch(&self) -> watch::Receiver<()> {
        self.stage().watch()
    }
}

/// What a person writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// Where.
    pub chat: String,
    /// Who.
    pub person: String,
    /// The text.
    pub text: String,
    /// Whether it addresses the bot in the platform's own way, by a mention. Always so in a private chat.
    pub to_bot: bool,
    /// The message that it answers or in whose thread it stands.
    pub answers: Option<String>,
    /// Files that come along: names and contents.
    pub files: Vec<(String, Bytes)>,
}

/// A message of the bot, as people see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// The platform's id.
    pub id: String,
    /// The visible words: markup of the platform resolved, buttons and files left out.
    pub text: String,
    /// Whether the platform shows it as being written still: a stream that was not closed.
    pub growing: bool,
    /// What the buttons say.
    pub buttons: Vec<String>,
    /// The files: names and contents.
    pub files: Vec<(String, Bytes)>,
    /// The message that it visibly answers, or in whose thread it stands.
    pub answers: Option<String>,
    /// Whether it notifies somebody by name, or everybody: nothing that a model writes may.
    pub pings: bool,
}

impl dyn Platform {
    /// Waits until `probe` finds something, looking at each change.
    ///
    /// # Errors
    /// When it does not in time, with what could be seen instead of it in `chat`.
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
