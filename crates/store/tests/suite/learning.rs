use crate::fixture::NOW;
use pudu_base::UserId;
use pudu_store::{Db, Learning, Spender};

pub(crate) fn learning(run: &str, due: i64) -> Learning {
    let user = UserId::of("ada").unwrap();
    let spender = Spender { account: "slack".into(), person: "U1".into(), user, room: None };
    Learning {
        user: UserId::of("ada").unwrap(),
        agent: String::new(),
        thread: "thread".into(),
        run: run.into(),
        spender,
        due,
        attempts: 0,
    }
}

pub(crate) async fn a_conversation_waits_once_and_is_read_up_to_where_it_was(db: Db) {
    db.keep_learning(learning("one", NOW + 5)).await.unwrap();
    db.keep_learning(learning("two", NOW + 9)).await.unwrap();
    let other = Learning { agent: "poet".into(), due: NOW, ..learning("three", NOW) };
    db.keep_learning(other.clone()).await.unwrap();
    assert_eq!(db.learnings(10).await.unwrap(), [other.clone(), learning("two", NOW + 9)]);
    assert_eq!(db.learnt_up_to(&other).await.unwrap(), None);
    // What came meanwhile waits still.
    db.learnt(&learning("one", NOW + 5), "m1").await.unwrap();
    assert_eq!(db.learnings(10).await.unwrap().len(), 2);
    db.learnt(&learning("two", NOW + 9), "m2").await.unwrap();
    assert_eq!(db.learnings(10).await.unwrap(), std::slice::from_ref(&other));
    assert_eq!(db.learnt_up_to(&learning("two", 0)).await.unwrap().as_deref(), Some("m2"));
    db.drop_learning(&other).await.unwrap();
    assert_eq!(db.learnings(10).await.unwrap(), []);
    db.set_memory_off(&other.user, true).await.unwrap();
    db.set_memory_off(&other.user, true).await.unwrap();
    assert!(
        db.is_memory_off(&other.user).await.unwrap() && !db.is_memory_off(&UserId::local()).await.unwrap()
    );
    db.set_memory_off(&other.user, false).await.unwrap();
    assert!(!db.is_memory_off(&other.user).await.unwrap());
}
