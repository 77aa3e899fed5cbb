use crate::fixture::NOW;
use pudu_base::{Outcome, Usage};
use pudu_store::Db;

pub(crate) async fn a_run_is_counted_once_with_what_it_cost(db: Db) {
    let thread = "thread".into();
    assert_eq!(db.usage(&thread).await.unwrap(), (Usage::default(), 0));
    db.run_started(&"one".into(), &thread, "gpt", NOW).await.unwrap();
    db.run_started(&"two".into(), &thread, "gpt", NOW + 1).await.unwrap();
    db.run_started(&"one".into(), &thread, "claude", NOW + 2).await.unwrap();
    assert_eq!(db.run_outcome(&"one".into()).await.unwrap(), None);

    let cost = Usage::plain(10, 3);
    db.run_ended(&"one".into(), &Outcome::Success, cost, NOW + 3).await.unwrap();
    db.run_ended(&"one".into(), &Outcome::Stopped, Usage::plain(99, 99), NOW + 4).await.unwrap();
    assert_eq!(db.run_outcome(&"one".into()).await.unwrap(), Some(Outcome::Success), "the first end stays");
    assert_eq!(db.usage(&thread).await.unwrap(), (cost, 2));
    assert_eq!(db.usage(&"other".into()).await.unwrap(), (Usage::default(), 0));
}
