use super::{
    fake::{FakeTelegram, PlannedFault, Side},
    *,
};
use crate::{
    Address, Choice, FinalView, LiveReply, ReplyView,
    render::{parse, telegram::html},
    reply::PlatformReply,
    split::split,
    telegram::chats::Chats,
};
use pudu_texts::Language;
use serde_json::json;
use std::sync::Arc;

const ANN: i64 = 7;
const HERD: i64 = -1_001_000_000_001;

fn place(chat: i64, reply_to: i64) -> ReplyTarget {
    let address = Address { account: "telegram".into(), chat: chat.to_string(), topic: None };
    let reply_to = Some(reply_to.to_string());
    ReplyTarget {
        address,
        private: chat > 0,
        reply_to,
        sender: String::new(),
        language: Language::English,
        hint: None,
        saved: None,
    }
}

fn growing(text: &str) -> ReplyView {
    ReplyView { text: text.into(), ..ReplyView::default() }
}

fn done(text: &str) -> FinalView {
    FinalView { text: text.into(), ..FinalView::default() }
}

fn words(count: usize) -> String {
    (0..count).map(|n| format!("word{n} ")).collect()
}

/// Returns the messages of a text.
fn parts(text: &str) -> Vec<String> {
    split(&parse(text), TelegramMessages::CAPABILITIES.text).iter().map(html).collect()
}

fn is_send(call: &TelegramCall) -> bool {
    matches!(call, TelegramCall::Send { .. })
}

fn is_edit(call: &TelegramCall) -> bool {
    matches!(call, TelegramCall::Edit { .. })
}

fn fails(fake: &FakeTelegram, concerns: fn(&TelegramCall) -> bool, error: TelegramError) {
    fake.with(|world| world.faults.push_back((concerns, PlannedFault::Fails(error))));
}

/// Shows the views and then the final one, as the dispatcher does.
async fn show(reply: &mut PlatformReply<TelegramMessages>, views: &[ReplyView], last: &FinalView) {
    for view in views {
        reply.ready().await;
        reply.update(view).await.unwrap();
    }
    reply.finish(last).await.unwrap();
}

/// The calls, in order.
fn calls_of(fake: &FakeTelegram) -> Vec<String> {
    fake.with(|world| world.log.iter().filter(|line| !line.starts_with("save")).cloned().collect())
}

