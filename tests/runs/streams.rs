//! Streams that are interrupted, replayed, and shared.

use super::{Client, Frame, asked, frames, names};
use crate::house::{House, SOON, http};
use pudu_sim::model::{At, Reply};
use reqwest::Response;
use serde_json::{Value, json};
use sqlx::{Connection, SqliteConnection};
use std::time::Instant;

/// Reads a stream up to a text, and returns the frames so far.
async fn reads(stream: &mut Response, wanted: &str) -> Vec<Frame> {
    let mut text = String::new();
    while !text.contains(wanted) || !text.ends_with("\n\n") {
        text.push_str(std::str::from_utf8(&stream.chunk().await.unwrap().unwrap()).unwrap());
    }
    frames(&text)
}

/// Joins the model's text by message IDs, like SDKs.
fn pieces(frames: &[Frame]) -> Vec<(String, String)> {
    let mut said: Vec<(String, String)> = Vec::new();
    for (name, _, data) in frames {
        if name == "messages" && data[0]["type"] == "AIMessageChunk" {
            let [id, text] = ["id", "content"].map(|key| data[0][key].as_str().unwrap().to_owned());
            match said.iter_mut().find(|(known, _)| *known == id) {
                Some((_, so_far)) => so_far.push_str(&text),
                None => said.push((id, text)),
            }
        }
    }
    said
}

fn last_values(frames: &[Frame]) -> &Value {
    &frames.iter().rfind(|frame| frame.0 == "values").unwrap().2["messages"]
}

/// SDKs append `Location` to the API's URL.
#[tokio::test]
async fn a_cut_stream_goes_on_where_its_head_says() {
    let house = House::open("").await;
    let client = Client(&house);
    let thread = client.thread().await;
    let body =
        asked("count", &json!({"on_disconnect": "continue", "stream_mode": ["messages-tuple", "values"]}));
    for base in ["/api", "/api/langgraph"] {
        let mut hold = house.model.hold(1, At::Chunk(2));
        house.model.next(Reply::text("one two three").words_per_chunk(1));
        let base = format!("http://{}{base}", house.address);
        let mut begun =
            http().post(format!("{base}/threads/{thread}/runs/stream")).json(&body).send().await.unwrap();
        let place = begun.headers()["location"].to_str().unwrap().to_owned();
        hold.reached().await.unwrap();
        let cut = reads(&mut begun, "one").await;
        drop(begun);
        hold.proceed();
        let again = http().get(format!("{base}{place}")).header("last-event-id", &cut.last().unwrap().1);
        let answer = again.send().await.unwrap();
        assert_eq!(answer.status(), 200, "{place}");
        let rest = frames(&answer.text().await.unwrap());
        let said = pieces(&[cut, rest.clone()].concat()).pop().unwrap();
        let answer = last_values(&rest).as_array().unwrap().last().unwrap();
        assert_eq!(said, (answer["id"].as_str().unwrap().to_owned(), "one two three".to_owned()));
    }
}

