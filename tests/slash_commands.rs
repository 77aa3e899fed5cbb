//! Slash commands on threads of the HTTP API: the same as in chats, and answered by the daemon.

use crate::{
    house::{House, SOON, http},
    sign_in::{
        jar::{Jar, add_user},
        signed_in,
    },
};
use pudu_sim::model::{Ask, At, Reply};
use serde_json::{Value, json};

async fn house(rest: &str) -> House {
    let mut house = House::furnish(Default::default(), "", rest).await;
    house.start();
    house
}

impl House {
    async fn command(&self, thread: &str, text: &str) -> Value {
        let url = format!("http://{}/api/threads/{thread}/slash-commands", self.address);
        let answer = http().post(url).json(&json!({ "text": text })).send().await.unwrap();
        let (status, text) = (answer.status().as_u16(), answer.text().await.unwrap());
        assert_eq!(status, 200, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    async fn asks(&self, thread: &str, text: &str) {
        let input = json!({"messages": [{"type": "human", "content": text}]});
        let body = json!({"assistant_id": "lead_agent", "input": input, "if_not_exists": "create"});
        let url = format!("http://{}/api/threads/{thread}/runs/wait", self.address);
        let answer = http().post(url).json(&body).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), 200);
        answer.text().await.unwrap();
    }
}

fn text(answer: &Value) -> &str {
    answer["text"].as_str().unwrap()
}

#[tokio::test]
async fn choices_of_a_thread_hold_for_its_runs_until_a_run_names_its_own() {
    let two = "  - name: other\n    use: langchain_openai:ChatOpenAI\n    model: other-1\n    base_url: ";
    let mut house = House::furnish(Default::default(), "", "").await;
    let config = std::fs::read_to_string(house.path("config.yaml")).unwrap();
    let url = house.model.url();
    let more = format!("{two}{url}\n    api_key: sk-simulated-key-0123456789\nchannels:");
    std::fs::write(house.path("config.yaml"), config.replace("channels:", &more)).unwrap();
    house.start();
    let listed = house.command("t", "/models").await;
    assert!(text(&listed).contains("- `sim` (in use)") || text(&listed).contains("`sim`"), "{listed}");
    assert_eq!(listed["choices"], json!([{"label": "other", "action": "/models other"}]));
    assert_eq!(listed["settings"], json!({"model": null, "thinking": null, "agent": null}));
    let unknown = house.command("t", "/models othr").await;
    assert!(text(&unknown).contains("Did you mean `other`?"), "{unknown}");
    let chosen = house.command("t", "/models OTHER").await;
    assert_eq!(chosen["settings"]["model"], "other");
    house.asks("t", "hi").await;
    assert_eq!(house.model.requests().pop().unwrap().body["model"], "other-1");
    let status = house.command("t", "/status").await;
    assert!(text(&status).contains("other"), "{status}");
    house.asks("u", "hi").await;
    assert_eq!(house.model.requests().pop().unwrap().body["model"], "sim-1", "another thread");
    // The thread and its choices go together, and nothing takes their place.
    let gone = http().delete(format!("http://{}/api/threads/t", house.address)).send().await.unwrap();
    assert!(gone.status().is_success());
    assert_eq!(house.command("t", "/help").await["settings"]["model"], Value::Null);
    let threads = http().post(format!("http://{}/api/threads/search", house.address)).json(&json!({}));
    let threads: Value = threads.send().await.unwrap().json().await.unwrap();
    assert_eq!(threads.as_array().unwrap().len(), 1, "{threads}");
}

#[tokio::test]
async fn what_is_no_command_is_a_message() {
    let house = house("").await;
    for message in ["hello", "/etc/hosts is a file", "//help", "/goal find it", "/data-analysis the numbers"]
    {
        let answer = house.command("t", message).await;
        let expect = json!({"thread_id": "t", "is_message": true, "text": "", "choices": [], "files": [],
            "run_id": null, "settings": {"model": null, "thinking": null, "agent": null}});
        assert_eq!(answer, expect, "{message}");
    }
    let unknown = house.command("t", "/sotp").await;
    assert!(text(&unknown).starts_with("Unknown command: /sotp. Did you mean `/stop`?"), "{unknown}");
    for only_in_chats in ["/mode steer", "/connect"] {
        let name = only_in_chats.split(' ').next().unwrap();
        let expect = format!("{name} only works in chats.");
        assert_eq!(text(&house.command("t", only_in_chats).await), expect);
    }
    let list: Value = serde_json::from_str(&house.get("/api/commands").await.1).unwrap();
    let row = |name: &str| {
        let rows = list["commands"].as_array().unwrap().iter();
        let row = rows.clone().find(|row| row["name"] == name).unwrap();
        (row["kind"].as_str().unwrap().to_owned(), row["works_on_threads"].as_bool().unwrap())
    };
    assert_eq!(row("models"), ("command".to_owned(), true));
    assert_eq!(row("mode"), ("command".to_owned(), false));
    assert_eq!(row("data-analysis"), ("skill".to_owned(), true));
    assert_eq!(house.model.count(), 0);
}

