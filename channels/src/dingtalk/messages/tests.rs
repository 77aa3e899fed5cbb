use super::*;
use crate::{
    BoxFuture, FinalView, KnownMessage, LiveReply, ReplyHandle, ReplyStore, ReplyStoreError, ReplyView,
    dingtalk::loopback::{DingTalkLoopback, failure},
    render::parse,
    reply::{MessageRef as _, PlatformReply},
};
use pudu_texts::Language;
use std::sync::Mutex;

#[test]
fn the_format_of_message_records_is_stable() {
    let posted = DingMessageRef {
        id: "p-key-seal".into(),
        card: true,
        done: false,
        ending: true,
        revision: 3,
        text_digest: "aa".into(),
        buttons: "bb".into(),
    };
    let stored = json!({"id": "p-key-seal", "card": true, "done": false, "ending": true, "nth": 3, "shows": "aa", "buttons": "bb"});
    assert_eq!(serde_json::to_value(&posted).unwrap(), stored);
    assert_eq!(serde_json::from_value::<DingMessageRef>(stored).unwrap(), posted);
    let bare = |card| DingMessageRef { card, ..serde_json::from_value(json!({"id": "x"})).unwrap() };
    assert_eq!(serde_json::from_value::<DingMessageRef>(json!({"id": "x"})).unwrap(), bare(false));
    assert_eq!(DingMessageRef::from_id("g-k-s").map(|posted| posted.card), Some(true));
    assert_eq!(DingMessageRef::from_id("pqk1").map(|posted| posted.card), Some(false));
}

/// The messages of a reply with this hint, with or without cards.
fn messages(private: bool, hint: Option<Value>, cards: bool) -> DingMessages {
    on(crate::dingtalk::loopback::channel("http://127.0.0.1:9", cards).state, private, hint)
}

/// The messages of a reply of this bot.
fn on(state: Arc<DingTalkAccountState>, private: bool, hint: Option<Value>) -> DingMessages {
    DingMessages::new(state, &reply_target(private, hint))
}

fn reply_target(private: bool, hint: Option<Value>) -> ReplyTarget {
    ReplyTarget {
        address: Address { account: "dingtalk".into(), chat: "c".into(), topic: None },
        private,
        reply_to: None,
        sender: "u".into(),
        language: Language::English,
        hint,
        saved: None,
    }
}

#[test]
fn a_reply_determines_its_recipient_and_form() {
    let check = |private, hint: Option<Value>, target: RobotTarget, grows| {
        let messages = messages(private, hint, true);
        assert_eq!((&messages.robot.target, messages.capabilities().edits), (&target, grows));
    };
    check(true, None, RobotTarget::Person("c".into()), true);
    check(true, Some(json!({"staff": true})), RobotTarget::Person("c".into()), true);
    check(true, Some(json!({"staff": false})), RobotTarget::Session, false);
    check(false, Some(json!({"staff": false})), RobotTarget::Group("c".into()), true);
    check(true, Some(json!("garbage")), RobotTarget::Person("c".into()), true);
    assert!(!messages(true, None, false).capabilities().edits);
}

#[test]
fn updates_slow_down_with_their_number() {
    let mut messages = messages(true, None, true);
    let mut interval = |changes| {
        messages.changes = changes;
        messages.interval().as_millis()
    };
    assert_eq!([0, 59, 60, 120, 299].map(&mut interval), [800, 800, 1600, 3200, 12_800]);
    assert_eq!(interval(u32::MAX), 30_000);
}

#[tokio::test]
async fn an_unchangeable_message_stays_until_the_end_and_is_then_replaced() {
    let mut messages = messages(true, None, false);
    let draft = |text: &str, done| MessageDraft { rich: parse(text), done, ..MessageDraft::default() };
    let page = |text: &str, done| DingTalkPage::new(&draft(text, done));
    let mut sent =
        DingMessageRef { id: "k".into(), text_digest: "x".into(), ..DingMessageRef::from_id("k").unwrap() };
    assert_eq!(messages.edit(&mut sent, &page("more", false)).await, Ok(EditOutcome::Shown));
    assert_eq!(messages.edit(&mut sent, &page("all", true)).await, Err(unchangeable()));
    let full = page("all", true);
    let mut answer = DingMessageRef {
        done: true,
        text_digest: digest(&[&full.text]),
        buttons: digest(&[&full.buttons()]),
        ..sent
    };
    assert_eq!(
        messages.edit(&mut answer, &full).await,
        Ok(EditOutcome::Shown),
        "after a restart it is not sent again"
    );
}

/// Stores the record of one reply.
#[derive(Clone, Default)]
struct MemoryReplyStore(Arc<Mutex<Option<ReplyHandle>>>);

