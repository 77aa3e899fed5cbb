#![expect(clippy::needless_pass_by_value, reason = "a json! is given as it is made")]

use super::{TelegramDecoder, TelegramIdentity, UpdateDelivery};
use crate::{Address, Attachment, EventKey, Inbound, InboundKind, Sender};
use serde_json::{Value, json};

const GROUP: i64 = -1001;

fn decode_with(require_mention: bool, update: &Value) -> Option<UpdateDelivery> {
    let me = TelegramIdentity { id: 42, username: "pudu_bot".into() };
    let decoder = TelegramDecoder { account: "telegram", me: &me, require_mention };
    decoder.decode(&serde_json::from_value(update.clone()).unwrap(), 5_000)
}

fn decode(update: &Value) -> Option<Inbound> {
    decode_with(true, update).map(|delivery| delivery.inbound)
}

/// A message by Ann with `fields` added or replaced.
fn message(chat: i64, fields: Value) -> Value {
    let kind = if chat > 0 { "private" } else { "supergroup" };
    let mut message = json!({
        "message_id": 10, "date": 1_700_000_000, "chat": {"id": chat, "type": kind, "title": "Herd"},
        "from": {"id": 7, "is_bot": false, "first_name": "Ann", "last_name": "Lee", "username": "ann"},
    });
    message.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    message
}

fn update(message: Value) -> Value {
    json!({"update_id": 123, "message": message})
}

fn text(text: &str, entities: Value) -> Value {
    json!({"text": text, "entities": entities})
}

fn entity(kind: &str, offset: usize, length: usize) -> Value {
    json!({"type": kind, "offset": offset, "length": length})
}

fn inbound(chat: i64, kind: InboundKind) -> Inbound {
    Inbound {
        key: EventKey("u123".into()),
        address: Address { account: "telegram".into(), chat: chat.to_string(), topic: None },
        private: chat > 0,
        message: "10".into(),
        reply_to: None,
        sender: Sender { id: "7".into(), name: "Ann Lee".into(), language: None },
        addressed: chat > 0,
        at: 1_700_000_000_000,
        pointed: Vec::new(),
        hint: None,
        kind,
    }
}

fn said(text: &str) -> InboundKind {
    InboundKind::Message { text: text.into(), attachments: Vec::new(), album: None }
}

#[test]
fn a_private_message_addresses_the_bot() {
    let decoded = decode(&update(message(7, json!({"text": "hello"}))));
    assert_eq!(decoded, Some(inbound(7, said("hello"))));
}

#[test]
fn a_mention_addresses_the_bot_and_is_removed_in_any_position() {
    let cases = [
        ("@pudu_bot hi", vec![entity("mention", 0, 9)], "hi", true),
        ("@Pudu_Bot, hi", vec![entity("mention", 0, 9)], "hi", true),
        ("@pudu_bot :) hi", vec![entity("mention", 0, 9)], ":) hi", true),
        ("hi @pudu_bot there", vec![entity("mention", 3, 9)], "hi there", true),
        ("😀 hi @pudu_bot", vec![entity("mention", 6, 9)], "😀 hi", true),
        ("@bob tell @pudu_bot", vec![entity("mention", 0, 4), entity("mention", 10, 9)], "@bob tell", true),
        ("@pudu_bots hi", vec![entity("mention", 0, 10)], "@pudu_bots hi", false),
        ("hi @pudu_bot", vec![], "hi @pudu_bot", false),
        ("hi", vec![entity("mention", 1, 99)], "hi", false),
        ("hi", vec![entity("some_new_kind", 0, 2)], "hi", false),
        ("/new now", vec![entity("bot_command", 0, 4)], "/new now", true),
        ("/new@Pudu_bot now", vec![entity("bot_command", 0, 13)], "/new now", true),
        ("/new@other_bot now", vec![entity("bot_command", 0, 14)], "/new@other_bot now", false),
        ("see /new", vec![entity("bot_command", 4, 4)], "see /new", false),
        (
            "Pudu hi",
            vec![json!({"type": "text_mention", "offset": 0, "length": 4, "user": {"id": 42}})],
            "hi",
            true,
        ),
        (
            "Bob hi",
            vec![json!({"type": "text_mention", "offset": 0, "length": 3, "user": {"id": 8}})],
            "Bob hi",
            false,
        ),
    ];
    for (words, entities, expected, addressed) in cases {
        let decoded = decode(&update(message(GROUP, text(words, entities.into()))));
        let wanted = Inbound { addressed, ..inbound(GROUP, said(expected)) };
        assert_eq!(decoded, Some(wanted), "for {words}");
    }
}

#[test]
fn a_group_may_require_no_mentions() {
    let delivery = decode_with(false, &update(message(GROUP, json!({"text": "hello"})))).unwrap();
    assert_eq!(delivery.inbound, Inbound { addressed: true, ..inbound(GROUP, said("hello")) });
}

