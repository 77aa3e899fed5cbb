//! The simulation to which a thread belongs, if any. A whole daemon then runs in one thread, on the clock of the simulation,
//! so that a run can be repeated exactly. The program enters none.

use std::cell::Cell;

thread_local! {
    static CURRENT: Cell<Option<Simulation>> = const { Cell::new(None) };
}

/// Functions that a simulation provides to the code of its thread.
#[derive(Clone, Copy)]
pub struct Simulation {
    /// Returns the current time, in milliseconds since 1970.
    pub now: fn() -> i64,
    /// Gets the name of each step of the store. An error is one of the disk: the step is not done.
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
    /// When the disk of the simulation fails.
    pub fn step(name: &str) -> Result<(), String> {
        Self::current().map_or(Ok(()), |simulation| (simulation.step)(name))
    }
}
