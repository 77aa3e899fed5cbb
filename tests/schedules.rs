//! Scheduled tasks: DeerFlow's API, and what happens at their times.

use crate::{
    gateway::{Api, THREAD, detail},
    house::{SOON, http},
    platforms::on_each_platform,
    scene::{Scene, is_final, last},
};
use pudu_sim::{
    model::{At, Reply},
    platform::Shown,
};
use reqwest::Method;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const ON: &str = "scheduler: {enabled: true, min_once_delay_seconds: 1}\n";
const TASKS: &str = "/api/scheduled-tasks";

fn daily() -> Value {
    json!({
        "title": "News", "prompt": "Read the news", "schedule_type": "cron", "timezone": "Asia/Shanghai",
        "schedule_spec": {"cron": "0 9 * * 1-5"}, "context_mode": "fresh_thread_per_run",
    })
}

/// A task whose only time is in a second.
fn soon() -> Value {
    let time = jiff::Timestamp::now() + jiff::SignedDuration::from_millis(1_500);
    json!({
        "title": "Once", "prompt": "Say hello", "schedule_type": "once", "timezone": "UTC",
        "schedule_spec": {"run_at": time.to_string()},
    })
}

impl Api {
    async fn schedule(&self, body: &Value) -> String {
        let (status, task) = self.send(Method::POST, TASKS, body).await;
        assert_eq!(status, 200, "{task}");
        task["id"].as_str().unwrap().to_owned()
    }

    async fn runs(&self, task: &str) -> Vec<Value> {
        let (status, runs) = self.get(&format!("{TASKS}/{task}/runs")).await;
        assert_eq!(status, 200, "{runs}");
        runs.as_array().unwrap().clone()
    }

