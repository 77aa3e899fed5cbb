use super::*;
use crate::{
    Address, BoxFuture, KnownMessage, ReplyHandle, ReplyStore, ReplyStoreError, ReplyTarget,
    clock::now,
    feishu::{chat_cache::ChatCache, chat_client::FeishuAccountState, client::FeishuClient},
    pace::Pacer,
    render::parse,
    reply::MessageDraft,
};
use axum::{Json, Router, extract::Request};
use pudu_texts::Language;
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

/// A platform that records requests and gives the configured answers, or success.
#[derive(Clone, Default)]
struct Platform {
    asked: Arc<Mutex<Vec<(String, Value)>>>,
    answers: Arc<Mutex<VecDeque<(&'static str, Value)>>>,
}

impl Platform {
    /// Sets the answer to the next call whose path contains `part`.
    fn answer(&self, part: &'static str, answer: Value) {
        self.answers.lock().unwrap().push_back((part, answer));
    }

    fn refuse(&self, part: &'static str, code: i64) {
        self.answer(part, json!({"code": code, "msg": "no"}));
    }

    async fn take(self, request: Request) -> Json<Value> {
        let call = format!("{} {}", request.method(), request.uri().path().trim_start_matches("/open-apis/"));
        let query = request.uri().query().unwrap_or_default().to_owned();
        let body = axum::body::to_bytes(request.into_body(), 1 << 20).await.unwrap();
        if call.contains("tenant_access_token") {
            return Json(json!({"code": 0, "tenant_access_token": "t-1", "expire": 7200}));
        }
        let body = serde_json::from_slice(&body).unwrap_or(json!(query));
        self.asked.lock().unwrap().push((call.clone(), body));
        let mut answers = self.answers.lock().unwrap();
        let planned = answers.iter().position(|(part, _)| call.contains(part));
        let planned = planned.and_then(|at| answers.remove(at)).map(|(_, answer)| answer);
        let usual = json!({"code": 0, "data": {"card_id": "7001", "message_id": "om_new"}});
        Json(planned.unwrap_or(usual))
    }

    /// Returns and clears the calls so far.
    fn calls(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }

    fn names(&self) -> Vec<String> {
        self.calls().into_iter().map(|(call, _)| call).collect()
    }

    /// Returns the sequence numbers of the operations so far.
    fn sequences(&self) -> Vec<i64> {
        self.calls().iter().filter_map(|(_, body)| body["sequence"].as_i64()).collect()
    }
}

/// A reply store with one known message of this bot.
struct Book;

impl ReplyStore for Book {
    fn save<'a>(&'a self, _: &'a ReplyHandle) -> BoxFuture<'a, Result<(), ReplyStoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn known_messages<'a>(&'a self, _: i64) -> BoxFuture<'a, Result<Vec<KnownMessage>, ReplyStoreError>> {
        let known = vec![KnownMessage { chat: "oc_1".into(), message: "om_known".into() }];
        Box::pin(std::future::ready(Ok(known)))
    }
}

async fn reply(target: ReplyTarget) -> (FeishuMessages, Platform) {
    let platform = Platform::default();
    let serve = platform.clone();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let router = Router::new().fallback(move |request| serve.clone().take(request));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let client = FeishuClient::new(url.parse().unwrap(), "cli_1".into(), "s".into()).unwrap();
    let state = FeishuAccountState {
        client: Arc::new(client),
        pacer: Arc::new(Pacer::default()),
        bucket: Arc::new(crate::feishu::chat_client::bucket()),
        places: Arc::new(ChatCache::default()),
        numbered: Arc::default(),
        interval: Duration::from_millis(1),
    };
    (FeishuMessages::new(FeishuChatClient::new(state, &target)), platform)
}

fn target(topic: Option<&str>, private: bool) -> ReplyTarget {
    ReplyTarget {
        address: Address { account: "feishu".into(), chat: "oc_1".into(), topic: topic.map(Into::into) },
        private,
        reply_to: Some("om_asked".into()),
        sender: "ou_a".into(),
        language: Language::English,
        hint: None,
        saved: None,
    }
}

fn page(text: &str, done: bool) -> FeishuPage {
    FeishuPage::new(&MessageDraft { rich: parse(text), done, ..MessageDraft::default() })
}

fn made(age: i64) -> CreatedCard {
    CreatedCard { id: "7001".into(), at: now() - age, ahead: 0 }
}

