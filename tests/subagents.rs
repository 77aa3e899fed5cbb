//! Work of sub-agents, as shown to users in progress, and to programs afterwards.

use crate::{
    house::{House, SOON, Talker, http},
    platforms::on_each_platform,
    scene::Scene,
};
use pudu_sim::{
    model::{Answer, Reply},
    platform::Shown,
    telegram::Options,
};
use serde_json::{Value, json};
use std::time::Duration;

on_each_platform!([sub_agents_at_work_have_a_line_each_which_the_answer_has_not]);

async fn sub_agents_at_work_have_a_line_each_which_the_answer_has_not(scene: Scene) {
    let (apples, pears) = (hand("count apples"), hand("count pears"));
    scene.house.model.otherwise(move |ask| match (ask.last_user().as_str(), ask.last_role()) {
        ("compare", "user") => Reply::tool("task", &apples).tool("task", &pears).into(),
        ("compare", _) => Reply::text("More pears.").into(),
        _ => Reply::text("Some.").after(Duration::from_secs(6)).into(),
    });
    scene.say("compare");
    let both = |shown: &[Shown]| {
        let last = &shown.last()?.text;
        ["count apples: thinking…", "count pears: thinking…"]
            .iter()
            .all(|line| last.contains(line))
            .then_some(())
    };
    scene.sees(&scene.chat, both).await;
    scene.reads(&scene.chat, "More pears.").await;
}

fn hand(about: &str) -> Value {
    json!({"description": about, "prompt": format!("please {about}"), "subagent_type": "general-purpose"})
}

/// Calls the API as the operator.
async fn ask(house: &House, path: &str) -> (u16, Value) {
    let token = std::fs::read_to_string(house.path(".pudu/gateway-token")).unwrap();
    let address = format!("http://{}/api/{path}", house.address);
    let answer = http().get(address).bearer_auth(token.trim()).send().await.unwrap();
    (answer.status().as_u16(), serde_json::from_str(&answer.text().await.unwrap()).unwrap())
}

/// Requests the sub-agent tasks of the only thread.
async fn tasks(house: &House, query: &str) -> (u16, Value) {
    let thread = ask(house, "threads").await.1["threads"][0]["id"].as_str().unwrap().to_owned();
    ask(house, &format!("threads/{thread}/tasks{query}")).await
}

/// Returns for each event its name and its distinguishing field.
fn names(told: &Value) -> Vec<String> {
    let name = |event: &Value| {
        let content = &event["content"];
        let what = ["description", "status", "kind"].iter().find_map(|key| content[key].as_str());
        format!(
            "{} {} {}",
            content["task_id"].as_str().unwrap(),
            event["event_type"].as_str().unwrap(),
            what.unwrap()
        )
    };
    told["events"].as_array().unwrap().iter().map(name).collect()
}

/// Returns the answer of a slow model.
fn slow(words: &str) -> Answer {
    Reply::text(words).after(Duration::from_secs(6)).usage(20, 2)
}

