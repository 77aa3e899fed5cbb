//! Startup, health, configuration edits, and shutdown.

use crate::house::{House, SOON, Talker};
use pudu_sim::model::{At, Reply};
use rustix::process::Signal;
use std::time::Duration;

#[tokio::test]
async fn ready_tells_the_truth() {
    let house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    ada.says("hello", "echo: hello").await;
    let (status, facts) = house.get("/ready").await;
    assert_eq!(status, 200, "{facts}");
    let health: serde_json::Value = serde_json::from_str(&house.get("/health").await.1).unwrap();
    assert_eq!((&health["status"], &health["service"]), (&"healthy".into(), &"pudu".into()));
}

#[tokio::test]
async fn a_refused_token_is_said_and_stops_that_channel_alone() {
    let house = House::build("").await;
    let config = std::fs::read_to_string(house.path("config.yaml")).unwrap();
    std::fs::write(
        house.path("config.yaml"),
        config.replace(&house.telegram.token(), "7000000001:wrong-token-of-the-right-shape-00000"),
    )
    .unwrap();
    let mut house = house;
    house.start();
    let facts = refused(&house).await;
    assert_eq!(facts["channels"]["telegram"], "auth_failed", "{facts}");
    assert_eq!(house.get("/health").await.0, 200);
    assert!(!house.log().contains("wrong-token-of"), "not even a wrong token is logged:\n{}", house.log());
}

