//! Body of a request for a run: what clients of LangGraph may say, each value of the shape that it has.

use super::{
    input::{self, InputMessage},
    json::Json,
    refusal::{Refusal, refused},
};
use axum::{http::StatusCode, response::IntoResponse};
use pudu_client::{
    Multitask,
    base::{RunId, Seq},
    wire::checkpoint,
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

/// The assistant that answers if no other is named.
pub(super) const LEAD: &str = "lead_agent";
/// A value of a request with `data:` in it is shown up to so many bytes.
const MAX_SHOWN_DATA_BYTES: usize = 1024;

type JsonObject = Map<String, Value>;

/// Body of a request for a run.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RunBody {
    assistant_id: Option<String>,
    pub(super) input: Value,
    #[serde(deserialize_with = "object")]
    #[schemars(with = "Option<JsonObject>")]
    pub(super) command: Value,
    pub(super) metadata: Option<JsonObject>,
    #[serde(deserialize_with = "object")]
    #[schemars(with = "Option<JsonObject>")]
    pub(super) config: Value,
    #[serde(deserialize_with = "object")]
    #[schemars(with = "Option<JsonObject>")]
    pub(super) context: Value,
    #[serde(deserialize_with = "object")]
    #[schemars(with = "Option<JsonObject>")]
    checkpoint: Value,
    checkpoint_id: Value,
    pub(super) stream_mode: Value,
    #[serde(rename = "stream_subgraphs")]
    _stream_subgraphs: Option<bool>,
    #[serde(rename = "stream_resumable")]
    _stream_resumable: Option<bool>,
    on_disconnect: Option<DisconnectAction>,
    multitask_strategy: Option<Multitask>,
    if_not_exists: Option<AbsentThreadAction>,
    on_completion: Option<CompletionAction>,
    #[serde(rename = "durability")]
    _durability: Option<Durability>,
    #[serde(rename = "checkpoint_during")]
    _checkpoint_during: Option<bool>,
    #[serde(rename = "langsmith_tracer")]
    _langsmith_tracer: Option<JsonObject>,
    interrupt_before: Value,
    interrupt_after: Value,
    webhook: Value,
    after_seconds: Value,
    feedback_keys: Value,
}

/// What becomes of a run whose reader goes away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum DisconnectAction {
    #[default]
    Cancel,
    Continue,
}

/// What becomes of a request for a run on a thread that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum AbsentThreadAction {
    Create,
    Reject,
}

/// What becomes of a new thread when its run has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum CompletionAction {
    #[default]
    Keep,
    Delete,
}

/// When a run is written: here always at once, which is the safest of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Durability {
    Sync,
    Async,
    Exit,
}

/// Reads an object; null says nothing.
fn object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    Option::<JsonObject>::deserialize(deserializer).map(|object| object.map_or(Value::Null, Value::Object))
}

/// Refuses a value that cannot be obeyed.
pub(super) fn wrong<T>(why: &str) -> Result<T, Refusal> {
    refused(StatusCode::UNPROCESSABLE_ENTITY, why)
}

/// Refuses a run as another one is at work on its thread.
pub(super) fn busy<T>(other: &RunId) -> Result<T, Refusal> {
    let why =
        format!("run {other} is at work on the thread; wait for it, or send another multitask_strategy");
    refused(StatusCode::CONFLICT, &why)
}

impl RunBody {
    /// Returns the thread that the configuration of a stateless request names.
    pub(super) fn thread(&self) -> Option<&str> {
        self.config["configurable"]["thread_id"].as_str()
    }

    /// Returns whether the run may begin a thread; `usual` if the client does not say.
    pub(super) fn may_begin_thread(&self, usual: bool) -> bool {
        self.if_not_exists.map_or(usual, |action| action == AbsentThreadAction::Create)
    }

    /// Refuses options that would not be obeyed.
    pub(super) fn check_options(&self) -> Result<(), Refusal> {
        let is_empty = |value: &Value| match value {
            Value::Null | Value::Bool(false) => true,
            Value::Array(list) => list.is_empty(),
            _ => false,
        };
        let options = [
            ("webhook", &self.webhook),
            ("after_seconds", &self.after_seconds),
            ("feedback_keys", &self.feedback_keys),
            ("interrupt_before", &self.interrupt_before),
            ("interrupt_after", &self.interrupt_after),
        ];
        let Some((name, _)) = options.into_iter().find(|(_, value)| !is_empty(value)) else { return Ok(()) };
        let message = format!("{name} is not supported");
        let detail = json!({ "code": "unsupported_run_option", "message": message, "option": name });
        Err(Box::new((StatusCode::UNPROCESSABLE_ENTITY, Json(json!({ "detail": detail }))).into_response()))
    }

    /// Reads whether the run's thread is deleted after it, which is one of its own then.
    pub(super) fn deletes_thread(&self, own_thread: bool) -> Result<bool, Refusal> {
        let deletes = self.on_completion.unwrap_or_default() == CompletionAction::Delete;
        match deletes && !own_thread {
            false => Ok(deletes),
            true => wrong(
                "on_completion is delete only for a run on a new thread: POST /runs… without a thread_id",
            ),
        }
    }

