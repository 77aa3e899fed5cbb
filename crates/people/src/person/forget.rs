//! Deletion of all data of a user. The identity is deleted last, so that a repeated call finds everything that an
//! interrupted one left behind.
//!
//! Kept data: the record of the deletion, the costs of runs without a name, and messages of others. The person's turns,
//! with the answers, are removed from the threads of rooms, and from the person's own threads in which others wrote;
//! such a thread then belongs to the room. A model's summary of a whole thread is kept, and the thread is reported.

use super::{PersonData, PersonError};
use pudu_agent::{Agent, RESULTS_FOLDER, Storage};
use pudu_base::{Compaction, Message, MessageId, ReadOutcome, ThreadFolder, ThreadId, ThreadLog, UserId};
use pudu_memory::{Fact, FactId, MemoryError, MemoryScope};
use pudu_store::{Deletion, PersonKeys, RecallKind, RecallScope, RoomMessage, SharedThread, ThreadRow, now};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    fs,
    path::Path,
};

/// Folder with copies of files to send, relative to the home folder.
const SENT: &str = "sent";

/// Forgotten facts, with their scope in the index.
type ForgottenFacts = (RecallScope, Vec<FactId>);

/// Report of the deleted data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForgottenPerson {
    /// The person's threads.
    pub threads: Vec<ThreadId>,
    /// Threads of rooms that lost messages.
    pub rooms: Vec<ThreadId>,
    /// Threads among `rooms` whose summary of the whole thread is kept.
    pub summarized: Vec<ThreadId>,
    /// Number of messages in rooms.
    pub room_messages: usize,
    /// Number of the person's facts in rooms.
    pub room_facts: usize,
    /// Users whose memory cannot be read, so that the person's facts may remain there.
    pub unreadable: Vec<UserId>,
}

/// Deletes all data of a user. Pauses learning, because an agent may be learning from the user's messages.
///
/// # Errors
/// When the agent is working for them, or a step fails. A second call resumes the deletion.
pub async fn forget_person(agent: &Agent, keys: &PersonKeys) -> Result<ForgottenPerson, PersonError> {
    // Nothing may be learned from their data until it is deleted.
    let _alone = agent.pause_learning().await;
    let people = PersonData::from_agent(agent);
    let concerned = people.concerned_threads(keys).await?;
    let drop_cached = || concerned.iter().for_each(|thread| agent.threads().forget(thread));
    drop_cached();
    let forgotten = people.forget(keys).await;
    drop_cached();
    forgotten
}

