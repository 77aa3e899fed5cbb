//! Webhook delivery to a server of the test.

#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it says")]

use axum::{
    Json, Router,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use pudu_sim::{Telegram, telegram::Options};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{net::TcpListener, sync::mpsc};

/// Received updates, and the statuses to respond with; 200 when there are none left.
#[derive(Clone)]
struct Receiver {
    arrived: mpsc::Sender<(Option<String>, Value)>,
    statuses: Arc<Mutex<Vec<u16>>>,
}

async fn receive(State(to): State<Receiver>, headers: HeaderMap, Json(update): Json<Value>) -> StatusCode {
    let secret = headers.get("x-telegram-bot-api-secret-token");
    let secret = secret.map(|secret| secret.to_str().unwrap().to_owned());
    let status = to.statuses.lock().unwrap().pop().unwrap_or(200);
    to.arrived.send((secret, update)).await.unwrap();
    StatusCode::from_u16(status).unwrap()
}

async fn start(statuses: &[u16]) -> (Telegram, mpsc::Receiver<(Option<String>, Value)>) {
    let retry = Options { webhook_retry: Duration::from_millis(5), ..Options::default() };
    let telegram = Telegram::start(retry).await.unwrap();
    let (arrived, receiver) = mpsc::channel(100);
    let state = Receiver { arrived, statuses: Arc::new(Mutex::new(statuses.to_vec())) };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let router = Router::new().fallback(receive).with_state(state);
    tokio::spawn(async move { axum::serve(listener, router).await });
    let set = json!({"url": url, "secret_token": "s3cret", "max_connections": 2});
    assert_eq!(telegram.call("setWebhook", set).await["ok"], true);
    (telegram, receiver)
}

#[tokio::test]
async fn updates_arrive_with_the_secret_and_a_refused_one_again_before_the_next_of_its_chat() {
    let (telegram, mut arrived) = start(&[500]).await;
    let ada = telegram.add_person("Ada", None);
    for text in ["one", "two"] {
        telegram.say(telegram.private(ada), ada, text).unwrap();
    }
    let mut texts = Vec::new();
    for _ in 0..3 {
        let (secret, update) = arrived.recv().await.unwrap();
        assert_eq!(secret.as_deref(), Some("s3cret"));
        texts.push((
            update["update_id"].as_i64().unwrap(),
            update["message"]["text"].as_str().unwrap().to_owned(),
        ));
    }
    let first = texts[0].0;
    assert_eq!(texts, [(first, "one".to_owned()), (first, "one".to_owned()), (first + 1, "two".to_owned())]);
    let done = |view: &pudu_sim::telegram::View<'_>| (view.waiting() == 0).then_some(());
    telegram.wait(Duration::from_secs(10), done).await.unwrap();
    let info = telegram.call("getWebhookInfo", json!({})).await["result"].clone();
    let failure = "Wrong response from the webhook: 500 Internal Server Error";
    assert_eq!((&info["pending_update_count"], &info["last_error_message"]), (&json!(0), &json!(failure)));
}

#[tokio::test]
async fn what_waited_arrives_once_the_webhook_is_set_and_a_repeat_arrives_again() {
    let (telegram, mut arrived) = start(&[]).await;
    let ada = telegram.add_person("Ada", None);
    telegram.call("deleteWebhook", json!({})).await;
    let chat = telegram.private(ada);
    let said = telegram.say(chat, ada, "hi").unwrap();
    let again = telegram.update_of(chat, said).unwrap();
    assert_eq!(telegram.last_update(), Some(again));
    assert!(arrived.try_recv().is_err());
    let url = telegram.calls("setWebhook")[0].params["url"].clone();
    telegram.call("setWebhook", json!({"url": url})).await;
    let (secret, first) = arrived.recv().await.unwrap();
    assert_eq!((secret, first["message"]["text"].as_str()), (None, Some("hi")));
    assert!(telegram.redeliver(again));
    assert_eq!(arrived.recv().await.unwrap().1, first);
}
