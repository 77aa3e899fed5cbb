//! `/usage`: shows the tokens that a conversation spent.

use super::{CommandSpec, count};
use crate::bus::InboxItem;
use crate::dispatch::conversation::ConversationActor;
use pudu_texts::Language;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "usage",
    argument: super::NO_ARGUMENT,
    about: Language::about_usage,
    run: |actor, arrival, _| Box::pin(run(actor, arrival)),
};

async fn run(actor: &mut ConversationActor, arrival: InboxItem) {
    let text = text(actor, actor.language(&arrival)).await;
    actor.answer(arrival, text);
}

async fn text(actor: &ConversationActor, language: Language) -> String {
    let Some(record) = actor.record().await else { return language.no_conversation().to_owned() };
    match actor.shared.db.usage(&record.thread).await {
        Ok((usage, runs)) => language.usage(usage.input, count(runs), usage.total(), usage.output),
        Err(error) => {
            tracing::error!(%error, "failed to read usage");
            language.usage_unreadable().to_owned()
        }
    }
}
