//! The modes of a stream that a client may ask for.

use serde_json::Value;

/// Which frames a stream has besides `metadata`, `error` and `end`.
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
    /// Checkpoints and tasks once more: `debug` frames.
    pub debug: bool,
    /// The state as a checkpoint, after each change: `checkpoints` frames.
    pub checkpoints: bool,
    /// The run as people see it in a chat, after each change: `view` frames. An extension of pudu's.
    pub view: bool,
}

impl Modes {
    /// Returns whether any frame has the values of the thread.
    #[must_use]
    pub fn show_values(self) -> bool {
        self.values || self.checkpoints || self.debug || self.events
    }

    /// Reads one mode or a list of modes; `values` if there is none. A mode of a newer client has no frames and is added to
    /// `unknown`.
    ///
    /// # Errors
    /// When it is neither.
    pub fn read(wanted: &Value, unknown: &mut Vec<String>) -> Result<Self, String> {
        let list = match wanted {
            Value::Null => return Ok(Self { values: true, ..Self::default() }),
            Value::String(_) => std::slice::from_ref(wanted),
            Value::Array(list) if list.len() <= 20 => list.as_slice(),
            _ => return Err("stream_mode must be a mode or a list of modes".to_owned()),
        };
        let mut modes = Self::default();
        for mode in list {
            let Some(mode) = mode.as_str() else {
                return Err("stream_mode must be a mode or a list of modes".to_owned());
            };
            let flag = match mode {
                "values" => &mut modes.values,
                "updates" => &mut modes.updates,
                "messages-tuple" => &mut modes.tuples,
                "messages" => &mut modes.messages,
                "custom" => &mut modes.custom,
                "events" => &mut modes.events,
                "tasks" => &mut modes.tasks,
                "debug" => &mut modes.debug,
                "checkpoints" => &mut modes.checkpoints,
                "view" => &mut modes.view,
                _ => {
                    unknown.push(mode.to_owned());
                    continue;
                }
            };
            *flag = true;
        }
        Ok(if list.is_empty() { Self { values: true, ..modes } } else { modes })
    }

    /// Reads modes as a query has them: one, or several with commas or repeated.
    ///
    /// # Errors
    /// When there are too many.
    pub fn from_query(wanted: &[String], unknown: &mut Vec<String>) -> Result<Option<Self>, String> {
        let words = wanted.iter().flat_map(|part| part.split(','));
        // Python's client writes a key without a value where no mode is named.
        let list: Vec<Value> = words.filter(|word| !word.is_empty()).map(Value::from).collect();
        if list.is_empty() { Ok(None) } else { Self::read(&Value::Array(list), unknown).map(Some) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn modes_are_read_in_every_form_and_unknown_ones_are_named() {
        let mut unknown = Vec::new();
        let values = Modes { values: true, ..Modes::default() };
        for wanted in [json!(null), json!("values"), json!(["values"]), json!([])] {
            assert_eq!(Modes::read(&wanted, &mut unknown), Ok(values), "{wanted}");
        }
        let both = Modes { updates: true, tuples: true, ..Modes::default() };
        assert_eq!(Modes::read(&json!(["messages-tuple", "updates"]), &mut unknown), Ok(both));
        assert_eq!(Modes::from_query(&["updates,messages-tuple".into()], &mut unknown), Ok(Some(both)));
        assert_eq!(
            [vec![], vec![String::new()]].map(|wanted| Modes::from_query(&wanted, &mut unknown)),
            [Ok(None), Ok(None)]
        );
        assert_eq!(unknown, [""; 0]);
        assert_eq!(Modes::read(&json!("tools"), &mut unknown), Ok(Modes::default()));
        assert_eq!(Modes::read(&json!(["lifecycle", "values"]), &mut unknown), Ok(values));
        assert_eq!(unknown, ["tools", "lifecycle"]);
        assert!(Modes::read(&json!(7), &mut unknown).is_err());
        assert!(Modes::read(&json!(["values", 7]), &mut unknown).is_err());
    }
}