    /// Waits until the newest run of a task has this status.
    async fn ends(&self, task: &str, status: &str) -> Value {
        let late = Instant::now() + SOON;
        loop {
            let runs = self.runs(task).await;
            if let Some(run) = runs.first().filter(|run| run["status"] == status) {
                return run.clone();
            }
            assert!(Instant::now() < late, "{runs:?}\n{}", self.house.log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

#[tokio::test]
async fn a_task_is_created_listed_changed_paused_and_deleted() {
    let api = Api::open("").await;
    let (status, mut task) = api.send(Method::POST, TASKS, &daily()).await;
    assert_eq!(status, 200, "{task}");
    let id = task["id"].as_str().unwrap().to_owned();
    let at = format!("{TASKS}/{id}");
    for key in ["id", "next_run_at", "created_at", "updated_at", "notice"] {
        assert!(task[key].take().is_string(), "{key}");
    }
    let expect = json!({
        "id": null, "user_id": "default", "thread_id": null, "context_mode": "fresh_thread_per_run",
        "assistant_id": "lead_agent", "title": "News", "prompt": "Read the news", "schedule_type": "cron",
        "schedule_spec": {"cron": "0 9 * * 1-5"}, "timezone": "Asia/Shanghai", "status": "enabled",
        "overlap_policy": "skip", "next_run_at": null, "last_run_at": null, "last_run_id": null,
        "last_thread_id": null, "last_error": null, "lease_owner": null, "lease_expires_at": null,
        "run_count": 0, "created_at": null, "updated_at": null, "agent": null, "model": null, "budget": null,
        "target": null, "failures": 0, "notice": null,
    });
    assert_eq!(task, expect);
    let (_, listed) = api.get("/api/langgraph/scheduled-tasks").await;
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["id"]), (1, &json!(id)));
    let edit = json!({"title": "Weather", "timezone": "UTC", "model": "sim", "budget": 900, "prompt": null});
    let (status, task) = api.send(Method::PATCH, &at, &edit).await;
    let seen = ["title", "timezone", "model", "budget", "prompt"].map(|key| task[key].clone());
    assert_eq!((status, json!(seen)), (200, json!(["Weather", "UTC", "sim", 900, "Read the news"])));
    for (step, expected) in [("pause", "paused"), ("pause", "paused"), ("resume", "enabled")] {
        let (status, task) = api.call(Method::POST, &format!("{at}/{step}"), false, None).await;
        assert_eq!((status, &task["status"]), (200, &json!(expected)), "{step}");
    }
    assert_eq!(api.get(&at).await.1["status"], "enabled");
    let (status, gone) = api.call(Method::DELETE, &at, false, None).await;
    assert_eq!((status, gone), (200, json!({"id": id, "deleted": true})));
    let missing = (404, detail("Scheduled task not found"));
    assert_eq!(api.get(&at).await, missing);
    assert_eq!(api.call(Method::DELETE, &at, false, None).await, missing);
    assert_eq!(api.get(&format!("{at}/runs")).await, missing);
}

#[tokio::test]
async fn garbage_is_refused_with_a_reason() {
    let api = Api::open("scheduler: {max_tasks_per_user: 1}\n").await;
    let with = |key: &str, value: Value| {
        let mut body = daily();
        body[key] = value;
        body
    };
    let once = |time: &str| {
        let mut body = with("schedule_type", json!("once"));
        body["schedule_spec"] = json!({ "run_at": time });
        body
    };
    for (body, status, expected) in [
        (with("timezone", json!("Mars/Base")), 422, "Unknown timezone: Mars/Base"),
        (with("schedule_spec", json!({"cron": "0 9 * *"})), 422, "must contain exactly 5 fields"),
        (with("schedule_spec", json!({"cron": "@daily"})), 422, "must contain exactly 5 fields"),
        (with("schedule_spec", json!({"cron": "0 99 * * *"})), 422, "cannot be read"),
        (with("schedule_spec", json!({"cron": "0 0 30 2 *"})), 422, "never matches"),
        (with("schedule_spec", json!({"cron": "\0 \0 \0 \0 \0"})), 422, "cannot be read"),
        (with("schedule_spec", json!(7)), 422, "schedule_spec.cron is required"),
        (with("schedule_type", json!("hourly")), 422, "schedule_type"),
        (with("title", json!(" ")), 422, "`title` must not be empty"),
        (with("title", json!("x".repeat(256))), 422, "at most 255"),
        (with("prompt", json!("x".repeat(50_001))), 422, "at most 50000"),
        (with("budget", json!(0)), 422, "`budget`"),
        (with("model", json!("none")), 400, "there is no model `none`"),
        (with("agent", json!("none")), 404, "unknown assistant `none`"),
        (with("context_mode", json!("reuse_thread")), 422, "reuse_thread requires thread_id"),
        (with("target", json!({"thread_id": "none"})), 404, "there is no chat of this thread"),
        (once("2020-01-01T00:00:00Z"), 422, "once schedule must be in the future"),
        (once("soon"), 422, "not an ISO 8601 time"),
    ] {
        let (code, told) = api.send(Method::POST, TASKS, &body).await;
        let told = told["detail"].as_str().unwrap();
        assert!(code == status && told.contains(expected), "{body}: {code} {told}");
    }
    let mut foreign = with("context_mode", json!("reuse_thread"));
    foreign["thread_id"] = json!("none");
    assert_eq!(api.send(Method::POST, TASKS, &foreign).await, (404, detail("Thread not found")));
    api.schedule(&with("title", json!("a\0b"))).await;
    assert_eq!(api.send(Method::POST, TASKS, &daily()).await.0, 409, "there are too many");
    let id = api.get(TASKS).await.1[0]["id"].as_str().unwrap().to_owned();
    for query in ["limit=0", "limit=201", "limit=x", "offset=-1"] {
        assert_eq!(api.get(&format!("{TASKS}/{id}/runs?{query}")).await.0, 422, "{query}");
    }
}

#[tokio::test]
async fn a_task_runs_at_its_time_on_a_new_thread() {
    let api = Api::open(ON).await;
    let id = api.schedule(&soon()).await;
    let run = api.ends(&id, "success").await;
    let (thread, own) = (run["thread_id"].as_str().unwrap(), run["run_id"].as_str().unwrap());
    let (_, task) = api.get(&format!("{TASKS}/{id}")).await;
    let seen = ["status", "run_count", "last_run_id", "last_thread_id", "next_run_at"].map(|key| &task[key]);
    assert_eq!(json!(seen), json!(["completed", 1, own, thread, null]));
    assert_eq!((&run["trigger"], &task["notice"]), (&json!("scheduled"), &Value::Null));
    assert_eq!(run["scheduled_for"], api.runs(&id).await[0]["scheduled_for"]);
    let (_, shown) = api.get(&format!("/api/threads/{thread}/runs/{own}")).await;
    let metadata = json!({
        "scheduled_task_id": id, "scheduled_task_run_id": run["id"], "scheduled_trigger": "scheduled",
    });
    assert_eq!((&shown["metadata"], &shown["status"]), (&metadata, &json!("success")));
    let (_, state) = api.get(&format!("/api/threads/{thread}/state")).await;
    let texts: Vec<&Value> =
        state["values"]["messages"].as_array().unwrap().iter().map(|message| &message["content"]).collect();
    assert_eq!(json!(texts), json!(["Say hello", "echo: Say hello"]));
    let tools = api.house.model.requests()[0].body["tools"].to_string();
    assert!(!tools.contains("ask_clarification") && tools.contains("read_file"), "{tools}");
    let (_, listed) = api.get(&format!("/api/threads/{thread}/scheduled-tasks")).await;
    assert_eq!(listed[0]["id"], json!(id));
}

#[tokio::test]
async fn a_task_reuses_its_thread_with_its_own_budget() {
    let api = Api::open(ON).await;
    let hello =
        json!({"input": {"messages": [{"type": "human", "content": "hello"}]}, "if_not_exists": "create"});
    assert_eq!(api.send(Method::POST, &format!("/api/threads/{THREAD}/runs/wait"), &hello).await.0, 200);
    let mut body = daily();
    body["context_mode"] = json!("reuse_thread");
    body["thread_id"] = json!(THREAD);
    body["budget"] = json!(50);
    let id = api.schedule(&body).await;
    api.house.model.next(Reply::tool("ls", &json!({"path": "/mnt/user-data"})).usage(40, 40));
    let (status, told) = api.call(Method::POST, &format!("{TASKS}/{id}/trigger"), false, None).await;
    assert_eq!((status, told), (200, json!({"id": id, "triggered": true})));
    let run = api.ends(&id, "failed").await;
    assert_eq!((&run["thread_id"], &run["trigger"]), (&json!(THREAD), &json!("manual")));
    let (_, task) = api.get(&format!("{TASKS}/{id}")).await;
    assert_eq!((&task["status"], &task["failures"]), (&json!("enabled"), &json!(1)), "{task}");
    assert!(task["last_error"].is_string() && task["next_run_at"].is_string(), "{task}");
}

#[tokio::test]
async fn two_starts_by_hand_at_once_launch_one_run_and_a_task_can_be_stopped() {
    let api = Api::open("").await;
    let id = api.schedule(&daily()).await;
    let mut held = api.house.model.hold(1, At::Start);
    let trigger = async || api.call(Method::POST, &format!("{TASKS}/{id}/trigger"), false, None).await;
    let (one, two) = tokio::join!(trigger(), trigger());
    let mut statuses = [one.0, two.0];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409], "{one:?} {two:?}");
    let told = if one.0 == 409 { one.1 } else { two.1 };
    assert_eq!(told, detail("task already has an active run"));
    held.reached().await;
    let run = api.ends(&id, "running").await;
    let [thread, own] = ["thread_id", "run_id"].map(|key| run[key].as_str().unwrap());
    let url = format!("http://{}/api/threads/{thread}/runs/{own}/cancel", api.house.address);
    assert!(http().post(url).send().await.unwrap().status().is_success());
    api.ends(&id, "interrupted").await;
    assert_eq!(api.runs(&id).await.len(), 1);
}

