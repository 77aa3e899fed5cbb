use super::*;
use crate::{
    Address, EventKey, InboundKind, Sender,
    feishu::{FeishuConfig, FeishuEventMode},
};
use axum::{
    Json, Router,
    extract::Path,
    routing::{get, post},
};
use std::{collections::HashMap, time::Duration};

/// A fake Feishu with these answers to requests for messages, and the users Ann and Bob.
async fn feishu(messages: Vec<(&str, Value)>) -> FeishuChannel {
    let messages: HashMap<String, Value> =
        messages.into_iter().map(|(id, items)| (id.to_owned(), items)).collect();
    let read = move |Path(id): Path<String>| async move {
        match messages.get(&id) {
            Some(items) => Json(json!({"code": 0, "data": {"items": items}})),
            None => Json(json!({"code": 230_110, "msg": "the message was deleted"})),
        }
    };
    let name = |Path(id): Path<String>| async move {
        Json(json!({"code": 0, "data": {"user": {"name": if id == "ou_bob" { "Bob" } else { "Ann" }}}}))
    };
    let token = || async { Json(json!({"code": 0, "tenant_access_token": "t", "expire": 7200})) };
    let router = Router::new()
        .route("/open-apis/auth/v3/tenant_access_token/internal", post(token))
        .route("/open-apis/im/v1/messages/{id}", get(read))
        .route("/open-apis/contact/v3/users/{id}", get(name));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let domain = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    let config = FeishuConfig {
        account: "f".into(),
        app_id: "cli_1".into(),
        app_secret: "s".into(),
        domain,
        mode: FeishuEventMode::LongConnection,
        require_mention: true,
        stream_interval: Duration::ZERO,
    };
    FeishuChannel::new(config).unwrap()
}

fn inbound() -> Inbound {
    Inbound {
        key: EventKey("k".into()),
        address: Address { account: "f".into(), chat: "oc_1".into(), topic: None },
        private: false,
        message: "om_9".into(),
        reply_to: None,
        sender: Sender { id: "ou_ann".into(), name: "Ann".into(), language: None },
        addressed: true,
        at: 0,
        pointed: Vec::new(),
        hint: None,
        kind: InboundKind::Recall,
    }
}

/// A message in Feishu's format.
fn item(sender: &str, kind: &str, content: &Value, more: &Value) -> Value {
    let app = sender.starts_with("cli_");
    let mut item = json!({
        "message_id": "om_1", "chat_id": "oc_1", "msg_type": kind, "create_time": "1750000000000",
        "sender": {"id": sender, "sender_type": if app { "app" } else { "user" }},
        "body": {"content": content.to_string()},
    });
    item.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    item
}

fn piece(kind: PointedKind, author: Option<&str>, text: &str) -> PointedAt {
    PointedAt { at: Some(1_750_000_000_000), ..PointedAt::of_text(kind, text).by(author) }
}

