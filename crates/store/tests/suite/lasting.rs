use crate::{
    accounts::provider_login,
    client_runs::request,
    fixture::{BEFORE_ONE_RUN, NOW, Place, WITHOUT_CLIENT_RUNS, accept, event, run, turn},
    log::human_message,
};
use futures_util::future::join_all;
use pudu_base::{LogError, Outcome, RunId, ThreadId, ThreadLog};
use pudu_store::{Db, InsertedEvent, NewTurn, ProviderAccount, RunOrigin, StoreError, TurnId};
use sqlx::Connection;

pub(crate) async fn acknowledged_writes_survive_a_kill(place: Place) {
    let db = place.open().await;
    let item = accept(&db, "1").await;
    db.open_turn(&turn("t", &[item])).await.unwrap();
    db.conclude(&TurnId("t".into()), "said").await.unwrap();
    db.append(&"thread".into(), &"run".into(), 0, &[human_message("1", "hello")]).await.unwrap();
    let before = (db.pending().await.unwrap(), db.open_turns().await.unwrap());
    let thread = db.load(&"thread".into()).await.unwrap();
    drop(db);

    let db = place.open().await;
    assert_eq!((db.pending().await.unwrap(), db.open_turns().await.unwrap()), before);
    assert_eq!(db.load(&"thread".into()).await.unwrap(), thread);
    assert_eq!(db.accept(&event("1")).await.unwrap(), InsertedEvent::Duplicate);
}

pub(crate) async fn a_process_takes_over_the_runs_of_the_previous_one(place: Place) {
    let db = place.open().await;
    let (item, started) = (accept(&db, "1").await, NOW + 1);
    db.accept_run(request("waits", "mine", NOW - 1)).await.unwrap();
    db.accept_run(request("ended", "mine", NOW)).await.unwrap();
    db.open_turn(&turn("t", &[item])).await.unwrap();
    db.accept_run(request("works", "mine", started)).await.unwrap();
    for (run, thread) in [("works", "mine"), ("of a program", "thread")] {
        db.run_started(&run.into(), &thread.into(), "gpt", None, started).await.unwrap();
    }
    db.drop_goal(&TurnId("t".into())).await.unwrap();
    db.run_ended(&"ended".into(), &Outcome::Success, NOW).await.unwrap();
    assert_eq!(db.take_over_runs().await.unwrap(), [], "they are its own runs");
    drop(db);

    let db = place.open().await;
    let taken = db.take_over_runs().await.unwrap();
    let seen: Vec<_> = taken.iter().map(|row| (row.id.as_str(), row.origin, row.goal_dropped)).collect();
    assert_eq!(
        seen,
        [
            ("of a program", RunOrigin::Embedded, false),
            ("works", RunOrigin::Api, false),
            ("waits", RunOrigin::Api, false),
            ("run", RunOrigin::Chat, true),
        ],
        "those that had begun come first"
    );
    assert_eq!(db.take_over_runs().await.unwrap(), []);
}

pub(crate) async fn closing_completes_waiting_writes(place: Place) {
    let db = place.open().await;
    let events: Vec<_> = (0..500).map(|n| event(&n.to_string())).collect();
    let accepts = join_all(events.iter().map(|event| db.accept(event)));
    let (answers, ()) = futures_util::join!(accepts, db.close());
    let kept = answers.iter().filter(|answer| answer.is_ok()).count();
    assert!(kept > 0, "some were written before the close");
    let db = place.open().await;
    assert_eq!(db.pending_count().await.unwrap(), i64::try_from(kept).unwrap());
}

pub(crate) async fn two_simultaneous_starts_both_succeed(place: Place) {
    let starts = (0..8).map(|n: i32| {
        let place = place.clone();
        tokio::spawn(async move {
            let db = place.open().await;
            accept(&db, &n.to_string()).await;
        })
    });
    for started in join_all(starts).await {
        started.unwrap();
    }
    assert_eq!(place.open().await.pending_count().await.unwrap(), 8);
}

