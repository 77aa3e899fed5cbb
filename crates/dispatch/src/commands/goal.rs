//! `/goal`: the goal that the agent works towards in a conversation until it is reached.

use super::{CommandSpec, not_stored};
use crate::{bus::InboxItem, command::SlashCommand, conversation::ConversationActor, goals, input, reply};
use pudu_channels::FinalView;
use pudu_client::store::StoreError;
use pudu_texts::Language;

/// Maximum length of a goal, in characters.
const MAX_GOAL_CHARS: usize = 4_000;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: input::GOAL,
    argument: Language::argument_goal,
    about: Language::about_goal,
    run: |actor, arrival, command| Box::pin(run(actor, arrival, command)),
};

/// A goal is a message like any other, which starts work on it; it may wait, and a restart takes it up.
async fn run(actor: &mut ConversationActor, arrival: InboxItem, command: SlashCommand) {
    let language = actor.language(&arrival);
    let words = command.argument.unwrap_or_default();
    match words.to_lowercase().as_str() {
        "" => {
            let text = show(actor, language).await;
            actor.answer(arrival, text);
        }
        "clear" | "reset" | "off" => clear(actor, arrival, language).await,
        _ if words.chars().count() > MAX_GOAL_CHARS => {
            actor.answer(arrival, language.goal_long(MAX_GOAL_CHARS));
        }
        _ => actor.say(arrival).await,
    }
}

async fn show(actor: &ConversationActor, language: Language) -> String {
    let Some(record) = actor.record().await else { return goals::status(language, None) };
    match actor.shared.client.state(&record.thread).await {
        Ok(state) => goals::status(language, state.goal.as_ref()),
        Err(error) => not_stored(language, &StoreError::Unavailable(error.to_string())),
    }
}

/// Takes the goal back, also one that waits: it is answered as a message. A run that works towards it ends with its next
/// answer, also after a restart. Where a client's run is at work on the thread, that is awaited.
async fn clear(actor: &mut ConversationActor, arrival: InboxItem, language: Language) {
    for waiting in &mut actor.waiting {
        if let Some(objective) = input::goal(waiting) {
            input::amend(&actor.shared, waiting, &objective).await;
        }
    }
    let told = move |cleared: Result<(), StoreError>| match cleared {
        Ok(()) => language.goal_cleared().to_owned(),
        Err(error) => not_stored(language, &error),
    };
    if let Some(running) = actor.running.as_ref().filter(|running| running.works()) {
        let dropped = actor.shared.db.drop_goal(&running.turn).await;
        let text = told(dropped.inspect(|()| running.control.steering.drop_goal()));
        return actor.answer(arrival, text);
    }
    let Some(record) = actor.record().await else { return actor.answer(arrival, told(Ok(()))) };
    let cleared = actor.shared.client.clear_goal(&record.thread);
    let (shared, account, key) = (actor.shared.clone(), actor.account.clone(), actor.key.clone());
    actor.shared.tasks.spawn(async move {
        let view = FinalView { text: told(cleared.await), ..FinalView::default() };
        reply::answer(&shared, &account, &key, arrival, view, Vec::new());
    });
}
