//! Referenced content: messages that users reply to, quote, forward and link to, with their files, on each platform.
//! `docs/channels/pointed-at.md` lists the test of each kind.

use crate::{
    discord::Server,
    house::{House, SOON, Talker, http},
    platforms::{self, on_each_platform},
    scene::Scene,
    slack::Office,
};

use pudu_sim::{
    DingTalk, Feishu, Platform,
    dingtalk::Options as DingTalkOptions,
    feishu::Said,
    model::Reply,
    platform::{Shown, Words},
    slack::Options,
    telegram::{Kind, Post, Upload},
};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio_util::bytes::Bytes;

/// Content of the file in a message of another user.
const PLAN: &str = "the plan is to build a dam";

/// Waits for the nth request to the model and returns the user's text and the referenced content.
async fn asked(house: &House, nth: usize) -> (String, String) {
    let count = || (house.model.count() >= nth as u64).then_some(());
    house.model.wait(SOON, |_| count()).await.unwrap_or_else(|timeout| panic!("request {nth}: {timeout}"));
    let request = house.model.requests()[nth - 1].clone();
    (request.last_user(), request.last_pointed().to_owned())
}

/// Fails unless the content contains all of these texts after a marker that no text can forge.
fn assert_foreign(pointed: &str, words: &[&str]) {
    for word in words {
        let found = pointed.lines().any(|line| line.starts_with("> ") && line.contains(word));
        assert!(found, "{word:?} is not set off as foreign in {pointed:?}");
    }
}

on_each_platform!([
    a_message_of_another_that_is_answered_is_seen
    a_file_of_another_that_is_answered_is_among_the_uploads
]);

/// Returns whether the platform only sends messages to a bot that mention it, like DingTalk.
fn gives_nothing(scene: &Scene) -> bool {
    scene.platform.name() == "dingtalk"
}

/// Bob writes in a group with Ada, not to the bot; returns the group and the message.
fn bob_writes(scene: &Scene, text: &str, files: Vec<(String, Bytes)>) -> (String, String) {
    let bob = scene.platform.person("Bob");
    let group = scene.platform.group("team", &[&scene.ada, &bob]);
    let words = Words { chat: group.clone(), person: bob, text: text.to_owned(), files, ..Words::default() };
    (group, scene.platform.write(&words))
}

async fn a_message_of_another_that_is_answered_is_seen(scene: Scene) {
    let (group, message) = bob_writes(&scene, "the server room floods\non Mondays", Vec::new());
    scene.write(&group, &scene.ada, "summarise this", true, Some(&message));
    let (words, pointed) = asked(&scene.house, 1).await;
    assert_eq!(words, "[Ada] summarise this");
    if gives_nothing(&scene) {
        assert!(pointed.contains("DingTalk did not provide its content"), "{pointed:?}");
        return;
    }
    assert_foreign(&pointed, &["the server room floods", "on Mondays"]);
    assert!(pointed.contains("\"author\":\"Bob\""), "{pointed:?}");
    // Content is not read again: the conversation contains it.
    scene.sees(&group, |shown| shown.last().filter(|last| last.text.starts_with("echo")).cloned()).await;
}