#[tokio::test]
async fn a_due_time_survives_kills_and_runs_once() {
    let mut api = Api::open(ON).await;
    let id = api.schedule(&soon()).await;
    let mut held = api.house.model.hold(1, At::Start);
    held.reached().await;
    api.house.kill();
    api.house.start();
    api.ends(&id, "success").await;
    let task = api.get(&format!("{TASKS}/{id}")).await.1;
    assert_eq!((api.runs(&id).await.len(), &task["run_count"]), (1, &json!(1)));
    // A time that passes while no daemon runs starts late, once.
    let late = api.schedule(&soon()).await;
    api.house.kill();
    tokio::time::sleep(Duration::from_secs(2)).await;
    api.house.start();
    api.ends(&late, "success").await;
    assert_eq!(api.runs(&late).await.len(), 1);
}

on_each_platform!([a_task_is_made_by_talking_and_answers_in_its_chat]);

/// In a channel of Slack and a server of Discord, where each question begins a thread.
mod slack_channel {
    crate::platforms::on_each_platform!(@tests slack in_group [a_task_is_made_by_talking_and_answers_in_its_chat]);
}
mod discord_server {
    crate::platforms::on_each_platform!(@tests discord in_group [a_task_is_made_by_talking_and_answers_in_its_chat]);
}
mod telegram_group {
    crate::platforms::on_each_platform!(@tests telegram in_group [a_task_is_made_by_talking_and_answers_in_its_chat]);
}

/// Lets Ada ask for a task and confirm it. Returns the question that she reads.
async fn make(scene: &Scene, task: &Value) -> String {
    scene.house.model.next(Reply::tool("schedule_task", task));
    scene.house.model.next(Reply::text("It is arranged."));
    scene.say("please do that");
    let asked = |shown: &[Shown]| {
        shown.iter().find(|shown| shown.buttons.iter().any(|button| button == "Approve")).cloned()
    };
    let question = scene.sees(&scene.chat, asked).await;
    assert!(scene.platform.press(&scene.chat, &scene.ada, &question.id, "Approve"));
    let done = |shown: &[Shown]| {
        shown.iter().any(|shown| is_final(shown) && shown.text.contains("It is arranged.")).then_some(())
    };
    scene.sees(&scene.chat, done).await;
    question.text
}

