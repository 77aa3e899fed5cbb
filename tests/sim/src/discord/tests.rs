//! Rules that the official client always follows, so that it cannot test them.

use super::*;
use sessions::{DIRECT_MESSAGES, FRAMES, GUILD_MESSAGES, GUILDS, MESSAGE_CONTENT, Resumed};
use tokio::sync::mpsc;

const ALL: u64 = GUILDS | GUILD_MESSAGES | DIRECT_MESSAGES | MESSAGE_CONTENT;

async fn server() -> (Discord, String, String) {
    let discord = Discord::start(Options::default()).await.unwrap();
    let ada = discord.person("Ada");
    let chat = discord.private(&ada);
    (discord, ada, chat)
}

fn say(discord: &Discord, chat: &str, person: &str, text: &str) -> String {
    let (chat, person, text) = (chat.to_owned(), person.to_owned(), text.to_owned());
    discord.write(&Words { chat, person, text, ..Words::default() })
}

/// Returns the events of a connection, as kinds and contents.
fn told(frames: &mut mpsc::Receiver<Frame>) -> Vec<(String, String)> {
    let mut told = Vec::new();
    while let Ok(Frame::Text(frame)) = frames.try_recv() {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        told.push((text(&frame["t"]), text(&frame["d"]["content"])));
    }
    told
}

fn kinds(told: &[(String, String)]) -> Vec<&str> {
    told.iter().map(|(kind, _)| kind.as_str()).collect()
}

#[tokio::test]
async fn a_session_that_comes_back_is_told_what_it_missed_and_no_more() {
    let (discord, ada, chat) = server().await;
    let (first, mut frames) = mpsc::channel(FRAMES);
    discord.core.act(|world| world.identified(ALL, (1, first)));
    say(&discord, &chat, &ada, "one");
    let before = told(&mut frames);
    assert_eq!(kinds(&before), ["READY", "GUILD_CREATE", "MESSAGE_CREATE"]);
    discord.core.act(|world| world.left(1, false));
    say(&discord, &chat, &ada, "two");
    let id = discord.core.look(|world| world.sessions.all[0].id.clone());
    let (again, mut frames) = mpsc::channel(FRAMES);
    let resume = |id: &str, seq, socket| discord.core.act(|world| world.resumed(id, seq, socket));
    assert_eq!(resume(&id, 2, (2, again)), Resumed::Yes);
    let after = told(&mut frames);
    assert_eq!(kinds(&after), ["MESSAGE_CREATE", "MESSAGE_CREATE", "RESUMED"]);
    assert_eq!((after[0].1.as_str(), after[1].1.as_str()), ("one", "two"));
    let (late, _frames) = mpsc::channel(FRAMES);
    assert_eq!(resume(&id, 99, (3, late.clone())), Resumed::Ahead, "a number that never was");
    assert_eq!(resume("other", 1, (3, late.clone())), Resumed::No, "no such session");
    discord.core.act(|world| world.left(2, true));
    assert_eq!(resume(&id, 2, (3, late)), Resumed::No, "it ended with a goodbye");
}

#[tokio::test(start_paused = true)]
async fn a_session_is_kept_for_its_time_and_no_longer() {
    let (discord, ..) = server().await;
    let most = discord.options().resumable;
    for (away, expected) in
        [(most - Duration::from_secs(1), Resumed::Yes), (most + Duration::from_secs(1), Resumed::No)]
    {
        let (frames, _kept) = mpsc::channel(FRAMES);
        discord.core.act(|world| world.identified(ALL, (1, frames.clone())));
        let id = discord.core.look(|world| world.sessions.all.last().map(|session| session.id.clone()));
        discord.core.act(|world| world.left(1, false));
        tokio::time::advance(away).await;
        let resumed = discord.core.act(|world| world.resumed(&id.unwrap(), 2, (2, frames)));
        assert_eq!(resumed, expected, "{away:?}");
        discord.core.act(|world| world.left(2, true));
    }
}

#[test]
fn the_close_codes_that_forbid_to_resume_end_the_session() {
    let ending: Vec<u16> = (4000..=4014).filter(|code| gateway::ends_session(*code)).collect();
    assert_eq!(ending, [4003, 4004, 4007, 4009, 4010, 4011, 4012, 4013, 4014]);
}

