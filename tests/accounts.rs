//! Bots while the daemon runs: pairing, reconnecting after an edit, and the doctor.

use crate::house::{House, SOON, Talker, http};
use pudu_sim::{
    Fault, Telegram,
    model::{At, Reply},
    telegram::{Options, View},
};
use serde_json::{Value, json};

async fn post(house: &House, path: &str) -> (u16, Value) {
    let post = http().post(format!("http://{}{path}", house.address)).bearer_auth(token(house));
    let answer = post.send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

/// Returns the operator's token.
fn token(house: &House) -> String {
    std::fs::read_to_string(house.path(".pudu/gateway-token")).unwrap()
}

#[tokio::test]
async fn a_stranger_makes_themselves_known_by_a_code_once() {
    let mut house = House::open("pairing: true").await;
    let (ada, eve) = (Talker::new(&house, "Ada"), Talker::new(&house, "Eve"));
    ada.say("hello");
    let refusal = ada.reads_so(|text| text.contains("I do not know you yet")).await;
    assert!(refusal.contains("/connect CODE"), "{refusal}");
    let (ok, said) = house.pudu(&["connect", "telegram"]);
    assert!(ok, "{said}");
    let code = said.split("/connect ").nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
    assert!(said.contains(&format!("https://t.me/pudu_bot?start={code}")), "{said}");
    ada.says(&format!("/connect {code}"), "Connected: I know you now. Say hello!").await;
    ada.says(&format!("/connect {code}"), "I know you already. Say hello!").await;
    ada.says("hello", "echo: hello").await;
    eve.say(&format!("/connect {code}"));
    eve.reads_so(|text| text.contains("is invalid")).await;
    assert_eq!(house.model.count(), 1, "the code opens the door to one person");
    let url = format!("http://{}/api/channels/telegram/people", house.address);
    let people = http().get(&url).bearer_auth(token(&house)).send().await.unwrap().text().await.unwrap();
    assert!(people.contains("Ada") && !people.contains("Eve"), "{people}");
    house.kill();
    house.start();
    ada.says("still?", "echo: still?").await;
    let url = format!("http://{}/api/channels/telegram/people/{}", house.address, ada.person);
    assert!(http().delete(url).bearer_auth(token(&house)).send().await.unwrap().status().is_success());
    ada.say("and now?");
    ada.reads_so(|text| text.contains("I do not know you yet")).await;
    assert_eq!(house.model.count(), 2);
}

#[tokio::test]
async fn without_pairing_there_are_no_codes() {
    let house = House::open("").await;
    assert_eq!(post(&house, "/api/channels/telegram/connect").await.0, 409);
    assert_eq!(post(&house, "/api/channels/nobody/connect").await.0, 404);
}

/// A second account on a separate Telegram.
fn second(other: &Telegram, more: &str) -> String {
    format!(
        "  second:\n    type: telegram\n    bot_token: '{}'\n    api_url: {}\n{more}",
        other.token(),
        other.url()
    )
}

#[tokio::test]
async fn an_edited_account_connects_anew_and_the_other_does_not_notice() {
    let other = Telegram::start(Options {
        token: "8:another-token-of-the-right-shape-000000".into(),
        ..Options::default()
    })
    .await
    .unwrap();
    let mut house = House::furnish(Options::default(), "", &second(&other, "")).await;
    house.start();
    let asked = |telegram: &Telegram| telegram.look(|view| view.count("getMe"));
    other.wait(SOON, |view| (view.count("getUpdates") > 0).then_some(())).await.unwrap();
    house.telegram.wait(SOON, |view| (view.count("getUpdates") > 0).then_some(())).await.unwrap();
    assert_eq!((asked(&house.telegram), asked(&other)), (1, 1));
    house.configure("", &second(&other, "    require_mention: false\n"));
    other.wait(SOON, |view| (view.count("getMe") == 2).then_some(())).await.unwrap();
    assert_eq!(asked(&house.telegram), 1, "nothing of it was edited");
    let bob = other.add_person("Bob", None);
    let group = other.add_group(pudu_sim::telegram::Kind::Supergroup, "team", &[bob]);
    other.say(group, bob, "anybody?").unwrap();
    other.wait_answer(group, "echo: [Bob] anybody?", SOON).await.unwrap();
    house.configure("", "");
    let closed = async || loop {
        let (_, channels) = house.get("/api/channels/").await;
        if !channels.contains("second") {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    };
    tokio::time::timeout(SOON, closed()).await.unwrap();
    let ada = Talker::new(&house, "Ada");
    ada.says("and here?", "echo: and here?").await;
}

/// The bot searches two seconds for a press below an unknown message: forty of them take longer than any timeout.
#[tokio::test]
async fn an_account_that_waits_for_its_platform_keeps_no_other_waiting() {
    let other = Telegram::start(Options {
        token: "8:another-token-of-the-right-shape-000000".into(),
        ..Options::default()
    })
    .await
    .unwrap();
    let more = second(&other, "    require_mention: false\n");
    let mut house = House::furnish(Options::default(), "", &more).await;
    house.start();
    house.telegram.fail_often("sendMessage", 1.0, Fault::CutAfter);
    house.telegram.fail_often("editMessageText", 1.0, Fault::Silent);
    let ada = Talker::new(&house, "Ada");
    ada.say("/mode");
    let offer =
        |view: &View<'_>| view.answers(ada.chat).last().filter(|one| !one.buttons.is_empty()).cloned();
    let offer = house.telegram.wait(SOON, offer).await.unwrap();
    for _ in 0..40 {
        house.telegram.press(ada.chat, ada.person, offer.id, &offer.buttons[0][0].text).unwrap();
    }
    let bob = other.add_person("Bob", None);
    let group = other.add_group(pudu_sim::telegram::Kind::Supergroup, "team", &[bob]);
    other.say(group, bob, "and here?").unwrap();
    other.wait_answer(group, "echo: [Bob] and here?", SOON).await.unwrap();
}

#[tokio::test]
async fn one_account_is_restarted_by_hand() {
    let house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    ada.says("before", "echo: before").await;
    let (status, told) = post(&house, "/api/channels/telegram/restart").await;
    assert_eq!((status, &told["success"]), (200, &json!(true)), "{told}");
    house.telegram.wait(SOON, |view| (view.count("getMe") == 2).then_some(())).await.unwrap();
    ada.says("after", "echo: after").await;
    assert_eq!(ada.answers().len(), 2);
    let (status, told) = post(&house, "/api/channels/nobody/restart").await;
    assert!(status == 404 && told["detail"].is_string(), "{told}");
    let bare = async |path: &str| {
        let url = format!("http://{}/api/channels/telegram/{path}", house.address);
        http().post(url).send().await.unwrap()
    };
    let status = bare("restart").await.status();
    assert_eq!(
        status, 401,
        "CVE-2026-25593: nobody changes what runs without the token, on loopback neither"
    );
    // Without a token, a code admits no user: it links a chat to the caller, like /connect on the page.
    let offer: Value = serde_json::from_str(&bare("connect").await.text().await.unwrap()).unwrap();
    assert_eq!(offer["mode"], "binding_code", "{offer}");
}

#[tokio::test]
async fn a_reply_that_waits_for_its_account_is_delivered_when_it_is_back() {
    let mut house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    house.telegram.fail_often("sendMessage", 1.0, Fault::Internal);
    ada.say("hello");
    house.model.wait(SOON, |_| (house.model.count() == 1).then_some(())).await.unwrap();
    house.kill();
    house.telegram.heal();
    let config = std::fs::read_to_string(house.path("config.yaml")).unwrap();
    house.write_config(&config.replace("enabled: true", "enabled: false"));
    house.start();
    assert!(house.log().contains("holding reply until its bot is available again"));
    house.write_config(&config);
    ada.reads("echo: hello").await;
    assert_eq!(ada.answers().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_names_what_is_wrong_and_the_mend() {
    let house = House::build("").await;
    let (ok, said) = house.pudu(&["doctor"]);
    assert!(ok && said.contains("telegram (telegram)\n  ok    token: @pudu_bot"), "{said}");
    assert!(said.contains("  ok    store: SQLite in "), "{said}");
    assert!(
        said.contains("skills\n  ok    found: 8 enabled, 0 disabled\n") && !said.contains("MCP"),
        "{said}"
    );
    let servers = json!({"mcpServers": {"gone": {"command": house.path("no-such-server")}}});
    std::fs::write(house.path("extensions_config.json"), servers.to_string()).unwrap();
    for file in std::fs::read_dir(house.path(".pudu/data")).unwrap() {
        std::fs::write(file.unwrap().path(), "no database").unwrap();
    }
    let odd = house.path(".pudu/users/default/skills/custom/odd");
    std::fs::create_dir_all(&odd).unwrap();
    std::fs::write(odd.join("SKILL.md"), "no front matter").unwrap();
    let config = std::fs::read_to_string(house.path("config.yaml")).unwrap();
    let wrong = config.replace(&house.telegram.token(), "1:wrong-token-of-the-right-shape-000000");
    house.write_config(&wrong);
    let (ok, said) = house.pudu(&["doctor"]);
    assert!(
        !ok && said.contains("BAD   token: Unauthorized\n        help: copy the token from @BotFather"),
        "{said}"
    );
    assert!(said.contains("custom/odd: ") && said.contains("help: fix it (docs/skills.md)"), "{said}");
    assert!(said.contains("MCP servers\n  ok    tools: 0 from reachable servers\n  BAD   gone: "), "{said}");
    assert!(said.contains("  BAD   store: SQLite in ") && said.contains("restore a backup"), "{said}");
}

#[tokio::test]
async fn each_account_has_its_agent_and_a_person_may_have_another() {
    let mut house = House::build("").await;
    let (ada, bob) = (Talker::new(&house, "Ada"), Talker::new(&house, "Bob"));
    let session = format!(
        "session:\n  assistant_id: Code_Reviewer\n  config: {{recursion_limit: 2}}\n  users:\n    '{}': {{assistant_id: poet}}\n",
        bob.person
    );
    house.configure(&session, "");
    for (name, soul) in [("code-reviewer", "You review code."), ("poet", "You write poems.")] {
        let folder = house.path(format!(".pudu/users/default/agents/{name}"));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("SOUL.md"), soul).unwrap();
    }
    house.start();
    let soul = |n: usize| house.model.requests()[n].messages()[0]["content"].to_string();
    ada.says("hello", "echo: hello").await;
    assert!(soul(0).contains("You review code.") && !soul(0).contains("You write poems."), "{}", soul(0));
    bob.says("hello", "echo: hello").await;
    assert!(soul(1).contains("You write poems.") && !soul(1).contains("You review code."), "{}", soul(1));
    for _ in 0..3 {
        house.model.next(Reply::tool("ls", &json!({"path": "/mnt/user-data/workspace"})));
    }
    ada.say("go on and on");
    ada.reads_so(|text| text.contains("my limit of steps")).await;
    assert_eq!(house.model.count(), 4, "two steps, as the account says");
    house.configure("session: {assistant_id: nobody}\n", "");
    ada.says("/new", "New conversation started.").await;
    ada.say("anybody?");
    ada.reads_so(|text| text.contains("There is no agent nobody.")).await;
    assert_eq!(house.model.count(), 4);
}

#[tokio::test]
async fn what_waits_when_its_account_is_taken_out_is_answered_by_whom_it_was_said_to() {
    let mut house = House::build("session: {assistant_id: support}\n").await;
    let folder = house.path(".pudu/users/default/agents/support");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.yaml"), "tool_groups: []\n").unwrap();
    std::fs::write(folder.join("SOUL.md"), "You support.").unwrap();
    house.start();
    let ada = Talker::new(&house, "Ada");
    let mut hold = house.model.hold(1, At::End);
    ada.say("one");
    hold.reached().await.unwrap();
    ada.say("two");
    house.acknowledged().await;
    let config = std::fs::read_to_string(house.path("config.yaml")).unwrap();
    house.write_config(&config.replace("enabled: true", "enabled: false"));
    house.logs("disconnecting bot that is no longer configured").await;
    hold.proceed();
    ada.reads("echo: two").await;
    let ask = house.model.requests()[1].clone();
    assert!(ask.messages()[0]["content"].to_string().contains("You support."), "{ask:?}");
    assert!(
        !ask.tools().contains(&"update_agent") && !ask.tools().contains(&"web_search"),
        "{:?}",
        ask.tools()
    );
}

#[tokio::test]
async fn an_account_that_is_taken_out_and_put_back_speaks_with_its_new_token() {
    let house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    ada.says("one", "echo: one").await;
    let config = std::fs::read_to_string(house.path("config.yaml")).unwrap();
    house.write_config(&config.replace("enabled: true", "enabled: false"));
    house.logs("disconnecting bot that is no longer configured").await;
    let token = "9:another-token-of-the-same-bot-00000";
    house.telegram.rotate(token);
    std::fs::write(
        house.path("config.yaml"),
        config.replace("7000000001:SIM-token-of-the-simulated-bot_00000", token),
    )
    .unwrap();
    ada.says("two", "echo: two").await;
    assert_eq!(ada.answers().len(), 2);
}

#[tokio::test]
async fn malformed_credentials_are_refused_by_the_check_and_by_the_daemon() {
    let mut house = House::build("").await;
    for (bot, key) in [
        ("telegram: {bot_token: '123:short', allowed_users: [1]}", "channels.telegram.bot_token"),
        (
            "slack: {bot_token: xoxb-1-a, app_token: xoxb-1-b, allowed_users: [U1]}",
            "channels.slack.app_token",
        ),
    ] {
        house.write_config(&format!("config_version: 34\nchannels:\n  {bot}\n"));
        let (well, said) = house.pudu(&["config", "check"]);
        let (_, found) =
            said.split_once(&format!("error: {key}: ")).unwrap_or_else(|| panic!("{well} {said}"));
        let why = found.lines().next().unwrap();
        assert!(!well && !house.try_start(), "{bot}");
        assert!(house.log().contains(&format!("{key}: {why}; ")), "{why}\n{}", house.log());
    }
}
