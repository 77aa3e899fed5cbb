//! User scenarios on every platform: one table, run on all of them. Each asserts the content of the chat, in order.

use crate::{
    house::SOON,
    platforms::on_each_platform,
    scene::{Scene, is_final, last, slowly},
};
use pudu_sim::{
    Fault,
    model::Reply,
    platform::{Shown, Words},
};
use serde_json::json;

on_each_platform!([
    an_answer_is_streamed_into_one_message
    a_long_answer_with_code_and_a_table_goes_on_in_further_messages
    a_file_goes_in_and_a_file_comes_out
    a_button_is_pressed
    a_run_is_stopped
    a_command_in_a_group_concerns_what_is_worked_on_there
    a_follow_up_is_answered_after_the_run
    a_storm_of_refusals_delays_and_loses_nothing
    a_redelivered_message_is_answered_once
    a_broken_connection_loses_nothing
    a_restart_goes_on_in_the_same_message
    a_message_that_cannot_be_changed_any_more_costs_no_word
    a_call_without_an_answer_doubles_nothing
    two_people_in_a_group_are_told_apart
    a_stranger_is_refused_once
    a_stranger_connects_by_a_code
    talk_to_others_costs_nothing
    what_others_change_among_themselves_is_never_stored
    a_waiting_message_is_changed_also_by_an_edit_that_does_not_name_the_bot
    an_edited_message_is_answered_as_it_reads_now
    a_recalled_message_is_not_answered
    nobody_is_pinged
]);

/// In a channel of Slack, where an answer is a stream in a thread.
mod slack_channel {
    crate::platforms::on_each_platform!(@tests slack in_group [
        an_answer_is_streamed_into_one_message
        a_long_answer_with_code_and_a_table_goes_on_in_further_messages
        a_file_goes_in_and_a_file_comes_out
        a_button_is_pressed
        a_run_is_stopped
        a_storm_of_refusals_delays_and_loses_nothing
        a_restart_goes_on_in_the_same_message
        a_message_that_cannot_be_changed_any_more_costs_no_word
    ]);
}

/// Returns whether the last message is the model's echo. In a group it contains the sender.
fn echoes(shown: &[Shown], text: &str) -> Option<()> {
    last(shown).filter(|last| last.starts_with("echo: ") && last.ends_with(text)).map(|_| ())
}

async fn an_answer_is_streamed_into_one_message(scene: Scene) {
    let words: Vec<String> = (1..=24).map(|n| format!("word{n}")).collect();
    scene.house.model.next(slowly(&words.join(" ")));
    scene.say("count");
    scene.reads(&scene.chat, &words.join(" ")).await;
    let shown = scene.platform.shown(&scene.chat);
    assert_eq!(shown.len(), 1, "{shown:?}");
    let history = scene.platform.history(&scene.chat, &shown[0].id);
    let partly = |text: &&String| text.contains("word1") && !text.contains("word24");
    assert!(history.iter().any(|text| partly(&text)), "it grew before people's eyes: {history:?}");
    assert_eq!(scene.model_calls(), 1, "one model call for a plain answer");
}

async fn a_long_answer_with_code_and_a_table_goes_on_in_further_messages(scene: Scene) {
    let code: String = (0..2500).map(|n| format!("let line_{n} = \"{n}\";\n")).collect();
    let text = format!(
        "Here it is:\n\n```rust\n{code}```\n\n| name | count |\n|---|---|\n| apples | 17 |\n\nThat was **all**."
    );
    scene.house.model.next(Reply::text(&text).words_per_chunk(200));
    scene.say("code");
    let end = |shown: &[Shown]| last(shown).filter(|text| text.contains("That was all."));
    scene.sees(&scene.chat, end).await;
    let whole = scene.words(&scene.chat).join("\n");
    for n in 0..2500 {
        assert_eq!(whole.matches(&format!("let line_{n} = ")).count(), 1, "line {n}");
    }
    assert!(whole.contains("apples") && whole.contains("17"), "the table is there");
    assert!(scene.words(&scene.chat).len() > 1, "it does not fit one message");
}