/// Waits until the daemon reports that it is not ready because a channel was refused.
async fn refused(house: &House) -> serde_json::Value {
    let deadline = std::time::Instant::now() + SOON;
    loop {
        let (status, body) = house.get("/ready").await;
        let facts: serde_json::Value = serde_json::from_str(&body).unwrap();
        if facts["channels"]["telegram"] != "connecting" {
            assert_eq!(status, 503, "{facts}");
            return facts;
        }
        assert!(std::time::Instant::now() < deadline, "{facts}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn another_poller_is_reported_as_what_it_is() {
    let house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    ada.says("hello", "echo: hello").await;
    let thief = house.telegram.call("getUpdates", serde_json::json!({"timeout": 0})).await;
    assert_eq!(thief["ok"], true);
    ada.say("/status");
    let text = ada.reads_so(|text| text.contains("Active thread")).await;
    assert!(text.contains("telegram is"), "{text}");
    assert!(house.log().contains("another program"), "{}", house.log());
}

#[tokio::test]
async fn sigterm_lets_a_running_turn_finish() {
    let mut house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    house.model.next(Reply::text("one two three").words_per_chunk(1).every(Duration::from_millis(300)));
    ada.say("count");
    ada.reads_so(|text| text.starts_with("one")).await;
    assert!(house.stop().await.success());
    ada.reads("one two three").await;
    house.start();
    ada.says("still there?", "echo: still there?").await;
    assert_eq!(ada.answers().len(), 2, "what was finished in the drain is not said again");
}

#[tokio::test]
async fn what_does_not_finish_in_time_goes_on_after_the_restart_in_the_same_message() {
    let mut house = House::furnish(Default::default(), "", "  shutdown_grace_period_seconds: 0.2\n").await;
    house.start();
    let ada = Talker::new(&house, "Ada");
    house.model.next(Reply::text("one two three").words_per_chunk(1).stall_after(2));
    ada.say("count");
    ada.reads_so(|text| text.starts_with("one two")).await;
    let before = ada.answers()[0].id;
    assert!(house.stop().await.success());
    house.start();
    ada.reads("echo: count").await;
    let answers = ada.answers();
    assert_eq!((answers.len(), answers[0].id), (1, before), "the half-written message becomes the answer");
}

#[tokio::test]
async fn a_message_that_waited_at_the_end_is_answered_after_the_restart() {
    let mut house = House::furnish(Default::default(), "", "  shutdown_grace_period_seconds: 0\n").await;
    house.start();
    let ada = Talker::new(&house, "Ada");
    let mut hold = house.model.hold(1, At::Start);
    ada.say("first");
    hold.reached().await.unwrap();
    ada.say("second");
    house.acknowledged().await;
    assert!(house.stop().await.success());
    hold.cut();
    house.start();
    ada.reads("echo: second").await;
    let texts: Vec<String> = ada.answers().into_iter().map(|answer| answer.text).collect();
    assert_eq!(texts, ["echo: first", "echo: second"]);
}

#[tokio::test]
async fn a_second_signal_stops_at_once() {
    let mut house = House::furnish(Default::default(), "", "  shutdown_grace_period_seconds: 600\n").await;
    house.start();
    let ada = Talker::new(&house, "Ada");
    let mut hold = house.model.hold(1, At::Start);
    ada.say("long work");
    hold.reached().await.unwrap();
    house.signal(Signal::TERM);
    assert!(house.ended(Duration::from_millis(300)).await.is_none(), "it drains");
    house.signal(Signal::TERM);
    assert!(house.ended(SOON).await.is_some_and(|status| status.success()));
}

#[tokio::test]
async fn an_edited_configuration_counts_from_the_next_message() {
    let house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    ada.says("hello", "echo: hello").await;
    house.configure("allowed_users: [1]", "");
    ada.say("still there?");
    ada.reads_so(|text| text.starts_with("I do not know you yet")).await;
    house.configure("allowed_users: [oops", "");
    ada.say("and now?");
    house.telegram.wait(SOON, |view| (view.waiting() == 0).then_some(())).await.unwrap();
    house.configure("allowed_users: []", "");
    ada.says("back again", "echo: back again").await;
    assert!(house.log().contains("config.yaml"), "the broken edit is told:\n{}", house.log());
}

#[tokio::test]
async fn a_configuration_that_cannot_be_used_is_refused_with_its_place() {
    let house = House::build("nonsense: [").await;
    let output = house.spawn().wait_with_output().unwrap();
    assert!(!output.status.success());
    assert!(house.log().contains("config.yaml:"), "{}", house.log());
}

#[tokio::test]
async fn secrets_are_in_no_log_whatever_the_level() {
    let mut house = House::build("").await;
    house.set("RUST_LOG", "trace");
    house.start();
    let ada = Talker::new(&house, "Ada");
    house.telegram.fail_next("sendMessage", pudu_sim::telegram::Fault::CutBefore);
    house.model.next(Reply::status(500));
    ada.says("hello", "echo: hello").await;
    let log = house.log();
    for secret in [house.telegram.token().as_str(), "SIM-token", "sk-simulated"] {
        assert!(!log.contains(secret), "{secret} is in the log");
    }
}

#[tokio::test]
async fn a_full_inbox_leaves_messages_with_the_platform_and_takes_them_later() {
    let mut house = House::furnish(Default::default(), "", "  inbound_queue_maxsize: 2\n").await;
    house.start();
    let people: Vec<Talker> = (0..6).map(|n| Talker::new(&house, &format!("P{n}"))).collect();
    let hold = house.model.hold(1, At::Start);
    for person in &people {
        person.say("hello");
    }
    let mut hold = hold;
    hold.reached().await.unwrap();
    let told = house.telegram.wait(SOON, |_| house.log().contains("too many messages").then_some(()));
    told.await.unwrap();
    hold.proceed();
    for person in &people {
        person.reads("echo: hello").await;
        assert_eq!(person.answers().len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_daemons_never_work_in_one_folder() {
    let house = House::open("").await;
    let second = house.spawn().wait_with_output().unwrap();
    assert!(!second.status.success());
    let told = format!("another pudu (at http://{}) is already using .pudu", house.address);
    assert!(house.log().contains(&told), "{}", house.log());
    let ada = Talker::new(&house, "Ada");
    ada.says("hello", "echo: hello").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_health_command_tells_a_daemon_that_lives_from_one_that_does_not() {
    let mut house = House::open("").await;
    let (well, told) = house.pudu(&["health"]);
    assert!(well && told.contains("\"status\":\"healthy\""), "{told}");
    let url = format!("http://{}/health", house.address);
    assert!(house.pudu(&["health", "--url", &url]).0);
    assert!(house.pudu(&["health", "--bind", &house.address]).0);
    assert!(!house.pudu(&["health", "--bind", "127.0.0.1:1"]).0, "nobody listens there");
    house.kill();
    let (well, told) = house.pudu(&["health", "--url", &url]);
    assert!(!well && told.starts_with("error: "), "{told}");
}

#[tokio::test]
async fn a_bot_that_everybody_in_the_world_may_use_is_said_at_the_start_and_by_doctor() {
    let (words, logged) = ("open to everyone", "opened account to everyone");
    for (account, said) in
        [("", true), ("allowed_users: [1]", false), ("allowed_chats: [-1]", false), ("pairing: true", false)]
    {
        let house = House::open(account).await;
        assert_eq!(house.log().contains(logged), said, "{account}: {}", house.log());
        let (_, doctor) = house.pudu(&["doctor"]);
        assert_eq!(doctor.contains(words), said, "{account}: {doctor}");
        house.configure("", "");
        house.logs(if said { logged } else { "would open `channels.telegram` to everyone" }).await;
        assert_eq!(house.log().contains(logged), said, "{account}: {}", house.log());
        house.configure("allowed_users: []\nallowed_chats: []", "");
        house.logs(logged).await;
    }
}

#[tokio::test]
async fn what_would_guard_and_is_not_built_stops_the_start() {
    let refuses = |house: &mut House, words: &str| {
        assert!(!house.try_start(), "it started");
        assert!(house.log().contains(words), "{words}: {}", house.log());
    };
    let mut house = House::build("").await;
    for (section, key) in [
        ("guardrails: {enabled: true, provider: {use: 'team.parts:Guard'}}\n", "guardrails.provider.use: "),
        ("authorization: {enabled: true}\n", "authorization.enabled: "),
        ("channel_connections: {enabled: true, require_bound_identity: true}\n", "require_bound_identity: "),
    ] {
        house.configure("", section);
        refuses(&mut house, key);
    }
    house.configure("", "");
    for key in ["mcpInterceptors", "middlewares"] {
        let file = format!("{{\"{key}\": [\"a.b:Guard\"]}}");
        std::fs::write(house.path("extensions_config.json"), file).unwrap();
        refuses(&mut house, &format!("error: {key}: an empty list"));
    }
    std::fs::write(house.path("extensions_config.json"), "{\"mcpInterceptors\": []}").unwrap();
    house.start();
    let ada = Talker::new(&house, "Ada");
    ada.says("hello", "echo: hello").await;
    // Enabled while it runs: refused, and the previous settings stay in use.
    house.configure("", "guardrails: {enabled: true}\n");
    assert!(house.log().contains("guardrails.provider.use: this is missing"), "{}", house.log());
    ada.says("still there", "echo: still there").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_configuration_that_is_no_file_is_not_taken_for_none() {
    let house = House::build("").await;
    std::fs::remove_file(house.path("config.yaml")).unwrap();
    std::fs::create_dir(house.path("config.yaml")).unwrap();
    let (well, told) = house.pudu(&["config", "check"]);
    assert!(!well && told.contains("is a folder, not a file"), "{told}");
}
