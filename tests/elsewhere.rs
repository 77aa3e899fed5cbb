//! Sandboxes of a provisioner and a cluster, from a chat: the real daemon against their simulators. Details are tested
//! in `crates/containers/tests`.

use crate::house::{House, SOON, Talker};
use pudu_sim::{
    Kubernetes, Provisioner,
    model::Reply,
    provisioner::KEY,
    telegram::{Post, Upload},
};
use serde_json::json;
use std::time::{Duration, Instant};

/// A house with its cluster, whose Pods mount the house's home; `None` with a note if namespaces are unavailable.
async fn in_pods() -> Option<(House, Kubernetes)> {
    if !Kubernetes::possible().await {
        return None;
    }
    let cluster = Kubernetes::start().await.unwrap();
    let mut house = House::furnish(Default::default(), "", "").await;
    let config = house.path("cluster");
    std::fs::write(&config, cluster.kubeconfig("pudu")).unwrap();
    house.configure(
        "",
        &format!(
            "sandbox:\n  use: pudu.sandbox:KubernetesProvider\n  kubernetes: {{home: claim home, kubeconfig: {}}}\n",
            config.display()
        ),
    );
    cluster.claim("home", house.path(".pudu"));
    house.start();
    Some((house, cluster))
}

async fn by_provisioner(key: &str) -> Option<(House, Provisioner, tempfile::TempDir)> {
    if !Kubernetes::possible().await {
        return None;
    }
    let there = tempfile::tempdir().unwrap();
    let service = Provisioner::start(there.path().to_owned(), None).await.unwrap();
    let rest = format!(
        "sandbox:\n  use: deerflow.community.aio_sandbox:AioSandboxProvider\n  provisioner_url: {}\n  \
         provisioner_api_key: $KEY\n",
        service.url()
    );
    let mut house = House::furnish(Default::default(), "", &rest).await;
    house.set("KEY", key);
    house.start();
    Some((house, service, there))
}

/// Makes the model run a script, and returns the result.
async fn run(house: &House, ada: &Talker, script: &str) -> String {
    let before = house.model.count();
    house.model.next(Reply::tool("bash", &json!({"command": script})));
    ada.say("go on");
    house.model.wait(SOON, |_| (house.model.count() >= before + 2).then_some(())).await.unwrap();
    house.model.requests().last().unwrap().last_tool()
}

/// Sends a file, has a command create another from it, and waits until it is in the chat.
async fn there_and_back(house: &House, ada: &Talker) {
    house
        .model
        .next(Reply::tool("bash", &json!({"command": "tr a-z A-Z < ../uploads/a.txt > ../outputs/b.txt"})));
    house.model.next(Reply::tool("present_files", &json!({"filepaths": ["/mnt/user-data/outputs/b.txt"]})));
    let post = Post::text("louder").file(Upload::document("a.txt", "text/plain", "hello"));
    house.telegram.post(ada.chat, ada.person, &post).unwrap();
    let sent = house.telegram.wait(SOON, |view| {
        let file = view.answers(ada.chat).into_iter().find_map(|answer| answer.file)?;
        view.bytes(&file)
    });
    let sent = sent.await.unwrap_or_else(|timeout| panic!("{timeout}\n{:?}", house.model.requests().last()));
    assert_eq!(sent.as_ref(), b"HELLO");
}

