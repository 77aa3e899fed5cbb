use crate::fixture::{NOW, event, turn};
use pudu_store::{ChatConversations, ConversationRow, Db, NewInboxItem, NewTurn, StoreError, TurnId};

fn conversation(key: &str, thread: &str, updated: i64) -> ConversationRow {
    ConversationRow {
        key: key.into(),
        account: "telegram".into(),
        chat: "-100".into(),
        thread: thread.into(),
        model: None,
        mode: None,
        thinking: None,
        agent: None,
        updated,
    }
}

async fn bind(db: &Db, key: &str, thread: &str, now: i64) {
    db.bind(key, "telegram", "-100", &thread.into(), now).await.unwrap();
}

pub(crate) async fn a_chat_keeps_its_settings_in_a_new_thread(db: Db) {
    assert_eq!(db.conversation("telegram:-100").await.unwrap(), None);
    let unbound = db.set_model("telegram:-100", Some("gpt")).await;
    assert_eq!(unbound, Err(StoreError::Conflict("the conversation has no thread yet")));

    bind(&db, "telegram:-100", "first", NOW).await;
    db.set_model("telegram:-100", Some("gpt")).await.unwrap();
    db.set_mode("telegram:-100", Some("steer")).await.unwrap();
    db.set_thinking("telegram:-100", Some("low")).await.unwrap();
    db.set_agent("telegram:-100", Some("poet")).await.unwrap();
    bind(&db, "telegram:-100", "second", NOW + 1).await;
    let mut expected = conversation("telegram:-100", "second", NOW + 1);
    expected.model = Some("gpt".into());
    expected.mode = Some("steer".into());
    expected.thinking = Some("low".into());
    expected.agent = Some("poet".into());
    assert_eq!(db.conversation("telegram:-100").await.unwrap(), Some(expected.clone()));

    db.set_model("telegram:-100", None).await.unwrap();
    expected.model = None;
    assert_eq!(db.conversation("telegram:-100").await.unwrap(), Some(expected));
}

pub(crate) async fn the_most_recent_conversation_of_a_chat_is_found(db: Db) {
    let room =
        |topics| ChatConversations { account: "telegram", chat: "-100", base: "telegram:-100", topics };
    let latest = async |topics| db.latest(room(topics)).await.unwrap().map(|found| found.key);
    assert_eq!((latest(false).await, latest(true).await), (None, None));
    bind(&db, "telegram:-100:m5", "older", NOW).await;
    bind(&db, "telegram:-100:m6", "newer", NOW + 1).await;
    bind(&db, "telegram:-100:7", "topic", NOW + 2).await;
    db.bind("telegram:-200:m1", "telegram", "-200", &"other".into(), NOW + 2).await.unwrap();
    assert_eq!(latest(false).await.as_deref(), Some("telegram:-100:m6"), "topics are excluded");
    assert_eq!(latest(true).await.as_deref(), Some("telegram:-100:7"), "topics are included");
    let new_turn = NewTurn {
        conversation: "telegram:-100:m5".into(),
        folder: Some("older".into()),
        now: NOW + 3,
        ..turn("t", &[])
    };
    db.open_turn(&new_turn).await.unwrap();
    let both = (latest(false).await, latest(true).await);
    let m5 = || Some("telegram:-100:m5".to_owned());
    assert_eq!(both, (m5(), m5()), "it has a newer message");
}

pub(crate) async fn a_conversation_is_busy_until_its_reply_is_stored(db: Db) {
    let room =
        |topics| ChatConversations { account: "telegram", chat: "-100", base: "telegram:-100", topics };
    let at_work = async |topics| {
        let found = db.at_work(room(topics)).await.unwrap();
        found.into_iter().map(|(key, _)| key).collect::<Vec<_>>()
    };
    let works = |id: &str, key: &str, now| NewTurn {
        conversation: key.into(),
        folder: None,
        run: Some("run".into()),
        now,
        ..turn(id, &[])
    };
    bind(&db, "telegram:-100:m5", "chain", NOW).await;
    bind(&db, "telegram:-100:7", "topic", NOW).await;
    db.bind("telegram:-200:m1", "telegram", "-200", &"other".into(), NOW).await.unwrap();
    db.open_turn(&works("a", "telegram:-100:m5", NOW)).await.unwrap();
    db.open_turn(&works("b", "telegram:-100:7", NOW + 1)).await.unwrap();
    db.open_turn(&works("c", "telegram:-200:m1", NOW + 2)).await.unwrap();
    let new_turn =
        NewTurn { run: None, final_view: Some("{}".into()), ..works("d", "telegram:-100:m5", NOW + 3) };
    db.open_turn(&new_turn).await.unwrap();
    assert_eq!(at_work(true).await, ["telegram:-100:7", "telegram:-100:m5"], "newest first");
    assert_eq!(at_work(false).await, ["telegram:-100:m5"]);
    db.conclude(&TurnId("a".into()), "{}").await.unwrap();
    db.delivered(&TurnId("b".into()), None, false, NOW + 4).await.unwrap();
    assert_eq!(at_work(true).await, Vec::<String>::new());
}

pub(crate) async fn a_message_is_mapped_to_its_conversation(db: Db) {
    let of = async |message| db.conversation_of("telegram", "-100", message).await.unwrap();
    let ids = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    let accepted = NewInboxItem { message: Some("1".into()), ..event("update-1") };
    db.accept(&accepted).await.unwrap();
    assert_eq!(of("1").await, None, "its conversation is unknown");

    db.record("telegram", "-100", &ids(&["1"]), "talk", false, NOW).await.unwrap();
    db.record("telegram", "-100", &ids(&["2", "3"]), "talk", true, NOW + 1).await.unwrap();
    db.record("telegram", "-100", &ids(&["3"]), "talk:7", false, NOW + 2).await.unwrap();
    let press = NewInboxItem { message: Some("2".into()), at: NOW + 9, ..event("update-2") };
    db.accept(&press).await.unwrap();
    assert_eq!(of("1").await, Some(("talk".into(), false)));
    assert_eq!(of("2").await, Some(("talk".into(), true)), "a button press does not change its author");
    assert_eq!(of("3").await, Some(("talk:7".into(), true)), "moving it does not change its author");
    assert_eq!(db.conversation_of("telegram", "-200", "1").await.unwrap(), None);

    let known = async |account, since| {
        let known = db.known_since(account, since).await.unwrap();
        known.into_iter().map(|(chat, message)| format!("{chat}/{message}")).collect::<Vec<_>>()
    };
    assert_eq!(known("telegram", NOW).await, ["-100/1", "-100/2", "-100/3"]);
    assert_eq!(known("telegram", NOW + 1).await, ["-100/2", "-100/3"]);
    assert_eq!(known("slack", NOW).await, [""; 0]);
}
