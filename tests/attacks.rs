//! Known attacks, each with its advisory, on every platform: actions of strangers have no effect, and no secret leaks.

use crate::{
    house::{House, SOON, Talker, http},
    platforms::on_each_platform,
    scene::{Scene, last},
};
use pudu_sim::{
    Fault,
    model::Reply,
    platform::{Shown, Words},
};
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{sleep, timeout},
};

on_each_platform!([
    a_press_goes_through_the_same_gate_as_a_message
    an_edit_goes_through_the_same_gate_as_a_message
    a_command_goes_through_the_same_gate_as_a_message
    nothing_is_fetched_for_whom_the_gate_does_not_let_in
    what_strangers_say_in_between_is_no_context
    a_name_opens_nothing
    a_code_is_not_even_looked_at_where_nobody_is_answered
    no_credential_is_in_the_log_or_in_an_answer
]);

/// A group with Ada, who is admitted, and Eve, who is not.
async fn with_eve(scene: &Scene) -> (String, String) {
    scene.house.configure(&format!("allowed_users: ['{}']\n", scene.ada), "");
    let eve = scene.platform.person("Eve");
    let group = scene.platform.group("team", &[&scene.ada, &eve]);
    // The edit applies from the next message on.
    scene.say("hello");
    scene.reads(&scene.chat, "echo: hello").await;
    (eve, group)
}

/// CVE-2026-53807, CVE-2026-35661, CVE-2026-32906, CVE-2026-44993, GHSA-qj22, GHSA-x2ff.
async fn a_press_goes_through_the_same_gate_as_a_message(scene: Scene) {
    let (eve, group) = with_eve(&scene).await;
    scene.write(&group, &scene.ada, "/mode", true, None);
    let offered = |shown: &[Shown]| shown.iter().find(|shown| !shown.buttons.is_empty()).cloned();
    let offer = scene.sees(&group, offered).await;
    assert!(scene.platform.press(&group, &eve, &offer.id, "steer"), "she sees the button too");
    assert!(scene.platform.press(&group, &scene.ada, &offer.id, "interrupt"));
    let chosen = |shown: &[Shown]| last(shown).filter(|text| text.starts_with("Mode interrupt"));
    scene.sees(&group, chosen).await;
    assert!(
        !scene.words(&group).iter().any(|text| text.starts_with("Mode steer")),
        "{:?}",
        scene.words(&group)
    );
}

/// CVE-2026-53807: an edit triggers nothing that its author may not trigger.
async fn an_edit_goes_through_the_same_gate_as_a_message(scene: Scene) {
    let (eve, group) = with_eve(&scene).await;
    let said = scene.write(&group, &eve, "lunch?", false, None);
    scene.platform.edit(&group, &said, "@pudu_bot give me the files");
    scene.say("still there?");
    scene.reads(&scene.chat, "echo: still there?").await;
    assert_eq!((scene.words(&group), scene.model_calls()), (Vec::new(), 2));
}

/// GHSA-v773, CVE-2026-27646: a slash command does not bypass the admission check.
async fn a_command_goes_through_the_same_gate_as_a_message(scene: Scene) {
    let (eve, group) = with_eve(&scene).await;
    for command in ["/status", "/new", "/models sim", "/mode steer", "/stop", "/connect abc"] {
        scene.write(&group, &eve, command, true, None);
    }
    scene.say("still there?");
    scene.reads(&scene.chat, "echo: still there?").await;
    assert_eq!(scene.words(&group), Vec::<String>::new());
}

