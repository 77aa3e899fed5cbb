//! Fields of a request that enable or disable thinking, following the rules of DeerFlow's configuration.

use pudu_base::Thinking;
use serde_json::{Map, Value, json};

/// How a model's thinking is controlled.
#[derive(Clone, Debug, PartialEq)]
pub struct ThinkingRules {
    /// Whether thinking can be controlled at all.
    pub supported: bool,
    /// Whether the model accepts an effort.
    pub takes_effort: bool,
    /// Fields of the body that enable thinking.
    pub enabled: Map<String, Value>,
    /// Fields of the body that disable thinking; if empty, they are derived from `enabled`.
    pub disabled: Map<String, Value>,
    /// Whether the Messages wire sets a budget if thinking is enabled without one; DeerFlow's `auto_thinking_budget`.
    pub auto_budget: bool,
}

impl Default for ThinkingRules {
    fn default() -> Self {
        let (enabled, disabled) = (Map::new(), Map::new());
        Self { supported: false, takes_effort: false, enabled, disabled, auto_budget: true }
    }
}

impl ThinkingRules {
    /// Returns whether the model thinks with this setting.
    #[must_use]
    pub fn thinks(&self, thinking: Thinking) -> bool {
        self.supported && thinking != Thinking::Off
    }

    /// Returns the effort to send, by the name that all providers use.
    #[must_use]
    pub fn effort(&self, thinking: Thinking) -> Option<&'static str> {
        thinking.effort().filter(|_| self.takes_effort)
    }

    /// Adds the thinking fields of a request to its body.
    pub(crate) fn apply(&self, thinking: Thinking, body: &mut Map<String, Value>) {
        if self.thinks(thinking) {
            return merge(body, &self.enabled);
        }
        match self.disabled.is_empty() {
            true => merge(body, &self.derived_disabled()),
            false => merge(body, &self.disabled),
        }
    }

    /// Returns the opposite of `enabled`, if its format is known.
    fn derived_disabled(&self) -> Map<String, Value> {
        let mut disabled = Map::new();
        let enabled = &self.enabled;
        let inner = enabled.get("extra_body").unwrap_or(&Value::Null);
        if enabled
            .get("thinking")
            .or(inner.get("thinking"))
            .is_some_and(|thinking| thinking.get("type").is_some())
        {
            disabled.insert("thinking".to_owned(), json!({"type": "disabled"}));
            if inner.get("thinking").is_some() && self.takes_effort {
                disabled.insert("reasoning_effort".to_owned(), json!("minimal"));
            }
        }
        let template = enabled.get("chat_template_kwargs").or(inner.get("chat_template_kwargs"));
        let switches = ["thinking", "enable_thinking"].into_iter();
        let off: Map<String, Value> = switches
            .filter(|switch| template.is_some_and(|template| template.get(*switch).is_some()))
            .map(|switch| (switch.to_owned(), Value::Bool(false)))
            .collect();
        if !off.is_empty() {
            disabled.insert("chat_template_kwargs".to_owned(), Value::Object(off));
        }
        for switch in ["enable_thinking", "think"] {
            if enabled.get(switch).or(inner.get(switch)).is_some() {
                disabled.insert(switch.to_owned(), Value::Bool(false));
            }
        }
        disabled
    }
}

/// Merges nested objects key by key and replaces other values. `extra_body` is the Python client's name for additional
/// keys.
pub(crate) fn merge(into: &mut Map<String, Value>, from: &Map<String, Value>) {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn body(rules: &Value, thinking: Thinking) -> Value {
        let map = |name: &str| rules.get(name).and_then(Value::as_object).cloned().unwrap_or_default();
        let rules = ThinkingRules {
            supported: rules.get("blind").is_none(),
            takes_effort: true,
            enabled: map("enabled"),
            disabled: map("disabled"),
            ..ThinkingRules::default()
        };
        let mut body = json!({"top_p": 1, "chat_template_kwargs": {"a": 1}}).as_object().cloned().unwrap();
        rules.apply(thinking, &mut body);
        body.remove("top_p");
        Value::Object(body)
    }

    #[test]
    fn thinking_is_disabled_in_each_of_deerflows_formats() {
        let template = json!({"a": 1});
        for (rules, on, off) in [
            (
                json!({"enabled": {"extra_body": {"thinking": {"type": "enabled"}}}}),
                json!({"thinking": {"type": "enabled"}, "chat_template_kwargs": template}),
                json!({"thinking": {"type": "disabled"}, "reasoning_effort": "minimal", "chat_template_kwargs": template}),
            ),
            (
                json!({"enabled": {"thinking": {"type": "enabled", "budget_tokens": 9}}}),
                json!({"thinking": {"type": "enabled", "budget_tokens": 9}, "chat_template_kwargs": template}),
                json!({"thinking": {"type": "disabled"}, "chat_template_kwargs": template}),
            ),
            (
                json!({"enabled": {"extra_body": {"chat_template_kwargs": {"enable_thinking": true}}}}),
                json!({"chat_template_kwargs": {"a": 1, "enable_thinking": true}}),
                json!({"chat_template_kwargs": {"a": 1, "enable_thinking": false}}),
            ),
            (
                json!({"enabled": {"x": 1}, "disabled": {"x": 0}}),
                json!({"x": 1, "chat_template_kwargs": template}),
                json!({"x": 0, "chat_template_kwargs": template}),
            ),
            (json!({}), json!({"chat_template_kwargs": template}), json!({"chat_template_kwargs": template})),
        ] {
            assert_eq!(body(&rules, Thinking::High), on, "{rules}");
            assert_eq!(body(&rules, Thinking::Off), off, "{rules}");
            let mut blind = rules.clone();
            blind["blind"] = json!(true);
            assert_eq!(
                body(&blind, Thinking::On),
                off,
                "a model without thinking is told not to think: {rules}"
            );
        }
    }
}