async fn a_file_goes_in_and_a_file_comes_out(scene: Scene) {
    let show = json!({"filepaths": ["/mnt/user-data/outputs/report.md"]});
    let content = json!({"path": "/mnt/user-data/outputs/report.md", "content": "# Report"});
    scene.house.model.next(Reply::tool("read_file", &json!({"path": "/mnt/user-data/uploads/a.csv"})));
    scene.house.model.next(Reply::tool("write_file", &content));
    scene.house.model.next(Reply::tool("present_files", &show));
    scene.house.model.next(Reply::text("Here is the report."));
    scene.platform.write(&Words {
        chat: scene.chat.clone(),
        person: scene.ada.clone(),
        text: "summarise this".to_owned(),
        to_bot: true,
        answers: None,
        files: vec![("a.csv".to_owned(), "1,2".into())],
    });
    let file = |shown: &[Shown]| shown.iter().flat_map(|shown| shown.files.clone()).next();
    let (name, bytes) = scene.sees(&scene.chat, file).await;
    assert_eq!((name.as_str(), bytes.as_ref()), ("report.md", &b"# Report"[..]));
    let requests = scene.house.model.requests();
    assert!(requests[0].last_user().contains("summarise this"), "{:?}", requests[0]);
    assert_eq!(requests[1].last_tool(), "1,2");
    let words: Vec<String> = scene.words(&scene.chat).into_iter().filter(|text| !text.is_empty()).collect();
    assert_eq!(words, ["Here is the report."]);
}

async fn a_button_is_pressed(scene: Scene) {
    scene.say("/mode");
    let offered = |shown: &[Shown]| shown.iter().find(|shown| !shown.buttons.is_empty()).cloned();
    let offer = scene.sees(&scene.chat, offered).await;
    assert_eq!(offer.buttons, ["steer", "interrupt"]);
    assert!(scene.platform.press(&scene.chat, &scene.ada, &offer.id, "steer"));
    scene.reads(&scene.chat, "Mode steer: a new message reaches me while I work.").await;
    assert_eq!(scene.model_calls(), 0);
}

async fn a_run_is_stopped(scene: Scene) {
    scene.house.model.next(slowly(&"more and more and ".repeat(200)));
    scene.say("talk");
    let growing = |shown: &[Shown]| {
        let last = shown.last()?;
        (last.text.contains("more") && last.buttons.iter().any(|button| button == "Stop"))
            .then(|| last.id.clone())
    };
    let talk = scene.sees(&scene.chat, growing).await;
    assert!(scene.platform.press(&scene.chat, &scene.ada, &talk, "Stop"));
    let stopped = |shown: &[Shown]| {
        let talk = shown.iter().find(|shown| shown.text.contains("more"))?;
        (is_final(talk) && talk.text.contains("Stopped.")).then_some(())
    };
    scene.sees(&scene.chat, stopped).await;
    scene.say("and now?");
    scene.sees(&scene.chat, |shown| echoes(shown, "and now?")).await;
}

async fn a_command_in_a_group_concerns_what_is_worked_on_there(scene: Scene) {
    let group = scene.platform.group("team", &[&scene.ada]);
    scene.house.model.next(slowly(&"more and more and ".repeat(200)));
    scene.write(&group, &scene.ada, "talk", true, None);
    let growing = |shown: &[Shown]| shown.iter().find(|shown| shown.text.contains("more")).cloned();
    let talk = scene.sees(&group, growing).await;
    scene.write(&group, &scene.ada, "/status", true, None);
    let works = |shown: &[Shown]| {
        let status = shown.iter().find(|shown| shown.text.contains("Active thread"))?;
        status.text.contains("State: working").then_some(())
    };
    scene.sees(&group, works).await;
    scene.write(&group, &scene.ada, "/stop", true, None);
    let stopped = |shown: &[Shown]| {
        let talk = shown.iter().find(|shown| shown.id == talk.id)?;
        let told = shown.iter().any(|shown| shown.text == "Stopped.");
        (told && is_final(talk) && talk.text.contains("Stopped.")).then_some(())
    };
    scene.sees(&group, stopped).await;
    scene.write(&group, &scene.ada, "/new", true, None);
    let new = |shown: &[Shown]| shown.iter().any(|shown| shown.text == "New conversation started.");
    scene.sees(&group, |shown| new(shown).then_some(())).await;
    // The conversation begins again.
    scene.write(&group, &scene.ada, "who am I?", true, Some(&talk.id));
    scene.reads(&group, "echo: [Ada] who am I?").await;
    let requests = scene.house.model.requests();
    let last = requests.last().unwrap().messages();
    assert!(!last.iter().any(|m| m["content"] == "[Ada] talk"), "it is forgotten: {last:?}");
    assert_eq!(scene.words(&group).len(), 5);
}

