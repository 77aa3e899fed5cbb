//! Events posted by Slack. Each post is signed. The signature covers the raw body and the time, and is verified before
//! any part of the body is read.

use super::event_handler::{SlackEventHandler, SlackIntakeError, Source};
use crate::{
    BoxFuture, EventSink, Glance, HealthState, Webhook, WebhookRequest, WebhookResponse, clock::now,
    webhook::header,
};
use hmac::{Hmac, KeyInit, Mac};
use pudu_net::reqwest::header::HeaderMap;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value, json};
use sha2::Sha256;
use std::fmt::Write;
use subtle::ConstantTimeEq;
use url::form_urlencoded;

/// Maximum difference between a post's time and this machine's clock, in seconds.
const WINDOW: u64 = 5 * 60;

const SIGNATURE: &str = "x-slack-signature";
const TIME: &str = "x-slack-request-timestamp";

/// Webhook of one bot.
pub(super) struct SlackWebhook {
    pub(super) handler: SlackEventHandler,
    pub(super) secret: SecretString,
}

impl Webhook for SlackWebhook {
    fn glance(&self, headers: &HeaderMap) -> Glance {
        let signed = header(headers, SIGNATURE).starts_with(b"v0=");
        let fresh = signed_at(header(headers, TIME)).is_some_and(|at| seconds().abs_diff(at) <= WINDOW);
        if signed && fresh { Glance::Open } else { Glance::Foreign }
    }

    fn handle<'a>(
        &'a self,
        post: WebhookRequest<'a>,
        sink: &'a dyn EventSink,
    ) -> BoxFuture<'a, WebhookResponse> {
        Box::pin(async move {
            if !self.is_slacks(post, seconds()) {
                return WebhookResponse::Forbidden;
            }
            match read(post.body) {
                None => WebhookResponse::Garbled,
                Some(WebhookBody::Challenge(challenge)) => {
                    WebhookResponse::Taken(Some(json!({"challenge": challenge})))
                }
                Some(WebhookBody::Happened(source, payload)) => self.keep(source, payload, sink).await,
            }
        })
    }
}

impl SlackWebhook {
    async fn keep(&self, source: Source, payload: Value, sink: &dyn EventSink) -> WebhookResponse {
        match self.handler.keep(source, payload, sink).await {
            Ok(answer) => {
                if self.handler.health.get().state == HealthState::Degraded {
                    self.handler.health.ready();
                }
                WebhookResponse::Taken(answer)
            }
            Err(error) => {
                tracing::warn!(%error, "failed to accept event; Slack posts it again");
                if !matches!(error, SlackIntakeError::Early) {
                    self.handler.health.failed(HealthState::Degraded, error.to_string());
                }
                WebhookResponse::Later
            }
        }
    }

    /// Returns whether time and signature are valid. `now` is in seconds since 1970.
    fn is_slacks(&self, post: WebhookRequest<'_>, now: u64) -> bool {
        let Some(at) = signed_at(post.header(TIME)) else { return false };
        let expected = signature(&self.secret, at, post.body);
        now.abs_diff(at) <= WINDOW && bool::from(expected.as_bytes().ct_eq(post.header(SIGNATURE)))
    }
}

fn seconds() -> u64 {
    u64::try_from(now() / 1000).unwrap_or(0)
}

/// Returns when a post was signed, in seconds since 1970.
fn signed_at(time: &[u8]) -> Option<u64> {
    std::str::from_utf8(time).ok()?.parse().ok()
}

fn signature(secret: &SecretString, at: u64, body: &[u8]) -> String {
    // HMAC accepts keys of any length, so this is unreachable. The text is not empty, so that it cannot equal a missing
    // header.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.expose_secret().as_bytes()) else {
        return "no signature".to_owned();
    };
    mac.update(format!("v0:{at}:").as_bytes());
    mac.update(body);
    let mut signature = "v0=".to_owned();
    for byte in mac.finalize().into_bytes() {
        let _ = write!(signature, "{byte:02x}");
    }
    signature
}

/// A decoded post.
#[derive(Debug, PartialEq)]
enum WebhookBody {
    /// Slack verifies a new URL.
    Challenge(String),
    Happened(Source, Value),
}

/// Decodes a body: events are JSON, commands and pressed buttons are forms.
fn read(body: &[u8]) -> Option<WebhookBody> {
    if body.first() == Some(&b'{') {
        let payload: Value = crate::lenient::from_bytes(body).ok()?;
        if payload["type"] == "url_verification" {
            return Some(WebhookBody::Challenge(payload["challenge"].as_str()?.to_owned()));
        }
        return Some(WebhookBody::Happened(Source::Event, payload));
    }
    let fields: Map<String, Value> = form_urlencoded::parse(body)
        .map(|(name, value)| (name.into_owned(), value.into_owned().into()))
        .collect();
    if let Some(payload) = fields.get("payload").and_then(Value::as_str) {
        return Some(WebhookBody::Happened(
            Source::Action,
            crate::lenient::from_bytes(payload.as_bytes()).ok()?,
        ));
    }
    // Slack occasionally checks the certificate with `ssl_check`.
    let known = fields.contains_key("command") || fields.contains_key("ssl_check");
    known.then(|| WebhookBody::Happened(Source::Command, fields.into()))
}

#[cfg(test)]
mod tests;
