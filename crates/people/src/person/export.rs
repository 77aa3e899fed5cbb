//! Export of all data of a user as one archive: files unchanged, rows and threads as JSON, and threads also as text.

use super::{PersonData, PersonError, forget::is_told_by, transcript::markdown};
use pudu_agent::SecretStore;
use pudu_base::{
    Human, Message, MessageId, ReadOutcome, RunId, ThreadFolder, ThreadId, ThreadLog, ThreadState, UserId,
};
use pudu_memory::{DocumentDetail, Fact, MemoryDocument, MemoryError, MemoryScope};
use pudu_store::{AccountPerson, PersonKeys, RoomMessage, SharedThread, TaskFilter, TaskRow, now};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    fs::{File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::sync::mpsc;
use zip::{ZipWriter, write::SimpleFileOptions};

/// Text of the page that explains the archive.
const README: &str = "\
This archive has everything that pudu stores of one person.

  person.json    who this is: the user's id, and the accounts by which they came
  tables/        rows of the database: account, feedback, identities, usage, approvals that they asked for or decided, audit
  memory/        what is remembered of them, one file an agent
  threads/       their conversations, as JSON and as text, and the steps of sub-agents in them
  rooms/         their turns in conversations of rooms: what they said, and what the agent said and did for it;
                 facts.json has what rooms remember from them
  files/         their own folder as it is: memory, agents, skills, and the files of their conversations
  former/        memory and files of those whom they were before they became this user, a folder each
  secrets.json   the names of the secrets that they gave; the secrets themselves are not in this archive
";
/// Maximum number of texts waiting to be written.
const WAITING: usize = 4;
/// Maximum number of rows with steps of sub-agents per read.
const STEPS_AT_ONCE: u32 = 500;

/// A finished archive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportedPerson {
    /// Number of threads.
    pub threads: usize,
    /// Number of messages in the person's turns in rooms.
    pub room_messages: usize,
    /// Number of facts.
    pub facts: usize,
    /// Number of files.
    pub files: usize,
}

/// A text for the archive: its path and content.
type Entry = (String, String);

