//! A scripted model behind five APIs: OpenAI's chat completions and responses, Anthropic's messages, Gemini and Ollama.
//!
//! The client under test talks to [`Model::url`] or [`Model::root`]; a test scripts the answers ([`Reply`], by order or
//! by request) for any API ([`Wire`]), reads the requests ([`Exchange`]), and stops a stream at a chosen chunk
//! ([`Model::hold`]). Requests that the real servers refuse are refused ([`Model::refused`]); parts that they sign or
//! encrypt are signed, and must be sent back unchanged. Deliberately absent: embeddings, responses stored on the
//! server, tools that run at the provider, Gemini's streams without events.

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
use axum::{extract::Request, response::Response};
use std::{
    fmt, io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};
use tokio::time::{Instant, timeout_at};

/// Handle of a running model. Clones share the server, which stops with the last one.
#[derive(Clone)]
pub struct Model {
    shared: Arc<Shared>,
    server: Arc<Server>,
}

impl Model {
    /// Starts a model that echoes the user's message, on a free loopback port.
    ///
    /// # Errors
    /// When no port is available.
    pub async fn start() -> io::Result<Self> {
        Self::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await
    }

    /// Starts a model on a given address.
    ///
    /// # Errors
    /// When the address is not available.
    pub async fn bind(address: SocketAddr) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let server = Server::start(address, server::router(Arc::clone(&shared))).await?;
        Ok(Self { shared, server: Arc::new(server) })
    }

    /// Makes a model without a socket that echoes the user's message, for [`Self::answer`].
    #[must_use]
    pub fn in_memory() -> Self {
        let shared = Arc::new(Shared::default());
        let server = Arc::new(Server::in_memory(server::router(Arc::clone(&shared))));
        Self { shared, server }
    }

    /// Answers a request in memory. `None` if the connection would close without a response.
    pub async fn answer(&self, request: Request) -> Option<Response> {
        self.server.answer(request).await
    }

    /// Starts a model that answers everything with this number of words, evenly over a time: `word1 word2 …`.
    ///
    /// # Errors
    /// When no port is available.
    pub async fn streaming(words: u32, over: Duration) -> io::Result<Self> {
        let model = Self::start().await?;
        let reply = Reply::words(words, over);
        model.otherwise(move |_| reply.clone());
        Ok(model)
    }

    /// Returns the address to configure as the base of OpenAI's APIs, with `/v1` and no slash at the end.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}/v1", self.root())
    }

    /// Returns the address to configure for Anthropic, Gemini and Ollama, without a path.
    #[must_use]
    pub fn root(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// Answers the next request that no rule matches; called again, the one after it, and so on.
    pub fn next(&self, reply: impl Into<Reply>) {
        self.script(|script| script.queue.push_back(reply.into()));
    }

    /// Answers every request for which `asked` returns true. The first such rule wins; rules take precedence over
    /// `next`.
    pub fn when(
        &self,
        asked: impl Fn(&Ask) -> bool + Send + Sync + 'static,
        reply: impl Fn(&Ask) -> Reply + Send + Sync + 'static,
    ) {
        self.script(|script| script.rules.push((Arc::new(asked), Arc::new(reply))));
    }

    /// Answers all other requests, instead of the echo.
    pub fn otherwise(&self, reply: impl Fn(&Ask) -> Reply + Send + Sync + 'static) {
        self.script(|script| script.otherwise = Arc::new(reply));
    }

    /// Runs a hook at a point of the nth call from now on, counted from 1.
    pub fn on_call(&self, nth: u64, at: At, hook: Hook<Exchange>) {
        self.script(|script| script.stop(nth, at, Stop::Hook(hook)));
    }

    /// Holds the nth call from now on at a point, until it is released.
    #[must_use]
    pub fn hold(&self, nth: u64, at: At) -> Hold<Exchange> {
        let (stop, hold) = Stop::gate();
        self.script(|script| script.stop(nth, at, stop));
        hold
    }

    /// Returns all stored exchanges, oldest first.
    #[must_use]
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.script(|script| script.kept.iter().cloned().collect())
    }

    /// Returns the requests, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<Arc<Ask>> {
        self.script(|script| script.kept.iter().map(|exchange| Arc::clone(&exchange.ask)).collect())
    }

    /// Returns the number of calls.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.script(|script| script.total)
    }

    /// Returns the requests that the real server would refuse, with reasons; such a request is not a call.
    #[must_use]
    pub fn refused(&self) -> Vec<String> {
        self.script(|script| script.refused.clone())
    }

    /// Returns the number of calls in progress.
    #[must_use]
    pub fn active(&self) -> u64 {
        self.script(|script| script.active)
    }

    /// Returns the maximum number of concurrent calls.
    #[must_use]
    pub fn peak(&self) -> u64 {
        self.script(|script| script.peak)
    }

    /// Returns the number of clients that disconnected before the end of the answer.
    #[must_use]
    pub fn hangups(&self) -> u64 {
        self.script(|script| script.hangups)
    }

    /// Waits until `probe` returns a value; it is called whenever a call begins, sends its first chunk or ends.
    ///
    /// # Errors
    /// On timeout.
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

/// For the message of a failed test: the requests, and how they ended.
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
