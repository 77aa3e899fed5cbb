//! `/new`: begins anew with the same agent.

use super::{CommandSpec, agent::give_up_making};
use crate::bus::InboxItem;
use crate::dispatch::conversation::ConversationActor;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "new",
    argument: "",
    help: "Start a new conversation",
    run: |actor, arrival, _| Box::pin(run(actor, arrival)),
};

/// An agent that was being made here is not made.
async fn run(actor: &mut ConversationActor, arrival: InboxItem) {
    actor.begin_anew(&arrival).await;
    let text = match give_up_making(actor).await {
        true => "New conversation started. The agent that was being made here is not made.",
        false => "New conversation started.",
    };
    actor.answer(arrival, text);
}
