use super::*;
use crate::PointedAt;
use serde_json::{Value, json};

const ME: &str = "1000000000000000001";
const ADA: &str = "1100000000000000000";
const ID: &str = "1100000000000000001";
const AT: i64 = 1_682_330_837_011;

struct Bench {
    me: DiscordIdentity,
    rules: ListenRules,
    places: GuildCache,
    commands: Vec<ChatCommand>,
}

impl Bench {
    fn new(rules: ListenRules) -> Self {
        let places = GuildCache::default();
        let guild = json!({
            "id": "1", "channels": [{"id": "2", "type": 0, "name": "team"}, {"id": "4", "type": 2, "name": "voice"}],
            "threads": [
                {"id": "30", "type": 11, "name": "ours", "parent_id": "2", "owner_id": ME},
                {"id": "31", "type": 11, "name": "theirs", "parent_id": "2", "owner_id": ADA},
            ],
            "roles": [{"id": "5", "name": "pudu", "tags": {"bot_id": ME}}],
        });
        places.guild(serde_json::from_value(guild).unwrap(), ME);
        let me = DiscordIdentity { user: ME.into(), application: ME.into(), name: "pudu".into() };
        let command = |name: &str| ChatCommand {
            name: name.into(),
            argument: String::new(),
            help: String::new(),
            translations: Vec::new(),
        };
        Self { me, rules, places, commands: vec![command("stop"), command("mode")] }
    }

    fn place(&self, channel: &str) -> CachedChannel {
        self.places.get(channel).unwrap_or_default()
    }

    fn decoder(&self) -> DiscordDecoder<'_> {
        let Self { me, rules, places, commands } = self;
        DiscordDecoder { account: "d", me, rules, places, commands }
    }

    fn hear(&self, message: &Value) -> Option<Inbound> {
        let message: DiscordMessage = serde_json::from_value(message.clone()).unwrap();
        self.decoder().message(&message, &self.place(&message.channel_id))
    }

    fn edit(&self, message: &Value) -> Option<Inbound> {
        let message: DiscordMessage = serde_json::from_value(message.clone()).unwrap();
        self.decoder().edit(&message, &self.place(&message.channel_id))
    }

    fn interact(&self, interaction: &Value) -> Option<Inbound> {
        let interaction: Interaction = serde_json::from_value(interaction.clone()).unwrap();
        let location = self.place(interaction.channel_id.as_deref().unwrap_or_default());
        self.decoder().interaction(&interaction, &location, 7)
    }
}

fn mentions_needed() -> ListenRules {
    ListenRules { require_mention: true, ..ListenRules::default() }
}

/// Returns a message by Ada in a channel of the server, with changed fields.
fn said(channel: &str, content: &str, more: Value) -> Value {
    let mut message = json!({
        "id": ID, "channel_id": channel, "guild_id": "1", "type": 0, "content": content,
        "author": {"id": ADA, "username": "ada", "global_name": "Ada"}, "member": {"nick": null},
        "timestamp": "2026-11-20T10:00:00.000000+00:00", "edited_timestamp": null, "mentions": [], "attachments": [],
    });
    if let Value::Object(more) = more {
        more.into_iter().for_each(|(key, value)| message[key] = value);
    }
    message
}

fn named() -> Value {
    json!({"mentions": [{"id": ME, "username": "pudu"}]})
}

fn text(inbound: &Inbound) -> &str {
    match &inbound.kind {
        InboundKind::Message { text, .. } | InboundKind::Edit { text } => text,
        _ => "",
    }
}

#[test]
fn a_mention_in_a_channel_is_decoded_like_this() {
    let file = json!({"id": "9", "filename": "../a.csv", "size": 3, "url": "https://cdn.discordapp.com/a"});
    let mut more = named();
    more["attachments"] = json!([file]);
    more["message_reference"] = json!({"message_id": "8", "channel_id": "2"});
    more["member"] = json!({"nick": "Ada the first"});
    let handle =
        r#"{"channel":"2","message":"1100000000000000001","file":"9","url":"https://cdn.discordapp.com/a"}"#;
    let expected = Inbound {
        key: EventKey(format!("m{ID}")),
        address: Address { account: "d".into(), chat: "2".into(), topic: None },
        private: false,
        message: ID.into(),
        reply_to: Some("8".into()),
        sender: Sender { id: ADA.into(), name: "Ada the first".into(), language: None },
        addressed: true,
        at: AT,
        pointed: vec![PointedAt::unread(PointedKind::Reply, "/2/8")],
        hint: None,
        kind: InboundKind::Message {
            text: "look at #team".into(),
            attachments: vec![Attachment { handle: handle.into(), name: "a.csv".into(), size: Some(3) }],
            album: None,
        },
    };
    let bench = Bench::new(mentions_needed());
    assert_eq!(bench.hear(&said("2", &format!("<@{ME}> look at <#2>"), more)), Some(expected));
}