impl ReplyStore for MemoryReplyStore {
    fn save<'a>(&'a self, handle: &'a ReplyHandle) -> BoxFuture<'a, Result<(), ReplyStoreError>> {
        *self.0.lock().unwrap() = Some(handle.clone());
        Box::pin(async { Ok(()) })
    }

    fn known_messages<'a>(&'a self, _: i64) -> BoxFuture<'a, Result<Vec<KnownMessage>, ReplyStoreError>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

impl MemoryReplyStore {
    /// The reply to a person, restored from the record.
    fn reply(&self, state: &Arc<DingTalkAccountState>) -> PlatformReply<DingMessages> {
        let reply_target = ReplyTarget { saved: self.0.lock().unwrap().clone(), ..reply_target(true, None) };
        PlatformReply::open(on(Arc::clone(state), true, None), &reply_target, Box::new(self.clone()))
    }
}

fn answer() -> FinalView {
    FinalView { text: "yes".into(), ..FinalView::default() }
}

#[tokio::test]
async fn an_answer_is_sent_until_its_arrival_is_confirmed() {
    // DingTalk's answer to each attempt; whether pudu restarts before each; the number of attempts.
    let check = async |codes: &'static [&'static str], anew: bool, place: bool, times: usize| {
        let mut codes_left = codes.iter();
        let server = DingTalkLoopback::start(move |path, _| match path.ends_with("batchSend") {
            true => codes_left.next().map_or((200, json!({"processQueryKey": "k"})), |code| failure(code)),
            false => (200, json!({})),
        })
        .await;
        let (state, shelf) = (server.state(false), MemoryReplyStore::default());
        let mut reply = shelf.reply(&state);
        if place {
            assert_eq!(reply.update(&ReplyView::default()).await, Ok(()), "the answer may follow soon");
            tokio::time::pause();
            tokio::time::advance(PLACEHOLDER_DELAY).await;
            tokio::time::resume();
            assert!(reply.update(&ReplyView::default()).await.is_err());
        }
        let mut rounds = 0;
        loop {
            if anew {
                reply = shelf.reply(&state);
            }
            rounds += 1;
            if reply.finish(&answer()).await.is_ok() || rounds > 9 {
                break;
            }
        }
        assert_eq!(reply.finish(&answer()).await, Ok(()), "and stays so");
        let sent = server.calls().into_iter().filter(|call| call == "batchSend").count();
        assert_eq!(sent, times, "{codes:?}");
    };
    for anew in [false, true] {
        check(&[], anew, false, 1).await;
        check(&["InternalError"], anew, false, 2).await;
        check(&["InternalError"; 7], anew, false, 8).await;
        check(&["InternalError", "invalidParameter", "InternalError", "InternalError"], anew, false, 5).await;
    }
    // The placeholder is not sent again.
    check(&["InternalError"; 5], false, true, 6).await;
}

#[tokio::test]
async fn an_unconfirmed_answer_is_resent_rarely_after_a_while() {
    let server = DingTalkLoopback::start(|path, _| match path.ends_with("batchSend") {
        true => failure("InternalError"),
        false => (200, json!({})),
    })
    .await;
    let (state, shelf) = (server.state(false), MemoryReplyStore::default());
    let mut reply = shelf.reply(&state);
    for _ in 0..40 {
        assert!(reply.finish(&answer()).await.is_err());
    }
    assert_eq!(server.calls().len(), usize::from(OFTEN) + 1);
    assert!(matches!(reply.finish(&answer()).await, Err(SendError::Later { after }) if after <= RARELY));
}

/// The gateway answers 502 but delivers, so each attempt sends another copy.
#[tokio::test]
async fn the_success_of_other_calls_does_not_resend_an_uncertain_answer() {
    let server = DingTalkLoopback::start(|path, _| match path.ends_with("batchSend") {
        true => failure("InternalError"),
        false => (200, json!({})),
    })
    .await;
    let state = server.state(false);
    let mut reply = MemoryReplyStore::default().reply(&state);
    assert!(matches!(reply.finish(&answer()).await, Err(SendError::Unreachable(_))));
    tokio::time::pause();
    let start = Instant::now();
    let others = async {
        loop {
            tokio::time::sleep(Duration::from_millis(10)).await;
            state.api.transport.writes.failed();
            state.api.transport.writes.answered();
        }
    };
    tokio::select! {
        () = reply.pause(RARELY) => {}
        () = others => {}
    }
    assert!(start.elapsed() >= RARELY, "{:?}", start.elapsed());
}

