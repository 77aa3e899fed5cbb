//! Messages to users when the platform or the model fails.

use crate::house::{House, SOON, Talker};
use pudu_sim::{
    model::{Reply, RetryAfter, Trouble},
    telegram::Fault,
};
use sqlx::{Connection, SqliteConnection};
use std::time::Duration;

#[tokio::test]
async fn a_storm_of_429_delays_the_answer_and_loses_nothing() {
    let house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    for _ in 0..2 {
        house.telegram.fail_next("editMessageText", Fault::TooMany(1));
    }
    house.telegram.fail_next("sendMessage", Fault::TooMany(1));
    ada.says("hello", "echo: hello").await;
    assert_eq!(ada.answers().len(), 1);
    let calls = house.telegram.calls("*");
    let refused =
        calls.iter().filter(|call| matches!(call.outcome, pudu_sim::telegram::Outcome::Refused(429, _)));
    for refused in refused {
        let early = calls.iter().any(|call| {
            call.method.starts_with("send") | call.method.starts_with("edit")
                && call.at > refused.at
                && call.at < refused.at + Duration::from_millis(950)
        });
        assert!(!early, "retry_after holds the whole chat");
    }
}

#[tokio::test]
async fn lost_answers_of_the_platform_double_nothing() {
    let house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    for fault in [Fault::CutAfter, Fault::CutBefore, Fault::Internal, Fault::BadGateway, Fault::Garbage] {
        house.telegram.fail_next("sendMessage", fault.clone());
        house.telegram.fail_next("editMessageText", fault.clone());
        let text = format!("after {fault:?}");
        ada.says(&text, &format!("echo: {text}")).await;
    }
    let texts: Vec<String> = ada.answers().into_iter().map(|answer| answer.text).collect();
    assert_eq!(texts.len(), 5, "{texts:?}");
}

#[tokio::test]
async fn a_redelivered_update_is_answered_once() {
    let mut house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    let message = ada.says("hello", "echo: hello").await;
    let update = house.telegram.update_of(ada.chat, message).unwrap();
    for _ in 0..3 {
        house.telegram.redeliver(update);
        house.telegram.wait(SOON, |view| (view.waiting() == 0).then_some(())).await.unwrap();
    }
    assert!(house.stop().await.success());
    house.start();
    house.telegram.redeliver(update);
    ada.says("and on", "echo: and on").await;
    assert_eq!((ada.answers().len(), house.model.count()), (2, 2));
}

#[tokio::test]
async fn one_unreadable_update_never_blocks_the_others() {
    let house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    let odd = serde_json::json!({"message_id": "a word", "chat": 7});
    house.telegram.update(ada.chat, "message", &odd);
    house.telegram.update(ada.chat, "kind_of_the_future", &serde_json::json!({}));
    ada.says("hello", "echo: hello").await;
}

#[tokio::test]
async fn text_that_telegram_does_not_take_as_markup_is_sent_plain() {
    let house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    house.model.next(Reply::text("**bold** & <b>not</b>"));
    house.telegram.fail_nth(
        "editMessageText",
        2,
        Fault::Refused(400, "Bad Request: can't parse entities: oops".into()),
    );
    ada.says("hello", "bold & <b>not</b>").await;
    assert_eq!(ada.answers().len(), 1);
}

#[tokio::test]
async fn a_blocked_bot_gives_the_answer_up_and_goes_on_with_others() {
    let house = House::open("").await;
    let (ada, bob) = (Talker::new(&house, "Ada"), Talker::new(&house, "Bob"));
    ada.say("hello");
    house.telegram.block(ada.person).unwrap();
    bob.says("hello", "echo: hello").await;
    assert!(ada.answers().is_empty());
}

#[tokio::test]
async fn the_model_is_asked_again_when_that_may_help() {
    let house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    house.model.next(Reply::status(429).retry_after(RetryAfter::Millis(300)));
    house.model.next(Reply::text("cut in the middle").words_per_chunk(1).cut_after(2));
    ada.says("hello", "echo: hello").await;
    let asked = house.model.requests();
    assert_eq!(asked.len(), 3);
    house.model.next(Reply::text("whole").trouble(0, Trouble::Garbage));
    ada.says("again", "echo: again").await;
    assert!(asked[1].at - asked[0].at >= Duration::from_millis(295), "the provider's own wait is honoured");
    let texts: Vec<String> =
        house.telegram.history(ada.chat, ada.answers()[0].id).into_iter().map(|shown| shown.text).collect();
    assert!(texts.last().is_some_and(|text| text == "echo: hello"), "{texts:?}");
}

#[tokio::test]
async fn what_could_not_be_noted_is_not_offered_to_be_asked_again() {
    let mut house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    ada.says("one", "echo: one").await;
    house.kill();
    let path = house.path(".pudu/data/pudu.db");
    let mut connection = SqliteConnection::connect(&format!("sqlite:{}", path.display())).await.unwrap();
    sqlx::query("UPDATE log SET body = 'spoilt'").execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    house.start();
    ada.say("two");
    let told = ada.reads_so(|text| text.contains("I could not read this conversation")).await;
    assert!(told.ends_with("Send your message again later."), "{told}");
    assert!(ada.answers().last().unwrap().buttons.is_empty(), "again would be the question before");
}

