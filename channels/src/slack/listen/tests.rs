use super::*;
use crate::{
    AcceptError, Accepted, Inbound, InboundKind,
    slack::{SlackChannel, SlackConfig},
};
use axum::{Json, Router, extract::State, routing::post};
use futures_util::SinkExt;
use proptest::prelude::*;
use std::sync::{
    Mutex,
    atomic::{AtomicBool, Ordering},
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Notify,
};
use tokio_tungstenite::{WebSocketStream, accept_async, tungstenite::Message};

type Line = WebSocketStream<TcpStream>;

/// A minimal fake Slack: it knows its bot and returns URLs of connections, which the test serves.
struct Fake {
    api: String,
    lines: TcpListener,
}

impl Fake {
    async fn start() -> Self {
        let lines = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("ws://{}/link", lines.local_addr().unwrap());
        let router = Router::new()
            .route(
                "/api/auth.test",
                post(|| async {
                    Json(json!({"ok": true, "user_id": "UBOT", "bot_id": "BBOT", "team_id": "T1"}))
                }),
            )
            .route("/api/users.info", post(name))
            .route(
                "/api/apps.connections.open",
                post(|State(url): State<String>| async move { Json(json!({"ok": true, "url": url})) }),
            )
            .with_state(url);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let api = format!("http://{}/api", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { api, lines }
    }

    /// Takes the next connection and says hello.
    async fn line(&self) -> Line {
        let (stream, _) = timeout(Duration::from_secs(5), self.lines.accept()).await.unwrap().unwrap();
        let mut line = accept_async(stream).await.unwrap();
        say(&mut line, &json!({"type": "hello", "num_connections": 1})).await;
        line
    }

    fn slack(&self) -> SlackChannel {
        let config = SlackConfig {
            account: "slack".into(),
            bot_token: "xoxb-1".into(),
            api_url: self.api.parse().unwrap(),
            delivery: SlackEventMode::Socket { app_token: "xapp-1".into() },
            require_mention: true,
            bot_user_id: None,
            commands: Vec::new(),
        };
        SlackChannel::new(config).unwrap()
    }
}

/// A Slack API without names; the first request about one user gets no answer.
async fn name(form: String) -> Json<Value> {
    static ASKED: AtomicBool = AtomicBool::new(false);
    if form.contains("USLOW") && !ASKED.swap(true, Ordering::Relaxed) {
        std::future::pending::<()>().await;
    }
    Json(json!({"ok": false, "error": "missing_scope"}))
}

async fn say(line: &mut Line, frame: &Value) {
    line.send(Message::text(frame.to_string())).await.unwrap();
}

fn envelope(id: &str, text: &str) -> Value {
    // A slow event is in a separate chat, because each chat keeps its order.
    let chat = if text == "slow" { "D2" } else { "D1" };
    let event = json!({"type": "message", "channel": chat, "channel_type": "im", "user": "U1", "text": text, "ts": format!("1.{id}")});
    json!({"type": "events_api", "envelope_id": id, "payload": {"type": "event_callback", "team_id": "T1", "event": event}})
}

/// Returns the next envelope that is acknowledged, `None` after a second without any.
async fn acked(line: &mut Line) -> Option<String> {
    loop {
        match timeout(Duration::from_secs(1), line.next()).await.ok()?? {
            Ok(Message::Text(text)) => {
                let frame: Value = serde_json::from_str(text.as_str()).unwrap();
                assert_eq!(frame.as_object().unwrap().len(), 1, "only the id: {frame}");
                return Some(frame["envelope_id"].as_str().unwrap().to_owned());
            }
            Ok(Message::Close(_)) | Err(_) => return None,
            Ok(_) => {}
        }
    }
}

/// Stores every event except "full"; "slow" waits until it is released.
#[derive(Default)]
struct Store {
    kept: Mutex<Vec<String>>,
    go: Notify,
}

impl EventSink for Store {
    fn accept<'a>(&'a self, inbound: Inbound) -> BoxFuture<'a, Result<Accepted, AcceptError>> {
        Box::pin(async move {
            let text = match inbound.kind {
                InboundKind::Message { text, .. } => text,
                other => format!("{other:?}"),
            };
            if text == "slow" {
                self.go.notified().await;
            }
            if text == "full" {
                return Err(AcceptError::Full);
            }
            self.kept.lock().unwrap().push(text);
            Ok(Accepted::New)
        })
    }

    crate::event_sink::knows_no_messages!();
}

/// Runs the channel while the test plays Slack; returns the channel's result.
async fn listening<F>(fake: &Fake, store: &Store, play: F) -> (Result<(), ChannelError>, HealthState)
where
    F: Future<Output = ()>,
{
    let (slack, stop) = (fake.slack(), CancellationToken::new());
    let both = async {
        tokio::select! {
            ended = slack.receive(store, stop.clone()) => ended,
            () = async { play.await; stop.cancel(); std::future::pending().await } => Ok(()),
        }
    };
    let ended = timeout(Duration::from_secs(20), Box::pin(both)).await.unwrap();
    (ended, slack.handler.health.get().state)
}

