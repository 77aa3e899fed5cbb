//! Requests that a platform refuses do not block others: files, final edits and texts.

use crate::{
    platforms::on_each_platform,
    scene::{Scene, is_final, slowly},
};
use pudu_sim::{
    Fault,
    model::{At, Reply},
    platform::Shown,
};
use serde_json::json;
use std::time::Duration;

on_each_platform!([
    a_file_that_is_not_taken_holds_nobody_up
    a_file_that_hangs_makes_way_for_stop
    a_file_outlasts_an_outage_of_uploads
    a_file_that_is_too_old_is_told_of_though_nobody_asks
    a_last_change_that_is_refused_is_sent_anew
]);

/// Ada requests a file that fails with this fault; returns after the first attempt.
async fn asks_for_a_file(scene: &Scene, fault: &Fault) {
    let path = "/mnt/user-data/outputs/report.md";
    scene.house.model.next(Reply::tool("write_file", &json!({"path": path, "content": "# Report"})));
    scene.house.model.next(Reply::tool("present_files", &json!({"filepaths": [path]})));
    scene.house.model.next(slowly("Here is the report now."));
    let end = scene.house.model.hold(3, At::End);
    scene.say("report please");
    let grows = |shown: &[Shown]| shown.last().filter(|last| last.text.contains("Here is")).map(|_| ());
    if scene.platform.name() != "dingtalk" {
        scene.sees(&scene.chat, grows).await;
    }
    let before = uploads(scene);
    for method in scene.platform.uploads() {
        scene.platform.stage().fail_always(method, fault.clone());
    }
    end.proceed();
    scene.sees(&scene.chat, |_| (uploads(scene) > before).then_some(())).await;
}

/// Returns the number of calls that upload files.
fn uploads(scene: &Scene) -> usize {
    scene.platform.uploads().iter().map(|method| scene.platform.calls(method).len()).sum()
}

async fn a_file_that_is_not_taken_holds_nobody_up(scene: Scene) {
    asks_for_a_file(&scene, &Fault::Internal).await;
    // A user is waiting now.
    scene.say("and next?");
    let told = |shown: &[Shown]| {
        let told =
            |one: &Shown| one.text.contains("Here is the report now.") && one.text.contains("📎 report.md");
        shown.iter().any(told).then_some(())
    };
    scene.sees(&scene.chat, told).await;
    scene.platform.heal();
    let next = |shown: &[Shown]| {
        shown.iter().any(|one| is_final(one) && one.text == "echo: and next?").then_some(())
    };
    scene.sees(&scene.chat, next).await;
}

async fn a_file_that_hangs_makes_way_for_stop(scene: Scene) {
    asks_for_a_file(&scene, &Fault::Delay(Duration::from_secs(300))).await;
    scene.platform.heal();
    scene.say("/stop");
    scene.say("and next?");
    let next = |shown: &[Shown]| {
        shown.iter().any(|one| is_final(one) && one.text == "echo: and next?").then_some(())
    };
    scene.sees(&scene.chat, next).await;
    let shown = scene.platform.shown(&scene.chat);
    // Slack accepts the bytes before it shows the file.
    let why = match scene.platform.name() {
        "slack" => "it could not be sent in time",
        _ => "it may not have arrived",
    };
    let told = |one: &Shown| one.text.contains(&format!("📎 report.md ({why})"));
    assert!(shown.iter().any(told), "{shown:#?}");
    assert!(shown.iter().any(|one| one.text == "Stopped."), "{shown:#?}");
}

async fn a_file_outlasts_an_outage_of_uploads(scene: Scene) {
    asks_for_a_file(&scene, &Fault::Internal).await;
    // On Telegram it is sent only once more, after a minute or when a user is waiting.
    if scene.platform.name() != "telegram" {
        scene.sees(&scene.chat, |_| (uploads(&scene) >= 4).then_some(())).await;
    }
    scene.platform.heal();
    scene.say("and next?");
    let next = |shown: &[Shown]| {
        shown.iter().any(|one| is_final(one) && one.text == "echo: and next?").then_some(())
    };
    scene.sees(&scene.chat, next).await;
    let shown = scene.platform.shown(&scene.chat);
    let files: Vec<&str> = shown.iter().flat_map(|one| &one.files).map(|(name, _)| name.as_str()).collect();
    assert_eq!(files, ["report.md"], "{shown:#?}");
    assert!(!shown.iter().any(|one| one.text.contains("📎")), "{shown:#?}");
}

async fn a_file_that_is_too_old_is_told_of_though_nobody_asks(scene: Scene) {
    // A late second attempt is made a minute later on these platforms.
    if matches!(scene.platform.name(), "telegram" | "dingtalk") {
        return;
    }
    scene.house.configure("", "  outbox_max_age_seconds: 10\n");
    asks_for_a_file(&scene, &Fault::Internal).await;
    let told = |shown: &[Shown]| shown.iter().any(|one| one.text.contains("📎 report.md (")).then_some(());
    scene.sees(&scene.chat, told).await;
}

async fn a_last_change_that_is_refused_is_sent_anew(scene: Scene) {
    let words: Vec<String> = (1..=24).map(|n| format!("word{n}")).collect();
    scene.house.model.next(slowly(&words.join(" ")));
    scene.say("count");
    let grows = |shown: &[Shown]| shown.first().filter(|shown| shown.text.contains("word2")).map(|_| ());
    scene.sees(&scene.chat, grows).await;
    for (method, ..) in scene.platform.unchangeable() {
        let status = if scene.platform.name() == "slack" { 200 } else { 400 };
        scene.platform.stage().fail_always(method, Fault::Refused(status, "strange_words".to_owned()));
    }
    let whole = |shown: &[Shown]| shown.iter().filter(|one| one.text == words.join(" ")).count();
    scene.sees(&scene.chat, |shown| (whole(shown) == 1).then_some(())).await;
    scene.platform.heal();
    scene.say("and now?");
    let next =
        |shown: &[Shown]| shown.iter().any(|one| is_final(one) && one.text == "echo: and now?").then_some(());
    scene.sees(&scene.chat, next).await;
    let shown = scene.platform.shown(&scene.chat);
    assert_eq!(whole(&shown), 1, "{shown:#?}");
    // A card of DingTalk cannot be deleted.
    assert!(shown.len() == 2 || scene.platform.name() == "dingtalk", "{shown:#?}");
}
