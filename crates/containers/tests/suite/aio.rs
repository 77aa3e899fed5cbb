//! The API of the all-in-one image: alone, and in a container of the engine.

use crate::{
    engine,
    shared::{Home, acquire, command, says, sh},
};
use pudu_base::{DirEntry, Killed, Sandbox, SandboxError, ShellCommand};
use pudu_containers::{Aio, ContainerEngine, DockerEngine, ExecMethod};
use pudu_sandbox::Mount;
use pudu_sim::docker::Options;
use std::{
    net::TcpListener,
    time::{Duration, Instant},
};
use tokio_util::task::TaskTracker;

const IMAGE: &str = "all-in-one-sandbox:latest";

/// A container of the image, and its API without shared files.
async fn alone(sim: &pudu_sim::Docker, home: &Home) -> (pudu_sim::Aio, Aio) {
    let pool = home.pool(DockerEngine::new(home.settings(&sim.host(), IMAGE, ExecMethod::Aio)));
    acquire(&pool, "t").await;
    let api = sim.api(&sim.running()[0]).unwrap();
    let mount =
        |agent: &str, read_only| Mount { host: "/nowhere".into(), agent: agent.to_owned(), read_only };
    let mounts = vec![mount("/mnt/user-data", false), mount("/mnt/skills", true)];
    let aio = Aio::new(&api.url(), mounts, TaskTracker::new()).unwrap();
    (api, aio)
}

#[tokio::test]
async fn files_go_over_the_api_as_they_are() {
    let Some(sim) = engine(Options::default()).await else { return };
    let home = Home::of_gem();
    let (api, aio) = alone(&sim, &home).await;
    let path = "/mnt/user-data/outputs/a b/$deep/'x";
    let bytes: Vec<u8> = (0..=255).collect();
    aio.write(path, &bytes, false).await.unwrap();
    aio.write(path, b"more", true).await.unwrap();
    let whole = [&bytes[..], b"more"].concat();
    assert_eq!(aio.read(path, 260).await.unwrap(), whole);
    assert_eq!(std::fs::read(home.on_host("t", "outputs/a b/$deep/'x")).unwrap(), whole);
    let large = aio.read(path, 259).await.unwrap_err();
    assert!(matches!(large, SandboxError::TooLarge { size: 260, limit: 259, .. }), "{large:?}");
    let missing = aio.read("/mnt/user-data/outputs/none", 9).await.unwrap_err();
    assert!(matches!(missing, SandboxError::Missing { .. }), "{missing:?}");
    let read_only = aio.write("/mnt/skills/x", b"", false).await.unwrap_err();
    assert!(matches!(read_only, SandboxError::ReadOnly { .. }), "{read_only:?}");
    for outside in
        ["/etc/passwd", "relative", "/mnt/user-data/../../etc/passwd", "/mnt/user-dataX", "/mnt/user-data/\0"]
    {
        let error = aio.read(outside, 9).await.unwrap_err();
        assert!(matches!(error, SandboxError::Outside { .. }), "{outside}: {error:?}");
    }
    let entry = |path: &str, folder, size| DirEntry { path: path.to_owned(), folder, size };
    let listed = aio.list("/mnt/user-data/outputs/", 2, 10).await.unwrap();
    let folder = entry("/mnt/user-data/outputs/a b", true, 0);
    assert_eq!(listed, [folder.clone(), entry("/mnt/user-data/outputs/a b/$deep", true, 0)]);
    assert_eq!(aio.list("/mnt/user-data/outputs", 9, 1).await.unwrap(), [folder]);
    assert_eq!(says(&aio, "cat \"../outputs/a b/\\$deep/'x\" | tail -c 4").await, "more");
    assert_eq!(api.sessions(), 0);
}