#[tokio::test]
async fn a_run_that_a_death_cut_is_read_from_its_beginning() {
    let mut house = House::open("").await;
    let mut hold = house.model.hold(2, At::Chunk(2));
    house.model.next(Reply::tool("ls", &json!({"path": "/mnt/user-data"})));
    house.model.next(Reply::text("never said").words_per_chunk(1));
    let modes = "stream_mode=values&stream_mode=messages-tuple";
    let (thread, run, before) = {
        let client = Client(&house);
        let thread = client.thread().await;
        let run = client.begin(&thread, "look", json!({})).await;
        let path = client.at(&format!("/threads/{thread}/runs/{run}/stream?{modes}"));
        let mut stream = http().get(path).send().await.unwrap();
        hold.reached().await.unwrap();
        let before = reads(&mut stream, "never").await;
        (thread, run, before)
    };
    house.kill();
    let mut held = house.model.hold(1, At::Chunk(2));
    house.model.next(Reply::text("all is there").words_per_chunk(1));
    house.start();
    let client = Client(&house);
    let path = client.at(&format!("/threads/{thread}/runs/{run}/stream?{modes}"));
    held.reached().await.unwrap();
    // Readers with nothing, with everything before the kill, with a part of it, and with later frames.
    let mut since = http().get(&path).send().await.unwrap();
    let since = reads(&mut since, "all").await;
    let whole: Vec<&Frame> = before.iter().filter(|frame| frame.1.ends_with("-0")).collect();
    let known = [
        None,
        Some("-1"),
        Some(&*whole[1].1),
        Some(&*whole.last().unwrap().1),
        Some(&*before.last().unwrap().1),
        Some(&*since.last().unwrap().1),
    ];
    let follow = known.map(|after| {
        let mut call = http().get(&path);
        if let Some(after) = after {
            call = call.header("last-event-id", after);
        }
        tokio::spawn(async move { frames(&call.send().await.unwrap().text().await.unwrap()) })
    });
    held.proceed();
    let mut told = Vec::new();
    for follow in follow {
        told.push(follow.await.unwrap());
    }
    let all = told[0].clone();
    assert_eq!(told[1], all);
    assert_eq!((names(&all)[0], *names(&all).last().unwrap()), ("metadata", "end"));
    let kinds: Vec<usize> = all
        .iter()
        .filter(|frame| frame.0 == "values")
        .map(|frame| frame.2["messages"].as_array().unwrap().len())
        .collect();
    assert_eq!(kinds[..4], [1, 2, 3, 4], "each step is told once");
    assert_eq!(pieces(&all).last().unwrap().1, "all is there");
    let behind = |id: &str| all[all.iter().position(|frame| frame.1 == id).unwrap() + 1..].to_vec();
    assert_eq!(told[2], behind(known[2].unwrap()), "a part of it is told once more");
    assert_eq!(told[3], behind(known[3].unwrap()));
    assert_eq!(names(&told[4])[..2], ["gap", "values"], "words that nobody remembers");
    assert_eq!(pieces(&told[4]).last().unwrap().1, "all is there");
    let rest = client.follows(&thread, &run, Some(&told[4][0].1), modes).await;
    assert_eq!(rest, told[4][1..], "who heard of the gap alone gets the values");
    assert_eq!(told[5], behind(known[5].unwrap()));
    assert_eq!(last_values(&all)[3]["content"], "all is there");
}

/// Returns frames without timestamps.
fn timeless(mut frames: Vec<Frame>) -> Vec<Frame> {
    fn strip(value: &mut Value) {
        if let Value::Object(fields) = value {
            fields.retain(|key, _| !["timestamp", "created_at", "ts"].contains(&key.as_str()));
        }
        match value {
            Value::Object(fields) => fields.values_mut().for_each(strip),
            Value::Array(list) => list.iter_mut().for_each(strip),
            _ => {}
        }
    }
    frames.iter_mut().for_each(|(_, _, data)| strip(data));
    frames
}

#[tokio::test]
async fn behind_the_id_of_each_frame_the_others_come_once_and_as_they_were() {
    let all = [
        "values",
        "updates",
        "messages-tuple",
        "messages",
        "custom",
        "events",
        "tasks",
        "debug",
        "checkpoints",
    ];
    let mut house = House::open("").await;
    house.model.next(Reply::tool("ls", &json!({"path": "/mnt/user-data"})));
    house.model.next(Reply::text("one two").words_per_chunk(1));
    let (thread, live) = {
        let client = Client(&house);
        let thread = client.thread().await;
        let body = asked("look", &json!({"stream_mode": all, "on_disconnect": "continue"}));
        let path = client.at(&format!("/threads/{thread}/runs/stream"));
        let live = http().post(path).json(&body).send().await.unwrap().text().await.unwrap();
        (thread, timeless(frames(&live)))
    };
    let run = live[0].2["run_id"].as_str().unwrap().to_owned();
    let modes = format!("stream_mode={}", all.join(","));
    let rest = async |house: &House, after: &str| {
        timeless(Client(house).follows(&thread, &run, Some(after), &modes).await)
    };
    let title =
        |frames: &[Frame]| frames.iter().rfind(|frame| frame.0 == "values").unwrap().2["title"].clone();
    assert_eq!(title(&live), "look", "{live:#?}");
    let renamed = json!({"values": {"title": "Another"}});
    Client(&house).post(&format!("/threads/{thread}/state"), renamed).await;
    for (at, (_, id, _)) in live.iter().enumerate().take(live.len() - 1) {
        assert_eq!(rest(&house, id).await, live[at + 1..], "behind {id}");
    }
    house.kill();
    house.start();
    // The log has no start events of nodes, and the chunks of an answer as one.
    let stored = timeless(Client(&house).follows(&thread, &run, None, &modes).await);
    assert_eq!(title(&stored), "look");
    for (at, (_, id, _)) in stored.iter().enumerate().take(stored.len() - 1) {
        assert_eq!(rest(&house, id).await, stored[at + 1..], "behind {id}");
    }
    let (_, last, _) = live.iter().rfind(|frame| frame.0 == "checkpoints").unwrap();
    let row = format!("{}-", last.split_once('-').unwrap().0);
    // There the last chunk is the complete answer.
    let behind_pieces =
        live.iter().position(|frame| frame.0 == "messages/partial" && frame.1.starts_with(&row));
    for (at, (_, id, _)) in live.iter().enumerate().take(live.len() - 1).skip(behind_pieces.unwrap()) {
        assert_eq!(rest(&house, id).await, live[at + 1..], "behind {id}");
    }
}

