//! Body of a request for a run, as LangGraph's clients write it. Values of other shapes are refused.

use super::{
    input::{self, InputMessage},
    options,
};
use crate::{
    ApiError,
    http::wrong_value::{self, says_nothing},
};
use pudu_base::{RunId, Seq, ThreadId};
use pudu_langgraph::checkpoint;
use pudu_runs::Multitask;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de::IntoDeserializer};
use serde_json::{Map, Value, json};

/// The assistant used if the request names none.
const LEAD: &str = "lead_agent";
/// Maximum length of a `data:` value that is shown whole, in bytes.
const MAX_SHOWN_DATA_BYTES: usize = 1024;
/// Keys of a checkpoint, which clients send back as they received it. The last two are DeerFlow's.
const CHECKPOINT_KEYS: [&str; 6] =
    ["thread_id", "checkpoint_ns", "checkpoint_id", "checkpoint_map", "id", "ts"];

type JsonObject = Map<String, Value>;

/// Body of a request for a run.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RunBody {
    assistant_id: Option<String>,
    pub(crate) input: Value,
    #[serde(deserialize_with = "object")]
    #[schemars(with = "Option<JsonObject>")]
    command: Value,
    pub(crate) metadata: Option<JsonObject>,
    #[serde(deserialize_with = "object")]
    #[schemars(with = "Option<JsonObject>")]
    pub(crate) config: Value,
    #[serde(deserialize_with = "object")]
    #[schemars(with = "Option<JsonObject>")]
    pub(crate) context: Value,
    #[serde(deserialize_with = "object")]
    #[schemars(with = "Option<JsonObject>")]
    checkpoint: Value,
    checkpoint_id: Value,
    pub(crate) stream_mode: Value,
    stream_subgraphs: Option<bool>,
    #[serde(rename = "stream_resumable")]
    _stream_resumable: Option<bool>,
    #[serde(deserialize_with = "word")]
    on_disconnect: Option<DisconnectAction>,
    #[serde(deserialize_with = "word")]
    multitask_strategy: Option<Multitask>,
    #[serde(deserialize_with = "word")]
    if_not_exists: Option<AbsentThreadAction>,
    #[serde(deserialize_with = "word")]
    on_completion: Option<CompletionAction>,
    #[serde(rename = "durability", deserialize_with = "word")]
    _durability: Option<Durability>,
    #[serde(rename = "checkpoint_during")]
    _checkpoint_during: Option<bool>,
    langsmith_tracer: Option<JsonObject>,
    interrupt_before: Value,
    interrupt_after: Value,
    webhook: Value,
    after_seconds: Value,
    feedback_keys: Value,
}

/// Action on a run when its reader disconnects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum DisconnectAction {
    #[default]
    Cancel,
    Continue,
}

/// Action on a request whose thread does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum AbsentThreadAction {
    Create,
    Reject,
}

/// Action on a new thread when its run ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum CompletionAction {
    #[default]
    Keep,
    Delete,
}

/// When a run is stored: here always at once, which is the safest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Durability {
    Sync,
    Async,
    Exit,
}

/// Parses an object; null counts as missing.
fn object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    Option::<JsonObject>::deserialize(deserializer).map(|object| object.map_or(Value::Null, Value::Object))
}

/// Parses one of several keywords; null counts as missing.
fn word<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    // If the value is not text, serde_json would report a syntax error.
    let word = Option::<String>::deserialize(deserializer)?;
    word.map(|word| T::deserialize(word.into_deserializer())).transpose()
}

/// Returns the name of an agent that is not the lead agent.
pub(crate) fn custom_agent(name: &str) -> Option<String> {
    let name = name.trim();
    (!["lead-agent", LEAD, ""].contains(&name)).then(|| name.to_owned())
}

/// Returns the message about a value of the wrong kind.
fn not(place: &str, expected: &str, value: &Value) -> String {
    format!("{place}: expected {expected}, got {}", wrong_value::kind(value))
}

/// Returns the error about a thread that already has a run in progress.
pub(crate) fn busy(other: &RunId) -> ApiError {
    ApiError::conflict(format!(
        "run {other} is still running on the thread; wait for it, or send another multitask_strategy"
    ))
}

impl RunBody {
    /// Parses the thread that the configuration of a stateless request names.
    pub(crate) fn thread(&self) -> Result<Option<&str>, ApiError> {
        match &self.config["configurable"]["thread_id"] {
            Value::Null => Ok(None),
            Value::String(id) => Ok(Some(id)),
            id => Err(ApiError::invalid(not("config.configurable.thread_id", "text", id))),
        }
    }

    /// Returns whether the run may create its thread; `usual` if the client does not specify it.
    pub(crate) fn may_begin_thread(&self, usual: bool) -> bool {
        self.if_not_exists.map_or(usual, |action| action == AbsentThreadAction::Create)
    }

