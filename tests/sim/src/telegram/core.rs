//! The state behind a lock, the signal that it changed, and one call's way through faults and effect.

use super::{
    calls::{Call, Outcome},
    error::{Answer, Refusal},
    fault::{Fault, Plan},
    methods::{self, Work},
    params::Params,
    updates::Polled,
    world::{Options, World},
};
use crate::gate::{Then, pass_all};
use serde_json::Value;
use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout_at},
};

/// The longest that a poll waits.
const LONGEST_POLL: i64 = 50;

/// The server's inside.
pub(crate) struct Core {
    world: Mutex<World>,
    changed: watch::Sender<()>,
}

/// What goes back over the connection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reply {
    /// An answer in the platform's form.
    Json(u16, Value),
    /// A proxy's error page.
    BadGateway,
    /// No JSON.
    Garbage,
    /// Nothing: the connection closes.
    Cut,
}

impl Core {
    pub(crate) fn new(options: Options) -> Self {
        Self { world: Mutex::new(World::new(options)), changed: watch::Sender::new(()) }
    }

    // A panic in a test's closure must not hide the state from the test's last words.
    fn lock(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the state.
    pub(crate) fn look<T>(&self, read: impl FnOnce(&World) -> T) -> T {
        read(&self.lock())
    }

    /// Changes the state and wakes those who wait for a change.
    pub(crate) fn act<T>(&self, change: impl FnOnce(&mut World) -> T) -> T {
        let result = change(&mut self.lock());
        self.changed.send_replace(());
        result
    }

    /// Tells of changes from now on.
    pub(crate) fn watch(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Answers a call, or fails it as planned. One of an unknown method is recorded too.
    pub(crate) async fn call(&self, method: &str, params: Params) -> Reply {
        match self.look(|world| methods::find(method, world)) {
            Some((method, work)) => self.run(method, work, &params).await,
            None => self.run(method, Work::Now(methods::unknown), &params).await,
        }
    }

    /// Does what is asked under the name of a method, with record and faults.
    pub(crate) async fn run(&self, method: &str, work: Work, params: &Params) -> Reply {
        let (call, plan) = self.act(|world| {
            (world.calls.start(method, params.record(), Instant::now()), world.faults.plan(method))
        });
        let mut entry = Entry { core: self, n: call.n, outcome: Outcome::Abandoned };
        let (reply, outcome) = self.carry_out(work, params, &call, plan).await;
        entry.outcome = outcome;
        reply
    }

    async fn carry_out(&self, work: Work, params: &Params, call: &Call, plan: Plan) -> (Reply, Outcome) {
        if pass_all(plan.before, call).await == Then::Cut {
            return (Reply::Cut, Outcome::Cut { done: false });
        }
        if let Some(instead) = plan.fault.as_ref().and_then(without_effect) {
            return instead;
        }
        if let Some(Fault::Delay(pause)) = plan.fault {
            sleep(pause).await;
        }
        let result = self.work(work, params).await;
        if pass_all(plan.after, call).await == Then::Cut || plan.fault == Some(Fault::CutAfter) {
            return (Reply::Cut, Outcome::Cut { done: result.is_ok() });
        }
        if plan.fault == Some(Fault::Garbage) {
            return (Reply::Garbage, Outcome::Garbled);
        }
        match result {
            Ok(value) => {
                let body = serde_json::json!({"ok": true, "result": value});
                (Reply::Json(200, body), Outcome::Answered(value))
            }
            Err(refusal) => (refuse(&refusal), Outcome::Refused(refusal.code, refusal.text)),
        }
    }

    async fn work(&self, work: Work, params: &Params) -> Answer {
        match work {
            Work::Now(effect) => self.act(|world| effect(world, params)),
            Work::Paced(effect) => self.act(|world| {
                world.meter.pass(methods::chat_id(params)?, Instant::now())?;
                effect(world, params)
            }),
            Work::Poll => self.poll(params).await,
        }
    }

    async fn poll(&self, params: &Params) -> Answer {
        let limit = params.int("limit")?.filter(|limit| (1..=100).contains(limit)).unwrap_or(100);
        let limit = usize::try_from(limit).unwrap_or(100);
        let wait = params.int("timeout")?.unwrap_or(0).clamp(0, LONGEST_POLL);
        let deadline = Instant::now() + Duration::from_secs(wait.unsigned_abs());
        let poll = self.act(|world| enter(world, params))?;
        let mut changed = self.watch();
        loop {
            changed.borrow_and_update();
            // The lock alone, not `act`: a poll that finds nothing changes nothing.
            let found = self.lock().updates.poll(poll, limit, Instant::now())?;
            if let Polled::Some(updates) = found {
                return Ok(updates.into());
            }
            if timeout_at(deadline, changed.changed()).await.is_err() {
                return Ok(Value::Array(Vec::new()));
            }
        }
    }
}

fn enter(world: &mut World, params: &Params) -> Answer<u64> {
    if world.webhook.is_some() {
        let why = "can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first";
        return Err(Refusal::conflict(why));
    }
    world.updates.allow(params.object("allowed_updates")?);
    Ok(world.updates.enter(params.int("offset")?.unwrap_or(0)))
}

pub(crate) fn refuse(refusal: &Refusal) -> Reply {
    Reply::Json(refusal.code, refusal.body())
}

/// What a fault answers that keeps the call from being done.
fn without_effect(fault: &Fault) -> Option<(Reply, Outcome)> {
    let refusal = match fault {
        Fault::CutBefore => return Some((Reply::Cut, Outcome::Cut { done: false })),
        Fault::BadGateway => {
            return Some((Reply::BadGateway, Outcome::Refused(502, "Bad Gateway".to_owned())));
        }
        Fault::TooMany(seconds) => Refusal::too_many(*seconds),
        Fault::Refused(code, text) => Refusal::new(*code, text),
        Fault::Internal => Refusal::new(500, "Internal Server Error"),
        Fault::CutAfter | Fault::Delay(_) | Fault::Garbage => return None,
    };
    Some((refuse(&refusal), Outcome::Refused(refusal.code, refusal.text)))
}

/// Writes the outcome into the record, also when the client goes away and the call is dropped.
struct Entry<'a> {
    core: &'a Core,
    n: u64,
    outcome: Outcome,
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        let outcome = std::mem::replace(&mut self.outcome, Outcome::Running);
        self.core.act(|world| world.calls.end(self.n, outcome));
    }
}
