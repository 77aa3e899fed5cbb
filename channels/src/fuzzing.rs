//! Entry points for fuzzers, which are in a separate workspace and see only public items. Each checks properties that
//! must hold for any input at all.

use crate::{
    AcceptError, Accepted, BoxFuture, Channel, EventSink, Inbound, Webhook, WebhookRequest, WebhookResponse,
    feishu,
    render::{parse, telegram::html},
    slack,
    split::{self, Limit, Unit},
    telegram,
};
use futures_util::FutureExt;
use hmac::{Hmac, KeyInit, Mac};
use pudu_net::reqwest::header::HeaderMap;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::{
    sync::{Arc, OnceLock},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::runtime::{Builder, Runtime};
use url::Url;

/// Splits arbitrary Markdown at any limit: every part fits and is not blank, no letter is lost, and all parts can be
/// rendered.
pub fn split(unit: u8, max: u8, text: &str) {
    let unit = match unit % 3 {
        0 => Unit::Bytes,
        1 => Unit::Chars,
        _ => Unit::Utf16,
    };
    let limit = Limit { unit, max: usize::from(max).max(8), columns: 60 };
    let rich = parse(text);
    let parts = split::split(&rich, limit);
    for part in &parts {
        assert!(unit.len(&part.text) <= limit.max, "{part:?} does not fit {limit:?}");
        assert!(!part.text.trim().is_empty());
        assert!(!html(part).is_empty());
    }
    // The header of a table is repeated deliberately.
    if rich.spans.iter().all(|span| !matches!(span.style, crate::render::Style::Table { .. })) {
        let ink = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
        assert_eq!(parts.iter().map(|part| ink(&part.text)).collect::<String>(), ink(&rich.text));
    }
}

/// Feeds arbitrary bytes to a Feishu long connection, as messages that each begin with a length byte: no panic, and no
/// more is buffered than the limits allow.
pub fn feishu_frames(data: &[u8]) {
    feishu::fuzz_frames(data);
}

/// Posts arbitrary bodies to each platform's webhook, unsigned and signed as the platform would: an unsigned post is
/// never accepted, and no post causes a panic.
pub fn webhooks(body: &[u8]) {
    // Look-ups, such as those of names, never finish, because no server answers.
    static RUNTIME: OnceLock<Option<Runtime>> = OnceLock::new();
    let runtime = RUNTIME.get_or_init(|| Builder::new_current_thread().enable_all().build().ok());
    let _context = runtime.as_ref().map(Runtime::enter);
    let sealed = sealed(body);
    let posts = [(slack(), body), (feishu(), body), (feishu(), &sealed), (telegram(), body)];
    for (hook, body) in posts {
        let Some(hook) = hook else { continue };
        for signed in [false, true] {
            let mut headers = HeaderMap::new();
            if signed {
                sign(&mut headers, body);
            }
            let sink = Door { open: signed };
            let answer = hook.handle(WebhookRequest { headers: &headers, body }, &sink).now_or_never();
            assert!(
                signed || !matches!(answer, Some(WebhookResponse::Garbled)),
                "the body is read before the signature"
            );
        }
    }
}

const SECRET: &str = "fuzzed-secret";

/// Event sink that panics on an event while it is closed: no unsigned post may be accepted.
struct Door {
    open: bool,
}

impl EventSink for Door {
    fn accept<'a>(&'a self, _: Inbound) -> BoxFuture<'a, Result<Accepted, AcceptError>> {
        assert!(self.open, "a post without a signature was believed");
        Box::pin(std::future::ready(Ok(Accepted::New)))
    }

    crate::event_sink::knows_no_messages!();
}

type Hook = Option<Arc<dyn Webhook>>;

fn address() -> Option<Url> {
    Url::parse("http://127.0.0.1:9").ok()
}

fn slack() -> Hook {
    let delivery = slack::SlackEventMode::Http { signing_secret: SECRET.into() };
    let config = slack::SlackConfig {
        account: "slack".to_owned(),
        bot_token: "xoxb-fuzzed".into(),
        api_url: address()?,
        delivery,
        require_mention: true,
        bot_user_id: None,
        commands: Vec::new(),
    };
    slack::SlackChannel::new(config).ok()?.with_identity().webhook()
}

fn feishu() -> Hook {
    let mode =
        feishu::FeishuEventMode::Webhook { encrypt_key: SECRET.into(), verification_token: SECRET.into() };
    let config = feishu::FeishuConfig {
        account: "feishu".to_owned(),
        app_id: "cli_0000000000000000".to_owned(),
        app_secret: "fuzzed".into(),
        domain: address()?,
        mode,
        require_mention: true,
        stream_interval: Duration::from_millis(500),
    };
    feishu::FeishuChannel::new(config).ok()?.with_identity().webhook()
}

fn telegram() -> Hook {
    let mode = telegram::TelegramUpdateMode::Webhook { url: address()?, secret_token: SECRET.into() };
    let config = telegram::TelegramConfig {
        account: "telegram".to_owned(),
        token: "1:fuzzed".into(),
        api_url: address()?,
        mode,
        require_mention: true,
        reads_groups: false,
        commands: Vec::new(),
    };
    telegram::TelegramChannel::new(config).ok()?.with_identity().webhook()
}

/// Encrypts a body for Feishu. If the body is an event, sets its verification token first.
fn sealed(body: &[u8]) -> Vec<u8> {
    let event = serde_json::from_slice::<Value>(body).ok().filter(Value::is_object).map(|mut event| {
        event["token"] = SECRET.into();
        if event["header"].is_object() {
            event["header"]["token"] = SECRET.into();
        }
        event.to_string().into_bytes()
    });
    let sealed = feishu::seal(event.as_deref().unwrap_or(body), SECRET);
    json!({ "encrypt": sealed }).to_string().into_bytes()
}

/// Signs a body as each platform does.
fn sign(headers: &mut HeaderMap, body: &[u8]) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs().to_string();
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let lark = Sha256::new().chain_update(&now).chain_update("n").chain_update(SECRET).chain_update(body);
    let mut pairs = vec![
        ("x-telegram-bot-api-secret-token", SECRET.to_owned()),
        ("x-lark-request-timestamp", now.clone()),
        ("x-lark-request-nonce", "n".to_owned()),
        ("x-lark-signature", hex(&lark.finalize())),
        ("x-slack-request-timestamp", now.clone()),
    ];
    if let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()) {
        mac.update(format!("v0:{now}:").as_bytes());
        mac.update(body);
        pairs.push(("x-slack-signature", format!("v0={}", hex(&mac.finalize().into_bytes()))));
    }
    for (name, value) in pairs {
        if let Ok(value) = value.parse() {
            headers.insert(name, value);
        }
    }
}
