//! Containers of a simulated engine, some with the simulated all-in-one image. Commands really run, in namespaces of
//! the simulator; where the kernel offers none, the tests are skipped with a note.
#![allow(clippy::unwrap_used, reason = "tests")]

mod aio;
mod docker;
mod life;
#[path = "../shared/mod.rs"]
mod shared;

use pudu_sim::{Docker, docker::Options};

/// Starts an engine; `None` with a note if it cannot create containers.
async fn engine(options: Options) -> Option<Docker> {
    let unshared = std::process::Command::new("unshare")
        .args(["--mount", "--pid", "--fork", "--map-root-user", "true"])
        .output();
    if !unshared.is_ok_and(|output| output.status.success()) {
        assert!(std::env::var_os("PUDU_REQUIRE_SANDBOX").is_none(), "namespaces cannot be had here");
        println!("skipped: namespaces cannot be had here");
        return None;
    }
    Some(Docker::start(options).await.unwrap())
}

/// Waits until a container has a process with these words in its command line.
async fn begun(sim: &Docker, container: &str, words: &str) {
    for _ in 0..2000 {
        if sim.processes(container).iter().any(|line| line.contains(words)) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("{words} never began: {:?}", sim.processes(container));
}
