//! Points at which a test stops a simulator: a hook that runs there, or a gate that waits there.
//!
//! A test needs a gate to kill the program under test at an exact point: the simulator holds the response until the
//! test has finished its work.

use tokio::sync::oneshot;

/// How a stopped call continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// Normally.
    Proceed,
    /// The connection is closed without another byte.
    Cut,
}

/// Runs once at its point, with the call's data. Must not block.
pub type Hook<C> = Box<dyn FnOnce(&C) -> Then + Send>;

/// A call that stops at a point until it is released. Dropping it releases the call.
#[derive(Debug)]
pub struct Hold<C> {
    reached: Option<oneshot::Receiver<C>>,
    then: oneshot::Sender<Then>,
}

impl<C> Hold<C> {
    /// Waits until the call is at the point. `None` if the simulator ended first, or if called a second time.
    pub async fn reached(&mut self) -> Option<C> {
        self.reached.take()?.await.ok()
    }

    /// Releases the call.
    pub fn proceed(self) {
        self.send(Then::Proceed);
    }

    /// Closes the call's connection.
    pub fn cut(self) {
        self.send(Then::Cut);
    }

    // A call without a client does not wait: it has no receiver.
    fn send(self, then: Then) {
        self.then.send(then).ok();
    }
}

/// A stop at a point.
pub(crate) enum Stop<C> {
    /// A hook.
    Hook(Hook<C>),
    /// A gate.
    Gate(oneshot::Sender<C>, oneshot::Receiver<Then>),
}

impl<C: Clone> Stop<C> {
    pub(crate) fn gate() -> (Self, Hold<C>) {
        let (at, reached) = oneshot::channel();
        let (then, told) = oneshot::channel();
        (Self::Gate(at, told), Hold { reached: Some(reached), then })
    }

    pub(crate) async fn pass(self, call: &C) -> Then {
        match self {
            Self::Hook(hook) => hook(call),
            Self::Gate(at, told) => {
                at.send(call.clone()).ok();
                told.await.unwrap_or(Then::Proceed)
            }
        }
    }
}

/// Passes all stops in turn, up to one that cuts.
pub(crate) async fn pass_all<C: Clone>(stops: Vec<Stop<C>>, call: &C) -> Then {
    for stop in stops {
        if stop.pass(call).await == Then::Cut {
            return Then::Cut;
        }
    }
    Then::Proceed
}
