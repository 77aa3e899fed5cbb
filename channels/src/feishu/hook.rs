//! Events posted by Feishu. The signature is verified before any part of the body is read. Only the challenge that sets
//! up a webhook is unsigned, and it is answered only if the sender knows the key.

use super::{
    event::EventEnvelope,
    event_parser::{FeishuEventParser, FeishuIntakeError},
    seal,
};
use crate::{
    BoxFuture, EventSink, Glance, Webhook, WebhookRequest, WebhookResponse, clock::now, webhook::header,
};
use pudu_net::reqwest::header::HeaderMap;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::json;
use subtle::ConstantTimeEq;

/// Maximum difference between a post's time and this machine's clock, in milliseconds.
const WINDOW: i64 = 5 * 60 * 1000;

/// Headers with the signature, its time, and its nonce.
const SIGNED: [&str; 3] = ["x-lark-signature", "x-lark-request-timestamp", "x-lark-request-nonce"];

/// Webhook of one bot.
pub(super) struct FeishuWebhook {
    pub(super) parser: FeishuEventParser,
    pub(super) encrypt_key: SecretString,
    pub(super) verification_token: SecretString,
}

#[derive(Deserialize)]
struct Sealed {
    encrypt: String,
}

impl Webhook for FeishuWebhook {
    /// Accepts unsigned posts, because the setup challenge is unsigned. A signed post must contain time and nonce.
    fn glance(&self, headers: &HeaderMap) -> Glance {
        let [signature, time, nonce] = SIGNED.map(|name| header(headers, name));
        let is_signed = !time.is_empty() && !nonce.is_empty();
        if signature.is_empty() || is_signed { Glance::Open } else { Glance::Foreign }
    }

    fn handle<'a>(
        &'a self,
        post: WebhookRequest<'a>,
        sink: &'a dyn EventSink,
    ) -> BoxFuture<'a, WebhookResponse> {
        Box::pin(async move {
            let event = match self.open(post, now()) {
                Ok(event) => event,
                Err(answer) => return answer,
            };
            if event.kind == "url_verification" {
                return WebhookResponse::Taken(Some(json!({"challenge": event.challenge})));
            }
            // The bot's identity is not known yet; Feishu posts the event again.
            if self.parser.me.get().is_none() {
                return WebhookResponse::Later;
            }
            let stored = self.parser.on_event(&event, sink).await;
            self.report_health(stored.as_ref().err());
            stored.map_or(WebhookResponse::Later, WebhookResponse::Taken)
        })
    }
}

impl FeishuWebhook {
    /// Reports whether an event was stored, because a webhook has no connection whose end would show a failure.
    fn report_health(&self, why: Option<&FeishuIntakeError>) {
        match why {
            Some(why) => {
                tracing::warn!(%why, "failed to accept event; Feishu posts it again");
                self.parser.health.not_kept(why);
            }
            None => self.parser.health.kept(),
        }
    }

    /// Verifies that a post is Feishu's, and decrypts it.
    fn open(&self, post: WebhookRequest<'_>, now: i64) -> Result<EventEnvelope, WebhookResponse> {
        let signed = self.check_signature(post, now)?;
        let sealed: Sealed = crate::lenient::from_bytes(post.body).map_err(|_| unreadable(signed))?;
        let opened = seal::open(&sealed.encrypt, self.encrypt_key.expose_secret());
        let opened = opened.ok_or_else(|| unreadable(signed))?;
        let event: EventEnvelope = crate::lenient::from_bytes(&opened).map_err(|_| unreadable(signed))?;
        let expected = self.verification_token.expose_secret().as_bytes();
        let known = bool::from(event.token().as_bytes().ct_eq(expected));
        if !known || (!signed && event.kind != "url_verification") {
            return Err(WebhookResponse::Forbidden);
        }
        Ok(event)
    }

    /// Returns whether a post is signed. An invalid or old signature is an error.
    fn check_signature(&self, post: WebhookRequest<'_>, now: i64) -> Result<bool, WebhookResponse> {
        let [signature, time, nonce] = SIGNED.map(|name| post.header(name));
        if signature.is_empty() {
            return Ok(false);
        }
        if !seal::is_signed(signature, time, nonce, self.encrypt_key.expose_secret(), post.body) {
            return Err(WebhookResponse::Forbidden);
        }
        let seconds = std::str::from_utf8(time).ok().and_then(|time| time.parse::<i64>().ok());
        let at = seconds.and_then(|seconds| seconds.checked_mul(1000)).ok_or(WebhookResponse::Forbidden)?;
        if now.saturating_sub(at).saturating_abs() > WINDOW {
            tracing::warn!("refused post: its time differs from this machine's clock");
            return Err(WebhookResponse::Forbidden);
        }
        Ok(true)
    }
}

/// Returns the response to an invalid post. The sender of an unsigned post does not learn why it is refused.
fn unreadable(signed: bool) -> WebhookResponse {
    if signed { WebhookResponse::Garbled } else { WebhookResponse::Forbidden }
}

#[cfg(test)]
mod tests;
