//! The methods of the protocol.

use super::{
    failure::{NOT_FOUND, failed},
    history,
    session::{AcpSession, SessionTable, THREAD_KEY},
};
use crate::cli::chat::api::Api;
use pudu_acp::rpc::{
    INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR, PROTOCOL_VERSION, RpcError, RpcMessage,
    RpcPeer, RpcReader,
};
use pudu_base::ThreadId;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::{io::AsyncRead, task::JoinSet};

/// Maximum number of requests that are answered at the same time.
const MAX_REQUESTS: usize = 64;
/// Maximum number of listed sessions.
const MAX_LISTED: u32 = 100;
/// Metadata key of a thread for the editor's folder.
const FOLDER_KEY: &str = "acp_cwd";

/// The agent's side of the connection. Cheap to clone.
#[derive(Clone)]
pub(super) struct AcpServer(Arc<Inner>);

struct Inner {
    api: Api,
    /// Name of the custom agent, if one is chosen.
    agent: Option<String>,
    peer: RpcPeer,
    sessions: SessionTable,
}

impl AcpServer {
    pub(super) fn new(api: Api, agent: Option<String>, peer: RpcPeer) -> Self {
        Self(Arc::new(Inner { api, agent, peer, sessions: SessionTable::default() }))
    }

    /// Answers requests until the connection ends. Then active runs are stopped.
    pub(super) async fn serve(self, mut reader: RpcReader<impl AsyncRead + Unpin>) {
        let mut work = JoinSet::new();
        while let Some(message) = reader.next().await {
            while work.try_join_next().is_some() {}
            let refused = match message {
                RpcMessage::Request { id, method, params }
                    if work.len() < MAX_REQUESTS && !method.is_empty() =>
                {
                    let server = self.clone();
                    work.spawn(async move { server.on_request(&id, &method, &params).await });
                    continue;
                }
                RpcMessage::Request { id, method, .. } => {
                    let why = if method.is_empty() {
                        "the message is too long"
                    } else {
                        "too many requests are open"
                    };
                    (id, RpcError::new(INVALID_REQUEST, why))
                }
                RpcMessage::Notification { method, params } => {
                    if method == "session/cancel" {
                        self.0.sessions.cancel(params["sessionId"].as_str().unwrap_or_default());
                    }
                    continue;
                }
                RpcMessage::Noise(_) => {
                    (Value::Null, RpcError::new(PARSE_ERROR, "this line is not a message"))
                }
            };
            self.0.peer.respond::<Value>(&refused.0, Err(refused.1)).await.ok();
        }
        drop(reader);
        self.0.sessions.cancel_all();
        while work.join_next().await.is_some() {}
    }

    async fn on_request(&self, id: &Value, method: &str, params: &Value) {
        let result = self.answer(method, params).await;
        let opened = match (method, &result) {
            ("session/new", Ok(opened)) => opened["sessionId"].as_str(),
            ("session/load", Ok(_)) => params["sessionId"].as_str(),
            _ => None,
        };
        let opened = opened.map(str::to_owned);
        self.0.peer.respond(id, result).await.ok();
        // Sent after the answer, because an editor does not know the session before.
        if let Some(session) = opened {
            self.tell_commands(&session).await;
        }
    }

    async fn answer(&self, method: &str, params: &Value) -> Result<Value, RpcError> {
        match method {
            "initialize" => Ok(about()),
            // No method is offered, because the daemon's token admits.
            "authenticate" => Ok(json!({})),
            "session/new" => self.new_session(params).await,
            "session/load" => self.load_session(params).await,
            "session/list" => self.list_sessions(params).await,
            "session/set_config_option" => self.set_option(params).await,
            "session/prompt" => self.session(params)?.prompt(&params["prompt"]).await,
            method => Err(RpcError::new(METHOD_NOT_FOUND, format!("pudu has no {method}"))),
        }
    }

    fn session(&self, params: &Value) -> Result<AcpSession, RpcError> {
        let id = text(params, "sessionId")?;
        let unknown = || RpcError::new(NOT_FOUND, format!("there is no session {id}; load it first"));
        let state = self.0.sessions.get(&id).ok_or_else(unknown)?;
        Ok(AcpSession {
            id,
            state,
            api: self.0.api.clone(),
            agent: self.0.agent.clone(),
            peer: self.0.peer.clone(),
        })
    }

    async fn new_session(&self, params: &Value) -> Result<Value, RpcError> {
        let id = ThreadId::fresh().to_string();
        let thread = json!({ "thread_id": id, "metadata": { FOLDER_KEY: params["cwd"] } });
        self.0.api.post("threads", &thread).await.map_err(failed)?;
        self.0.sessions.open(&id, &id);
        let mut opened = self.opened(params, &id).await;
        opened["sessionId"] = json!(id);
        Ok(opened)
    }

