use crate::fixture::NOW;
use pudu_base::{Human, Message, ThreadFolder, ThreadLog, Update, UserId};
use pudu_store::{
    Db, Feedback, Identity, ImportNote, ImportRecord, ImportedThread, MovedAccount, StoreError, UserAccount,
};
use std::sync::Arc;

fn message(id: &str) -> Update {
    Update::Message(Arc::new(Message::Human(Human::new(id, id))))
}

fn folder(thread: &str) -> ThreadFolder {
    ThreadFolder { owner: UserId::from_raw("ada").unwrap(), thread: thread.into() }
}

pub(crate) fn thread(at: i64, updates: Vec<Update>) -> ImportedThread {
    ImportedThread {
        folder: folder("t"),
        account: "slack".into(),
        title: "Lines".into(),
        created: NOW - 10,
        updated: NOW - 5,
        at,
        updates,
        learnt: Some("b".into()),
        digest: "d".into(),
    }
}

pub(crate) fn records() -> Vec<ImportRecord> {
    let user = UserId::from_raw("ada").unwrap();
    let feedback = Feedback {
        id: "f".into(),
        run: "r".into(),
        thread: "t".into(),
        user: user.clone(),
        message: None,
        rating: -1,
        comment: Some("slow".into()),
        created: NOW,
    };
    let identity =
        Identity { account: "slack".into(), person: "U1".into(), user, name: "Ada".into(), at: NOW };
    let talk = ImportRecord::Conversation {
        key: "slack:C:m7".into(),
        account: "slack".into(),
        chat: "C".into(),
        message: Some("7".into()),
        folder: folder("t"),
        updated: NOW,
    };
    vec![ImportRecord::Feedback(feedback), ImportRecord::Identity(identity), talk]
}

pub(crate) async fn imported_logins_follow_deerflow_unless_pudu_changed_them(db: Db) {
    let account = |id: &str, version| UserAccount {
        user: UserId::from_raw(id).unwrap(),
        email: "ada@example.org".into(),
        password_hash: Some("$dfv2$x".into()),
        role: "admin".into(),
        needs_setup: false,
        token_version: version,
        oauth_provider: None,
        oauth_id: None,
        created: NOW,
    };
    assert!(!format!("{:?}", account("ada", 3)).contains("dfv2"), "hashes are not shown");
    for (id, version, expect) in [
        ("ada", 3, MovedAccount::New),
        ("ada", 3, MovedAccount::Same),
        ("ada", 4, MovedAccount::Renewed),
        ("ada", 4, MovedAccount::Same),
        ("bo", 1, MovedAccount::Taken),
    ] {
        let moved = db.import_account(account(id, version), NOW).await.unwrap();
        assert_eq!(moved, expect, "{id} {version}");
    }
    let other = UserAccount { email: "countess@example.org".into(), ..account("ada", 5) };
    assert_eq!(db.import_account(other, NOW).await.unwrap(), MovedAccount::Changed);
    let users = db.known_users().await.unwrap();
    assert_eq!(users, [(UserId::from_raw("ada").unwrap(), Some("ada@example.org".to_owned()))]);
}

pub(crate) async fn imports_are_stored_once_and_a_continued_thread_is_not_overwritten(db: Db) {
    let seq = db.import_thread(thread(0, vec![message("a"), message("b")]), NOW).await.unwrap();
    assert_eq!(seq, 2);
    let again = db.import_thread(thread(0, vec![message("a")]), NOW).await.unwrap_err();
    assert!(matches!(again, StoreError::Conflict(_)), "{again}");
    assert_eq!(db.import_thread(thread(2, vec![message("c")]), NOW).await.unwrap(), 3);
    let rows = db.newest_threads(None, 10).await.unwrap();
    let [row] = rows.as_slice() else { panic!("{rows:?}") };
    let told = (row.user.as_str(), row.account.as_str(), row.title.as_str(), row.created, row.updated);
    assert_eq!(told, ("ada", "slack", "Lines", NOW - 10, NOW - 5));
    let note = ImportNote { kind: "thread".into(), item: "t".into(), digest: "d".into(), seq: 3, done: true };
    assert_eq!(db.import_notes().await.unwrap(), [note]);
    db.append(&"t".into(), &"run".into(), 3, &[message("d")]).await.unwrap();
    let moved = db.import_thread(thread(3, vec![message("e")]), NOW).await.unwrap_err();
    assert!(matches!(moved, StoreError::Conflict(_)), "{moved}");

    assert_eq!(db.import_records(records()).await.unwrap(), [true; 3]);
    assert_eq!(db.import_records(records()).await.unwrap(), [false; 3]);
    let found = db.conversation_of("slack", "C", "7").await.unwrap();
    assert_eq!(found.map(|(key, _)| key).as_deref(), Some("slack:C:m7"));
    let users = db.known_users().await.unwrap();
    assert_eq!(users, [(UserId::from_raw("ada").unwrap(), None)]);
}
