//! Skills that are active in a run: one that a user requested with `/name` at the beginning of a message, and each
//! whose `SKILL.md` the model has read since.
//!
//! All of this is derived from the thread, so a run that a restart interrupted continues with the same skills, and the
//! next run begins without any. The thread keeps the instructions below the requesting message, so that later requests
//! begin like the one that first had them.

use super::{Gate, Middleware};
use crate::{DESCRIBE_SKILL, RunState};
use pudu_base::{
    BoxFuture, Human, Message, MessageId, Request, RunFailure, Skill, ToolCall, Update, foreign,
};
use std::{collections::HashSet, path::Path, sync::Arc};

/// Tools that any skill may use: to look around, to ask, and to deliver results.
const ALWAYS: [&str; 9] = [
    "read_file",
    "ls",
    "glob",
    "grep",
    "list_uploaded_files",
    "tool_search",
    DESCRIBE_SKILL,
    "ask_clarification",
    "present_files",
];
/// Name of the tool that reads a skill's instructions.
const READ: &str = "read_file";

/// Gives the model the skill that a user requested, and restricts active skills to the tools that they declare.
#[derive(Clone, Debug, Default)]
pub struct SkillPolicy {
    skills: Arc<[Skill]>,
    /// The first message of this run; earlier messages are ignored.
    first: Option<MessageId>,
}

impl SkillPolicy {
    /// Creates it for a run that begins with a message.
    #[must_use]
    pub fn new(skills: Arc<[Skill]>, first: Option<MessageId>) -> Self {
        Self { skills, first }
    }

    /// Returns the messages of this run.
    fn run_messages<'a>(&self, run_state: &'a RunState) -> impl DoubleEndedIterator<Item = &'a Arc<Message>> {
        let messages = &run_state.state().messages;
        let last = || messages.values().rposition(|message| matches!(**message, Message::Human(_)));
        let first = self.first.as_ref().and_then(|id| messages.get_index_of(id)).or_else(last);
        messages.values().skip(first.unwrap_or(messages.len()))
    }

    /// Returns the messages that request a skill but lack its instructions, with the instructions added. Stored in the
    /// thread, they stay the same in later requests.
    fn unguided(&self, run_state: &RunState) -> Vec<Arc<Message>> {
        let guided = |message: &Arc<Message>| match &**message {
            Message::Human(human) if human.guide.is_none() => {
                let guide = Some(block(asked(&self.skills, human)?));
                Some(Arc::new(Message::Human(Human { guide, ..human.clone() })))
            }
            _ => None,
        };
        self.run_messages(run_state).filter_map(guided).collect()
    }

    /// Returns the active skills, the ones requested by a user first.
    fn active(&self, run_state: &RunState) -> Vec<&Skill> {
        let (mut active, read) = self.asked_and_read(run_state);
        active.extend(read);
        active
    }

    /// Returns the active skills whose commands get their secrets: the ones that a user requested by name, and the ones
    /// that declare that being read is enough.
    #[must_use]
    pub fn with_secrets(&self, run_state: &RunState) -> Vec<&Skill> {
        let (mut active, read) = self.asked_and_read(run_state);
        active.extend(read.into_iter().filter(|skill| skill.secrets.autonomous));
        active.retain(|skill| !skill.secrets.required.is_empty());
        let mut seen = HashSet::new();
        active.retain(|skill| seen.insert(skill.name.as_str()));
        active
    }

    /// Returns the skills that a user requested in this run, and the ones that were read.
    fn asked_and_read(&self, run_state: &RunState) -> (Vec<&Skill>, Vec<&Skill>) {
        let (mut read, mut failed) = (Vec::new(), HashSet::new());
        let mut active: Vec<&Skill> = Vec::new();
        for message in self.run_messages(run_state) {
            match &**message {
                Message::Human(human) => active.extend(asked(&self.skills, human)),
                Message::Assistant(reply) => read.extend(reply.calls.iter().filter(|call| call.name == READ)),
                Message::Tool(result) if result.error => {
                    failed.insert(&result.call);
                }
                Message::Tool(_) | Message::Reminder(_) => {}
            }
        }
        let open = run_state.open_calls();
        let done = |call: &&&ToolCall| !failed.contains(&call.id) && !open.contains(call);
        let skill_at = |call: &&ToolCall| {
            let path = call.args.get("path").and_then(serde_json::Value::as_str).unwrap_or_default();
            // Compared as paths, so that `x/./SKILL.md` is the same.
            self.skills.iter().find(|skill| Path::new(&skill.path) == Path::new(path))
        };
        (active, read.iter().filter(done).filter_map(skill_at).collect())
    }
}

