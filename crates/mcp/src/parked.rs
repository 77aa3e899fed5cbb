//! Calls that wait for the answer of a person. A question ends the run, and the answer begins the next one: the call stays
//! open at the server meanwhile, and continues when the model makes it again.

use crate::{asks::ServerAsk, call::OngoingCall, form::ServerForm};
use pudu_base::{MessageId, ThreadId};
use serde_json::Value;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// Time that a call waits for people. Then the question is cancelled.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// Maximum number of waiting calls of a server.
const MAX_PARKED: usize = 64;

/// The thread and the tool of a call.
pub(crate) type ParkedKey = (ThreadId, String);

/// A call that waits for a person.
pub(crate) struct ParkedCall {
    pub(crate) args: Value,
    pub(crate) ongoing: OngoingCall,
    pub(crate) ask: ServerAsk,
    pub(crate) form: ServerForm,
    /// The server's question, without the fields.
    pub(crate) message: String,
    /// The newest message of a person when the question was asked.
    pub(crate) asked_after: Option<MessageId>,
}

/// The waiting calls of a server.
#[derive(Default)]
pub(crate) struct ParkedCalls(Mutex<ParkedTable>);

#[derive(Default)]
struct ParkedTable {
    /// Number of calls so far, and so the number of the next one.
    begun: u64,
    calls: HashMap<ParkedKey, (u64, ParkedCall)>,
}

impl ParkedCalls {
    /// Keeps a call. A former one of the same tool in the same thread ends. Returns whether there was room.
    pub(crate) fn park(self: &Arc<Self>, key: &ParkedKey, call: ParkedCall) -> bool {
        let mut waiting = self.lock();
        if waiting.calls.len() >= MAX_PARKED && !waiting.calls.contains_key(key) {
            return false;
        }
        let number = waiting.begun;
        waiting.begun += 1;
        let former = waiting.calls.insert(key.clone(), (number, call));
        drop(waiting);
        drop(former);
        let (calls, key) = (Arc::downgrade(self), key.clone());
        tokio::spawn(async move {
            tokio::time::sleep(ANSWER_TIMEOUT).await;
            if let Some(calls) = calls.upgrade() {
                drop(calls.remove(&key, number));
            }
        });
        true
    }

    /// Returns a waiting call, which is then no longer kept.
    pub(crate) fn take(&self, key: &ParkedKey) -> Option<ParkedCall> {
        self.lock().calls.remove(key).map(|(_, call)| call)
    }

    fn remove(&self, key: &ParkedKey, number: u64) -> Option<ParkedCall> {
        let mut waiting = self.lock();
        waiting.calls.get(key).filter(|(own, _)| *own == number)?;
        waiting.calls.remove(key).map(|(_, call)| call)
    }

    fn lock(&self) -> MutexGuard<'_, ParkedTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
