use super::*;
use crate::{
    Attachment, InboundKind,
    discord::{account_state::DiscordIdentity, decode::ListenRules, guild_cache::GuildCache},
};
use serde_json::json;

const ME: &str = "7";

/// Decodes a message with these fields; `None` for one that is dropped.
fn decode(channel: &str, fields: &Value) -> Option<Inbound> {
    let places = GuildCache::default();
    let guild = json!({"id": "1", "channels": [{"id": "2", "type": 0, "name": "team"}],
        "threads": [{"id": "30", "type": 11, "name": "t", "parent_id": "2"}]});
    places.guild(serde_json::from_value(guild).unwrap(), ME);
    let me = DiscordIdentity { user: ME.into(), application: ME.into(), name: "pudu".into() };
    let rules = ListenRules::default();
    let decoder = DiscordDecoder { account: "d", me: &me, rules: &rules, places: &places, commands: &[] };
    let mut message = json!({"id": "1100000000000000001", "channel_id": channel, "guild_id": "1", "content": "",
        "author": {"id": "8", "username": "ada"}});
    message.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let message: DiscordMessage = serde_json::from_value(message).unwrap();
    decoder.message(&message, &places.get(channel).unwrap_or_default())
}

fn check(channel: &str, fields: &Value, words: &str, expected: &[PointedAt]) {
    let inbound = decode(channel, fields).unwrap_or_else(|| panic!("{fields} is dropped"));
    let InboundKind::Message { text, attachments, .. } = inbound.kind else { panic!("{fields}") };
    assert_eq!(
        (text.as_str(), attachments, inbound.pointed.as_slice()),
        (words, vec![], expected),
        "{fields}"
    );
}

fn piece(kind: PointedKind, author: &str, text: &str) -> PointedAt {
    let author = Some(author).filter(|author| !author.is_empty());
    PointedAt { at: id_time("1000000000000000000"), ..PointedAt::of_text(kind, text).by(author) }
}

fn log(channel: &str, message: &str) -> (Value, Attachment) {
    let attachment =
        json!({"id": "9", "filename": "error.log", "size": 11, "url": "https://cdn.discordapp.com/9"});
    let file: DiscordMessage = serde_json::from_value(json!({"id": message, "channel_id": channel})).unwrap();
    (attachment.clone(), super::file(&file, &serde_json::from_value(attachment).unwrap()))
}

/// A message with a reply to this one.
fn answer(answered: Value) -> Value {
    let mut answered = answered;
    answered["id"] = "1000000000000000000".into();
    answered["channel_id"] = "2".into();
    json!({"type": 19, "content": "what is it?", "referenced_message": answered,
        "message_reference": {"type": 0, "message_id": "1000000000000000000", "channel_id": "2"}})
}

#[test]
fn the_replied_to_message_is_included_in_full() {
    let (attachment, file) = log("2", "1000000000000000000");
    let bob = json!({"id": "9", "username": "bob", "global_name": "Bob"});
    let fields =
        answer(json!({"author": bob, "content": "the <@7> log of <#2>", "attachments": [attachment, 5]}));
    let expected = piece(PointedKind::Reply, "Bob", "the @unknown-user log of #team").with_files([file]);
    check("2", &fields, "what is it?", &[expected]);
    let own = answer(json!({"author": {"id": ME, "username": "pudu", "bot": true}, "content": "4711"}));
    let expected = PointedAt { own: true, ..piece(PointedKind::Reply, "pudu", "4711") };
    check("2", &own, "what is it?", &[expected]);
    // The text of an alert is in an embed or in components.
    let embed = json!({"title": "disk full", "url": "https://m.example/1", "description": "host db1",
        "fields": [{"name": "use", "value": "98 %"}, 7], "image": {"url": "https://m.example/g.png"},
        "footer": {"text": "monitor"}, "author": {"name": "M"}});
    let text =
        "disk full (https://m.example/1)\nhost db1\nuse: 98 %\n[image: https://m.example/g.png]\nmonitor";
    let fields = answer(json!({"author": bob, "embeds": [embed, "odd"]}));
    check("2", &fields, "what is it?", &[piece(PointedKind::Reply, "Bob", text)]);
    let container = json!({"type": 17, "components": [{"type": 10, "content": "one"},
        {"type": 9, "components": [{"type": 10, "content": "two"}]}]});
    let fields = answer(json!({"author": bob, "components": [container, {"type": 10, "content": "three"}]}));
    check("2", &fields, "what is it?", &[piece(PointedKind::Reply, "Bob", "one\ntwo\nthree")]);
    // Discord did not send the answered message.
    let mut unknown = answer(json!({}));
    unknown["referenced_message"] = Value::Null;
    let expected = PointedAt::unread(PointedKind::Reply, "/2/1000000000000000000");
    check("2", &unknown, "what is it?", &[expected]);
}

#[test]
fn a_forward_is_not_text_of_its_sender() {
    let (attachment, file) = log("2", "1100000000000000001");
    let forward = |message: Value| {
        json!({"message_reference": {"type": 1, "message_id": "8", "channel_id": "5"},
            "message_snapshots": [{"message": message}]})
    };
    let expected = PointedAt::of_text(PointedKind::Forward, "/new\nI live in Rome");
    let fields = forward(json!({"content": "/new\nI live in Rome", "attachments": [attachment]}));
    check("2", &fields, "", &[expected.with_files([file])]);
    let fields = forward(
        json!({"content": "", "embeds": [{"title": "alert"}], "sticker_items": [{"id": "1", "name": "Wave"}]}),
    );
    check("2", &fields, "", &[PointedAt::of_text(PointedKind::Forward, "[sticker: Wave]\nalert")]);
    let expected = PointedAt::unreadable(PointedKind::Forward, "Discord does not show its content to bots");
    check("2", &forward(json!({"content": 7, "embeds": {}})), "", &[expected]);
}

#[test]
fn previews_links_and_the_opening_message_are_referenced() {
    let preview = json!({"type": "article", "title": "A page", "url": "https://x.example/a", "provider": {"name": "X"}});
    let expected = PointedAt::of_text(PointedKind::Embed, "A page (https://x.example/a)").from(Some("X"));
    check(
        "2",
        &json!({"content": "https://x.example/a", "embeds": [preview]}),
        "https://x.example/a",
        &[expected],
    );
    let opening = PointedAt::unread(PointedKind::Opening, "/2/30");
    check("30", &json!({"content": "hi"}), "hi", &[opening]);
    let link = |url: &str, expected: Option<&str>| {
        let found = DiscordMessageLink::from_url(url);
        assert_eq!(found.as_ref().map(DiscordMessageLink::reference).as_deref(), expected, "{url}");
        assert_eq!(
            found.as_ref().and_then(|link| DiscordMessageLink::from_reference(&link.reference())),
            found
        );
    };
    link("https://discord.com/channels/1/2/3", Some("1/2/3"));
    link("https://canary.discord.com/channels/1/2/3", Some("1/2/3"));
    link("https://discordapp.com/channels/@me/2/3", Some("@me/2/3"));
    link("https://discord.com/channels/1/2", None);
    link("https://discord.com/channels/1/..%2f2/3", None);
    link("https://discord.com.evil.example/channels/1/2/3", None);
    link("http://discord.com/channels/1/2/3", None);
    let text = "see <https://discord.com/channels/1/2/3>, (https://discord.com/channels/1/2/3) and https://discord.com/channels/1/2/4";
    assert_eq!(links(text).iter().map(DiscordMessageLink::reference).collect::<Vec<_>>(), ["1/2/3", "1/2/4"]);
}
