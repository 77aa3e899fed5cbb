//! Events posted by a platform over HTTP. The HTTP server receives them; the channel verifies, decodes and stores them.
//!
//! The server limits the size of the body, the duration of its transfer, and the number of failures.

use crate::{AcceptError, BoxFuture, EventSink};
use pudu_net::reqwest::header::HeaderMap;
use serde_json::Value;

/// Receives a platform's posts for one bot.
pub trait Webhook: Send + Sync {
    /// Determines from the headers alone who may have sent a post, before its body is read.
    fn glance(&self, headers: &HeaderMap) -> Glance;

    /// Verifies that a post is the platform's, stores its content, and returns the response. The secret or signature is
    /// checked before any part of the body is interpreted.
    fn handle<'a>(
        &'a self,
        post: WebhookRequest<'a>,
        sink: &'a dyn EventSink,
    ) -> BoxFuture<'a, WebhookResponse>;
}

/// Result of checking a post's headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Glance {
    /// The headers prove that the post is the platform's.
    Proven,
    /// The body is needed to decide.
    Open,
    /// The post is not the platform's.
    Foreign,
}

/// A received post.
#[derive(Clone, Copy, Debug)]
pub struct WebhookRequest<'a> {
    /// The headers.
    pub headers: &'a HeaderMap,
    /// The raw body, which signatures cover.
    pub body: &'a [u8],
}

impl<'a> WebhookRequest<'a> {
    /// Returns a header's bytes; empty if the header is missing.
    #[must_use]
    pub fn header(&self, name: &str) -> &'a [u8] {
        header(self.headers, name)
    }
}

/// Returns a header's bytes; empty if the header is missing.
pub(crate) fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a [u8] {
    headers.get(name).map(|value| value.as_bytes()).unwrap_or_default()
}

/// Response to a post.
#[derive(Clone, Debug, PartialEq)]
pub enum WebhookResponse {
    /// 200, with JSON if the platform expects content. The post was stored, or does not concern the bot.
    Taken(Option<Value>),
    /// 401: the post is not the platform's.
    Forbidden,
    /// 400: the post cannot be decoded.
    Garbled,
    /// 503, so that the platform posts it again: it could not be stored, or arrived before the bot was ready.
    Later,
}

impl From<AcceptError> for WebhookResponse {
    fn from(_: AcceptError) -> Self {
        Self::Later
    }
}
