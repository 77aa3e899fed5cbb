//! A platform's state behind a lock, its change notification, and the handling of a call: record, planned failures and
//! effect. All simulated platforms use it.

use crate::{
    calls::{Call, Calls, Outcome},
    fault::{Fault, Faults, Plan, When},
    gate::{Hook, Stop, Then, pass_all},
    http,
};
use axum::{
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::{Html, IntoResponse, Response},
};
use serde_json::{Map, Value};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

/// Record and plans of a platform.
pub(crate) struct Books {
    pub(crate) calls: Calls,
    pub(crate) faults: Faults,
}

impl Books {
    pub(crate) fn new(seed: u64) -> Self {
        Self { calls: Calls::default(), faults: Faults::new(seed) }
    }
}

/// The state of a platform.
pub(crate) trait World: Send + 'static {
    fn books(&mut self) -> &mut Books;

    /// Formats a planned failure that is a response. Not called for other failures.
    fn refuse(fault: &Fault) -> Answer;
}

/// Response on the connection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reply {
    /// An answer in the platform's form.
    Json(u16, Value),
    /// The same, with headers.
    Headed(u16, Vec<(&'static str, String)>, Value),
    /// Bytes of a file.
    Bytes(bytes::Bytes),
    /// A proxy's error page.
    BadGateway,
    /// Not JSON.
    Garbage,
    /// No response: the connection closes.
    Cut,
}

/// Response, and its outcome for the record.
pub(crate) type Answer = (Reply, Outcome);

/// Common functions of all platforms' stages, whatever their state is.
pub trait Staged {
    /// Makes the nth call of a method from now on fail; `*` is any method.
    fn fail(&self, method: &str, nth: u64, fault: Fault);

    /// Makes every call of a method fail from now on; `api` matches all calls of the API, but no events on connections.
    fn fail_always(&self, method: &str, fault: Fault);

    /// Runs a hook at the nth call of a method from now on, before or after its effect.
    fn on_call(&self, method: &str, nth: u64, when: When, hook: Hook<Call>);

    /// Removes all pending failures and hooks.
    fn heal(&self);

    /// Returns the calls of a method, oldest first; `*` is any method.
    fn calls(&self, method: &str) -> Vec<Call>;

    /// Returns a receiver that is notified of changes.
    fn watch(&self) -> watch::Receiver<()>;
}

impl<W: World> Staged for Stage<W> {
    fn fail(&self, method: &str, nth: u64, fault: Fault) {
        self.act(|world| world.books().faults.fail_nth(method, nth, fault));
    }

    fn fail_always(&self, method: &str, fault: Fault) {
        self.act(|world| world.books().faults.fail_often(method, 1.0, fault));
    }

    fn on_call(&self, method: &str, nth: u64, when: When, hook: Hook<Call>) {
        self.act(|world| world.books().faults.stop(method, nth, when, Stop::Hook(hook)));
    }

    fn heal(&self) {
        self.act(|world| world.books().faults.clear());
    }

    fn calls(&self, method: &str) -> Vec<Call> {
        let mut world = self.lock();
        let all = world.books().calls.all();
        all.filter(|call| method == "*" || call.method == method).cloned().collect()
    }

    fn watch(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }
}

/// A platform's state, shared.
pub(crate) struct Stage<W> {
    world: Mutex<W>,
    changed: watch::Sender<()>,
}

impl<W: World> Stage<W> {
    pub(crate) fn new(world: W) -> Self {
        Self { world: Mutex::new(world), changed: watch::Sender::new(()) }
    }

    /// Locks the state without notifying of a change.
    // A panic in a test's closure must not hide the state from the final report of the test.
    pub(crate) fn lock(&self) -> MutexGuard<'_, W> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the state.
    pub(crate) fn look<T>(&self, read: impl FnOnce(&W) -> T) -> T {
        read(&self.lock())
    }

    /// Changes the state and notifies waiting tasks.
    pub(crate) fn act<T>(&self, change: impl FnOnce(&mut W) -> T) -> T {
        let result = change(&mut self.lock());
        self.changed.send_replace(());
        result
    }

    /// Returns a receiver that is notified of changes.
    pub(crate) fn watch(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Executes a method, with record and failures.
    pub(crate) async fn run<F>(&self, method: &str, params: Map<String, Value>, effect: F) -> Reply
    where
        F: Future<Output = Answer>,
    {
        let (call, plan) = self.act(|world| {
            let books = world.books();
            (books.calls.start(method, params, Instant::now()), books.faults.plan(method))
        });
        let mut entry = Entry { stage: self, n: call.n, outcome: Outcome::Abandoned };
        let (reply, outcome) = carry_out::<W>(effect, &call, plan).await;
        entry.outcome = outcome;
        reply
    }
}

async fn carry_out<W: World>(effect: impl Future<Output = Answer>, call: &Call, plan: Plan) -> Answer {
    if pass_all(plan.before, call).await == Then::Cut {
        return (Reply::Cut, Outcome::Cut { done: false });
    }
    match &plan.fault {
        Some(Fault::CutBefore) => return (Reply::Cut, Outcome::Cut { done: false }),
        Some(Fault::BadGateway) => {
            return (Reply::BadGateway, Outcome::Refused(502, "Bad Gateway".to_owned()));
        }
        Some(fault @ (Fault::TooMany(_) | Fault::Refused(..) | Fault::Internal)) => return W::refuse(fault),
        Some(Fault::Silent) => std::future::pending().await,
        Some(Fault::Delay(pause)) => sleep(*pause).await,
        Some(Fault::CutAfter | Fault::Garbage) | None => {}
    }
    let (reply, outcome) = effect.await;
    if pass_all(plan.after, call).await == Then::Cut || plan.fault == Some(Fault::CutAfter) {
        return (Reply::Cut, Outcome::Cut { done: matches!(outcome, Outcome::Answered(_)) });
    }
    if plan.fault == Some(Fault::Garbage) {
        return (Reply::Garbage, Outcome::Garbled);
    }
    (reply, outcome)
}

impl IntoResponse for Reply {
    fn into_response(self) -> Response {
        let status = |code| StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        match self {
            Self::Json(code, body) => (status(code), axum::Json(body)).into_response(),
            Self::Headed(code, headers, body) => {
                let mut response = (status(code), axum::Json(body)).into_response();
                for (name, value) in headers {
                    if let Ok(value) = HeaderValue::try_from(value) {
                        response.headers_mut().insert(HeaderName::from_static(name), value);
                    }
                }
                response
            }
            Self::Bytes(bytes) => {
                ([(header::CONTENT_TYPE, "application/octet-stream")], bytes).into_response()
            }
            Self::BadGateway => {
                let page =
                    "<html><head><title>502 Bad Gateway</title></head><body>502 Bad Gateway</body></html>";
                (StatusCode::BAD_GATEWAY, Html(page)).into_response()
            }
            Self::Garbage => ([(header::CONTENT_TYPE, "application/json")], "{\"ok\":tru").into_response(),
            Self::Cut => http::cut(),
        }
    }
}

/// Records the outcome, also when the client disconnects and the call is dropped.
struct Entry<'a, W: World> {
    stage: &'a Stage<W>,
    n: u64,
    outcome: Outcome,
}

impl<W: World> Drop for Entry<'_, W> {
    fn drop(&mut self) {
        let outcome = std::mem::replace(&mut self.outcome, Outcome::Running);
        self.stage.act(|world| world.books().calls.end(self.n, outcome));
    }
}