#[tokio::test]
async fn a_command_that_takes_longer_than_an_answer_is_asked_for_again() {
    let Some(sim) = engine(Options::default()).await else { return };
    let home = Home::of_gem();
    let (api, aio) = alone(&sim, &home).await;
    let answer = "{\"success\": true, \"data\": {\"session_id\": \"s\", \"command_id\": \"c\", \"command\": \"x\", \
                  \"status\": \"running\", \"stdout\": \"one \", \"stderr\": null, \"offset\": 4, \"stderr_offset\": 0}}";
    let more = |text: &str, status: &str| {
        format!(
            "{{\"success\": true, \"data\": {{\"session_id\": \"s\", \"stdout\": \"{text}\", \"stderr\": \"!\", \
             \"offset\": 9, \"stderr_offset\": 1, \"command\": {{\"command_id\": \"c\", \"command\": \"x\", \
             \"status\": \"{status}\", \"exit_code\": 4}}}}}}"
        )
    };
    api.fail("/v1/bash/exec", 200, answer);
    api.fail("/v1/bash/output", 200, &more("two ", "running"));
    api.fail("/v1/bash/output", 200, &more("three", "completed"));
    let done = aio.exec(&command("x")).await.unwrap();
    assert_eq!((done.stdout.as_str(), done.stderr.as_str(), done.code), ("one two three", "!!", Some(4)));
    let asked = api.asked();
    let offsets: Vec<_> = asked
        .iter()
        .filter(|(path, _)| path == "/v1/bash/output")
        .map(|(_, body)| (body["offset"].as_u64(), body["stderr_offset"].as_u64()))
        .collect();
    assert_eq!(offsets, [(Some(4), Some(0)), (Some(9), Some(1))]);
}

#[tokio::test]
async fn an_api_that_does_not_answer_is_told_and_nothing_waits_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let sim = pudu_sim::Aio::start(folder.path().to_owned()).await.unwrap();
    let mount = Mount { host: "/nowhere".into(), agent: "/mnt/user-data".into(), read_only: false };
    let aio = Aio::new(&sim.url(), vec![mount], TaskTracker::new()).unwrap();
    assert!(aio.ready().await);
    for (status, body, expect) in [
        (200, "<html>", "refused the request (200)"),
        (200, "{\"success\": false, \"message\": \"no disk\"}", "refused the request (200): no disk"),
        (500, "{\"success\": false, \"message\": \"broken\"}", "refused the request (500): broken"),
        (404, "{\"detail\": \"Not Found\"}", "the operator has to install a newer image"),
        (422, "{\"detail\": []}", "refused the request (422)"),
        (
            200,
            "{\"success\": true, \"data\": {\"status\": \"dreaming\"}}",
            "refused the request (200): unknown variant",
        ),
    ] {
        sim.fail("/v1/bash/exec", status, body);
        let error = aio.exec(&command("true")).await.unwrap_err().to_string();
        assert!(error.contains(expect), "{status} {body}: {error}");
    }
    sim.fall_silent();
    let error = aio.read("/mnt/user-data/x", 10).await.unwrap_err().to_string();
    assert!(error.contains("does not respond"), "{error}");
    assert!(!aio.ready().await);
    for bad in ["", "nonsense", "ftp://x", "mailto:x"] {
        assert!(Aio::new(bad, Vec::new(), TaskTracker::new()).is_err(), "{bad}");
    }
}

#[tokio::test]
async fn a_container_of_the_image_is_spoken_to_by_its_api() {
    let Some(sim) = engine(Options::default()).await else { return };
    let mut home = Home::of_gem();
    let skills = tempfile::tempdir().unwrap();
    home.options.mounts =
        vec![Mount { host: skills.path().to_owned(), agent: "/mnt/shared".into(), read_only: true }];
    let settings = home.settings(&sim.host(), IMAGE, ExecMethod::Aio);
    let docker = DockerEngine::new(settings);
    let pool = home.pool(docker.clone());
    let sandbox = acquire(&pool, "t").await;
    let done = sh(&*sandbox, "pwd; echo bad >&2; echo $GREETING $USER; exit 3").await;
    assert_eq!(
        (done.stdout.as_str(), done.stderr.as_str(), done.code, done.killed),
        ("/mnt/user-data/workspace\nhello there gem\n", "bad\n", Some(3), None)
    );
    let asked = sim.asked();
    let body = &asked.iter().find(|asked| asked.what == "POST /containers/create").unwrap().body;
    let host = &body["HostConfig"];
    assert_eq!(
        (&host["SecurityOpt"][0], &host["PortBindings"]["8080/tcp"][0]["HostIp"], &host["CapDrop"]),
        (&"seccomp=unconfined".into(), &"127.0.0.1".into(), &serde_json::Value::Null)
    );
    assert_eq!(host["NetworkMode"], "pudu-test-network");
    // Files of the thread do not use the API.
    sandbox.write("/mnt/user-data/outputs/x", b"y", false).await.unwrap();
    assert_eq!(says(&*sandbox, "cat ../outputs/x").await, "y");
    let flood = sh(&*sandbox, "echo begin; head -c 3000000 /dev/zero | tr '\\0' x; echo end").await;
    assert!(flood.stdout.starts_with("begin\nxx") && flood.stdout.ends_with("xxend\n"));
    assert!(flood.stdout.len() < 600_000, "{}", flood.stdout.len());
    docker.close().await;
}

