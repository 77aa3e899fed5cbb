//! DeerFlow's options for a single run: the model, whether it thinks, and its effort.
//!
//! Options without effect are not an error, since DeerFlow's clients send all options. [`ignored`] names them.
use crate::{ApiError, http::wrong_value::says_nothing};
use pudu_agent::{RunFeatures, RunSecrets};
use pudu_base::Thinking;
use serde_json::{Map, Value};

/// Keys of `config` that have an effect.
const CONFIG_KEYS: [&str; 3] = ["configurable", "context", "recursion_limit"];
/// Keys of options that have an effect, in addition to those of [`RunFeatures`].
const OPTION_KEYS: [&str; 11] = [
    "model_name",
    "model",
    "thinking_enabled",
    "reasoning_effort",
    "agent_name",
    "is_bootstrap",
    "approvals",
    "secrets",
    "thread_id",
    "checkpoint_id",
    "checkpoint_ns",
];

/// The model and thinking effort that a request sets for its run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ModelOptions {
    /// Name of the model.
    pub(crate) model: Option<String>,
    /// The thinking effort.
    pub(crate) thinking: Option<Thinking>,
}

/// Options from a request's `config` and `context`. `config.context` takes precedence over `context`, which takes
/// precedence over `config.configurable`.
pub(crate) struct NamedOptions(Map<String, Value>);

impl NamedOptions {
    pub(crate) fn read(config: &Value, context: &Value) -> Result<Self, ApiError> {
        let places = [
            ("config.configurable", &config["configurable"]),
            ("context", context),
            ("config.context", &config["context"]),
            ("config", config),
        ];
        if let Some((name, _)) = places.iter().find(|(_, place)| !place.is_object() && !place.is_null()) {
            return Err(ApiError::invalid(format!("{name} must be an object")));
        }
        let mut options = Map::new();
        for (_, place) in &places[..3] {
            // Null counts as missing.
            let present = place.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
            options.extend(present.map(|(key, value)| (key.clone(), value.clone())));
        }
        Ok(Self(options))
    }

    /// Parses the model and its thinking effort. `known` returns whether a model of this name exists.
    pub(crate) fn model(&self, known: impl Fn(&str) -> bool) -> Result<ModelOptions, ApiError> {
        let model = self.text("model_name")?.or(self.text("model")?);
        if let Some(unknown) = model.filter(|name| !known(name)) {
            return Err(ApiError::bad_request(format!("unknown model `{unknown}`")));
        }
        let (enabled, effort) = (self.flag("thinking_enabled")?, self.text("reasoning_effort")?);
        if effort.is_some() && Thinking::of_options(None, effort).is_none() {
            return Err(ApiError::invalid("reasoning_effort must be none, minimal, low, medium or high"));
        }
        Ok(ModelOptions { model: model.map(str::to_owned), thinking: Thinking::of_options(enabled, effort) })
    }

    /// Parses the requested agent.
    pub(crate) fn agent(&self) -> Result<Option<&str>, ApiError> {
        self.text("agent_name")
    }

    /// Parses whether the run creates the agent.
    pub(crate) fn is_bootstrap(&self) -> Result<bool, ApiError> {
        Ok(self.flag("is_bootstrap")?.unwrap_or(false))
    }

    /// Parses whether the client shows approvals to people. DeerFlow's clients do not, and do not send this option.
    pub(crate) fn shows_approvals(&self) -> Result<bool, ApiError> {
        match self.0.get("approvals").map(Value::as_str) {
            None | Some(Some("refuse")) => Ok(false),
            Some(Some("ask")) => Ok(true),
            Some(_) => Err(ApiError::invalid("approvals must be `ask` or `refuse`")),
        }
    }

    /// Parses the parts of the agent that the run switches on or off.
    pub(crate) fn features(&self) -> Result<RunFeatures, ApiError> {
        RunFeatures::read(&self.0).map_err(ApiError::invalid)
    }

    /// Parses the secrets for the commands of the run.
    pub(crate) fn secrets(&self) -> Result<RunSecrets, ApiError> {
        RunSecrets::read(&self.0).map_err(ApiError::invalid)
    }

    /// Parses a text; an empty one counts as missing.
    fn text(&self, key: &str) -> Result<Option<&str>, ApiError> {
        match self.0.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.trim()).filter(|text| !text.is_empty())),
            Some(_) => Err(ApiError::invalid(format!("{key} must be a string"))),
        }
    }

    fn flag(&self, key: &str) -> Result<Option<bool>, ApiError> {
        match self.0.get(key) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => Err(ApiError::invalid(format!("{key} must be true or false"))),
        }
    }
}

/// Returns the names of options that have no effect.
pub(crate) fn ignored(config: &Value, context: &Value) -> Vec<String> {
    let mut names = unknown("config", config, &CONFIG_KEYS);
    let known = [&OPTION_KEYS[..], &RunFeatures::KEYS].concat();
    let places = [
        ("config.configurable", &config["configurable"]),
        ("context", context),
        ("config.context", &config["context"]),
    ];
    names.extend(places.into_iter().flat_map(|(place, options)| unknown(place, options, &known)));
    names
}

