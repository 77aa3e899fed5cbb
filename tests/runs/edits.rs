//! Threads that clients write, copy, rewind and page through.

use super::{Client, asked, kinds};
use crate::house::House;
use pudu_sim::model::{At, Reply};
use serde_json::{Value, json};

/// Returns the rows of a thread's messages: text, and the run if any.
async fn rows(client: &Client<'_>, thread: &str) -> Vec<(String, String)> {
    let page = client.get(&format!("/threads/{thread}/messages/page")).await;
    let told = |value: &Value| {
        value.as_str().map_or_else(|| value[0]["text"].as_str().unwrap().to_owned(), str::to_owned)
    };
    let rows = page["data"].as_array().unwrap().iter();
    rows.map(|row| (told(&row["content"]["content"]), row["run_id"].as_str().unwrap_or_default().to_owned()))
        .collect()
}

async fn runs(client: &Client<'_>, thread: &str) -> Vec<String> {
    let runs = client.get(&format!("/threads/{thread}/runs")).await;
    runs.as_array().unwrap().iter().rev().map(|run| run["run_id"].as_str().unwrap().to_owned()).collect()
}

/// Regenerates the newest answer of a thread.
async fn regenerate(client: &Client<'_>, thread: &str) -> Value {
    let page = client.get(&format!("/threads/{thread}/messages/page")).await;
    let newest = &page["data"].as_array().unwrap().last().unwrap()["content"]["id"];
    let prepared = client
        .post(&format!("/threads/{thread}/runs/regenerate/prepare"), json!({"message_id": newest}))
        .await;
    let body = json!({"input": prepared["input"], "checkpoint": prepared["checkpoint"], "metadata": prepared["metadata"]});
    client.post(&format!("/threads/{thread}/runs/wait"), body).await
}

/// Creates a thread with two answered questions.
async fn two_turns(client: &Client<'_>) -> String {
    let thread = client.thread().await;
    client.0.model.otherwise(|ask| Reply::text(&format!("re: {}", ask.last_user())).into());
    client.waits(&thread, "one").await;
    client.waits(&thread, "two").await;
    thread
}

#[tokio::test]
async fn an_answer_that_is_made_once_more_leaves_the_messages_before_it_to_their_runs() {
    let house = House::open("").await;
    let client = Client(&house);
    let thread = two_turns(&client).await;
    house.model.when(|ask| ask.last_user() == "two", |_| Reply::text("better").into());
    regenerate(&client, &thread).await;
    let runs = runs(&client, &thread).await;
    let wanted = [("one", 0), ("re: one", 0), ("two", 2), ("better", 2)];
    let wanted: Vec<(String, String)> =
        wanted.iter().map(|(text, run)| ((*text).to_owned(), runs[*run].clone())).collect();
    assert_eq!(rows(&client, &thread).await, wanted);
    let of_first = client.get(&format!("/threads/{thread}/runs/{}/messages", runs[0])).await;
    assert_eq!(of_first["data"].as_array().unwrap().len(), 2, "{of_first:#}");
}

#[tokio::test]
async fn a_copy_can_be_read_and_its_newest_answer_made_once_more() {
    let house = House::open("").await;
    let client = Client(&house);
    let thread = two_turns(&client).await;
    let copy = client.post(&format!("/threads/{thread}/copy"), json!({})).await;
    let copy = copy["thread_id"].as_str().unwrap();
    let said = |rows: Vec<(String, String)>| rows.into_iter().map(|(text, _)| text).collect::<Vec<_>>();
    assert_eq!(said(rows(&client, copy).await), ["one", "re: one", "two", "re: two"]);
    house.model.when(|ask| ask.last_user() == "two", |_| Reply::text("better").into());
    let values = regenerate(&client, copy).await;
    assert_eq!(kinds(&values), ["human", "ai", "human", "ai"]);
    assert_eq!(said(rows(&client, copy).await), ["one", "re: one", "two", "better"]);
    assert_eq!(said(rows(&client, &thread).await), ["one", "re: one", "two", "re: two"]);
}