impl PersonData {
    /// Lists the threads that a deletion removes or changes.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn concerned_threads(&self, keys: &PersonKeys) -> Result<BTreeSet<ThreadId>, PersonError> {
        let rooms = self.db.room_messages(keys).await?.into_iter().map(|message| message.thread);
        let mut concerned: BTreeSet<ThreadId> = rooms.collect();
        for user in keys.users() {
            concerned.extend(self.db.threads_of_user(user).await?.into_iter().map(|row| row.id));
        }
        Ok(concerned)
    }

    /// Ends the work that a crashed process left open for a person, without an answer, so that the person can be
    /// deleted. Requires exclusive access to the store. Turns of others are kept.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn end_left_work(&self, keys: &PersonKeys) -> Result<(), PersonError> {
        self.db.settle_left().await?;
        let (events, turns) = self.db.left_of_person(keys).await?;
        for turn in turns {
            self.db.park(&turn, "the person is forgotten", now()).await?;
        }
        Ok(self.db.finish(&events, now()).await?)
    }

    /// Deletes all data of a user.
    ///
    /// # Errors
    /// When the agent is working for them or in a thread with their messages, or a step fails. A second call resumes
    /// the deletion.
    pub async fn forget(&self, keys: &PersonKeys) -> Result<ForgottenPerson, PersonError> {
        let concerned = self.concerned_threads(keys).await?;
        if self.db.is_person_at_work(keys).await? || self.db.has_open_turn(&concerned).await? {
            return Err(PersonError::AtWork);
        }
        let mut forgotten = ForgottenPerson::default();
        self.db.forget_learnings(keys).await?;
        self.forget_sent_files(keys).await?;
        let shared = self.db.shared_threads(keys).await?;
        self.forget_threads(keys, &shared, &mut forgotten).await?;
        for user in keys.users() {
            self.db.forget_user(user).await?;
            let user = user.clone();
            self.blocking(move |own| Ok(own.memory.clear(&user, now())?)).await?;
        }
        forgotten.room_facts = self.forget_room_facts(keys, &mut forgotten).await?;
        let mut messages = self.db.room_messages(keys).await?;
        messages.extend(shared.iter().flat_map(|thread| thread.own.clone()));
        self.forget_room_entries(&messages, &mut forgotten).await?;
        let (keys_of, rooms) = (keys.clone(), shared.clone());
        self.blocking(move |own| {
            for SharedThread { thread, owner, room, .. } in rooms {
                let folder = ThreadFolder { owner, thread };
                let handed_over = own.folders.hand_over(&folder, &room);
                handed_over.map_err(|why| PersonError::Io { path: own.folders.user(&folder.owner), why })?;
            }
            for user in keys_of.users() {
                own.secrets.forget(user)?;
                let removed = own.folders.remove_user(user);
                removed.map_err(|why| PersonError::Io { path: own.folders.user(user), why })?;
            }
            Ok(())
        })
        .await?;
        if !self.db.forget_person(keys, messages, shared).await? {
            return Err(PersonError::AtWork);
        }
        self.db.compact().await?;
        Ok(forgotten)
    }

    /// Removes deleted data from the database file, in case an interrupted deletion did not.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn compact(&self) -> Result<(), PersonError> {
        Ok(self.db.compact().await?)
    }

    async fn forget_threads(
        &self,
        keys: &PersonKeys,
        shared: &[SharedThread],
        forgotten: &mut ForgottenPerson,
    ) -> Result<(), PersonError> {
        let storage = Storage::new(self.db.clone(), self.folders.clone());
        let is_own = |row: &ThreadRow| shared.iter().all(|shared| shared.thread != row.id);
        for user in keys.users() {
            for row in self.db.threads_of_user(user).await?.into_iter().filter(is_own) {
                match storage.delete(&row.id).await? {
                    Deletion::InUse => return Err(PersonError::AtWork),
                    Deletion::Done | Deletion::Unknown => forgotten.threads.push(row.id),
                }
            }
        }
        Ok(())
    }

    /// Deletes the copies of files that are named in replies to the person.
    async fn forget_sent_files(&self, keys: &PersonKeys) -> Result<(), PersonError> {
        let views = self.db.views_of_person(keys).await?;
        self.blocking(move |own| {
            let folder = own.folders.home().join(SENT);
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let name = entry.file_name();
                let is_theirs =
                    name.to_str().is_some_and(|name| views.iter().any(|view| view.contains(name)));
                if is_theirs {
                    remove(&entry.path())?;
                }
            }
            Ok(())
        })
        .await
    }

    /// Deletes the person's facts in rooms, and returns their number.
    async fn forget_room_facts(
        &self,
        keys: &PersonKeys,
        forgotten: &mut ForgottenPerson,
    ) -> Result<usize, PersonError> {
        let (rooms, keys) = (self.rooms().await?, keys.clone());
        let (facts, unreadable) = self.blocking(move |own| own.forget_facts_by(&keys, &rooms)).await?;
        forgotten.unreadable = unreadable;
        let mut count = 0;
        for (scope, ids) in facts {
            let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
            count += ids.len();
            self.db.unindex(&scope, RecallKind::Fact, &ids).await?;
        }
        Ok(count)
    }

    /// Returns the users of rooms, each with its account.
    pub(super) async fn rooms(&self) -> Result<HashMap<UserId, String>, PersonError> {
        let chats = self.db.chats().await?.into_iter();
        Ok(chats.map(|(account, chat)| (UserId::room(&account, &chat), account)).collect())
    }

    /// Deletes the facts in other users' memory that these people stated, including superseded ones. Returns the facts,
    /// and the users whose memory cannot be read. A room's facts come from people of its account.
    fn forget_facts_by(
        &self,
        keys: &PersonKeys,
        rooms: &HashMap<UserId, String>,
    ) -> Result<(Vec<ForgottenFacts>, Vec<UserId>), PersonError> {
        let (mut forgotten, mut unreadable) = (Vec::new(), Vec::new());
        for other in self.other_users(keys) {
            let account = rooms.get(&other);
            let people =
                keys.people.iter().filter(|person| account.is_none_or(|account| person.account == *account));
            let people: BTreeSet<&str> = people.map(|person| person.person.as_str()).collect();
            match self.forget_facts_of(&other, &people) {
                Ok((facts, is_whole)) => {
                    forgotten.extend(facts);
                    unreadable.extend((!is_whole).then_some(other));
                }
                Err(error @ PersonError::Memory(MemoryError::Broken { .. })) => {
                    tracing::warn!(user = %other, %error, "failed to search a memory for a person's facts");
                    unreadable.push(other);
                }
                Err(error) => return Err(error),
            }
        }
        Ok((forgotten, unreadable))
    }

    /// Deletes these people's facts from one user's memory. Also returns whether the whole memory could be read.
    fn forget_facts_of(
        &self,
        other: &UserId,
        people: &BTreeSet<&str>,
    ) -> Result<(Vec<ForgottenFacts>, bool), PersonError> {
        let (mut forgotten, mut is_whole) = (Vec::new(), true);
        for agent in self.memory.agents(other)? {
            let scope = MemoryScope::of_agent(other.clone(), &agent).map_err(MemoryError::from)?;
            let document = self.memory.read(&scope, now())?;
            is_whole &= document.broken.is_empty();
            let own_facts = document.facts.iter().filter(|fact| is_told_by(fact, people));
            let mut ids: Vec<FactId> = own_facts.map(|fact| fact.id.clone()).collect();
            let old = self.memory.superseded(&scope)?.into_iter();
            let old = old.filter(|old| old.author().is_some_and(|author| people.contains(author)));
            ids.extend(old.map(|old| old.fact.id));
            if !ids.is_empty() {
                let gone = self.memory.forget(&scope, &ids, now())?.forgotten;
                forgotten.push((RecallScope { user: other.clone(), agent }, gone));
            }
        }
        Ok((forgotten, is_whole))
    }

    pub(super) fn other_users(&self, keys: &PersonKeys) -> Vec<UserId> {
        let folders = fs::read_dir(self.folders.home().join("users")).into_iter().flatten().flatten();
        let names = folders.filter_map(|folder| folder.file_name().into_string().ok());
        let users =
            names.filter_map(|name| UserId::from_raw(&name).ok().filter(|other| other.as_str() == name));
        users.filter(|other| keys.users().all(|user| user != other)).collect()
    }

    /// Deletes messages in rooms' threads from the index, and the files that came with them.
    async fn forget_room_entries(
        &self,
        messages: &[RoomMessage],
        forgotten: &mut ForgottenPerson,
    ) -> Result<(), PersonError> {
        let mut threads: BTreeMap<&str, Vec<&RoomMessage>> = BTreeMap::new();
        messages.iter().for_each(|one| threads.entry(one.thread.as_str()).or_default().push(one));
        for (thread, messages) in threads {
            let thread = ThreadId::from(thread);
            let ids: Vec<MessageId> = messages.iter().map(|one| one.message.id().clone()).collect();
            self.db.forget_messages(&thread, &ids).await?;
            for one in &messages {
                let Message::Human(human) = &one.message else { continue };
                let folder = ThreadFolder { owner: one.owner.clone(), thread: thread.clone() };
                let files = self.folders.thread_files(&folder);
                for file in &human.files {
                    // The file may already be gone.
                    files.remove_upload(&file.name).await.ok();
                    if let Some(ReadOutcome::Text(text)) = &file.reading
                        && let Some((_, name)) = text.path.rsplit_once('/')
                    {
                        files.remove_upload(name).await.ok();
                    }
                }
            }
            let (_, state) = self.db.load(&thread).await?;
            let ids: HashSet<&MessageId> = ids.iter().collect();
            let result_paths =
                state.context.kept.iter().filter(|(id, _)| ids.contains(id)).map(|(_, path)| path.as_str());
            let paths = result_paths.chain(messages.iter().flat_map(|one| results_of(&one.message)));
            let owner = messages.first().map(|one| one.owner.clone()).unwrap_or_default();
            let files = self.folders.thread_files(&ThreadFolder { owner, thread: thread.clone() });
            for path in paths {
                files.remove_result(path).await.ok();
            }
            let of_whole =
                |compaction: &Compaction| compaction.summary.is_some() || !compaction.delegations.is_empty();
            if state.context.compaction.as_ref().is_some_and(|compaction| of_whole(compaction)) {
                forgotten.summarized.push(thread.clone());
            }
            forgotten.room_messages += messages.len();
            forgotten.rooms.push(thread);
        }
        Ok(())
    }
}

/// Returns whether one of these people stated a fact.
pub(super) fn is_told_by(fact: &Fact, people: &BTreeSet<&str>) -> bool {
    let author = fact.origin.as_ref().and_then(|origin| origin.author.as_deref());
    author.is_some_and(|author| people.contains(author))
}

/// Returns the paths of stored tool results that a message names.
fn results_of(message: &Message) -> Vec<&str> {
    let Message::Tool(result) = message else { return Vec::new() };
    let is_path = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '-' | '_' | '.');
    let is_own = |word: &&str| {
        word.rsplit_once('/')
            .is_some_and(|(folder, name)| folder.ends_with(RESULTS_FOLDER) && name.starts_with(&result.tool))
    };
    let words = result.text.split(move |c| !is_path(c)).map(|word| word.trim_end_matches('.'));
    words.filter(is_own).collect()
}

fn remove(path: &Path) -> Result<(), PersonError> {
    fs::remove_file(path).map_err(|why| PersonError::Io { path: path.to_owned(), why })
}
