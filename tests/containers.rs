//! The agent's shell in a container: the real daemon, a chat, and a simulated engine whose commands really run.

use crate::house::{House, SOON, Talker};
use pudu_sim::{
    Docker,
    docker::{Options, Trouble},
    model::Reply,
};
use serde_json::json;
use std::time::{Duration, Instant};

/// An engine and a house with it; `None` with a note if the simulator cannot create containers.
async fn house(more: &str) -> Option<(Docker, House)> {
    let unshared = std::process::Command::new("unshare")
        .args(["--mount", "--pid", "--fork", "--map-root-user", "true"])
        .output();
    if !unshared.is_ok_and(|output| output.status.success()) {
        assert!(std::env::var_os("PUDU_REQUIRE_SANDBOX").is_none(), "namespaces cannot be had here");
        println!("skipped: namespaces cannot be had here");
        return None;
    }
    let engine = Docker::start(Options::default()).await.unwrap();
    let house = House::build("").await;
    house.configure("", &sandbox(&engine, more));
    Some((engine, house))
}

fn sandbox(engine: &Docker, more: &str) -> String {
    format!(
        "sandbox:\n  use: deerflow.community.aio_sandbox:AioSandboxProvider\n  docker_host: {}\n{more}",
        engine.host()
    )
}

/// Makes the model run a script, and returns the result.
async fn run(house: &House, ada: &Talker, script: &str) -> String {
    let before = house.model.count();
    house.model.next(Reply::tool("bash", &json!({"command": script})));
    ada.say("go on");
    house.model.wait(SOON, |_| (house.model.count() >= before + 2).then_some(())).await.unwrap();
    house.model.requests().last().unwrap().last_tool()
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + SOON;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

const PLAIN: &str = "  image: debian:12\n  environment: {GREETING: hello}\n";

#[tokio::test]
async fn commands_run_in_a_container_of_the_thread_that_ends_with_the_daemon() {
    let Some((engine, mut house)) = house(PLAIN).await else { return };
    house.start();
    assert!(house.log().contains("running commands in containers"), "{}", house.log());
    let ada = Talker::new(&house, "Ada");
    let told = run(&house, &ada, "pwd; echo $GREETING; echo report > ../outputs/a.md; id -u").await;
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines[..2], ["/mnt/user-data/workspace", "hello"]);
    assert_ne!(lines[2], "0");
    assert_eq!(engine.running().len(), 1);
    house.model.next(Reply::tool("present_files", &json!({"filepaths": ["/mnt/user-data/outputs/a.md"]})));
    ada.say("show me");
    let sent = house.telegram.wait(SOON, |view| {
        let file = view.answers(ada.chat).into_iter().find_map(|answer| answer.file)?;
        view.bytes(&file)
    });
    assert_eq!(sent.await.unwrap().as_ref(), b"report\n");
    // The container is reused: background processes survive until the next turn.
    run(&house, &ada, "sleep 9191 > /dev/null 2>&1 & echo").await;
    assert_eq!(run(&house, &ada, "cat ../outputs/a.md").await.trim(), "report");
    let all = engine.processes(&engine.running()[0]);
    assert!(all.contains(&"sleep 9191".to_owned()), "{all:?}");
    assert!(house.stop().await.success());
    assert_eq!(engine.running(), [""; 0]);
}

#[tokio::test]
async fn a_daemon_that_was_killed_finds_its_containers_again() {
    let Some((engine, mut house)) = house(PLAIN).await else { return };
    house.start();
    let ada = Talker::new(&house, "Ada");
    run(&house, &ada, "sleep 9292 > /dev/null 2>&1 & echo 1 > file").await;
    let before = engine.running();
    house.kill();
    assert_eq!(engine.running(), before);
    house.start();
    house.logs("found sandbox of an earlier start").await;
    assert_eq!(run(&house, &ada, "cat file").await.trim(), "1");
    assert_eq!(engine.running(), before);
    let all = engine.processes(&before[0]);
    assert!(all.contains(&"sleep 9292".to_owned()), "{all:?}");
    assert!(house.stop().await.success());
    assert_eq!(engine.running(), [""; 0]);
}

