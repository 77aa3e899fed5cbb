//! Events that a platform posts by HTTP: judged, decoded and kept by the channel, carried by whoever serves
//! HTTP.
//!
//! How large a body may be, and how slowly it may come, is the server's business.

use crate::{BoxFuture, Intake, Refusal};
use pudu_net::reqwest::header::HeaderMap;
use serde_json::Value;

/// Takes what a platform posts for one account.
pub trait Webhook: Send + Sync {
    /// Checks that a post is the platform's, has what it tells kept, and says what to answer. The secret or
    /// signature is checked before anything of the body is looked at.
    fn take<'a>(&'a self, post: Post<'a>, intake: &'a dyn Intake) -> BoxFuture<'a, Answer>;
}

/// What was posted.
#[derive(Clone, Copy, Debug)]
pub struct Post<'a> {
    /// The headers.
    pub headers: &'a HeaderMap,
    /// The body, byte for byte: signatures are made over it.
    pub body: &'a [u8],
}

impl<'a> Post<'a> {
    /// Returns a header's bytes; nothing for one that is not there.
    #[must_use]
    pub fn header(&self, name: &str) -> &'a [u8] {
        self.headers.get(name).map(|value| value.as_bytes()).unwrap_or_default()
    }
}

/// What to answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// 200, with JSON if the platform wants to be told something. What was posted is kept, or concerns nobody.
    Taken(Option<Value>),
    /// 401: it is not the platform's.
    Forbidden,
    /// 400: it cannot be read.
    Garbled,
    /// 503, so that the platform posts it again: it could not be kept, or came too early.
    Later,
}

impl From<Refusal> for Answer {
    fn from(_: Refusal) -> Self {
        Self::Later
    }
}
