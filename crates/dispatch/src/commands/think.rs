//! `/think`: chooses how hard the model thinks in a conversation.

use super::{CommandAnswer, CommandContext, CommandSpec, mark, not_stored};
use pudu_channels::{Choice, FinalView};
use pudu_client::base::Thinking;
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
    let Some(word) = argument else {
        let now = chosen(context).await;
        return levels(language, now).into();
    };
    let Some(thinking) = Thinking::parse(&word) else {
        return language.think_unknown(word).into();
    };
    context.ensure_thread().await;
    let text = match context.db().set_thinking(&context.scope.key, Some(thinking.name())).await {
        Ok(()) => {
            let set = language.think_set(about(language, thinking), thinking.name());
            language.paragraph(&[&set, &untold(context, language).await])
        }
        Err(error) => not_stored(language, &error),
    };
    text.into()
}

/// Returns a note if the thinking of the model here cannot be set; empty if it can.
async fn untold(context: &CommandContext<'_>, language: Language) -> String {
    let chosen = super::models::chosen(context).await;
    let models = context.client().models();
    let deaf = models.iter().find(|model| {
        Some(&model.name) == chosen.as_ref() && !(model.thinking.supported || model.thinking.takes_effort)
    });
    deaf.map(|model| language.think_untold(&model.name)).unwrap_or_default()
}

/// Returns how hard the model thinks for a person here.
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
