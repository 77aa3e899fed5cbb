//! Slack's peculiarities: threads with streams, two ways to receive events, renewed connections, slash commands.

use crate::house::{House, SOON, http};
use pudu_sim::{
    Fault, Platform, Slack, Then, When,
    model::{Answer, Reply},
    platform::{Shown, Words},
    slack::Options,
};
use rustix::process::{Signal, kill_process};
use serde_json::json;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// An answer that takes longer gets a placeholder first, also a short one on a busy machine.
pub(crate) const PLACEHOLDER_DELAY: Duration = Duration::from_secs(2);

/// A house on Slack with Ada, and a channel with her and the bot.
pub(crate) struct Office {
    pub(crate) house: House,
    pub(crate) slack: Slack,
    pub(crate) ada: String,
    pub(crate) direct: String,
    pub(crate) team: String,
}

impl Office {
    pub(crate) async fn build(options: Options) -> Self {
        let slack = Slack::start(options).await.unwrap();
        let house = House::elsewhere(Arc::new(slack.clone())).await;
        let ada = slack.person("Ada");
        let (direct, team) = (slack.private(&ada), slack.group("team", &[&ada]));
        Self { house, slack, ada, direct, team }
    }

    pub(crate) async fn open(options: Options) -> Self {
        let mut office = Self::build(options).await;
        office.house.start();
        office
    }

    /// The same with posted events. Also returns the URL for them.
    pub(crate) async fn open_for_posts() -> (Self, String) {
        let mut office = Self::build(Options::default()).await;
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        office.house.bind = format!("127.0.0.1:{port}");
        let secret = office.slack.options().signing_secret;
        office.house.configure(&format!("event_delivery: http\nsigning_secret: '{secret}'\n"), "");
        let url = format!("http://127.0.0.1:{port}/api/webhooks/slack/slack");
        office.house.start();
        office.becomes("ready").await;
        office.slack.post_events(&url);
        (office, url)
    }

    /// The same with a daemon that can be killed while it makes a call.
    pub(crate) async fn open_to_kill(options: Options) -> Self {
        let mut office = Self::build(options).await;
        office.house.in_its_own_process();
        office.house.start();
        office
    }

    pub(crate) fn write(&self, chat: &str, text: &str, to_bot: bool, answers: Option<&str>) -> String {
        let answers = answers.map(str::to_owned);
        let (chat, person, text) = (chat.to_owned(), self.ada.clone(), text.to_owned());
        self.slack.write(&Words { chat, person, text, to_bot, answers, files: Vec::new() })
    }

    /// Ada asks in the channel.
    pub(crate) fn ask(&self, text: &str) -> String {
        self.write(&self.team, text, true, None)
    }