#[tokio::test(start_paused = true)]
async fn a_reply_is_one_message_that_grows() {
    let fake = FakeTelegram::default();
    let question = fake.say(ANN);
    let mut reply = fake.open(&place(ANN, question));
    let views = [growing(""), growing("one"), growing("one"), growing("one **two**")];
    show(&mut reply, &views, &done("one **two** three")).await;
    assert_eq!(
        calls_of(&fake),
        ["send ⏳", "edit 2 one", "edit 2 one <b>two</b>", "edit 2 one <b>two</b> three"]
    );
    assert_eq!(fake.with(|world| world.saved.clone().unwrap().messages), ["2"]);
    reply.finish(&done("one **two** three")).await.unwrap();
    assert_eq!(calls_of(&fake).len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_message_is_intended_sent_and_recorded_before_it_shows_text() {
    let fake = FakeTelegram::default();
    let question = fake.say(ANN);
    fake.open(&place(ANN, question)).update(&growing("one")).await.unwrap();
    let mut log = fake.with(|world| world.log.clone());
    assert!(log.remove(0).starts_with(r#"save [{"intended":{"key":""#));
    assert_eq!(log, ["send ⏳ Thinking…", r#"save [{"sent":{"id":2}}]"#, "edit 2 one"]);
}

#[tokio::test(start_paused = true)]
async fn an_immediate_answer_is_sent_directly() {
    let fake = FakeTelegram::default();
    let question = fake.say(HERD);
    let last = FinalView { choices: vec![Choice { label: "Go".into(), action: "/go".into() }], ..done("hi") };
    show(&mut fake.open(&place(HERD, question)), &[], &last).await;
    assert_eq!(calls_of(&fake), ["send hi"]);
    let seen = fake.seen(HERD);
    assert_eq!((seen[0].buttons.clone(), seen[0].thread.reply_to), (last.choices, Some(question)));
}

#[tokio::test(start_paused = true)]
async fn a_long_reply_continues_in_new_messages_and_deletes_excess_ones() {
    let fake = FakeTelegram::default();
    let question = fake.say(ANN);
    let mut reply = fake.open(&place(ANN, question));
    let long = words(1000);
    reply.update(&growing(&long)).await.unwrap();
    let parts: Vec<String> = parts(&long);
    assert_eq!((parts.len(), fake.bodies(ANN)), (2, parts));
    reply.finish(&done("short after all")).await.unwrap();
    assert_eq!(fake.bodies(ANN), ["short after all"]);
}

/// Crashes before or after every step of a reply, and again at every step after a restart, and checks that users
/// always get the same messages.
async fn survives_every_crash(chat: i64, noise: i64, views: &[ReplyView], last: &FinalView) {
    let expected = {
        let fake = FakeTelegram::default();
        let question = fake.say(chat);
        show(&mut fake.open(&place(chat, question)), views, last).await;
        (fake.bodies(chat), fake.with(|world| world.steps))
    };
    let sides = [Side::Before, Side::After];
    let plugs = (1..=expected.1).flat_map(|step| sides.map(|side| (step, side)));
    for first in plugs {
        // More steps than any restart takes, so the last runs do not crash again.
        for second in (0..60).step_by(3).flat_map(|step| sides.map(|side| (step, side))) {
            let fake = FakeTelegram::default();
            fake.with(|world| world.noise = noise);
            let question = fake.say(chat);
            for plug in [Some(first), (second.0 > 0).then_some(second), None] {
                fake.with(|world| (world.steps, world.plug) = (0, plug));
                let mut reply = fake.open(&place(chat, question));
                let taken_up = fake.with(|world| world.saved.is_some());
                let views = if taken_up && plug.is_none() { &[] } else { views };
                if fake.run(show(&mut reply, views, last)).await {
                    break;
                }
            }
            assert_eq!(
                fake.bodies(chat),
                expected.0,
                "crashed at {first:?} and {second:?}: {:?}",
                calls_of(&fake)
            );
            let seen = fake.seen(chat);
            let answers = seen.first().and_then(|seen| seen.thread.reply_to);
            assert_eq!(answers, (chat < 0).then_some(question), "crashed at {first:?} and {second:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_short_answer_survives_every_crash() {
    survives_every_crash(ANN, 0, &[], &done("the answer")).await;
    survives_every_crash(HERD, 5, &[], &done("the answer")).await;
}

#[tokio::test(start_paused = true)]
async fn a_growing_answer_survives_every_crash() {
    let views = [growing(""), growing("one"), growing("one two")];
    survives_every_crash(ANN, 5, &views, &done("one two three")).await;
    survives_every_crash(HERD, 3, &views, &done("one two three")).await;
}

#[tokio::test(start_paused = true)]
async fn a_long_answer_survives_every_crash() {
    let views = [growing("begin"), growing(&words(700)), growing(&words(1000))];
    survives_every_crash(ANN, 2, &views, &done(&words(1200))).await;
    survives_every_crash(ANN, 0, &views, &done("never mind")).await;
}

#[tokio::test(start_paused = true)]
async fn two_replies_interrupted_together_do_not_take_each_others_message() {
    let fake = FakeTelegram::default();
    let places = [fake.say(HERD), fake.say(HERD)].map(|asked| place(HERD, asked));
    // Both processes send the placeholder and crash, in this order. The second reply is resumed first.
    let mut handles = Vec::new();
    for place in &places {
        fake.with(|world| (world.saved, world.steps, world.plug) = (None, 0, Some((2, Side::After))));
        let mut reply = fake.open(place);
        assert!(!fake.run(show(&mut reply, &[growing("x")], &done("x"))).await);
        handles.push(fake.with(|world| world.saved.clone()));
    }
    fake.with(|world| world.plug = None);
    for (n, place) in places.iter().enumerate().rev() {
        fake.with(|world| world.saved.clone_from(&handles[n]));
        show(&mut fake.open(place), &[], &done(&format!("answer {n}"))).await;
    }
    let seen: Vec<_> = fake.seen(HERD).into_iter().map(|seen| (seen.body, seen.thread.reply_to)).collect();
    assert_eq!(seen, [("answer 0".to_owned(), Some(1)), ("answer 1".to_owned(), Some(2))]);
}

#[tokio::test(start_paused = true)]
async fn a_call_without_a_response_creates_no_second_message() {
    let fake = FakeTelegram::default();
    let chats: Arc<Chats> = Arc::default();
    let question = fake.say(ANN);
    fake.with(|world| world.faults.push_back((is_send, PlannedFault::Lost)));
    let mut reply = fake.open_in(&chats, &place(ANN, question));
    let error = reply.update(&growing("one")).await;
    assert_eq!(error, Err(SendError::Unreachable("the call timed out".into())));
    show(&mut reply, &[growing("one two")], &done("one two three")).await;
    assert_eq!(fake.bodies(ANN), ["one two three"]);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_message_is_sent_again() {
    let fake = FakeTelegram::default();
    let question = fake.say(ANN);
    let mut reply = fake.open(&place(ANN, question));
    reply.update(&growing(&words(1000))).await.unwrap();
    fake.wipe();
    let longer = format!("first {}", words(1100));
    reply.finish(&done(&longer)).await.unwrap();
    let parts: Vec<String> = parts(&longer);
    assert_eq!(fake.bodies(ANN), parts);
}

#[tokio::test(start_paused = true)]
async fn a_searching_reply_does_not_take_a_message_of_another_reply() {
    for delay in 0..12 {
        let fake = FakeTelegram::default();
        let question = fake.say(ANN);
        let chats: Arc<Chats> = Arc::default();
        let mut first = fake.open_in(&chats, &place(ANN, question));
        fails(&fake, is_send, CallError::Unknown("the call timed out".into()));
        first.update(&growing("one")).await.unwrap_err();
        fake.with(|world| world.saved = None);
        let mut second = fake.open_in(&chats, &place(ANN, question));
        let (one, two) = (done("answer one"), done("answer two"));
        let later = async {
            for _ in 0..delay {
                tokio::task::yield_now().await;
            }
            first.finish(&one).await
        };
        assert_eq!(tokio::join!(second.finish(&two), later), (Ok(()), Ok(())));
        let mut bodies = fake.bodies(ANN);
        bodies.sort();
        assert_eq!(bodies, ["answer one", "answer two"], "after {delay}");
    }
}

#[tokio::test(start_paused = true)]
async fn rejected_markup_is_shown_as_plain_text() {
    let fake = FakeTelegram::default();
    let question = fake.say(ANN);
    fails(&fake, is_send, CallError::Special(TelegramCase::Markup("can't parse entities".into())));
    fake.open(&place(ANN, question)).finish(&done("**a** < b")).await.unwrap();
    assert_eq!(calls_of(&fake), ["send <b>a</b> &lt; b", "send a < b"]);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_chat_gets_no_message_not_even_a_final_one() {
    let fake = FakeTelegram::default();
    let question = fake.say(ANN);
    let mut reply = fake.open(&place(ANN, question));
    reply.update(&growing("one")).await.unwrap();
    fails(&fake, is_edit, CallError::Wait(Duration::from_secs(30)));
    let later = Err(SendError::Later { after: Duration::from_secs(30) });
    assert_eq!(reply.update(&growing("one two")).await, later);
    let calls = calls_of(&fake).len();
    assert_eq!(reply.finish(&done("one two three")).await, later);
    assert_eq!(calls_of(&fake).len(), calls);
    let start = tokio::time::Instant::now();
    reply.ready().await;
    assert_eq!(start.elapsed(), Duration::from_secs(30));
    reply.finish(&done("one two three")).await.unwrap();
    assert_eq!(fake.bodies(ANN), ["one two three"]);
}

#[tokio::test(start_paused = true)]
async fn a_reply_in_chinese_has_its_notes_in_chinese() {
    let gone = OutFile { name: "gone.txt".into(), path: "/gone".into() };
    let cases = [
        (FinalView { files: vec![gone], ..done("see") }, false, "see\n\n📎 gone.txt（文件已经不在了）"),
        (done(""), false, "（没有文字）"),
        (done("x"), true, "⚠️ Telegram 没有接受我的回答。"),
    ];
    for (view, refused, body) in cases {
        let fake = FakeTelegram::default();
        let target = ReplyTarget { language: Language::Chinese, ..place(ANN, fake.say(ANN)) };
        if refused {
            fails(&fake, is_send, TelegramError::Refused("bad words".into()));
        }
        assert_eq!(fake.open(&target).finish(&view).await.is_err(), refused);
        assert_eq!(fake.bodies(ANN), [body]);
    }
}

#[tokio::test(start_paused = true)]
async fn errors_describe_the_remedy() {
    let told_so = ["send x", "send ⚠️ Telegram does not accept my answer.", "edit 2 x"].as_slice();
    let cases = [
        (CallError::Refused("bad words".into()), SendError::Refused("bad words".into()), told_so),
        (
            CallError::Unconnected("no route".into()),
            SendError::Unreachable("no route".into()),
            &["send x", "send x"],
        ),
    ];
    for (error, expected, calls) in cases {
        let fake = FakeTelegram::default();
        let question = fake.say(ANN);
        fails(&fake, is_send, error);
        let mut reply = fake.open(&place(ANN, question));
        assert_eq!(reply.finish(&done("x")).await, Err(expected));
        // No search is made for a message that was certainly not sent.
        reply.finish(&done("x")).await.unwrap();
        assert_eq!(calls_of(&fake), calls);
    }
}

#[tokio::test(start_paused = true)]
async fn a_reply_follows_its_group_to_the_new_id() {
    let fake = FakeTelegram::default();
    let question = fake.say(-5);
    fails(&fake, is_send, CallError::Special(TelegramCase::Migrated(HERD)));
    let mut reply = fake.open(&place(-5, question));
    reply.finish(&done("hi")).await.unwrap();
    assert_eq!((fake.bodies(-5), fake.bodies(HERD)), (vec![], vec!["hi".to_owned()]));
    show(&mut fake.open(&place(-5, question)), &[], &done("hi")).await;
    assert_eq!(fake.bodies(HERD), ["hi"]);
}

#[tokio::test(start_paused = true)]
async fn typing_is_shown_while_nothing_changes_and_ends_with_the_reply() {
    let fake = FakeTelegram::default();
    let question = fake.say(ANN);
    let mut reply = fake.open(&place(ANN, question));
    let wait = |seconds| tokio::time::sleep(Duration::from_secs(seconds));
    wait(10).await;
    assert_eq!(fake.with(|world| world.typed), 3);
    for n in 0..10 {
        reply.ready().await;
        reply.update(&growing(&words(n + 1))).await.unwrap();
        wait(2).await;
    }
    assert_eq!(fake.with(|world| world.typed), 3);
    reply.finish(&done("end")).await.unwrap();
    wait(60).await;
    assert_eq!(fake.with(|world| world.typed), 3);
}

#[tokio::test(start_paused = true)]
async fn a_quick_answer_does_not_type() {
    let fake = FakeTelegram::default();
    let question = fake.say(ANN);
    fake.open(&place(ANN, question)).finish(&done("pong")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(9)).await;
    assert_eq!(fake.with(|world| world.typed), 0);
}

fn file(folder: &std::path::Path, name: &str, bytes: u64) -> OutFile {
    let path = folder.join(name);
    std::fs::File::create(&path).unwrap().set_len(bytes).unwrap();
    OutFile { name: name.into(), path }
}

fn is_photo(call: &TelegramCall) -> bool {
    matches!(call, TelegramCall::Upload { photo: true, .. })
}

fn is_upload(call: &TelegramCall) -> bool {
    matches!(call, TelegramCall::Upload { .. })
}

#[tokio::test(start_paused = true)]
async fn files_follow_the_text_and_unsent_ones_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let files = vec![
        file(folder.path(), "a.png", 10),
        file(folder.path(), "big.png", 10_000_001),
        file(folder.path(), "huge.zip", 50_000_001),
        OutFile { name: "gone.txt".into(), path: folder.path().join("gone.txt") },
        file(folder.path(), "odd.jpg", 10),
        file(folder.path(), "bad.txt", 10),
    ];
    let fake = FakeTelegram::default();
    let question = fake.say(ANN);
    let mut reply = fake.open(&place(ANN, question));
    fails(
        &fake,
        |call| is_photo(call) && told_name(call) == "odd.jpg",
        CallError::Refused("dimensions".into()),
    );
    fails(&fake, |call| is_upload(call) && told_name(call) == "bad.txt", CallError::Refused("no".into()));
    reply.finish(&FinalView { files: files.clone(), ..done("see") }).await.unwrap();
    assert_eq!(
        fake.bodies(ANN),
        [
            "see\n\n📎 huge.zip (it is larger than the 50 MB that Telegram accepts)\n\n📎 gone.txt (it no longer exists)\n\n📎 bad.txt (it could not be sent)",
            "photo:a.png",
            "file:big.png",
            "file:odd.jpg",
        ]
    );
    let calls = calls_of(&fake).len();
    fake.open(&place(ANN, question)).finish(&FinalView { files, ..done("see") }).await.unwrap();
    assert_eq!(calls_of(&fake).len(), calls + 1, "one edit to ensure the text, and no second file");
}

fn told_name(call: &TelegramCall) -> &str {
    if let TelegramCall::Upload { file, .. } = call { &file.name } else { "" }
}

#[tokio::test(start_paused = true)]
async fn after_crashes_a_file_appears_at_most_twice_and_the_text_once() {
    let folder = tempfile::tempdir().unwrap();
    let last = FinalView { files: vec![file(folder.path(), "a.txt", 10)], ..done("see") };
    for step in 1..=8 {
        for side in [Side::Before, Side::After] {
            let fake = FakeTelegram::default();
            let question = fake.say(ANN);
            fake.with(|world| world.plug = Some((step, side)));
            for _ in 0..2 {
                let mut reply = fake.open(&place(ANN, question));
                if fake.run(show(&mut reply, &[growing("s")], &last)).await {
                    break;
                }
            }
            let bodies = fake.bodies(ANN);
            assert_eq!(bodies.iter().filter(|body| *body == "see").count(), 1, "{bodies:?}");
            let files = bodies.iter().filter(|body| *body == "file:a.txt").count();
            assert!((1..=2).contains(&files) && bodies.len() == files + 1, "{bodies:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_file_without_a_response_is_skipped_after_two_attempts() {
    let folder = tempfile::tempdir().unwrap();
    let last = FinalView { files: vec![file(folder.path(), "a.txt", 10)], ..done("see") };
    let fake = FakeTelegram::default();
    let question = fake.say(ANN);
    let mut reply = fake.open(&place(ANN, question));
    for _ in 0..2 {
        fails(&fake, is_upload, CallError::Unknown("no answer".into()));
        assert_eq!(reply.finish(&last).await, Err(SendError::Unreachable("no answer".into())));
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    reply.finish(&last).await.unwrap();
    assert_eq!(fake.bodies(ANN), ["see\n\n📎 a.txt (it may not have arrived)"]);
}

#[tokio::test(start_paused = true)]
async fn the_last_attempt_at_a_file_waits_until_telegram_answers() {
    let folder = tempfile::tempdir().unwrap();
    let last = FinalView { files: vec![file(folder.path(), "a.txt", 10)], ..done("see") };
    let fake = FakeTelegram::default();
    let question = fake.say(ANN);
    let mut reply = fake.open(&place(ANN, question));
    fails(&fake, is_upload, CallError::Unknown("no answer".into()));
    assert!(reply.finish(&last).await.is_err());
    for _ in 0..9 {
        tokio::time::sleep(Duration::from_secs(60)).await;
        fails(
            &fake,
            |call| matches!(call, TelegramCall::Typing { .. }),
            CallError::Unknown("no answer".into()),
        );
        assert!(reply.finish(&last).await.is_err());
    }
    reply.finish(&last).await.unwrap();
    assert_eq!(fake.bodies(ANN), ["see", "file:a.txt"]);
}

#[tokio::test(start_paused = true)]
async fn files_alone_leave_no_empty_message() {
    let folder = tempfile::tempdir().unwrap();
    let last = FinalView { files: vec![file(folder.path(), "a.txt", 10)], ..done("") };
    let fake = FakeTelegram::default();
    let question = fake.say(ANN);
    show(&mut fake.open(&place(ANN, question)), &[growing("")], &last).await;
    assert_eq!(fake.bodies(ANN), ["file:a.txt"]);
}

#[tokio::test(start_paused = true)]
async fn a_reply_of_the_previous_version_continues() {
    let fake = FakeTelegram::default();
    let question = fake.say(HERD);
    let old = json!({
        "chat": HERD,
        "parts": [{"intended": {"since": 0, "floor": question}}],
        "files": [{"sent": {"id": 9}}],
    });
    fake.with(|world| world.saved = Some(crate::ReplyHandle { state: old, messages: vec!["9".into()] }));
    let mut reply = fake.open(&place(HERD, question));
    reply.finish(&done("the answer")).await.unwrap();
    assert_eq!(fake.bodies(HERD), ["the answer"]);
    let saved = fake.with(|world| world.saved.clone().unwrap());
    assert_eq!(saved.state["files"], json!([{"sent": {"id": 9}}]), "sent messages stay");
    assert_eq!(calls_of(&fake).iter().filter(|line| line.starts_with("delete")).count(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_stays_unknown_over_a_refusal_that_follows() {
    let fake = FakeTelegram::default();
    let question = fake.say(ANN);
    let mut reply = fake.open(&place(ANN, question));
    fake.with(|world| world.faults.push_back((is_send, PlannedFault::Lost)));
    assert!(reply.finish(&done("hi")).await.is_err());
    // The search finds no message yet, and the next attempt is refused.
    let hidden = fake.with(|world| std::mem::take(&mut world.own));
    fails(&fake, is_send, CallError::Unconnected("refused".into()));
    assert!(reply.finish(&done("hi")).await.is_err());
    fake.with(|world| world.own = hidden);
    reply.finish(&done("hi")).await.unwrap();
    assert_eq!(fake.bodies(ANN), ["hi"]);
}
