//! The agent that answers, and its settings. They are kept as written, but a run uses only `recursion_limit` in
//! `config`, and [`CONTEXT_KEYS`] and the keys of [`RunFeatures`] in `context`. A section with any other key is
//! reported in a note.

use super::super::reader::Section;
use pudu_agent::{RunFeatures, RunSecrets};
use serde_json::{Map, Value as Json};

/// Keys of `context` that a run uses, besides those of [`RunFeatures`].
const CONTEXT_KEYS: [&str; 5] =
    ["agent_name", "model_name", "reasoning_effort", "secrets", "thinking_enabled"];

settings! {
    /// An agent and its settings.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct SessionOverrides(section) {
        /// Name of the agent.
        assistant_id: Option<String> = text().eg("lead_agent").optional("lead_agent");
        /// Values for a run's config.
        config: Map<String, Json> = map().or(Map::new());
        /// Values for a run's context.
        context: Map<String, Json> = map().or(Map::new());
        /// The same three keys for single users, by their id on the platform.
        users: Map<String, Json> = map().or(Map::new());
    }
}

/// Reads the `session` of one bot, or of all bots.
pub(super) fn read(of: &Section<'_>, about: &'static str) -> SessionOverrides {
    let section = of.section("session").needed(of.is_needed()).about(about);
    let session = SessionOverrides::read(&section);
    let others =
        |map: &Map<String, Json>, known: &[&str]| map.keys().any(|key| !known.contains(&key.as_str()));
    if others(&session.config, &["recursion_limit"]) {
        section.note_unused(&["config"]);
    }
    if others(&session.context, &[&CONTEXT_KEYS[..], &RunFeatures::KEYS].concat()) {
        section.note_unused(&["context"]);
    }
    let of_users = session.users.values().filter_map(|own| own.get("context")?.as_object());
    for context in of_users.chain([&session.context]) {
        if let Err(why) = RunFeatures::read(context) {
            section.refuse("context", why, "correct the option, or remove it");
        }
        if let Err(why) = RunSecrets::read(context) {
            section.refuse(
                "context",
                why,
                "name each secret like an environment variable: `secrets: {API_KEY: $API_KEY}`",
            );
        }
    }
    session
}

impl SessionOverrides {
    /// Merges this over a more general one. Values of this one take precedence.
    pub(super) fn merged_over(self, common: &Self) -> Self {
        Self {
            assistant_id: self.assistant_id.or_else(|| common.assistant_id.clone()),
            config: merge_maps(&common.config, &self.config),
            context: merge_maps(&common.context, &self.context),
            users: merge_maps(&common.users, &self.users),
        }
    }

    /// Returns the overrides for one person.
    pub fn of_user(&self, id: &str) -> Self {
        let own = self.users.get(id).and_then(Json::as_object);
        let map =
            |key| own.and_then(|own| own.get(key)).and_then(Json::as_object).cloned().unwrap_or_default();
        let assistant_id =
            own.and_then(|own| own.get("assistant_id")).and_then(Json::as_str).map(str::to_owned);
        Self { assistant_id, config: map("config"), context: map("context"), users: Map::new() }
            .merged_over(&Self { users: Map::new(), ..self.clone() })
    }
}

fn merge_maps(below: &Map<String, Json>, above: &Map<String, Json>) -> Map<String, Json> {
    below.iter().chain(above).map(|(key, value)| (key.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn session(value: &Json) -> SessionOverrides {
        let map = |key| value.get(key).and_then(Json::as_object).cloned().unwrap_or_default();
        let assistant_id = value.get("assistant_id").and_then(Json::as_str).map(str::to_owned);
        SessionOverrides { assistant_id, config: map("config"), context: map("context"), users: map("users") }
    }

    #[test]
    fn the_most_specific_session_applies() {
        let common =
            session(&json!({"assistant_id": "all", "config": {"a": 1, "b": 1}, "context": {"x": 1}}));
        let account = session(&json!({
            "config": {"b": 2},
            "users": {"7": {"assistant_id": "vip", "config": {"c": 3}}, "8": {"context": {"x": 8}}},
        }))
        .merged_over(&common);
        let cases = [
            ("7", json!({"assistant_id": "vip", "config": {"a": 1, "b": 2, "c": 3}, "context": {"x": 1}})),
            ("8", json!({"assistant_id": "all", "config": {"a": 1, "b": 2}, "context": {"x": 8}})),
            ("9", json!({"assistant_id": "all", "config": {"a": 1, "b": 2}, "context": {"x": 1}})),
        ];
        for (user, expected) in cases {
            assert_eq!(account.of_user(user), session(&expected), "{user}");
        }
    }
}