async fn a_file_of_another_that_is_answered_is_among_the_uploads(scene: Scene) {
    if gives_nothing(&scene) {
        return;
    }
    let plan = vec![("plan.txt".to_owned(), Bytes::from_static(PLAN.as_bytes()))];
    let (group, message) = bob_writes(&scene, "", plan);
    let path = "/mnt/user-data/uploads/plan.txt";
    scene.house.model.next(Reply::tool("read_file", &json!({"path": path})));
    scene.write(&group, &scene.ada, "what does it say?", true, Some(&message));
    let (words, pointed) = asked(&scene.house, 2).await;
    assert!(words.contains("what does it say?") && words.contains(path), "{words:?}");
    assert!(pointed.contains("\"files\":[\"plan.txt\"]"), "{pointed:?}");
    assert_eq!(scene.house.model.requests()[1].last_tool(), PLAN);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn telegram_quotes_external_replies_and_forwards_are_seen() {
    let house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    let id = ada.person.0;
    let message = |number: i64, fields: &Value| {
        let mut message = json!({
            "message_id": number, "date": 1_750_000_000, "chat": {"id": id, "type": "private", "first_name": "Ada"},
            "from": {"id": id, "is_bot": false, "first_name": "Ada"},
        });
        message.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        message
    };
    let bot: i64 = house.telegram.token().split(':').next().unwrap().parse().unwrap();
    let own = json!({"id": bot, "is_bot": true, "first_name": "Pudu", "username": "pudu_bot"});
    let answer = json!({"message_id": 6, "date": 1, "chat": {"id": id, "type": "private"}, "from": own,
        "text": "OLDANSWER the code of the door is 4711, and the lift is out of order"});
    let news = json!({"id": -1, "type": "channel", "title": "News"});
    let origin = json!({"type": "channel", "chat": news, "message_id": 9, "date": 1});
    let cases = [
        (
            json!({"text": "is it still that one?", "reply_to_message": answer}),
            vec!["OLDANSWER"],
            "\"yours\":true",
        ),
        (
            json!({"text": "is this part true?", "reply_to_message": answer, "quote": {"text": "PART the lift", "is_manual": true}}),
            vec!["OLDANSWER", "PART the lift"],
            "kind=\"quote\"",
        ),
        (
            json!({"text": "and this?", "external_reply": {"origin": origin, "chat": news}, "quote": {"text": "rates fall"}}),
            vec!["rates fall"],
            "\"author\":\"News\"",
        ),
        (
            json!({"text": "/new\nPASSED on", "forward_origin": origin}),
            vec!["/new", "PASSED on"],
            "kind=\"forward\"",
        ),
    ];
    for (n, (fields, words, mark)) in cases.iter().enumerate() {
        house.telegram.update(ada.chat, "message", &message(100 + n as i64, fields)).unwrap();
        let (own, pointed) = asked(&house, n + 1).await;
        assert_eq!(own, fields["text"].as_str().filter(|_| n < 3).unwrap_or_default());
        assert_foreign(&pointed, words);
        assert!(pointed.contains(mark), "{pointed:?}");
    }
    let forward =
        Post::text("see").forwarded_from("Bob").file(Upload::document("error.log", "text/plain", PLAN));
    house.model.next(Reply::tool("read_file", &json!({"path": "/mnt/user-data/uploads/error.log"})));
    house.telegram.post(ada.chat, ada.person, &forward).unwrap();
    asked(&house, cases.len() + 2).await;
    assert_eq!(house.model.requests().last().unwrap().last_tool(), PLAN);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_bots_own_answer_is_repeated_only_where_the_conversation_lacks_it() {
    let house = House::open("").await;
    let (ada, bob) = (Talker::new(&house, "Ada"), Talker::new(&house, "Bob"));
    let group = house.telegram.add_group(Kind::Supergroup, "team", &[ada.person, bob.person]);
    let ada = ada.at(group);
    let long = format!("The **plan** is this. {} THEEND", "word ".repeat(100));
    house.model.next(Reply::text(&long));
    ada.say("@pudu_bot tell me");
    ada.reads_so(|text| text.ends_with("THEEND")).await;
    let answer = ada.answers()[0].clone();
    house.telegram.post(group, ada.person, &Post::text("and then?").reply_to(answer.id)).unwrap();
    let (_, pointed) = asked(&house, 2).await;
    assert_foreign(&pointed, &["The plan is this."]);
    assert!(!pointed.contains("THEEND"), "the conversation has it: {pointed:?}");
    ada.reads("echo: [Ada] and then?").await;
    house.telegram.post(group, ada.person, &Post::text("/new").reply_to(answer.id)).unwrap();
    ada.reads("New conversation started.").await;
    house.telegram.post(group, ada.person, &Post::text("what was it?").reply_to(answer.id)).unwrap();
    let (_, pointed) = asked(&house, 3).await;
    assert_foreign(&pointed, &["THEEND"]);
}

/// Posts an event of Slack byte for byte, and returns the response's status.
async fn post_event(office: &Office, event: &str) -> u16 {
    let url = format!("http://{}/api/webhooks/slack/slack", office.house.bind);
    let body = format!(r#"{{"type":"event_callback","team_id":"T0PUDU0001","event":{event}}}"#);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let post = http().post(url).header("content-type", "application/json");
    let post = post.header("x-slack-request-timestamp", now.to_string());
    let post = post.header("x-slack-signature", office.slack.sign(now, body.as_bytes()));
    post.body(body).send().await.unwrap().status().as_u16()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slack_forwards_alerts_and_half_pairs_are_answered() {
    let mut office = Office::build(Options::default()).await;
    let secret = office.slack.options().signing_secret;
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    office.house.bind = format!("127.0.0.1:{port}");
    office.house.configure(&format!("event_delivery: http\nsigning_secret: '{secret}'\n"), "");
    office.house.start();
    office.becomes("ready").await;
    // A file that was sent elsewhere.
    let log = Words {
        chat: office.team.clone(),
        person: office.ada.clone(),
        files: vec![("error.log".to_owned(), Bytes::from_static(PLAN.as_bytes()))],
        ..Words::default()
    };
    office.slack.write(&log);
    let history = office.slack.call("conversations.history", json!({"channel": office.team})).await;
    let file = history["messages"][0]["files"][0].clone();
    let forward = json!([{
        "is_share": true, "is_msg_unfurl": true, "author_name": "Ann", "author_id": "U55", "channel_id": "C99",
        "ts": "1750000000.000100", "text": "FORWARDED the backup failed", "fallback": "[June 15th] Ann", "files": [file],
    }]);
    let alert = json!([{"color": "danger", "title": "ALERTTITLE disk full", "text": "ALERTTEXT host db1"}]);
    let event = |n: u32, text: &str, attachments: &str| {
        format!(
            r#"{{"type":"message","channel":"{}","channel_type":"im","user":"{}","ts":"1750000100.00{n:04}","text":"{text}","attachments":{attachments}}}"#,
            office.direct, office.ada
        )
    };
    let half = r#"[{"from_url":"https://x.example.org/a","title":"cut in the middle \ud83d","fallback":"cut \ud83d","id":1}]"#;
    let cases = [
        ("what is it?", forward.to_string(), vec!["FORWARDED the backup failed"], "kind=\"forward\""),
        ("", forward.to_string(), vec!["FORWARDED the backup failed"], "\"files\":[\"error"),
        ("", alert.to_string(), vec!["ALERTTITLE disk full", "ALERTTEXT host db1"], "kind=\"card\""),
        ("hello there", half.to_owned(), vec!["cut in the middle \u{fffd}"], "kind=\"embed\""),
        ("and \\ud83d this", "[]".to_owned(), vec![], ""),
    ];
    for (n, (text, attachments, words, mark)) in cases.iter().enumerate() {
        assert_eq!(post_event(&office, &event(n as u32, text, attachments)).await, 200);
        let (own, pointed) = asked(&office.house, n + 1).await;
        assert!(own.starts_with(&text.replace("\\ud83d", "\u{fffd}")), "{own:?}");
        assert_foreign(&pointed, words);
        assert!(pointed.contains(mark), "{pointed:?}");
        let answered = |shown: &[Shown]| (shown.len() > n).then_some(());
        office.sees(&office.direct, answered).await;
    }
    let first = office.house.model.requests()[0].clone();
    assert!(first.last_user().contains("/mnt/user-data/uploads/error.log"), "{}", first.last_user());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slack_links_are_read_only_for_those_who_are_in_the_channel() {
    let office = Office::open(Options::default()).await;
    let bob = office.slack.person("Bob");
    let theirs = office.slack.group("secret", &[&bob]);
    let both = office.slack.group("open", &[&bob, &office.ada]);
    let said = |chat: &str, text: &str| {
        let (chat, person, text) = (chat.to_owned(), bob.clone(), text.to_owned());
        office.slack.write(&Words { chat, person, text, ..Words::default() })
    };
    let link = |chat: &str, ts: &str| {
        format!("<https://simulated.slack.com/archives/{chat}/p{}>", ts.replace('.', ""))
    };
    let (hidden, open) =
        (said(&theirs, "HIDDEN the merger is on Friday"), said(&both, "OPEN lunch is at noon"));
    office.write(&office.direct, &format!("what is {}?", link(&both, &open)), true, None);
    let (_, pointed) = asked(&office.house, 1).await;
    assert_foreign(&pointed, &["OPEN lunch is at noon"]);
    assert!(pointed.contains("kind=\"link\"") && pointed.contains("\"author\":\"Bob\""), "{pointed:?}");
    office.write(&office.direct, &format!("and {}?", link(&theirs, &hidden)), true, None);
    let (_, pointed) = asked(&office.house, 2).await;
    assert!(pointed.contains("the sender is not a member of that channel"), "{pointed:?}");
    let request = office.house.model.requests()[1].clone();
    assert!(!request.body.to_string().contains("HIDDEN"), "a person reads nothing through the bot");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn discord_forwards_embeds_and_links_are_seen_by_those_who_may() {
    let server = Server::open("").await;
    let bob = server.discord.person("Bob");
    let theirs = server.discord.group("secret", &[&bob]);
    let both = server.discord.group("open", &[&bob, &server.ada]);
    let said = |chat: &str, text: &str, files: Vec<(String, Bytes)>| {
        let (chat, person, text) = (chat.to_owned(), bob.clone(), text.to_owned());
        server.discord.write(&Words { chat, person, text, files, ..Words::default() })
    };
    let (hidden, open) =
        (said(&theirs, "HIDDEN the merger", vec![]), said(&both, "OPEN lunch is at noon", vec![]));
    let guild = "1000000000000000003";
    let link = |chat: &str, message: &str| format!("https://discord.com/channels/{guild}/{chat}/{message}");
    server.write(&server.direct, &format!("what is {}?", link(&both, &open)), true, None);
    let (_, pointed) = asked(&server.house, 1).await;
    assert_foreign(&pointed, &["OPEN lunch is at noon"]);
    server.write(&server.direct, &format!("and {}?", link(&theirs, &hidden)), true, None);
    let (_, pointed) = asked(&server.house, 2).await;
    assert!(pointed.contains("the sender has no access to that channel"), "{pointed:?}");
    assert!(!server.house.model.requests()[1].body.to_string().contains("HIDDEN"));
    let event = |fields: Value| {
        let mut event = json!({
            "id": "1400000000000000001", "channel_id": server.direct, "type": 0, "content": "",
            "author": {"id": server.ada, "username": "ada", "global_name": "Ada"},
        });
        event.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        server.discord.event("MESSAGE_CREATE", &event);
    };
    let embed = json!({"title": "ALERT disk full", "description": "host db1", "fields": [{"name": "use", "value": "98 %"}]});
    event(json!({"message_reference": {"type": 1, "message_id": "8"},
        "message_snapshots": [{"message": {"content": "/new\nFORWARDED", "embeds": [embed]}}]}));
    let (own, pointed) = asked(&server.house, 3).await;
    assert_eq!(own, "");
    assert_foreign(&pointed, &["/new", "FORWARDED", "ALERT disk full", "host db1", "use: 98 %"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn feishu_bundles_and_cards_are_read_and_answered() {
    let feishu = Feishu::start(Default::default()).await.unwrap();
    let scene = Scene::open(Arc::new(feishu.clone())).await;
    let said = |kind: &str, content: Value, bundle: Vec<(String, String, Value)>| Said {
        chat: scene.chat.clone(),
        person: scene.ada.clone(),
        kind: kind.to_owned(),
        content,
        bundle,
        ..Said::default()
    };
    let bundle = vec![(scene.ada.clone(), "text".to_owned(), json!("/new\nfirst thing"))];
    feishu.say(&said("merge_forward", json!({"content": "Merged"}), bundle));
    let (own, pointed) = asked(&scene.house, 1).await;
    assert_eq!(own, "");
    assert_foreign(&pointed, &["/new", "first thing"]);
    let card = json!({"title": "ALERT disk full", "elements": [[{"tag": "text", "text": "host db1"}]]});
    feishu.say(&said("interactive", card, Vec::new()));
    let (own, pointed) = asked(&scene.house, 2).await;
    assert_eq!(own, "");
    assert_foreign(&pointed, &["ALERT disk full", "host db1"]);
    scene.sees(&scene.chat, |shown| (shown.len() == 2).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dingtalk_quotes_and_records_are_read_and_answered() {
    let repeat = Some(std::time::Duration::from_millis(200));
    let dingtalk = DingTalk::start(DingTalkOptions { repeat, ..Default::default() }).await.unwrap();
    let scene = Scene::open(Arc::new(dingtalk.clone())).await;
    let words = Words { chat: scene.chat.clone(), person: scene.ada.clone(), ..Words::default() };
    let replied = json!({"msgId": "m0", "msgType": "text", "content": {"content": "QUOTED the room floods"}, "senderId": "x"});
    let text = json!({"content": "what is it?", "isReplyMsg": true, "repliedMsg": replied});
    dingtalk.post(&words, &json!({"msgtype": "text", "text": text}));
    let (own, pointed) = asked(&scene.house, 1).await;
    assert_eq!(own, "what is it?");
    assert_foreign(&pointed, &["QUOTED the room floods"]);
    let entries = json!([{"senderId": "$:1", "msgType": "text", "content": "/new\nRECORDED"}]).to_string();
    let record = json!({"title": "Team", "summary": "[\"Bob:/new\"]", "chatRecord": entries});
    dingtalk.post(&words, &json!({"msgtype": "chatRecord", "content": record}));
    let (own, pointed) = asked(&scene.house, 2).await;
    assert_eq!(own, "");
    assert_foreign(&pointed, &["/new", "RECORDED"]);
    assert!(pointed.contains("\"author\":\"Bob\""), "{pointed:?}");
}

/// A scene whose bot reads recent messages of its groups.
async fn reading(platform: Arc<dyn Platform>) -> Scene {
    let mut scene = Scene::build(platform).await;
    scene.house.configure("context: {messages: 10, minutes: 60}\n", "");
    scene.start().await;
    scene
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn called_into_a_group_the_bot_reads_what_was_said_since_it_spoke() {
    for platform in [platforms::slack().await, platforms::discord().await, platforms::feishu().await] {
        let scene = reading(platform).await;
        let (name, bob) = (scene.platform.name(), scene.platform.person("Bob"));
        let group = scene.platform.group("team", &[&scene.ada, &bob]);
        let said = |text: &str, answers: Option<&str>| scene.write(&group, &bob, text, false, answers);
        // On Slack all of it is in one thread.
        let root = said("ROOT the dam leaks", None);
        let thread = (name == "slack").then_some(root.as_str());
        said("SECOND we need sand", thread);
        scene.write(&group, &scene.ada, "summarize this", true, thread);
        let (words, pointed) = asked(&scene.house, 1).await;
        assert_eq!(words, "[Ada] summarize this", "{name}");
        assert_foreign(&pointed, &["ROOT the dam leaks", "SECOND we need sand"]);
        assert!(
            pointed.contains("kind=\"recent\"") && pointed.contains("\"author\":\"Bob\""),
            "{name}: {pointed}"
        );
        scene.reads(&group, "echo: [Ada] summarize this").await;
        if name == "slack" {
            said("THIRD the sand is here", thread);
            scene.write(&group, &scene.ada, "and now?", true, thread);
            let requests = scene.house.model.count() as usize + 1;
            let (_, pointed) = asked(&scene.house, requests).await;
            assert!(!pointed.contains("SECOND"), "what was read is not read again: {pointed}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_a_group_is_read_for_strangers() {
    let scene = Scene::open(platforms::slack().await).await;
    let bob = scene.platform.person("Bob");
    let group = scene.platform.group("team", &[&scene.ada, &bob]);
    scene.write(&group, &bob, "CHATTER", false, None);
    scene.write(&group, &scene.ada, "hello", true, None);
    let (_, pointed) = asked(&scene.house, 1).await;
    assert_eq!(pointed, "");
    assert_eq!(scene.platform.calls("conversations.history").len(), 0);
}

/// A house whose Telegram bot admits Ada and Bob, with Ada, Bob and the stranger Eve in a group.
async fn group_of_three(context: &str) -> (House, Talker, [Talker; 2]) {
    let mut house = House::build("").await;
    let people = ["Ada", "Bob", "Eve"].map(|name| Talker::new(&house, name));
    let [ada, bob, eve] = people.each_ref().map(|talker| talker.person);
    let group = house.telegram.add_group(Kind::Supergroup, "team", &[ada, bob, eve]);
    house.configure(&format!("allowed_users: [{}, {}]\n{context}\n", ada.0, bob.0), "");
    house.start();
    let [ada, bob, eve] = people.map(|talker| talker.at(group));
    (house, ada, [bob, eve])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn telegram_messages_of_a_group_are_buffered_and_given_once() {
    let (mut house, ada, [bob, eve]) = group_of_three("context: {messages: 10, minutes: 60}").await;
    let (telegram, group) = (house.telegram.clone(), ada.chat);
    let first = bob.say("the dam leaks\nin two places");
    let second = bob.say("we need sand");
    eve.say("EAVESDROP");
    let plan = Post::text("as planned").file(Upload::document("plan.txt", "text/plain", PLAN));
    telegram.post(group, bob.person, &plan).unwrap();
    telegram.edit(group, second, "we need SANDBAGS").unwrap();
    ada.say("@pudu_bot summarize");
    let (words, pointed) = asked(&house, 1).await;
    assert_eq!(words, "[Ada] summarize");
    assert_foreign(&pointed, &["the dam leaks", "in two places", "we need SANDBAGS", "as planned"]);
    for mark in [
        "kind=\"recent\"",
        "\"author\":\"Bob\"",
        "\"files\":[\"plan.txt\"]",
        "1 messages from apps, or from people without access",
    ] {
        assert!(pointed.contains(mark), "{mark} is missing in {pointed}");
    }
    assert!(!house.model.requests()[0].body.to_string().contains("EAVESDROP"));
    ada.reads("echo: [Ada] summarize").await;

    assert!(telegram.redeliver(telegram.update_of(group, first).unwrap()));
    bob.say("the sand is here");
    ada.say("@pudu_bot and now?");
    let (_, pointed) = asked(&house, 2).await;
    assert_foreign(&pointed, &["the sand is here"]);
    assert!(!pointed.contains("the dam leaks"), "a message is given once: {pointed}");
    ada.reads("echo: [Ada] and now?").await;

    bob.say("BURIED treasure");
    let direct = ada.at(telegram.private(ada.person));
    direct.says("hello", "echo: hello").await;
    let (_, pointed) = asked(&house, 3).await;
    assert_eq!(pointed, "", "a private chat has no group");
    let (well, told) = house.pudu(&["forget", "--user", &format!("telegram:{}", bob.person.0), "--yes"]);
    assert!(well, "{told}");
    house.stop().await;
    let file = std::fs::read(house.path(".pudu/data/pudu.db")).unwrap();
    for word in ["BURIED", "EAVESDROP"] {
        assert!(!file.windows(word.len()).any(|bytes| bytes == word.as_bytes()), "{word} is stored");
    }
    house.start();
    ada.say("@pudu_bot go on");
    let (_, pointed) = asked(&house, 4).await;
    assert_eq!(pointed, "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_question_comes_before_recent_messages_and_an_answered_one_is_given_once() {
    let (house, ada, [bob, _]) = group_of_three("context: {messages: 50, minutes: 60}").await;
    for number in 0..12 {
        bob.say(&format!("NUMBER{number} {}", "word ".repeat(800)));
    }
    let dam = bob.say("THEDAM leaks");
    house.telegram.post(ada.chat, ada.person, &Post::text("@pudu_bot explain").reply_to(dam)).unwrap();
    let (_, pointed) = asked(&house, 1).await;
    assert_foreign(&pointed, &["THEDAM leaks", "NUMBER11"]);
    assert_eq!(pointed.matches("THEDAM").count(), 1, "{pointed}");
    assert!(!pointed.contains("NUMBER0 "), "the oldest is cut");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_album_of_a_group_is_for_the_bot_if_one_part_names_it() {
    let (house, ada, _) = group_of_three("context: {messages: 50, minutes: 60}").await;
    let csv = |name: &str| Upload::document(name, "text/csv", "1,2");
    let post = Post::text("@pudu_bot compare").file(csv("a.csv")).file(csv("b.csv"));
    house.telegram.post(ada.chat, ada.person, &post).unwrap();
    let (_, pointed) = asked(&house, 1).await;
    assert_eq!(pointed, "", "no part is a recent message");
    let request = house.model.requests()[0].body.to_string();
    for path in ["uploads/a.csv", "uploads/b.csv"] {
        assert!(request.contains(path), "{path} is missing in {request}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_is_buffered_only_where_the_account_asks_for_it() {
    let (house, ada, [bob, _]) = group_of_three("").await;
    bob.say("CHATTER");
    ada.say("@pudu_bot hello");
    let (_, pointed) = asked(&house, 1).await;
    assert_eq!(pointed, "");
    let options = pudu_sim::telegram::Options { privacy: true, ..Default::default() };
    let private = House::furnish(options, "context: {messages: 10}", "").await;
    let (_, told) = private.pudu(&["doctor"]);
    assert!(told.contains("group privacy: it is on, so `context`") && told.contains("/setprivacy"), "{told}");
    private.configure("context: {messages: 0}", "");
    let (_, told) = private.pudu(&["doctor"]);
    assert!(told.contains("ok    group privacy: on"), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dingtalk_messages_of_a_group_are_buffered() {
    let repeat = Some(std::time::Duration::from_millis(200));
    let dingtalk = DingTalk::start(DingTalkOptions { repeat, ..Default::default() }).await.unwrap();
    let mut scene = Scene::build(Arc::new(dingtalk.clone())).await;
    scene.house.configure("group_conversations: user\ncontext: {messages: 10, minutes: 60}\n", "");
    scene.start().await;
    let group = scene.platform.group("team", &[&scene.ada]);
    let said = |id: &str, text: &str| {
        let data = json!({
            "msgId": id, "msgtype": "text", "text": {"content": text}, "conversationType": "2",
            "conversationId": group, "isInAtList": false, "senderId": "$:LWCP_v1:$bob", "senderNick": "Bob",
            "chatbotUserId": "$:LWCP_v1:$robot==", "createAt": pudu_store::now(),
        });
        dingtalk.tell("CALLBACK", "/v1.0/im/bot/messages/get", data);
    };
    said("m1", "the dam leaks");
    said("m1", "the dam leaks");
    said("m2", "we need sand");
    scene.write(&group, &scene.ada, "summarize", true, None);
    let (words, pointed) = asked(&scene.house, 1).await;
    assert_eq!(words, "[Ada] summarize");
    assert_foreign(&pointed, &["the dam leaks", "we need sand"]);
    assert_eq!(pointed.matches("the dam leaks").count(), 1, "{pointed}");
    assert!(pointed.contains("kind=\"recent\"") && pointed.contains("\"author\":\"Bob\""), "{pointed}");
    scene.sees(&group, |shown| shown.last().filter(|last| last.text.starts_with("echo")).map(drop)).await;
    assert_eq!(scene.platform.shown(&group).len(), 1, "no other message is answered");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_voice_note_is_transcribed_or_its_sender_is_asked_to_write() {
    let heard = Arc::new(std::sync::Mutex::new(String::new()));
    let record = Arc::clone(&heard);
    let serve = move |headers: axum::http::HeaderMap, body: Bytes| async move {
        let key =
            headers.get("authorization").and_then(|key| key.to_str().ok()).unwrap_or_default().to_owned();
        *record.lock().unwrap() = format!("{key}\n{}", String::from_utf8_lossy(&body));
        axum::Json(json!({"text": " the dam leaks "}))
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/inference", listener.local_addr().unwrap());
    let router = axum::Router::new().route("/inference", axum::routing::post(serve));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let rest = format!("transcription: {{url: '{url}', api_key: sk-voice-0123456789, model: small}}\n");
    let note = || Post::text("").file(Upload::document("note.ogg", "audio/ogg", "SOUND"));
    let mut house = House::furnish(Default::default(), "", &rest).await;
    house.start();
    let ada = Talker::new(&house, "Ada");
    house.telegram.post(ada.chat, ada.person, &note()).unwrap();
    let (words, _) = asked(&house, 1).await;
    assert!(words.starts_with("the dam leaks"), "{words:?}");
    let sent = heard.lock().unwrap().clone();
    for part in ["Bearer sk-voice-0123456789", "SOUND", "filename=\"note.ogg\"", "small"] {
        assert!(sent.contains(part), "{part} is missing in {sent:?}");
    }
    let house = House::open("").await;
    let ada = Talker::new(&house, "Ada");
    house.telegram.post(ada.chat, ada.person, &note()).unwrap();
    let text = ada.reads_so(|text| text.contains("I cannot listen to note.ogg")).await;
    assert_eq!(text.lines().filter(|line| line.contains("I cannot listen")).count(), 1, "{text}");
    assert_eq!(house.model.count(), 1, "the rest is answered");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edit_of_an_answered_message_offers_to_ask_again() {
    for platform in [platforms::telegram().await, platforms::slack().await, platforms::discord().await] {
        let scene = Scene::open(platform).await;
        let name = scene.platform.name();
        let message = scene.say("hello");
        scene.reads(&scene.chat, "echo: hello").await;
        assert!(scene.platform.edit(&scene.chat, &message, "hello again"), "{name}");
        let offers = |shown: &[Shown]| {
            let offer =
                shown.iter().find(|shown| shown.buttons.iter().any(|button| button == "Ask again"))?;
            Some(offer.id.clone())
        };
        let offer = scene.sees(&scene.chat, offers).await;
        assert_eq!(scene.model_calls(), 1, "{name}: an edit costs nothing");
        assert!(scene.platform.press(&scene.chat, &scene.ada, &offer, "Ask again"), "{name}");
        scene.reads(&scene.chat, "echo: hello again").await;
        let message = scene.say("short");
        scene.reads(&scene.chat, "echo: short").await;
        scene.platform.edit(&scene.chat, &message, &"long ".repeat(40));
        let asks =
            |shown: &[Shown]| shown.iter().any(|shown| shown.text.contains("as a new message")).then_some(());
        scene.sees(&scene.chat, asks).await;
    }
}
