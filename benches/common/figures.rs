//! What the benchmarks of the real binary print and measure alike.

use crate::house::House;
use std::time::Duration;

/// Returns whether a part is to run: those that the command line names by their beginnings, or all.
pub fn wants(name: &str) -> bool {
    let mut wanted = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).peekable();
    wanted.peek().is_none() || wanted.any(|part| name.starts_with(part.as_str()))
}

/// Starts a daemon in a process of its own, which can be measured.
pub async fn house() -> House {
    let mut house = House::build("").await;
    house.in_its_own_process();
    house.start();
    house
}

/// Begins the table.
pub fn heading() {
    println!("| what | here | aim | others, same mock |\n| --- | --- | --- | --- |");
}

pub fn row(what: &str, here: &str, aim: &str, others: &str) {
    println!("| {what} | {here} | {aim} | {others} |");
}

/// What the daemon has in memory, in bytes.
pub struct Memory {
    pub resident: u64,
    /// Of that, what is not a part of a file.
    pub own: u64,
}

impl Memory {
    pub fn of(house: &House) -> Self {
        let path = format!("/proc/{}/smaps_rollup", house.pid().as_raw_nonzero());
        let text = std::fs::read_to_string(path).unwrap();
        let field = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap();
            line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
        };
        Self { resident: field("Rss:"), own: field("Anonymous:") }
    }

    pub fn against(&self, before: &Self) -> String {
        let more = (self.own as f64 - before.own as f64) / 1_048_576.0;
        format!("{}, {more:+.1} MiB", mib(self.own))
    }
}

/// CPU time of the daemon so far, by the kernel's clock ticks (100 a second).
pub fn cpu(house: &House) -> Duration {
    let path = format!("/proc/{}/stat", house.pid().as_raw_nonzero());
    let text = std::fs::read_to_string(path).unwrap();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

pub fn median(times: &mut [Duration]) -> Duration {
    quantile(times, 0.5)
}

pub fn quantile(times: &mut [Duration], share: f64) -> Duration {
    times.sort();
    times[((times.len() - 1) as f64 * share).round() as usize]
}

pub fn pair(times: &mut [Duration]) -> String {
    format!("{} / {}", ms(quantile(times, 0.5)), ms(quantile(times, 0.99)))
}

pub fn ms(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

pub fn secs(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

pub fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / 1_048_576.0)
}
