//! The state of a simulation: its random numbers, its clock, the record of its events, and the planned crash. It outlives the
//! daemons that crash.

use crate::faults::Faults;
use pudu_sim::{Model, Telegram};
use std::{
    cell::RefCell,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
    time::Duration,
};
use tokio::{sync::Notify, time::Instant};

/// Time at which each simulation begins, in milliseconds since 1970.
const BEGIN: i64 = 1_795_000_000_000;

/// Number of events within which a daemon crashes.
const CRASH_WITHIN: u32 = 900;
/// Maximum time after a crash until the next start, in milliseconds.
const MAX_REST: u64 = 5000;

thread_local! {
    static WORLD: RefCell<Option<World>> = const { RefCell::new(None) };
}

/// The simulation of a thread.
pub struct World {
    pub random: fastrand::Rng,
    pub faults: Faults,
    pub telegram: Telegram,
    pub model: Model,
    /// All events, with their times.
    pub events: Vec<String>,
    hash: DefaultHasher,
    /// Virtual time before the current life of the daemon.
    before: Duration,
    /// Begin of the current life of the daemon.
    began: Option<Instant>,
    /// Whether each update is confirmed before the daemon stores it.
    pub confirms_early: bool,
    /// Number of crashes that are still planned.
    pub crashes: u32,
    /// Number of events until the daemon crashes.
    pub crash_in: Option<u32>,
    /// Whether the daemon has crashed: it has no effect any more.
    pub is_dead: bool,
    /// Notified of the crash.
    pub crash: Arc<Notify>,
    /// Whether the store was opened in this life of the daemon.
    pub has_store: bool,
}

impl World {
    /// Makes the simulation of this thread.
    pub fn begin(seed: u64, telegram: Telegram, model: Model) {
        let world = Self {
            random: fastrand::Rng::with_seed(seed),
            faults: Faults::default(),
            telegram,
            model,
            events: Vec::new(),
            hash: DefaultHasher::new(),
            before: Duration::ZERO,
            began: None,
            confirms_early: false,
            crashes: 0,
            crash_in: None,
            is_dead: false,
            crash: Arc::default(),
            has_store: false,
        };
        WORLD.set(Some(world));
    }

    /// Begins a life of the daemon.
    pub fn is_born(&mut self) {
        self.began = Some(Instant::now());
        self.is_dead = false;
        self.has_store = false;
        self.crash = Arc::default();
        self.crash_in = (self.crashes > 0).then(|| self.random.u32(1..CRASH_WITHIN));
        self.crashes = self.crashes.saturating_sub(1);
        self.note("born");
    }

    /// Lets time pass without a daemon.
    pub fn rest(&mut self) {
        self.before += Duration::from_millis(self.random.u64(0..MAX_REST));
    }

    /// Ends a life of the daemon.
    pub fn is_gone(&mut self) {
        self.before = self.elapsed();
        self.began = None;
        self.is_dead = true;
    }

    /// Returns the virtual time since the begin of the simulation.
    pub fn elapsed(&self) -> Duration {
        self.before + self.began.map_or(Duration::ZERO, |began| began.elapsed())
    }

    /// Records an event. The daemon crashes at the planned one.
    pub fn note(&mut self, event: impl Into<String>) {
        if self.is_dead {
            return;
        }
        let event = format!("{:>9} {}", self.elapsed().as_millis(), event.into());
        event.hash(&mut self.hash);
        self.events.push(event);
        match &mut self.crash_in {
            Some(0) => {
                self.crash_in = None;
                self.faults.count("crash");
                self.events.push("          CRASH".to_owned());
                self.is_dead = true;
                self.crash.notify_one();
            }
            Some(left) => *left -= 1,
            None => {}
        }
    }

    pub fn hash(&self) -> u64 {
        self.hash.finish()
    }
}

/// Works with the simulation of this thread.
pub fn with<T>(work: impl FnOnce(&mut World) -> T) -> T {
    WORLD.with_borrow_mut(|world| work(world.as_mut().unwrap()))
}

/// Returns the time of the simulation, in milliseconds since 1970.
pub fn now() -> i64 {
    BEGIN + i64::try_from(with(|world| world.elapsed()).as_millis()).unwrap()
}

/// Passes a step of the store.
pub fn step(name: &str) -> Result<(), String> {
    with(|world| {
        world.has_store = true;
        world.note(format!("store {name}"));
        if world.is_dead {
            return Err("the daemon has crashed".to_owned());
        }
        let at = world.elapsed();
        world.faults.of_store(name, at, &mut world.random)
    })
}
