//! The built-in model for installations without a configured one. It describes itself, echoes, and calls a tool on
//! request, so that every step of a message can be tried without an API key.

use futures_util::{StreamExt, stream};
use pudu_base::{Delta, Finish, Message, Model, ModelStream, Request, ToolCall, Usage};
use serde_json::Value;

/// The built-in model. The message `/tool NAME {json}` makes it call a tool.
#[derive(Clone, Copy, Debug, Default)]
pub struct Offline;

impl Offline {
    /// Name of the model for users.
    pub const NAME: &'static str = "offline";
}

impl Model for Offline {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn only_echoes(&self) -> bool {
        true
    }

    fn stream(&self, request: Request) -> ModelStream {
        let mut deltas = reply(&request);
        let output = deltas.len() as u64;
        let input = request.messages.iter().map(|m| m.text().split_whitespace().count() as u64).sum();
        deltas.push(Delta::Usage(Usage::plain(input, output)));
        deltas.push(Delta::Finish(Finish::Complete));
        stream::iter(deltas.into_iter().map(Ok)).boxed()
    }
}

fn reply(request: &Request) -> Vec<Delta> {
    match request.messages.last().map(AsRef::as_ref) {
        Some(Message::Tool(result)) => {
            let verb = if result.error { "failed" } else { "answered" };
            word_deltas(&format!("The tool `{}` {verb}:\n\n```\n{}\n```", result.tool, result.text))
        }
        Some(Message::Human(human)) => match parse_tool_command(&human.text) {
            Some((name, args)) => vec![Delta::Call(call(request, name, args))],
            None => word_deltas(&echo(&human.text, request)),
        },
        _ => word_deltas("There is nothing to answer."),
    }
}

/// Parses `/tool NAME {json}`.
fn parse_tool_command(text: &str) -> Option<(&str, &str)> {
    let rest = text.trim().strip_prefix("/tool")?.strip_prefix(char::is_whitespace)?.trim_start();
    Some(rest.split_once(char::is_whitespace).unwrap_or((rest, "{}")))
}

fn call(request: &Request, name: &str, args: &str) -> ToolCall {
    let args = args.trim();
    let parsed = serde_json::from_str::<Value>(args).ok().filter(Value::is_object);
    ToolCall {
        id: format!("offline-{}", request.messages.len()).into(),
        name: name.to_owned(),
        garbled: parsed.is_none().then(|| args.to_owned()),
        args: parsed.unwrap_or_else(|| Value::Object(serde_json::Map::default())),
    }
}

fn echo(text: &str, request: &Request) -> String {
    let tools: Vec<String> = request.tools.iter().map(|tool| format!("`{}`", tool.name)).collect();
    format!(
        "I am pudu's built-in **offline** model: no language model is configured, so I only echo.\n\n\
         > {}\n\n\
         Type `/tool NAME {{json}}` and I call a tool, for example `/tool ls {{\"path\": \"/mnt/user-data\"}}`. \
         Tools here: {}.",
        text.trim().replace('\n', "\n> "),
        tools.join(", ")
    )
}

/// Splits a text into words with trailing spaces, like a streaming model.
fn word_deltas(text: &str) -> Vec<Delta> {
    text.split_inclusive(char::is_whitespace).map(|word| Delta::Text(word.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudu_base::Human;
    use serde_json::json;
    use std::sync::Arc;

    fn ask(text: &str) -> Vec<Delta> {
        let human = Human::new("1", text);
        reply(&Request { messages: vec![Arc::new(Message::Human(human))], ..Request::default() })
    }

    #[test]
    fn the_offline_model_describes_itself_and_echoes() {
        let text: String = ask("hi there\nfriend")
            .into_iter()
            .map(|delta| match delta {
                Delta::Text(text) => text,
                other => panic!("{other:?}"),
            })
            .collect();
        assert!(text.starts_with("I am pudu's built-in **offline** model"), "{text}");
        assert!(text.contains("> hi there\n> friend\n"), "{text}");
    }

    #[test]
    fn the_offline_model_calls_the_requested_tool() {
        let check = |text: &str, name: &str, args: Value, garbled: Option<&str>| {
            let expect = ToolCall {
                id: "offline-1".into(),
                name: name.into(),
                args,
                garbled: garbled.map(Into::into),
            };
            assert_eq!(ask(text), [Delta::Call(expect)], "{text}");
        };
        check("/tool ls", "ls", json!({}), None);
        check(r#"/tool ls {"path": "/mnt"}"#, "ls", json!({"path": "/mnt"}), None);
        check("/tool ls {oops", "ls", json!({}), Some("{oops"));
        check("/tool ls [1]", "ls", json!({}), Some("[1]"));
    }
}
