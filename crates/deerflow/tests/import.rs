//! Imports a home written by LangGraph's own libraries. `tests/sim/conformance/deerflow_home.py` created it, and
//! recreates it where they can be installed.

#![allow(clippy::unwrap_used, reason = "all of it is tests, but clippy only sees those marked #[test]")]

use pudu_base::{Message, ThreadFolder, ThreadId, ThreadLog, ThreadState, UserId};
use pudu_deerflow::{
    DeerFlowHome, ImportReport, ImportTarget, ItemKind, ItemOutcome, Place, SourceDatabase, import,
};
use pudu_memory::{MemoryOptions, MemoryScope, MemoryStore};
use pudu_store::{Db, DbLocation, RecallLimits, RecallScope};
use std::{
    fs,
    path::{Path, PathBuf},
};
use tempfile::TempDir;

const ADA: &str = "0b9f4d3e-1111-4aaa-8bbb-000000000001";
const BO: &str = "0b9f4d3e-2222-4aaa-8bbb-000000000002";
const NOW: i64 = 1_780_000_000_000;

/// A DeerFlow home, and a pudu home to import it into.
struct Homes {
    dir: TempDir,
    db: Db,
}

impl Homes {
    async fn new() -> Self {
        let dir = TempDir::new().unwrap();
        copy(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/home")), &dir.path().join("deer"));
        let data = dir.path().join("deer/.deer-flow/data");
        let sql = fs::read_to_string(data.join("deerflow.sql")).unwrap();
        rusqlite::Connection::open(data.join("deerflow.db")).unwrap().execute_batch(&sql).unwrap();
        let location = DbLocation::Sqlite(dir.path().join("home/data/pudu.db"));
        let db = Db::open(&location).await.unwrap();
        Self { dir, db }
    }

    fn source(&self) -> PathBuf {
        self.dir.path().join("deer")
    }

    fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    fn run(&self, sql: &str) {
        let file = self.source().join(".deer-flow/data/deerflow.db");
        rusqlite::Connection::open(file).unwrap().execute_batch(sql).unwrap();
    }

    async fn import(&self) -> ImportReport {
        self.import_to(place).await
    }

    async fn import_to(&self, place: fn(&str, &str, Option<&str>) -> Place) -> ImportReport {
        let source = DeerFlowHome::find(&self.source()).unwrap();
        let database = SourceDatabase::Sqlite(source.usual_database());
        let target = ImportTarget {
            db: self.db.clone(),
            home: self.home(),
            memory: MemoryOptions::default(),
            place,
            dry_run: false,
        };
        import(&source, Some(&database), &target, NOW).await.unwrap()
    }

    async fn state(&self, thread: &str) -> ThreadState {
        self.db.load(&thread.into()).await.unwrap().1
    }
}

fn place(account: &str, chat: &str, topic: Option<&str>) -> Place {
    let key = [Some(account), Some(chat), topic].into_iter().flatten().collect::<Vec<_>>().join(":");
    Place { key, message: None, room: None }
}

/// Returns conversations like `place`, with all of Slack as rooms.
fn rooms(account: &str, chat: &str, topic: Option<&str>) -> Place {
    let room = (account == "slack").then(|| UserId::room(account, chat));
    Place { room, ..place(account, chat, topic) }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// Returns all files below a folder with their contents.
fn tree(root: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let (mut files, mut open) = (Vec::new(), vec![root.to_owned()]);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            match entry.file_type().unwrap().is_dir() {
                true => open.push(entry.path()),
                false => files.push((entry.path(), fs::read(entry.path()).unwrap_or_default())),
            }
        }
    }
    files.sort();
    files
}

fn outcomes(report: &ImportReport, kind: ItemKind) -> Vec<(String, ItemOutcome)> {
    let items = report.items.iter().filter(|item| item.kind == kind);
    let mut items: Vec<_> = items.map(|item| (item.item.clone(), item.outcome)).collect();
    items.sort();
    items
}

