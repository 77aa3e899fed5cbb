//! A model's review of a skill change before it is stored, in addition to the scan: `allow`, `warn` or `block`, with a
//! reason.
//!
//! Its verdict can only refuse a change, never permit one: the scan and a person also decide. Without a verdict, the
//! configuration decides; by default, nothing is stored.

use pudu_base::{Human, Message, Model, ModelCaller, Request, SpendingTally, foreign};
use pudu_harness::side_call;
use serde::Deserialize;
use std::sync::Arc;

/// Maximum length of a reason, in characters.
const MAX_REASON_CHARS: usize = 300;

/// The review of skills by a model before they are stored.
#[derive(Clone)]
pub(crate) struct Moderator {
    pub(crate) model: Arc<dyn Model>,
    /// Whether a change without a verdict is refused.
    pub(crate) fail_closed: bool,
}

/// Verdict of the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ModerationVerdict {
    /// No objection.
    Allow,
    /// A concern that a person should review.
    Warn(String),
    /// The change is refused for this reason.
    Block(String),
}

#[derive(Deserialize)]
struct Answer {
    decision: String,
    #[serde(default)]
    reason: String,
}

impl Moderator {
    /// Reviews a file of a skill.
    pub(crate) async fn review(&self, file: &str, text: &str) -> ModerationVerdict {
        let prompt = include_str!("moderation.md").replace("{file}", &foreign::line(file, 200));
        // The file is added last, so that placeholders in its text are not replaced.
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
                tracing::warn!(model = self.model.name(), %error, "failed to review skill");
                None
            }
        };
        let code = !file.to_lowercase().ends_with(".md");
        match (verdict, self.fail_closed) {
            // A script runs unchanged, so a doubtful one is not stored.
            (Some(ModerationVerdict::Warn(why)), _) if code => ModerationVerdict::Block(why),
            (Some(verdict), _) => verdict,
            (None, true) => {
                ModerationVerdict::Block("the model that reviews skills gave no verdict".to_owned())
            }
            (None, false) => {
                ModerationVerdict::Warn("the model that reviews skills gave no verdict".to_owned())
            }
        }
    }
}

/// Parses an answer: a JSON object, with any text around it.
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
    fn a_verdict_is_parsed_from_an_answer_and_garbage_has_none() {
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
