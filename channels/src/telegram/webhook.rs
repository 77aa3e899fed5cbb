//! Updates posted by Telegram.

use super::{
    chats::Chats,
    decode::{TelegramDecoder, UpdateDelivery},
    listen::record_message_id,
    wire::{TelegramIdentity, TelegramUpdate, UpdateEnvelope},
};
use crate::{
    BoxFuture, EventSink, Glance, HealthCell, Webhook, WebhookRequest, WebhookResponse, clock::now,
    webhook::header,
};
use pudu_net::reqwest::header::HeaderMap;
use secrecy::{ExposeSecret, SecretString};
use std::sync::{Arc, OnceLock};
use subtle::ConstantTimeEq;

/// Header that carries the webhook's secret.
const SECRET: &str = "x-telegram-bot-api-secret-token";

/// Webhook of one bot.
pub(super) struct TelegramWebhook {
    pub(super) account: String,
    pub(super) secret: SecretString,
    pub(super) require_mention: bool,
    pub(super) me: Arc<OnceLock<TelegramIdentity>>,
    pub(super) chats: Arc<Chats>,
    pub(super) health: HealthCell,
}

impl Webhook for TelegramWebhook {
    fn glance(&self, headers: &HeaderMap) -> Glance {
        if self.is_telegrams(header(headers, SECRET)) { Glance::Proven } else { Glance::Foreign }
    }

    fn handle<'a>(
        &'a self,
        post: WebhookRequest<'a>,
        sink: &'a dyn EventSink,
    ) -> BoxFuture<'a, WebhookResponse> {
        Box::pin(async move {
            match self.decode(post) {
                Ok(Some(delivery)) => keep(delivery, sink).await,
                Ok(None) => WebhookResponse::Taken(None),
                Err(answer) => answer,
            }
        })
    }
}

impl TelegramWebhook {
    fn is_telegrams(&self, shown: &[u8]) -> bool {
        shown.ct_eq(self.secret.expose_secret().as_bytes()).into()
    }

    /// Checks the secret, then decodes the body. Returns `None` for an update that does not concern the bot.
    fn decode(&self, post: WebhookRequest<'_>) -> Result<Option<UpdateDelivery>, WebhookResponse> {
        if !self.is_telegrams(post.header(SECRET)) {
            return Err(WebhookResponse::Forbidden);
        }
        // The bot's identity is not known yet; Telegram posts the update again.
        let me = self.me.get().ok_or(WebhookResponse::Later)?;
        let UpdateEnvelope { update_id } =
            crate::lenient::from_bytes(post.body).map_err(|_| WebhookResponse::Garbled)?;
        self.health.event(now());
        let Ok(update) = crate::lenient::from_bytes::<TelegramUpdate>(post.body) else {
            tracing::warn!(update_id, "dropped update: decode error");
            return Ok(None);
        };
        record_message_id(&self.chats, &update);
        let decoder = TelegramDecoder { account: &self.account, me, require_mention: self.require_mention };
        Ok(decoder.decode(&update, now()))
    }
}

async fn keep(delivery: UpdateDelivery, sink: &dyn EventSink) -> WebhookResponse {
    let response = delivery.response();
    match sink.accept(delivery.inbound).await {
        Ok(_) => WebhookResponse::Taken(response),
        Err(refusal) => {
            tracing::warn!(%refusal, "failed to accept update; Telegram posts it again");
            refusal.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::InboundKind;

    fn webhook(me: Option<TelegramIdentity>) -> TelegramWebhook {
        let known = OnceLock::new();
        me.map(|me| known.set(me));
        TelegramWebhook {
            account: "telegram".into(),
            secret: "s3cret_token".into(),
            require_mention: true,
            me: Arc::new(known),
            chats: Arc::default(),
            health: HealthCell::default(),
        }
    }

    fn pudu() -> Option<TelegramIdentity> {
        Some(TelegramIdentity { id: 42, username: "pudu_bot".into() })
    }

    fn decode(
        hook: &TelegramWebhook,
        secret: Option<&str>,
        body: &[u8],
    ) -> Result<Option<UpdateDelivery>, WebhookResponse> {
        let mut headers = HeaderMap::new();
        secret.map(|secret| headers.insert(SECRET, secret.parse().unwrap()));
        hook.decode(WebhookRequest { headers: &headers, body })
    }

    const UPDATE: &[u8] = br#"{"update_id":1,"callback_query":{"id":"q","from":{"id":7,"first_name":"Ann"},
        "message":{"message_id":3,"date":1,"chat":{"id":7,"type":"private"}},"data":"/stop"}}"#;

    #[test]
    fn only_the_secret_grants_access_and_it_is_checked_before_the_body() {
        let webhook = webhook(pudu());
        for secret in [None, Some(""), Some("s3cret_toke"), Some("s3cret_tokens"), Some("S3cret_token")] {
            assert_eq!(decode(&webhook, secret, b"{"), Err(WebhookResponse::Forbidden));
            let mut headers = HeaderMap::new();
            secret.map(|secret| headers.insert(SECRET, secret.parse().unwrap()));
            assert_eq!(webhook.glance(&headers), Glance::Foreign);
        }
        let headers = [(SECRET.parse().unwrap(), "s3cret_token".parse().unwrap())].into_iter().collect();
        assert_eq!(webhook.glance(&headers), Glance::Proven);
        assert_eq!(decode(&webhook, Some("s3cret_token"), b"{"), Err(WebhookResponse::Garbled));
    }

    #[test]
    fn a_press_is_delivered_with_the_response_that_ends_its_pending_state() {
        let delivery = decode(&webhook(pudu()), Some("s3cret_token"), UPDATE).unwrap().unwrap();
        assert_eq!(delivery.inbound.kind, InboundKind::Press { action: "/stop".into() });
        let response = serde_json::json!({"method": "answerCallbackQuery", "callback_query_id": "q"});
        assert_eq!(delivery.response(), Some(response));
    }

    #[test]
    fn an_update_before_the_identity_is_known_is_posted_again() {
        assert_eq!(decode(&webhook(None), Some("s3cret_token"), UPDATE), Err(WebhookResponse::Later));
    }

    #[test]
    fn an_undecodable_update_is_not_posted_again() {
        let update = br#"{"update_id":1,"message":{"message_id":"?"}}"#;
        assert_eq!(decode(&webhook(pudu()), Some("s3cret_token"), update), Ok(None));
    }
}
