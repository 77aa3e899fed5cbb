//! The deterministic simulation that a thread belongs to, if any. A whole daemon then runs in one thread, on the
//! simulation's clock, so that a test can be repeated exactly. Production code never enters one.

use std::cell::Cell;

thread_local! {
    static CURRENT: Cell<Option<Simulation>> = const { Cell::new(None) };
}

/// Functions that a simulation provides to the code of its thread.
#[derive(Clone, Copy)]
pub struct Simulation {
    /// Returns the current time, in milliseconds since 1970.
    pub now: fn() -> i64,
    /// Called with the name of each step of the store. An error is a disk failure: the step is not executed.
    pub step: fn(&str) -> Result<(), String>,
}

impl Simulation {
    /// Makes this thread part of the simulation until it ends.
    pub fn enter(self) {
        CURRENT.set(Some(self));
    }

    /// Returns the simulation of this thread.
    #[must_use]
    pub fn current() -> Option<Self> {
        CURRENT.get()
    }

    /// Reports a step of the store to the simulation of this thread.
    ///
    /// # Errors
    /// If the simulated disk fails.
    pub fn step(name: &str) -> Result<(), String> {
        Self::current().map_or(Ok(()), |simulation| (simulation.step)(name))
    }
}
