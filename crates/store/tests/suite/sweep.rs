use crate::fixture::{NOW, accept, event, turn};
use pudu_store::{
    Db, InsertedEvent, KEEP_DONE, KEEP_MESSAGES, KEEP_PARKED, KEEP_TURNS, NewInboxItem, Swept, TurnId,
};

pub(crate) async fn only_old_rows_are_swept(db: Db) {
    let mut done = Vec::new();
    for n in 0..1_100 {
        let item = NewInboxItem { message: Some(n.to_string()), ..event(&n.to_string()) };
        let InsertedEvent::New(id) = db.accept(&item).await.unwrap() else { panic!("{n} must be new") };
        done.push(id);
    }
    let waiting = accept(&db, "waiting").await;
    db.open_turn(&turn("delivered", &done)).await.unwrap();
    db.delivered(&TurnId("delivered".into()), None, false, NOW).await.unwrap();
    db.open_turn(&turn("parked", &[])).await.unwrap();
    db.park(&TurnId("parked".into()), "blocked", NOW).await.unwrap();
    db.open_turn(&turn("open", &[waiting])).await.unwrap();

    let swept = |items, turns, messages| Swept { items, turns, messages };
    let table = [
        (KEEP_DONE, swept(0, 0, 0)),
        (KEEP_DONE + 1, swept(1_100, 0, 0)),
        (KEEP_TURNS, swept(0, 0, 0)),
        (KEEP_TURNS + 1, swept(0, 1, 0)),
        (KEEP_MESSAGES, swept(0, 0, 0)),
        (KEEP_PARKED.max(KEEP_MESSAGES) + 1, swept(0, 1, 1_100)),
        (10 * KEEP_MESSAGES, swept(0, 0, 0)),
    ];
    for (later, expected) in table {
        assert_eq!(db.sweep(NOW + later).await.unwrap(), expected, "{later} ms later");
    }
    let left: Vec<_> = db.open_turns().await.unwrap().into_iter().map(|turn| turn.items).collect();
    assert_eq!(left, [vec![waiting]]);
    assert_eq!(db.known_since("telegram", 0).await.unwrap(), []);
}
