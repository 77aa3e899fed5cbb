//! The whole daemon in one thread: its store on disk, a simulated platform and a simulated model in memory, a paused clock,
//! and faults by a seed. A seed gives the same events each time.
//!
//! `PUDU_SIM_SEEDS` sets the number of seeds (default 50), `PUDU_SIM_SEED` runs one seed and prints its events.
#![allow(unreachable_pub, clippy::unwrap_used, clippy::string_slice, clippy::str_to_string, reason = "tests")]

mod check;
mod faults;
mod life;
mod network;
mod schedule;
mod story;
mod world;

use life::{simulate, simulate_with};
use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

/// Number of seeds without a wish.
const SEEDS: u64 = 50;
/// Number of failed seeds after which no more are run.
const MAX_FAILURES: usize = 10;

#[test]
fn every_seed_keeps_the_invariants() {
    if let Some(seed) = number("PUDU_SIM_SEED") {
        let outcome = simulate(seed);
        outcome.print();
        assert_eq!(outcome.failure, None, "seed {seed}");
        return;
    }
    let (seeds, next) = (number("PUDU_SIM_SEEDS").unwrap_or(SEEDS), AtomicU64::new(0));
    let (faults, failures) = (Mutex::new(BTreeMap::<&str, u64>::new()), Mutex::new(Vec::new()));
    let work = || {
        while failures.lock().unwrap().len() < MAX_FAILURES {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds {
                return;
            }
            let outcome = simulate(seed);
            outcome.faults.iter().for_each(|(kind, count)| {
                *faults.lock().unwrap().entry(kind).or_default() += count;
            });
            if let Some(why) = outcome.failure {
                println!("seed {seed}: {why}\n{}", outcome.chats);
                failures.lock().unwrap().push(seed);
            }
        }
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
    let (faults, failures) = (faults.into_inner().unwrap(), failures.into_inner().unwrap());
    println!("{seeds} seeds, {} faults: {faults:?}", faults.values().sum::<u64>());
    assert!(failures.is_empty(), "PUDU_SIM_SEED repeats one of the seeds {failures:?}");
}

#[test]
fn a_seed_gives_the_same_events_each_time() {
    for seed in 0..number("PUDU_SIM_TWICE").unwrap_or(8) {
        let (one, two) = (simulate(seed), simulate(seed));
        if one.hash != two.hash {
            one.print_difference(&two);
        }
        assert_eq!(one.hash, two.hash, "seed {seed}");
    }
}

/// Seeds that crash between the confirmation of an update and its storage.
const EARLY: &[u64] = &[7, 16];

#[test]
fn a_message_that_is_confirmed_before_it_is_stored_is_missed() {
    for seed in number("PUDU_SIM_EARLY").map_or(EARLY.to_vec(), |seeds| (0..seeds).collect()) {
        let why = simulate_with(seed, true).failure.unwrap_or_default();
        println!("seed {seed}: {why}");
        assert!(number("PUDU_SIM_EARLY").is_some() || why.contains("have no answer"), "seed {seed}: {why:?}");
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}
