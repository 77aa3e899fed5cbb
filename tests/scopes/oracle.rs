//! Tracks the owner of each mark: a mark stands for one statement in one chat.
//!
//! A mark belongs to its chat, and, if that is private, to the memory and the skills of its user. Linking to another
//! user merges the memories; unlinking separates the user again, with the statements of their own chat. Statements in a
//! room belong only to the room.

use pudu_base::UserId;
use std::{collections::BTreeSet, fmt};

/// The mark of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(usize);

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "zq{:06}", self.0)
    }
}

/// Returns the marks in a text, in the order of their first occurrences.
pub fn marks(text: &str) -> Vec<Mark> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("zq") {
        let digits =
            text.as_bytes().get(at + 2..at + 8).filter(|digits| digits.iter().all(u8::is_ascii_digit));
        let number = digits.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
        if let Some(mark) = number.map(Mark).filter(|mark| !found.contains(mark)) {
            found.push(mark);
        }
    }
    found
}

/// Index of a user of a platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PersonId(pub usize);

/// Index of a chat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChatId(pub usize);

#[derive(Default)]
pub struct Oracle {
    /// Whether all people are one user.
    pub is_shared: bool,
    /// Folder name of each user.
    folders: Vec<UserId>,
    /// Folder name of each room; `None` for a private chat.
    rooms: Vec<Option<UserId>>,
    /// For each person, all users that they ever were, and the users into which these were merged.
    past: Vec<BTreeSet<usize>>,
    /// For each mark, its chat and its user.
    statements: Vec<(ChatId, usize)>,
    /// For each person, their current user.
    users: Vec<usize>,
    /// For each person, the person whose code they entered.
    via: Vec<Option<usize>>,
    /// For each person, their private chat.
    chats: Vec<ChatId>,
    /// For each chat, the marks in it and its person; `None` for a room.
    said: Vec<(BTreeSet<Mark>, Option<PersonId>)>,
    /// For each chat, the marks that a tool found while they were visible: results stay in a conversation.
    found: Vec<BTreeSet<Mark>>,
    /// For each user, the marks that may be in their memory.
    memories: Vec<BTreeSet<Mark>>,
    /// For each user, the spent tokens.
    spent: Vec<u64>,
}

impl Oracle {
    /// Creates an empty oracle, with or without a shared user.
    pub fn new(is_shared: bool) -> Self {
        Self { is_shared, ..Self::default() }
    }

    /// Adds a person as a separate user.
    pub fn person(&mut self, account: &str, id: &str) -> PersonId {
        let user = if self.is_shared { 0 } else { self.users.len() };
        let folder = if self.is_shared { UserId::local() } else { folder(&format!("{account}\0{id}")) };
        self.users.push(user);
        self.via.push(None);
        self.past.push(BTreeSet::from([user]));
        self.folders.push(folder);
        self.memories.push(BTreeSet::new());
        self.spent.push(0);
        PersonId(self.users.len() - 1)
    }

    /// Adds a person's private chat.
    pub fn private_chat(&mut self, person: PersonId) -> ChatId {
        self.said.push((BTreeSet::new(), Some(person)));
        self.found.push(BTreeSet::new());
        self.rooms.push(None);
        let chat = ChatId(self.said.len() - 1);
        self.chats.push(chat);
        chat
    }

    /// Adds a room.
    pub fn room(&mut self, account: &str, chat: &str) {
        self.said.push((BTreeSet::new(), None));
        self.found.push(BTreeSet::new());
        self.rooms.push(Some(folder(&format!("room\0{account}\0{chat}"))));
    }

    /// Creates a mark for a new statement.
    pub fn state(&mut self, chat: ChatId, person: PersonId) -> Mark {
        let (mark, user) = (Mark(self.statements.len()), self.users[person.0]);
        self.statements.push((chat, user));
        self.said[chat.0].0.insert(mark);
        if self.said[chat.0].1.is_some() {
            self.memories[user].insert(mark);
        }
        mark
    }

    /// Returns the chat of a mark.
    pub fn chat_of(&self, mark: Mark) -> ChatId {
        self.statements[mark.0].0
    }

    /// Adds tokens to the user of a statement.
    pub fn spend(&mut self, mark: Mark, tokens: u64) {
        self.spent[self.statements[mark.0].1] += tokens;
    }

    /// Returns the tokens of a person's user.
    pub fn spent(&self, person: PersonId) -> u64 {
        self.spent[self.users[person.0]]
    }

    /// Returns whether two people are one user.
    pub fn is_same(&self, one: PersonId, other: PersonId) -> bool {
        self.users[one.0] == self.users[other.0]
    }

