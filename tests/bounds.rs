//! Calls that need more than the machine has: each returns an error to the model, and the daemon survives. A call that
//! crashed the daemon twice is not made a third time.

use crate::house::{House, SOON, Talker};
use pudu_sim::model::Reply;
use serde_json::{Value, json};
use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

const FILE: &str = "/mnt/user-data/workspace/a.txt";

/// Makes the model call a tool and then answer; returns the tool's result.
async fn call(house: &House, ada: &Talker, tool: &str, args: Value) -> String {
    let before = house.model.count();
    house.model.next(Reply::tool(tool, &args));
    house.model.next(Reply::text("Well."));
    ada.say("go on");
    house.model.wait(3 * SOON, |model| (model.count() >= before + 2).then_some(())).await.unwrap();
    ada.reads("Well.").await;
    house.model.requests().last().unwrap().last_tool()
}

/// A house with file tools.
async fn house() -> (House, Talker) {
    let mut house = House::build("").await;
    // A call that ends the daemon would end the tests as well, and the daemon's memory is measured.
    house.in_its_own_process();
    // What is asked for here is longer than most models take, and nothing of it is to be left out.
    let config = std::fs::read_to_string(house.path("config.yaml")).unwrap();
    house.write_config(
        &config.replace("    model: sim-1\n", "    model: sim-1\n    context_window: 100000000\n"),
    );
    house.start();
    let ada = Talker::new(&house, "Ada");
    (house, ada)
}

/// A pattern of names with this number of nested lists in braces.
fn deep(lists: usize) -> String {
    format!("{}a{}", "{".repeat(lists), "}".repeat(lists))
}

/// Returns the workspace of the only thread, on this machine.
fn workspace(house: &House) -> PathBuf {
    house.threads().remove(0).join("user-data/workspace")
}

#[tokio::test]
async fn a_call_that_asks_for_too_much_ends_no_daemon() {
    let (house, ada) = house().await;
    let pid = house.pid();
    let root = "/mnt/user-data";
    for (tool, args) in [
        ("glob", json!({"pattern": deep(30_000), "path": root})),
        ("glob", json!({"pattern": deep(3_000), "path": root})),
        ("grep", json!({"pattern": "x", "glob": deep(30_000), "path": root})),
        ("grep", json!({"pattern": "(a|".repeat(100_000), "path": root})),
    ] {
        let said = call(&house, &ada, tool, args).await;
        assert!(said.starts_with("Error: the pattern"), "{tool}: {said}");
    }
    let content = "a".repeat(1 << 20);
    assert_eq!(call(&house, &ada, "write_file", json!({"path": FILE, "content": content})).await, "OK");
    let args = json!({"path": FILE, "old_str": "a", "new_str": "x".repeat(4_000), "replace_all": true});
    let said = call(&house, &ada, "str_replace", args).await;
    assert!(said.contains("would have 4194304000 bytes"), "{said}");
    assert_eq!((house.pid(), house.log().contains("panicked")), (pid, false), "{}", house.log());
}

#[tokio::test]
async fn a_call_of_a_sub_agent_that_asks_for_too_much_ends_no_daemon() {
    let (house, ada) = house().await;
    let args = json!({"pattern": deep(30_000), "path": "/mnt/user-data"});
    let task = json!({"description": "find", "prompt": "Find it.", "subagent_type": "general-purpose"});
    house.model.next(Reply::tool("task", &task));
    house.model.next(Reply::tool("glob", &args));
    house.model.next(Reply::text("Nothing there."));
    house.model.next(Reply::text("Well."));
    ada.says("go on", "Well.").await;
    let told: Vec<String> = house.model.requests().iter().map(|ask| ask.last_tool()).collect();
    assert!(told[2].starts_with("Error: the pattern"), "{told:?}");
    assert_eq!(told[3], "Task Succeeded. Result: Nothing there.");
}

