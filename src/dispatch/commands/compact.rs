//! `/compact`: summarises the conversation so far. That is a turn like any other: it can be stopped, what is said
//! meanwhile waits, and a restart takes it up.

use super::CommandSpec;
use crate::bus::InboxItem;
use crate::dispatch::{conversation::ConversationActor, turn::TurnWork};
use pudu_texts::Language;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "compact",
    argument: super::NO_ARGUMENT,
    about: Language::about_compact,
    run: |actor, arrival, _| Box::pin(run(actor, arrival)),
};

async fn run(actor: &mut ConversationActor, arrival: InboxItem) {
    let language = actor.language(&arrival);
    if actor.running.is_some() || !actor.waiting.is_empty() || actor.again.is_some() {
        actor.answer(arrival, language.compact_busy());
        return;
    }
    let Some(record) = actor.record().await else {
        actor.answer(arrival, language.no_conversation());
        return;
    };
    let policy = actor.account.policy();
    actor.open(vec![arrival], &policy, Some(record), TurnWork::Compact).await;
}
