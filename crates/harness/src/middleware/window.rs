//! Limits a request to the model's context. The oldest turns that do not fit any more are left out of the
//! request; the thread itself keeps all.
//!
//! The omitted part grows in large steps, so that between steps every request begins like the one before and
//! the provider's cache of it holds. So a turn late in a long talk costs as much as an early one.

use super::Middleware;
use crate::RunState;
use pudu_base::{BoxFuture, Message, Request, RunFailure};
use std::sync::Arc;

/// Bytes that are safely no more than one token: English has about four, Chinese three.
const BYTES_PER_TOKEN: u64 = 3;
/// Said to the model when something is left out.
const NOTE: &str = "\n\nThe beginning of this conversation is left out here: it does not fit any more.";

/// Keeps requests within what the model takes, given in tokens.
pub struct Window(pub u64);

impl Middleware for Window {
    fn name(&self) -> &'static str {
        "window"
    }

    fn before_model<'a>(
        &'a mut self,
        _turn: &'a mut RunState,
        request: &'a mut Request,
    ) -> BoxFuture<'a, Result<(), RunFailure>> {
        // A fifth stays free for the prompt, the tools and the answer.
        let budget = self.0.saturating_mul(BYTES_PER_TOKEN) / 5 * 4;
        let start = start(&request.messages, budget);
        if start > 0 {
            request.messages.drain(..start);
            request.system.push_str(NOTE);
        }
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Returns the first message that is kept: always a person's, so that no answer stands without its question;
/// the last question is kept whatever its size.
fn start(messages: &[Arc<Message>], budget: u64) -> usize {
    let total: u64 = messages.iter().map(|message| size(message)).sum();
    let Some(over) = total.checked_sub(budget).filter(|over| *over > 0) else { return 0 };
    let step = (budget / 2).max(1);
    let leave = over.div_ceil(step).saturating_mul(step);
    let (mut left, mut start) = (0, 0);
    for (at, message) in messages.iter().enumerate() {
        if matches!(**message, Message::Human(_)) {
            start = at;
            if left >= leave {
                break;
            }
        }
        left += size(message);
    }
    start
}

fn size(message: &Message) -> u64 {
    let arguments = match message {
        Message::Assistant(reply) => reply.calls.iter().map(|call| value(&call.args) + call.name.len()).sum(),
        Message::Human(human) => {
            // As much stands before the words at most, besides the files.
            const HEAD: usize = 256;
            let guide = human.guide.as_ref().map_or(0, String::len);
            let head = if human.at.is_some() || human.sender.is_some() { HEAD } else { 0 };
            human.files.iter().map(|file| file.told().len()).sum::<usize>() + guide + head
        }
        Message::Tool(_) | Message::Reminder(_) => 0,
    };
    (message.text().len() + arguments) as u64 + 16
}

/// About how long a value is when it is written.
fn value(value: &serde_json::Value) -> usize {
    use serde_json::Value;
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(self::value).sum::<usize>() + 2,
        Value::Object(map) => {
            map.iter().map(|(key, item)| key.len() + 4 + self::value(item)).sum::<usize>() + 2
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudu_base::{Assistant, Finish, Human};

    fn talk(turns: usize, bytes: usize) -> Vec<Arc<Message>> {
        let text = "x".repeat(bytes - 16);
        let run_state = |n: usize| {
            let human = Human::new(format!("h{n}"), text.clone());
            let reply = Assistant {
                id: format!("a{n}").as_str().into(),
                text: text.clone(),
                reasoning: None,
                provider_parts: None,
                calls: vec![],
                finish: Finish::Complete,
                model: None,
                usage: None,
            };
            [Arc::new(Message::Human(human)), Arc::new(Message::Assistant(reply))]
        };
        (0..turns).flat_map(run_state).collect()
    }

    #[test]
    fn what_fits_is_left_alone() {
        assert_eq!(start(&talk(10, 100), 2_000), 0);
        assert_eq!(start(&[], 0), 0);
    }

    #[test]
    fn the_oldest_turns_go_in_steps_and_the_last_question_stays() {
        let budget = 2_000;
        let mut cuts = Vec::new();
        for turns in 1..40 {
            let messages = talk(turns, 100);
            let start = start(&messages, budget);
            let kept: u64 = messages[start..].iter().map(|message| size(message)).sum();
            assert!(kept <= budget, "{turns} turns keep {kept} bytes");
            assert!(matches!(*messages[start], Message::Human(_)));
            cuts.push(start);
        }
        cuts.dedup();
        assert_eq!(cuts, [0, 10, 20, 30, 40, 50, 60], "each step leaves out half the budget");
        assert_eq!(start(&talk(3, 5_000), 2_000), 4, "a question too large alone is still asked");
    }
}
