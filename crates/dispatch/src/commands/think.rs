//! `/think`: chooses the thinking effort of the model in a conversation.

use super::{CommandAnswer, CommandContext, CommandSpec, mark, not_stored};
use pudu_agent::{ModelInfo, ThinkingSupport};
use pudu_base::Thinking;
use pudu_channels::{Choice, FinalView};
use pudu_texts::Language;
use std::fmt::Write;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "think",
    argument: |_| "[off|on|low|medium|high]",
    about: Language::about_think,
    run: |context, argument| Box::pin(run(context, argument)),
};

async fn run(context: &mut CommandContext<'_>, argument: Option<String>) -> CommandAnswer {
    let language = context.language();
    let model = current_model(context).await;
    let support = model.as_ref().map(|model| model.thinking);
    if let Some(model) = model.as_ref().filter(|_| support == Some(ThinkingSupport::default())) {
        return language.think_unavailable(&model.name).into();
    }
    let Some(word) = argument else {
        let now = chosen(context).await;
        return levels(language, now).into();
    };
    let Some(thinking) = Thinking::parse(&word) else {
        return language.think_unknown(word).into();
    };
    let is_level = !matches!(thinking, Thinking::Off | Thinking::On);
    let only_switch = model.filter(|model| is_level && !model.thinking.takes_effort);
    let note = only_switch.map(|model| language.think_only_on(&model.name)).unwrap_or_default();
    context.ensure_thread().await;
    let text = match context.db().set_thinking(&context.scope.key, Some(thinking.name())).await {
        Ok(()) => {
            language.paragraph(&[&language.think_set(about(language, thinking), thinking.name()), &note])
        }
        Err(error) => not_stored(language, &error),
    };
    text.into()
}

/// Returns the model that answers a person here.
async fn current_model(context: &CommandContext<'_>) -> Option<ModelInfo> {
    let chosen = super::models::chosen(context).await?;
    context.agent().models().iter().find(|model| model.name == chosen).cloned()
}

/// Returns the thinking effort for the sender in this conversation.
async fn chosen(context: &CommandContext<'_>) -> Thinking {
    let record = context.record().await.and_then(|record| record.thinking);
    let chosen = record.as_deref().and_then(Thinking::parse);
    chosen.or(context.scope.account.policy().session(context.person()).thinking).unwrap_or_default()
}

fn about(language: Language, thinking: Thinking) -> &'static str {
    match thinking {
        Thinking::Off => language.think_off(),
        Thinking::On => language.think_on(),
        Thinking::Low => language.think_low(),
        Thinking::Medium => language.think_medium(),
        Thinking::High => language.think_high(),
    }
}

fn levels(language: Language, now: Thinking) -> FinalView {
    let mut text = format!("{}\n", language.think_levels());
    for level in Thinking::ALL {
        let about = language.described(about(language, level));
        let _ = write!(text, "\n- `{}`{about}{}", level.name(), mark(level == now, language.in_use()));
    }
    let button = |level: Thinking| Choice {
        label: level.name().to_owned(),
        action: format!("/think {}", level.name()),
    };
    let choices = Thinking::ALL.into_iter().filter(|level| *level != now).map(button).collect();
    FinalView { text, choices, ..FinalView::default() }
}