#[tokio::test]
async fn commands_without_an_argument_refuse_text() {
    let house = house("").await;
    house.asks("t", "hello").await;
    let list: Value = serde_json::from_str(&house.get("/api/commands").await.1).unwrap();
    let rows = list["commands"].as_array().unwrap().iter();
    let plain = rows.filter(|row| row["kind"] == "command" && row["argument"] == "");
    let names: Vec<&str> = plain.map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["new", "stop", "retry", "status", "skills", "usage", "compact", "help"]);
    for name in names {
        let refused = house.command("t", &format!("/{name} foo")).await;
        let expect = format!("/{name} takes no arguments. Send it without further text.");
        assert_eq!((text(&refused), &refused["thread_id"]), (expect.as_str(), &json!("t")));
        assert_eq!(refused["run_id"], Value::Null, "{name}");
    }
    assert_eq!(house.model.count(), 1, "no run was started");
}

#[tokio::test]
async fn a_retry_repeats_the_goal_as_a_message_and_not_as_a_command() {
    let house = house("").await;
    assert_eq!(text(&house.command("t", "/goal clear").await), "There is no goal to clear.");
    house.model.when(judges, |_| Reply::text("no verdict").into());
    house.asks("t", "/goal  count all\nregions").await;
    let asked = |house: &House| house.model.requests().into_iter().rfind(|ask| !judges(ask)).unwrap();
    assert!(asked(&house).last_user().contains("count all regions"), "{}", asked(&house).last_user());
    assert_eq!(text(&house.command("t", "/goal clear").await), "Goal cleared.");
    assert_eq!(text(&house.command("t", "/goal clear").await), "There is no goal to clear.");
    let before = house.model.count();
    let run = house.command("t", "/retry").await["run_id"].as_str().unwrap().to_owned();
    let join = format!("http://{}/api/threads/t/runs/{run}/join", house.address);
    let values: Value = http().get(join).send().await.unwrap().json().await.unwrap();
    let said: Vec<&str> =
        values["messages"].as_array().unwrap().iter().map(|m| m["content"].as_str().unwrap()).collect();
    assert_eq!(said[0], "count all regions", "{values}");
    assert!(!asked(&house).last_user().contains("/goal"), "{}", asked(&house).last_user());
    assert_eq!(house.model.count(), before + 1, "the goal is not judged any more");
}

fn judges(ask: &Ask) -> bool {
    ask.last_user().starts_with("<goal>")
}

#[tokio::test]
async fn nothing_is_remembered_while_memory_is_off() {
    let house = house("memory: {enabled: true}\n").await;
    house.command("t", "/memory off").await;
    let refused = house.command("t", "/memory add I live in Lima").await;
    let expect = "Memory is off, so I did not remember that. `/memory on` turns it on.";
    assert_eq!(text(&refused), expect);
    assert!(!text(&house.command("t", "/memory").await).contains("Lima"));
    house.command("t", "/memory on").await;
    house.command("t", "/memory add I live in Lima").await;
    assert!(text(&house.command("t", "/memory").await).contains("Lima"));
}

#[tokio::test]
async fn thinking_is_set_only_as_far_as_the_model_can_think() {
    for (keys, command, stored, told) in [
        ("", "/think high", Value::Null, "sim has no thinking levels. /models lists the other models."),
        ("", "/think", Value::Null, "sim has no thinking levels. /models lists the other models."),
        (
            "    supports_thinking: true\n",
            "/think high",
            json!("high"),
            "Thinking is set to `high` here: hard, for difficult questions. sim can only turn thinking on and off, so \
             this means on.",
        ),
        (
            "    supports_thinking: true\n",
            "/think off",
            json!("off"),
            "Thinking is set to `off` here: not at all, which is fastest.",
        ),
        (
            "    supports_thinking: true\n    supports_reasoning_effort: true\n",
            "/think high",
            json!("high"),
            "Thinking is set to `high` here: hard, for difficult questions.",
        ),
    ] {
        let mut house = House::furnish(Default::default(), "", "").await;
        let config = std::fs::read_to_string(house.path("config.yaml")).unwrap();
        house.write_config(&config.replace("    model: sim-1\n", &format!("    model: sim-1\n{keys}")));
        house.start();
        let answer = house.command("t", command).await;
        assert_eq!((text(&answer), &answer["settings"]["thinking"]), (told, &stored), "{keys:?} {command}");
    }
}

