use super::*;
use crate::{
    Address, BoxFuture, FinalView, KnownMessage, LiveReply, ReplyHandle, ReplyStore, ReplyStoreError,
    clock::now,
    discord::loopback::{DiscordLoopback, ME},
    reply::PlatformReply,
};
use pudu_texts::Language;

const TEAM: &str = "2";
const ASKED: &str = "50";
const KEY: &str = "abcdefghijklmnopqrstuvwxyz012345";

/// A reply store in which some messages are known.
struct Known(Vec<&'static str>);

impl ReplyStore for Known {
    fn save<'a>(&'a self, _: &'a ReplyHandle) -> BoxFuture<'a, Result<(), ReplyStoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn known_messages<'a>(&'a self, _: i64) -> BoxFuture<'a, Result<Vec<KnownMessage>, ReplyStoreError>> {
        let seen = |id: &&str| KnownMessage { chat: TEAM.into(), message: (*id).into() };
        Box::pin(std::future::ready(Ok(self.0.iter().map(seen).collect())))
    }
}

fn target(hint: Option<DiscordHint>, saved: Option<Value>) -> ReplyTarget {
    ReplyTarget {
        address: Address { account: "d".into(), chat: TEAM.into(), topic: None },
        private: false,
        reply_to: Some(ASKED.into()),
        sender: String::new(),
        language: Language::English,
        hint: hint.and_then(|hint| hint.to_json()),
        saved: saved.map(|state| ReplyHandle { state, messages: Vec::new() }),
    }
}

/// Returns a record in which a message was about to be sent `ago` milliseconds before now.
fn intended(ago: i64) -> Value {
    json!({"parts": [{"intended": {"key": KEY, "since": 1, "mark": {"at": now() - ago, "after": 50}}}]})
}

fn message(id: &str, author: &str, answers: Option<&str>) -> Value {
    json!({
        "id": id, "channel_id": TEAM, "type": 19, "author": {"id": author}, "content": "x",
        "message_reference": answers.map(|answers| json!({"message_id": answers})),
    })
}