#[tokio::test]
async fn everything_of_a_home_is_there_afterwards_and_the_home_is_as_it_was() {
    let homes = Homes::new().await;
    let before = tree(&homes.source());
    let report = homes.import().await;
    assert_eq!(tree(&homes.source()), before, "nothing is written there");
    insta::assert_snapshot!("report", report.text());
    for thread in ["thread-ada", "thread-im", "thread-delta"] {
        insta::assert_json_snapshot!(thread, homes.state(thread).await);
    }
    let row = |threads: Vec<pudu_store::ThreadRow>| {
        let line = |row: &pudu_store::ThreadRow| {
            format!("{} {} {} {:?} {} {}", row.id, row.account, row.user, row.title, row.created, row.updated)
        };
        threads.iter().map(line).collect::<Vec<_>>()
    };
    insta::assert_json_snapshot!("threads", row(homes.db.newest_threads(None, 100).await.unwrap()));
    let talk = homes.db.conversation("telegram:4242").await.unwrap().unwrap();
    assert_eq!((talk.thread.as_str(), talk.chat.as_str()), ("thread-im", "4242"));
    let who = homes.db.identities().await.unwrap();
    let who: Vec<String> =
        who.iter().map(|one| format!("{}:{} {}", one.account, one.person, one.user)).collect();
    assert_eq!(who, [format!("slack:U777 {BO}"), "telegram:4242 4242".to_owned()]);
}

#[tokio::test]
async fn memory_of_both_versions_is_read_by_both_programs_and_found_by_recall() {
    let homes = Homes::new().await;
    homes.import().await;
    let store = MemoryStore::new(homes.home(), MemoryOptions::default());
    let ada = ADA.to_owned().try_into().unwrap();
    let bo = UserId::from_raw(BO).unwrap();
    let table = [
        (MemoryScope::for_user(ada), "Ada prefers short answers", "Ada runs a zoo."),
        (
            MemoryScope::of_agent(ADA.to_owned().try_into().unwrap(), "zoologist").unwrap(),
            "Ada keeps two okapis",
            "Ada runs a zoo.",
        ),
        (MemoryScope::for_user(bo.clone()), "Bo bakes with spelt", "Bo is a baker."),
    ];
    for (scope, fact, summary) in table {
        let document = store.read(&scope, NOW).unwrap();
        let facts: Vec<&str> = document.facts.iter().map(|fact| fact.content.as_str()).collect();
        assert_eq!((facts.as_slice(), document.broken.len()), (&[fact][..], 0));
        assert_eq!(document.summaries.get(pudu_memory::SummaryKey::ALL[0]).text, summary);
        let scope = RecallScope { user: scope.user().clone(), agent: scope.agent().to_owned() };
        let hits = homes.db.recall(&scope, fact, RecallLimits { facts: 5, turns: 5 }).await.unwrap();
        assert_eq!(hits.facts.len(), 1, "{fact}");
    }
    // So are the messages of private threads, and memory does not learn from them again.
    let said = |user: &str| RecallScope {
        user: user.to_owned().try_into().unwrap(),
        agent: "__default__".to_owned(),
    };
    let limits = RecallLimits { facts: 5, turns: 5 };
    for (user, words, count) in
        [(ADA, "lines of notes.txt", 1), ("4242", "这是什么", 1), (BO, "question 3", 0)]
    {
        let hits = homes.db.recall(&said(user), words, limits).await.unwrap();
        assert_eq!(hits.turns.len(), count, "{words}");
    }
    // Files of version 2.0 are copied byte for byte; 1.0 is converted, and the original is kept.
    let file = |root: PathBuf, place: &str| fs::read(root.join(place)).unwrap();
    let place = format!("users/{ADA}/memory.json");
    assert_eq!(file(homes.home(), &place), file(homes.source().join(".deer-flow"), &place));
    let old = format!("users/{BO}/memory.json");
    assert_eq!(file(homes.home(), &format!("{old}.v1.bak")), file(homes.source().join(".deer-flow"), &old));
}

