//! `/mode`: chooses what a message does while a run works.

use super::{CommandSpec, not_stored};
use crate::bus::InboxItem;
use crate::dispatch::{command::SlashCommand, conversation::ConversationActor, mode::FollowUpMode};
use pudu_channels::{Choice, FinalView};
use std::fmt::Write;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "mode",
    argument: "[queue|steer|interrupt]",
    help: "Choose what a message does while I work",
    run: |actor, arrival, command| Box::pin(run(actor, arrival, command)),
};

async fn run(actor: &mut ConversationActor, arrival: InboxItem, command: SlashCommand) {
    let Some(name) = command.argument else {
        let view = modes(actor.mode().await);
        actor.answer_with(arrival, view, Vec::new());
        return;
    };
    let Some(mode) = FollowUpMode::parse(&name) else {
        let text = format!("There is no mode `{name}`. Choose `queue`, `steer` or `interrupt`.");
        actor.answer(arrival, text);
        return;
    };
    actor.ensure_thread(&arrival).await;
    let text = match actor.shared.db.set_mode(&actor.key, Some(mode.name())).await {
        Ok(()) => format!("Mode `{}`: {}.", mode.name(), mode.about()),
        Err(error) => not_stored(&error),
    };
    actor.answer(arrival, text);
}

fn modes(now: FollowUpMode) -> FinalView {
    let mut text = "What a message does while I work:\n".to_owned();
    for mode in FollowUpMode::ALL {
        let mark = if mode == now { " ← in use" } else { "" };
        let _ = write!(text, "\n- `{}`: {}{mark}", mode.name(), mode.about());
    }
    let button = |mode: FollowUpMode| Choice {
        label: mode.name().to_owned(),
        action: format!("/mode {}", mode.name()),
    };
    let choices = FollowUpMode::ALL.into_iter().filter(|mode| *mode != now).map(button).collect();
    FinalView { text, choices, ..FinalView::default() }
}
