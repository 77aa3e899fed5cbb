//! Runs that resume after a kill or a stop of the daemon.

use super::{Client, shared_house};
use crate::{
    bounds::{reached, silent},
    house::{House, SOON, Talker},
};
use pudu_sim::model::{At, Reply};
use serde_json::json;
use sqlx::{Connection, SqliteConnection};
use std::{sync::atomic::Ordering, time::Instant};

/// Changes the store while no daemon is running.
pub(super) async fn damage(house: &House, sql: &'static str) {
    let url = format!("sqlite://{}", house.path(".pudu/data/pudu.db").display());
    let mut store = SqliteConnection::connect(&url).await.unwrap();
    assert!(sqlx::query(sql).execute(&mut store).await.unwrap().rows_affected() > 0);
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_run_whose_thread_cannot_be_read_ends() {
    let mut house = House::open("").await;
    let mut hold = house.model.hold(1, At::Start);
    let (thread, run) = {
        let client = Client(&house);
        let thread = client.thread().await;
        let run = client.begin(&thread, "hello", json!({})).await;
        (thread, run)
    };
    hold.reached().await.unwrap();
    house.kill();
    damage(&house, "UPDATE log SET body = 'garbage'").await;
    house.start();
    let client = Client(&house);
    client.until(&thread, &run, "error").await;
    let row = client.get(&format!("/threads/{thread}/runs/{run}")).await;
    assert!(row["error"].is_string(), "{row}");
    drop(hold);
}

/// A call is not the cause of a regular shutdown, but of later crashes.
#[tokio::test]
async fn a_call_that_ends_the_daemon_is_made_no_more_though_a_stop_cut_it_first() {
    let rest = "  shutdown_grace_period_seconds: 0.1\ntools:\n  - {use: 'pudu.web:web_fetch_tool', timeout: 600}\nweb:\n  allowed_hosts: [127.0.0.2]\n";
    let mut house = House::furnish(Default::default(), "", rest).await;
    house.start();
    let (page, asked) = silent().await;
    let insists = json!({"url": page});
    let told_not_to = "is not made again";
    house.model.when(
        move |ask| !ask.last_tool().contains(told_not_to),
        move |_| Reply::tool("web_fetch", &insists).into(),
    );
    house.model.otherwise(|_| Reply::text("I could not read it.").into());
    let (thread, run) = {
        let client = Client(&house);
        let thread = client.thread().await;
        let run = client.begin(&thread, "read it", json!({})).await;
        (thread, run)
    };
    reached(&asked, 1).await;
    assert!(house.stop().await.success());
    house.start();
    for call in 2..=3 {
        reached(&asked, call).await;
        house.kill();
        house.start();
    }
    let client = Client(&house);
    client.until(&thread, &run, "success").await;
    assert_eq!(asked.load(Ordering::SeqCst), 3);
    assert_eq!(client.said(&thread).await.last().unwrap(), "ai: I could not read it.");
}

/// Runs of clients and turns of chats wait for tools, but not forever.
#[tokio::test]
async fn what_was_cut_goes_on_without_tools_that_do_not_come() {
    let mut house = House::open("").await;
    let mut hold = house.model.hold(1, At::Start);
    let (thread, run) = {
        let client = Client(&house);
        let thread = client.thread().await;
        let run = client.begin(&thread, "hello", json!({})).await;
        (thread, run)
    };
    hold.reached().await.unwrap();
    house.kill();
    hold.cut();
    let servers = json!({"mcpServers": {"mute": {"command": "sleep", "args": ["1000"]}}});
    std::fs::write(house.path("extensions_config.json"), servers.to_string()).unwrap();
    house.start();
    house.logs("continuing without slow MCP servers").await;
    Client(&house).until(&thread, &run, "success").await;
}

/// The dead run has called a tool; the chat's message is only in the inbox.
#[tokio::test]
async fn a_run_that_was_cut_goes_on_before_what_a_chat_asks_next() {
    let mut house = shared_house("").await;
    house.set("PUDU_CRASH_AT", "turn.open.before#2");
    house.start();
    let ada = Talker::new(&house, "Ada");
    let mut hold = house.model.hold(3, At::Chunk(1));
    let (thread, run) = {
        let client = Client(&house);
        ada.says("hello", "echo: hello").await;
        let thread = client.thread_of_chat().await;
        house.model.next(Reply::tool("ls", &json!({"path": "/mnt/user-data"})));
        house.model.next(Reply::text("never said").words_per_chunk(1));
        let run = client.begin(&thread, "look", json!({})).await;
        hold.reached().await.unwrap();
        ada.say("and then?");
        (thread, run)
    };
    house.dies().await;
    house.start();
    let client = Client(&house);
    client.until(&thread, &run, "success").await;
    let deadline = Instant::now() + SOON;
    loop {
        let said = client.said(&thread).await;
        if said.last().is_some_and(|last| last == "ai: echo: and then?") {
            let who: Vec<&str> = said.iter().map(|said| said.split(':').next().unwrap()).collect();
            assert_eq!(who, ["human", "ai", "human", "ai", "tool", "ai", "human", "ai"], "{said:?}");
            assert_eq!(said[5], "ai: echo: look");
            break;
        }
        assert!(Instant::now() < deadline, "{said:?}");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}
