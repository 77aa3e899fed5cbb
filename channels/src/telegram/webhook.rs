//! Updates that Telegram pushes: checked and decoded here, carried by whoever serves HTTP.

use super::{
    chats::Chats,
    decode::{Decoder, Delivery, Me},
    listen::{now, see},
    wire::{Envelope, Update},
};
use crate::HealthCell;
use secrecy::{ExposeSecret, SecretString};
use std::sync::{Arc, OnceLock};
use subtle::ConstantTimeEq;

/// Takes what Telegram posts for one account. The secret is in the header
/// `X-Telegram-Bot-Api-Secret-Token`; how large a body may be is the server's business.
pub struct Webhook {
    pub(super) account: String,
    pub(super) secret: SecretString,
    pub(super) require_mention: bool,
    pub(super) me: Arc<OnceLock<Me>>,
    pub(super) chats: Arc<Chats>,
    pub(super) health: HealthCell,
}

/// Why a post was not taken, named by what to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WebhookError {
    /// Answer 401: it does not come from Telegram.
    #[error("the secret is missing or wrong")]
    Forbidden,
    /// Answer 503, so that Telegram posts it again: the bot does not know yet who it is.
    #[error("the account has not started yet")]
    NotReady,
    /// Answer 400: it is not an update.
    #[error("the body is not an update")]
    Garbled,
}

impl Webhook {
    /// Checks the secret, then decodes the body. `None` is an update that does not concern the bot. Answer
    /// 200 once the event is kept, and 503 if it is not.
    ///
    /// # Errors
    ///
    /// If the post is not Telegram's, or comes too early.
    pub fn verify_and_decode(
        &self,
        secret: Option<&[u8]>,
        body: &[u8],
    ) -> Result<Option<Delivery>, WebhookError> {
        let expected = self.secret.expose_secret().as_bytes();
        if !bool::from(secret.unwrap_or_default().ct_eq(expected)) {
            return Err(WebhookError::Forbidden);
        }
        let me = self.me.get().ok_or(WebhookError::NotReady)?;
        let Envelope { update_id } = serde_json::from_slice(body).map_err(|_| WebhookError::Garbled)?;
        self.health.event(now());
        let Ok(update) = serde_json::from_slice::<Update>(body) else {
            tracing::warn!(update_id, "an update cannot be read and is passed over");
            return Ok(None);
        };
        see(&self.chats, &update);
        let decoder = Decoder { account: &self.account, me, require_mention: self.require_mention };
        Ok(decoder.decode(&update, now()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;

    fn webhook(me: Option<Me>) -> Webhook {
        let known = OnceLock::new();
        me.map(|me| known.set(me));
        Webhook {
            account: "telegram".into(),
            secret: "s3cret_token".into(),
            require_mention: true,
            me: Arc::new(known),
            chats: Arc::default(),
            health: HealthCell::default(),
        }
    }

    fn pudu() -> Option<Me> {
        Some(Me { id: 42, username: "pudu_bot".into() })
    }

    const UPDATE: &[u8] = br#"{"update_id":1,"callback_query":{"id":"q","from":{"id":7,"first_name":"Ann"},
        "message":{"message_id":3,"date":1,"chat":{"id":7,"type":"private"}},"data":"/stop"}}"#;

    #[test]
    fn only_the_secret_opens_and_it_is_checked_before_the_body_is_read() {
        let webhook = webhook(pudu());
        for secret in
            [None, Some(&b""[..]), Some(b"s3cret_toke"), Some(b"s3cret_tokens"), Some(b"S3cret_token")]
        {
            assert_eq!(webhook.verify_and_decode(secret, b"{"), Err(WebhookError::Forbidden));
        }
        assert_eq!(webhook.verify_and_decode(Some(b"s3cret_token"), b"{"), Err(WebhookError::Garbled));
    }

    #[test]
    fn a_press_is_delivered_with_what_ends_its_wait() {
        let delivery = webhook(pudu()).verify_and_decode(Some(b"s3cret_token"), UPDATE).unwrap().unwrap();
        assert_eq!(delivery.inbound.kind, Kind::Press { action: "/stop".into() });
        let response = serde_json::json!({"method": "answerCallbackQuery", "callback_query_id": "q"});
        assert_eq!(delivery.response(), Some(response));
    }

    #[test]
    fn what_comes_too_early_is_posted_again() {
        assert_eq!(
            webhook(None).verify_and_decode(Some(b"s3cret_token"), UPDATE),
            Err(WebhookError::NotReady)
        );
    }

    #[test]
    fn an_update_that_cannot_be_read_is_not_posted_for_ever() {
        let update = br#"{"update_id":1,"message":{"message_id":"?"}}"#;
        assert_eq!(webhook(pudu()).verify_and_decode(Some(b"s3cret_token"), update), Ok(None));
    }
}