#[tokio::test]
async fn a_second_import_changes_nothing() {
    let homes = Homes::new().await;
    let first = homes.import().await;
    let (files, notes) = (tree(&homes.home().join("users")), homes.db.import_notes().await.unwrap());
    let second = homes.import().await;
    assert_eq!(second.count(ItemOutcome::Taken), 0, "{}", second.text());
    assert_eq!(second.count(ItemOutcome::Left), first.count(ItemOutcome::Left));
    assert_eq!((tree(&homes.home().join("users")), homes.db.import_notes().await.unwrap()), (files, notes));
}

#[tokio::test]
async fn what_went_on_in_deerflow_follows_unless_it_went_on_in_pudu_too() {
    let homes = Homes::new().await;
    homes.import().await;
    // The thread loses its last answer, as after a rollback.
    homes.run(
        "DELETE FROM checkpoints WHERE thread_id IN ('thread-im', 'thread-ada') AND checkpoint_id IN
        (SELECT MAX(checkpoint_id) FROM checkpoints GROUP BY thread_id)",
    );
    let said = pudu_base::Human::new("new", "and this?");
    let update = pudu_base::Update::Message(std::sync::Arc::new(Message::Human(said)));
    let (at, _) = homes.db.load(&"thread-ada".into()).await.unwrap();
    homes.db.append(&"thread-ada".into(), &"run".into(), at, &[update]).await.unwrap();
    let report = homes.import().await;
    let threads = outcomes(&report, ItemKind::Thread);
    let of = |id: &str| threads.iter().find(|(item, _)| item == id).map(|(_, outcome)| *outcome);
    assert_eq!((of("thread-im"), of("thread-ada")), (Some(ItemOutcome::Taken), Some(ItemOutcome::Left)));
    let ids: Vec<String> = homes.state("thread-im").await.messages.keys().map(ToString::to_string).collect();
    assert_eq!(ids, ["im1", "im2", "im3"]);
    assert!(homes.state("thread-ada").await.messages.contains_key(&pudu_base::MessageId::from("new")));
}

#[tokio::test]
async fn one_bad_thread_stops_no_other_one() {
    let deep = format!("{}C0", "91".repeat(5_000));
    let table = [
        (
            "truncated or damaged data",
            "UPDATE checkpoints SET checkpoint = X'D9' WHERE thread_id = 'thread-im'".to_owned(),
        ),
        (
            "levels of nesting",
            format!("UPDATE checkpoints SET checkpoint = X'{deep}' WHERE thread_id = 'thread-im'"),
        ),
        (
            "its checkpoint is not an object",
            "UPDATE checkpoints SET checkpoint = X'93010203' WHERE thread_id = 'thread-im'".to_owned(),
        ),
        (
            "unsupported serialization `pickle`",
            "UPDATE checkpoints SET type = 'pickle' WHERE thread_id = 'thread-im'".to_owned(),
        ),
        (
            "larger than 32 MiB",
            "UPDATE checkpoints SET checkpoint = zeroblob(33554433) WHERE thread_id = 'thread-im'".to_owned(),
        ),
        (
            "form a cycle",
            "UPDATE checkpoints SET thread_id = 'x' WHERE thread_id = 'thread-im';
             UPDATE checkpoints SET thread_id = 'thread-im' WHERE thread_id = 'thread-delta';
             DELETE FROM checkpoints WHERE checkpoint_id = (SELECT MAX(checkpoint_id) FROM checkpoints WHERE thread_id = 'thread-im');
             UPDATE checkpoints SET parent_checkpoint_id = checkpoint_id WHERE thread_id = 'thread-im'"
                .to_owned(),
        ),
    ];
    for (why, sql) in table {
        let homes = Homes::new().await;
        homes.run(&sql);
        let report = homes.import().await;
        let bad = report
            .items
            .iter()
            .find(|item| item.kind == ItemKind::Thread && item.item == "thread-im")
            .unwrap();
        let note = bad.note.as_deref().unwrap_or_default();
        assert!(bad.outcome == ItemOutcome::Left && note.contains(why), "{why}: {note}");
        let good = outcomes(&report, ItemKind::Thread);
        assert!(good.contains(&("thread-ada".to_owned(), ItemOutcome::Taken)), "{why}");
    }
}

