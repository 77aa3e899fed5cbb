use super::*;
use pudu_base::{Assistant, Finish, Human, MemoryNote, Message, ThreadFolder, ThreadLog, Update, UserId};
use pudu_store::{DbLocation, PersonKeys};
use std::{fs, io::Read, path::Path, sync::Arc};

/// A home with a store and the people in it.
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

    /// Writes an archive, and returns its places and all its texts.
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
async fn of_secrets_the_archive_has_the_names_and_nothing_is_left_once_they_are_forgotten() {
    let scene = Scene::new().await;
    for user in [UserId::of("ada").unwrap(), UserId::local()] {
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
        user: UserId::of(user).unwrap(),
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
    })))
}

/// Bob's chain in a group: one turn of his, one of Ada's, and one in which both spoke.
async fn chain(scene: &Scene) -> (PersonKeys, PathBuf) {
    let (db, bob) = (&scene.db, UserId::of("bob").unwrap());
    let folder = ThreadFolder { owner: bob.clone(), thread: "t".into() };
    db.thread_used(&folder, "slack", 1).await.unwrap();
    let first = [said("bob asks", "U2", Some("bob")), answered("to bob")];
    db.append(&"t".into(), &"1".into(), 0, &first).await.unwrap();
    let second = [said("ada asks", "U1", Some("ada")), answered("to ada")];
    db.append(&"t".into(), &"2".into(), 2, &second).await.unwrap();
    let third = [said("bob goes on", "U2", Some("ada")), said("ada steers", "U1", None), answered("to both")];
    db.append(&"t".into(), &"3".into(), 4, &third).await.unwrap();
    let files = scene.home.path().join("users/bob/threads/t/user-data/uploads");
    fs::create_dir_all(&files).unwrap();
    fs::write(files.join("a.txt"), "a file").unwrap();
    (keys(&bob, &[("slack", "U2")]), files)
}

#[tokio::test]
async fn a_thread_in_which_others_spoke_is_told_without_them() {
    let scene = Scene::new().await;
    let (keys, _) = chain(&scene).await;
    let (places, all) = scene.export(&keys).await;
    assert!(places.iter().any(|place| place == "threads/t.md"), "{places:?}");
    for own in ["bob asks", "to bob", "bob goes on", "to both", "note of bob"] {
        assert!(all.contains(own), "{own}");
    }
    for other in ["ada asks", "to ada", "ada steers", "note of ada", "the guide"] {
        assert!(!all.contains(other), "{other}");
    }
}

#[tokio::test]
async fn a_thread_in_which_others_spoke_is_kept_for_them_by_the_room() {
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
    let kept = scene.home.path().join("users").join(room.as_str()).join("threads/t/user-data/uploads/a.txt");
    assert!(kept.exists() && !files.exists());
    assert_eq!(scene.data.forget(&keys).await.unwrap(), ForgottenPerson::default(), "nothing is left");
}
