//! Everything that is stored of a person, as one archive: files as they are, rows and threads as JSON, and threads as text, too.

use super::{PersonData, PersonError, transcript::markdown};
use crate::secrets::SecretStore;
use pudu_base::ThreadLog;
use pudu_memory::{DocumentDetail, MemoryScope};
use pudu_store::{PersonKeys, RoomMessage, now};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fs::{File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};
use tokio::sync::mpsc;
use zip::{ZipWriter, write::SimpleFileOptions};

/// The page that says what is in the archive.
const README: &str = "\
This archive has everything that pudu stores of one person.

  person.json    who this is: the user's id, and the accounts by which they came
  tables/        rows of the database: account, feedback, identities, usage, approvals, audit
  memory/        what is remembered of them, one file an agent
  threads/       their conversations, as JSON and as text
  rooms/         their turns in conversations of rooms: what they said, and what the agent said and did for it
  files/         their own folder as it is: memory, agents, skills, and the files of their conversations
  secrets.json   the names of the secrets that they gave; the secrets themselves are not in this archive
";
/// Texts that wait to be written.
const WAITING: usize = 4;

/// An archive that was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportedPerson {
    /// Threads in it.
    pub threads: usize,
    /// Turns in rooms, counted by their messages.
    pub room_messages: usize,
    /// Facts.
    pub facts: usize,
    /// Files.
    pub files: usize,
}

/// A text on its way into the archive: its place, and the text.
type Entry = (String, String);

impl PersonData {
    /// Writes an archive. A file that is there is not overwritten, and one that could not be finished is removed.
    ///
    /// # Errors
    /// When something of it cannot be read, or the archive not be written.
    pub async fn export(&self, keys: &PersonKeys, to: &Path) -> Result<ExportedPerson, PersonError> {
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(to);
        let file = file.map_err(|why| PersonError::Io { path: to.to_owned(), why })?;
        let written = self.write(keys, file).await;
        if written.is_err() {
            std::fs::remove_file(to).ok();
        }
        written.map_err(|error| match error {
            PersonError::Io { why, .. } => PersonError::Io { path: to.to_owned(), why },
            other => other,
        })
    }

    async fn write(&self, keys: &PersonKeys, file: File) -> Result<ExportedPerson, PersonError> {
        let (entries, waiting) = mpsc::channel(WAITING);
        let (own, user) = (self.clone(), keys.user.clone());
        let archive = tokio::task::spawn_blocking(move || {
            let io = |why| PersonError::Io { path: own.folders.user(&user), why };
            let mut zip = texts(file, waiting).map_err(io)?;
            let mut files = 0;
            let mut put = |place: &Path, mut file: cap_std::fs::File| {
                if SecretStore::is_own(place) {
                    return Ok(());
                }
                files += 1;
                begin(&mut zip, &format!("files/{}", place.display()))?;
                io::copy(&mut file, &mut zip).map(drop)
            };
            own.folders.visit_user(&user, &mut put).map_err(io)?;
            zip.finish().map_err(|error| io(error.into()))?.sync_all().map_err(io)?;
            Ok(files)
        });
        // When the archive breaks, nobody takes entries any more; its error says why.
        let collected = self.collect(keys, &entries).await;
        drop(entries);
        let files = archive.await.map_err(|_| PersonError::Broken)?;
        match (collected, files) {
            (Ok(exported), Ok(files)) => Ok(ExportedPerson { files, ..exported }),
            (Err(PersonError::Broken) | Ok(_), Err(error)) | (Err(error), _) => Err(error),
        }
    }

    async fn collect(
        &self,
        keys: &PersonKeys,
        entries: &mpsc::Sender<Entry>,
    ) -> Result<ExportedPerson, PersonError> {
        let mut exported = ExportedPerson::default();
        let people: Vec<Value> = keys
            .people
            .iter()
            .map(|person| json!({ "account": person.account, "id": person.person, "name": person.name }))
            .collect();
        put(entries, "README.txt", README.to_owned()).await?;
        put(entries, "person.json", pretty(&json!({ "user": keys.user, "people": people }))).await?;
        for table in self.db.person_tables(keys).await? {
            put(entries, &format!("tables/{}.json", table.name), pretty(&json!(table.rows))).await?;
        }
        let user = keys.user.clone();
        let names = self.blocking(move |own| Ok(own.secrets.names(&user)?)).await?;
        put(entries, "secrets.json", pretty(&json!(names))).await?;
        let user = keys.user.clone();
        let documents = self.blocking(move |own| {
            let mut documents = Vec::new();
            let mut agents = own.memory.agents(&user)?;
            agents.push(MemoryScope::of(user.clone()).agent().to_owned());
            agents.sort();
            agents.dedup();
            for agent in agents {
                let scope =
                    MemoryScope::of_agent(user.clone(), &agent).map_err(pudu_memory::MemoryError::from)?;
                documents.push((agent, own.memory.read(&scope, now())?));
            }
            Ok(documents)
        });
        for (agent, document) in documents.await?.into_iter().filter(|(_, document)| document.stored) {
            exported.facts += document.facts.len();
            put(entries, &format!("memory/{agent}.json"), pretty(&document.to_json(DocumentDetail::Full)))
                .await?;
        }
        for row in self.db.threads_of_user(&keys.user).await? {
            let (_, state) = self.db.load(&row.id).await?;
            exported.threads += 1;
            put(entries, &format!("threads/{}.json", row.id), pretty(&json!(state))).await?;
            put(entries, &format!("threads/{}.md", row.id), markdown(&row.title, &state)).await?;
        }
        let mut rooms: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for RoomMessage { thread, message, .. } in self.db.room_messages(keys).await? {
            exported.room_messages += 1;
            rooms.entry(thread.to_string()).or_default().push(json!(message));
        }
        for (thread, messages) in rooms {
            put(entries, &format!("rooms/{thread}.json"), pretty(&json!(messages))).await?;
        }
        Ok(exported)
    }
}

async fn put(entries: &mpsc::Sender<Entry>, place: &str, text: String) -> Result<(), PersonError> {
    entries.send((place.to_owned(), text)).await.map_err(|_| PersonError::Broken)
}

/// Writes texts as they come.
fn texts(file: File, mut waiting: mpsc::Receiver<Entry>) -> io::Result<ZipWriter<File>> {
    let mut zip = ZipWriter::new(file);
    while let Some((place, text)) = waiting.blocking_recv() {
        begin(&mut zip, &place)?;
        zip.write_all(text.as_bytes())?;
    }
    Ok(zip)
}

fn begin(zip: &mut ZipWriter<File>, place: &str) -> io::Result<()> {
    let options = SimpleFileOptions::default().large_file(true);
    Ok(zip.start_file(place, options)?)
}

fn pretty(value: &Value) -> String {
    // A value is always JSON.
    serde_json::to_string_pretty(value).unwrap_or_default()
}
