//! Pods of a simulated cluster whose commands really run.
#![cfg(feature = "kubernetes")]
#![allow(clippy::unwrap_used, clippy::string_slice, reason = "tests")]

use pudu_base::{Exec, Killed, Network, Sandbox, SandboxError, ShellCommand, ThreadFolder};
use pudu_containers::{
    BoxId, ContainerEngine, Order,
    kubernetes::{KubernetesEngine, PodSettings, Volume},
};
use pudu_sandbox::{CommandLimits, Folders, LocalSandboxes, Options, prove_in};
use pudu_sim::Kubernetes as Cluster;
use serde_json::{Value, json};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Owner of the threads' files if the test runs as root; an unused user.
const USER: (u32, u32) = (65533, 65533);
/// Timeout of everything that a test waits for.
const SOON: Duration = Duration::from_secs(20);

struct House {
    cluster: Cluster,
    home: TempDir,
    settings: PodSettings,
    places: LocalSandboxes,
}

/// A house and its cluster; `None` with a note if namespaces are unavailable.
async fn house() -> Option<House> {
    if !Cluster::possible().await {
        return None;
    }
    let (cluster, home) = (Cluster::start().await.unwrap(), tempfile::tempdir().unwrap());
    cluster.claim("pudu-home", home.path().to_owned());
    let file = home.path().join("kubeconfig");
    std::fs::write(&file, cluster.kubeconfig("pudu")).unwrap();
    let root = std::os::unix::fs::MetadataExt::uid(&home.path().metadata().unwrap()) == 0;
    let user = root.then_some(USER);
    let folders = Folders::new(home.path().to_owned(), user);
    let settings = PodSettings {
        kubeconfig: Some(file),
        context: None,
        namespace: None,
        prefix: "pudu".to_owned(),
        owner: "me".to_owned(),
        home: home.path().to_owned(),
        volume: Volume::Claim("pudu-home".to_owned()),
        image: "python:3.13-slim".to_owned(),
        pull_secret: None,
        user: USER,
        network: Network::None,
        environment: vec![("GREETING".to_owned(), "hello".to_owned())],
        mounts: Vec::new(),
        limits: CommandLimits::default(),
    };
    Some(House { cluster, home, settings, places: LocalSandboxes::new(folders, None, Options::default()) })
}

impl House {
    async fn order(&self, thread: &str) -> Order {
        let folder = ThreadFolder::from(thread);
        let (mounts, files) = self.places.mounts_and_files(&folder).await.unwrap();
        Order { id: BoxId::from_folder(&folder), folder, mounts, files }
    }

    fn engine(&self) -> KubernetesEngine {
        KubernetesEngine::new(self.settings.clone())
    }

    async fn open(&self) -> Arc<dyn Sandbox> {
        self.engine().start(&self.order("t").await).await.unwrap()
    }

    fn pod(&self) -> String {
        format!("pudu-{}", BoxId::from_folder(&"t".into()))
    }

