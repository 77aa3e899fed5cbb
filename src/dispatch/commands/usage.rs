//! `/usage`: shows the tokens that a conversation spent.

use super::CommandSpec;
use crate::bus::InboxItem;
use crate::dispatch::conversation::ConversationActor;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "usage",
    argument: "",
    help: "Show the tokens spent here",
    run: |actor, arrival, _| Box::pin(run(actor, arrival)),
};

async fn run(actor: &mut ConversationActor, arrival: InboxItem) {
    let text = text(actor).await;
    actor.answer(arrival, text);
}

async fn text(actor: &ConversationActor) -> String {
    let Some(record) = actor.record().await else { return "No active conversation.".to_owned() };
    match actor.shared.db.usage(&record.thread).await {
        Ok((usage, runs)) => format!(
            "Tokens in this conversation: {} read, {} written, {} in all, in {runs} run(s).",
            usage.input,
            usage.output,
            usage.total()
        ),
        Err(error) => {
            tracing::error!(%error, "the usage could not be read");
            "The usage could not be read just now.".to_owned()
        }
    }
}
