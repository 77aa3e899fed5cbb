use super::*;
use crate::{
    Accepted, BoxFuture, Channel, Health, Inbound, InboundKind,
    telegram::loopback::{Do, TelegramLoopback},
};
use std::sync::Mutex;

/// Stores events, except for texts that begin with "no" while it is full.
#[derive(Default)]
struct Keeper {
    kept: Mutex<Vec<(String, String)>>,
    full: Mutex<usize>,
}

impl EventSink for Keeper {
    fn accept<'a>(&'a self, inbound: Inbound) -> BoxFuture<'a, Result<Accepted, AcceptError>> {
        Box::pin(async move {
            let text = match inbound.kind {
                InboundKind::Message { text, .. }
                | InboundKind::Edit { text }
                | InboundKind::Press { action: text } => text,
                InboundKind::Recall | InboundKind::Submit { .. } | InboundKind::Scheduled { .. } => {
                    String::new()
                }
            };
            let mut full = self.full.lock().unwrap();
            if text.starts_with("no") && *full > 0 {
                *full -= 1;
                return Err(AcceptError::Full);
            }
            self.kept.lock().unwrap().push((inbound.key.0, text));
            Ok(Accepted::New)
        })
    }

    crate::event_sink::knows_no_messages!();
}

impl Keeper {
    fn kept(&self) -> Vec<(String, String)> {
        self.kept.lock().unwrap().clone()
    }
}

fn message(update: i64, text: &str) -> Value {
    let chat = json!({"id": 7, "type": "private"});
    let from = json!({"id": 7, "is_bot": false, "first_name": "Ann"});
    json!({"update_id": update, "message": {"message_id": update, "date": 1, "chat": chat, "from": from, "text": text}})
}

fn common(method: &str) -> Do {
    match method {
        "getme" => {
            Do::Result(json!({"id": 42, "is_bot": true, "first_name": "Pudu", "username": "pudu_bot"}))
        }
        _ => Do::Result(json!(true)),
    }
}

/// Listens until `end`, then stops; returns the result of listening and the health before and after the stop.
async fn listen(
    server: &TelegramLoopback,
    keeper: &Keeper,
    end: impl Future<Output = ()>,
) -> (Result<(), ChannelError>, Health, Health) {
    let telegram = server.telegram();
    let stop = CancellationToken::new();
    let ends = async {
        end.await;
        let health = telegram.health();
        stop.cancel();
        health
    };
    let (result, health) = tokio::join!(telegram.listen(keeper, stop.clone()), ends);
    (result, health, telegram.health())
}

fn offsets(server: &TelegramLoopback) -> Vec<i64> {
    server.asked("getupdates").iter().map(|asked| asked["offset"].as_i64().unwrap()).collect()
}

fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect()
}

#[tokio::test]
async fn updates_are_stored_in_order_and_an_unreadable_one_blocks_nothing() {
    let server = TelegramLoopback::start(|method, asked, _| match (method, &asked["offset"]) {
        ("getupdates", offset) if offset == 0 => Do::Result(json!([
            message(10, "one"),
            {"update_id": 11, "message": {"message_id": "?"}},
            {"update_id": 12, "something_new": {}},
            {"what": "is this"},
            message(13, "two"),
        ])),
        ("getupdates", _) => Do::Wait,
        _ => common(method),
    })
    .await;
    let keeper = Keeper::default();
    let (result, health, after) = listen(&server, &keeper, server.until("getupdates", 2)).await;
    assert_eq!(result, Ok(()));
    assert_eq!(keeper.kept(), owned(&[("u10", "one"), ("u13", "two")]));
    assert_eq!(offsets(&server)[..2], [0, 14]);
    assert_eq!((health.state, after.state), (HealthState::Ready, HealthState::Stopped));
    assert!(health.last_event.is_some());
    let asked = &server.asked("getupdates")[0];
    let kinds = json!(["message", "edited_message", "callback_query"]);
    assert_eq!(*asked, json!({"offset": 0, "limit": 100, "timeout": 5, "allowed_updates": kinds}));
    assert_eq!(server.asked("deletewebhook"), [json!({"drop_pending_updates": false})]);
    let menu = |about: &str| json!([{"command": "new", "description": about}]);
    let everybody = json!({"commands": menu("Start anew")});
    let chinese = json!({"commands": menu("新对话"), "language_code": "zh"});
    assert_eq!(server.asked("setmycommands"), [everybody, chinese]);
}

