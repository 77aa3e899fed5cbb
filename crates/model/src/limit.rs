//! Limits the length of a reply in a request's body, after the operator's keys have been applied.

use pudu_base::Request;
use serde_json::{Map, Value};

/// Lowers the limit under each of these keys to the request's maximum. If none is set, sets the first key.
pub(crate) fn bound(options: &mut Map<String, Value>, keys: &[&str], request: &Request) {
    let Some(most) = request.most else { return };
    let mut is_there = false;
    for key in keys {
        if let Some(limit) = options.get_mut(*key) {
            // A negative number means no limit.
            if limit.as_u64().is_none_or(|limit| limit > u64::from(most)) {
                *limit = most.into();
            }
            is_there = true;
        }
    }
    if let Some(first) = keys.first().filter(|_| !is_there) {
        options.insert((*first).to_owned(), most.into());
    }
}

/// Returns the highest limit under these keys, if any.
pub(crate) fn limit(options: &Map<String, Value>, keys: &[&str]) -> Option<u64> {
    keys.iter().filter_map(|key| options.get(*key)?.as_u64()).max()
}

#[cfg(test)]
mod tests {
    use crate::{HttpModel, ModelSettings, ThinkingRules, WireKind, wires::wire_of};
    use pudu_base::{Model, Request};
    use serde_json::{Map, Value, json};

    fn map(value: &Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    fn settings(wire: WireKind, max_tokens: Option<u32>, body: &Value) -> ModelSettings {
        ModelSettings { max_tokens, body: map(body), ..ModelSettings::plain("m", wire) }
    }

    /// Returns all limits in a body.
    fn limits(settings: &ModelSettings, most: Option<u32>) -> Vec<i64> {
        let request = Request { most, ..Request::default() };
        let body = wire_of(settings.wire).body(settings, &request).unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        let places = [
            "/max_tokens",
            "/max_completion_tokens",
            "/max_output_tokens",
            "/generationConfig/maxOutputTokens",
            "/generationConfig/max_output_tokens",
            "/options/num_predict",
        ];
        places.iter().filter_map(|place| body.pointer(place)?.as_i64()).collect()
    }

    #[test]
    fn no_wire_exceeds_the_requests_limit_whatever_the_body_sets() {
        let bodies = [
            (WireKind::Chat, json!({"max_tokens": 9_000})),
            (WireKind::Chat, json!({"max_completion_tokens": 9_000})),
            (WireKind::Messages, json!({"max_tokens": 9_000})),
            (WireKind::Gemini, json!({"max_output_tokens": 9_000})),
            (WireKind::Gemini, json!({"generationConfig": {"max_output_tokens": 9_000}})),
            (WireKind::Responses, json!({"max_output_tokens": 9_000})),
            (WireKind::Ollama, json!({"num_predict": -1})),
            (WireKind::Ollama, json!({"options": {"num_predict": 9_000}})),
        ];
        for (wire, body) in &bodies {
            for body in [body, &json!({})] {
                for (configured, most, expect) in
                    [(None, 500, 500), (Some(7_000), 500, 500), (Some(100), 500, 100)]
                {
                    let settings = settings(*wire, configured, body);
                    let found = limits(&settings, Some(most));
                    let case = format!("{wire:?} {body} {configured:?}: {found:?}");
                    assert!(
                        !found.is_empty() && found.iter().all(|limit| (1..=500).contains(limit)),
                        "{case}"
                    );
                    if body == &json!({}) {
                        assert_eq!(found, [expect], "{case}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_model_reports_the_longest_reply_that_it_requests() {
        let check = |settings: ModelSettings, expect: Option<u64>| {
            let limited = limits(&settings, None);
            let case = format!("{:?} {:?}: {limited:?}", settings.wire, settings.body);
            assert_eq!(HttpModel::new(settings).unwrap().max_output(), expect, "{case}");
        };
        for wire in [WireKind::Chat, WireKind::Gemini, WireKind::Responses, WireKind::Ollama] {
            check(settings(wire, None, &json!({})), None);
            check(settings(wire, Some(900), &json!({})), Some(900));
        }
        check(settings(WireKind::Messages, None, &json!({})), Some(16_384));
        check(settings(WireKind::Chat, Some(900), &json!({"max_tokens": 5_000})), Some(5_000));
        check(settings(WireKind::Gemini, Some(900), &json!({"max_output_tokens": 5_000})), Some(5_000));
        check(settings(WireKind::Ollama, Some(900), &json!({"num_predict": -1})), None);
        let enabled = map(&json!({"thinking": {"type": "enabled", "budget_tokens": 20_000}}));
        let thinking = ThinkingRules { supported: true, enabled, ..ThinkingRules::default() };
        check(ModelSettings { thinking, ..settings(WireKind::Messages, None, &json!({})) }, Some(24_096));
    }
}
