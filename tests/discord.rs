//! Discord's peculiarities: threads, registered commands, resumed and new sessions, intents, rate limit buckets.

use crate::house::{House, SOON};
use pudu_sim::{
    Discord, Fault, Platform, When,
    discord::Options,
    model::{Answer, At, Reply},
    platform::{Shown, Words},
};
use rustix::process::{Signal, kill_process};
use serde_json::json;
use std::{sync::Arc, time::Duration};

/// A house on Discord with Ada, and a channel with her and the bot.
pub(crate) struct Server {
    pub(crate) house: House,
    pub(crate) discord: Discord,
    pub(crate) ada: String,
    pub(crate) direct: String,
    pub(crate) team: String,
}

impl Server {
    pub(crate) async fn build(options: Options) -> Self {
        let discord = Discord::start(options).await.unwrap();
        let house = House::elsewhere(Arc::new(discord.clone())).await;
        let ada = discord.person("Ada");
        let (direct, team) = (discord.private(&ada), discord.group("team", &[&ada]));
        Self { house, discord, ada, direct, team }
    }

    pub(crate) async fn open(account: &str) -> Self {
        let mut server = Self::build(Options::default()).await;
        server.house.configure(account, "");
        server.start().await;
        server
    }

    /// The same with a daemon that can be killed while it makes a call.
    pub(crate) async fn open_to_kill() -> Self {
        let mut server = Self::build(Options::default()).await;
        server.house.in_its_own_process();
        server.start().await;
        server
    }

    /// Starts the daemon and waits until it hears.
    pub(crate) async fn start(&mut self) {
        self.house.start();
        self.until(|discord| discord.connections() == 1 && !discord.commands().is_empty()).await;
    }

    pub(crate) async fn until(&self, wanted: impl Fn(&Discord) -> bool) {
        let platform: &dyn Platform = &self.discord;
        let found = platform.wait(&self.team, SOON, |_| wanted(&self.discord).then_some(())).await;
        found.unwrap_or_else(|timeout| panic!("{timeout}"));
    }

    pub(crate) fn write(&self, chat: &str, text: &str, to_bot: bool, answers: Option<&str>) -> String {
        let answers = answers.map(str::to_owned);
        let (chat, person, text) = (chat.to_owned(), self.ada.clone(), text.to_owned());
        self.discord.write(&Words { chat, person, text, to_bot, answers, files: Vec::new() })
    }

    pub(crate) async fn sees<T>(&self, chat: &str, wanted: impl Fn(&[Shown]) -> Option<T>) -> T {
        let platform: &dyn Platform = &self.discord;
        let found = platform.wait(chat, SOON, |platform| wanted(&platform.shown(chat))).await;
        found.unwrap_or_else(|timeout| panic!("{timeout}"))
    }

    /// Waits until the bot's last message has this text and is final.
    pub(crate) async fn reads(&self, chat: &str, answer: &str) -> Shown {
        let ended = |shown: &[Shown]| {
            let last = shown.last()?;
            let open = last.growing || last.buttons.iter().any(|button| button == "Stop");
            (last.text == answer && !open).then(|| last.clone())
        };
        self.sees(chat, ended).await
    }

