//! `/status`: shows the state of a conversation.

use super::{
    CommandAnswer, CommandContext, CommandSpec,
    context::{ActivityState, ConversationActivity},
    count, models,
};
use crate::spending;
use pudu_base::{Goal, ThreadId, foreign};
use pudu_channels::HealthState;
use pudu_kit::clock;
use pudu_store::SpendingFilter;
use pudu_texts::Language;

/// Maximum length of a shown title or goal, in characters.
const MAX_TITLE_CHARS: usize = 120;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "status",
    argument: super::NO_ARGUMENT,
    about: Language::about_status,
    run: |context, _| Box::pin(run(context)),
};

async fn run(context: &mut CommandContext<'_>) -> CommandAnswer {
    let text = text(context, context.language()).await;
    text.into()
}

async fn text(context: &CommandContext<'_>, language: Language) -> String {
    let thread = context.thread().await;
    let model = models::chosen(context).await;
    let ConversationActivity { state, waiting } = context.live.activity();
    let state = match state {
        ActivityState::Working(time) => language.state_working(time.as_secs()),
        ActivityState::Delivering => language.state_delivering().to_owned(),
        ActivityState::Idle => language.state_idle().to_owned(),
    };
    let agent = context.session().await.agent_name(language);
    let mut lines = vec![
        match &thread {
            Some(thread) => language.status_thread(thread),
            None => language.no_conversation().to_owned(),
        },
        language.status_agent(agent),
        model_line(context, language, model.as_deref()),
        language.status_state(state),
        language.status_waiting(waiting),
    ];
    if context.is_chat() {
        let mode = context.scope.mode().await;
        lines.push(language.status_mode(mode.about(language), mode.name()));
    }
    if let Some(thread) = &thread {
        lines.splice(1..1, about(context, language, thread).await);
        let (usage, runs) = context.db().usage(thread).await.unwrap_or_default();
        let filter = SpendingFilter::Thread(thread.clone());
        let sums = context.db().spending(&filter).await.unwrap_or_default();
        lines.push(language.status_tokens(count(runs), usage.total()));
        lines.extend(spending::details(language, &sums));
    }
    if context.is_chat() {
        lines.push(health(context, language));
    }
    if let Ok(undelivered @ 1..) = context.db().parked_count(&context.scope.key).await {
        lines.push(language.status_undelivered(undelivered));
    }
    lines.join("\n- ")
}

/// Returns the lines about a conversation's title and goal.
async fn about(context: &CommandContext<'_>, language: Language, thread: &ThreadId) -> Vec<String> {
    let title = context.db().title(thread).await.ok().flatten();
    let title = title.map(|title| language.status_title(foreign::line(&title, MAX_TITLE_CHARS)));
    let state = context.agent().state(thread).await.unwrap_or_default();
    let goal = state.goal.filter(Goal::is_open);
    let goal = goal.map(|goal| language.goal_status(foreign::line(&goal.objective, MAX_TITLE_CHARS)));
    title.into_iter().chain(goal).collect()
}

/// Returns the line about the model, and about the standby that answers in its place, if any.
fn model_line(context: &CommandContext<'_>, language: Language, model: Option<&str>) -> String {
    let line = language.status_model(model.unwrap_or(language.model_none()));
    match context.agent().standby(model) {
        Some(standby) => format!("{line}{}{}", language.clause_gap(), language.status_standby(&standby)),
        None => line,
    }
}

fn health(context: &CommandContext<'_>, language: Language) -> String {
    let health = context.scope.account.channel().health();
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
    let parts =
        [Some(language.status_channel(context.scope.account.channel().account(), state)), event, error];
    parts.into_iter().flatten().collect::<Vec<_>>().join(language.clause_gap())
}
