//! Answers of a conversation to single events, such as commands, in the language of the sender.

use super::{conversation::ConversationActor, reply};
use crate::bus::InboxItem;
use pudu_channels::FinalView;
use pudu_client::store::InboxItemId;
use pudu_texts::Language;

impl ConversationActor {
    /// Returns the language of the answer to an event.
    pub(super) fn language(&self, arrival: &InboxItem) -> Language {
        self.account.policy().language(&arrival.inbound)
    }

    /// Stores an answer and delivers it beside whatever runs.
    pub(super) fn answer(&self, arrival: InboxItem, text: impl Into<String>) {
        self.answer_with(arrival, FinalView { text: text.into(), ..FinalView::default() }, Vec::new());
    }

    /// Like `answer`; other events are done with it.
    pub(super) fn answer_with(&self, arrival: InboxItem, view: FinalView, items: Vec<InboxItemId>) {
        reply::answer(&self.shared, &self.account, &self.key, arrival, view, items);
    }
}
