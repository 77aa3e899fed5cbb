//! The current turn of a conversation.

use super::{
    account::AgentSession,
    turn::{Delivering, TurnEnd},
};
use crate::bus::InboxItem;
use pudu_runs::Control;
use pudu_store::TurnId;
use std::sync::Arc;
use tokio::{sync::oneshot, time::Instant};

/// The current turn.
pub(super) struct RunningTurn {
    pub(super) turn: TurnId,
    pub(super) control: Control,
    pub(super) since: Instant,
    /// Whether a message that it answers sets a goal.
    pub(super) sets_goal: bool,
    /// Agent and settings; `None` for a turn that only delivers a reply.
    pub(super) session: Option<AgentSession>,
    /// Arrivals that the run was steered with.
    pub(super) steered: Vec<InboxItem>,
    /// State of the reply's delivery.
    pub(super) delivering: Arc<Delivering>,
    pub(super) over: oneshot::Receiver<TurnEnd>,
}

impl RunningTurn {
    /// Returns whether the run is active. Otherwise its reply is being delivered.
    pub(super) fn works(&self) -> bool {
        !self.delivering.has_begun()
    }

    /// Signals that something is waiting for the end of the turn, so that an undeliverable reply delays it as little as
    /// possible.
    pub(super) fn hurry(&self) {
        self.delivering.hurry.wait();
    }

    /// Stops the run. Its reply is shown as far as it got, and its delivery gets only a grace period.
    pub(super) fn stop(&self) {
        self.control.cancel.cancel();
        self.hurry();
    }
}

/// Waits for the end of the current turn; for ever if there is none.
pub(super) async fn over(running: &mut Option<RunningTurn>) -> Option<TurnEnd> {
    match running {
        Some(running) => (&mut running.over).await.ok(),
        None => std::future::pending().await,
    }
}
