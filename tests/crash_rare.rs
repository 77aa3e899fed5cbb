//! Kills at writes that ordinary messages rarely cause: each is caused on purpose. Snapshots are left to the store's
//! own tests, which kill a process at every write as well.

use crate::house::{House, SOON, Talker};
use pudu_sim::{
    model::{At, Reply},
    telegram::Fault,
};

/// Both sides of a write.
const SIDES: [&str; 2] = ["before", "after"];

/// A house whose daemon dies at a point.
async fn doomed(account: &str, point: &str) -> (House, Talker) {
    let mut house = House::build(account).await;
    house.in_its_own_process();
    house.set("PUDU_CRASH_AT", point);
    house.start();
    let ada = Talker::new(&house, "Ada");
    (house, ada)
}

/// Waits for the kill and restarts without one.
async fn again(house: &mut House, point: &str) {
    assert!(house.ended(SOON).await.is_some(), "it did not die at {point}");
    house.set("PUDU_CRASH_AT", "");
    house.start();
}

fn texts(ada: &Talker) -> Vec<String> {
    ada.answers().into_iter().map(|answer| answer.text).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edit_survives() {
    for side in SIDES {
        let point = format!("inbox.amend.{side}");
        let (mut house, ada) = doomed("", &point).await;
        let mut hold = house.model.hold(1, At::End);
        ada.say("first");
        hold.reached().await.unwrap();
        let second = ada.say("secnod");
        house.acknowledged().await;
        house.telegram.edit(ada.chat, second, "second").unwrap();
        again(&mut house, &point).await;
        hold.cut();
        ada.reads("echo: second").await;
        assert_eq!(texts(&ada), ["echo: first", "echo: second"], "{point}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_steering_message_survives() {
    for side in SIDES {
        let point = format!("turn.join.{side}");
        let (mut house, ada) = doomed("follow_ups: steer", &point).await;
        let mut hold = house.model.hold(1, At::Start);
        house.model.when(|ask| ask.last_user() == "and this", |_| Reply::text("both heard").into());
        ada.say("hear this");
        hold.reached().await.unwrap();
        ada.say("and this");
        again(&mut house, &point).await;
        hold.cut();
        ada.reads("both heard").await;
        let answers = texts(&ada);
        assert!(answers.len() <= 2 && answers.last().unwrap() == "both heard", "{point}: {answers:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_came_too_late_to_steer_survives() {
    for side in SIDES {
        let point = format!("turn.leave.{side}");
        let (mut house, ada) = doomed("follow_ups: steer", &point).await;
        let mut hold = house.model.hold(1, At::End);
        ada.say("hello");
        hold.reached().await.unwrap();
        ada.say("one more thing");
        house.acknowledged().await;
        hold.proceed();
        again(&mut house, &point).await;
        ada.reads("echo: one more thing").await;
        let answers = texts(&ada);
        let expect: &[&str] = match side {
            // It belonged to the answered turn: both are answered together.
            "before" => &["echo: one more thing"],
            _ => &["echo: hello", "echo: one more thing"],
        };
        assert_eq!(answers, expect, "{point}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delivery_that_failed_survives() {
    for side in SIDES {
        let point = format!("turn.failed.{side}");
        let (mut house, ada) = doomed("", &point).await;
        house.telegram.fail_often("editMessageText", 1.0, Fault::Internal);
        ada.say("hello");
        assert!(house.ended(SOON).await.is_some(), "it did not die at {point}");
        house.telegram.heal();
        house.set("PUDU_CRASH_AT", "");
        house.start();
        ada.reads("echo: hello").await;
        assert_eq!((texts(&ada).len(), house.model.count()), (1, 1), "{point}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn giving_a_reply_up_survives() {
    for side in SIDES {
        let point = format!("turn.park.{side}");
        let (mut house, ada) = doomed("", &point).await;
        let mut hold = house.model.hold(1, At::End);
        ada.say("hello");
        hold.reached().await.unwrap();
        house.telegram.block(ada.person).unwrap();
        hold.proceed();
        again(&mut house, &point).await;
        let bob = Talker::new(&house, "Bob");
        bob.says("hello", "echo: hello").await;
        assert_eq!(house.model.count(), 2, "{point}: Ada's answer is not made again");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_choice_survives() {
    for (point, text, answer) in [
        ("talk.model.before", "/models sim", "This conversation now uses sim."),
        ("talk.model.after", "/models sim", "This conversation now uses sim."),
        ("talk.mode.before", "/mode steer", "Mode steer: a new message reaches me while I work."),
        ("talk.mode.after", "/mode steer", "Mode steer: a new message reaches me while I work."),
        ("talk.agent.before", "/agent lead", "lead_agent answers here from now on."),
        ("talk.agent.after", "/agent lead", "lead_agent answers here from now on."),
    ] {
        let (mut house, ada) = doomed("", point).await;
        ada.say(text);
        again(&mut house, point).await;
        ada.reads(answer).await;
        assert_eq!(texts(&ada), [answer], "{point}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_failed_is_not_run_again() {
    let point = "turn.conclude.before";
    let (mut house, ada) = doomed("", point).await;
    house.model.next(Reply::status(401).message("Incorrect API key"));
    ada.say("hello");
    again(&mut house, point).await;
    let answer = ada.reads_so(|text| text.starts_with('⚠')).await;
    assert_eq!((texts(&ada), house.model.count()), (vec![answer], 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pressed_choice_survives() {
    let asked = serde_json::json!({"question": "Which?", "clarification_type": "approach_choice", "options": ["Asia", "Europe"]});
    for side in SIDES {
        let point = format!("choice.choose.{side}");
        let (mut house, ada) = doomed("", &point).await;
        house.model.next(Reply::tool("ask_clarification", &asked));
        ada.say("travel");
        let offers = |text: &str| text.contains("Which?");
        ada.reads_so(offers).await;
        let offered = house.telegram.wait(SOON, |view| {
            let last = view.answers(ada.chat).pop()?;
            last.buttons.iter().flatten().any(|button| button.text == "Asia").then_some(last.id)
        });
        let message = offered.await.unwrap();
        house.telegram.press(ada.chat, ada.person, message, "Asia").unwrap();
        again(&mut house, &point).await;
        ada.reads("echo: Asia").await;
        // The message with the buttons is edited beside the run.
        let chosen = house.telegram.wait(SOON, |view| {
            view.answers(ada.chat).iter().any(|seen| seen.text.contains("Ada chose: Asia")).then_some(())
        });
        chosen.await.unwrap_or_else(|timeout| panic!("{point}: {timeout}"));
        assert_eq!(house.model.count(), 2, "{point}: {:?}", texts(&ada));
    }
}
