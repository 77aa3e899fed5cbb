//! `/think`: chooses how hard the model thinks in a conversation.

use super::{CommandSpec, mark, not_stored};
use crate::{bus::InboxItem, command::SlashCommand, conversation::ConversationActor};
use pudu_channels::{Choice, FinalView, Inbound};
use pudu_client::base::Thinking;
use pudu_texts::Language;
use std::fmt::Write;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "think",
    argument: |_| "[off|on|low|medium|high]",
    about: Language::about_think,
    run: |actor, arrival, command| Box::pin(run(actor, arrival, command)),
};

async fn run(actor: &mut ConversationActor, arrival: InboxItem, command: SlashCommand) {
    let language = actor.language(&arrival);
    let Some(word) = command.argument else {
        let now = chosen(actor, &arrival.inbound.sender.id).await;
        actor.answer_with(arrival, levels(language, now), Vec::new());
        return;
    };
    let Some(thinking) = Thinking::parse(&word) else {
        actor.answer(arrival, language.think_unknown(word));
        return;
    };
    actor.ensure_thread(&arrival).await;
    let text = match actor.shared.db.set_thinking(&actor.key, Some(thinking.name())).await {
        Ok(()) => {
            let set = language.think_set(about(language, thinking), thinking.name());
            language.paragraph(&[&set, &untold(actor, language, &arrival.inbound).await])
        }
        Err(error) => not_stored(language, &error),
    };
    actor.answer(arrival, text);
}

/// Returns a note if the thinking of the model here cannot be set; empty if it can.
async fn untold(actor: &ConversationActor, language: Language, inbound: &Inbound) -> String {
    let chosen = super::models::chosen(actor, inbound).await;
    let models = actor.shared.client.models();
    let deaf = models.iter().find(|model| {
        Some(&model.name) == chosen.as_ref() && !(model.thinking.supported || model.thinking.takes_effort)
    });
    deaf.map(|model| language.think_untold(&model.name)).unwrap_or_default()
}

/// Returns how hard the model thinks for a person here.
async fn chosen(actor: &ConversationActor, person: &str) -> Thinking {
    let record = actor.record().await.and_then(|record| record.thinking);
    let chosen = record.as_deref().and_then(Thinking::parse);
    chosen.or(actor.account.policy().session(person).thinking).unwrap_or_default()
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