fn shown(age: i64) -> FeishuMessageRef {
    FeishuMessageRef { id: "om_1".into(), card: Some(made(age)) }
}

fn intent(n: usize, age: i64) -> SendIntent<Option<CreatedCard>> {
    SendIntent {
        n,
        again: false,
        key: "k".repeat(32),
        since: now() - MARGIN - age,
        dedup_key: Some(made(age)),
    }
}

fn history() -> MessageHistory<'static> {
    MessageHistory::new(&Book, vec!["om_own".into()])
}

/// A token in the platform's format.
const PAGE: &str = "++//AbE8xYz0=/+q==";
const TEXT: &str = "PUT cardkit/v1/cards/7001/elements/text/content";
const WHOLE: &str = "PUT cardkit/v1/cards/7001";
const SETTINGS: &str = "PATCH cardkit/v1/cards/7001/settings";

#[tokio::test]
async fn text_is_streamed_into_a_known_card_and_the_end_closes_it() {
    let (mut messages, platform) = reply(target(None, true)).await;
    let mut sent = shown(5000);
    for (text, done) in [("a", false), ("ab", false), ("abc", true)] {
        messages.edit(&mut sent, &page(text, done)).await.unwrap();
    }
    let calls = platform.calls();
    let names: Vec<&str> = calls.iter().map(|(call, _)| call.as_str()).collect();
    assert_eq!(names, [WHOLE, TEXT, WHOLE, SETTINGS]);
    assert_eq!(calls[1].1["content"], "ab");
    let sequences: Vec<i64> = calls.iter().filter_map(|(_, body)| body["sequence"].as_i64()).collect();
    assert!(sequences.windows(2).all(|pair| pair[0] < pair[1]), "{sequences:?}");
    assert!(sequences[0] >= 5000, "they increase across a restart: {sequences:?}");
    let end: Value = serde_json::from_str(calls[3].1["settings"].as_str().unwrap()).unwrap();
    assert_eq!(end, json!({"config": {"streaming_mode": false, "summary": {"content": "abc"}}}));
}

#[tokio::test]
async fn a_sequence_number_exceeds_the_clock_only_after_its_offset_is_stored() {
    let (mut messages, platform) = reply(target(None, true)).await;
    // The clock was set back.
    let mut sent = shown(-60_000);
    for ahead in [1_000, 101_000, 10_101_000] {
        platform.refuse("cards/7001", 300_317);
        platform.refuse("cards/7001", 300_317);
        assert_eq!(messages.edit(&mut sent, &page("a", false)).await, Ok(EditOutcome::SaveFirst));
        assert_eq!(sent.card.as_ref().map(|card| card.ahead), Some(ahead));
    }
    messages.edit(&mut sent, &page("a", false)).await.unwrap();
    assert_eq!(platform.sequences(), [1, 2, 1001, 1002, 101_001, 101_002, 10_101_001]);
    platform.refuse("cards/7001", 300_317);
    platform.refuse("cards/7001", 300_317);
    let result = messages.edit(&mut sent, &page("abc", false)).await;
    assert!(matches!(result, Err(CallError::Refused(_))), "the attempts end: {result:?}");
}

#[tokio::test]
async fn an_attempt_without_a_response_is_repeated_with_another_number() {
    let (mut messages, platform) = reply(target(None, true)).await;
    for _ in 0..2 {
        platform.refuse("cards/7001", 2200);
    }
    messages.edit(&mut shown(5000), &page("a", false)).await.unwrap();
    let sequences = platform.sequences();
    assert!(sequences.len() == 3 && sequences.windows(2).all(|pair| pair[0] < pair[1]), "{sequences:?}");
}

/// A number that was used by a call without an answer is refused. The next number comes from the clock.
#[tokio::test]
async fn a_used_sequence_number_is_replaced_by_the_clocks() {
    let (mut messages, platform) = reply(target(None, true)).await;
    platform.refuse("cards/7001", 300_317);
    messages.edit(&mut shown(5000), &page("a", false)).await.unwrap();
    let sequences = platform.sequences();
    assert!(sequences.len() == 2 && sequences[1] < 6000 && sequences[0] < sequences[1], "{sequences:?}");
}