/// Returns the peak memory of the daemon, in MiB.
fn peak(house: &House) -> u64 {
    let status = format!("/proc/{}/status", house.pid().as_raw_nonzero());
    let status = std::fs::read_to_string(status).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

#[tokio::test]
async fn forty_reads_of_large_files_in_one_reply_wait_for_each_other() {
    let (house, ada) = house().await;
    call(&house, &ada, "write_file", json!({"path": FILE, "content": "small"})).await;
    let line = format!("{}\n", "x".repeat(999));
    std::fs::write(workspace(&house).join("large.txt"), line.repeat(8_000)).unwrap();
    let before = peak(&house);
    let read = json!({"path": "/mnt/user-data/workspace/large.txt", "end_line": 7_999});
    let reply = (1..40).fold(Reply::tool("read_file", &read), |reply, _| reply.tool("read_file", &read));
    house.model.next(reply);
    house.model.next(Reply::text("All read."));
    let asked = house.model.count();
    ada.say("read it forty times");
    // Without optimization, reading this much takes a while.
    let read = Duration::from_secs(180);
    house.model.wait(read, |model| (model.count() >= asked + 2).then_some(())).await.unwrap();
    ada.reads("All read.").await;
    let last = house.model.requests().pop().unwrap();
    let told: Vec<&Value> = last.messages().iter().filter(|message| message["role"] == "tool").collect();
    let read = |told: &&&Value| told["content"].as_str().is_some_and(|text| text.contains("xxx"));
    assert_eq!(told.iter().filter(read).count(), 40, "each is read in its turn");
    let grown = peak(&house) - before;
    assert!(grown < 160, "the daemon took {grown} MiB more");
}

/// Serves a page that never responds, and counts its requests.
pub async fn silent() -> (String, Arc<AtomicUsize>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.2:0").await.unwrap();
    let (address, asked) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let count = asked.clone();
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            open.push(stream);
        }
    });
    (format!("http://{address}/"), asked)
}

