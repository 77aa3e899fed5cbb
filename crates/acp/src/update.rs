//! The updates of a session: the agent's text, its tool calls and its plan. An update of an unknown kind, and one that
//! cannot be read, is passed over and counted.

use pudu_base::foreign;
use serde_json::Value;
use std::collections::HashMap;

/// Maximum size of the agent's text, in bytes. The rest is dropped.
const MAX_TEXT_BYTES: usize = 1 << 20;
/// Maximum number of tool calls whose titles are known. Further ones are passed over.
const MAX_CALLS: usize = 1_000;
/// Maximum length of a title, in characters.
const MAX_TITLE_CHARS: usize = 120;

/// An event of an agent's work.
#[derive(Clone, Debug, PartialEq)]
pub enum AcpEvent {
    /// It calls a tool.
    Calls {
        /// Its text since the last event of this kind.
        text: String,
        /// Title of the call: one line.
        title: String,
        /// The arguments; null if they are unknown.
        input: Value,
    },
    /// A call ended.
    Called {
        /// Title of the call.
        title: String,
        /// Whether it failed.
        failed: bool,
        /// The text of its result.
        text: String,
    },
    /// The titles of its running calls, or else the current entries of its plan; empty while it thinks.
    Does(Vec<String>),
}

/// The updates so far.
#[derive(Debug, Default)]
pub(crate) struct Updates {
    /// The agent's text.
    pub(crate) text: String,
    /// Whether text was dropped, because there was too much.
    pub(crate) is_cut: bool,
    /// Number of content blocks that are not text.
    pub(crate) other_contents: usize,
    /// Number of updates that could not be used.
    pub(crate) unusable: usize,
    /// Offset of the text that no event contains yet.
    told: usize,
    /// Whether a call came after the newest text.
    interrupted: bool,
    /// Id of the message that grows, if the agent sends ids.
    message: Option<String>,
    calls: HashMap<String, SeenCall>,
    /// Number of calls so far, which orders them.
    count: usize,
    plan: Vec<String>,
    does: Vec<String>,
}

#[derive(Debug)]
struct SeenCall {
    order: usize,
    title: String,
    is_over: bool,
}

impl Updates {
    /// Takes an update of the session, and returns its events.
    pub(crate) fn take(&mut self, update: &Value) -> Vec<AcpEvent> {
        let mut events = Vec::new();
        match update.get("sessionUpdate").and_then(Value::as_str).unwrap_or_default() {
            "agent_message_chunk" => self.say(update),
            "tool_call" | "tool_call_update" => events.extend(self.call(update)),
            "plan" => self.plan(update),
            // Thoughts are not for others, and the rest concerns editors.
            "agent_thought_chunk"
            | "user_message_chunk"
            | "available_commands_update"
            | "current_mode_update"
            | "config_option_update"
            | "session_info_update"
            | "usage_update" => {}
            _ => self.unusable += 1,
        }
        let does = self.current();
        if does != self.does {
            self.does.clone_from(&does);
            events.push(AcpEvent::Does(does));
        }
        events
    }

    fn say(&mut self, update: &Value) {
        let content = update.get("content").unwrap_or(&Value::Null);
        let text = |key: &str| content.get(key).and_then(Value::as_str);
        let said = match text("type").unwrap_or_default() {
            "text" => text("text").unwrap_or_default().to_owned(),
            "resource_link" => {
                let uri = text("uri").unwrap_or_default();
                format!("[{}]({uri})", text("name").unwrap_or(uri))
            }
            _ => {
                self.other_contents += 1;
                return;
            }
        };
        let message = update.get("messageId").and_then(Value::as_str).map(str::to_owned);
        let is_next = message.is_some() && self.message.is_some() && message != self.message;
        if (is_next || self.interrupted) && !self.text.trim_end().is_empty() {
            let length = self.text.trim_end().len();
            // The text that was passed on stays.
            self.text.truncate(length.max(self.told));
            self.text.push_str("\n\n");
        }
        self.message = message.or(self.message.take());
        self.interrupted = false;
        let room = MAX_TEXT_BYTES.saturating_sub(self.text.len());
        let length = said.floor_char_boundary(room);
        self.is_cut |= length < said.len();
        self.text.push_str(said.get(..length).unwrap_or_default());
    }