/// Returns the unknown keys of an object, except those with empty values, which have no effect.
fn unknown(place: &str, options: &Value, known: &[&str]) -> Vec<String> {
    let keys = options.as_object().into_iter().flatten();
    let ignored = keys.filter(|(key, value)| !known.contains(&key.as_str()) && !says_nothing(value));
    ignored.map(|(key, _)| format!("{place}.{key}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::StatusCode;
    use serde_json::json;

    #[test]
    fn approvals_are_shown_only_if_the_client_requests_it() {
        let read = |config: Value, context: Value| NamedOptions::read(&config, &context)?.shows_approvals();
        let shows = |context: Value| read(Value::Null, context).map_err(|error| error.status());
        assert_eq!([Value::Null, json!({}), json!({"approvals": null})].map(shows), [Ok(false); 3]);
        assert_eq!(["ask", "refuse"].map(|word| shows(json!({ "approvals": word }))), [Ok(true), Ok(false)]);
        for wrong in [json!("Ask"), json!(""), json!(true), json!(["ask"])] {
            assert_eq!(
                shows(json!({ "approvals": wrong })),
                Err(StatusCode::UNPROCESSABLE_ENTITY),
                "{wrong}"
            );
        }
        let nearest = read(json!({"configurable": {"approvals": "ask"}}), json!({"approvals": "refuse"}));
        assert_eq!(nearest, Ok(false));
    }

    #[test]
    fn options_without_effect_are_reported() {
        let config = json!({"recursion_limit": 9, "tags": ["a"], "callbacks": [],
            "configurable": {"thread_id": "t", "foo": 1}, "context": {"is_plan_mode": true}});
        let context = json!({"mode": "pro", "model_name": "m", "max_total_subagents": 2, "empty": null});
        assert_eq!(ignored(&config, &context), ["config.tags", "config.configurable.foo", "context.mode"]);
        assert_eq!(ignored(&Value::Null, &json!([])), [""; 0]);
    }

    #[test]
    fn secrets_are_checked_and_stay_out_of_errors() {
        let read = |context: Value| NamedOptions::read(&Value::Null, &context)?.secrets();
        assert_eq!(read(json!({})).unwrap(), RunSecrets::default());
        assert!(read(json!({"secrets": {"ERP_TOKEN": "tok-123456"}})).is_ok());
        for wrong in [
            json!("tok-123456"),
            json!({"A": 12_345_678}),
            json!({"PATH": "tok-123456"}),
            json!({"A": "short"}),
        ] {
            let error = read(json!({ "secrets": wrong })).unwrap_err();
            assert_eq!(error.status(), StatusCode::UNPROCESSABLE_ENTITY);
            let why = format!("{error:?}");
            assert!(!why.contains("tok-") && !why.contains("short") && !why.contains("1234"), "{why}");
        }
    }

    #[test]
    fn an_agent_can_be_named_in_any_place_and_an_empty_name_is_none() {
        let model_of = |config: Value, context: Value| {
            NamedOptions::read(&config, &context)
                .unwrap()
                .agent()
                .map(|name| name.unwrap_or_default().to_owned())
        };
        for (config, context, expect) in [
            (json!({"configurable": {"agent_name": "a"}}), Value::Null, "a"),
            (json!({"context": {"agent_name": "b"}}), json!({"agent_name": "a"}), "b"),
            (Value::Null, json!({"agent_name": " "}), ""),
        ] {
            assert_eq!(model_of(config, context), Ok(expect.to_owned()));
        }
        assert!(model_of(Value::Null, json!({"agent_name": 5})).is_err());
        let makes = |context: Value| NamedOptions::read(&Value::Null, &context).unwrap().is_bootstrap();
        assert_eq!([json!({}), json!({"is_bootstrap": true})].map(makes), [Ok(false), Ok(true)]);
        assert!(makes(json!({"is_bootstrap": "true"})).is_err());
    }

    #[test]
    fn the_nearest_place_takes_precedence_and_garbage_is_refused() {
        let read = |config: Value, context: Value| {
            let options = NamedOptions::read(&config, &context);
            let read = options.and_then(|options| options.model(|name| name == "a" || name == "b"));
            read.map(|ModelOptions { model, thinking }| {
                (model.unwrap_or_default(), thinking.map(Thinking::name).unwrap_or_default().to_owned())
            })
        };
        let chosen = |model: &str, thinking: &str| Ok((model.to_owned(), thinking.to_owned()));
        let bad =
            |status: u16, detail: &str| Err(ApiError::new(StatusCode::from_u16(status).unwrap(), detail));
        for (config, context, expect) in [
            (Value::Null, Value::Null, chosen("", "")),
            (json!({"configurable": {"model_name": "a"}}), json!({"model": "b"}), chosen("a", "")),
            (json!({"configurable": {"model_name": "a"}}), json!({"model_name": "b"}), chosen("b", "")),
            (json!({"context": {"model_name": "a"}}), json!({"model_name": "b"}), chosen("a", "")),
            (json!({"context": {"model_name": null}}), json!({"model_name": "b"}), chosen("b", "")),
            (Value::Null, json!({"thinking_enabled": true}), chosen("", "on")),
            (Value::Null, json!({"thinking_enabled": false, "reasoning_effort": "high"}), chosen("", "off")),
            (Value::Null, json!({"thinking_enabled": true, "reasoning_effort": "low"}), chosen("", "low")),
            (Value::Null, json!({"reasoning_effort": "minimal"}), chosen("", "off")),
            (Value::Null, json!({"mode": "ultra", "other": 7}), chosen("", "")),
            (Value::Null, json!({"model_name": "c"}), bad(400, "unknown model `c`")),
            (Value::Null, json!({"model_name": 7}), bad(422, "model_name must be a string")),
            (
                Value::Null,
                json!({"thinking_enabled": "yes"}),
                bad(422, "thinking_enabled must be true or false"),
            ),
            (
                Value::Null,
                json!({"reasoning_effort": "hardest"}),
                bad(422, "reasoning_effort must be none, minimal, low, medium or high"),
            ),
            (json!([]), Value::Null, bad(422, "config must be an object")),
            (json!({"context": "a"}), Value::Null, bad(422, "config.context must be an object")),
        ] {
            assert_eq!(read(config.clone(), context.clone()), expect, "{config} {context}");
        }
    }
}
