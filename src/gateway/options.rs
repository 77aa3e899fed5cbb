//! DeerFlow's options of one run that a message may name: which model, whether it thinks, and how hard.
//!
//! Deliberately absent: options that have no effect here. They are no error, as clients of DeerFlow's send them all.

use axum::http::StatusCode;
use pudu_channels::RunOptions;
use pudu_client::base::Thinking;
use serde_json::{Map, Value};

/// Why options were refused: the status and the detail.
pub(super) type OptionsRefused = (StatusCode, String);

/// Reads the options of a request's `config` and `context`. What `config.context` says counts before `context`, and
/// that before `config.configurable`. `known` tells whether there is a model of a name.
pub(super) fn read(
    config: &Value,
    context: &Value,
    known: impl Fn(&str) -> bool,
) -> Result<RunOptions, OptionsRefused> {
    let options = said(config, context)?;
    let text = |key: &str| match options.get(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.trim()).filter(|text| !text.is_empty())),
        Some(_) => Err(wrong(format!("{key} is no text"))),
    };
    let model = text("model_name")?.or(text("model")?);
    if let Some(unknown) = model.filter(|name| !known(name)) {
        return Err((StatusCode::BAD_REQUEST, format!("there is no model `{unknown}`")));
    }
    let enabled = match options.get("thinking_enabled") {
        None => None,
        Some(Value::Bool(enabled)) => Some(*enabled),
        Some(_) => return Err(wrong("thinking_enabled is neither true nor false".to_owned())),
    };
    let effort = text("reasoning_effort")?;
    if effort.is_some() && Thinking::of_options(None, effort).is_none() {
        return Err(wrong("reasoning_effort is none of none, minimal, low, medium, high".to_owned()));
    }
    let thinking = Thinking::of_options(enabled, effort).map(|thinking| thinking.name().to_owned());
    Ok(RunOptions { model: model.map(str::to_owned), thinking })
}

/// Reads whether the client shows people what a run asks them to approve. Clients of DeerFlow's do not, and do not say so.
pub(super) fn shows_approvals(config: &Value, context: &Value) -> Result<bool, OptionsRefused> {
    match said(config, context)?.get("approvals").map(Value::as_str) {
        None | Some(Some("refuse")) => Ok(false),
        Some(Some("ask")) => Ok(true),
        Some(_) => Err(wrong("approvals is neither ask nor refuse".to_owned())),
    }
}

fn wrong(detail: String) -> OptionsRefused {
    (StatusCode::UNPROCESSABLE_ENTITY, detail)
}

/// Returns what the places of a request say, the nearest of each key.
fn said(config: &Value, context: &Value) -> Result<Map<String, Value>, OptionsRefused> {
    let places = [
        ("config.configurable", &config["configurable"]),
        ("context", context),
        ("config.context", &config["context"]),
        ("config", config),
    ];
    if let Some((name, _)) = places.iter().find(|(_, place)| !place.is_object() && !place.is_null()) {
        return Err(wrong(format!("{name} is no object")));
    }
    let mut options = Map::new();
    for (_, place) in &places[..3] {
        // A null says nothing.
        let said = place.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
        options.extend(said.map(|(key, value)| (key.clone(), value.clone())));
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_a_client_that_says_so_shows_approvals() {
        let shows = |context: Value| shows_approvals(&Value::Null, &context).map_err(|(status, _)| status);
        assert_eq!([Value::Null, json!({}), json!({"approvals": null})].map(shows), [Ok(false); 3]);
        assert_eq!(["ask", "refuse"].map(|word| shows(json!({ "approvals": word }))), [Ok(true), Ok(false)]);
        for wrong in [json!("Ask"), json!(""), json!(true), json!(["ask"])] {
            assert_eq!(
                shows(json!({ "approvals": wrong })),
                Err(StatusCode::UNPROCESSABLE_ENTITY),
                "{wrong}"
            );
        }
        let nearest =
            shows_approvals(&json!({"configurable": {"approvals": "ask"}}), &json!({"approvals": "refuse"}));
        assert_eq!(nearest, Ok(false));
    }

    #[test]
    fn the_nearest_place_counts_and_garbage_is_refused() {
        let read = |config: Value, context: Value| {
            let read = read(&config, &context, |name| name == "a" || name == "b");
            read.map(|RunOptions { model, thinking }| {
                (model.unwrap_or_default(), thinking.unwrap_or_default())
            })
        };
        let good = |model: &str, thinking: &str| Ok((model.to_owned(), thinking.to_owned()));
        let bad = |status: u16, detail: &str| Err((StatusCode::from_u16(status).unwrap(), detail.to_owned()));
        for (config, context, expect) in [
            (Value::Null, Value::Null, good("", "")),
            (json!({"configurable": {"model_name": "a"}}), json!({"model": "b"}), good("a", "")),
            (json!({"configurable": {"model_name": "a"}}), json!({"model_name": "b"}), good("b", "")),
            (json!({"context": {"model_name": "a"}}), json!({"model_name": "b"}), good("a", "")),
            (json!({"context": {"model_name": null}}), json!({"model_name": "b"}), good("b", "")),
            (Value::Null, json!({"thinking_enabled": true}), good("", "on")),
            (Value::Null, json!({"thinking_enabled": false, "reasoning_effort": "high"}), good("", "off")),
            (Value::Null, json!({"thinking_enabled": true, "reasoning_effort": "low"}), good("", "low")),
            (Value::Null, json!({"reasoning_effort": "minimal"}), good("", "off")),
            (Value::Null, json!({"is_plan_mode": true, "subagent_enabled": 7}), good("", "")),
            (Value::Null, json!({"model_name": "c"}), bad(400, "there is no model `c`")),
            (Value::Null, json!({"model_name": 7}), bad(422, "model_name is no text")),
            (
                Value::Null,
                json!({"thinking_enabled": "yes"}),
                bad(422, "thinking_enabled is neither true nor false"),
            ),
            (
                Value::Null,
                json!({"reasoning_effort": "hardest"}),
                bad(422, "reasoning_effort is none of none, minimal, low, medium, high"),
            ),
            (json!([]), Value::Null, bad(422, "config is no object")),
            (json!({"context": "a"}), Value::Null, bad(422, "config.context is no object")),
        ] {
            assert_eq!(read(config.clone(), context.clone()), expect, "{config} {context}");
        }
    }
}
