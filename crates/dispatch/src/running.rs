//! The turn that a conversation has at work.

use super::{
    account::AgentSession,
    turn::{Delivering, TurnEnd},
};
use crate::bus::InboxItem;
use pudu_client::{Control, store::TurnId};
use std::sync::Arc;
use tokio::{sync::oneshot, time::Instant};

/// The turn at work.
pub(super) struct RunningTurn {
    pub(super) turn: TurnId,
    pub(super) control: Control,
    pub(super) since: Instant,
    /// Agent and settings; `None` if a reply is only delivered.
    pub(super) session: Option<AgentSession>,
    /// Arrivals that were handed to the run while it works.
    pub(super) steered: Vec<InboxItem>,
    /// How far the delivery of its reply is.
    pub(super) delivering: Arc<Delivering>,
    pub(super) over: oneshot::Receiver<TurnEnd>,
}

impl RunningTurn {
    /// Returns whether the run works, and not only its reply is being delivered.
    pub(super) fn works(&self) -> bool {
        !self.delivering.has_begun()
    }

    /// Signals that its end is waited for: a reply that cannot be delivered whole is held up no longer than it must.
    pub(super) fn hurry(&self) {
        self.delivering.hurry.wait();
    }

    /// Stops the run, whose reply is shown as far as it is. Delays of the reply get no more than a grace period.
    pub(super) fn stop(&self) {
        self.control.cancel.cancel();
        self.hurry();
    }
}

/// Waits for the end of the turn at work; for ever if there is none.
pub(super) async fn over(running: &mut Option<RunningTurn>) -> Option<TurnEnd> {
    match running {
        Some(running) => (&mut running.over).await.ok(),
        None => std::future::pending().await,
    }
}