pub(crate) async fn two_instances_do_not_overwrite_each_other(place: Place) {
    let (one, two) = (place.open().await, place.open().await);
    let (thread, run) = (ThreadId::from("thread"), RunId::from("run"));
    for at in 0..20 {
        let (mine, yours) = ([human_message("mine", "1")], [human_message("yours", "2")]);
        let answers =
            tokio::join!(one.append(&thread, &run, at, &mine), two.append(&thread, &run, at, &yours));
        match answers {
            (Ok(seq), Err(LogError::Conflict { .. })) | (Err(LogError::Conflict { .. }), Ok(seq)) => {
                assert_eq!(seq, at + 1);
            }
            other => panic!("not exactly one succeeded: {other:?}"),
        }
    }
    let same = event("same");
    let answers = tokio::join!(one.accept(&same), two.accept(&same));
    let new =
        [answers.0.unwrap(), answers.1.unwrap()].iter().filter(|a| **a != InsertedEvent::Duplicate).count();
    assert_eq!(new, 1);
    assert_eq!(one.open_turns().await.unwrap(), two.open_turns().await.unwrap());
}

pub(crate) async fn a_newer_database_is_refused(place: Place) {
    let db = place.open().await;
    accept(&db, "1").await;
    db.close().await;
    let mut behind = place.connect().await;
    run(&mut behind, "INSERT INTO schema_version (version) VALUES (99)".into()).await;
    behind.close().await.unwrap();
    let refused = Db::open(&place.location).await.map(drop).unwrap_err();
    let StoreError::Newer { found: 99, known: known @ 10.. } = refused else { panic!("{refused}") };
    let text = format!("the database has schema version 99, this pudu knows {known}: run a newer pudu");
    assert_eq!(refused.to_string(), text);
}

pub(crate) async fn a_log_row_has_a_time_and_a_run(place: Place) {
    let db = place.open().await;
    let rows: Vec<_> = (0..1_200).map(|n| human_message(&n.to_string(), "x")).collect();
    assert_eq!(db.append(&"thread".into(), &"one".into(), 0, &rows).await.unwrap(), 1_200);
    assert_eq!(db.append(&"thread".into(), &"two".into(), 1_200, &rows[..1]).await.unwrap(), 1_201);
    db.close().await;
    let mut behind = place.connect().await;
    let sql = "SELECT seq, run FROM log WHERE seq > 1198 AND at > 1700000000000 ORDER BY seq";
    let rows: Vec<(i64, String)> = sqlx::query_as(sql).fetch_all(&mut behind).await.unwrap();
    let runs: Vec<_> = rows.iter().map(|(seq, run)| (*seq, run.as_str())).collect();
    assert_eq!(runs, [(1_199, "one"), (1_200, "one"), (1_201, "two")]);
}