#[tokio::test]
async fn only_answered_calls_show_that_dingtalk_responds() {
    let server = DingTalkLoopback::start(|_, _| (200, json!({"processQueryKey": "k"}))).await;
    let state = server.state(false);
    state.record_no_recall();
    let failing = || state.api.transport.writes.is_failing();
    let mut reply = MemoryReplyStore::default().reply(&state);
    state.api.transport.writes.failed();
    // No placeholder can be sent, so nothing is shown before the answer.
    reply.update(&ReplyView::default()).await.unwrap();
    assert!(failing());
    reply.finish(&answer()).await.unwrap();
    assert!(!failing());
    reply.finish(&answer()).await.unwrap();
    state.api.transport.writes.failed();
    reply.finish(&answer()).await.unwrap();
    assert!(failing(), "the message exists already: no call was made");
}

#[tokio::test]
async fn a_card_whose_end_has_to_wait_is_still_finished() {
    let server = DingTalkLoopback::start(|_, _| (200, json!({"success": true, "result": true}))).await;
    let state = server.state(true);
    let mut messages = on(Arc::clone(&state), true, None);
    let page = DingTalkPage::new(&MessageDraft { rich: parse("all"), done: true, ..MessageDraft::default() });
    let mut sent = DingMessageRef { card: true, ending: false, ..DingMessageRef::from_id("k").unwrap() };
    assert_eq!(messages.edit(&mut sent, &page).await, Ok(EditOutcome::SaveFirst));
    state.pacer.hold(&state.app_key, Duration::from_millis(20));
    assert!(matches!(messages.edit(&mut sent, &page).await, Err(CallError::Wait(_))));
    tokio::time::sleep(Duration::from_millis(30)).await;
    assert_eq!(messages.edit(&mut sent, &page).await, Ok(EditOutcome::Shown));
    assert_eq!(server.calls(), ["streaming"], "only streaming can finish a card");
}

/// A server that never answers: the timeout is longer for a message that must not be duplicated.
#[tokio::test]
async fn a_slow_response_to_a_call_without_a_key_is_awaited() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = axum::Router::new()
        .route(
            "/v1.0/oauth2/accessToken",
            axum::routing::post(async || axum::Json(json!({"accessToken": "token"}))),
        )
        .fallback(async || {
            // The test controls the clock: it advances when all tasks are idle.
            tokio::time::pause();
            std::future::pending::<()>().await;
        });
    tokio::spawn(async move { axum::serve(listener, router).await });
    let api = Arc::clone(&crate::dingtalk::loopback::channel(&url, false).state.api);
    let mut took = Vec::new();
    for keyed in [false, true] {
        let start = Instant::now();
        let body = json!({});
        let outcome = match keyed {
            true => api.call(pudu_net::reqwest::Method::POST, "/x", &body).await,
            false => api.post("/x", &body).await,
        };
        assert!(matches!(outcome, Err(CallError::Unknown(_))), "{outcome:?}");
        took.push(start.elapsed().as_secs());
        tokio::time::resume();
    }
    assert_eq!(took, [15, 6]);
}

#[tokio::test]
async fn the_record_of_an_older_version_is_read() {
    let server = DingTalkLoopback::start(|_, _| (200, json!({"processQueryKey": "k"}))).await;
    let (state, shelf) = (server.state(false), MemoryReplyStore::default());
    let saved = json!({"parts": [{"intended": {"key": "k1", "since": 1, "mark": null}}]});
    *shelf.0.lock().unwrap() = Some(ReplyHandle { state: saved, messages: Vec::new() });
    assert_eq!(shelf.reply(&state).finish(&answer()).await, Ok(()));
    let stored = json!({"lost": 1, "answer": true, "done": true});
    let tries = DingDedupKey { unconfirmed_sends: 1, answer: true, done: true };
    assert_eq!(serde_json::to_value(Some(&tries)).unwrap(), stored);
    assert_eq!(serde_json::from_value::<StoredDedupKey>(stored).unwrap(), Some(tries));
    assert_eq!(serde_json::from_value::<StoredDedupKey>(Value::Null).unwrap(), None);
}

#[tokio::test]
async fn a_possible_card_is_finished_when_the_text_is_sent_elsewhere() {
    let check = async |rest: bool, expected: Vec<&str>| {
        let mut attempts = 0;
        let server = DingTalkLoopback::start(move |path, _| {
            let makes = path.ends_with("createAndDeliver");
            attempts += usize::from(makes);
            match attempts {
                _ if !makes => (200, json!({"processQueryKey": "k"})),
                ..=3 => failure("InternalError"),
                _ => failure("invalidParameter"),
            }
        })
        .await;
        let (state, shelf) = (server.state(true), MemoryReplyStore::default());
        assert!(shelf.reply(&state).finish(&answer()).await.is_err());
        if rest {
            state.suspend_cards();
        }
        assert_eq!(shelf.reply(&state).finish(&answer()).await, Ok(()));
        assert_eq!(server.calls(), expected);
    };
    let make = "createAndDeliver";
    tokio::join!(
        check(true, vec![make, make, make, "instances", "batchSend"]),
        check(false, vec![make, make, make, make, "instances", "batchSend"]),
    );
}

