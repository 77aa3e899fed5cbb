//! Known secrets in the API's threads and runs: a model repeats one, as a whole or in chunks.

use crate::house::{House, http};
use pudu_sim::model::{At, Reply};
use serde_json::{Value, json};

/// The model's key, as the house configures it.
const SECRET: &str = "sk-simulated-key-0123456789";

async fn ask(house: &House, method: &str, path: &str, body: Value) -> String {
    let call = http().request(method.parse().unwrap(), format!("http://{}/api{path}", house.address));
    let call = if body.is_null() { call } else { call.json(&body) };
    let told = call.send().await.unwrap();
    assert!(told.status().is_success(), "{method} {path}: {}", told.status());
    told.text().await.unwrap()
}

/// Joins the chunks in frames: `place` finds one in a frame's data.
fn joined(stream: &str, event: &str, place: impl Fn(&Value) -> Option<String>) -> String {
    let name = format!("event: {event}");
    let frames = stream.split("\n\n").filter(|frame| frame.lines().any(|line| line == name));
    let data = frames.filter_map(|frame| frame.lines().find_map(|line| line.strip_prefix("data: ")));
    data.filter_map(|data| place(&serde_json::from_str(data).unwrap())).collect()
}

#[tokio::test]
async fn no_answer_of_the_api_has_a_secret_however_it_is_cut() {
    let house = House::open("").await;
    let thread = ask(&house, "POST", "/threads", json!({"thread_id": "t"})).await;
    assert!(thread.contains("\"t\""), "{thread}");
    let todo = json!([{"content": format!("use {SECRET}"), "status": "pending"}]);
    let values = json!({"values": {"title": format!("about {SECRET}"), "todos": todo}});
    ask(&house, "POST", "/threads/t/state", values).await;
    let words = format!("it is {SECRET} and s no more");
    let cut = ["it is s", "k-simu", "lated-key-01", "2345", "6789 and ", "s", " no more"];
    house.model.next(Reply::text(&words).chunks(cut).reasoning(&format!("hm, {SECRET}")));
    house.model.otherwise(|_| Reply::text("SATISFIED").into());
    let mut hold = house.model.hold(1, At::Start);
    let modes = json!(["values", "updates", "messages", "messages-tuple", "events", "debug", "custom"]);
    let body = json!({
        "assistant_id": "lead_agent", "stream_mode": modes,
        "input": {"messages": [{"type": "human", "content": format!("is it {SECRET}?")}]},
    });
    let begun: Value = serde_json::from_str(&ask(&house, "POST", "/threads/t/runs", body).await).unwrap();
    let run = begun["run_id"].as_str().unwrap();
    hold.reached().await.unwrap();
    let query = "stream_mode=values&stream_mode=updates&stream_mode=messages-tuple&stream_mode=messages&stream_mode=events&stream_mode=debug";
    let streamed = tokio::spawn({
        let url = format!("http://{}/api/threads/t/runs/{run}/stream?{query}", house.address);
        async move { http().get(url).send().await.unwrap().text().await.unwrap() }
    });
    hold.proceed();
    let streamed = streamed.await.unwrap();
    let shown = "it is [secret] and s no more";
    let content = |data: &Value| {
        data[0]["content"].as_str().map(str::to_owned).filter(|_| data[0]["type"] == "AIMessageChunk")
    };
    assert_eq!(joined(&streamed, "messages", content), shown, "{streamed}");
    let goal = json!({"objective": format!("find {SECRET}")});
    ask(&house, "PUT", "/threads/t/goal", goal).await;
    let mut told = vec![("the stream", streamed)];
    for path in [
        "/threads/t/messages",
        "/threads/t/messages/page",
        "/threads/t/state",
        "/threads/t",
        "/threads/t/goal",
        "/threads/t/runs",
    ] {
        told.push((path, ask(&house, "GET", path, Value::Null).await));
    }
    for path in ["/threads/t/history", "/threads/search"] {
        told.push((path, ask(&house, "POST", path, json!({})).await));
    }
    for rest in ["", "/messages", "/events", "/stream", "/join"] {
        told.push((rest, ask(&house, "GET", &format!("/threads/t/runs/{run}{rest}"), Value::Null).await));
    }
    told.push(("the run", ask(&house, "GET", &format!("/runs/{run}/messages"), Value::Null).await));
    for (place, text) in told {
        assert!(!text.contains(SECRET), "{place}: {text}");
        assert!(text.contains("[secret]"), "{place} tells nothing: {text}");
    }
}
