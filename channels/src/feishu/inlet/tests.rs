use super::*;
use crate::{BoxFuture, JournalError, Kept, Sighting};
use std::sync::Mutex;

/// Keeps what it is told.
#[derive(Default)]
struct Tray(Mutex<Vec<Inbound>>);

impl Intake for Tray {
    fn accept<'a>(&'a self, inbound: Inbound) -> BoxFuture<'a, Result<Kept, Refusal>> {
        self.0.lock().unwrap().push(inbound);
        Box::pin(std::future::ready(Ok(Kept::New)))
    }

    fn known<'a>(&'a self, _: &'a str, _: i64) -> BoxFuture<'a, Result<Vec<Sighting>, JournalError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
}

/// An inlet whose platform is out of reach: what is not remembered cannot be found out.
fn inlet() -> Inlet {
    let client = Client::new("http://127.0.0.1:1".parse().unwrap(), "cli".into(), "s".into()).unwrap();
    let me = OnceLock::new();
    me.set("ou_me".to_owned()).unwrap();
    Inlet {
        account: "feishu".into(),
        client: Arc::new(client),
        places: Arc::new(Places::default()),
        me: Arc::new(me),
        require_mention: true,
        health: HealthCell::default(),
    }
}

fn event(kind: &str, event: &Value) -> Envelope {
    let header = json!({"event_id": "e1", "event_type": kind, "token": "t"});
    serde_json::from_value(json!({"schema": "2.0", "header": header, "event": event})).unwrap()
}

/// A message with these fields changed.
fn message(changes: &Value) -> Value {
    let mut told = json!({
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
            told["sender"] = value.clone();
        } else {
            told[into][field] = value.clone();
        }
    }
    told
}

async fn kept(inlet: &Inlet, kind: &str, told: Value) -> (Vec<Inbound>, Option<Value>) {
    let tray = Tray::default();
    let answer = inlet.take(&event(kind, &told), &tray).await.unwrap();
    (tray.0.into_inner().unwrap(), answer)
}

async fn one(changes: Value) -> Option<Inbound> {
    kept(&inlet(), "im.message.receive_v1", message(&changes)).await.0.pop()
}

fn inbound() -> Inbound {
    Inbound {
        key: EventKey("m:om_1".into()),
        address: Address { account: "feishu".into(), chat: "oc_1".into(), topic: None },
        private: false,
        message: "om_1".into(),
        reply_to: None,
        sender: Sender { id: "ou_a".into(), name: "Ada".into() },
        addressed: true,
        at: 1000,
        hint: None,
        kind: Kind::Message { text: "hi".into(), attachments: Vec::new(), album: None },
    }
}

#[tokio::test]
async fn a_message_is_decoded_with_its_place() {
    let words = |text: &str| Kind::Message { text: text.into(), attachments: Vec::new(), album: None };
    let topic = Address { topic: Some("omt_1".into()), ..inbound().address };
    let thread = json!({"thread_id": "omt_1"});
    let in_private = json!({"chat_type": "p2p", "thread_id": "omt_1"});
    let cases = [
        (json!({}), inbound()),
        (
            json!({"parent_id": "om_0", "root_id": "om_0"}),
            Inbound { reply_to: Some("om_0".into()), ..inbound() },
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
async fn a_thread_under_a_known_message_goes_on_with_its_conversation() {
    let inlet = inlet();
    inlet.places.talked("om_root", true);
    let threaded = |root: &str| json!({"thread_id": "omt_1", "root_id": root, "parent_id": "om_0"});
    let take = async |changes: Value| kept(&inlet, "im.message.receive_v1", message(&changes)).await.0.pop();
    let hint = Some(json!({"thread": "omt_1"}));
    let chain = Inbound { reply_to: Some("om_root".into()), hint, ..inbound() };
    assert_eq!(take(threaded("om_root")).await, Some(chain));
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
    let kind = Kind::Message { text: String::new(), attachments: vec![file], album: Some("ou_a".into()) };
    assert_eq!(one(changes).await.map(|inbound| inbound.kind), Some(kind));
}

#[tokio::test]
async fn bots_and_what_is_strange_are_passed_over() {
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
        assert_eq!(kept(&inlet(), "im.message.receive_v1", strange).await, (vec![], None));
    }
    assert_eq!(kept(&inlet(), "im.chat.disbanded_v1", json!({})).await, (vec![], None));
    for content in [json!("?"), json!(5), json!(null)] {
        assert!(
            one(json!({"content": content, "mentions": null})).await.is_some(),
            "its neighbours are not harmed"
        );
    }
}

fn press(message: &str, chat: &str) -> Value {
    json!({
        "operator": {"open_id": "ou_b"},
        // What a card carries besides its action decides nothing.
        "action": {"value": {"action": "/stop", "chat": "oc_other", "private": true}, "tag": "button"},
        "context": {"open_message_id": message, "open_chat_id": chat},
    })
}

#[tokio::test]
async fn a_press_is_where_its_message_is() {
    let inlet = inlet();
    let place = Place { chat: "oc_1".into(), topic: Some("omt_1".into()), private: false, sender: None };
    inlet.places.saw("om_card", place);
    let (mut presses, answer) = kept(&inlet, "card.action.trigger", press("om_card", "oc_1")).await;
    let found = presses.pop().unwrap();
    let expected = Inbound {
        key: EventKey("p:e1".into()),
        address: Address { topic: Some("omt_1".into()), ..inbound().address },
        message: "om_card".into(),
        sender: Sender { id: "ou_b".into(), name: "user ou_b".into() },
        at: found.at,
        kind: Kind::Press { action: "/stop".into() },
        ..inbound()
    };
    assert_eq!(found, expected);
    assert_eq!(answer, Some(toast("info", "👌")));
}

/// CVE-2026-32924 and CVE-2026-44993: an event whose room is not known decides nothing.
#[tokio::test]
async fn a_press_or_recall_without_a_known_room_is_dropped() {
    let inlet = inlet();
    let theirs = Place { chat: "oc_1".into(), topic: None, private: true, sender: Some("ou_a".into()) };
    inlet.places.saw("om_theirs", theirs.clone());
    inlet.places.saw("om_card", Place { sender: None, ..theirs });
    let no_action = json!({"operator": {"open_id": "ou_b"}, "context": {"open_message_id": "om_card"}});
    let cases = [
        press("om_unknown", "oc_1"),
        press("om_theirs", "oc_1"),
        press("om_card", "oc_2"),
        press("om_card", ""),
        press("", "oc_1"),
        no_action,
    ];
    for told in cases {
        let (presses, answer) = kept(&inlet, "card.action.trigger", told.clone()).await;
        assert_eq!((presses.len(), answer.is_some()), (0, true), "{told}");
    }
    for (message, chat) in [("om_unknown", "oc_1"), ("om_theirs", "oc_2"), ("om_card", "oc_1")] {
        let told = json!({"message_id": message, "chat_id": chat});
        assert_eq!(kept(&inlet, "im.message.recalled_v1", told).await.0, vec![], "{message}");
    }
    let told = json!({"message_id": "om_theirs", "chat_id": "oc_1"});
    let found = kept(&inlet, "im.message.recalled_v1", told).await.0.pop().unwrap();
    assert_eq!((found.kind, found.sender.id.as_str(), found.private), (Kind::Recall, "ou_a", true));
}
