//! The platform's rules and pitfalls, one sentence each. In process, with a controlled clock.

use super::{Core, Options, ask::Ask, content, server, types::Kind, world::World};
use crate::{Fault, stage::Reply};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::time::advance;

const MINUTE: Duration = Duration::from_secs(60);

/// A platform with one user, without HTTP.
struct Sim {
    core: Arc<Core>,
    chat: String,
    ada: String,
}

fn sim() -> Sim {
    let core = Arc::new(Core::new(World::new(Options::default())));
    let ada = core.act(|world| world.add_person("Ada"));
    let chat = core.look(|world| world.private(&ada)).unwrap();
    Sim { core, chat, ada }
}

impl Sim {
    async fn raw(&self, token: Option<&str>, call: &str, body: Value) -> (u16, Value) {
        let (verb, path) = call.split_once(' ').unwrap();
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let query = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let body = body.as_object().cloned().unwrap_or_default();
        let ask = Ask { token: token.map(str::to_owned), query, body, ..Ask::default() };
        match server::call(&self.core, verb, &format!("/open-apis/{path}"), ask).await {
            Reply::Json(status, body) | Reply::Headed(status, _, body) => (status, body),
            other => panic!("{call}: {other:?}"),
        }
    }

    async fn token(&self) -> String {
        let credentials =
            json!({"app_id": Options::default().app_id, "app_secret": Options::default().app_secret});
        let (_, told) = self.raw(None, "POST auth/v3/tenant_access_token/internal", credentials).await;
        told["tenant_access_token"].as_str().unwrap().to_owned()
    }

    /// Returns the code and the data of a call's response.
    async fn call(&self, call: &str, body: Value) -> (i64, Value) {
        let token = self.token().await;
        let (_, told) = self.raw(Some(&token), call, body).await;
        (told["code"].as_i64().unwrap(), told["data"].clone())
    }

    async fn send(&self, body: Value) -> (i64, Value) {
        let mut body = body;
        body["receive_id"] = body.get("receive_id").cloned().unwrap_or_else(|| self.chat.clone().into());
        self.call("POST im/v1/messages?receive_id_type=chat_id", body).await
    }

    async fn card(&self) -> String {
        let element = json!({"tag": "markdown", "content": "…", "element_id": "text"});
        let data =
            json!({"schema": "2.0", "config": {"streaming_mode": true}, "body": {"elements": [element]}});
        let body = json!({"type": "card_json", "data": data.to_string()});
        let (_, told) = self.call("POST cardkit/v1/cards", body).await;
        told["card_id"].as_str().unwrap().to_owned()
    }