async fn a_follow_up_is_answered_after_the_run(scene: Scene) {
    scene.house.model.next(slowly("one two three four five six"));
    scene.say("first");
    scene.house.model.wait(SOON, |_| (scene.model_calls() == 1).then_some(())).await.unwrap();
    scene.say("second");
    scene.reads(&scene.chat, "echo: second").await;
    let words = scene.words(&scene.chat);
    assert_eq!(words, ["one two three four five six", "echo: second"]);
}

async fn a_storm_of_refusals_delays_and_loses_nothing(scene: Scene) {
    for method in scene.platform.sends() {
        for nth in [1, 2, 4] {
            scene.platform.fail(method, nth, Fault::TooMany(1));
        }
    }
    scene.house.model.next(slowly("one two three four five six"));
    scene.say("count");
    scene.reads(&scene.chat, "one two three four five six").await;
    assert_eq!(scene.words(&scene.chat).len(), 1, "{:?}", scene.words(&scene.chat));
}

async fn a_redelivered_message_is_answered_once(scene: Scene) {
    let said = scene.say("once");
    for _ in 0..3 {
        scene.platform.redeliver(&scene.chat, &said);
    }
    scene.reads(&scene.chat, "echo: once").await;
    scene.platform.redeliver(&scene.chat, &said);
    scene.say("twice");
    scene.reads(&scene.chat, "echo: twice").await;
    assert_eq!(scene.words(&scene.chat), ["echo: once", "echo: twice"]);
    assert_eq!(scene.model_calls(), 2);
}

async fn a_broken_connection_loses_nothing(scene: Scene) {
    scene.house.model.next(slowly("one two three four five six"));
    scene.say("count");
    scene.house.model.wait(SOON, |_| (scene.model_calls() == 1).then_some(())).await.unwrap();
    scene.platform.drop_connection();
    scene.say("and more");
    scene.reads(&scene.chat, "echo: and more").await;
    assert_eq!(scene.words(&scene.chat), ["one two three four five six", "echo: and more"]);
}

async fn a_restart_goes_on_in_the_same_message(mut scene: Scene) {
    scene.house.model.next(slowly(&"and on ".repeat(200)));
    scene.say("talk");
    let begun = |shown: &[Shown]| shown.first().filter(|shown| shown.text.contains("and on")).cloned();
    let before = scene.sees(&scene.chat, begun).await;
    scene.house.kill();
    scene.house.model.next(Reply::text("the end"));
    scene.house.start();
    scene.reads(&scene.chat, "the end").await;
    let shown = scene.platform.shown(&scene.chat);
    assert_eq!((shown.len(), &shown[0].id), (1, &before.id), "{shown:?}");
}

async fn a_message_that_cannot_be_changed_any_more_costs_no_word(scene: Scene) {
    let words: Vec<String> = (1..=24).map(|n| format!("word{n}")).collect();
    scene.house.model.next(slowly(&words.join(" ")));
    scene.say("count");
    let grows = |shown: &[Shown]| shown.first().filter(|shown| shown.text.contains("word2")).map(|_| ());
    scene.sees(&scene.chat, grows).await;
    scene.platform.freeze();
    scene.reads(&scene.chat, &words.join(" ")).await;
    let whole = |text: &&String| text.contains("word24");
    let shown = scene.words(&scene.chat);
    assert_eq!(shown.iter().filter(whole).count(), 1, "{shown:?}");
    scene.platform.heal();
    scene.say("and now?");
    scene.sees(&scene.chat, |shown| echoes(shown, "and now?")).await;
}

