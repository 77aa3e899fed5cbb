//! LangGraph's protocol of event streams: commands on threads, and streams of their events.

use super::{Client, shared_house};
use crate::house::{House, SOON, http};
use pudu_sim::model::{At, Reply};
use reqwest::Response;
use serde_json::{Value, json};
use std::collections::HashSet;

const ALL: [&str; 9] =
    ["values", "updates", "checkpoints", "messages", "tools", "custom", "lifecycle", "input", "tasks"];

/// A stream of a thread's events.
struct ThreadEvents {
    response: Response,
    text: String,
    read: Vec<Value>,
}

impl ThreadEvents {
    /// Reads until an event that satisfies a predicate, and returns all events so far.
    async fn until(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
        loop {
            while let Some((event, rest)) = self.text.split_once("\n\n") {
                let lines: Vec<&str> = event.lines().collect();
                let rest = rest.to_owned();
                if let [name, data, id] = lines[..] {
                    let event: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
                    assert_eq!(name.strip_prefix("event: ").unwrap(), event["method"], "{event}");
                    assert_eq!(id.strip_prefix("id: ").unwrap(), event["seq"].to_string(), "{event}");
                    self.read.push(event);
                } else {
                    assert_eq!(lines, [": heartbeat"]);
                }
                self.text = rest;
                if self.read.last().is_some_and(&is_wanted) {
                    return self.read.clone();
                }
            }
            let chunk = tokio::time::timeout(SOON, self.response.chunk()).await;
            let chunk = chunk.unwrap_or_else(|_| panic!("no more after {:#?}", self.read));
            self.text.push_str(std::str::from_utf8(&chunk.unwrap().unwrap()).unwrap());
        }
    }

    async fn until_end(&mut self) -> Vec<Value> {
        self.until(is_end).await
    }
}

fn is_end(event: &Value) -> bool {
    let ends = ["completed", "failed", "interrupted"];
    is_root(event) && event["method"] == "lifecycle" && ends.iter().any(|end| data(event)["event"] == *end)
}

fn is_root(event: &Value) -> bool {
    event["params"]["namespace"] == json!([])
}

fn data(event: &Value) -> &Value {
    &event["params"]["data"]
}

/// Returns the methods of events, each with the kind of the event if it has one.
fn kinds(events: &[Value]) -> Vec<String> {
    let kind = |event: &Value| {
        let method = event["method"].as_str().unwrap();
        data(event)["event"].as_str().map_or_else(|| method.to_owned(), |kind| format!("{method} {kind}"))
    };
    events.iter().map(kind).collect()
}

fn of<'e>(events: &'e [Value], method: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["method"] == method).collect()
}

/// Returns the text that the deltas of a channel's messages make.
fn text_of(events: &[Value]) -> String {
    let deltas = of(events, "messages").into_iter().filter_map(|event| data(event)["delta"]["text"].as_str());
    deltas.collect()
}

