//! Learning from conversations. Once a conversation pauses, a model reads its messages since the last reading, and
//! proposes facts. Fixed rules, which no message can change, decide which are stored ([`pudu_memory::extract`]).
//!
//! Waiting conversations are stored, so that none is lost when the daemon stops. A reader first claims a conversation,
//! so that only one of several processes reads it. The store also has the position of the last reading. A crash between
//! storing the facts and the position repeats nothing, because messages that are the evidence of a fact count as read.

mod failure;
mod turns;

use failure::{AfterFailure, LearnError};
pub(super) use turns::transcript_turns;

use super::{
    recall::notes,
    rules::{MemoryMode, MemoryOf, MemorySetup, MemoryTrouble},
};
use crate::{
    Agent, Asker, RunTask,
    audit::AuditLog,
    budget::{Meter, metered},
};
use pudu_base::{
    Human, Message, MessageId, ModelCaller, Request, RunEvent, SpendingTally, ThreadState, UserId,
};
use pudu_harness::side_call;
use pudu_kit::clock::millis;
use pudu_memory::{
    Changes, MemoryDocument, MemoryError,
    extract::{Extraction, OfferedFacts, Proposal, RefusedFact, Transcript, has_signal, prompt},
};
use pudu_store::{Learning, LearningReader, PartedPerson, RecallEntry, now, unpaired_user};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
    time::Duration,
};
use tokio_util::sync::CancellationToken;
use turns::{turn, turns};

/// Maximum number of conversations read together.
const MAX_READ_AT_ONCE: i64 = 16;
/// Minimum pause between checks.
const MIN_PAUSE: Duration = Duration::from_millis(200);
/// Maximum pause between checks, since another process may have stored a conversation.
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// Duration of a reader's claim on a conversation, unless renewed.
const CLAIM_TIME: Duration = Duration::from_secs(30);
/// Interval at which a reader renews its claim.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(10);

/// Action of the audit entry for facts that were refused.
const REFUSED_ACTION: &str = "memory_refused";

/// A conversation being read, and its reader.
struct Reading<'a> {
    agent: &'a Agent,
    memory: &'a MemorySetup,
    learning: &'a Learning,
    of: MemoryOf,
    reader: &'a str,
    is_last: bool,
}

/// Messages of a conversation that are new to its reader.
struct NewMessages {
    ids: HashSet<String>,
    last: String,
}

/// Stores the conversation of a successful run, to be read when it pauses.
pub async fn keep(agent: &Agent, task: &RunTask, state: &ThreadState) {
    let setup = agent.setup();
    let Some(memory) = setup.memory.as_ref().filter(|memory| memory.rules.mode == MemoryMode::Middleware)
    else {
        return;
    };
    // Prevents merges until the conversation's user is stored. The person may have become another user during the run.
    let _still = agent.0.moving.read().await;
    let mut spender = task.spender();
    match agent.0.db.identity_of(&spender.account, &spender.person).await {
        Ok(user) => spender.user = user.unwrap_or(spender.user),
        Err(error) => {
            tracing::warn!(run = %task.run, %error, "failed to store conversation for learning");
            return;
        }
    }
    let of = MemoryOf::run(task);
    let learning = Learning {
        user: task.room.clone().unwrap_or_else(|| spender.user.clone()),
        agent: of.agent.unwrap_or_default(),
        thread: task.thread.clone(),
        run: task.run.clone(),
        spender,
        due: now() + millis(memory.rules.debounce),
        attempts: 0,
        priority: i64::from(task.input.iter().any(|human| has_signal(&human.text))),
        span: span(task, state),
    };
    match agent.0.db.keep_learning(learning, i64::from(memory.rules.max_waiting)).await {
        Ok(true) => agent.0.learns.notify_one(),
        Ok(false) => {
            tracing::warn!(run = %task.run, "dropped conversation for learning: too many are waiting")
        }
        Err(error) => tracing::warn!(run = %task.run, %error, "failed to store conversation for learning"),
    }
}

