//! Questions and approvals, on every platform.

use crate::{
    house::{House, SOON, Talker, http},
    platforms::on_each_platform,
    scene::{Scene, is_final},
};
use pudu_sim::{
    model::{Answer, Reply},
    platform::Shown,
};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

on_each_platform!([
    a_question_is_answered_by_a_button
    a_person_has_one_name_whether_they_write_or_press
    what_is_approved_is_done_and_that_stays_in_the_message
    what_is_denied_is_not_done
    a_restart_keeps_the_question_open
    nobody_else_decides
    only_approvers_decide
    where_no_approver_reads_nothing_waits
]);

fn question(options: &[&str]) -> Reply {
    let asked =
        json!({"question": "Which one?", "clarification_type": "approach_choice", "options": options});
    Reply::tool("ask_clarification", &asked).into()
}

/// A write that needs approval.
pub(crate) fn wish() -> Reply {
    Reply::tool("write_file", &json!({"path": "/mnt/user-data/outputs/a.txt", "content": "hi"})).into()
}

/// The part of it that users see, in the markup of any platform.
const WISH: &str = "write_file";

async fn a_question_is_answered_by_a_button(scene: Scene) {
    scene.house.model.next(question(&["the fast one", "the safe one"]));
    scene.say("do it");
    let asked =
        |shown: &[Shown]| shown.iter().find(|s| s.buttons.iter().any(|b| b == "the safe one")).cloned();
    let asked = scene.sees(&scene.chat, asked).await;
    assert!(asked.text.contains("Which one?") && is_final(&asked), "{asked:?}");
    assert!(scene.platform.press(&scene.chat, &scene.ada, &asked.id, "the safe one"));
    scene.reads(&scene.chat, "echo: the safe one").await;
    let last = scene.house.model.requests().pop().unwrap();
    let roles: Vec<&str> = last.messages().iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "user"]);
}

async fn a_person_has_one_name_whether_they_write_or_press(scene: Scene) {
    let group = scene.platform.group("team", &[&scene.ada]);
    scene.house.model.next(question(&["the fast one", "the safe one"]));
    scene.write(&group, &scene.ada, "do it", true, None);
    let asked =
        |shown: &[Shown]| shown.iter().find(|s| s.buttons.iter().any(|b| b == "the safe one")).cloned();
    let asked = scene.sees(&group, asked).await;
    assert!(scene.platform.press(&group, &scene.ada, &asked.id, "the safe one"));
    scene.reads(&group, "echo: [Ada] the safe one").await;
    let last = scene.house.model.requests().pop().unwrap();
    assert!(last.messages().iter().any(|m| m["content"] == "[Ada] do it"), "{last:?}");
}

/// Ada requests something that needs approval, and sees the question.
async fn ask(scene: &Scene) -> Shown {
    scene.house.model.next(wish());
    scene.say("write it");
    waits(scene).await
}

async fn waits(scene: &Scene) -> Shown {
    let waits = |shown: &[Shown]| {
        let asked = shown.iter().find(|shown| shown.buttons.iter().any(|button| button == "Approve"))?;
        asked.text.contains(WISH).then(|| asked.clone())
    };
    scene.sees(&scene.chat, waits).await
}

/// Waits for the answer with the decision.
async fn decided(scene: &Scene, sign: &str) -> Shown {
    let done = |shown: &[Shown]| {
        let last = shown.last()?;
        (is_final(last) && last.text.contains(sign)).then(|| last.clone())
    };
    scene.sees(&scene.chat, done).await
}

/// Requires approvals from the next message on.
fn be_careful(scene: &Scene) {
    scene.house.configure("", "approvals: {tools: [write_file]}\n");
}

async fn what_is_approved_is_done_and_that_stays_in_the_message(scene: Scene) {
    be_careful(&scene);
    let asked = ask(&scene).await;
    scene.house.model.next(Reply::text("It is written."));
    assert!(scene.platform.press(&scene.chat, &scene.ada, &asked.id, "Approve"));
    let answer = decided(&scene, " approved write_file").await;
    assert!(answer.text.contains("It is written.") && answer.buttons.is_empty(), "{answer:?}");
    assert_eq!(scene.house.model.requests()[1].last_tool(), "OK");
    assert_eq!(scene.platform.shown(&scene.chat).len(), 1, "one message from the question to the answer");
}

async fn what_is_denied_is_not_done(scene: Scene) {
    be_careful(&scene);
    let asked = ask(&scene).await;
    assert!(scene.platform.press(&scene.chat, &scene.ada, &asked.id, "Deny"));
    let answer = decided(&scene, " denied write_file").await;
    assert!(answer.text.contains("echo: write it"), "{answer:?}");
    let told = scene.house.model.requests()[1].last_tool();
    assert!(told.contains("denied this call."), "{told}");
    scene.platform.press(&scene.chat, &scene.ada, &asked.id, "Approve");
    assert_eq!(scene.model_calls(), 2, "it stays denied");
}

