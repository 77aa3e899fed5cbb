//! The port from a running call to the people and the model of its run.

use crate::{BoxFuture, Decision, Message, MessageId};
use std::{path::PathBuf, sync::Arc};

/// People and model of a run, for a tool that needs them while a call runs.
pub trait CallHost: Send + Sync {
    /// Returns whether people can answer a [`crate::Question`] of the call.
    fn can_ask(&self) -> bool;

    /// Returns the newest message of a person: its id and its text.
    fn newest_message(&self) -> Option<(MessageId, Arc<str>)>;

    /// Asks people to approve an effect of the call that its arguments do not show, and waits for the decision. A
    /// timeout is a denial.
    fn approve(&self, request: EffectRequest) -> BoxFuture<'_, Decision>;

    /// Asks the run's model. The call counts against the budgets of the run's user.
    ///
    /// # Errors
    /// The reason why there is no answer, for the tool.
    fn sample(&self, prompt: SamplePrompt) -> BoxFuture<'_, Result<SampledText, String>>;

    /// Returns the folder with the thread's files, if programs on this host can open it.
    fn workspace(&self) -> Option<PathBuf>;
}

/// An effect of a running call that needs a person's approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectRequest {
    /// One-line description for people, in Markdown.
    pub line: String,
    /// The complete text, if the line is shortened.
    pub whole: Option<Arc<str>>,
}

/// A request to the run's model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SamplePrompt {
    /// The system prompt.
    pub system: String,
    /// The messages, oldest first.
    pub messages: Vec<Arc<Message>>,
    /// Maximum length of the answer, in tokens.
    pub max_tokens: Option<u32>,
}

/// An answer of the run's model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampledText {
    /// The text.
    pub text: String,
    /// The model's name in the configuration.
    pub model: String,
}

/// A host without people and without a model.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCallHost;

impl CallHost for NoCallHost {
    fn can_ask(&self) -> bool {
        false
    }

    fn newest_message(&self) -> Option<(MessageId, Arc<str>)> {
        None
    }

    fn approve(&self, request: EffectRequest) -> BoxFuture<'_, Decision> {
        let decision = Decision { request: request.line, approved: false, by: None, not_asked: true };
        Box::pin(std::future::ready(decision))
    }

    fn sample(&self, _: SamplePrompt) -> BoxFuture<'_, Result<SampledText, String>> {
        Box::pin(std::future::ready(Err("there is no model".to_owned())))
    }

    fn workspace(&self) -> Option<PathBuf> {
        None
    }
}
