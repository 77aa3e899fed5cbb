//! Messages that arrive during a run.

use pudu_base::Human;
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::Notify;

/// Maximum number of messages that wait for the next model call.
const MAX_PENDING_MESSAGES: usize = 32;

/// A run's mailbox. Each message either enters the thread before the next model call or is returned when the run ends,
/// so that none is lost.
#[derive(Clone, Debug, Default)]
pub struct Steering(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    mailbox: Mutex<Mailbox>,
    /// Notified when a slot was filled or released.
    settled: Notify,
}

#[derive(Debug, Default)]
struct Mailbox {
    waiting: VecDeque<Human>,
    /// Number of slots that are neither filled nor released.
    slots: usize,
    closed: bool,
    goal_dropped: bool,
}

impl Steering {
    /// Reserves a slot for a message that is still being stored; `None` if the run accepts no more. The run does not
    /// end before the slot is filled or dropped.
    #[must_use]
    pub fn reserve(&self) -> Option<MailboxSlot> {
        let mut mailbox = self.lock();
        if mailbox.closed || mailbox.waiting.len() + mailbox.slots >= MAX_PENDING_MESSAGES {
            return None;
        }
        mailbox.slots += 1;
        Some(MailboxSlot { steering: self.clone() })
    }

    /// Stops the run from working towards its goal.
    pub fn drop_goal(&self) {
        self.lock().goal_dropped = true;
    }

    /// Returns whether the goal was dropped.
    #[must_use]
    pub fn is_goal_dropped(&self) -> bool {
        self.lock().goal_dropped
    }

    /// Takes the waiting messages.
    #[must_use]
    pub fn drain(&self) -> Vec<Human> {
        self.lock().waiting.drain(..).collect()
    }

    /// Closes the mailbox, waits for open slots, and returns the messages that never entered the thread.
    pub async fn close(&self) -> Vec<Human> {
        loop {
            let settled = self.0.settled.notified();
            {
                let mut mailbox = self.lock();
                mailbox.closed = true;
                if mailbox.slots == 0 {
                    return mailbox.waiting.drain(..).collect();
                }
            }
            settled.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Mailbox> {
        self.0.mailbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A reserved slot in the mailbox.
#[derive(Debug)]
pub struct MailboxSlot {
    steering: Steering,
}

impl MailboxSlot {
    /// Puts the message into the slot.
    pub fn fill(self, human: Human) {
        self.steering.lock().waiting.push_back(human);
    }
}

impl Drop for MailboxSlot {
    fn drop(&mut self) {
        self.steering.lock().slots -= 1;
        self.steering.0.settled.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn human(id: &str) -> Human {
        Human::new(id, id)
    }

    #[tokio::test]
    async fn closing_waits_for_messages_that_are_being_stored() {
        let steering = Steering::default();
        let (one, two) = (steering.reserve().unwrap(), steering.reserve().unwrap());
        let mut closing = Box::pin(steering.close());
        assert!(futures_util::poll!(&mut closing).is_pending());
        assert!(steering.reserve().is_none(), "it accepts no more messages");
        one.fill(human("one"));
        assert!(futures_util::poll!(&mut closing).is_pending());
        drop(two);
        assert_eq!(closing.await, [human("one")]);
    }
}