/// Finishes a reply and returns the requests.
async fn finish(server: &DiscordLoopback, target: &ReplyTarget, known: &[&'static str]) -> Vec<String> {
    let messages = DiscordMessages::new(server.state(), target);
    let mut reply = PlatformReply::open(messages, target, Box::new(Known(known.to_vec())));
    reply.finish(&FinalView { text: "hello".into(), ..FinalView::default() }).await.unwrap();
    server.calls()
}

async fn history(messages: Value) -> DiscordLoopback {
    DiscordLoopback::start(move |call, _| match call {
        "GET /channels/2/messages" => (200, messages.clone()),
        "POST /channels/2/messages" => (200, json!({"id": "99", "channel_id": TEAM})),
        _ => (200, json!({"id": "60", "channel_id": TEAM})),
    })
    .await
}

const READ: &str = "GET /channels/2/messages";
const POST: &str = "POST /channels/2/messages";
/// A message that may have existed already is edited to show the current text.
const PATCH: &str = "PATCH /channels/2/messages/99";

#[tokio::test]
async fn a_message_that_may_have_been_sent_is_found_or_sent_again() {
    let long_ago = 10 * 60 * 1000;
    let ours = message("60", ME, Some(ASKED));
    let others = json!([
        message("66", "8", Some(ASKED)),
        message("64", ME, Some("49")),
        message("62", ME, Some(ASKED)),
        {"id": "61", "channel_id": TEAM, "type": 20, "author": {"id": ME}},
    ]);
    let found = [READ, "PATCH /channels/2/messages/60"];
    let cases = [
        ("the message exists", json!([ours.clone(), message("59", "8", None)]), long_ago, found.to_vec()),
        ("the message it replies to is deleted", json!([message("60", ME, None)]), long_ago, found.to_vec()),
        ("other messages exist", others, long_ago, vec![READ, POST, PATCH]),
        ("no message exists", json!([]), long_ago, vec![READ, POST, PATCH]),
        ("a nonce still counts", json!([ours.clone()]), 1000, vec![POST, PATCH]),
        ("a clock that was set back", json!([ours]), -long_ago, found.to_vec()),
    ];
    for (what, messages, ago, expected) in cases {
        let server = history(messages).await;
        let calls = finish(&server, &target(None, Some(intended(ago))), &["62"]).await;
        assert_eq!(calls, expected, "{what}");
    }
}

#[tokio::test]
async fn the_same_message_has_the_same_nonce_and_pings_no_user() {
    let server = history(json!([])).await;
    finish(&server, &target(None, Some(intended(1000))), &[]).await;
    let expected = json!({
        "content": "hello", "components": [], "flags": 4, "nonce": "abcdefghijklmnopqrstuvwxy", "enforce_nonce": true,
        "allowed_mentions": {"parse": [], "replied_user": false},
        "message_reference": {"message_id": ASKED, "fail_if_not_exists": false},
    });
    assert_eq!(server.requests()[0], (POST.to_owned(), expected));
}

#[tokio::test]
async fn without_access_to_the_history_a_message_is_sent_without_a_reference() {
    let server = DiscordLoopback::start(|call, body| match call {
        READ => (403, json!({"message": "Missing Access", "code": 50001})),
        POST if !body["message_reference"].is_null() => {
            (400, json!({"message": "Cannot reply", "code": 160002}))
        }
        _ => (200, json!({"id": "99"})),
    })
    .await;
    let calls = finish(&server, &target(None, Some(intended(600_000))), &[]).await;
    assert_eq!(calls, [READ, POST, POST, PATCH]);
}

#[tokio::test]
async fn a_command_is_answered_through_its_interaction_while_that_is_open() {
    let original = "PATCH /webhooks/7/tok/messages/@original";
    let cases = [
        (200, now(), vec![original]),
        (404, now(), vec![original, POST]),
        (200, now() - 15 * 60 * 1000, vec![POST]),
    ];
    for (status, at, expected) in cases {
        let server = DiscordLoopback::start(move |call, _| match call {
            POST => (200, json!({"id": "99"})),
            _ => (status, json!({"id": "60", "message": "Unknown Webhook", "code": 10015})),
        })
        .await;
        let hint = Some(DiscordHint::answer("tok", at));
        assert_eq!(finish(&server, &target(hint, None), &[]).await, expected, "{status}");
        let body = server.requests().pop().unwrap().1;
        assert!(body["message_reference"].is_null(), "a reply cannot refer to a command");
    }
}

#[tokio::test]
async fn a_thread_is_started_once_or_the_channel_gets_the_reply() {
    let begin = "POST /channels/2/messages/50/threads";
    let cases = [
        (201, 0, Value::Null, vec![begin, "POST /channels/50/messages"]),
        (400, 160_004, Value::Null, vec![begin, "POST /channels/50/messages"]),
        (403, 50013, Value::Null, vec![begin, POST]),
        (201, 0, json!({"memo": {"threadless": true}}), vec![POST]),
    ];
    for (status, code, saved, expected) in cases {
        let server = DiscordLoopback::start(move |call, _| match call {
            call if call == begin => (status, json!({"message": "x", "code": code})),
            _ => (200, json!({"id": "99"})),
        })
        .await;
        let mut target = target(Some(DiscordHint::Thread { name: "story".into() }), None);
        target.address.topic = Some(ASKED.into());
        target.saved = (!saved.is_null()).then(|| ReplyHandle { state: saved, messages: Vec::new() });
        assert_eq!(finish(&server, &target, &[]).await, expected, "{code}");
        let answers = server.requests().pop().unwrap().1["message_reference"]["message_id"].clone();
        let stands_alone = expected.last() != Some(&POST);
        assert_eq!(answers.is_null(), stands_alone, "a thread begins with the message it replies to");
    }
}

#[tokio::test]
async fn a_wait_applies_to_its_kind_of_call_and_its_channel() {
    let limited = json!({"message": "You are being rate limited.", "retry_after": 30.0, "global": false});
    let server = DiscordLoopback::start(move |call, _| match call {
        POST => (429, limited.clone()),
        _ => (200, json!({"id": "99"})),
    })
    .await;
    let state = server.state();
    let target = target(None, None);
    for _ in 0..3 {
        let messages = DiscordMessages::new(Arc::clone(&state), &target);
        let mut reply = PlatformReply::open(messages, &target, Box::new(Known(Vec::new())));
        let result = reply.finish(&FinalView { text: "hello".into(), ..FinalView::default() }).await;
        assert!(matches!(result, Err(SendError::Later { after }) if after.as_secs() >= 29), "{result:?}");
    }
    assert_eq!(server.calls(), [POST], "only one call is made");
    assert!(
        state.check_rate_limit(&[ApiRoute::Post], "3").is_ok()
            && state.check_rate_limit(&[ApiRoute::Edit], TEAM).is_ok()
    );
}

#[tokio::test]
async fn an_uncertain_message_is_looked_for_in_the_thread_of_an_earlier_process() {
    let (begin, read) = ("POST /channels/2/messages/50/threads", "GET /channels/50/messages");
    let existing =
        json!([{"id": "60", "channel_id": ASKED, "type": 0, "author": {"id": ME}, "content": "x"}]);
    let absent = json!({"message": "Unknown Channel", "code": 10_003});
    let cases = [
        (200, existing, vec![read, "PATCH /channels/50/messages/60"]),
        (404, absent, vec![read, begin, "POST /channels/50/messages", "PATCH /channels/50/messages/99"]),
    ];
    for (status, history, expected) in cases {
        let server = DiscordLoopback::start(move |call, _| match call {
            call if call == read => (status, history.clone()),
            _ => (200, json!({"id": "99"})),
        })
        .await;
        let thread = DiscordHint::Thread { name: "story".into() };
        let mut target = target(Some(thread), Some(intended(600_000)));
        target.address.topic = Some(ASKED.into());
        assert_eq!(finish(&server, &target, &[]).await, expected, "{status}");
    }
}

#[tokio::test]
async fn a_commands_answer_is_found_after_its_token_expired() {
    let cases = [("hello", vec![READ, "PATCH /channels/2/messages/60"]), ("", vec![READ, POST, PATCH])];
    for (content, expected) in cases {
        let answer =
            json!({"id": "60", "channel_id": TEAM, "type": 20, "author": {"id": ME}, "content": content});
        let server = history(json!([answer])).await;
        let hint = DiscordHint::answer("tok", now() - 15 * 60 * 1000);
        let target = target(Some(hint), Some(intended(600_000)));
        assert_eq!(finish(&server, &target, &[]).await, expected, "{content}");
    }
}

#[tokio::test]
async fn a_file_is_not_sent_if_its_thread_cannot_be_started() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let out = OutFile { name: "a.txt".into(), path: file.path().into() };
    for (fails, perhaps) in
        [("POST /channels/2/messages/50/threads", false), ("POST /channels/50/messages", true)]
    {
        let server = DiscordLoopback::start(move |call, _| match call == fails {
            true => (500, json!({"message": "m"})),
            false => (200, json!({"id": "99"})),
        })
        .await;
        let mut target = target(Some(DiscordHint::Thread { name: "story".into() }), None);
        target.address.topic = Some(ASKED.into());
        let error = DiscordMessages::new(server.state(), &target).upload(KEY, &out, 0).await.unwrap_err();
        assert_eq!(error.may_be_done(), perhaps, "{fails}: {error}");
    }
}