fn assert_increasing(events: &[Value]) {
    let numbers: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    let ids: HashSet<&str> = events.iter().map(|event| event["event_id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), events.len(), "an id comes twice");
}

impl Client<'_> {
    async fn commands(&self, thread: &str, method: &str, params: Value) -> Value {
        let body = json!({"id": 7, "method": method, "params": params});
        let answer = self.post(&format!("/threads/{thread}/commands"), body).await;
        assert_eq!(answer["id"], 7, "{answer}");
        answer
    }

    async fn starts(&self, thread: &str, text: &str, more: Value) -> (String, u64) {
        let mut params = json!({"assistant_id": "lead_agent", "input": {"messages": [{"type": "human", "content": text}]}});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let answer = self.commands(thread, "run.start", params).await;
        let run = answer["result"]["run_id"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
        (run, answer["meta"]["applied_through_seq"].as_u64().unwrap())
    }

    async fn opens(&self, thread: &str, body: Value) -> ThreadEvents {
        let path = self.at(&format!("/threads/{thread}/stream/events"));
        let response = http().post(path).json(&body).send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert!(response.headers()["content-type"].to_str().unwrap().starts_with("text/event-stream"));
        ThreadEvents { response, text: String::new(), read: Vec::new() }
    }

    async fn refused(&self, thread: &str, method: &str, params: Value, code: &str) -> String {
        let answer = self.commands(thread, method, params).await;
        assert_eq!((&answer["type"], &answer["error"]), (&json!("error"), &json!(code)), "{answer}");
        answer["message"].as_str().unwrap().to_owned()
    }
}

#[tokio::test]
async fn a_run_is_events_of_its_thread_for_every_reader() {
    let house = House::open("").await;
    let client = Client(&house);
    let thread = "11111111-1111-4111-8111-111111111111";
    // The stream comes first: the run creates the thread.
    let mut early = client.opens(thread, json!({"channels": ALL})).await;
    house.model.next(Reply::tool("ls", &json!({"path": "/mnt/user-data"})));
    house.model.next(Reply::text("one two three").words_per_chunk(1));
    let (run, before) = client.starts(thread, "look", json!({})).await;
    let events = early.until_end().await;
    assert_increasing(&events);
    assert!(events[0]["seq"].as_u64().unwrap() > before, "{before}: {}", events[0]);
    assert_eq!(events[0]["event_id"], format!("synth:{run}:lc||running"));
    assert_eq!(data(&events[0])["graph_name"], "lead_agent");
    assert_eq!(events.last().unwrap()["event_id"], format!("synth:{run}:lc||completed"));
    assert_eq!(text_of(&events), "one two three");
    let tools: Vec<&Value> = of(&events, "tools").into_iter().map(data).collect();
    assert_eq!(tools.len(), 2, "{tools:?}");
    assert_eq!((&tools[0]["event"], &tools[0]["tool_name"]), (&json!("tool-started"), &json!("ls")));
    assert_eq!(tools[0]["input"], json!({"path": "/mnt/user-data"}));
    assert_eq!((&tools[1]["event"], &tools[1]["output"]["type"]), (&json!("tool-finished"), &json!("tool")));
    assert_eq!(tools[0]["tool_call_id"], tools[1]["tool_call_id"]);
    let said: Vec<String> = kinds(&events).into_iter().filter(|kind| kind.starts_with("messages")).collect();
    let block = ["start", "delta", "finish"].map(|part| format!("messages content-block-{part}"));
    let (start, finish) = ("messages message-start".to_owned(), "messages message-finish".to_owned());
    assert_eq!(said[..4], [start.clone(), block[0].clone(), block[2].clone(), finish.clone()], "the call");
    assert_eq!(said[4..6], [start, block[0].clone()]);
    assert_eq!(said[said.len() - 2..], [block[2].clone(), finish]);
    let values = client.get(&format!("/threads/{thread}/state")).await["values"].clone();
    assert_eq!(data(of(&events, "values").last().unwrap())["messages"], values["messages"]);
    let checkpoints = of(&events, "checkpoints");
    assert_eq!(data(checkpoints[1])["parent_id"], data(checkpoints[0])["id"]);
    assert_eq!(of(&events, "updates").last().unwrap()["params"]["node"], "model");

    // A reader that is late, or has a part, gets the same events, whatever it filters.
    let late = client.opens(thread, json!({"channels": ALL})).await.until_end().await;
    let timeless = |events: &[Value]| {
        let mut events = events.to_vec();
        events.iter_mut().for_each(|event| event["params"]["timestamp"] = json!(0));
        events
    };
    assert_eq!(timeless(&late), timeless(&events));
    for at in [0, 1, events.len() / 3, events.len() / 2, events.len() - 2] {
        let since = &events[at]["seq"];
        let rest = client.opens(thread, json!({"channels": ALL, "since": since})).await.until_end().await;
        assert_eq!(timeless(&rest), timeless(&events[at + 1..]), "since {since}");
        let some =
            json!({"channels": ["messages", "lifecycle"], "namespaces": [[]], "depth": 0, "since": since});
        let rest = client.opens(thread, some).await.until_end().await;
        let wanted: Vec<Value> = events[at + 1..]
            .iter()
            .filter(|event| ["messages", "lifecycle"].iter().any(|method| event["method"] == *method))
            .cloned()
            .collect();
        assert_eq!(timeless(&rest), timeless(&wanted), "since {since}");
    }

    // The next run comes on the same stream, and its client reads it alone.
    // Line separators of Unicode do not end a line of a stream.
    house.model.next(Reply::text("four\u{2028}five\u{85}six\r\nseven"));
    let (next, before) = client.starts(thread, "and?", json!({})).await;
    let all = early.until(|event| event["event_id"] == format!("synth:{next}:lc||completed")).await;
    assert_increasing(&all);
    assert_eq!(text_of(&all[events.len()..]), "four\u{2028}five\u{85}six\r\nseven");
    let own = client.opens(thread, json!({"channels": ALL, "since": before})).await.until_end().await;
    assert_eq!(timeless(&own), timeless(&all[events.len()..]));
    let tree = client.commands(thread, "agent.getTree", json!({})).await;
    assert_eq!(tree["result"]["tree"]["status"], "completed", "{tree}");
}

#[tokio::test]
async fn events_are_read_from_the_log_after_a_death() {
    let mut house = House::open("").await;
    let mut hold = house.model.hold(2, At::Chunk(2));
    house.model.next(Reply::tool("ls", &json!({"path": "/mnt/user-data"})));
    house.model.next(Reply::text("never said").words_per_chunk(1));
    let (thread, run, before) = {
        let client = Client(&house);
        let thread = client.thread().await;
        let (run, _) = client.starts(&thread, "look", json!({})).await;
        let mut stream = client.opens(&thread, json!({"channels": ALL})).await;
        hold.reached().await.unwrap();
        let before = stream.until(|event| data(event)["delta"]["text"] == "never").await;
        (thread, run, before)
    };
    house.kill();
    house.model.next(Reply::text("all is there").words_per_chunk(1));
    house.start();
    let client = Client(&house);
    let all = client.opens(&thread, json!({"channels": ALL})).await.until_end().await;
    assert_increasing(&all);
    assert_eq!((&all[0]["event_id"], text_of(&all).as_str()), (&before[0]["event_id"], "all is there"));
    assert_eq!(all.last().unwrap()["event_id"], format!("synth:{run}:lc||completed"));
    // In the midst of a text that is lost, the state replaces it.
    let since = before.last().unwrap()["seq"].as_u64().unwrap();
    let rest = client.opens(&thread, json!({"channels": ALL, "since": since})).await.until_end().await;
    assert_eq!(text_of(&rest), "all is there", "{:?}", kinds(&rest));
    let is_known = |event: &Value| before.iter().any(|known| known["event_id"] == event["event_id"]);
    let mut repeated = rest.iter().filter(|event| event["seq"].as_u64().unwrap() <= since);
    assert!(repeated.all(is_known), "only known events come again");
    // After each stored step, the rest is the same.
    for (at, event) in all.iter().enumerate().filter(|(_, event)| event["method"] == "values") {
        let rest = client.opens(&thread, json!({"channels": ALL, "since": event["seq"]})).await;
        let mut rest = rest;
        let rest = rest.until_end().await;
        assert_eq!(kinds(&rest), kinds(&all[at + 1..]), "since {}", event["seq"]);
    }
    house.kill();
    house.start();
    let client = Client(&house);
    let again = client
        .opens(&thread, json!({"channels": ["lifecycle", "values"], "since": 0}))
        .await
        .until_end()
        .await;
    let ids = |events: &[Value]| events.iter().map(|event| event["event_id"].clone()).collect::<Vec<_>>();
    let wanted: Vec<Value> = all
        .into_iter()
        .filter(|event| ["lifecycle", "values"].iter().any(|method| event["method"] == *method))
        .collect();
    assert_eq!(ids(&again), ids(&wanted), "everything is in the log");
}

#[tokio::test]
async fn a_waiting_call_is_an_interrupt_that_a_client_answers() {
    let mut house = House::furnish(Default::default(), "", "approvals: {tools: [write_file]}\n").await;
    house.start();
    let client = Client(&house);
    let thread = client.thread().await;
    let file = json!({"path": "/mnt/user-data/outputs/a.txt", "content": "hi"});
    for (response, end) in
        [(json!({"decisions": [{"type": "approve"}]}), "tool-finished"), (json!(false), "tool-error")]
    {
        house.model.next(Reply::tool("write_file", &file));
        house.model.next(Reply::text("done"));
        let ask = json!({"config": {"configurable": {"approvals": "ask"}}});
        let (_, before) = client.starts(&thread, "write it", ask).await;
        let mut stream = client.opens(&thread, json!({"channels": ALL, "since": before})).await;
        let asked = stream.until(is_end).await;
        let kinds = kinds(&asked);
        assert_eq!(kinds[kinds.len() - 2..], ["input.requested", "lifecycle interrupted"]);
        let question = data(&asked[asked.len() - 2]);
        assert_eq!(question["payload"]["type"], "approval_requested", "{question}");
        let id = question["interrupt_id"].clone();
        client
            .refused(
                &thread,
                "input.respond",
                json!({"interrupt_id": "none", "response": true}),
                "no_such_interrupt",
            )
            .await;
        client
            .refused(
                &thread,
                "input.respond",
                json!({"interrupt_id": id, "response": "maybe"}),
                "invalid_argument",
            )
            .await;
        client
            .refused(
                &thread,
                "input.respond",
                json!({"interrupt_id": id, "response": true, "goto": "model"}),
                "not_supported",
            )
            .await;
        client
            .refused(
                &thread,
                "input.respond",
                json!({"interrupt_id": id, "namespace": ["x"], "response": true}),
                "no_such_interrupt",
            )
            .await;
        let many = json!({"responses": [{"interrupt_id": id, "namespace": [], "response": response}]});
        let answered = client.commands(&thread, "input.respond", many).await;
        assert_eq!((&answered["type"], &answered["result"]), (&json!("success"), &json!({})), "{answered}");
        let all = stream.until(|event| data(event)["event"] == "completed").await;
        let rest = &all[asked.len()..];
        assert!(rest.iter().any(|event| event["method"] == "lifecycle" && data(event)["event"] == "running"));
        assert!(rest.iter().any(|event| data(event)["event"] == end), "{rest:#?}");
        assert_increasing(&all);
    }
    // Two calls that wait at the same time are answered together.
    let other = json!({"path": "/mnt/user-data/outputs/b.txt", "content": "hi"});
    house.model.next(Reply::tool("write_file", &file).tool("write_file", &other));
    house.model.next(Reply::text("done"));
    let ask = json!({"config": {"configurable": {"approvals": "ask"}}});
    let (_, before) = client.starts(&thread, "write both", ask).await;
    let mut stream =
        client.opens(&thread, json!({"channels": ["input", "tools", "lifecycle"], "since": before})).await;
    let asked = |events: &[Value]| {
        of(events, "input.requested")
            .iter()
            .map(|event| data(event)["interrupt_id"].clone())
            .collect::<Vec<_>>()
    };
    let mut ids = Vec::new();
    while ids.len() < 2 {
        ids = asked(&stream.until(is_end).await);
        stream.read.retain(|event| event["method"] != "lifecycle");
    }
    let responses: Vec<Value> = ids.iter().map(|id| json!({"interrupt_id": id, "response": true})).collect();
    let answered = client.commands(&thread, "input.respond", json!({"responses": responses})).await;
    assert_eq!(answered["type"], "success", "{answered}");
    let all = stream.until(|event| data(event)["event"] == "completed").await;
    let finished = all.iter().filter(|event| data(event)["event"] == "tool-finished").count();
    assert_eq!(finished, 2, "{all:#?}");
}

#[tokio::test]
async fn sub_agents_have_namespaces_of_their_own() {
    let house = House::open("").await;
    let client = Client(&house);
    let thread = client.thread().await;
    let task = json!({"description": "look", "prompt": "find it", "subagent_type": "general-purpose"});
    house.model.next(Reply::tool("task", &task));
    house.model.next(Reply::text("Found it."));
    house.model.next(Reply::text("All done."));
    let (_, before) = client.starts(&thread, "help", json!({})).await;
    let all = json!({"channels": ["lifecycle", "messages", "tools"], "since": before});
    let all = client.opens(&thread, all).await.until_end().await;
    let call = data(of(&all, "tools")[0])["tool_call_id"].clone();
    let namespace = json!([format!("tools:{}", call.as_str().unwrap())]);
    let own: Vec<Value> = all.iter().filter(|event| !is_root(event)).cloned().collect();
    assert!(own.iter().all(|event| event["params"]["namespace"] == namespace), "{own:#?}");
    let kinds = kinds(&own);
    assert_eq!(
        (kinds[0].as_str(), kinds[kinds.len() - 1].as_str()),
        ("lifecycle started", "lifecycle completed")
    );
    assert_eq!(data(&own[0])["cause"], json!({"type": "toolCall", "tool_call_id": call}));
    assert_eq!((text_of(&own).as_str(), text_of(&all).as_str()), ("Found it.", "Found it.All done."));
    let below = json!({"channels": ["messages", "lifecycle"], "namespaces": [["tools"]], "since": before});
    let below = client.opens(&thread, below).await.until(|event| data(event)["event"] == "completed").await;
    assert_eq!(self::kinds(&below), kinds);
}

#[tokio::test]
async fn stopped_and_waiting_runs_have_their_ends_in_order() {
    let house = House::open("").await;
    let client = Client(&house);
    let thread = client.thread().await;
    let mut hold = house.model.hold(1, At::Chunk(1));
    house.model.next(Reply::text("never said").words_per_chunk(1));
    house.model.next(Reply::text("second"));
    let mut stream = client.opens(&thread, json!({"channels": ["lifecycle", "messages"]})).await;
    let (first, _) = client.starts(&thread, "one", json!({})).await;
    hold.reached().await.unwrap();
    let (second, _) = client.starts(&thread, "two", json!({})).await;
    assert_eq!(
        client.status(&thread, &second).await,
        "pending",
        "a run waits unless the client says otherwise"
    );
    let busy =
        json!({"assistant_id": "lead_agent", "input": {"messages": "three"}, "multitaskStrategy": "reject"});
    client.refused(&thread, "run.start", busy, "invalid_argument").await;
    client.call("POST", &format!("/threads/{thread}/runs/{first}/cancel"), None).await;
    hold.proceed();
    let all = stream.until(|event| event["event_id"] == format!("synth:{second}:lc||completed")).await;
    let lives: Vec<String> =
        of(&all, "lifecycle").iter().map(|event| event["event_id"].as_str().unwrap().to_owned()).collect();
    let event = |run: &str, event: &str| format!("synth:{run}:lc||{event}");
    assert_eq!(
        lives,
        [
            event(&first, "running"),
            event(&first, "interrupted"),
            event(&second, "running"),
            event(&second, "completed")
        ]
    );
    assert_increasing(&all);
}

#[tokio::test]
async fn failed_runs_and_repeated_calls_end_their_messages() {
    let house = House::open("").await;
    let client = Client(&house);
    let thread = client.thread().await;
    house.model.next(Reply::status(401));
    let (run, _) = client.starts(&thread, "one", json!({})).await;
    let all = client.opens(&thread, json!({"channels": ["lifecycle", "values"]})).await.until_end().await;
    let end = all.last().unwrap();
    assert_eq!(end["event_id"], format!("synth:{run}:lc||failed"));
    assert!(data(end)["error"].as_str().is_some_and(|error| !error.is_empty()), "{end}");
}

#[tokio::test]
async fn garbage_is_answered_in_the_shape_of_the_protocol() {
    let house = House::open("").await;
    let client = Client(&house);
    let thread = client.thread().await;
    let path = format!("/threads/{thread}/commands");
    for garbage in [
        json!({}),
        json!([1]),
        json!("run.start"),
        json!(null),
        json!({"method": "run.start"}),
        json!({"id": -1, "method": "run.start"}),
        json!({"id": true, "method": "run.start"}),
        json!({"id": "1", "method": "run.start"}),
        json!({"id": 1.5, "method": "run.start"}),
        json!({"id": 1, "method": 1}),
        json!({"id": 1, "method": "run.start", "params": []}),
    ] {
        let (status, answer) = client.call("POST", &path, Some(garbage.clone())).await;
        assert_eq!(
            (status, &answer["type"], &answer["error"]),
            (400, &json!("error"), &json!("invalid_argument")),
            "{garbage}"
        );
    }
    let said = |method: &'static str, params: Value, code: &'static str| (method, params, code);
    for (method, params, code) in [
        said("run.begin", json!({}), "unknown_command"),
        said("input.inject", json!({}), "unknown_command"),
        said("", json!({}), "unknown_command"),
        said("run.start", json!({}), "invalid_argument"),
        said("run.start", json!({"assistant_id": "", "input": {}}), "invalid_argument"),
        said("run.start", json!({"assistant_id": "nobody", "input": {"messages": "hi"}}), "invalid_argument"),
        said("run.start", json!({"assistant_id": "lead_agent"}), "invalid_argument"),
        said(
            "run.start",
            json!({"assistant_id": "lead_agent", "input": {"messages": "hi"}, "typo": 1}),
            "invalid_argument",
        ),
        said(
            "run.start",
            json!({"assistant_id": "lead_agent", "input": {"messages": "hi"}, "multitaskStrategy": "wait"}),
            "invalid_argument",
        ),
        said(
            "run.start",
            json!({"assistant_id": "lead_agent", "input": {"messages": "hi"}, "config": {"configurable": {"checkpoint_id": "x"}}}),
            "invalid_argument",
        ),
        said(
            "run.start",
            json!({"assistant_id": "lead_agent", "input": {"messages": "hi"}, "config": {"configurable": {"checkpoint_id": "00000000-0000-8000-8000-0000000000ff"}}}),
            "no_such_checkpoint",
        ),
        said("input.respond", json!({}), "invalid_argument"),
        said("input.respond", json!({"responses": []}), "invalid_argument"),
        said("input.respond", json!({"responses": [1]}), "invalid_argument"),
        said("agent.getTree", json!({}), "no_such_run"),
        said("state.get", json!({"namespace": ["tools:x"]}), "no_such_namespace"),
        said("state.get", json!({"keys": "title"}), "invalid_argument"),
        said("state.listCheckpoints", json!({"limit": 0}), "invalid_argument"),
        said("state.fork", json!({}), "invalid_argument"),
        said("subscription.subscribe", json!({"channels": ["values"]}), "not_supported"),
    ] {
        let message = client.refused(&thread, method, params, code).await;
        assert!(!message.is_empty(), "{method}");
    }
    let long = client.refused(&thread, &"x".repeat(100_000), json!({}), "unknown_command").await;
    assert!(long.len() < 200, "{}", long.len());
    assert_eq!(client.get(&format!("/threads/{thread}/runs")).await, json!([]), "nothing was started");
    let events = format!("/threads/{thread}/stream/events");
    for body in [
        json!({}),
        json!({"channels": []}),
        json!({"channels": ["typo"]}),
        json!({"channels": ["custom:"]}),
        json!({"channels": "values"}),
        json!({"channels": ["values"], "since": -1}),
        json!({"channels": ["values"], "since": true}),
        json!({"channels": ["values"], "since": 1_u64 << 53}),
        json!({"channels": ["values"], "depth": false}),
        json!({"channels": ["values"], "namespaces": [["a"], "b"]}),
        json!({"channels": ["values"], "more": 1}),
        json!({"channels": vec!["values"; 300]}),
    ] {
        let (status, answer) = client.call("POST", &events, Some(body.clone())).await;
        assert_eq!(status, 422, "{body}: {answer}");
    }
    // A thread of nobody has no state, and a giant text is a run.
    let nobody = "22222222-2222-4222-8222-222222222222";
    client.refused(nobody, "state.get", json!({}), "no_such_run").await;
    client
        .refused(nobody, "input.respond", json!({"interrupt_id": "x", "response": true}), "no_such_interrupt")
        .await;
    house.model.next(Reply::text("long"));
    let (_, before) = client.starts(nobody, &"word ".repeat(200_000), json!({})).await;
    let all = client
        .opens(nobody, json!({"channels": ["messages", "lifecycle"], "since": before}))
        .await
        .until_end()
        .await;
    assert_eq!(text_of(&all), "long");
    let state = client.commands(nobody, "state.get", json!({"namespace": [], "keys": ["title"]})).await;
    assert_eq!(
        state["result"]["values"].as_object().unwrap().keys().collect::<Vec<_>>(),
        ["title"],
        "{state}"
    );
    let listed = client.commands(nobody, "state.listCheckpoints", json!({"limit": 1})).await;
    let id = listed["result"]["checkpoints"][0]["id"].clone();
    assert_eq!(id, state["result"]["checkpoint"]["id"], "{listed}");
    house.model.next(Reply::text("forked"));
    let params = json!({"checkpoint_id": id, "input": {"messages": "again"}});
    let forked = client.commands(nobody, "state.fork", params).await;
    assert_eq!(forked["result"]["thread_id"], nobody, "{forked}");
}

/// A stream of an unused id shows no run of another user who takes the id later.
#[tokio::test]
async fn events_of_a_thread_are_only_for_its_readers() {
    let mut house = shared_house("").await;
    house.start();
    let client = Client(&house);
    let thread = client.thread().await;
    for path in [format!("/threads/{thread}x!/commands"), format!("/threads/{thread}x!/stream/events")] {
        let (status, _) = client.call("POST", &path, Some(json!({"channels": ["values"]}))).await;
        assert_eq!(status, 422, "{path}");
    }
}