/// Waits for this number of requests to the page.
pub async fn reached(asked: &AtomicUsize, count: usize) {
    let deadline = Instant::now() + SOON;
    while asked.load(Ordering::SeqCst) < count {
        assert!(Instant::now() < deadline, "it was not asked for {count} times");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_call_in_which_the_daemon_died_twice_is_not_made_a_third_time() {
    let rest =
        "tools:\n  - {use: 'pudu.web:web_fetch_tool', timeout: 600}\nweb:\n  allowed_hosts: [127.0.0.2]\n";
    let mut house = House::furnish(Default::default(), "", rest).await;
    house.start();
    let ada = Talker::new(&house, "Ada");
    let (page, asked) = silent().await;
    // The model repeats the call whatever the result is, until it is told to stop.
    let insists = json!({"url": page});
    let told_not_to = "is not made again";
    house.model.when(
        move |ask| !ask.last_tool().contains(told_not_to),
        move |_| Reply::tool("web_fetch", &insists).into(),
    );
    house.model.otherwise(|_| Reply::text("I could not read it.").into());
    ada.say("read it");
    for death in 1..=2 {
        reached(&asked, death).await;
        house.kill();
        house.start();
    }
    ada.reads("I could not read it.").await;
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    let told = house.model.requests().pop().unwrap().last_tool();
    assert!(told.starts_with("Error: ") && told.contains(told_not_to), "{told}");
}

#[tokio::test]
async fn a_command_in_which_the_daemon_died_twice_is_not_run_a_third_time() {
    let (mut house, ada) = house().await;
    if !house.log().contains("confining commands") {
        println!("skipped: commands cannot be confined here");
        return;
    }
    let command = json!({"command": "echo >> ../outputs/times; sleep 600"});
    let told_not_to = "is not made again";
    house.model.when(
        move |ask| !ask.last_tool().contains(told_not_to),
        move |_| Reply::tool("bash", &command).into(),
    );
    house.model.otherwise(|_| Reply::text("I stopped.").into());
    ada.say("run it");
    for death in 1..=2 {
        run(&house, death).await;
        house.kill();
        house.start();
    }
    ada.reads("I stopped.").await;
    assert_eq!(times(&house), Some(2));
}

/// A command interrupted by a regular shutdown is only reported as interrupted, and does not count as the cause.
#[tokio::test]
async fn a_command_that_stops_in_order_cut_is_run_as_often_as_the_model_wants() {
    let (mut house, ada) = house().await;
    if !house.log().contains("confining commands") {
        println!("skipped: commands cannot be confined here");
        return;
    }
    house.configure("", "  shutdown_grace_period_seconds: 0.1\n");
    let command = json!({"command": "echo >> ../outputs/times; sleep 600"});
    house.model.otherwise(move |_| Reply::tool("bash", &command).into());
    ada.say("run it");
    for stop in 1..=3 {
        run(&house, stop).await;
        assert!(house.stop().await.success());
        house.start();
    }
    run(&house, 4).await;
    for request in &house.model.requests()[1..] {
        let told = request.last_tool();
        assert!(told.starts_with("Error: a restart interrupted this call."), "{told}");
    }
}

/// Returns how often the command was run.
fn times(house: &House) -> Option<usize> {
    let thread = house.threads().pop()?;
    Some(std::fs::read_to_string(thread.join("user-data/outputs/times")).ok()?.lines().count())
}

/// Waits until the command was run this often.
async fn run(house: &House, often: usize) {
    let deadline = Instant::now() + SOON;
    while times(house) != Some(often) {
        assert!(Instant::now() < deadline, "it was not run {often} times: {:?}", times(house));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// If the daemon is root, `read_file` is not: on a mount it can read the same files as a command, and keeps their
/// owners.
#[tokio::test]
async fn file_tools_of_a_daemon_that_is_root_have_the_rights_of_its_commands() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: only as root does the daemon have rights to keep from its tools");
    }
    let host = tempfile::tempdir().unwrap();
    let at = |name: &str| host.path().join(name);
    for (name, mode) in [("", 0o755), ("secret", 0o600), ("shown", 0o644), ("annes", 0o666)] {
        if !name.is_empty() {
            std::fs::write(at(name), "of the host").unwrap();
        }
        std::fs::set_permissions(at(name), PermissionsExt::from_mode(mode)).unwrap();
    }
    chown(at("annes"), Some(12_345), Some(12_345)).unwrap();
    let mounts = format!(
        "sandbox:\n  mounts:\n    - host_path: {}\n      container_path: /mnt/host\n",
        host.path().display()
    );
    let mut house = House::furnish(Default::default(), "", &mounts).await;
    house.start();
    let ada = Talker::new(&house, "Ada");
    for (tool, args, expect) in [
        ("read_file", json!({"path": "/mnt/host/shown"}), "of the host"),
        ("read_file", json!({"path": "/mnt/host/secret"}), "Error: /mnt/host/secret: Permission denied"),
        ("grep", json!({"pattern": "host", "path": "/mnt/host", "glob": "secret"}), "No line matches"),
        (
            "write_file",
            json!({"path": "/mnt/host/new", "content": "x"}),
            "Error: /mnt/host/new: Permission denied",
        ),
        ("read_file", json!({"path": "/mnt/host/annes"}), "of the host"),
        ("write_file", json!({"path": "/mnt/host/annes", "content": "x", "append": true}), "OK"),
        ("read_file", json!({"path": "/mnt/host/annes"}), "of the hostx"),
        ("write_file", json!({"path": "/mnt/host/annes", "content": "new"}), "OK"),
        ("view_image", json!({"image_path": "/mnt/host/secret"}), "Error: "),
    ] {
        let said = call(&house, &ada, tool, args.clone()).await;
        assert!(said.starts_with(expect), "{tool} {args}: {said}");
    }
    assert_eq!(std::fs::read(at("annes")).unwrap(), b"new");
    let owners = ["", "secret", "shown", "annes"].map(|name| std::fs::metadata(at(name)).unwrap().uid());
    assert_eq!(owners, [0, 0, 0, 12_345]);
    assert!(!at("new").exists());
}
