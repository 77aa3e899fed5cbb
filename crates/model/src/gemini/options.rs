//! Keys of a request other than its system prompt, tools and contents: limits, thinking, and the operator's own keys.
//!
//! The configuration controls thinking with a `thinkingBudget` for Gemini 2.5 and a `thinkingLevel` since Gemini 3, but
//! never with both, which Google refuses. An effort maps to a budget or level as in Google's table for OpenAI clients.
//! If thinking is off and the configuration has no rule for that, the model thinks as little as it can.

use crate::{ModelSettings, limit};
use pudu_base::{Request, Thinking};
use serde_json::{Map, Value, json};

/// Key of the generation options.
const CONFIG: &str = "generationConfig";
/// Key of the thinking options within the generation options.
const THINKING: &str = "thinkingConfig";

/// Keys of Google's Python client and DeerFlow's configurations, and their names within the generation options.
const CONFIG_KEYS: [(&str, &str); 11] = [
    ("temperature", "temperature"),
    ("max_tokens", "maxOutputTokens"),
    ("max_output_tokens", "maxOutputTokens"),
    ("top_p", "topP"),
    ("top_k", "topK"),
    ("stop", "stopSequences"),
    ("stop_sequences", "stopSequences"),
    ("seed", "seed"),
    ("presence_penalty", "presencePenalty"),
    ("frequency_penalty", "frequencyPenalty"),
    ("response_modalities", "responseModalities"),
];
/// The same keys for the thinking options.
const THINKING_KEYS: [(&str, &str); 3] = [
    ("thinking_budget", "thinkingBudget"),
    ("thinking_level", "thinkingLevel"),
    ("include_thoughts", "includeThoughts"),
];

/// Keys that limit a reply. Google accepts both spellings.
const LIMIT_KEYS: [&str; 2] = ["maxOutputTokens", "max_output_tokens"];

/// Returns the maximum number of tokens of a reply.
pub(super) fn limit(settings: &ModelSettings, request: &Request) -> Option<u64> {
    limit::limit(options(settings, request).get(CONFIG)?.as_object()?, &LIMIT_KEYS)
}

/// Returns the keys. The operator's keys override ours.
pub(super) fn options(settings: &ModelSettings, request: &Request) -> Map<String, Value> {
    let mut options = settings.body.clone();
    settings.thinking.apply(request.thinking, &mut options);
    let mut config = object(options.remove(CONFIG));
    let mut thinking = object(config.remove(THINKING));
    for (key, name) in CONFIG_KEYS {
        config.extend(options.remove(key).map(|value| (name.to_owned(), value)));
    }
    for (key, name) in THINKING_KEYS {
        thinking.extend(options.remove(key).map(|value| (name.to_owned(), value)));
    }
    if let Some(temperature) = settings.temperature {
        config.entry("temperature").or_insert_with(|| temperature.into());
    }
    if let Some(tokens) = settings.max_tokens {
        config.entry("maxOutputTokens").or_insert_with(|| tokens.into());
    }
    limit::bound(&mut config, &LIMIT_KEYS, request);
    set_thinking(settings, request.thinking, &mut thinking);
    if !thinking.is_empty() {
        config.insert(THINKING.to_owned(), Value::Object(thinking));
    }
    if !config.is_empty() {
        options.insert(CONFIG.to_owned(), Value::Object(config));
    }
    options
}

