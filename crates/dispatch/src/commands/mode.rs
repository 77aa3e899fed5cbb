//! `/mode`: chooses how a message that arrives during a run is handled.

use super::{CommandAnswer, CommandContext, CommandSpec, mark, not_stored};
use pudu_channels::{Choice, FinalView};
use pudu_config::FollowUpMode;
use pudu_texts::Language;
use std::fmt::Write;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "mode",
    argument: |_| "[queue|steer|interrupt]",
    about: Language::about_mode,
    run: |context, argument| Box::pin(run(context, argument)),
};

async fn run(context: &mut CommandContext<'_>, argument: Option<String>) -> CommandAnswer {
    let language = context.language();
    let Some(name) = argument else {
        let view = modes(language, context.scope.mode().await);
        return view.into();
    };
    let Some(mode) = FollowUpMode::parse(&name) else {
        return language.mode_unknown(name).into();
    };
    context.ensure_thread().await;
    let text = match context.db().set_mode(&context.scope.key, Some(mode.name())).await {
        Ok(()) => language.mode_set(mode.about(language), mode.name()),
        Err(error) => not_stored(language, &error),
    };
    text.into()
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