#[test]
fn a_reply_to_the_bots_message_addresses_the_bot() {
    let answered = |id: i64, fields: Value| {
        let mut answered = message(GROUP, json!({"message_id": 9, "from": {"id": id, "is_bot": true}}));
        answered.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        answered
    };
    let fields = json!({"text": "and?", "message_thread_id": 9, "reply_to_message": answered(42, json!({}))});
    let wanted = Inbound { addressed: true, reply_to: Some("9".into()), ..inbound(GROUP, said("and?")) };
    assert_eq!(decode(&update(message(GROUP, fields))), Some(wanted));

    let fields = json!({"text": "and?", "reply_to_message": answered(8, json!({}))});
    let decoded = decode(&update(message(GROUP, fields))).unwrap();
    assert_eq!((decoded.addressed, decoded.reply_to), (false, None), "no lookup is needed");
}

#[test]
fn a_topic_is_part_of_the_address_and_its_first_message_is_not_answered() {
    let opened = message(
        GROUP,
        json!({
            "message_id": 5, "from": {"id": 42, "is_bot": true}, "forum_topic_created": {"name": "x", "icon_color": 1}
        }),
    );
    let fields = json!({
        "text": "hi", "message_thread_id": 5, "is_topic_message": true, "reply_to_message": opened
    });
    let mut wanted = inbound(GROUP, said("hi"));
    wanted.address.topic = Some("5".into());
    assert_eq!(decode(&update(message(GROUP, fields))), Some(wanted));
}

#[test]
fn an_edit_contains_the_new_text() {
    let edited = json!({
        "update_id": 123,
        "edited_message": message(7, json!({"text": "better", "edit_date": 1_700_000_060})),
    });
    let wanted = Inbound { at: 1_700_000_060_000, ..inbound(7, InboundKind::Edit { text: "better".into() }) };
    assert_eq!(decode(&edited), Some(wanted));
    let bare = message(7, json!({"photo": [{"file_id": "F"}], "edit_date": 1_700_000_060}));
    let bare = json!({"update_id": 123, "edited_message": bare});
    let wanted = Inbound { at: 1_700_000_060_000, ..inbound(7, InboundKind::Edit { text: String::new() }) };
    assert_eq!(decode(&bare), Some(wanted), "the caption is removed");
    let moved = json!({"update_id": 123, "edited_message": message(7, json!({"location": {"latitude": 1, "longitude": 2}}))});
    assert_eq!(decode(&moved), None);
}

/// The `User` of the Bot API's own guide to webhooks, and the tags of Telegram's apps.
#[test]
fn a_sender_has_the_language_of_their_app() {
    let from = |language: Value| {
        let user = json!({"id": 1111111, "is_bot": false, "first_name": "Test Firstname",
            "last_name": "Test Lastname", "username": "Testusername", "language_code": language});
        let said = decode(&update(message(7, json!({"text": "hi", "from": &user})))).unwrap();
        let query = json!({"id": "q1", "from": user, "data": "/stop",
            "message": message(7, json!({"text": "?", "from": {"id": 42, "is_bot": true}}))});
        let pressed = decode_with(true, &json!({"update_id": 123, "callback_query": query})).unwrap();
        assert_eq!(said.sender, pressed.inbound.sender);
        said.sender.language
    };
    for tag in ["en", "zh-hans", "zh-hant", "pt-br"] {
        assert_eq!(from(json!(tag)).as_deref(), Some(tag));
    }
    assert_eq!(from(Value::Null), None);
}

#[test]
fn the_sender_of_a_press_is_the_user_who_pressed() {
    let press = |message: Value, data: Value| {
        let query =
            json!({"id": "q1", "from": {"id": 9, "first_name": "Bo"}, "message": message, "data": data});
        decode_with(true, &json!({"update_id": 123, "callback_query": query}))
    };
    let keyboard = message(GROUP, json!({"text": "?", "from": {"id": 42, "is_bot": true}}));
    let wanted = Inbound {
        sender: Sender { id: "9".into(), name: "Bo".into(), language: None },
        addressed: true,
        at: 5_000,
        ..inbound(GROUP, InboundKind::Press { action: "/stop".into() })
    };
    let delivery = UpdateDelivery { inbound: wanted, pressed: Some("q1".into()) };
    assert_eq!(press(keyboard.clone(), json!("/stop")), Some(delivery));
    assert_eq!(press(keyboard, Value::Null), None);
    let gone = json!({"message_id": 10, "date": 0, "chat": {"id": GROUP, "type": "supergroup"}});
    assert_eq!(press(gone, json!("/stop")), None);
    assert_eq!(press(Value::Null, json!("/stop")), None);
}

