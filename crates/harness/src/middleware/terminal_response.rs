//! Requires a run to end with text: an empty answer does not count, and the model is asked once more with a different
//! instruction, because models that end a turn without text do so again if the same request is repeated. If the second
//! answer is empty too, the run fails.

use super::{AnswerCheck, Middleware};
use crate::RunState;
use pudu_base::{Assistant, FailureCause, Finish, Message};

/// Instruction after an empty answer.
const EMPTY: &str = "Your answer was empty, so people have not seen any of your work. The results of your tools are \
                     above. Answer people now, in words, with the outcome of their request.";

/// Instruction after an empty answer without any tool call.
const EMPTY_AT_ONCE: &str =
    "Your answer was empty, so people see nothing. Answer the newest message now, in words or with a tool.";

/// Asks for an answer with text.
pub struct TerminalResponse;

impl Middleware for TerminalResponse {
    fn name(&self) -> &'static str {
        "terminal_response"
    }

    fn check_answer(&mut self, run_state: &RunState, reply: &Assistant) -> AnswerCheck {
        if reply.finish != Finish::Complete || !reply.text.trim().is_empty() {
            return AnswerCheck::Accept;
        }
        // Read from the thread, so that a run interrupted by a crash does not ask a second time.
        let was_reminded =
            run_state.since_asked().any(|message| [EMPTY, EMPTY_AT_ONCE].contains(&message.text()));
        if was_reminded {
            return AnswerCheck::Fail(FailureCause::Silent);
        }
        let did_something = run_state.since_asked().any(|message| matches!(**message, Message::Tool(_)));
        AnswerCheck::Replace(if did_something { EMPTY } else { EMPTY_AT_ONCE }.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture::{Bench, call, calls, text_reply};
    use pudu_base::{FailureCause, Outcome};
    use serde_json::json;

    fn tool_call_reply() -> crate::fixture::ScriptedReply {
        calls(vec![call("1", "reads", json!({}))])
    }

    #[tokio::test]
    async fn an_empty_answer_after_results_is_requested_once_more() {
        let bench = Bench::new(vec![tool_call_reply(), text_reply(" \n"), text_reply("Found it.")]);
        let (outcome, seen) = bench.run(Some("look")).await;
        assert_eq!((outcome, seen.text.trim()), (Outcome::Success, "Found it."));
        let request = &bench.asked()[2];
        assert!(request.last().unwrap().starts_with("reminder: Your answer was empty"), "{request:?}");
        assert_eq!(request.len(), 4, "the empty answer is removed: {request:?}");
    }

    #[tokio::test]
    async fn an_answer_that_stays_empty_is_a_failure_after_two_calls() {
        let bench = Bench::new(vec![tool_call_reply(), text_reply(""), text_reply("")]);
        assert_eq!(bench.run(Some("look")).await.0, FailureCause::Silent.into());
        let bench = Bench::new(vec![text_reply(""), text_reply("")]);
        assert_eq!(bench.run(Some("hi")).await.0, FailureCause::Silent.into());
        let bench = Bench::new(vec![text_reply(""), text_reply("Hello.")]);
        let (outcome, seen) = bench.run(Some("hi")).await;
        assert_eq!((outcome, seen.text.trim()), (Outcome::Success, "Hello."));
        assert!(bench.asked()[1].last().unwrap().starts_with("reminder: Your answer was empty"));
    }
}
