//! Events and turns of bots that are currently unavailable. They are held until their bot returns, because the inbox
//! would otherwise dispatch them repeatedly.

use crate::bus::InboxItem;
use pudu_store::TurnRow;

#[derive(Default)]
pub(super) struct Absent {
    /// Turns of an earlier process, with the messages of each.
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