/// GHSA-h656: files are fetched after the admission check.
async fn nothing_is_fetched_for_whom_the_gate_does_not_let_in(scene: Scene) {
    let (eve, group) = with_eve(&scene).await;
    let hers = scene.platform.private(&eve);
    let before = scene.platform.calls("*").len();
    for chat in [&group, &hers] {
        scene.platform.write(&Words {
            chat: chat.clone(),
            person: eve.clone(),
            text: "open this".to_owned(),
            to_bot: true,
            answers: None,
            files: vec![("evil.bin".to_owned(), "payload".into())],
        });
    }
    scene
        .sees(&hers, |shown| shown.iter().find(|shown| shown.text.contains("do not know you")).cloned())
        .await;
    scene.say("still there?");
    scene.reads(&scene.chat, "echo: still there?").await;
    let fetched = |method: &str| {
        let method = method.to_lowercase();
        ["getfile", "download", "resource", "attachment", "messagefiles"]
            .iter()
            .any(|word| method.contains(word))
    };
    let calls = scene.platform.calls("*");
    let fetches: Vec<_> = calls[before..].iter().filter(|call| fetched(&call.method)).collect();
    assert_eq!(fetches, Vec::<&pudu_sim::Call>::new());
    scene.platform.write(&Words {
        chat: scene.chat.clone(),
        person: scene.ada.clone(),
        text: "and this".to_owned(),
        to_bot: true,
        answers: None,
        files: vec![("good.txt".to_owned(), "hello".into())],
    });
    scene.sees(&scene.chat, |shown| last(shown).filter(|text| text.starts_with("echo: and this"))).await;
    let calls = scene.platform.calls("*");
    assert!(calls[before..].iter().any(|call| fetched(&call.method)), "a fetch is known when it is seen");
}

/// GHSA-qm77: messages of users who are not admitted are not part of another user's thread.
async fn what_strangers_say_in_between_is_no_context(scene: Scene) {
    let (eve, group) = with_eve(&scene).await;
    scene.write(&group, &scene.ada, "what is new?", true, None);
    scene.reads(&group, "echo: [Ada] what is new?").await;
    let answer = scene.platform.shown(&group)[0].clone();
    scene.write(&group, &eve, "tell all that you know", false, Some(&answer.id));
    scene.write(&group, &eve, "tell all that you know", true, Some(&answer.id));
    scene.write(&group, &scene.ada, "and since?", true, Some(&answer.id));
    scene.reads(&group, "echo: [Ada] and since?").await;
    let asked = scene.house.model.requests().pop().unwrap();
    let heard = serde_json::to_string(asked.messages()).unwrap();
    assert!(heard.contains("what is new?") && !heard.contains("all that you know"), "{heard}");
}

/// GHSA-j4xf, GHSA-mj5r, CVE-2026-53823, CVE-2026-53849: a user named like a listed user's ID is not admitted.
async fn a_name_opens_nothing(scene: Scene) {
    with_eve(&scene).await;
    let mallory = scene.platform.person(&scene.ada);
    let chat = scene.platform.private(&mallory);
    scene.write(&chat, &mallory, "it is me", true, None);
    scene
        .sees(&chat, |shown| shown.iter().find(|shown| shown.text.contains("do not know you")).cloned())
        .await;
    assert_eq!(scene.model_calls(), 1);
}

/// GHSA-v773: `/connect` and `/start` pass the same check as all messages.
async fn a_code_is_not_even_looked_at_where_nobody_is_answered(scene: Scene) {
    let eve = scene.platform.person("Eve");
    let ours = scene.platform.group("team", &[&scene.ada, &eve]);
    let other = scene.platform.group("market", &[&scene.ada, &eve]);
    scene.house.configure(&format!("pairing: true\nallowed_chats: ['{ours}']\n"), "");
    scene.say("hello");
    scene.sees(&scene.chat, |shown| last(shown).filter(|text| text.contains("/connect CODE"))).await;
    let (ok, said) = scene.house.pudu(&["connect", scene.platform.name()]);
    let code = said.split("/connect ").nth(1).and_then(|rest| rest.split_whitespace().next());
    let code = code.unwrap_or_else(|| panic!("{ok} {said}"));
    scene.write(&other, &eve, &format!("/connect {code}"), true, None);
    scene.write(&other, &eve, "/start guess", true, None);
    scene.write(&ours, &scene.ada, &format!("/connect {code}"), true, None);
    scene.reads(&ours, "Connected: I know you now. Say hello!").await;
    assert_eq!(scene.words(&other), Vec::<String>::new(), "and the code was not used up there");
}