async fn a_call_without_an_answer_doubles_nothing(scene: Scene) {
    let sends = scene.platform.sends();
    for method in sends {
        scene.platform.fail(method, 1, Fault::CutAfter);
    }
    scene.say("hello");
    scene.reads(&scene.chat, "echo: hello").await;
    assert_eq!(scene.words(&scene.chat), ["echo: hello"]);
    for method in sends {
        scene.platform.fail(method, 1, Fault::BadGateway);
        scene.platform.fail(method, 2, Fault::Garbage);
    }
    scene.say("again");
    scene.reads(&scene.chat, "echo: again").await;
    let mut said = vec!["echo: hello".to_owned(), "echo: again".to_owned()];
    assert_eq!(scene.words(&scene.chat), said);
    // An operation that may have succeeded keeps this state, whatever the next attempt returns.
    for (n, next) in [Fault::TooMany(1), Fault::CutBefore, Fault::Internal].into_iter().enumerate() {
        scene.platform.heal();
        for method in sends {
            scene.platform.fail(method, 1, Fault::CutAfter);
            scene.platform.fail(method, 2, next.clone());
        }
        scene.say(&format!("round {n}"));
        said.push(format!("echo: round {n}"));
        scene.reads(&scene.chat, &said[n + 2]).await;
        assert_eq!(scene.words(&scene.chat), said, "{next:?}");
    }
}

async fn two_people_in_a_group_are_told_apart(scene: Scene) {
    let bob = scene.platform.person("Bob");
    let group = scene.platform.group("team", &[&scene.ada, &bob]);
    let asked = scene.write(&group, &scene.ada, "what is new?", true, None);
    scene.reads(&group, "echo: [Ada] what is new?").await;
    let answer = scene.platform.shown(&group)[0].clone();
    // On platforms where bots can reply visibly, the answer is a reply to the question.
    assert!(answer.answers.as_ref().is_none_or(|answers| *answers == asked), "{answer:?}");
    scene.write(&group, &bob, "and since?", true, Some(&answer.id));
    scene.reads(&group, "echo: [Bob] and since?").await;
    let request = scene.house.model.requests()[1].clone();
    assert!(request.messages().iter().any(|m| m["content"] == "[Ada] what is new?"), "{request:?}");
}

async fn a_stranger_is_refused_once(scene: Scene) {
    scene.house.configure(&format!("allowed_users: ['{}']\n", scene.ada), "");
    let eve = scene.platform.person("Eve");
    let hers = scene.platform.private(&eve);
    // The edit applies from the next message on.
    scene.say("hello");
    scene.reads(&scene.chat, "echo: hello").await;
    for text in ["let me in", "please", "/models", "/stop"] {
        scene.write(&hers, &eve, text, true, None);
    }
    let refused = |shown: &[Shown]| last(shown).filter(|text| text.contains("do not know you"));
    let refusal = scene.sees(&hers, refused).await;
    assert!(refusal.contains(&eve), "it says which id to add: {refusal}");
    scene.say("still there?");
    scene.reads(&scene.chat, "echo: still there?").await;
    assert_eq!(scene.words(&hers).len(), 1, "she is told once");
    assert_eq!(scene.model_calls(), 2);
}

async fn a_stranger_connects_by_a_code(scene: Scene) {
    scene.house.configure("pairing: true\n", "");
    scene.say("hello");
    scene.sees(&scene.chat, |shown| last(shown).filter(|text| text.contains("/connect CODE"))).await;
    let (ok, said) = scene.house.pudu(&["connect", scene.platform.name()]);
    let code = said.split("/connect ").nth(1).and_then(|rest| rest.split_whitespace().next());
    assert!(ok && code.is_some(), "{said}");
    scene.say(&format!("/connect {}", code.unwrap_or_default()));
    scene.reads(&scene.chat, "Connected: I know you now. Say hello!").await;
    let group = scene.platform.group("team", &[&scene.ada]);
    scene.write(&group, &scene.ada, "do you know me here?", true, None);
    scene.reads(&group, "echo: [Ada] do you know me here?").await;
    assert_eq!(scene.model_calls(), 1);
}