#[test]
fn files_are_named_and_their_captions_kept() {
    let file = |fields: Value| {
        let mut file = json!({"file_id": "F", "file_unique_id": "U/1", "file_size": 3});
        file.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        file
    };
    let cases = [
        (
            json!({"photo": [file(json!({"file_id": "small", "width": 1, "height": 1})), file(json!({"width": 9, "height": 9}))]}),
            "telegram-photo-U1.jpg",
        ),
        (json!({"document": file(json!({"file_name": "a b.pdf"}))}), "a b.pdf"),
        (json!({"document": file(json!({"file_name": "../../etc/pass\u{202e}wd\n"}))}), "passwd"),
        (json!({"document": file(json!({"file_name": ".."}))}), "telegram-document-U1.bin"),
        (json!({"document": file(json!({"mime_type": "application/pdf"}))}), "telegram-document-U1.pdf"),
        (
            json!({"animation": file(json!({})), "document": file(json!({"file_name": "again.mp4"}))}),
            "telegram-animation-U1.mp4",
        ),
        (json!({"audio": file(json!({}))}), "telegram-audio-U1.mp3"),
        (json!({"voice": file(json!({}))}), "telegram-voice-U1.ogg"),
        (json!({"video": file(json!({}))}), "telegram-video-U1.mp4"),
        (json!({"video_note": file(json!({}))}), "telegram-video-note-U1.mp4"),
        (json!({"sticker": file(json!({"is_animated": true}))}), "telegram-sticker-U1.tgs"),
    ];
    for (fields, name) in cases {
        let mut fields = fields;
        fields["caption"] = json!("look");
        let attachments = vec![Attachment { handle: "F".into(), name: name.into(), size: Some(3) }];
        let kind = InboundKind::Message { text: "look".into(), attachments, album: None };
        assert_eq!(decode(&update(message(7, fields))), Some(inbound(7, kind)));
    }
}

#[test]
fn a_long_name_keeps_its_extension() {
    let fields = json!({"document": {"file_id": "F", "file_name": format!("{}.tar", "é".repeat(200))}, "media_group_id": "g"});
    let attachments =
        vec![Attachment { handle: "F".into(), name: format!("{}.tar", "é".repeat(58)), size: None }];
    let kind = InboundKind::Message { text: String::new(), attachments, album: Some("g".into()) };
    assert_eq!(decode(&update(message(7, fields))), Some(inbound(7, kind)));
}

#[test]
fn other_content_is_described_as_text() {
    let cases = [
        (json!({"location": {"latitude": 52.5, "longitude": 13.4}}), "[Location: 52.5, 13.4]"),
        (
            json!({"venue": {"title": "Zoo", "address": "Park 1", "location": {"latitude": 1.5, "longitude": 2.5}}}),
            "[Place: Zoo, Park 1 (1.5, 2.5)]",
        ),
        (json!({"contact": {"phone_number": "+49", "first_name": "Bo"}}), "[Contact: Bo, +49]"),
        (
            json!({"poll": {"question": "Tea?", "options": [{"text": "yes"}, {"text": "no"}]}}),
            "[Poll: Tea? (yes / no)]",
        ),
        (json!({"dice": {"emoji": "🎲", "value": 4}}), "[Dice 🎲: 4]"),
    ];
    for (fields, words) in cases {
        assert_eq!(decode(&update(message(7, fields))), Some(inbound(7, said(words))));
    }
}

#[test]
fn a_message_on_behalf_of_a_chat_is_from_that_chat() {
    let fields = json!({
        "text": "hi", "from": {"id": 1_087_968_824, "is_bot": true, "first_name": "Group"},
        "sender_chat": {"id": GROUP, "type": "supergroup", "title": "Herd"},
    });
    let sender = Sender { id: "-1001".into(), name: "Herd".into(), language: None };
    assert_eq!(
        decode(&update(message(GROUP, fields))),
        Some(Inbound { sender, ..inbound(GROUP, said("hi")) })
    );
}

#[test]
fn a_message_of_another_bot_never_addresses_this_one() {
    let bot = json!({"id": 8, "is_bot": true, "first_name": "Builds"});
    let answered = message(GROUP, json!({"message_id": 9, "from": {"id": 42, "is_bot": true}}));
    let fields = json!({"text": "@pudu_bot hi", "entities": [entity("mention", 0, 9)], "from": bot,
        "reply_to_message": answered});
    let found = decode_with(false, &update(message(GROUP, fields))).unwrap().inbound;
    assert_eq!((found.addressed, found.reply_to, found.sender.id.as_str()), (false, None, ""));
}

#[test]
fn a_post_of_the_linked_channel_never_addresses_the_bot() {
    let fields = json!({"text": "@pudu_bot hi", "entities": [entity("mention", 0, 9)], "is_automatic_forward": true,
        "sender_chat": {"id": -1, "type": "channel", "title": "News"}});
    for require_mention in [true, false] {
        let post = decode_with(require_mention, &update(message(GROUP, fields.clone()))).unwrap().inbound;
        assert_eq!((post.addressed, post.sender.id.as_str()), (false, "-1"));
    }
}

#[test]
fn updates_that_do_not_concern_the_bot_are_ignored() {
    let cases = [
        update(message(GROUP, json!({"text": "hi", "from": {"id": 42, "is_bot": true}}))),
        update(message(7, json!({"text": "hi", "from": {"id": 8, "is_bot": true}}))),
        update(message(GROUP, json!({"new_chat_title": "x"}))),
        update(message(GROUP, json!({"migrate_to_chat_id": -1002}))),
        json!({"update_id": 123, "channel_post": message(GROUP, json!({"text": "hi"}))}),
        json!({"update_id": 123, "something_new": {"text": "hi"}}),
    ];
    for case in cases {
        assert_eq!(decode(&case), None, "for {case}");
    }
}
