//! The platform's pitfalls, one sentence each. In process, with a controlled clock.

use super::{
    Button, ChatId, Fault, Kind, MessageId, Options, Outcome, Pace, Paces, Post, Upload, UserId, View, When,
    core::Core, params::Params, world::World,
};
use crate::{Then, gate::Stop, stage::Reply};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, advance};

/// A server with one user, without HTTP.
struct Sim {
    core: Arc<Core>,
    ada: UserId,
    chat: ChatId,
}

fn sim() -> Sim {
    sim_with(Options::default())
}

fn sim_with(options: Options) -> Sim {
    let core = Arc::new(Core::new(World::new(options)));
    let ada = core.act(|world| world.add_person("Ada", Some("ada")));
    Sim { core, ada, chat: ChatId(ada.0) }
}

impl Sim {
    async fn reply(&self, method: &str, params: Value) -> Reply {
        let Value::Object(params) = params else { panic!("parameters are an object") };
        self.core.call(method, Params::from_json(params)).await
    }

    async fn body(&self, method: &str, params: Value) -> Value {
        match self.reply(method, params).await {
            Reply::Json(_, body) => body,
            other => panic!("{method}: {other:?}"),
        }
    }

    async fn ok(&self, method: &str, params: Value) -> Value {
        let body = self.body(method, params).await;
        assert_eq!(body["ok"], true, "{body}");
        body["result"].clone()
    }

    #[track_caller]
    fn refused(body: &Value, code: u16, text: &str) {
        assert_eq!(
            (body["error_code"].as_u64(), body["description"].as_str()),
            (Some(code.into()), Some(text))
        );
    }

    async fn send(&self, chat: ChatId, text: &str) -> i64 {
        let message = self.ok("sendMessage", json!({"chat_id": chat, "text": text})).await;
        message["message_id"].as_i64().unwrap()
    }

    fn say(&self, chat: ChatId, text: &str) -> MessageId {
        self.core.act(|world| world.say(chat, self.ada, &Post::text(text))).unwrap()[0]
    }

    fn texts(&self, chat: ChatId) -> Vec<String> {
        self.look(|view| view.transcript(chat).into_iter().map(|seen| seen.text).collect())
    }

