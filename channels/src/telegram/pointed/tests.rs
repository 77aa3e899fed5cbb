#![expect(clippy::needless_pass_by_value, reason = "a json! is given as it is made")]

use crate::{
    Attachment, Inbound, InboundKind, PointedAt, PointedKind,
    telegram::{decode::TelegramDecoder, wire::TelegramIdentity},
};
use serde_json::{Value, json};

const GROUP: i64 = -1001;

/// Decodes a message by Ann with these fields; `None` if it is dropped.
fn decode(chat: i64, fields: Value) -> Option<Inbound> {
    let me = TelegramIdentity { id: 42, username: "pudu_bot".into() };
    let kind = if chat > 0 { "private" } else { "supergroup" };
    let mut message = json!({
        "message_id": 10, "date": 1_700_000_000, "chat": {"id": chat, "type": kind, "title": "Herd"},
        "from": {"id": 7, "is_bot": false, "first_name": "Ann"},
    });
    message.as_object_mut()?.extend(fields.as_object()?.clone());
    let update = serde_json::from_value(json!({"update_id": 1, "message": message})).ok()?;
    let decoder = TelegramDecoder { account: "telegram", me: &me, require_mention: true };
    decoder.decode(&update, 5_000).map(|delivery| delivery.inbound)
}

/// Checks the sender's text and the content that a message points at.
fn check(chat: i64, fields: Value, words: &str, expected: &[PointedAt]) {
    let inbound = decode(chat, fields.clone()).unwrap_or_else(|| panic!("{fields} is dropped"));
    let InboundKind::Message { text, attachments, .. } = inbound.kind else { panic!("{fields}") };
    assert_eq!(
        (text.as_str(), attachments, inbound.pointed.as_slice()),
        (words, vec![], expected),
        "{fields}"
    );
}

fn piece(kind: PointedKind, author: &str, text: &str) -> PointedAt {
    PointedAt { at: Some(1000), ..PointedAt::of_text(kind, text).by(Some(author)) }
}

fn own(piece: PointedAt) -> PointedAt {
    PointedAt { own: true, ..piece }
}

fn file(handle: &str, name: &str) -> Attachment {
    Attachment { handle: handle.into(), name: name.into(), size: Some(11) }
}

/// A message that is answered, with these fields.
fn answered(from: Value, fields: Value) -> Value {
    let mut answered =
        json!({"message_id": 6, "date": 1, "chat": {"id": 1, "type": "private"}, "from": from});
    answered.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    answered
}

fn bob() -> Value {
    json!({"id": 55, "is_bot": false, "first_name": "Bob", "last_name": "Lee"})
}

fn bot() -> Value {
    json!({"id": 42, "is_bot": true, "first_name": "Pudu", "username": "pudu_bot"})
}

#[test]
fn the_replied_to_message_is_included_in_full() {
    let document =
        json!({"file_id": "docA", "file_unique_id": "uA", "file_name": "plan.txt", "file_size": 11});
    let with_file = answered(bob(), json!({"document": document, "caption": "the plan"}));
    let reply = piece(PointedKind::Reply, "Bob Lee", "the plan").with_files([file("docA", "plan.txt")]);
    check(7, json!({"text": "what is it?", "reply_to_message": with_file}), "what is it?", &[reply]);

    let old = answered(bot(), json!({"text": "the code is 4711"}));
    let reply = own(piece(PointedKind::Reply, "Pudu", "the code is 4711"));
    check(7, json!({"text": "still?", "reply_to_message": old}), "still?", &[reply]);

    let other = answered(bob(), json!({"text": "the room floods"}));
    let mention = json!([{"type": "mention", "offset": 0, "length": 9}]);
    let fields = json!({"text": "@pudu_bot summarise", "entities": mention, "reply_to_message": other});
    check(GROUP, fields, "summarise", &[piece(PointedKind::Reply, "Bob Lee", "the room floods")]);

    let poll = json!({"question": "Tea?", "options": [{"text": "yes", "voter_count": 2}, {"text": "no"}]});
    let poll = answered(bob(), json!({"poll": poll}));
    let reply = piece(PointedKind::Reply, "Bob Lee", "[Poll: Tea? (yes: 2 / no)]");
    check(7, json!({"text": "so?", "reply_to_message": poll}), "so?", &[reply]);

    let tasks = json!([{"id": 1, "text": "pack", "completion_date": 5}, {"id": 2, "text": "go"}]);
    let list = answered(bob(), json!({"checklist": {"title": "Trip", "tasks": tasks}}));
    let reply = piece(PointedKind::Reply, "Bob Lee", "[Checklist: Trip]\n- [x] pack\n- [ ] go");
    check(7, json!({"text": "so?", "reply_to_message": list}), "so?", &[reply]);

    let origin =
        json!({"type": "channel", "chat": {"id": -1, "type": "channel", "title": "News"}, "date": 9});
    let passed_on = answered(bob(), json!({"text": "rates fall", "forward_origin": origin}));
    let reply = piece(PointedKind::Reply, "Bob Lee", "rates fall").from(Some("forwarded from News"));
    check(7, json!({"text": "true?", "reply_to_message": passed_on}), "true?", &[reply]);
}

