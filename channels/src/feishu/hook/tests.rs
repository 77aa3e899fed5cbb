use super::*;
use crate::feishu::{chat_cache::ChatCache, client::FeishuClient};
use crate::{AcceptError, Accepted, HealthCell, HealthState, Inbound, InboundKind, clock::now};
use pudu_net::reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::sync::{Arc, Mutex, OnceLock};

const KEY: &str = "encrypt-key";

/// Stores accepted events, or refuses them.
#[derive(Default)]
struct Tray {
    kept: Mutex<Vec<Inbound>>,
    full: bool,
}

impl EventSink for Tray {
    fn accept<'a>(&'a self, inbound: Inbound) -> BoxFuture<'a, Result<Accepted, AcceptError>> {
        let result = if self.full { Err(AcceptError::Full) } else { Ok(Accepted::New) };
        self.kept.lock().unwrap().push(inbound);
        Box::pin(std::future::ready(result))
    }

    crate::event_sink::knows_no_messages!();
}

fn hook() -> FeishuWebhook {
    let client = FeishuClient::new("http://127.0.0.1:1".parse().unwrap(), "cli".into(), "s".into()).unwrap();
    let me = OnceLock::new();
    me.set("ou_me".to_owned()).unwrap();
    let parser = FeishuEventParser {
        account: "feishu".into(),
        client: Arc::new(client),
        places: Arc::new(ChatCache::default()),
        numbered: Arc::default(),
        me: Arc::new(me),
        require_mention: true,
        health: HealthCell::default(),
        order: Arc::default(),
    };
    FeishuWebhook { parser, encrypt_key: KEY.into(), verification_token: "token".into() }
}

fn sealed(event: &Value) -> String {
    json!({"encrypt": seal::close(event.to_string().as_bytes(), KEY)}).to_string()
}

fn headers(seconds: i64, key: &str, body: &str) -> HeaderMap {
    let time = seconds.to_string();
    let hash = Sha256::digest(format!("{time}nonce{key}{body}").as_bytes());
    let signature: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    let all = [
        ("x-lark-request-timestamp", time),
        ("x-lark-request-nonce", "nonce".to_owned()),
        ("x-lark-signature", signature),
    ];
    let header = |(name, value): (&'static str, String)| {
        (HeaderName::from_static(name), HeaderValue::try_from(value).unwrap())
    };
    all.into_iter().map(header).collect()
}

fn message() -> Value {
    json!({
        "schema": "2.0",
        "header": {"event_id": "e1", "event_type": "im.message.receive_v1", "token": "token"},
        "event": {
            "sender": {"sender_id": {"open_id": "ou_a"}, "sender_type": "user"},
            "message": {
                "message_id": "om_1", "chat_id": "oc_1", "chat_type": "p2p", "message_type": "text",
                "content": "{\"text\":\"hi\"}", "create_time": "1000",
            },
        },
    })
}

async fn answer(hook: &FeishuWebhook, headers: &HeaderMap, body: &str, sink: &Tray) -> WebhookResponse {
    hook.handle(WebhookRequest { headers, body: body.as_bytes() }, sink).await
}

#[tokio::test]
async fn a_signed_and_encrypted_event_is_stored() {
    let (hook, sink) = (hook(), Tray::default());
    let body = sealed(&message());
    let response = answer(&hook, &headers(now() / 1000, KEY, &body), &body, &sink).await;
    assert_eq!(response, WebhookResponse::Taken(None));
    let stored = sink.kept.lock().unwrap();
    let text = InboundKind::Message { text: "hi".into(), attachments: Vec::new(), album: None };
    assert_eq!((stored[0].key.0.as_str(), &stored[0].kind), ("m:om_1", &text));
}

#[tokio::test]
async fn an_event_that_cannot_be_stored_is_posted_again() {
    let hook = hook();
    hook.parser.health.ready();
    let body = sealed(&message());
    for (full, expected, state) in [
        (true, WebhookResponse::Later, HealthState::Degraded),
        (false, WebhookResponse::Taken(None), HealthState::Ready),
    ] {
        let sink = Tray { full, ..Tray::default() };
        let response = answer(&hook, &headers(now() / 1000, KEY, &body), &body, &sink).await;
        assert_eq!((response, hook.parser.health.get().state), (expected, state));
    }
}

#[tokio::test]
async fn a_post_from_another_sender_is_refused() {
    let (hook, sink) = (hook(), Tray::default());
    let seconds = now() / 1000;
    let body = sealed(&message());
    let mut wrong_token = message();
    wrong_token["header"]["token"] = "other".into();
    let wrong_token = sealed(&wrong_token);
    let clear = message().to_string();
    let cases = [
        ("unsigned", HeaderMap::new(), &body),
        ("of another key", headers(seconds, "other", &body), &body),
        ("old", headers(seconds - 301, KEY, &body), &body),
        ("ahead", headers(seconds + 360, KEY, &body), &body),
        ("changed", headers(seconds, KEY, "{}"), &body),
        ("with another token", headers(seconds, KEY, &wrong_token), &wrong_token),
        ("unencrypted and unsigned", HeaderMap::new(), &clear),
    ];
    for (what, headers, body) in cases {
        assert_eq!(answer(&hook, &headers, body, &sink).await, WebhookResponse::Forbidden, "{what}");
    }
    let signed = answer(&hook, &headers(seconds, KEY, &clear), &clear, &sink).await;
    assert_eq!(signed, WebhookResponse::Garbled, "signed but not encrypted");
    assert_eq!(sink.kept.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn the_challenge_is_answered_only_with_the_key() {
    let (hook, sink) = (hook(), Tray::default());
    let challenge =
        |token: &str| sealed(&json!({"type": "url_verification", "challenge": "c", "token": token}));
    let answered = WebhookResponse::Taken(Some(json!({"challenge": "c"})));
    assert_eq!(answer(&hook, &HeaderMap::new(), &challenge("token"), &sink).await, answered);
    assert_eq!(
        answer(&hook, &HeaderMap::new(), &challenge("other"), &sink).await,
        WebhookResponse::Forbidden
    );
    let clear = json!({"type": "url_verification", "challenge": "c", "token": "token"}).to_string();
    assert_eq!(answer(&hook, &HeaderMap::new(), &clear, &sink).await, WebhookResponse::Forbidden);
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

    #[test]
    fn arbitrary_bodies_are_harmless(body in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
        let hook = hook();
        let headers = headers(now() / 1000, KEY, &String::from_utf8_lossy(&body));
        let _ = hook.open(WebhookRequest { headers: &headers, body: &body }, now());
        let _ = hook.open(WebhookRequest { headers: &HeaderMap::new(), body: &body }, now());
    }
}
