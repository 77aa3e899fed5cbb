//! Calls that ask for more than a machine has: each ends with a word to the model, and the daemon lives on. And what
//! brought it down twice all the same is not tried a third time.

use crate::house::{House, SOON, Talker};
use pudu_sim::model::Reply;
use serde_json::{Value, json};
use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

const FILE: &str = "/mnt/user-data/workspace/a.txt";

/// Lets the model make a call and then answer; returns what it was told of the call.
async fn call(house: &House, ada: &Talker, tool: &str, args: Value) -> String {
    let before = house.model.count();
    house.model.next(Reply::tool(tool, &args));
    house.model.next(Reply::text("Well."));
    ada.say("go on");
    house.model.wait(SOON, |model| (model.count() >= before + 2).then_some(())).await.unwrap();
    ada.reads("Well.").await;
    house.model.requests().last().unwrap().last_tool()
}

/// A house with the tools for files.
async fn house() -> (House, Talker) {
    let mut house = House::build("").await;
    house.start();
    let ada = Talker::new(&house, "Ada");
    (house, ada)
}

/// A pattern of names with so many lists in braces, one in the other.
fn deep(lists: usize) -> String {
    format!("{}a{}", "{".repeat(lists), "}".repeat(lists))
}

/// Returns the workspace of the only thread, on this machine.
fn workspace(house: &House) -> PathBuf {
    let mut threads = std::fs::read_dir(house.path(".pudu/users/default/threads")).unwrap();
    threads.next().unwrap().unwrap().path().join("user-data/workspace")
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

/// Returns the most memory that the daemon ever had, in MiB.
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
    std::fs::write(workspace(&house).join("large.txt"), line.repeat(16_000)).unwrap();
    let before = peak(&house);
    let read = json!({"path": "/mnt/user-data/workspace/large.txt", "end_line": 15_999});
    let reply = (1..40).fold(Reply::tool("read_file", &read), |reply, _| reply.tool("read_file", &read));
    house.model.next(reply);
    house.model.next(Reply::text("All read."));
    ada.says("read it forty times", "All read.").await;
    let last = house.model.requests().pop().unwrap();
    let told: Vec<&Value> = last.messages().iter().filter(|message| message["role"] == "tool").collect();
    let read = |told: &&&Value| told["content"].as_str().is_some_and(|text| text.starts_with("xxx"));
    assert_eq!(told.iter().filter(read).count(), 40, "each is read in its turn");
    let grown = peak(&house) - before;
    assert!(grown < 200, "the daemon took {grown} MiB more");
}

/// A page that is never answered, and how often somebody asked for it.
async fn silent() -> (String, Arc<AtomicUsize>) {
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

/// Waits until a page was asked for so often.
async fn reached(asked: &AtomicUsize, count: usize) {
    let deadline = std::time::Instant::now() + SOON;
    while asked.load(Ordering::SeqCst) < count {
        assert!(std::time::Instant::now() < deadline, "it was not asked for {count} times");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
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
    // The model insists: whatever it is told, it makes the same call once more, until it was told not to.
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
    if !house.log().contains("commands are confined") {
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
    let times = |house: &House| {
        let threads = std::fs::read_dir(house.path(".pudu/users/default/threads"));
        let thread = threads.ok().and_then(|mut threads| threads.next())?.ok()?.path();
        Some(std::fs::read_to_string(thread.join("user-data/outputs/times")).ok()?.lines().count())
    };
    for death in 1..=2 {
        let deadline = std::time::Instant::now() + SOON;
        while times(&house) != Some(death) {
            assert!(
                std::time::Instant::now() < deadline,
                "it was not run {death} times: {:?}",
                times(&house)
            );
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        house.kill();
        house.start();
    }
    ada.reads("I stopped.").await;
    assert_eq!(times(&house), Some(2));
}
