//! Replies to single events of a conversation, such as commands.

use super::{conversation::ConversationActor, reply};
use crate::bus::InboxItem;
use pudu_channels::FinalView;
use pudu_store::InboxItemId;

impl ConversationActor {
    /// Stores an answer and delivers it independently of the current turn.
    pub(super) fn answer(&self, arrival: InboxItem, text: impl Into<String>) {
        self.answer_with(arrival, FinalView { text: text.into(), ..FinalView::default() }, Vec::new());
    }

    /// Like `answer`, but also marks `items` as done.
    pub(super) fn answer_with(&self, arrival: InboxItem, view: FinalView, items: Vec<InboxItemId>) {
        reply::answer(&self.scope.shared, &self.scope.account, &self.scope.key, arrival, view, items);
    }
}
