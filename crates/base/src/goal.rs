//! The goal of a thread: the aim of its runs until it is reached.

use crate::MessageId;
use serde::{Deserialize, Serialize};

/// Default maximum number of automatic continuations of a run after one request.
const MAX_CONTINUATIONS: u32 = 8;

/// A goal that a person set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Goal {
    /// Its words.
    pub objective: String,
    /// When it was set, in milliseconds since 1970.
    pub since: i64,
    /// Number of automatic continuations of runs since people spoke last.
    #[serde(default)]
    pub continuations: u32,
    /// How often it may.
    pub max_continuations: u32,
    /// How many answers in a row brought it no further.
    #[serde(default)]
    pub stalled: u32,
    /// The newest verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<GoalVerdict>,
}

/// Whether an answer reached the goal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoalVerdict {
    /// The answer.
    pub answer: MessageId,
    /// A digest of its words.
    pub digest: String,
    /// State of the goal.
    pub standing: GoalStanding,
    /// Why, in the evaluating model's words.
    pub reason: String,
    /// Why the run did not go on, if the goal is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest: Option<GoalRest>,
}

/// State of a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GoalStanding {
    /// It is reached.
    Reached,
    /// More work of the agent brings it nearer.
    NotYet,
    /// Nothing shows whether it is reached.
    NoEvidence,
    /// Only a person can supply the missing part.
    NeedsPerson,
    /// Something failed that the agent cannot fix.
    Failed,
    /// It waits for something outside.
    Waits,
}

/// Why a run did not go on towards an open goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GoalRest {
    /// More work of the agent would not help now.
    Blocked,
    /// It went on as often as it may.
    Exhausted,
    /// It got no further.
    Stalled,
}

impl Goal {
    /// Makes a goal.
    #[must_use]
    pub fn new(objective: String, since: i64) -> Self {
        let max_continuations = MAX_CONTINUATIONS;
        Self { objective, since, continuations: 0, max_continuations, stalled: 0, verdict: None }
    }

    /// Returns whether it is still to be reached.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.verdict.as_ref().is_none_or(|verdict| verdict.standing != GoalStanding::Reached)
    }

    /// Lets runs go on again as often as at first: a person spoke.
    pub(crate) fn renew(&mut self) {
        (self.continuations, self.stalled) = (0, 0);
    }
}
