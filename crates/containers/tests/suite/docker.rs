//! Commands and files in a container of an image with a shell, and the requests to the engine.

use crate::{
    engine,
    shared::{Home, acquire, command, rules, says, sh},
};
use pudu_base::{Killed, Network, SandboxError, SandboxProvider, ShellCommand};
use pudu_containers::{BoxId, ContainerEngine, DockerEngine, ExecMethod, Pool};
use pudu_sandbox::Mount;
use pudu_sim::docker::{Options, Trouble};
use serde_json::json;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

const IMAGE: &str = "debian:12";

fn exec(home: &Home, sim: &pudu_sim::Docker) -> DockerEngine {
    DockerEngine::new(home.settings(&sim.host(), IMAGE, ExecMethod::Exec))
}

#[tokio::test]
async fn a_command_runs_where_the_files_are_and_its_outputs_are_apart() {
    let Some(sim) = engine(Options::default()).await else { return };
    let home = Home::new();
    let pool = home.pool(exec(&home, &sim));
    let sandbox = acquire(&pool, "t").await;
    sandbox.write("/mnt/user-data/workspace/in", b"of the tool", false).await.unwrap();
    let done = sh(&*sandbox, "pwd; cat in; echo out > ../outputs/f; echo bad >&2; exit 7").await;
    assert_eq!(
        (done.stdout.as_str(), done.stderr.as_str(), done.code, done.killed),
        ("/mnt/user-data/workspace\nof the tool", "bad\n", Some(7), None)
    );
    assert_eq!(sandbox.read("/mnt/user-data/outputs/f", 100).await.unwrap(), b"out\n");
    assert_eq!(std::fs::read(home.on_host("t", "outputs/f")).unwrap(), b"out\n");
    let text = "$'\"`\\\n grüße %s {{}} é";
    let script = format!("cat <<'EOF'\n{text}\nEOF\necho \"$GREETING $HOME $USER\"");
    assert_eq!(says(&*sandbox, &script).await, format!("{text}\nhello there /mnt/user-data/workspace agent"));
    // Both sides can change each other's files.
    says(&*sandbox, "echo more >> in && mkdir -p deep/er && touch deep/er/x").await;
    sandbox.write("/mnt/user-data/workspace/deep/er/x", b"y", false).await.unwrap();
    sandbox.write("/mnt/user-data/outputs/f", b"changed", false).await.unwrap();
    assert_eq!(says(&*sandbox, "cat ../outputs/f; rm ../outputs/f; cat deep/er/x").await, "changedy");
}