#[tokio::test]
async fn a_closed_stream_is_reopened() {
    for code in [200_850, 300_309] {
        let (mut messages, platform) = reply(target(None, true)).await;
        let mut sent = shown(0);
        messages.edit(&mut sent, &page("a", false)).await.unwrap();
        platform.refuse("content", code);
        messages.edit(&mut sent, &page("ab", false)).await.unwrap();
        assert_eq!(platform.names(), [WHOLE, TEXT, SETTINGS, TEXT]);
        platform.refuse("content", code);
        platform.refuse("content", 300_309);
        messages.edit(&mut sent, &page("abc", false)).await.unwrap();
        assert_eq!(platform.names(), [TEXT, SETTINGS, TEXT, WHOLE], "the file cannot be opened");
    }
}

#[tokio::test]
async fn a_rejected_form_falls_back_to_the_next() {
    let (mut messages, platform) = reply(target(None, true)).await;
    platform.refuse("cardkit/v1/cards", 99_991_672);
    let mark = messages.dedup_key(None, 0, &history()).await.unwrap();
    assert_eq!((mark, messages.platform_state()), (None, json!({"way": "card"})));
    platform.refuse("im/v1/messages", 230_099);
    platform.refuse("im/v1/messages", 230_001);
    platform.calls();
    let unmade = SendIntent { dedup_key: None, ..intent(0, 0) };
    messages.post(&unmade, &page("a", true)).await.unwrap();
    let kinds: Vec<Value> = platform.calls().into_iter().map(|(_, body)| body["msg_type"].clone()).collect();
    assert_eq!(kinds, ["interactive", "post", "text"]);
    assert!(!messages.capabilities().edits);
    assert_eq!(messages.platform_state(), json!({"way": "text"}));
    let (mut again, _) = reply(target(None, true)).await;
    again.restore_platform_state(&json!({"way": "text"}));
    assert!(!again.capabilities().edits, "after a restart the better methods are not tried again");
    let mut fixed = FeishuMessageRef { id: "om_1".into(), card: None };
    assert_eq!(again.edit(&mut fixed, &page("a", false)).await, Ok(EditOutcome::Shown));
    assert_eq!(again.edit(&mut fixed, &page("a", true)).await, Err(unchangeable()));
}

#[tokio::test]
async fn a_deleted_card_is_replaced_by_another_message() {
    for code in [200_740, 200_750, 99_991_672] {
        let (mut messages, platform) = reply(target(None, true)).await;
        platform.refuse("cards/7001", code);
        assert_eq!(messages.edit(&mut shown(0), &page("a", true)).await, Err(unchangeable()), "{code}");
        assert_eq!(messages.platform_state(), json!({"way": "card"}));
    }
}

#[tokio::test]
async fn a_message_is_sent_to_its_thread_with_its_key() {
    let thread = json!({"thread": "omt_1"});
    let private = ReplyTarget { hint: Some(thread), ..target(None, true) };
    let cases = [
        (target(None, true), 0, "POST im/v1/messages", None),
        (target(None, false), 0, "POST im/v1/messages/om_asked/reply", Some(false)),
        (target(None, false), 1, "POST im/v1/messages", None),
        (target(Some("omt_1"), false), 1, "POST im/v1/messages/om_asked/reply", Some(true)),
        (private, 1, "POST im/v1/messages/om_asked/reply", Some(false)),
    ];
    for (target, n, path, threaded) in cases {
        let (mut messages, platform) = reply(target).await;
        let mark = messages.dedup_key(None, 0, &history()).await.unwrap();
        let intent = SendIntent { dedup_key: mark, ..intent(n, 0) };
        let sent = messages.post(&intent, &FeishuPage::sign()).await.unwrap();
        let calls = platform.calls();
        assert_eq!((calls.len(), calls[1].0.as_str(), sent.id.as_str()), (2, path, "om_new"));
        let body = &calls[1].1;
        assert_eq!((&body["uuid"], body["reply_in_thread"].as_bool()), (&json!("k".repeat(32)), threaded));
        assert_eq!(body["content"], json!({"type": "card", "data": {"card_id": "7001"}}).to_string());
    }
}

#[tokio::test]
async fn a_reply_to_a_deleted_message_has_no_reference() {
    for code in [230_011, 230_019, 230_071] {
        let (mut messages, platform) = reply(target(None, false)).await;
        platform.refuse("reply", code);
        messages.post(&intent(0, 0), &page("a", true)).await.unwrap();
        let names = platform.names();
        assert_eq!(names.last().map(String::as_str), Some("POST im/v1/messages"), "{code}");
    }
}