/// Returns all runs that a thread mentions in its state, history and messages.
async fn named_runs(client: &Client<'_>, thread: &str) -> Vec<String> {
    let at = format!("/threads/{thread}");
    let mut all = vec![
        client.get(&at).await,
        client.get(&format!("{at}/state")).await,
        client.post(&format!("{at}/history"), json!({"limit": 100})).await,
        client.get(&format!("{at}/messages")).await,
        client.get(&format!("{at}/runs")).await,
    ];
    let mut named = Vec::new();
    while let Some(value) = all.pop() {
        match value {
            Value::Object(fields) => {
                for (key, value) in fields {
                    match value.as_str() {
                        Some(run) if key.ends_with("run_id") => named.push(run.to_owned()),
                        _ => all.push(value),
                    }
                }
            }
            Value::Array(values) => all.extend(values),
            _ => {}
        }
    }
    named
}

#[tokio::test]
async fn each_run_that_a_thread_names_can_be_asked_for() {
    let house = House::open("").await;
    let client = Client(&house);
    let thread = two_turns(&client).await;
    let copy = client.post(&format!("/threads/{thread}/copy"), json!({})).await["thread_id"].clone();
    let page = client.get(&format!("/threads/{thread}/messages/page")).await;
    let first = json!({"message_id": page["data"][1]["content"]["id"]});
    let branch = client.post(&format!("/threads/{thread}/branches"), first).await["thread_id"].clone();
    let written = client.thread().await;
    let values = json!({"values": {"messages": [{"type": "human", "content": "hello"}]}});
    client.post(&format!("/threads/{written}/state"), values).await;
    let of = |value: &Value| value.as_str().unwrap().to_owned();
    for bare in [of(&copy), of(&branch), written.clone()] {
        assert_eq!(named_runs(&client, &bare).await, [""; 0], "{bare}");
    }
    for thread in [of(&copy), of(&branch), written, thread.clone()] {
        client.waits(&thread, "more").await;
        let named = named_runs(&client, &thread).await;
        assert!(named.len() > 4, "{named:?}");
        for run in named {
            client.get(&format!("/threads/{thread}/runs/{run}")).await;
        }
    }
    // The newest question of a copy belongs to no run, and can be edited.
    let copy = client.post(&format!("/threads/{thread}/copy"), json!({})).await;
    let copy = copy["thread_id"].as_str().unwrap();
    let page = client.get(&format!("/threads/{copy}/messages/page")).await;
    let newest = json!({"message_id": page["data"].as_array().unwrap().last().unwrap()["content"]["id"]});
    let prepared = client.post(&format!("/threads/{copy}/runs/regenerate/prepare"), newest).await;
    assert!(prepared["target_run_id"].is_null() && prepared["metadata"]["regenerate_from_run_id"].is_null());
    // A deleted run is not mentioned any more.
    let run = client.get(&format!("/threads/{thread}/runs")).await[0]["run_id"].clone();
    let (status, _) = client.call("DELETE", &format!("/threads/{thread}/runs/{}", of(&run)), None).await;
    assert_eq!(status, 204);
    assert!(!named_runs(&client, &thread).await.contains(&of(&run)));
}

#[tokio::test]
async fn what_a_client_writes_keeps_the_rows_of_what_stays() {
    let house = House::open("").await;
    let client = Client(&house);
    let thread = client.thread().await;
    client.waits(&thread, "one").await;
    let before = rows(&client, &thread).await;
    let state = client.get(&format!("/threads/{thread}/state")).await;
    let mut messages = state["values"]["messages"].as_array().unwrap().clone();
    messages
        .push(json!({"type": "human", "content": "and", "id": "mine", "additional_kwargs": {"own": [1, 2]}}));
    let todos = json!([{"content": "look", "status": "pending"}]);
    let path = format!("/threads/{thread}/state");
    let written =
        client.post(&path, json!({"values": {"messages": messages, "todos": todos, "title": "Mine"}})).await;
    assert_eq!(written["values"]["messages"][2]["additional_kwargs"], json!({"own": [1, 2]}), "{written:#}");
    assert_eq!((&written["values"]["todos"], &written["values"]["title"]), (&todos, &json!("Mine")));
    let after = rows(&client, &thread).await;
    assert_eq!(after[..2], before[..]);
    assert_eq!((after.len(), after[2].0.as_str()), (3, "and"));
    // The newest checkpoint of the history equals the state.
    let history = client.post(&format!("/threads/{thread}/history"), json!({"limit": 2})).await;
    assert_eq!(history[0]["checkpoint_id"], written["checkpoint_id"]);
    assert_eq!(history[0]["values"]["messages"].as_array().unwrap().len(), 3);
    assert_eq!(history[0]["parent_checkpoint_id"], history[1]["checkpoint_id"]);
    for (values, why) in [
        (json!({"goal": "x"}), "unknown key `goal`"),
        (json!({"messages": 7}), "messages must be a list"),
        (json!({"todos": [{"content": "x"}]}), "status"),
        (json!({"title": "x".repeat(1025)}), "1024 bytes"),
    ] {
        let (status, told) =
            client.call("POST", &path, Some(json!({"values": values, "as_node": null}))).await;
        assert!(status == 422 && told.to_string().contains(why), "{status} {told}");
    }
}

