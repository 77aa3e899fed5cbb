use super::*;
use proptest::prelude::*;
use serde_json::json;

fn decoder(groups: GroupConversations) -> DingTalkDecoder {
    let seal = NameSeal::new("secret".into());
    DingTalkDecoder { account: "dingtalk".into(), groups, reads_groups: false, seal }
}

/// A text message as DingTalk delivers it, with replaced fields.
fn said(other: &Value) -> Value {
    let mut data = json!({
        "conversationId": "cidP1==", "conversationType": "1", "msgId": "msg1==", "msgtype": "text",
        "text": {"content": " hello "}, "senderId": "$:LWCP_v1:$a", "senderNick": "Ada", "senderStaffId": "0160",
        "senderCorpId": "ding1", "chatbotUserId": "$:LWCP_v1:$r", "robotCode": "dingx", "isAdmin": true,
        "sessionWebhook": "https://oapi.dingtalk.com/robot/sendBySession?session=x",
        "sessionWebhookExpiredTime": 1_690_367_502_394_i64, "createAt": 1_690_362_102_194_i64,
    });
    for (name, value) in other.as_object().unwrap() {
        data[name] = value.clone();
    }
    data
}

fn inbound() -> Inbound {
    Inbound {
        key: EventKey("msg:msg1==".into()),
        address: Address { account: "dingtalk".into(), chat: "0160".into(), topic: None },
        private: true,
        message: "msg1==".into(),
        reply_to: None,
        sender: Sender { id: "0160".into(), name: "Ada".into(), language: None },
        addressed: true,
        at: 1_690_362_102_194,
        pointed: Vec::new(),
        hint: Some(json!({
            "staff": true, "session": "https://oapi.dingtalk.com/robot/sendBySession?session=x",
            "until": 1_690_367_502_394_i64,
        })),
        kind: InboundKind::Message { text: "hello".into(), attachments: Vec::new(), album: None },
    }
}

fn attachment(handle: &str, name: &str, size: Option<u64>) -> Attachment {
    Attachment { handle: handle.into(), name: name.into(), size }
}

#[test]
fn a_private_text_is_decoded() {
    let read = |other: &Value| decoder(GroupConversations::Group).message(&said(other));
    assert_eq!(read(&json!({})), Some(inbound()));
    // Numbers may arrive as text.
    let texts = json!({"conversationType": 1, "createAt": "1690362102194"});
    assert_eq!(read(&texts), Some(inbound()));
}

#[test]
fn a_group_is_one_conversation_or_one_per_user() {
    let group = json!({"conversationType": "2", "conversationId": "cidG1==", "isInAtList": true});
    let address_in = |groups| decoder(groups).message(&said(&group)).unwrap().address;
    let address = |topic: Option<&str>| Address {
        account: "dingtalk".into(),
        chat: "cidG1==".into(),
        topic: topic.map(Into::into),
    };
    assert_eq!(address_in(GroupConversations::Group), address(Some("all")));
    assert_eq!(address_in(GroupConversations::User), address(Some("0160")));
}

#[test]
fn a_group_message_without_a_mention_is_unaddressed_only_if_groups_are_read() {
    let addressed = |reads_groups: bool, mentioned: Value, kind: &str| {
        let fields = json!({"conversationType": kind, "conversationId": "cidG1==", "isInAtList": mentioned});
        let decoder = DingTalkDecoder { reads_groups, ..decoder(GroupConversations::Group) };
        decoder.message(&said(&fields)).unwrap().addressed
    };
    assert!(addressed(true, json!(true), "2") && addressed(true, Value::Null, "2"));
    assert!(!addressed(true, json!(false), "2"));
    assert!(addressed(false, json!(false), "2"), "the group does not require a mention");
    assert!(addressed(true, json!(false), "1"), "a single chat needs no mention");
}

#[test]
fn an_external_user_has_an_id_for_this_robot_only() {
    let found = decoder(GroupConversations::Group).message(&said(&json!({"senderStaffId": null}))).unwrap();
    assert_eq!(found.address.chat, "$:LWCP_v1:$a");
    assert_eq!(found.sender.id, "$:LWCP_v1:$a");
    assert_eq!(found.hint.unwrap()["staff"], false);
}

