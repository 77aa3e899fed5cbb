//! Calls that wait for an approval in runs of clients: shown, decided once, and only by their owner.

use super::{Client, Frame, asked, resumed::damage, shared_house};
use crate::house::{House, SOON, Talker, http};
use pudu_sim::model::{Answer, Reply};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const FILE: &str = "/mnt/user-data/outputs/a.txt";

async fn house(rest: &str) -> House {
    let mut house = House::furnish(Default::default(), "", rest).await;
    house.start();
    house
}

fn writes(content: &str) -> Answer {
    Reply::tool("write_file", &json!({ "path": FILE, "content": content }))
}

/// Capability of a client that shows approvals.
fn shows() -> Value {
    json!({"context": {"approvals": "ask"}})
}

impl Client<'_> {
    /// Starts a run whose model calls a tool that needs approval, and returns the run and the question.
    async fn asks(&self, thread: &str, reply: Answer) -> (String, Value) {
        self.0.model.next(reply);
        let run = self.begin(thread, "write it", shows()).await;
        (run, self.question(thread).await)
    }

    /// Waits until a call of a thread waits.
    async fn question(&self, thread: &str) -> Value {
        let deadline = Instant::now() + SOON;
        loop {
            let open = self.get(&format!("/threads/{thread}/approvals")).await;
            if let [question] = open.as_array().unwrap().as_slice() {
                return question.clone();
            }
            assert!(Instant::now() < deadline, "{open}: {}", self.0.log());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn decides(&self, thread: &str, question: &Value, body: Value) -> (u16, Value) {
        let id = question["id"].as_str().unwrap();
        self.call("POST", &format!("/threads/{thread}/approvals/{id}"), Some(body)).await
    }

    /// Returns the newest tool result, and its decisions.
    async fn result(&self, thread: &str) -> (String, Value) {
        let state = self.get(&format!("/threads/{thread}/state")).await;
        let mut messages = state["values"]["messages"].as_array().unwrap().iter();
        let result = messages.rfind(|message| message["type"] == "tool").unwrap();
        let approvals = result["additional_kwargs"]["approvals"].clone();
        (result["content"].as_str().unwrap().to_owned(), approvals)
    }
}

fn custom<'f>(frames: &'f [Frame], kind: &str) -> Vec<&'f Value> {
    let wanted = frames.iter().filter(|frame| frame.0 == "custom" && frame.2["type"] == kind);
    wanted.map(|frame| &frame.2).collect()
}

#[tokio::test]
async fn a_call_is_approved_or_denied_once() {
    let house = house("approvals: {tools: [write_file]}\n").await;
    let client = Client(&house);
    let (thread, other) = (client.thread().await, client.thread().await);
    let (run, question) = client.asks(&thread, writes("hi")).await;
    let request = question["request"].as_str().unwrap();
    assert!(request.starts_with("`write_file") && request.contains("hi"), "{question}");
    assert_eq!(
        [&question["run_id"], &question["status"], &question["tool"], &question["whole"]],
        [&json!(run), &json!("open"), &json!("write_file"), &Value::Null]
    );
    let yes = || json!({"approved": true});
    assert_eq!(client.decides(&other, &question, yes()).await.0, 404);
    assert_eq!(client.decides(&thread, &json!({"id": "none"}), yes()).await.0, 404);
    for wrong in [json!({}), json!({"approved": "yes"}), json!({"approved": true, "by": "Ada"})] {
        assert_eq!(client.decides(&thread, &question, wrong).await.0, 422);
    }
    for _ in 0..2 {
        let (status, decided) = client.decides(&thread, &question, yes()).await;
        assert_eq!(
            (status, &decided["status"], &decided["decided_by"]),
            (200, &json!("approved"), &json!("default"))
        );
    }
    let (status, told) = client.decides(&thread, &question, json!({"approved": false})).await;
    assert_eq!((status, &told["detail"]), (409, &json!("default has already approved this call")));
    client.until(&thread, &run, "success").await;
    let (text, approvals) = client.result(&thread).await;
    assert!(text.starts_with("OK"), "{text}");
    assert_eq!(approvals, json!([{"request": request, "approved": true, "by": "default"}]));
    assert_eq!(client.get(&format!("/threads/{thread}/approvals")).await, json!([]));

    let (run, question) = client.asks(&thread, writes("again")).await;
    assert_eq!(client.decides(&thread, &question, json!({"approved": false})).await.1["status"], "denied");
    client.until(&thread, &run, "success").await;
    assert!(client.result(&thread).await.0.starts_with("Error: default denied this call."));
    let audit = house.pudu(&["audit"]).1;
    assert!(audit.contains("approved by default") && audit.contains("denied by default"), "{audit}");
}