#[test]
fn place_and_text_determine_whether_the_bot_is_addressed() {
    let open =
        |channel: &str| ListenRules { open_channels: [channel.to_owned()].into(), ..mentions_needed() };
    let answers = |author: &str| {
        json!({
            "type": 19, "message_reference": {"message_id": "8"},
            "referenced_message": {"id": "8", "channel_id": "2", "author": {"id": author}},
        })
    };
    let passed_on = json!({
        "message_reference": {"type": 1, "message_id": "8"},
        "referenced_message": {"id": "8", "channel_id": "2", "author": {"id": ME}},
    });
    let cases = [
        (mentions_needed(), said("2", "hi", json!({})), false),
        (mentions_needed(), said("2", "hi", named()), true),
        (mentions_needed(), said("2", "hi", json!({"mention_roles": ["5"]})), true),
        (
            mentions_needed(),
            said("2", "hi", json!({"mention_roles": ["6"], "mention_everyone": true})),
            false,
        ),
        (mentions_needed(), said("2", "hi", answers(ME)), true),
        (mentions_needed(), said("2", "hi", answers("77")), false),
        (mentions_needed(), said("2", "hi", passed_on), false),
        (mentions_needed(), said("30", "hi", json!({})), true),
        (mentions_needed(), said("31", "hi", json!({})), false),
        (mentions_needed(), said("2", "hi", json!({"guild_id": null})), true),
        (open("2"), said("2", "hi", json!({})), true),
        (open("2"), said("31", "hi", json!({})), true),
        (open("3"), said("2", "hi", json!({})), false),
        (ListenRules::default(), said("2", "hi", json!({})), true),
    ];
    for (rules, message, expected) in cases {
        let decoded = Bench::new(rules.clone()).hear(&message).unwrap();
        assert_eq!(decoded.addressed, expected, "{rules:?} {message}");
    }
}

#[test]
fn a_thread_is_a_topic_of_its_channel_and_a_private_chat_is_one_conversation() {
    let address = |chat: &str, topic: Option<&str>| Address {
        account: "d".into(),
        chat: chat.into(),
        topic: topic.map(Into::into),
    };
    let threads = ListenRules { threads: true, ..mentions_needed() };
    let cases = [
        (mentions_needed(), "2", named(), address("2", None), false, None),
        (mentions_needed(), "31", named(), address("2", Some("31")), false, None),
        (mentions_needed(), "99", json!({"guild_id": null}), address("99", None), true, None),
        (threads.clone(), "2", named(), address("2", Some(ID)), false, Some("plan the trip")),
        (threads.clone(), "2", json!({}), address("2", None), false, None),
        (threads.clone(), "31", named(), address("2", Some("31")), false, None),
        (threads.clone(), "4", named(), address("4", None), false, None),
        (threads.clone(), "99", json!({"guild_id": null}), address("99", None), true, None),
    ];
    let threaded = Bench::new(threads);
    for (text, thread) in [("/stop", false), ("/Mode steer", false), ("/poem about it", true), ("stop", true)]
    {
        let address = threaded.hear(&said("2", text, named())).unwrap().address;
        assert_eq!(address.topic.is_some(), thread, "{text}: the talk about a command needs no thread");
    }
    for (rules, channel, more, expected, private, title) in cases {
        let decoded = Bench::new(rules).hear(&said(channel, "plan the trip\nsoon", more)).unwrap();
        assert_eq!((decoded.address, decoded.private), (expected, private), "{channel}");
        let hint = title.and_then(|name| DiscordHint::Thread { name: name.to_owned() }.to_json());
        assert_eq!(decoded.hint, hint, "{channel}");
    }
}

#[test]
fn messages_for_others_are_ignored() {
    let guilds = ListenRules { guilds: Some(["7".to_owned()].into()), ..ListenRules::default() };
    let own = json!({"author": {"id": ME, "bot": true}});
    let cases = [
        (ListenRules::default(), said("2", "hi", own)),
        (ListenRules::default(), said("2", "hi", json!({"author": {"id": "77", "bot": true}}))),
        (ListenRules::default(), said("2", "hi", json!({"webhook_id": "77"}))),
        (ListenRules::default(), said("2", "hi", json!({"author": null}))),
        (ListenRules::default(), said("2", "Ada joined", json!({"type": 7}))),
        (ListenRules::default(), said("2", "a name", json!({"type": 18}))),
        (mentions_needed(), said("2", "", json!({}))),
        (guilds.clone(), said("2", "hi", named())),
        (guilds, said("99", "hi", json!({"guild_id": null}))),
    ];
    for (rules, message) in cases {
        assert_eq!(Bench::new(rules).hear(&message), None, "{message}");
    }
}

#[test]
fn stickers_and_polls_become_text() {
    let bench = Bench::new(ListenRules::default());
    let decoded =
        bench.hear(&said("2", "so", json!({"sticker_items": [{"id": "1", "name": "Wave"}]}))).unwrap();
    assert_eq!(text(&decoded), "so\n[sticker: Wave]");
    let answers = json!([{"answer_id": 1, "poll_media": {"text": "yes"}}, {"answer_id": 2, "poll_media": {"text": "no"}}]);
    let results = json!({"answer_counts": [{"id": 1, "count": 3}]});
    let poll = json!({"question": {"text": "Tea?"}, "answers": answers, "results": results});
    let decoded = bench.hear(&said("2", "", json!({"poll": poll}))).unwrap();
    assert_eq!(text(&decoded), "[Poll: Tea? (yes: 3 / no)]");
}