pub(crate) async fn threads_from_before_their_table_existed_get_rows(place: Place) {
    let db = place.open().await;
    for (thread, account) in [("ran", "slack"), ("bound", "telegram"), ("alone", "")] {
        if !account.is_empty() {
            db.bind(thread, account, "chat", &thread.into(), NOW).await.unwrap();
        }
        if thread != "bound" {
            db.append(
                &thread.into(),
                &"run".into(),
                0,
                &[human_message("1", "grüße"), human_message("2", "b")],
            )
            .await
            .unwrap();
        }
    }
    db.run_started(&"run".into(), &"ran".into(), "gpt", None, NOW).await.unwrap();
    db.run_ended(&"run".into(), &Outcome::Success, NOW + 5).await.unwrap();
    db.close().await;
    let mut behind = place.connect().await;
    let back =
        "DROP TABLE buffered_messages; DROP TABLE adoptions; DROP TABLE thread_people; DROP TABLE imports; DROP TABLE users; DROP TABLE api_tokens; DROP TABLE feedback; DROP TABLE budgets; DROP TABLE reservations; DROP TABLE learnings; DROP TABLE learnt; DROP TABLE memory_off;
        DROP TABLE memory_merges;
        DROP TABLE identities; ALTER TABLE pairing_codes DROP COLUMN issuer; ALTER TABLE pairing_codes DROP COLUMN offer;
        ALTER TABLE turns DROP COLUMN goal_dropped;
        DROP TABLE spending; ALTER TABLE conversations DROP COLUMN thinking; DROP TABLE threads; DROP TABLE deleted_threads; DROP INDEX audit_account;
        DROP INDEX conversations_thread; DROP INDEX turns_thread; DROP INDEX approvals_thread;
        ALTER TABLE log DROP COLUMN at; ALTER TABLE log DROP COLUMN run;
        DROP TABLE recall_scopes; DROP TABLE recall_docs; DROP TABLE recall_bags; DROP TABLE recall_words;
        DROP TABLE IF EXISTS recall_index;
        DROP TABLE scheduled_task_runs; DROP TABLE scheduled_tasks; DELETE FROM schema_version WHERE version >= 8";
    run(&mut behind, BEFORE_ONE_RUN.into()).await;
    run(&mut behind, back.into()).await;
    run(&mut behind, WITHOUT_CLIENT_RUNS.into()).await;
    drop(behind);

    let db = place.open().await;
    let row = async |account: &str| db.threads(account).await.unwrap().remove(0);
    let ran = row("slack").await;
    assert_eq!((ran.id.as_str(), ran.created, ran.updated), ("ran", NOW, NOW + 5));
    let bound = row("telegram").await;
    assert_eq!((bound.id.as_str(), bound.log_bytes), ("bound", 0));
    let alone = row("").await;
    assert_eq!((alone.id.as_str(), alone.log_bytes), ("alone", ran.log_bytes));
    let bytes = [human_message("1", "grüße"), human_message("2", "b")]
        .map(|update| serde_json::to_string(&update).unwrap().len());
    assert_eq!(usize::try_from(ran.log_bytes).unwrap(), bytes.iter().sum::<usize>());
    // Threads of unknown age get the time of the migration.
    assert!(bound.updated > 1_700_000_000_000 && alone.updated > 1_700_000_000_000);
    assert_eq!(db.append(&"ran".into(), &"run".into(), 2, &[human_message("3", "c")]).await.unwrap(), 3);
    db.close().await;
}

pub(crate) async fn provider_accounts_from_before_issuers_remain_usable(place: Place) {
    let db = place.open().await;
    db.close().await;
    let mut behind = place.connect().await;
    let back = "DROP TABLE buffered_messages; DROP TABLE adoptions; DROP TABLE thread_people; DROP INDEX users_oauth; ALTER TABLE users DROP COLUMN oauth_issuer;
        DROP INDEX runs_temporary; ALTER TABLE runs DROP COLUMN deletes_thread;
        ALTER TABLE runs DROP COLUMN title_found; ALTER TABLE runs DROP COLUMN title_left;
        INSERT INTO users (id, email, system_role, needs_setup, token_version, oauth_provider, oauth_id, created) VALUES
            ('ada', 'ada@example.org', 'user', 0, 0, 'acme', 'subject of ada', 1),
            ('bo', 'bo@example.org', 'user', 0, 0, 'acme', 'subject of ada', 1),
            ('cy', 'cy@example.org', 'user', 0, 0, 'other', 'subject of ada', 1),
            ('dee', 'dee@example.org', 'user', 0, 0, NULL, NULL, 1);
        DROP TABLE scheduled_task_runs; DROP TABLE scheduled_tasks; DELETE FROM schema_version WHERE version >= 20";
    run(&mut behind, BEFORE_ONE_RUN.into()).await;
    run(&mut behind, back.into()).await;
    drop(behind);
    let db = place.open().await;
    let subjects: Vec<_> =
        db.user_accounts().await.unwrap().into_iter().map(|account| account.oauth_id).collect();
    let kept = Some("subject of ada".to_owned());
    assert_eq!(subjects, [kept.clone(), None, kept, None], "one subject, one account");
    let login = provider_login("ada", "https://a.example", false);
    let ProviderAccount::Known(ada) = db.provider_login(login).await.unwrap() else {
        panic!("the account must exist")
    };
    assert_eq!(ada.user.as_str(), "ada");
    db.close().await;
}

