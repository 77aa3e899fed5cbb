//! A scripted model behind five APIs: OpenAI's chat completions and responses, Anthropic's messages, Gemini and Ollama.
//!
//! The client under test talks to [`Model::url`] or [`Model::root`]; a test says what the model answers ([`Reply`], by
//! order or by what was asked), whichever API it is asked over ([`Wire`]), reads what was asked ([`Exchange`]), and stops
//! a stream at a chosen chunk ([`Model::hold`]). What the real servers refuse is refused ([`Model::refused`]); what they
//! sign or encrypt is signed, and must come back as it was. Deliberately absent: embeddings, responses that the server
//! stores, tools that run at the provider, Gemini's streams that are no events.

mod ask;
mod asked;
mod errors;
mod reply;
mod script;
mod seal;
mod server;
mod stream;
#[cfg(test)]
mod tests;
mod wire;

pub use ask::Ask;
pub use reply::{Answer, Cause, Refusal, Reply, RetryAfter, ToolCall, Trouble, Usage};
pub use script::{At, End, Exchange};
pub use wire::Wire;

use self::script::{Script, Shared};
use crate::{Hold, Hook, Timeout, gate::Stop, http::Server};
use std::{
    fmt, io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};
use tokio::time::{Instant, timeout_at};

/// The handle of a running model. Clones are the same server; it ends with the last.
#[derive(Clone)]
pub struct Model {
    shared: Arc<Shared>,
    server: Arc<Server>,
}

impl Model {
    /// Starts a model that echoes what the user said, on a free port of loopback.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn start() -> io::Result<Self> {
        Self::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await
    }

    /// Starts a model on a given address.
    ///
    /// # Errors
    /// When the address cannot be had.
    pub async fn bind(address: SocketAddr) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let server = Server::start(address, server::router(Arc::clone(&shared))).await?;
        Ok(Self { shared, server: Arc::new(server) })
    }

    /// Starts a model that answers everything with so many words, evenly over a time: `word1 word2 …`.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn streaming(words: u32, over: Duration) -> io::Result<Self> {
        let model = Self::start().await?;
        let reply = Reply::words(words, over);
        model.otherwise(move |_| reply.clone());
        Ok(model)
    }

    /// The address to configure as the base of OpenAI's APIs, with `/v1` and no slash at the end.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}/v1", self.root())
    }

    /// The address to configure for Anthropic, Gemini and Ollama, without a path.
    #[must_use]
    pub fn root(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// Answers the next request that no rule takes; called again, the one after it, and so on.
    pub fn next(&self, reply: impl Into<Reply>) {
        self.script(|script| script.queue.push_back(reply.into()));
    }

    /// Answers every request for which `asked` says yes. The first such rule wins; rules come before `next`.
    pub fn when(
        &self,
        asked: impl Fn(&Ask) -> bool + Send + Sync + 'static,
        reply: impl Fn(&Ask) -> Reply + Send + Sync + 'static,
    ) {
        self.script(|script| script.rules.push((Arc::new(asked), Arc::new(reply))));
    }

    /// Answers what nothing else does, instead of the echo.
    pub fn otherwise(&self, reply: impl Fn(&Ask) -> Reply + Send + Sync + 'static) {
        self.script(|script| script.otherwise = Arc::new(reply));
    }

    /// Runs a hook at a point of the nth call from now on, counted from 1.
    pub fn on_call(&self, nth: u64, at: At, hook: Hook<Exchange>) {
        self.script(|script| script.stop(nth, at, Stop::Hook(hook)));
    }

    /// Stops the nth call from now on at a point, until it is let go.
    #[must_use]
    pub fn hold(&self, nth: u64, at: At) -> Hold<Exchange> {
        let (stop, hold) = Stop::gate();
        self.script(|script| script.stop(nth, at, stop));
        hold
    }

    /// All exchanges that are kept, oldest first.
    #[must_use]
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.script(|script| script.kept.iter().cloned().collect())
    }

    /// What was asked, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<Arc<Ask>> {
        self.script(|script| script.kept.iter().map(|exchange| Arc::clone(&exchange.ask)).collect())
    }

    /// How many calls there were.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.script(|script| script.total)
    }

    /// What was refused because the real server would have, and why; such a request is no call.
    #[must_use]
    pub fn refused(&self) -> Vec<String> {
        self.script(|script| script.refused.clone())
    }

    /// How many calls are under way.
    #[must_use]
    pub fn active(&self) -> u64 {
        self.script(|script| script.active)
    }

    /// How many calls were under way at once, at most.
    #[must_use]
    pub fn peak(&self) -> u64 {
        self.script(|script| script.peak)
    }

    /// How often a client went away before it had the whole answer.
    #[must_use]
    pub fn hangups(&self) -> u64 {
        self.script(|script| script.hangups)
    }

    /// Waits until `probe` finds what it looks for; it looks whenever a call begins, shows its first
    /// chunk or ends.
    ///
    /// # Errors
    /// When it does not in time.
    pub async fn wait<T>(
        &self,
        within: Duration,
        mut probe: impl FnMut(&Self) -> Option<T>,
    ) -> Result<T, Timeout> {
        let deadline = Instant::now() + within;
        let mut changed = self.shared.watch();
        loop {
            changed.borrow_and_update();
            if let Some(found) = probe(self) {
                return Ok(found);
            }
            if timeout_at(deadline, changed.changed()).await.is_err() {
                return Err(Timeout::new(within, self));
            }
        }
    }

    fn script<T>(&self, change: impl FnOnce(&mut Script) -> T) -> T {
        self.shared.act(change)
    }
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Model").field("url", &self.url()).finish_non_exhaustive()
    }
}

/// For the words of a failed test: what was asked, and how it ended.
impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for exchange in self.exchanges().iter().rev().take(10).rev() {
            writeln!(f, "call {} {:?}: {:?}", exchange.n, exchange.ask.last_user(), exchange.end)?;
        }
        for refused in self.refused().iter().rev().take(3).rev() {
            writeln!(f, "refused: {refused}")?;
        }
        writeln!(f, "{} under way, {} hangups", self.active(), self.hangups())
    }
}