    /// Returns whether the run stops when its reader goes away.
    pub(super) fn cancels(&self) -> bool {
        self.on_disconnect.unwrap_or_default() == DisconnectAction::Cancel
    }

    pub(super) fn multitask(&self) -> Multitask {
        self.multitask_strategy.unwrap_or_default()
    }

    /// Returns the assistant's name.
    pub(super) fn assistant(&self) -> String {
        self.assistant_id.clone().unwrap_or_else(|| LEAD.to_owned())
    }

    /// Reads which agent is asked, if it is not the lead agent.
    pub(super) fn agent(&self) -> Result<Option<String>, Refusal> {
        let mut asked = None;
        for (place, name) in [
            ("config.context", &self.config["context"]["agent_name"]),
            ("context", &self.context["agent_name"]),
            ("config.configurable", &self.config["configurable"]["agent_name"]),
        ] {
            match name {
                Value::Null => {}
                Value::String(name) => asked = asked.or_else(|| Some(name.clone())),
                _ => return wrong(&format!("{place}.agent_name: expected text, got {name}")),
            }
        }
        let assistant =
            self.assistant_id.clone().filter(|assistant| !matches!(assistant.as_str(), LEAD | "agent" | ""));
        let assistant = assistant.map(|assistant| assistant.to_lowercase().replace('_', "-"));
        Ok(asked.or(assistant).filter(|name| !["lead-agent", LEAD, ""].contains(&name.as_str())))
    }

    /// Reads how many model calls the run may take, if the client says so. As in DeerFlow, what is no number of them says
    /// nothing.
    pub(super) fn steps(&self, most: u32) -> Result<Option<u32>, Refusal> {
        let limit = &self.config["recursion_limit"];
        match limit.as_u64() {
            Some(steps) if steps > 0 => Ok(Some(u32::try_from(steps).unwrap_or(u32::MAX).min(most))),
            _ if limit.is_null() || limit.is_boolean() || limit.is_u64() || limit.is_i64() => Ok(None),
            _ => wrong(&format!("config.recursion_limit: expected a whole number, got {limit}")),
        }
    }

    pub(super) fn is_bootstrap(&self) -> bool {
        [&self.config["context"], &self.context].iter().any(|place| place["is_bootstrap"] == true)
    }

    /// Reads the checkpoint from which the run goes on.
    pub(super) fn checkpoint(&self) -> Result<Option<Seq>, Refusal> {
        checkpoint::wanted(&self.checkpoint_id, &self.checkpoint).or_else(|why| wrong(&why))
    }

    /// Reads the messages that are said: those of the input, or the answer to a question.
    pub(super) fn said(&self) -> Result<Vec<InputMessage>, Refusal> {
        let none = Value::Null;
        let list = match &self.input {
            Value::Null => &none,
            Value::Object(input) => input.get("messages").unwrap_or(&none),
            Value::Array(_) | Value::String(_) => &self.input,
            input => return wrong(&format!("input: expected an object, got {input}")),
        };
        let said =
            input::messages(list).or_else(|why| refused(StatusCode::BAD_REQUEST, &format!("input.{why}")))?;
        let Some(answer) = self.answer()? else { return Ok(said) };
        if !said.is_empty() {
            return wrong("command: an answer is said by `resume` or by an input, not by both");
        }
        input::messages(&json!([{ "type": "human", "content": answer }]))
            .or_else(|why| refused(StatusCode::BAD_REQUEST, &format!("command.resume: {why}")))
    }

    /// Reads the answer to a question.
    fn answer(&self) -> Result<Option<String>, Refusal> {
        let mut commands =
            self.command.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
        if let Some((name, _)) = commands.find(|(name, _)| *name != "resume") {
            return wrong(&format!("command.{name} is not supported: `resume` is"));
        }
        Ok(match &self.command["resume"] {
            Value::Null => None,
            Value::String(answer) => Some(answer.clone()),
            answer => Some(answer.to_string()),
        })
    }

    /// Returns the request as lists of runs show it: without secrets.
    pub(super) fn shown(&self) -> Value {
        let mut config = self.config.clone();
        for place in ["context", "configurable"] {
            if let Some(Value::Object(place)) = config.get_mut(place) {
                place.remove("secrets");
            }
        }
        let mut context = self.context.clone();
        if let Value::Object(context) = &mut context {
            context.remove("secrets");
        }
        let mut input = self.input.clone();
        leave_images_out(&mut input);
        json!({ "input": input, "config": config, "context": context })
    }
}

/// Leaves out what images in a value say: they are among the thread's uploads.
fn leave_images_out(value: &mut Value) {
    match value {
        Value::String(text) if text.starts_with("data:") && text.len() > MAX_SHOWN_DATA_BYTES => {
            let kind = text.split([';', ',']).next().unwrap_or_default();
            *text = format!("{kind},");
        }
        Value::Array(list) => list.iter_mut().for_each(leave_images_out),
        Value::Object(fields) => fields.values_mut().for_each(leave_images_out),
        _ => {}
    }
}