#[tokio::test]
async fn links_and_other_peoples_files_stay_where_they_are() {
    let homes = Homes::new().await;
    let workspace =
        homes.source().join(format!(".deer-flow/users/{ADA}/threads/thread-ada/user-data/workspace"));
    fs::create_dir_all(&workspace).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", workspace.join("away")).unwrap();
    std::os::unix::fs::symlink("/etc", homes.source().join(".deer-flow/users/etc")).unwrap();
    let own = homes.home().join(format!("users/{ADA}/threads/thread-ada/user-data/uploads/notes.txt"));
    fs::create_dir_all(own.parent().unwrap()).unwrap();
    fs::write(&own, "mine").unwrap();
    let report = homes.import().await;
    let files =
        report.items.iter().find(|item| item.kind == ItemKind::Files && item.item == "thread-ada").unwrap();
    let note = files.note.as_deref().unwrap();
    assert!(
        note.contains("away: symbolic link")
            && note.contains("notes.txt: a different file with this name already exists"),
        "{note}"
    );
    assert_eq!(fs::read_to_string(own).unwrap(), "mine");
    assert!(!homes.home().join("users/etc").exists());
}

#[tokio::test]
async fn a_database_with_a_log_beside_it_is_read_from_a_copy() {
    let homes = Homes::new().await;
    let file = homes.source().join(".deer-flow/data/deerflow.db");
    let open = rusqlite::Connection::open(&file).unwrap();
    open.execute_batch("PRAGMA journal_mode=WAL; UPDATE threads_meta SET display_name = 'From the log' WHERE thread_id = 'thread-ada'").unwrap();
    assert!(file.with_extension("db-wal").exists());
    let before = tree(&homes.source());
    homes.import().await;
    assert_eq!(tree(&homes.source()), before);
    assert_eq!(homes.db.title(&"thread-ada".into()).await.unwrap().as_deref(), Some("From the log"));
}

/// A thousand threads are imported within a minute, and a second import is a no-op.
#[tokio::test]
async fn a_thousand_threads_are_moved_in_within_a_minute() {
    let homes = Homes::new().await;
    homes.run(
        "CREATE TABLE numbers AS WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1000) SELECT n FROM n;
         INSERT INTO checkpoints SELECT 'copy-' || n, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata
             FROM checkpoints JOIN numbers WHERE checkpoint_id = (SELECT MAX(checkpoint_id) FROM checkpoints WHERE thread_id = 'thread-ada');
         INSERT INTO threads_meta SELECT 'copy-' || n, assistant_id, user_id, 'Copy ' || n, status, metadata_json, created_at, updated_at
             FROM threads_meta JOIN numbers WHERE thread_id = 'thread-ada'",
    );
    let began = std::time::Instant::now();
    let report = homes.import().await;
    let took = began.elapsed();
    println!("moved 1,000 threads in within {took:?}");
    let threads = outcomes(&report, ItemKind::Thread);
    let copies =
        threads.iter().filter(|(id, outcome)| id.starts_with("copy-") && *outcome == ItemOutcome::Taken);
    assert_eq!(copies.count(), 1_000);
    assert!(took.as_secs() < 60, "{took:?}");
    assert_eq!(homes.import().await.count(ItemOutcome::Taken), 0);
}