async fn a_restart_keeps_the_question_open(mut scene: Scene) {
    be_careful(&scene);
    ask(&scene).await;
    scene.house.kill();
    scene.start().await;
    let asked = waits(&scene).await;
    scene.house.model.next(Reply::text("It is written."));
    // A press during the end of the old connection is lost, and users press again.
    let done = || {
        let last = scene.platform.shown(&scene.chat).pop()?;
        (is_final(&last) && last.text.contains(" approved write_file")).then_some(())
    };
    for _ in 0..SOON.as_secs() {
        scene.platform.press(&scene.chat, &scene.ada, &asked.id, "Approve");
        let patience = Duration::from_secs(1);
        if scene.platform.wait(&scene.chat, patience, |_| done()).await.is_ok() {
            break;
        }
    }
    assert_eq!(scene.house.model.requests().pop().unwrap().last_tool(), "OK");
    assert_eq!(scene.platform.shown(&scene.chat).len(), 1, "{:?}", scene.words(&scene.chat));
}

/// CVE-2026-32906: a press of another user who is no approver has no effect.
async fn nobody_else_decides(scene: Scene) {
    be_careful(&scene);
    let (ada, bob) = (scene.ada.clone(), scene.platform.person("Bob"));
    let room = scene.platform.group("Herd", &[&ada, &bob]);
    scene.house.model.next(wish());
    scene.write(&room, &ada, "write it", true, None);
    let waits = |shown: &[Shown]| shown.iter().find(|s| s.buttons.iter().any(|b| b == "Approve")).cloned();
    let asked = scene.sees(&room, waits).await;
    assert!(scene.platform.press(&room, &bob, &asked.id, "Approve"));
    let told =
        |shown: &[Shown]| shown.iter().any(|s| s.text.contains("You cannot decide this")).then_some(());
    scene.sees(&room, told).await;
    assert_eq!(scene.model_calls(), 1, "nothing was decided");
    assert!(scene.platform.press(&room, &ada, &asked.id, "Approve"));
    let done =
        |shown: &[Shown]| shown.iter().any(|s| is_final(s) && s.text.contains("Ada approved")).then_some(());
    scene.sees(&room, done).await;
}

/// Names one approver from the next message on.
fn let_decide(scene: &Scene, person: &str) {
    scene.house.configure(&format!("approvers: [\"{person}\"]\n"), "approvals: {tools: [write_file]}\n");
}

/// CVE-2026-32906: if approvers are named, they decide, and not the user who made the request.
async fn only_approvers_decide(scene: Scene) {
    let (ada, bob) = (scene.ada.clone(), scene.platform.person("Bob"));
    let room = scene.platform.group("Herd", &[&ada, &bob]);
    let_decide(&scene, &bob);
    scene.house.model.next(wish());
    scene.write(&room, &ada, "write it", true, None);
    let waits = |shown: &[Shown]| shown.iter().find(|s| s.buttons.iter().any(|b| b == "Approve")).cloned();
    let asked = scene.sees(&room, waits).await;
    assert!(asked.text.contains("Only approvers named by your admin can decide this"), "{asked:?}");
    assert!(scene.platform.press(&room, &ada, &asked.id, "Approve"));
    let told =
        |shown: &[Shown]| shown.iter().any(|s| s.text.contains("You cannot decide this")).then_some(());
    scene.sees(&room, told).await;
    assert_eq!(scene.model_calls(), 1, "nothing was decided");
    assert!(scene.platform.press(&room, &bob, &asked.id, "Approve"));
    let done = |shown: &[Shown]| {
        shown.iter().any(|s| is_final(s) && s.text.contains(" approved write_file")).then_some(())
    };
    scene.sees(&room, done).await;
    assert!(!scene.words(&room).iter().any(|text| text.contains("Ada approved")));
    assert_eq!(scene.house.model.requests()[1].last_tool(), "OK");
}

/// In a private chat no approver would see the question, so it is not asked and the chat does not hang.
async fn where_no_approver_reads_nothing_waits(scene: Scene) {
    let bob = scene.platform.person("Bob");
    let_decide(&scene, &bob);
    scene.house.model.next(wish());
    scene.say("write it");
    let answer = decided(&scene, "I did not do this: ").await;
    assert!(answer.text.contains("Ask me in a group with one of them"), "{answer:?}");
    assert!(answer.text.contains("echo: write it") && answer.buttons.is_empty(), "{answer:?}");
    let told = scene.house.model.requests()[1].last_tool();
    assert!(told.contains("no approver can read this chat"), "{told}");
}