#[tokio::test]
async fn a_client_that_does_not_say_that_it_shows_approvals_is_refused_at_once() {
    let house = house("approvals: {tools: [write_file]}\n").await;
    let client = Client(&house);
    let thread = client.thread().await;
    for more in [json!({}), json!({"context": {"approvals": "refuse"}})] {
        house.model.next(writes("hi"));
        let run = client.begin(&thread, "write it", more).await;
        let told = client.follows(&thread, &run, None, "stream_mode=custom").await;
        assert_eq!(custom(&told, "approval_decided"), [&Value::Null; 0], "nobody was asked");
        let (text, approvals) = client.result(&thread).await;
        assert!(text.contains("`\"approvals\": \"ask\"`") && !text.contains("chat"), "{text}");
        assert_eq!(approvals, Value::Null, "nobody was asked");
    }
    let wrong = asked("hi", &json!({"context": {"approvals": true}}));
    let (status, told) = client.call("POST", &format!("/threads/{thread}/runs"), Some(wrong)).await;
    assert_eq!((status, &told["detail"]), (422, &json!("approvals must be `ask` or `refuse`")));
}

#[tokio::test]
async fn a_decision_that_comes_too_late_is_refused() {
    let house = house("approvals: {tools: [write_file], timeout_seconds: 8}\n").await;
    let client = Client(&house);
    let thread = client.thread().await;
    let (run, question) = client.asks(&thread, writes("hi")).await;
    client.until(&thread, &run, "success").await;
    for approved in [true, false] {
        let (status, told) = client.decides(&thread, &question, json!({ "approved": approved })).await;
        assert_eq!(
            (status, &told["detail"]),
            (410, &json!("the decision came too late: the call was denied at its deadline"))
        );
    }
    assert_eq!(client.result(&thread).await.1[0]["by"], Value::Null);

    house.configure("", "approvals: {tools: [write_file]}\n");
    house.logs("applied edited configuration").await;
    let (run, question) = client.asks(&thread, writes("hi")).await;
    client.call("POST", &format!("/threads/{thread}/runs/{run}/cancel?wait=1"), None).await;
    let (status, told) = client.decides(&thread, &question, json!({"approved": true})).await;
    assert_eq!(
        (status, &told["detail"]),
        (410, &json!("the run has ended and no longer waits for a decision"))
    );
    assert_eq!(client.get(&format!("/threads/{thread}/approvals")).await, json!([]));

    // As if the daemon had been down meanwhile.
    let (_, question) = client.asks(&thread, writes("hi")).await;
    damage(&house, "UPDATE approvals SET deadline = 1 WHERE approved IS NULL").await;
    assert_eq!(client.decides(&thread, &question, json!({"approved": true})).await.0, 410);
}

