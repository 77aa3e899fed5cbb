//! Scheduled tasks: how their work starts, on a thread or in a chat, and how a chat answers a due task.

mod launch;
mod target;

pub use launch::ScheduleLauncher;
pub(crate) use target::ScheduledTarget;

use crate::{
    account::{Account, AccountRules},
    bus::InboxItem,
    reply::is_scheduled,
    shared::Shared,
};
use pudu_agent::SchedulePlace;
use pudu_base::{ThreadId, UserId};
use pudu_channels::{InboundKind, ReplyTarget};
use pudu_config::Choosing;
use pudu_kit::clock;
use pudu_store::{ScheduledChat, StoreError};
use std::sync::Arc;

/// Reason of a refused run whose owner no longer has access to the bot.
const NO_ACCESS: &str = "the owner of the task may not use this bot here";

/// Settings that a scheduled task has for its runs.
#[derive(Default)]
pub(super) struct ScheduledChoice {
    pub(super) agent: Option<String>,
    pub(super) model: Option<String>,
    pub(super) budget: Option<u64>,
}

impl ScheduledChoice {
    /// Returns the settings of the scheduled task that a turn performs for a person. A bot with a fixed agent keeps it.
    pub(super) fn of_turn(policy: &AccountRules, person: &str, said: &[InboxItem]) -> Self {
        let Some(InboundKind::Scheduled { agent, model, budget, .. }) =
            said.first().map(|arrival| &arrival.inbound.kind)
        else {
            return Self::default();
        };
        let is_fixed = policy.choosing(person) == Choosing::Fixed;
        let agent = agent.clone().filter(|_| !is_fixed);
        Self { agent, model: model.clone(), budget: *budget }
    }
}

/// Returns the heading of the answer to a scheduled task; empty for other messages.
pub(super) fn heading(said: &[InboxItem]) -> String {
    match said.first().map(|arrival| &arrival.inbound.kind) {
        Some(InboundKind::Scheduled { title, .. }) => format!("⏰ **{title}**\n\n"),
        _ => String::new(),
    }
}

/// Returns the chat or thread of tasks that people schedule with the last of these messages. A scheduled task cannot
/// schedule others.
pub(super) fn place(account: &Account, policy: &AccountRules, said: &[InboxItem]) -> Option<SchedulePlace> {
    let inbound = &said.last()?.inbound;
    (!is_scheduled(inbound)).then(|| SchedulePlace {
        chat: Some(ScheduledTarget::of_event(account, inbound).to_chat()),
        zone: policy.timezone.iana_name().map(str::to_owned),
    })
}

impl Shared {
    /// Returns the chat of a thread in which a user wrote to the bot recently.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn scheduled_chat(
        &self,
        thread: &ThreadId,
        user: &UserId,
    ) -> Result<Option<ScheduledChat>, StoreError> {
        let targets = self.db.reply_targets(thread).await?;
        Ok(targets.into_iter().find_map(|(account, target)| {
            let target: ReplyTarget = serde_json::from_str(&target).ok()?;
            let is_own = !target.sender.is_empty() && self.user(&account, &target.sender) == *user;
            let account = self.accounts.get(&account).filter(|_| is_own)?;
            Some(ScheduledTarget::of_reply(&account, target).to_chat())
        }))
    }

    /// Records that the event of a scheduled task gets no answer, in the background.
    pub(super) fn refuse_scheduled(self: &Arc<Self>, arrival: InboxItem) {
        let shared = self.clone();
        self.tasks.spawn(async move {
            let run = &arrival.inbound.key.0;
            tracing::warn!(run, "refused scheduled task: its owner has no access");
            if let Err(error) = shared.db.refuse_scheduled(run, arrival.id, NO_ACCESS, clock::now()).await {
                tracing::error!(%error, "failed to store that a scheduled task was refused");
            }
            shared.inbox.release(&[arrival.id]);
        });
    }
}