#[tokio::test]
async fn a_message_is_found_by_key_within_an_hour_and_later_in_the_chat() {
    let (mut messages, platform) = reply(target(None, true)).await;
    assert_eq!(messages.find(&intent(0, 60_000), &history()).await, Ok(None));
    assert_eq!(platform.names(), [""; 0], "no request is needed");
    let item = |id: &str, app: &str| json!({"message_id": id, "sender": {"id": app}});
    let items = [item("om_theirs", "ou_a"), item("om_known", "cli_1"), item("om_own", "cli_1")];
    platform.answer(
        "im/v1/messages",
        json!({"code": 0, "data": {"items": items, "has_more": true, "page_token": PAGE}}),
    );
    let items = [item("om_lost", "cli_1")];
    platform.answer("im/v1/messages", json!({"code": 0, "data": {"items": items, "has_more": false}}));
    let old = intent(0, 2 * MARGIN);
    let found = messages.find(&old, &history()).await.unwrap();
    assert_eq!(found, Some(FeishuMessageRef { id: "om_lost".into(), card: old.dedup_key }));
    let calls = platform.calls();
    assert!(
        calls[0].1.as_str().unwrap().contains("container_id=oc_1&sort_type=ByCreateTimeAsc"),
        "{calls:?}"
    );
    // Byte for byte, as the platform parses a query.
    let query = calls[1].1.as_str().unwrap().as_bytes();
    let token = url::form_urlencoded::parse(query).find(|(name, _)| name == "page_token");
    assert_eq!(token.map(|(_, token)| token.into_owned()).as_deref(), Some(PAGE), "{calls:?}");
    let request = calls[0].1.as_str().unwrap();
    let time = |name: &str| {
        let (_, rest) = request.split_once(name).unwrap();
        rest.split('&').next().unwrap().parse::<i64>().unwrap() * 1000
    };
    let (from, to) = (time("start_time="), time("end_time="));
    assert!(from <= now() - 2 * MARGIN + SKEW && to >= now(), "any attempt may have created it: {request}");
}

#[tokio::test]
async fn a_waiting_chat_gets_no_calls() {
    let (mut messages, platform) = reply(target(None, true)).await;
    platform.refuse("cards/7001", 230_020);
    let wait = Err(CallError::Wait(Duration::from_secs(1)));
    assert_eq!(messages.edit(&mut shown(0), &page("a", false)).await, wait);
    platform.calls();
    assert!(matches!(messages.check_rate_limit(), Err(CallError::Wait(_))));
    assert!(matches!(messages.edit(&mut shown(0), &page("a", false)).await, Err(CallError::Wait(_))));
    assert_eq!(platform.names(), [""; 0]);
}

/// The possible effect of one attempt is not undone by the result of the next.
#[tokio::test]
async fn an_unknown_outcome_stays_unknown_after_the_next_attempt() {
    const TOKEN: i64 = 99_991_663;
    for codes in [&[2200, 230_020][..], &[2200, TOKEN, TOKEN, TOKEN, TOKEN], &[2200, 1, 230_013]] {
        let (mut messages, platform) = reply(target(None, true)).await;
        codes.iter().for_each(|code| platform.refuse("im/v1/messages", *code));
        let sent = messages.post(&intent(0, 0), &page("a", true)).await;
        assert!(matches!(sent, Err(CallError::Unknown(_))), "{codes:?}: {sent:?}");
    }
    // A change is simply repeated, because repetitions are harmless.
    let (mut messages, platform) = reply(target(None, true)).await;
    [2200, 230_020].iter().for_each(|code| platform.refuse("cards/7001", *code));
    let changed = messages.edit(&mut shown(0), &page("a", false)).await;
    assert!(matches!(changed, Err(CallError::Wait(_))), "{changed:?}");
}

#[test]
fn the_format_of_records_is_stable() {
    let sent = FeishuMessageRef {
        id: "om_1".into(),
        card: Some(CreatedCard { id: "7001".into(), at: 5, ahead: 1000 }),
    };
    let stored = json!({"id": "om_1", "card": {"id": "7001", "at": 5, "ahead": 1000}});
    assert_eq!(serde_json::to_value(&sent).unwrap(), stored);
    assert_eq!(serde_json::from_value::<FeishuMessageRef>(stored).unwrap(), sent);
    assert_eq!(
        serde_json::from_value::<FeishuMessageRef>(json!({"id": "om_1"})).ok(),
        FeishuMessageRef::from_id("om_1")
    );
}
