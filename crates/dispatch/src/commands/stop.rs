//! `/stop`: stops the run and drops waiting messages.

use super::CommandSpec;
use crate::{bus::InboxItem, conversation::ConversationActor};
use pudu_channels::{FinalView, InboundKind};
use pudu_client::store::InboxItemId;
use pudu_texts::Language;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "stop",
    argument: super::NO_ARGUMENT,
    about: Language::about_stop,
    run: |actor, arrival, _| Box::pin(run(actor, arrival)),
};

/// A press of the button needs no answer besides: the message with the button shows the outcome.
async fn run(actor: &mut ConversationActor, arrival: InboxItem) {
    let stopped = [actor.stop(), actor.stop_files()].contains(&true);
    let waiting = actor.waiting.drain(..).chain(actor.again.take());
    let dropped: Vec<InboxItemId> = waiting.map(|waiting| waiting.id).collect();
    if matches!(arrival.inbound.kind, InboundKind::Press { .. }) && stopped && dropped.is_empty() {
        actor.shared.inbox.finish(&[arrival.id]).await;
        return;
    }
    let language = actor.language(&arrival);
    let text = match (stopped, dropped.len()) {
        (false, 0) => language.nothing_running().to_owned(),
        (_, 0) => language.stopped().to_owned(),
        (_, count) => language.stopped_and_dropped(count),
    };
    actor.answer_with(arrival, FinalView { text, ..FinalView::default() }, dropped);
}
