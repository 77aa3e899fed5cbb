use super::*;

fn me() -> SlackIdentity {
    SlackIdentity { user: "UBOT".into(), bot: "BBOT".into(), team: "T1".into() }
}

fn commands() -> Vec<ChatCommand> {
    let one = |name: &str, words: bool| ChatCommand {
        name: name.into(),
        argument: if words { "[words]".into() } else { String::new() },
        help: "Does it".into(),
        translations: Vec::new(),
    };
    vec![one("status", false), one("models", true)]
}

fn read(event: Value, ours: bool) -> Option<Inbound> {
    let (me, commands) = (me(), commands());
    let decoder = SlackDecoder { account: "slack", me: &me, require_mention: true, commands: &commands };
    let event: SlackMessage = serde_json::from_value(event).unwrap();
    let heard = decoder.read_event(&event, Some("T1"))?;
    let names = HashMap::from([("U1".to_owned(), "Ada".to_owned()), ("U2".to_owned(), "Bob".to_owned())]);
    decoder.decode(&heard, &DecodeContext { names, ours })
}

fn message(more: &Value) -> Value {
    let mut event = json!({
        "type": "message", "channel": "C1", "channel_type": "channel", "user": "U1", "text": "hi",
        "ts": "1763630000.000100", "event_ts": "1763630000.000100",
    });
    event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    event
}

fn place(topic: Option<&str>, chat: &str) -> Address {
    Address { account: "slack".into(), chat: chat.into(), topic: topic.map(Into::into) }
}

#[test]
fn both_events_of_a_mention_and_the_history_have_one_key() {
    let text = json!({"text": "<@UBOT> hello <@U2>"});
    let said = read(message(&text), false).unwrap();
    assert_eq!(
        said,
        Inbound {
            key: EventKey("mC1:1763630000.000100".into()),
            address: place(Some("1763630000.000100"), "C1"),
            private: false,
            message: "1763630000.000100".into(),
            reply_to: None,
            sender: Sender { id: "U1".into(), name: "Ada".into(), language: None },
            addressed: true,
            at: 1_763_630_000_000,
            pointed: Vec::new(),
            hint: Some(json!({"team": "T1"})),
            kind: InboundKind::Message { text: "hello @Bob".into(), attachments: vec![], album: None },
        }
    );
    let mut mention = message(&text);
    mention["type"] = "app_mention".into();
    mention.as_object_mut().unwrap().remove("channel_type");
    assert_eq!(read(mention, false), Some(said.clone()));
    let mut history = message(&text);
    history.as_object_mut().unwrap().remove("channel_type");
    history.as_object_mut().unwrap().remove("event_ts");
    assert_eq!(read(history, false), Some(said));
}

#[test]
fn the_location_determines_topic_and_addressee() {
    let thread = json!({"thread_ts": "1763600000.000100"});
    let mut in_bots_thread = thread.clone();
    in_bots_thread["parent_user_id"] = "UBOT".into();
    let direct = json!({"channel": "D1", "channel_type": "im"});
    let mut direct_thread = direct.clone();
    direct_thread["thread_ts"] = "1763600000.000100".into();
    let cases = [
        (json!({}), false, place(Some("1763630000.000100"), "C1"), false),
        (thread.clone(), false, place(Some("1763600000.000100"), "C1"), false),
        (thread, true, place(Some("1763600000.000100"), "C1"), true),
        (in_bots_thread, false, place(Some("1763600000.000100"), "C1"), true),
        (direct, false, place(None, "D1"), true),
        (direct_thread, false, place(Some("1763600000.000100"), "D1"), true),
        (
            json!({"channel_type": "mpim", "channel": "G1"}),
            false,
            place(Some("1763630000.000100"), "G1"),
            false,
        ),
    ];
    for (more, ours, address, addressed) in cases {
        let said = read(message(&more), ours).unwrap();
        assert_eq!((said.address, said.addressed), (address, addressed), "{more}");
    }
}

#[test]
fn messages_not_written_by_users_are_ignored() {
    for more in [
        json!({"bot_id": "B9"}),
        json!({"user": "UBOT"}),
        json!({"user": null}),
        json!({"subtype": "bot_message"}),
        json!({"subtype": "channel_join"}),
        json!({"text": " "}),
        json!({"channel": null}),
        json!({"type": "reaction_added"}),
        json!({"subtype": "message_changed"}),
        json!({"subtype": "message_changed", "message": {"user": "U1", "text": "a", "ts": "1.2"}, "previous_message": {"text": "a"}}),
        json!({"subtype": "message_changed", "message": {"bot_id": "B1", "user": "UBOT", "text": "b", "ts": "1.2"}, "previous_message": {"text": "a"}}),
    ] {
        assert_eq!(read(message(&more), false), None, "{more}");
    }
}

#[test]
fn edits_and_deletions_refer_to_the_message() {
    let edit = read(
        message(&json!({
            "subtype": "message_changed", "ts": "1763630009.000100", "event_ts": "1763630009.000100",
            "message": {"user": "U1", "text": "<@UBOT> new", "ts": "1763630000.000100", "edited": {"ts": "1763630008.000000"}},
            "previous_message": {"user": "U1", "text": "<@UBOT> old", "ts": "1763630000.000100"},
        })),
        false,
    )
    .unwrap();
    assert_eq!(edit.key.0, "eC1:1763630000.000100:1763630008.000000");
    assert_eq!(
        (edit.message.as_str(), edit.kind),
        ("1763630000.000100", InboundKind::Edit { text: "new".into() })
    );
    let gone = read(
        message(&json!({
            "subtype": "message_deleted", "deleted_ts": "1763630000.000100", "ts": "1763630009.000100",
            "previous_message": {"user": "U1", "text": "<@UBOT> old", "ts": "1763630000.000100"},
        })),
        false,
    )
    .unwrap();
    assert_eq!(
        (gone.key.0.as_str(), gone.kind, gone.addressed),
        ("dC1:1763630000.000100", InboundKind::Recall, true)
    );
}