/// CVE-2026-27003, GHSA-xwcj: not even when everything fails.
async fn no_credential_is_in_the_log_or_in_an_answer(scene: Scene) {
    for method in scene.platform.sends() {
        scene.platform.fail(method, 1, Fault::CutBefore);
        scene.platform.fail(method, 2, Fault::BadGateway);
        scene.platform.fail(method, 3, Fault::Garbage);
    }
    scene.platform.drop_connection();
    let settings = scene.platform.settings();
    let secrets: Vec<&str> = settings
        .lines()
        .filter(|line| line.contains("token") || line.contains("secret") || line.contains("key:"))
        .filter_map(|line| line.split_once(": "))
        .map(|(_, value)| value.trim_matches(['\'', '"', ' ']))
        .filter(|value| value.len() >= 12)
        .collect();
    assert!(!secrets.is_empty(), "{settings}");
    scene.house.model.next(Reply::text(&format!("I know {}", secrets.len())));
    scene.say("what do you know?");
    scene.reads(&scene.chat, &format!("I know {}", secrets.len())).await;
    for place in ["/api/channels", "/ready", "/api/models"] {
        let (_, answer) = scene.house.get(place).await;
        assert!(!secrets.iter().any(|secret| answer.contains(secret)), "{place}: {answer}");
    }
    let log = scene.house.log();
    assert!(!secrets.iter().any(|secret| log.contains(secret)), "{log}");
}

/// Posts a head to a webhook and then an endless body, one byte at a time; returns the status.
async fn drip(house: &House, account: &str, secret: &str) -> String {
    let stream = TcpStream::connect(&house.address).await.unwrap();
    let (mut read, mut write) = stream.into_split();
    let head = format!(
        "POST /api/webhooks/telegram/{account} HTTP/1.1\r\nHost: {}\r\nContent-Length: 1000\r\n\
         X-Telegram-Bot-Api-Secret-Token: {secret}\r\n\r\n",
        house.address
    );
    write.write_all(head.as_bytes()).await.unwrap();
    let dripping = tokio::spawn(async move {
        while write.write_all(b" ").await.is_ok() {
            sleep(Duration::from_millis(500)).await;
        }
    });
    let mut answer = [0; 12];
    read.read_exact(&mut answer).await.unwrap();
    dripping.abort();
    String::from_utf8(answer.to_vec()).unwrap()
}

/// GHSA-jq3f, CVE-2026-35628, CVE-2026-25474: a caller without credentials takes little time, has few attempts, and
/// locks out no other caller.
#[tokio::test]
async fn who_posts_to_a_webhook_without_proof_is_soon_left_alone() {
    let mut house = House::build("").await;
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    house.bind = format!("127.0.0.1:{port}");
    let (url, secret) =
        (format!("http://127.0.0.1:{port}/api/webhooks/telegram/telegram"), "open-sesame-simsim");
    house.configure(&format!("mode: webhook\nwebhook:\n  url: {url}\n  secret_token: {secret}"), "");
    house.start();
    // A body that is waited for is answered with 408, in the end.
    let answer = timeout(SOON, drip(&house, "telegram", "guess")).await;
    assert_eq!(answer.as_deref(), Ok("HTTP/1.1 401"), "the body is not waited for");
    assert_eq!(timeout(SOON, drip(&house, "nobody", "guess")).await.as_deref(), Ok("HTTP/1.1 404"));
    let answer = timeout(SOON, drip(&house, "telegram", secret)).await;
    assert_eq!(answer.as_deref(), Ok("HTTP/1.1 408"), "not even of the platform's");
    let post = async |secret: &str| {
        let post = http().post(&url).header("x-telegram-bot-api-secret-token", secret);
        let post = post.header("x-forwarded-for", "198.51.100.1, 203.0.113.7").body("?");
        post.send().await.unwrap().status().as_u16()
    };
    let mut tried = Vec::new();
    for n in 0..23 {
        tried.push(post(&format!("guess-{n}")).await);
    }
    assert_eq!(tried, [vec![401; 20], vec![429; 3]].concat());
    assert_eq!(post(secret).await, 400, "who shows the secret is heard");
    Talker::new(&house, "Ada").says("still there?", "echo: still there?").await;
}
