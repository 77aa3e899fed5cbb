//! `/new`: begins a new conversation with the same agent.

use super::{CommandAnswer, CommandContext, CommandSpec, agent::give_up_making};
use pudu_channels::FinalView;
use pudu_texts::Language;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "new",
    argument: super::NO_ARGUMENT,
    about: Language::about_new,
    run: |context, _| Box::pin(run(context)),
};

/// Begins a new conversation. If an agent was being created here, its creation is cancelled.
async fn run(context: &mut CommandContext<'_>) -> CommandAnswer {
    context.begin_anew().await;
    let language = context.language();
    let given_up = if give_up_making(context).await { language.making_given_up() } else { "" };
    let text = language.paragraph(&[language.conversation_started(), given_up]);
    let view = FinalView { text, title: Some(String::new()), ..FinalView::default() };
    view.into()
}
