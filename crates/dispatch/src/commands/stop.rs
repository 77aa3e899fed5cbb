//! `/stop`: stops the run and drops waiting messages.

use super::{CommandAnswer, CommandContext, CommandSpec, context::StoppedWork, not_stored};
use pudu_channels::InboundKind;
use pudu_texts::Language;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "stop",
    argument: super::NO_ARGUMENT,
    about: Language::about_stop,
    run: |context, _| Box::pin(run(context)),
};

/// Stops the run. A press of the button gets no separate answer: the message with the button shows the outcome.
async fn run(context: &mut CommandContext<'_>) -> CommandAnswer {
    let language = context.language();
    let StoppedWork { stopped, dropped } = match context.live.stop().await {
        Ok(work) => work,
        Err(error) => return not_stored(language, &error).into(),
    };
    if matches!(context.inbound.kind, InboundKind::Press { .. }) && stopped && dropped.is_empty() {
        return CommandAnswer::Nothing;
    }
    let text = match (stopped, dropped.len()) {
        (false, 0) => language.nothing_running().to_owned(),
        (_, 0) => language.stopped().to_owned(),
        (_, count) => language.stopped_and_dropped(count),
    };
    CommandAnswer::Dropped(text, dropped)
}
