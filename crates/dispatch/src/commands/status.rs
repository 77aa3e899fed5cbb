//! `/status`: shows the state of a conversation.

use super::{CommandSpec, count, models};
use crate::{bus::InboxItem, conversation::ConversationActor, spending};
use pudu_channels::{HealthState, Inbound};
use pudu_client::{
    base::{Goal, foreign},
    store::{ConversationRow, SpendingFilter},
};
use pudu_kit::clock;
use pudu_texts::Language;

/// Maximum length of a shown title or goal, in characters.
const MAX_TITLE_CHARS: usize = 120;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "status",
    argument: super::NO_ARGUMENT,
    about: Language::about_status,
    run: |actor, arrival, _| Box::pin(run(actor, arrival)),
};

async fn run(actor: &mut ConversationActor, arrival: InboxItem) {
    let text = text(actor, actor.language(&arrival), &arrival.inbound).await;
    actor.answer(arrival, text);
}

async fn text(actor: &ConversationActor, language: Language, inbound: &Inbound) -> String {
    let record = actor.record().await;
    let model = models::chosen(actor, inbound).await;
    let state = match &actor.running {
        Some(running) if running.works() => language.state_working(running.since.elapsed().as_secs()),
        Some(_) => language.state_delivering().to_owned(),
        None => language.state_idle().to_owned(),
    };
    let mode = actor.mode().await;
    let agent = actor.session(inbound).await.agent_name(language);
    let mut lines = vec![
        match &record {
            Some(record) => language.status_thread(&record.thread),
            None => language.no_conversation().to_owned(),
        },
        language.status_agent(agent),
        model_line(actor, language, model.as_deref()),
        language.status_state(state),
        language.status_waiting(actor.waiting.len()),
        language.status_mode(mode.about(language), mode.name()),
    ];
    if let Some(record) = &record {
        lines.splice(1..1, about(actor, language, record).await);
        let (usage, runs) = actor.shared.db.usage(&record.thread).await.unwrap_or_default();
        let filter = SpendingFilter::Thread(record.thread.clone());
        let sums = actor.shared.db.spending(&filter).await.unwrap_or_default();
        lines.push(language.status_tokens(count(runs), usage.total()));
        lines.extend(spending::details(language, &sums));
    }
    lines.push(health(actor, language));
    if let Ok(undelivered @ 1..) = actor.shared.db.parked_count(&actor.key).await {
        lines.push(language.status_undelivered(undelivered));
    }
    lines.join("\n- ")
}

/// Returns the lines about a conversation's title and goal.
async fn about(actor: &ConversationActor, language: Language, record: &ConversationRow) -> Vec<String> {
    let title = actor.shared.db.title(&record.thread).await.ok().flatten();
    let title = title.map(|title| language.status_title(foreign::line(&title, MAX_TITLE_CHARS)));
    let state = actor.shared.client.state(&record.thread).await.unwrap_or_default();
    let goal = state.goal.filter(Goal::is_open);
    let goal = goal.map(|goal| language.goal_status(foreign::line(&goal.objective, MAX_TITLE_CHARS)));
    title.into_iter().chain(goal).collect()
}

/// Returns the line about the model, and which one has answered in its place.
fn model_line(actor: &ConversationActor, language: Language, model: Option<&str>) -> String {
    let line = language.status_model(model.unwrap_or(language.model_none()));
    match actor.shared.client.standby(model) {
        Some(standby) => format!("{line}{}{}", language.clause_gap(), language.status_standby(&standby)),
        None => line,
    }
}

fn health(actor: &ConversationActor, language: Language) -> String {
    let health = actor.account.channel().health();
    let state = match health.state {
        HealthState::Connecting => language.health_connecting(),
        HealthState::Ready => language.health_ready(),
        HealthState::Degraded => language.health_degraded(),
        HealthState::AuthFailed => language.health_refused(),
        HealthState::Stopped => language.health_stopped(),
    };
    let event = health.last_event.map(|at| {
        let seconds = (clock::now() - at).max(0) / 1000;
        language.status_channel_event(seconds)
    });
    let error = health.last_error.map(|error| language.status_channel_error(error));
    let parts = [Some(language.status_channel(actor.account.channel().account(), state)), event, error];
    parts.into_iter().flatten().collect::<Vec<_>>().join(language.clause_gap())
}
