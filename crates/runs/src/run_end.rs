//! The end of a run, as reported to the code that replies to users.

use pudu_agent::BudgetNotice;
use pudu_base::{
    Assistant, Decision, Finish, Goal, Human, Message, Outcome, Question, RequiredSecret, RunId, ThreadState,
    Todo, Usage,
};
use pudu_harness::{CompactOutcome, Steering};

/// Maximum length of the shown assistant text, in bytes. The last reply is always shown whole.
const MAX_EARLIER_BYTES: usize = 128 * 1024;

/// The end of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunEnd {
    /// The outcome.
    pub outcome: Outcome,
    /// The assistant's text since the last user message, whole or partial; empty if there is none.
    pub text: String,
    /// Why its last reply ended.
    pub finish: Finish,
    /// Question to users, if the run waits for their answer.
    pub question: Option<Question>,
    /// Approval decisions on its calls, in order.
    pub decisions: Vec<Decision>,
    /// Sandbox paths of files presented to users.
    pub artifacts: Vec<String>,
    /// The agent's to-do list, if it wrote one.
    pub todos: Vec<Todo>,
    /// The thread's goal, if the last reply was judged against it.
    pub goal: Option<Goal>,
    /// The title of the thread, if it may be new; never set for runs of API clients.
    pub title: Option<String>,
    /// Usage of the run.
    pub usage: Usage,
    /// Steering messages that came too late.
    pub unused: Vec<Human>,
    /// Whether the thread has the input. Only stored input can be asked again.
    pub heard: bool,
    /// Whether it summarised the conversation so far, to fit the model's window.
    pub summarized: bool,
    /// Notices shown once.
    pub notes: EndNotes,
    /// Outcome of the summary, if only a summary was requested.
    pub compaction: Option<CompactOutcome>,
}

/// Notices shown once, below the answer of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EndNotes {
    /// Budgets that are nearly used up, if not reported before.
    pub budgets: Vec<BudgetNotice>,
    /// Secrets that its skills need and the user has not provided, each asked for once.
    pub missing_secrets: Vec<MissingSecret>,
}

/// A secret that a skill needs and the user has not provided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingSecret {
    /// The skill's name.
    pub skill: String,
    /// The secret.
    pub secret: RequiredSecret,
}

impl RunEnd {
    /// Creates the end of a run without output, with the steering messages that came too late.
    pub(crate) async fn silent(outcome: Outcome, steering: &Steering) -> Self {
        Self { unused: steering.close().await, ..Self::from(outcome) }
    }

    /// Adds the run's results from the thread.
    pub(crate) fn with_words_of(self, state: &ThreadState, run: &RunId) -> Self {
        Self {
            text: answer_text(state),
            finish: last_reply(state).map(|reply| reply.finish).unwrap_or_default(),
            question: state.question().cloned(),
            decisions: decisions(state),
            artifacts: artifacts(state, run),
            todos: todos(state).to_vec(),
            goal: judged_goal(state),
            summarized: state.context.summaries_of(run) > 0,
            ..self
        }
    }
}

impl From<Outcome> for RunEnd {
    fn from(outcome: Outcome) -> Self {
        Self {
            outcome,
            text: String::new(),
            finish: Finish::default(),
            question: None,
            decisions: Vec::new(),
            artifacts: Vec::new(),
            todos: Vec::new(),
            goal: None,
            title: None,
            usage: Usage::default(),
            unused: Vec::new(),
            heard: false,
            summarized: false,
            notes: EndNotes::default(),
            compaction: None,
        }
    }
}

/// Returns the assistant's replies since the last user message, newest first.
pub(crate) fn replies(state: &ThreadState) -> impl Iterator<Item = &Assistant> {
    let since = state.messages.values().rev().take_while(|message| !matches!(***message, Message::Human(_)));
    since.filter_map(|message| message.reply())
}

/// Returns the agent's to-do list, if it wrote one since the last user message.
pub(crate) fn todos(state: &ThreadState) -> &[Todo] {
    match replies(state).any(|reply| reply.calls.iter().any(|call| call.name == "write_todos")) {
        true => &state.todos,
        false => &[],
    }
}

pub(crate) fn last_reply(state: &ThreadState) -> Option<&Assistant> {
    replies(state).next()
}

/// Returns the assistant's text since the last user message, including text before tool calls. If it exceeds the limit,
/// the earliest replies are left out.
fn answer_text(state: &ThreadState) -> String {
    let mut room = MAX_EARLIER_BYTES;
    let mut included = Vec::new();
    for words in replies(state).map(|reply| reply.text.trim()).filter(|words| !words.is_empty()) {
        let Some(left) = room.checked_sub(words.len()).or(included.is_empty().then_some(0)) else {
            included.push("…");
            break;
        };
        room = left;
        included.push(words);
    }
    included.reverse();
    included.join("\n\n")
}

/// Returns the approval decisions since the last user message, on calls and on their nested calls.
fn decisions(state: &ThreadState) -> Vec<Decision> {
    let spoke = state.messages.values().rposition(|message| matches!(**message, Message::Human(_)));
    let since = state.messages.values().skip(spoke.unwrap_or(0));
    let results = since.filter_map(|message| match &**message {
        Message::Tool(result) => Some(result.decision.iter().chain(&result.decisions)),
        Message::Human(_) | Message::Assistant(_) | Message::Reminder(_) => None,
    });
    results.flatten().cloned().collect()
}

/// Returns the goal of a thread, if its last reply was judged against it.
fn judged_goal(state: &ThreadState) -> Option<Goal> {
    let goal = state.goal.as_ref()?;
    let reply = last_reply(state)?;
    goal.verdict.as_ref().is_some_and(|verdict| verdict.answer == reply.id).then(|| goal.clone())
}

fn artifacts(state: &ThreadState, run: &RunId) -> Vec<String> {
    state.artifacts.iter().filter(|(_, by)| *by == run).map(|(path, _)| path.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudu_base::{ToolResult, Update};
    use std::sync::Arc;

    #[test]
    fn decisions_include_those_of_sub_agents_since_the_last_user_message() {
        let yes = |request: &str| Decision {
            request: request.to_owned(),
            approved: true,
            by: Some("Ada".to_owned()),
            not_asked: false,
        };
        let result = |id: &str, decision: Option<Decision>, decisions: Vec<Decision>| {
            Message::Tool(ToolResult {
                id: id.into(),
                call: id.into(),
                tool: "task".to_owned(),
                text: "ok".to_owned(),
                error: false,
                question: None,
                images: Vec::new(),
                decision,
                decisions,
                task: None,
            })
        };
        let messages = [
            result("1", Some(yes("before")), vec![]),
            Message::Human(Human::new("h", "h")),
            result("2", Some(yes("a")), vec![yes("b"), yes("c")]),
            result("3", Some(yes("d")), vec![]),
        ];
        let state = ThreadState::fold(messages.map(|message| Update::Message(Arc::new(message))));
        assert_eq!(decisions(&state), ["a", "b", "c", "d"].map(yes));
    }
}
