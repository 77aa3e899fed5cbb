//! Rules for summaries, set by an operator.

use pudu_base::Model;
use std::{collections::BTreeSet, sync::Arc};

/// Rules for fitting a run's requests, and the model that summarises.
#[derive(Clone, Default)]
pub struct ContextSetup {
    /// The rules.
    pub rules: Arc<ContextRules>,
    /// Model that summarises; `None` for the run's own.
    pub model: Option<Arc<dyn Model>>,
}

/// When a conversation is summarised, and how much is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct ContextRules {
    /// Whether summaries are made. If not, old results are masked and the beginning is cut.
    pub summaries: bool,
    /// Sizes that trigger a summary, whichever is reached first. A full window always does.
    pub triggers: Vec<ContextSize>,
    /// How much of the newest messages is kept unchanged.
    pub keep: ContextSize,
    /// Maximum number of tokens, counted from the newest, that a model other than the run's own summarises.
    pub most_read: Option<u64>,
    /// The instruction; `{messages}` is replaced with the conversation.
    pub prompt: Option<Arc<str>>,
    /// Tools that read skills.
    pub skill_tools: BTreeSet<String>,
}

/// Size of a conversation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ContextSize {
    /// Tokens of the messages.
    Tokens(u64),
    /// Number of messages.
    Messages(u64),
    /// Share of the model's window.
    Fraction(f64),
}

impl Default for ContextRules {
    fn default() -> Self {
        Self {
            summaries: true,
            triggers: Vec::new(),
            keep: ContextSize::Messages(20),
            most_read: None,
            prompt: None,
            skill_tools: ["read_file", "read", "view", "cat"].map(str::to_owned).into(),
        }
    }
}

impl ContextSize {
    /// Returns the size in tokens; `None` if it counts messages.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "a share of a window need not be exact"
    )]
    pub(super) fn tokens(self, window: u64) -> Option<u64> {
        match self {
            Self::Tokens(tokens) => Some(tokens),
            Self::Fraction(share) => Some((window as f64 * share) as u64),
            Self::Messages(_) => None,
        }
    }

    /// Returns the size in messages, if it counts messages.
    pub(super) fn messages(self) -> Option<usize> {
        match self {
            Self::Messages(count) => Some(usize::try_from(count).unwrap_or(usize::MAX)),
            Self::Tokens(_) | Self::Fraction(_) => None,
        }
    }
}
