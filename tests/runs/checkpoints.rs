//! Checkpoints: in the frames of a run, and in the history of its thread.

use super::{Client, Frame, asked, frames};
use crate::house::{House, http};
use pudu_sim::model::{At, Reply};
use serde_json::{Value, json};
use std::time::Duration;

const MODES: &str = "stream_mode=checkpoints&stream_mode=debug";

/// Runs a message with additional fields, and returns the checkpoints in its frames.
async fn runs(client: &Client<'_>, thread: &str, text: &str, more: Value) -> Vec<Value> {
    let mut body =
        asked(text, &json!({"stream_mode": ["checkpoints", "debug"], "on_disconnect": "continue"}));
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let path = client.at(&format!("/threads/{thread}/runs/stream"));
    let told = http().post(path).json(&body).send().await.unwrap().text().await.unwrap();
    told_of(&frames(&told))
}

/// Returns the checkpoints in frames of both modes.
fn told_of(frames: &[Frame]) -> Vec<Value> {
    let checkpoint = |(name, _, data): &Frame| match name.as_str() {
        "checkpoints" => Some(data.clone()),
        "debug" if data["type"] == "checkpoint" => Some(data["payload"].clone()),
        _ => None,
    };
    frames.iter().filter_map(checkpoint).collect()
}

/// Compares checkpoints of frames with the history: each has the parent of its step.
async fn compare(client: &Client<'_>, thread: &str, told: &[Value]) {
    let history = client.post(&format!("/threads/{thread}/history"), json!({"limit": 1000})).await;
    let id = |of: &Value| of["checkpoint_id"].as_str().unwrap().to_owned();
    for one in told {
        // Later rows of a step replace its checkpoint.
        let steps = history.as_array().unwrap().iter();
        let step = steps.rev().find(|step| id(step) >= id(one)).unwrap();
        let parent = &step["parent_checkpoint_id"];
        assert_eq!(&one["parent_checkpoint_id"], parent, "{} of {}", id(one), history);
        assert_eq!(one["parent_checkpoint"], step["parent_checkpoint"]);
        assert_eq!(&one["parent_config"]["configurable"]["checkpoint_id"], parent);
    }
}

#[tokio::test]
async fn frames_name_the_parents_that_the_history_has() {
    let mut house = House::open("").await;
    let (thread, mut told) = {
        let client = Client(&house);
        let thread = client.thread().await;
        let mut told = runs(&client, &thread, "one", json!({})).await;
        told.extend(runs(&client, &thread, "two", json!({})).await);
        // Parallel tools, one that changes the to-do list, and a sub-agent with its own steps.
        let todos = json!({"todos": [{"content": "Look", "status": "pending"}]});
        let task = json!({"description": "count", "prompt": "Count.", "subagent_type": "general-purpose"});
        let list = json!({"path": "/mnt/user-data"});
        house.model.next(Reply::tool("ls", &list).tool("ls", &list).tool("write_todos", &todos));
        house.model.next(Reply::tool("task", &task));
        house.model.next(Reply::tool("ls", &list));
        house.model.next(Reply::text("Seven."));
        house.model.next(Reply::text("There are seven."));
        told.extend(runs(&client, &thread, "three", json!({})).await);
        // A question, and its answer.
        let question = json!({"question": "Which?", "options": ["a"], "clarification_type": "missing_info"});
        house.model.next(Reply::tool("ask_clarification", &question));
        told.extend(runs(&client, &thread, "four", json!({})).await);
        told.extend(runs(&client, &thread, "a", json!({})).await);
        // A failed run, a stopped run, and the one that stopped it.
        house.model.next(Reply::status(401));
        told.extend(runs(&client, &thread, "five", json!({})).await);
        let mut hold = house.model.hold(1, At::Chunk(2));
        house.model.next(Reply::text("one two three").words_per_chunk(1));
        let stopped = client.begin(&thread, "six", json!({})).await;
        hold.reached().await.unwrap();
        told.extend(runs(&client, &thread, "seven", json!({"multitask_strategy": "interrupt"})).await);
        hold.proceed();
        told.extend(told_of(&client.follows(&thread, &stopped, None, MODES).await));
        // A goal, which is a row before the message, and values written by a client.
        client.call("PUT", &format!("/threads/{thread}/goal"), Some(json!({"objective": "count"}))).await;
        client.call("DELETE", &format!("/threads/{thread}/goal"), None).await;
        told.extend(runs(&client, &thread, "eight", json!({})).await);
        client.post(&format!("/threads/{thread}/state"), json!({"values": {"todos": []}})).await;
        told.extend(runs(&client, &thread, "nine", json!({})).await);
        // An edited question.
        let rows = client.get(&format!("/threads/{thread}/messages")).await;
        let asked = rows.as_array().unwrap().iter().rfind(|row| row["content"]["type"] == "human").unwrap();
        let edit = json!({"human_message_id": asked["content"]["id"], "replacement_text": "ten"});
        let prepared = client.post(&format!("/threads/{thread}/runs/edit-regenerate/prepare"), edit).await;
        house.model.next(Reply::text("Ten.").after(Duration::from_millis(20)));
        let more = json!({"input": prepared["input"], "checkpoint": prepared["checkpoint"]});
        told.extend(runs(&client, &thread, "", more).await);
        (thread, told)
    };
    assert!(told.len() > 40, "{}", told.len());
    compare(&Client(&house), &thread, &told).await;
    // A later reader receives the same for each run.
    house.stop().await;
    house.start();
    let client = Client(&house);
    told.clear();
    for run in client.get(&format!("/threads/{thread}/runs?limit=100")).await.as_array().unwrap() {
        let frames = client.follows(&thread, run["run_id"].as_str().unwrap(), None, MODES).await;
        told.extend(told_of(&frames));
    }
    assert!(told.len() > 40, "{}", told.len());
    compare(&client, &thread, &told).await;
}
