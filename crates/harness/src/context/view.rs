//! A thread as a model sees it: a pure function of its messages and of its recorded context state.

use super::{block, mask};
use pudu_base::{ContextState, Human, Message, MessageId};
use std::{collections::BTreeSet, sync::Arc};

/// Returns the messages of a request: the block that replaces the left-out part, the requests that are kept, and
/// pointers in place of masked results.
pub(super) fn view(
    messages: &[Arc<Message>],
    context: &ContextState,
    skill_tools: &BTreeSet<String>,
) -> Vec<Arc<Message>> {
    let position = |id: &MessageId| messages.iter().position(|message| message.id() == id);
    let cut = context.compaction.as_deref().and_then(|left| Some((left, position(&left.through)? + 1)));
    let masked = context.masked.as_ref().and_then(position).map_or(0, |at| at + 1);
    let start = cut.map_or(0, |(_, at)| at);
    let mut shown = Vec::with_capacity(messages.len() - start + 2);
    if let Some((left, at)) = cut {
        shown.push(front(block::text(left)));
        let stays = |message: &&Arc<Message>| left.requests.contains(message.id());
        shown.extend(messages.iter().take(at).filter(stays).cloned());
    }
    let mut reads = mask::SkillReads::new(skill_tools);
    for (at, message) in messages.iter().enumerate().skip(start) {
        reads.note(message);
        let pointer = if at < masked { mask::masked(message, context, &reads) } else { None };
        shown.push(pointer.unwrap_or_else(|| message.clone()));
    }
    shown
}

/// Returns the message that contains the block.
fn front(text: String) -> Arc<Message> {
    Arc::new(Message::Human(Human::guiding("conversation-so-far", text)))
}
