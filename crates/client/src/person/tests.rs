use super::*;
use pudu_base::UserId;
use pudu_store::{DbLocation, PersonKeys};
use std::{fs, io::Read, path::Path};

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