    /// Returns the names of options that have no effect.
    pub(crate) fn ignored(&self) -> Vec<String> {
        let tracer = self.langsmith_tracer.as_ref().is_some_and(|tracer| !tracer.is_empty());
        let own = [("stream_subgraphs", self.stream_subgraphs == Some(true)), ("langsmith_tracer", tracer)];
        let own = own.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name.to_owned());
        own.chain(options::ignored(&self.config, &self.context)).collect()
    }

    /// Refuses unsupported options.
    pub(crate) fn check_options(&self) -> Result<(), ApiError> {
        let options = [
            ("webhook", &self.webhook),
            ("after_seconds", &self.after_seconds),
            ("feedback_keys", &self.feedback_keys),
            ("interrupt_before", &self.interrupt_before),
            ("interrupt_after", &self.interrupt_after),
        ];
        let Some((name, _)) = options.into_iter().find(|(_, value)| !says_nothing(value)) else {
            return Ok(());
        };
        let message = format!("{name} is not supported");
        let detail = json!({ "code": "unsupported_run_option", "message": message, "option": name });
        Err(ApiError::invalid(detail))
    }

    /// Parses whether the thread is deleted after the run. This requires a new thread.
    pub(crate) fn deletes_thread(&self, own_thread: bool) -> Result<bool, ApiError> {
        let deletes = self.on_completion.unwrap_or_default() == CompletionAction::Delete;
        match deletes && !own_thread {
            false => Ok(deletes),
            true => Err(ApiError::invalid(
                "on_completion can be `delete` only for a run on a new thread: POST /runs… without a thread_id",
            )),
        }
    }

    /// Returns whether the run stops when its reader disconnects.
    pub(crate) fn cancels(&self) -> bool {
        self.on_disconnect.unwrap_or_default() == DisconnectAction::Cancel
    }

    pub(crate) fn multitask(&self) -> Multitask {
        self.multitask_strategy.unwrap_or_default()
    }

    /// Returns the assistant's name.
    pub(crate) fn assistant(&self) -> String {
        self.assistant_id.clone().unwrap_or_else(|| LEAD.to_owned())
    }

    /// Returns the requested agent: the one in the options, or else the assistant.
    pub(crate) fn agent(&self, named: Option<&str>) -> Option<String> {
        let assistant = self.assistant_id.as_deref().filter(|assistant| *assistant != "agent");
        match named {
            Some(name) => custom_agent(name),
            None => custom_agent(&assistant?.to_lowercase().replace('_', "-")),
        }
    }

    /// Parses the maximum number of model calls, if the client sets it. As in DeerFlow, booleans, zero and negative
    /// numbers count as missing.
    pub(crate) fn steps(&self, max: u32) -> Result<Option<u32>, ApiError> {
        let limit = &self.config["recursion_limit"];
        let whole_number = limit.as_f64().filter(|steps| steps.fract() == 0.0);
        match whole_number {
            // A number above the maximum is lowered to it.
            Some(steps) if steps > 0.0 => Ok(Some((steps as u32).min(max))),
            None if !(limit.is_null() || limit.is_boolean()) => {
                Err(ApiError::invalid(not("config.recursion_limit", "a whole number", limit)))
            }
            _ => Ok(None),
        }
    }

    /// Parses the checkpoint that the run continues from. All keys that name a checkpoint must agree.
    pub(crate) fn checkpoint(&self, thread: &ThreadId) -> Result<Option<Seq>, ApiError> {
        let mut keys = self.checkpoint.as_object().into_iter().flat_map(Map::keys);
        if let Some(key) = keys.find(|key| !CHECKPOINT_KEYS.contains(&key.as_str())) {
            return Err(ApiError::invalid(format!("checkpoint: unknown key `{key}`")));
        }
        let of_thread = &self.checkpoint["thread_id"];
        if !of_thread.is_null() && of_thread.as_str() != Some(thread.as_str()) {
            return Err(ApiError::invalid("checkpoint.thread_id must be the thread of the run"));
        }
        let places = [
            &self.checkpoint_id,
            &self.checkpoint["checkpoint_id"],
            &self.config["configurable"]["checkpoint_id"],
        ];
        let mut ids = places.into_iter().filter(|id| !id.is_null());
        let Some(id) = ids.next() else { return Ok(None) };
        if ids.any(|other| other != id) {
            return Err(ApiError::invalid("checkpoint_id: the request names two different checkpoints"));
        }
        checkpoint::wanted(id, &Value::Null).map_err(ApiError::invalid)
    }

    /// Parses the messages of the input, or the answer to a question.
    pub(crate) fn read_messages(&self) -> Result<Vec<InputMessage>, ApiError> {
        let none = Value::Null;
        let list = match &self.input {
            Value::Null => &none,
            Value::Object(input) if input.is_empty() => &none,
            Value::Object(input) => match input.get("messages") {
                Some(messages) => messages,
                None => return Err(ApiError::invalid("input: `messages` is missing")),
            },
            Value::Array(_) | Value::String(_) => &self.input,
            input => {
                return Err(ApiError::invalid(not("input", "an object, a list of messages or text", input)));
            }
        };
        let messages = input::messages(list).map_err(|why| ApiError::bad_request(format!("input.{why}")))?;
        let Some(answer) = self.answer()? else { return Ok(messages) };
        if !messages.is_empty() {
            return Err(ApiError::invalid(
                "command: send the answer in `resume` or in the input, not in both",
            ));
        }
        input::messages(&json!([{ "type": "human", "content": answer }]))
            .map_err(|why| ApiError::bad_request(format!("command.resume: {why}")))
    }

    /// Parses the answer to a question.
    fn answer(&self) -> Result<Option<String>, ApiError> {
        let mut commands = self.command.as_object().into_iter().flatten();
        if let Some((name, _)) = commands.find(|(name, value)| *name != "resume" && !says_nothing(value)) {
            return Err(ApiError::invalid(format!("command.{name} is not supported; only `resume` is")));
        }
        Ok(match &self.command["resume"] {
            Value::Null => None,
            Value::String(answer) => Some(answer.clone()),
            answer => Some(answer.to_string()),
        })
    }

    /// Returns the request as shown in lists of runs: without secrets.
    pub(crate) fn to_listed_json(&self) -> Value {
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

/// Removes the data of images from a value: they are stored in the thread's uploads.
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
