//! Token usage.

use serde::{Deserialize, Serialize};

/// Input and output tokens of model calls, as counted by the provider. Providers count in different ways; the wires
/// convert all counts to this one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the prompt, including those read from or written to the provider's cache.
    pub input: u64,
    /// Tokens of the reply, including its reasoning.
    pub output: u64,
    /// Part of `input` that was read from the provider's cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached: u64,
    /// Part of `input` that was written to the provider's cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_writes: u64,
    /// Part of `output` that was reasoning.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reasoning: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(tokens: &u64) -> bool {
    *tokens == 0
}

impl Usage {
    /// Returns the usage of a call whose provider reports only input and output.
    #[must_use]
    pub fn plain(input: u64, output: u64) -> Self {
        Self { input, output, ..Self::default() }
    }

    /// Returns the usage with every number capped at `max`.
    #[must_use]
    pub fn at_most(self, max: u64) -> Self {
        let Self { input, output, cached, cache_writes, reasoning } = self;
        let [input, output, cached, cache_writes, reasoning] =
            [input, output, cached, cache_writes, reasoning].map(|tokens| tokens.min(max));
        Self { input, output, cached, cache_writes, reasoning }
    }

    /// Returns the sum of input and output.
    #[must_use]
    pub fn total(self) -> u64 {
        self.input.saturating_add(self.output)
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        for (sum, more) in [
            (&mut self.input, other.input),
            (&mut self.output, other.output),
            (&mut self.cached, other.cached),
            (&mut self.cache_writes, other.cache_writes),
            (&mut self.reasoning, other.reasoning),
        ] {
            *sum = sum.saturating_add(more);
        }
    }
}

/// The purpose that a model is called for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelCaller {
    /// The agent that answers people.
    #[default]
    Lead,
    /// A sub-agent.
    Subagent,
    /// The title of a thread.
    Title,
    /// The summary of a conversation that became too long.
    Summary,
    /// Learning facts about users for the memory.
    Memory,
    /// The verdict on a thread's goal.
    Goal,
    /// The check of a skill before it is stored.
    Moderation,
    /// Writing aids: follow-up questions, rewording.
    Assistance,
}

impl ModelCaller {
    /// All callers.
    pub const ALL: [Self; 8] = [
        Self::Lead,
        Self::Subagent,
        Self::Title,
        Self::Summary,
        Self::Memory,
        Self::Goal,
        Self::Moderation,
        Self::Assistance,
    ];

    /// Returns its name in tables and in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lead => "lead",
            Self::Subagent => "subagent",
            Self::Title => "title",
            Self::Summary => "summary",
            Self::Memory => "memory",
            Self::Goal => "goal",
            Self::Moderation => "moderation",
            Self::Assistance => "assistance",
        }
    }

    /// Parses a [`Self::as_str`].
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|caller| caller.as_str() == word)
    }

    /// Returns the caller for a side call with this purpose. All side calls of a sub-agent count as the sub-agent's.
    #[must_use]
    pub fn for_side_call(self, purpose: Self) -> Self {
        match self {
            Self::Subagent => Self::Subagent,
            _ => purpose,
        }
    }
}

/// Sum of the calls of one model by one caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spending {
    /// The caller.
    pub caller: ModelCaller,
    /// The model's name.
    pub model: String,
    /// Tokens of the calls whose provider reported them.
    pub usage: Usage,
    /// Number of calls.
    pub calls: u64,
    /// Number of calls without reported usage, or cut before it was reported.
    pub unreported: u64,
}

/// Spending of a run, by caller and model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpendingTally(Vec<Spending>);

impl SpendingTally {
    /// Adds one call.
    pub fn add_call(&mut self, caller: ModelCaller, model: &str, usage: Option<Usage>) {
        let (model, unreported) = (model.to_owned(), u64::from(usage.is_none()));
        self.add(Spending { caller, model, usage: usage.unwrap_or_default(), calls: 1, unreported });
    }

    /// Adds calls that were summed elsewhere.
    pub fn add(&mut self, more: Spending) {
        let same = |own: &&mut Spending| own.caller == more.caller && own.model == more.model;
        match self.0.iter_mut().find(same) {
            Some(own) => {
                own.usage += more.usage;
                own.calls += more.calls;
                own.unreported += more.unreported;
            }
            None => self.0.push(more),
        }
    }

    /// Returns the parts, in the order of their first calls.
    #[must_use]
    pub fn parts(&self) -> &[Spending] {
        &self.0
    }

    /// Returns the same spending, attributed to sub-agents.
    #[must_use]
    pub fn of_subagent(self) -> Self {
        let mut tally = Self::default();
        self.0.into_iter().for_each(|part| tally.add(Spending { caller: ModelCaller::Subagent, ..part }));
        tally
    }

    /// Returns the usage of all parts together.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        self.0.iter().for_each(|part| usage += part.usage);
        usage
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_callers_name_parses_back_to_it() {
        for caller in ModelCaller::ALL {
            assert_eq!(ModelCaller::parse(caller.as_str()), Some(caller));
        }
    }
}