#[tokio::test]
async fn an_uncertain_file_is_looked_for_when_its_nonce_is_old() {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(10).unwrap();
    let view = FinalView {
        files: vec![OutFile { name: "a b.txt".into(), path: file.path().into() }],
        ..FinalView::default()
    };
    // The time since the file was sent, the author and size of the existing file, and the expected requests.
    let cases = [
        (600_000, ME, 10, vec!["GET /channels/2/messages"]),
        (600_000, ME, 11, vec!["GET /channels/2/messages", "POST /channels/2/messages"]),
        (600_000, "8", 10, vec!["GET /channels/2/messages", "POST /channels/2/messages"]),
        (60_000, ME, 10, vec!["POST /channels/2/messages"]),
    ];
    for (ago, author, size, expected) in cases {
        let mut sent = message("60", author, None);
        sent["attachments"] = json!([{"id": "1", "filename": "a_b.txt", "size": size, "url": "u"}]);
        let server = history(json!([sent])).await;
        let tried = json!({"tried": {"times": 1, "key": KEY, "since": now() - ago}});
        let target = target(None, Some(json!({"parts": [], "files": [tried]})));
        let messages = DiscordMessages::new(server.state(), &target);
        let mut reply = PlatformReply::open(messages, &target, Box::new(Known(Vec::new())));
        reply.finish(&view).await.unwrap();
        assert_eq!(server.calls(), expected, "{ago} {author} {size}");
    }
}
