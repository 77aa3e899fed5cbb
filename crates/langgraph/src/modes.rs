//! The stream modes that a client can request.

use pudu_base::foreign;
use serde_json::Value;

/// Modes that have frames.
const MODES: [&str; 10] = [
    "values",
    "updates",
    "messages-tuple",
    "messages",
    "custom",
    "events",
    "tasks",
    "debug",
    "checkpoints",
    "view",
];
/// Further modes of LangGraph's SDKs, which their clients send in lists.
const UNSERVED: [&str; 2] = ["tools", "lifecycle"];
/// Maximum number of modes in a request.
const MAX_MODES: usize = 20;
/// Maximum length of an unknown mode in an error, in characters.
const MAX_SHOWN_CHARS: usize = 40;

/// Frames that a stream contains, in addition to `metadata`, `error` and `end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modes {
    /// The whole state, after each change: `values` frames.
    pub values: bool,
    /// The changes made by a node: `updates` frames.
    pub updates: bool,
    /// Pieces of messages with metadata: `messages` frames.
    pub tuples: bool,
    /// Messages as they grow: `messages/partial` and `messages/complete` frames.
    pub messages: bool,
    /// Progress of sub-agents, retries, summaries and approvals: `custom` frames.
    pub custom: bool,
    /// LangChain's events: `events` frames.
    pub events: bool,
    /// Beginnings and ends of nodes: `tasks` frames.
    pub tasks: bool,
    /// Checkpoints and tasks again: `debug` frames.
    pub debug: bool,
    /// The state as a checkpoint, after each change: `checkpoints` frames.
    pub checkpoints: bool,
    /// The run as a chat shows it, after each change: `view` frames. An extension by pudu.
    pub view: bool,
}

impl Modes {
    /// Returns whether any frames contain the thread's values.
    #[must_use]
    pub fn show_values(self) -> bool {
        self.values || self.checkpoints || self.debug || self.events
    }

    /// Parses one mode or a list of modes; `values` if there is none. Modes that only LangGraph's server has, and newer
    /// clients add to their list, are added to `unserved`.
    ///
    /// # Errors
    /// When the value is neither, has an unknown mode, or no mode that has frames here.
    pub fn read(wanted: &Value, unserved: &mut Vec<String>) -> Result<Self, String> {
        let list = match wanted {
            Value::Null => &[],
            Value::String(_) => std::slice::from_ref(wanted),
            Value::Array(list) if list.len() <= MAX_MODES => list.as_slice(),
            _ => return Err(malformed()),
        };
        let mut modes = Self { values: list.is_empty(), ..Self::default() };
        for mode in list {
            let mode = mode.as_str().ok_or_else(malformed)?;
            match modes.flag(mode) {
                Some(flag) => *flag = true,
                None if UNSERVED.contains(&mode) => unserved.push(mode.to_owned()),
                None => return Err(unknown(mode)),
            }
        }
        match unserved.first().filter(|_| modes == Self::default()) {
            Some(mode) => Err(unknown(mode)),
            None => Ok(modes),
        }
    }

    fn flag(&mut self, mode: &str) -> Option<&mut bool> {
        Some(match mode {
            "values" => &mut self.values,
            "updates" => &mut self.updates,
            "messages-tuple" => &mut self.tuples,
            "messages" => &mut self.messages,
            "custom" => &mut self.custom,
            "events" => &mut self.events,
            "tasks" => &mut self.tasks,
            "debug" => &mut self.debug,
            "checkpoints" => &mut self.checkpoints,
            "view" => &mut self.view,
            _ => return None,
        })
    }

    /// Parses modes from a query: one or several, separated by commas or repeated.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn from_query(wanted: &[String], unserved: &mut Vec<String>) -> Result<Option<Self>, String> {
        let words = wanted.iter().flat_map(|part| part.split(','));
        // The Python client sends a key without a value if no mode is named.
        let list: Vec<Value> = words.filter(|word| !word.is_empty()).map(Value::from).collect();
        if list.is_empty() { Ok(None) } else { Self::read(&Value::Array(list), unserved).map(Some) }
    }
}

fn malformed() -> String {
    format!("stream_mode must be a mode or a list of at most {MAX_MODES} modes")
}

fn unknown(mode: &str) -> String {
    format!(
        "stream_mode: unknown mode `{}`; the modes are {}",
        foreign::line(mode, MAX_SHOWN_CHARS),
        MODES.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const VALUES: Modes = Modes {
        values: true,
        updates: false,
        tuples: false,
        messages: false,
        custom: false,
        events: false,
        tasks: false,
        debug: false,
        checkpoints: false,
        view: false,
    };

    #[test]
    fn modes_are_read_in_every_form() {
        let mut unserved = Vec::new();
        for wanted in [json!(null), json!("values"), json!(["values"]), json!([])] {
            assert_eq!(Modes::read(&wanted, &mut unserved), Ok(VALUES), "{wanted}");
        }
        let both = Modes { updates: true, tuples: true, ..Modes::default() };
        assert_eq!(Modes::read(&json!(["messages-tuple", "updates"]), &mut unserved), Ok(both));
        assert_eq!(Modes::from_query(&["updates,messages-tuple".into()], &mut unserved), Ok(Some(both)));
        assert_eq!(
            [vec![], vec![String::new()]].map(|wanted| Modes::from_query(&wanted, &mut unserved)),
            [Ok(None), Ok(None)]
        );
        for mode in MODES {
            assert!(
                Modes::read(&json!(mode), &mut unserved).is_ok_and(|modes| modes != Modes::default()),
                "{mode}"
            );
        }
        assert_eq!(unserved, [""; 0]);
        assert_eq!(Modes::read(&json!(["lifecycle", "values", "tools"]), &mut unserved), Ok(VALUES));
        assert_eq!(unserved, ["lifecycle", "tools"]);
    }

    #[test]
    fn unknown_modes_are_refused_with_the_list_of_modes() {
        for (wanted, mode) in [
            (json!("value"), "value"),
            (json!(["values", "Values"]), "Values"),
            (json!(["tools", "typo", "values"]), "typo"),
            (json!(""), ""),
            (json!("tools"), "tools"),
            (json!(["lifecycle", "tools"]), "lifecycle"),
        ] {
            let told = Modes::read(&wanted, &mut Vec::new()).unwrap_err();
            let expected = format!("stream_mode: unknown mode `{mode}`; the modes are values, updates, ");
            assert!(told.starts_with(&expected), "{wanted}: {told}");
        }
        assert!(Modes::from_query(&["values,typo".into()], &mut Vec::new()).is_err());
        for wanted in [json!(7), json!(["values", 7]), json!({}), json!(vec!["values"; 21])] {
            let told = Modes::read(&wanted, &mut Vec::new()).unwrap_err();
            assert_eq!(told, "stream_mode must be a mode or a list of at most 20 modes", "{wanted}");
        }
    }
}
