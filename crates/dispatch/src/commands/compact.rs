//! `/compact`: summarises the conversation so far. That is a turn like any other: it can be stopped, messages wait
//! meanwhile, and a restart resumes it.

use super::CommandSpec;
use crate::{bus::InboxItem, conversation::ConversationActor, turn::TurnWork};
use pudu_texts::Language;

pub(super) const COMMAND: CommandSpec = CommandSpec {
    name: "compact",
    argument: super::NO_ARGUMENT,
    about: Language::about_compact,
    run: |actor, arrival, _| Box::pin(actor.compact(arrival)),
};

impl ConversationActor {
    /// Summarises the conversation so far: behind a reply that is on its way, and not while a run works or something
    /// waits for one.
    pub(crate) async fn compact(&mut self, arrival: InboxItem) {
        let language = self.language(&arrival);
        let works = self.running.as_ref().is_some_and(|running| running.works());
        if works || !self.waiting.is_empty() || self.again.is_some() {
            self.answer(arrival, language.compact_busy());
            return;
        }
        if self.running.is_some() {
            self.again = Some(arrival);
            return;
        }
        let Some(record) = self.record().await else {
            self.answer(arrival, language.no_conversation());
            return;
        };
        self.open(vec![arrival], Some(record), TurnWork::Compact).await;
    }
}
