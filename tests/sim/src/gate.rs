//! Points at which a test stops a simulator: a hook that runs there, or a gate that waits there.
//!
//! A gate is what a test needs to kill the program under test at an exact point: the simulator stands
//! still with the answer in its hand until the test has done its work.

use tokio::sync::oneshot;

/// How a stopped call goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// As if nothing had stopped it.
    Proceed,
    /// The connection is closed without another byte.
    Cut,
}

/// Runs once at its point, with what is known of the call. Must not block.
pub type Hook<C> = Box<dyn FnOnce(&C) -> Then + Send>;

/// A call that will stop at a point until it is told how to go on. Dropped, it lets the call proceed.
#[derive(Debug)]
pub struct Hold<C> {
    reached: Option<oneshot::Receiver<C>>,
    then: oneshot::Sender<Then>,
}

impl<C> Hold<C> {
    /// Waits until the call stands at the point. `None` when the simulator ended first, or when it
    /// was asked before.
    pub async fn reached(&mut self) -> Option<C> {
        self.reached.take()?.await.ok()
    }

    /// Lets the call go on.
    pub fn proceed(self) {
        self.send(Then::Proceed);
    }

    /// Closes the call's connection.
    pub fn cut(self) {
        self.send(Then::Cut);
    }

    // A call whose client has gone waits no more: nobody is left to tell.
    fn send(self, then: Then) {
        self.then.send(then).ok();
    }
}

/// What stands at a point.
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

/// Passes every stop in turn; one that cuts ends the row.
pub(crate) async fn pass_all<C: Clone>(stops: Vec<Stop<C>>, call: &C) -> Then {
    for stop in stops {
        if stop.pass(call).await == Then::Cut {
            return Then::Cut;
        }
    }
    Then::Proceed
}
