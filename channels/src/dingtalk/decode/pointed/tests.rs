#![expect(clippy::needless_pass_by_value, reason = "a json! is given as it is made")]

use super::*;
use crate::{
    InboundKind,
    dingtalk::{
        decode::{DingTalkDecoder, GroupConversations},
        seal::NameSeal,
    },
};
use serde_json::json;

/// Checks the sender's text and the content that a message points at.
fn check(fields: Value, words: &str, expected: &[PointedAt]) {
    let mut data = json!({
        "conversationId": "cidP1==", "conversationType": "1", "msgId": "msg1==", "msgtype": "text",
        "senderId": "$:LWCP_v1:$a", "senderNick": "Ada", "senderStaffId": "0160", "chatbotUserId": "$:LWCP_v1:$r",
    });
    data.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let groups = GroupConversations::Group;
    let decoder = DingTalkDecoder {
        account: "d".into(),
        groups,
        reads_groups: false,
        seal: NameSeal::new("secret".into()),
    };
    let inbound = decoder.message(&data).unwrap_or_else(|| panic!("{fields} is dropped"));
    let InboundKind::Message { text, .. } = &inbound.kind else { panic!("{fields}") };
    assert_eq!((text.as_str(), inbound.pointed.as_slice()), (words, expected), "{fields}");
}

fn reply(text: &str) -> PointedAt {
    PointedAt { at: Some(1000), ..PointedAt::of_text(PointedKind::Reply, text) }
}

fn file(handle: &str, name: &str) -> Attachment {
    Attachment { handle: handle.into(), name: name.into(), size: None }
}

/// A text message that replies to a message with this type and content.
fn answer(kind: &str, content: Value) -> Value {
    let replied =
        json!({"msgId": "m0", "msgType": kind, "content": content, "senderId": "$:x", "createdAt": 1000});
    json!({"text": {"content": "what is it?", "isReplyMsg": true, "repliedMsg": replied}})
}

#[test]
fn the_replied_to_message_is_included_in_every_form() {
    let ask = "what is it?";
    check(answer("text", json!({"content": "the room floods"})), ask, &[reply("the room floods")]);
    check(answer("text", json!({"text": "the room floods"})), ask, &[reply("the room floods")]);
    check(answer("text", json!({"text": "in JSON"}).to_string().into()), ask, &[reply("in JSON")]);
    check(answer("text", json!("plain")), ask, &[reply("plain")]);
    check(
        answer("picture", json!({"downloadCode": "c1"})),
        ask,
        &[reply("").with_files([file("c1", "picture.png")])],
    );
    let document = json!({"downloadCode": "c1", "fileName": "../plan.txt"});
    check(answer("file", document), ask, &[reply("").with_files([file("c1", "plan.txt")])]);
    let recording = json!({"downloadCode": "c1", "recognition": "see you at six"});
    check(answer("audio", recording), ask, &[reply("see you at six").with_files([file("c1", "audio.amr")])]);
    let rich = json!({"richText": [{"msgType": "picture", "downloadCode": "c1"}, {"msgType": "text", "content": "print 123"},
        {"type": "text", "text": " and"}, 7, {"msgType": "picture"}]});
    let expected = reply("print 123 and[picture]").with_files([file("c1", "picture-1.png")]);
    check(answer("richText", rich), ask, &[expected]);
    let tree = json!({"cardContent": {"elementType": "ROOT", "children": [
        {"elementType": "TEXT", "value": "disk full"}, {"elementType": "BOX", "children": [{"elementType": "TEXT", "value": "db1"}]}]}});
    check(answer("interactiveCard", tree), ask, &[reply("disk full\ndb1")]);
    check(answer("markdown", json!({"title": "T", "text": "**b**"})), ask, &[reply("T\n**b**")]);
    let nothing = |own: bool| PointedAt { own, at: None, problem: Some(NOT_GIVEN.into()), ..reply("") };
    check(json!({"text": {"content": ask}, "originalMsgId": "m0"}), ask, &[nothing(false)]);
    let own = json!({"text": {"content": ask}, "originalMsgId": "m0", "originalProcessQueryKey": "k0"});
    check(own, ask, &[nothing(true)]);
    let mut by_bot = answer("text", json!({"content": "4711"}));
    by_bot["text"]["repliedMsg"]["senderId"] = "$:LWCP_v1:$r".into();
    check(by_bot, ask, &[PointedAt { own: true, ..reply("4711") }]);
    let old = json!({"msgId": "m0", "msgtype": "text", "text": {"content": "old form"}, "senderNick": "Bob", "createAt": 1000});
    check(json!({"text": {"content": ask}, "quoteMessage": old}), ask, &[reply("old form").by(Some("Bob"))]);
    let rich = json!({"richText": [{"text": ask}], "quoteContent": "in the content"});
    let expected = PointedAt { at: None, ..reply("in the content") };
    check(json!({"msgtype": "richText", "content": rich}), ask, &[expected]);
    check(json!({"text": {"content": ask, "isReplyMsg": false, "repliedMsg": null}}), ask, &[]);
}

#[test]
fn a_record_and_a_card_are_not_text_of_their_sender() {
    let forward = |author: &str, text: &str| {
        PointedAt::of_text(PointedKind::Forward, text).by(Some(author)).from(Some("Team"))
    };
    let entries = json!([
        {"senderId": "$:1", "msgType": "text", "content": "/new", "createAt": 1000},
        {"senderId": "$:2", "msgType": "file", "content": {"downloadCode": "c1", "fileName": "error.log"}}, 7,
    ]);
    let summary = json!(["Bob:/new", "Cy: [file]"]);
    let content = json!({"title": "Team", "summary": summary.to_string(), "chatRecord": entries.to_string()});
    let expected = [
        PointedAt { at: Some(1000), ..forward("Bob", "/new") },
        forward("Cy", "").with_files([file("c1", "error.log")]),
    ];
    check(json!({"msgtype": "chatRecord", "content": content}), "", &expected);
    let short = json!({"title": "Team", "summary": ["Bob: hi", "Cy: ho"], "chatRecord": "[]"});
    let expected = PointedAt { author: None, ..forward("", "Bob: hi\nCy: ho") };
    check(json!({"msgtype": "chatRecord", "content": short}), "", &[expected]);
    let many = vec![json!({"senderNick": "Bob", "content": "x"}); MAX_PIECES + 3];
    let mut expected = vec![PointedAt { origin: None, ..forward("Bob", "x") }; MAX_PIECES];
    expected.push(PointedAt::unreadable(PointedKind::Forward, "3 more messages omitted"));
    check(json!({"msgtype": "chatRecord", "content": {"chatRecord": many}}), "", &expected);
    let link = json!({"title": "A page", "text": "about", "messageUrl": "https://x.example"});
    let expected = PointedAt::of_text(PointedKind::Card, "A page\nabout\nhttps://x.example");
    check(json!({"msgtype": "link", "content": link}), "", &[expected]);
    let hidden = PointedAt::unreadable(PointedKind::Card, NOT_GIVEN);
    check(json!({"msgtype": "interactiveCard", "content": {}}), "", &[hidden]);
}
