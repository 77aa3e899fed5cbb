//! Requests that a server makes while a call runs, and the call that each belongs to. All threads share a session with a
//! server, and a person of one thread must not be asked for a call of another.

use pudu_base::{CallId, RunEvent, Tell};
use rmcp::model::{ErrorData, ProgressNotificationParam, ProgressToken, RequestId, RequestMetaObject};
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::sync::{mpsc, oneshot};

/// Key in the metadata of a server's request that contains the id of the request whose response carried it. Values from
/// servers are removed.
pub(crate) const CARRIED_BY: &str = "pudu/carriedBy";
/// Minimum time between two reports of a call's progress that are passed on.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);
/// Maximum number of waiting requests of a server for one call.
const MAX_WAITING: usize = 8;

/// Kind of a server's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AskKind {
    /// A question to people.
    Elicitation,
    /// A request to the model (sampling).
    Sampling,
    /// The folders that the server may work in.
    Roots,
}

impl AskKind {
    /// Returns the answer if there are no people, no model or no folders for a request.
    pub(crate) fn refusal(self) -> AskAnswer {
        match self {
            Self::Elicitation => Ok(json!({ "action": "decline" })),
            Self::Sampling => Err(rejected("there is no run that could ask a model")),
            Self::Roots => Ok(json!({ "roots": [] })),
        }
    }

    /// Returns the answer if the call ended before there was one.
    fn cancellation(self) -> AskAnswer {
        match self {
            Self::Elicitation => Ok(json!({ "action": "cancel" })),
            Self::Sampling => Err(rejected("the call ended")),
            Self::Roots => self.refusal(),
        }
    }
}

/// Result of a request, or an error.
pub(crate) type AskAnswer = Result<Value, ErrorData>;

/// Returns the error for a request to the model that was not made. The code is the protocol's own for this case.
pub(crate) fn rejected(why: &str) -> ErrorData {
    ErrorData::new(rmcp::model::ErrorCode(-1), why.to_owned(), None)
}

/// A request of a server. Dropping it answers that the call ended.
#[derive(Debug)]
pub(crate) struct ServerAsk {
    pub(crate) kind: AskKind,
    pub(crate) params: Value,
    pub(crate) reply: oneshot::Sender<AskAnswer>,
}

impl ServerAsk {
    /// Creates a request and the future that waits for its answer.
    pub(crate) fn new(kind: AskKind, params: Value) -> (Self, AwaitedAnswer) {
        let (reply, answer) = oneshot::channel();
        (Self { kind, params, reply }, AwaitedAnswer { kind, answer })
    }

    /// Answers the request.
    pub(crate) fn answer(self, answer: AskAnswer) {
        // The server may have withdrawn the request.
        self.reply.send(answer).ok();
    }
}

/// The answer to a request, which may not be there yet.
#[derive(Debug)]
pub(crate) struct AwaitedAnswer {
    kind: AskKind,
    answer: oneshot::Receiver<AskAnswer>,
}

impl AwaitedAnswer {
    /// Waits for the answer.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(crate) async fn get(&mut self) -> AskAnswer {
        (&mut self.answer).await.unwrap_or_else(|_| self.kind.cancellation())
    }
}

/// The running calls of a session, by the tokens of their progress.
#[derive(Clone, Default)]
pub(crate) struct RunningCalls(Arc<Mutex<HashMap<ProgressToken, WatchedCall>>>);

struct WatchedCall {
    request: RequestId,
    call: CallId,
    events: Tell,
    asks: mpsc::Sender<ServerAsk>,
    /// Time of the last progress that was passed on.
    last: Option<Instant>,
}

impl RunningCalls {
    /// Passes the progress and the requests of a call on, until the returned guard is dropped.
    pub(crate) fn watch(
        &self,
        token: &ProgressToken,
        request: &RequestId,
        call: &CallId,
        events: &Tell,
    ) -> (CallWatch, mpsc::Receiver<ServerAsk>) {
        let (asks, received) = mpsc::channel(MAX_WAITING);
        let (request, call, events) = (request.clone(), call.clone(), Arc::clone(events));
        self.lock().insert(token.clone(), WatchedCall { request, call, events, asks, last: None });
        (CallWatch { calls: self.clone(), token: token.clone() }, received)
    }

    pub(crate) fn progress(&self, progress: &ProgressNotificationParam) {
        let mut calls = self.lock();
        let Some(WatchedCall { call, events, last, .. }) = calls.get_mut(&progress.progress_token) else {
            return;
        };
        if last.is_none_or(|last| last.elapsed() >= PROGRESS_INTERVAL) {
            *last = Some(Instant::now());
            let (done, total) = (progress.progress, progress.total);
            events(RunEvent::ToolProgress { call: call.clone(), done, total });
        }
    }

    /// Passes a server's request to its call, and waits for the answer. A request belongs to the call whose response
    /// carries it, otherwise to the only running call.
    pub(crate) async fn ask(&self, kind: AskKind, params: Value, meta: &RequestMetaObject) -> AskAnswer {
        let Some(asks) = self.owner(meta) else { return kind.refusal() };
        let (ask, mut answer) = ServerAsk::new(kind, params);
        match asks.try_send(ask) {
            Ok(()) => answer.get().await,
            Err(_) => kind.refusal(),
        }
    }

    fn owner(&self, meta: &RequestMetaObject) -> Option<mpsc::Sender<ServerAsk>> {
        let calls = self.lock();
        let carrier = meta.get(CARRIED_BY);
        let is_carrier = |watched: &&WatchedCall| Some(&watched.request.clone().into_json_value()) == carrier;
        let found = match carrier {
            Some(_) => calls.values().find(is_carrier),
            None => calls.values().next().filter(|_| calls.len() == 1),
        };
        found.map(|watched| watched.asks.clone())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ProgressToken, WatchedCall>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the observation of a call on drop.
pub(crate) struct CallWatch {
    calls: RunningCalls,
    token: ProgressToken,
}

impl Drop for CallWatch {
    fn drop(&mut self) {
        self.calls.lock().remove(&self.token);
    }
}
