use crate::fixture::{NOW, turn};
use pudu_base::{Outcome, ThreadFolder, ThreadId, UserId};
use pudu_store::{AddedAccount, Adoption, Db, MemoryMerge, NewClientRun, NewThread, RunOrigin};

pub(crate) fn adoption(at: i64) -> Adoption {
    Adoption { source: UserId::local(), target: UserId::from_raw("ada").unwrap(), at, is_one_person: true }
}

async fn create(db: &Db, thread: &str, account: &str, now: i64) {
    let folder = ThreadFolder { owner: UserId::local(), thread: thread.into() };
    let (account, assistant, metadata) = (account.into(), String::new(), String::new());
    db.create_thread(NewThread { folder, account, assistant, metadata, now }).await.unwrap();
}

async fn owner(db: &Db, thread: &str) -> UserId {
    db.owner(&thread.into()).await.unwrap().unwrap()
}

fn ids(names: &[&str]) -> Vec<ThreadId> {
    names.iter().map(|name| (*name).into()).collect()
}

/// Makes each kind of write of this part once.
pub(crate) async fn script(db: &Db) {
    create(db, "adopted", "api", NOW).await;
    db.adopt(adoption(NOW)).await.unwrap();
    db.adopt_thread(&adoption(NOW), &"adopted".into()).await.unwrap();
    db.adopted(&adoption(NOW)).await.unwrap();
}

pub(crate) async fn the_first_administrator_adopts_threads_from_before_accounts(db: Db) {
    for (thread, account, at) in
        [("page", "api", NOW), ("terminal", "local", NOW - 1), ("late", "api", NOW + 1)]
    {
        create(&db, thread, account, at).await;
    }
    let ada = crate::accounts::account("ada", "ada@example.org", "admin");
    let bo = crate::accounts::account("bo", "bo@example.org", "admin");
    let adopts = Some(adoption(NOW));
    assert_eq!(db.add_first_administrator(ada, adopts).await.unwrap(), AddedAccount::Added);
    let late = Some(Adoption { target: bo.user.clone(), ..adoption(NOW) });
    assert_eq!(db.add_first_administrator(bo, late).await.unwrap(), AddedAccount::Late);
    let [adoption_in_progress] = &db.adoptions().await.unwrap()[..] else { panic!("there must be one") };
    assert_eq!((&adoption_in_progress.target, adoption_in_progress.at), (&adoption(NOW).target, NOW));
    let merge = MemoryMerge { source: UserId::local(), target: adoption_in_progress.target.clone() };
    assert_eq!(db.memory_merges().await.unwrap(), [merge]);

    create(&db, "unsaid", "", NOW).await;
    create(&db, "talks", "local", NOW).await;
    db.bind("terminal", "local", "terminal", &"talks".into(), NOW).await.unwrap();
    assert_eq!(db.threads_to_adopt(adoption_in_progress).await.unwrap(), ids(&["page", "terminal"]));
    for thread in ["page", "terminal"] {
        assert!(db.adopt_thread(adoption_in_progress, &thread.into()).await.unwrap());
        assert_eq!(owner(&db, thread).await, adoption_in_progress.target);
    }
    for thread in ["unsaid", "talks", "late"] {
        assert_eq!(owner(&db, thread).await, UserId::local(), "{thread}");
    }
    assert_eq!(db.threads_to_adopt(adoption_in_progress).await.unwrap(), []);
    let newer = Adoption { at: NOW + 1, ..adoption_in_progress.clone() };
    db.adopt(newer.clone()).await.unwrap();
    assert!(
        !db.adopt_thread(adoption_in_progress, &"late".into()).await.unwrap(),
        "a newer request replaced it"
    );
    db.adopted(adoption_in_progress).await.unwrap();
    assert_eq!(db.adoptions().await.unwrap().len(), 1, "the newer request is still open");
    db.adopted(&newer).await.unwrap();
    assert_eq!(db.adoptions().await.unwrap(), []);
}

pub(crate) async fn a_busy_thread_is_not_adopted_and_its_runs_move_with_it(db: Db) {
    create(&db, "thread", "api", NOW).await;
    let run = NewClientRun {
        id: "run".into(),
        folder: ThreadFolder { owner: UserId::local(), thread: "thread".into() },
        account: "api".into(),
        origin: RunOrigin::Api,
        user: UserId::local(),
        assistant: String::new(),
        request: "{}".into(),
        metadata: String::new(),
        multitask: "reject".into(),
        deletes_thread: false,
        cancels: None,
        now: NOW,
    };
    db.accept_run(run).await.unwrap();
    db.adopt(adoption(NOW)).await.unwrap();
    assert!(!db.adopt_thread(&adoption(NOW), &"thread".into()).await.unwrap());
    assert_eq!(owner(&db, "thread").await, UserId::local());
    db.run_ended(&"run".into(), &Outcome::Success, NOW).await.unwrap();
    assert!(db.adopt_thread(&adoption(NOW), &"thread".into()).await.unwrap());
    assert_eq!(owner(&db, "thread").await, adoption(NOW).target);
    assert_eq!(db.run(&"run".into()).await.unwrap().unwrap().user, adoption(NOW).target.as_str());
}

pub(crate) async fn threads_and_memory_of_several_people_are_not_adopted(db: Db) {
    db.adopt(Adoption { is_one_person: false, ..adoption(NOW) }).await.unwrap();
    assert_eq!((db.adoptions().await.unwrap().len(), db.memory_merges().await.unwrap()), (1, Vec::new()));
    // With a chat of the same user, threads and memories may be other people's.
    db.open_turn(&turn("first", &[])).await.unwrap();
    assert_eq!(owner(&db, "thread").await, UserId::local());
    db.adopt(adoption(i64::MAX)).await.unwrap();
    assert_eq!(db.memory_merges().await.unwrap(), []);
    assert_eq!(db.threads_to_adopt(&adoption(i64::MAX)).await.unwrap(), []);
}
