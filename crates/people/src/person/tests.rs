use super::*;
use pudu_base::{
    Assistant, Compaction, Delegation, DelegationStatus, DocumentText, Finish, Goal, Human, MemoryNote,
    Message, ReadOutcome, SharedFile, TaskStage, ThreadFolder, ThreadLog, ToolResult, Update, UserId,
};
use pudu_memory::{
    Changes, FactCategory, FactOrigin, FactSource, MemoryScope, NewFact, SupersedeReason, Supersession,
};
use pudu_store::{DbLocation, PersonKeys};
use std::{fs, io::Read, path::Path, sync::Arc};

/// A home with a store and some people.
struct Scene {
    home: tempfile::TempDir,
    db: Db,
    data: PersonData,
}

impl Scene {
    async fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let db = Db::open(&DbLocation::Memory).await.unwrap();
        let folders = Folders::new(home.path().to_owned(), None);
        let data = PersonData::new(db.clone(), folders, MemoryOptions::default());
        Self { home, db, data }
    }

    /// Writes an archive, and returns its paths and all its texts.
    async fn export(&self, keys: &PersonKeys) -> (Vec<String>, String) {
        let file = self.home.path().join("export.zip");
        self.data.export(keys, &file).await.unwrap();
        let mut zip = zip::ZipArchive::new(fs::File::open(&file).unwrap()).unwrap();
        let (mut places, mut all) = (Vec::new(), Vec::new());
        for at in 0..zip.len() {
            let mut entry = zip.by_index(at).unwrap();
            places.push(entry.name().unwrap().into_owned());
            entry.read_to_end(&mut all).unwrap();
        }
        fs::remove_file(file).unwrap();
        (places, String::from_utf8_lossy(&all).into_owned())
    }
}

fn keys(user: &UserId, people: &[(&str, &str)]) -> PersonKeys {
    let person = |(account, person): &(&str, &str)| pudu_store::AccountPerson {
        account: (*account).to_owned(),
        person: (*person).to_owned(),
        name: String::new(),
    };
    PersonKeys {
        former: Vec::new(),
        user: user.clone(),
        people: people.iter().map(person).collect(),
        event_sender: "/sender/id",
        reply_sender: "/sender",
    }
}

fn has_file_with(folder: &Path, word: &str) -> bool {
    fs::read_dir(folder).into_iter().flatten().map(Result::unwrap).any(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => has_file_with(&entry.path(), word),
        _ => fs::read(entry.path()).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(word)),
    })
}

#[tokio::test]
async fn the_archive_has_only_names_of_secrets_and_forgetting_removes_all() {
    let scene = Scene::new().await;
    for user in [UserId::from_raw("ada").unwrap(), UserId::local()] {
        let secrets = SecretStore::new(scene.home.path().join("users"));
        secrets.set(&user, "MAIL_TOKEN", "tok-quagga-1").unwrap();
        let folder = scene.home.path().join("users").join(user.as_str());
        fs::write(folder.join(".secrets.json.part"), "tok-quagga-2").unwrap();
        fs::write(folder.join("memory.json"), "{}").unwrap();
        let (places, all) = scene.export(&keys(&user, &[])).await;
        assert!(all.contains("MAIL_TOKEN") && !all.contains("quagga"), "{user}: {places:?}");
        assert!(places.iter().any(|place| place == "files/memory.json"), "{places:?}");
        scene.data.forget(&keys(&user, &[])).await.unwrap();
        assert!(!has_file_with(scene.home.path(), "quagga"), "{user}");
        assert_eq!(secrets.names(&user).unwrap(), [] as [&str; 0]);
    }
}

fn said(id: &str, person: &str, recalled: Option<&str>) -> Update {
    let note = |user| MemoryNote {
        user: UserId::from_raw(user).unwrap(),
        text: format!("note of {user}"),
        ids: Vec::new(),
    };
    let human = Human {
        person: Some(person.into()),
        recalled: recalled.map(note),
        guide: Some("the guide".into()),
        ..Human::new(id, id)
    };
    Update::Message(Arc::new(Message::Human(human)))
}

fn answered(id: &str) -> Update {
    Update::Message(Arc::new(Message::Assistant(Assistant {
        id: id.into(),
        text: id.into(),
        reasoning: None,
        provider_parts: None,
        calls: Vec::new(),
        finish: Finish::Complete,
        model: None,
        usage: None,
        failure: None,
    })))
}