async fn talk_to_others_costs_nothing(scene: Scene) {
    let bob = scene.platform.person("Bob");
    let group = scene.platform.group("team", &[&scene.ada, &bob]);
    scene.write(&group, &bob, "lunch?", false, None);
    scene.write(&group, &scene.ada, "yes", false, None);
    scene.write(&group, &scene.ada, "what is for lunch?", true, None);
    scene.reads(&group, "echo: [Ada] what is for lunch?").await;
    assert_eq!((scene.model_calls(), scene.words(&group).len()), (1, 1));
}

async fn what_others_change_among_themselves_is_never_stored(scene: Scene) {
    let bob = scene.platform.person("Bob");
    let group = scene.platform.group("team", &[&scene.ada, &bob]);
    let lunch = scene.write(&group, &bob, "lunch at the secret place?", false, None);
    scene.platform.edit(&group, &lunch, "lunch at the other secret place?");
    let tea = scene.write(&group, &bob, "tea at the secret place?", false, None);
    scene.platform.recall(&group, &tea);
    scene.write(&group, &scene.ada, "what is for lunch?", true, None);
    scene.reads(&group, "echo: [Ada] what is for lunch?").await;
    for name in ["pudu.db", "pudu.db-wal"] {
        let bytes = std::fs::read(scene.house.path(".pudu/data").join(name)).unwrap_or_default();
        assert!(!bytes.windows(12).any(|window| window == b"secret place"), "{name}");
    }
    let kept = scene.house.database().await.known_since(scene.platform.name(), 0).await.unwrap();
    assert!(!kept.iter().any(|(_, message)| [&lunch, &tea].contains(&message)), "{kept:?}");
}

async fn a_waiting_message_is_changed_also_by_an_edit_that_does_not_name_the_bot(scene: Scene) {
    let bob = scene.platform.person("Bob");
    let group = scene.platform.group("team", &[&scene.ada, &bob]);
    scene.house.model.next(slowly("one two three four five six seven eight"));
    let asked = scene.write(&group, &scene.ada, "count", true, None);
    scene.house.model.wait(SOON, |_| (scene.model_calls() == 1).then_some(())).await.unwrap();
    let waiting = scene.write(&group, &scene.ada, "sectond", true, Some(&asked));
    if !scene.platform.edit(&group, &waiting, "second") {
        return;
    }
    scene.reads(&group, "echo: [Ada] second").await;
    assert_eq!(scene.model_calls(), 2);
}

async fn an_edited_message_is_answered_as_it_reads_now(scene: Scene) {
    scene.house.model.next(slowly("one two three four five six seven eight"));
    scene.say("count");
    scene.house.model.wait(SOON, |_| (scene.model_calls() == 1).then_some(())).await.unwrap();
    let waiting = scene.say("sectond");
    if !scene.platform.edit(&scene.chat, &waiting, "second") {
        return;
    }
    scene.reads(&scene.chat, "echo: second").await;
    assert_eq!(scene.model_calls(), 2);
}

async fn a_recalled_message_is_not_answered(scene: Scene) {
    scene.house.model.next(slowly("one two three four five six seven eight"));
    scene.say("count");
    scene.house.model.wait(SOON, |_| (scene.model_calls() == 1).then_some(())).await.unwrap();
    let waiting = scene.say("never mind");
    if !scene.platform.recall(&scene.chat, &waiting) {
        return;
    }
    scene.reads(&scene.chat, "one two three four five six seven eight").await;
    scene.say("next");
    scene.reads(&scene.chat, "echo: next").await;
    assert_eq!(scene.words(&scene.chat), ["one two three four five six seven eight", "echo: next"]);
}

async fn nobody_is_pinged(scene: Scene) {
    let text = "Hello @everyone <!channel> <@U01234567> <at user_id=\"all\"></at> @all @here <at id=all></at> \
         [you](tg://user?id=123456) @ada_lovelace done";
    scene.house.model.next(Reply::text(text));
    let bob = scene.platform.person("Bob");
    let group = scene.platform.group("team", &[&scene.ada, &bob]);
    scene.write(&group, &scene.ada, "greet all", true, None);
    let done = |shown: &[Shown]| last(shown).filter(|text| text.ends_with("done"));
    scene.sees(&group, done).await;
    let shown = scene.platform.shown(&group);
    assert!(shown.iter().all(|shown| !shown.pings), "{shown:?}");
}
