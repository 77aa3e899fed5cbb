//! `/status`: shows the state of a conversation.

use super::{CommandSpec, models};
use crate::dispatch::conversation::ConversationActor;
use crate::{bus::InboxItem, clock};
use pudu_channels::HealthState;
use std::fmt::Write;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "status",
    argument: "",
    help: "Show what this conversation is at",
    run: |actor, arrival, _| Box::pin(run(actor, arrival)),
};

async fn run(actor: &mut ConversationActor, arrival: InboxItem) {
    let text = text(actor, &arrival.inbound.sender.id).await;
    actor.answer(arrival, text);
}

async fn text(actor: &ConversationActor, person: &str) -> String {
    let record = actor.record().await;
    let model = models::chosen(actor, person).await.unwrap_or_else(|| "none".to_owned());
    let mut text = match &record {
        Some(record) => format!("Active thread: `{}`", record.thread),
        None => "No active conversation.".to_owned(),
    };
    let state = match &actor.running {
        Some(running) if running.works() => {
            format!("working for {} s", running.since.elapsed().as_secs())
        }
        Some(_) => "delivering an answer".to_owned(),
        None => "idle".to_owned(),
    };
    let mut line = |name: &str, value: String| {
        // Writing to a String cannot fail.
        let _ = write!(text, "\n- {name}: {value}");
    };
    line("Agent", format!("`{}`", actor.session(person).await.agent_name()));
    line("Model", format!("`{model}`"));
    line("State", state);
    line("Waiting messages", actor.waiting.len().to_string());
    line("While I work", format!("{} ({})", actor.mode().await.name(), actor.mode().await.about()));
    if let Some(record) = &record {
        let (usage, runs) = actor.shared.db.usage(&record.thread).await.unwrap_or_default();
        line("Tokens", format!("{} in {runs} run(s)", usage.total()));
    }
    line("Channel", health(actor));
    if let Ok(count @ 1..) = actor.shared.db.parked_count(&actor.key).await {
        line("Replies that could not be delivered", count.to_string());
    }
    text
}

fn health(actor: &ConversationActor) -> String {
    let health = actor.account.channel().health();
    let state = match health.state {
        HealthState::Connecting => "connecting",
        HealthState::Ready => "ready",
        HealthState::Degraded => "degraded",
        HealthState::AuthFailed => "credentials refused",
        HealthState::Stopped => "stopped",
    };
    let mut text = format!("`{}` is {state}", actor.account.channel().account());
    if let Some(at) = health.last_event {
        let _ = write!(text, ", last event {} s ago", (clock::now() - at).max(0) / 1000);
    }
    if let Some(error) = health.last_error {
        let _ = write!(text, ", last error: {error}");
    }
    text
}