#[tokio::test]
async fn an_answer_that_broke_off_and_is_given_once_more_is_another_message() {
    let house = House::open("").await;
    let client = Client(&house);
    let thread = client.thread().await;
    house.model.next(Reply::text("Hel never").words_per_chunk(1).cut_after(1));
    house.model.next(Reply::text("Hello there").words_per_chunk(1));
    let body = asked("greet", &json!({"stream_mode": ["messages-tuple", "messages", "values"]}));
    let path = client.at(&format!("/threads/{thread}/runs/stream"));
    let told = frames(&http().post(path).json(&body).send().await.unwrap().text().await.unwrap());
    let answer = &last_values(&told)[1];
    let said = pieces(&told);
    assert!(said.len() == 2 && said[0].1.starts_with("Hel"), "{said:?}");
    assert_eq!(said[1], (answer["id"].as_str().unwrap().to_owned(), "Hello there".to_owned()));
    let page = client.get(&format!("/threads/{thread}/messages/page")).await;
    assert_eq!(page["data"][1]["content"]["id"], answer["id"]);
}

#[tokio::test]
async fn a_run_stops_with_its_last_reader_and_not_before() {
    let house = House::open("").await;
    let client = Client(&house);
    let thread = client.thread().await;
    let mut hold = house.model.hold(1, At::Chunk(2));
    house.model.next(Reply::text("one two three").words_per_chunk(1));
    let body = asked("count", &json!({"stream_mode": ["messages-tuple"]}));
    let path = client.at(&format!("/threads/{thread}/runs/stream"));
    let mut first = http().post(path).json(&body).send().await.unwrap();
    hold.reached().await.unwrap();
    reads(&mut first, "one").await;
    let runs = client.get(&format!("/threads/{thread}/runs")).await;
    let run = runs[0]["run_id"].as_str().unwrap();
    let second = http().get(client.at(&format!("/threads/{thread}/runs/{run}/stream"))).send();
    let mut second = second.await.unwrap();
    reads(&mut second, "one").await;
    client.until(&thread, run, "running").await;
    drop(first);
    // Effects of the first reader's disconnect are done when the daemon responds to these.
    for _ in 0..20 {
        assert_eq!(client.status(&thread, run).await, "running");
    }
    drop(second);
    client.until(&thread, run, "interrupted").await;
    hold.proceed();
}

/// The store is locked, so that the run is not accepted when its reader disconnects.
#[tokio::test]
async fn a_run_stops_with_a_reader_who_leaves_before_it_is_accepted() {
    let house = House::open("").await;
    let client = Client(&house);
    let thread = client.thread().await;
    let hold = house.model.hold(1, At::Chunk(1));
    let url = format!("sqlite://{}", house.path(".pudu/data/pudu.db").display());
    let mut store = SqliteConnection::connect(&url).await.unwrap();
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut store).await.unwrap();
    let path = client.at(&format!("/threads/{thread}/runs/stream"));
    let reader = tokio::spawn(http().post(path).json(&asked("hello", &json!({}))).send());
    let deadline = Instant::now() + SOON;
    while client.get(&format!("/threads/{thread}")).await["status"] != "busy" {
        assert!(Instant::now() < deadline, "{}", house.log());
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert!(!reader.is_finished());
    reader.abort();
    assert!(reader.await.unwrap_err().is_cancelled());
    sqlx::raw_sql("ROLLBACK").execute(&mut store).await.unwrap();
    while client.get(&format!("/threads/{thread}")).await["status"] == "busy" {
        assert!(Instant::now() < deadline, "{}", house.log());
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let runs = client.get(&format!("/threads/{thread}/runs")).await;
    assert_eq!(runs[0]["status"], "interrupted", "{runs}");
    drop(hold);
}