#[tokio::test]
async fn the_engine_is_asked_for_a_container_without_rights() {
    let Some(sim) = engine(Options::default()).await else { return };
    let mut home = Home::new();
    let shared = tempfile::tempdir().unwrap();
    home.options.mounts =
        vec![Mount { host: shared.path().to_owned(), agent: "/mnt/shared".into(), read_only: true }];
    let mut settings = home.settings(&sim.host(), IMAGE, ExecMethod::Exec);
    settings.cpus = Some(1.5);
    let pool = home.pool(DockerEngine::new(settings));
    let sandbox = acquire(&pool, "thread-1").await;
    says(&*sandbox, "true").await;
    let asked = sim.asked();
    let made = asked.iter().find(|asked| asked.what == "POST /containers/create").unwrap();
    assert_eq!(made.query["name"], "pudu-test-fe0dc8182dec7b77");
    let mut body = made.body.clone();
    let labels = body["Labels"].take();
    assert_eq!(
        (labels["pudu.thread"].as_str(), labels["pudu.box"].as_str()),
        (Some("thread-1"), Some("fe0dc8182dec7b77"))
    );
    assert!(labels["pudu.home"].is_string() && labels["pudu.order"].is_string());
    let (user, group) = home.owner();
    let bind = |source: &std::path::Path, target: &str, read_only: bool| {
        json!({
            "Type": "bind", "Source": source, "Target": target, "ReadOnly": read_only,
            "BindOptions": {"Propagation": "rprivate"},
        })
    };
    let scratch = "rw,nosuid,nodev,mode=1777,size=1073741824";
    assert_eq!(
        body,
        json!({
            "Image": IMAGE, "User": format!("{user}:{group}"), "WorkingDir": "/mnt/user-data/workspace",
            "Entrypoint": ["/bin/sh"], "Cmd": ["-c", "while :; do sleep 86400; done"], "Labels": null,
            "Env": [
                "HOME=/mnt/user-data/workspace", "USER=agent", "LOGNAME=agent", "LANG=C.UTF-8", "TMPDIR=/tmp",
                "PUDU_COMMAND=nobody", "GREETING=hello there",
            ],
            "HostConfig": {
                "AutoRemove": true, "CapDrop": ["ALL"], "Init": true, "IpcMode": "private",
                "LogConfig": {"Type": "none"}, "Memory": 2_147_483_648_u64, "MemorySwap": 2_147_483_648_u64,
                "NanoCpus": 1_500_000_000, "NetworkMode": "none", "PidsLimit": 256, "ReadonlyRootfs": true,
                "SecurityOpt": ["no-new-privileges"],
                "Tmpfs": {"/run": scratch, "/tmp": scratch, "/var/tmp": scratch},
                "Mounts": [
                    bind(&home.on_host("thread-1", ""), "/mnt/user-data", false),
                    bind(shared.path(), "/mnt/shared", true),
                ],
            },
        })
    );
    let refused = sh(&*sandbox, "echo x > /mnt/shared/x || echo x > /usr/x || id -u").await;
    assert_eq!(refused.stdout.trim(), user.to_string());
    assert_eq!(refused.stderr.matches("Read-only file system").count(), 2, "{refused:?}");
    let denied = sandbox.write("/mnt/shared/x", b"x", false).await;
    assert!(matches!(denied, Err(SandboxError::ReadOnly { .. })), "{denied:?}");
}

#[tokio::test]
async fn binds_are_named_as_the_engine_sees_them_and_users_as_it_maps_them() {
    let options = |security: &str| Options { security: vec![security.to_owned()], ..Options::default() };
    for (security, user, users) in
        [("name=rootless", "0:0".to_owned(), json!(null)), ("name=userns", String::new(), json!("host"))]
    {
        let Some(sim) = engine(options(security)).await else { return };
        let home = Home::new();
        let (own, group) = home.owner();
        let user = if user.is_empty() { format!("{own}:{group}") } else { user };
        let outside = tempfile::tempdir().unwrap();
        let mut settings = home.settings(&sim.host(), IMAGE, ExecMethod::Exec);
        settings.host_home = Some(outside.path().to_owned());
        std::fs::create_dir_all(outside.path().join("users/default/threads/t/user-data/workspace")).unwrap();
        let pool = home.pool(DockerEngine::new(settings));
        acquire(&pool, "t").await;
        let asked = sim.asked();
        let body = &asked.iter().find(|asked| asked.what == "POST /containers/create").unwrap().body;
        let source = outside.path().join("users/default/threads/t/user-data");
        assert_eq!(body["HostConfig"]["Mounts"][0]["Source"], json!(source), "{security}");
        assert_eq!((&body["User"], &body["HostConfig"]["UsernsMode"]), (&json!(user), &users), "{security}");
    }
}

#[tokio::test]
async fn a_network_is_one_on_which_containers_do_not_reach_each_other() {
    let Some(sim) = engine(Options::default()).await else { return };
    let home = Home::new();
    let mut settings = home.settings(&sim.host(), IMAGE, ExecMethod::Exec);
    settings.network = Network::Full;
    let pool = home.pool(DockerEngine::new(settings));
    acquire(&pool, "a").await;
    acquire(&pool, "b").await;
    let asked = sim.asked();
    let networks: Vec<_> = asked.iter().filter(|asked| asked.what == "POST /networks/create").collect();
    let options = json!({"com.docker.network.bridge.enable_icc": "false"});
    assert_eq!(networks.len(), 1);
    assert_eq!(
        networks[0].body,
        json!({"Name": "pudu-test-network", "Driver": "bridge", "Options": options})
    );
    let made = asked.iter().filter(|asked| asked.what == "POST /containers/create");
    assert!(made.into_iter().all(|asked| asked.body["HostConfig"]["NetworkMode"] == "pudu-test-network"));
}

