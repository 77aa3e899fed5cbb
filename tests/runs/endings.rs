//! How sub-agents and runs end, as shown to clients in the thread.

use super::{Client, Frame, kinds, names, shared_house};
use crate::house::{House, Talker};
use pudu_sim::model::{Answer, At, Reply};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

const MODES: &str = "stream_mode=messages-tuple&stream_mode=updates&stream_mode=values";

fn digest(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns a call that starts a sub-agent with this task.
fn task(about: &str) -> Answer {
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

/// Returns the additional fields of the tool message from all routes that read the thread.
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
    // A long report is stored in a file, and the result contains a part.
    let long = "One apple. ".repeat(2_000);
    let long = long.trim_end();
    let brief = format!("{}\n...\n{}", &long[..1_330], &long[long.len() - 665..]);
    let ends: [(Reply, Value); 3] = [
        (
            Reply::text("Seven apples.").usage(20, 2).into(),
            json!({
                "subagent_status": "completed", "subagent_result_brief": "Seven apples.",
                "subagent_result_sha256": digest("Seven apples."), "subagent_model_name": "sim",
                "subagent_token_usage": {"input_tokens": 20, "output_tokens": 2, "total_tokens": 22},
            }),
        ),
        (
            Reply::text(long).usage(10, 5).into(),
            json!({
                "subagent_status": "completed", "subagent_result_brief": brief,
                "subagent_result_sha256": digest(long), "subagent_model_name": "sim",
                "subagent_token_usage": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15},
            }),
        ),
        (
            Reply::status(401).into(),
            json!({
                "subagent_status": "failed", "subagent_model_name": "sim",
                "subagent_error": "The model's provider rejected the API key (HTTP 401: scripted status 401). Please contact your admin.",
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
    assert!(error.contains("there is no sub-agent c"), "{error}");
}

/// Returns the last message of a thread.
async fn last(client: &Client<'_>, thread: &str) -> Value {
    let state = client.get(&format!("/threads/{thread}/state")).await;
    state["values"]["messages"].as_array().unwrap().last().unwrap().clone()
}

#[tokio::test]
async fn a_run_that_failed_leaves_an_answer_that_no_model_reads() {
    let mut house = House::open("").await;
    let refused = "The model's provider rejected the API key (HTTP 401: scripted status 401). Please contact your admin.";
    let (thread, run) = {
        let client = Client(&house);
        let thread = client.thread().await;
        house.model.next(Reply::status(401));
        let run = client.begin(&thread, "hello", json!({})).await;
        let told = client.follows(&thread, &run, None, &format!("{MODES}&stream_mode=checkpoints")).await;
        let values = told.iter().rfind(|frame| frame.0 == "values").unwrap();
        let piece = told.iter().find(|frame| frame.0 == "messages").unwrap();
        assert_eq!(kinds(&values.2), ["human", "ai"]);
        assert_eq!(piece.2[0]["content"], refused);
        assert_eq!(piece.2[0]["additional_kwargs"]["deerflow_error_fallback"], true);
        assert_eq!(piece.2[0]["id"], values.2["messages"][1]["id"]);
        assert_eq!(names(&told)[told.len() - 2..], ["error", "end"]);
        // A later reader receives the same messages from the log.
        let again = client.follows(&thread, &run, Some(&told[0].1), MODES).await;
        assert_eq!(again.iter().rfind(|frame| frame.0 == "values").unwrap().2, values.2);
        (thread, run)
    };
    let expect = json!({
        "deerflow_error_fallback": true, "error_type": "ModelAuthError", "error_reason": "auth", "error_detail": refused,
    });
    for _ in 0..2 {
        let client = Client(&house);
        let last = last(&client, &thread).await;
        assert_eq!((&last["type"], &last["content"]), (&json!("ai"), &json!(refused)));
        assert_eq!(last["additional_kwargs"], expect);
        let page = client.get(&format!("/threads/{thread}/messages/page")).await;
        assert_eq!(page["data"][1]["content"]["content"], refused);
        assert_eq!(page["data"][1]["run_id"], run.as_str());
        let state = client.get(&format!("/threads/{thread}/state")).await;
        assert_eq!(state["next"], json!(["model"]), "it can be tried once more");
        assert_eq!(client.get(&format!("/threads/{thread}")).await["status"], "error");
        house.stop().await;
        house.start();
    }
    let client = Client(&house);
    client.waits(&thread, "again").await;
    let asked = house.model.requests().pop().unwrap();
    let said: Vec<&Value> = asked.messages().iter().skip(1).map(|message| &message["role"]).collect();
    assert!(said.iter().all(|role| *role == "user"), "{asked:?}");
    assert!(!format!("{asked:?}").contains("rejected the API key"), "{asked:?}");
    assert_eq!(
        kinds(&client.get(&format!("/threads/{thread}/state")).await["values"]),
        ["human", "ai", "human", "ai"]
    );
}

#[tokio::test]
async fn a_run_that_used_up_its_calls_says_so_and_can_go_on() {
    let house = House::open("").await;
    let client = Client(&house);
    let thread = client.thread().await;
    house.model.next(Reply::tool("ls", &json!({"path": "/mnt/user-data"})));
    let run = client.begin(&thread, "look", json!({"config": {"recursion_limit": 1}})).await;
    client.until(&thread, &run, "error").await;
    let said = client.said(&thread).await;
    assert_eq!((said.len(), said[3].as_str()), (4, "ai: The run used up its model calls."));
    assert_eq!(last(&client, &thread).await["additional_kwargs"]["error_type"], "GraphRecursionError");
    let wait = format!("/threads/{thread}/runs/wait");
    client.post(&wait, json!({"assistant_id": "lead_agent", "input": null})).await;
    let asked = house.model.requests().pop().unwrap();
    assert_eq!(asked.last_role(), "tool", "{asked:?}");
    let said = client.said(&thread).await;
    assert_eq!((said.len(), said[3].starts_with("ai: echo")), (4, true), "{said:?}");
}

#[tokio::test]
async fn a_chat_is_told_of_a_failure_once_and_its_thread_keeps_none() {
    let mut house = shared_house("").await;
    house.start();
    let (client, ada) = (Client(&house), Talker::new(&house, "Ada"));
    house.model.next(Reply::status(401));
    ada.say("hello");
    ada.reads_so(|text| text.contains("rejected the API key")).await;
    let thread = client.thread_of_chat().await;
    assert_eq!(client.said(&thread).await, ["human: hello"]);
    // A failed client run on the thread of a chat leaves one, which is not a line of the chat.
    house.model.next(Reply::status(401));
    let run = client.begin(&thread, "and now?", json!({})).await;
    client.until(&thread, &run, "error").await;
    assert_eq!(client.said(&thread).await.len(), 3);
    ada.says("once more", "echo: once more").await;
    assert_eq!(ada.answers().len(), 2);
}