/// Finds the skill that a message requests with its first word.
#[must_use]
pub fn asked<'a>(skills: &'a [Skill], human: &Human) -> Option<&'a Skill> {
    let word = human.text.strip_prefix('/')?.split(char::is_whitespace).next()?;
    named(skills, word)
}

/// Finds a skill that users may start, by its name as typed: some platforms allow no hyphen in a command.
#[must_use]
pub fn named<'a>(skills: &'a [Skill], word: &str) -> Option<&'a Skill> {
    let name = word.to_lowercase().replace('_', "-");
    skills.iter().find(|skill| skill.name == name && skill.invocation.by_people)
}

impl Middleware for SkillPolicy {
    fn name(&self) -> &'static str {
        "skill_policy"
    }

    fn before_model<'a>(
        &'a mut self,
        run_state: &'a mut RunState,
        request: &'a mut Request,
    ) -> BoxFuture<'a, Result<(), RunFailure>> {
        for guided in self.unguided(run_state) {
            run_state.apply(Update::Message(guided.clone()));
            let requesting = request.messages.iter_mut().find(|message| message.id() == guided.id());
            if let Some(message) = requesting {
                *message = guided;
            }
        }
        Box::pin(std::future::ready(Ok(())))
    }

    fn allowed_tools(&self, run_state: &RunState) -> Option<Arc<[String]>> {
        let active = self.active(run_state);
        let mut declared = active.iter().filter_map(|skill| skill.tools.as_ref()).peekable();
        declared.peek()?;
        let always = ALWAYS.iter().map(|&name| name.to_owned());
        Some(declared.flatten().cloned().chain(always).collect())
    }

    fn secret_names(&self, run_state: &RunState) -> Vec<String> {
        let skills = self.with_secrets(run_state).into_iter();
        skills.flat_map(|skill| &skill.secrets.required).map(|secret| secret.name.clone()).collect()
    }

    fn before_tool(&mut self, run_state: &RunState, call: &ToolCall) -> Gate {
        let active = self.active(run_state);
        let declared: Vec<&str> =
            active.iter().filter_map(|skill| skill.tools.as_ref()).flatten().map(String::as_str).collect();
        let free = active.iter().all(|skill| skill.tools.is_none());
        if free || ALWAYS.contains(&call.name.as_str()) || declared.contains(&call.name.as_str()) {
            return Gate::Allow;
        }
        let bound: Vec<&str> =
            active.iter().filter(|skill| skill.tools.is_some()).map(|skill| skill.name.as_str()).collect();
        let tools = if declared.is_empty() { "no others".to_owned() } else { declared.join(", ") };
        Gate::Deny(format!(
            "Error: {} may not be used while the skill {} is active. It allows {tools}, besides {}. Use those tools, or explain why they are not enough.",
            call.name,
            bound.join(", "),
            ALWAYS.join(", "),
        ))
    }
}

/// Returns the instructions that are added below a message that requests a skill.
fn block(skill: &Skill) -> String {
    let Skill { name, path, text, tools, secrets, .. } = skill;
    let folder = path.strip_suffix("/SKILL.md").unwrap_or(path);
    let limits = match tools {
        Some(tools) => format!(
            " While it is active only these tools may be used: {}.",
            [&ALWAYS.join(", "), &tools.join(", ")].map(String::as_str).join(", ")
        ),
        None => String::new(),
    };
    let names: Vec<&str> = secrets.required.iter().map(|secret| secret.name.as_str()).collect();
    let limits = match names.as_slice() {
        [] => limits,
        names => format!(
            "{limits} Commands of bash have these variables if the person has provided them; their values must not be shown: {}.",
            names.join(", ")
        ),
    };
    format!(
        "<skill name=\"{name}\" path=\"{path}\">\n{}\n</skill>\n\nThe message above requests the skill {name} by its first word; the rest of the message is the request. Follow the skill for this request, and for later requests only if they continue it. Its other files are in {folder}.{limits}",
        foreign::text(text.trim())
    )
}

#[cfg(test)]
mod tests;
