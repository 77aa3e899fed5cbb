//! The place from which on messages stay: no result without its call, and the request at work always whole.

use super::estimate::TokenEstimate;
use pudu_base::{Message, MessageId};
use std::sync::Arc;

/// Bounds of what stays.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeepBounds {
    /// At least so many messages, if they are few enough tokens.
    pub(super) messages: usize,
    /// At most so many tokens.
    pub(super) tokens: u64,
}

/// Returns the first message that stays of those from `start` on. What stays is as many messages as wanted and never
/// more tokens than allowed, except that something always does. `start` itself means that nothing can be left out.
pub(super) fn first_kept(
    messages: &[Arc<Message>],
    start: usize,
    keep: KeepBounds,
    estimate: TokenEstimate,
) -> usize {
    let (mut first, mut tokens) = (None, 0);
    for (at, message) in messages.iter().enumerate().skip(start).rev() {
        tokens += estimate.message(message);
        if matches!(**message, Message::Tool(_)) {
            continue;
        }
        if first.is_some() && tokens > keep.tokens {
            break;
        }
        first = Some(at);
        if messages.len() - at >= keep.messages {
            break;
        }
    }
    first.unwrap_or(start)
}

/// Returns people's messages of the turn at work that are before `end`: the newest one in any case, and those before it
/// that no answer followed, within so many tokens.
pub(super) fn requests(
    messages: &[Arc<Message>],
    end: usize,
    most: u64,
    estimate: TokenEstimate,
) -> Vec<MessageId> {
    let (mut found, mut tokens, mut newest) = (Vec::new(), 0, true);
    for (at, message) in messages.iter().enumerate().rev() {
        match &**message {
            Message::Human(human) => {
                tokens += estimate.message(message);
                if !newest && tokens > most {
                    break;
                }
                newest = false;
                if at < end {
                    found.push(human.id.clone());
                }
            }
            // An answer: what was asked before it is done.
            Message::Assistant(reply) if reply.calls.is_empty() && !newest => break,
            Message::Assistant(_) | Message::Tool(_) | Message::Reminder(_) => {}
        }
    }
    found.reverse();
    found
}
