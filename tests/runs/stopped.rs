//! Stopped runs: their remains, messages to users, and that a stop survives the daemon.

use super::{Client, asked, shared_house};
use crate::house::{House, Talker, http};
use pudu_sim::model::{At, Reply};
use serde_json::{Value, json};

/// A house with a thread whose run has called a tool and is answering, or will do so after its start.
async fn at_work(crash_at: &str) -> (House, String, String) {
    let mut house = House::build("").await;
    house.set("PUDU_CRASH_AT", crash_at);
    house.start();
    let client = Client(&house);
    let thread = client.thread().await;
    client.waits(&thread, "hello").await;
    let mut hold = house.model.hold(2, At::Chunk(2));
    house.model.next(Reply::tool("ls", &json!({"path": "/mnt/user-data"})));
    house.model.next(Reply::text("all is there").words_per_chunk(1));
    let run = client.begin(&thread, "look", json!({})).await;
    hold.reached().await.unwrap();
    tokio::spawn(async move {
        // The model blocks for the rest of the test.
        std::future::pending::<()>().await;
        drop(hold);
    });
    (house, thread, run)
}

const BEFORE: [&str; 2] = ["human: hello", "ai: echo: hello"];

#[tokio::test]
async fn nothing_of_a_run_that_is_rolled_back_is_shown_or_stays() {
    let mut house = shared_house("").await;
    house.start();
    let (client, ada) = (Client(&house), Talker::new(&house, "Ada"));
    ada.says("one", "echo: one").await;
    let thread = client.thread_of_chat().await;
    let mut hold = house.model.hold(1, At::Chunk(2));
    house.model.next(Reply::text("never heard of").words_per_chunk(1));
    ada.say("two");
    hold.reached().await.unwrap();
    let run = client.begin(&thread, "three", json!({"multitask_strategy": "rollback"})).await;
    client.until(&thread, &run, "success").await;
    let shown = ada.reads_so(|text| !text.contains("never") && !text.contains("Thinking")).await;
    assert!(!shown.contains("echo: one"), "the answer before is not shown again: {shown}");
    assert_eq!(
        client.said(&thread).await,
        ["human: one", "ai: echo: one", "human: three", "ai: echo: three"]
    );
    drop(hold);

    let (house, thread, run) = at_work("").await;
    let client = Client(&house);
    let path = format!("/threads/{thread}/runs/{run}/cancel?wait=1&action=rollback");
    assert_eq!(client.call("POST", &path, None).await.0, 204);
    assert_eq!(client.said(&thread).await, BEFORE);
    let row = client.get(&format!("/threads/{thread}/runs/{run}")).await;
    let of = |key: &str| row[key].clone();
    assert_eq!((of("status"), of("error")), (json!("error"), json!("Rolled back by user")));
    assert_eq!((of("last_ai_message"), of("message_count")), (Value::Null, json!(0)));
    assert_eq!(client.call("POST", &path, None).await.0, 409, "it is over");

    let new = client.thread().await;
    let mut hold = house.model.hold(1, At::Start);
    let run = client.begin(&new, "not to be known", json!({})).await;
    hold.reached().await.unwrap();
    let path = format!("/threads/{new}/runs/{run}/cancel?wait=1&action=rollback");
    assert_eq!(client.call("POST", &path, None).await.0, 204);
    drop(hold);
    let left = client.get(&format!("/threads/{new}")).await;
    assert!(!left.to_string().contains("not to be known"), "{left}");
}

