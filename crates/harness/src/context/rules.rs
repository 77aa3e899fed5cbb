//! Rules for summaries, as an operator sets them.

use pudu_base::Model;
use std::{collections::BTreeSet, sync::Arc};

/// Rules for the contexts of a run, and the model that summarises.
#[derive(Clone, Default)]
pub struct ContextSetup {
    /// The rules.
    pub rules: Arc<ContextRules>,
    /// Model that summarises; the run's own if none.
    pub model: Option<Arc<dyn Model>>,
}

/// When a conversation is summarised, and what stays of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ContextRules {
    /// Whether summaries are made at all. Without, old results are masked and the beginning is cut.
    pub summaries: bool,
    /// Sizes of the messages at which it is summarised, whichever is reached first. A full window counts in any case.
    pub triggers: Vec<ContextSize>,
    /// How much of the newest messages stays as it is.
    pub keep: ContextSize,
    /// Maximum number of tokens, the newest, that another model than the run's own summarises.
    pub most_read: Option<u64>,
    /// The instruction; `{messages}` stands for the conversation.
    pub prompt: Option<Arc<str>>,
    /// Tools by which skills are read.
    pub skill_tools: BTreeSet<String>,
}

/// Size of a conversation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ContextSize {
    /// In tokens of its messages.
    Tokens(u64),
    /// In messages.
    Messages(u64),
    /// As a share of the model's window.
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
    /// Returns it in tokens; `None` if it counts messages.
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

    /// Returns it in messages, if it counts them.
    pub(super) fn messages(self) -> Option<usize> {
        match self {
            Self::Messages(count) => Some(usize::try_from(count).unwrap_or(usize::MAX)),
            Self::Tokens(_) | Self::Fraction(_) => None,
        }
    }
}