#[tokio::test]
async fn an_approval_that_nobody_gives_in_time_is_a_no() {
    let rest = "approvals: {tools: [write_file], timeout_seconds: 1}\n";
    let mut house = House::furnish(Default::default(), "", rest).await;
    house.start();
    let ada = Talker::new(&house, "Ada");
    house.model.next(wish());
    ada.say("write it");
    let answer = ada.reads_so(|text| text.contains("echo: write it")).await;
    assert!(answer.contains("⌛"), "{answer}");
    assert!(house.model.requests()[1].last_tool().starts_with("Error: this call was not approved in time."));
}

/// CVE-2026-22175: an approval is valid once; even the same call needs another.
#[tokio::test]
async fn an_approval_counts_for_one_call() {
    let mut house = House::furnish(Default::default(), "", "approvals: {tools: [write_file]}\n").await;
    house.start();
    let ada = Talker::new(&house, "Ada");
    house.model.next(wish());
    house.model.next(wish());
    ada.say("write it twice");
    let mut before = None;
    for call in 1..=2 {
        let asked = house.telegram.wait(SOON, |view| {
            let answer = view.answers(ada.chat).pop()?;
            let approve = answer.buttons.into_iter().flatten().find(|button| button.text == "Approve")?;
            (before != approve.callback_data).then_some((answer.id, approve.callback_data))
        });
        let (message, data) = asked.await.unwrap();
        assert_eq!(house.model.count(), call, "nothing is done unasked");
        house.telegram.press(ada.chat, ada.person, message, "Approve").unwrap();
        before = data;
    }
    ada.reads_so(|text| text.contains("echo: write it twice")).await;
}

/// CVE-2026-41303: text in the chat is no decision, whoever writes it.
#[tokio::test]
async fn typed_words_approve_nothing() {
    let mut house = House::furnish(Default::default(), "", "approvals: {tools: [write_file]}\n").await;
    house.start();
    let ada = Talker::new(&house, "Ada");
    house.model.next(wish());
    ada.say("write it");
    let question = house
        .telegram
        .wait(SOON, |view| view.answers(ada.chat).into_iter().find(|answer| answer.text.contains("May I?")));
    question.await.unwrap();
    ada.say("/approve yes");
    ada.reads_so(|text| text.contains("/help")).await;
    assert_eq!(house.model.count(), 1);
}

#[tokio::test]
async fn what_was_done_and_decided_can_be_looked_up() {
    let rest = "approvals: {dangerous: block}\nsandbox: {allow_host_bash: true}\n";
    let mut house = House::furnish(Default::default(), "", rest).await;
    house.start();
    let ada = Talker::new(&house, "Ada");
    house.model.next(Reply::tool("bash", &json!({"command": "echo hi; exit 3"})));
    house.model.next(Reply::tool("bash", &json!({"command": "rm -rf /mnt/user-data"})));
    house.model.next(wish());
    ada.say("work");
    ada.reads("echo: work").await;
    assert!(house.model.requests()[2].last_tool().contains("not allowed here"));
    let token = std::fs::read_to_string(house.path(".pudu/gateway-token")).unwrap();
    let url = format!("http://{}/api/audit?limit=10", house.address);
    assert_eq!(http().get(&url).send().await.unwrap().status(), 401);
    let told = http().get(&url).bearer_auth(token).send().await.unwrap().text().await.unwrap();
    let told: Value = serde_json::from_str(&told).unwrap();
    let deeds: Vec<Value> = told["deeds"].as_array().unwrap().clone();
    let seen: Vec<_> = deeds
        .iter()
        .map(|deed| json!([deed["action"], deed["detail"], deed["verdict"], deed["code"]]))
        .collect();
    assert_eq!(
        seen,
        [
            json!(["write", "/mnt/user-data/outputs/a.txt", "allowed", 0]),
            json!(["ask", "`rm -rf /mnt/user-data`", "blocked", null]),
            json!(["exec", "echo hi; exit 3", "allowed", 3]),
        ]
    );
    assert!(
        deeds.iter().all(|deed| deed["account"] == "telegram" && deed["person"] == ada.person.to_string())
    );
}