#[tokio::test]
async fn only_stored_envelopes_are_acknowledged() {
    let (fake, store) = (Fake::start().await, Store::default());
    let play = async {
        let mut line = fake.line().await;
        for frame in [
            envelope("000001", "slow"),
            envelope("000002", "full"),
            json!({"type": "events_api", "envelope_id": "000003", "payload": {"event": {"type": []}}}),
            json!({"type": "news", "envelope_id": "000004"}),
            json!({"type": "events_api", "payload": 1}),
            json!("?"),
        ] {
            say(&mut line, &frame).await;
        }
        line.send(Message::text("{\"type\":")).await.unwrap();
        line.send(Message::binary(vec![0xff, 0xfe])).await.unwrap();
        say(&mut line, &envelope("000005", "hello")).await;
        let mut ids = Vec::new();
        while let Some(id) = acked(&mut line).await {
            ids.push(id);
        }
        ids.sort();
        assert_eq!(ids, ["000003", "000004", "000005"]);
        assert_eq!(*store.kept.lock().unwrap(), ["hello"]);
        store.go.notify_one();
        assert_eq!(acked(&mut line).await.as_deref(), Some("000001"));
        assert_eq!(acked(&mut line).await, None, "a refused event is redelivered");
    };
    assert_eq!(Box::pin(listening(&fake, &store, play)).await, (Ok(()), HealthState::Stopped));
}

#[tokio::test]
async fn a_deletion_is_never_stored_before_its_message() {
    let (fake, store) = (Fake::start().await, Store::default());
    let play = async {
        let mut line = fake.line().await;
        let mut said = envelope("000001", "oh no");
        said["payload"]["event"]["user"] = "USLOW".into();
        let mut gone = envelope("000002", "");
        let event = said["payload"]["event"].clone();
        gone["payload"]["event"] = json!({
            "type": "message", "subtype": "message_deleted", "channel": "D1", "channel_type": "im",
            "deleted_ts": event["ts"], "ts": "2.0", "previous_message": event,
        });
        say(&mut line, &said).await;
        say(&mut line, &gone).await;
        let mut ids = Vec::new();
        while ids.len() < 2 {
            ids.extend(acked(&mut line).await);
        }
        assert_eq!(ids, ["000001", "000002"]);
        assert_eq!(*store.kept.lock().unwrap(), ["oh no", "Recall"]);
    };
    assert_eq!(Box::pin(listening(&fake, &store, play)).await, (Ok(()), HealthState::Stopped));
}

#[tokio::test]
async fn the_old_connection_gets_its_acknowledgements_before_it_is_closed() {
    let (fake, store) = (Fake::start().await, Store::default());
    let play = async {
        let mut old = fake.line().await;
        say(&mut old, &envelope("000001", "slow")).await;
        say(&mut old, &json!({"type": "disconnect", "reason": "warning"})).await;
        // The old connection is still read while the next one is opened.
        let (stream, _) = fake.lines.accept().await.unwrap();
        say(&mut old, &envelope("000002", "late")).await;
        assert_eq!(acked(&mut old).await.as_deref(), Some("000002"));
        let mut new = accept_async(stream).await.unwrap();
        say(&mut new, &json!({"type": "hello"})).await;
        store.go.notify_one();
        assert_eq!(acked(&mut old).await.as_deref(), Some("000001"));
        assert_eq!(acked(&mut old).await, None, "the old connection is closed");
        say(&mut new, &envelope("000003", "on the new one")).await;
        assert_eq!(acked(&mut new).await.as_deref(), Some("000003"));
        drop(new);
        let mut third = fake.line().await;
        say(&mut third, &envelope("000003", "on the new one")).await;
        assert_eq!(acked(&mut third).await.as_deref(), Some("000003"));
    };
    assert_eq!(Box::pin(listening(&fake, &store, play)).await, (Ok(()), HealthState::Stopped));
}

#[tokio::test]
async fn disabled_socket_mode_ends_listening() {
    let (fake, store) = (Fake::start().await, Store::default());
    let play = async {
        let mut line = fake.line().await;
        say(&mut line, &json!({"type": "disconnect", "reason": "link_disabled"})).await;
        std::future::pending().await
    };
    assert_eq!(
        Box::pin(listening(&fake, &store, play)).await,
        (Err(socket_mode_disabled()), HealthState::Stopped)
    );
}

#[test]
fn each_disconnect_reason_has_its_meaning() {
    let end_of = |reason: &str| {
        told_to_go(&SocketModeFrame { reason: Some(reason.into()), ..SocketModeFrame::default() })
    };
    assert_eq!(end_of("link_disabled"), ConnectionEnd::Fatal(socket_mode_disabled()));
    assert!(matches!(end_of("too_many_websockets"), ConnectionEnd::Later(_, wait) if wait == CROWDED));
    assert_eq!(end_of("refresh_requested"), ConnectionEnd::Renew);
    assert!(matches!(end_of("other"), ConnectionEnd::Lost(_)));
    assert_eq!(
        ended(CallError::Auth("invalid_auth".into())),
        ConnectionEnd::Fatal(fatal(&CallError::Auth("invalid_auth".into())).unwrap())
    );
    assert!(matches!(ended(CallError::Unknown("x".into())), ConnectionEnd::Lost(_)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn arbitrary_frames_never_panic(text in r#"[\{\}\[\]":,a-z0-9 ]{0,80}"#, bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        prop_assert!(read(socket::SocketFrame::Text(text)).is_ok());
        prop_assert!(read(socket::SocketFrame::Binary(bytes)).is_ok_and(|frame| frame.is_none()));
    }
}
