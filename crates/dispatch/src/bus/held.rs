//! Events that this process is handling: their number and size per bot, and the address of each message.

use super::concealed::EventIdentity;
use pudu_channels::{AcceptError, Accepted, Address, Inbound, InboundKind};
use pudu_store::InboxItemId;
use std::collections::HashMap;
use tokio::sync::watch;

/// Maximum size of an account's waiting events, in bytes. Messages from the web page contain their images. A single
/// event may exceed the limit.
const MAX_WAITING_BYTES: usize = 128 * 1024 * 1024;

/// Location of a person's message: its address and id.
type MessagePlace = (Address, String);

/// An album: the address and the sender of its parts, and its id.
type AlbumPlace = (Address, String, String);

/// Outcome of storing an event; `None` until it is known. All copies of the event wait for the same outcome.
pub(super) type StoreOutcome = Option<Result<Accepted, AcceptError>>;

/// Events that this process is handling.
#[derive(Default)]
pub(super) struct HeldEvents {
    pub(super) items: HashMap<InboxItemId, HeldEvent>,
    /// Events that are being stored, with their outcomes.
    pub(super) rooms: HashMap<EventIdentity, (HeldEvent, watch::Receiver<StoreOutcome>)>,
    /// Number and size of each account's events, including those that are being stored.
    accounts: HashMap<String, WaitingSize>,
}

/// Size of an account's waiting events.
#[derive(Clone, Copy, Default)]
struct WaitingSize {
    events: usize,
    bytes: usize,
}

/// An event that this process is handling.
pub(super) struct HeldEvent {
    account: String,
    /// Approximate size.
    bytes: usize,
    /// Location of a person's message; `None` for other events.
    place: Option<MessagePlace>,
    /// The album of a message, if it is a part of one.
    album: Option<AlbumPlace>,
}

impl HeldEvents {
    pub(super) fn hold(&mut self, id: InboxItemId, inbound: &Inbound) {
        let event = self.event(inbound);
        let before = self.items.insert(id, event);
        self.forget(before);
    }

    /// Counts an event.
    pub(super) fn event(&mut self, inbound: &Inbound) -> HeldEvent {
        let account = inbound.address.account.clone();
        let bytes = inbound.size();
        let waiting = self.accounts.entry(account.clone()).or_default();
        waiting.events += 1;
        waiting.bytes += bytes;
        HeldEvent { account, bytes, place: place(inbound), album: album(inbound) }
    }

    /// Stops counting an event.
    pub(super) fn forget(&mut self, event: Option<HeldEvent>) {
        let Some(event) = event else { return };
        if let Some(waiting) = self.accounts.get_mut(&event.account) {
            waiting.events -= 1;
            waiting.bytes -= event.bytes;
            if waiting.events == 0 {
                self.accounts.remove(&event.account);
            }
        }
    }

    /// Returns whether an account has no room for an event of this size.
    pub(super) fn is_full(&self, account: &str, bytes: usize, limit: usize) -> bool {
        let waiting = self.accounts.get(account).copied().unwrap_or_default();
        waiting.events >= limit || (waiting.events > 0 && waiting.bytes + bytes > MAX_WAITING_BYTES)
    }

    /// Returns whether another part of a message's album is held.
    pub(super) fn has_part(&self, part: &Inbound) -> bool {
        let album = album(part);
        album.is_some() && self.events().any(|event| event.album == album)
    }

    fn events(&self) -> impl Iterator<Item = &HeldEvent> {
        self.items.values().chain(self.rooms.values().map(|(event, _)| event))
    }

    /// Returns the full address of a message in the same chat as `near`.
    pub(super) fn place(&self, near: &Address, message: &str) -> Option<Address> {
        let same = |(address, held): &&MessagePlace| {
            held == message && address.account == near.account && address.chat == near.chat
        };
        self.events().filter_map(|event| event.place.as_ref()).find(same).map(|(address, _)| address.clone())
    }
}

fn place(inbound: &Inbound) -> Option<MessagePlace> {
    let theirs = matches!(inbound.kind, InboundKind::Message { .. });
    theirs.then(|| (inbound.address.clone(), inbound.message.clone()))
}

fn album(inbound: &Inbound) -> Option<AlbumPlace> {
    let InboundKind::Message { album: Some(album), .. } = &inbound.kind else { return None };
    Some((inbound.address.clone(), inbound.sender.id.clone(), album.clone()))
}
