use pudu_base::{Human, LogError, Message, ThreadId, ThreadLog, ThreadState, Update};
use pudu_store::Db;
use std::sync::Arc;

/// An update that adds a person's message.
pub(crate) fn human_message(id: &str, text: &str) -> Update {
    Update::Message(Arc::new(Message::Human(Human::new(id, text))))
}

/// An update that presents a file.
pub(crate) fn artifact(path: &str) -> Update {
    Update::Artifacts { run: "run".into(), paths: vec![path.into()] }
}

pub(crate) async fn a_thread_is_the_fold_of_its_updates(db: Db) {
    let (thread, other) = (ThreadId::from("a"), ThreadId::from("b"));
    assert_eq!(db.load(&thread).await.unwrap(), (0, ThreadState::default()));
    let updates = [
        human_message("1", "hello"),
        human_message("2", "\0 \u{1F98C} \"quoted\" \\ and\nlines"),
        Update::Begin("call".into()),
        human_message("1", "hello again"),
        Update::Remove("2".into()),
        artifact("/mnt/user-data/outputs/a"),
        human_message("3", "\u{1}"),
    ];
    assert_eq!(db.append(&thread, &"run".into(), 0, &updates[..2]).await.unwrap(), 2);
    assert_eq!(db.append(&other, &"run".into(), 0, &updates[..1]).await.unwrap(), 1);
    assert_eq!(db.append(&thread, &"run".into(), 2, &updates[2..]).await.unwrap(), 7);
    assert_eq!(db.append(&thread, &"run".into(), 7, &[]).await.unwrap(), 7);
    assert_eq!(db.load(&thread).await.unwrap(), (7, ThreadState::fold(updates.clone())));
    assert_eq!(db.load(&other).await.unwrap(), (1, ThreadState::fold(updates[..1].to_vec())));
}

pub(crate) async fn an_append_at_a_wrong_position_changes_nothing(db: Db) {
    let thread = ThreadId::from("a");
    db.append(&thread, &"run".into(), 0, &[human_message("1", "one"), human_message("2", "two")])
        .await
        .unwrap();
    let before = db.load(&thread).await.unwrap();
    for at in [-1, 0, 1, 3] {
        let refused = db.append(&thread, &"run".into(), at, &[human_message("3", "three")]).await;
        assert!(matches!(refused, Err(LogError::Conflict { at: told }) if told == at), "{at}: {refused:?}");
    }
    assert_eq!(db.load(&thread).await.unwrap(), before);
}

pub(crate) async fn only_one_of_many_appends_at_one_position_succeeds(db: Db) {
    let thread = ThreadId::from("a");
    let updates: Vec<_> = (0..20).map(|n| [human_message(&n.to_string(), "mine")]).collect();
    let run = "run".into();
    let appends = updates.iter().map(|update| db.append(&thread, &run, 0, update));
    let answers = futures_util::future::join_all(appends).await;
    let winners: Vec<_> = answers.iter().zip(&updates).filter(|(answer, _)| answer.is_ok()).collect();
    let [(_, winner)] = winners[..] else { panic!("{answers:?}") };
    assert_eq!(db.load(&thread).await.unwrap(), (1, ThreadState::fold(winner.clone())));
}

/// Each round adds the same five messages of 10 KB again.
pub(crate) async fn a_long_thread_reads_the_same_after_its_snapshot(db: Db) {
    let thread = ThreadId::from("a");
    let (mut updates, mut snapshots) = (Vec::new(), Vec::new());
    for round in 0..12_i64 {
        let text = format!("{round} deer ").repeat(1_000);
        let more: Vec<_> = (0..5).map(|n| human_message(&n.to_string(), &text)).collect();
        db.append(&thread, &"run".into(), round * 5, &more).await.unwrap();
        updates.extend(more);
        let expected = ((round + 1) * 5, ThreadState::fold(updates.clone()));
        let before = db.commits();
        assert_eq!(db.load(&thread).await.unwrap(), expected);
        if db.commits() > before {
            snapshots.push(round);
        }
        assert_eq!(db.load(&thread).await.unwrap(), expected);
    }
    // 35 KB a round: the third load read 15 rows for 5 messages and more than 64 KiB; the snapshot of
    // 35 KB is outgrown by another 64 KiB three rounds later.
    assert_eq!(snapshots, [2, 5, 8, 11]);
}

pub(crate) async fn no_snapshot_is_written_for_a_thread_that_only_grows(db: Db) {
    let thread = ThreadId::from("a");
    let text = "deer ".repeat(2_000);
    for at in 0..40 {
        db.append(&thread, &"run".into(), at, &[human_message(&at.to_string(), &text)]).await.unwrap();
        db.load(&thread).await.unwrap();
    }
    assert_eq!(db.commits(), 40);
}
