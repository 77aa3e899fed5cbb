//! Events that a platform posts by HTTP: judged, decoded and kept by the channel, carried by the HTTP server.
//!
//! The server limits the size of a body, its minimum speed, and the number of failures.

use crate::{AcceptError, BoxFuture, EventSink};
use pudu_net::reqwest::header::HeaderMap;
use serde_json::Value;

/// Receives a platform's posts for one account.
pub trait Webhook: Send + Sync {
    /// Judges from the headers alone who sent a post, before its body is read.
    fn glance(&self, headers: &HeaderMap) -> Glance;

    /// Checks that a post is the platform's, keeps its content, and returns the answer. The secret or signature is
    /// checked before any part of the body is looked at.
    fn handle<'a>(
        &'a self,
        post: WebhookRequest<'a>,
        sink: &'a dyn EventSink,
    ) -> BoxFuture<'a, WebhookResponse>;
}

/// Result of looking at a post's headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Glance {
    /// They prove that it is the platform's.
    Proven,
    /// Only with the body it can be known.
    Open,
    /// It is not the platform's.
    Foreign,
}

/// A received post.
#[derive(Clone, Copy, Debug)]
pub struct WebhookRequest<'a> {
    /// The headers.
    pub headers: &'a HeaderMap,
    /// The body, byte for byte: signatures are made over it.
    pub body: &'a [u8],
}

impl<'a> WebhookRequest<'a> {
    /// Returns a header's bytes; nothing for one that is not there.
    #[must_use]
    pub fn header(&self, name: &str) -> &'a [u8] {
        header(self.headers, name)
    }
}

/// Returns a header's bytes; nothing for one that is not there.
pub(crate) fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a [u8] {
    headers.get(name).map(|value| value.as_bytes()).unwrap_or_default()
}

/// Answer to a post.
#[derive(Clone, Debug, PartialEq)]
pub enum WebhookResponse {
    /// 200, with JSON if the platform expects an answer. The post is kept, or does not concern the bot.
    Taken(Option<Value>),
    /// 401: it is not the platform's.
    Forbidden,
    /// 400: it cannot be read.
    Garbled,
    /// 503, so that the platform posts it again: it could not be kept, or came too early.
    Later,
}

impl From<AcceptError> for WebhookResponse {
    fn from(_: AcceptError) -> Self {
        Self::Later
    }
}
