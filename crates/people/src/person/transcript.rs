//! A thread as readable text.

use pudu_base::{Assistant, Message, ThreadState};
use pudu_langgraph::failure::failure;
use std::fmt::Write;

/// Renders the messages of a thread as Markdown, without reminders, which no person wrote.
pub(super) fn markdown(title: &str, state: &ThreadState) -> String {
    let mut text = format!("# {}\n", if title.is_empty() { "Conversation" } else { title });
    for message in state.messages.values() {
        // Writing to a String cannot fail.
        let _ = match &**message {
            Message::Human(human) => {
                let name = human.sender.as_deref().unwrap_or("You");
                let files: Vec<&str> = human.files.iter().map(|file| file.path.as_str()).collect();
                let files =
                    if files.is_empty() { String::new() } else { format!("\n\nFiles: {}", files.join(", ")) };
                write!(text, "\n## {name}\n\n{}{files}\n", human.text)
            }
            Message::Assistant(Assistant { failure: Some(outcome), .. }) => {
                let why = failure(outcome).map(|(_, why)| why).unwrap_or_default();
                write!(text, "\n## No answer\n\n{why}\n")
            }
            Message::Assistant(reply) => {
                let calls: Vec<String> = reply
                    .calls
                    .iter()
                    .map(|call| format!("\n\n> called `{}` with {}", call.name, call.args))
                    .collect();
                write!(text, "\n## Agent\n\n{}{}\n", reply.text, calls.concat())
            }
            Message::Tool(result) => write!(text, "\n## Result of `{}`\n\n{}\n", result.tool, result.text),
            Message::Reminder(_) => Ok(()),
        };
    }
    text
}
