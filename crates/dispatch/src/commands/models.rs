//! `/models`: lists the models, or switches a conversation to one.

use super::{CommandAnswer, CommandContext, CommandSpec, MAX_ACTION_BYTES, MAX_BUTTONS, mark, not_stored};
use crate::agent;
use pudu_agent::ModelInfo;
use pudu_channels::{Choice, FinalView};
use pudu_texts::Language;
use std::fmt::Write;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "models",
    argument: Language::argument_name,
    about: Language::about_models,
    run: |context, argument| Box::pin(run(context, argument)),
};

async fn run(context: &mut CommandContext<'_>, argument: Option<String>) -> CommandAnswer {
    let (models, language) = (context.agent().models(), context.language());
    let chosen = chosen(context).await;
    let Some(name) = argument else {
        return list(language, &models, chosen.as_deref()).into();
    };
    let Some(model) = models.iter().find(|model| model.name.eq_ignore_ascii_case(&name)) else {
        let nearest = models.iter().max_by(|a, b| {
            let likeness = |model: &ModelInfo| strsim::jaro_winkler(&model.name, &name);
            likeness(a).total_cmp(&likeness(b))
        });
        let suggestion = nearest.map(|model| language.did_you_mean(&model.name)).unwrap_or_default();
        let text =
            language.paragraph(&[&language.model_unknown(name), &suggestion, language.models_listed()]);
        return text.into();
    };
    context.ensure_thread().await;
    let text = match context.db().set_model(&context.scope.key, Some(&model.name)).await {
        Ok(()) => language.model_in_use(&model.name),
        Err(error) => not_stored(language, &error),
    };
    text.into()
}

/// Returns the name of the model that answers a person here: the one chosen in this conversation, that of the account's
/// session, the agent's model, or the default.
pub(super) async fn chosen(context: &CommandContext<'_>) -> Option<String> {
    let models = context.agent().models();
    let chosen = context.record().await.and_then(|record| record.model);
    let wanted = match chosen.or_else(|| context.scope.account.policy().session(context.person()).model) {
        Some(wanted) => Some(wanted),
        None => {
            let agent = agent::custom(&context.scope.shared, &context.session().await).await;
            agent.and_then(|agent| agent.profile.model)
        }
    };
    let known = wanted.filter(|name| models.iter().any(|model| model.name == *name));
    known.or_else(|| models.first().map(|model| model.name.clone()))
}

fn list(language: Language, models: &[ModelInfo], chosen: Option<&str>) -> FinalView {
    if models.is_empty() {
        return FinalView { text: language.models_none().to_owned(), ..FinalView::default() };
    }
    let mut text = format!("{}\n", language.models());
    for model in models {
        let mark = mark(Some(model.name.as_str()) == chosen, language.in_use());
        let name = match model.title == model.name {
            true => format!("`{}`", model.name),
            false => language.with_title(format!("`{}`", model.name), &model.title),
        };
        let about = model.about.as_ref().map(|about| language.described(about)).unwrap_or_default();
        let _ = write!(text, "\n- {name}{about}{mark}");
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
