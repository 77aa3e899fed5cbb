//! Messages that reach a run while it works.

use pudu_base::Human;
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

/// At most so many messages wait for the next model call.
const MOST: usize = 32;

/// A small mailbox of a run. What is pushed either enters the thread before the next model call or is
/// given back when the run ends: nothing is lost between the two.
#[derive(Clone, Debug, Default)]
pub struct Steering(Arc<Mutex<Mailbox>>);

#[derive(Debug, Default)]
struct Mailbox {
    waiting: VecDeque<Human>,
    closed: bool,
}

impl Steering {
    /// Hands a message to the run.
    ///
    /// # Errors
    /// Gives the message back when the run takes no more.
    pub fn push(&self, human: Human) -> Result<(), Human> {
        let mut mailbox = self.lock();
        if mailbox.closed || mailbox.waiting.len() >= MOST {
            return Err(human);
        }
        mailbox.waiting.push_back(human);
        Ok(())
    }

    /// Takes what waits.
    #[must_use]
    pub fn drain(&self) -> Vec<Human> {
        self.lock().waiting.drain(..).collect()
    }

    /// Takes no more, and returns what never entered the thread.
    #[must_use]
    pub fn close(&self) -> Vec<Human> {
        let mut mailbox = self.lock();
        mailbox.closed = true;
        mailbox.waiting.drain(..).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Mailbox> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
