//! Failures of Slack or during an answer, and the resulting messages.

use crate::{
    discord::Server,
    house::SOON,
    slack::{Office, PLACEHOLDER_DELAY, slowly, words},
};
use pudu_sim::{Fault, Platform, Then, When, model::Reply, platform::Shown, slack::Options};
use rustix::process::{Signal, kill_process};
use serde_json::json;
use std::time::{Duration, Instant};

/// Timeout of an answer to a user who is unaffected by a failure elsewhere.
const MAX_REPLY_DELAY: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_frame_makes_nobody_wait() {
    let office = Office::open(Options::default()).await;
    office.write(&office.direct, "hello", true, None);
    office.reads(&office.direct, "echo: hello").await;
    // Slack repeats it until it is acknowledged.
    let event =
        json!({"type": "message", "channel": office.direct, "text": 7, "large": "x".repeat(5_000_000)});
    for n in 0..3 {
        office.slack.event(&event);
        let said = Instant::now();
        office.write(&office.direct, &format!("number {n}"), true, None);
        office.reads(&office.direct, &format!("echo: number {n}")).await;
        assert!(said.elapsed() < MAX_REPLY_DELAY, "{n}: {:?}", said.elapsed());
    }
    assert_eq!(office.count("apps.connections.open"), 1, "the connection stays");
    let platform: &dyn Platform = &office.slack;
    let acknowledged =
        platform.wait(&office.direct, SOON, |_| (office.slack.unacknowledged() == 0).then_some(()));
    acknowledged.await.unwrap_or_else(|timeout| panic!("{timeout}"));
}

/// The model creates and presents a file with the same name and size each time.
fn makes_a_file(office: &Office) {
    let path = "/mnt/user-data/outputs/report.txt";
    let model = &office.house.model;
    model.next(Reply::tool("write_file", &json!({"path": path, "content": "the same"})));
    model.next(Reply::tool("present_files", &json!({"filepaths": [path]})));
    model.next(Reply::text("Here it is."));
}