/// Bob's chain in a group: one turn by him, one by Ada, and one by both.
async fn chain(scene: &Scene) -> (PersonKeys, PathBuf) {
    let (db, bob) = (&scene.db, UserId::from_raw("bob").unwrap());
    let folder = ThreadFolder { owner: bob.clone(), thread: "t".into() };
    db.thread_used(&folder, "slack", 1).await.unwrap();
    let task = |about: &str| {
        let stage = TaskStage::Started { about: about.into(), agent: "bash".into(), model: "m".into() };
        Update::Task { call: about.into(), stage }
    };
    let first = [said("bob asks", "U2", Some("bob")), task("sub of bob"), answered("to bob")];
    db.append(&"t".into(), &"1".into(), 0, &first).await.unwrap();
    let second = [said("ada asks", "U1", Some("ada")), task("sub of ada"), answered("to ada")];
    db.append(&"t".into(), &"2".into(), 3, &second).await.unwrap();
    let third = [said("bob goes on", "U2", Some("ada")), said("ada steers", "U1", None), answered("to both")];
    db.append(&"t".into(), &"3".into(), 6, &third).await.unwrap();
    let files = scene.home.path().join("users/bob/threads/t/user-data/uploads");
    fs::create_dir_all(&files).unwrap();
    fs::write(files.join("a.txt"), "a file").unwrap();
    (keys(&bob, &[("slack", "U2")]), files)
}

#[tokio::test]
async fn a_shared_thread_is_exported_without_other_peoples_messages() {
    let scene = Scene::new().await;
    let (keys, _) = chain(&scene).await;
    let (places, all) = scene.export(&keys).await;
    assert!(places.iter().any(|place| place == "threads/t.md"), "{places:?}");
    for own in ["bob asks", "sub of bob", "to bob", "bob goes on", "to both", "note of bob"] {
        assert!(all.contains(own), "{own}");
    }
    for other in ["ada asks", "sub of ada", "to ada", "ada steers", "note of ada", "the guide"] {
        assert!(!all.contains(other), "{other}");
    }
}

#[tokio::test]
async fn a_shared_thread_stays_with_the_room() {
    let scene = Scene::new().await;
    let (keys, files) = chain(&scene).await;
    let forgotten = scene.data.forget(&keys).await.unwrap();
    assert_eq!((forgotten.threads, forgotten.rooms), (Vec::new(), vec!["t".into()]));
    let (_, state) = scene.db.load(&"t".into()).await.unwrap();
    let removed = "[removed at the person's request]";
    let texts: Vec<_> = state.messages.values().map(|message| message.text()).collect();
    assert_eq!(texts, [removed, removed, "ada asks", "to ada", removed, "ada steers", removed]);
    let room = UserId::room("slack", "");
    assert_eq!(scene.db.owner(&"t".into()).await.unwrap(), Some(room.clone()));
    let moved = scene.home.path().join("users").join(room.as_str()).join("threads/t/user-data/uploads/a.txt");
    assert!(moved.exists() && !files.exists());
    assert_eq!(scene.data.forget(&keys).await.unwrap(), ForgottenPerson::default(), "no data is left");
}

