//! `/goal`: the goal that the agent works towards in a conversation until it is reached.

use super::{CommandAnswer, CommandContext, CommandSpec, not_stored};
use crate::{goals, input};
use pudu_base::{LogError, ThreadId};
use pudu_channels::FinalView;
use pudu_store::StoreError;
use pudu_texts::Language;

/// Maximum length of a goal, in characters.
const MAX_GOAL_CHARS: usize = 4_000;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: input::GOAL,
    argument: Language::argument_goal,
    about: Language::about_goal,
    run: |context, argument| Box::pin(run(context, argument)),
};

/// Shows, clears or sets the goal. Setting one is a message like any other: it starts work, may have to wait, and is
/// resumed after a restart.
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
    match context.agent().state(&thread).await {
        Ok(state) => goals::status(language, state.goal.as_ref()),
        Err(error) => not_stored(language, &StoreError::Unavailable(error.to_string())),
    }
}

/// Clears the goal, if there is one. If a client's run is working on the thread, the answer waits for that run.
async fn clear(context: &mut CommandContext<'_>, language: Language) -> CommandAnswer {
    let thread = context.thread().await;
    match has_goal(context, thread.as_ref()).await {
        Ok(true) => {}
        Ok(false) => return language.goal_not_set().into(),
        Err(error) => return not_stored(language, &StoreError::Unavailable(error.to_string())).into(),
    }
    let cleared = context.live.clear_goal(thread.as_ref()).await;
    CommandAnswer::Later(Box::pin(async move {
        let text = match cleared.0.await {
            Ok(()) => language.goal_cleared().to_owned(),
            Err(error) => not_stored(language, &error),
        };
        FinalView { text, ..FinalView::default() }
    }))
}

async fn has_goal(context: &CommandContext<'_>, thread: Option<&ThreadId>) -> Result<bool, LogError> {
    let set = match thread {
        Some(thread) => context.scope.shared.runs.has_goal(thread).await?,
        None => false,
    };
    Ok(set || context.live.has_goal_ahead())
}