#[tokio::test]
async fn a_refused_update_is_requested_again_until_it_is_accepted() {
    let server = TelegramLoopback::start(|method, asked, _| match (method, asked["offset"].as_i64()) {
        ("getupdates", Some(0)) => {
            Do::Result(json!([message(10, "yes"), message(11, "no"), message(12, "yes too")]))
        }
        ("getupdates", Some(11)) => Do::Result(json!([message(11, "no"), message(12, "yes too")])),
        ("getupdates", _) => Do::Wait,
        _ => common(method),
    })
    .await;
    let keeper = Keeper { full: Mutex::new(1), ..Keeper::default() };
    let telegram = server.telegram();
    let stop = CancellationToken::new();
    let ends = async {
        server.until("getupdates", 2).await;
        let degraded = telegram.health();
        server.until("getupdates", 3).await;
        let ready = telegram.health();
        stop.cancel();
        (degraded, ready)
    };
    let (result, (degraded, ready)) = tokio::join!(telegram.listen(&keeper, stop.clone()), ends);
    assert_eq!(result, Ok(()));
    assert_eq!(offsets(&server)[..3], [0, 11, 13]);
    let kept = [("u10", "yes"), ("u12", "yes too"), ("u11", "no"), ("u12", "yes too")];
    assert_eq!(keeper.kept(), owned(&kept));
    assert_eq!(degraded.state, HealthState::Degraded);
    assert_eq!(degraded.last_error.as_deref(), Some("too many messages wait to be answered"));
    assert_eq!((ready.state, ready.last_error), (HealthState::Ready, None));
}

