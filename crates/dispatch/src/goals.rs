//! Texts about the goal of a conversation.

use pudu_base::{Goal, GoalRest, GoalStanding, GoalVerdict, foreign};
use pudu_texts::Language;

/// Maximum length of a shown goal or of a verdict's reason, in characters.
const MAX_SHOWN_CHARS: usize = 400;

/// Returns the line below an answer that was judged against the goal: reached, or still open with the reason why work
/// stopped.
pub(super) fn judged(language: Language, goal: &Goal) -> Option<String> {
    let GoalVerdict { standing, reason, rest, .. } = goal.verdict.as_ref()?;
    let verdict = match (standing, rest) {
        (GoalStanding::Reached, _) => language.goal_reached(),
        (GoalStanding::NeedsPerson, _) => language.goal_needs_you(),
        (GoalStanding::Waits, _) => language.goal_waits(),
        (GoalStanding::Failed, _) => language.goal_failed(),
        (_, Some(GoalRest::Exhausted)) => language.goal_exhausted(),
        (_, Some(GoalRest::Stalled)) => language.goal_stalled(),
        (_, Some(GoalRest::Blocked)) => language.goal_unproven(),
        // The work continues, or was stopped.
        (_, None) => return None,
    };
    let reason = foreign::line(reason, MAX_SHOWN_CHARS);
    let line = if reason.is_empty() { verdict.to_owned() } else { language.goal_because(reason, verdict) };
    Some(format!("🎯 {line}"))
}

/// Describes the state of a goal for people.
pub(super) fn status(language: Language, goal: Option<&Goal>) -> String {
    let Some(goal) = goal.filter(|goal| goal.is_open()) else { return language.goal_none().to_owned() };
    let mut lines = vec![language.goal_status(foreign::line(&goal.objective, MAX_SHOWN_CHARS))];
    lines.push(language.goal_rounds(goal.max_continuations, goal.continuations));
    lines.extend(judged(language, goal));
    lines.join("\n")
}
