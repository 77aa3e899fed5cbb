//! A fake Bot API on the loopback interface. Records requests and returns scripted responses.

use super::{TelegramChannel, TelegramConfig, TelegramUpdateMode, client::TelegramClient};
use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{StatusCode, Uri},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};
use std::{
    future::pending,
    sync::{Arc, Mutex},
};
use tokio::sync::Notify;

/// A token in the usual format.
pub(super) const TOKEN: &str = "123456:AAF7-g0gYncWnm5IyfZlpPRqRRv6kNAGlao";

/// How the server responds to a call.
pub(super) enum Do {
    /// Responds with a result.
    Result(Value),
    /// Responds with an error.
    Error(u16, &'static str),
    /// Responds with exactly these bytes.
    Bytes(Vec<u8>),
    /// Never responds.
    Wait,
}

type TelegramScript = dyn Fn(&str, &Value, usize) -> Do + Send + Sync;

/// A call: the method or the path of a file, and the parameters.
pub(super) type RecordedCall = (String, Value);

#[derive(Clone)]
pub(super) struct TelegramLoopback {
    script: Arc<TelegramScript>,
    asked: Arc<Mutex<Vec<RecordedCall>>>,
    called: Arc<Notify>,
    pub(super) url: String,
}

impl TelegramLoopback {
    /// Starts a server. The script gets the method in lower case, the parameters, and how often the method
    /// was called before.
    pub(super) async fn start(script: impl Fn(&str, &Value, usize) -> Do + Send + Sync + 'static) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/tg", listener.local_addr().unwrap());
        let server = Self { script: Arc::new(script), asked: Arc::default(), called: Arc::default(), url };
        let app = Router::new().fallback(answer).with_state(server.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        server
    }

    pub(super) fn client(&self) -> TelegramClient {
        TelegramClient::new(TOKEN.into(), self.url.parse().unwrap()).unwrap()
    }

    pub(super) fn telegram(&self) -> TelegramChannel {
        TelegramChannel::new(config(&self.url)).unwrap()
    }

    /// Returns the parameters of all calls of a method so far.
    pub(super) fn asked(&self, method: &str) -> Vec<Value> {
        let requests = self.asked.lock().unwrap();
        requests.iter().filter(|(name, _)| name == method).map(|(_, body)| body.clone()).collect()
    }

    /// Waits until a method was called `times` times.
    pub(super) async fn until(&self, method: &str, times: usize) {
        loop {
            let called = self.called.notified();
            if self.asked(method).len() >= times {
                return;
            }
            called.await;
        }
    }
}

pub(super) fn config(url: &str) -> TelegramConfig {
    TelegramConfig {
        account: "telegram".into(),
        token: TOKEN.into(),
        api_url: url.parse().unwrap(),
        mode: TelegramUpdateMode::Polling,
        require_mention: true,
        reads_groups: false,
        commands: vec![crate::ChatCommand {
            name: "new".into(),
            argument: String::new(),
            help: "Start anew".into(),
            translations: vec![(pudu_texts::Language::Chinese, "新对话".into())],
        }],
    }
}

async fn answer(State(server): State<TelegramLoopback>, uri: Uri, body: Bytes) -> Response {
    let Some(path) = uri.path().strip_prefix("/tg/") else { return StatusCode::NOT_FOUND.into_response() };
    let name = match path.strip_prefix("file/") {
        Some(file) => file.strip_prefix(&format!("bot{TOKEN}/")).unwrap_or("?").to_owned(),
        None => path.strip_prefix(&format!("bot{TOKEN}/")).unwrap_or("?").to_ascii_lowercase(),
    };
    // A body that is not JSON is a form.
    let body_json = serde_json::from_slice(&body).unwrap_or_else(|_| json!(String::from_utf8_lossy(&body)));
    let before = server.asked(&name).len();
    server.asked.lock().unwrap().push((name.clone(), body_json.clone()));
    server.called.notify_waiters();
    match (server.script)(&name, &body_json, before) {
        Do::Result(result) => axum::Json(json!({"ok": true, "result": result})).into_response(),
        Do::Error(code, what) => {
            let status = StatusCode::from_u16(code).unwrap();
            let body = json!({"ok": false, "error_code": code, "description": what});
            (status, axum::Json(body)).into_response()
        }
        Do::Bytes(bytes) => bytes.into_response(),
        Do::Wait => pending().await,
    }
}
