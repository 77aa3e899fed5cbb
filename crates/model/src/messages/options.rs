//! Keys of a request other than its system prompt, tools and messages: limits, thinking, and the operator's own keys.
//!
//! The configuration controls thinking with `thinking: {type: adaptive}`, which lets current models decide for
//! themselves, or with `{type: enabled, budget_tokens: N}` for older ones, where N is at least 1,024 and less than
//! `max_tokens`. An effort is sent as `output_config.effort`, or mapped to a budget for models with budgets.

use crate::{ModelSettings, limit};
use pudu_base::Request;
use serde_json::{Map, Value, json};

/// Default limit of a reply, in tokens. The wire requires a limit, and all current Anthropic models accept at least
/// 32,000.
const DEFAULT_MAX_TOKENS: u64 = 16_384;
/// Minimum thinking budget that Anthropic accepts, in tokens.
const MIN_BUDGET_TOKENS: u64 = 1_024;
/// Minimum number of tokens for the reply, in addition to the thinking budget, if the default limit has to be raised.
const MIN_REPLY_TOKENS: u64 = 4_096;
/// Default share of a reply for thinking, in percent, as in DeerFlow.
const AUTO_BUDGET_PERCENT: u64 = 80;

/// Key that limits a reply.
const LIMIT_KEYS: [&str; 1] = ["max_tokens"];

/// Returns the maximum number of tokens of a reply.
pub(super) fn limit(settings: &ModelSettings, request: &Request) -> Option<u64> {
    limit::limit(&options(settings, request), &LIMIT_KEYS)
}

/// Returns the keys. The operator's keys override ours.
pub(super) fn options(settings: &ModelSettings, request: &Request) -> Map<String, Value> {
    let (rules, max_tokens) = (&settings.thinking, request.most.map_or(u64::MAX, u64::from));
    let mut options = Map::new();
    if let Some(temperature) = settings.temperature {
        options.insert("temperature".to_owned(), temperature.into());
    }
    if let Some(tokens) = settings.max_tokens {
        options.insert("max_tokens".to_owned(), tokens.into());
    }
    options.extend(settings.body.clone());
    rules.apply(request.thinking, &mut options);
    let effort = rules.effort(request.thinking).filter(|_| rules.thinks(request.thinking));
    match options.get("thinking").and_then(|thinking| thinking.get("type")?.as_str()) {
        Some("enabled") => set_budget(&mut options, effort, rules.auto_budget, max_tokens),
        Some("disabled") => {
            options.insert("thinking".to_owned(), json!({"type": "disabled"}));
        }
        _ => set_effort(&mut options, effort),
    }
    options.entry("max_tokens").or_insert_with(|| DEFAULT_MAX_TOKENS.into());
    limit::bound(&mut options, &LIMIT_KEYS, request);
    if thinks(&options) {
        // Neither can be combined with thinking.
        options.remove("temperature");
        options.remove("top_k");
    }
    options
}

fn thinks(options: &Map<String, Value>) -> bool {
    options.get("thinking").and_then(|thinking| thinking.get("type")).is_some_and(|kind| kind != "disabled")
}

fn set_effort(options: &mut Map<String, Value>, effort: Option<&'static str>) {
    let Some(effort) = effort else { return };
    let config = options.entry("output_config").or_insert_with(|| json!({}));
    if let Value::Object(config) = config {
        config.insert("effort".to_owned(), effort.into());
    }
}

