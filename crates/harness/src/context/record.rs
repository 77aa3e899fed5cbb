//! Records that must survive a summary: skills that were read, and work given to sub-agents. They are taken from the
//! messages rather than left to a model.

use super::mask::skill_path;
use crate::task_end::{CANCELLED, TASK};
use pudu_base::{CallId, Compaction, Delegation, DelegationStatus, Message, ToolCall, ToolResult, foreign};
use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

/// Maximum number of newest skills that are kept.
const MAX_SKILLS: usize = 8;
/// Maximum number of newest delegations that are kept.
const MAX_DELEGATIONS: usize = 50;
/// Maximum length of a task's description, in characters.
const MAX_TASK_CHARS: usize = 200;
/// Maximum length of the kept part of a report, in characters.
const MAX_BRIEF_CHARS: usize = 300;

/// Returns the skills that were read in the left-out messages and before.
pub(super) fn skills(
    last: Option<&Compaction>,
    left_out: &[Arc<Message>],
    tools: &BTreeSet<String>,
) -> Vec<String> {
    let results = results(left_out);
    let mut skills: Vec<String> = last.map(|last| last.skills.clone()).unwrap_or_default();
    for call in calls(left_out) {
        let read = results.get(&call.id).is_some_and(|result| !result.error);
        if let Some(path) = skill_path(call, tools).filter(|_| read) {
            skills.retain(|known| known != path);
            skills.push(path.to_owned());
        }
    }
    let old = skills.len().saturating_sub(MAX_SKILLS);
    skills.split_off(old)
}

/// Returns the work given to sub-agents in the left-out messages and before.
pub(super) fn delegations(last: Option<&Compaction>, left_out: &[Arc<Message>]) -> Vec<Delegation> {
    let results = results(left_out);
    let mut all: Vec<Delegation> = last.map(|last| last.delegations.clone()).unwrap_or_default();
    for call in calls(left_out).filter(|call| call.name == TASK) {
        all.retain(|known| known.call != call.id);
        all.push(delegation(call, results.get(&call.id).copied()));
    }
    let old = all.len().saturating_sub(MAX_DELEGATIONS);
    all.split_off(old)
}

fn delegation(call: &ToolCall, result: Option<&ToolResult>) -> Delegation {
    let said = |key: &str| call.args.get(key).and_then(serde_json::Value::as_str).unwrap_or_default();
    let (status, brief) = match result {
        None => (DelegationStatus::InProgress, ""),
        Some(result) => outcome(result),
    };
    Delegation {
        call: call.id.clone(),
        task: foreign::line(said("description"), MAX_TASK_CHARS),
        agent: foreign::line(said("subagent_type"), MAX_TASK_CHARS),
        status,
        brief: foreign::line(brief, MAX_BRIEF_CHARS),
    }
}

/// Parses a report as written by this or an older version of the tool.
fn outcome(result: &ToolResult) -> (DelegationStatus, &str) {
    let text = result.text.as_str();
    let marks = [
        ("Task Succeeded", DelegationStatus::Completed),
        ("Task timed out", DelegationStatus::TimedOut),
        ("Task failed", DelegationStatus::Failed),
    ];
    if text == CANCELLED {
        return (DelegationStatus::Cancelled, "");
    }
    let found = marks.iter().find_map(|(mark, status)| Some((*status, text.strip_prefix(mark)?)));
    let (status, rest) = found.unwrap_or((DelegationStatus::Failed, text));
    // The status is followed by an optional limit in brackets and the kind of the remaining text.
    let brief = [". Result:", ". Error:", "."].into_iter().find_map(|mark| rest.strip_prefix(mark));
    (status, brief.unwrap_or(rest).trim_start())
}

fn calls(messages: &[Arc<Message>]) -> impl Iterator<Item = &ToolCall> {
    let replies = messages.iter().filter_map(|message| match &**message {
        Message::Assistant(reply) => Some(&reply.calls),
        Message::Human(_) | Message::Tool(_) | Message::Reminder(_) => None,
    });
    replies.flatten()
}

fn results(messages: &[Arc<Message>]) -> HashMap<&CallId, &ToolResult> {
    let results = messages.iter().filter_map(|message| match &**message {
        Message::Tool(result) => Some((&result.call, result)),
        Message::Human(_) | Message::Assistant(_) | Message::Reminder(_) => None,
    });
    results.collect()
}