#[tokio::test]
async fn two_sub_agents_are_seen_at_work_and_their_steps_stay_readable() {
    let mut house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    let (apples, pears) = (hand("count apples"), hand("count pears"));
    let list = json!({"path": "/mnt/user-data", "description": "Looking for apples"});
    house.model.otherwise(move |ask| match (ask.last_user().as_str(), ask.last_role()) {
        ("compare", "user") => Reply::tool("task", &apples).tool("task", &pears).into(),
        ("compare", _) => Reply::text("More pears.").into(),
        ("please count apples", "user") => Reply::tool("ls", &list).usage(7, 1).into(),
        ("please count apples", _) => slow("Seven apples; the key is sk-simulated-key-0123456789.").into(),
        _ => slow("Nine pears.").into(),
    });
    ada.say("compare");
    ada.reads_so(|text| text.contains("🔹 count apples: ") && text.contains("\n🔹 count pears: thinking…"))
        .await;
    ada.reads("More pears.").await;
    let (status, told) = tasks(&house, "").await;
    assert_eq!((status, &told["next"]), (200, &Value::Null));
    let (first, second): (Vec<_>, Vec<_>) = {
        let all = names(&told);
        let id = all[0].split(' ').next().unwrap().to_owned();
        all.into_iter().partition(|name| name.starts_with(&format!("{id} ")))
    };
    let ends = |all: &[String]| {
        all.iter().map(|name| name.split_once(' ').unwrap().1.to_owned()).collect::<Vec<_>>()
    };
    let apples = [
        "subagent.start count apples",
        "subagent.step ai",
        "subagent.step tool",
        "subagent.step ai",
        "subagent.end completed",
    ];
    assert_eq!(ends(&first), apples);
    assert_eq!(ends(&second), ["subagent.start count pears", "subagent.step ai", "subagent.end completed"]);
    let events = told["events"].as_array().unwrap();
    let step = events.iter().find(|event| event["content"]["tool_calls"][0]["name"] == "ls").unwrap();
    assert_eq!(step["content"]["tool_calls"][0]["args"]["path"], "/mnt/user-data");
    assert!(!told.to_string().contains("sk-simulated-key"), "{told}");
    let seven = |event: &&Value| {
        event["content"]["result"].as_str().is_some_and(|text| text.starts_with("Seven apples;"))
    };
    let end = events.iter().find(seven).unwrap();
    assert_eq!(end["content"]["usage"], json!({"input_tokens": 27, "output_tokens": 3, "total_tokens": 30}));

    house.stop().await;
    house.start();
    assert_eq!(tasks(&house, "").await.1, told, "as it was before the restart");
    let (_, page) = tasks(&house, "?limit=3").await;
    let next = page["next"].as_i64().unwrap();
    assert_eq!(page["events"].as_array().unwrap()[..], events[..3]);
    let (_, rest) = tasks(&house, &format!("?after={next}")).await;
    assert_eq!(rest["events"].as_array().unwrap()[..], events[3..]);
    let one = events[0]["content"]["task_id"].as_str().unwrap();
    assert_eq!(names(&tasks(&house, &format!("?task={one}")).await.1).len(), 5);
    assert_eq!(tasks(&house, "?run=other").await.1["events"], json!([]));
    assert_eq!(tasks(&house, "?who=me").await.0, 422);
    let bare = house.get("/api/threads/any/tasks").await;
    assert_eq!(bare.0, 401, "{}", bare.1);
    // The model receives no steps, and the conversation continues.
    house.model.otherwise(|ask| Reply::text(&format!("{} messages", ask.messages().len())).into());
    ada.says("and now?", "7 messages").await;
}

#[tokio::test]
async fn who_stops_the_run_stops_its_sub_agents() {
    let mut house = House::furnish(Options::default(), "", "").await;
    house.start();
    let ada = Talker::new(&house, "Ada");
    house.model.next(Reply::tool("task", &hand("wait")));
    house.model.next(Reply::text("never").after(Duration::from_secs(600)));
    ada.say("go");
    ada.reads_so(|text| text.contains("🔹 wait: thinking…")).await;
    ada.say("/stop");
    ada.reads_so(|text| text.contains("Stopped") && !text.contains("🔹")).await;
    let (_, told) = tasks(&house, "").await;
    assert_eq!(told["events"][1]["content"]["status"], "cancelled", "{told}");
    ada.says("what was that?", "echo: what was that?").await;
    let last = house.model.requests().pop().unwrap();
    assert!(last.messages().iter().any(|m| m["content"] == "Task cancelled by user."), "{last:?}");
}

#[tokio::test]
async fn a_task_that_a_crash_cut_is_told_as_failed_and_not_made_twice() {
    let mut house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    house.model.next(Reply::tool("task", &hand("wait")));
    house.model.next(Reply::tool("ls", &json!({"path": "/mnt/user-data"})));
    house.model.next(Reply::text("never").after(Duration::from_secs(600)));
    ada.say("go");
    house.model.wait(SOON, |model| (model.count() == 3).then_some(())).await.unwrap();
    house.kill();
    house.model.otherwise(|ask| Reply::text(&format!("I read: {}", ask.last_tool())).into());
    house.start();
    let lost = "Task failed. Error: a restart interrupted it. Some of its work may be done: check before you delegate it again";
    ada.reads(&format!("I read: {lost}")).await;
    assert_eq!(house.model.count(), 4, "no sub-agent worked a second time");
    let (_, told) = tasks(&house, "").await;
    let last = told["events"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((&last["event_type"], &last["content"]["status"]), (&json!("subagent.end"), &json!("failed")));
}

#[tokio::test]
async fn a_sub_agent_with_an_unknown_model_stops_the_start_and_an_unknown_skill_is_told() {
    let mut house =
        House::furnish(Options::default(), "", "subagents: {agents: {bash: {model: nobodys}}}\n").await;
    assert!(!house.try_start(), "it started");
    let (good, told) = house.pudu(&["config", "check"]);
    let expect = "error: subagents.agents.bash.model: there is no model nobodys";
    assert!(!good && told.contains(expect) && told.contains("use one of `models`: sim"), "{told}");
    house.configure("", "subagents: {agents: {bash: {skills: [walking-on-water]}}}\n");
    house.start();
    let line = "the sub-agent bash lists the skill walking-on-water, which does not exist";
    assert!(house.log().contains(line), "{}", house.log());
    let (_, told) = house.pudu(&["doctor"]);
    assert!(told.contains(line), "{told}");
}
