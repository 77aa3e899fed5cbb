//! What the configuration means for the agent: models, tools and bounds.

use crate::config::{Dialect, Live, ModelConfig};
use pudu_client::{
    ModelInfo, Setup,
    base::{Model, ModelError, Tool},
    harness::{Bounds, Retry},
    model::{Offline, OpenAi, Settings},
    tools,
};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Makes what runs work with. Where no model is configured, `found` is used if there is one, and otherwise
/// the built-in offline model. A tool of an extension never takes the place of one of our own.
pub(crate) fn setup(
    live: &Live,
    found: &[ModelConfig],
    extensions: Vec<Arc<dyn Tool>>,
) -> Result<Setup, ModelError> {
    let configured = if live.models.is_empty() { found } else { &live.models };
    let mut models = configured.iter().map(model).collect::<Result<Vec<_>, _>>()?;
    if models.is_empty() {
        models.push(offline());
    }
    let steps = live.runs.recursion_limit;
    let bounds = Bounds { steps, time: live.runs.timeout };
    let tools = tools(live).chain(extensions);
    Ok(Setup::new(models, tools, bounds, live.sandbox.allow_host_bash))
}

fn offline() -> (ModelInfo, Arc<dyn Model>) {
    let info = ModelInfo {
        name: Offline::NAME.to_owned(),
        title: Offline::NAME.to_owned(),
        about: Some("built in; echoes, and calls tools with /tool".to_owned()),
    };
    (info, Arc::new(Offline))
}

fn model(config: &ModelConfig) -> Result<(ModelInfo, Arc<dyn Model>), ModelError> {
    let info = ModelInfo {
        name: config.name.clone(),
        title: config.display_name.clone(),
        about: Some(config.description.clone()).filter(|about| !about.is_empty()),
    };
    let headers = config.default_headers.iter();
    let model = OpenAi::new(Settings {
        name: config.name.clone(),
        model: config.model.clone(),
        base_url: config.base_url.to_string(),
        api_key: config.api_key.clone(),
        headers: headers.map(|(name, value)| (name.clone(), value.clone())).collect(),
        extra: extra(config),
        thoughts: thoughts(config.dialect),
        window: config.context_window.into(),
        gap: config.stream_chunk_timeout,
        total: config.request_timeout,
    })?;
    Ok((info, Arc::new(Retry::new(Arc::new(model), config.max_retries))))
}

/// Returns what a request carries besides our own keys.
fn extra(config: &ModelConfig) -> Map<String, Value> {
    let mut extra = config.extra_body.clone();
    if let Some(tokens) = config.max_tokens {
        extra.entry("max_tokens").or_insert_with(|| tokens.into());
    }
    if let Some(temperature) = config.temperature {
        extra.entry("temperature").or_insert_with(|| temperature.into());
    }
    let thinking =
        if config.supports_thinking { &config.when_thinking_enabled } else { &config.when_thinking_disabled };
    merge(&mut extra, thinking);
    extra
}

/// Merges objects key by key; what is no object is replaced. `extra_body` is how the Python client says
/// "into the body".
fn merge(into: &mut Map<String, Value>, from: &Map<String, Value>) {
    for (key, value) in from {
        match (key.as_str(), value, into.get_mut(key)) {
            ("extra_body", Value::Object(inner), _) => merge(into, inner),
            (_, Value::Object(inner), Some(Value::Object(old))) => merge(old, inner),
            _ => {
                into.insert(key.clone(), value.clone());
            }
        }
    }
}

/// Returns the name under which a provider wants its model's thoughts back.
fn thoughts(dialect: Dialect) -> Option<&'static str> {
    match dialect {
        Dialect::DeepSeek | Dialect::MiMo | Dialect::StepFun => Some("reasoning_content"),
        Dialect::Vllm => Some("reasoning"),
        Dialect::OpenAi
        | Dialect::Signed
        | Dialect::MiniMax
        | Dialect::MindIe
        | Dialect::Ollama
        | Dialect::Anthropic
        | Dialect::Gemini => None,
    }
}

fn tools(live: &Live) -> impl Iterator<Item = Arc<dyn Tool>> {
    let sandbox = &live.sandbox;
    let limits = tools::Limits {
        bash: sandbox.bash_output_max_chars,
        read_file: sandbox.read_file_output_max_chars,
        ls: sandbox.ls_output_max_chars,
        bash_timeout: sandbox.bash_command_timeout,
    };
    live.offered().filter_map(move |tool| tools::tool(tool.name(), limits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_request_carries_is_merged_key_by_key() {
        let check = |into: Value, from: Value, expect: Value| {
            let mut into = into.as_object().unwrap().clone();
            merge(&mut into, from.as_object().unwrap());
            assert_eq!(Value::Object(into), expect);
        };
        check(json!({"a": 1}), json!({"a": 2, "b": 3}), json!({"a": 2, "b": 3}));
        check(json!({"t": {"x": 1}}), json!({"t": {"y": 2}}), json!({"t": {"x": 1, "y": 2}}));
        check(
            json!({}),
            json!({"extra_body": {"thinking": {"type": "enabled"}}}),
            json!({"thinking": {"type": "enabled"}}),
        );
    }
}