    /// Waits until a Pod's processes meet a condition.
    async fn until(&self, wanted: impl Fn(&[String]) -> bool) {
        let begun = Instant::now();
        loop {
            let processes = self.cluster.processes(&self.pod());
            if wanted(&processes) {
                return;
            }
            assert!(begun.elapsed() < SOON, "{processes:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

fn command(script: &str, seconds: u64) -> ShellCommand {
    ShellCommand::new(script.to_owned(), Duration::from_secs(seconds))
}

async fn run(sandbox: &Arc<dyn Sandbox>, script: &str) -> Exec {
    sandbox.exec(&command(script, 20)).await.unwrap()
}

fn refusal<T>(result: Result<T, SandboxError>) -> String {
    match result {
        Ok(_) => panic!("it went well"),
        Err(error) => error.to_string(),
    }
}

fn has(processes: &[String], word: &str) -> bool {
    processes.iter().any(|line| line.contains(word))
}

#[tokio::test]
async fn a_command_runs_in_a_pod_and_shares_the_threads_folder() {
    let Some(house) = house().await else { return };
    let sandbox = house.open().await;
    sandbox.write("/mnt/user-data/uploads/in.txt", b"from people", false).await.unwrap();
    let script = "cat ../uploads/in.txt; echo $GREETING; pwd; echo report > /mnt/user-data/outputs/out.txt; echo bad >&2; exit 3";
    let done = run(&sandbox, script).await;
    let expect = Exec {
        stdout: "from peoplehello\n/mnt/user-data/workspace\n".to_owned(),
        stderr: "bad\n".to_owned(),
        code: Some(3),
        killed: None,
        cut: false,
    };
    assert_eq!(done, expect);
    assert_eq!(sandbox.read("/mnt/user-data/outputs/out.txt", 100).await.unwrap(), b"report\n");
    // Quotes, line breaks and apparent arguments reach the script unchanged.
    let odd = run(&sandbox, "printf '%s|' \"a b\" '$x' -- \"\n\"\necho ü\n\n").await;
    assert_eq!(odd.stdout, "a b|$x|--|\n|ü\n");
}

#[tokio::test]
async fn the_pod_is_written_as_it_has_to_be() {
    let Some(mut house) = house().await else { return };
    house.settings.pull_secret = Some("registry".to_owned());
    house.open().await;
    let made = house
        .cluster
        .asked()
        .into_iter()
        .find(|asked| asked.what.starts_with("POST") && asked.what.ends_with("/pods"));
    let mut body = made.unwrap().body;
    let id = BoxId::from_folder(&"t".into()).to_string();
    let made_to = body["metadata"]["annotations"]["pudu.dev/made-to"].take();
    assert_eq!(made_to.as_str().unwrap().len(), 16);
    let env = |name: &str, value: &str| json!({"name": name, "value": value});
    let expect = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": format!("pudu-{id}"),
            "labels": {
                "app.kubernetes.io/name": "pudu",
                "app.kubernetes.io/component": "sandbox",
                "pudu.dev/owner": "me",
                "pudu.dev/sandbox": id,
                "pudu.dev/network": "none",
            },
            "annotations": {"pudu.dev/made-to": Value::Null, "pudu.dev/thread": "t"},
        },
        "spec": {
            "restartPolicy": "Always",
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "hostNetwork": false,
            "terminationGracePeriodSeconds": 2,
            "dnsPolicy": "None",
            "dnsConfig": {"nameservers": ["127.0.0.1"]},
            "imagePullSecrets": [{"name": "registry"}],
            "securityContext": {
                "runAsUser": 65533, "runAsGroup": 65533, "runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [{
                "name": "sandbox",
                "image": "python:3.13-slim",
                "imagePullPolicy": "IfNotPresent",
                "command": ["/bin/sh", "-c", "trap 'exit 0' TERM INT; while :; do sleep 3600 & wait $!; done"],
                "workingDir": "/",
                "env": [
                    env("PUDU_SANDBOX", "1"), env("HOME", "/mnt/user-data/workspace"), env("USER", "agent"),
                    env("LOGNAME", "agent"), env("LANG", "C.UTF-8"), env("TMPDIR", "/tmp"), env("GREETING", "hello"),
                ],
                "resources": {
                    "requests": {"cpu": "100m", "memory": "64Mi"},
                    "limits": {"memory": "2147483648", "ephemeral-storage": "2147483648"},
                },
                "securityContext": {
                    "allowPrivilegeEscalation": false, "privileged": false, "readOnlyRootFilesystem": true,
                    "capabilities": {"drop": ["ALL"]},
                },
                "volumeMounts": [
                    {"name": "home", "mountPath": "/mnt/user-data", "readOnly": false,
                     "subPath": "users/default/threads/t/user-data"},
                    {"name": "tmp", "mountPath": "/tmp"},
                ],
            }],
            "volumes": [
                {"name": "home", "persistentVolumeClaim": {"claimName": "pudu-home"}},
                {"name": "tmp", "emptyDir": {"sizeLimit": "512Mi"}},
            ],
        },
    });
    assert_eq!(body, expect);
    let policies = house.cluster.policies();
    let spec = json!({"podSelector": {"matchLabels": {"pudu.dev/network": "none"}}, "policyTypes": ["Ingress", "Egress"]});
    assert_eq!(policies.iter().map(|policy| &policy["spec"]).collect::<Vec<_>>(), [&spec]);
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_killed_with_all_that_it_started() {
    let Some(house) = house().await else { return };
    let sandbox = house.open().await;
    let script = "echo begun; setsid nohup sleep 98760001 & env -i sleep 98760002 & (sleep 98760003 &); sleep 98760004";
    let done = sandbox.exec(&command(script, 1)).await.unwrap();
    assert_eq!(
        done,
        Exec {
            stdout: "begun\n".into(),
            stderr: String::new(),
            code: None,
            killed: Some(Killed::Late),
            cut: false
        }
    );
    assert!(
        !has(&house.cluster.processes(&house.pod()), "9876"),
        "{:?}",
        house.cluster.processes(&house.pod())
    );
    assert_eq!(run(&sandbox, "echo again").await.stdout, "again\n");
}

#[tokio::test]
async fn a_command_that_is_given_up_is_killed_and_one_beside_it_is_not() {
    let Some(house) = house().await else { return };
    let sandbox = house.open().await;
    let beside = tokio::spawn({
        let sandbox = sandbox.clone();
        async move { run(&sandbox, "sleep 98760011 & echo $! > pid; wait; echo ended").await }
    });
    house.until(|processes| has(processes, "98760011")).await;
    let doomed = tokio::spawn({
        let sandbox = sandbox.clone();
        async move { run(&sandbox, "setsid sleep 98760012 & sleep 98760013").await }
    });
    house.until(|processes| has(processes, "98760012") && has(processes, "98760013")).await;
    doomed.abort();
    house.until(|processes| !has(processes, "98760012") && !has(processes, "98760013")).await;
    assert!(has(&house.cluster.processes(&house.pod()), "98760011"));
    run(&sandbox, "kill $(cat pid)").await;
    assert_eq!(beside.await.unwrap().stdout, "ended\n");
}

#[tokio::test]
async fn a_child_in_the_background_does_not_hang_the_call_and_ends_with_it() {
    let Some(house) = house().await else { return };
    let sandbox = house.open().await;
    let begun = Instant::now();
    let done = run(&sandbox, "sleep 98760021 & setsid sleep 98760022 & echo done").await;
    assert_eq!((done.stdout.as_str(), done.code), ("done\n", Some(0)));
    // A hidden process keeps the streams of the exec open, as on a real node.
    let done = run(&sandbox, "env -i setsid sleep 98760023 & sleep 0.2; echo done").await;
    assert_eq!((done.stdout.as_str(), done.code), ("done\n", Some(0)));
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    let left = house.cluster.processes(&house.pod());
    assert!(!has(&left, "98760021") && !has(&left, "98760022"), "{left:?}");
}

#[tokio::test]
async fn of_a_flood_both_ends_are_kept() {
    let Some(house) = house().await else { return };
    let sandbox = house.open().await;
    let done =
        run(&sandbox, "echo first; head -c 9000000 /dev/zero | tr '\\0' x; echo; echo last; echo oops >&2")
            .await;
    assert!(done.stdout.starts_with("first\nxxx") && done.stdout.ends_with("xxx\nlast\n"));
    assert!(done.stdout.contains("bytes omitted") && done.stdout.len() < 600_000, "{}", done.stdout.len());
    assert_eq!((done.stderr.as_str(), done.code), ("oops\n", Some(0)));
}

#[tokio::test]
async fn what_a_signal_ended_has_no_code_and_odd_codes_are_kept() {
    let Some(house) = house().await else { return };
    let sandbox = house.open().await;
    assert_eq!(run(&sandbox, "kill -9 $$").await.code, None);
    assert_eq!(run(&sandbox, "exit 255").await.code, Some(255));
    // The parent shell reports the exit code; a command that kills it has none.
    assert_eq!(run(&sandbox, "kill -9 $PPID; sleep 5").await.code, None);
    assert_eq!(run(&sandbox, "echo on").await.stdout, "on\n");
}

#[tokio::test]
async fn a_restart_finds_the_pod_and_ends_what_ran_in_it() {
    let Some(house) = house().await else { return };
    let (order, before) = (house.order("t").await, house.engine());
    let (first, ended) = (order.clone(), Arc::new(tokio::sync::Notify::new()));
    // A daemon with its own runtime: after its end, it can kill nothing.
    let daemon = std::thread::spawn({
        let ended = ended.clone();
        move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let sandbox = before.start(&first).await.unwrap();
                tokio::spawn(async move { run(&sandbox, "sleep 98760031").await });
                ended.notified().await;
            });
        }
    });
    house.until(|processes| has(processes, "98760031")).await;
    ended.notify_one();
    tokio::task::spawn_blocking(move || daemon.join().unwrap()).await.unwrap();
    assert!(has(&house.cluster.processes(&house.pod()), "98760031"));
    let after = house.engine();
    assert_eq!(after.running().await.unwrap(), std::slice::from_ref(&order.id));
    assert!(after.alive(&order.id).await);
    let sandbox = after.start(&order).await.unwrap();
    assert!(!has(&house.cluster.processes(&house.pod()), "98760031"));
    assert_eq!(run(&sandbox, "echo here").await.stdout, "here\n");
    let made = house
        .cluster
        .asked()
        .iter()
        .filter(|asked| asked.what == "POST /api/v1/namespaces/pudu/pods")
        .count();
    assert_eq!(made, 1);
    after.stop(&order.id).await.unwrap();
    after.stop(&order.id).await.unwrap();
    assert!(!after.alive(&order.id).await && after.running().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_pod_that_was_evicted_or_taken_away_is_replaced_on_the_next_use() {
    let Some(house) = house().await else { return };
    let sandbox = house.open().await;
    run(&sandbox, "echo kept > file").await;
    house.cluster.evict(&house.pod());
    assert_eq!(run(&sandbox, "cat file").await.stdout, "kept\n");
    house.cluster.remove(&house.pod());
    assert_eq!(run(&sandbox, "cat file").await.stdout, "kept\n");
}

#[tokio::test]
async fn a_connection_that_breaks_is_told_and_what_ran_is_ended() {
    let Some(house) = house().await else { return };
    let sandbox = house.open().await;
    let running = tokio::spawn({
        let sandbox = sandbox.clone();
        async move { sandbox.exec(&command("echo half; sleep 98760041", 60)).await }
    });
    house.until(|processes| has(processes, "98760041")).await;
    house.cluster.cut_execs();
    let said = refusal(running.await.unwrap());
    assert!(
        said.contains("connection to the cluster was lost") && said.contains("the command was killed"),
        "{said}"
    );
    assert!(!has(&house.cluster.processes(&house.pod()), "98760041"));
}

#[tokio::test]
async fn a_pod_that_was_made_to_another_order_is_replaced_and_somebody_elses_is_left() {
    let Some(mut house) = house().await else { return };
    house.open().await;
    house.settings.environment.clear();
    let sandbox = house.open().await;
    assert_eq!(run(&sandbox, "echo \"[$GREETING]\"").await.stdout, "[]\n");
    house.settings.owner = "another".to_owned();
    let engine = house.engine();
    assert!(engine.running().await.unwrap().is_empty());
    let said = refusal(engine.start(&house.order("t").await).await);
    assert!(said.contains("belongs to another owner") && said.contains("container_prefix"), "{said}");
    assert_eq!(run(&sandbox, "echo here").await.stdout, "here\n");
}

#[tokio::test]
async fn what_is_wrong_is_told_with_its_mend() {
    let Some(house) = house().await else { return };
    let order = house.order("t").await;
    let usual = house.settings.clone();
    let start =
        async |settings: &PodSettings| refusal(KubernetesEngine::new(settings.clone()).start(&order).await);
    let check = |said: String, words: &[&str]| {
        assert!(words.iter().all(|word| said.contains(word)), "{said}\nwithout one of {words:?}");
    };
    house.cluster.fail(
        "POST /api/v1/namespaces/pudu/pods",
        403,
        "pods is forbidden: User \"x\" cannot create",
    );
    check(start(&usual).await, &["403", "cannot create", "role", "docs/sandbox.md"]);
    house.cluster.fail("GET /api/v1", 401, "Unauthorized");
    check(start(&usual).await, &["401", "kubeconfig"]);
    house.cluster.fail("GET /api/v1", 200, "<html>not an API server</html>");
    check(start(&usual).await, &["does not respond like an API server", "kubeconfig"]);
    house.cluster.without_image("gone:1");
    check(
        start(&PodSettings { image: "gone:1".into(), ..usual.clone() }).await,
        &["ImagePullBackOff", "sandbox.image"],
    );
    check(
        start(&PodSettings { namespace: Some("nowhere".into()), ..usual.clone() }).await,
        &["namespaces", "nowhere", "not found"],
    );
    let elsewhere = tempfile::tempdir().unwrap();
    house.cluster.claim("other", elsewhere.path().to_owned());
    let settings =
        PodSettings { volume: Volume::Claim("other".into()), prefix: "other".into(), ..usual.clone() };
    check(start(&settings).await, &["claim other", "does not contain pudu's home"]);
    let settings = PodSettings { kubeconfig: Some(house.home.path().join("nothing")), ..usual.clone() };
    check(start(&settings).await, &["no cluster is configured", "nothing", "sandbox.kubernetes.kubeconfig"]);
    let file = house.home.path().join("dead");
    std::fs::write(
        &file,
        house.cluster.kubeconfig("pudu").replace(&house.cluster.url(), "http://127.0.0.1:1"),
    )
    .unwrap();
    check(
        start(&PodSettings { kubeconfig: Some(file), ..usual.clone() }).await,
        &["cannot be reached", "refused"],
    );
    let long = house.open().await.exec(&command(&"x".repeat(200_000), 5)).await;
    check(refusal(long), &["too long", "write it to a file"]);
}

/// On a real cluster, with one command: see docs/sandbox.md. Otherwise on the simulated cluster, whose containers have
/// no seccomp filter.
#[tokio::test]
async fn no_way_out_works() {
    if let Some(place) = std::env::var_os("PUDU_TEST_KUBERNETES") {
        return on_a_real_cluster(place.to_str().unwrap()).await;
    }
    println!("PUDU_TEST_KUBERNETES names no real cluster: the simulated one is tried");
    let Some(house) = house().await else { return };
    let sandbox = house.open().await;
    assert_eq!(ways_out(&*sandbox).await, ["create a namespace", "run without a seccomp filter"]);
}

async fn ways_out(sandbox: &dyn Sandbox) -> Vec<&'static str> {
    let proofs = prove_in(sandbox, Network::None).await.unwrap();
    assert!(proofs.len() > 10);
    proofs.into_iter().filter(|proof| proof.broken.is_some()).map(|proof| proof.attempt).collect()
}

