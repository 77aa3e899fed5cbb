//! Events and turns whose account is not there. They stay held until it is, so that the inbox does not hand them out again
//! and again.

use crate::bus::InboxItem;
use pudu_client::store::TurnRow;

#[derive(Default)]
pub(super) struct Absent {
    /// Turns of an earlier process, with the messages that belong to each.
    pub(super) turns: Vec<(TurnRow, Vec<InboxItem>)>,
    pub(super) events: Vec<InboxItem>,
}

impl Absent {
    /// Takes out the turns and events that wait for an account.
    pub(super) fn take(&mut self, account: &str) -> Self {
        Self {
            turns: self.turns.extract_if(.., |(row, _)| row.account == account).collect(),
            events: self.events.extract_if(.., |event| event.inbound.address.account == account).collect(),
        }
    }
}