#[tokio::test]
async fn forgetting_removes_files_and_goals_in_rooms_and_reports_shared_blocks() {
    let scene = Scene::new().await;
    let (db, room) = (&scene.db, UserId::room("slack", "C"));
    let folder = ThreadFolder { owner: room.clone(), thread: "r".into() };
    db.bind("slack:C", "slack", "C", &folder, 1).await.unwrap();
    let own = scene.home.path().join("users").join(room.as_str()).join("threads/r/user-data");
    let results = own.join("outputs/.tool-results");
    fs::create_dir_all(&results).unwrap();
    fs::create_dir_all(own.join("uploads")).unwrap();
    for file in
        ["uploads/a.pdf", "uploads/a.md", "outputs/.tool-results/ls-1.txt", "outputs/.tool-results/ls-2.txt"]
    {
        fs::write(own.join(file), "marmoset").unwrap();
    }
    fs::write(results.join("ls-9.txt"), "of others").unwrap();
    let path = |name: &str| format!("/mnt/user-data/outputs/.tool-results/{name}");
    let text = DocumentText { path: "/mnt/user-data/uploads/a.md".into(), ..DocumentText::default() };
    let mut file = SharedFile {
        name: "a.pdf".into(),
        path: "/mnt/user-data/uploads/a.pdf".into(),
        size: 8,
        reading: None,
    };
    file.reading = Some(ReadOutcome::Text(Box::new(text)));
    let human = Human { person: Some("U1".into()), files: vec![file], ..Human::new("h", "read it") };
    let result = |id: &str, text: String| {
        Update::Message(Arc::new(Message::Tool(ToolResult {
            id: id.into(),
            call: id.into(),
            tool: "ls".into(),
            text,
            error: false,
            images: Vec::new(),
            question: None,
            decision: None,
            decisions: Vec::new(),
            task: None,
        })))
    };
    let goal = || Update::Goal(Some(Goal::new("feed the marmoset".into(), 1)));
    let first = [
        Update::Message(Arc::new(Message::Human(human))),
        result("r1", format!("kept in {}.", path("ls-1.txt"))),
        result("r2", "short".into()),
        goal(),
    ];
    db.append(&"r".into(), &"1".into(), 0, &first).await.unwrap();
    let kept = [("r2".into(), path("ls-2.txt"))].into();
    let delegation = Delegation {
        call: "c".into(),
        task: "count the marmosets".into(),
        agent: "bash".into(),
        status: DelegationStatus::Completed,
        brief: String::new(),
    };
    let block = Compaction {
        run: "2".into(),
        through: "h".into(),
        requests: Vec::new(),
        summary: None,
        cut: false,
        skills: Vec::new(),
        delegations: vec![delegation],
        before: 2,
        after: 1,
    };
    let other = Update::Goal(Some(Goal::new("of Bob".into(), 1)));
    let second = [
        said("bob", "U2", None),
        goal(),
        Update::Mask { through: "r2".into(), kept },
        other.clone(),
        goal(),
        Update::Compact(Arc::new(block)),
    ];
    db.append(&"r".into(), &"2".into(), 4, &second).await.unwrap();
    let ada = UserId::from_raw("ada").unwrap();
    let forgotten = scene.data.forget(&keys(&ada, &[("slack", "U1")])).await.unwrap();
    assert_eq!(forgotten.summarized, ["r".into()]);
    assert!(!has_file_with(scene.home.path(), "marmoset") && results.join("ls-9.txt").exists());
    let (_, state) = db.load(&"r".into()).await.unwrap();
    assert_eq!((state.goal, state.context.kept.len()), (None, 0));
}

#[tokio::test]
async fn facts_in_rooms_are_removed_by_account_despite_a_broken_memory() {
    let scene = Scene::new().await;
    let (own, other, broken) =
        (UserId::room("slack", "C"), UserId::room("discord", "C"), UserId::from_raw("broken").unwrap());
    for (room, account) in [(&own, "slack"), (&other, "discord")] {
        let folder = ThreadFolder { owner: room.clone(), thread: account.into() };
        scene.db.bind(&format!("{account}:C"), account, "C", &folder, 1).await.unwrap();
        let scope = MemoryScope::for_user(room.clone());
        let fact = |content: &str, author: &str| {
            let origin = FactOrigin { author: Some(author.into()), ..FactOrigin::default() };
            let facts = NewFact {
                content: content.into(),
                category: FactCategory::Context,
                confidence: 1.0,
                source: FactSource::conversation("t"),
                origin: Some(origin),
            };
            scene.data.memory.add(&scope, facts, 1).unwrap().0
        };
        let old = fact("Ada plays the xylophone", "U1");
        fact("Ada keeps a marmoset", "U1");
        let by = Some(fact("Bob keeps a hamster", "U2"));
        let gone = Supersession { id: old, by, reason: SupersedeReason::Replaced };
        let changes = Changes { superseded: vec![gone], ..Changes::default() };
        scene.data.memory.change(&scope, 1, |_| Ok(changes)).unwrap();
    }
    let folder = scene.home.path().join("users/broken/agents/__default__/facts");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("fact_1.md"), "no fact").unwrap();
    let ada = keys(&UserId::from_raw("ada").unwrap(), &[("slack", "U1")]);
    let (places, all) = scene.export(&ada).await;
    assert!(places.iter().any(|place| place == "rooms/facts.json"), "{places:?}");
    assert!(all.contains("Ada plays the xylophone") && all.contains("Ada keeps a marmoset"), "{all}");
    assert_eq!((all.matches("xylophone").count(), all.contains("hamster")), (1, false), "no data of others");
    let forgotten = scene.data.forget(&ada).await.unwrap();
    assert_eq!((forgotten.room_facts, forgotten.unreadable), (2, vec![broken]));
    let facts =
        |room: &UserId| scene.data.memory.read(&MemoryScope::for_user(room.clone()), 2).unwrap().facts.len();
    assert_eq!((facts(&own), facts(&other)), (1, 2), "U1 of another bot is another person");
    let left =
        |room: &UserId| has_file_with(&scene.home.path().join("users").join(room.as_str()), "xylophone");
    assert_eq!((left(&own), left(&other)), (false, true), "and so are superseded facts");
}
