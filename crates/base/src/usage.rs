//! Tokens spent.

use serde::{Deserialize, Serialize};

/// Tokens that model calls took in and gave out, as the provider counted them. Providers count in different ways;
/// the wires bring them all into this one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the prompt, with those that came from the provider's cache or went into it.
    pub input: u64,
    /// Tokens of the reply, with those of its reasoning.
    pub output: u64,
    /// Of `input`, tokens that were read from the provider's cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached: u64,
    /// Of `input`, tokens that were written into the provider's cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_writes: u64,
    /// Of `output`, tokens of reasoning.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reasoning: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(tokens: &u64) -> bool {
    *tokens == 0
}

impl Usage {
    /// Returns the usage of a call whose provider tells no more than input and output.
    #[must_use]
    pub fn plain(input: u64, output: u64) -> Self {
        Self { input, output, ..Self::default() }
    }

    /// Returns input and output together.
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
