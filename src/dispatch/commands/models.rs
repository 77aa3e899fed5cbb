//! `/models`: lists the models, or switches a conversation to one.

use super::{CommandSpec, MAX_ACTION_BYTES, MAX_BUTTONS, not_stored};
use crate::bus::InboxItem;
use crate::dispatch::{agent, command::SlashCommand, conversation::ConversationActor};
use pudu_channels::{Choice, FinalView};
use pudu_client::ModelInfo;
use std::fmt::Write;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "models",
    argument: "[name]",
    help: "List the models, or switch to one",
    run: |actor, arrival, command| Box::pin(run(actor, arrival, command)),
};

async fn run(actor: &mut ConversationActor, arrival: InboxItem, command: SlashCommand) {
    let models = actor.shared.client.models();
    let chosen = chosen(actor, &arrival.inbound.sender.id).await;
    let Some(name) = command.argument else {
        actor.answer_with(arrival, list(&models, chosen.as_deref()), Vec::new());
        return;
    };
    let Some(model) = models.iter().find(|model| model.name.eq_ignore_ascii_case(&name)) else {
        let nearest = models.iter().max_by(|a, b| {
            let likeness = |model: &ModelInfo| strsim::jaro_winkler(&model.name, &name);
            likeness(a).total_cmp(&likeness(b))
        });
        let meant = nearest.map(|model| format!(" Did you mean `{}`?", model.name)).unwrap_or_default();
        actor.answer(arrival, format!("There is no model `{name}`.{meant} /models lists them."));
        return;
    };
    actor.ensure_thread(&arrival).await;
    let text = match actor.shared.db.set_model(&actor.key, Some(&model.name)).await {
        Ok(()) => format!("This conversation now uses `{}`.", model.name),
        Err(error) => not_stored(&error),
    };
    actor.answer(arrival, text);
}

/// Returns the name of the model that answers a person here: what was chosen in this conversation, what the
/// account's session says, what the agent wants, or the default.
pub(super) async fn chosen(actor: &ConversationActor, person: &str) -> Option<String> {
    let models = actor.shared.client.models();
    let chosen = actor.record().await.and_then(|record| record.model);
    let wanted = match chosen.or_else(|| actor.account.policy().session(person).model) {
        Some(wanted) => Some(wanted),
        None => {
            let agent = agent::custom(&actor.shared, &actor.session(person).await).await;
            agent.and_then(|agent| agent.profile.model)
        }
    };
    let known = wanted.filter(|name| models.iter().any(|model| model.name == *name));
    known.or_else(|| models.first().map(|model| model.name.clone()))
}

fn list(models: &[ModelInfo], chosen: Option<&str>) -> FinalView {
    if models.is_empty() {
        return FinalView { text: "No models configured.".to_owned(), ..FinalView::default() };
    }
    let mut text = "Available models:\n".to_owned();
    for model in models {
        let mark = if Some(model.name.as_str()) == chosen { " ← in use" } else { "" };
        let about = model.about.as_ref().map(|about| format!(": {about}")).unwrap_or_default();
        let title = if model.title == model.name { String::new() } else { format!(" ({})", model.title) };
        let _ = write!(text, "\n- `{}`{title}{about}{mark}", model.name);
    }
    let other = models.iter().filter(|model| Some(model.name.as_str()) != chosen);
    let button =
        |model: &ModelInfo| Choice { label: model.title.clone(), action: format!("/models {}", model.name) };
    let choices = other
        .map(button)
        .filter(|choice| choice.action.len() <= MAX_ACTION_BYTES)
        .take(MAX_BUTTONS)
        .collect();
    FinalView { text, choices, ..FinalView::default() }
}
