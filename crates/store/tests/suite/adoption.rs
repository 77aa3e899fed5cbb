use crate::fixture::{NOW, turn};
use pudu_base::{Outcome, ThreadFolder, ThreadId, UserId};
use pudu_store::{AddedAccount, Adoption, Db, MemoryMerge, NewClientRun, NewThread};

pub(crate) fn adoption(at: i64) -> Adoption {
    Adoption { source: UserId::local(), target: UserId::from_raw("ada").unwrap(), at, is_one_person: true }
}

async fn made(db: &Db, thread: &str, account: &str, now: i64) {
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

/// Every write of this part, once.
pub(crate) async fn script(db: &Db) {
    made(db, "adopted", "api", NOW).await;
    db.adopt(adoption(NOW)).await.unwrap();
    db.adopt_thread(&adoption(NOW), &"adopted".into()).await.unwrap();
    db.adopted(&adoption(NOW)).await.unwrap();
}

pub(crate) async fn whoever_administers_first_gets_what_nobody_had_an_account_for(db: Db) {
    for (thread, account, at) in
        [("page", "api", NOW), ("terminal", "local", NOW - 1), ("late", "api", NOW + 1)]
    {
        made(&db, thread, account, at).await;
    }
    let ada = crate::accounts::account("ada", "ada@example.org", "admin");
    let bo = crate::accounts::account("bo", "bo@example.org", "admin");
    let adopts = Some(adoption(NOW));
    assert_eq!(db.add_first_administrator(ada, adopts).await.unwrap(), AddedAccount::Added);
    let late = Some(Adoption { target: bo.user.clone(), ..adoption(NOW) });
    assert_eq!(db.add_first_administrator(bo, late).await.unwrap(), AddedAccount::Late);
    let [begun] = &db.adoptions().await.unwrap()[..] else { panic!("there is one") };
    assert_eq!((&begun.target, begun.at), (&adoption(NOW).target, NOW));
    let merge = MemoryMerge { source: UserId::local(), target: begun.target.clone() };
    assert_eq!(db.memory_merges().await.unwrap(), [merge]);

    made(&db, "unsaid", "", NOW).await;
    made(&db, "talks", "local", NOW).await;
    db.bind("terminal", "local", "terminal", &"talks".into(), NOW).await.unwrap();
    assert_eq!(db.threads_to_adopt(begun).await.unwrap(), ids(&["page", "terminal"]));
    for thread in ["page", "terminal"] {
        assert!(db.adopt_thread(begun, &thread.into()).await.unwrap());
        assert_eq!(owner(&db, thread).await, begun.target);
    }
    for thread in ["unsaid", "talks", "late"] {
        assert_eq!(owner(&db, thread).await, UserId::local(), "{thread}");
    }
    assert_eq!(db.threads_to_adopt(begun).await.unwrap(), []);
    let newer = Adoption { at: NOW + 1, ..begun.clone() };
    db.adopt(newer.clone()).await.unwrap();
    assert!(!db.adopt_thread(begun, &"late".into()).await.unwrap(), "nobody wants that any more");
    db.adopted(begun).await.unwrap();
    assert_eq!(db.adoptions().await.unwrap().len(), 1, "what was asked for meanwhile is to be done");
    db.adopted(&newer).await.unwrap();
    assert_eq!(db.adoptions().await.unwrap(), []);
}

pub(crate) async fn a_thread_at_work_is_not_given_away_and_goes_with_its_runs(db: Db) {
    made(&db, "thread", "api", NOW).await;
    let run = NewClientRun {
        id: "run".into(),
        folder: ThreadFolder { owner: UserId::local(), thread: "thread".into() },
        account: "api".into(),
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

pub(crate) async fn what_several_people_told_stays_theirs(db: Db) {
    db.adopt(Adoption { is_one_person: false, ..adoption(NOW) }).await.unwrap();
    assert_eq!((db.adoptions().await.unwrap().len(), db.memory_merges().await.unwrap()), (1, Vec::new()));
    // A chat of the same user: threads of it are others', and so may be what is remembered.
    db.open_turn(&turn("first", &[])).await.unwrap();
    assert_eq!(owner(&db, "thread").await, UserId::local());
    db.adopt(adoption(i64::MAX)).await.unwrap();
    assert_eq!(db.memory_merges().await.unwrap(), []);
    assert_eq!(db.threads_to_adopt(&adoption(i64::MAX)).await.unwrap(), []);
}
