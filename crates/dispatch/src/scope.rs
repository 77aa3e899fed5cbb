//! The stored state of a conversation: its record, its thread, and the agent that answers in it.

use super::{
    account::{Account, AgentSession},
    agent,
    shared::Shared,
};
use crate::bus::retry_until_stored;
use pudu_base::{Skill, ThreadFolder, ThreadId, UserId};
use pudu_channels::Inbound;
use pudu_config::FollowUpMode;
use pudu_kit::clock;
use pudu_store::ConversationRow;
use pudu_texts::Language;
use std::sync::Arc;

/// A conversation by its key, with the account whose rules apply.
#[derive(Clone)]
pub(super) struct ConversationScope {
    pub(super) shared: Arc<Shared>,
    pub(super) account: Arc<Account>,
    pub(super) key: Arc<str>,
}

impl ConversationScope {
    /// Returns the stored record of the conversation.
    pub(super) async fn record(&self) -> Option<ConversationRow> {
        let read = || self.shared.db.conversation(&self.key);
        retry_until_stored("failed to read conversation", read).await.flatten()
    }

    /// Returns the language of the answer to an event.
    pub(super) fn language(&self, inbound: &Inbound) -> Language {
        self.account.policy().language(inbound)
    }

    /// Returns how a message that arrives during a run is handled: as chosen in this conversation, or else by the
    /// account's setting.
    pub(super) async fn mode(&self) -> FollowUpMode {
        let chosen = self.record().await.and_then(|record| record.mode);
        chosen.as_deref().and_then(FollowUpMode::parse).unwrap_or_else(|| self.account.policy().mode)
    }

    /// Returns the agent and its settings for the sender of an event.
    pub(super) async fn session(&self, inbound: &Inbound) -> AgentSession {
        let chosen = self.record().await.and_then(|record| record.agent);
        agent::settle(&self.shared, &self.account, &self.key, chosen.as_deref(), inbound).await
    }

    /// Returns the skills of the agent that answers an event here.
    pub(super) async fn skills(&self, inbound: &Inbound) -> Arc<[Skill]> {
        let session = self.session(inbound).await;
        agent::skills(&self.shared, &session, &self.shared.owner_of(inbound)).await
    }

    /// Returns the owner of the thread that an event begins.
    pub(super) fn owner(&self, inbound: &Inbound) -> UserId {
        let threads = self.account.channel().limits().threads;
        self.shared.owner(&self.key, inbound, threads)
    }

    /// Binds the conversation to a thread, by default a new one, if it has none yet.
    pub(super) async fn ensure_thread(&self, inbound: &Inbound, thread: Option<ThreadId>) {
        if self.record().await.is_none() {
            self.bind(inbound, thread.unwrap_or_else(ThreadId::fresh)).await;
        }
    }

    /// Binds the conversation to a thread that is new or has no conversation.
    pub(super) async fn bind(&self, inbound: &Inbound, thread: ThreadId) -> ThreadFolder {
        let folder = ThreadFolder { owner: self.owner(inbound), thread };
        let address = &inbound.address;
        let bind = || self.shared.db.bind(&self.key, &address.account, &address.chat, &folder, clock::now());
        retry_until_stored("failed to bind conversation to its thread", bind).await;
        folder
    }
}
