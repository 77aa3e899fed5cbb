use super::*;
use crate::form::tests::{FormSink, form_of_each_kind};
use crate::{Accepted, Attachment, BoxFuture, KnownMessage, ReplyStoreError};
use std::sync::Mutex;

/// Stores accepted events, and knows one message of a conversation.
#[derive(Default)]
struct Tray(Mutex<Vec<Inbound>>);

impl EventSink for Tray {
    fn accept<'a>(&'a self, inbound: Inbound) -> BoxFuture<'a, Result<Accepted, AcceptError>> {
        self.0.lock().unwrap().push(inbound);
        Box::pin(std::future::ready(Ok(Accepted::New)))
    }

    fn known_messages<'a>(
        &'a self,
        _: &'a str,
        _: i64,
    ) -> BoxFuture<'a, Result<Vec<KnownMessage>, ReplyStoreError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn is_in_conversation<'a>(
        &'a self,
        address: &'a Address,
        message: &'a str,
    ) -> BoxFuture<'a, Result<bool, ReplyStoreError>> {
        let known = match message {
            "om_unread" => Err(ReplyStoreError("no".into())),
            _ => Ok((address.chat.as_str(), &address.topic, message) == ("oc_1", &None, "om_kept")),
        };
        Box::pin(std::future::ready(known))
    }
}

/// An event parser whose platform is unreachable, so only remembered chats are known.
fn parser() -> FeishuEventParser {
    inlet_of("http://127.0.0.1:1")
}

fn inlet_of(url: &str) -> FeishuEventParser {
    let client = FeishuClient::new(url.parse().unwrap(), "cli".into(), "s".into()).unwrap();
    let me = OnceLock::new();
    me.set("ou_me".to_owned()).unwrap();
    FeishuEventParser {
        account: "feishu".into(),
        client: Arc::new(client),
        places: Arc::new(ChatCache::default()),
        numbered: Arc::default(),
        me: Arc::new(me),
        require_mention: true,
        health: HealthCell::default(),
        order: Arc::default(),
    }
}

fn event(kind: &str, event: &Value) -> EventEnvelope {
    let header = json!({"event_id": "e1", "event_type": kind, "token": "t"});
    serde_json::from_value(json!({"schema": "2.0", "header": header, "event": event})).unwrap()
}

/// A message with these fields changed.
fn message(changes: &Value) -> Value {
    let mut fields = json!({
        "sender": {"sender_id": {"open_id": "ou_a"}, "sender_type": "user"},
        "message": {
            "message_id": "om_1", "chat_id": "oc_1", "chat_type": "group", "message_type": "text",
            "content": "{\"text\":\"@_user_1 hi\"}", "create_time": "1000",
            "mentions": [
                {"key": "@_user_1", "id": {"open_id": "ou_me"}, "name": "Pudu"},
                {"key": "@_user_2", "id": {"open_id": "ou_a"}, "name": "Ada"},
            ],
        },
    });
    for (field, value) in changes.as_object().unwrap() {
        let into = if field == "sender" || field == "sender_type" { "sender" } else { "message" };
        if field == "sender" {
            fields["sender"] = value.clone();
        } else {
            fields[into][field] = value.clone();
        }
    }
    fields
}

async fn kept(parser: &FeishuEventParser, kind: &str, fields: Value) -> (Vec<Inbound>, Option<Value>) {
    let tray = Tray::default();
    let answer = parser.on_event(&event(kind, &fields), &tray).await.unwrap();
    (tray.0.into_inner().unwrap(), answer)
}