impl PersonData {
    /// Writes an archive. An existing file is not overwritten, and an unfinished one is removed.
    ///
    /// # Errors
    /// When a part of the data cannot be read, or the archive cannot be written.
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
        let (own, keys_of) = (self.clone(), keys.clone());
        let shared = self.db.shared_threads(keys).await?;
        let foreign = self.files_of_others(&shared).await?;
        let archive = tokio::task::spawn_blocking(move || {
            let io = |why| PersonError::Io { path: own.folders.user(&keys_of.user), why };
            let mut zip = texts(file, waiting).map_err(io)?;
            let mut files = 0;
            for user in keys_of.users() {
                let folder = place(&keys_of, user);
                let mut put = |path: &Path, mut file: cap_std::fs::File| {
                    if SecretStore::is_own(path) || foreign.contains(&(user.clone(), path.to_owned())) {
                        return Ok(());
                    }
                    files += 1;
                    begin(&mut zip, &format!("{folder}files/{}", path.display()))?;
                    io::copy(&mut file, &mut zip).map(drop)
                };
                own.folders.visit_user(user, &mut put).map_err(io)?;
            }
            zip.finish().map_err(|error| io(error.into()))?.sync_all().map_err(io)?;
            Ok(files)
        });
        // If the archive fails, the entries have no reader; the archive's error is returned.
        let collected = self.collect(keys, &shared, &entries).await;
        drop(entries);
        let files = archive.await.map_err(|_| PersonError::Broken)?;
        match (collected, files) {
            (Ok(exported), Ok(files)) => Ok(ExportedPerson { files, ..exported }),
            (Err(PersonError::Broken) | Ok(_), Err(error)) | (Err(error), _) => Err(error),
        }
    }

    /// Lists the files from other people's turns, each with the user that owns its folder and its path there.
    async fn files_of_others(
        &self,
        shared: &[SharedThread],
    ) -> Result<HashSet<(UserId, PathBuf)>, PersonError> {
        let mut foreign = HashSet::new();
        for SharedThread { thread, owner, others, .. } in shared {
            let folder = ThreadFolder { owner: owner.clone(), thread: thread.clone() };
            let runs: HashSet<&RunId> = others.iter().map(|one| &one.run).collect();
            let (_, state) = self.db.load(thread).await?;
            let artifacts = state.artifacts.iter().filter(|(_, run)| runs.contains(run));
            let mut paths: Vec<&str> = artifacts.map(|(path, _)| path.as_str()).collect();
            for one in others {
                let Message::Human(human) = &one.message else { continue };
                for file in &human.files {
                    paths.push(&file.path);
                    if let Some(ReadOutcome::Text(text)) = &file.reading {
                        paths.push(&text.path);
                    }
                }
            }
            let places = paths.into_iter().filter_map(|path| self.folders.place(&folder, path));
            foreign.extend(places.map(|place| (owner.clone(), place)));
        }
        Ok(foreign)
    }

    async fn collect(
        &self,
        keys: &PersonKeys,
        shared: &[SharedThread],
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
        for user in keys.users() {
            let named = user.clone();
            let names = self.blocking(move |own| Ok(own.secrets.names(&named)?)).await?;
            put(entries, &format!("{}secrets.json", place(keys, user)), pretty(&json!(names))).await?;
            for (agent, document) in self.remembered(user).await? {
                exported.facts += document.facts.len();
                let file = format!("{}memory/{agent}.json", place(keys, user));
                put(entries, &file, pretty(&document.to_json(DocumentDetail::Full))).await?;
            }
            for row in self.db.threads_of_user(user).await? {
                let (_, state) = self.db.load(&row.id).await?;
                let state = own_part(state, shared.iter().find(|shared| shared.thread == row.id), keys);
                exported.threads += 1;
                put(entries, &format!("threads/{}.json", row.id), pretty(&json!(state))).await?;
                put(entries, &format!("threads/{}.md", row.id), markdown(&row.title, &state)).await?;
                let of_thread = shared.iter().find(|shared| shared.thread == row.id);
                let steps = self.steps(&row.id, of_thread).await?;
                if !steps.is_empty() {
                    put(entries, &format!("threads/{}.tasks.json", row.id), pretty(&json!(steps))).await?;
                }
            }
        }
        let mut rooms: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for RoomMessage { thread, message, .. } in self.db.room_messages(keys).await? {
            exported.room_messages += 1;
            rooms.entry(thread.to_string()).or_default().push(json!(own_words(message, keys)));
        }
        for (thread, messages) in rooms {
            put(entries, &format!("rooms/{thread}.json"), pretty(&json!(messages))).await?;
        }
        let facts = self.facts_in_rooms(keys).await?;
        if !facts.is_empty() {
            exported.facts += facts.len();
            put(entries, "rooms/facts.json", pretty(&json!(facts))).await?;
        }
        Ok(exported)
    }

    /// Returns the steps of a thread's sub-agents, except those that worked for others.
    async fn steps(
        &self,
        thread: &ThreadId,
        shared: Option<&SharedThread>,
    ) -> Result<Vec<Value>, PersonError> {
        let others: HashSet<&RunId> =
            shared.into_iter().flat_map(|shared| &shared.others).map(|one| &one.run).collect();
        let mut filter = TaskFilter { limit: STEPS_AT_ONCE, ..TaskFilter::default() };
        let mut steps = Vec::new();
        loop {
            let (rows, next) = self.db.task_stages(thread, &filter).await?;
            let own = rows.into_iter().filter(|row| !others.contains(&row.run));
            steps.extend(own.map(|TaskRow { run, at, call, stage, .. }| {
                json!({ "run": run, "at": at, "call": call, "stage": stage })
            }));
            let Some(after) = next else { return Ok(steps) };
            filter.after = after;
        }
    }

    /// Returns the facts that the person stated and that others, such as rooms, remember.
    async fn facts_in_rooms(&self, keys: &PersonKeys) -> Result<Vec<Value>, PersonError> {
        let (rooms, keys) = (self.rooms().await?, keys.clone());
        self.blocking(move |own| {
            let mut facts = Vec::new();
            for other in own.other_users(&keys) {
                let account = rooms.get(&other);
                let is_here = |person: &&AccountPerson| account.is_none_or(|account| person.account == *account);
                let people = keys.people.iter().filter(is_here).map(|person| person.person.as_str()).collect();
                match own.facts_by(&other, &people) {
                    Ok(found) => facts.extend(found),
                    // An unreadable memory does not affect the others.
                    Err(error @ PersonError::Memory(MemoryError::Broken { .. })) => {
                        tracing::warn!(user = %other, %error, "failed to search a memory for a person's facts");
                    }
                    Err(error) => return Err(error),
                }
            }
            Ok(facts)
        })
        .await
    }

    /// Returns the facts in another user's memory that these people stated, including superseded ones.
    fn facts_by(&self, other: &UserId, people: &BTreeSet<&str>) -> Result<Vec<Value>, PersonError> {
        let mut facts = Vec::new();
        for agent in self.memory.agents(other)? {
            let scope = MemoryScope::of_agent(other.clone(), &agent).map_err(MemoryError::from)?;
            let fact_entry = |fact: &Fact, is_old: bool| json!({ "room": other, "agent": agent, "id": fact.id.to_string(), "content": fact.content, "superseded": is_old });
            let document = self.memory.read(&scope, now())?;
            facts.extend(
                document
                    .facts
                    .iter()
                    .filter(|fact| is_told_by(fact, people))
                    .map(|fact| fact_entry(fact, false)),
            );
            let old = self.memory.superseded(&scope)?.into_iter();
            let old = old.filter(|old| old.author().is_some_and(|author| people.contains(author)));
            facts.extend(old.map(|old| fact_entry(&old.fact, true)));
        }
        Ok(facts)
    }

    /// Returns the memory of a user, per agent.
    async fn remembered(&self, user: &UserId) -> Result<Vec<(String, MemoryDocument)>, PersonError> {
        let user = user.clone();
        self.blocking(move |own| {
            let mut documents = Vec::new();
            let mut agents = own.memory.agents(&user)?;
            agents.push(MemoryScope::for_user(user.clone()).agent().to_owned());
            agents.sort();
            agents.dedup();
            for agent in agents {
                let scope = MemoryScope::of_agent(user.clone(), &agent).map_err(MemoryError::from)?;
                documents.push((agent, own.memory.read(&scope, now())?));
            }
            documents.retain(|(_, document)| document.stored);
            Ok(documents)
        })
        .await
    }
}