#[tokio::test]
async fn commands_stop_repeat_and_summarize_runs() {
    let house = house("").await;
    assert!(text(&house.command("t", "/retry").await).contains("no question to"), "nothing was asked");
    assert_eq!(text(&house.command("t", "/stop").await), "Nothing is running.");
    let mut hold = house.model.hold(1, At::Start);
    let input = json!({"messages": [{"type": "human", "content": "count"}]});
    let body = json!({"assistant_id": "lead_agent", "input": input, "if_not_exists": "create"});
    let url = format!("http://{}/api/threads/t/runs", house.address);
    let begun: Value = http().post(&url).json(&body).send().await.unwrap().json().await.unwrap();
    hold.reached().await.unwrap();
    let busy = "I am still working. Try again when I am done.";
    assert_eq!(text(&house.command("t", "/retry").await), busy);
    assert_eq!(text(&house.command("t", "/compact").await), busy);
    let status = house.command("t", "/status").await;
    assert!(text(&status).contains("working"), "{status}");
    assert_eq!(text(&house.command("t", "/stop").await), "Stopped.");
    hold.proceed();
    let joined = format!("{url}/{}/join", begun["run_id"].as_str().unwrap());
    http().get(joined).send().await.unwrap().text().await.unwrap();
    house.model.next(Reply::text("one, two"));
    let again = house.command("t", "/retry").await;
    let run = again["run_id"].as_str().unwrap();
    let values: Value = http().get(format!("{url}/{run}/join")).send().await.unwrap().json().await.unwrap();
    let said: Vec<&str> =
        values["messages"].as_array().unwrap().iter().map(|m| m["content"].as_str().unwrap()).collect();
    assert_eq!(said, ["count", "one, two"], "{values}");
    let short = house.command("t", "/compact").await;
    assert!(text(&short).starts_with("There is too little to summarize"), "{short}");
    let next = house.command("t", "/new").await;
    assert_ne!(next["thread_id"], "t");
    assert_eq!(next["is_message"], false);
}

#[tokio::test]
async fn memory_and_secrets_are_those_of_the_caller() {
    let mut house = House::furnish(Default::default(), "", "memory: {enabled: true}\n").await;
    assert!(add_user(&house, &["add", "ada@example.org", "--admin"], "correct horse").0);
    assert!(add_user(&house, &["add", "bo@example.org"], "correct horse").0);
    house.start();
    let (mut ada, mut bo): (Jar, Jar) =
        (signed_in(&house, "ada@example.org").await, signed_in(&house, "bo@example.org").await);
    let command = async |jar: &mut Jar, thread: &str, text: &str| {
        jar.post(&format!("/api/threads/{thread}/slash-commands"), &json!({ "text": text })).await
    };
    let added = command(&mut ada, "a", "/memory add I live in Lima").await;
    assert_eq!(added.status, 200, "{added:?}");
    let export = command(&mut ada, "a", "/memory export").await.body;
    assert_eq!(export["files"][0]["name"], "memory.json");
    assert!(export["files"][0]["content"].as_str().unwrap().contains("I live in Lima"), "{export}");
    let listed = command(&mut bo, "b", "/memory").await.body;
    assert!(!listed.to_string().contains("Lima"), "{listed}");
    let kept = command(&mut ada, "a", "/secret set ERP_TOKEN tok-123456789").await.body;
    assert!(!kept.to_string().contains("tok-123456789"), "{kept}");
    assert!(text(&command(&mut ada, "a", "/secret").await.body).contains("`ERP_TOKEN`"));
    assert!(!text(&command(&mut bo, "b", "/secret").await.body).contains("ERP_TOKEN"));
    // What all users share is changed by administrators.
    let refused = command(&mut bo, "b", "/bootstrap").await.body;
    assert!(refused["is_message"] == false && !text(&refused).is_empty(), "{refused}");
    let begun = command(&mut ada, "a", "/bootstrap").await.body;
    assert!(begun["is_message"] == true && begun["thread_id"] != "a", "{begun}");
    // A thread of another user is not there.
    ada.post("/api/threads", &json!({"thread_id": "hers"})).await;
    assert_eq!(command(&mut bo, "hers", "/status").await.status, 404);
    assert!(!house.log().contains("tok-123456789"));
}

#[tokio::test]
async fn bad_requests_for_commands_are_refused() {
    let house = house("").await;
    let url = format!("http://{}/api/threads/t/slash-commands", house.address);
    for (body, status, detail) in [
        (json!({}), 422, "`text`"),
        (json!({"text": 7}), 422, "text"),
        (json!({"text": "x".repeat(300_000)}), 413, "256 KiB"),
    ] {
        let answer = http().post(&url).json(&body).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), status, "{body}");
        let told = answer.text().await.unwrap();
        assert!(told.contains(detail), "{told}");
    }
    house.model.wait(SOON, |_| Some(())).await.unwrap();
}
