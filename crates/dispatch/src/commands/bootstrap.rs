//! `/bootstrap`: a person introduces themselves, and the lead agent writes its soul from that.

use super::{CommandAnswer, CommandContext, CommandSpec, agent::keep, not_stored};
use crate::agent::{self, AgentChoice};
use pudu_texts::Language;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "bootstrap",
    argument: Language::argument_request,
    about: Language::about_bootstrap,
    run: |context, _| Box::pin(run(context)),
};

/// Begins that conversation. Only approvers may do so, because everyone shares the lead agent. The command is the first
/// message.
async fn run(context: &mut CommandContext<'_>) -> CommandAnswer {
    let language = context.language();
    if !agent::may_bootstrap(&context.scope.account.policy(), context.person()) {
        return language.bootstrap_not_here().into();
    }
    context.begin_anew().await;
    let mark = context.agent().lead_soul_mark().await.unwrap_or_default();
    match keep(context, Some(AgentChoice::Bootstrap(mark))).await {
        Ok(()) => CommandAnswer::FirstMessage,
        Err(error) => not_stored(language, &error).into(),
    }
}
