//! A model call outside the conversation, such as for a summary or a title. Its answer is a single text, without tools
//! or thoughts, and is not streamed to readers.

use futures_util::StreamExt;
use pudu_base::{
    Delta, Finish, Model, ModelCaller, ModelError, Request, RunEvent, Sampling, SpendingTally, Thinking,
};

/// Maximum length of an answer, in bytes: a model in a loop is stopped.
const MAX_ANSWER_BYTES: usize = 64 * 1024;

/// Calls a model and returns its complete answer; an empty one if it called tools or a filter cut it. The call is
/// counted in the tally for the model that answered. `on_event` receives usage and retries.
///
/// # Errors
/// If the model failed, or its answer was cut.
pub async fn side_call(
    model: &dyn Model,
    request: Request,
    caller: ModelCaller,
    spending: &mut SpendingTally,
    on_event: impl Fn(RunEvent) + Send + Sync,
) -> Result<String, ModelError> {
    // Another model may answer in its place.
    let (mut by, mut usage) = (model.name().to_owned(), None);
    let answer = read(model, Request { caller, ..request }, |delta| match delta {
        Delta::Usage(reported) => {
            usage = Some(*reported);
            on_event(RunEvent::Usage { usage: *reported });
        }
        Delta::Model(name) => by.clone_from(name),
        Delta::Again { attempt, wait, reason, .. } => {
            // The known cost of the failed attempt counts for the model that was called.
            if let Some(usage) = usage.take() {
                spending.add_call(caller, &by, Some(usage));
            }
            on_event(RunEvent::Retry { attempt: *attempt, wait: *wait, reason: *reason });
        }
        _ => {}
    });
    let answer = answer.await;
    spending.add_call(caller, &by, usage);
    answer
}

async fn read(
    model: &dyn Model,
    mut request: Request,
    mut hear: impl FnMut(&Delta) + Send,
) -> Result<String, ModelError> {
    request.images.clear();
    request.thinking = Thinking::Off;
    request.sampling = Sampling::default();
    let mut deltas = model.stream(request);
    let (mut text, mut called) = (String::new(), false);
    while let Some(delta) = deltas.next().await {
        let delta = delta?;
        hear(&delta);
        match delta {
            Delta::Text(more) => text.push_str(&more),
            Delta::Retract => text.clear(),
            Delta::Call(_) => called = true,
            Delta::Finish(Finish::Complete | Finish::Length) if !called => return Ok(text),
            Delta::Finish(_) => return Ok(String::new()),
            Delta::Again { .. } => {
                text.clear();
                called = false;
            }
            Delta::Usage(_)
            | Delta::Model(_)
            | Delta::Reasoning(_)
            | Delta::ProviderParts(_)
            | Delta::Image(_) => {}
        }
        if text.len() > MAX_ANSWER_BYTES {
            return Ok(text);
        }
    }
    Err(ModelError::Cut("the answer was truncated".into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{ScriptedModel, ScriptedReply};
    use pudu_base::{RetryReason, Usage};
    use std::{sync::Mutex, time::Duration};

    #[tokio::test]
    async fn a_failed_attempt_is_charged_and_its_text_is_discarded() {
        let again =
            Delta::Again { attempt: 1, wait: Duration::ZERO, reason: RetryReason::Garbled, free: false };
        let (early, late) = (Delta::Text("Hm".into()), Delta::Text("Sum".into()));
        let (failed, reported) = (Delta::Usage(Usage::plain(7, 2)), Delta::Usage(Usage::plain(1, 1)));
        let finish = Delta::Finish(Finish::Complete);
        let deltas = [failed, again, early, Delta::Retract, late, reported, finish];
        let script = ScriptedReply::Says(deltas.into_iter().map(Ok).collect());
        let model = ScriptedModel { replies: Mutex::new([script].into()), ..ScriptedModel::default() };
        let mut spending = SpendingTally::default();
        let answer = side_call(&model, Request::default(), ModelCaller::Summary, &mut spending, |_| {}).await;
        assert_eq!(answer.as_deref(), Ok("Sum"));
        let [spent] = spending.parts() else { panic!("{spending:?}") };
        assert_eq!((spent.caller, spent.usage), (ModelCaller::Summary, Usage::plain(8, 3)));
    }
}
