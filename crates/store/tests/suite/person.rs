use crate::{
    approvals::{decision, question},
    fixture::{NOW, Place, accept, turn as new_turn},
};
use pudu_base::{
    Assistant, Finish, Goal, Human, Message, MessageId, StepKind, TaskStage, TaskStep, ThreadFolder,
    ThreadLog, Todo, TodoStatus, Update, UserId, digest,
};
use pudu_store::{
    AccountPerson, Approval, AuditEntry, Db, DbLocation, FORGOTTEN_NOTE, Identity, InsertedEvent,
    NewInboxItem, NewTurn, PersonKeys, TaskFilter,
};
use std::sync::Arc;

pub(crate) fn ada() -> PersonKeys {
    let person =
        |account: &str| AccountPerson { account: account.into(), person: "U1".into(), name: "Ada".into() };
    PersonKeys {
        user: UserId::from_raw("ada").unwrap(),
        former: Vec::new(),
        people: vec![person("slack")],
        event_sender: "/sender/id",
        reply_sender: "/sender",
    }
}

fn human_message(id: &str, person: &str) -> Update {
    let human = Human { person: Some(person.into()), sender: Some("Ada".into()), ..Human::new(id, id) };
    Update::Message(Arc::new(Message::Human(human)))
}

fn assistant_message(id: &str) -> Update {
    Update::Message(Arc::new(Message::Assistant(Assistant {
        id: id.into(),
        text: id.into(),
        reasoning: Some("thinking of Ada".into()),
        provider_parts: None,
        calls: Vec::new(),
        finish: Finish::Complete,
        model: None,
        usage: None,
        failure: None,
    })))
}

async fn event(db: &Db, key: &str, sender: &str) -> InsertedEvent {
    let payload = format!("{{\"sender\": {{\"id\": \"{sender}\"}}, \"text\": \"words of {sender}\"}}");
    let item = NewInboxItem {
        account: "slack".into(),
        event_key: key.into(),
        chat: "C".into(),
        message: None,
        payload,
        at: NOW,
        position: None,
    };
    db.accept(&item).await.unwrap()
}

async fn texts(db: &Db, thread: &str) -> Vec<String> {
    let (_, state) = db.load(&thread.into()).await.unwrap();
    state.messages.values().map(|message| message.text().to_owned()).collect()
}