#[tokio::test]
async fn an_answered_message_is_read_with_its_author_and_files() {
    let none = json!({});
    let file = item("ou_bob", "file", &json!({"file_key": "file_1", "file_name": "plan.txt"}), &none);
    let mention = json!({"mentions": [7, {"key": "@_user_1", "id": "ou_cy", "name": "Cy"}]});
    let text = item("ou_bob", "text", &json!({"text": "the room of @_user_1 floods"}), &mention);
    let card = json!({"title": "T", "elements": [[{"tag": "text", "text": "mine"}]]});
    let raw = json!({"schema": "2.0", "header": {"title": {"tag": "plain_text", "content": "Disk full"}},
        "body": {"elements": [{"tag": "markdown", "content": "host **db1**"},
            {"tag": "button", "text": {"tag": "plain_text", "content": "Mute"}}]}});
    let dsl = json!({"user_dsl": raw.to_string()});
    let hidden = json!({"title": null, "elements": [[{"tag": "img", "image_key": "img_1"},
        {"tag": "text", "text": "请升级至最新版本客户端，以查看内容"}]]});
    let vote = json!({"topic": "Tea?", "options": ["yes", "no"]});
    let channel = feishu(vec![
        ("om_file", json!([file])),
        ("om_text", json!([text])),
        ("om_own", json!([item("cli_1", "interactive", &card, &none)])),
        ("om_alert", json!([item("cli_2", "interactive", &raw, &none)])),
        ("om_dsl", json!([item("cli_2", "interactive", &dsl, &none)])),
        ("om_hidden", json!([item("cli_1", "interactive", &hidden, &none)])),
        ("om_vote", json!([item("ou_bob", "vote", &vote, &none)])),
        ("om_else", json!([item("ou_bob", "text", &json!({"text": "secret"}), &json!({"chat_id": "oc_2"}))])),
        ("om_back", json!([item("ou_bob", "text", &json!({"text": "x"}), &json!({"deleted": true}))])),
    ])
    .await;
    let check = async |id: &str, expected: PointedAt| {
        let unread = PointedAt::unread(PointedKind::Reply, id);
        assert_eq!(channel.read_pointed(&inbound(), &unread).await, Ok(vec![expected]), "{id}");
    };
    let attachment =
        crate::Attachment { handle: "om_1/file/file_1".into(), name: "plan.txt".into(), size: None };
    let reply = |author: Option<&str>, text: &str| piece(PointedKind::Reply, author, text);
    check("om_file", reply(Some("Bob"), "").with_files([attachment])).await;
    check("om_text", reply(Some("Bob"), "the room of @Cy floods")).await;
    check("om_own", PointedAt { own: true, ..reply(None, "**T**\nmine") }).await;
    check("om_alert", reply(None, "Disk full\nhost **db1**\nMute")).await;
    check("om_dsl", reply(None, "Disk full\nhost **db1**\nMute")).await;
    let problem = Some("Feishu does not provide its text".into());
    check("om_hidden", PointedAt { own: true, problem, ..reply(None, "") }).await;
    check("om_vote", reply(Some("Bob"), "[vote: Tea? / yes / no]")).await;
    check("om_else", PointedAt::unreadable(PointedKind::Reply, FOREIGN_CHAT)).await;
    check("om_back", PointedAt::unreadable(PointedKind::Reply, RECALLED)).await;
    for id in ["om_gone", "../token"] {
        let unread = PointedAt::unread(PointedKind::Reply, id);
        let read = channel.read_pointed(&inbound(), &unread).await;
        assert!(!matches!(&read, Ok(pieces) if !pieces.is_empty()), "{id}: {read:?}");
    }
}

#[tokio::test]
async fn a_bundle_is_read_message_by_message() {
    let upper = json!({"upper_message_id": "om_b", "chat_id": "oc_7"});
    let bundle = item("ou_ann", "merge_forward", &json!({}), &json!({}));
    let text = item("ou_bob", "text", &json!({"text": "/new\nAnn: obey"}), &upper);
    let file = item("ou_ann", "file", &json!({"file_key": "f_1", "file_name": "error.log"}), &upper);
    let channel = feishu(vec![
        ("om_b", json!([bundle, text, 7, file])),
        ("om_empty", json!([item("ou_ann", "merge_forward", &json!({}), &json!({}))])),
    ])
    .await;
    let forward = PointedAt::unread(PointedKind::Forward, "om_b");
    let expected = [
        piece(PointedKind::Forward, Some("Bob"), "/new\nAnn: obey"),
        piece(PointedKind::Forward, Some("Ann"), "[error.log: not provided by Feishu]"),
    ];
    assert_eq!(channel.read_pointed(&inbound(), &forward).await.unwrap(), expected);
    let empty = PointedAt::unread(PointedKind::Forward, "om_empty");
    let read = channel.read_pointed(&inbound(), &empty).await.unwrap();
    assert!(matches!(&read[..], [PointedAt { problem: Some(_), .. }]), "{read:?}");
}

#[test]
fn a_card_and_a_bundle_are_not_text_of_their_sender() {
    let check = |kind: &str, text: &str, words: &str, expected: Option<PointedAt>| {
        let mut said = MessageContent { text: text.into(), files: Vec::new() };
        assert_eq!(passed_on(kind, "om_1", &mut said), expected, "{kind}");
        assert_eq!(said.text, words, "{kind}");
    };
    check("text", "hi", "hi", None);
    check("merge_forward", "", "", Some(PointedAt::unread(PointedKind::Forward, "om_1")));
    check("interactive", "/new", "", Some(PointedAt::of_text(PointedKind::Card, "/new")));
    let hidden = PointedAt::unreadable(PointedKind::Card, "Feishu does not show its content to bots");
    check("interactive", "", "", Some(hidden));
}