    async fn stream(&self, card: &str, text: &str, sequence: i64) -> i64 {
        let call = format!("PUT cardkit/v1/cards/{card}/elements/text/content");
        self.call(&call, json!({"content": text, "sequence": sequence})).await.0
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_stays_the_same_until_half_an_hour_before_its_end_and_two_live_then() {
    let sim = sim();
    let first = sim.token().await;
    advance(89 * MINUTE).await;
    assert_eq!(sim.token().await, first);
    advance(2 * MINUTE).await;
    let second = sim.token().await;
    assert_ne!(second, first);
    for token in [&first, &second] {
        assert_eq!(sim.raw(Some(token), "GET bot/v3/info", json!({})).await.1["code"], 0);
    }
    advance(30 * MINUTE).await;
    let (status, told) = sim.raw(Some(&first), "GET bot/v3/info", json!({})).await;
    assert_eq!((status, &told["code"]), (400, &json!(99_991_663)));
}

#[tokio::test]
async fn a_call_needs_a_token_in_its_form_and_a_call_that_nobody_knows_is_kept() {
    let sim = sim();
    let cases = [(None, 99_991_661), (Some("x"), 99_991_671), (Some("t-x"), 99_991_663)];
    for (token, code) in cases {
        assert_eq!(sim.raw(token, "GET bot/v3/info", json!({})).await.1["code"], code);
    }
    assert_eq!(sim.raw(None, "GET docs/v1/content", json!({})).await.0, 404);
    assert_eq!(sim.core.look(|world| world.books.calls.count("unknown")), 1);
}

#[tokio::test]
async fn what_is_sent_must_be_well_formed() {
    let sim = sim();
    let text = |text: &str| json!({"msg_type": "text", "content": text});
    let cases = [
        (text("{\"text\":\"a\"}"), 0),
        (text("no json"), 230_001),
        (text("{\"text\":\"\"}"), 230_001),
        (json!({"msg_type": "text"}), 99_992_402),
        (json!({"msg_type": "verse", "content": "{}"}), 230_001),
        (json!({"msg_type": "text", "content": "{\"text\":\"a\"}", "receive_id": "oc_other"}), 230_002),
        (json!({"msg_type": "text", "content": "{\"text\":\"a\"}", "uuid": "u".repeat(51)}), 99_992_402),
        (json!({"msg_type": "file", "content": "{\"file_key\":\"file_v3_x\"}"}), 230_055),
    ];
    for (body, code) in cases {
        assert_eq!(sim.send(body.clone()).await.0, code, "{body}");
    }
    let token = sim.token().await;
    let told = sim.raw(Some(&token), "POST im/v1/messages", json!({"receive_id": sim.chat})).await;
    assert_eq!(told.1["code"], 99_992_402);
}

#[tokio::test(start_paused = true)]
async fn a_key_sends_once_in_an_hour() {
    let sim = sim();
    let body = json!({"msg_type": "text", "content": "{\"text\":\"a\"}", "uuid": "u"});
    let first = sim.send(body.clone()).await.1["message_id"].clone();
    advance(59 * MINUTE).await;
    assert_eq!(sim.send(body.clone()).await.1["message_id"], first);
    advance(2 * MINUTE).await;
    assert_ne!(sim.send(body).await.1["message_id"], first);
}

#[tokio::test(start_paused = true)]
async fn a_stream_closes_by_itself_and_a_card_dies_after_two_weeks() {
    let sim = sim();
    let card = sim.card().await;
    assert_eq!(sim.stream(&card, "a", 5).await, 0);
    assert_eq!(sim.stream(&card, "b", 5).await, 300_317);
    advance(10 * MINUTE).await;
    assert_eq!(sim.stream(&card, "b", 6).await, 200_850);
    assert_eq!(sim.stream(&card, "b", 6).await, 300_309);
    assert_eq!(sim.stream(&card, "", 6).await, 300_307);
    advance(14 * 24 * 60 * MINUTE).await;
    assert_eq!(sim.stream(&card, "b", 6).await, 200_750);
    assert_eq!(sim.stream("7", "b", 6).await, 200_740);
}

#[tokio::test(start_paused = true)]
async fn limits_hold_when_they_are_switched_on() {
    let sim = sim();
    let body = json!({"msg_type": "text", "content": "{\"text\":\"a\"}"});
    let mut codes = Vec::new();
    for on in [false, true] {
        sim.core.act(|world| world.meter.on = on);
        for _ in 0..7 {
            codes.push(sim.send(body.clone()).await.0);
        }
        advance(MINUTE).await;
    }
    assert_eq!(codes, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 230_020, 230_020]);
    let card = sim.card().await;
    for sequence in 1..=10 {
        assert_eq!(sim.stream(&card, "a", sequence).await, 0);
    }
    assert_eq!(sim.stream(&card, "a", 11).await, 99_991_400);
}

#[tokio::test]
async fn a_planned_failure_has_the_code_that_its_text_begins_with() {
    let sim = sim();
    let cases = [
        (Fault::Refused(400, "230020 slow".to_owned()), (400, 230_020)),
        (Fault::Refused(200, "230099 card".to_owned()), (200, 230_099)),
        (Fault::Refused(403, "blocked".to_owned()), (403, 230_013)),
        (Fault::TooMany(2), (400, 99_991_400)),
        (Fault::Internal, (500, 2200)),
    ];
    let token = sim.token().await;
    for (fault, (status, code)) in cases {
        sim.core.act(|world| world.books.faults.fail_nth("bot.info", 1, fault));
        let (told, body) = sim.raw(Some(&token), "GET bot/v3/info", json!({})).await;
        assert_eq!((told, &body["code"]), (status, &json!(code)));
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_comes_again_by_its_pauses_and_is_given_up_then() {
    let sim = sim();
    let pauses = [1, 2].map(Duration::from_secs);
    sim.core.act(|world| world.tell("im.message.receive_v1", &json!({})));
    let ack = Duration::from_secs(3);
    let mut came = Vec::new();
    for second in 0..20 {
        let due = sim.core.act(|world| world.events.due(tokio::time::Instant::now(), ack, &pauses));
        came.extend(due.iter().map(|_| second));
        advance(Duration::from_secs(1)).await;
    }
    assert_eq!(came, [0, 4, 9]);
    assert_eq!(sim.core.look(|world| world.events.waiting()), 0);
}

#[test]
fn cards_are_checked_as_the_platform_does() {
    let new = |elements: Value| json!({"schema": "2.0", "body": {"elements": elements}});
    let markdown = |text: &str| json!({"tag": "markdown", "content": text});
    let table = "|a|b|\n|-|-|\n|1|2|\n\n";
    let cases = [
        (new(json!([markdown("x")])), 0),
        (new(json!([markdown(&table.repeat(5))])), 0),
        (new(json!([markdown(&table.repeat(6))])), 11_310),
        (new(json!(vec![markdown("x"); 201])), 11_310),
        (new(json!([{"tag": "note", "elements": []}])), 200_621),
        (new(json!([{"tag": "markdown", "content": "", "element_id": "1a"}])), 300_301),
        (json!({"elements": [{"tag": "note", "elements": []}]}), 0),
        (json!({}), 200_621),
    ];
    for (card, code) in cases {
        assert_eq!(content::check_card(&card).map_or_else(|(code, _)| code, |()| 0), code, "{card}");
    }
}

#[tokio::test]
async fn a_group_tells_of_mentions_alone_unless_the_app_may_hear_all() {
    let sim = sim();
    let group = sim.core.act(|world| {
        world.options.hears_all = false;
        world.add_group(Kind::Group, "Deer", &[&sim.ada])
    });
    for (to_bot, waiting) in [(false, 0), (true, 1)] {
        let words = crate::platform::Words {
            chat: group.clone(),
            person: sim.ada.clone(),
            text: "hi".to_owned(),
            to_bot,
            ..Default::default()
        };
        sim.core.act(|world| world.write(&words));
        assert_eq!(sim.core.look(|world| world.events.waiting()), waiting);
    }
}
