//! Goals of threads.

use super::clock;
use pudu_base::{Goal, GoalStanding};
use serde_json::{Value, json};

/// Maximum length of a goal, in characters.
const MAX_GOAL_CHARS: usize = 4000;
/// Maximum number of automatic continuations of a run.
const MAX_CONTINUATIONS: u32 = 8;

/// Makes a goal of a client's request.
///
/// # Errors
/// When it is empty or too long, or the number of continuations is too large.
pub fn read(objective: &str, max_continuations: Option<u32>, now: i64) -> Result<Goal, &'static str> {
    let objective = objective.split_whitespace().collect::<Vec<_>>().join(" ");
    if !(1..=MAX_GOAL_CHARS).contains(&objective.chars().count()) {
        return Err("objective has 1 to 4000 characters");
    }
    if max_continuations.is_some_and(|most| most > MAX_CONTINUATIONS) {
        return Err("max_continuations is 0 to 8");
    }
    let goal = Goal::new(objective, now);
    Ok(Goal { max_continuations: max_continuations.unwrap_or(goal.max_continuations), ..goal })
}

/// Writes the goal of a thread, or that it has none.
#[must_use]
pub fn answer(goal: Option<&Goal>) -> Value {
    let told = |goal: &Goal| {
        let judged = goal.verdict.as_ref().map(|verdict| {
            json!({ "satisfied": verdict.standing == GoalStanding::Reached, "reason": verdict.reason })
        });
        json!({
            "objective": goal.objective,
            "status": "active",
            "created_at": clock::iso(goal.since),
            "updated_at": clock::iso(goal.since),
            "continuation_count": goal.continuations,
            "max_continuations": goal.max_continuations,
            "no_progress_count": goal.stalled,
            "last_evaluation": judged,
        })
    };
    json!({ "goal": goal.map(told) })
}
