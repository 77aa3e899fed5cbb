use crate::fixture::NOW;
use pudu_base::UserId;
use pudu_store::{Db, Learning, LearningReader, Spender};

pub(crate) fn learning(run: &str, due: i64) -> Learning {
    let user = UserId::from_raw("ada").unwrap();
    let spender = Spender { account: "slack".into(), person: "U1".into(), user, room: None };
    Learning {
        user: UserId::from_raw("ada").unwrap(),
        agent: String::new(),
        thread: "thread".into(),
        run: run.into(),
        spender,
        due,
        attempts: 0,
        priority: 0,
        span: Default::default(),
    }
}

fn reader(name: &str, until: i64) -> LearningReader {
    LearningReader { name: name.to_owned(), until }
}

pub(crate) async fn a_conversation_waits_once_and_is_read_up_to_its_recorded_position(db: Db) {
    let me = reader("me", NOW + 100);
    db.keep_learning(learning("one", NOW + 5), 0).await.unwrap();
    assert!(db.claim_learning(&learning("one", 0), &me, NOW).await.unwrap());
    db.keep_learning(learning("two", NOW + 9), 0).await.unwrap();
    let other = Learning { agent: "poet".into(), due: NOW, ..learning("three", NOW) };
    db.keep_learning(other.clone(), 0).await.unwrap();
    assert_eq!(db.learnings(NOW + 4, 10).await.unwrap(), std::slice::from_ref(&other));
    assert_eq!(db.next_learning().await.unwrap(), Some(NOW));
    assert_eq!(db.learnt_up_to(&other).await.unwrap(), None);
    // Newer messages still wait.
    assert!(db.learnt(&learning("one", NOW + 5), &me, "m1").await.unwrap());
    assert_eq!(db.learnings(NOW + 9, 10).await.unwrap(), [other.clone(), learning("two", NOW + 9)]);
    assert!(db.claim_learning(&learning("two", 0), &me, NOW).await.unwrap());
    assert!(db.learnt(&learning("two", NOW + 9), &me, "m2").await.unwrap());
    assert_eq!(db.learnings(NOW + 9, 10).await.unwrap(), std::slice::from_ref(&other));
    assert_eq!(db.learnt_up_to(&learning("two", 0)).await.unwrap().as_deref(), Some("m2"));
    db.drop_learning(&other).await.unwrap();
    assert_eq!(
        (db.learnings(NOW + 9, 10).await.unwrap(), db.next_learning().await.unwrap()),
        (Vec::new(), None)
    );
    db.set_memory_off(&other.user, true).await.unwrap();
    db.set_memory_off(&other.user, true).await.unwrap();
    assert!(
        db.is_memory_off(&other.user).await.unwrap() && !db.is_memory_off(&UserId::local()).await.unwrap()
    );
    db.set_memory_off(&other.user, false).await.unwrap();
    assert!(!db.is_memory_off(&other.user).await.unwrap());
}

pub(crate) async fn only_one_of_two_readers_reads_a_conversation(db: Db) {
    let (one, other) = (reader("one", NOW + 10), reader("other", NOW + 20));
    let waiting = learning("run", NOW);
    db.keep_learning(waiting.clone(), 0).await.unwrap();
    assert!(!db.learnt(&waiting, &one, "m").await.unwrap(), "it is not claimed");
    assert!(db.claim_learning(&waiting, &one, NOW).await.unwrap());
    assert!(!db.claim_learning(&waiting, &other, NOW).await.unwrap());
    assert_eq!(db.learnings(NOW, 10).await.unwrap(), []);
    assert_eq!(db.next_learning().await.unwrap(), Some(NOW + 10), "at the deadline of its reader");
    assert!(db.claim_learning(&waiting, &reader("one", NOW + 12), NOW + 9).await.unwrap(), "it is renewed");
    assert!(!db.claim_learning(&waiting, &other, NOW + 11).await.unwrap());
    // The first reader missed its deadline, so its result is refused.
    assert!(db.claim_learning(&waiting, &other, NOW + 12).await.unwrap());
    assert!(!db.claim_learning(&waiting, &one, NOW + 13).await.unwrap());
    assert!(!db.learnt(&waiting, &one, "m").await.unwrap());
    assert_eq!(db.learnt_up_to(&waiting).await.unwrap(), None);
    let later = Learning { due: NOW + 60, attempts: 1, ..waiting.clone() };
    db.put_off_learning(&later, &one).await.unwrap();
    assert_eq!(db.learnings(NOW + 60, 10).await.unwrap(), [waiting], "it belongs to the other reader");
    db.put_off_learning(&later, &other).await.unwrap();
    assert_eq!(db.learnings(NOW + 59, 10).await.unwrap(), []);
    assert_eq!(db.learnings(NOW + 60, 10).await.unwrap(), std::slice::from_ref(&later));
    // A failure does not delay newer messages.
    assert!(db.claim_learning(&later, &one, NOW + 60).await.unwrap());
    db.keep_learning(learning("new", NOW + 61), 0).await.unwrap();
    db.put_off_learning(&Learning { due: NOW + 999, ..later }, &one).await.unwrap();
    assert_eq!(db.learnings(NOW + 61, 10).await.unwrap(), [learning("new", NOW + 61)]);
    assert!(db.claim_learning(&learning("new", 0), &one, NOW + 61).await.unwrap());
    db.release_learnings().await.unwrap();
    assert!(db.claim_learning(&learning("new", 0), &other, NOW + 61).await.unwrap());
}

pub(crate) async fn important_conversations_are_read_first_and_accepted_by_a_full_queue(db: Db) {
    let of = |thread: &str, due: i64, priority: i64| Learning {
        thread: thread.into(),
        priority,
        ..learning("run", due)
    };
    let keep = async |learning: Learning| db.keep_learning(learning, 2).await.unwrap();
    assert!(keep(of("a", NOW, 0)).await && keep(of("b", NOW + 2, 0)).await);
    assert!(!keep(of("c", NOW, 0)).await, "two are already waiting");
    assert!(keep(of("d", NOW + 3, 1)).await, "it has a higher priority");
    assert!(keep(of("b", NOW + 1, 0)).await, "it is already waiting");
    assert!(keep(of("d", NOW + 4, 0)).await);
    let waiting = db.learnings(NOW + 9, 10).await.unwrap();
    assert_eq!(waiting, [of("d", NOW + 4, 1), of("a", NOW, 0), of("b", NOW + 1, 0)]);
}