#[tokio::test]
async fn a_thread_at_work_takes_no_values_and_no_title_with_them() {
    let house = House::open("").await;
    let client = Client(&house);
    let thread = client.thread().await;
    let mut hold = house.model.hold(1, At::Chunk(1));
    let run = client.begin(&thread, "hello", json!({})).await;
    hold.reached().await.unwrap();
    let values = json!({"values": {"title": "New", "todos": []}});
    let (status, _) = client.call("POST", &format!("/threads/{thread}/state"), Some(values)).await;
    assert_eq!(status, 409);
    let shown = client.get(&format!("/threads/{thread}")).await;
    assert_ne!(shown["values"]["title"], "New");
    hold.proceed();
    client.until(&thread, &run, "success").await;
}

#[tokio::test]
async fn a_run_begins_at_no_checkpoint_that_there_is_not_and_on_a_new_thread_only_if_asked() {
    let house = House::open("").await;
    let client = Client(&house);
    let thread = client.thread().await;
    client.waits(&thread, "one").await;
    let far = json!({"checkpoint_id": "00000000-0000-8000-8000-0000000fffff"});
    let (status, told) =
        client.call("POST", &format!("/threads/{thread}/runs/wait"), Some(asked("two", &far))).await;
    assert_eq!((status, &told["detail"]), (404, &json!("checkpoint not found")));
    let new = "00000000-0000-4000-8000-00000000beef";
    let path = format!("/threads/{new}/runs/wait");
    assert_eq!(client.call("POST", &path, Some(asked("hi", &json!({})))).await.0, 404);
    let created = client.post(&path, asked("hi", &json!({"if_not_exists": "create"}))).await;
    assert_eq!(kinds(&created), ["human", "ai"]);
    let stateless = asked(
        "hi",
        &json!({"if_not_exists": "reject", "config": {"configurable": {"thread_id": "00000000-0000-4000-8000-00000000cafe"}}}),
    );
    assert_eq!(client.call("POST", "/runs/wait", Some(stateless)).await.0, 404);
}

#[tokio::test]
async fn lists_find_what_was_asked_for_and_show_no_images() {
    let house = House::open("").await;
    let client = Client(&house);
    let thread = client.thread().await;
    let image = format!("data:image/png;base64,{}", "iVBORw0KGgo".repeat(1_000));
    let said = json!([{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": image}}]);
    let body = json!({"input": {"messages": [{"type": "human", "content": said}]}});
    let (status, told) = client.call("POST", &format!("/threads/{thread}/runs/wait"), Some(body)).await;
    assert_eq!(status, 200, "{told}");
    house.model.next(Reply::text("again"));
    client.waits(&thread, "once more").await;
    let path = format!("/threads/{thread}/runs");
    let listed = client.get(&path).await;
    assert_eq!(listed.as_array().unwrap().len(), 2);
    assert!(listed.to_string().len() < 8_000, "{} bytes", listed.to_string().len());
    let first = client.get(&format!("{path}?limit=1&offset=1&status=success")).await;
    assert_eq!(first[0]["run_id"], listed[1]["run_id"]);
    assert_eq!(client.get(&format!("{path}?status=error&limit=1")).await, json!([]));
    let metadata = json!({"metadata": {"notes": "x".repeat(70_000)}});
    assert_eq!(client.call("POST", &path, Some(asked("x", &metadata))).await.0, 413);
    // The oldest threads first, over more than a page of the store.
    for _ in 0..205 {
        client.thread().await;
    }
    let oldest = client.post("/threads/search", json!({"sort_order": "asc", "limit": 1})).await;
    assert_eq!(oldest[0]["thread_id"], thread);
}
