//! Handling of a call: the method's effect, and its response in the Bot API's format.

use super::{
    error::{Answer, Refusal},
    methods::{self, Work},
    params::Params,
    updates::Polled,
    world::World,
};
use crate::{
    calls::Outcome,
    fault::Fault,
    stage::{self, Books, Reply, Stage},
};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Maximum time that a poll waits, in seconds.
const MAX_POLL_SECS: i64 = 50;

/// Internals of the server.
pub(crate) type Core = Stage<World>;

impl stage::World for World {
    fn books(&mut self) -> &mut Books {
        &mut self.books
    }

    fn refuse(fault: &Fault) -> stage::Answer {
        let refusal = match fault {
            Fault::TooMany(seconds) => Refusal::too_many(*seconds),
            Fault::Refused(code, text) => Refusal::new(*code, text),
            _ => Refusal::new(500, "Internal Server Error"),
        };
        answer(Err(refusal))
    }
}

impl Core {
    /// Executes a call, or fails it as planned. Unknown methods are recorded too.
    pub(crate) async fn call(&self, method: &str, params: Params) -> Reply {
        match self.look(|world| methods::find(method, world)) {
            Some((method, work)) => self.perform(method, work, &params).await,
            None => self.perform(method, Work::Now(methods::unknown), &params).await,
        }
    }

    /// Executes a method, with record and failures.
    pub(crate) async fn perform(&self, method: &str, work: Work, params: &Params) -> Reply {
        self.run(method, params.record(), async { answer(self.work(work, params).await) }).await
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
        let wait = params.int("timeout")?.unwrap_or(0).clamp(0, MAX_POLL_SECS);
        let deadline = Instant::now() + Duration::from_secs(wait.unsigned_abs());
        let poll = self.act(|world| enter(world, params))?;
        let mut changed = self.watch();
        loop {
            changed.borrow_and_update();
            // Only `lock`, not `act`: a poll without updates changes nothing.
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

fn answer(result: Answer) -> stage::Answer {
    match result {
        Ok(value) => (Reply::Json(200, json!({"ok": true, "result": value})), Outcome::Answered(value)),
        Err(refusal) => (refuse(&refusal), Outcome::Refused(refusal.code, refusal.text)),
    }
}

pub(crate) fn refuse(refusal: &Refusal) -> Reply {
    Reply::Json(refusal.code, refusal.body())
}