    fn look<T>(&self, read: impl FnOnce(&View<'_>) -> T) -> T {
        self.core.look(|world| read(&View { world }))
    }

    fn group(&self, kind: Kind) -> ChatId {
        self.core.act(|world| world.add_chat(kind, "Deer", &[self.ada]))
    }
}

async fn updates(sim: &Sim, params: Value) -> Vec<String> {
    let found = sim.ok("getUpdates", params).await;
    let texts = found.as_array().unwrap().iter();
    texts.map(|update| update["message"]["text"].as_str().unwrap_or("?").to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_poll_waits_for_news_and_ends_empty_at_its_time() {
    let sim = sim();
    let start = Instant::now();
    assert_eq!(updates(&sim, json!({"timeout": 30})).await, [""; 0]);
    assert_eq!(start.elapsed(), Duration::from_secs(30));
    let say = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        sim.say(sim.chat, "hi");
    };
    let (found, ()) = tokio::join!(updates(&sim, json!({"timeout": "30"})), say);
    assert_eq!(found, ["hi"]);
    assert_eq!(start.elapsed(), Duration::from_secs(33));
}

#[tokio::test(start_paused = true)]
async fn a_second_poll_ends_the_first() {
    let sim = sim();
    let second = async {
        tokio::task::yield_now().await;
        updates(&sim, json!({"timeout": 1})).await
    };
    let (first, second) = tokio::join!(sim.body("getUpdates", json!({"timeout": 30})), second);
    let why =
        "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running";
    Sim::refused(&first, 409, why);
    assert_eq!(second, [""; 0]);
}

#[tokio::test]
async fn a_webhook_and_polls_exclude_each_other() {
    let sim = sim();
    sim.ok("setWebhook", json!({"url": "http://127.0.0.1:1/", "secret_token": "s"})).await;
    let body = sim.body("getUpdates", json!({})).await;
    let why = "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the \
               webhook first";
    Sim::refused(&body, 409, why);
    sim.ok("deleteWebhook", json!({})).await;
    sim.say(sim.chat, "hi");
    assert_eq!(updates(&sim, json!({})).await, ["hi"]);
}

#[tokio::test]
async fn private_chats_and_groups_share_message_numbers_and_a_supergroup_has_its_own() {
    let sim = sim();
    let (group, super_group) = (sim.group(Kind::Group), sim.group(Kind::Supergroup));
    let order = [sim.chat, group, super_group, sim.chat, super_group];
    let mut numbers = Vec::new();
    for chat in order {
        numbers.push(sim.send(chat, "x").await);
    }
    assert_eq!(numbers, [1, 2, 2, 3, 3]);
}

#[tokio::test]
async fn a_text_fits_by_its_utf16_units_after_parsing() {
    let sim = sim();
    let send = async |text: String| {
        let params = json!({"chat_id": sim.chat, "text": text, "parse_mode": "HTML"});
        sim.body("sendMessage", params).await["description"].as_str().unwrap_or("sent").to_owned()
    };
    let bold = format!("<b>{}</b>", "x".repeat(4096));
    let cases = [
        ("x".repeat(4096), "sent"),
        (bold, "sent"),
        ("🦌".repeat(2048), "sent"),
        ("x".repeat(4097), "Bad Request: message is too long"),
        ("🦌".repeat(2049), "Bad Request: message is too long"),
        (String::new(), "Bad Request: message text is empty"),
        ("<b> </b>".to_owned(), "Bad Request: text must be non-empty"),
        (
            "<b>x".to_owned(),
            "Bad Request: can't parse entities: Can't find end tag corresponding to start tag \"b\"",
        ),
    ];
    for (text, expected) in cases {
        let start: String = text.chars().take(20).collect();
        assert_eq!(send(text).await, expected, "{start}");
    }
}

#[tokio::test]
async fn an_edit_too_long_is_refused_in_other_words() {
    let sim = sim();
    let id = sim.send(sim.chat, "x").await;
    let text = "x".repeat(4097);
    let body =
        sim.body("editMessageText", json!({"chat_id": sim.chat, "message_id": id, "text": text})).await;
    Sim::refused(&body, 400, "Bad Request: MESSAGE_TOO_LONG");
}

#[tokio::test]
async fn only_an_own_message_is_edited_and_only_to_something_else() {
    let sim = sim();
    let own = sim.send(sim.chat, "one").await;
    let theirs = sim.say(sim.chat, "hi");
    let edit = async |id: i64, text: &str| {
        sim.body("editMessageText", json!({"chat_id": sim.chat, "message_id": id, "text": text})).await
    };
    Sim::refused(&edit(theirs.0, "x").await, 400, "Bad Request: message can't be edited");
    Sim::refused(&edit(99, "x").await, 400, "Bad Request: message to edit not found");
    let same = "Bad Request: message is not modified: specified new message content and reply markup are exactly \
                the same as a current content and reply markup of the message";
    Sim::refused(&edit(own, "one").await, 400, same);
    assert_eq!(edit(own, "two").await["result"]["text"], "two");
    sim.ok("deleteMessage", json!({"chat_id": sim.chat, "message_id": own})).await;
    Sim::refused(&edit(own, "three").await, 400, "Bad Request: message to edit not found");
    let history: Vec<_> = sim.look(|view| view.history(sim.chat, MessageId(own)));
    assert_eq!(history.into_iter().map(|shown| shown.text).collect::<Vec<_>>(), ["one", "two"]);
    assert_eq!(sim.texts(sim.chat), ["hi"]);
}

#[tokio::test]
async fn an_edit_without_buttons_takes_them_away_and_a_press_reaches_the_bot() {
    let sim = sim();
    let button = Button { text: "Yes".to_owned(), callback_data: Some("y".to_owned()), url: None };
    let markup = json!({"inline_keyboard": [[button]]});
    let sent =
        sim.ok("sendMessage", json!({"chat_id": sim.chat, "text": "sure?", "reply_markup": markup})).await;
    let id = sent["message_id"].as_i64().unwrap();
    let query = sim.core.act(|world| world.press(sim.chat, sim.ada, MessageId(id), "Yes")).unwrap();
    let update = sim.ok("getUpdates", json!({})).await[0]["callback_query"].clone();
    assert_eq!((update["id"].as_str(), update["data"].as_str()), (Some(query.as_str()), Some("y")));
    sim.ok("answerCallbackQuery", json!({"callback_query_id": query, "text": "fine"})).await;
    assert_eq!(sim.look(|view| view.presses()[0].answer.clone()), Some("fine".to_owned()));
    let old = "Bad Request: query is too old and response timeout expired or query ID is invalid";
    Sim::refused(&sim.body("answerCallbackQuery", json!({"callback_query_id": "7"})).await, 400, old);
    sim.ok("editMessageText", json!({"chat_id": sim.chat, "message_id": id, "text": "sure?"})).await;
    assert_eq!(sim.look(|view| view.transcript(sim.chat)[0].buttons.len()), 0);
}

#[tokio::test]
async fn callback_data_has_at_most_64_bytes() {
    let sim = sim();
    let send = async |data: String| {
        let markup = json!({"inline_keyboard": [[{"text": "b", "callback_data": data}]]});
        sim.body("sendMessage", json!({"chat_id": sim.chat, "text": "x", "reply_markup": markup.to_string()}))
            .await
    };
    assert_eq!(send("x".repeat(64)).await["ok"], true);
    Sim::refused(&send("ü".repeat(33)).await, 400, "Bad Request: BUTTON_DATA_INVALID");
    Sim::refused(&send(String::new()).await, 400, "Bad Request: BUTTON_DATA_INVALID");
}

#[tokio::test]
async fn a_reply_needs_its_message_unless_it_may_do_without() {
    let sim = sim();
    let send = async |reply: Value| {
        let mut params = json!({"chat_id": sim.chat, "text": "x"});
        params.as_object_mut().unwrap().extend(reply.as_object().unwrap().clone());
        sim.body("sendMessage", params).await
    };
    let missing = "Bad Request: message to be replied not found";
    Sim::refused(&send(json!({"reply_parameters": {"message_id": 9}})).await, 400, missing);
    Sim::refused(&send(json!({"reply_to_message_id": 9})).await, 400, missing);
    let sent =
        send(json!({"reply_parameters": {"message_id": 9, "allow_sending_without_reply": true}})).await;
    assert_eq!(sent["result"]["reply_to_message"], Value::Null);
    let to = sim.say(sim.chat, "hi");
    let sent = send(json!({"reply_parameters": {"message_id": to}})).await;
    assert_eq!(sent["result"]["reply_to_message"]["text"], "hi");
}

#[tokio::test]
async fn a_topic_must_exist_and_the_general_one_has_no_number() {
    let sim = sim();
    let forum = sim.group(Kind::Forum);
    let topic = sim.core.act(|world| world.open_topic(forum, "Antlers")).unwrap();
    let send = async |thread: Value| {
        sim.body("sendMessage", json!({"chat_id": forum, "text": "x", "message_thread_id": thread})).await
    };
    let sent = send(json!(topic)).await["result"].clone();
    assert_eq!((&sent["message_thread_id"], &sent["is_topic_message"]), (&json!(topic), &json!(true)));
    assert_eq!(send(Value::Null).await["result"]["message_thread_id"], Value::Null);
    Sim::refused(&send(json!(99)).await, 400, "Bad Request: message thread not found");
    let general = sim.group(Kind::Forum);
    let body =
        sim.body("sendMessage", json!({"chat_id": general, "text": "x", "message_thread_id": 1})).await;
    Sim::refused(&body, 400, "Bad Request: message thread not found");
}

#[tokio::test]
async fn a_reply_in_a_plain_supergroup_carries_a_thread_that_is_no_topic() {
    let sim = sim();
    let group = sim.group(Kind::Supergroup);
    let first = sim.say(group, "one");
    let reply = Post::text("two").reply_to(first);
    sim.core.act(|world| world.say(group, sim.ada, &reply)).unwrap();
    let found = sim.ok("getUpdates", json!({})).await;
    let message = &found[1]["message"];
    assert_eq!((&message["message_thread_id"], &message["is_topic_message"]), (&json!(first), &Value::Null));
}

#[tokio::test]
async fn privacy_hides_what_is_not_meant_for_the_bot() {
    let sim = sim_with(Options { privacy: true, ..Options::default() });
    let group = sim.group(Kind::Group);
    let bots = MessageId(sim.send(group, "I am here").await);
    for text in ["chatter", "/new", "/new@other_bot", "/new@pudu_bot", "hey @Pudu_Bot", "hey @other"] {
        sim.say(group, text);
    }
    sim.core.act(|world| world.say(group, sim.ada, &Post::text("a reply").reply_to(bots))).unwrap();
    sim.say(sim.chat, "in private");
    let seen = updates(&sim, json!({})).await;
    assert_eq!(seen, ["/new", "/new@pudu_bot", "hey @Pudu_Bot", "a reply", "in private"]);
}

#[tokio::test(start_paused = true)]
async fn too_many_sends_are_told_to_wait_and_have_no_effect() {
    let sim = sim();
    let second = Duration::from_secs(1);
    sim.core.act(|world| {
        world.meter.paces = Paces { private: Some(Pace { count: 1, per: 3 * second }), ..Paces::default() }
    });
    sim.send(sim.chat, "one").await;
    advance(second).await;
    let body = sim.body("sendMessage", json!({"chat_id": sim.chat, "text": "two"})).await;
    assert_eq!(
        body,
        json!({
            "ok": false, "error_code": 429, "description": "Too Many Requests: retry after 2",
            "parameters": {"retry_after": 2},
        })
    );
    assert_eq!(sim.texts(sim.chat), ["one"]);
    advance(2 * second).await;
    sim.send(sim.chat, "two").await;
}

#[tokio::test]
async fn a_cut_comes_before_the_effect_or_after_it() {
    let sim = sim();
    for (fault, outcome) in
        [(Fault::CutBefore, Outcome::Cut { done: false }), (Fault::CutAfter, Outcome::Cut { done: true })]
    {
        sim.core.act(|world| world.books.faults.fail_nth("sendMessage", 1, fault.clone()));
        let reply =
            sim.reply("sendMessage", json!({"chat_id": sim.chat, "text": format!("{fault:?}")})).await;
        assert_eq!(reply, Reply::Cut);
        assert_eq!(sim.look(|view| view.calls().next_back().map(|call| call.outcome.clone())), Some(outcome));
    }
    assert_eq!(sim.texts(sim.chat), ["CutAfter"]);
}

#[tokio::test]
async fn a_held_call_stands_until_it_is_let_go() {
    let sim = sim();
    let mut hold = sim.core.act(|world| world.books.faults.hold("sendMessage", 2, When::After));
    sim.send(sim.chat, "one").await;
    let test = async {
        let call = hold.reached().await.unwrap();
        let standing = (call.method, call.outcome, sim.texts(sim.chat));
        hold.cut();
        standing
    };
    let (reply, standing) =
        tokio::join!(sim.reply("sendMessage", json!({"chat_id": sim.chat, "text": "two"})), test);
    let texts = vec!["one".to_owned(), "two".to_owned()];
    assert_eq!(standing, ("sendMessage".to_owned(), Outcome::Running, texts));
    assert_eq!(reply, Reply::Cut);
}

#[tokio::test]
async fn a_hook_before_the_effect_can_prevent_it() {
    let sim = sim();
    let hook = Stop::Hook(Box::new(|_: &super::Call| Then::Cut));
    sim.core.act(|world| world.books.faults.stop("sendMessage", 1, When::Before, hook));
    assert_eq!(sim.reply("sendMessage", json!({"chat_id": sim.chat, "text": "x"})).await, Reply::Cut);
    assert_eq!(sim.texts(sim.chat), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn typing_fades_after_five_seconds_or_with_a_message() {
    let sim = sim();
    let typing = json!({"chat_id": sim.chat, "action": "typing"});
    sim.ok("sendChatAction", typing.clone()).await;
    let action = || sim.look(|view| view.action(sim.chat));
    assert_eq!(action(), Some("typing".to_owned()));
    advance(Duration::from_secs(5)).await;
    assert_eq!(action(), None);
    sim.ok("sendChatAction", typing).await;
    sim.send(sim.chat, "x").await;
    assert_eq!(action(), None);
}

#[tokio::test(start_paused = true)]
async fn a_draft_is_for_private_chats_fades_and_gives_way_to_a_message() {
    let sim = sim();
    let draft = async |chat: ChatId| {
        sim.body("sendMessageDraft", json!({"chat_id": chat, "draft_id": 7, "text": "hel"})).await
    };
    draft(sim.chat).await;
    let shown = || sim.look(|view| view.draft(sim.chat));
    assert_eq!(shown(), Some("hel".to_owned()));
    advance(Duration::from_secs(30)).await;
    assert_eq!(shown(), None);
    draft(sim.chat).await;
    sim.send(sim.chat, "hello").await;
    assert_eq!(shown(), None);
    assert_eq!(draft(sim.group(Kind::Group)).await["error_code"], 400);
    let old = sim_with(Options { drafts: false, ..Options::default() });
    assert_eq!(old.body("sendMessageDraft", json!({})).await["error_code"], 404);
}

#[tokio::test]
async fn a_blocked_bot_and_a_migrated_group_refuse_in_their_own_ways() {
    let sim = sim();
    let group = sim.group(Kind::Group);
    let new = sim.core.act(|world| world.migrate(group)).unwrap();
    let body = sim.body("sendMessage", json!({"chat_id": group, "text": "x"})).await;
    assert_eq!(body["parameters"], json!({"migrate_to_chat_id": new}));
    sim.core.act(|world| world.set_access(sim.chat, super::Access::Blocked)).unwrap();
    let body = sim.body("sendMessage", json!({"chat_id": sim.chat, "text": "x"})).await;
    Sim::refused(&body, 403, "Forbidden: bot was blocked by the user");
    let body = sim.body("sendMessage", json!({"chat_id": 77, "text": "x"})).await;
    Sim::refused(&body, 400, "Bad Request: chat not found");
}

#[tokio::test]
async fn a_file_over_20_mb_is_announced_but_not_handed_out() {
    let sim = sim();
    let mib = 1024 * 1024;
    let album = Post::text("look")
        .file(Upload::document("big.bin", "application/zip", vec![0; 20 * mib + 1]))
        .file(Upload::photo(vec![0; 10]));
    sim.core.act(|world| world.say(sim.chat, sim.ada, &album)).unwrap();
    let found = sim.ok("getUpdates", json!({})).await;
    let (big, small) = (&found[0]["message"], &found[1]["message"]);
    assert_eq!((&big["caption"], &big["document"]["file_size"]), (&json!("look"), &json!(20 * mib + 1)));
    assert_eq!((&small["caption"], &small["media_group_id"]), (&Value::Null, &big["media_group_id"]));
    let body = sim.body("getFile", json!({"file_id": big["document"]["file_id"]})).await;
    Sim::refused(&body, 400, "Bad Request: file is too big");
    let file = sim.ok("getFile", json!({"file_id": small["photo"][1]["file_id"]})).await;
    assert_eq!(file["file_size"], 10);
}

#[tokio::test]
async fn only_known_emoji_are_reactions() {
    let sim = sim();
    let id = sim.say(sim.chat, "hi");
    let react = async |emoji: &str| {
        let reaction = json!([{"type": "emoji", "emoji": emoji}]);
        sim.body("setMessageReaction", json!({"chat_id": sim.chat, "message_id": id, "reaction": reaction}))
            .await
    };
    Sim::refused(&react("✅").await, 400, "Bad Request: REACTION_INVALID");
    react("👀").await;
    assert_eq!(sim.look(|view| view.transcript(sim.chat)[0].reactions.clone()), ["👀"]);
}

#[tokio::test]
async fn a_method_is_found_in_any_case_and_an_unknown_one_is_refused_and_recorded() {
    let sim = sim();
    assert_eq!(sim.ok("GETME", json!({})).await["username"], "pudu_bot");
    Sim::refused(&sim.body("sendDice", json!({})).await, 404, "Not Found: method not found");
    assert_eq!(sim.look(|view| (view.count("getMe"), view.count("sendDice"))), (1, 1));
}
