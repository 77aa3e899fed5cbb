//! Which reply a request gets, and the record of what went to and fro.

use super::{Ask, Reply};
use crate::gate::Stop;
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::{sync::watch, time::Instant};

/// How many exchanges are kept; the counters go on.
const KEPT: usize = 20_000;

/// A request and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Exchange {
    /// Its number, from 1.
    pub n: u64,
    /// What was asked.
    pub ask: Arc<Ask>,
    /// When the first chunk of the answer was handed to the connection.
    pub first: Option<Instant>,
    /// How and when it ended; `None` while it is under way.
    pub end: Option<(End, Instant)>,
}

/// How an exchange ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The whole answer, or the error, was handed to the connection.
    Whole,
    /// The model broke it off, as scripted.
    Broken,
    /// The client went away.
    HungUp,
}

/// A point in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The request is read; nothing is sent.
    Start,
    /// Before the chunk with this number, counted from 1, the opening one with the role not counted.
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
    /// What was refused because the real server would.
    pub(crate) refused: Vec<String>,
}

/// The stops of one call.
pub(crate) type Stops = Vec<(At, Stop<Exchange>)>;

impl Script {
    pub(crate) fn stop(&mut self, nth: u64, at: At, stop: Stop<Exchange>) {
        self.stops.push((self.total + nth, at, stop));
    }

    /// Enters a request and says what it gets.
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

/// The script behind a lock, and the signal that something happened.
#[derive(Default)]
pub(crate) struct Shared {
    script: Mutex<Script>,
    changed: watch::Sender<()>,
}

impl Shared {
    // A panic in a test's closure must not hide the record from the test's last words.
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

/// A call under way. Dropped before it is told how it ended, the client has gone.
pub(crate) struct Turn {
    shared: Arc<Shared>,
    pub(crate) exchange: Exchange,
    end: End,
}

impl Turn {
    /// The first chunk goes out.
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

    /// What it is when it is dropped.
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