#[tokio::test]
async fn followers_and_those_who_come_late_learn_all_of_a_call() {
    let house = house("approvals: {tools: [write_file]}\n").await;
    let client = Client(&house);
    let thread = client.thread().await;
    let long = format!("{}\n\nthe middle\n\n{}", "begin ".repeat(200), "end ".repeat(200));
    let (run, question) = client.asks(&thread, writes(&long)).await;
    assert!(question["whole"].as_str().unwrap().contains("the middle"), "{question}");
    let follows = client.follows(&thread, &run, Some("-1"), "stream_mode=custom");
    let decides = client.decides(&thread, &question, json!({"approved": true}));
    let (frames, (status, _)) = tokio::join!(follows, decides);
    assert_eq!(status, 200);
    let expected = json!({
        "type": "approval_requested", "key": question["id"], "call_id": question["call_id"],
        "request": question["request"], "whole": question["whole"], "deadline": question["deadline"],
    });
    assert_eq!(custom(&frames, "approval_requested"), [&expected]);
    let expected = json!({
        "type": "approval_decided", "call_id": question["call_id"], "request": question["request"],
        "approved": true, "by": "default",
    });
    assert_eq!(custom(&frames, "approval_decided"), [&expected]);
}

#[tokio::test]
async fn a_call_of_a_sub_agent_is_told_with_the_call_that_it_works_for() {
    let house = house("approvals: {tools: [write_file]}\n").await;
    let client = Client(&house);
    let thread = client.thread().await;
    let task = json!({"description": "write", "prompt": "Write it.", "subagent_type": "general-purpose"});
    house.model.next(Reply::tool("task", &task));
    let (run, question) = client.asks(&thread, writes("hi")).await;
    assert_eq!(question["run_id"], json!(run));
    let (status, decided) = client.decides(&thread, &question, json!({"approved": true})).await;
    assert_eq!((status, &decided["call_id"]), (200, &question["call_id"]));
    let frames = client.follows(&thread, &run, Some("-1"), "stream_mode=custom").await;
    assert_eq!(custom(&frames, "approval_requested")[0]["call_id"], question["call_id"]);
    assert_eq!(client.result(&thread).await.1[0]["approved"], true);
}

/// The first kill comes while the question is open, the second after the decision.
#[tokio::test]
async fn a_run_that_died_asks_the_same_again_and_a_decision_that_came_counts() {
    let mut house = House::furnish(Default::default(), "", "approvals: {tools: [write_file]}\n").await;
    house.start();
    let (thread, run, question) = {
        let client = Client(&house);
        let thread = client.thread().await;
        let (run, question) = client.asks(&thread, writes("hi")).await;
        (thread, run, question)
    };
    house.kill();
    house.set("PUDU_CRASH_AT", "approvals.decide.after");
    house.start();
    {
        let client = Client(&house);
        assert_eq!(client.question(&thread).await, question, "the same question");
        let id = question["id"].as_str().unwrap();
        let decides = http().post(client.at(&format!("/threads/{thread}/approvals/{id}")));
        // The daemon is dead before it responds.
        decides.json(&json!({"approved": true})).send().await.ok();
    }
    house.dies().await;
    house.start();
    let client = Client(&house);
    client.until(&thread, &run, "success").await;
    assert!(client.result(&thread).await.0.starts_with("OK"));
    assert_eq!(client.decides(&thread, &question, json!({"approved": true})).await.0, 200);
}

#[tokio::test]
async fn what_a_chat_asks_is_not_decided_by_a_client() {
    let mut house = shared_house("approvals: {tools: [write_file]}\n").await;
    house.start();
    let (client, ada) = (Client(&house), Talker::new(&house, "Ada"));
    house.model.next(writes("hi"));
    ada.say("write it");
    ada.reads_so(|text| text.contains("May I?")).await;
    let shown = format!("{:?}", ada.answers());
    let (_, rest) = shown.split_once("/approve ").unwrap();
    let key: String = rest.chars().take_while(char::is_ascii_alphanumeric).collect();
    let thread = client.thread_of_chat().await;
    assert_eq!(client.get(&format!("/threads/{thread}/approvals")).await, json!([]));
    assert_eq!(client.decides(&thread, &json!({ "id": key }), json!({"approved": true})).await.0, 404);
}