    async fn load_session(&self, params: &Value) -> Result<Value, RpcError> {
        let id = text(params, "sessionId")?;
        // The id becomes a part of a URL.
        if id.is_empty() || !id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_') {
            return Err(RpcError::new(NOT_FOUND, "there is no such session"));
        }
        let first = self.0.api.get(&format!("threads/{id}")).await.map_err(failed)?;
        let thread = first["metadata"][THREAD_KEY].as_str().unwrap_or(&id);
        let messages = history::messages(&self.0.api, thread).await.map_err(failed)?;
        self.0.sessions.open(&id, thread);
        for update in messages.iter().flat_map(history::updates) {
            let params = json!({ "sessionId": id, "update": update });
            self.0.peer.notify("session/update", &params).await.ok();
        }
        Ok(self.opened(params, &id).await)
    }

    /// Returns the fields of an answer to an opened session.
    async fn opened(&self, params: &Value, id: &str) -> Value {
        let mut opened = json!({});
        if let Some(options) = self.options(id).await {
            opened["configOptions"] = options;
        }
        let has = |key: &str| params[key].as_array().is_some_and(|list| !list.is_empty());
        let ignored: Vec<&str> =
            ["mcpServers", "additionalDirectories"].into_iter().filter(|key| has(key)).collect();
        if !ignored.is_empty() {
            let keys = ignored.join(", ");
            eprintln!(
                "warning: not used: {keys} of the editor; MCP servers of pudu are in extensions_config.json"
            );
            opened["_meta"] = json!({ "pudu": { "ignored": ignored } });
        }
        opened
    }

    async fn list_sessions(&self, params: &Value) -> Result<Value, RpcError> {
        let wanted = match params["cwd"].as_str() {
            Some(folder) => json!({ FOLDER_KEY: folder }),
            None => json!({}),
        };
        let query = json!({
            "metadata": wanted, "limit": MAX_LISTED, "select": ["thread_id", "values", "metadata", "updated_at"],
        });
        let found = self.0.api.post("threads/search", &query).await.map_err(failed)?;
        let session = |thread: &Value| {
            let folder = thread["metadata"][FOLDER_KEY].as_str()?;
            let mut session = json!({ "sessionId": thread["thread_id"], "cwd": folder });
            for (key, value) in [("title", &thread["values"]["title"]), ("updatedAt", &thread["updated_at"])]
            {
                if value.is_string() {
                    session[key] = value.clone();
                }
            }
            Some(session)
        };
        let sessions: Vec<Value> = found.as_array().into_iter().flatten().filter_map(session).collect();
        Ok(json!({ "sessions": sessions }))
    }

    /// Returns the options of a session: its model, if there are several.
    async fn options(&self, id: &str) -> Option<Value> {
        let models = self.0.api.get("models").await.unwrap_or_default();
        let models = models["models"].as_array().filter(|models| models.len() > 1)?;
        let name =
            |model: &Value| model["display_name"].as_str().or(model["name"].as_str()).map(str::to_owned);
        let option = |model: &Value| Some(json!({ "value": model["name"].as_str()?, "name": name(model)? }));
        let chosen = self.0.sessions.get(id).and_then(|state| state.model());
        let current = chosen.or_else(|| models.first()?["name"].as_str().map(str::to_owned))?;
        let options: Vec<Value> = models.iter().filter_map(option).collect();
        Some(json!([{
            "id": "model", "name": "Model", "category": "model", "type": "select", "currentValue": current,
            "options": options,
        }]))
    }

    async fn set_option(&self, params: &Value) -> Result<Value, RpcError> {
        let session = self.session(params)?;
        let value = text(params, "value")?;
        if text(params, "configId")? != "model" {
            return Err(RpcError::new(INVALID_PARAMS, "the only option is `model`"));
        }
        let known = self.options(&session.id).await.unwrap_or_default();
        let is_known =
            known[0]["options"].as_array().into_iter().flatten().any(|option| option["value"] == *value);
        if !is_known {
            return Err(RpcError::new(INVALID_PARAMS, format!("there is no model {value}")));
        }
        session.state.choose_model(value);
        Ok(json!({ "configOptions": self.options(&session.id).await }))
    }

    /// Lists the slash commands for the editor.
    async fn tell_commands(&self, session: &str) {
        let listed = self.0.api.get("commands").await.unwrap_or_default();
        let command = |command: &Value| {
            let usable = command["works_on_threads"] == true || command["kind"] == "skill";
            let mut shown = json!({ "name": command["name"].as_str()?, "description": command["help"] });
            if let Some(argument) = command["argument"].as_str().filter(|argument| !argument.is_empty()) {
                shown["input"] = json!({ "hint": argument });
            }
            usable.then_some(shown)
        };
        let commands: Vec<Value> =
            listed["commands"].as_array().into_iter().flatten().filter_map(command).collect();
        let update = json!({ "sessionUpdate": "available_commands_update", "availableCommands": commands });
        let params = json!({ "sessionId": session, "update": update });
        self.0.peer.notify("session/update", &params).await.ok();
    }
}

/// Returns the answer to the first request.
fn about() -> Value {
    json!({
        "protocolVersion": PROTOCOL_VERSION,
        "agentInfo": { "name": "pudu", "title": "pudu", "version": env!("CARGO_PKG_VERSION") },
        "agentCapabilities": {
            "loadSession": true,
            "promptCapabilities": { "image": true, "audio": false, "embeddedContext": true },
            "mcpCapabilities": { "http": false, "sse": false },
            "sessionCapabilities": { "list": {} },
        },
        "authMethods": [],
    })
}

fn text(params: &Value, key: &str) -> Result<String, RpcError> {
    let text = params[key].as_str().map(str::to_owned);
    text.ok_or_else(|| RpcError::new(INVALID_PARAMS, format!("`{key}` must be a text")))
}
