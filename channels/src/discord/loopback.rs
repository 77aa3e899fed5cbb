//! An API on the loopback: records what is asked and answers what a test says.

use super::{
    Config, Discord, Rules,
    client::Client,
    office::{Me, Office},
};
use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{Method, StatusCode, Uri},
    response::{IntoResponse, Response},
};
use serde_json::Value;
use std::sync::{Arc, Mutex};

type Script = dyn Fn(&str, &Value) -> (u16, Value) + Send + Sync;

/// The bot's user and application.
pub(super) const ME: &str = "7";

#[derive(Clone)]
pub(super) struct Loopback {
    script: Arc<Script>,
    asked: Arc<Mutex<Vec<(String, Value)>>>,
    pub(super) url: String,
}

impl Loopback {
    /// Starts a server. The script gets verb and path, and the body.
    pub(super) async fn start(script: impl Fn(&str, &Value) -> (u16, Value) + Send + Sync + 'static) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = Self { script: Arc::new(script), asked: Arc::default(), url };
        let app = Router::new().fallback(answer).with_state(server.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        server
    }

    /// Returns the state that the replies share, of a bot that knows its own id.
    pub(super) fn office(&self) -> Arc<Office> {
        let office = Office::new(Client::new(self.url.parse().unwrap(), "secret".into()).unwrap());
        let me = Me { user: ME.into(), application: ME.into(), name: "pudu".into() };
        office.me.set(me).unwrap();
        Arc::new(office)
    }

    /// A bot whose API this is.
    pub(super) fn discord(&self) -> Discord {
        let config = Config {
            account: "d".into(),
            bot_token: "secret".into(),
            api_url: self.url.parse().unwrap(),
            rules: Rules::default(),
            commands: Vec::new(),
        };
        Discord::new(config).unwrap()
    }

    /// Returns what was asked so far.
    pub(super) fn asked(&self) -> Vec<(String, Value)> {
        self.asked.lock().unwrap().clone()
    }

    /// Returns verbs and paths of what was asked so far.
    pub(super) fn calls(&self) -> Vec<String> {
        self.asked().into_iter().map(|(call, _)| call).collect()
    }
}

async fn answer(State(server): State<Loopback>, verb: Method, uri: Uri, body: Bytes) -> Response {
    let call = format!("{verb} {}", uri.path().trim_start_matches("/v10"));
    let body = serde_json::from_slice(&body).unwrap_or_default();
    let (status, told) = (server.script)(&call, &body);
    server.asked.lock().unwrap().push((call, body));
    (StatusCode::from_u16(status).unwrap(), axum::Json(told)).into_response()
}