    /// Waits for this text in the health status.
    async fn is_told(&self, words: &str) {
        let told = async {
            while !self.house.get("/ready").await.1.contains(words) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(SOON, told).await.unwrap_or_else(|_| panic!("{}", self.house.log()));
    }

    pub(crate) fn words(&self, chat: &str) -> Vec<String> {
        self.discord.shown(chat).into_iter().map(|shown| shown.text).collect()
    }
}

pub(crate) fn slowly(text: &str) -> Answer {
    Reply::text(text).words_per_chunk(1).every(Duration::from_millis(150))
}

/// A platform that waits longer for the answer to a command or a press, for a busy machine.
fn patient() -> Options {
    Options { answer_within: Duration::from_secs(8), ..Options::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_registered_command_is_answered_in_its_own_place() {
    let mut server = Server::build(patient()).await;
    server.start().await;
    let commands = server.discord.commands();
    for name in ["new", "stop", "status", "mode", "help", "connect"] {
        assert!(commands.iter().any(|command| command == name), "{commands:?}");
    }
    assert!(server.discord.command(&server.team, &server.ada, "mode", "steer"));
    server.reads(&server.team, "Mode steer: a new message reaches me while I work.").await;
    assert!(server.discord.command(&server.direct, &server.ada, "new", ""));
    server.reads(&server.direct, "New conversation started.").await;
    assert_eq!((server.words(&server.team).len(), server.words(&server.direct).len()), (1, 1));
    assert_eq!(server.discord.calls("message.create").len(), 0, "nothing besides");
    assert_eq!(server.discord.unanswered(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_cannot_be_deferred_is_answered_by_a_message() {
    let server = Server::open("").await;
    let gone = Fault::Refused(404, "10062 Unknown interaction".to_owned());
    server.discord.fail("interaction.callback", 1, gone);
    assert!(server.discord.command(&server.team, &server.ada, "new", ""));
    server.reads(&server.team, "New conversation started.").await;
    assert_eq!(server.words(&server.team).len(), 1);
    // Discord was slow, but the deferral succeeded.
    server.discord.fail("interaction.callback", 1, Fault::CutAfter);
    server.discord.fail("original.edit", 1, Fault::CutAfter);
    assert!(server.discord.command(&server.team, &server.ada, "new", ""));
    server.sees(&server.team, |shown| (shown.len() == 2 && !shown[1].growing).then_some(())).await;
    assert_eq!(server.words(&server.team), ["New conversation started."; 2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_of_a_stranger_leaves_nothing_behind() {
    let server = Server::open("allowed_users: ['1']").await;
    assert!(server.discord.command(&server.team, &server.ada, "status", ""));
    server.sees(&server.team, |shown| shown.first().filter(|shown| shown.growing).map(|_| ())).await;
    server.sees(&server.team, |shown| shown.is_empty().then_some(())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pressed_button_is_not_shown_as_pending() {
    let options = patient();
    let mut server = Server::build(options.clone()).await;
    server.start().await;
    server.write(&server.direct, "/mode", true, None);
    let offer =
        server.sees(&server.direct, |shown| shown.iter().find(|s| !s.buttons.is_empty()).cloned()).await;
    assert!(server.discord.press(&server.direct, &server.ada, &offer.id, "steer"));
    server.reads(&server.direct, "Mode steer: a new message reaches me while I work.").await;
    server.until(|discord| discord.calls("interaction.callback").len() == 1).await;
    tokio::time::sleep(options.answer_within).await;
    assert_eq!(server.discord.unanswered(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_choice_that_the_message_does_not_take_is_said_alone() {
    let mut server = Server::open("").await;
    let faults = [(403, "50013 Missing Permissions", "steer"), (404, "10008 Unknown Message", "interrupt")];
    for (n, (status, fault, mode)) in faults.into_iter().enumerate() {
        server.write(&server.direct, "/mode", true, None);
        let offers = |shown: &[Shown]| shown.last().filter(|last| !last.buttons.is_empty()).cloned();
        let offer = server.sees(&server.direct, offers).await;
        // An immediate answer needs no edit: this one belongs to the message with the buttons.
        server.discord.fail("message.edit", 1, Fault::Refused(status, fault.to_owned()));
        assert!(server.discord.press(&server.direct, &server.ada, &offer.id, mode));
        let (chose, answer) = (format!("✅ Ada chose: {mode}"), format!("Mode {mode}:"));
        let told = |shown: &[Shown]| {
            let has = |text: &str| shown.iter().any(|one| one.text.starts_with(text));
            (has(&chose) && has(&answer)).then_some(())
        };
        server.sees(&server.direct, told).await;
        server.house.kill();
        server.start().await;
        let words = server.words(&server.direct);
        assert_eq!(words.len(), 3 * (n + 1), "{words:?}");
        assert_eq!(words.iter().filter(|text| **text == offer.text).count(), 1, "{words:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_threads_each_question_begins_one_and_its_talk_needs_no_mention() {
    let server = Server::open("thread_mode: true").await;
    let asked = server.write(&server.team, "plan the trip", true, None);
    let answer = server.reads(&server.team, "echo: [Ada] plan the trip").await;
    assert_eq!(answer.answers, Some(asked.clone()), "it stands in the thread");
    assert_eq!(server.discord.threads(&server.team), [(asked.clone(), "plan the trip".to_owned())]);
    server.write(&server.team, "and the hotel?", false, Some(&answer.id));
    server.reads(&server.team, "echo: [Ada] and the hotel?").await;
    let request = server.house.model.requests()[1].clone();
    assert!(request.messages().iter().any(|m| m["content"] == "[Ada] plan the trip"), "{request:?}");
    server.write(&server.team, "something else", true, None);
    server.reads(&server.team, "echo: [Ada] something else").await;
    assert_eq!(server.discord.threads(&server.team).len(), 2);
    // If no thread can be created, the answer is in the channel, and the conversation continues there.
    server.discord.permission("CREATE_PUBLIC_THREADS", false);
    let asked = server.write(&server.team, "third", true, None);
    let answer = server.reads(&server.team, "echo: [Ada] third").await;
    assert_eq!(answer.answers, Some(asked));
    server.write(&server.team, "fourth", true, Some(&answer.id));
    server.reads(&server.team, "echo: [Ada] fourth").await;
    assert_eq!(server.words(&server.team).len(), 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_threads_a_command_in_the_channel_concerns_the_one_that_is_worked_on() {
    let server = Server::open("thread_mode: true").await;
    for typed in [false, true] {
        server.house.model.next(slowly(&"more and more and ".repeat(200)));
        let asked = server.write(&server.team, "talk", true, None);
        let growing = |shown: &[Shown]| {
            let here = |shown: &&Shown| shown.answers.as_ref() == Some(&asked) && shown.text.contains("more");
            shown.iter().find(here).cloned()
        };
        let talk = server.sees(&server.team, growing).await;
        if typed {
            server.write(&server.team, "/stop", true, None);
        } else {
            assert!(server.discord.command(&server.team, &server.ada, "stop", ""));
        }
        let stopped = |shown: &[Shown]| {
            let ended = shown.iter().any(|shown| shown.id == talk.id && shown.text.contains("Stopped."));
            (ended && shown.last()?.text == "Stopped.").then_some(())
        };
        server.sees(&server.team, stopped).await;
    }
    assert!(server.discord.command(&server.team, &server.ada, "status", ""));
    let told = |shown: &[Shown]| shown.last().filter(|last| last.text.contains("Active thread")).map(|_| ());
    server.sees(&server.team, told).await;
    assert_eq!(server.discord.threads(&server.team).len(), 2, "only the questions began threads");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_connection_is_resumed_and_a_lost_session_is_made_up_for_by_the_history() {
    let server = Server::open("").await;
    server.write(&server.direct, "hello", true, None);
    server.reads(&server.direct, "echo: hello").await;
    server.discord.drop_connection();
    server.write(&server.direct, "missed", true, None);
    server.reads(&server.direct, "echo: missed").await;
    assert_eq!(server.discord.sessions(), (1, 1));
    // No event reports these.
    server.discord.forget_sessions();
    server.write(&server.direct, "lost", true, None);
    server.write(&server.team, "lost, too", true, None);
    server.write(&server.team, "not for the bot", false, None);
    server.reads(&server.direct, "echo: lost").await;
    server.reads(&server.team, "echo: [Ada] lost, too").await;
    assert_eq!(server.discord.sessions(), (2, 1));
    assert_eq!(server.words(&server.direct), ["echo: hello", "echo: missed", "echo: lost"]);
    assert_eq!(server.house.model.count(), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_said_while_the_daemon_was_away_is_answered_also_in_threads() {
    let mut server = Server::open("thread_mode: true").await;
    server.write(&server.team, "a story", true, None);
    let answer = server.reads(&server.team, "echo: [Ada] a story").await;
    server.house.kill();
    // The connection of a dead process breaks.
    server.discord.forget_sessions();
    server.write(&server.team, "and then?", false, Some(&answer.id));
    server.start().await;
    server.reads(&server.team, "echo: [Ada] and then?").await;
    assert_eq!(server.words(&server.team), ["echo: [Ada] a story", "echo: [Ada] and then?"]);
    // It was searched from ten minutes before the last known message.
    let calls = server.discord.calls("message.list");
    let after = calls.last().and_then(|call| call.params["query"]["after"].as_str()?.parse::<u64>().ok());
    let asked: u64 = answer.id.parse().unwrap();
    assert!(after.is_some_and(|after| (asked >> 22) - (after >> 22) > 9 * 60 * 1000), "{calls:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_that_is_not_kept_comes_again() {
    let mut server = Server::build(Options::default()).await;
    server.house.configure("", "  inbound_queue_maxsize: 1\n");
    server.start().await;
    let mut hold = server.house.model.hold(1, At::End);
    server.house.model.next(slowly("one two three four five six"));
    server.write(&server.direct, "count", true, None);
    hold.reached().await.unwrap();
    server.write(&server.direct, "second", true, None);
    server.write(&server.team, "third", true, None);
    server.until(|discord| discord.sessions().1 > 0).await;
    hold.proceed();
    server.reads(&server.direct, "echo: second").await;
    server.reads(&server.team, "echo: [Ada] third").await;
    assert_eq!(server.words(&server.direct), ["one two three four five six", "echo: second"]);
    let (identified, resumed) = server.discord.sessions();
    assert!(identified == 1 && resumed > 0, "the session goes on before it: {resumed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strange_events_harm_nobody() {
    let server = Server::open("").await;
    let strange = [
        ("MESSAGE_CREATE", json!({"id": 5, "channel_id": null})),
        ("MESSAGE_CREATE", json!(null)),
        ("MESSAGE_UPDATE", json!({"id": "1"})),
        ("MESSAGE_DELETE", json!([])),
        ("INTERACTION_CREATE", json!({"id": "1", "type": 2, "token": "t"})),
        ("GUILD_CREATE", json!({"id": "9", "channels": [7, {"id": "8"}], "threads": {}, "roles": null})),
        ("THREAD_LIST_SYNC", json!({"threads": "none"})),
        ("SOMETHING_NEW", json!({"deep": [[[[{}]]]]})),
    ];
    for (kind, data) in &strange {
        server.discord.event(kind, data);
    }
    for frame in [json!({"op": 77}), json!([1]), json!("x"), json!({"op": 0, "s": 1, "t": 5, "d": {}})] {
        server.discord.frame(&frame);
    }
    server.write(&server.direct, "still there?", true, None);
    server.reads(&server.direct, "echo: still there?").await;
    assert_eq!(server.house.model.count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_only_seems_to_live_is_noticed() {
    let options = Options { heartbeat: Duration::from_millis(700), ..Options::default() };
    let mut server = Server::build(options).await;
    server.start().await;
    server.discord.silence(true);
    server.until(|discord| discord.sessions().1 >= 1).await;
    server.discord.silence(false);
    server.write(&server.direct, "hello", true, None);
    server.reads(&server.direct, "echo: hello").await;
    assert_eq!(server.discord.sessions().0, 1, "the session went on");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn discord_may_ask_for_another_connection_or_session() {
    let server = Server::open("").await;
    server.write(&server.direct, "first", true, None);
    server.reads(&server.direct, "echo: first").await;
    server.discord.ask_to_reconnect();
    server.until(|discord| discord.sessions() == (1, 1) && discord.connections() == 1).await;
    server.discord.invalidate(true);
    server.until(|discord| discord.sessions() == (1, 2) && discord.connections() == 1).await;
    server.discord.invalidate(false);
    server.until(|discord| discord.sessions().0 == 2 && discord.connections() == 1).await;
    server.write(&server.direct, "second", true, None);
    server.reads(&server.direct, "echo: second").await;
    server.discord.close(4009);
    server.until(|discord| discord.sessions().0 == 3 && discord.connections() == 1).await;
    server.write(&server.direct, "third", true, None);
    server.reads(&server.direct, "echo: third").await;
    assert_eq!(server.words(&server.direct), ["echo: first", "echo: second", "echo: third"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_needs_a_hand_ends_it_with_a_clear_word() {
    let mut server = Server::build(Options { content_intent: false, ..Options::default() }).await;
    server.house.start();
    server.is_told("\"discord\":\"stopped\"").await;
    // A second attempt would be made by now.
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(server.house.log().contains("Message Content Intent"), "{}", server.house.log());
    assert_eq!(server.discord.calls("identify").len(), 1, "it does not try again");
    let mut server = Server::build(Options::default()).await;
    server.discord.revoke();
    server.house.start();
    server.is_told("auth_failed").await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(server.house.log().contains("Reset Token"), "{}", server.house.log());
    assert_eq!(server.discord.calls("gateway.bot").len(), 1);
    assert!(!server.house.log().contains(&server.discord.options().token));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_limits_are_kept_to_before_discord_refuses() {
    let server = Server::open("").await;
    server.discord.pace(true);
    let words: Vec<String> = (1..=60).map(|n| format!("word{n}")).collect();
    server.house.model.next(slowly(&words.join(" ")));
    server.write(&server.direct, "count", true, None);
    server.reads(&server.direct, &words.join(" ")).await;
    assert_eq!(server.words(&server.direct).len(), 1);
    assert_eq!(server.discord.invalid_calls(), 0, "no call was refused");
    // The global limit.
    server.discord.refuse_all(Duration::from_secs(2));
    server.write(&server.direct, "and now?", true, None);
    server.reads(&server.direct, "echo: and now?").await;
    assert!(server.discord.invalid_calls() < 5, "{}", server.discord.invalid_calls());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_whose_address_is_stale_is_found_again_without_the_token() {
    let server = Server::open("").await;
    server.house.model.next(Reply::tool("read_file", &json!({"path": "/mnt/user-data/uploads/a.csv"})));
    server.house.model.next(Reply::text("read"));
    server.discord.write(&Words {
        chat: server.direct.clone(),
        person: server.ada.clone(),
        text: "read this".to_owned(),
        to_bot: true,
        answers: None,
        files: vec![("a.csv".to_owned(), "1,2".into())],
    });
    server.discord.age_links();
    server.reads(&server.direct, "read").await;
    assert_eq!(server.house.model.requests()[1].last_tool(), "1,2");
    assert!(!server.discord.token_leaked());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn links_make_no_previews_and_marks_read_as_they_are_meant() {
    let server = Server::open("").await;
    let text = "See https://x.org/a_b?c=d_e and **this [page](https://x.org/p)**: `a*b*` 2 * 3 * 4, snake_case_name.";
    server.house.model.next(Reply::text(text));
    server.write(&server.direct, "links", true, None);
    let expected = "See https://x.org/a_b?c=d_e and this page: a*b* 2 * 3 * 4, snake_case_name.";
    let answer = server.reads(&server.direct, expected).await;
    assert!(!server.discord.previews(&server.direct, &answer.id));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_that_dies_while_it_sends_doubles_nothing() {
    let mut server = Server::open_to_kill().await;
    let pid = server.house.pid();
    server.discord.on_call(
        "message.create",
        1,
        When::After,
        Box::new(move |_| {
            kill_process(pid, Signal::KILL).ok();
            pudu_sim::Then::Cut
        }),
    );
    server.write(&server.direct, "hello", true, None);
    assert!(server.house.ended(SOON).await.is_some());
    server.start().await;
    server.reads(&server.direct, "echo: hello").await;
    assert_eq!(server.words(&server.direct), ["echo: hello"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_doctor_says_what_is_missing() {
    let server = Server::build(Options::default()).await;
    let (good, said) = server.house.pudu(&["doctor"]);
    assert!(good, "{said}");
    for line in ["token", "message content intent", "gateway", "oauth2/authorize?client_id="] {
        assert!(said.contains(line), "{said}");
    }
    assert!(said.contains("ok    servers: 1, with all required permissions"), "{said}");
    server.discord.permit(1 << 10 | 1 << 11);
    let (good, said) = server.house.pudu(&["doctor"]);
    let lacks = "the bot lacks permissions: Add Reactions, Attach Files, Read Message History, Create Public Threads, Send";
    assert!(good && said.contains(lacks), "{said}");
    server.discord.content_intent(false);
    let (good, said) = server.house.pudu(&["doctor"]);
    assert!(!good && said.contains("Privileged Gateway Intents"), "{said}");
    server.discord.revoke();
    let (good, said) = server.house.pudu(&["doctor"]);
    assert!(!good && said.contains("Reset Token"), "{said}");
    assert!(!said.contains(&server.discord.options().token));
}