#[test]
fn an_edit_concerns_the_bot_if_it_was_or_is_mentioned() {
    let cases = [
        ("hi", "ho", false),
        ("<@UBOT> hi", "hi", true),
        ("hi", "<@UBOT> hi", true),
        ("<@UBOT2> x", "y", false),
    ];
    for (before, now, addressed) in cases {
        let ts = "1763630000.000100";
        let edit = json!({
            "subtype": "message_changed", "message": {"user": "U1", "text": now, "ts": ts},
            "previous_message": {"user": "U1", "text": before, "ts": ts},
        });
        assert_eq!(read(message(&edit), false).unwrap().addressed, addressed, "{before} {now}");
        let gone = json!({
            "subtype": "message_deleted", "deleted_ts": ts,
            "previous_message": {"user": "U1", "text": before, "ts": ts},
        });
        assert_eq!(read(message(&gone), false).unwrap().addressed, before.starts_with("<@UBOT>"), "{before}");
    }
}

#[test]
fn files_have_their_url_or_their_id() {
    let files = json!({"subtype": "file_share", "text": "", "channel": "D1", "channel_type": "im", "files": [
        {"id": "F1", "name": "a.txt", "size": 3, "url_private": "https://files.slack.com/p", "url_private_download": "https://files.slack.com/d"},
        {"id": "F2", "title": "b", "file_access": "check_file_info"},
        {"id": "F3", "mode": "tombstone"},
    ]});
    let InboundKind::Message { attachments, .. } = read(message(&files), false).unwrap().kind else {
        panic!()
    };
    let file = |handle: &str, name: &str, size| Attachment { handle: handle.into(), name: name.into(), size };
    assert_eq!(attachments, [file("https://files.slack.com/d", "a.txt", Some(3)), file("id:F2", "b", None)]);
}

#[test]
fn a_press_follows_its_payload_and_no_value_changes_its_conversation() {
    let (me, commands) = (me(), commands());
    let decoder = SlackDecoder { account: "slack", me: &me, require_mention: true, commands: &commands };
    let press = |more: Value| {
        let mut payload = json!({
            "type": "block_actions", "user": {"id": "U1", "name": "ada", "team_id": "T2"},
            "container": {"message_ts": "2.000100", "channel_id": "C1", "thread_ts": "1.000100"},
            "channel": {"id": "C9"},
            "actions": [{"action_id": "pudu_0", "value": "/stop", "action_ts": "3.000100"}],
        });
        payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        decoder.press(&serde_json::from_value(payload).unwrap(), 7)
    };
    let pressed = press(json!({})).unwrap();
    assert_eq!(
        (pressed.key.0.as_str(), &pressed.address),
        ("pC1:2.000100:3.000100:U1", &place(Some("1.000100"), "C1"))
    );
    assert_eq!(
        (pressed.kind, pressed.hint),
        (InboundKind::Press { action: "/stop".into() }, Some(json!({"team": "T2"})))
    );
    for (container, thread) in [
        (json!({"message_ts": "2.000100", "channel_id": "C1"}), None),
        (json!({"message_ts": "2.000100", "channel_id": "C1", "thread_ts": "2.000100"}), None),
        (json!({"message_ts": "2.000100", "channel_id": "D1"}), None),
        (json!({"message_ts": "2.000100", "channel_id": "D1", "thread_ts": "1.000100"}), Some("1.000100")),
    ] {
        let pressed = press(json!({"container": container})).unwrap();
        assert_eq!((pressed.address.topic.as_deref(), pressed.reply_to.as_deref()), (thread, thread));
        assert_eq!(pressed.message, "2.000100", "the conversation is found by it: {container}");
    }
    for strange in [
        json!({"actions": [{"action_id": "other", "value": "/stop"}]}),
        json!({"actions": []}),
        json!({"container": null}),
        json!({"user": {}}),
        json!({"type": "view_submission"}),
    ] {
        assert_eq!(press(strange.clone()), None, "{strange}");
    }
}

#[test]
fn one_slack_command_covers_all_commands() {
    let cases = [
        ("/status", "", "/status"),
        ("/models", "gpt x", "/models gpt x"),
        ("/pudu", "", "/help"),
        ("/pudu", "status", "/status"),
        ("/pudu", "/status", "/status"),
        ("/pudu", "models gpt", "/models gpt"),
        ("/pudu", "/connect abc", "/connect abc"),
        ("/pudu", "status of the world", "status of the world"),
        ("/pudu", "what is new?", "what is new?"),
    ];
    for (command, words, text) in cases {
        assert_eq!(typed(command, words, &commands()), text, "{command} {words}");
    }
    let (me, commands) = (me(), commands());
    let decoder = SlackDecoder { account: "slack", me: &me, require_mention: true, commands: &commands };
    let slash = json!({"command": "/pudu", "text": "status", "channel_id": "D1", "user_id": "U1", "trigger_id": "9.8"});
    let said = decoder.slash(&serde_json::from_value(slash).unwrap(), 7).unwrap();
    assert_eq!((said.key.0.as_str(), said.private, said.addressed), ("c9.8", true, true));
    assert_eq!(said.address, place(None, "D1"));
}

#[test]
fn timestamps_become_milliseconds() {
    for (ts, time) in
        [("1763630000.123456", 1_763_630_000_123), ("7", 7000), ("7.5", 7500), ("x", 0), ("", 0)]
    {
        assert_eq!(millis(ts), time, "{ts}");
    }
}
