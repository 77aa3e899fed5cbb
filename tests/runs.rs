//! Threads and runs as used by LangGraph clients, with kills of the daemon, closed connections and concurrent clients.

mod approvals;
mod changes;
mod checkpoints;
mod edits;
mod endings;
mod events;
mod options;
mod protocol;
mod resumed;
mod stopped;
mod streams;
mod threads;

use crate::house::{House, SOON, Talker, http};
use pudu_sim::model::{At, Reply};
use serde_json::{Value, json};
use std::time::Instant;

/// A client of the gateway.
struct Client<'h>(&'h House);

/// A frame of a stream: its event, ID and data.
type Frame = (String, String, Value);

impl Client<'_> {
    fn at(&self, path: &str) -> String {
        format!("http://{}/api{path}", self.0.address)
    }

    async fn call(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let mut call = http().request(method.parse().unwrap(), self.at(path));
        if let Some(body) = body {
            call = call.json(&body);
        }
        let answer = call.send().await.unwrap();
        let status = answer.status().as_u16();
        (status, serde_json::from_str(&answer.text().await.unwrap()).unwrap_or_default())
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        let (status, answer) = self.call("POST", path, Some(body)).await;
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    async fn get(&self, path: &str) -> Value {
        let (status, answer) = self.call("GET", path, None).await;
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    async fn thread(&self) -> String {
        self.post("/threads", json!({})).await["thread_id"].as_str().unwrap().to_owned()
    }

    async fn begin(&self, thread: &str, text: &str, more: Value) -> String {
        let run = self.post(&format!("/threads/{thread}/runs"), asked(text, &more)).await;
        run["run_id"].as_str().unwrap().to_owned()
    }

    async fn waits(&self, thread: &str, text: &str) -> Value {
        self.post(&format!("/threads/{thread}/runs/wait"), asked(text, &json!({}))).await
    }

    async fn status(&self, thread: &str, run: &str) -> String {
        let run = self.get(&format!("/threads/{thread}/runs/{run}")).await;
        run["status"].as_str().unwrap().to_owned()
    }

    async fn until(&self, thread: &str, run: &str, wanted: &str) {
        let deadline = Instant::now() + SOON;
        while self.status(thread, run).await != wanted {
            assert!(Instant::now() < deadline, "{}: {}", self.status(thread, run).await, self.0.log());
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }

    /// Returns the active run; a chat's run is stored with the next write.
    async fn working_run(&self, thread: &str) -> String {
        let deadline = Instant::now() + SOON;
        loop {
            let working = self.get(&format!("/threads/{thread}/runs?status=running")).await;
            if let Some(run) = working[0]["run_id"].as_str() {
                return run.to_owned();
            }
            assert!(Instant::now() < deadline, "no run works: {}", self.0.log());
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }

    async fn follows(&self, thread: &str, run: &str, after: Option<&str>, modes: &str) -> Vec<Frame> {
        let path = format!("/threads/{thread}/runs/{run}/stream?{modes}");
        let mut call = http().get(self.at(&path));
        if let Some(after) = after {
            call = call.header("last-event-id", after);
        }
        frames(&call.send().await.unwrap().text().await.unwrap())
    }

    /// Returns the messages of a thread with their speakers.
    async fn said(&self, thread: &str) -> Vec<String> {
        let values = self.get(&format!("/threads/{thread}/state")).await;
        let messages = values["values"]["messages"].as_array().unwrap().iter();
        messages
            .map(|message| {
                format!("{}: {}", message["type"].as_str().unwrap(), message["content"].as_str().unwrap())
            })
            .collect()
    }

    /// Returns the newest thread.
    async fn thread_of_chat(&self) -> String {
        self.post("/threads/search", json!({})).await[0]["thread_id"].as_str().unwrap().to_owned()
    }
}

/// Builds a house in which the person of a chat and the callers of the API are one user. The daemon is not started.
async fn shared_house(rest: &str) -> House {
    House::furnish(Default::default(), "", &format!("  unpaired_people: shared\n{rest}")).await
}

impl House {
    /// Waits until the daemon died at the expected point.
    async fn dies(&mut self) {
        assert!(self.ended(SOON).await.is_some(), "nothing passed the point:\n{}", self.log());
        self.set("PUDU_CRASH_AT", "");
    }
}

fn asked(text: &str, more: &Value) -> Value {
    let mut body =
        json!({"assistant_id": "lead_agent", "input": {"messages": [{"type": "human", "content": text}]}});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

/// Parses frames, whose lines must have the order event, data, id.
fn frames(text: &str) -> Vec<Frame> {
    let read = |frame: &str| {
        let mut lines = frame.lines();
        let name = lines.next()?.strip_prefix("event: ")?.to_owned();
        let data = lines.next()?.strip_prefix("data: ")?;
        let id = lines.next().and_then(|line| line.strip_prefix("id: ")).unwrap_or_default();
        Some((name, id.to_owned(), serde_json::from_str(data).unwrap()))
    };
    text.split("\n\n").filter_map(read).collect()
}

fn names(frames: &[Frame]) -> Vec<&str> {
    frames.iter().map(|(name, ..)| name.as_str()).collect()
}

fn kinds(values: &Value) -> Vec<&str> {
    values["messages"].as_array().unwrap().iter().map(|message| message["type"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_run_that_was_accepted_ends_once_though_the_daemon_dies() {
    let mut house = House::open("").await;
    let mut hold = house.model.hold(2, At::Chunk(1));
    house.model.next(Reply::tool("ls", &json!({"path": "/mnt/user-data"})));
    house.model.next(Reply::text("all is there").words_per_chunk(1));
    house.model.next(Reply::text("all is still there"));
    house.model.next(Reply::text("and more"));
    let (thread, run, queued) = {
        let client = Client(&house);
        let thread = client.thread().await;
        let run = client.begin(&thread, "look", json!({})).await;
        hold.reached().await.unwrap();
        let queued = client.begin(&thread, "more?", json!({"multitask_strategy": "enqueue"})).await;
        assert_eq!(client.status(&thread, &queued).await, "pending");
        (thread, run, queued)
    };
    house.kill();
    hold.proceed();
    house.start();
    let client = Client(&house);
    let values = client.get(&format!("/threads/{thread}/runs/{queued}/join")).await;
    assert_eq!(kinds(&values), ["human", "ai", "tool", "ai", "human", "ai"], "{values:#}");
    let texts: Vec<&str> = values["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["content"].as_str().unwrap())
        .collect();
    assert_eq!((texts[0], texts[3], texts[4], texts[5]), ("look", "all is still there", "more?", "and more"));
    for run in [&run, &queued] {
        assert_eq!(client.status(&thread, run).await, "success");
    }
    let row = client.get(&format!("/threads/{thread}/runs/{run}")).await;
    assert_eq!(
        (&row["first_human_message"], &row["last_ai_message"]),
        (&json!("look"), &json!("all is still there"))
    );
    house.kill();
    house.start();
    let client = Client(&house);
    assert_eq!(client.get(&format!("/threads/{thread}")).await["values"]["messages"], values["messages"]);
    assert_eq!(client.get(&format!("/threads/{thread}/runs")).await.as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_stream_is_read_again_from_the_log_after_a_restart() {
    let mut house = House::open("").await;
    house.model.next(Reply::tool("ls", &json!({"path": "/mnt/user-data"})));
    house.model.next(Reply::text("all is there").words_per_chunk(1));
    let modes = "stream_mode=values&stream_mode=messages-tuple&stream_mode=updates";
    let (thread, run, live) = {
        let client = Client(&house);
        let thread = client.thread().await;
        let run = client.begin(&thread, "look", json!({})).await;
        let live = client.follows(&thread, &run, Some("-1"), modes).await;
        (thread, run, live)
    };
    assert_eq!((names(&live)[0], *names(&live).last().unwrap()), ("metadata", "end"));
    house.kill();
    house.start();
    let client = Client(&house);
    let again = client.follows(&thread, &run, None, modes).await;
    let whole = |frames: &[Frame]| -> Vec<(String, Value)> {
        let wanted = frames.iter().filter(|frame| matches!(frame.0.as_str(), "values" | "updates"));
        // The title may be newer than the beginning of the stream.
        let untitled = |mut values: Value| {
            values.as_object_mut().unwrap().remove("title");
            values
        };
        wanted.map(|frame| (frame.0.clone(), untitled(frame.2.clone()))).collect()
    };
    assert_eq!(whole(&again), whole(&live)[..whole(&again).len()]);
    let said = |frames: &[Frame]| -> String {
        let pieces =
            frames.iter().filter(|frame| frame.0 == "messages" && frame.2[0]["type"] == "AIMessageChunk");
        pieces.map(|frame| frame.2[0]["content"].as_str().unwrap()).collect()
    };
    assert_eq!((said(&again), said(&live)), ("all is there".into(), "all is there".into()));
    let (at, (_, id, _)) = again.iter().enumerate().find(|(_, frame)| frame.0 == "values").unwrap();
    assert_eq!(client.follows(&thread, &run, Some(id), modes).await, again[at + 1..]);
    let is_piece = |frame: &&Frame| frame.0 == "messages" && frame.1.split('-').nth(1) != Some("0");
    let cut = live.iter().rfind(is_piece).unwrap();
    let rest = client.follows(&thread, &run, Some(&cut.1), modes).await;
    assert_eq!(
        names(&rest),
        ["gap", "values", "values", "end"],
        "pieces are gone, and that is told: {rest:?}"
    );
    assert_eq!(rest[0].2["requested_event_id"], cut.1.as_str());
    assert_eq!(rest[1].2["messages"], live.iter().rfind(|frame| frame.0 == "values").unwrap().2["messages"]);
}

#[tokio::test]
async fn a_run_outlives_its_reader_only_if_it_is_to() {
    for (disconnect, end) in [("cancel", "interrupted"), ("continue", "success")] {
        let house = House::open("").await;
        let client = Client(&house);
        let thread = client.thread().await;
        let mut hold = house.model.hold(1, At::Chunk(2));
        house.model.next(Reply::text("one two three").words_per_chunk(1));
        let path = format!("/threads/{thread}/runs/stream");
        let body = asked("count", &json!({"on_disconnect": disconnect, "stream_mode": ["messages-tuple"]}));
        let answer = http().post(client.at(&path)).json(&body).send().await.unwrap();
        let place = answer.headers()["content-location"].to_str().unwrap().to_owned();
        assert_eq!(answer.headers()["cache-control"], "no-cache, no-transform");
        hold.reached().await.unwrap();
        drop(answer);
        let run = place.rsplit('/').next().unwrap();
        if disconnect == "cancel" {
            client.until(&thread, run, end).await;
        }
        hold.proceed();
        client.until(&thread, run, end).await;
        let values = client.get(&format!("/threads/{thread}/state")).await;
        assert_eq!(kinds(&values["values"]), ["human", "ai"], "what was said so far stays");
    }
}

#[tokio::test]
async fn rows_of_a_thread_are_paged_and_judged() {
    let house = House::open("").await;
    let client = Client(&house);
    let thread = client.thread().await;
    for n in 0..4 {
        client.waits(&thread, &format!("number {n}")).await;
    }
    let newest = client.get(&format!("/threads/{thread}/messages/page?limit=3")).await;
    assert_eq!((newest["data"].as_array().unwrap().len(), &newest["has_more"]), (3, &json!(true)));
    let before = newest["next_before_seq"].as_i64().unwrap();
    let older = client.get(&format!("/threads/{thread}/messages/page?limit=50&before_seq={before}")).await;
    assert_eq!((older["data"].as_array().unwrap().len(), &older["has_more"]), (5, &json!(false)));
    let seqs: Vec<i64> = [&older, &newest]
        .iter()
        .flat_map(|page| page["data"].as_array().unwrap().iter().map(|row| row["seq"].as_i64().unwrap()))
        .collect();
    assert!(seqs.is_sorted_by(|a, b| a < b), "{seqs:?}");
    let run = newest["data"][2]["run_id"].as_str().unwrap();
    let judged = format!("/threads/{thread}/runs/{run}/feedback");
    let (status, kept) = client.call("PUT", &judged, Some(json!({"rating": 1, "comment": "good"}))).await;
    assert_eq!((status, &kept["rating"], &kept["comment"]), (200, &json!(1), &json!("good")));
    client.call("PUT", &judged, Some(json!({"rating": -1}))).await;
    for wrong in [json!({"rating": i64::MIN}), json!({"rating": 0})] {
        assert_eq!(client.call("PUT", &judged, Some(wrong)).await.0, 400);
    }
    // Values without keys are no valid feedback.
    assert_eq!(client.call("PUT", &judged, Some(json!([1, null, null]))).await.0, 422);
    let stats = client.get(&format!("{judged}/stats")).await;
    assert_eq!(stats, json!({"run_id": run, "total": 1, "positive": 0, "negative": 1}));
    let page = client.get(&format!("/threads/{thread}/messages/page?limit=3")).await;
    assert_eq!(page["data"][2]["feedback"]["rating"], -1);
    assert_eq!(client.call("DELETE", &judged, None).await, (200, json!({"success": true})));
    let events = client.get(&format!("/threads/{thread}/runs/{run}/events")).await;
    let kinds: Vec<&str> =
        events.as_array().unwrap().iter().map(|event| event["event_type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["run.start", "llm.human.input", "llm.ai.response", "run.end"]);
}

#[tokio::test]
async fn garbage_is_refused_and_costs_nothing() {
    let house = House::open("").await;
    let client = Client(&house);
    let thread = client.thread().await;
    let [runs, compact, history] =
        ["runs", "compact", "history"].map(|what| format!("/threads/{thread}/{what}"));
    let run = |more: Value| {
        let mut body = json!({"input": "hello"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let says = |message: Value| json!({"input": {"messages": [message]}});
    for (path, body, expect, why) in [
        (runs.as_str(), run(json!({"surprise": 1})), 422, "surprise"),
        (&runs, run(json!({"webhook": "http://a"})), 422, "webhook"),
        (&runs, run(json!({"multitask_strategy": "maybe"})), 422, "multitask_strategy: expected one of"),
        (&runs, run(json!({"multitask_strategy": 1})), 422, "multitask_strategy: expected text"),
        (&runs, run(json!({"stream_mode": ["values", 7]})), 422, "stream_mode must be a mode"),
        (&runs, run(json!({"stream_mode": "typo"})), 422, "unknown mode `typo`; the modes are values, "),
        ("/runs/stream", run(json!({"stream_mode": ["values", "typo"]})), 422, "unknown mode `typo`"),
        ("/runs/wait", run(json!({"stream_mode": "tools"})), 422, "unknown mode `tools`"),
        (&runs, run(json!({"on_disconnect": "die"})), 422, "on_disconnect"),
        (&runs, json!({"checkpoint_id": "x", "input": null}), 422, "checkpoint"),
        (&runs, json!({"input": 7}), 422, "input: expected an object"),
        (&runs, json!({"input": {}}), 422, "there is no message"),
        (&runs, json!({"input": {"messages": []}}), 422, "there is no message"),
        (&runs, json!({"input": null}), 422, "there is no message"),
        (&runs, json!({"input": {"mesages": ["hello"]}}), 422, "`messages` is missing"),
        (&runs, run(json!({"command": 5})), 422, "command: expected an object"),
        (&runs, run(json!({"command": {"resume": "a"}})), 422, "command"),
        (&runs, run(json!({"command": {"goto": "model"}})), 422, "command.goto"),
        (&runs, run(json!({"checkpoint": 5})), 422, "checkpoint: expected an object"),
        (&runs, run(json!({"checkpoint": {"name": "a"}})), 422, "checkpoint: unknown key `name`"),
        (&runs, run(json!({"checkpoint": {"thread_id": "other"}})), 422, "checkpoint.thread_id"),
        (&runs, run(json!({"config": {"configurable": {"checkpoint_id": 5}}})), 422, "checkpoint"),
        (&runs, run(json!({"config": {"recursion_limit": "a"}})), 422, "config.recursion_limit: expected"),
        (&runs, run(json!({"context": {"agent_name": 5}})), 422, "agent_name"),
        (&runs, run(json!({"context": {"is_bootstrap": "true"}})), 422, "is_bootstrap"),
        (&runs, run(json!({"stream_resumable": "x"})), 422, "stream_resumable: expected true or false"),
        (&runs, run(json!({"durability": "never"})), 422, "durability"),
        (&runs, run(json!({"if_not_exists": "maybe"})), 422, "if_not_exists"),
        (
            "/runs",
            run(json!({"config": {"configurable": {"thread_id": 5}}})),
            422,
            "thread_id: expected text",
        ),
        (&runs, says(json!({"type": "alien"})), 400, "alien"),
        (&runs, says(json!({"type": "ai", "content": "I"})), 400, "human messages"),
        (&runs, says(json!({"type": "human", "text": "lost"})), 422, "messages[0]: the message is empty"),
        (&runs, run(json!({"context": {"model_name": "none"}})), 400, "unknown model `none`"),
        (&runs, run(json!({"assistant_id": "nobody"})), 404, "nobody"),
        ("/threads", json!({"thread_id": "a/b"}), 422, ""),
        ("/threads", json!({"supersteps": []}), 422, "supersteps"),
        ("/threads", json!({"metadata": {"a": "x".repeat(70_000)}}), 413, ""),
        ("/threads/search", json!({"limit": 0}), 422, "limit"),
        ("/threads/search", json!({"status": "asleep"}), 422, "status"),
        ("/threads/search", json!({"values": {"messages": []}}), 422, "values.messages"),
        ("/threads/search", json!({"extract": {"last": "values.messages[-1]"}}), 422, "extract"),
        ("/threads/search", json!({"select": ["thread_id", "titel"]}), 422, "titel"),
        ("/threads/search", json!({"statuss": "idle"}), 422, "statuss"),
        (&compact, json!({"keep": {"type": "messages", "value": 2}}), 422, "keep"),
        (&compact, json!({"force": false}), 422, "force"),
        (&compact, json!({"agent_name": "nobody"}), 404, "nobody"),
        (&compact, json!({"model_name": "none"}), 400, "unknown model `none`"),
        (&history, json!({"metadata": {"a": 1}}), 422, "metadata"),
        (&history, json!({"checkpoint": {"checkpoint_id": "x"}}), 422, "before"),
        ("/threads/none/runs", json!({}), 404, ""),
        ("/threads/none/history", json!({}), 404, ""),
    ] {
        let (status, answer) = client.call("POST", path, Some(body.clone())).await;
        let told = answer["detail"].to_string();
        assert!(status == expect && told != "null" && told.contains(why), "{path} {body}: {status} {answer}");
    }
    let pinned = json!({"metadata": {"deerflow_pinned": "yes"}});
    assert_eq!(client.call("PATCH", &format!("/threads/{thread}"), Some(pinned)).await.0, 422);
    for (raw, expect) in
        [("{\"input\":".to_owned(), 400), (format!("{{\"input\":{}", "[".repeat(100_000)), 422)]
    {
        let raw = http().post(client.at(&runs)).header("content-type", "application/json").body(raw);
        assert_eq!(raw.send().await.unwrap().status(), expect);
    }
    assert_eq!(client.get(&runs).await, json!([]), "nothing was accepted");
    for (query, expect) in [
        ("limit=0", 422),
        ("limit=1001", 422),
        ("limit=x", 422),
        ("offset=-1", 422),
        ("status=asleep", 422),
        ("select=run", 422),
    ] {
        let (status, answer) = client.call("GET", &format!("{runs}?{query}"), None).await;
        assert_eq!((status, answer["detail"].is_string()), (expect, true), "{query}: {answer}");
    }
    let ada = Talker::new(&house, "Ada");
    ada.says("still there?", "echo: still there?").await;
}

#[tokio::test]
async fn a_run_to_which_nothing_is_said_goes_on_with_what_was_left() {
    let house = House::open("").await;
    let client = Client(&house);
    let thread = client.thread().await;
    let path = format!("/threads/{thread}/runs/wait");
    house.model.next(Reply::status(401));
    let failed = client.post(&path, json!({"input": "hello"})).await;
    assert!(failed["__error__"].is_object(), "{failed}");
    // As written by LangGraph's own client for remote graphs.
    let nothing = json!({"input": null, "command": {"goto": []}});
    let told = client.post(&path, nothing.clone()).await;
    let said: Vec<&Value> = told["messages"].as_array().unwrap().iter().map(|one| &one["content"]).collect();
    assert_eq!(said, ["hello", "echo: hello"]);
    assert_eq!(client.call("POST", &path, Some(nothing)).await.0, 422);
    let resumed = client.post(&path, json!({"command": {"resume": "yes", "goto": []}})).await;
    assert_eq!(resumed["messages"][3]["content"], "echo: yes");
}

#[tokio::test]
async fn a_line_has_its_length_and_who_stops_it_needs_no_place_in_it() {
    let house = House::open("").await;
    let client = Client(&house);
    let thread = client.thread().await;
    let mut hold = house.model.hold(1, At::Start);
    client.begin(&thread, "works", json!({})).await;
    hold.reached().await.unwrap();
    for n in 0..64 {
        client.begin(&thread, &format!("waits {n}"), json!({"multitask_strategy": "enqueue"})).await;
    }
    let runs = format!("/threads/{thread}/runs");
    let more = json!({"input": "one more", "multitask_strategy": "enqueue"});
    assert_eq!(client.call("POST", &runs, Some(more)).await.0, 503);
    let run = client.begin(&thread, "now", json!({"multitask_strategy": "interrupt"})).await;
    client.until(&thread, &run, "success").await;
    drop(hold);
    let (status, told) = client.call("GET", &format!("{runs}?status=interrupted&limit=100"), None).await;
    assert_eq!((status, told.as_array().unwrap().len()), (200, 65));
}

#[tokio::test]
async fn an_answer_is_made_once_more_a_question_put_otherwise_and_a_thread_branched() {
    let house = House::open("").await;
    let client = Client(&house);
    let thread = client.thread().await;
    client.waits(&thread, "one").await;
    let first = client.waits(&thread, "two").await;
    let said = |values: &Value| -> Vec<String> {
        let messages = values["messages"].as_array().unwrap();
        messages.iter().map(|message| message["content"].to_string()).collect()
    };
    let newest = first["messages"][3]["id"].as_str().unwrap();
    let path = |more: &str| format!("/threads/{thread}{more}");
    let (status, _) = client
        .call(
            "POST",
            &path("/runs/regenerate/prepare"),
            Some(json!({"message_id": first["messages"][1]["id"]})),
        )
        .await;
    assert_eq!(status, 409, "only the newest answer is made once more");
    let prepared = client.post(&path("/runs/regenerate/prepare"), json!({"message_id": newest})).await;
    house.model.next(Reply::text("two it is"));
    let mut body = json!({"input": prepared["input"], "metadata": prepared["metadata"]});
    body["checkpoint"] = prepared["checkpoint"].clone();
    let again = client.post(&path("/runs/wait"), body).await;
    assert_eq!(
        said(&again),
        ["\"one\"", "\"echo: one\"", "[{\"text\":\"two\",\"type\":\"text\"}]", "\"two it is\""]
    );
    assert_eq!(again["messages"][2]["id"], first["messages"][2]["id"], "the question is the same one");

    let edit = json!({"human_message_id": again["messages"][2]["id"], "replacement_text": "three"});
    let prepared = client.post(&path("/runs/edit-regenerate/prepare"), edit).await;
    let body = json!({"input": prepared["input"], "checkpoint": prepared["checkpoint"]});
    let edited = client.post(&path("/runs/wait"), body).await;
    assert_eq!(edited["messages"][3]["content"], "echo: three");
    assert_eq!(edited["messages"][2]["id"], prepared["replacement_human_message_id"]);
    let page = client.get(&path("/messages/page")).await;
    assert_eq!(page["data"].as_array().unwrap().len(), 4, "what was taken back is in no page");

    let branch = json!({"message_id": edited["messages"][1]["id"], "title": "aside"});
    let branch = client.post(&path("/branches"), branch).await;
    assert_eq!(branch["workspace_clone_mode"], "skipped_historical_turn");
    let newest = client.post(&path("/branches"), json!({"message_id": edited["messages"][3]["id"]})).await;
    assert_eq!(newest["workspace_clone_mode"], "skipped", "the files of the newest turn stay, too");
    let aside = branch["thread_id"].as_str().unwrap();
    let values = client.get(&format!("/threads/{aside}")).await["values"].clone();
    assert_eq!(
        (said(&values), &values["title"]),
        (vec!["\"one\"".into(), "\"echo: one\"".into()], &json!("aside"))
    );
    client.waits(aside, "four").await;
    let page = client.get(&format!("/threads/{aside}/messages/page")).await;
    assert_eq!(page["data"].as_array().unwrap().len(), 4);
    assert_eq!(said(&client.get(&path("")).await["values"]).len(), 4, "the other thread is as it was");
    let usage = client.get(&path("/token-usage")).await;
    assert_eq!((&usage["total_runs"], usage["total_tokens"].as_i64() > Some(0)), (&json!(4), true));
}

#[tokio::test]
async fn what_a_thread_cost_is_told_in_money_where_prices_are_known() {
    let mut house = House::build("").await;
    let config = std::fs::read_to_string(house.path("config.yaml")).unwrap();
    let pricing =
        "max_retries: 3\n    pricing: {currency: EUR, input_per_million: 3, output_per_million: 15}\n";
    house.write_config(&config.replace("max_retries: 3\n", pricing));
    house.start();
    let client = Client(&house);
    let thread = client.thread().await;
    let path = format!("/threads/{thread}/token-usage");
    assert_eq!(client.get(&path).await["costs"], json!({}));
    client.waits(&thread, "hello").await;
    let usage = client.get(&path).await;
    let [input, output] =
        ["input", "output"].map(|part| usage[format!("total_{part}_tokens")].as_f64().unwrap());
    let cost = usage["costs"]["EUR"].as_f64().unwrap();
    assert!(cost > 0.0 && (cost * 1e6 - (3.0 * input + 15.0 * output)).abs() < 1.0, "{usage}");
}

#[tokio::test]
async fn a_client_that_waits_comes_back_to_where_the_answer_said() {
    let mut house = House::open("").await;
    let mut hold = house.model.hold(1, At::Start);
    house.model.next(Reply::text("too late"));
    house.model.next(Reply::text("at last"));
    let (back, waiting) = {
        let client = Client(&house);
        let path = format!("/threads/{}/runs/wait", client.thread().await);
        let body = asked("look", &json!({"on_disconnect": "continue"}));
        let waiting = http().post(client.at(&path)).json(&body).send().await.unwrap();
        hold.reached().await.unwrap();
        (waiting.headers()["location"].to_str().unwrap().to_owned(), waiting)
    };
    house.kill();
    assert!(waiting.text().await.is_err(), "an answer that was cut is no answer");
    hold.proceed();
    house.start();
    let values = Client(&house).get(&back).await;
    assert_eq!((kinds(&values), &values["messages"][1]["content"]), (vec!["human", "ai"], &json!("at last")));
}

#[tokio::test]
async fn a_reader_of_a_run_that_goes_on_after_a_death_has_all_its_pieces() {
    let mut house = House::open("").await;
    let (mut first, mut second) = (house.model.hold(1, At::Chunk(3)), house.model.hold(2, At::Chunk(3)));
    house.model.next(Reply::text("one two three").words_per_chunk(1));
    house.model.next(Reply::text("four five six").words_per_chunk(1));
    let (path, id) = {
        let client = Client(&house);
        let thread = client.thread().await;
        let run = client.begin(&thread, "count", json!({})).await;
        let path =
            format!("/threads/{thread}/runs/{run}/stream?stream_mode=messages-tuple&stream_mode=values");
        first.reached().await.unwrap();
        let told = until(&mut http().get(client.at(&path)).send().await.unwrap(), "two").await;
        (path, told.last().unwrap().1.clone())
    };
    house.kill();
    first.proceed();
    house.start();
    second.reached().await.unwrap();
    let call = http().get(Client(&house).at(&path)).header("last-event-id", id);
    let mut answer = call.send().await.unwrap();
    let mut told = until(&mut answer, "five").await;
    second.proceed();
    told.extend(frames(&answer.text().await.unwrap()));
    assert_eq!((names(&told)[0], *names(&told).last().unwrap()), ("gap", "end"), "{told:?}");
    let pieces = told.iter().filter(|(name, ..)| name == "messages");
    let said: String = pieces.map(|(_, _, data)| data[0]["content"].as_str().unwrap()).collect();
    assert_eq!(said, "four five six", "{told:?}");
}

/// Reads frames of a stream until one contains a word.
async fn until(answer: &mut reqwest::Response, word: &str) -> Vec<Frame> {
    let mut text = String::new();
    while !text.contains(word) {
        text.push_str(&String::from_utf8_lossy(&answer.chunk().await.unwrap().unwrap()));
    }
    frames(&text)
}

#[tokio::test]
async fn a_checkpoint_tells_its_step_and_what_comes_next() {
    let house = House::open("").await;
    let client = Client(&house);
    house.model.next(Reply::tool("ls", &json!({"path": "/mnt/user-data"})));
    let (thread, path) = ("made-by-its-run", "/threads/made-by-its-run/runs/wait");
    let (status, _) = client.call("POST", path, Some(asked("look", &json!({})))).await;
    assert_eq!(status, 404, "no thread is made unasked");
    client.post(path, asked("look", &json!({"if_not_exists": "create"}))).await;
    let past = client.post(&format!("/threads/{thread}/history"), json!({})).await;
    let told = |one: &Value| (one["metadata"]["step"].as_i64().unwrap(), one["next"].clone());
    let told: Vec<(i64, Value)> = past.as_array().unwrap().iter().map(told).collect();
    assert_eq!(told, [(3, json!([])), (2, json!(["model"])), (1, json!(["tools"])), (0, json!(["model"]))]);
    let ids = |past: &Value| -> Vec<Value> {
        past.as_array().unwrap().iter().map(|one| one["checkpoint_id"].clone()).collect()
    };
    for (at, id) in ids(&past).iter().enumerate() {
        let earlier = client.post(&format!("/threads/{thread}/history"), json!({"before": id})).await;
        assert_eq!(
            ids(&earlier),
            ids(&past)[at + 1..],
            "what is before a checkpoint is the same in any list"
        );
    }
    client.post(&format!("/threads/{thread}/state"), json!({"values": {"todos": []}})).await;
    let state = client.get(&format!("/threads/{thread}/state")).await;
    assert_eq!(state["metadata"]["source"], "update");
    let runs = client.get(&format!("/threads/{thread}/runs?select=status&select=thread_id")).await;
    assert_eq!(runs, json!([{"status": "success", "thread_id": thread}]));
    let found = client.post("/threads/search", json!({"select": ["thread_id"]})).await;
    assert_eq!(found, json!([{"thread_id": thread}]));
    client.post(&format!("/threads/{thread}/state"), json!({"values": {"title": "Numbers"}})).await;
    for (title, count) in [("Numbers", 1), ("numbers", 0)] {
        let found = client.post("/threads/count", json!({"values": {"title": title}})).await;
        assert_eq!(found, count, "{title}");
    }
}
