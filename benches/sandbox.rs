//! How long a sandbox takes: from asking for a command to its first output, and to its end. The program that
//! sandboxes are made of is this benchmark itself, as it is the daemon in the daemon.
//!
//! `cargo bench --bench sandbox`
#![allow(clippy::unwrap_used, reason = "a benchmark stops where something is wrong")]

use pudu_base::{Network, Sandbox, SandboxProvider, ShellCommand};
use pudu_sandbox::{Folders, Jail, LocalSandboxes, Options, enter};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

const TIMES: usize = 200;

fn main() {
    enter();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(measure());
}

async fn measure() {
    let jail = match Jail::probe().await {
        Ok(jail) => Arc::new(jail),
        Err(error) => return println!("commands cannot be confined here: {error}"),
    };
    println!("| what | here | aim |\n| --- | --- | --- |");
    for (name, network) in [("no network", Network::None), ("the machine's network", Network::Full)] {
        let home = tempfile::tempdir().unwrap();
        let folders = Folders::new(home.path().to_owned(), jail.owner());
        let options = Options { network, ..Options::default() };
        let local = LocalSandboxes::new(folders, Some(jail.clone()), options);
        let sandbox = local.acquire(&"t".into()).await.unwrap();
        let (mut first, mut whole) = (Vec::new(), Vec::new());
        for _ in 0..TIMES {
            let (to_first, to_end) = once(&*sandbox).await;
            first.push(to_first);
            whole.push(to_end);
        }
        row(&format!("sandbox with {name}: start to first output, median / p95"), &mut first, "15 ms");
        row(&format!("sandbox with {name}: start to end, median / p95"), &mut whole, "–");
    }
}

/// The command says when it is there by the machine's own clock, which both share.
async fn once(sandbox: &dyn Sandbox) -> (Duration, Duration) {
    let script = "echo $EPOCHREALTIME".to_owned();
    let command = ShellCommand::new(script, Duration::from_secs(20));
    let (wall, begin) = (std::time::SystemTime::now(), Instant::now());
    let done = sandbox.exec(&command).await.unwrap();
    let whole = begin.elapsed();
    let at = Duration::from_secs_f64(done.stdout.trim().parse().unwrap());
    let first = at.saturating_sub(wall.duration_since(std::time::UNIX_EPOCH).unwrap());
    (first, whole)
}

fn row(what: &str, times: &mut [Duration], aim: &str) {
    times.sort();
    let ms = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
    let (median, late) = (times[times.len() / 2], times[times.len() * 95 / 100]);
    println!("| {what} | {} / {} | {aim} |", ms(median), ms(late));
}