#[tokio::test]
async fn stored_updates_are_confirmed_at_the_end() {
    let server = TelegramLoopback::start(|method, asked, _| {
        match (method, asked["timeout"].as_i64(), asked["offset"].as_i64()) {
            ("getupdates", Some(0), _) => Do::Result(json!([])),
            ("getupdates", _, Some(0)) => Do::Result(json!([message(10, "last")])),
            ("getupdates", ..) => Do::Wait,
            _ => common(method),
        }
    })
    .await;
    let keeper = Keeper::default();
    let kept = async {
        while keeper.kept().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    listen(&server, &keeper, kept).await.0.unwrap();
    let last = server.asked("getupdates").pop().unwrap();
    assert_eq!(last["offset"], 11);
}

#[tokio::test]
async fn a_pressed_button_is_answered_after_it_is_stored() {
    let server = TelegramLoopback::start(|method, asked, _| match (method, asked["offset"].as_i64()) {
        ("getupdates", Some(0)) => Do::Result(json!([{"update_id": 10, "callback_query": {
            "id": "q", "from": {"id": 7, "first_name": "Ann"}, "data": "/stop",
            "message": {"message_id": 3, "date": 1, "chat": {"id": 7, "type": "private"}},
        }}])),
        ("getupdates", _) => Do::Wait,
        _ => common(method),
    })
    .await;
    let keeper = Keeper::default();
    listen(&server, &keeper, server.until("answercallbackquery", 1)).await.0.unwrap();
    assert_eq!(keeper.kept(), owned(&[("u10", "/stop")]));
    assert_eq!(server.asked("answercallbackquery"), [json!({"callback_query_id": "q"})]);
}

#[tokio::test]
async fn another_poller_is_reported() {
    let server = TelegramLoopback::start(|method, _, before| match (method, before) {
        ("getupdates", 0) => Do::Error(409, "Conflict: terminated by other getUpdates request"),
        ("getupdates", 1) => Do::Result(json!([])),
        ("getupdates", _) => Do::Wait,
        _ => common(method),
    })
    .await;
    let keeper = Keeper::default();
    let telegram = server.telegram();
    let stop = CancellationToken::new();
    let ends = async {
        server.until("getupdates", 2).await;
        let degraded = telegram.health();
        server.until("getupdates", 3).await;
        stop.cancel();
        degraded
    };
    let (result, degraded) = tokio::join!(telegram.listen(&keeper, stop.clone()), ends);
    assert_eq!(result, Ok(()));
    let error = "another program polls with this token, or a webhook is set";
    assert_eq!((degraded.state, degraded.last_error.as_deref()), (HealthState::Degraded, Some(error)));
    let timeouts: Vec<_> = server.asked("getupdates").iter().map(|asked| asked["timeout"].clone()).collect();
    assert_eq!(timeouts, [5, 0, 5], "after an error a short poll checks the connection");
}

#[tokio::test]
async fn a_refused_token_ends_listening() {
    let early = TelegramLoopback::start(|_, _, _| Do::Error(401, "Unauthorized")).await;
    let late = TelegramLoopback::start(|method, _, _| match method {
        "getupdates" => Do::Error(401, "Unauthorized"),
        _ => common(method),
    })
    .await;
    for server in [early, late] {
        let telegram = server.telegram();
        let result = telegram.listen(&Keeper::default(), CancellationToken::new()).await;
        assert_eq!(result, Err(ChannelError::Auth("Unauthorized".into())));
        assert_eq!(telegram.health().state, HealthState::AuthFailed);
    }
}

#[tokio::test]
async fn a_webhook_that_telegram_rejects_ends_listening() {
    let server = TelegramLoopback::start(|method, _, _| match method {
        "setwebhook" => Do::Error(400, "Bad Request: bad webhook: An HTTPS URL must be provided"),
        _ => common(method),
    })
    .await;
    let mode = TelegramUpdateMode::Webhook {
        url: "http://pudu.example".parse().unwrap(),
        secret_token: "s3cret".into(),
    };
    let config = crate::telegram::TelegramConfig { mode, ..crate::telegram::loopback::config(&server.url) };
    let telegram = TelegramChannel::new(config).unwrap();
    let result = telegram.listen(&Keeper::default(), CancellationToken::new()).await;
    let error = "Bad Request: bad webhook: An HTTPS URL must be provided";
    assert_eq!(result, Err(ChannelError::Config(error.into())));
    let health = telegram.health();
    assert_eq!((health.state, health.last_error.as_deref()), (HealthState::Stopped, Some(error)));
}

#[tokio::test]
async fn a_stop_does_not_wait_for_telegram() {
    for silent in ["getme", "deletewebhook", "getupdates"] {
        let server = TelegramLoopback::start(
            move |method, _, _| if method == silent { Do::Wait } else { common(method) },
        )
        .await;
        let (result, _, after) = listen(&server, &Keeper::default(), server.until(silent, 1)).await;
        assert_eq!((result, after.state), (Ok(()), HealthState::Stopped));
    }
}

#[tokio::test]
async fn in_webhook_mode_the_url_is_registered_with_telegram() {
    let server = TelegramLoopback::start(|method, _, _| common(method)).await;
    let url: url::Url = "https://pudu.example/api/webhooks/telegram/telegram".parse().unwrap();
    let mode = TelegramUpdateMode::Webhook { url: url.clone(), secret_token: "s3cret".into() };
    let config = crate::telegram::TelegramConfig { mode, ..crate::telegram::loopback::config(&server.url) };
    let telegram = TelegramChannel::new(config).unwrap();
    let stop = CancellationToken::new();
    let ends = async {
        server.until("setmycommands", 1).await;
        stop.cancel();
    };
    let keeper = Keeper::default();
    let (result, ()) = tokio::join!(telegram.listen(&keeper, stop.clone()), ends);
    assert_eq!(result, Ok(()));
    let wanted = json!({"url": url, "secret_token": "s3cret", "allowed_updates": KINDS});
    assert_eq!((server.asked("setwebhook"), server.asked("getupdates")), (vec![wanted], vec![]));
}