#[tokio::test]
async fn a_stop_that_a_death_cut_is_done_after_it() {
    for (action, status) in [("interrupt", "interrupted"), ("rollback", "error")] {
        let (mut house, thread, run) = at_work("run.cancel.after#1").await;
        let path = format!("/api/threads/{thread}/runs/{run}/cancel?action={action}");
        http().post(format!("http://{}{path}", house.address)).send().await.unwrap_err();
        house.dies().await;
        // Its tools may take long to start.
        let servers = json!({"mcpServers": {"mute": {"command": "sleep", "args": ["1000"]}}});
        std::fs::write(house.path("extensions_config.json"), servers.to_string()).unwrap();
        house.start();
        let client = Client(&house);
        client.until(&thread, &run, status).await;
        let said = client.said(&thread).await;
        let expect = match action {
            "rollback" => BEFORE.to_vec(),
            _ => [&BEFORE[..], &["human: look", "ai: ", "tool: "]].concat(),
        };
        assert_eq!(said.len(), expect.len(), "{said:?}");
        assert!(said.iter().zip(expect).all(|(is, wanted)| is.starts_with(wanted)), "{said:?}");
        assert_eq!(house.model.count(), 3, "nothing is asked for it");
    }
}

#[tokio::test]
async fn a_stop_of_a_chats_run_that_a_death_cut_is_done_after_it() {
    let mut house = shared_house("").await;
    house.set("PUDU_CRASH_AT", "run.cancel.after#1");
    house.start();
    let ada = Talker::new(&house, "Ada");
    let mut hold = house.model.hold(1, At::Chunk(2));
    house.model.next(Reply::text("never told").words_per_chunk(1));
    let client = Client(&house);
    ada.say("hello");
    hold.reached().await.unwrap();
    let thread = client.thread_of_chat().await;
    let run = client.working_run(&thread).await;
    let path = client.at(&format!("/threads/{thread}/runs/{run}/cancel"));
    http().post(path).send().await.unwrap_err();
    house.dies().await;
    house.start();
    let client = Client(&house);
    client.until(&thread, &run, "interrupted").await;
    ada.reads_so(|text| text.contains("Stopped")).await;
    assert_eq!(house.model.count(), 1, "nothing is asked for it");
}

#[tokio::test]
async fn who_stops_another_run_has_stopped_it_once_it_is_accepted() {
    for (strategy, status, left) in [("interrupt", "interrupted", 5), ("rollback", "error", 2)] {
        let (mut house, thread, run) = at_work("run.accept.after#3").await;
        let path = format!("http://{}/api/threads/{thread}/runs", house.address);
        let body = asked("instead", &json!({"multitask_strategy": strategy}));
        http().post(path).json(&body).send().await.unwrap_err();
        house.dies().await;
        house.start();
        let client = Client(&house);
        client.until(&thread, &run, status).await;
        let runs = client.get(&format!("/threads/{thread}/runs")).await;
        client.until(&thread, runs[0]["run_id"].as_str().unwrap(), "success").await;
        let said = client.said(&thread).await;
        assert_eq!(said[left..], ["human: instead", "ai: echo: instead"], "{said:?}");
    }
}

#[tokio::test]
async fn a_run_that_waits_is_stopped_at_once_and_leaves_nothing() {
    let (mut house, thread, run) = at_work("").await;
    let client = Client(&house);
    let enqueue = json!({"multitask_strategy": "enqueue"});
    let queued = client.begin(&thread, "more", enqueue.clone()).await;
    let cancel = |run: &str| format!("/threads/{thread}/runs/{run}/cancel?wait=1");
    assert_eq!(client.call("POST", &cancel(&queued), None).await.0, 204);
    assert_eq!(client.status(&thread, &queued).await, "interrupted");
    let again = client.begin(&thread, "more", enqueue).await;
    house.kill();
    let _hold = house.model.hold(1, At::Start);
    house.start();
    let client = Client(&house);
    assert_eq!(client.call("POST", &cancel(&again), None).await.0, 204);
    assert_eq!(client.status(&thread, &again).await, "interrupted");
    assert_ne!(client.status(&thread, &run).await, "interrupted");
    assert_eq!(client.call("POST", &cancel(&run), None).await.0, 204);
    let said = client.said(&thread).await;
    assert!(!said.contains(&"human: more".to_owned()) && said.len() >= 5, "{said:?}");
}