pub(crate) async fn all_data_of_a_person_and_no_other_is_exported_and_deleted(db: Db) {
    let (keys, room) = (ada(), ThreadFolder { owner: UserId::from_raw("room").unwrap(), thread: "r".into() });
    let identity = Identity {
        account: "slack".into(),
        person: "U1".into(),
        user: keys.user.clone(),
        name: "Ada".into(),
        at: NOW,
    };
    db.identify(identity.clone()).await.unwrap();
    db.thread_used(&room, "slack", NOW).await.unwrap();
    let step = TaskStep {
        index: 1,
        kind: StepKind::Reply { calls: Vec::new() },
        text: "Ada's step".into(),
        truncated: false,
    };
    let todo = Todo { content: "Ada's entry".into(), status: TodoStatus::Pending };
    let other_updates = [
        Update::Task { call: "c".into(), stage: TaskStage::Step(step) },
        Update::Todos(vec![todo]),
        Update::Goal(Some(Goal::new("Ada's goal".into(), NOW))),
    ];
    let turn = [&[human_message("a1", "U1"), assistant_message("b1")][..], &other_updates[..]].concat();
    db.append(&"r".into(), &"1".into(), 0, &turn).await.unwrap();
    db.append(&"r".into(), &"2".into(), 5, &[human_message("a2", "U11"), assistant_message("b2")])
        .await
        .unwrap();
    for (person, detail) in [("U1", "cat ada.txt"), ("U2", "cat bob.txt")] {
        let entry = AuditEntry {
            at: NOW,
            thread: "r".into(),
            run: "1".into(),
            account: "slack".into(),
            person: person.into(),
            action: "exec".into(),
            detail: detail.into(),
            verdict: "allowed".into(),
            code: Some(0),
            ended: Some(NOW),
        };
        db.begin_audit_entry(entry).await.unwrap();
    }
    let asked = Approval { account: "slack".into(), person: "U2".into(), ..question("q", "call") };
    db.ask(&asked).await.unwrap();
    db.decide("q", decision(true, Some("U1"))).await.unwrap();
    let by_token = Approval { id: "p".into(), call: "other".into(), ..asked };
    db.ask(&by_token).await.unwrap();
    db.decide("p", decision(false, Some("U1 (token ci)"))).await.unwrap();
    assert!(!db.is_person_at_work(&keys).await.unwrap());
    let InsertedEvent::New(id) = event(&db, "1", "U1").await else { panic!("it must be new") };
    assert!(db.is_person_at_work(&keys).await.unwrap(), "their event is waiting");
    assert_eq!(db.left_of_person(&keys).await.unwrap(), (vec![id], Vec::new()));
    db.finish(&[id], NOW).await.unwrap();
    event(&db, "2", "U2").await;
    assert!(!db.is_person_at_work(&keys).await.unwrap());

    let messages = db.room_messages(&keys).await.unwrap();
    let open = NewTurn {
        account: "slack".into(),
        folder: Some(room.clone()),
        people: vec!["U1".into(), "U2".into()],
        ..new_turn("answer", &[accept(&db, "9").await])
    };
    db.open_turn(&open).await.unwrap();
    assert!(db.has_open_turn(&["r".into()].into()).await.unwrap());
    assert!(
        !db.forget_person(&keys, messages.clone(), Vec::new()).await.unwrap(),
        "another person's run in the room still uses the messages"
    );
    assert_eq!(db.room_messages(&keys).await.unwrap(), messages, "nothing was deleted");
    db.park(&open.id, "late", NOW).await.unwrap();
    let ids: Vec<&MessageId> = messages.iter().map(|one| one.message.id()).collect();
    assert_eq!(
        ids,
        [&MessageId::from("a1"), &MessageId::from("b1")],
        "only their turn, not that of an id with the same beginning"
    );
    let tables = db.person_tables(&keys).await.unwrap();
    let rows =
        |name: &str| tables.iter().find(|table| table.name == name).map_or(0, |table| table.rows.len());
    assert_eq!((rows("identities"), rows("audit"), rows("approvals")), (1, 1, 0));
    assert_eq!((rows("decided_approvals"), rows("room_threads")), (2, 1));

    assert!(db.forget_person(&keys, messages, Vec::new()).await.unwrap());
    db.compact().await.unwrap();
    for id in ["q", "p"] {
        let decision = db.approval(id).await.unwrap().unwrap().decision.unwrap();
        assert_eq!(decision.by.as_deref(), Some(""), "{id}");
    }
    let removed = "[removed at the person's request]";
    assert_eq!(texts(&db, "r").await, [removed, removed, "a2", "b2"]);
    let (_, state) = db.load(&"r".into()).await.unwrap();
    assert_eq!((state.todos, state.goal), (Vec::new(), None));
    let every = TaskFilter { run: None, call: None, after: 0, limit: 9 };
    let stages = format!("{:?}", db.task_stages(&"r".into(), &every).await.unwrap());
    assert!(stages.contains("Running") && !stages.contains("Ada"), "{stages}");
    let audit = db.audit_entries(None, 10).await.unwrap();
    let audit: Vec<_> = audit.iter().map(|entry| (entry.person.as_str(), entry.detail.as_str())).collect();
    assert_eq!(audit, [("U2", "cat bob.txt"), ("", "")]);
    assert!(db.identities().await.unwrap().is_empty());
    db.identify(identity).await.unwrap();
    assert!(
        !db.is_thread_member(&"r".into(), &keys.user).await.unwrap(),
        "a returning person is not a member"
    );
    assert!(
        matches!(event(&db, "1", "U1").await, InsertedEvent::Duplicate),
        "a late redelivery is recognised"
    );
    let notes = db.import_notes().await.unwrap();
    let notes: Vec<_> = notes.iter().map(|note| (note.kind.as_str(), note.item.clone())).collect();
    assert_eq!(notes, [(FORGOTTEN_NOTE, digest("ada"))]);
}

