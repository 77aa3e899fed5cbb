//! `/new`: begins a new conversation with the same agent.

use super::{CommandSpec, agent::give_up_making};
use crate::{bus::InboxItem, conversation::ConversationActor};
use pudu_channels::FinalView;
use pudu_texts::Language;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "new",
    argument: super::NO_ARGUMENT,
    about: Language::about_new,
    run: |actor, arrival, _| Box::pin(run(actor, arrival)),
};

/// An agent that was being made here is not made.
async fn run(actor: &mut ConversationActor, arrival: InboxItem) {
    actor.begin_anew(&arrival).await;
    let language = actor.language(&arrival);
    let given_up =
        if give_up_making(actor, &arrival.inbound).await { language.making_given_up() } else { "" };
    let text = language.paragraph(&[language.conversation_started(), given_up]);
    let view = FinalView { text, title: Some(String::new()), ..FinalView::default() };
    actor.answer_with(arrival, view, Vec::new());
}