    fn call(&mut self, update: &Value) -> Vec<AcpEvent> {
        let text = |key: &str| update.get(key).and_then(Value::as_str);
        let Some(id) = text("toolCallId") else {
            self.unusable += 1;
            return Vec::new();
        };
        let title = text("title").map(|title| foreign::line(title, MAX_TITLE_CHARS));
        let title = title.filter(|title| !title.is_empty());
        let mut events = Vec::new();
        if !self.calls.contains_key(id) {
            if self.calls.len() >= MAX_CALLS {
                self.unusable += 1;
                return events;
            }
            self.interrupted = true;
            self.count += 1;
            let title =
                title.clone().or(text("kind").map(str::to_owned)).unwrap_or_else(|| "tool".to_owned());
            let said = self.text.get(self.told..).unwrap_or_default().trim().to_owned();
            self.told = self.text.len();
            let input = update.get("rawInput").cloned().unwrap_or_default();
            events.push(AcpEvent::Calls { text: said, title: title.clone(), input });
            self.calls.insert(id.to_owned(), SeenCall { order: self.count, title, is_over: false });
        }
        let Some(call) = self.calls.get_mut(id) else { return events };
        if let Some(title) = title {
            call.title = title;
        }
        let failed = match text("status").unwrap_or_default() {
            "completed" => false,
            "failed" => true,
            _ => return events,
        };
        if !std::mem::replace(&mut call.is_over, true) {
            let (title, text) = (call.title.clone(), contents(update));
            events.push(AcpEvent::Called { title, failed, text });
        }
        events
    }

    fn plan(&mut self, update: &Value) {
        let Some(entries) = update.get("entries").and_then(Value::as_array) else {
            self.unusable += 1;
            return;
        };
        let is_current = |entry: &&Value| entry.get("status").and_then(Value::as_str) == Some("in_progress");
        let line = |entry: &Value| Some(foreign::line(entry.get("content")?.as_str()?, MAX_TITLE_CHARS));
        self.plan = entries.iter().filter(is_current).filter_map(line).collect();
    }

    /// Returns the agent's current activity.
    fn current(&self) -> Vec<String> {
        let mut running: Vec<&SeenCall> = self.calls.values().filter(|call| !call.is_over).collect();
        running.sort_by_key(|call| call.order);
        match running.is_empty() {
            true => self.plan.clone(),
            false => running.into_iter().map(|call| call.title.clone()).collect(),
        }
    }
}

/// Returns the texts of a call's contents; a change of a file is the file's path.
pub(crate) fn contents(call: &Value) -> String {
    let one = |content: &Value| {
        let text = |key: &str| content.get(key).and_then(Value::as_str);
        match text("type")? {
            "content" => content.get("content")?.get("text")?.as_str().map(str::to_owned),
            "diff" => text("path").map(str::to_owned),
            _ => None,
        }
    };
    let all = call.get("content").and_then(Value::as_array).into_iter().flatten();
    all.filter_map(one).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn say(text: &str) -> Value {
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})
    }

    #[test]
    fn the_text_of_an_agent_is_joined_and_its_thoughts_are_not_part_of_it() {
        let mut updates = Updates::default();
        for update in [
            say("One"),
            say(" and two."),
            json!({"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "secret"}}),
            json!({"sessionUpdate": "tool_call", "toolCallId": "a", "title": "Read", "status": "completed"}),
            say("Three."),
            json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "image", "data": "AA=="}}),
            json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "resource_link", "uri": "file:///a", "name": "a"}}),
            json!({"sessionUpdate": "dream", "content": 7}),
            json!({"sessionUpdate": "tool_call"}),
            json!(7),
        ] {
            updates.take(&update);
        }
        assert_eq!(updates.text, "One and two.\n\nThree.[a](file:///a)");
        assert_eq!((updates.other_contents, updates.unusable), (1, 3));
        updates.take(&say(&"ü".repeat(MAX_TEXT_BYTES)));
        assert!(updates.is_cut && updates.text.len() <= MAX_TEXT_BYTES);
    }

    #[test]
    fn people_see_the_running_calls_or_else_the_plan() {
        let mut updates = Updates::default();
        let plan = json!({"sessionUpdate": "plan", "entries": [
            {"content": "read", "status": "completed"}, {"content": "write\nit", "status": "in_progress"}, 7]});
        assert_eq!(updates.take(&plan), [AcpEvent::Does(vec!["write it".into()])]);
        updates.take(&say("Let me look."));
        let begins = json!({"sessionUpdate": "tool_call", "toolCallId": "1", "title": "Read a.txt", "rawInput": {"path": "a"}});
        let calls = AcpEvent::Calls {
            text: "Let me look.".into(),
            title: "Read a.txt".into(),
            input: json!({"path": "a"}),
        };
        assert_eq!(updates.take(&begins), [calls, AcpEvent::Does(vec!["Read a.txt".into()])]);
        // The same id again is the same call.
        assert_eq!(updates.take(&begins), []);
        let ends = json!({"sessionUpdate": "tool_call_update", "toolCallId": "1", "status": "failed",
            "content": [{"type": "content", "content": {"type": "text", "text": "no such file"}}]});
        let called =
            AcpEvent::Called { title: "Read a.txt".into(), failed: true, text: "no such file".into() };
        assert_eq!(updates.take(&ends), [called, AcpEvent::Does(vec!["write it".into()])]);
        assert_eq!(updates.take(&ends), []);
    }
}
