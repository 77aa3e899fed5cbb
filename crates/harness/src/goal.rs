//! The goal of a thread: after each answer a model judges whether it is reached. If more work helps, the run continues
//! without a user, a bounded number of times.

use crate::{RunAgent, RunState, side_call};
use pudu_base::{
    Assistant, Finish, Goal, GoalRest, GoalStanding, GoalVerdict, Human, MAX_STALLED, Message, ModelCaller,
    Request, Update, ends, fill, foreign,
};
use serde::Deserialize;
use std::{sync::Arc, time::Duration};

/// Maximum number of newest messages that are judged.
const MAX_MESSAGES: usize = 30;
/// Maximum length of the judged conversation, in characters.
const MAX_CHARS: usize = 12_000;
/// Timeout of a verdict; without one the answer is accepted.
const VERDICT_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum length of a verdict's reason, in characters.
const MAX_REASON_CHARS: usize = 1_000;

const EVALUATOR: &str = include_str!("goal/evaluator.md");
const CONTINUATION: &str = include_str!("goal/continuation.md");

/// The verdict as the evaluating model writes it.
#[derive(Deserialize)]
struct Evaluation {
    satisfied: bool,
    #[serde(default)]
    blocker: String,
    #[serde(default)]
    reason: String,
}

impl Evaluation {
    /// Parses the JSON object in a model's answer, ignoring text around it.
    fn parse(answer: &str) -> Option<Self> {
        let (first, last) = (answer.find('{')?, answer.rfind('}')?);
        serde_json::from_str(answer.get(first..=last)?).ok()
    }

    fn standing(&self) -> GoalStanding {
        match self.blocker.as_str() {
            _ if self.satisfied => GoalStanding::Reached,
            "goal_not_met_yet" => GoalStanding::NotYet,
            "needs_user_input" => GoalStanding::NeedsPerson,
            "run_failed" => GoalStanding::Failed,
            "external_wait" => GoalStanding::Waits,
            _ => GoalStanding::NoEvidence,
        }
    }
}

/// Judges the newest answer, if the thread has an open goal. Returns whether the run continues; the reason for the
/// model is then recorded. An answer is judged once, even across a restart.
pub(crate) async fn should_continue(agent: &RunAgent, run_state: &mut RunState) -> bool {
    let Some(mut goal) = run_state.state().goal.clone().filter(Goal::is_open) else { return false };
    let Some(Message::Assistant(answer)) = run_state.state().last().map(AsRef::as_ref) else { return false };
    let judged = goal.verdict.as_ref().is_some_and(|verdict| verdict.answer == answer.id);
    if judged || !matches!(answer.finish, Finish::Complete | Finish::Length) {
        return false;
    }
    let (id, digest) = (answer.id.clone(), digest(answer));
    if agent.model.only_echoes() {
        return false;
    }
    let Some(evaluation) = evaluate(agent, run_state, &goal).await else { return false };
    let standing = evaluation.standing();
    let same = goal.verdict.as_ref().is_some_and(|last| last.standing == standing && last.digest == digest);
    goal.stalled = if same { goal.stalled + 1 } else { 0 };
    let rest = match standing {
        GoalStanding::NotYet if goal.stalled >= MAX_STALLED => Some(GoalRest::Stalled),
        GoalStanding::NotYet if goal.continuations >= goal.max_continuations => Some(GoalRest::Exhausted),
        GoalStanding::Reached | GoalStanding::NotYet => None,
        _ => Some(GoalRest::Blocked),
    };
    let reason: String = evaluation.reason.trim().chars().take(MAX_REASON_CHARS).collect();
    let continues = standing == GoalStanding::NotYet && rest.is_none();
    goal.continuations += u32::from(continues);
    let text = continuation(&goal, &reason);
    goal.verdict = Some(GoalVerdict { answer: id, digest, standing, reason, rest });
    run_state.apply(Update::Goal(Some(goal)));
    if continues {
        run_state.note(text);
    }
    continues
}

/// Asks the run's model. Returns `None` if its reply cannot be parsed: the answer is then accepted.
async fn evaluate(agent: &RunAgent, run_state: &mut RunState, goal: &Goal) -> Option<Evaluation> {
    let question = format!(
        "<goal>\n{}\n</goal>\n<conversation>\n{}\n</conversation>",
        foreign::text(&goal.objective),
        foreign::text(&transcript(run_state))
    );
    let request = Request {
        system: EVALUATOR.to_owned(),
        messages: vec![Arc::new(Message::Human(Human::guiding("goal", question)))],
        ..Request::default()
    };
    let replay = run_state.replay.clone();
    let tell = |event| replay.publish(event);
    let answer = side_call(
        &*agent.model,
        request,
        agent.caller.for_side_call(ModelCaller::Goal),
        &mut run_state.spending,
        tell,
    );
    let Ok(answer) = tokio::time::timeout(VERDICT_TIMEOUT, answer).await else {
        tracing::warn!(model = agent.model.name(), "gave up judging whether the goal is reached: timeout");
        return None;
    };
    let evaluation = answer.as_deref().ok().and_then(Evaluation::parse);
    if evaluation.is_none() {
        let error = answer.err().map_or_else(|| "it wrote no verdict".to_owned(), |error| error.to_string());
        tracing::warn!(model = agent.model.name(), error, "failed to judge whether the goal is reached");
    }
    evaluation
}

/// Returns the newest messages that users see, oldest first, up to the maximum length.
fn transcript(run_state: &RunState) -> String {
    let line = |message: &Arc<Message>| match &**message {
        Message::Human(human) => Some(format!("person: {}", human.text.trim())),
        Message::Assistant(reply) if !reply.text.trim().is_empty() => {
            Some(format!("assistant: {}", reply.text.trim()))
        }
        Message::Assistant(_) | Message::Tool(_) | Message::Reminder(_) => None,
    };
    let newest = run_state.state().messages.values().rev().filter_map(line).take(MAX_MESSAGES);
    let mut lines: Vec<String> = newest.collect();
    lines.reverse();
    let text = lines.join("\n\n");
    match ends(&text, 0, MAX_CHARS) {
        Some((_, _, last)) => last.to_owned(),
        None => text,
    }
}

fn digest(answer: &Assistant) -> String {
    pudu_base::digest(answer.text.trim())
}

fn continuation(goal: &Goal, reason: &str) -> String {
    let (objective, reason) = (foreign::text(&goal.objective), foreign::text(reason));
    fill(CONTINUATION.trim_end(), &[("{objective}", &objective), ("{reason}", &reason)])
}
