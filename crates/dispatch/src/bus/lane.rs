//! Replies whose first try failed wait here, those of one conversation in the order in which they were said, while the
//! conversation continues. A round tries them one by one; it comes when the oldest has waited long enough, when its
//! platform answers another call, or when something newer is to be said. A reply that is refused only for its content
//! delays no other.

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

/// Time for which a newer reply waits for earlier ones: as long as a call, or files that a person waits for.
const PRECEDENCE_TIMEOUT: Duration = Duration::from_secs(8);

/// The lanes, by conversation.
#[derive(Clone)]
pub(super) struct DeliveryLanes {
    lanes: Arc<Mutex<HashMap<String, DeliveryLane>>>,
    deliverer: Deliverer,
    /// Tasks in which replies wait for their next try.
    tasks: TaskTracker,
}

/// Work handed to a lane's task. The inbox bounds it: there is an event behind each reply.
#[derive(Default)]
struct DeliveryLane {
    bell: Arc<Notify>,
    /// These wait from now on.
    coming: Vec<OutboxDelivery>,
    /// A requested round, with the callers that wait for its end.
    rounds: Option<Vec<oneshot::Sender<()>>>,
    /// Signals of the waiting replies, and of those that waited lately: they are set at once, also in the midst of a
    /// try.
    hurries: Vec<Hurry>,
}

impl DeliveryLanes {
    pub(super) fn new(deliverer: Deliverer, tasks: TaskTracker) -> Self {
        Self { lanes: Arc::default(), deliverer, tasks }
    }

    /// Lets a delivery wait for its next try.
    pub(super) fn wait(&self, delivery: OutboxDelivery) {
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
        lane.coming.push(delivery);
        lane.bell.notify_one();
    }

    /// Tries the waiting replies of a conversation, before something newer is said there.
    pub(super) async fn precede(&self, conversation: &str) {
        let (tell, tried) = oneshot::channel();
        if self.send_hurry(conversation, Hurry::wait, Some(tell)) {
            tokio::time::timeout(PRECEDENCE_TIMEOUT, tried).await.ok();
        }
    }

    /// Gives up the files of a conversation's waiting replies. Returns whether there are such replies.
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

    /// Takes the new replies and the requested round of a lane. Removes the lane if there are no new replies and
    /// `idle`.
    fn take_work(&self, conversation: &str, idle: bool) -> Option<DeliveryLane> {
        let mut lanes = self.lock();
        let lane = lanes.get_mut(conversation)?;
        if idle && lane.coming.is_empty() {
            // Callers that wait for a round without replies continue: its end is dropped.
            lanes.remove(conversation);
            return None;
        }
        let (coming, rounds) = (std::mem::take(&mut lane.coming), lane.rounds.take());
        Some(DeliveryLane { coming, rounds, ..DeliveryLane::default() })
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
            waiting.iter_mut().for_each(OutboxDelivery::hasten);
            round(&lanes.deliverer, &mut waiting).await;
            for tried in tried {
                tried.send(()).ok();
            }
            continue;
        }
        tokio::select! {
            biased;
            () = bell.notified() => {}
            () = due(&mut waiting) => round(&lanes.deliverer, &mut waiting).await,
        }
    }
}

/// Waits until the oldest is to be tried again.
async fn due(waiting: &mut VecDeque<OutboxDelivery>) {
    match waiting.iter_mut().min_by_key(|delivery| delivery.due) {
        Some(delivery) => delivery.pause().await,
        None => std::future::pending().await,
    }
}

/// Tries the waiting replies in order, except those that their platform wants later.
async fn round(deliverer: &Deliverer, waiting: &mut VecDeque<OutboxDelivery>) {
    for _ in 0..waiting.len() {
        let Some(mut delivery) = waiting.pop_front() else { return };
        let held = delivery.asked_for && delivery.due > Instant::now();
        if held || matches!(deliverer.attempt(&mut delivery).await, Attempt::Failed) {
            waiting.push_back(delivery);
        }
    }
}