/// A platform that gives these delayed answers to paths with these endings; counts the calls.
async fn platform(answers: &[(&'static str, Value)]) -> (String, Arc<Mutex<Vec<String>>>) {
    let (answers, asked) = (answers.to_vec(), Arc::new(Mutex::new(Vec::new())));
    let calls = Arc::clone(&asked);
    let serve = move |request: axum::extract::Request| {
        let path = request.uri().path().trim_start_matches("/open-apis/").to_owned();
        let found = answers.iter().find(|(end, _)| path.ends_with(end)).map(|(_, answer)| answer.clone());
        calls.lock().unwrap().push(path);
        async move {
            let token = json!({"code": 0, "tenant_access_token": "t-1", "expire": 7200});
            if found.as_ref() == Some(&Value::Null) {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
            axum::Json(found.unwrap_or(token))
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, axum::Router::new().fallback(serve)).await });
    (url, asked)
}

async fn one(changes: Value) -> Option<Inbound> {
    kept(&parser(), "im.message.receive_v1", message(&changes)).await.0.pop()
}

fn inbound() -> Inbound {
    Inbound {
        key: EventKey("m:om_1".into()),
        address: Address { account: "feishu".into(), chat: "oc_1".into(), topic: None },
        private: false,
        message: "om_1".into(),
        reply_to: None,
        sender: Sender { id: "ou_a".into(), name: "Ada".into(), language: None },
        addressed: true,
        at: 1000,
        pointed: Vec::new(),
        hint: None,
        kind: InboundKind::Message { text: "hi".into(), attachments: Vec::new(), album: None },
    }
}

fn unread(kind: PointedKind) -> PointedAt {
    PointedAt::unread(kind, "om_0")
}

#[tokio::test]
async fn the_opening_message_and_forwards_are_not_text_of_the_sender() {
    let check = async |changes: Value, words: &str, expected: Vec<PointedAt>| {
        let found = one(changes.clone()).await.unwrap();
        let InboundKind::Message { text, .. } = &found.kind else { panic!("{changes}") };
        assert_eq!((text.as_str(), &found.pointed), (words, &expected), "{changes}");
    };
    let thread =
        json!({"chat_type": "topic_group", "thread_id": "omt_1", "root_id": "om_0", "parent_id": "om_0"});
    check(thread, "hi", vec![unread(PointedKind::Opening)]).await;
    let quoted =
        json!({"chat_type": "topic_group", "thread_id": "omt_1", "root_id": "om_7", "parent_id": "om_0"});
    check(quoted, "hi", vec![unread(PointedKind::Reply)]).await;
    let bundle = PointedAt::unread(PointedKind::Forward, "om_1");
    check(
        json!({"chat_type": "p2p", "message_type": "merge_forward", "content": "Merged"}),
        "",
        vec![bundle],
    )
    .await;
    let card = json!({"title": "T", "elements": [[{"tag": "text", "text": "/new"}]]}).to_string();
    let expected = PointedAt::of_text(PointedKind::Card, "**T**\n/new");
    check(json!({"chat_type": "p2p", "message_type": "interactive", "content": card}), "", vec![expected])
        .await;
    check(json!({"parent_id": "../x"}), "hi", vec![]).await;
}

#[tokio::test]
async fn a_message_is_decoded_with_its_location() {
    let words = |text: &str| InboundKind::Message { text: text.into(), attachments: Vec::new(), album: None };
    let topic = Address { topic: Some("omt_1".into()), ..inbound().address };
    let thread = json!({"thread_id": "omt_1"});
    let in_private = json!({"chat_type": "p2p", "thread_id": "omt_1"});
    let cases = [
        (json!({}), inbound()),
        (
            json!({"parent_id": "om_0", "root_id": "om_0"}),
            Inbound { reply_to: Some("om_0".into()), pointed: vec![unread(PointedKind::Reply)], ..inbound() },
        ),
        (thread, Inbound { address: topic, ..inbound() }),
        (in_private, Inbound { private: true, hint: Some(json!({"thread": "omt_1"})), ..inbound() }),
        (json!({"chat_type": "topic_group"}), inbound()),
        (json!({"create_time": 1000}), inbound()),
        (
            json!({"content": "{\"text\":\"@_user_2 hi\"}", "mentions": [
                {"key": "@_user_2", "id": {"open_id": "ou_a"}, "name": "Ada"}]}),
            Inbound { addressed: false, kind: words("@Ada hi"), ..inbound() },
        ),
        (json!({"message_type": "sticker"}), Inbound { kind: words("[sticker]"), ..inbound() }),
    ];
    for (changes, expected) in cases {
        assert_eq!(one(changes.clone()).await, Some(expected), "{changes}");
    }
}

#[tokio::test]
async fn a_thread_below_a_known_message_continues_its_conversation() {
    let parser = parser();
    parser.places.record_part("om_root", true);
    let threaded = |root: &str| json!({"thread_id": "omt_1", "root_id": root, "parent_id": "om_0"});
    let take = async |changes: Value| kept(&parser, "im.message.receive_v1", message(&changes)).await.0.pop();
    for root in ["om_root", "om_kept"] {
        let hint = Some(json!({"thread": "omt_1"}));
        let pointed = vec![unread(PointedKind::Reply)];
        let chain = Inbound { reply_to: Some(root.into()), hint, pointed, ..inbound() };
        assert_eq!(take(threaded(root)).await, Some(chain));
    }
    let other = take(threaded("om_other")).await.unwrap();
    assert_eq!((other.address.topic.as_deref(), other.hint), (Some("omt_1"), None));
    let mut topics = threaded("om_root");
    topics["chat_type"] = "topic_group".into();
    assert_eq!(take(topics).await.unwrap().address.topic.as_deref(), Some("omt_1"));
}

#[tokio::test]
async fn files_alone_wait_for_each_other_in_private() {
    let changes = json!({
        "chat_type": "p2p", "message_type": "file", "content": "{\"file_key\":\"f\",\"file_name\":\"a.pdf\"}",
    });
    let file = Attachment { handle: "om_1/file/f".into(), name: "a.pdf".into(), size: None };
    let kind =
        InboundKind::Message { text: String::new(), attachments: vec![file], album: Some("ou_a".into()) };
    assert_eq!(one(changes).await.map(|inbound| inbound.kind), Some(kind));
}

#[tokio::test]
async fn bots_and_unknown_senders_are_ignored() {
    let cases = [
        json!({"sender_type": "app"}),
        json!({"sender_type": "bot"}),
        json!({"sender": {"sender_id": {"open_id": "ou_me"}, "sender_type": "user"}}),
        json!({"sender": {"sender_id": {}, "sender_type": "user"}}),
        json!({"sender": null}),
        json!({"chat_id": ""}),
        json!({"chat_id": "../x"}),
        json!({"message_id": 7}),
    ];
    for changes in cases {
        assert_eq!(one(changes.clone()).await, None, "{changes}");
    }
    for strange in [json!(null), json!([]), json!("x"), json!({"message": []})] {
        assert_eq!(kept(&parser(), "im.message.receive_v1", strange).await, (vec![], None));
    }
    assert_eq!(kept(&parser(), "im.chat.disbanded_v1", json!({})).await, (vec![], None));
    for content in [json!("?"), json!(5), json!(null)] {
        assert!(
            one(json!({"content": content, "mentions": null})).await.is_some(),
            "other events are unaffected"
        );
    }
}

fn press(message: &str, chat: &str) -> Value {
    json!({
        "operator": {"open_id": "ou_b"},
        // Content of a card other than its action decides nothing.
        "action": {"value": {"action": "/stop", "chat": "oc_other", "private": true}, "tag": "button"},
        "context": {"open_message_id": message, "open_chat_id": chat},
    })
}

#[tokio::test]
async fn a_press_belongs_to_the_conversation_of_its_message() {
    let parser = parser();
    let info = MessageInfo { chat: "oc_1".into(), topic: Some("omt_1".into()), private: false, sender: None };
    parser.places.record_seen("om_card", info);
    let (mut presses, answer) = kept(&parser, "card.action.trigger", press("om_card", "oc_1")).await;
    let found = presses.pop().unwrap();
    let expected = Inbound {
        key: EventKey("p:e1".into()),
        address: Address { topic: Some("omt_1".into()), ..inbound().address },
        message: "om_card".into(),
        sender: Sender { id: "ou_b".into(), name: "user ou_b".into(), language: None },
        at: found.at,
        kind: InboundKind::Press { action: "/stop".into() },
        ..inbound()
    };
    assert_eq!(found, expected);
    assert_eq!(answer, Some(toast("info", |_| "👌")));
}

#[tokio::test]
async fn a_submitted_form_is_checked_and_stored() {
    let parser = parser();
    let info = MessageInfo { chat: "oc_1".into(), topic: None, private: false, sender: None };
    parser.places.record_seen("om_card", info);
    let sink = FormSink { form: Some(form_of_each_kind()), ..FormSink::default() };
    let submit = async |values: Value, sink: &FormSink| {
        let mut event = press("om_card", "oc_1");
        event["action"] = json!({"value": {"action": "/form"}, "name": "submit", "form_value": values});
        let header = json!({"event_id": "e1", "event_type": "card.action.trigger"});
        let envelope = serde_json::from_value(json!({"header": header, "event": event})).unwrap();
        parser.on_event(&envelope, sink).await.unwrap().unwrap()["toast"].clone()
    };
    for garbage in [json!(null), json!([]), json!({"field_0": " ", "field_9": 1, "field_4": {}})] {
        let toast = submit(garbage, &sink).await;
        assert_eq!(toast, json!({"type": "error", "content": "Text: Please fill this in."}));
    }
    assert!(sink.answers().is_empty());
    let right = json!({"field_0": "Ada", "field_3": "1", "field_5": true, "field_6": "2026-12-01 +0800"});
    assert_eq!(submit(right, &sink).await["type"], "success");
    assert_eq!(sink.answers(), ["Text: Ada\nSelect: L, with lid\nCheckbox: yes\nDate: 2026-12-01"]);
    let over = submit(json!({}), &FormSink::default()).await;
    assert_eq!(over, json!({"type": "warning", "content": "It is over."}));
}

/// CVE-2026-32924 and CVE-2026-44993: an event from an unknown chat decides nothing.
#[tokio::test]
async fn a_press_or_recall_without_a_known_chat_is_dropped() {
    let (url, _) = platform(&[("om_unknown", json!({"code": 230_110, "msg": "deleted"}))]).await;
    let parser = inlet_of(&url);
    let theirs = MessageInfo { chat: "oc_1".into(), topic: None, private: true, sender: Some("ou_a".into()) };
    parser.places.record_seen("om_theirs", theirs.clone());
    parser.places.record_seen("om_card", MessageInfo { sender: None, ..theirs });
    let no_action = json!({"operator": {"open_id": "ou_b"}, "context": {"open_message_id": "om_card"}});
    let cases = [
        press("om_unknown", "oc_1"),
        press("om_theirs", "oc_1"),
        press("om_card", "oc_2"),
        press("om_card", ""),
        press("", "oc_1"),
        no_action,
    ];
    for fields in cases {
        let (presses, answer) = kept(&parser, "card.action.trigger", fields.clone()).await;
        assert_eq!((presses.len(), answer.is_some()), (0, true), "{fields}");
    }
    for (message, chat) in [("om_unknown", "oc_1"), ("om_theirs", "oc_2"), ("om_card", "oc_1")] {
        let fields = json!({"message_id": message, "chat_id": chat});
        assert_eq!(kept(&parser, "im.message.recalled_v1", fields).await.0, vec![], "{message}");
    }
    let fields = json!({"message_id": "om_theirs", "chat_id": "oc_1"});
    let found = kept(&parser, "im.message.recalled_v1", fields).await.0.pop().unwrap();
    assert_eq!((found.kind, found.sender.id.as_str(), found.private), (InboundKind::Recall, "ou_a", true));
}

/// Returns the platform's answers about a message of the bot and its chat.
fn looked_up(changes: &Value, mode: &str) -> [(&'static str, Value); 2] {
    let sender = json!({"sender_type": "app", "id": "cli"});
    let mut item = json!({"message_id": "om_card", "chat_id": "oc_1", "sender": sender});
    for (field, value) in changes.as_object().unwrap() {
        item[field] = value.clone();
    }
    let form = if mode == "form" { "thread" } else { "chat" };
    let mode = if mode == "form" { "group" } else { mode };
    [
        ("om_card", json!({"code": 0, "data": {"items": [item]}})),
        ("oc_1", json!({"code": 0, "data": {"chat_mode": mode, "group_message_type": form}})),
    ]
}

/// A message must be found again in the place where it came live: where a thread continues with a chain, a press is in
/// that chain.
#[tokio::test]
async fn a_message_keeps_its_original_location() {
    let thread = |root: &str| json!({"thread_id": "omt_1", "root_id": root});
    let cases = [
        (thread("om_kept"), "group", None),
        (thread("om_other"), "group", Some("omt_1")),
        (json!({"thread_id": "omt_1"}), "group", None),
        (json!({"thread_id": "omt_1"}), "form", Some("omt_1")),
        (thread("om_kept"), "topic", Some("omt_1")),
        (thread("om_kept"), "p2p", None),
        (json!({}), "group", None),
    ];
    for (changes, mode, topic) in cases {
        let (url, _) = platform(&looked_up(&changes, mode)).await;
        let pressed = kept(&inlet_of(&url), "card.action.trigger", press("om_card", "oc_1")).await.0.pop();
        let found = pressed.map(|pressed| (pressed.address.topic, pressed.private));
        assert_eq!(found, Some((topic.map(Into::into), mode == "p2p")), "{changes} {mode}");
    }
}

#[tokio::test]
async fn a_failed_look_up_of_a_location_is_retried() {
    let busy = json!({"code": 2200, "msg": "busy"});
    let [_, chat] = looked_up(&json!({}), "group");
    let [unread, _] = looked_up(&json!({"thread_id": "omt_1", "root_id": "om_unread"}), "group");
    let [card, _] = looked_up(&json!({}), "group");
    let cases = [
        [("om_card", busy.clone()), chat.clone()],
        [("om_card", Value::Null), chat.clone()],
        [card, ("oc_1", busy)],
        [unread, chat],
    ];
    for answers in cases {
        let (url, _) = platform(&answers).await;
        let (parser, tray) = (inlet_of(&url), Tray::default());
        let fields = json!({"message_id": "om_card", "chat_id": "oc_1"});
        let recalled = parser.on_event(&event("im.message.recalled_v1", &fields), &tray).await;
        assert!(
            matches!(recalled, Err(IntakeError::Lookup(_) | IntakeError::Store(_))),
            "{recalled:?} {answers:?}"
        );
        let (presses, answer) = kept(&parser, "card.action.trigger", press("om_card", "oc_1")).await;
        let again = Some(toast("warning", Language::press_again));
        assert_eq!((presses.len(), answer), (0, again), "{answers:?}");
    }
}

#[tokio::test]
async fn a_message_is_not_overtaken_by_the_next_of_its_chat() {
    let name = json!({"code": 0, "data": {"user": {"name": "Bo"}}});
    let (url, _) = platform(&[("ou_b", name)]).await;
    let (parser, tray) = (inlet_of(&url), Tray::default());
    let fields = [
        json!({"sender": {"sender_id": {"open_id": "ou_b"}, "sender_type": "user"}}),
        json!({"message_id": "om_2"}),
        json!({"chat_type": "p2p", "message_id": "om_3", "chat_id": "oc_2"}),
    ];
    let events = fields.map(|changes| event("im.message.receive_v1", &message(&changes)));
    futures_util::future::join_all(events.iter().map(|event| parser.on_event(event, &tray))).await;
    let order: Vec<String> = tray.0.into_inner().unwrap().into_iter().map(|one| one.message).collect();
    assert_eq!(order, ["om_3", "om_1", "om_2"], "another chat does not wait");
}

#[tokio::test]
async fn a_name_is_looked_up_once_without_delaying_others() {
    let answers = [("ou_slow", Value::Null), ("ou_a", json!({"code": 0, "data": {"user": {"name": "Ada"}}}))];
    let (url, requests) = platform(&answers).await;
    let parser = inlet_of(&url);
    let ask = |person: &'static str| parser.places.ask_name(&parser.client, person);
    let slow = ask("ou_slow");
    let others = async {
        let names = futures_util::future::join_all((0..5).map(|_| ask("ou_a"))).await;
        assert_eq!(names, ["Ada"; 5]);
    };
    tokio::select! {
        biased;
        _ = slow => panic!("the other events waited for it"),
        () = others => {}
    }
    let requests = requests.lock().unwrap();
    assert_eq!(requests.iter().filter(|path| path.contains("users/ou_a")).count(), 1, "{requests:?}");
}