impl Agent {
    /// Reads conversations as they pause, until `stop` is cancelled.
    pub async fn learn(&self, stop: CancellationToken) {
        loop {
            let pause = stop.run_until_cancelled(self.read_due()).await;
            let Some(pause) = pause else { return };
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.0.learns.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Reads all waiting conversations once, due or not, until the model fails. For a process that is about to stop.
    pub async fn read_waiting(&self) {
        let reader = format!("{}-last", self.0.reader);
        let mut tried = HashSet::new();
        loop {
            let limit = MAX_READ_AT_ONCE + i64::try_from(tried.len()).unwrap_or(i64::MAX / 2);
            let Ok(waiting) = self.0.db.learnings(i64::MAX, limit).await else { return };
            let key = |learning: &Learning| {
                (learning.user.clone(), learning.agent.clone(), learning.thread.clone(), learning.run.clone())
            };
            let new: Vec<Learning> =
                waiting.into_iter().filter(|learning| tried.insert(key(learning))).collect();
            if new.is_empty() {
                return;
            }
            for learning in &new {
                if !self.read_one(learning, &reader, true).await {
                    return;
                }
            }
        }
    }

    /// Executes the pending merges of memory for people who became another user.
    pub async fn merge_memories(&self) {
        if self.0.db.memory_merges().await.unwrap_or_default().is_empty() {
            return;
        }
        // Prevents concurrent commits of facts, and separations of users.
        let _alone = self.0.moving.write().await;
        // A user who was separated in the meantime keeps their memory.
        for merge in self.0.db.memory_merges().await.unwrap_or_default() {
            match self.memories().merge(&merge).await {
                Ok(()) => {
                    tracing::info!(source = %merge.source, target = %merge.target, "merged two memories")
                }
                Err(error) => {
                    tracing::warn!(source = %merge.source, target = %merge.target, %error, "failed to merge two memories; trying again later");
                }
            }
        }
    }

    /// Makes a person a separate user again, and returns all affected people. No memories are merged during this call.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn part(
        &self,
        account: &str,
        person: &str,
    ) -> Result<Vec<PartedPerson>, pudu_store::StoreError> {
        let _alone = self.0.moving.write().await;
        self.0.db.part(account, person).await
    }

    /// Reads the due conversations, and returns the time until the next is due.
    async fn read_due(&self) -> Duration {
        self.merge_memories().await;
        let Ok(waiting) = self.0.db.learnings(now(), MAX_READ_AT_ONCE).await else { return MAX_PAUSE };
        for learning in &waiting {
            self.read_one(learning, &self.0.reader, false).await;
        }
        if !waiting.is_empty() {
            return MIN_PAUSE;
        }
        let next = self.0.db.next_learning().await.ok().flatten();
        let wait = next.map_or(MAX_PAUSE, |due| Duration::from_millis((due - now()).max(0).unsigned_abs()));
        wait.clamp(MIN_PAUSE, MAX_PAUSE)
    }

    /// Reads a conversation, and returns whether the model can be called for others.
    async fn read_one(&self, learning: &Learning, reader: &str, is_last: bool) -> bool {
        let setup = self.setup();
        let memory = setup.memory.as_ref().filter(|memory| memory.rules.mode == MemoryMode::Middleware);
        let Some(memory) = memory else {
            self.give_up(learning).await;
            return true;
        };
        let agent = Some(learning.agent.clone()).filter(|agent| !agent.is_empty());
        let of = MemoryOf { user: learning.user.clone(), agent };
        let reading = Reading { agent: self, memory, learning, of, reader, is_last };
        if !reading.claim().await.unwrap_or(false) {
            return true;
        }
        let outcome = tokio::select! {
            done = Box::pin(reading.read()) => done,
            () = reading.keep_claim() => Err(LearnError::Taken),
        };
        let Err(error) = outcome else { return true };
        match AfterFailure::from_error(&error, learning) {
            AfterFailure::Left => {}
            AfterFailure::PutOff { due, attempts } => {
                reading.put_off(Learning { due, attempts, ..learning.clone() }).await;
            }
            AfterFailure::GivenUp => self.give_up(learning).await,
        }
        error.leaves_model()
    }

    async fn give_up(&self, learning: &Learning) {
        if let Err(error) = self.0.db.drop_learning(learning).await {
            tracing::warn!(thread = %learning.thread, %error, "failed to mark conversation as given up");
        }
    }

    /// Marks a user's waiting conversations as read, so that no facts are learned from them.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn forget_waiting(&self, of: &MemoryOf) -> Result<(), MemoryTrouble> {
        let _alone = self.0.moving.write().await;
        let reader = LearningReader { name: format!("{}-forget", self.0.reader), until: now() };
        for learning in self.0.db.learnings_of(&of.user).await? {
            let state = self.state(&learning.thread).await;
            let state = state.map_err(|error| pudu_store::StoreError::Unavailable(error.to_string()))?;
            let last = state.messages.keys().last().map(ToString::to_string).unwrap_or_default();
            self.0.db.take_learning(&learning, &reader).await?;
            self.0.db.learnt(&learning, &reader, &last).await?;
        }
        Ok(())
    }
}