fn object(value: Option<Value>) -> Map<String, Value> {
    match value {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

fn set_thinking(settings: &ModelSettings, wanted: Thinking, thinking: &mut Map<String, Value>) {
    let rules = &settings.thinking;
    let has_rule = wanted == Thinking::Off && !rules.disabled.is_empty();
    let effort = if wanted == Thinking::Off { Some("off") } else { rules.effort(wanted) };
    let Some(effort) = effort.filter(|_| rules.supported && !has_rule) else { return };
    let (name, other, value) = if has_budgets(&settings.model) {
        ("thinkingBudget", "thinkingLevel", json!(budget(&settings.model, effort)))
    } else {
        ("thinkingLevel", "thinkingBudget", json!(level(&settings.model, effort)))
    };
    thinking.remove(other);
    thinking.insert(name.to_owned(), value);
    if effort == "off" {
        thinking.remove("includeThoughts");
    }
}

/// Returns whether a model is older than Gemini 3. Such a model has thinking budgets and does not check signatures.
pub(super) fn has_budgets(model: &str) -> bool {
    model.contains("gemini-2") || model.contains("gemini-1")
}

/// Returns a budget that every Gemini 2.5 model accepts, in tokens. The Pro models cannot disable thinking.
fn budget(model: &str, effort: &str) -> u32 {
    match effort {
        "off" if model.contains("pro") => 128,
        "off" => 0,
        "low" => 1_024,
        "medium" => 8_192,
        _ => 24_576,
    }
}

/// Returns a level that the model accepts: `gemini-3-pro` has no `medium`, and only Flash models have `minimal`.
fn level<'a>(model: &str, effort: &'a str) -> &'a str {
    match effort {
        "off" if model.contains("flash") => "minimal",
        "off" => "low",
        "medium" if model.contains("gemini-3-pro") => "high",
        effort => effort,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ThinkingRules, WireKind};

    fn config(model: &str, enabled: &Value, disabled: &Value, thinking: Thinking) -> Value {
        let map = |value: &Value| value.as_object().cloned().unwrap_or_default();
        let rules = ThinkingRules {
            supported: true,
            takes_effort: true,
            enabled: map(enabled),
            disabled: map(disabled),
            ..ThinkingRules::default()
        };
        let plain = ModelSettings::plain(model, WireKind::Gemini);
        let request = Request { thinking, ..Request::default() };
        let options = options(&ModelSettings { thinking: rules, ..plain }, &request);
        options.get(CONFIG).and_then(|config| config.get(THINKING)).cloned().unwrap_or_default()
    }

    #[test]
    fn each_generation_gets_a_budget_or_a_level_and_never_both() {
        let none = json!({});
        for (model, enabled, disabled, thinking, expect) in [
            ("gemini-2.5-flash", &none, &none, Thinking::On, Value::Null),
            ("gemini-2.5-flash", &none, &none, Thinking::Off, json!({"thinkingBudget": 0})),
            ("gemini-2.5-pro", &none, &none, Thinking::Off, json!({"thinkingBudget": 128})),
            ("gemini-2.5-pro", &none, &none, Thinking::Medium, json!({"thinkingBudget": 8_192})),
            ("gemini-3-flash-preview", &none, &none, Thinking::Off, json!({"thinkingLevel": "minimal"})),
            ("gemini-3.1-pro-preview", &none, &none, Thinking::Off, json!({"thinkingLevel": "low"})),
            ("gemini-3.1-pro-preview", &none, &none, Thinking::Medium, json!({"thinkingLevel": "medium"})),
            ("gemini-3-pro-preview", &none, &none, Thinking::Medium, json!({"thinkingLevel": "high"})),
            (
                "gemini-2.5-flash",
                &json!({"thinking_budget": 99}),
                &none,
                Thinking::On,
                json!({"thinkingBudget": 99}),
            ),
            (
                "gemini-flash-latest",
                &json!({"thinking_budget": 99, "include_thoughts": true}),
                &none,
                Thinking::High,
                json!({"thinkingLevel": "high", "includeThoughts": true}),
            ),
            (
                "gemini-2.5-flash",
                &none,
                &json!({"generationConfig": {"thinkingConfig": {"thinkingBudget": 7}}}),
                Thinking::Off,
                json!({"thinkingBudget": 7}),
            ),
        ] {
            let found = config(model, enabled, disabled, thinking);
            assert_eq!(found, expect, "{model} {enabled} {disabled} {thinking:?}");
        }
    }

    #[test]
    fn python_client_keys_are_renamed_and_take_precedence() {
        let body = json!({"top_p": 0.9, "max_output_tokens": 9, "safetySettings": [],
            "response_modalities": ["TEXT", "IMAGE"],
            "generationConfig": {"topK": 3, "thinkingConfig": {"includeThoughts": true}}});
        let settings = ModelSettings {
            body: body.as_object().cloned().unwrap(),
            max_tokens: Some(100),
            temperature: Some(0.5),
            ..ModelSettings::plain("gemini-2.5-flash", WireKind::Gemini)
        };
        let options = options(&settings, &Request { thinking: Thinking::Off, ..Request::default() });
        assert_eq!(
            Value::Object(options),
            json!({"safetySettings": [], "generationConfig": {"topP": 0.9, "topK": 3, "maxOutputTokens": 9,
                "responseModalities": ["TEXT", "IMAGE"], "temperature": 0.5, "thinkingConfig": {"includeThoughts": true}}}),
            "a model without thinking gets no setting"
        );
    }
}
