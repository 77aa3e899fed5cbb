//! Discord's gateway with kills of the daemon, closed connections and failing calls: no message is lost, and nothing is
//! sent twice.

use crate::{
    discord::Server,
    house::{House, SOON},
};
use pudu_sim::{
    Discord, Fault, Platform, Then, When,
    discord::Options,
    platform::{Shown, Words},
};
use rustix::process::{Signal, kill_process};
use serde_json::json;
use std::time::{Duration, Instant};

/// Timeout to reconnect and answer.
const BACK: Duration = Duration::from_secs(20);

/// A new user writes to the bot in private; returns the chat.
fn first_words(discord: &Discord, name: &str) -> String {
    let person = discord.person(name);
    let chat = discord.private(&person);
    let (text, to_bot) = (format!("I am {name}"), true);
    discord.write(&Words { chat: chat.clone(), person, text, to_bot, ..Words::default() });
    chat
}

async fn answered(server: &Server, chat: &str, name: &str) {
    server.reads(chat, &format!("echo: I am {name}")).await;
    assert_eq!(server.words(chat).len(), 1, "{name}: {:?}", server.words(chat));
}

/// Kills the daemon at a call.
fn kill_at(house: &House, discord: &Discord, method: &str, when: When) {
    let pid = house.pid();
    let kill = Box::new(move |_: &_| {
        kill_process(pid, Signal::KILL).ok();
        Then::Cut
    });
    discord.on_call(method, 1, when, kill);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_stranger_says_while_the_daemon_is_away_comes_when_the_session_is_taken_up() {
    let mut server = Server::open("").await;
    let mut ends: [(&str, u64); 3] = [("killed", 1), ("stopped", 2), ("killed once more", 3)];
    for (name, resumed) in &mut ends {
        match *name {
            "stopped" => assert!(server.house.stop().await.success()),
            _ => server.house.kill(),
        }
        let chat = first_words(&server.discord, name);
        server.house.start();
        answered(&server, &chat, name).await;
        assert_eq!(server.discord.sessions(), (1, *resumed), "{name}");
    }
    // The commands of a new version are registered without a new session.
    assert!(server.discord.calls("commands.put").len() >= 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn first_words_outlive_a_death_at_any_moment_of_taking_them() {
    let mut server = Server::open("").await;
    let points = ["inbox.accept.before", "inbox.accept.after", "turn.open.before", "turn.open.after"];
    for (n, point) in points.iter().cycle().take(8).enumerate() {
        assert!(server.house.stop().await.success());
        server.house.set("PUDU_CRASH_AT", &format!("{point}#1"));
        server.house.start();
        let name = format!("person {n} at {point}");
        let chat = first_words(&server.discord, &name);
        assert!(server.house.ended(SOON).await.is_some(), "{name}");
        server.house.set("PUDU_CRASH_AT", "");
        server.house.start();
        answered(&server, &chat, &name).await;
    }
    assert_eq!(server.discord.sessions().0, 1, "one session all the time");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_is_not_kept_any_more_is_made_up_for_by_the_history() {
    let mut server = Server::open("").await;
    server.write(&server.direct, "hello", true, None);
    server.reads(&server.direct, "echo: hello").await;
    server.house.kill();
    server.discord.forget_sessions();
    server.write(&server.direct, "lost", true, None);
    server.write(&server.team, "first words here", true, None);
    server.start().await;
    server.reads(&server.direct, "echo: lost").await;
    server.reads(&server.team, "echo: [Ada] first words here").await;
    assert_eq!((server.words(&server.direct).len(), server.words(&server.team).len()), (2, 1));
    assert_eq!(server.discord.sessions().0, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_history_that_was_not_read_to_its_end_is_read_after_the_next_start() {
    let mut server = Server::open_to_kill().await;
    server.write(&server.direct, "hello", true, None);
    server.reads(&server.direct, "echo: hello").await;
    server.house.kill();
    server.discord.forget_sessions();
    server.write(&server.team, "missed", true, None);
    server.house.start();
    kill_at(&server.house, &server.discord, "message.list", When::Before);
    assert!(server.house.ended(SOON).await.is_some());
    server.house.start();
    server.reads(&server.team, "echo: [Ada] missed").await;
    assert_eq!(server.words(&server.team).len(), 1);
    assert_eq!(server.discord.sessions(), (2, 1), "the second session is taken up, and still behind");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_a_message_stands_and_whom_it_names_is_known_in_a_session_that_is_taken_up() {
    let mut server = Server::open("thread_mode: true").await;
    let asked = server.write(&server.team, "a story", true, None);
    let answer = server.reads(&server.team, "echo: [Ada] a story").await;
    server.house.kill();
    server.write(&server.team, "and then?", false, Some(&answer.id));
    server.write(&server.team, "<@&1000000000000000002> by the role", false, None);
    server.house.start();
    let texts = |shown: &[Shown]| {
        let mut texts: Vec<String> = shown.iter().map(|shown| shown.text.clone()).collect();
        texts.sort();
        (texts == ["echo: [Ada] a story", "echo: [Ada] and then?", "echo: [Ada] by the role"]).then_some(())
    };
    server.sees(&server.team, texts).await;
    let threads = server.discord.threads(&server.team);
    assert_eq!((threads.len(), threads[0].0.as_str()), (2, asked.as_str()));
    assert_eq!(server.discord.sessions(), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_connection_is_back_soon_whatever_the_code() {
    let server = Server::open("").await;
    for code in [4000, 4001, 4002, 4003, 4005, 4007, 4008, 4009] {
        server.discord.close(code);
        let said = Instant::now();
        server.write(&server.direct, &format!("after {code}"), true, None);
        server.reads(&server.direct, &format!("echo: after {code}")).await;
        assert!(said.elapsed() < BACK, "after {code}: {:?}", said.elapsed());
    }
    assert_eq!(server.words(&server.direct).len(), 8);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_that_cannot_be_looked_up_holds_nobody_up() {
    let server = Server::open("").await;
    for fault in [Fault::Internal, Fault::BadGateway, Fault::TooMany(1), Fault::CutBefore] {
        server.discord.heal();
        server.discord.fail_often("channel.get", 1.0, fault.clone());
        server.discord.fail_often("guild.channels", 1.0, fault.clone());
        // A thread without an event.
        let strange = json!({
            "id": "1900000000000000000", "channel_id": "1800000000000000000", "guild_id": "1000000000000000003",
            "author": {"id": server.ada, "username": "ada"}, "content": "for others", "type": 0,
        });
        server.discord.event("MESSAGE_CREATE", &strange);
        let said = Instant::now();
        server.write(&server.direct, &format!("{fault:?}"), true, None);
        server.reads(&server.direct, &format!("echo: {fault:?}")).await;
        assert!(said.elapsed() < BACK, "{fault:?}: {:?}", said.elapsed());
    }
    assert_eq!(server.discord.sessions(), (1, 0), "the connection stays");
}

/// Ada talks in a thread of the bot until the daemon dies; returns her last message there.
async fn talks_in_a_thread_until_death(server: &mut Server) -> String {
    server.write(&server.team, "a story", true, None);
    let answer = server.reads(&server.team, "echo: [Ada] a story").await;
    let own = server.write(&server.team, "go on", false, Some(&answer.id));
    server.reads(&server.team, "echo: [Ada] go on").await;
    server.house.kill();
    own
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn words_in_a_thread_of_the_bots_are_answered_once_it_can_be_asked_where_they_stand() {
    let mut server = Server::open("thread_mode: true").await;
    let own = talks_in_a_thread_until_death(&mut server).await;
    // Only the thread shows that the message is for the bot.
    server.write(&server.team, "and then?", false, Some(&own));
    for method in ["guild.channels", "threads.list", "channel.get"] {
        server.discord.fail_often(method, 1.0, Fault::Internal);
    }
    server.house.start();
    server.until(|discord| discord.sessions().1 == 1 && discord.calls("guild.channels").len() > 1).await;
    server.discord.heal();
    server.reads(&server.team, "echo: [Ada] and then?").await;
    assert_eq!(server.words(&server.team).len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn words_of_which_it_cannot_be_asked_where_they_stand_outlive_a_death() {
    let mut server = Server::open("thread_mode: true").await;
    let own = talks_in_a_thread_until_death(&mut server).await;
    for method in ["guild.channels", "threads.list", "channel.get"] {
        server.discord.fail_often(method, 1.0, Fault::Internal);
    }
    server.house.start();
    server.until(|discord| discord.sessions().1 == 1).await;
    server.write(&server.team, "and then?", false, Some(&own));
    server.until(|discord| !discord.calls("channel.get").is_empty()).await;
    // After this message the stored session continues after the message in the thread.
    server.write(&server.direct, "meanwhile", true, None);
    server.reads(&server.direct, "echo: meanwhile").await;
    server.house.kill();
    server.discord.heal();
    server.house.start();
    server.reads(&server.team, "echo: [Ada] and then?").await;
    // Duplicates would be sent before the exit.
    assert!(server.house.stop().await.success());
    server.house.start();
    server.write(&server.team, "the end", false, Some(&own));
    server.reads(&server.team, "echo: [Ada] the end").await;
    assert_eq!(server.words(&server.team).len(), 4, "{:?}", server.words(&server.team));
    assert_eq!(server.discord.sessions().0, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_is_answered_once_whenever_the_daemon_dies() {
    let mut server =
        Server::build(Options { answer_within: Duration::from_secs(20), ..Options::default() }).await;
    server.house.in_its_own_process();
    server.start().await;
    let deaths: [(&str, Option<When>); 10] = [
        ("inbox.accept.before", None),
        ("inbox.accept.after", None),
        ("turn.open.before", None),
        ("turn.open.after", None),
        ("turn.handle.after", None),
        ("turn.delivered.before", None),
        ("interaction.callback", Some(When::Before)),
        ("interaction.callback", Some(When::After)),
        ("original.edit", Some(When::Before)),
        ("original.edit", Some(When::After)),
    ];
    for (n, (point, when)) in deaths.into_iter().enumerate() {
        let person = server.discord.person(&format!("Person {n}"));
        let chat = server.discord.private(&person);
        assert!(server.house.stop().await.success());
        let armed = if when.is_none() { format!("{point}#1") } else { String::new() };
        server.house.set("PUDU_CRASH_AT", &armed);
        server.start().await;
        if let Some(when) = when {
            kill_at(&server.house, &server.discord, point, when);
        }
        assert!(server.discord.command(&chat, &person, "new", ""));
        assert!(server.house.ended(SOON).await.is_some(), "{point} {when:?}");
        server.house.set("PUDU_CRASH_AT", "");
        server.house.start();
        let whole = |shown: &[Shown]| {
            let whole = shown.iter().any(|shown| shown.text == "New conversation started." && !shown.growing);
            whole.then_some(())
        };
        server.sees(&chat, whole).await;
        // Duplicates would be sent before the exit.
        assert!(server.house.stop().await.success());
        let shown = server.discord.shown(&chat);
        assert_eq!(shown.len(), 1, "{point} {when:?}: {shown:#?}");
        server.house.start();
    }
}
