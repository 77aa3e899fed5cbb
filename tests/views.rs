//! The stream mode `view`: a run as a chat shows it.

use crate::house::{House, SOON, http};
use pudu_sim::model::{At, Reply};
use serde_json::{Value, json};

/// Begins a run with the mode, and returns the open stream.
async fn begin(house: &House, thread: &str, text: &str) -> reqwest::Response {
    let url = format!("http://{}/api/threads/{thread}/runs/stream", house.address);
    let body = json!({
        "input": {"messages": [{"type": "human", "content": text}]},
        "if_not_exists": "create",
        "stream_mode": "view",
        "context": {"approvals": "ask"},
    });
    http().post(url).header("accept-language", "zh-CN").json(&body).send().await.unwrap()
}

/// Reads a stream until a frame satisfies a condition, and returns the names and the data of its frames.
async fn read(stream: &mut reqwest::Response, until: impl Fn(&str, &Value) -> bool) -> Vec<(String, Value)> {
    let (mut text, mut frames) = (String::new(), Vec::new());
    let read = async {
        loop {
            while let Some(end) = text.find("\n\n") {
                let frame: String = text.drain(..end + 2).collect();
                let part =
                    |key: &str| frame.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
                let (name, data) = (part("event: ").to_owned(), part("data: "));
                if name.is_empty() {
                    continue;
                }
                frames.push((name.clone(), serde_json::from_str(data).unwrap_or_default()));
                if until(&name, &frames.last().unwrap().1) {
                    return;
                }
            }
            text.push_str(std::str::from_utf8(&stream.chunk().await.unwrap().unwrap()).unwrap());
        }
    };
    tokio::time::timeout(SOON, read).await.unwrap();
    frames
}

/// Returns the last view among frames that end with the end of a stream.
fn last_view(frames: &[(String, Value)]) -> &Value {
    let (name, view) = frames.iter().rfind(|(name, _)| name != "error" && name != "end").unwrap();
    assert_eq!(name, "view", "{frames:?}");
    view
}

fn is_end(name: &str, _: &Value) -> bool {
    name == "end"
}

#[tokio::test]
async fn a_run_grows_in_its_views_and_each_connection_begins_with_a_whole_one() {
    let house = House::open("").await;
    house.model.next(Reply::text("one two three four").words_per_chunk(1));
    let mut hold = house.model.hold(1, At::Chunk(3));
    let mut stream = begin(&house, "t", "count").await;
    hold.reached().await.unwrap();
    let frames = read(&mut stream, |_, view| view["text"] == "one two").await;
    let (_, growing) = frames.last().unwrap();
    assert_eq!((&growing["done"], &growing["choices"][0]["action"]), (&json!(false), &json!("/stop")));
    let run = growing["run_id"].as_str().unwrap();
    let again = format!("http://{}/api/threads/t/runs/{run}/stream?stream_mode=view", house.address);
    let mut late = http().get(&again).send().await.unwrap();
    let seen = read(&mut late, |name, _| name == "view").await;
    assert_eq!(seen.last().unwrap().1["text"], "one two");
    hold.proceed();
    for stream in [&mut stream, &mut late] {
        let frames = read(stream, is_end).await;
        let view = last_view(&frames);
        assert_eq!(
            (&view["text"], &view["done"], &view["failed"]),
            (&json!("one two three four"), &json!(true), &json!(false))
        );
        assert_eq!(view["title"], "count");
    }
    let mut ended = http().get(&again).send().await.unwrap();
    let frames = read(&mut ended, is_end).await;
    assert_eq!(last_view(&frames)["text"], "one two three four");
}

#[tokio::test]
async fn the_last_view_says_in_the_readers_language_how_a_run_ended() {
    let mut house = House::open("").await;
    house.model.next(Reply::status(401).message("no such key"));
    let frames = read(&mut begin(&house, "t", "one").await, is_end).await;
    let view = last_view(&frames);
    assert!(view["failed"] == true && view["text"].as_str().unwrap().starts_with("⚠️ 模型"), "{view}");
    let run = view["run_id"].as_str().unwrap().to_owned();
    house.stop().await;
    house.start();
    // The process that ran it is gone: the end is read from the store.
    let url = format!("http://{}/api/threads/t/runs/{run}/stream?stream_mode=view", house.address);
    let frames = read(&mut http().get(url).send().await.unwrap(), is_end).await;
    let view = last_view(&frames);
    assert!(view["failed"] == true && view["text"].as_str().unwrap().starts_with("⚠️ The model's"), "{view}");
}

#[tokio::test]
async fn a_view_has_the_files_of_the_answer_and_what_changed() {
    let house = House::open("").await;
    let path = "/mnt/user-data/outputs/a.md";
    house.model.next(Reply::tool("write_file", &json!({"path": path, "content": "one\n"})));
    house.model.next(Reply::tool("present_files", &json!({"filepaths": [path]})));
    house.model.next(Reply::text("Written."));
    let frames = read(&mut begin(&house, "t", "write").await, is_end).await;
    let view = last_view(&frames);
    assert_eq!((&view["files"], &view["text"]), (&json!([path]), &json!("Written.")));
    assert!(view["diff"].as_str().unwrap().starts_with("A outputs/a.md +1 -0\n"), "{view}");
}
