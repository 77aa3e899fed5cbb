//! Attempts to escape from a container, on a real engine:
//!
//! ```text
//! PUDU_TEST_DOCKER=1 cargo test -p pudu-containers --test escape
//! ```
//!
//! `DOCKER_HOST` is the address of the engine, `PUDU_TEST_IMAGE` an image with a shell (by default debian:12). Without
//! `PUDU_TEST_DOCKER` the tests are skipped with a note.
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "../../../sandbox/tests/suite/attempts.rs"]
mod attempts;
#[allow(dead_code, reason = "the other tests use all of it")]
#[path = "../shared/mod.rs"]
mod shared;

use attempts::ATTEMPTS;
use pudu_base::{Killed, SandboxProvider, ShellCommand};
use pudu_containers::{DockerEngine, DockerSettings, ExecMethod, prove};
use shared::{COMMAND_TIMEOUT, Home, acquire, command, says, sh};
use std::time::Duration;

/// Attempts that may succeed in a container: it has the image's files, and its first process has the same user.
const HARMLESS: &[&str] = &[
    "see who is on the machine",
    "read the first process's environment",
    "take the first process's files",
    "go by the first process's root",
    "go by the first process's folder",
    "start the program that made the sandbox",
    "see the machine's devices",
];
/// In a rootless engine, root of a container is the user who started it.
const ROOT: &[&str] = &["be root", "have groups"];

/// Returns the settings for the available engine; `None` with a note if no engine is to be used.
fn settings(home: &Home) -> Option<DockerSettings> {
    if std::env::var_os("PUDU_TEST_DOCKER").is_none() {
        println!("skipped: set PUDU_TEST_DOCKER=1 to try it on the engine of DOCKER_HOST");
        return None;
    }
    let host = std::env::var("DOCKER_HOST").unwrap_or_else(|_| "unix:///var/run/docker.sock".to_owned());
    let image = std::env::var("PUDU_TEST_IMAGE").unwrap_or_else(|_| "debian:12".to_owned());
    let mut settings = home.settings(&host, &image, ExecMethod::Exec);
    // Each test has its own home, and so its own containers.
    let own = home.folder.path().file_name().unwrap().to_string_lossy().replace('.', "");
    settings.prefix = format!("pudu-escape-{own}");
    Some(settings)
}

#[tokio::test]
async fn nothing_that_is_tried_leads_out_of_a_container() {
    let home = Home::new();
    let Some(settings) = settings(&home) else { return };
    let docker = DockerEngine::new(settings);
    let rootless = docker.check_engine().await.unwrap().rootless;
    let pool = home.pool(docker);
    let (sandbox, other) = (acquire(&pool, "t").await, acquire(&pool, "other").await);
    other.write("/mnt/user-data/workspace/x", b"of another", false).await.unwrap();
    let (folder, pid) = (home.folder.path().to_string_lossy(), std::process::id().to_string());
    let mut out = Vec::new();
    let counts = |name: &str| !(HARMLESS.contains(&name) || (rootless && ROOT.contains(&name)));
    for (name, script) in ATTEMPTS.iter().filter(|(name, _)| counts(name)) {
        let script = script.replace("HOME", &folder).replace("PID", &pid);
        let done = sandbox.exec(&ShellCommand::new(script, COMMAND_TIMEOUT)).await.unwrap();
        if done.stdout.contains("ESCAPED") {
            out.push(format!("{name}: {done:?}"));
        }
    }
    pool.close(COMMAND_TIMEOUT).await;
    assert!(out.is_empty(), "{}", out.join("\n"));
}

#[tokio::test]
async fn the_doctors_attempts_fail_too() {
    let home = Home::new();
    let Some(settings) = settings(&home) else { return };
    let proofs = prove(settings, home.folder.path()).await.unwrap();
    let broken: Vec<_> = proofs.iter().filter(|proof| proof.broken.is_some()).collect();
    assert!(!proofs.is_empty() && broken.is_empty(), "{broken:?}");
}

#[tokio::test]
async fn a_container_is_bounded_and_a_command_that_is_killed_leaves_nothing() {
    let home = Home::new();
    let Some(mut settings) = settings(&home) else { return };
    settings.limits.memory = 256 << 20;
    settings.limits.processes = 64;
    let docker = DockerEngine::new(settings);
    let pool = home.pool(docker);
    let sandbox = acquire(&pool, "t").await;
    assert_eq!(says(&*sandbox, "echo 1 > /mnt/user-data/outputs/f; cat ../outputs/f").await, "1");
    assert_eq!(sandbox.read("/mnt/user-data/outputs/f", 9).await.unwrap(), b"1\n");
    // More memory than the limit, in a process and in the folder in memory.
    let memory = sh(&*sandbox, "head -c 600000000 /dev/zero | tail | wc -c").await;
    assert!(!memory.stdout.contains("600000000"), "{memory:?}");
    let full = sh(&*sandbox, "head -c 600000000 /dev/zero > /tmp/x && echo ESCAPED; rm -f /tmp/x").await;
    assert!(!full.stdout.contains("ESCAPED"), "{full:?}");
    let bomb = ShellCommand::new(
        "for i in $(seq 200); do sleep 77 & done; (env -i setsid sleep 78 &); wait".into(),
        Duration::from_secs(3),
    );
    let done = sandbox.exec(&bomb).await.unwrap();
    assert_eq!(done.killed, Some(Killed::Late), "{done:?}");
    let left = sandbox
        .exec(&command("cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 'sleep 7[78]'"))
        .await
        .unwrap();
    // The line itself is one that has the words in it.
    assert!(matches!(left.stdout.trim(), "0" | "1"), "{left:?}");
    pool.close(COMMAND_TIMEOUT).await;
    assert!(pool.acquire(&"t".into()).await.is_err());
}