    pub(crate) async fn sees<T>(&self, chat: &str, wanted: impl Fn(&[Shown]) -> Option<T>) -> T {
        let platform: &dyn Platform = &self.slack;
        let found = platform.wait(chat, SOON, |platform| wanted(&platform.shown(chat))).await;
        found.unwrap_or_else(|timeout| panic!("{timeout}\n{:#?}", self.slack.calls("*").len()))
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

    /// Waits until the answer in the channel is growing.
    pub(crate) async fn begins(&self, word: &str) -> Shown {
        let begun =
            |shown: &[Shown]| shown.last().filter(|last| last.growing && last.text.contains(word)).cloned();
        self.sees(&self.team, begun).await
    }

    pub(crate) fn count(&self, method: &str) -> usize {
        self.slack.calls(method).len()
    }

    pub(crate) fn texts(&self, chat: &str) -> Vec<String> {
        self.slack.shown(chat).into_iter().map(|shown| shown.text).collect()
    }

    async fn state(&self) -> String {
        let (_, facts) = self.house.get("/ready").await;
        let facts: serde_json::Value = serde_json::from_str(&facts).unwrap();
        facts["channels"]["slack"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) async fn becomes(&self, state: &str) {
        for _ in 0..600 {
            if self.state().await == state {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("it is {} and not {state}", self.state().await);
    }
}

pub(crate) fn slowly(text: &str) -> Answer {
    Reply::text(text).words_per_chunk(1).every(Duration::from_millis(150))
}

pub(crate) fn words(count: usize) -> String {
    (1..=count).map(|n| format!("word{n}")).collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn in_a_thread_an_answer_is_a_stream_and_what_goes_on_is_its_status() {
    let office = Office::open(Options::default()).await;
    // There is time for an update at each word, also on a busy machine.
    let answer = slowly(&format!("**Yes:** {} and `code`", words(16)));
    office.house.model.next(answer.every(Duration::from_millis(400)));
    let asked = office.ask("count");
    let begun = office.begins("word2").await;
    assert_eq!(begun.answers, Some(asked.clone()));
    let shown = office.reads(&office.team, &format!("Yes: {} and code", words(16))).await;
    assert_eq!((shown.id.as_str(), office.slack.shown(&office.team).len()), (begun.id.as_str(), 1));
    assert!(office.slack.history(&office.team, &shown.id).len() > 3, "it grew");
    assert_eq!((office.count("chat.startStream"), office.count("chat.stopStream")), (1, 1));
    assert_eq!(
        (office.count("chat.update"), office.count("chat.postMessage")),
        (0, 0),
        "nothing is shown twice"
    );
    let quiet =
        |_: &[Shown]| office.slack.statuses().iter().all(|status| status.text.is_empty()).then_some(());
    office.sees(&office.team, quiet).await;
    let said = office.slack.calls("assistant.threads.setStatus");
    assert!(said.len() <= 3 && said[0].params["status"] == "is thinking…", "{said:?}");
    // Later messages in the thread are for the bot, even if it has forgotten that it wrote there.
    office.write(&office.team, "and then?", false, Some(&asked));
    office.reads(&office.team, "echo: [Ada] and then?").await;
    let mut office = office;
    office.house.kill();
    office.house.start();
    office.write(&office.team, "and now?", false, Some(&asked));
    office.reads(&office.team, "echo: [Ada] and now?").await;
    let request = office.house.model.requests()[2].clone();
    assert!(
        request.messages().iter().any(|m| m["content"] == "[Ada] count"),
        "one conversation: {request:?}"
    );
}

#[tokio::test]
async fn a_long_answer_in_a_thread_goes_on_in_further_messages_there() {
    let office = Office::open(Options::default()).await;
    let lines: String = (0..400).map(|n| format!("- item {n} of the **long** list\n")).collect();
    let text = format!("Here:\n\n{lines}\nThat was all.");
    office.house.model.next(Reply::text(&text).words_per_chunk(20).every(Duration::from_millis(20)));
    let asked = office.ask("list");
    let ended = |shown: &[Shown]| {
        shown.last().filter(|last| !last.growing && last.text.ends_with("That was all.")).map(|_| ())
    };
    office.sees(&office.team, ended).await;
    let shown = office.slack.shown(&office.team);
    assert!(
        shown.len() > 2 && shown.iter().all(|shown| shown.answers == Some(asked.clone()) && !shown.growing)
    );
    let whole = office.texts(&office.team).join("\n");
    for n in 0..400 {
        assert_eq!(whole.matches(&format!("item {n} of")).count(), 1, "item {n}");
    }
}

#[tokio::test]
async fn a_stream_that_slack_closes_goes_on_by_changes() {
    let office = Office::open(Options::default()).await;
    office.house.model.next(slowly(&words(24)));
    office.ask("count");
    let begun = office.begins("word2").await;
    office.slack.close_streams();
    let shown = office.reads(&office.team, &words(24)).await;
    assert_eq!((shown.id, office.texts(&office.team).len()), (begun.id, 1));
    assert!(office.count("chat.update") > 0);
}

#[tokio::test]
async fn a_restart_closes_the_stream_and_goes_on_in_its_message() {
    let mut office = Office::open(Options::default()).await;
    office.house.model.next(slowly(&words(200)));
    office.ask("count");
    let begun = office.begins("word2").await;
    office.house.kill();
    office.house.model.next(Reply::text("the end"));
    office.house.start();
    let shown = office.reads(&office.team, "the end").await;
    assert_eq!((shown.id, office.texts(&office.team).len()), (begun.id, 1));
    let quiet =
        |_: &[Shown]| office.slack.statuses().iter().all(|status| status.text.is_empty()).then_some(());
    office.sees(&office.team, quiet).await;
}

#[tokio::test]
async fn a_call_of_a_stream_without_an_answer_doubles_nothing() {
    let office = Office::open(Options::default()).await;
    for method in ["chat.startStream", "chat.appendStream", "chat.stopStream", "chat.update"] {
        office.slack.fail(method, 1, Fault::CutAfter);
        office.slack.fail(method, 2, Fault::Garbage);
        office.slack.fail(method, 4, Fault::Internal);
    }
    office.house.model.next(slowly(&words(16)));
    office.ask("count");
    office.reads(&office.team, &words(16)).await;
    assert_eq!(office.texts(&office.team), [words(16)]);
}

#[tokio::test]
async fn a_daemon_that_dies_at_any_call_of_an_answer_shows_it_once() {
    for (method, when) in [
        ("chat.startStream", When::Before),
        ("chat.startStream", When::After),
        ("chat.appendStream", When::After),
        ("chat.stopStream", When::Before),
        ("chat.stopStream", When::After),
        ("ack", When::Before),
        ("ack", When::After),
    ] {
        let options = Options { ack_within: Duration::from_millis(300), ..Options::default() };
        let mut office = Office::open_to_kill(options).await;
        let pid = office.house.pid();
        let die = move |_: &pudu_sim::Call| {
            kill_process(pid, Signal::KILL).unwrap();
            Then::Cut
        };
        office.slack.on_call(method, 1, when, Box::new(die));
        office.house.model.next(slowly(&words(12)));
        office.house.model.next(Reply::text(&words(12)));
        office.ask("count");
        assert!(office.house.ended(SOON).await.is_some(), "{method} {when:?}: it was not called");
        office.house.start();
        office.reads(&office.team, &words(12)).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(office.texts(&office.team), [words(12)], "{method} {when:?}");
    }
}

#[tokio::test]
async fn a_workspace_without_streams_sees_a_message_that_changes() {
    let office = Office::open(Options { streams: false, ..Options::default() }).await;
    office.house.model.next(slowly(&words(24)).every(Duration::from_millis(300)));
    let asked = office.ask("count");
    let shown = office.reads(&office.team, &words(24)).await;
    assert_eq!((shown.answers, office.texts(&office.team).len()), (Some(asked), 1));
    assert!(office.slack.history(&office.team, &shown.id).len() > 2, "it grew");
    assert!(!office.slack.previews(&office.team, &shown.id));
    office.ask("again");
    office.reads(&office.team, "echo: [Ada] again").await;
    assert_eq!(office.count("chat.startStream"), 1, "it is tried once");
}

#[tokio::test]
async fn the_next_connection_is_open_before_the_old_is_left() {
    let office = Office::open(Options::default()).await;
    office.write(&office.direct, "one", true, None);
    office.reads(&office.direct, "echo: one").await;
    office.slack.disconnect("warning");
    let state = || (office.count("apps.connections.open"), office.slack.connections());
    office.sees(&office.direct, |_| (state() == (2, 1)).then_some(())).await;
    for (reason, text) in [("refresh_requested", "two"), ("warning", "three")] {
        office.slack.disconnect(reason);
        office.write(&office.direct, text, true, None);
        office.reads(&office.direct, &format!("echo: {text}")).await;
    }
    assert_eq!(office.texts(&office.direct), ["echo: one", "echo: two", "echo: three"]);
    assert_eq!(office.slack.lost(), Vec::<String>::new());
}

#[tokio::test]
async fn what_needs_a_hand_ends_the_connection_with_a_clear_word() {
    let office = Office::open(Options::default()).await;
    office.becomes("ready").await;
    office.slack.disconnect("link_disabled");
    office.becomes("stopped").await;
    office.house.logs("Socket Mode is off for this app").await;
    let office = Office::open(Options::default()).await;
    office.becomes("ready").await;
    office.slack.revoke("account_inactive");
    office.slack.drop_connection();
    office.becomes("auth_failed").await;
    let asked = office.count("apps.connections.open");
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(office.count("apps.connections.open"), asked, "it has stopped asking");
    let secrets = [office.slack.options().bot_token, office.slack.options().app_token];
    assert!(
        secrets.iter().all(|secret| !office.house.log().contains(secret))
            && !office.house.log().contains("ticket=5")
    );
}

#[tokio::test]
async fn what_was_said_while_nobody_listened_is_read_in_the_history() {
    let mut office = Office::open(Options { lost_while_away: true, ..Options::default() }).await;
    office.becomes("ready").await;
    office.write(&office.direct, "one", true, None);
    office.reads(&office.direct, "echo: one").await;
    let asked = office.ask("two");
    office.reads(&office.team, "echo: [Ada] two").await;
    office.house.kill();
    office.sees(&office.direct, |_| (office.slack.connections() == 0).then_some(())).await;
    office.write(&office.direct, "three", true, None);
    office.write(&office.team, "four", false, Some(&asked));
    office.write(&office.team, "lunch?", false, None);
    assert!(office.slack.lost().len() >= 3, "Slack has forgotten them");
    office.house.start();
    office.reads(&office.direct, "echo: three").await;
    office.reads(&office.team, "echo: [Ada] four").await;
    assert_eq!(office.texts(&office.direct), ["echo: one", "echo: three"]);
    assert_eq!(office.texts(&office.team), ["echo: [Ada] two", "echo: [Ada] four"]);
}

#[tokio::test]
async fn what_was_said_before_much_chatter_is_found_too() {
    let mut office = Office::open(Options { lost_while_away: true, ..Options::default() }).await;
    office.becomes("ready").await;
    let asked = office.ask("one");
    office.reads(&office.team, "echo: [Ada] one").await;
    office.house.kill();
    office.sees(&office.direct, |_| (office.slack.connections() == 0).then_some(())).await;
    office.ask("two");
    office.write(&office.team, "three", false, Some(&asked));
    for n in 0..120 {
        office.write(&office.team, &format!("lunch {n}?"), false, None);
    }
    office.house.start();
    let both = |shown: &[Shown]| {
        let has = |text: &str| shown.iter().any(|shown| shown.text == text && !shown.growing);
        (has("echo: [Ada] two") && has("echo: [Ada] three")).then_some(())
    };
    office.sees(&office.team, both).await;
    assert_eq!(office.texts(&office.team).len(), 3);
}

#[tokio::test]
async fn one_slash_command_stands_for_all_of_ours() {
    let office = Office::open(Options::default()).await;
    office.becomes("ready").await;
    assert!(office.slack.command(&office.direct, &office.ada, "/pudu", "status"));
    let status = |shown: &[Shown]| shown.last().filter(|last| last.text.contains("Model")).map(|_| ());
    office.sees(&office.direct, status).await;
    assert!(office.slack.command(&office.direct, &office.ada, "/pudu", "hello there"));
    office.reads(&office.direct, "echo: hello there").await;
    office.write(&office.direct, &format!("<@{}> /new", "U0PUDUBOT1"), true, None);
    office.reads(&office.direct, "New conversation started.").await;
    assert_eq!(office.house.model.count(), 1);
}

#[tokio::test]
async fn a_slash_command_in_a_channel_concerns_the_thread_that_is_worked_on() {
    let office = Office::open(Options::default()).await;
    office.becomes("ready").await;
    office.house.model.next(slowly(&words(400)));
    let asked = office.ask("count");
    let begun = office.begins("word2").await;
    assert!(office.slack.command(&office.team, &office.ada, "/pudu", "status"));
    let told = |shown: &[Shown]| shown.iter().find(|shown| shown.text.contains("State: working")).cloned();
    let status = office.sees(&office.team, told).await;
    assert_eq!(status.answers, None, "it stands where it was asked");
    assert!(office.slack.command(&office.team, &office.ada, "/pudu", "stop"));
    let stopped = |shown: &[Shown]| {
        let ended = shown.iter().any(|shown| shown.id == begun.id && shown.text.contains("Stopped."));
        (ended && shown.iter().any(|shown| shown.text == "Stopped." && shown.answers.is_none())).then_some(())
    };
    office.sees(&office.team, stopped).await;
    assert!(office.slack.command(&office.team, &office.ada, "/pudu", "new"));
    office.reads(&office.team, "New conversation started.").await;
    office.write(&office.team, "who am I?", false, Some(&asked));
    office.reads(&office.team, "echo: [Ada] who am I?").await;
    let last = office.house.model.requests()[1].clone();
    assert!(!last.messages().iter().any(|m| m["content"] == "[Ada] count"), "it is forgotten: {last:?}");
    // A command in a thread applies to that thread.
    office.house.model.next(slowly(&words(400)));
    let other = office.ask("count again");
    office.begins("word2").await;
    office.write(&office.team, "/stop", true, Some(&asked));
    office.reads(&office.team, "Nothing is running.").await;
    office.write(&office.team, "/stop", true, Some(&other));
    office.reads(&office.team, "Stopped.").await;
    assert_eq!(office.house.model.count(), 3);
}

#[tokio::test]
async fn an_answer_in_a_thread_that_takes_long_has_a_button_that_stops_it() {
    let talks = slowly(&words(400));
    let thinks = Reply::text("at last").after(Duration::from_secs(60));
    for (answer, says) in [(talks, "word2"), (thinks, "Thinking…")] {
        let office = Office::open(Options::default()).await;
        office.becomes("ready").await;
        office.house.model.next(answer);
        let asked = office.ask("a lot");
        let stream = office.sees(&office.team, |shown| shown.first().cloned()).await;
        let stoppable = |shown: &[Shown]| {
            let here = shown.first().filter(|shown| shown.text.contains(says) && !shown.growing)?;
            here.buttons.iter().any(|button| button == "Stop").then(|| here.clone())
        };
        let here = office.sees(&office.team, stoppable).await;
        assert_eq!((&here.id, here.answers), (&stream.id, Some(asked)), "it is the same message");
        assert!(stream.growing && stream.buttons.is_empty(), "it was a stream");
        assert!(office.slack.press(&office.team, &office.ada, &here.id, "Stop"));
        let stopped = |shown: &[Shown]| {
            let here = shown.first().filter(|shown| shown.text.contains("Stopped."))?;
            here.buttons.is_empty().then_some(())
        };
        office.sees(&office.team, stopped).await;
        assert_eq!(office.texts(&office.team).len(), 1, "nothing stays behind");
    }
}

#[tokio::test]
async fn what_follows_below_a_typed_command_goes_on_with_what_it_was_about() {
    let office = Office::open(Options::default()).await;
    office.becomes("ready").await;
    office.ask("hello");
    office.reads(&office.team, "echo: [Ada] hello").await;
    let typed = office.ask("/mode steer");
    let mode = office.reads(&office.team, "Mode steer: a new message reaches me while I work.").await;
    assert_eq!(mode.answers, Some(typed.clone()), "it stands below what was typed");
    office.write(&office.team, "and then?", false, Some(&typed));
    office.reads(&office.team, "echo: [Ada] and then?").await;
    let last = office.house.model.requests()[1].clone();
    assert!(last.messages().iter().any(|m| m["content"] == "[Ada] hello"), "one conversation: {last:?}");
}

#[tokio::test]
async fn stop_in_a_direct_chat_reaches_a_thread_there_if_nothing_else_runs() {
    let office = Office::open(Options::default()).await;
    office.becomes("ready").await;
    let first = office.write(&office.direct, "hello", true, None);
    office.reads(&office.direct, "echo: hello").await;
    office.house.model.next(slowly(&words(400)));
    office.write(&office.direct, "count", true, Some(&first));
    let begun = |shown: &[Shown]| shown.last().filter(|last| last.text.contains("word2")).cloned();
    let count = office.sees(&office.direct, begun).await;
    assert!(office.slack.command(&office.direct, &office.ada, "/pudu", "status"));
    let idle = |shown: &[Shown]| shown.iter().any(|shown| shown.text.contains("State: idle")).then_some(());
    office.sees(&office.direct, idle).await;
    assert!(office.slack.command(&office.direct, &office.ada, "/pudu", "stop"));
    let stopped = |shown: &[Shown]| {
        let ended = shown.iter().any(|shown| shown.id == count.id && shown.text.contains("Stopped."));
        (ended && shown.iter().any(|shown| shown.text == "Stopped.")).then_some(())
    };
    office.sees(&office.direct, stopped).await;
}

#[tokio::test]
async fn a_slash_command_where_the_bot_is_not_is_answered_to_who_gave_it() {
    let office = Office::open(Options::default()).await;
    office.becomes("ready").await;
    office.slack.kick(&office.team);
    assert!(office.slack.command(&office.team, &office.ada, "/pudu", "status"));
    let answers = || office.slack.calls("response_url");
    let platform: &dyn Platform = &office.slack;
    let whispered = |nth: usize| answers().get(nth).map(|call| call.params.clone());
    let status = platform.wait(&office.team, SOON, |_| whispered(0)).await.unwrap_or_else(|e| panic!("{e}"));
    let text = status["text"].as_str().unwrap();
    assert!(text.contains("Model") && text.contains("Invite me"), "{text}");
    assert_eq!(status["response_type"], "ephemeral");
    assert!(office.slack.command(&office.team, &office.ada, "/pudu", "hello there"));
    let echo = platform.wait(&office.team, SOON, |_| whispered(1)).await.unwrap_or_else(|e| panic!("{e}"));
    assert!(echo["text"].as_str().unwrap().starts_with("echo: [Ada] hello there"), "{echo:?}");
    assert_eq!(office.texts(&office.team), Vec::<String>::new());
    office.write(&office.direct, "still there?", true, None);
    office.reads(&office.direct, "echo: still there?").await;
    assert_eq!(answers().len(), 2, "each once");
    assert!(!office.house.log().contains("/response/"), "whoever reads the log could answer");
}

#[tokio::test]
async fn the_buttons_under_the_answer_to_a_slash_command_in_a_channel_are_its_own() {
    let office = Office::open(Options::default()).await;
    office.becomes("ready").await;
    // Another conversation of this channel, unrelated to the buttons.
    office.ask("hello");
    office.reads(&office.team, "echo: [Ada] hello").await;
    let outside = |shown: &[Shown]| shown.iter().find(|shown| shown.answers.is_none()).cloned();
    office.house.model.next(slowly(&words(400)));
    assert!(office.slack.command(&office.team, &office.ada, "/pudu", "count"));
    let runs = |shown: &[Shown]| outside(shown).filter(|shown| shown.text.contains("word2"));
    let begun = office.sees(&office.team, runs).await;
    office.ask("hello again");
    office.reads(&office.team, "echo: [Ada] hello again").await;
    assert!(office.slack.press(&office.team, &office.ada, &begun.id, "Stop"));
    let stopped = |shown: &[Shown]| {
        outside(shown).filter(|shown| shown.buttons.iter().all(|button| button != "Stop")).map(|_| ())
    };
    office.sees(&office.team, stopped).await;
    assert!(office.slack.command(&office.team, &office.ada, "/pudu", "mode"));
    let offered = |shown: &[Shown]| {
        shown.iter().find(|shown| shown.buttons.iter().any(|button| button == "steer")).cloned()
    };
    let offer = office.sees(&office.team, offered).await;
    assert!(office.slack.press(&office.team, &office.ada, &offer.id, "steer"));
    let changed = |shown: &[Shown]| {
        let found = shown.iter().find(|shown| shown.text.starts_with("Mode steer:"))?;
        Some(found.answers.clone())
    };
    assert_eq!(office.sees(&office.team, changed).await, None, "it stands where it was asked");
    office.house.model.next(Reply::status(401).message("no such key"));
    assert!(office.slack.command(&office.team, &office.ada, "/pudu", "what is new?"));
    let failed = |shown: &[Shown]| {
        shown.iter().find(|shown| shown.buttons.iter().any(|button| button == "Try again")).cloned()
    };
    let failed = office.sees(&office.team, failed).await;
    assert!(office.slack.press(&office.team, &office.ada, &failed.id, "Try again"));
    let again = |shown: &[Shown]| {
        let found = shown.iter().find(|shown| shown.text == "echo: [Ada] what is new?")?;
        Some(found.answers.clone())
    };
    assert_eq!(office.sees(&office.team, again).await, None, "it stands where it was asked");
    // A message in a thread continues the conversation above it.
    office.write(&office.team, "and then?", false, Some(&failed.id));
    office.reads(&office.team, "echo: [Ada] and then?").await;
    let requests = office.house.model.requests();
    let last = requests.last().unwrap().messages();
    assert!(last.iter().any(|m| m["content"] == "[Ada] what is new?"), "one conversation: {last:?}");
}

#[tokio::test]
async fn a_message_that_cannot_be_looked_for_is_sent_twice_at_most() {
    let office = Office::open(Options::default()).await;
    office.becomes("ready").await;
    for scope in ["im:history", "channels:history"] {
        office.slack.scope(scope, false);
    }
    for nth in 1..=3 {
        office.slack.fail("chat.postMessage", nth, Fault::CutAfter);
    }
    let begun = Instant::now();
    office.write(&office.direct, "hello", true, None);
    office.sees(&office.direct, |_| (office.count("chat.postMessage") > 0).then_some(())).await;
    let without_placeholder = begun.elapsed() < PLACEHOLDER_DELAY;
    office.house.logs("assuming that it is shown").await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let texts = office.texts(&office.direct);
    assert!((1..=2).contains(&texts.iter().filter(|text| *text == "echo: hello").count()), "{texts:?}");
    if without_placeholder {
        let seen = (office.count("chat.postMessage"), texts.len(), texts[1].as_str());
        assert_eq!(seen, (2, 2, "echo: hello"), "the second says everything");
    }
}

#[tokio::test]
async fn what_others_say_among_themselves_is_never_stored() {
    let office = Office::open(Options::default()).await;
    office.becomes("ready").await;
    let chatter = office.write(&office.team, "lunch at the secret place?", false, None);
    let reply = office.write(&office.team, "yes, the secret place", false, Some(&chatter));
    assert!(office.slack.edit(&office.team, &chatter, "lunch at the other secret place?"));
    assert!(office.slack.recall(&office.team, &reply));
    office.write(&office.direct, "hello", true, None);
    office.reads(&office.direct, "echo: hello").await;
    for name in ["pudu.db", "pudu.db-wal"] {
        let bytes = std::fs::read(office.house.path(".pudu/data").join(name)).unwrap_or_default();
        assert!(!bytes.windows(12).any(|window| window == b"secret place"), "{name}");
    }
}

#[tokio::test]
async fn posted_events_need_their_signature_and_each_counts_once() {
    let (office, url) = Office::open_for_posts().await;
    let said = office.write(&office.direct, "by post", true, None);
    office.reads(&office.direct, "echo: by post").await;
    office.slack.redeliver(&office.direct, &said);
    office.ask("in the channel");
    office.reads(&office.team, "echo: [Ada] in the channel").await;
    office.slack.command(&office.direct, &office.ada, "/pudu", "mode");
    let offered = |shown: &[Shown]| shown.last().filter(|last| !last.buttons.is_empty()).cloned();
    let offer = office.sees(&office.direct, offered).await;
    assert!(office.slack.press(&office.direct, &office.ada, &offer.id, "steer"));
    office.reads(&office.direct, "Mode steer: a new message reaches me while I work.").await;
    assert_eq!((office.count("apps.connections.open"), office.house.model.count()), (0, 2));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let body = r#"{"type":"url_verification","challenge":"c"}"#;
    for (at, signature, status) in [
        (now, office.slack.sign(now, body.as_bytes()), 200),
        (now - 400, office.slack.sign(now - 400, body.as_bytes()), 401),
        (now, office.slack.sign(now, b"{}"), 401),
    ] {
        let post =
            http().post(&url).header("x-slack-request-timestamp", at).header("x-slack-signature", signature);
        assert_eq!(post.body(body).send().await.unwrap().status().as_u16(), status);
    }
}

#[tokio::test]
async fn http_without_a_signing_secret_does_not_start() {
    let mut office = Office::build(Options::default()).await;
    office.house.configure("event_delivery: http\n", "");
    assert!(!office.house.try_start());
    assert!(office.house.log().contains("channels.slack.signing_secret"), "{}", office.house.log());
}

#[tokio::test]
async fn without_the_scope_a_file_is_told_of_and_the_words_are_answered() {
    let office = Office::open(Options::default()).await;
    office.slack.scope("files:read", false);
    office.slack.write(&Words {
        chat: office.direct.clone(),
        person: office.ada.clone(),
        text: "look".into(),
        to_bot: true,
        answers: None,
        files: vec![("a.csv".into(), "1,2".into())],
    });
    let told =
        |shown: &[Shown]| shown.last().filter(|last| last.text.contains("could not be fetched")).cloned();
    let shown = office.sees(&office.direct, told).await;
    assert!(shown.text.starts_with("echo: look") && shown.text.contains("a.csv"), "{}", shown.text);
}

#[tokio::test]
async fn strange_frames_harm_nobody() {
    let office = Office::open(Options::default()).await;
    office.becomes("ready").await;
    for frame in [
        json!({"type": "dance"}),
        json!([1, 2]),
        json!({"type": "events_api", "envelope_id": 7}),
        json!({"type": "events_api", "envelope_id": "x", "payload": {"event": {"type": 5}}}),
        json!({"type": "interactive", "envelope_id": "y", "payload": {"actions": "none"}}),
        json!({"type": "news", "envelope_id": "z", "payload": null}),
    ] {
        office.slack.frame(&frame);
    }
    office.slack.event(&json!({"type": "reaction_added", "user": 7}));
    office.write(&office.direct, "hello", true, None);
    office.reads(&office.direct, "echo: hello").await;
    let acks: Vec<String> = office
        .slack
        .calls("ack")
        .iter()
        .filter_map(|ack| Some(ack.params["envelope_id"].as_str()?.to_owned()))
        .collect();
    for id in ["x", "y", "z"] {
        assert!(acks.contains(&id.to_owned()), "{id} would come for ever");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_says_what_is_missing_and_how_to_mend_it() {
    let office = Office::build(Options::default()).await;
    let (ok, said) = office.house.pudu(&["doctor"]);
    assert!(
        ok && said.contains("ok    bot token: pudu in Simulated") && said.contains("Socket Mode can connect"),
        "{said}"
    );
    office.slack.scope("files:read", false);
    office.slack.scope("chat:write", false);
    let (ok, said) = office.house.pudu(&["doctor"]);
    assert!(
        !ok && said.contains("BAD   scope chat:write") && said.contains("poor  scope files:read"),
        "{said}"
    );
    assert!(said.contains("help: add chat:write at https://api.slack.com/apps"), "{said}");
    office.slack.revoke("invalid_auth");
    let (ok, said) = office.house.pudu(&["doctor"]);
    assert!(!ok && said.contains("BAD   bot token: invalid_auth"), "{said}");
}

#[tokio::test]
async fn a_busy_slack_is_given_its_time() {
    let office = Office::open(Options::default()).await;
    office.slack.pace(true);
    for n in 0..4 {
        office.house.model.next(slowly(&format!("{n} {}", words(10))));
        office.ask(&format!("count {n}"));
    }
    let all = |shown: &[Shown]| {
        let done = shown.iter().filter(|shown| !shown.growing && shown.text.ends_with("word10")).count();
        (done == 4).then_some(())
    };
    office.sees(&office.team, all).await;
    assert_eq!(office.texts(&office.team).len(), 4);
}