#[tokio::test]
async fn what_takes_too_long_is_killed_with_all_that_it_started_and_nothing_else_is() {
    let Some(sim) = engine(Options::default()).await else { return };
    let home = Home::new();
    let pool = home.pool(exec(&home, &sim));
    let sandbox = acquire(&pool, "t").await;
    says(&*sandbox, "sleep 1111 > /dev/null 2>&1 & echo kept").await;
    let script = "echo begun; (sleep 2221 &) ; setsid sleep 2222 & (env -i setsid sleep 2223 &) ; \
                  trap '' TERM INT HUP; sleep 2224";
    let begun = Instant::now();
    let late = ShellCommand::new(script.to_owned(), Duration::from_secs(1));
    let other = command("sleep 2; echo mine");
    let (done, other) = tokio::join!(sandbox.exec(&late), sandbox.exec(&other));
    let (done, other) = (done.unwrap(), other.unwrap());
    assert_eq!((done.stdout.as_str(), done.code, done.killed), ("begun\n", None, Some(Killed::Late)));
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert_eq!((other.stdout.as_str(), other.code), ("mine\n", Some(0)));
    let left = sim.processes(&sim.running()[0]).join("\n");
    assert!(!left.contains("sleep 222"), "{left}");
    assert!(left.contains("sleep 1111"), "{left}");
}

#[tokio::test]
async fn a_call_that_is_given_up_kills_what_it_started() {
    let Some(sim) = engine(Options::default()).await else { return };
    let home = Home::new();
    let docker = exec(&home, &sim);
    let pool = home.pool(docker.clone());
    let sandbox = acquire(&pool, "t").await;
    let slow = command("sleep 3331 & sleep 3332");
    let name = sim.running()[0].clone();
    let begun = async {
        crate::begun(&sim, &name, "sleep 3331").await;
    };
    tokio::select! {
        done = sandbox.exec(&slow) => panic!("{done:?}"),
        () = begun => {}
    }
    // The engine waits for its background work.
    docker.close().await;
    let left = sim.processes(&name).join("\n");
    assert!(!left.contains("sleep 333"), "{left}");
    assert_eq!(sim.running(), [name]);
}