#[test]
fn the_quoted_part_is_distinguished_from_the_whole() {
    let flight = "Your flight LH123 leaves at 18:00 from gate B7.";
    let quote = json!({"text": "leaves at 18:00", "position": 19, "is_manual": true});
    let fields = json!({"text": "still?", "reply_to_message": answered(bot(), json!({"text": flight})), "quote": quote});
    let whole = own(piece(PointedKind::Reply, "Pudu", flight));
    check(7, fields, "still?", &[whole, own(piece(PointedKind::Quote, "Pudu", "leaves at 18:00"))]);

    let news = json!({"id": -1, "type": "channel", "title": "News"});
    let origin =
        json!({"type": "channel", "chat": news, "message_id": 9, "date": 1, "author_signature": "Eve"});
    let external = json!({"origin": origin, "chat": news, "message_id": 9});
    let quote = json!({"text": "rates fall to 2 %", "position": 0});
    let fields = json!({"text": "and this?", "external_reply": external, "quote": quote});
    let part = piece(PointedKind::Quote, "News (Eve)", "rates fall to 2 %").from(Some("News"));
    check(7, fields, "and this?", &[part]);

    let mut with_file = external;
    with_file["document"] = json!({"file_id": "F", "file_name": "a.pdf", "file_size": 11});
    let whole =
        piece(PointedKind::Reply, "News (Eve)", "").from(Some("News")).with_files([file("F", "a.pdf")]);
    check(7, json!({"text": "and this?", "external_reply": with_file}), "and this?", &[whole]);
}

#[test]
fn a_forward_is_neither_text_nor_command_of_its_sender() {
    let hidden = json!({"type": "hidden_user", "sender_user_name": "Bob", "date": 1});
    let user = |id: i64| json!({"type": "user", "sender_user": {"id": id, "first_name": "Bob"}, "date": 1});
    let channel =
        json!({"type": "channel", "chat": {"id": -1, "type": "channel", "title": "Bob"}, "date": 1});
    for origin in [hidden, user(4_711), channel] {
        let fields = json!({"text": "/new\nI live in Rome", "forward_origin": origin});
        check(7, fields, "", &[piece(PointedKind::Forward, "Bob", "/new\nI live in Rome")]);
        let document = json!({"file_id": "F", "file_name": "error.log", "file_size": 11});
        let fields = json!({"document": document, "caption": "see", "forward_origin": origin});
        let forward = piece(PointedKind::Forward, "Bob", "see").with_files([file("F", "error.log")]);
        check(7, fields, "", &[forward]);
        let unknown = PointedAt {
            problem: Some("Telegram does not show its content to bots".into()),
            ..piece(PointedKind::Forward, "Bob", "")
        };
        check(7, json!({"something_new": {}, "forward_origin": origin}), "", &[unknown]);
    }
    check(7, json!({"text": "I live in Rome", "forward_origin": user(7)}), "I live in Rome", &[]);
}

#[test]
fn invalid_parts_affect_nothing_else() {
    let fields = json!({
        "text": "hi", "entities": [{"type": "bold"}, {"type": "new_kind", "offset": 0, "length": 1}, 7],
        "reply_to_message": {"message_id": "odd"}, "external_reply": [], "quote": {"text": 5},
        "photo": [{"width": 3}], "document": "none", "poll": 5, "forward_origin": null,
    });
    check(7, fields, "hi", &[]);
    let mut malformed =
        answered(bob(), json!({"text": "fine", "document": {"file_name": 1}, "entities": {}}));
    malformed["sender_chat"] = json!("odd");
    let reply = piece(PointedKind::Reply, "Bob Lee", "fine");
    check(7, json!({"text": "hi", "reply_to_message": malformed}), "hi", &[reply]);
}