#[tokio::test]
async fn late_and_given_up_commands_are_killed_over_the_api_and_the_background_is_not_waited_for() {
    let Some(sim) = engine(Options::default()).await else { return };
    let home = Home::of_gem();
    let docker = DockerEngine::new(home.settings(&sim.host(), IMAGE, ExecMethod::Aio));
    let pool = home.pool(docker.clone());
    let sandbox = acquire(&pool, "t").await;
    let name = sim.running()[0].clone();
    let late = ShellCommand::new("echo begun; sleep 8881".into(), Duration::from_millis(500));
    let done = sandbox.exec(&late).await.unwrap();
    assert_eq!((done.stdout.as_str(), done.code, done.killed), ("begun\n", None, Some(Killed::Late)));
    let begun = Instant::now();
    says(&*sandbox, "sleep 8882 & echo").await;
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let slow = command("sleep 8883");
    let running = async {
        crate::begun(&sim, &name, "sleep 8883").await;
    };
    tokio::select! {
        done = sandbox.exec(&slow) => panic!("{done:?}"),
        () = running => {}
    }
    docker.close().await;
    let left = sim.processes(&name).join("\n");
    assert!(!left.contains("sleep 8881") && !left.contains("sleep 8883"), "{left}");
    assert!(left.contains("sleep 8882"), "{left}");
}

#[tokio::test]
async fn ports_are_counted_from_the_one_that_is_wanted() {
    let Some(sim) = engine(Options::default()).await else { return };
    let home = Home::of_gem();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let first = taken.local_addr().unwrap().port();
    let mut settings = home.settings(&sim.host(), IMAGE, ExecMethod::Aio);
    settings.port = Some(first);
    let pool = home.pool(DockerEngine::new(settings));
    says(&*acquire(&pool, "t").await, "true").await;
    let asked = sim.asked();
    let made = asked.iter().filter(|asked| asked.what == "POST /containers/create");
    let wanted =
        made.map(|asked| asked.body["HostConfig"]["PortBindings"]["8080/tcp"][0]["HostPort"].clone());
    let wanted: Vec<_> = wanted.collect();
    assert_eq!(wanted.first(), Some(&first.to_string().into()));
    assert!(wanted.len() >= 2 && wanted.get(1) == Some(&(first + 1).to_string().into()), "{wanted:?}");
}

#[tokio::test]
async fn where_files_cannot_be_given_to_the_images_user_the_folders_are_open_to_all() {
    let Some(sim) = engine(Options::default()).await else { return };
    let home = Home::new();
    let pool = home.pool(DockerEngine::new(home.settings(&sim.host(), IMAGE, ExecMethod::Aio)));
    let sandbox = acquire(&pool, "t").await;
    sandbox.write("/mnt/user-data/workspace/a", b"1", false).await.unwrap();
    // File tools can change files that the image's user shares; they run as another user here.
    assert_eq!(says(&*sandbox, "cat a; umask 0; echo 2 > b").await, "1");
    sandbox.write("/mnt/user-data/workspace/b", b"3", false).await.unwrap();
    assert_eq!(says(&*sandbox, "cat b").await, "3");
}
