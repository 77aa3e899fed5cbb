//! The agent's to-do list: kept visible while the agent works, and shown again if it answers with entries left.
//!
//! Deliberately absent: the list itself. The thread stores it, and `write_todos` changes it.

use super::{AnswerCheck, Gate, Middleware};
use crate::RunState;
use pudu_base::{
    Assistant, BoxFuture, Finish, Message, Request, RunFailure, Todo, TodoStatus, ToolCall, ToolError,
    ToolOutput, foreign,
};
use std::fmt::Write;

/// Name of the tool that writes the list.
const WRITE_TODOS: &str = "write_todos";
/// Maximum number of times that a run is sent back to its list, as in DeerFlow.
const MAX_UNFINISHED_REMINDERS: usize = 2;
/// Maximum length of a repeated entry, in characters.
const MAX_ENTRY_CHARS: usize = 200;
/// Beginning of the reminder that shows the list again.
const OUT_OF_SIGHT: &str = "Your to-do list is no longer visible above.";
/// Beginning of the reminder that sends a run back to its list.
const UNFINISHED: &str = "You have answered, but your to-do list has entries that are not completed:";

/// Reminds a run of its list.
#[derive(Debug, Default)]
pub struct TodoReminders {
    /// Whether this run has written the list. A list left by an earlier run does not affect the answer.
    written: bool,
    /// Number of times that the run was sent back.
    sent_back: usize,
}

impl Middleware for TodoReminders {
    fn name(&self) -> &'static str {
        "todo_reminders"
    }

    /// Restores the state of a run that was interrupted by a crash.
    fn before_run<'a>(&'a mut self, run_state: &'a mut RunState) -> BoxFuture<'a, Result<(), RunFailure>> {
        for message in run_state.since_asked() {
            match &**message {
                Message::Tool(result) => self.written |= result.tool == WRITE_TODOS && !result.error,
                Message::Reminder(reminder) => {
                    self.sent_back += usize::from(reminder.text.starts_with(UNFINISHED));
                }
                Message::Human(_) | Message::Assistant(_) => {}
            }
        }
        Box::pin(std::future::ready(Ok(())))
    }

    fn before_model<'a>(
        &'a mut self,
        run_state: &'a mut RunState,
        request: &'a mut Request,
    ) -> BoxFuture<'a, Result<(), RunFailure>> {
        let todos = &run_state.state().todos;
        if !unfinished(todos).is_empty() && !request.messages.iter().any(|message| shows_list(message)) {
            let text = format!(
                "{OUT_OF_SIGHT} Its current state:\n{}\nIf it is still valid, continue with it and keep it up to date.",
                list(todos)
            );
            run_state.remind(request, text);
        }
        Box::pin(std::future::ready(Ok(())))
    }

    fn before_tool(&mut self, run_state: &RunState, call: &ToolCall) -> Gate {
        if call.name != WRITE_TODOS
            || run_state.newest_calls().iter().filter(|c| c.name == call.name).count() < 2
        {
            return Gate::Allow;
        }
        Gate::Deny(
            "Error: write_todos replaces the whole list, so it can be called only once in a reply. None of these \
             calls was made. Write one list."
                .to_owned(),
        )
    }

    fn after_tool(&mut self, _: &RunState, call: &ToolCall, result: &mut Result<ToolOutput, ToolError>) {
        self.written |= call.name == WRITE_TODOS && result.is_ok();
    }

    fn check_answer(&mut self, run_state: &RunState, reply: &Assistant) -> AnswerCheck {
        let left = unfinished(&run_state.state().todos);
        let is_final = reply.finish == Finish::Complete && !reply.text.trim().is_empty();
        if left.is_empty() || !is_final || !self.written || self.sent_back >= MAX_UNFINISHED_REMINDERS {
            return AnswerCheck::Accept;
        }
        self.sent_back += 1;
        AnswerCheck::AskAgain(format!(
            "{UNFINISHED}\n{}\nDo them now. If they are done or no longer needed, update the list and \
             finish with a short sentence. People have read your answer: do not repeat it.",
            list(&left)
        ))
    }
}

/// Returns the entries that are not completed.
fn unfinished(todos: &[Todo]) -> Vec<Todo> {
    todos.iter().filter(|todo| todo.status != TodoStatus::Completed).cloned().collect()
}

/// Returns whether a message of a request shows the list to the model.
fn shows_list(message: &Message) -> bool {
    match message {
        Message::Assistant(reply) => reply.calls.iter().any(|call| call.name == WRITE_TODOS),
        Message::Reminder(reminder) => reminder.text.starts_with(OUT_OF_SIGHT),
        Message::Human(_) | Message::Tool(_) => false,
    }
}

fn list(todos: &[Todo]) -> String {
    todos.iter().fold(String::new(), |mut list, Todo { content, status }| {
        let state = match status {
            TodoStatus::Pending => "pending",
            TodoStatus::InProgress => "in progress",
            TodoStatus::Completed => "completed",
        };
        // Writing to a String cannot fail.
        let _ = writeln!(list, "- [{state}] {}", foreign::line(content, MAX_ENTRY_CHARS));
        list
    })
}

#[cfg(test)]
mod tests;