async fn a_task_is_made_by_talking_and_answers_in_its_chat(scene: Scene) {
    scene.house.configure("", ON);
    let time = (jiff::Timestamp::now() + jiff::SignedDuration::from_secs(20)).to_string();
    let task =
        json!({"title": "Tea", "prompt": "Say that tea is ready", "at": time, "timezone": "Asia/Tokyo"});
    let question = make(&scene, &task).await;
    for part in ["Tea", "Asia/Tokyo", "(UTC+09:00)"] {
        assert!(question.contains(part), "{part} is missing in {question}");
    }
    let due = |shown: &[Shown]| {
        let answer = shown.iter().find(|shown| shown.text.contains("⏰"))?;
        (is_final(answer) && answer.text.contains("Say that tea is ready")).then(|| answer.clone())
    };
    let answer = scene.sees(&scene.chat, due).await;
    assert!(answer.text.starts_with("⏰") && answer.text.contains("Tea"), "{}", answer.text);
    // A reply to the answer continues its conversation.
    scene.write(&scene.chat, &scene.ada, "thanks", true, Some(&answer.id));
    let thanked = |shown: &[Shown]| shown.iter().any(|shown| shown.text.contains("thanks")).then_some(());
    scene.sees(&scene.chat, thanked).await;
    let request = scene.house.model.requests().pop().unwrap().body["messages"].to_string();
    assert!(request.contains("Say that tea is ready"), "{request}");
}

fn news() -> Value {
    json!({"title": "News", "prompt": "Read the news", "cron": "0 9 * * 1-5", "timezone": "UTC"})
}

/// Opens a private chat on Telegram, with a scheduler that is on.
async fn open(rest: &str) -> Scene {
    let mut scene = Scene::build(crate::platforms::telegram().await).await;
    scene.house.configure("", rest);
    scene.start().await;
    scene
}

#[tokio::test]
async fn a_person_lists_pauses_resumes_starts_and_deletes_tasks_in_a_chat() {
    let scene = open(ON).await;
    let none = "You have no scheduled tasks. Ask me to do something at a certain time, and I schedule it.";
    let says = async |text: &str, answer: &str| {
        scene.say(text);
        let begins = |shown: &[Shown]| last(shown).filter(|text| text.starts_with(answer));
        scene.sees(&scene.chat, begins).await
    };
    says("/schedule", none).await;
    make(&scene, &news()).await;
    let list = says("/schedule list", "Your scheduled tasks:").await;
    assert!(list.contains("News — 0 9 * * 1-5 UTC — next: 20"), "{list}");
    says("/schedule pause News", "“News” is paused.").await;
    says("/schedule resume news", "“News” runs again. The next time is 20").await;
    says("/schedule run News", "⏰ News\n\necho: Read the news").await;
    says("/schedule pause Weather", "You have no scheduled task Weather. /schedule lists your tasks.").await;
    says("/schedule dance", "/schedule pause, resume, run or delete").await;
    let bob = scene.platform.person("Bob");
    let other = scene.platform.private(&bob);
    scene.write(&other, &bob, "/schedule", true, None);
    scene.reads(&other, none).await;
    says("/schedule delete News", "“News” is deleted.").await;
    says("/schedule", none).await;
}

#[tokio::test]
async fn a_task_in_a_chat_that_keeps_failing_is_paused_with_one_notice() {
    let scene = open("scheduler: {enabled: true, max_failures: 2}\n").await;
    make(&scene, &news()).await;
    for n in 1..=2 {
        scene.house.model.next(Reply::status(401));
        scene.say("/schedule run News");
        let failed = |shown: &[Shown]| {
            let failed = |shown: &&Shown| is_final(shown) && shown.text.starts_with("⏰ News");
            (shown.iter().filter(failed).count() == n).then_some(())
        };
        scene.sees(&scene.chat, failed).await;
    }
    let notice = "⚠️ The schedule “News” failed 2 times in a row, so it is paused.";
    let notices = |shown: &[Shown]| shown.iter().filter(|shown| shown.text.starts_with(notice)).count();
    scene.sees(&scene.chat, |shown| (notices(shown) == 1).then_some(())).await;
    scene.say("/schedule");
    scene.sees(&scene.chat, |shown| last(shown).filter(|text| text.contains("— paused ⚠️"))).await;
    assert_eq!(notices(&scene.platform.shown(&scene.chat)), 1);
}
