//! LangChain's events of a run.

use super::{Client, Frame};
use crate::house::House;
use pudu_sim::model::Reply;
use serde_json::{Value, json};

/// Returns the events in frames.
fn events(frames: &[Frame]) -> Vec<Value> {
    frames.iter().filter(|frame| frame.0 == "events").map(|frame| frame.2.clone()).collect()
}

/// Returns the events of a kind about an item of this name.
fn of<'e>(events: &'e [Value], event: &str, name: &str) -> Vec<&'e Value> {
    events.iter().filter(|told| told["event"] == event && told["name"] == name).collect()
}

#[tokio::test]
async fn the_graph_is_told_with_its_input_and_output_and_holds_its_nodes() {
    let mut house = House::open("").await;
    let (thread, run, live) = {
        let client = Client(&house);
        let thread = client.thread().await;
        client.waits(&thread, "before").await;
        house.model.next(Reply::tool("ls", &json!({"path": "/mnt/user-data"})));
        house.model.next(Reply::text("one two").words_per_chunk(1));
        let run = client.begin(&thread, "look", json!({})).await;
        let live = events(&client.follows(&thread, &run, None, "stream_mode=events").await);
        (thread, run, live)
    };
    let [first, last] = [live.first().unwrap(), live.last().unwrap()];
    for (told, event) in [(first, "on_chain_start"), (last, "on_chain_end")] {
        let what = ["event", "name", "run_id", "parent_ids"].map(|key| told[key].clone());
        assert_eq!(what, [json!(event), json!("LangGraph"), json!(run), json!([])]);
        assert_eq!(told["data"]["input"], json!({"messages": [{"type": "human", "content": "look"}]}));
        assert_eq!(told["metadata"]["thread_id"], thread.as_str());
    }
    let state = Client(&house).get(&format!("/threads/{thread}/state")).await;
    assert_eq!(last["data"]["output"]["messages"], state["values"]["messages"]);
    // Events inside of the graph name their parent, and start and end have the same ID.
    let nodes = [("model", "on_chat_model", "sim"), ("tools", "on_tool", "ls")];
    for (node, call, name) in nodes {
        let [begun, ended] = ["on_chain_start", "on_chain_end"].map(|event| of(&live, event, node));
        assert_eq!(begun.len(), if node == "model" { 2 } else { 1 });
        for (begun, ended) in begun.iter().zip(&ended) {
            assert_eq!((&begun["parent_ids"], &begun["run_id"]), (&json!([run]), &ended["run_id"]));
        }
        let calls = ["start", "end"].map(|end| of(&live, &format!("{call}_{end}"), name));
        for (at, (begun, ended)) in calls[0].iter().zip(&calls[1]).enumerate() {
            assert_eq!(begun["run_id"], ended["run_id"]);
            assert_eq!(ended["parent_ids"], json!([run, ended_node(&live, node, at)]));
        }
    }
    let named: Vec<&Value> =
        live.iter().filter(|told| told["event"].as_str().unwrap().starts_with("on_chat_model_")).collect();
    assert!(!named.is_empty());
    for told in named {
        let names = [&told["name"], &told["metadata"]["ls_model_name"], &told["metadata"]["model_name"]];
        assert_eq!(names, [&json!("sim"); 3], "{told}");
    }
    let ids: std::collections::BTreeSet<String> =
        live.iter().map(|told| told["run_id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids.len(), 7, "the graph, three nodes and their calls");
    assert!(ids.iter().all(|id| id.len() == 36), "{ids:?}");
    // After a restart a reader receives the same events of the graph.
    house.stop().await;
    house.start();
    let stored = events(&Client(&house).follows(&thread, &run, None, "stream_mode=events").await);
    assert_eq!((stored.first(), stored.last()), (Some(first), Some(last)));
}

/// Returns the id of a node that ended.
fn ended_node(events: &[Value], node: &str, at: usize) -> Value {
    of(events, "on_chain_end", node)[at]["run_id"].clone()
}

#[tokio::test]
async fn the_first_run_of_a_thread_names_its_model_from_the_start() {
    let house = House::open("").await;
    let client = Client(&house);
    let thread = client.thread().await;
    house.model.next(Reply::text("one two").words_per_chunk(1));
    let run = client.begin(&thread, "hello", json!({})).await;
    let modes = "stream_mode=events&stream_mode=messages-tuple";
    let frames = client.follows(&thread, &run, None, modes).await;
    let told = events(&frames);
    for kind in ["start", "stream", "end"] {
        let calls = of(&told, &format!("on_chat_model_{kind}"), "sim");
        assert!(!calls.is_empty(), "{kind}: {told:?}");
        assert!(calls.iter().all(|call| call["metadata"]["ls_model_name"] == "sim"), "{calls:?}");
    }
    let pieces: Vec<&Frame> = frames.iter().filter(|frame| frame.0 == "messages").collect();
    assert!(!pieces.is_empty());
    assert!(pieces.iter().all(|frame| frame.2[1]["model_name"] == "sim"), "{pieces:?}");
}

#[tokio::test]
async fn a_graph_that_failed_has_a_beginning_and_no_end() {
    let house = House::open("").await;
    let client = Client(&house);
    let thread = client.thread().await;
    house.model.next(Reply::status(401));
    let run = client.begin(&thread, "hello", json!({})).await;
    let told = events(&client.follows(&thread, &run, None, "stream_mode=events").await);
    assert_eq!(of(&told, "on_chain_start", "LangGraph").len(), 1);
    assert_eq!(of(&told, "on_chain_end", "LangGraph").len(), 0);
}
