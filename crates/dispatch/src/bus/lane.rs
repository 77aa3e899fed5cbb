//! Replies whose first attempt failed wait here, in order within each conversation, while the conversation continues. A
//! round attempts them one by one. It begins when a reply has waited long enough, when its platform answers another
//! call, or when a newer reply is about to be delivered. A waiting reply holds back newer ones to keep the order; after
//! [`super::delivery::ORDER_TIMEOUT`] they may overtake it, because its content may be the cause of the failure.

use super::delivery::{Attempt, Deliverer, OutboxDelivery};
use pudu_channels::Hurry;
use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{Notify, oneshot},
    time::Instant,
};
use tokio_util::task::TaskTracker;

/// Maximum time that a newer reply waits for earlier ones: enough for one call, or for files that a person is waiting
/// for.
const PRECEDENCE_TIMEOUT: Duration = Duration::from_secs(8);

/// The lanes, by conversation.
#[derive(Clone)]
pub(super) struct DeliveryLanes {
    lanes: Arc<Mutex<HashMap<String, DeliveryLane>>>,
    deliverer: Deliverer,
    /// Tasks in which replies wait for their next attempt.
    tasks: TaskTracker,
}

/// Work for the task of a lane. It is bounded by the inbox, because each reply answers an event.
#[derive(Default)]
struct DeliveryLane {
    bell: Arc<Notify>,
    /// Replies that are new in the lane.
    coming: Vec<OutboxDelivery>,
    /// The callers that wait for the end of the requested round; `None` if none is requested.
    rounds: Option<Vec<oneshot::Sender<()>>>,
    /// Signals to waiting and recent replies. They can be set at any time, even during an attempt.
    hurries: Vec<Hurry>,
    /// Time until which waiting replies hold back newer ones.
    in_order_until: Option<Instant>,
}

impl DeliveryLanes {
    pub(super) fn new(deliverer: Deliverer, tasks: TaskTracker) -> Self {
        Self { lanes: Arc::default(), deliverer, tasks }
    }

    /// Queues a delivery for its next attempt.
    pub(super) fn wait(&self, mut delivery: OutboxDelivery) {
        delivery.begin_to_wait();
        let key = delivery.item.conversation.clone();
        let mut lanes = self.lock();
        let lane = match lanes.entry(key.clone()) {
            Entry::Occupied(lane) => lane.into_mut(),
            Entry::Vacant(place) => {
                let lane = place.insert(DeliveryLane::default());
                self.tasks.spawn(work(self.clone(), key, lane.bell.clone()));
                lane
            }
        };
        lane.hurries.push(delivery.hurry.clone());
        lane.in_order_until = lane.in_order_until.max(delivery.in_order_until());
        lane.coming.push(delivery);
        lane.bell.notify_one();
    }

    /// Attempts the waiting replies of a conversation before a newer one is delivered there. Returns whether the newer
    /// one has to wait behind them.
    pub(super) async fn precede(&self, conversation: &str) -> bool {
        let (done, tried) = oneshot::channel();
        if !self.send_hurry(conversation, Hurry::wait, Some(done)) {
            return false;
        }
        tokio::time::timeout(PRECEDENCE_TIMEOUT, tried).await.ok();
        self.holds_back(conversation)
    }

    /// Returns whether a waiting reply of a conversation holds back newer ones.
    pub(super) fn holds_back(&self, conversation: &str) -> bool {
        let until = self.lock().get(conversation).and_then(|lane| lane.in_order_until);
        until.is_some_and(|until| until > Instant::now())
    }

    /// Gives up the files of a conversation's waiting replies. Returns whether any reply is waiting.
    pub(super) fn stop(&self, conversation: &str) -> bool {
        self.send_hurry(conversation, Hurry::stop, None)
    }

    fn send_hurry(&self, conversation: &str, how: fn(&Hurry), tried: Option<oneshot::Sender<()>>) -> bool {
        let mut lanes = self.lock();
        let Some(lane) = lanes.get_mut(conversation) else { return false };
        lane.hurries.iter().for_each(how);
        lane.rounds.get_or_insert_default().extend(tried);
        lane.bell.notify_one();
        true
    }

    /// Takes the new replies and the requested round of a lane. Removes an `idle` lane without new replies.
    fn take_work(&self, conversation: &str, idle: bool) -> Option<DeliveryLane> {
        let mut lanes = self.lock();
        let lane = lanes.get_mut(conversation)?;
        if idle && lane.coming.is_empty() {
            // Dropping the senders releases callers that wait for a round.
            lanes.remove(conversation);
            return None;
        }
        let (coming, rounds) = (std::mem::take(&mut lane.coming), lane.rounds.take());
        Some(DeliveryLane { coming, rounds, ..DeliveryLane::default() })
    }

    /// Attempts the waiting replies of a conversation in order. Skips replies whose platform asked for a delay that has
    /// not passed. Stops at the first reply that still waits and holds back the newer ones.
    async fn round(&self, conversation: &str, waiting: &mut VecDeque<OutboxDelivery>) {
        let mut kept = VecDeque::new();
        while let Some(mut delivery) = waiting.pop_front() {
            let held = delivery.asked_for && delivery.due > Instant::now();
            if held || matches!(self.deliverer.attempt(&mut delivery).await, Attempt::Failed) {
                kept.push_back(delivery);
            }
            if kept.back().is_some_and(|last: &OutboxDelivery| last.in_order_until().is_some()) {
                break;
            }
        }
        kept.append(waiting);
        *waiting = kept;
        if let Some(lane) = self.lock().get_mut(conversation) {
            let left = waiting.iter().chain(&lane.coming);
            lane.in_order_until = left.filter_map(OutboxDelivery::in_order_until).max();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, DeliveryLane>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn work(lanes: DeliveryLanes, conversation: String, bell: Arc<Notify>) {
    let mut waiting: VecDeque<OutboxDelivery> = VecDeque::new();
    while let Some(work) = lanes.take_work(&conversation, waiting.is_empty()) {
        waiting.extend(work.coming);
        if let Some(tried) = work.rounds {
            reachable(&mut waiting).for_each(OutboxDelivery::hasten);
            lanes.round(&conversation, &mut waiting).await;
            for tried in tried {
                tried.send(()).ok();
            }
            continue;
        }
        tokio::select! {
            biased;
            () = bell.notified() => {}
            () = due(&mut waiting) => lanes.round(&conversation, &mut waiting).await,
        }
    }
}

/// Returns the replies that may be attempted: all up to and including the first that holds back the others.
fn reachable(waiting: &mut VecDeque<OutboxDelivery>) -> impl Iterator<Item = &mut OutboxDelivery> {
    let blocker = waiting.iter().position(|delivery| delivery.in_order_until().is_some());
    let count = blocker.map_or(waiting.len(), |blocker| blocker + 1);
    waiting.iter_mut().take(count)
}

/// Waits until a reply is due for another attempt, or until the first blocking one no longer holds back the others.
async fn due(waiting: &mut VecDeque<OutboxDelivery>) {
    let release = waiting.iter().find_map(OutboxDelivery::in_order_until);
    let Some(next) = reachable(waiting).min_by_key(|delivery| delivery.due) else {
        return std::future::pending().await;
    };
    match release {
        Some(release) => drop(tokio::time::timeout_at(release, next.pause()).await),
        None => next.pause().await,
    }
}