/// Returns the path of a user's memory and files in the archive.
fn place(keys: &PersonKeys, user: &UserId) -> String {
    match *user == keys.user {
        true => String::new(),
        false => format!("former/{user}/"),
    }
}

/// Returns the part of a thread that belongs to its user. If others wrote in the thread, only its messages without
/// theirs remain, because its other fields are derived from the whole thread.
fn own_part(state: ThreadState, shared: Option<&SharedThread>, keys: &PersonKeys) -> ThreadState {
    let others: HashSet<&MessageId> =
        shared.into_iter().flat_map(|shared| &shared.others).map(|one| one.message.id()).collect();
    let messages = state.messages.iter().filter(|(id, _)| !others.contains(id));
    let own = |message: &Message| Arc::new(own_words(message.clone(), keys));
    let messages = messages.map(|(id, message)| (id.clone(), own(message))).collect();
    match shared {
        Some(_) => ThreadState { messages, ..ThreadState::default() },
        None => ThreadState { messages, ..state },
    }
}

/// Removes the parts of a message that are only for the model: instructions of skills, and the memory of other users.
fn own_words(message: Message, keys: &PersonKeys) -> Message {
    match message {
        Message::Human(human) => Message::Human(Human {
            guide: None,
            recalled: human.recalled.filter(|note| keys.users().any(|user| *user == note.user)),
            ..human
        }),
        other => other,
    }
}

async fn put(entries: &mpsc::Sender<Entry>, place: &str, text: String) -> Result<(), PersonError> {
    entries.send((place.to_owned(), text)).await.map_err(|_| PersonError::Broken)
}

/// Writes texts as they arrive.
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
    // A value always serialises.
    serde_json::to_string_pretty(value).unwrap_or_default()
}
