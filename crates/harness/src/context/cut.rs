//! Finds the first message to keep in a request, so that no result is kept without its call, and the current request
//! always stays whole.

use super::estimate::TokenEstimate;
use pudu_base::{Message, MessageId};
use std::sync::Arc;

/// Bounds of the kept part.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeepBounds {
    /// Minimum number of messages, if they fit into `tokens`.
    pub(super) messages: usize,
    /// Maximum number of tokens.
    pub(super) tokens: u64,
}

/// Returns the index of the first message that is kept, among those from `start` on. Keeps as many messages as wanted
/// and never more tokens than allowed, except that at least one message is kept. `start` itself means that nothing can
/// be left out.
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

/// Returns the user messages of the current turn before `end`: always the newest one, and older ones without an answer,
/// up to `most` tokens.
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
            // An answer: the requests before it are done.
            Message::Assistant(reply) if reply.calls.is_empty() && !newest => break,
            Message::Assistant(_) | Message::Tool(_) | Message::Reminder(_) => {}
        }
    }
    found.reverse();
    found
}
