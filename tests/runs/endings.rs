//! How sub-agents end, as clients see it in the thread.

use super::{Client, Frame};
use crate::house::House;
use pudu_sim::model::{At, Reply};
use serde_json::{Value, json};

const MODES: &str = "stream_mode=messages-tuple&stream_mode=updates&stream_mode=values";

/// Returns the call that gives a sub-agent this task.
fn task(about: &str) -> Reply {
    let args = json!({"description": about, "prompt": about, "subagent_type": "general-purpose"});
    Reply::tool("task", &args)
}

/// Returns the additional fields of the first tool message among messages.
fn extra(messages: &Value) -> Option<Value> {
    let tool = messages.as_array()?.iter().find(|message| message["type"] == "tool")?;
    Some(tool["additional_kwargs"].clone())
}

/// Returns the additional fields of the tool message in frames of each mode.
fn streamed(frames: &[Frame]) -> Vec<Value> {
    let piece = |(name, _, data): &Frame| (name == "messages").then(|| extra(data))?;
    let update = |(name, _, data): &Frame| (name == "updates").then(|| extra(&data["tools"]["messages"]))?;
    let values = |(name, _, data): &Frame| (name == "values").then(|| extra(&data["messages"]))?;
    let first = |of: &dyn Fn(&Frame) -> Option<Value>| frames.iter().find_map(of).unwrap();
    vec![first(&piece), first(&update), first(&values)]
}

/// Returns the additional fields of the tool message wherever a client reads the thread.
async fn stored(client: &Client<'_>, thread: &str) -> Vec<Value> {
    let at = format!("/threads/{thread}");
    let state = client.get(&format!("{at}/state")).await;
    let history = client.post(&format!("{at}/history"), json!({})).await;
    let page = client.get(&format!("{at}/messages/page")).await;
    let rows: Vec<Value> =
        page["data"].as_array().unwrap().iter().map(|row| row["content"].clone()).collect();
    let all = [&state["values"]["messages"], &history[0]["values"]["messages"], &json!(rows)];
    all.map(|messages| extra(messages).unwrap()).to_vec()
}

#[tokio::test]
async fn how_a_sub_agent_ended_is_in_its_tool_message_in_streams_and_after_a_restart() {
    let mut house = House::open("").await;
    let digest = "85057ca56610ab13e8f3c9e6b15fbf31714710e0197317f4bb242f4bc6dcc925";
    let (report, refused) = (Reply::text("Seven apples.").usage(20, 2), Reply::status(401));
    let ends = [
        (
            report,
            json!({
                "subagent_status": "completed", "subagent_result_brief": "Seven apples.",
                "subagent_result_sha256": digest, "subagent_model_name": "sim",
                "subagent_token_usage": {"input_tokens": 20, "output_tokens": 2, "total_tokens": 22},
            }),
        ),
        (
            refused,
            json!({
                "subagent_status": "failed", "subagent_model_name": "sim",
                "subagent_error": "The model's provider refused the key (HTTP 401). Whoever runs this bot has to mend it.",
            }),
        ),
    ];
    let mut threads = Vec::new();
    for (reply, expect) in ends {
        let client = Client(&house);
        let thread = client.thread().await;
        house.model.next(task("count apples"));
        house.model.next(reply);
        house.model.next(Reply::text("Done."));
        let run = client.begin(&thread, "count", json!({})).await;
        let told = client.follows(&thread, &run, None, MODES).await;
        assert_eq!(streamed(&told), [(); 3].map(|()| expect.clone()));
        threads.push((thread, expect));
    }
    for _ in 0..2 {
        for (thread, expect) in &threads {
            assert_eq!(stored(&Client(&house), thread).await, [(); 3].map(|()| expect.clone()));
        }
        house.stop().await;
        house.start();
    }
}

#[tokio::test]
async fn a_sub_agent_that_was_stopped_or_never_worked_has_a_status() {
    let house = House::open("").await;
    let client = Client(&house);
    let thread = client.thread().await;
    let mut hold = house.model.hold(2, At::Start);
    house.model.next(task("wait"));
    house.model.next(Reply::text("never"));
    let run = client.begin(&thread, "go", json!({})).await;
    hold.reached().await.unwrap();
    client.call("POST", &format!("/threads/{thread}/runs/{run}/cancel?wait=1"), None).await;
    hold.proceed();
    let stopped = json!({"subagent_status": "cancelled", "subagent_model_name": "sim"});
    assert_eq!(stored(&client, &thread).await, [(); 3].map(|()| stopped.clone()));

    let thread = client.thread().await;
    house.model.next(Reply::tool("task", &json!({"description": "a", "prompt": "b", "subagent_type": "c"})));
    client.waits(&thread, "go").await;
    let extra = stored(&client, &thread).await.remove(0);
    assert_eq!(extra["subagent_status"], "failed", "{extra}");
    let error = extra["subagent_error"].as_str().unwrap();
    assert!(error.starts_with("there is no sub-agent c"), "{error}");
}
