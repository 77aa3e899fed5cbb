use super::*;
use crate::{
    Address,
    slack::{
        client::SlackClient,
        wire::{SlackIdentity, SlackMessage},
    },
};
use futures_util::FutureExt;
use pudu_texts::Language;

fn messages(thread: Option<&str>) -> SlackMessages {
    let client = SlackClient::new("http://127.0.0.1:9/api".parse().unwrap(), "xoxb-1".into(), None).unwrap();
    reply(Arc::new(SlackAccountState::new(client)), thread)
}

fn reply(state: Arc<SlackAccountState>, thread: Option<&str>) -> SlackMessages {
    let address = Address { account: "slack".into(), chat: "C1".into(), topic: thread.map(Into::into) };
    let target = ReplyTarget {
        address,
        private: false,
        reply_to: None,
        sender: "U1".into(),
        language: Language::English,
        hint: None,
        saved: None,
    };
    SlackMessages::new(state, &target)
}

fn intent(key: &str, mark: Option<SlackDedupKey>) -> SendIntent<Option<SlackDedupKey>> {
    SendIntent { n: 0, again: false, key: key.into(), since: 0, dedup_key: mark }
}

#[test]
fn an_uncertain_message_is_identified_by_its_key_or_as_unrecorded() {
    let me = SlackIdentity { user: "UBOT".into(), bot: "BBOT".into(), team: "T1".into() };
    let keyed = |key: &str| json!({"event_type": EVENT, "event_payload": {"key": key}});
    let here: Vec<SlackMessage> = serde_json::from_value(json!([
        {"ts": "1.0", "user": "U1", "text": "question"},
        {"ts": "2.0", "user": "UBOT", "bot_id": "BBOT", "thread_ts": "1.0", "metadata": keyed("mine")},
        {"ts": "3.0", "user": "UBOT", "bot_id": "BBOT", "thread_ts": "1.0"},
        {"ts": "4.0", "user": "UBOT", "bot_id": "BBOT", "thread_ts": "1.0", "files": [{"id": "F1"}]},
        {"ts": "5.0", "user": "U2", "bot_id": "B2", "thread_ts": "1.0"},
        {"ts": "6.0", "user": "UBOT", "bot_id": "BBOT", "thread_ts": "1.0", "metadata": keyed("other")},
    ]))
    .unwrap();
    let post = |ts: &str, stream| Some(SlackMessageRef { ts: ts.into(), stream });
    let known = |ids: &[&str]| -> HashSet<String> { ids.iter().map(|id| (*id).to_owned()).collect() };
    let thread = messages(Some("1.0"));
    let started = |key: &str| intent(key, Some(SlackDedupKey { stream: true, unknown: 1 }));
    assert_eq!(thread.pick(&me, &here, &started("mine"), &known(&[])), post("2.0", false));
    assert_eq!(thread.pick(&me, &here, &started("new"), &known(&[])), post("3.0", true));
    assert_eq!(thread.pick(&me, &here, &intent("new", None), &known(&[])), post("3.0", true), "as before");
    assert_eq!(thread.pick(&me, &here, &started("new"), &known(&["3.0"])), None);
    let said = |key: &str| intent(key, Some(SlackDedupKey { stream: false, unknown: 1 }));
    assert_eq!(thread.pick(&me, &here, &said("mine"), &known(&[])), post("2.0", false));
    assert_eq!(thread.pick(&me, &here, &said("new"), &known(&[])), None, "the sent message was not a stream");
    assert_eq!(
        messages(None).pick(&me, &here, &started("new"), &known(&[])),
        None,
        "there are no streams outside of threads"
    );
}

struct Nothing;

impl crate::ReplyStore for Nothing {
    fn save<'a>(
        &'a self,
        _: &'a crate::ReplyHandle,
    ) -> crate::BoxFuture<'a, Result<(), crate::ReplyStoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn known_messages(
        &self,
        _: i64,
    ) -> crate::BoxFuture<'_, Result<Vec<crate::KnownMessage>, crate::ReplyStoreError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
}

