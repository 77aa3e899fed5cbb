use crate::{fixture::NOW, person::ada};
use pudu_store::{BufferLimits, BufferPlace, BufferTake, BufferedMessage, Db, InboxItemId};

const LIMITS: BufferLimits = BufferLimits { messages: 50, oldest: NOW - 1_000, now: NOW };

fn place(topic: &str) -> BufferPlace {
    BufferPlace { account: "slack".into(), chat: "C".into(), topic: topic.into() }
}

/// A message by Ada with this number.
fn message(number: i64) -> BufferedMessage {
    BufferedMessage {
        place: place(""),
        event_key: format!("u{number}"),
        message: number.to_string(),
        person: "U1".into(),
        name: "Ada".into(),
        text: format!("text {number}"),
        piece: "{}".into(),
        at: NOW + number,
    }
}

fn take(by: i64, until: i64) -> BufferTake {
    BufferTake { place: place(""), by: InboxItemId(by), max: 50, since: NOW - 1_000, until: NOW + until }
}

async fn keep(db: &Db, numbers: impl IntoIterator<Item = i64>) {
    for number in numbers {
        assert!(db.buffer_message(message(number), LIMITS).await.unwrap(), "{number}");
    }
}

async fn texts(db: &Db, take: BufferTake) -> Vec<String> {
    db.take_buffered(take).await.unwrap().into_iter().map(|(text, _)| text).collect()
}

/// Makes each kind of write to the buffer once.
pub(crate) async fn script(db: &Db) {
    db.buffer_message(message(1), LIMITS).await.unwrap();
    db.edit_buffered(place(""), "1", "U1", "better").await.unwrap();
    db.take_buffered(take(1, 9)).await.unwrap();
    db.expire_buffered([].into()).await.unwrap();
}

pub(crate) async fn a_turn_gets_each_message_once(db: Db) {
    keep(&db, 1..=3).await;
    let elsewhere = BufferedMessage { place: place("topic"), ..message(4) };
    db.buffer_message(elsewhere, LIMITS).await.unwrap();
    let expected = ["text 1", "text 2"];
    assert_eq!(texts(&db, take(7, 2)).await, expected, "the third is newer than the question");
    assert_eq!(texts(&db, take(7, 2)).await, expected, "the same turn after a restart");
    assert_eq!(texts(&db, take(8, 9)).await, ["text 3"]);
    assert_eq!(texts(&db, take(9, 9)).await, [""; 0]);
    keep(&db, [6, 5]).await;
    assert_eq!(texts(&db, take(11, 9)).await, ["text 5", "text 6"], "webhooks deliver concurrently");
    let topic = BufferTake { place: place("topic"), ..take(10, 9) };
    assert_eq!(texts(&db, topic).await, ["text 4"]);
}

pub(crate) async fn a_redelivered_message_is_not_buffered_again(db: Db) {
    keep(&db, [1]).await;
    assert!(!db.buffer_message(message(1), LIMITS).await.unwrap());
    assert_eq!(texts(&db, take(7, 9)).await, ["text 1"]);
    assert_eq!(texts(&db, take(8, 9)).await, [""; 0], "it is deleted");
    assert!(!db.buffer_message(message(1), LIMITS).await.unwrap());
    assert_eq!(texts(&db, take(9, 9)).await, [""; 0]);
    assert_eq!(db.pending_count().await.unwrap(), 0, "no dispatcher waits for it");
}

pub(crate) async fn a_chat_keeps_the_newest_messages_within_its_limits(db: Db) {
    keep(&db, 1..=3).await;
    db.buffer_message(message(4), BufferLimits { messages: 2, ..LIMITS }).await.unwrap();
    assert_eq!(texts(&db, take(7, 9)).await, ["text 3", "text 4"]);
    keep(&db, 5..=6).await;
    db.buffer_message(message(7), BufferLimits { oldest: NOW + 6, ..LIMITS }).await.unwrap();
    assert_eq!(texts(&db, take(8, 9)).await, ["text 6", "text 7"]);
    let giant = |number: i64| BufferedMessage { text: "é\0".repeat(30_000), ..message(number) };
    for number in 8..=11 {
        db.buffer_message(giant(number), LIMITS).await.unwrap();
    }
    let kept = texts(&db, take(9, 20)).await;
    assert_eq!(kept, vec!["é\u{fffd}".repeat(30_000); 2], "at most 256 KiB");
    keep(&db, 12..=15).await;
    assert_eq!(texts(&db, BufferTake { max: 1, ..take(10, 20) }).await, ["text 15"]);
}

pub(crate) async fn an_edit_replaces_the_text_of_its_author(db: Db) {
    keep(&db, 1..=2).await;
    let stranger = BufferedMessage { person: String::new(), text: String::new(), ..message(3) };
    db.buffer_message(stranger, LIMITS).await.unwrap();
    for (message, person) in [("1", "U1"), ("2", "U2"), ("3", ""), ("9", "U1")] {
        db.edit_buffered(place(""), message, person, "better").await.unwrap();
    }
    assert_eq!(texts(&db, take(7, 9)).await, ["better", "text 2", ""]);
}

pub(crate) async fn messages_expire_by_account_and_are_deleted_with_their_author(db: Db) {
    keep(&db, 1..=3).await;
    let other = BufferedMessage { person: "U2".into(), ..message(4) };
    db.buffer_message(other, LIMITS).await.unwrap();
    db.expire_buffered([("slack".to_owned(), NOW + 2)].into()).await.unwrap();
    let people = db.account_people().await.unwrap();
    assert!(people.contains(&ada().people[0]), "{people:?}");
    let tables = db.person_tables(&ada()).await.unwrap();
    let own = tables.iter().find(|table| table.name == "buffered_messages").unwrap();
    assert_eq!(own.rows.len(), 2);
    assert!(db.forget_person(&ada(), Vec::new(), Vec::new()).await.unwrap());
    assert_eq!(texts(&db, take(7, 9)).await, ["text 4"]);
    keep(&db, [5]).await;
    db.expire_buffered([("telegram".to_owned(), 0)].into()).await.unwrap();
    assert_eq!(texts(&db, take(8, 9)).await, [""; 0], "an account without the setting keeps none");
}
