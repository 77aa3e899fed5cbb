//! Steps of sub-agents, on their way into the log of their parent's thread.
//!
//! A sub-agent works within a call of its parent, which alone writes the log: its steps wait here and are written with
//! the parent's next commit, once there are many or the first has waited for a while.

use crate::task_end::TaskEnding;
use pudu_base::{CallId, Outcome, RunEvent, TaskStage, TaskStatus, Update, Usage};
use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::sync::Notify;

/// Number of waiting steps that triggers a commit.
const BATCH: usize = 25;
/// Maximum time that a step waits.
const MAX_WAIT: Duration = Duration::from_secs(2);

/// Steps of a run's sub-agents that are not in the log yet.
#[derive(Default)]
pub(crate) struct TaskLog {
    waiting: Mutex<TaskBacklog>,
    /// Notified when the first step waits, and when there are many.
    bell: Notify,
}

#[derive(Default)]
struct TaskBacklog {
    updates: Vec<Update>,
    /// The tasks that began in this process. Their ends are published.
    begun: HashSet<CallId>,
    /// Models and usage of the finished tasks.
    over: HashMap<CallId, (String, Usage)>,
    /// Outcome of the run, if it ended without waiting for its tasks.
    cut: Option<Outcome>,
}

impl TaskLog {
    /// Records how the run ended, before it drops its calls.
    pub(crate) fn cut(&self, outcome: &Outcome) {
        self.lock().cut = Some(outcome.clone());
    }

    /// Returns an event for publishing: a task whose call was dropped ends as its parent's run did.
    pub(crate) fn for_publishing(&self, event: RunEvent) -> RunEvent {
        match event {
            RunEvent::SubagentProgress { call, stage: TaskStage::Ended(end) }
                if end.status == TaskStatus::Cancelled =>
            {
                let cut = TaskEnding::cut(self.lock().cut.as_ref());
                let end = cut.kept(end.model, end.usage, end.omitted);
                RunEvent::SubagentProgress { call, stage: TaskStage::Ended(end) }
            }
            other => other,
        }
    }

    /// Records an event for the log.
    pub(crate) fn note(&self, event: &RunEvent) {
        let RunEvent::SubagentProgress { call, stage } = event else { return };
        if !stage.is_kept() {
            return;
        }
        let rings = {
            let mut waiting = self.lock();
            waiting.begun.insert(call.clone());
            if let TaskStage::Ended(end) = stage {
                waiting.over.insert(call.clone(), (end.model.clone(), end.usage));
            }
            waiting.updates.push(Update::Task { call: call.clone(), stage: stage.clone() });
            waiting.updates.len() == 1 || waiting.updates.len() >= BATCH
        };
        if rings {
            self.bell.notify_one();
        }
    }

    /// Takes the waiting updates.
    pub(crate) fn take(&self) -> Vec<Update> {
        std::mem::take(&mut self.lock().updates)
    }

    /// Waits until there is something to write.
    ///
    /// # Cancel safety
    /// Dropping the future loses no waiting update.
    pub(crate) async fn wait_for_updates(&self) {
        loop {
            let count = self.lock().updates.len();
            match count {
                0 => self.bell.notified().await,
                1..BATCH => {
                    if tokio::time::timeout(MAX_WAIT, self.bell.notified()).await.is_err() {
                        return;
                    }
                }
                _ => return,
            }
        }
    }

    /// Returns whether a task began in this process.
    pub(crate) fn began(&self, call: &CallId) -> bool {
        self.lock().begun.contains(call)
    }

    /// Returns the model and usage of a finished task.
    pub(crate) fn spent(&self, call: &CallId) -> (String, Usage) {
        self.lock().over.get(call).cloned().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, TaskBacklog> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
