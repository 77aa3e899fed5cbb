//! Masks old tool results: requests contain a pointer in place of each.

use super::estimate::TokenEstimate;
use crate::results;
use pudu_base::{CallId, ContextState, Message, MessageId, ToolResult};
use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
};

/// Number of newest results that are never masked.
const KEPT_RESULTS: usize = 3;
/// Minimum size of a masked result, in bytes. A shorter one is hardly longer than its pointer.
const MIN_BYTES: usize = 512;
/// Maximum length of a path in a pointer, in characters.
const MAX_PATH_CHARS: usize = 400;

/// Calls that read skills. Their results are instructions that still apply, so they are kept.
pub(super) struct SkillReads<'a> {
    tools: &'a BTreeSet<String>,
    calls: HashSet<&'a CallId>,
}

impl<'a> SkillReads<'a> {
    pub(super) fn new(tools: &'a BTreeSet<String>) -> Self {
        Self { tools, calls: HashSet::new() }
    }

    /// Records the calls of a message.
    pub(super) fn note(&mut self, message: &'a Message) {
        if let Message::Assistant(reply) = message {
            let reads = reply.calls.iter().filter(|call| skill_path(call, self.tools).is_some());
            self.calls.extend(reads.map(|call| &call.id));
        }
    }
}

/// Returns the path of a skill's instructions, if a call reads them. Skills may be mounted anywhere except among the
/// agent's own files.
pub(super) fn skill_path<'a>(call: &'a pudu_base::ToolCall, tools: &BTreeSet<String>) -> Option<&'a str> {
    const OWN: &str = "/mnt/user-data/";
    let path = ["path", "file_path"].iter().find_map(|key| call.args.get(key)?.as_str())?;
    let skill = path.starts_with("/mnt/") && !path.starts_with(OWN) && path.ends_with("/SKILL.md");
    (skill && tools.contains(&call.name)).then_some(path)
}

/// Returns the pointer that replaces a result; `None` for a message that stays unchanged.
pub(super) fn masked(
    message: &Message,
    context: &ContextState,
    reads: &SkillReads<'_>,
) -> Option<Arc<Message>> {
    let Message::Tool(result) = message else { return None };
    if !is_maskable(result, reads) {
        return None;
    }
    let path = context.kept.get(&result.id).map(String::as_str).or_else(|| results::kept_in(&result.text));
    let text = pointer(result, path);
    Some(Arc::new(Message::Tool(ToolResult { text, images: Vec::new(), ..result.clone() })))
}

fn is_maskable(result: &ToolResult, reads: &SkillReads<'_>) -> bool {
    result.text.len() >= MIN_BYTES && !reads.calls.contains(&result.call)
}

fn pointer(result: &ToolResult, kept: Option<&str>) -> String {
    let (tool, count) = (&result.tool, result.text.chars().count());
    let way = match kept {
        Some(path) => {
            let path: String = path.chars().take(MAX_PATH_CHARS).collect();
            format!("It is stored in {path}: read that file, in full or in part, if you need it again.")
        }
        None => format!(
            "Call {tool} again with the same arguments if you need it, unless that would repeat an effect."
        ),
    };
    format!("[This result of {tool}, {count} characters, is omitted here to save room. {way}]")
}

/// How many tokens masking should free.
#[derive(Clone, Copy)]
pub(super) struct MaskGoal {
    /// Number of freed tokens at which masking ends.
    pub(super) need: u64,
    /// Minimum number of freed tokens that makes masking worthwhile.
    pub(super) least: u64,
}

/// Planned masking.
pub(super) struct MaskPlan {
    /// The last message that is masked.
    pub(super) through: MessageId,
    /// Newly masked results that are not stored in a file.
    pub(super) unkept: Vec<Arc<Message>>,
}

/// Chooses results to mask, oldest first, until the goal is reached; `None` if less than its minimum would be freed.
/// `all` includes the newest results.
pub(super) fn plan(
    messages: &[Arc<Message>],
    context: &ContextState,
    skill_tools: &BTreeSet<String>,
    estimate: TokenEstimate,
    goal: MaskGoal,
    all: bool,
) -> Option<MaskPlan> {
    let MaskGoal { need, least } = goal;
    let position = |id: &MessageId| messages.iter().position(|message| message.id() == id);
    let left = context.compaction.as_ref().and_then(|left| position(&left.through)).map_or(0, |at| at + 1);
    let start = context.masked.as_ref().and_then(position).map_or(0, |at| at + 1).max(left);
    let results = messages.iter().filter(|message| matches!(***message, Message::Tool(_))).count();
    let maskable = if all { results } else { results.saturating_sub(KEPT_RESULTS) };
    let (mut reads, mut seen, mut freed) = (SkillReads::new(skill_tools), 0, 0);
    let mut plan = None;
    let mut unkept = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        reads.note(message);
        let Message::Tool(result) = &**message else { continue };
        seen += 1;
        if seen > maskable || freed >= need.max(least) {
            break;
        }
        if at < start {
            continue;
        }
        if let Some(pointer) = masked(message, context, &reads) {
            freed += estimate.message(message).saturating_sub(estimate.message(&pointer));
            if results::kept_in(&result.text).is_none() {
                unkept.push(message.clone());
            }
            plan = Some(message.id().clone());
        }
    }
    let through = plan.filter(|_| freed >= least)?;
    Some(MaskPlan { through, unkept })
}