#[tokio::test]
async fn a_call_without_visible_effect_counts_as_not_done() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let out = OutFile { name: "a.txt".into(), path: file.path().into() };
    let check = async |fails: &'static str, done: bool| {
        let server = DingTalkLoopback::start(move |path, _| match path.ends_with(fails) {
            true => failure("InternalError"),
            false => (200, json!({"media_id": "m"})),
        })
        .await;
        let result = on(server.state(false), true, None).upload("k", &out, 0).await;
        assert_eq!(result.as_ref().is_err_and(CallError::may_be_done), done, "{fails}: {result:?}");
        assert_eq!(result.is_err_and(|error| matches!(error, CallError::Unconnected(_))), !done, "{fails}");
    };
    check("accessToken", false).await;
    check("upload", false).await;
    check("batchSend", true).await;
}

#[tokio::test]
async fn the_card_template_is_tested_before_a_card_is_delivered() {
    let yes = answer;
    let check = async |answer: fn(&str) -> (u16, Value), expected: &[&str]| {
        let server = DingTalkLoopback::start(move |path, _| answer(path)).await;
        let state = server.state(true);
        state.cards_work.store(false, Ordering::Relaxed);
        for _ in 0..2 {
            assert_eq!(MemoryReplyStore::default().reply(&state).finish(&yes()).await, Ok(()));
        }
        assert_eq!(server.calls(), expected);
    };
    let well: fn(&str) -> (u16, Value) = |_| (200, json!({}));
    check(
        well,
        &["instances", "streaming", "createAndDeliver", "streaming", "createAndDeliver", "streaming"],
    )
    .await;
    let strange: fn(&str) -> (u16, Value) = |path| match path {
        "/v1.0/card/streaming" => (500, json!({"code": "unknownError", "message": "unknownError"})),
        _ => (200, json!({"processQueryKey": "k"})),
    };
    check(strange, &["instances", "streaming", "batchSend", "batchSend"]).await;
}

#[tokio::test]
async fn a_reply_without_a_tested_card_waits_as_requested_and_uses_messages() {
    let mut bans = 1;
    let server = DingTalkLoopback::start(move |path, _| match bans {
        _ if path.ends_with("accessToken") => (200, json!({})),
        0 => (200, json!({"processQueryKey": "k"})),
        _ => {
            bans -= 1;
            (200, json!({"punish": "deny"}))
        }
    })
    .await;
    let state = server.state(true);
    state.cards_work.store(false, Ordering::Relaxed);
    let mut reply = MemoryReplyStore::default().reply(&state);
    let first = reply.finish(&answer()).await;
    assert!(matches!(first, Err(SendError::Later { .. })), "{first:?} {:?}", server.calls());
    assert!(state.pacer.held(&state.app_key).is_some(), "other replies wait as well");
    assert!(reply.finish(&answer()).await.is_err());
    assert_eq!(server.calls(), ["instances"]);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(301)).await;
    tokio::time::resume();
    assert_eq!(reply.finish(&answer()).await, Ok(()));
    assert_eq!(server.calls(), ["instances", "batchSend"]);
}

#[tokio::test]
async fn a_recall_is_repeated_until_it_is_confirmed_up_to_a_limit() {
    for (refusals, gone) in [(3, true), (usize::MAX, false)] {
        let mut left = refusals;
        let server = DingTalkLoopback::start(move |path, _| match path.ends_with("batchRecall") {
            // Before each placeholder, the bot checks that recalls work.
            true if left == 0 => (200, json!({})),
            true => {
                left -= 1;
                (200, json!({"failedResult": {"k": "busy", "pudu-nothing": "no such message"}}))
            }
            false => (200, json!({"processQueryKey": "k"})),
        })
        .await;
        let (state, shelf) = (server.state(false), MemoryReplyStore::default());
        let mut reply = shelf.reply(&state);
        tokio::time::pause();
        tokio::time::advance(PLACEHOLDER_DELAY).await;
        tokio::time::resume();
        reply.update(&ReplyView::default()).await.unwrap();
        let mut rounds = 0;
        while let Err(error) = reply.finish(&answer()).await {
            assert_eq!(error, SendError::Untidy { after: None }, "the answer is delivered");
            rounds += 1;
            assert!(rounds < 30, "the attempts end");
            // The process may crash in between.
            reply = shelf.reply(&state);
        }
        let calls = server.calls();
        let sent = calls.iter().filter(|call| *call == "batchSend").count();
        let recalls = calls.iter().filter(|call| *call == "batchRecall").count();
        assert_eq!(sent, 2, "the placeholder and the answer, once each: {calls:?}");
        assert_eq!(rounds > 10, !gone, "{recalls} recalls in {rounds} rounds");
    }
}
