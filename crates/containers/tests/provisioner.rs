//! Sandboxes of a simulated provisioner whose commands really run.
#![allow(clippy::unwrap_used, clippy::string_slice, reason = "tests")]

use pudu_base::{DirEntry, Exec, Killed, Sandbox, SandboxError, ShellCommand, ThreadFolder};
use pudu_containers::{
    BoxId, ContainerEngine, Order,
    provisioner::{ProvisionerEngine, ProvisionerSettings},
};
use pudu_sandbox::{Folders, LocalSandboxes, Mount, Options};
use pudu_sim::{Kubernetes as Cluster, Provisioner as Service, provisioner::KEY};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tempfile::TempDir;

/// User of the image, which owns shared folders.
const USER: (u32, u32) = (1000, 1000);

struct House {
    service: Service,
    home: TempDir,
    /// Contents of the provisioner's sandboxes; the home if folders are shared.
    _there: TempDir,
    settings: ProvisionerSettings,
    places: LocalSandboxes,
}

/// A house and its provisioner; `None` with a note if namespaces are unavailable.
async fn house(shared: bool) -> Option<House> {
    if !Cluster::possible().await {
        return None;
    }
    let (home, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let root = std::os::unix::fs::MetadataExt::uid(&home.path().metadata().unwrap()) == 0;
    let shown = if shared { home.path() } else { there.path() };
    let service = Service::start(shown.to_owned(), None).await.unwrap();
    let folders = Folders::new(home.path().to_owned(), root.then_some(USER));
    let settings = ProvisionerSettings {
        url: service.url().parse().unwrap(),
        key: Some(KEY.into()),
        shared,
        folders: folders.clone(),
        mounts: Vec::new(),
        environment: vec![("GREETING".to_owned(), "hello".to_owned())],
        most: 1 << 20,
    };
    Some(House {
        service,
        home,
        _there: there,
        settings,
        places: LocalSandboxes::new(folders, None, Options::default()),
    })
}

impl House {
    async fn order(&self, thread: &str) -> Order {
        let folder = ThreadFolder::from(thread);
        let (mounts, files) = self.places.mounts_and_files(&folder).await.unwrap();
        Order { id: BoxId::from_folder(&folder), folder, mounts, files }
    }

    fn engine(&self) -> ProvisionerEngine {
        ProvisionerEngine::new(self.settings.clone())
    }

    async fn open(&self) -> Arc<dyn Sandbox> {
        self.engine().start(&self.order("t").await).await.unwrap()
    }

    /// Path of a thread's file on this machine.
    fn own(&self, name: &str) -> std::path::PathBuf {
        self.home.path().join("users/default/threads/t/user-data").join(name)
    }

    fn asked(&self, what: &str) -> Vec<Value> {
        let asked = self.service.asked().into_iter().filter(|asked| asked.what.starts_with(what));
        asked.map(|asked| asked.body).collect()
    }
}

async fn run(sandbox: &Arc<dyn Sandbox>, script: &str) -> Exec {
    sandbox.exec(&ShellCommand::new(script.to_owned(), Duration::from_secs(20))).await.unwrap()
}

fn refusal<T>(result: Result<T, SandboxError>) -> String {
    match result {
        Ok(_) => panic!("it went well"),
        Err(error) => error.to_string(),
    }
}

fn id() -> String {
    BoxId::from_folder(&"t".into()).to_string()
}

#[tokio::test]
async fn what_people_send_reaches_commands_and_what_commands_make_reaches_people() {
    let Some(house) = house(false).await else { return };
    let sandbox = house.open().await;
    std::fs::write(house.own("uploads/a b.txt"), "from people").unwrap();
    let done = run(&sandbox, "cat '../uploads/a b.txt'; echo $GREETING; pwd; mkdir ../outputs/sub; echo made > ../outputs/sub/ü.txt; exit 3").await;
    assert_eq!(
        (done.stdout.as_str(), done.code, done.killed),
        ("from peoplehello\n/mnt/user-data/workspace\n", Some(3), None)
    );
    assert_eq!(std::fs::read_to_string(house.own("outputs/sub/ü.txt")).unwrap(), "made\n");
    // Changed files are fetched again, also within a second and with the same size.
    run(&sandbox, "echo Made > ../outputs/sub/ü.txt").await;
    assert_eq!(std::fs::read_to_string(house.own("outputs/sub/ü.txt")).unwrap(), "Made\n");
    // Commands see changed and removed uploads.
    std::fs::write(house.own("uploads/a b.txt"), "and again").unwrap();
    assert_eq!(run(&sandbox, "cat '../uploads/a b.txt'").await.stdout, "and again");
    std::fs::remove_file(house.own("uploads/a b.txt")).unwrap();
    assert_eq!(run(&sandbox, "ls ../uploads").await.stdout, "");
}

#[tokio::test]
async fn a_file_that_did_not_change_is_carried_once() {
    let Some(house) = house(false).await else { return };
    let sandbox = house.open().await;
    std::fs::write(house.own("uploads/in"), "x").unwrap();
    run(&sandbox, "touch -d '1 hour ago' ../outputs/out").await;
    let asked = || {
        let asked = house.service.aio(&id()).unwrap().asked();
        let count = |path: &str| asked.iter().filter(|(at, _)| at == path).count();
        (count("/v1/file/write"), count("/v1/file/download"))
    };
    let before = asked();
    assert_eq!(before, (1, 1));
    run(&sandbox, "cat ../uploads/in").await;
    run(&sandbox, "cat ../outputs/out").await;
    assert_eq!(asked(), before);
}

#[tokio::test]
async fn file_tools_work_where_commands_do_and_read_what_only_this_machine_has() {
    let Some(mut house) = house(false).await else { return };
    let skills = tempfile::tempdir().unwrap();
    std::fs::write(skills.path().join("SKILL.md"), "a skill").unwrap();
    let mount =
        Mount { host: skills.path().to_owned(), agent: "/mnt/skills/public/x".to_owned(), read_only: true };
    let options = Options { mounts: vec![mount], ..Options::default() };
    house.places = LocalSandboxes::new(house.settings.folders.clone(), None, options);
    let sandbox = house.open().await;
    sandbox.write("/mnt/user-data/workspace/a/b.txt", b"one", false).await.unwrap();
    sandbox.write("/mnt/user-data/workspace/a/b.txt", b" two", true).await.unwrap();
    sandbox.write("/mnt/user-data/outputs/c.txt", b"for people", false).await.unwrap();
    assert_eq!(run(&sandbox, "cat a/b.txt").await.stdout, "one two");
    assert_eq!(std::fs::read_to_string(house.own("outputs/c.txt")).unwrap(), "for people");
    assert_eq!(sandbox.read("/mnt/user-data/workspace/a/b.txt", 100).await.unwrap(), b"one two");
    assert_eq!(sandbox.read("/mnt/skills/public/x/SKILL.md", 100).await.unwrap(), b"a skill");
    let listed = sandbox.list("/mnt/user-data/workspace", 2, 10).await.unwrap();
    let entry = |path: &str, folder, size| DirEntry { path: path.to_owned(), folder, size };
    let expect =
        [entry("/mnt/user-data/workspace/a", true, 0), entry("/mnt/user-data/workspace/a/b.txt", false, 7)];
    assert_eq!(listed, expect);
    assert!(!house.own("workspace/a").exists());
    for (error, word) in [
        (sandbox.read("/mnt/user-data/workspace/none", 9).await.map(drop), "does not exist"),
        (sandbox.read("/etc/passwd", 9).await.map(drop), "outside"),
        (sandbox.write("/mnt/skills/public/x/SKILL.md", b"", false).await, "read-only"),
        (sandbox.read("/mnt/user-data/workspace/a/b.txt", 3).await.map(drop), "more than the 3"),
    ] {
        let said = refusal(error);
        assert!(said.contains(word), "{said} without {word}");
    }
}

#[tokio::test]
async fn shared_folders_are_one_and_the_same() {
    let Some(house) = house(true).await else { return };
    let sandbox = house.open().await;
    sandbox.write("/mnt/user-data/workspace/in", b"from here", false).await.unwrap();
    let done = run(&sandbox, "ls -A; cat in; echo out > out").await;
    assert_eq!((done.stdout.as_str(), done.code), ("in\nfrom here", Some(0)));
    assert_eq!(sandbox.read("/mnt/user-data/workspace/out", 9).await.unwrap(), b"out\n");
    let paths: Vec<String> =
        house.service.aio(&id()).unwrap().asked().into_iter().map(|(path, _)| path).collect();
    assert!(!paths.iter().any(|path| path == "/v1/file/write"), "{paths:?}");
}

#[tokio::test]
async fn shared_folders_of_another_user_are_opened_to_that_of_the_image() {
    let Some(mut house) = house(true).await else { return };
    let folders = Folders::new(house.home.path().to_owned(), None);
    house.settings.folders = folders.clone();
    house.places = LocalSandboxes::new(folders, None, Options::default());
    let sandbox = house.open().await;
    sandbox.write("/mnt/user-data/workspace/in", b"from here", false).await.unwrap();
    assert_eq!(run(&sandbox, "echo out > out; ls").await.stdout, "in\nout\n");
    assert_eq!(sandbox.read("/mnt/user-data/workspace/out", 9).await.unwrap(), b"out\n");
}

#[tokio::test]
async fn folders_that_are_said_to_be_shared_and_are_not_are_told() {
    let Some(mut house) = house(false).await else { return };
    house.settings.shared = true;
    let said = refusal(house.engine().start(&house.order("t").await).await);
    assert!(
        said.contains("do not mount this machine's thread folders") && said.contains("thread_data_mounts"),
        "{said}"
    );
    let odd = refusal(house.engine().start(&house.order("t/../x").await).await);
    assert!(odd.contains("63 letters, digits"), "{odd}");
}

#[tokio::test]
async fn the_provisioner_is_asked_as_it_wants_to_be() {
    let Some(mut house) = house(false).await else { return };
    let data = tempfile::tempdir().unwrap();
    house.settings.mounts = vec![Mount::configured(data.path().to_owned(), "/mnt/data", true).unwrap()];
    let engine = house.engine();
    let order = house.order("t").await;
    engine.start(&order).await.unwrap();
    let expect = json!({
        "sandbox_id": id(), "thread_id": "t", "user_id": "default",
        "extra_mounts": [{"host_path": data.path(), "container_path": "/mnt/data", "read_only": true}],
    });
    assert_eq!(house.asked("POST"), [expect]);
    // An invalid name of a thread is converted to a valid one.
    engine.start(&house.order("größe:1").await).await.unwrap();
    let name = house.asked("POST")[1]["thread_id"].as_str().unwrap().to_owned();
    assert!(name.starts_with("gr-") && !name.contains('.'), "{name}");
    assert!(house.service.asked().iter().all(|asked| asked.key.as_deref() == Some(KEY)));
}

#[tokio::test]
async fn a_restart_finds_its_own_sandboxes_and_no_others() {
    let Some(house) = house(false).await else { return };
    let order = house.order("t").await;
    let sandbox = house.engine().start(&order).await.unwrap();
    run(&sandbox, "echo kept > file").await;
    house.service.add_foreign("0123456789abcdef");
    let engine = house.engine();
    assert_eq!(engine.running().await.unwrap(), std::slice::from_ref(&order.id));
    assert!(engine.alive(&order.id).await);
    let sandbox = engine.start(&order).await.unwrap();
    assert_eq!(run(&sandbox, "cat file").await.stdout, "kept\n");
    assert_eq!(house.service.sandboxes().len(), 2);
    engine.stop(&order.id).await.unwrap();
    engine.stop(&order.id).await.unwrap();
    assert!(!engine.alive(&order.id).await && engine.running().await.unwrap().is_empty());
    assert_eq!(house.service.sandboxes().len(), 1);
}

#[tokio::test]
async fn a_sandbox_that_has_come_to_its_end_is_made_anew() {
    let Some(house) = house(false).await else { return };
    let (order, engine) = (house.order("t").await, house.engine());
    let sandbox = engine.start(&order).await.unwrap();
    run(&sandbox, "echo kept > file").await;
    for status in ["Failed", "Succeeded", "Unknown", "NotFound"] {
        house.service.end(&id(), status);
        assert!(!engine.alive(&order.id).await, "{status}");
        let sandbox = engine.start(&order).await.unwrap();
        assert_eq!(run(&sandbox, "cat file").await.stdout, "kept\n", "{status}");
    }
}

#[tokio::test]
async fn a_command_that_takes_too_long_or_is_given_up_is_killed() {
    let Some(house) = house(false).await else { return };
    let sandbox = house.open().await;
    let late =
        ShellCommand::new("echo begun; sleep 98770001 & sleep 98770002".to_owned(), Duration::from_secs(1));
    let done = sandbox.exec(&late).await.unwrap();
    assert_eq!((done.stdout.as_str(), done.code, done.killed), ("begun\n", None, Some(Killed::Late)));
    let doomed = tokio::spawn({
        let sandbox = sandbox.clone();
        async move { run(&sandbox, "sleep 98770003 & sleep 98770004").await }
    });
    until(&["98770003", "98770004"], |count| count == 2).await;
    doomed.abort();
    until(&["98770001", "98770002", "98770003", "98770004"], |count| count == 0).await;
}

/// Waits until the wanted number of these `sleep`s run on this machine.
async fn until(words: &[&str], wanted: impl Fn(usize) -> bool) {
    let begun = std::time::Instant::now();
    let count = || {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
        let sleeps =
            |line: &Vec<u8>| words.iter().any(|word| *line == format!("sleep\0{word}\0").into_bytes());
        lines.filter(sleeps).count()
    };
    while !wanted(count()) {
        assert!(begun.elapsed() < Duration::from_secs(20), "{words:?}: {}", count());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn outputs_that_are_too_much_are_told_and_not_fetched() {
    let Some(house) = house(false).await else { return };
    let sandbox = house.open().await;
    let done = run(&sandbox, "head -c 2000000 /dev/zero > ../outputs/big; echo done").await;
    assert_eq!((done.stdout.as_str(), done.code), ("done\n", Some(0)));
    assert!(
        done.stderr.contains("can be sent to users") && done.stderr.contains("disk_limit"),
        "{}",
        done.stderr
    );
    assert!(!house.own("outputs/big").exists());
    let done = run(&sandbox, "rm ../outputs/big; echo small > ../outputs/small").await;
    assert_eq!(done.stderr, "");
    assert!(house.own("outputs/small").exists());
}

#[tokio::test]
async fn what_may_pass_is_tried_again_and_what_may_not_is_told_with_its_mend() {
    let Some(house) = house(false).await else { return };
    let order = house.order("t").await;
    let start =
        async |settings: &ProvisionerSettings| ProvisionerEngine::new(settings.clone()).start(&order).await;
    let usual = &house.settings;
    for (status, body) in [(503, "busy"), (0, ""), (500, r#"{"detail": "Pod creation failed: Conflict"}"#)] {
        house.service.fail("POST", status, body);
        start(usual).await.unwrap();
    }
    let check = |said: String, words: &[&str]| {
        assert!(words.iter().all(|word| said.contains(word)), "{said}\nwithout one of {words:?}");
        assert!(!said.contains(KEY), "{said}");
    };
    for _ in 0..3 {
        house.service.fail("POST", 500, r#"{"detail": "Pod creation failed: Forbidden"}"#);
    }
    check(refusal(start(usual).await), &["500", "Pod creation failed: Forbidden", "log"]);
    let wrong = ProvisionerSettings { key: Some("wrong-key".into()), ..usual.clone() };
    check(
        refusal(start(&wrong).await),
        &["401", "Invalid or missing API key", "sandbox.provisioner_api_key"],
    );
    for garbage in ["<html>", r#"{"sandbox_id": 1}"#, "[]", &"x".repeat(2_000_000)] {
        house.service.fail("POST", 200, garbage);
        check(refusal(start(usual).await), &["sandbox.provisioner_url"]);
    }
    house.service.fail(
        "POST",
        200,
        r#"{"sandbox_id": "other", "sandbox_url": "http://x", "status": "Running"}"#,
    );
    check(refusal(start(usual).await), &["another sandbox"]);
    house.service.fail("POST", 422, r#"{"detail": [{"loc": ["body", "thread_id"], "msg": "bad"}]}"#);
    check(refusal(start(usual).await), &["422", "thread_id", "version"]);
    house.service.fail("POST", 302, "");
    check(refusal(start(usual).await), &["redirects to another URL", "sandbox.provisioner_url"]);
    // It was created concurrently: it is looked up.
    house.service.fail("POST", 409, r#"{"detail": "already exists"}"#);
    start(usual).await.unwrap();
    house.service.fail("POST", 409, r#"{"detail": "already exists"}"#);
    house.service.fail("GET /api/sandboxes/", 404, r#"{"detail": "not found"}"#);
    check(refusal(start(usual).await), &["already", "exists"]);
    house.service.fail("POST", 404, r#"{"detail": "Not Found"}"#);
    check(refusal(start(usual).await), &["no /api/sandboxes", "sandbox.provisioner_url"]);
    let dead = ProvisionerSettings { url: "http://127.0.0.1:1".parse().unwrap(), ..usual.clone() };
    check(refusal(start(&dead).await), &["127.0.0.1:1", "cannot be reached", "sandbox.provisioner_url"]);
    assert!(house.engine().examine().await.is_ok());
}
