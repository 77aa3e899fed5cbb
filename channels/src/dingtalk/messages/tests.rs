use super::*;
use crate::render::parse;

#[test]
fn what_is_kept_of_a_message_is_stored_like_this() {
    let posted = Posted {
        id: "p-key-seal".into(),
        card: true,
        done: false,
        nth: 3,
        shows: "aa".into(),
        buttons: "bb".into(),
    };
    let stored =
        json!({"id": "p-key-seal", "card": true, "done": false, "nth": 3, "shows": "aa", "buttons": "bb"});
    assert_eq!(serde_json::to_value(&posted).unwrap(), stored);
    assert_eq!(serde_json::from_value::<Posted>(stored).unwrap(), posted);
    let bare = |card| Posted { card, ..serde_json::from_value(json!({"id": "x"})).unwrap() };
    assert_eq!(serde_json::from_value::<Posted>(json!({"id": "x"})).unwrap(), bare(false));
    assert_eq!(Posted::from_id("g-k-s").map(|posted| posted.card), Some(true));
    assert_eq!(Posted::from_id("pqk1").map(|posted| posted.card), Some(false));
}

/// The messages of a reply to a person with this hint, under a configuration with cards or without.
fn messages(private: bool, hint: Option<Value>, cards: bool) -> DingMessages {
    let url = |text: &str| url::Url::parse(text).unwrap();
    let style =
        crate::dingtalk::CardStyle { template: "t".into(), content_key: "content".into(), buttons_key: None };
    let config = crate::dingtalk::Config {
        account: "dingtalk".into(),
        client_id: "ding1".into(),
        client_secret: "secret".into(),
        robot_code: "ding1".into(),
        api_url: url("http://127.0.0.1:9"),
        oapi_url: url("http://127.0.0.1:9"),
        card: cards.then_some(style),
        stream_interval: Duration::from_millis(800),
        group_conversations: crate::dingtalk::GroupConversations::Group,
    };
    let channel = crate::dingtalk::DingTalk::new(config).unwrap();
    let placement = Placement {
        address: Address { account: "dingtalk".into(), chat: "c".into(), topic: None },
        private,
        reply_to: None,
        sender: "u".into(),
        hint,
        saved: None,
    };
    DingMessages::new(Arc::clone(&channel.office), &placement)
}

#[test]
fn a_reply_knows_whom_it_reaches_and_how() {
    let check = |private, hint: Option<Value>, target: Target, grows| {
        let messages = messages(private, hint, true);
        assert_eq!((&messages.robot.target, messages.grows()), (&target, grows));
    };
    check(true, None, Target::Person("c".into()), true);
    check(true, Some(json!({"staff": true})), Target::Person("c".into()), true);
    check(true, Some(json!({"staff": false})), Target::Session, false);
    check(false, Some(json!({"staff": false})), Target::Group("c".into()), true);
    check(true, Some(json!("garbage")), Target::Person("c".into()), true);
    assert!(!messages(true, None, false).grows());
}

#[test]
fn changes_come_slower_the_more_there_were() {
    let mut messages = messages(true, None, true);
    let mut interval = |changes| {
        messages.changes = changes;
        messages.interval().as_millis()
    };
    assert_eq!([0, 59, 60, 120, 299].map(&mut interval), [800, 800, 1600, 3200, 12_800]);
    assert_eq!(interval(u32::MAX), 30_000);
}

#[tokio::test]
async fn a_message_that_cannot_change_waits_for_the_end_and_then_makes_room() {
    let mut messages = messages(true, None, false);
    let draft = |text: &str, done| Draft { rich: parse(text), done, ..Draft::default() };
    let page = |text: &str, done| Page::new(&draft(text, done));
    let mut sent = Posted { id: "k".into(), shows: "x".into(), ..Posted::from_id("k").unwrap() };
    assert_eq!(messages.edit(&mut sent, &page("more", false)).await, Ok(()));
    assert_eq!(messages.edit(&mut sent, &page("all", true)).await, Err(CallError::Gone));
    let whole = page("all", true);
    let mut answer =
        Posted { done: true, shows: digest(&[&whole.text]), buttons: digest(&[&whole.buttons()]), ..sent };
    assert_eq!(messages.edit(&mut answer, &whole).await, Ok(()), "after a restart it is not sent again");
}