#[tokio::test]
async fn what_cannot_be_killed_by_itself_goes_with_its_container() {
    let Some(sim) = engine(Options::default()).await else { return };
    let home = Home::new();
    let pool = home.pool(exec(&home, &sim));
    let sandbox = acquire(&pool, "t").await;
    says(&*sandbox, "echo kept > file").await;
    let late = ShellCommand::new("sleep 4441".into(), Duration::from_millis(300));
    let broken = async {
        while !sim.asked().iter().any(|asked| asked.body["Cmd"][4] == "sleep 4441") {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        sim.fail("POST /containers/pudu-test-", Trouble::Refuse(500, "it is broken".into()));
    };
    let (done, ()) = tokio::join!(sandbox.exec(&late), broken);
    assert_eq!(done.unwrap().killed, Some(Killed::Late));
    assert_eq!(sim.running(), [""; 0]);
    // The next command has a new container, and the same files.
    assert_eq!(says(&*sandbox, "cat file").await, "kept");
}

#[tokio::test]
async fn a_child_in_the_background_does_not_hold_the_call_and_goes_on() {
    let Some(sim) = engine(Options::default()).await else { return };
    let home = Home::new();
    let pool = home.pool(exec(&home, &sim));
    let sandbox = acquire(&pool, "t").await;
    let begun = Instant::now();
    let done = sh(&*sandbox, "(while :; do echo tick; sleep 0.05; done) & echo started").await;
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!(done.stdout.contains("started") && done.code == Some(0), "{done:?}");
    says(&*sandbox, "touch mark; sleep 1000 > /dev/null 2>&1 &").await;
    assert!(sim.processes(&sim.running()[0]).join("\n").contains("sleep 1000"));
}

#[tokio::test]
async fn a_flood_is_cut_in_the_middle_while_it_comes() {
    let Some(sim) = engine(Options::default()).await else { return };
    let home = Home::new();
    let pool = home.pool(exec(&home, &sim));
    let sandbox = acquire(&pool, "t").await;
    let done = sh(&*sandbox, "echo begin; head -c 20000000 /dev/zero | tr '\\0' x; echo; echo end").await;
    assert!(done.stdout.starts_with("begin\nxxx") && done.stdout.ends_with("xxx\nend\n"));
    assert!(done.stdout.contains("bytes omitted"));
    assert!(done.stdout.len() < 600_000, "{}", done.stdout.len());
    let long = sandbox.exec(&command(&"x".repeat(200_000))).await;
    assert!(long.unwrap_err().to_string().contains("too long"));
}

#[tokio::test]
async fn a_thread_that_fills_its_folder_is_stopped() {
    let Some(sim) = engine(Options::default()).await else { return };
    let home = Home::new();
    let mut settings = home.settings(&sim.host(), IMAGE, ExecMethod::Exec);
    settings.limits.disk = 1 << 20;
    let pool = home.pool(DockerEngine::new(settings));
    let sandbox = acquire(&pool, "t").await;
    // Slow, so that it is counted before and after.
    let done =
        sh(&*sandbox, "for i in $(seq 600); do head -c 100000 /dev/urandom >> big; sleep 0.1; done").await;
    assert_eq!(done.killed, Some(Killed::Disk(1 << 20)));
}

#[tokio::test]
async fn an_image_that_is_not_there_is_fetched_and_one_that_is_nowhere_is_told() {
    let Some(sim) = engine(Options::default()).await else { return };
    let home = Home::new();
    let pool = home.pool(DockerEngine::new(home.settings(&sim.host(), "alpine:3", ExecMethod::Exec)));
    says(&*acquire(&pool, "t").await, "true").await;
    assert_eq!(sim.asked().iter().filter(|asked| asked.what == "POST /images/create").count(), 1);
    let pool = home.pool(DockerEngine::new(home.settings(&sim.host(), "nobody/has-this", ExecMethod::Exec)));
    let error = pool.acquire(&"u".into()).await.err().unwrap().to_string();
    assert!(
        error.contains("cannot pull the sandbox's image nobody/has-this") && error.contains("docker pull"),
        "{error}"
    );
}

#[tokio::test]
async fn each_trouble_of_the_engine_is_told_with_its_mend() {
    let Some(sim) = engine(Options::default()).await else { return };
    let home = Home::new();
    let told = async |settings| {
        let pool = home.pool(DockerEngine::new(settings));
        pool.acquire(&"t".into()).await.err().unwrap().to_string()
    };
    let settings = || home.settings(&sim.host(), IMAGE, ExecMethod::Exec);
    let mut nowhere = settings();
    nowhere.host = "unix:///nowhere/docker.sock".to_owned();
    assert!(told(nowhere).await.contains("the socket /nowhere/docker.sock does not exist; start Docker"));
    let mut refused = settings();
    refused.host = "tcp://127.0.0.1:1".to_owned();
    let error = told(refused).await;
    assert!(
        error.contains("could not negotiate the API version") && error.contains("check that it is running"),
        "{error}"
    );
    for (what, trouble, expect) in [
        ("GET /version", Trouble::Garbage("<html>".into()), "could not negotiate the API version"),
        ("GET /info", Trouble::Cut, "could not report its settings"),
        ("GET /containers/", Trouble::Garbage("{\"Id\": 7}".into()), "could not inspect the container"),
        ("POST /containers/create", Trouble::Refuse(500, "no space left".into()), "no space left (500)"),
        ("POST /containers/create", Trouble::Garbage("[]".into()), "could not create the container"),
    ] {
        sim.fail(what, trouble);
        let error = told(settings()).await;
        assert!(error.contains(expect), "{what}: {error}");
    }
    let start = format!("POST /containers/pudu-test-{}/start", BoxId::from_folder(&"t".into()));
    sim.fail(&start, Trouble::Refuse(400, "exec: \"/bin/sh\": stat /bin/sh: no such file".into()));
    assert!(told(settings()).await.contains("no such file"));
    // A container that failed to start is removed.
    assert!(sim.asked().iter().any(|asked| asked.what.starts_with("DELETE /containers/")));
    assert_eq!(sim.running(), [""; 0]);
}

#[tokio::test]
async fn an_engine_that_goes_away_in_the_midst_of_a_command_ends_the_call_with_a_word() {
    let Some(sim) = engine(Options::default()).await else { return };
    let home = Home::new();
    let pool = home.pool(exec(&home, &sim));
    let sandbox = acquire(&pool, "t").await;
    let slow = command("echo begun; sleep 5551");
    let name = sim.running()[0].clone();
    let begun = async {
        crate::begun(&sim, &name, "sleep 5551").await;
        drop(sim);
    };
    let (done, ()) = tokio::join!(sandbox.exec(&slow), begun);
    let error = done.unwrap_err().to_string();
    assert!(error.contains("the container engine could not"), "{error}");
}

#[tokio::test]
async fn a_container_that_dies_in_the_midst_of_a_command_is_told_and_the_next_command_has_a_new_one() {
    let Some(sim) = engine(Options::default()).await else { return };
    let home = Home::new();
    let pool = home.pool(exec(&home, &sim));
    let sandbox = acquire(&pool, "t").await;
    let name = sim.running()[0].clone();
    let slow = command("sleep 6661");
    let crash = async {
        crate::begun(&sim, &name, "sleep 6661").await;
        sim.crash(&name).await;
    };
    let (done, ()) = tokio::join!(sandbox.exec(&slow), crash);
    match done {
        Ok(done) => assert!(done.code.is_some_and(|code| code != 0), "{done:?}"),
        Err(error) => assert!(error.to_string().contains("the container ended"), "{error}"),
    }
    assert_eq!(says(&*sandbox, "echo again").await, "again");
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_that_find_their_container_dead_together_get_one_new_one() {
    let Some(sim) = engine(Options::default()).await else { return };
    let home = Home::new();
    let pool = home.pool(exec(&home, &sim));
    let sandbox = acquire(&pool, "t").await;
    says(&*sandbox, "true").await;
    for round in 0..5 {
        sim.crash(&sim.running()[0].clone()).await;
        let commands = (0..8).map(|n| {
            let sandbox = sandbox.clone();
            async move { says(&*sandbox, &format!("echo {n}")).await }
        });
        let said = futures_util::future::join_all(commands.map(tokio::spawn)).await;
        let said: Vec<String> = said.into_iter().map(Result::unwrap).collect();
        assert_eq!(said, ["0", "1", "2", "3", "4", "5", "6", "7"], "round {round}");
        assert_eq!(sim.running().len(), 1);
    }
}

#[tokio::test]
async fn a_socket_in_the_file_system_is_spoken_to_as_well() {
    if engine(Options::default()).await.is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("docker.sock");
    let _sim = pudu_sim::Docker::start_at(&socket, Options::default()).unwrap();
    let home = Home::new();
    let settings = home.settings(&format!("unix://{}", socket.display()), IMAGE, ExecMethod::Exec);
    let docker = DockerEngine::new(settings);
    let found = docker.check_engine().await.unwrap();
    assert_eq!((found.version.as_str(), found.api.as_str(), found.image), ("28.2.2", "1.50", true));
    let pool = Pool::new(Arc::new(docker), home.places(), rules());
    assert_eq!(says(&*acquire(&pool, "t").await, "echo works").await, "works");
}
