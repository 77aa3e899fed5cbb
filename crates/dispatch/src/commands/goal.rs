//! `/goal`: the goal that the agent works towards in a conversation until it is reached.

use super::{CommandAnswer, CommandContext, CommandSpec, not_stored};
use crate::{goals, input};
use pudu_channels::FinalView;
use pudu_client::store::StoreError;
use pudu_texts::Language;

/// Maximum length of a goal, in characters.
const MAX_GOAL_CHARS: usize = 4_000;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: input::GOAL,
    argument: Language::argument_goal,
    about: Language::about_goal,
    run: |context, argument| Box::pin(run(context, argument)),
};

/// A goal is a message like any other, which starts work on it; it may wait, and a restart takes it up.
async fn run(context: &mut CommandContext<'_>, argument: Option<String>) -> CommandAnswer {
    let language = context.language();
    let words = argument.unwrap_or_default();
    match words.to_lowercase().as_str() {
        "" => show(context, language).await.into(),
        "clear" | "reset" | "off" => clear(context, language).await,
        _ if words.chars().count() > MAX_GOAL_CHARS => language.goal_long(MAX_GOAL_CHARS).into(),
        _ => CommandAnswer::Message,
    }
}

async fn show(context: &CommandContext<'_>, language: Language) -> String {
    let Some(thread) = context.thread().await else { return goals::status(language, None) };
    match context.client().state(&thread).await {
        Ok(state) => goals::status(language, state.goal.as_ref()),
        Err(error) => not_stored(language, &StoreError::Unavailable(error.to_string())),
    }
}

/// Clears the goal. Where a client's run is at work on the thread, the answer waits for that run.
async fn clear(context: &mut CommandContext<'_>, language: Language) -> CommandAnswer {
    let thread = context.thread().await;
    let cleared = context.live.clear_goal(thread.as_ref()).await;
    CommandAnswer::Later(Box::pin(async move {
        let text = match cleared.0.await {
            Ok(()) => language.goal_cleared().to_owned(),
            Err(error) => not_stored(language, &error),
        };
        FinalView { text, ..FinalView::default() }
    }))
}
