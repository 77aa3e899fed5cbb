//! Programs in an `extensions_config.json`: whose file is trusted, and how they end.

use crate::house::{House, SOON};
use rustix::process::Signal;
use serde_json::json;
use std::{
    os::unix::fs::{PermissionsExt, chown},
    path::Path,
    time::{Duration, Instant},
};

/// Returns the number of processes of this machine with a word in their command line.
fn processes(word: &str) -> usize {
    let found = |path: &Path| {
        let line = std::fs::read(path.join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).replace('\0', " ").contains(word)
    };
    std::fs::read_dir("/proc").unwrap().flatten().filter(|entry| found(&entry.path())).count()
}

/// Waits until the number of processes with a word in their command line meets a condition.
async fn wait(word: &str, wanted: impl Fn(usize) -> bool) {
    let late = Instant::now() + SOON;
    while !wanted(processes(word)) {
        assert!(Instant::now() < late, "{} processes have {word}", processes(word));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A house whose only MCP server never responds, and starts processes in other sessions.
async fn with_a_server(mark: &str) -> House {
    let mut house = House::build("").await;
    // Its processes are to end with it, whatever ends it.
    house.in_its_own_process();
    let script = format!(
        "setsid sleep {mark} & setsid sh -c 'trap \"\" TERM HUP INT; (setsid sleep {mark} &); sleep {mark}' & exec sleep {mark}"
    );
    let servers = json!({"mcpServers": {"mute": {"command": "sh", "args": ["-c", script]}}});
    std::fs::write(house.path("extensions_config.json"), servers.to_string()).unwrap();
    house.start();
    wait(&format!("sleep {mark}"), |count| count >= 5).await;
    house
}

#[tokio::test(flavor = "multi_thread")]
async fn no_process_of_a_server_outlives_a_daemon_that_is_killed() {
    let mark = format!("98761{}", std::process::id());
    let mut house = with_a_server(&mark).await;
    house.kill();
    wait(&mark, |count| count == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_process_of_a_server_outlives_a_daemon_that_is_asked_to_end() {
    let mark = format!("98762{}", std::process::id());
    let mut house = with_a_server(&mark).await;
    house.signal(Signal::TERM);
    assert!(house.ended(Duration::from_secs(30)).await.is_some());
    wait(&mark, |count| count == 0).await;
}

/// Only root can place another user's file there.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_another_user_names_is_not_run() {
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: the tests do not run as root");
    }
    let mut house = House::build("").await;
    let (file, proof) = (house.path("extensions_config.json"), house.path("was-run"));
    let servers = json!({"mcpServers": {"evil": {"command": "touch", "args": [proof]}}});
    std::fs::write(&file, servers.to_string()).unwrap();
    chown(&file, Some(12_345), None).unwrap();
    assert!(!house.try_start(), "it started");
    assert!(house.log().contains("belongs to user 12345, and pudu runs as user 0"), "{}", house.log());
    chown(&file, Some(0), None).unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o666)).unwrap();
    let (ok, said) = house.pudu(&["doctor"]);
    let help = format!("chmod go-w {}", file.display());
    assert!(said.contains("other users may write to") && said.contains(&help), "{ok} {said}");
    // Switching a skill does not make the file the operator's.
    let (ok, said) = house.pudu(&["skill", "disable", "web-page"]);
    assert!(!ok && said.contains("other users may write to") && said.contains(&help), "{said}");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o666, "it is as it was");
    assert!(!proof.exists());
    // A file without programs is harmless.
    std::fs::write(&file, "{\"skills\": {}}").unwrap();
    let (_, said) = house.pudu(&["doctor"]);
    assert!(!said.contains("other users may write to"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_that_nobody_named_has_to_be_the_operators() {
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: the tests do not run as root");
    }
    let mut house = House::build("").await;
    house.start();
    let text = std::fs::read_to_string(house.path("config.yaml")).unwrap();
    chown(house.path("config.yaml"), Some(12_345), None).unwrap();
    house.write_config(&format!("{text}# an edit\n"));
    assert!(
        house.log().contains("refused edited configuration, the previous one stays in effect"),
        "{}",
        house.log()
    );
    assert!(house.log().contains("config.yaml belongs to user 12345"), "{}", house.log());
    house.stop().await;
    let (ok, said) = house.pudu(&["config", "check"]);
    assert!(!ok && said.contains("config.yaml belongs to user 12345, and pudu runs as user 0"), "{said}");
    assert!(said.contains("chown 0"), "{said}");
    let (_, said) = house.pudu(&["--config", "config.yaml", "config", "check"]);
    assert!(!said.contains("belongs to user"), "{said}");
}