#[tokio::test]
async fn the_files_of_a_thread_that_was_deleted_do_not_come_back() {
    let homes = Homes::new().await;
    homes.import().await;
    let own = homes.home().join(format!("users/{ADA}/threads/thread-ada"));
    homes.db.delete_thread(&"thread-ada".into(), i64::MAX, &ThreadId::fresh()).await.unwrap();
    fs::remove_dir_all(&own).unwrap();
    let report = homes.import().await;
    assert!(!own.exists());
    for kind in [ItemKind::Thread, ItemKind::Files] {
        let item = report.items.iter().find(|item| item.kind == kind && item.item == "thread-ada").unwrap();
        assert_eq!(
            (item.outcome, item.note.as_deref()),
            (ItemOutcome::Left, Some("deleted in pudu after the import"))
        );
    }
}

#[tokio::test]
async fn what_a_room_talked_in_belongs_to_the_room() {
    let homes = Homes::new().await;
    homes.import_to(rooms).await;
    let thread = "thread-delta".into();
    let talk = homes.db.newest_threads(Some("slack"), 9).await.unwrap();
    assert_eq!(talk.iter().map(|row| row.id.clone()).collect::<Vec<_>>(), [thread]);
    let owner = talk[0].user.to_string();
    assert!(owner.starts_with("room-slack-"), "{owner}");
    let telegram = homes.db.owner(&"thread-im".into()).await.unwrap();
    assert_eq!(
        telegram,
        Some(ThreadFolder { owner: UserId::from_raw("4242").unwrap(), ..ThreadFolder::from("x") }.owner)
    );
}

#[tokio::test]
async fn accounts_follow_what_changed_there_unless_they_changed_here() {
    let homes = Homes::new().await;
    let of = |report: &ImportReport| {
        let items = report.items.iter().filter(|item| item.kind == ItemKind::Account);
        let mut items: Vec<_> = items.map(|item| (item.item.clone(), item.outcome)).collect();
        items.sort();
        items.into_iter().map(|(_, outcome)| outcome).collect::<Vec<_>>()
    };
    use ItemOutcome::{Left, Taken, Unchanged};
    assert_eq!(of(&homes.import().await), [Taken, Taken]);
    assert_eq!(of(&homes.import().await), [Unchanged, Unchanged]);
    homes.run("UPDATE users SET system_role = 'user', token_version = 4 WHERE email = 'ada@example.org'");
    assert_eq!(of(&homes.import().await), [Taken, Unchanged]);
    assert_eq!(of(&homes.import().await), [Unchanged, Unchanged]);
    let here = rusqlite::Connection::open(homes.home().join("data/pudu.db")).unwrap();
    let role: String =
        here.query_row("SELECT system_role FROM users WHERE id = ?1", [ADA], |row| row.get(0)).unwrap();
    assert_eq!(role, "user");
    here.execute_batch("UPDATE users SET system_role = 'admin' WHERE email = 'bo@example.org'").unwrap();
    homes.run("UPDATE users SET token_version = 9");
    assert_eq!(of(&homes.import().await), [Taken, Left]);
    homes.run("UPDATE users SET id = 'somebody-else' WHERE email = 'ada@example.org'");
    assert_eq!(of(&homes.import().await), [Left, Left], "the address is another user's here");
}

#[tokio::test]
async fn one_bad_row_stops_no_other_one() {
    let homes = Homes::new().await;
    homes.run(
        "PRAGMA writable_schema = 1;
         UPDATE users SET email = CAST(X'61FF62' AS TEXT) WHERE email = 'ada@example.org';
         UPDATE users SET oauth_id = CAST(zeroblob(2000000) AS TEXT), token_version = 'many' WHERE email = 'bo@example.org';
         UPDATE threads_meta SET display_name = X'FFFE', metadata_json = zeroblob(2000000) WHERE thread_id = 'thread-ada'",
    );
    let report = homes.import().await;
    let accounts = outcomes(&report, ItemKind::Account);
    let taken = |email: &str| (email.to_owned(), ItemOutcome::Taken);
    assert_eq!(accounts, [taken("a\u{fffd}b"), taken("bo@example.org")]);
    assert_eq!(homes.db.title(&"thread-ada".into()).await.unwrap().as_deref(), Some("\u{fffd}\u{fffd}"));
    assert!(!homes.state("thread-ada").await.messages.is_empty());
}

