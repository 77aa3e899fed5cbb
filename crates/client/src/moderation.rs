//! A model's look at what is about to be kept in a skill, besides the scan: `allow`, `warn` or `block`, with a reason.
//!
//! Its verdict is one more refusal and never a permission: the scan and a person decide as well. Where it does not answer,
//! the operator's setting decides, and by default nothing is kept.

use pudu_base::{Human, Message, Model, ModelCaller, Request, SpendingTally, foreign};
use pudu_harness::side_call;
use serde::Deserialize;
use std::sync::Arc;

/// Maximum length of a reason, in characters.
const MAX_REASON_CHARS: usize = 300;

/// How a model looks at skills before they are kept.
#[derive(Clone)]
pub(crate) struct Moderator {
    pub(crate) model: Arc<dyn Model>,
    /// Whether nothing is kept if it gives no verdict.
    pub(crate) fail_closed: bool,
}

/// What a model found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ModerationVerdict {
    /// Nothing.
    Allow,
    /// What a person should look at.
    Warn(String),
    /// What may not be kept.
    Block(String),
}

#[derive(Deserialize)]
struct Answer {
    decision: String,
    #[serde(default)]
    reason: String,
}

impl Moderator {
    /// Looks at a file of a skill.
    pub(crate) async fn look(&self, file: &str, text: &str) -> ModerationVerdict {
        let prompt = include_str!("moderation.md").replace("{file}", &foreign::line(file, 200));
        // What is looked at comes last, so that nothing of it is taken for a placeholder.
        let prompt = format!("{prompt}\n<file>\n{}\n</file>", foreign::text(text));
        let request = Request {
            messages: vec![Arc::new(Message::Human(Human::guiding("moderation", prompt)))],
            ..Request::default()
        };
        let mut spending = SpendingTally::default();
        let answer = side_call(&*self.model, request, ModelCaller::Moderation, &mut spending, |_| {}).await;
        let verdict = match &answer {
            Ok(answer) => verdict(answer),
            Err(error) => {
                tracing::warn!(model = self.model.name(), %error, "failed to have skill looked at");
                None
            }
        };
        let code = !file.to_lowercase().ends_with(".md");
        match (verdict, self.fail_closed) {
            // A script runs as it is: what is doubtful in it is not kept.
            (Some(ModerationVerdict::Warn(why)), _) if code => ModerationVerdict::Block(why),
            (Some(verdict), _) => verdict,
            (None, true) => {
                ModerationVerdict::Block("the model that looks at skills gave no verdict".to_owned())
            }
            (None, false) => {
                ModerationVerdict::Warn("the model that looks at skills gave no verdict".to_owned())
            }
        }
    }
}

/// Reads an answer: a JSON object, whatever stands around it.
fn verdict(answer: &str) -> Option<ModerationVerdict> {
    let object = answer.get(answer.find('{')?..=answer.rfind('}')?)?;
    let Answer { decision, reason } = serde_json::from_str(object).ok()?;
    let reason = foreign::line(&reason, MAX_REASON_CHARS);
    match decision.trim().to_lowercase().as_str() {
        "allow" => Some(ModerationVerdict::Allow),
        "warn" => Some(ModerationVerdict::Warn(reason)),
        "block" => Some(ModerationVerdict::Block(reason)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_read_out_of_an_answer_and_garbage_is_none() {
        let warn = |why: &str| Some(ModerationVerdict::Warn(why.into()));
        for (answer, expect) in [
            (r#"{"decision": "allow", "reason": "fine"}"#, Some(ModerationVerdict::Allow)),
            ("Here:\n```json\n{\"decision\":\"Warn\",\"reason\":\"odd\\n\"}\n```", warn("odd")),
            (r#"{"decision": "block"}"#, Some(ModerationVerdict::Block(String::new()))),
            (r#"{"decision": "maybe"}"#, None),
            ("allow", None),
            ("} {", None),
            ("", None),
            (r#"{"decision": {}}"#, None),
        ] {
            assert_eq!(verdict(answer), expect, "{answer}");
        }
    }
}
