//! Parts of an agent that a single run enables or disables, with the names of DeerFlow's clients and `session.context`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::ops::RangeInclusive;

/// Range of `max_concurrent_subagents`.
const CONCURRENT_SUBAGENTS: RangeInclusive<u32> = 1..=4;
/// Range of `max_total_subagents`.
const TOTAL_SUBAGENTS: RangeInclusive<u32> = 1..=50;

/// Parts of an agent that a single run enables or disables. A part without a value follows the configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct RunFeatures {
    /// Whether the agent keeps a to-do list.
    pub todos: Option<bool>,
    /// Whether the agent may start sub-agents.
    pub subagents: Option<bool>,
    /// Maximum number of sub-agents that one reply may start.
    pub subagents_at_once: Option<u32>,
    /// Maximum number of sub-agents of the run.
    pub subagents_in_all: Option<u32>,
    /// Whether the run asks no questions, because no person reads them.
    pub non_interactive: Option<bool>,
}

impl RunFeatures {
    /// Names of the options that [`RunFeatures::read`] reads.
    pub const KEYS: [&str; 5] = [
        "is_plan_mode",
        "subagent_enabled",
        "max_concurrent_subagents",
        "max_total_subagents",
        "non_interactive",
    ];

    /// Reads the options of a run. Limits are clamped to their ranges, as in DeerFlow.
    ///
    /// # Errors
    /// If an option has the wrong type.
    pub fn read(options: &Map<String, Value>) -> Result<Self, String> {
        let [plan, subagents, at_once, in_all, non_interactive] = Self::KEYS;
        Ok(Self {
            todos: flag(options, plan)?,
            subagents: flag(options, subagents)?,
            subagents_at_once: limit(options, at_once, &CONCURRENT_SUBAGENTS)?,
            subagents_in_all: limit(options, in_all, &TOTAL_SUBAGENTS)?,
            non_interactive: flag(options, non_interactive)?,
        })
    }
}

fn flag(options: &Map<String, Value>, key: &str) -> Result<Option<bool>, String> {
    match options.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(*flag)),
        Some(_) => Err(format!("{key} must be true or false")),
    }
}

fn limit(
    options: &Map<String, Value>,
    key: &str,
    range: &RangeInclusive<u32>,
) -> Result<Option<u32>, String> {
    let (least, max) = (*range.start(), *range.end());
    let Some(value) = options.get(key).filter(|value| !value.is_null()) else { return Ok(None) };
    match value.as_f64().filter(|number| number.fract() == 0.0) {
        Some(number) => Ok(Some((number as u32).clamp(least, max))),
        None => Err(format!("{key} must be a whole number from {least} to {max}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn options_switch_parts_and_limits_stay_in_their_range() {
        let read = |options: Value| RunFeatures::read(options.as_object().unwrap());
        assert_eq!(read(json!({"other": 1, "is_plan_mode": null})), Ok(RunFeatures::default()));
        let all = json!({"is_plan_mode": false, "subagent_enabled": true, "max_concurrent_subagents": 9, "max_total_subagents": -3, "non_interactive": true});
        let switched = RunFeatures {
            todos: Some(false),
            subagents: Some(true),
            subagents_at_once: Some(4),
            subagents_in_all: Some(1),
            non_interactive: Some(true),
        };
        assert_eq!(read(all), Ok(switched));
        for wrong in [
            json!({"is_plan_mode": "yes"}),
            json!({"subagent_enabled": 1}),
            json!({"max_total_subagents": 1.5}),
        ] {
            assert!(read(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