#[tokio::test]
async fn a_model_that_fails_for_good_is_told_with_a_way_on() {
    let house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    house.model.next(Reply::status(401).message("Incorrect API key sk-simulated-key-0123456789"));
    ada.say("hello");
    let text = ada.reads_so(|text| text.contains("rejected the API key")).await;
    assert!(!text.contains("sk-simulated"), "{text}");
    let answer = ada.answers()[0].clone();
    assert_eq!(answer.buttons[0][0].text, "Try again");
    house.telegram.press(ada.chat, ada.person, answer.id, "Try again").unwrap();
    ada.reads("echo: hello").await;
    assert!(!house.log().contains("sk-simulated"), "the log keeps the key to itself");
}

#[tokio::test]
async fn what_a_tool_does_is_shown_and_only_words_stay() {
    let house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    let args = serde_json::json!({"path": "/mnt/user-data/outputs/a.txt", "content": "secret plan"});
    house.model.next(Reply::text("Let me write it down.").tool("write_file", &args));
    house.model.next(Reply::text("Done.").after(Duration::from_millis(1500)));
    ada.says("write it down", "Let me write it down.\n\nDone.").await;
    let texts: Vec<String> =
        house.telegram.history(ada.chat, ada.answers()[0].id).into_iter().map(|shown| shown.text).collect();
    assert!(texts.iter().any(|text| text.starts_with("Let me write it down.")), "{texts:?}");
    assert!(
        texts.iter().all(|text| !text.contains("secret plan")),
        "arguments never reach a chat: {texts:?}"
    );
}

#[tokio::test]
async fn why_a_tool_runs_is_shown_in_the_models_words_and_calls_nobody() {
    let mut house = House::furnish(Default::default(), "", "sandbox: {allow_host_bash: true}\n").await;
    house.start();
    let ada = Talker::new(&house, "Ada");
    let args = serde_json::json!({"description": "Reading the figures\nfor @all…", "command": "sleep 1.5"});
    house.model.next(Reply::tool("bash", &args));
    house.model.next(Reply::text("Done."));
    ada.says("read them", "Done.").await;
    let shown = house.telegram.history(ada.chat, ada.answers()[0].id);
    let seen = |words: &str| shown.iter().any(|shown| shown.text.contains(words));
    assert!(seen("Reading the figures for ＠all…"), "{shown:?}");
    assert!(!seen("bash") && !seen("sleep"), "{shown:?}");
}

#[tokio::test]
async fn the_list_of_what_is_to_be_done_ticks_itself_and_is_gone_from_the_answer() {
    let mut house = House::furnish(Default::default(), "", "sandbox: {allow_host_bash: true}\n").await;
    house.start();
    let ada = Talker::new(&house, "Ada");
    let todos = |first: &str, second: &str| {
        let todo = |content: &str, status: &str| serde_json::json!({"content": content, "status": status});
        serde_json::json!({"todos": [todo("Read the figures", first), todo("Draw the chart", second)]})
    };
    let nap = serde_json::json!({"description": "Reading", "command": "sleep 1.2"});
    house.model.next(Reply::tool("write_todos", &todos("in_progress", "pending")).tool("bash", &nap));
    house.model.next(Reply::tool("write_todos", &todos("completed", "in_progress")).tool("bash", &nap));
    house.model.next(Reply::text("Half of it."));
    house.model.next(Reply::tool("write_todos", &todos("completed", "completed")));
    house.model.next(Reply::text("Now all."));
    ada.says("chart them", "Half of it.\n\nNow all.").await;
    let shown = house.telegram.history(ada.chat, ada.answers()[0].id);
    let seen = |words: &str| shown.iter().any(|shown| shown.text.contains(words));
    assert!(seen("▶️ Read the figures\n▫️ Draw the chart"), "{shown:?}");
    assert!(seen("✅ Read the figures\n▶️ Draw the chart"), "{shown:?}");
    let sent_back = &house.model.requests()[3].last_user();
    assert!(
        sent_back.contains("entries that are not completed:\n- [in progress] Draw the chart"),
        "{sent_back}"
    );
}

#[tokio::test]
async fn an_empty_answer_behind_tools_is_asked_for_again_and_then_told_as_a_failure() {
    let house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    let look = serde_json::json!({"path": "/mnt/user-data/uploads"});
    house.model.next(Reply::tool("ls", &look));
    house.model.next(Reply::text(""));
    house.model.next(Reply::text("Nothing is there."));
    ada.says("what is there?", "Nothing is there.").await;
    house.model.next(Reply::tool("ls", &look));
    house.model.next(Reply::text(""));
    house.model.next(Reply::text(""));
    ada.say("and now?");
    ada.reads_so(|text| text.starts_with("⚠️ The model gave no answer, even on a second attempt.")).await;
}
