//! Threads that were loaded lately, so that the next turn reads only what came since.
//!
//! What is kept is always right, if perhaps short: rows of a log never change, so a fold of the first
//! ones stays true whoever appends behind it. It is a cache of work, never of truth.

use crate::log::Loaded;
use pudu_base::ThreadId;
use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// How much is kept, in bytes of JSON that were read; in memory it is about twice that.
const ROOM: usize = 8 * 1024 * 1024;

/// The threads used last, the newest at the back.
#[derive(Default)]
pub(crate) struct Recent(Mutex<VecDeque<(ThreadId, Loaded)>>);

impl Recent {
    /// Takes out what is known of a thread, for its user to put back.
    pub(crate) fn take(&self, thread: &ThreadId) -> Option<Loaded> {
        let mut threads = self.lock();
        let place = threads.iter().position(|(known, _)| known == thread)?;
        threads.remove(place).map(|(_, loaded)| loaded)
    }

    /// Keeps what is known of a thread, at the cost of those that were not used for longest.
    pub(crate) fn put(&self, thread: &ThreadId, loaded: Loaded) {
        let mut threads = self.lock();
        threads.retain(|(known, _)| known != thread);
        threads.push_back((thread.clone(), loaded));
        let mut room = threads.iter().map(|(_, loaded)| loaded.bytes()).sum::<usize>();
        while room > ROOM
            && let Some((_, oldest)) = threads.pop_front()
        {
            room -= oldest.bytes();
        }
    }

    /// Gives the memory back.
    pub(crate) fn clear(&self) {
        *self.lock() = VecDeque::new();
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(ThreadId, Loaded)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_that_was_used_longest_ago_makes_room() {
        let recent = Recent::default();
        let put = |name: &str, bytes| recent.put(&name.into(), Loaded::of_size(bytes));
        let known = || ["a", "b", "c"].map(|name| recent.lock().iter().any(|(id, _)| id.as_str() == name));
        put("a", ROOM / 2);
        put("b", ROOM / 2);
        assert_eq!(known(), [true, true, false]);
        put("a", ROOM / 2);
        put("c", 1);
        assert_eq!(known(), [true, false, true], "b was used longest ago");
        put("b", ROOM + 1);
        assert_eq!(known(), [false, false, false], "a thread larger than the room is not kept");
        put("a", 1);
        recent.clear();
        assert_eq!(known(), [false, false, false]);
    }
}