#[test]
fn every_kind_of_message_has_its_text_and_files() {
    let check = |other: &Value, text: &str, attachments: Vec<Attachment>| {
        let found = decoder(GroupConversations::Group).message(&said(other)).unwrap();
        // The text follows a file as a separate message.
        let album = text.is_empty().then(|| "msg1==".to_owned());
        assert_eq!(found.kind, InboundKind::Message { text: text.into(), attachments, album }, "{other}");
    };
    let file = json!({"downloadCode": "c1", "fileName": "../a.txt", "fileSize": "7"});
    check(&json!({"msgtype": "file", "content": file}), "", vec![attachment("c1", "a.txt", Some(7))]);
    let picture = json!({"pictureDownloadCode": "p1"});
    check(
        &json!({"msgtype": "picture", "content": picture}),
        "",
        vec![attachment("p1", "picture.png", None)],
    );
    let rich = json!({"richText": [
        {"text": "see"}, {"type": "picture", "downloadCode": "c1"}, {"text": " this"}, {"downloadCode": "c2"}, 7, null,
    ]});
    check(
        &json!({"msgtype": "richText", "content": rich}),
        "see this",
        vec![attachment("c1", "picture-1.png", None), attachment("c2", "picture-2.png", None)],
    );
    let audio = json!({"downloadCode": "c1", "recognition": "what was said", "duration": 4000});
    check(
        &json!({"msgtype": "audio", "content": audio.to_string()}),
        "what was said",
        vec![attachment("c1", "audio.amr", None)],
    );
    let video = json!({"downloadCode": "c1"});
    check(&json!({"msgtype": "video", "content": video}), "", vec![attachment("c1", "video.mp4", None)]);
}

#[test]
fn a_reply_to_the_bots_message_has_its_id() {
    let check = |other: &Value, expected: &str| {
        let found = decoder(GroupConversations::Group).message(&said(other)).unwrap();
        assert_eq!(found.reply_to.as_deref(), Some(expected));
    };
    check(&json!({"originalMsgId": "m0", "originalProcessQueryKey": "k0"}), "k0");
    check(&json!({"text": {"content": "x", "isReplyMsg": true, "repliedMsg": {"msgId": "m0"}}}), "m0");
}

#[test]
fn messages_that_cannot_address_the_bot_are_ignored() {
    let cases = [
        json!({"msgId": ""}),
        json!({"senderStaffId": null, "senderId": null}),
        json!({"senderId": "$:LWCP_v1:$r"}),
        json!({"conversationType": "3"}),
        json!({"conversationType": "2", "conversationId": ""}),
        json!({"msgtype": "unknownMsgType"}),
    ];
    for other in cases {
        assert_eq!(decoder(GroupConversations::Group).message(&said(&other)), None, "{other}");
    }
    assert_eq!(decoder(GroupConversations::Group).message(&Value::Null), None);
}

#[test]
fn a_press_counts_only_in_the_conversation_of_its_card() {
    let of = |groups, chat: &str, topic: Option<&str>, private, space: &str, person: &str| {
        let decoder = decoder(groups);
        let address = Address { account: "dingtalk".into(), chat: chat.into(), topic: topic.map(Into::into) };
        let card = decoder.seal.name("key", private, &address);
        let content = json!({"cardPrivateData": {"actionIds": ["/stop"], "params": {}}}).to_string();
        let data = json!({"outTrackId": card, "userId": person, "spaceId": space, "content": content});
        decoder.press("f1", &data, 5).map(|found| (found.address == address, found.sender.id, found.kind))
    };
    let stop = || InboundKind::Press { action: "/stop".into() };
    let (group, user) = (GroupConversations::Group, GroupConversations::User);
    let good = |person: &str| Some((true, person.to_owned(), stop()));
    assert_eq!(of(group, "cidG", Some("all"), false, "cidG", "u1"), good("u1"));
    assert_eq!(of(group, "cidG", Some("all"), false, "dtv1.card//IM_GROUP.cidG", "u1"), good("u1"));
    assert_eq!(of(group, "u1", None, true, "cidAnything", "u1"), good("u1"));
    assert_eq!(of(user, "cidG", Some("u1"), false, "cidG", "u1"), good("u1"));
    // Forwarded into another group, pressed by another person, and claimed to be from another kind of chat.
    assert_eq!(of(group, "cidG", Some("all"), false, "cidOther", "u1"), None);
    assert_eq!(of(group, "u1", None, true, "cidG", "u2"), None);
    assert_eq!(of(user, "cidG", Some("u1"), false, "cidG", "u2"), None);
    assert_eq!(of(group, "cidG", None, true, "cidG", "u1"), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn arbitrary_events_never_panic(kind in "text|richText|picture|file|audio|x", text in ".{0,60}", n in any::<i64>()) {
        let values = [json!(n), json!(text), json!([text]), json!({"content": n}), Value::Null];
        for value in values {
            let other = json!({"msgtype": kind, "text": value, "content": value, "createAt": value});
            decoder(GroupConversations::User).message(&said(&other));
            let press = json!({"outTrackId": text, "userId": "u", "spaceId": value, "content": value});
            decoder(GroupConversations::User).press("f", &press, n);
        }
    }
}