#[tokio::test]
async fn what_a_session_hears_is_up_to_its_intents() {
    let (discord, ada, chat) = server().await;
    let team = discord.group("team", &[&ada]);
    let cases = [
        (ALL, vec!["private", "for all", "<@1000000000000000001> for you"]),
        (ALL & !MESSAGE_CONTENT, vec!["private", "", "<@1000000000000000001> for you"]),
        (GUILDS | GUILD_MESSAGES | MESSAGE_CONTENT, vec!["for all", "<@1000000000000000001> for you"]),
        (GUILDS | DIRECT_MESSAGES, vec!["private"]),
    ];
    for (intents, expected) in cases {
        let (frames, mut heard) = mpsc::channel(FRAMES);
        discord.core.act(|world| world.identified(intents, (9, frames)));
        told(&mut heard);
        say(&discord, &chat, &ada, "private");
        say(&discord, &team, &ada, "for all");
        discord.write(&Words {
            chat: team.clone(),
            person: ada.clone(),
            text: "for you".to_owned(),
            to_bot: true,
            ..Words::default()
        });
        let contents: Vec<String> = told(&mut heard).into_iter().map(|(_, content)| content).collect();
        assert_eq!(contents, expected, "{intents}");
        discord.core.act(|world| world.left(9, true));
    }
}

#[tokio::test]
async fn calls_are_refused_in_discords_words() {
    let (discord, ada, chat) = server().await;
    let messages = format!("channels/{chat}/messages");
    let asked = say(&discord, &chat, &ada, "hello");
    let thread = format!("{messages}/{asked}/threads");
    let button = |id: &str| json!({"type": 2, "style": 2, "label": "x", "custom_id": id});
    let row =
        |buttons: Vec<Value>| json!({"content": "x", "components": [{"type": 1, "components": buttons}]});
    let cases = [
        ("POST", messages.clone(), json!({"content": " \n"}), 400, 50006),
        ("POST", messages.clone(), json!({"content": "x".repeat(2001)}), 400, 50035),
        ("POST", messages.clone(), json!({"content": "x", "nonce": "x".repeat(26)}), 400, 50035),
        (
            "POST",
            messages.clone(),
            json!({"content": "x", "allowed_mentions": {"parse": ["all"]}}),
            400,
            50035,
        ),
        ("POST", messages.clone(), row(vec![button("")]), 400, 50035),
        ("POST", messages.clone(), row((0..6).map(|n| button(&n.to_string())).collect()), 400, 50035),
        (
            "POST",
            messages.clone(),
            json!({"content": "x", "message_reference": {"message_id": "1"}}),
            400,
            50035,
        ),
        ("PATCH", format!("{messages}/{asked}"), json!({"content": "x"}), 403, 50005),
        ("PATCH", format!("{messages}/1"), json!({"content": "x"}), 404, 10008),
        ("GET", format!("{messages}?limit=101"), Value::Null, 400, 50035),
        ("GET", format!("{messages}?after=x"), Value::Null, 400, 50035),
        ("POST", thread, json!({"name": "x"}), 400, 50024),
        ("PUT", format!("{messages}/{asked}/reactions/x/@me"), Value::Null, 400, 10014),
        ("POST", "interactions/1/x/callback".to_owned(), json!({"type": 6}), 404, 10062),
        ("PATCH", "webhooks/1/x/messages/@original".to_owned(), json!({"content": "x"}), 404, 10015),
    ];
    for (verb, path, body, status, code) in cases {
        let (found, told) = discord.call(verb, &path, body.clone()).await;
        assert_eq!((found, told["code"].as_u64()), (status, Some(code)), "{verb} {path} {body}: {told}");
    }
}

#[tokio::test]
async fn a_nonce_counts_for_a_while_and_only_if_it_is_to() {
    let (discord, _, chat) = server().await;
    let path = format!("channels/{chat}/messages");
    let post =
        async |body: Value| discord.call("POST", &path, body).await.1["id"].as_str().map(str::to_owned);
    let same = json!({"content": "x", "nonce": "n", "enforce_nonce": true});
    let first = post(same.clone()).await;
    assert_eq!(post(same.clone()).await, first);
    assert_ne!(post(json!({"content": "x", "nonce": "n"})).await, first);
    discord.core.act(|world| world.options.nonces = Duration::ZERO);
    assert_ne!(post(same).await, first);
}

#[tokio::test(start_paused = true)]
async fn a_bucket_fills_and_empties() {
    let mut meter = pace::Meter::default();
    meter.on = true;
    let mut post = |channel: &str| {
        let passed = meter.pass("message.create", channel, Instant::now());
        passed.map(|headers| headers[2].1.clone()).map_err(|refusal| refusal.body["retry_after"].as_f64())
    };
    let left: Vec<_> = (0..5).map(|_| post("1").unwrap()).collect();
    assert_eq!(left, ["4", "3", "2", "1", "0"]);
    assert_eq!(post("1"), Err(Some(5.0)));
    assert_eq!(post("2").unwrap(), "4", "every channel has its own");
    tokio::time::advance(Duration::from_secs(5)).await;
    assert_eq!(post("1").unwrap(), "4");
}