fn files(shown: &[Shown]) -> usize {
    shown.iter().map(|shown| shown.files.len()).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_went_out_in_a_death_or_without_an_answer_is_there_once() {
    // A file appears some time after Slack accepted it, like the real one.
    let share_after = Duration::from_millis(1500);
    let mut office = Office::open_to_kill(Options { share_after, ..Options::default() }).await;
    let places: [(String, bool); 2] = [(office.team.clone(), true), (office.direct.clone(), false)];
    for (chat, in_thread) in places {
        let mut thread = None;
        for (n, when) in [When::Before, When::After].into_iter().enumerate() {
            makes_a_file(&office);
            let pid = office.house.pid();
            let kill = Box::new(move |_: &_| {
                kill_process(pid, Signal::KILL).ok();
                Then::Cut
            });
            office.slack.on_call("files.completeUploadExternal", 1, when, kill);
            let asked = office.write(&chat, "a file, please", true, thread.as_deref());
            // The second in the same thread: the first, with the same name and size, is not confused with it.
            thread = in_thread.then_some(thread.unwrap_or(asked));
            assert!(office.house.ended(SOON).await.is_some());
            office.house.start();
            settled(&office).await;
            office.sees(&chat, |shown| (files(shown) > n).then_some(())).await;
            // A duplicate would appear by now.
            tokio::time::sleep(2 * share_after).await;
            assert_eq!(
                files(&office.slack.shown(&chat)),
                n + 1,
                "{when:?}: {:#?}",
                office.slack.shown(&chat)
            );
        }
        makes_a_file(&office);
        office.slack.fail("files.completeUploadExternal", 1, Fault::CutAfter);
        office.write(&chat, "a file, please", true, thread.as_deref());
        office.sees(&chat, |shown| (files(shown) >= 3).then_some(())).await;
        settled(&office).await;
        tokio::time::sleep(2 * share_after).await;
        assert_eq!(files(&office.slack.shown(&chat)), 3, "{chat}: {:#?}", office.slack.shown(&chat));
    }
}

/// Waits until everything is answered.
async fn settled(office: &Office) {
    let (db, deadline) = (office.house.database().await, Instant::now() + SOON);
    while !db.pending().await.unwrap().is_empty() {
        assert!(Instant::now() < deadline, "{:?} is stranded", db.pending().await);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    db.close().await;
}

/// The final edit of a message is refused for a reason without a known alternative.
async fn sent_anew(shown: impl AsyncFn(&str) -> Vec<Shown>, answer: &str) {
    let shown = shown(answer).await;
    assert_eq!(shown.len(), 1, "nothing half is left: {shown:#?}");
    assert!(!shown[0].growing && shown[0].buttons.is_empty(), "{shown:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_last_change_that_is_refused_is_sent_anew() {
    let office = Office::open(Options::default()).await;
    for (chat, methods) in [
        (office.direct.clone(), ["chat.update"].as_slice()),
        (office.team.clone(), ["chat.appendStream", "chat.stopStream", "chat.update"].as_slice()),
    ] {
        office.slack.heal();
        office.house.model.next(slowly(&words(24)));
        office.write(&chat, "count", true, None);
        office.sees(&chat, |shown| shown.last().filter(|last| last.text.contains("word2")).map(|_| ())).await;
        for method in methods {
            office.slack.fail_often(method, 1.0, Fault::Refused(200, "restricted_action".to_owned()));
        }
        sent_anew(
            async |answer| {
                office.reads(&chat, answer).await;
                office.slack.shown(&chat)
            },
            &words(24),
        )
        .await;
    }
    let server = Server::open("").await;
    server.house.model.next(crate::discord::slowly(&words(12)));
    server.write(&server.direct, "count", true, None);
    server
        .sees(&server.direct, |shown| shown.last().filter(|last| last.text.contains("word2")).map(|_| ()))
        .await;
    server.discord.fail_often("message.edit", 1.0, Fault::Refused(400, "50035 Invalid Form Body".to_owned()));
    sent_anew(
        async |answer| {
            server.reads(&server.direct, answer).await;
            server.discord.shown(&server.direct)
        },
        &words(12),
    )
    .await;
}

/// Returns the number of calls of two methods.
fn counts(office: &Office) -> (usize, usize) {
    (office.count("chat.postMessage"), office.count("chat.update"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_short_answer_is_one_message_and_no_change() {
    let office = Office::open(Options::default()).await;
    let begun = Instant::now();
    office.write(&office.direct, "hello", true, None);
    office.reads(&office.direct, "echo: hello").await;
    if begun.elapsed() < PLACEHOLDER_DELAY {
        assert_eq!(counts(&office), (1, 0));
    }
    assert_eq!(office.texts(&office.direct), ["echo: hello"]);
    // A longer one shows its progress, and grows.
    office.house.model.next(slowly(&words(40)));
    office.write(&office.direct, "count", true, None);
    office
        .sees(&office.direct, |shown| shown.last().filter(|last| last.text.contains("word2")).map(|_| ()))
        .await;
    office.reads(&office.direct, &words(40)).await;
    let (posts, updates) = counts(&office);
    assert!(posts == 2 && updates > 1, "{posts} {updates}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_method_has_to_wait_for_holds_up_no_other() {
    let office = Office::open(Options::default()).await;
    let bob = office.slack.person("Bob");
    let bobs = office.slack.private(&bob);
    office.slack.fail_often("chat.update", 1.0, Fault::TooMany(60));
    office.house.model.when(|ask| ask.last_user().contains("count"), |_| slowly(&words(30)).into());
    office.write(&office.direct, "count", true, None);
    let limited = |_: &[Shown]| (office.count("chat.update") > 0).then_some(());
    office.sees(&office.direct, limited).await;
    let begun = Instant::now();
    let said = pudu_sim::platform::Words {
        chat: bobs.clone(),
        person: bob,
        text: "hello".into(),
        to_bot: true,
        ..Default::default()
    };
    office.slack.write(&said);
    office.slack.command(&office.direct, &office.ada, "/pudu", "status");
    office.ask("count");
    office.reads(&bobs, "echo: hello").await;
    let status = |shown: &[Shown]| shown.iter().any(|one| one.text.contains("Model")).then_some(());
    office.sees(&office.direct, status).await;
    office.reads(&office.team, &words(30)).await;
    // The answer that cannot be an edit is a new message.
    let whole = |shown: &[Shown]| {
        let answers = shown.iter().filter(|one| one.text.contains("word"));
        let answers: Vec<&Shown> = answers.collect();
        (answers.len() == 1 && answers[0].text == words(30) && answers[0].buttons.is_empty()).then_some(())
    };
    office.sees(&office.direct, whole).await;
    // An edit would have to wait for 60 s.
    assert!(begun.elapsed() < Duration::from_secs(45), "{:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_answers_in_a_minute_make_nobody_wait() {
    let office = Office::open(Options::default()).await;
    office.slack.pace(true);
    let write = |chat: &str, person: &str, text: &str| {
        let (chat, person, text) = (chat.to_owned(), person.to_owned(), text.to_owned());
        office.slack.write(&pudu_sim::platform::Words {
            chat,
            person,
            text,
            to_bot: true,
            ..Default::default()
        });
    };
    // Long answers use up the edits for unfinished ones.
    office.house.model.when(|ask| ask.last_user().contains("count"), |_| slowly(&words(60)).into());
    let people: Vec<String> = (0..12).map(|n| office.slack.person(&format!("P{n}"))).collect();
    for person in &people {
        write(&office.slack.private(person), person, "count");
    }
    for person in &people {
        office.reads(&office.slack.private(person), &words(60)).await;
    }
    for n in 0..30 {
        let person = office.slack.person(&format!("Q{n}"));
        let (chat, begun) = (office.slack.private(&person), Instant::now());
        write(&chat, &person, "hello");
        office.reads(&chat, "echo: hello").await;
        assert!(begun.elapsed() < MAX_REPLY_DELAY, "{n}: {:?}", begun.elapsed());
    }
    let refused = office.slack.calls("chat.update").into_iter();
    let refused = refused.filter(|call| matches!(call.outcome, pudu_sim::Outcome::Refused(429, _))).count();
    assert_eq!(refused, 0, "the budget is kept");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_streams_have_to_wait_words_grow_by_changes_at_once() {
    let office = Office::open(Options::default()).await;
    office.slack.fail_often("chat.startStream", 1.0, Fault::TooMany(60));
    office.house.model.next(slowly(&words(60)));
    let begun = Instant::now();
    office.ask("count");
    office
        .sees(&office.team, |shown| shown.last().filter(|last| last.text.contains("word2")).map(|_| ()))
        .await;
    // A stream would have to wait for 60 s.
    assert!(begun.elapsed() < Duration::from_secs(25), "{:?}", begun.elapsed());
    office.reads(&office.team, &words(60)).await;
    assert_eq!(office.texts(&office.team).len(), 1);
}
