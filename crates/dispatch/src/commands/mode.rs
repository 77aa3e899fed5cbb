//! `/mode`: chooses the effect of a message while a run works.

use super::{CommandSpec, mark, not_stored};
use crate::{bus::InboxItem, command::SlashCommand, conversation::ConversationActor};
use pudu_channels::{Choice, FinalView};
use pudu_config::FollowUpMode;
use pudu_texts::Language;
use std::fmt::Write;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "mode",
    argument: |_| "[queue|steer|interrupt]",
    about: Language::about_mode,
    run: |actor, arrival, command| Box::pin(run(actor, arrival, command)),
};

async fn run(actor: &mut ConversationActor, arrival: InboxItem, command: SlashCommand) {
    let language = actor.language(&arrival);
    let Some(name) = command.argument else {
        let view = modes(language, actor.mode().await);
        actor.answer_with(arrival, view, Vec::new());
        return;
    };
    let Some(mode) = FollowUpMode::parse(&name) else {
        actor.answer(arrival, language.mode_unknown(name));
        return;
    };
    actor.ensure_thread(&arrival).await;
    let text = match actor.shared.db.set_mode(&actor.key, Some(mode.name())).await {
        Ok(()) => language.mode_set(mode.about(language), mode.name()),
        Err(error) => not_stored(language, &error),
    };
    actor.answer(arrival, text);
}

fn modes(language: Language, now: FollowUpMode) -> FinalView {
    let mut text = format!("{}\n", language.modes());
    for (name, mode) in FollowUpMode::NAMES {
        let about = language.described(mode.about(language));
        let _ = write!(text, "\n- `{name}`{about}{}", mark(*mode == now, language.in_use()));
    }
    let others = FollowUpMode::NAMES.iter().filter(|(_, mode)| *mode != now);
    let button =
        |(name, _): &(&str, _)| Choice { label: (*name).to_owned(), action: format!("/mode {name}") };
    let choices = others.map(button).collect();
    FinalView { text, choices, ..FinalView::default() }
}