/// Sets a valid budget and adjusts the limit of the reply.
fn set_budget(options: &mut Map<String, Value>, effort: Option<&'static str>, auto: bool, most: u64) {
    let limit = options.get("max_tokens").and_then(Value::as_u64).map(|limit| limit.min(most));
    let share = |percent: u64| limit.unwrap_or(DEFAULT_MAX_TOKENS).saturating_mul(percent) / 100;
    let configured = options.get("thinking").and_then(|thinking| thinking.get("budget_tokens")?.as_u64());
    let wanted = match effort {
        Some("low") => share(20),
        Some("medium") => share(50),
        Some(_) => share(AUTO_BUDGET_PERCENT),
        None => match configured {
            Some(budget) => budget,
            None if auto => share(AUTO_BUDGET_PERCENT),
            None => return,
        },
    };
    let wanted = wanted.max(MIN_BUDGET_TOKENS);
    let limit =
        limit.unwrap_or_else(|| DEFAULT_MAX_TOKENS.max(wanted.saturating_add(MIN_REPLY_TOKENS)).min(most));
    let budget = if wanted < limit { wanted } else { limit * AUTO_BUDGET_PERCENT / 100 };
    let thinking = if budget < MIN_BUDGET_TOKENS {
        // A reply this short has no room for thinking.
        json!({"type": "disabled"})
    } else {
        let mut thinking = options.get("thinking").cloned().unwrap_or_default();
        thinking["budget_tokens"] = budget.into();
        thinking
    };
    options.insert("thinking".to_owned(), thinking);
    options.insert("max_tokens".to_owned(), limit.into());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ThinkingRules, WireKind};
    use pudu_base::Thinking;

    /// Returns the keys for a model with this configuration.
    fn keys(max_tokens: Option<u32>, enabled: &Value, thinking: Thinking) -> Value {
        let rules = ThinkingRules {
            supported: true,
            takes_effort: true,
            enabled: enabled.as_object().cloned().unwrap_or_default(),
            ..ThinkingRules::default()
        };
        let body = json!({"top_k": 5, "top_p": 0.99}).as_object().cloned().unwrap();
        let plain = ModelSettings::plain("claude", WireKind::Messages);
        let settings = ModelSettings { max_tokens, temperature: Some(0.5), thinking: rules, body, ..plain };
        let mut keys = options(&settings, &Request { thinking, ..Request::default() });
        assert_eq!(keys.remove("top_p"), Some(json!(0.99)));
        let has_temperature = keys.remove("temperature").is_some();
        assert_eq!(keys.remove("top_k").is_some(), has_temperature);
        assert_eq!(has_temperature, !thinks(&keys), "temperature and thinking exclude each other");
        Value::Object(keys)
    }

    #[test]
    fn thinking_budget_and_limit_are_always_valid_for_anthropic() {
        let manual = |budget: u64| json!({"thinking": {"type": "enabled", "budget_tokens": budget}});
        let auto = json!({"thinking": {"type": "enabled"}});
        let adaptive = json!({"thinking": {"type": "adaptive"}});
        let with = |max_tokens: u64, mut keys: Value| {
            keys["max_tokens"] = max_tokens.into();
            keys
        };
        let off = json!({"thinking": {"type": "disabled"}});
        for (max_tokens, enabled, thinking, expect) in [
            (None, &json!({}), Thinking::On, with(16_384, json!({}))),
            (Some(100), &json!({}), Thinking::Off, with(100, json!({}))),
            (Some(8_000), &manual(2_000), Thinking::On, with(8_000, manual(2_000))),
            (Some(8_000), &manual(8_000), Thinking::On, with(8_000, manual(6_400))),
            (Some(8_000), &manual(10), Thinking::On, with(8_000, manual(1_024))),
            (Some(1_000), &manual(2_000), Thinking::On, with(1_000, off.clone())),
            (None, &manual(20_000), Thinking::On, with(24_096, manual(20_000))),
            (None, &manual(2_000), Thinking::Off, with(16_384, off.clone())),
            (Some(4_096), &auto, Thinking::On, with(4_096, manual(3_276))),
            (None, &auto, Thinking::On, with(17_203, manual(13_107))),
            (Some(10_000), &auto, Thinking::Low, with(10_000, manual(2_000))),
            (Some(10_000), &manual(9_000), Thinking::Medium, with(10_000, manual(5_000))),
            (None, &adaptive, Thinking::On, with(16_384, adaptive.clone())),
            (None, &adaptive, Thinking::Off, with(16_384, off)),
            (
                None,
                &adaptive,
                Thinking::High,
                with(16_384, json!({"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}})),
            ),
            (None, &json!({}), Thinking::Low, with(16_384, json!({"output_config": {"effort": "low"}}))),
        ] {
            assert_eq!(keys(max_tokens, enabled, thinking), expect, "{max_tokens:?} {enabled} {thinking:?}");
        }
    }

    #[test]
    fn no_budget_is_set_without_auto_budget() {
        let enabled = json!({"thinking": {"type": "enabled"}}).as_object().cloned().unwrap();
        let rules =
            ThinkingRules { supported: true, enabled, auto_budget: false, ..ThinkingRules::default() };
        let plain = ModelSettings::plain("claude", WireKind::Messages);
        let keys = options(&ModelSettings { thinking: rules, ..plain }, &Request::default());
        assert_eq!(keys["thinking"], json!({"type": "enabled"}));
    }
}