#[tokio::test]
async fn a_database_without_threads_is_told() {
    let homes = Homes::new().await;
    homes.run("DROP TABLE threads_meta; ALTER TABLE checkpoints RENAME TO others");
    let report = homes.import().await;
    for table in ["checkpoints", "threads_meta"] {
        let item = report.items.iter().find(|item| item.item == table).unwrap();
        assert!(item.note.as_deref().unwrap().contains("does not have this table"), "{item:?}");
    }
}

#[tokio::test]
async fn nothing_is_written_through_a_link_of_the_target() {
    let homes = Homes::new().await;
    let own = homes.home().join(format!("users/{ADA}/threads/thread-ada/user-data"));
    let away = homes.dir.path().join("away");
    fs::create_dir_all(&own).unwrap();
    fs::create_dir_all(&away).unwrap();
    std::os::unix::fs::symlink(&away, own.join("uploads")).unwrap();
    let report = homes.import().await;
    assert!(fs::read_dir(&away).unwrap().next().is_none());
    let files = report.items.iter().find(|item| item.kind == ItemKind::Files && item.item == "thread-ada");
    assert!(files.unwrap().note.as_deref().unwrap().contains("blocked by a symbolic link"));
}

#[tokio::test]
async fn scheduled_tasks_wait_for_their_next_time_and_a_deleted_one_stays_deleted() {
    let homes = Homes::new().await;
    homes.run(&format!(
        "DROP TABLE IF EXISTS scheduled_tasks;
         CREATE TABLE scheduled_tasks (id TEXT, user_id TEXT, thread_id TEXT, context_mode TEXT, title TEXT, prompt TEXT,
             schedule_type TEXT, schedule_spec TEXT, timezone TEXT, status TEXT, run_count INTEGER, created_at TEXT);
         INSERT INTO scheduled_tasks VALUES
             ('task-1', '{ADA}', NULL, 'fresh_thread_per_run', 'News', 'Read', 'cron', '{{\"cron\": \"0 9 * * *\"}}', 'Asia/Shanghai', 'running', 4, '2026-01-01T00:00:00+00:00'),
             ('task-2', '{ADA}', 'thread-ada', 'reuse_thread', 'Once', 'Read', 'once', '{{\"run_at\": \"2020-01-01T00:00:00Z\"}}', 'UTC', 'enabled', 0, NULL),
             ('task-3', '{BO}', NULL, 'fresh_thread_per_run', 'Odd', 'Read', 'cron', '{{\"cron\": \"x\"}}', 'UTC', 'enabled', 0, NULL),
             (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"
    ));
    let report = homes.import().await;
    let expected = [("News", ItemOutcome::Taken), ("Odd", ItemOutcome::Left), ("Once", ItemOutcome::Taken)];
    let mut found = outcomes(&report, ItemKind::Schedule);
    found.retain(|(item, _)| item != "a row of scheduled_tasks");
    found.sort();
    assert_eq!(found, expected.map(|(item, outcome)| (item.to_owned(), outcome)));
    let [once, news] = [("task-2", "cancelled", None), ("task-1", "enabled", Some(1))];
    for (id, status, next) in [once, news] {
        let task = homes.db.scheduled_task(id).await.unwrap().unwrap();
        assert_eq!(
            (task.status.as_str(), task.next_run.map(|next| i64::from(next > NOW))),
            (status, next),
            "{id}"
        );
    }
    homes.db.delete_scheduled_task("task-1").await.unwrap();
    homes.import().await;
    assert_eq!(homes.db.scheduled_task("task-1").await.unwrap(), None);
}
