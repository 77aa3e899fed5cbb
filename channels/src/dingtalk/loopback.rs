//! A fake DingTalk API on the loopback interface: records requests and returns scripted answers.

use super::{CardStyle, DingTalkAccountState, DingTalkChannel, DingTalkConfig, GroupConversations};
use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{StatusCode, Uri},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex, atomic::Ordering},
    time::Duration,
};

type DingTalkScript = dyn FnMut(&str, &Value) -> (u16, Value) + Send;

#[derive(Clone)]
pub(super) struct DingTalkLoopback {
    script: Arc<Mutex<Box<DingTalkScript>>>,
    requests: Arc<Mutex<Vec<(String, Value)>>>,
    url: String,
}

impl DingTalkLoopback {
    /// Starts a server that issues a token to every caller. `script` receives the path and the body.
    pub(super) async fn start(script: impl FnMut(&str, &Value) -> (u16, Value) + Send + 'static) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = Self { script: Arc::new(Mutex::new(Box::new(script))), requests: Arc::default(), url };
        let app = Router::new().fallback(answer).with_state(server.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        server
    }

    /// Returns the shared state of a bot that uses this API.
    pub(super) fn state(&self, cards: bool) -> Arc<DingTalkAccountState> {
        let state = channel(&self.url, cards).state;
        state.cards_work.store(true, Ordering::Relaxed);
        state
    }

    /// Returns the last path segment of each request so far, except requests for a token.
    pub(super) fn calls(&self) -> Vec<String> {
        let requests = self.requests.lock().unwrap();
        requests.iter().map(|(path, _)| path.rsplit('/').next().unwrap().to_owned()).collect()
    }
}

/// A bot whose API is at this address.
pub(super) fn channel(url: &str, cards: bool) -> DingTalkChannel {
    let style = CardStyle { template: "t".into(), content_key: "content".into(), buttons_key: None };
    let config = DingTalkConfig {
        account: "dingtalk".into(),
        client_id: "ding1".into(),
        client_secret: "secret".into(),
        robot_code: "ding1".into(),
        api_url: url.parse().unwrap(),
        oapi_url: url.parse().unwrap(),
        card: cards.then_some(style),
        stream_interval: Duration::from_millis(800),
        group_conversations: GroupConversations::Group,
        reads_groups: false,
    };
    DingTalkChannel::new(config).unwrap()
}

/// Returns a failure response with this code.
pub(super) fn failure(code: &str) -> (u16, Value) {
    let status = match code {
        "InternalError" => 500,
        "QpsLimit" => 403,
        _ => 400,
    };
    (status, json!({"code": code, "message": "m"}))
}

async fn answer(State(server): State<DingTalkLoopback>, uri: Uri, body: Bytes) -> Response {
    let body = serde_json::from_slice(&body).unwrap_or_default();
    let (status, response) = (server.script.lock().unwrap())(uri.path(), &body);
    if status == 200 && uri.path().ends_with("/accessToken") {
        return axum::Json(json!({"accessToken": "token", "expireIn": 7200})).into_response();
    }
    server.requests.lock().unwrap().push((uri.path().to_owned(), body));
    (StatusCode::from_u16(status).unwrap(), axum::Json(response)).into_response()
}
