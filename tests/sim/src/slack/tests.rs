use super::*;
use crate::calls::Outcome;
use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use std::time::Duration;
use tokio::time::timeout;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async, tungstenite::Message as Frame};

type Socket = WebSocketStream<MaybeTlsStream<tokio::net::TcpStream>>;

async fn slack() -> (Slack, String, String) {
    let options = Options { ack_within: Duration::from_millis(200), ..Options::default() };
    let slack = Slack::start(options).await.unwrap();
    let ada = slack.person("Ada");
    let group = slack.group("team", &[&ada]);
    (slack, ada, group)
}

fn says(chat: &str, person: &str, text: &str, to_bot: bool) -> Words {
    Words { chat: chat.into(), person: person.into(), text: text.into(), to_bot, ..Words::default() }
}

async fn connect(slack: &Slack) -> Socket {
    let token = slack.options().app_token;
    let params = Params::from_record(serde_json::Map::new());
    let reply = slack.core.call("apps.connections.open", Some(&token), params).await;
    let Reply::Headed(_, _, body) = reply else { panic!("{reply:?}") };
    let (mut socket, _) = connect_async(body["url"].as_str().unwrap()).await.unwrap();
    assert_eq!(next(&mut socket).await["type"], "hello");
    socket
}

async fn next(socket: &mut Socket) -> Value {
    loop {
        let frame = timeout(Duration::from_secs(5), socket.next()).await.unwrap().unwrap().unwrap();
        if let Frame::Text(text) = frame {
            return serde_json::from_str(text.as_str()).unwrap();
        }
    }
}

async fn ack(socket: &mut Socket, envelope: &Value) {
    let ack = json!({"envelope_id": envelope["envelope_id"]});
    socket.send(Frame::Text(ack.to_string().into())).await.unwrap();
}

#[tokio::test]
async fn a_mention_is_two_events_with_one_ts_and_an_ack_ends_them() {
    let (slack, ada, group) = slack().await;
    let mut socket = connect(&slack).await;
    let ts = slack.write(&says(&group, &ada, "hello", true));
    let mut kinds = Vec::new();
    for _ in 0..2 {
        let envelope = next(&mut socket).await;
        let event = &envelope["payload"]["event"];
        assert_eq!(
            (event["ts"].as_str(), event["text"].as_str()),
            (Some(ts.as_str()), Some("<@U0PUDUBOT1> hello"))
        );
        kinds.push((event["type"].clone(), envelope["payload"]["event_id"].clone()));
        ack(&mut socket, &envelope).await;
    }
    assert_eq!((&kinds[0].0, &kinds[1].0), (&json!("message"), &json!("app_mention")));
    assert_ne!(kinds[0].1, kinds[1].1);
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(slack.unacknowledged(), 0);
}

#[tokio::test]
async fn what_is_not_acknowledged_comes_again_and_on_another_connection_too() {
    let (slack, ada, _) = slack().await;
    let mut socket = connect(&slack).await;
    slack.write(&says(&slack.private(&ada), &ada, "hello", true));
    let first = next(&mut socket).await;
    let second = next(&mut socket).await;
    assert_eq!(first["payload"], second["payload"]);
    assert_eq!((&first["retry_attempt"], &second["retry_attempt"]), (&json!(0), &json!(1)));
    slack.drop_connection();
    let mut socket = connect(&slack).await;
    let third = next(&mut socket).await;
    assert_eq!(third["payload"]["event_id"], first["payload"]["event_id"]);
    ack(&mut socket, &third).await;
}

#[tokio::test]
async fn a_stream_grows_by_what_is_added_and_only_while_it_is_open() {
    let (slack, ada, group) = slack().await;
    let ts = slack.write(&says(&group, &ada, "hello", true));
    let start = json!({"channel": group, "thread_ts": ts, "markdown_text": "one"});
    assert_eq!(slack.call("chat.startStream", start.clone()).await["error"], "missing_recipient_user_id");
    let mut full = start;
    full["recipient_user_id"] = ada.as_str().into();
    full["recipient_team_id"] = world::TEAM.into();
    let stream = slack.call("chat.startStream", full).await["ts"].clone();
    let add = |text: &str| json!({"channel": group, "ts": stream, "markdown_text": text});
    slack.call("chat.appendStream", add(" **two**")).await;
    assert_eq!((slack.shown(&group)[0].text.as_str(), slack.shown(&group)[0].growing), ("one two", true));
    assert_eq!(slack.call("chat.update", add("x")).await["error"], "streaming_state_conflict");
    assert_eq!(slack.call("chat.appendStream", add(&"x".repeat(12_001))).await["error"], "msg_too_long");
    slack.call("chat.stopStream", add(" three")).await;
    assert_eq!(slack.call("chat.appendStream", add("x")).await["error"], "message_not_in_streaming_state");
    let shown = slack.shown(&group).remove(0);
    assert_eq!((shown.text.as_str(), shown.growing, shown.answers), ("one two three", false, Some(ts)));
    let id = stream.as_str().unwrap();
    assert_eq!(slack.history(&group, id), ["one", "one two", "one two three"]);
}

#[tokio::test]
async fn wrong_calls_are_refused_in_the_platforms_form_and_stay_in_the_record() {
    let (slack, ada, group) = slack().await;
    let long = "x".repeat(3001);
    let cases = [
        ("chat.postMessage", json!({"text": "x"}), "invalid_arguments"),
        ("chat.postMessage", json!({"channel": "C1", "text": "x"}), "channel_not_found"),
        ("chat.postMessage", json!({"channel": group}), "no_text"),
        ("chat.postMessage", json!({"channel": group, "text": "x", "thread_ts": "1.2"}), "thread_not_found"),
        ("chat.update", json!({"channel": group, "ts": "1.2", "text": "x"}), "message_not_found"),
        (
            "chat.postMessage",
            json!({"channel": group, "blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": long}}]}),
            "invalid_blocks",
        ),
        ("reactions.add", json!({"channel": group, "timestamp": "1.2", "name": "eyes"}), "message_not_found"),
        ("chat.dance", json!({}), "unknown_method"),
    ];
    for (method, params, error) in cases {
        assert_eq!(slack.call(method, params).await["error"], error, "{method}");
    }
    assert_eq!(slack.calls("chat.dance")[0].outcome, Outcome::Refused(200, "unknown_method".into()));
    slack.scope("chat:write", false);
    let refused = slack.call("chat.postMessage", json!({"channel": group, "text": "x"})).await;
    assert_eq!((&refused["error"], &refused["needed"]), (&json!("missing_scope"), &json!("chat:write")));
    slack.revoke("account_inactive");
    assert_eq!(slack.call("auth.test", json!({})).await["error"], "account_inactive");
    assert!(slack.person("Bob") != ada);
}

#[tokio::test]
async fn what_pings_is_seen() {
    let (slack, _, group) = slack().await;
    for (text, pings) in
        [("hello", false), ("<!channel> hi", true), ("&lt;!channel&gt;", false), ("<@U0SIM1>", true)]
    {
        slack.call("chat.postMessage", json!({"channel": group, "text": text})).await;
        assert_eq!(slack.shown(&group).last().unwrap().pings, pings, "{text}");
    }
}