#[tokio::test]
async fn commands_run_in_pods_and_files_go_both_ways() {
    let Some((mut house, cluster)) = in_pods().await else { return };
    assert!(house.log().contains("Pods of Kubernetes with python:3.13-slim"), "{}", house.log());
    let ada = Talker::new(&house, "Ada");
    there_and_back(&house, &ada).await;
    assert_eq!(run(&house, &ada, "cat ../outputs/b.txt; echo; pwd").await, "HELLO\n/mnt/user-data/workspace");
    let about = house.model.requests()[0].body["tools"].to_string();
    assert!(about.contains("There is no network"), "{about}");
    assert_eq!(cluster.pods().len(), 1);
    // A killed daemon leaves its Pod for the next one; a stopped daemon deletes it.
    house.kill();
    house.start();
    assert_eq!(run(&house, &ada, "cat ../outputs/b.txt").await, "HELLO");
    let made =
        || cluster.asked().iter().filter(|asked| asked.what == "POST /api/v1/namespaces/pudu/pods").count();
    assert_eq!(made(), 1);
    house.stop().await;
    let begun = Instant::now();
    while !cluster.pods().is_empty() {
        assert!(begun.elapsed() < SOON, "{:?}", cluster.pods());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn stop_ends_a_command_in_a_pod() {
    let Some((house, cluster)) = in_pods().await else { return };
    let ada = Talker::new(&house, "Ada");
    house.model.next(Reply::tool("bash", &json!({"command": "setsid sleep 98780001 & sleep 98780002"})));
    ada.say("wait for me");
    let name = |cluster: &Kubernetes| {
        let pod = cluster.pods().into_iter().next()?;
        pod["metadata"]["name"].as_str().map(str::to_owned)
    };
    let count = || {
        let lines = name(&cluster).map(|name| cluster.processes(&name)).unwrap_or_default();
        lines.iter().filter(|line| line.contains("9878000")).count()
    };
    until(|| count() >= 2).await;
    ada.say("/stop");
    until(|| count() == 0).await;
    ada.reads_so(|text| text.contains("Stopped")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_doctor_asks_the_cluster_and_tries_to_get_out_of_a_pod() {
    let Some((house, cluster)) = in_pods().await else { return };
    let (_, said) = house.pudu(&["doctor"]);
    for words in [
        "ok    shell: Pods of Kubernetes with python:3.13-slim; no network, if the cluster enforces network policies",
        "ok    backend: Kubernetes v1.35.0 at 127.0.0.1:",
        "ok    command: ran in a sandbox: Linux ",
        // The simulated node has no seccomp filter, which the doctor reports.
        "BAD   escape: a command can create a namespace, run without a seccomp filter",
    ] {
        assert!(said.contains(words), "{said}\nwithout {words}");
    }
    until(|| cluster.pods().is_empty()).await;
    cluster.fail("POST /api/v1/namespaces/pudu/pods", 403, "pods is forbidden");
    let (well, said) = house.pudu(&["doctor"]);
    assert!(!well && said.contains("BAD   sandbox: the cluster denied the request (403"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_run_in_a_provisioners_sandboxes_and_files_go_both_ways() {
    let Some((mut house, service, _there)) = by_provisioner(KEY).await else { return };
    assert!(house.log().contains("files are copied"), "{}", house.log());
    let ada = Talker::new(&house, "Ada");
    there_and_back(&house, &ada).await;
    assert_eq!(run(&house, &ada, "cat ../outputs/b.txt").await, "HELLO");
    house.kill();
    house.start();
    assert_eq!(run(&house, &ada, "cat ../outputs/b.txt").await, "HELLO");
    assert_eq!(service.sandboxes().len(), 1);
    let (_, said) = house.pudu(&["doctor"]);
    assert!(said.contains("ok    backend: it responds, accepts the key, and has 1 sandboxes"), "{said}");
    assert!(said.contains("ok    command: ran in a sandbox: Linux "), "{said}");
    house.stop().await;
    assert_eq!(service.sandboxes(), []);
    assert!(!house.log().contains(KEY));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provisioner_that_refuses_is_told_to_the_model_and_by_the_doctor() {
    let Some((house, _service, _there)) = by_provisioner("a-wrong-key-0123456789").await else { return };
    let ada = Talker::new(&house, "Ada");
    let said = run(&house, &ada, "echo hi").await;
    assert!(said.contains("401") && said.contains("sandbox.provisioner_api_key"), "{said}");
    assert!(!said.contains("a-wrong-key") && !house.log().contains("a-wrong-key"), "{said}");
    let (well, said) = house.pudu(&["doctor"]);
    assert!(!well && said.contains("BAD   backend: ") && said.contains("provisioner_api_key"), "{said}");
}

async fn until(holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < SOON, "it never came");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