#[tokio::test]
async fn a_command_hides_nothing_behind_many_words_and_one_that_ran_out_of_time_says_so() {
    let rest = "approvals: {dangerous: allow}\nsandbox: {allow_host_bash: true, bash_command_timeout: 1}\n";
    let mut house = House::furnish(Default::default(), "", rest).await;
    house.start();
    let ada = Talker::new(&house, "Ada");
    let long = format!("# {}\necho hidden", "x".repeat(10_100));
    house.model.next(Reply::tool("bash", &json!({"command": long})));
    house.model.next(Reply::tool("bash", &json!({"command": "sleep 30"})));
    ada.say("work");
    ada.reads("echo: work").await;
    let told = house.audit(&[]);
    let lines: Vec<&str> = told.lines().collect();
    assert!(lines.len() == 2, "{told}");
    assert!(lines[0].ends_with("\\necho hidden") && lines[0].contains("SHA-256 of the whole: "), "{told}");
    assert!(lines[1].ends_with("  exec  allowed  killed: out of time  sleep 30"), "{told}");
    let thread = lines[1].split("  ").nth(2).unwrap();
    let told = house.audit(&["--thread", thread]);
    assert_eq!(told.lines().count(), 2, "the thread that is shown is one to ask for: {told}");
}

#[tokio::test]
async fn a_command_that_was_stopped_or_died_with_the_daemon_says_so() {
    let rest = "approvals: {dangerous: allow}\nsandbox: {allow_host_bash: true}\n";
    let mut house = House::furnish(Default::default(), "", rest).await;
    house.start();
    let ada = Talker::new(&house, "Ada");
    let last = async |house: &House, end: &str| {
        let deadline = Instant::now() + SOON;
        loop {
            let told = house.audit(&[]);
            if told.trim_end().ends_with(&format!("  exec  allowed  {end}  sleep 600")) {
                return;
            }
            assert!(Instant::now() < deadline, "{end}: {told}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let sleep = || Reply::tool("bash", &json!({"command": "sleep 600"}));
    house.model.next(sleep());
    ada.say("work");
    last(&house, "not ended").await;
    ada.say("/stop");
    last(&house, "stopped").await;
    house.model.next(sleep());
    ada.say("more work");
    last(&house, "not ended").await;
    house.kill();
    last(&house, "the daemon ended").await;
    house.start();
    let told = house.audit(&[]);
    assert!(!told.contains("not ended") && told.contains("  stopped  sleep 600\n"), "{told}");
}

fn slow(words: &str) -> Answer {
    Reply::text(words).after(Duration::from_secs(6)).usage(20, 2)
}

#[tokio::test]
async fn sub_agents_are_seen_at_work_and_their_tokens_are_counted() {
    let house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    let hand = |about: &str| json!({"description": about, "prompt": format!("please {about}"), "subagent_type": "general-purpose"});
    let (apples, pears) = (hand("count apples"), hand("count pears"));
    house.model.otherwise(move |ask| match (ask.last_user().as_str(), ask.last_role()) {
        ("compare", "user") => Reply::tool("task", &apples).tool("task", &pears).usage(10, 1).into(),
        ("compare", _) => Reply::text("More pears.").usage(40, 4).into(),
        ("please count apples", _) => slow("Seven apples.").into(),
        _ => slow("Nine pears.").into(),
    });
    ada.say("compare");
    let both = "🔹 count apples: thinking…\n🔹 count pears: thinking…\n\nSub-agents are working…";
    ada.reads_so(|text| text.contains(both)).await;
    ada.reads("More pears.").await;
    let last = house.model.requests().pop().unwrap();
    let told: Vec<String> = last.messages().iter().map(|m| m["content"].to_string()).collect();
    assert!(told.iter().any(|text| text.contains("Task Succeeded. Result: Seven apples.")), "{told:?}");
    ada.say("/usage");
    ada.reads_so(|text| text.contains("90") && text.contains('9')).await;
}

#[tokio::test]
async fn a_tool_may_need_approval_by_its_own_entry() {
    let tools = "tools:\n  - use: pudu.web:web_fetch_tool\n    approval: required\n  - use: deerflow.sandbox.tools:ls_tool\n";
    let mut house =
        House::furnish(Default::default(), "", &format!("{tools}approvals: {{timeout_seconds: 1}}\n")).await;
    house.start();
    let ada = Talker::new(&house, "Ada");
    house.model.next(Reply::tool("ls", &json!({"path": "/mnt/user-data"})));
    house.model.next(Reply::tool("web_fetch", &json!({"url": "https://example.com/"})));
    ada.say("look it up");
    let answer = ada.reads_so(|text| text.contains("echo: look it up")).await;
    assert!(answer.contains("⌛ web_fetch"), "{answer}");
    let asked = house.model.requests();
    assert!(asked[1].last_tool().contains("workspace"), "{}", asked[1].last_tool());
    assert!(asked[2].last_tool().starts_with("Error: this call was not approved in time."));
}