#[tokio::test]
async fn an_unsearchable_message_is_sent_at_most_twice_and_complete_the_second_time() {
    let mut reply = messages(Some("1.0"));
    let history = MessageHistory::new(&Nothing, Vec::new());
    let scope = CallError::Special(SlackCase::Scope("channels:history".into()));
    let first = reply.dedup_key(None, 0, &history).await.unwrap();
    assert_eq!(first, Some(SlackDedupKey { stream: true, unknown: 1 }));
    let found = reply.resend_once(&intent("k", first), &scope);
    assert!(matches!(found, Err(SendError::Unreachable(_))), "it waits for the complete answer: {found:?}");
    reply.ends = true.into();
    assert_eq!(reply.resend_once(&intent("k", first), &scope), Ok(None));
    let second = reply.dedup_key(Some(first), 0, &history).await.unwrap();
    assert_eq!(second, Some(SlackDedupKey { stream: true, unknown: 2 }), "the stream may still exist");
    reply.undone = true;
    assert_eq!(reply.resend_once(&intent("k", second), &scope), Ok(None), "the second attempt failed");
    let third = reply.dedup_key(Some(second), 0, &history).await.unwrap();
    assert_eq!(third, second);
    let mut lost = reply.resend_once(&intent("k", third), &scope).unwrap().unwrap();
    let page = SlackPage::new(&MessageDraft::default());
    let nothing = (reply.edit(&mut lost, &page).await, reply.delete(&lost).await, lost.id());
    assert_eq!(nothing, (Ok(EditOutcome::Shown), Ok(()), String::new()), "no call is made for it");
    reply.blind = false;
    let seen = reply.dedup_key(Some(second), 0, &history).await.unwrap();
    assert_eq!(seen.map(|tries| tries.unknown), Some(1), "the message is not in the history");
}

#[tokio::test]
async fn replies_of_one_thread_take_turns() {
    let one = messages(Some("1.0"));
    let other = |thread: &str| reply(Arc::clone(&one.state), Some(thread));
    let first = one.lock_chat().await;
    assert!(first.is_some() && other("2.0").lock_chat().now_or_never().is_some_and(|turn| turn.is_some()));
    assert!(other("1.0").lock_chat().now_or_never().is_none());
    drop(first);
    assert!(other("1.0").lock_chat().now_or_never().is_some_and(|turn| turn.is_some()));
}

#[tokio::test]
async fn a_stream_continued_by_edits_is_paced_like_edits() {
    let mut reply = messages(Some("1.0"));
    let (stream, changes) = (SlackAccountState::interval(true), SlackAccountState::interval(false));
    assert_eq!(reply.pace(), stream);
    let mut post = SlackMessageRef { ts: "1.1".into(), stream: true };
    // The shown text is unknown, so the complete text has to be sent.
    reply.edit(&mut post, &SlackPage::new(&MessageDraft::default())).await.unwrap_err();
    assert_eq!(reply.pace(), changes);
    assert_eq!(messages(None).pace(), changes);
}

#[tokio::test(start_paused = true)]
async fn a_status_is_refreshed_before_it_expires_and_finally_cleared() {
    let reply = messages(Some("1.0"));
    let status = &reply.status;
    assert_eq!((status.becomes(""), status.due_status().as_deref()), (false, Some("is thinking…")));
    assert_eq!(
        (status.due_status(), status.becomes("Searching"), status.becomes("Searching")),
        (None, true, false)
    );
    tokio::time::advance(STATUS).await;
    assert_eq!(status.due_status().as_deref(), Some("Searching"));
    assert!(status.becomes("") && !status.becomes(""));
}

#[tokio::test(start_paused = true)]
async fn a_long_stream_ends_to_show_its_buttons() {
    let mut reply = messages(Some("1.0"));
    let stop = || vec![crate::Choice { label: "Stop".into(), action: "/stop".into() }];
    let draft = |choices, done| MessageDraft { choices, done, ..MessageDraft::default() };
    let asks = |reply: &SlackMessages| {
        [draft(stop(), false), draft(Vec::new(), false), draft(stop(), true)].map(|d| reply.page(&d).asks)
    };
    assert_eq!(asks(&reply), [false; 3]);
    let start = Instant::now();
    reply.next_refresh().await;
    assert_eq!((start.elapsed(), asks(&reply)), (STOP_BUTTON_DELAY, [true, false, false]));
    reply.next_refresh().await;
    assert_eq!(start.elapsed(), STOP_BUTTON_DELAY * 2, "another search follows after a delay");
    reply.streaming = false;
    let more = tokio::time::timeout(STOP_BUTTON_DELAY * 9, reply.next_refresh()).await;
    assert!(more.is_err() && messages(None).next_refresh().now_or_never().is_none(), "no search is needed");
}

#[tokio::test]
async fn a_stream_that_cannot_be_closed_yet_is_deleted() {
    use axum::{Json, Router, routing::post};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let api = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new()
        .route("/chat.stopStream", post(|| async { Json(json!({"ok": false, "error": "ratelimited"})) }))
        .route("/chat.delete", post(|| async { Json(json!({"ok": true})) }));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let client = SlackClient::new(api.parse().unwrap(), "xoxb-1".into(), None).unwrap();
    let state = Arc::new(SlackAccountState::new(client));
    let mut reply = reply(Arc::clone(&state), Some("1.0"));
    assert_eq!(reply.delete(&SlackMessageRef { ts: "1.1".into(), stream: true }).await, Ok(()));
    assert!(state.check_rate_limit("chat.stopStream", "C1").is_err());
}