pub(crate) async fn turns_from_before_unified_run_records_continue(place: Place) {
    let db = place.open().await;
    for (id, event) in [("waits", "1"), ("works", "2"), ("lost", "3")] {
        let item = accept(&db, event).await;
        db.open_turn(&NewTurn { run: Some(id.into()), ..turn(id, &[item]) }).await.unwrap();
    }
    db.run_started(&"works".into(), &"thread".into(), "gpt", None, NOW).await.unwrap();
    db.run_started(&"lost".into(), &"thread".into(), "gpt", None, NOW).await.unwrap();
    db.park(&TurnId("lost".into()), "blocked", NOW).await.unwrap();
    db.close().await;
    let mut behind = place.connect().await;
    run(&mut behind, BEFORE_ONE_RUN.into()).await;
    let back = "DELETE FROM runs WHERE id = 'waits';
        UPDATE turns SET resumed = 3, suspended = 1, goal_dropped = 1 WHERE run = 'works';
        DROP TABLE scheduled_task_runs; DROP TABLE scheduled_tasks; DELETE FROM schema_version WHERE version >= 25";
    run(&mut behind, back.into()).await;
    drop(behind);

    let db = place.open().await;
    let taken = db.take_over_runs().await.unwrap();
    let seen: Vec<_> = taken
        .iter()
        .map(|row| (row.id.as_str(), row.origin, row.resumed, row.suspended, row.goal_dropped))
        .collect();
    let chat = RunOrigin::Chat;
    assert_eq!(seen, [("works", chat, 3, true, true), ("waits", chat, 0, false, false)]);
    let lost = db.run(&"lost".into()).await.unwrap().unwrap();
    assert!(matches!(lost.outcome(), Some(Outcome::Error(_))), "{lost:?}");
    db.close().await;
}

pub(crate) async fn a_terminal_conversation_becomes_a_named_thread_with_its_settings(place: Place) {
    let db = place.open().await;
    db.bind("local:terminal", "local", "terminal", &"t1".into(), NOW).await.unwrap();
    db.set_model("local:terminal", Some("gpt")).await.unwrap();
    db.bind("local:other", "local", "other", &"t2".into(), NOW).await.unwrap();
    db.bind("slack:c", "slack", "c", &"t3".into(), NOW).await.unwrap();
    db.close().await;
    let mut behind = place.connect().await;
    run(&mut behind, "DROP TABLE scheduled_task_runs; DROP TABLE scheduled_tasks; DELETE FROM schema_version WHERE version >= 26".into()).await;
    drop(behind);

    let db = place.open().await;
    let mut named = Vec::new();
    for thread in ["t1", "t2", "t3"] {
        named.push(db.client_thread(&thread.into()).await.unwrap().unwrap().metadata);
    }
    assert_eq!(named, [r#"{"terminal":"terminal"}"#, r#"{"terminal":"other"}"#, ""]);
    let chosen = db.conversation("api:t1").await.unwrap().unwrap();
    assert_eq!((chosen.thread.as_str(), chosen.model.as_deref()), ("t1", Some("gpt")));
    assert!(db.conversation("api:t2").await.unwrap().is_none(), "it has no settings");
    db.close().await;
}

pub(crate) async fn a_database_in_use_is_not_migrated(place: Place) {
    let db = place.open().await;
    let claim = db.claim().await.unwrap();
    let mut behind = place.connect().await;
    run(&mut behind, "DELETE FROM schema_version WHERE version >= 8".into()).await;
    let refused = Db::open(&place.location).await.err().unwrap();
    assert!(matches!(refused, StoreError::Conflict(_)), "{refused:?}");
    let newest: i64 =
        sqlx::query_scalar("SELECT MAX(version) FROM schema_version").fetch_one(&mut behind).await.unwrap();
    assert_eq!(newest, 7);
    drop(claim);
    db.close().await;
}
