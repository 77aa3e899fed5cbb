//! Requests for permission: the text for people, and the option that matches a decision.
//!
//! Agents offer options of four kinds, and several of the same kind. The reading is strict where it matters: only an
//! option that the agent marks as an approval approves, and only an option that it offers is chosen.

use crate::update::contents;
use pudu_base::foreign;
use serde_json::{Value, json};

/// Maximum length of a title, in characters.
const MAX_TITLE_CHARS: usize = 300;
/// Maximum length of an option's name, in characters.
const MAX_NAME_CHARS: usize = 80;

/// An agent's request for permission.
#[derive(Clone, Debug, PartialEq)]
pub struct PermissionRequest {
    /// The action: one line.
    pub title: String,
    /// Name of the option that an approval chooses, if it also covers later actions.
    pub lasting: Option<String>,
    /// The whole request, for people; `None` if the title says all.
    pub whole: Option<String>,
    options: Vec<PermissionChoice>,
}

/// An option of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PermissionChoice {
    id: String,
    name: String,
    kind: String,
}

impl PermissionRequest {
    /// Reads a request. Options that cannot be chosen are passed over.
    pub(crate) fn read(params: &Value) -> Self {
        let call = params.get("toolCall").unwrap_or(&Value::Null);
        let text = |key: &str| call.get(key).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
        let title = text("title").or(text("kind")).unwrap_or("an action without a title");
        let title = foreign::line(title, MAX_TITLE_CHARS);
        let options = params.get("options").and_then(Value::as_array).into_iter().flatten();
        let options: Vec<_> = options.filter_map(PermissionChoice::read).collect();
        let mut request = Self { title, lasting: None, whole: whole(call), options };
        request.lasting = request.approving().and_then(PermissionChoice::lasting);
        request
    }

    /// Returns whether the agent offers an approval.
    #[must_use]
    pub fn can_be_approved(&self) -> bool {
        self.approving().is_some()
    }

    /// Returns the result of the request for a decision.
    pub(crate) fn outcome(&self, approved: bool) -> Value {
        let chosen = if approved { self.approving() } else { self.rejecting() };
        match chosen {
            Some(choice) => json!({ "outcome": { "outcome": "selected", "optionId": choice.id } }),
            None => json!({ "outcome": { "outcome": "cancelled" } }),
        }
    }

    /// Returns the narrowest approval.
    fn approving(&self) -> Option<&PermissionChoice> {
        self.first("allow_once").or_else(|| self.first("allow_always"))
    }

    /// Returns the mildest rejection. Some agents offer two rejections of the same kind, and end the whole work on the one
    /// that is called a cancellation, as they do on an outcome without an option.
    fn rejecting(&self) -> Option<&PermissionChoice> {
        let mild = self.options.iter().find(|choice| choice.kind == "reject_once" && !choice.ends_work());
        mild.or_else(|| self.first("reject_always")).or_else(|| self.first("reject_once"))
    }

    fn first(&self, kind: &str) -> Option<&PermissionChoice> {
        self.options.iter().find(|choice| choice.kind == kind)
    }
}

impl PermissionChoice {
    fn read(option: &Value) -> Option<Self> {
        let text = |key: &str| option.get(key).and_then(Value::as_str).map(str::to_owned);
        let id = text("optionId")?;
        Some(Self { name: text("name").unwrap_or_else(|| id.clone()), kind: text("kind")?, id })
    }

    fn ends_work(&self) -> bool {
        let id = self.id.to_lowercase();
        id.contains("cancel") || id.contains("abort")
    }

    /// Returns the name for people of a choice that covers later actions.
    fn lasting(&self) -> Option<String> {
        (self.kind == "allow_always").then(|| foreign::line(&self.name, MAX_NAME_CHARS))
    }
}

/// Returns the arguments, the contents and the places of a call, if it has any.
fn whole(call: &Value) -> Option<String> {
    let mut parts = Vec::new();
    if let Some(input) = call.get("rawInput").filter(|input| !input.is_null()) {
        parts.push(match input {
            Value::String(text) => text.clone(),
            other => serde_json::to_string_pretty(other).unwrap_or_default(),
        });
    }
    let diffs = call.get("content").and_then(Value::as_array).into_iter().flatten();
    for diff in diffs.filter(|content| content.get("type").and_then(Value::as_str) == Some("diff")) {
        let text = |key: &str| diff.get(key).and_then(Value::as_str).unwrap_or_default();
        parts.push(format!("{}\nbefore:\n{}\nafter:\n{}", text("path"), text("oldText"), text("newText")));
    }
    let said = contents(call);
    if !said.is_empty() {
        parts.push(said);
    }
    let places = call.get("locations").and_then(Value::as_array).into_iter().flatten();
    let places: Vec<&str> = places.filter_map(|place| place.get("path")?.as_str()).collect();
    if !places.is_empty() {
        parts.push(places.join("\n"));
    }
    (!parts.is_empty()).then(|| foreign::text(&parts.join("\n\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn option(id: &str, kind: &str) -> Value {
        json!({"optionId": id, "name": format!("Name of {id}"), "kind": kind})
    }

    fn chosen(outcome: &Value) -> Option<&str> {
        outcome["outcome"]["optionId"].as_str()
    }

    #[test]
    fn a_decision_chooses_the_narrowest_offered_option() {
        let check = |options: &[Value], approve: Option<&str>, deny: Option<&str>| {
            let request = PermissionRequest::read(&json!({"toolCall": {"title": "x"}, "options": options}));
            let answers = [request.outcome(true), request.outcome(false)];
            assert_eq!((chosen(&answers[0]), chosen(&answers[1])), (approve, deny), "{options:?}");
            assert_eq!(request.can_be_approved(), approve.is_some());
            for answer in answers {
                let word = if chosen(&answer).is_some() { "selected" } else { "cancelled" };
                assert_eq!(answer["outcome"]["outcome"], word);
            }
        };
        let all = ["allow_always", "allow_once", "reject_always", "reject_once"];
        let all: Vec<Value> = all.iter().map(|kind| option(kind, kind)).collect();
        check(&all, Some("allow_once"), Some("reject_once"));
        check(&[option("a", "allow_always")], Some("a"), None);
        // Codex has two rejections, and one ends the whole work.
        let codex = [
            option("approved", "allow_once"),
            option("cancel", "reject_once"),
            option("decline", "reject_once"),
        ];
        check(&codex, Some("approved"), Some("decline"));
        check(&codex[..2], Some("approved"), Some("cancel"));
        check(&[], None, None);
        check(&[json!(7), json!({"optionId": "x"}), option("odd", "allow_forever")], None, None);
    }

    #[test]
    fn people_read_the_whole_action_and_the_scope_of_an_approval() {
        let request = PermissionRequest::read(&json!({
            "toolCall": {"toolCallId": "1", "title": "Run\n`rm -rf /`", "rawInput": {"command": "rm -rf /"},
                "content": [{"type": "diff", "path": "/a", "oldText": "one", "newText": "two"}], "locations": [{"path": "/a"}]},
            "options": [option("always", "allow_always")],
        }));
        assert_eq!(request.title, "Run `rm -rf /`");
        assert_eq!(request.lasting.as_deref(), Some("Name of always"));
        let whole = request.whole.unwrap();
        for part in ["\"command\": \"rm -rf /\"", "before:\none\nafter:\ntwo", "\n\n/a"] {
            assert!(whole.contains(part), "{whole}");
        }
        let bare = PermissionRequest::read(&Value::Null);
        assert_eq!(
            (bare.title.as_str(), bare.whole, bare.lasting),
            ("an action without a title", None, None)
        );
    }
}
