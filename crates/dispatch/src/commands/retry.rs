//! `/retry`: asks the last question again.

use super::CommandSpec;
use crate::bus::InboxItem;
use crate::{
    conversation::{ConversationActor, compacts},
    turn::TurnWork,
};
use pudu_client::base::{Message, ThreadId};
use pudu_texts::Language;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "retry",
    argument: super::NO_ARGUMENT,
    about: Language::about_retry,
    run: |actor, arrival, _| Box::pin(actor.retry(arrival)),
};

impl ConversationActor {
    /// Asks the last question again, once the run at work is done.
    pub(crate) async fn retry(&mut self, arrival: InboxItem) {
        if self.running.is_some() {
            self.acknowledge(&arrival);
            match self.again.replace(arrival) {
                // One that asked for something else is answered.
                Some(before) if compacts(&before) => {
                    let text = self.language(&before).compact_busy();
                    self.answer(before, text);
                }
                Some(before) => self.shared.inbox.finish(&[before.id]).await,
                None => {}
            }
            return;
        }
        let record = self.record().await;
        let asked = match &record {
            Some(record) => self.asked(&record.thread).await,
            None => false,
        };
        if asked {
            self.open(vec![arrival], record, TurnWork::Again).await;
        } else {
            let text = self.language(&arrival).nothing_to_retry();
            self.answer(arrival, text);
        }
    }

    /// Returns whether a question was asked in this thread.
    async fn asked(&self, thread: &ThreadId) -> bool {
        let state = self.shared.client.state(thread).await.unwrap_or_default();
        state.messages.values().any(|message| matches!(**message, Message::Human(_)))
    }
}
