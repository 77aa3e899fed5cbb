//! Messages as alternating turns of user and model, as required by Anthropic and Google. Consecutive messages of one
//! side form one turn, and the next turn begins with the results of calls, in the order of the calls.
//!
//! Calls without a result are not handled here; the harness gives each call a result before a request.

use pudu_base::{Assistant, Human, Message, ToolCall, ToolResult};
use std::sync::Arc;

/// Opens a thread that does not begin with a user message.
pub(crate) const OPENING: &str = "(Earlier messages are left out.)";

/// The side of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnSide {
    User,
    Model,
}

/// Consecutive messages of one side.
#[derive(Debug)]
pub(crate) struct SideTurn<P> {
    pub(crate) side: TurnSide,
    /// Never empty.
    pub(crate) parts: Vec<P>,
}

/// Encodes messages as parts of a wire.
pub(crate) trait TurnWriter<'a, P> {
    fn text_part(&mut self, text: std::borrow::Cow<'a, str>) -> P;

    fn reply(&mut self, reply: &'a Assistant) -> Vec<P>;

    fn result(&mut self, result: &'a ToolResult) -> P;
}

/// Returns the turns of a thread; the first is from the user.
pub(crate) fn turns<'a, P, W: TurnWriter<'a, P>>(
    messages: &'a [Arc<Message>],
    writer: &mut W,
) -> Vec<SideTurn<P>> {
    let mut builder = TurnBuilder { turns: Vec::new(), calls: &[], results: Vec::new(), words: Vec::new() };
    for message in messages {
        match &**message {
            Message::Human(human) => builder.words.extend(encode_human(human, writer)),
            Message::Reminder(reminder) => {
                builder.words.push(writer.text_part(reminder.to_model_text().into()))
            }
            Message::Tool(result) => builder.result(result, writer),
            Message::Assistant(reply) => builder.reply(reply, writer),
        }
    }
    builder.end_user();
    if builder.turns.first().is_none_or(|turn| turn.side == TurnSide::Model) {
        let opening = SideTurn { side: TurnSide::User, parts: vec![writer.text_part(OPENING.into())] };
        builder.turns.insert(0, opening);
    }
    builder.turns
}

/// Encodes a user's message; `None` if it is blank, because providers refuse empty text.
fn encode_human<'a, P, W: TurnWriter<'a, P>>(human: &'a Human, writer: &mut W) -> Option<P> {
    let words = human.to_model_text();
    (!words.trim().is_empty()).then(|| writer.text_part(words))
}

struct TurnBuilder<'a, P> {
    turns: Vec<SideTurn<P>>,
    /// The calls of the model's last turn.
    calls: &'a [ToolCall],
    /// Results for the user's turn, each with its position.
    results: Vec<(usize, P)>,
    /// The other parts of the user's turn.
    words: Vec<P>,
}

impl<'a, P> TurnBuilder<'a, P> {
    fn result<W: TurnWriter<'a, P>>(&mut self, result: &'a ToolResult, writer: &mut W) {
        let index = self.calls.iter().position(|call| call.id == result.call);
        self.results.push((index.unwrap_or(usize::MAX), writer.result(result)));
    }

    fn reply<W: TurnWriter<'a, P>>(&mut self, reply: &'a Assistant, writer: &mut W) {
        self.end_user();
        let parts = writer.reply(reply);
        match self.turns.last_mut() {
            _ if parts.is_empty() => return,
            Some(turn) if turn.side == TurnSide::Model => turn.parts.extend(parts),
            _ => self.turns.push(SideTurn { side: TurnSide::Model, parts }),
        }
        self.calls = &reply.calls;
    }

    fn end_user(&mut self) {
        let mut results = std::mem::take(&mut self.results);
        results.sort_by_key(|(place, _)| *place);
        let parts: Vec<P> =
            results.into_iter().map(|(_, result)| result).chain(self.words.drain(..)).collect();
        match self.turns.last_mut() {
            _ if parts.is_empty() => {}
            // An empty reply between them was skipped.
            Some(turn) if turn.side == TurnSide::User => turn.parts.extend(parts),
            _ => self.turns.push(SideTurn { side: TurnSide::User, parts }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{call, reply, result};
    use serde_json::json;
    use std::borrow::Cow;

    /// Records each part as a word.
    struct PartNotes;

    impl<'a> TurnWriter<'a, String> for PartNotes {
        fn text_part(&mut self, text: Cow<'a, str>) -> String {
            text.into_owned()
        }

        fn reply(&mut self, reply: &'a Assistant) -> Vec<String> {
            let text = (!reply.text.is_empty()).then(|| reply.text.clone());
            text.into_iter().chain(reply.calls.iter().map(|call| format!("call {}", call.id))).collect()
        }

        fn result(&mut self, result: &'a ToolResult) -> String {
            format!("result {}", result.call)
        }
    }

    #[test]
    fn turns_alternate_and_results_follow_their_calls_in_order() {
        let human = |text: &str| Message::Human(Human::new("h", text));
        let calls = |ids: &[&str]| {
            Message::Assistant(reply("", ids.iter().map(|id| call(id, "t", json!({}))).collect()))
        };
        let said = |text: &str| Message::Assistant(reply(text, vec![]));
        let tool = |id: &str| Message::Tool(result(id, "ok"));
        for (messages, expect) in [
            (vec![human("a"), human("b")], vec!["U a|b"]),
            (
                vec![human("a"), calls(&["1", "2"]), tool("2"), human("b"), tool("1"), said("c")],
                vec!["U a", "M call 1|call 2", "U result 1|result 2|b", "M c"],
            ),
            (vec![human("a"), said("b"), said("c"), human("d")], vec!["U a", "M b|c", "U d"]),
            (vec![human("a"), said(""), human("b")], vec!["U a|b"]),
            (vec![human(" "), said("b")], vec!["U (Earlier messages are left out.)", "M b"]),
            (vec![], vec!["U (Earlier messages are left out.)"]),
        ] {
            let messages: Vec<_> = messages.into_iter().map(Arc::new).collect();
            let turns = turns(&messages, &mut PartNotes);
            let side = |side| if side == TurnSide::User { "U" } else { "M" };
            let sides: Vec<_> =
                turns.iter().map(|turn| format!("{} {}", side(turn.side), turn.parts.join("|"))).collect();
            assert_eq!(sides, expect);
        }
    }
}
