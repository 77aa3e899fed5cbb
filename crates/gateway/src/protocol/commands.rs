//! Commands of LangGraph's protocol on a thread. Each is answered in the protocol's shape, with the number of the
//! thread's newest event, after which a client reads the events of the command.

use super::{
    command::{Carried, CommandRefusal, ThreadCommand, refuse},
    input,
};
use crate::{
    ApiError, Caller, GatewayState, Json, Scrubbed,
    auth::CallerProof,
    http::json,
    runs::{
        body::RunBody,
        control::{self, RequestedRun},
    },
    threads::{
        owned::UsableThread,
        state::{HistoryBody, checkpoint_of, past},
    },
};
use axum::{
    Extension,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use pudu_base::{RunId, ThreadId, foreign};
use pudu_langgraph::{protocol::number_at, run};
use pudu_store::ClientThread;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Maximum length of an unknown method in an error, in characters.
const MAX_SHOWN_CHARS: usize = 40;

/// A command of any shape: a wrong one is answered in the protocol's shape.
#[derive(Deserialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct CommandBody(#[schemars(with = "DescribedCommand")] Value);

/// A command.
#[derive(JsonSchema)]
#[schemars(rename = "Command")]
#[allow(dead_code, reason = "describes the body")]
struct DescribedCommand {
    id: u64,
    /// `run.start`, `input.respond`, `agent.getTree`, `state.get`, `state.listCheckpoints` or `state.fork`.
    method: String,
    params: Option<Map<String, Value>>,
}

/// Result of a command.
struct AnsweredCommand {
    result: Value,
    headers: HeaderMap,
}

impl From<Value> for AnsweredCommand {
    fn from(result: Value) -> Self {
        Self { result, headers: HeaderMap::new() }
    }
}

/// Carries out a command. The thread may not exist yet.
pub(crate) async fn answer(
    gateway: GatewayState,
    Extension(proof): Extension<CallerProof>,
    caller: Caller,
    UsableThread(thread): UsableThread,
    Json(CommandBody(body)): Json<CommandBody>,
) -> Result<Response, ApiError> {
    let params = match &body["params"] {
        Value::Object(params) => Some(params.clone()),
        Value::Null => Some(Map::new()),
        _ => None,
    };
    let (Some(id), Some(method), Some(params)) = (body["id"].as_u64(), body["method"].as_str(), params)
    else {
        let message = "a command is {id, method, params}: a whole number, a text and an object";
        let error = json!({
            "type": "error", "id": null, "error": "invalid_argument", "message": message, "detail": message,
        });
        return Ok((StatusCode::BAD_REQUEST, Json(error)).into_response());
    };
    let newest = gateway.db().newest_row(&thread).await?;
    let command =
        ThreadCommand { gateway: &gateway, caller: &caller, proof: &proof, thread: &thread, params };
    let carried = command.carry_out(method).await;
    match carried {
        Ok(AnsweredCommand { result, headers }) => {
            let meta = json!({ "applied_through_seq": number_at(newest), "thread_id": thread });
            let response = json!({ "type": "success", "id": id, "result": result, "meta": meta });
            Ok((headers, Scrubbed(response)).into_response())
        }
        Err(CommandRefusal::Code(code, message)) => {
            let response = json!({ "type": "error", "id": id, "error": code, "message": message });
            Ok(Scrubbed(response).into_response())
        }
        Err(CommandRefusal::Error(error)) => Err(error),
    }
}

impl ThreadCommand<'_> {
    async fn carry_out(self, method: &str) -> Carried<AnsweredCommand> {
        match method {
            "run.start" => self.start().await,
            "input.respond" => input::respond(&self).await.map(AnsweredCommand::from),
            "agent.getTree" => self.tree().await.map(AnsweredCommand::from),
            "state.get" => self.state().await.map(AnsweredCommand::from),
            "state.listCheckpoints" => self.checkpoints().await.map(AnsweredCommand::from),
            "state.fork" => self.fork().await,
            "subscription.subscribe" | "subscription.unsubscribe" | "subscription.reconnect" => {
                refuse("not_supported", "read the events from POST /threads/{thread}/stream/events")
            }
            _ => {
                let method = foreign::line(method, MAX_SHOWN_CHARS);
                refuse("unknown_command", format!("unknown command `{method}`"))
            }
        }
    }

    /// Starts a run. As on LangGraph's server, it waits for the active run of its thread unless the client says otherwise.
    async fn start(self) -> Carried<AnsweredCommand> {
        let mut params = self.params;
        if params.get("assistant_id").and_then(Value::as_str).is_none_or(str::is_empty) {
            return refuse("invalid_argument", "assistant_id is missing");
        }
        // JavaScript's SDK sends the strategy under both names.
        if let Some(strategy) = params.remove("multitaskStrategy") {
            params.insert("multitask_strategy".to_owned(), strategy);
        }
        let (run, headers) = begin(self.gateway, self.caller, self.thread, params).await?;
        Ok(AnsweredCommand { result: json!({ "run_id": run }), headers })
    }

    /// Starts a run at an older checkpoint.
    async fn fork(self) -> Carried<AnsweredCommand> {
        let thread = self.existing().await?;
        let mut params = self.params;
        if !params.get("checkpoint_id").is_some_and(Value::is_string) {
            return refuse("invalid_argument", "checkpoint_id is missing");
        }
        params.insert("assistant_id".to_owned(), run::assistant(&thread.assistant).into());
        let (run, headers) = begin(self.gateway, self.caller, self.thread, params).await?;
        Ok(AnsweredCommand { result: json!({ "run_id": run, "thread_id": thread.id }), headers })
    }

    async fn existing(&self) -> Carried<ClientThread> {
        let found = self.gateway.db().client_thread(self.thread).await.map_err(ApiError::from)?;
        found.map_or_else(|| refuse("no_such_run", "the thread does not exist: start a run first"), Ok)
    }

    /// Returns the status of the thread's newest run, or of a named one.
    async fn tree(&self) -> Carried<Value> {
        let db = self.gateway.db();
        let found = match self.params.get("run_id").filter(|id| !id.is_null()) {
            None => {
                let newest = db.thread_runs(self.thread, 1, 0).await.map_err(ApiError::from)?;
                newest.into_iter().next()
            }
            Some(id) => {
                let id = RunId::from(id.as_str().unwrap_or_default());
                let requested = db.run(&id).await.map_err(ApiError::from)?;
                requested.filter(|row| row.thread == *self.thread)
            }
        };
        let Some(row) = found else { return refuse("no_such_run", "the thread has no such run") };
        let status = match run::status(&row) {
            "pending" | "running" => "running",
            "success" => "completed",
            "interrupted" => "interrupted",
            _ => "failed",
        };
        let graph = run::assistant(&row.assistant);
        Ok(json!({ "tree": { "namespace": [], "status": status, "graph_name": graph } }))
    }

    /// Returns the values of the thread; those of `keys` if it is set.
    async fn state(&self) -> Carried<Value> {
        self.check_namespace()?;
        let keys = match self.params.get("keys") {
            None | Some(Value::Null) => None,
            Some(keys) => match Vec::<String>::deserialize(keys) {
                Ok(keys) => Some(keys),
                Err(_) => return refuse("invalid_argument", "keys must be a list of texts"),
            },
        };
        let Scrubbed(mut state) = checkpoint_of(self.gateway, &self.existing().await?, None).await?;
        let mut values = state.remove("values").unwrap_or_default();
        if let (Some(keys), Value::Object(values)) = (keys, &mut values) {
            values.retain(|key, _| keys.contains(key));
        }
        Ok(json!({ "values": values, "checkpoint": { "id": state["checkpoint_id"], "ns": "" } }))
    }

    /// Lists checkpoints, newest first.
    async fn checkpoints(&self) -> Carried<Value> {
        self.check_namespace()?;
        let asked = self.params.iter().filter(|(key, _)| *key != "namespace");
        let asked: Map<String, Value> = asked.map(|(key, value)| (key.clone(), value.clone())).collect();
        let asked: HistoryBody = json::read(Value::Object(asked).to_string().as_bytes())?;
        let found = past(self.gateway, &self.existing().await?, asked).await?;
        let summary = |state: &Map<String, Value>| {
            json!({
                "id": state["checkpoint_id"], "timestamp": state["created_at"], "step": state["metadata"]["step"],
                "metadata": state["metadata"],
            })
        };
        Ok(json!({ "checkpoints": found.iter().map(summary).collect::<Vec<_>>() }))
    }

    /// Refuses a namespace of a sub-agent, whose state is not stored.
    fn check_namespace(&self) -> Carried<()> {
        match self.params.get("namespace") {
            None | Some(Value::Null) => Ok(()),
            Some(Value::Array(names)) if names.is_empty() => Ok(()),
            Some(_) => refuse("no_such_namespace", "only the namespace [] has a state"),
        }
    }
}

/// Starts a run with the keys of `params`, and returns its id and the headers about keys without effect.
async fn begin(
    gateway: &GatewayState,
    caller: &Caller,
    thread: &ThreadId,
    mut params: Map<String, Value>,
) -> Carried<(RunId, HeaderMap)> {
    // The client reads the run on other connections.
    for (key, value) in [("if_not_exists", "create"), ("on_disconnect", "continue")] {
        params.insert(key.to_owned(), value.into());
    }
    params.entry("multitask_strategy").or_insert("enqueue".into());
    let body: RunBody = json::read(Value::Object(params).to_string().as_bytes())?;
    let requested = RequestedRun::on(thread.clone(), body);
    let accepted = control::accept(gateway, caller, requested, false).await?;
    Ok((accepted.run.clone(), accepted.ignored.header().into_iter().collect()))
}
