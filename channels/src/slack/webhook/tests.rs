use super::*;
use crate::{
    AcceptError, Accepted, HealthCell, HealthState, Inbound, InboundKind,
    clock::now,
    slack::{account_state::SlackAccountState, client::SlackClient, wire::SlackIdentity},
};
use proptest::prelude::*;
use pudu_net::reqwest::header::HeaderMap;
use std::sync::{Arc, Mutex};

/// Stores accepted events, or is full.
#[derive(Default)]
struct Kept1 {
    kept: Mutex<Vec<Inbound>>,
    full: bool,
}

impl EventSink for Kept1 {
    fn accept<'a>(&'a self, inbound: Inbound) -> BoxFuture<'a, Result<Accepted, AcceptError>> {
        let result = if self.full { Err(AcceptError::Full) } else { Ok(Accepted::New) };
        self.kept.lock().unwrap().push(inbound);
        Box::pin(std::future::ready(result))
    }

    crate::event_sink::knows_no_messages!();
}

fn webhook(known: bool) -> SlackWebhook {
    let client = SlackClient::new("http://127.0.0.1:9/api".parse().unwrap(), "xoxb-1".into(), None).unwrap();
    let state = SlackAccountState::new(client);
    if known {
        let _ = state.me.set(SlackIdentity { user: "UBOT".into(), bot: "BBOT".into(), team: "T1".into() });
    }
    let handler = SlackEventHandler {
        account: "slack".into(),
        state: Arc::new(state),
        require_mention: true,
        commands: Arc::new([]),
        health: HealthCell::default(),
        order: Arc::default(),
    };
    SlackWebhook { handler, secret: "8f742231b10e8888abcd99yyyzzz85a5".into() }
}

fn seconds() -> u64 {
    u64::try_from(now() / 1000).unwrap()
}

async fn post(hook: &SlackWebhook, body: &[u8], sink: &Kept1) -> WebhookResponse {
    let at = seconds();
    let mut headers = HeaderMap::new();
    headers.insert("x-slack-request-timestamp", at.to_string().parse().unwrap());
    headers.insert("x-slack-signature", signature(&hook.secret, at, body).parse().unwrap());
    hook.handle(WebhookRequest { headers: &headers, body }, sink).await
}

#[test]
fn only_a_fresh_signature_over_the_exact_body_is_valid() {
    let hook = webhook(true);
    let now = 1_700_000_000;
    let check = |at: &str, signature: &str, body: &[u8]| {
        let mut headers = HeaderMap::new();
        headers.insert("x-slack-request-timestamp", at.parse().unwrap());
        headers.insert("x-slack-signature", signature.parse().unwrap());
        hook.is_slacks(WebhookRequest { headers: &headers, body }, now)
    };
    let sign = |at: u64| signature(&hook.secret, at, b"{}");
    assert!(check("1700000000", &sign(now), b"{}"));
    assert!(check("1699999700", &sign(now - 300), b"{}"));
    assert!(!check("1699999699", &sign(now - 301), b"{}"), "old");
    assert!(!check("1700000301", &sign(now + 301), b"{}"), "from the future");
    assert!(!check("1700000000", &sign(now), b"{} "), "another body");
    assert!(!check("1700000001", &sign(now), b"{}"), "another time");
    assert!(!check("x", &sign(now), b"{}"));
    assert!(!check("1700000000", "", b"{}"));
    assert!(!check("1700000000", "v0=", b"{}"));
    let headers = HeaderMap::new();
    assert!(!hook.is_slacks(WebhookRequest { headers: &headers, body: b"{}" }, now));
}

#[test]
fn the_signature_is_the_documented_one() {
    let body = b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
    let expected = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503";
    assert_eq!(signature(&webhook(true).secret, 1_531_420_618, body), expected);
}

#[tokio::test]
async fn each_kind_of_post_is_stored_before_it_is_answered() {
    let hook = webhook(true);
    let event = br#"{"type":"event_callback","team_id":"T1","event":{"type":"message","channel":"D1","channel_type":"im","user":"U1","text":"hi","ts":"1.2"}}"#;
    let action = r#"{"type":"block_actions","user":{"id":"U1"},"container":{"message_ts":"1.2","channel_id":"D1"},"actions":[{"action_id":"pudu_0","value":"/stop","action_ts":"3"}]}"#;
    let action = form_urlencoded::Serializer::new(String::new()).append_pair("payload", action).finish();
    let slash = b"command=%2Fpudu&text=hello+there&channel_id=D1&user_id=U1&trigger_id=7.8";
    let words = |text: &str| InboundKind::Message { text: text.into(), attachments: vec![], album: None };
    let cases: [(&[u8], InboundKind); 3] = [
        (event, words("hi")),
        (action.as_bytes(), InboundKind::Press { action: "/stop".into() }),
        (slash, words("hello there")),
    ];
    for (body, kind) in cases {
        let sink = Kept1::default();
        assert_eq!(post(&hook, body, &sink).await, WebhookResponse::Taken(None));
        assert_eq!(sink.kept.lock().unwrap()[0].kind, kind);
        let full = Kept1 { full: true, ..Kept1::default() };
        assert_eq!(post(&hook, body, &full).await, WebhookResponse::Later);
        assert_eq!(post(&webhook(false), body, &Kept1::default()).await, WebhookResponse::Later, "too early");
    }
}

#[tokio::test]
async fn an_unstored_event_degrades_health_until_one_is_stored() {
    let (hook, early) = (webhook(true), webhook(false));
    let state = |hook: &SlackWebhook| hook.handler.health.get().state;
    let slash = b"command=%2Fpudu&text=hello&channel_id=D1&user_id=U1&trigger_id=7.8";
    hook.handler.health.ready();
    let full = Kept1 { full: true, ..Kept1::default() };
    assert_eq!(post(&hook, slash, &full).await, WebhookResponse::Later);
    assert_eq!(state(&hook), HealthState::Degraded);
    assert_eq!(post(&hook, slash, &Kept1::default()).await, WebhookResponse::Taken(None));
    assert_eq!(state(&hook), HealthState::Ready);
    assert_eq!(post(&early, slash, &Kept1::default()).await, WebhookResponse::Later);
    assert_eq!(state(&early), HealthState::Connecting, "the state is not worse than before");
}

#[tokio::test]
async fn a_new_url_is_confirmed_and_garbage_is_refused() {
    let (hook, sink) = (webhook(false), Kept1::default());
    let body = br#"{"type":"url_verification","challenge":"c4a11e"}"#;
    assert_eq!(post(&hook, body, &sink).await, WebhookResponse::Taken(Some(json!({"challenge": "c4a11e"}))));
    for garbage in [&b""[..], b"{", b"[]", b"payload=%7B", b"x=y", b"\xff\xfe"] {
        assert_eq!(post(&hook, garbage, &sink).await, WebhookResponse::Garbled, "{garbage:?}");
    }
    let unsigned = WebhookRequest { headers: &HeaderMap::new(), body };
    assert_eq!(hook.handle(unsigned, &sink).await, WebhookResponse::Forbidden);
    let strange = br#"{"type":"event_callback","event":{"type":7}}"#;
    assert_eq!(
        post(&webhook(true), strange, &sink).await,
        WebhookResponse::Taken(None),
        "otherwise Slack would redeliver it forever"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn arbitrary_bodies_never_panic(body in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&body);
    }
}