#[test]
fn a_changed_text_is_an_edit_and_a_preview_is_not() {
    let bench = Bench::new(ListenRules::default());
    let at = "2026-11-20T10:01:00.000000+00:00";
    let edited = bench.edit(&said("2", "second", json!({"edited_timestamp": at}))).unwrap();
    assert_eq!((edited.key.0.as_str(), text(&edited)), (format!("e{ID}:{at}").as_str(), "second"));
    assert_eq!(edited.message, ID);
    assert_eq!(bench.edit(&said("2", "first", json!({"embeds": [{}]}))), None);
}

#[test]
fn buttons_and_commands_have_the_sender_and_channel_that_discord_reports() {
    let bench = Bench::new(ListenRules::default());
    let interaction = |more: Value| {
        let mut interaction = json!({
            "id": ID, "application_id": ME, "token": "tok", "channel_id": "31", "guild_id": "1",
            "member": {"nick": null, "user": {"id": ADA, "username": "ada", "global_name": "Ada"}},
        });
        if let Value::Object(more) = more {
            more.into_iter().for_each(|(key, value)| interaction[key] = value);
        }
        interaction
    };
    let press = |author: &str| {
        let message = json!({"id": "8", "channel_id": "555", "author": {"id": author}});
        interaction(json!({"type": 3, "data": {"custom_id": "/stop"}, "message": message}))
    };
    let expected = Inbound {
        key: EventKey(format!("i{ID}")),
        address: Address { account: "d".into(), chat: "2".into(), topic: Some("31".into()) },
        private: false,
        message: "8".into(),
        reply_to: None,
        sender: Sender { id: ADA.into(), name: "Ada".into(), language: None },
        addressed: true,
        at: AT,
        pointed: Vec::new(),
        hint: None,
        kind: InboundKind::Press { action: "/stop".into() },
    };
    assert_eq!(bench.interact(&press(ME)), Some(expected.clone()));
    assert_eq!(bench.interact(&press("77")), None, "another bot's message");
    let mut chinese = press(ME);
    chinese["locale"] = json!("zh-CN");
    let sender = Sender { language: Some("zh-CN".into()), ..expected.sender.clone() };
    assert_eq!(bench.interact(&chinese), Some(Inbound { sender, ..expected.clone() }));
    let command = interaction(
        json!({"type": 2, "data": {"name": "mode", "options": [{"name": "words", "value": "steer"}]}}),
    );
    let kind = InboundKind::Message { text: "/mode steer".into(), attachments: Vec::new(), album: None };
    let expected_command =
        Inbound { message: ID.into(), hint: DiscordHint::answer("tok", 7).to_json(), kind, ..expected };
    assert_eq!(bench.interact(&command), Some(expected_command));
    let private =
        json!({"type": 2, "data": {"name": "new"}, "guild_id": null, "member": null, "channel_id": "99"});
    let mut private = interaction(private);
    private["user"] = json!({"id": ADA, "username": "ada"});
    let decoded = bench.interact(&private).unwrap();
    assert_eq!((decoded.private, decoded.address.chat.as_str(), text(&decoded)), (true, "99", "/new"));
    for strange in [
        json!({"type": 5}),
        json!({"type": 2, "data": {}}),
        json!({"type": 3}),
        json!({"type": 2, "member": null, "data": {"name": "x"}}),
    ] {
        assert_eq!(bench.interact(&interaction(strange.clone())), None, "{strange}");
    }
    let mut submitted = press(ME);
    (submitted["type"], submitted["data"]) = (json!(5), json!({"custom_id": "pudu_form", "components": 7}));
    let kind = InboundKind::Submit { text: String::new(), attachments: Vec::new() };
    assert_eq!(bench.interact(&submitted).map(|inbound| inbound.kind), Some(kind));
    submitted["data"]["custom_id"] = json!("other");
    assert_eq!(bench.interact(&submitted), None);
    let elsewhere =
        Bench::new(ListenRules { guilds: Some(["7".to_owned()].into()), ..ListenRules::default() });
    assert_eq!(elsewhere.interact(&command), None, "a server that is not listed");
}

#[test]
fn a_thread_is_named_by_the_first_words() {
    let bench = Bench::new(ListenRules::default());
    let title = |content: &str| {
        let message: DiscordMessage = serde_json::from_value(said("2", content, json!({}))).unwrap();
        bench.decoder().title(&message)
    };
    assert_eq!(title(&format!("<@{ME}> plan the trip\nto the sea")), "plan the trip");
    assert_eq!(title(""), "pudu");
    let long = title(&"word ".repeat(40));
    assert!(long.chars().count() <= NAME + 1 && long.ends_with("word…"), "{long}");
}