pub(crate) async fn data_of_a_linked_person_from_before_the_link_is_found_and_deleted(db: Db) {
    let former = UserId::from_raw("was").unwrap();
    let keys = PersonKeys { former: vec![former.clone()], ..ada() };
    let own = ThreadFolder { owner: former.clone(), thread: "own".into() };
    db.thread_used(&own, "slack", NOW).await.unwrap();
    db.append(&"own".into(), &"1".into(), 0, &[human_message("a1", "U1")]).await.unwrap();
    assert_eq!(db.room_messages(&keys).await.unwrap(), [], "it is not a room");
    db.set_memory_off(&former, true).await.unwrap();
    let tables = db.person_tables(&keys).await.unwrap();
    let off = tables.iter().find(|table| table.name == "memory_off").unwrap();
    assert_eq!(off.rows.len(), 1, "{tables:?}");
    assert!(db.forget_person(&keys, Vec::new(), Vec::new()).await.unwrap());
    assert!(!db.is_memory_off(&former).await.unwrap());
    let notes = db.import_notes().await.unwrap();
    let notes: Vec<_> = notes.into_iter().map(|note| note.item).collect();
    assert!(notes.contains(&digest("ada")) && notes.contains(&digest("was")), "{notes:?}");
}

/// All tables, each with the effect of a person's deletion on their rows. A new table needs an entry here, and maybe code
/// in `person.rs`.
const TABLES: &[(&str, &str)] = &[
    ("adoptions", "deleted"),
    ("api_tokens", "deleted"),
    ("approvals", "their own are deleted"),
    ("audit", "kept without name and detail"),
    ("budgets", "their own are deleted"),
    ("buffered_messages", "deleted"),
    ("conversations", "deleted with the thread"),
    ("deleted_threads", "ids, until the folders are removed"),
    ("feedback", "deleted"),
    ("identities", "deleted"),
    ("imports", "deleted, except for the digest that prevents another import"),
    ("inbox", "kept without content, so that a redelivery is recognised"),
    ("learnings", "deleted"),
    ("learnt", "deleted"),
    ("log", "deleted with the thread; emptied for their turns in rooms"),
    ("memory_merges", "deleted"),
    ("memory_off", "deleted"),
    ("messages", "ids of messages without text"),
    ("owner", "no personal data"),
    ("paired", "deleted"),
    ("pairing_codes", "deleted"),
    ("recall_bags", "deleted"),
    ("recall_docs", "deleted"),
    ("recall_scopes", "deleted"),
    ("recall_words", "deleted"),
    ("reservations", "none, because a reservation prevents the deletion"),
    ("runs", "deleted with the thread"),
    ("scheduled_task_runs", "deleted with the task"),
    ("scheduled_tasks", "deleted"),
    ("schema_version", "no personal data"),
    ("snapshots", "deleted, also for rooms' threads"),
    ("spending", "kept without a name"),
    ("stream_positions", "no personal data"),
    ("thread_people", "deleted"),
    ("threads", "deleted; a room's thread loses its title"),
    ("turns", "deleted"),
    ("users", "deleted"),
];

pub(crate) async fn the_deletion_rule_of_every_table_is_listed(place: Place) {
    place.open().await.close().await;
    let mut connection = place.connect().await;
    let is_server = matches!(place.location, DbLocation::Postgres(_));
    let sql = match is_server {
        true => "SELECT CAST(table_name AS TEXT) FROM information_schema.tables WHERE table_schema = 'pudu'",
        false => "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'",
    };
    let mut names: Vec<String> = sqlx::query_scalar(sql).fetch_all(&mut connection).await.unwrap();
    names.retain(|name| !name.starts_with("recall_index"));
    names.sort();
    assert_eq!(names, TABLES.iter().map(|(name, _)| *name).collect::<Vec<_>>());
}
