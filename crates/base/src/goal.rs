//! The goal of a thread, which its runs pursue until it is reached.

use crate::MessageId;
use serde::{Deserialize, Serialize};

/// Default maximum number of automatic continuations of a run after one request.
const MAX_CONTINUATIONS: u32 = 8;
/// Number of consecutive answers without progress after which a run is not continued.
pub const MAX_STALLED: u32 = 2;

/// A goal that a person set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Goal {
    /// The text.
    pub objective: String,
    /// When it was set, in milliseconds since 1970.
    pub since: i64,
    /// Number of automatic continuations of runs since a person's last message.
    #[serde(default)]
    pub continuations: u32,
    /// Maximum number of automatic continuations.
    pub max_continuations: u32,
    /// Number of consecutive answers without progress.
    #[serde(default)]
    pub stalled: u32,
    /// The newest verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<GoalVerdict>,
}

/// Verdict on whether an answer reached the goal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoalVerdict {
    /// The answer.
    pub answer: MessageId,
    /// A digest of the answer's text.
    pub digest: String,
    /// State of the goal.
    pub standing: GoalStanding,
    /// The evaluating model's reason.
    pub reason: String,
    /// Why the run was not continued, if the goal is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest: Option<GoalRest>,
}

/// State of a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GoalStanding {
    /// It is reached.
    Reached,
    /// More work by the agent would make progress.
    NotYet,
    /// Nothing shows whether it is reached.
    NoEvidence,
    /// Only a person can supply the missing part.
    NeedsPerson,
    /// Something failed that the agent cannot fix.
    Failed,
    /// It depends on an external event.
    Waits,
}

/// Why a run was not continued towards an open goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GoalRest {
    /// More work by the agent would not help now.
    Blocked,
    /// The maximum number of continuations was reached.
    Exhausted,
    /// The answers made no progress.
    Stalled,
}

impl Goal {
    /// Creates an open goal.
    #[must_use]
    pub fn new(objective: String, since: i64) -> Self {
        let max_continuations = MAX_CONTINUATIONS;
        Self { objective, since, continuations: 0, max_continuations, stalled: 0, verdict: None }
    }

    /// Returns whether it is not reached yet.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.verdict.as_ref().is_none_or(|verdict| verdict.standing != GoalStanding::Reached)
    }

    /// Resets the count of continuations, after a person's message.
    pub(crate) fn renew(&mut self) {
        (self.continuations, self.stalled) = (0, 0);
    }
}
