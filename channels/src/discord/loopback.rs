//! A fake Discord API on the loopback interface: records requests and returns scripted answers.

use super::{
    DiscordChannel, DiscordConfig, ListenRules,
    account_state::{DiscordAccountState, DiscordIdentity},
    client::DiscordClient,
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

type DiscordScript = dyn Fn(&str, &Value) -> (u16, Value) + Send + Sync;

/// Id of both the bot user and its application.
pub(super) const ME: &str = "7";

#[derive(Clone)]
pub(super) struct DiscordLoopback {
    script: Arc<DiscordScript>,
    requests: Arc<Mutex<Vec<(String, Value)>>>,
    pub(super) url: String,
}

impl DiscordLoopback {
    /// Starts a server. `script` receives method and path, and the body.
    pub(super) async fn start(script: impl Fn(&str, &Value) -> (u16, Value) + Send + Sync + 'static) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = Self { script: Arc::new(script), requests: Arc::default(), url };
        let app = Router::new().fallback(answer).with_state(server.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        server
    }

    /// Returns the shared state of a bot that already knows its own id.
    pub(super) fn state(&self) -> Arc<DiscordAccountState> {
        let state =
            DiscordAccountState::new(DiscordClient::new(self.url.parse().unwrap(), "secret".into()).unwrap());
        let me = DiscordIdentity { user: ME.into(), application: ME.into(), name: "pudu".into() };
        state.me.set(me).unwrap();
        Arc::new(state)
    }

    /// Returns a bot that uses this API.
    pub(super) fn discord(&self) -> DiscordChannel {
        let config = DiscordConfig {
            account: "d".into(),
            bot_token: "secret".into(),
            api_url: self.url.parse().unwrap(),
            rules: ListenRules::default(),
            commands: Vec::new(),
        };
        DiscordChannel::new(config).unwrap()
    }

    /// Returns the requests so far.
    pub(super) fn requests(&self) -> Vec<(String, Value)> {
        self.requests.lock().unwrap().clone()
    }

    /// Returns verbs and paths of the requests so far.
    pub(super) fn calls(&self) -> Vec<String> {
        self.requests().into_iter().map(|(call, _)| call).collect()
    }
}

async fn answer(State(server): State<DiscordLoopback>, verb: Method, uri: Uri, body: Bytes) -> Response {
    let call = format!("{verb} {}", uri.path().trim_start_matches("/v10"));
    let body = serde_json::from_slice(&body).unwrap_or_default();
    let (status, response) = (server.script)(&call, &body);
    server.requests.lock().unwrap().push((call, body));
    (StatusCode::from_u16(status).unwrap(), axum::Json(response)).into_response()
}
