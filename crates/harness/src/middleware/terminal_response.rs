//! A run that has used tools ends with words: an empty answer behind results does not count, and the model is asked for
//! one once more. If that is empty too, the run has failed, and people are told.
//!
//! Deliberately absent: an empty answer to a question that took no tools. There may be nothing to say.

use super::{AnswerCheck, Middleware};
use crate::RunState;
use pudu_base::{Assistant, FailureCause, Finish, Message};

/// Said to a model whose answer was empty.
const EMPTY: &str = "Your answer was empty, so nobody has seen anything of what you did. The results of your tools stand \
                     above. Tell people now, in words, what came of their request.";

/// Asks for an answer in words.
pub struct TerminalResponse;

impl Middleware for TerminalResponse {
    fn name(&self) -> &'static str {
        "terminal_response"
    }

    fn check_answer(&mut self, run_state: &RunState, reply: &Assistant) -> AnswerCheck {
        let blank = reply.finish == Finish::Complete && reply.text.trim().is_empty();
        let did_something = run_state.since_asked().any(|message| matches!(**message, Message::Tool(_)));
        if !blank || !did_something {
            return AnswerCheck::Accept;
        }
        // Read off the thread, so that a run that a crash cut is not asked twice.
        let asked = run_state.since_asked().any(|message| message.text() == EMPTY);
        if asked { AnswerCheck::Fail(FailureCause::Silent) } else { AnswerCheck::Replace(EMPTY.to_owned()) }
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture::{Bench, call, calls, says};
    use pudu_base::{FailureCause, Outcome};
    use serde_json::json;

    fn looks() -> crate::fixture::ScriptedReply {
        calls(vec![call("1", "reads", json!({}))])
    }

    #[tokio::test]
    async fn an_empty_answer_behind_results_is_asked_for_once_more() {
        let bench = Bench::new(vec![looks(), says(" \n"), says("Found it.")]);
        let (outcome, seen) = bench.run(Some("look")).await;
        assert_eq!((outcome, seen.text.trim()), (Outcome::Success, "Found it."));
        let asked = &bench.asked()[2];
        assert!(asked.last().unwrap().starts_with("reminder: Your answer was empty"), "{asked:?}");
        assert_eq!(asked.len(), 4, "the empty answer is gone: {asked:?}");
    }

    #[tokio::test]
    async fn an_answer_that_stays_empty_is_a_failure_and_one_without_tools_is_none() {
        let bench = Bench::new(vec![looks(), says(""), says("")]);
        assert_eq!(bench.run(Some("look")).await.0, FailureCause::Silent.into());
        let bench = Bench::new(vec![says("")]);
        assert_eq!(bench.run(Some("hi")).await.0, Outcome::Success);
    }
}