    /// Returns people who share a user.
    pub fn together(&self) -> Vec<PersonId> {
        let of = |user: usize| self.users.iter().filter(|other| **other == user).count();
        (0..self.users.len()).filter(|at| of(self.users[*at]) > 1).map(PersonId).collect()
    }

    /// Returns people without links.
    pub fn alone(&self) -> Vec<PersonId> {
        let of = |user: usize| self.users.iter().filter(|other| **other == user).count();
        let alone = self.users.iter().enumerate().filter(|(at, user)| at == *user && of(**user) == 1);
        alone.map(|(at, _)| PersonId(at)).collect()
    }

    /// Links one person to another's user.
    pub fn join(&mut self, one: PersonId, other: PersonId) {
        let (from, to) = (self.users[one.0], self.users[other.0]);
        let brought: BTreeSet<Mark> =
            self.memories[from].union(&self.said[self.chats[one.0].0].0).copied().collect();
        self.memories[to].extend(brought);
        // Pending statements of the first user are learned for the second from now on.
        for past in self.past.iter_mut().filter(|past| past.contains(&from)) {
            past.insert(to);
        }
        self.be(one, to);
        self.via[one.0] = Some(other.0);
    }

    fn be(&mut self, one: PersonId, user: usize) {
        self.users[one.0] = user;
        self.past[one.0].insert(user);
    }

    /// Unlinks a person. If the others are the person's original user, or entered the person's code, they are unlinked,
    /// too.
    pub fn part(&mut self, one: PersonId) {
        let mut gone = vec![one.0];
        gone.extend((0..self.users.len()).filter(|at| *at != one.0 && self.users[*at] == one.0));
        let mut next = 0;
        while let Some(by) = gone.get(next).copied() {
            let came = (0..self.users.len()).filter(|at| self.via[*at] == Some(by) && !gone.contains(at));
            gone.extend(came.collect::<Vec<_>>());
            next += 1;
        }
        for parting in gone {
            self.via[parting] = None;
            self.be(PersonId(parting), parting);
            let own = self.said[self.chats[parting].0].0.clone();
            self.memories[parting].extend(own);
        }
    }

    /// Records marks that a tool found in a chat, after a check.
    pub fn find(&mut self, chat: ChatId, marks: Vec<Mark>) {
        self.found[chat.0].extend(marks);
    }

    /// Fails on marks that do not belong to a chat.
    pub fn check(&self, chat: ChatId, told: &[Mark], told_where: &str) {
        let (said, person) = &self.said[chat.0];
        let memory = person.map(|person| &self.memories[self.users[person.0]]);
        let is_known = |mark: &Mark| said.contains(mark) || self.found[chat.0].contains(mark);
        let leaks = |mark: &&Mark| !is_known(mark) && memory.is_none_or(|memory| !memory.contains(mark));
        let leaked = told.iter().filter(leaks).map(|mark| (mark, self.statements[mark.0]));
        let leaked: Vec<_> = leaked.collect();
        assert!(leaked.is_empty(), "{leaked:?} leaked into {chat:?} of {person:?}: {told_where}");
    }

    /// Fails if a memory update contains marks outside of the target memory: the room's, or that of one user that the
    /// person was.
    pub fn check_learning(&self, conversation: &[Mark], told: &[Mark], told_where: &str) {
        let Some(chat) = conversation.first().map(|mark| self.chat_of(*mark)) else { return };
        let (said, person) = &self.said[chat.0];
        let foreign = |memory: &BTreeSet<Mark>| -> Vec<_> {
            let foreign = told.iter().filter(|mark| !memory.contains(mark));
            foreign.map(|mark| (*mark, self.statements[mark.0])).collect()
        };
        let least = match person {
            None => foreign(said),
            Some(person) => {
                let of_each = self.past[person.0].iter().map(|user| foreign(&self.memories[*user]));
                of_each.min_by_key(Vec::len).unwrap_or_default()
            }
        };
        assert!(least.is_empty(), "{least:?} read in {chat:?} of {person:?}: {told_where}");
    }

    /// Fails on foreign marks in a user's folder.
    pub fn check_folder(&self, name: &str, kept: &[Mark]) {
        let user = self.folders.iter().position(|folder| folder.as_str() == name);
        let room = self.rooms.iter().position(|room| room.as_ref().is_some_and(|room| room.as_str() == name));
        let own = user.map(|user| &self.memories[user]).or_else(|| room.map(|room| &self.said[room].0));
        let foreign = |mark: &&Mark| own.is_none_or(|own| !own.contains(mark));
        let foreign: Vec<_> =
            kept.iter().filter(foreign).map(|mark| (mark, self.statements[mark.0])).collect();
        assert!(foreign.is_empty(), "in the folder of {name}: {foreign:?}");
    }
}

fn folder(id: &str) -> UserId {
    UserId::from_raw(id).unwrap()
}
