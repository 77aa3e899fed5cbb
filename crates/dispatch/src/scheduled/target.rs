//! The chat of a scheduled task, as it is stored.

use crate::account::Account;
use pudu_channels::{Address, EventKey, Inbound, InboundKind, ReplyTarget, Sender};
use pudu_store::{ScheduledChat, ScheduledTask};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The chat of a scheduled task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ScheduledTarget {
    /// The chat or topic.
    pub(crate) address: Address,
    /// Whether the chat contains only the owner and the bot.
    private: bool,
    /// The owner on the platform.
    sender: Sender,
    /// Data that the channel needs for a message to this chat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hint: Option<Value>,
}

impl ScheduledTarget {
    /// Returns the chat of an event. Where each question begins a topic, answers go beside the topics.
    pub(crate) fn of_event(account: &Account, inbound: &Inbound) -> Self {
        let channel = account.channel();
        let topic = inbound.address.topic.clone().filter(|_| !channel.limits().threads);
        Self {
            address: Address { topic, ..inbound.address.clone() },
            private: inbound.private,
            sender: inbound.sender.clone(),
            hint: inbound.hint.as_ref().and_then(|hint| channel.lasting_hint(hint)),
        }
    }

    /// Returns the chat of a reply.
    pub(super) fn of_reply(account: &Account, target: ReplyTarget) -> Self {
        let channel = account.channel();
        let topic = target.address.topic.filter(|_| !channel.limits().threads);
        Self {
            address: Address { topic, ..target.address },
            private: target.private,
            sender: Sender { name: target.sender.clone(), id: target.sender, language: None },
            hint: target.hint.as_ref().and_then(|hint| channel.lasting_hint(hint)),
        }
    }

    /// Returns the stored form.
    pub(crate) fn to_chat(&self) -> ScheduledChat {
        ScheduledChat {
            account: self.address.account.clone(),
            chat: self.address.chat.clone(),
            person: self.sender.id.clone(),
            target: serde_json::to_string(self).unwrap_or_default(),
        }
    }

    /// Reads the stored form.
    pub(crate) fn read(chat: &ScheduledChat) -> Option<Self> {
        serde_json::from_str(&chat.target).ok()
    }

    /// Returns the event of a due task.
    pub(super) fn event(&self, task: &ScheduledTask, run: &str, now: i64) -> Inbound {
        Inbound {
            key: EventKey(run.to_owned()),
            address: self.address.clone(),
            private: self.private,
            message: run.to_owned(),
            reply_to: None,
            sender: self.sender.clone(),
            addressed: true,
            at: now,
            pointed: Vec::new(),
            hint: self.hint.clone(),
            kind: InboundKind::Scheduled {
                title: task.title.clone(),
                text: task.prompt.clone(),
                agent: task.agent.clone(),
                model: task.model.clone(),
                budget: task.budget.map(i64::unsigned_abs),
            },
        }
    }

    /// Returns the target of a notice about the task.
    pub(super) fn notice(&self, account: &Account, task: &ScheduledTask) -> ReplyTarget {
        let inbound = self.event(task, &task.id, 0);
        crate::reply::target(account, &inbound)
    }
}
