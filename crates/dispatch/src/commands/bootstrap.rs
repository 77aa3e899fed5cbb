//! `/bootstrap`: people introduce themselves, and the lead agent gets its character from that.

use super::{CommandSpec, agent::keep, not_stored};
use crate::bus::InboxItem;
use crate::{
    agent::{self, AgentChoice},
    conversation::ConversationActor,
};
use pudu_texts::Language;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "bootstrap",
    argument: Language::argument_request,
    about: Language::about_bootstrap,
    run: |actor, arrival, _| Box::pin(run(actor, arrival)),
};

/// All people share the lead agent, so only approvers may. The command is the first message.
async fn run(actor: &mut ConversationActor, arrival: InboxItem) {
    let language = actor.language(&arrival);
    if !agent::may_bootstrap(&actor.account.policy(), &arrival.inbound.sender.id) {
        actor.answer(arrival, language.bootstrap_not_here());
        return;
    }
    actor.begin_anew(&arrival).await;
    let mark = actor.shared.client.lead_soul_mark().await.unwrap_or_default();
    match keep(actor, &arrival, Some(AgentChoice::Bootstrap(mark))).await {
        Ok(()) => actor.waiting.push_back(arrival),
        Err(error) => actor.answer(arrival, not_stored(language, &error)),
    }
}
