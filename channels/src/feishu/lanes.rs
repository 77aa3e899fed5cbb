//! Events of one chat one after the other, those of others side by side: some of what an event needs has to
//! be looked up, and a message must not be overtaken by the next one or by its own recall.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum number of a chat's events under way; as many as one connection brings at a time.
const MAX_EVENTS_PER_CHAT: usize = 64;

/// The chats in which something is under way.
#[derive(Clone, Debug, Default)]
pub(super) struct ChatLanes(Arc<Mutex<HashMap<String, ChatLane>>>);

#[derive(Debug)]
struct ChatLane {
    /// Send lock: the holder of its one permit has the turn. Permits are given in the order of asking.
    turn: Arc<Semaphore>,
    /// Those who have the turn or wait for it.
    inside: usize,
}

/// A turn in a chat. The next one has it when this is dropped.
pub(super) struct LanePermit {
    // Dropped before the place, so that a lane is not forgotten while its turn is out.
    _turn: OwnedSemaphorePermit,
    _place: LanePlace,
}

/// A place among those of a chat.
struct LanePlace {
    lanes: ChatLanes,
    chat: String,
}

impl ChatLanes {
    /// Waits for the turn in a chat; `None` where too many wait.
    pub(super) async fn turn(&self, chat: &str) -> Option<LanePermit> {
        let (place, turn) = self.enter(chat)?;
        // It is never closed.
        let turn = turn.acquire_owned().await.ok()?;
        Some(LanePermit { _turn: turn, _place: place })
    }

    fn enter(&self, chat: &str) -> Option<(LanePlace, Arc<Semaphore>)> {
        let mut lanes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || ChatLane { turn: Arc::new(Semaphore::new(1)), inside: 0 };
        let lane = lanes.entry(chat.to_owned()).or_insert_with(new);
        if lane.inside >= MAX_EVENTS_PER_CHAT {
            return None;
        }
        lane.inside += 1;
        Some((LanePlace { lanes: self.clone(), chat: chat.to_owned() }, Arc::clone(&lane.turn)))
    }
}

impl Drop for LanePlace {
    fn drop(&mut self) {
        let mut lanes = self.lanes.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(lane) = lanes.get_mut(&self.chat) else { return };
        lane.inside -= 1;
        if lane.inside == 0 {
            lanes.remove(&self.chat);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[tokio::test]
    async fn a_chat_has_one_turn_at_a_time_in_the_order_of_asking() {
        let lanes = ChatLanes::default();
        let first = lanes.turn("a").await;
        let (mut second, mut third) = (Box::pin(lanes.turn("a")), Box::pin(lanes.turn("a")));
        assert!(second.as_mut().now_or_never().is_none());
        assert!(third.as_mut().now_or_never().is_none());
        assert!(lanes.turn("b").await.is_some(), "another chat does not wait");
        drop(first);
        assert!(third.as_mut().now_or_never().is_none());
        let turn = second.await;
        drop(turn);
        assert!(third.await.is_some());
        assert!(lanes.0.lock().unwrap().is_empty(), "nothing is left of it");
    }

    #[tokio::test]
    async fn so_many_wait_and_no_more() {
        let lanes = ChatLanes::default();
        let turn = lanes.turn("a").await;
        let mut waiting: Vec<_> = (1..MAX_EVENTS_PER_CHAT).map(|_| Box::pin(lanes.turn("a"))).collect();
        waiting.iter_mut().for_each(|one| assert!(one.as_mut().now_or_never().is_none()));
        assert!(lanes.turn("a").await.is_none());
        drop(waiting);
        drop(turn);
        assert!(lanes.turn("a").await.is_some(), "who gave up waiting has left");
    }
}