impl Reading<'_> {
    fn as_reader(&self) -> LearningReader {
        LearningReader { name: self.reader.to_owned(), until: now() + millis(CLAIM_TIME) }
    }

    async fn claim(&self) -> Result<bool, pudu_store::StoreError> {
        self.agent.0.db.claim_learning(self.learning, &self.as_reader(), now()).await
    }

    async fn put_off(&self, later: Learning) {
        if let Err(error) = self.agent.0.db.put_off_learning(&later, &self.as_reader()).await {
            tracing::warn!(thread = %later.thread, %error, "failed to postpone learning from conversation");
        }
    }

    /// Renews the claim; returns when it is lost.
    async fn keep_claim(&self) {
        loop {
            tokio::time::sleep(RENEWAL_INTERVAL).await;
            if matches!(self.claim().await, Ok(false)) {
                return;
            }
        }
    }

    async fn read(&self) -> Result<(), LearnError> {
        let (db, learning) = (&self.agent.0.db, self.learning);
        let state = self.agent.state(&learning.thread).await;
        let state = state.map_err(|error| LearnError::Thread(error.to_string()))?;
        let Some(last) = last(&state, learning) else { return Ok(db.drop_learning(learning).await?) };
        if !db.is_memory_off(&self.of.user).await? {
            let document = self.agent.memories().read(&self.of).await?;
            let evidence: HashSet<&str> = document.evidence(learning.thread.as_str()).collect();
            let applied = state.messages.keys().map(MessageId::as_str).rfind(|id| evidence.contains(id));
            let read = db.learnt_up_to(learning).await?;
            let new = unread(&state, &learning.span, [read.as_deref(), applied]);
            let new = self.without_opted_out(new).await?;
            self.index(&turns(&self.of, learning, &new)).await?;
            let transcript = Transcript::from_turns(&new.iter().filter_map(turn).collect::<Vec<_>>());
            // Without a statement, a fact would have no evidence, and the call would be wasted.
            let transcript = transcript.filter(|transcript| transcript.has_statement());
            if let Some(transcript) = transcript.filter(|_| !self.memory.model.only_echoes()) {
                let recalled_before = notes(&state).map(|note| note.text.clone()).collect();
                let new = new.iter().map(|message| message.id().to_string()).collect();
                return self
                    .extract(document, transcript, recalled_before, NewMessages { ids: new, last })
                    .await;
            }
        }
        self.done(&last).await
    }

    /// Removes messages of people who turned memory off, and the answers to them, from a group's conversation.
    async fn without_opted_out<'s>(&self, new: Vec<&'s Message>) -> Result<Vec<&'s Message>, LearnError> {
        if self.learning.spender.room.is_none() {
            return Ok(new);
        }
        let (mut off, mut left, mut is_off) = (HashMap::new(), Vec::new(), false);
        for message in new {
            if let Message::Human(human) = message {
                let person = human.person.as_deref().unwrap_or_default();
                is_off = match off.get(person) {
                    Some(known) => *known,
                    None => self.is_off(person).await?,
                };
                off.insert(person, is_off);
            }
            if !is_off {
                left.push(message);
            }
        }
        Ok(left)
    }

    /// Returns whether a person on the conversation's bot turned memory off.
    async fn is_off(&self, person: &str) -> Result<bool, LearnError> {
        let (db, account) = (&self.agent.0.db, &self.learning.spender.account);
        let user = match db.identity_of(account, person).await? {
            Some(user) => user,
            None if self.memory.rules.shared_people => UserId::local(),
            None => unpaired_user(account, person),
        };
        Ok(db.is_memory_off(&user).await?)
    }

    /// Indexes people's messages, unless memory is off. Fails if the claim is lost.
    async fn index(&self, turns: &[RecallEntry]) -> Result<(), LearnError> {
        let _still = self.agent.0.moving.read().await;
        if !self.claim().await? {
            return Err(LearnError::Taken);
        }
        match self.agent.0.db.is_memory_off(&self.of.user).await? {
            true => Ok(()),
            false => Ok(self.agent.0.db.index(turns).await?),
        }
    }

    async fn done(&self, last: &str) -> Result<(), LearnError> {
        match self.agent.0.db.learnt(self.learning, &self.as_reader(), last).await? {
            true => Ok(()),
            false => Err(LearnError::Taken),
        }
    }

    /// Lets the model read a conversation, and stores the proposed facts that pass the rules.
    async fn extract(
        &self,
        document: MemoryDocument,
        transcript: Transcript,
        recalled: Vec<String>,
        new: NewMessages,
    ) -> Result<(), LearnError> {
        let options = self.memory.rules.options.clone();
        let offered = OfferedFacts::from_document(&document, &transcript, &options, now());
        let asked = prompt(&document, &transcript, &offered);
        let request = Request {
            system: asked.system.to_owned(),
            messages: vec![Arc::new(Message::Human(Human::guiding("memory", asked.user)))],
            ..Request::default()
        };
        let learning = self.learning;
        let (thread, run) = (learning.thread.clone(), learning.run.clone());
        let meter = Meter::new(self.agent, thread, run, learning.spender.clone());
        let (model, mut spending) = (metered(self.memory.model.clone(), &meter), SpendingTally::default());
        let failed = CancellationToken::new();
        let hear = |event| {
            if self.is_last && matches!(event, RunEvent::Retry { .. }) {
                failed.cancel();
            }
        };
        let call = side_call(&*model, request, ModelCaller::Memory, &mut spending, hear);
        let answer = failed.run_until_cancelled(call).await.ok_or(LearnError::Stopping)?;
        let proposal = Proposal::parse(&answer?)?;
        let _still = self.agent.0.moving.read().await;
        if !self.claim().await? {
            return Err(LearnError::Taken);
        }
        if self.agent.0.db.is_memory_off(&self.of.user).await? {
            return self.done(&new.last).await;
        }
        let (NewMessages { ids, last }, thread) = (new, learning.thread.clone());
        let plan = move |document: &MemoryDocument| -> Result<_, MemoryError> {
            if document.evidence(thread.as_str()).any(|message| ids.contains(message)) {
                // The claim expired, and another reader was faster.
                return Ok((Changes::default(), Vec::new()));
            }
            let case = Extraction {
                document,
                transcript: &transcript,
                offered: &offered,
                recalled: &recalled,
                thread: thread.as_str(),
                options: &options,
                now: now(),
            };
            let applied = case.apply(&proposal);
            Ok((applied.changes, applied.refused))
        };
        let commit = move |store: &pudu_memory::MemoryStore, scope: &pudu_memory::MemoryScope, now| {
            let mut refused = Vec::new();
            let change = |document: &MemoryDocument| {
                let (changes, refusals) = plan(document)?;
                refused = refusals;
                Ok(changes)
            };
            let committed = store.change(scope, now, change)?;
            Ok((refused, committed))
        };
        let (refused, committed) = self.agent.memories().change(&self.of, commit).await?;
        self.done(&last).await?;
        let refused = count_refused(&refused);
        self.note_refused(&refused).await;
        let (thread, user, facts) = (&learning.thread, &learning.user, committed.added.len());
        tracing::info!(%thread, %user, facts, refused = %refused.unwrap_or_default(), "learned from conversation");
        Ok(())
    }

    /// Records in the audit log how many proposed facts were refused, by reason and without their texts.
    async fn note_refused(&self, refused: &Option<String>) {
        let Some(refused) = refused else { return };
        let (learning, db) = (self.learning, self.agent.0.db.clone());
        let spender = &learning.spender;
        let asker =
            Asker { account: spender.account.clone(), person: spender.person.clone(), ..Asker::default() };
        let (thread, run) = (learning.thread.clone(), learning.run.clone());
        let audit_log = AuditLog { db, thread, run, asker, is_guarded: false };
        audit_log.note(REFUSED_ACTION, refused, "refused".to_owned()).await;
    }
}