#[tokio::test]
async fn stopping_a_turn_kills_its_command_and_keeps_the_container() {
    let Some((engine, mut house)) = house(PLAIN).await else { return };
    house.start();
    let ada = Talker::new(&house, "Ada");
    house.model.next(Reply::tool("bash", &json!({"command": "setsid sleep 9393 & sleep 9394"})));
    ada.say("go on");
    let all = || engine.running().first().map(|name| engine.processes(name).join("\n")).unwrap_or_default();
    until("the command never began", || all().contains("sleep 9394")).await;
    ada.say("/stop");
    until("the command goes on", || !all().contains("sleep 939")).await;
    assert_eq!(engine.running().len(), 1);
}

#[tokio::test]
async fn an_edited_environment_counts_for_the_next_turn_and_others_leave_the_container() {
    let Some((engine, mut house)) = house(PLAIN).await else { return };
    house.start();
    let ada = Talker::new(&house, "Ada");
    let made = || engine.asked().iter().filter(|asked| asked.what == "POST /containers/create").count();
    run(&house, &ada, "true").await;
    house.configure("", &sandbox(&engine, &format!("{PLAIN}  replicas: 2\n  ls_output_max_chars: 100\n")));
    run(&house, &ada, "true").await;
    assert_eq!(made(), 1);
    house.configure("", &sandbox(&engine, &PLAIN.replace("hello", "good day")));
    assert_eq!(run(&house, &ada, "echo $GREETING").await.trim(), "good day");
    assert_eq!(made(), 2);
    until("the old container goes on", || engine.running().len() == 1).await;
}

#[tokio::test]
async fn a_thread_whose_container_cannot_be_made_is_told_and_the_next_turn_tries_again() {
    let Some((engine, mut house)) = house(PLAIN).await else { return };
    house.start();
    let ada = Talker::new(&house, "Ada");
    engine.fail("POST /containers/create", Trouble::Refuse(500, "no space left on device".into()));
    let told = run(&house, &ada, "true").await;
    assert!(told.starts_with("Error:") && told.contains("no space left on device"), "{told}");
    assert_eq!(run(&house, &ada, "echo works").await.trim(), "works");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_doctor_makes_a_container_and_tries_to_get_out() {
    let Some((engine, house)) = house(PLAIN).await else { return };
    let (_, said) = house.pudu(&["doctor"]);
    assert!(said.contains("ok    engine: 28.2.2 (API 1.50)"), "{said}");
    assert!(said.contains("ok    image: debian:12 is available"), "{said}");
    assert!(said.contains("ok    shell: containers of debian:12 by exec"), "{said}");
    // The simulated engine has no seccomp filter, which the last attempt depends on.
    let escape = said.lines().find(|line| line.contains("escape:")).unwrap_or_default();
    let tried =
        ["ok    escape: tried and failed: read a file of the daemon", "a command can create a namespace"];
    assert!(tried.iter().any(|words| escape.contains(words)), "{said}");
    assert_eq!(engine.running(), [""; 0]);
    house.configure("", &sandbox(&engine, "  image: all-in-one-sandbox:latest\n"));
    let (_, said) = house.pudu(&["doctor"]);
    assert!(said.contains("poor  boundary: the image needs the engine's seccomp filter"), "{said}");
    house.configure(
        "",
        "sandbox:\n  use: deerflow.community.aio_sandbox:AioSandboxProvider\n  \
                         docker_host: unix:///nowhere.sock\n",
    );
    let (well, said) = house.pudu(&["doctor"]);
    assert!(
        !well
            && said
                .contains("BAD   engine: no container engine found: the socket /nowhere.sock does not exist"),
        "{said}"
    );
}

#[tokio::test]
async fn the_all_in_one_image_is_used_by_its_own_api() {
    let Some((engine, mut house)) = house("  image: all-in-one-sandbox:latest\n").await else { return };
    house.start();
    let ada = Talker::new(&house, "Ada");
    let told = run(&house, &ada, "pwd; echo $USER; echo x > ../outputs/a").await;
    assert_eq!(told.lines().collect::<Vec<_>>(), ["/mnt/user-data/workspace", "gem"]);
    let api = engine.api(&engine.running()[0]).unwrap();
    assert!(api.asked().iter().any(|(path, _)| path == "/v1/bash/exec"));
    assert!(house.stop().await.success());
    assert_eq!(engine.running(), [""; 0]);
}
