//! Selection of replies, and the record of requests and responses.

use super::{Ask, Reply};
use crate::gate::Stop;
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::{sync::watch, time::Instant};

/// Maximum number of stored exchanges; the counters continue.
const KEPT: usize = 20_000;

/// A request and its outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Exchange {
    /// Its number, from 1.
    pub n: u64,
    /// The request.
    pub ask: Arc<Ask>,
    /// When the first chunk of the answer was sent.
    pub first: Option<Instant>,
    /// How and when it ended; `None` while it is in progress.
    pub end: Option<(End, Instant)>,
}

/// How an exchange ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The complete answer or error was sent.
    Whole,
    /// It was interrupted as scripted.
    Broken,
    /// The client disconnected.
    HungUp,
}

/// A point in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// After the request was read, before anything is sent.
    Start,
    /// Before the chunk with this number, counted from 1 without the opening one with the role.
    Chunk(usize),
    /// Before the end of the answer.
    End,
}

type Rule = (Arc<dyn Fn(&Ask) -> bool + Send + Sync>, Arc<dyn Fn(&Ask) -> Reply + Send + Sync>);

/// The script and the record.
pub(crate) struct Script {
    pub(crate) rules: Vec<Rule>,
    pub(crate) queue: VecDeque<Reply>,
    pub(crate) otherwise: Arc<dyn Fn(&Ask) -> Reply + Send + Sync>,
    stops: Vec<(u64, At, Stop<Exchange>)>,
    pub(crate) kept: VecDeque<Exchange>,
    pub(crate) total: u64,
    pub(crate) active: u64,
    pub(crate) peak: u64,
    pub(crate) hangups: u64,
    /// Requests that the real server would refuse, with reasons.
    pub(crate) refused: Vec<String>,
}

/// Stops of one call.
pub(crate) type Stops = Vec<(At, Stop<Exchange>)>;

impl Script {
    pub(crate) fn stop(&mut self, nth: u64, at: At, stop: Stop<Exchange>) {
        self.stops.push((self.total + nth, at, stop));
    }

    /// Records a request and selects its reply.
    fn begin(&mut self, ask: Ask) -> (Exchange, Reply, Stops) {
        self.total += 1;
        self.active += 1;
        self.peak = self.peak.max(self.active);
        let reply = self.reply(&ask);
        let exchange = Exchange { n: self.total, ask: Arc::new(ask), first: None, end: None };
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(exchange.clone());
        let total = self.total;
        let stops = self.stops.extract_if(.., |(nth, ..)| *nth == total);
        let stops = stops.map(|(_, at, stop)| (at, stop)).collect();
        (exchange, reply, stops)
    }

    fn reply(&mut self, ask: &Ask) -> Reply {
        if let Some((_, reply)) = self.rules.iter().find(|(asked, _)| asked(ask)) {
            return reply(ask);
        }
        self.queue.pop_front().unwrap_or_else(|| (self.otherwise)(ask))
    }

    fn exchange(&mut self, n: u64) -> Option<&mut Exchange> {
        let first = self.kept.front()?.n;
        self.kept.get_mut(usize::try_from(n.checked_sub(first)?).ok()?)
    }
}

impl Default for Script {
    fn default() -> Self {
        Self {
            rules: Vec::new(),
            queue: VecDeque::new(),
            otherwise: Arc::new(|ask| Reply::text(&format!("echo: {}", ask.last_user())).into()),
            stops: Vec::new(),
            kept: VecDeque::new(),
            total: 0,
            active: 0,
            peak: 0,
            hangups: 0,
            refused: Vec::new(),
        }
    }
}

/// The script behind a lock, with a change notification.
#[derive(Default)]
pub(crate) struct Shared {
    script: Mutex<Script>,
    changed: watch::Sender<()>,
}

impl Shared {
    // A panic in a test's closure must not prevent the final report of the test.
    pub(crate) fn act<T>(&self, change: impl FnOnce(&mut Script) -> T) -> T {
        change(&mut self.script.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn watch(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    pub(crate) fn begin(self: &Arc<Self>, ask: Ask) -> (Turn, Reply, Stops) {
        let (exchange, reply, stops) = self.act(|script| script.begin(ask));
        self.changed.send_replace(());
        (Turn { shared: Arc::clone(self), exchange, end: End::HungUp }, reply, stops)
    }
}

/// A call in progress. If dropped before its end is set, the client has disconnected.
pub(crate) struct Turn {
    shared: Arc<Shared>,
    pub(crate) exchange: Exchange,
    end: End,
}

impl Turn {
    /// Records the first chunk.
    pub(crate) fn first(&mut self) {
        let now = Some(Instant::now());
        self.exchange.first = now;
        self.shared.act(|script| {
            if let Some(exchange) = script.exchange(self.exchange.n) {
                exchange.first = now;
            }
        });
        self.shared.changed.send_replace(());
    }

    /// Sets the end to record on drop.
    pub(crate) fn ends(&mut self, end: End) {
        self.end = end;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.shared.act(|script| {
            script.active -= 1;
            script.hangups += u64::from(self.end == End::HungUp);
            if let Some(exchange) = script.exchange(self.exchange.n) {
                exchange.end = Some((self.end, Instant::now()));
            }
        });
        self.shared.changed.send_replace(());
    }
}