/// Counts refusals by reason, as text: `opposite: 2, secret: 1`. `None` if there are none.
fn count_refused(refused: &[RefusedFact]) -> Option<String> {
    let mut counts = BTreeMap::<&str, usize>::new();
    refused.iter().for_each(|fact| *counts.entry(fact.reason.name()).or_default() += 1);
    let counts: Vec<String> =
        counts.into_iter().map(|(reason, count)| format!("{reason}: {count}")).collect();
    (!counts.is_empty()).then(|| counts.join(", "))
}

/// Returns the ids of the first and the last message of a run.
fn span(task: &RunTask, state: &ThreadState) -> (String, String) {
    let last_question =
        || state.messages.values().rev().find(|message| matches!(&***message, Message::Human(_)));
    let first =
        task.input.first().map(|human| &human.id).or_else(|| last_question().map(|message| message.id()));
    let last = state.messages.keys().last();
    let text = |id: Option<&MessageId>| id.map(ToString::to_string).unwrap_or_default();
    (text(first), text(last))
}

/// Returns the id of the last message to read; `None` if the conversation has no messages.
fn last(state: &ThreadState, learning: &Learning) -> Option<String> {
    let (_, last) = &learning.span;
    let known = state.messages.keys().find(|id| id.as_str() == last);
    known.or_else(|| state.messages.keys().last()).map(ToString::to_string)
}

/// Returns the messages of a span after the last one that is known to be read; every message if no known one exists any
/// longer.
fn unread<'s>(
    state: &'s ThreadState,
    (first, last): &(String, String),
    read: [Option<&str>; 2],
) -> Vec<&'s Message> {
    let at = |wanted: &str| state.messages.keys().position(|id| id.as_str() == wanted);
    let read_until = read.into_iter().flatten().filter_map(at).map(|at| at + 1).max();
    let from = read_until.max(at(first)).unwrap_or(0);
    let until = at(last).map_or(state.messages.len(), |at| at + 1);
    let span = state.messages.values().take(until).skip(from);
    span.map(|message| &**message).collect()
}

#[cfg(test)]
mod tests;
