//! Goals of threads.

use super::clock;
use pudu_base::{Goal, GoalStanding, MAX_STALLED};
use serde_json::{Value, json};

/// Maximum length of a goal, in characters.
const MAX_GOAL_CHARS: usize = 4000;
/// Maximum number of automatic continuations of a run.
const MAX_CONTINUATIONS: u32 = 8;

/// Creates a goal from a client's request.
///
/// # Errors
/// When it is empty or too long, or the number of continuations is too large.
pub fn read(objective: &str, max_continuations: Option<u32>, now: i64) -> Result<Goal, &'static str> {
    let objective = objective.split_whitespace().collect::<Vec<_>>().join(" ");
    if !(1..=MAX_GOAL_CHARS).contains(&objective.chars().count()) {
        return Err("objective must have 1 to 4000 characters");
    }
    if max_continuations.is_some_and(|most| most > MAX_CONTINUATIONS) {
        return Err("max_continuations must be 0 to 8");
    }
    let goal = Goal::new(objective, now);
    Ok(Goal { max_continuations: max_continuations.unwrap_or(goal.max_continuations), ..goal })
}

/// Renders the goal of a thread; a null `goal` if it has none.
#[must_use]
pub fn answer(goal: Option<&Goal>) -> Value {
    let told = |goal: &Goal| {
        let judged = goal.verdict.as_ref().map(|verdict| {
            json!({
                "satisfied": verdict.standing == GoalStanding::Reached,
                "blocker": blocker(verdict.standing),
                "reason": verdict.reason,
            })
        });
        json!({
            "objective": goal.objective,
            "status": "active",
            "created_at": clock::iso(goal.since),
            "updated_at": clock::iso(goal.since),
            "continuation_count": goal.continuations,
            "max_continuations": goal.max_continuations,
            "no_progress_count": goal.stalled,
            "max_no_progress_continuations": MAX_STALLED,
            "last_evaluation": judged,
        })
    };
    json!({ "goal": goal.map(told) })
}

/// Returns DeerFlow's name for the reason why a goal is not reached yet.
fn blocker(standing: GoalStanding) -> &'static str {
    match standing {
        GoalStanding::Reached => "none",
        GoalStanding::NotYet => "goal_not_met_yet",
        GoalStanding::NoEvidence => "missing_evidence",
        GoalStanding::NeedsPerson => "needs_user_input",
        GoalStanding::Failed => "run_failed",
        GoalStanding::Waits => "external_wait",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pudu_base::GoalVerdict;

    #[test]
    fn an_evaluation_names_the_blocker_as_deerflow_does() {
        let evaluation = |standing| {
            let (answer, digest, reason) = ("m1".into(), "d".to_owned(), "Because.".to_owned());
            let verdict = GoalVerdict { answer, digest, standing, reason, rest: None };
            let goal = Goal { verdict: Some(verdict), ..Goal::new("a poem".to_owned(), 0) };
            super::answer(Some(&goal))["goal"]["last_evaluation"].clone()
        };
        let reached = json!({ "satisfied": true, "blocker": "none", "reason": "Because." });
        assert_eq!(evaluation(GoalStanding::Reached), reached);
        assert_eq!(evaluation(GoalStanding::NeedsPerson)["blocker"], "needs_user_input");
        assert_eq!(evaluation(GoalStanding::NotYet)["blocker"], "goal_not_met_yet");
    }
}