/// Takes `claim NAME HOME` or `host PATH HOME`: the volume with this machine's folder HOME in the kubeconfig's cluster.
async fn on_a_real_cluster(place: &str) {
    let [kind, name, home] = place.split(' ').collect::<Vec<_>>()[..] else {
        panic!("PUDU_TEST_KUBERNETES is `claim NAME HOME` or `host PATH HOME`");
    };
    let volume = match kind {
        "claim" => Volume::Claim(name.to_owned()),
        _ => Volume::Host(name.to_owned()),
    };
    let meta = std::fs::metadata(home).unwrap();
    let uid = std::os::unix::fs::MetadataExt::uid(&meta);
    let user = if uid == 0 { USER } else { (uid, std::os::unix::fs::MetadataExt::gid(&meta)) };
    let folders = Folders::new(home.into(), (uid == 0).then_some(USER));
    let engine = KubernetesEngine::new(PodSettings {
        kubeconfig: None,
        context: None,
        namespace: None,
        prefix: "pudu-test".to_owned(),
        owner: "pudu-test".to_owned(),
        home: home.into(),
        volume,
        image: "python:3.13-slim".to_owned(),
        pull_secret: None,
        user,
        network: Network::None,
        environment: Vec::new(),
        mounts: Vec::new(),
        limits: CommandLimits::default(),
    });
    let folder = ThreadFolder::from("pudu-test-escape");
    let (mounts, files) =
        LocalSandboxes::new(folders, None, Options::default()).mounts_and_files(&folder).await.unwrap();
    let order = Order { id: BoxId::from_folder(&folder), folder, mounts, files };
    let sandbox = engine.start(&order).await.unwrap();
    let broken = ways_out(&*sandbox).await;
    let late = command("setsid sleep 98760051 & env -i sleep 98760052 & sleep 98760053", 2);
    let late = sandbox.exec(&late).await.unwrap().killed;
    let left =
        run(&sandbox, "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 'sleep 9876005'").await.stdout;
    let beside = run(&sandbox, "sleep 60 & echo done").await.stdout;
    let flood = run(&sandbox, "head -c 9000000 /dev/zero | tr '\\0' x").await.stdout.len();
    engine.stop(&order.id).await.unwrap();
    assert_eq!((broken, late, left.as_str(), beside.as_str()), (vec![], Some(Killed::Late), "0\n", "done\n"));
    assert!(flood < 600_000);
}

#[tokio::test]
async fn folders_of_nodes_and_a_home_on_them_are_shown_where_they_belong() {
    let Some(mut house) = house().await else { return };
    let data = tempfile::tempdir().unwrap();
    std::fs::write(data.path().join("x"), "of the node").unwrap();
    std::fs::set_permissions(data.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    house.settings.volume = Volume::Host(house.home.path().to_str().unwrap().to_owned());
    house.settings.mounts =
        vec![pudu_sandbox::Mount::configured(data.path().to_owned(), "/mnt/data", true).unwrap()];
    let sandbox = house.open().await;
    let done =
        run(&sandbox, "cat /mnt/data/x; touch /mnt/data/y 2>/dev/null || echo ' read-only'; echo new > f")
            .await;
    assert_eq!(done.stdout, "of the node read-only\n");
    assert_eq!(sandbox.read("/mnt/user-data/workspace/f", 10).await.unwrap(), b"new\n");
}
