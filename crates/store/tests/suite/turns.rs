use crate::fixture::{NOW, accept, turn};
use pudu_store::{
    ChoiceOutcome, Db, Delivered, InboxItemId, NewTurn, ShownReply, StoreError, TurnId, TurnRow,
};

const SETTLED: StoreError = StoreError::Conflict("the turn is unknown or settled");
const TAKEN: StoreError = StoreError::Conflict("the event is done or has another turn");

fn id(text: &str) -> TurnId {
    TurnId(text.into())
}

/// The row of a new turn.
fn row(new: NewTurn) -> TurnRow {
    TurnRow {
        id: new.id,
        conversation: new.conversation,
        account: new.account,
        thread: new.folder.map(|folder| folder.thread),
        run: new.run,
        reply_target: new.reply_target,
        items: new.items,
        handle: None,
        final_view: new.final_view,
        attempts: 0,
        next_at: new.now,
        created: new.now,
    }
}

fn shown_reply(handle: &str, messages: &[&str]) -> ShownReply {
    ShownReply {
        handle: handle.into(),
        conversation: "telegram:-100".into(),
        account: "telegram".into(),
        chat: "-100".into(),
        messages: messages.iter().map(|&message| message.to_owned()).collect(),
    }
}

pub(crate) async fn events_are_done_when_their_turn_ends(db: Db) {
    let (one, two) = (accept(&db, "1").await, accept(&db, "2").await);
    let new = turn("t", &[one, two]);
    db.open_turn(&new).await.unwrap();
    assert_eq!(db.open_turns().await.unwrap(), [row(new.clone())]);

    db.save_handle(&id("t"), &shown_reply(r#"{"edit":1}"#, &["7"]), NOW).await.unwrap();
    db.save_handle(&id("t"), &shown_reply(r#"{"edit":2}"#, &["7", "8"]), NOW).await.unwrap();
    assert_eq!(db.conclude(&id("t"), r#"{"text":"hi"}"#).await.unwrap(), r#"{"text":"hi"}"#);
    db.failed(&id("t"), "flood\0ed", NOW + 5).await.unwrap();
    let so_far = TurnRow {
        handle: Some(r#"{"edit":2}"#.into()),
        final_view: Some(r#"{"text":"hi"}"#.into()),
        attempts: 1,
        next_at: NOW + 5,
        ..row(new)
    };
    assert_eq!(db.open_turns().await.unwrap(), [so_far]);
    let ours = Some(("telegram:-100".to_owned(), true));
    assert_eq!(db.conversation_of("telegram", "-100", "8").await.unwrap(), ours);

    db.delivered(&id("t"), None, false, NOW + 6).await.unwrap();
    db.delivered(&id("t"), None, false, NOW + 7).await.unwrap();
    assert_eq!(db.open_turns().await.unwrap(), []);
    assert_eq!(db.pending().await.unwrap(), []);
    assert_eq!(db.parked_count("telegram:-100").await.unwrap(), 0);
}

pub(crate) async fn the_first_reply_is_kept(db: Db) {
    db.open_turn(&turn("t", &[])).await.unwrap();
    assert_eq!(db.conclude(&id("t"), "first").await.unwrap(), "first");
    assert_eq!(db.conclude(&id("t"), "second").await.unwrap(), "first");
    let known = NewTurn { final_view: Some("help".into()), now: NOW + 1, ..turn("command", &[]) };
    db.open_turn(&known).await.unwrap();
    assert_eq!(db.conclude(&known.id, "other").await.unwrap(), "help");
    let views: Vec<_> = db.open_turns().await.unwrap().into_iter().map(|turn| turn.final_view).collect();
    assert_eq!(views, [Some("first".to_owned()), Some("help".to_owned())]);
}

pub(crate) async fn an_event_has_one_turn(db: Db) {
    let (one, two, done) = (accept(&db, "1").await, accept(&db, "2").await, accept(&db, "3").await);
    db.finish(&[done], NOW).await.unwrap();
    db.open_turn(&turn("a", &[one])).await.unwrap();
    assert_eq!(db.open_turn(&turn("b", &[two, one])).await, Err(TAKEN));
    assert_eq!(db.open_turn(&turn("c", &[done])).await, Err(TAKEN));
    let twice = db.open_turn(&turn("a", &[two])).await;
    assert_eq!(twice, Err(StoreError::Conflict("a turn with this id already exists")));
    assert_eq!(db.open_turns().await.unwrap(), [row(turn("a", &[one]))], "the failed turn left no row");
    db.open_turn(&turn("b", &[two])).await.unwrap();
}

pub(crate) async fn a_message_joins_a_turn_only_until_its_reply_is_stored(db: Db) {
    let (one, two, three) = (accept(&db, "1").await, accept(&db, "2").await, accept(&db, "3").await);
    db.open_turn(&turn("t", &[one])).await.unwrap();
    db.join_turn(&id("t"), &[two], Vec::new()).await.unwrap();
    db.join_turn(&id("t"), &[two], Vec::new()).await.unwrap();
    assert_eq!(db.open_turns().await.unwrap(), [row(turn("t", &[one, two]))]);
    db.leave_turn(&id("t"), &[two]).await.unwrap();
    assert_eq!(
        db.open_turns().await.unwrap(),
        [row(turn("t", &[one]))],
        "it came too late and is waiting again"
    );
    db.join_turn(&id("t"), &[two], Vec::new()).await.unwrap();
    db.conclude(&id("t"), "said").await.unwrap();
    assert_eq!(
        db.join_turn(&id("t"), &[three], Vec::new()).await,
        Err(SETTLED),
        "the reply does not know of it"
    );
    assert!(db.leave_turn(&id("t"), &[two]).await.is_err(), "the reply answers it");
    assert_eq!(db.delivered(&id("t"), None, false, NOW).await.unwrap(), Delivered::Done(vec![one, two]));
    let left: Vec<_> = db.pending().await.unwrap().into_iter().map(|item| (item.id, item.turn)).collect();
    assert_eq!(left, [(three, None)]);
}

pub(crate) async fn undeliverable_replies_are_kept_for_inspection(db: Db) {
    let one = accept(&db, "1").await;
    db.open_turn(&turn("t", &[one])).await.unwrap();
    db.park(&id("t"), "the bot was blocked", NOW).await.unwrap();
    assert_eq!(db.open_turns().await.unwrap(), []);
    assert_eq!(db.pending().await.unwrap(), []);
    assert_eq!(db.parked_count("telegram:-100").await.unwrap(), 1);
    assert_eq!(db.parked_count("telegram:-200").await.unwrap(), 0);
    db.delivered(&id("t"), None, false, NOW).await.unwrap();
    assert_eq!(db.parked_count("telegram:-100").await.unwrap(), 0, "it was delivered in the end");
}

pub(crate) async fn a_finished_turn_accepts_no_changes(db: Db) {
    for settled in ["delivered", "parked", "unknown"] {
        let turn_id = id(settled);
        match settled {
            "delivered" => {
                db.open_turn(&turn(settled, &[])).await.unwrap();
                db.delivered(&turn_id, None, false, NOW).await.unwrap();
            }
            "parked" => {
                db.open_turn(&turn(settled, &[])).await.unwrap();
                db.park(&turn_id, "too old", NOW).await.unwrap();
            }
            _ => assert_eq!(db.delivered(&turn_id, None, false, NOW).await, Err(SETTLED)),
        }
        assert_eq!(db.join_turn(&turn_id, &[], Vec::new()).await, Err(SETTLED), "{settled}");
        assert_eq!(
            db.save_handle(&turn_id, &shown_reply("{}", &["9"]), NOW).await,
            Err(SETTLED),
            "{settled}"
        );
        assert_eq!(db.conclude(&turn_id, "late").await, Err(SETTLED), "{settled}");
        assert_eq!(db.failed(&turn_id, "why", NOW).await, Err(SETTLED), "{settled}");
        assert_eq!(db.park(&turn_id, "why", NOW).await, Err(SETTLED), "{settled}");
    }
    assert_eq!(db.conversation_of("telegram", "-100", "9").await.unwrap(), None);
}

pub(crate) async fn only_the_first_choice_counts_and_the_reply_is_updated(db: Db) {
    let press = |n: i64| InboxItemId(n);
    db.open_turn(&turn("t", &[])).await.unwrap();
    db.save_handle(&id("t"), &shown_reply("{}", &["7"]), NOW).await.unwrap();
    db.conclude(&id("t"), "offer").await.unwrap();
    let done = Delivered::Done(Vec::new());
    assert_eq!(db.delivered(&id("t"), Some("offer"), true, NOW).await.unwrap(), done);
    let offered = db.offered("telegram", "-100", "7").await.unwrap().unwrap();
    assert_eq!((offered.final_view.as_deref(), offered.handle.as_deref()), (Some("offer"), Some("{}")));
    assert_eq!(db.offered("telegram", "-100", "8").await.unwrap(), None);
    assert_eq!(
        db.choose_below(&id("t"), press(1), "chosen", NOW + 9).await.unwrap(),
        ChoiceOutcome::Reopened
    );
    assert_eq!(db.choose_below(&id("t"), press(1), "chosen", NOW).await.unwrap(), ChoiceOutcome::Noted);
    assert_eq!(db.choose_below(&id("t"), press(2), "other", NOW).await.unwrap(), ChoiceOutcome::Late);
    let [open] = &*db.open_turns().await.unwrap() else { panic!("it must be open again") };
    assert_eq!((open.final_view.as_deref(), open.created), (Some("chosen"), NOW + 9));
    assert_eq!(db.delivered(&id("t"), Some("chosen"), false, NOW).await.unwrap(), done);
    assert_eq!(db.offered("telegram", "-100", "7").await.unwrap().unwrap().chosen, Some(press(1)));
}

pub(crate) async fn a_choice_during_delivery_is_shown_before_the_turn_is_done(db: Db) {
    db.open_turn(&turn("t", &[])).await.unwrap();
    db.conclude(&id("t"), "offer").await.unwrap();
    assert_eq!(db.choose_below(&id("t"), InboxItemId(1), "chosen", NOW).await.unwrap(), ChoiceOutcome::Noted);
    let outdated = Delivered::Outdated("chosen".into());
    assert_eq!(db.delivered(&id("t"), Some("offer"), true, NOW).await.unwrap(), outdated);
    assert_eq!(db.open_turns().await.unwrap().len(), 1);
    let done = Delivered::Done(Vec::new());
    assert_eq!(db.delivered(&id("t"), Some("chosen"), false, NOW).await.unwrap(), done);
}
