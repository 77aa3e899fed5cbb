//! Learning from conversations: once one pauses, a model reads what people said in it since it was read last, and
//! proposes facts. What of that is kept is decided by rules that no words get round ([`pudu_memory::extract`]).
//!
//! Conversations that wait are in the store, so that a stop of the daemon loses none.

use super::{
    recall::notes,
    rules::{MemoryOf, MemorySetup, MemoryTrouble},
};
use crate::{
    Client, RunTask,
    budget::{Meter, metered},
};
use pudu_base::{Human, Message, ModelCaller, ModelError, Request, SpendingTally, ThreadState};
use pudu_harness::side_call;
use pudu_memory::{
    MemoryDocument,
    extract::{
        AnswerError, Extraction, OfferedFacts, Person, Proposal, SaidBy, Transcript, TranscriptTurn, prompt,
    },
};
use pudu_store::{Learning, RecallEntry, RecallKind, now};
use std::{sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

/// So many conversations are looked at together.
const MAX_READ_AT_ONCE: i64 = 16;
/// A conversation is given up after so many failures.
const MAX_ATTEMPTS: i64 = 4;
/// Pause before a conversation is read again after a failure, doubled each time.
const RETRY_PAUSE: Duration = Duration::from_secs(60);
/// Pause before a conversation is read again whose run may spend nothing more.
const MAX_BUDGET_PAUSE: Duration = Duration::from_secs(24 * 60 * 60);
/// Nothing is looked for more often.
const MIN_PAUSE: Duration = Duration::from_millis(200);
/// Nothing is looked for less often: another process may have kept something.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// Reason why a conversation was not read.
#[derive(Debug, thiserror::Error)]
enum LearnError {
    #[error(transparent)]
    Memory(#[from] MemoryTrouble),
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error("the model's answer cannot be used: {0}")]
    Answer(#[from] AnswerError),
    #[error("the thread cannot be read: {0}")]
    Thread(String),
}

impl From<pudu_store::StoreError> for LearnError {
    fn from(error: pudu_store::StoreError) -> Self {
        Self::Memory(error.into())
    }
}

/// Keeps the conversation of a run that ended well, to be read when it pauses.
pub(crate) async fn keep(client: &Client, task: &RunTask) {
    let setup = client.setup();
    let Some(memory) = setup.memory.as_ref() else { return };
    let of = MemoryOf::run(task);
    let learning = Learning {
        user: of.user,
        agent: of.agent.unwrap_or_default(),
        thread: task.thread.clone(),
        run: task.run.clone(),
        spender: task.spender(),
        due: now() + millis(memory.rules.debounce),
        attempts: 0,
    };
    match client.0.db.keep_learning(learning).await {
        Ok(()) => client.0.learns.notify_one(),
        Err(error) => tracing::warn!(run = %task.run, %error, "failed to keep conversation to learn from"),
    }
}

impl Client {
    /// Reads conversations as they pause, until `stop`.
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

    /// Reads what is due, and returns how long nothing else is.
    async fn read_due(&self) -> Duration {
        let Ok(waiting) = self.0.db.learnings(MAX_READ_AT_ONCE).await else { return MAX_PAUSE };
        for learning in &waiting {
            let wait = learning.due - now();
            if wait > 0 {
                return Duration::from_millis(wait.unsigned_abs()).clamp(MIN_PAUSE, MAX_PAUSE);
            }
            self.read_one(learning).await;
        }
        if waiting.is_empty() { MAX_PAUSE } else { MIN_PAUSE }
    }

    async fn read_one(&self, learning: &Learning) {
        let Some(memory) = self.setup().memory.clone() else { return self.give_up(learning).await };
        let Err(error) = self.read_conversation(learning, &memory).await else { return };
        if let LearnError::Model(ModelError::Budget(used)) = &error {
            // That is nobody's fault: the conversation waits until something may be spent again.
            let due = used.opens.unwrap_or_else(|| now() + millis(MAX_BUDGET_PAUSE));
            return self.put_off(Learning { due, ..learning.clone() }).await;
        }
        let attempts = learning.attempts + 1;
        tracing::warn!(thread = %learning.thread, attempts, %error, "failed to learn from conversation");
        if attempts >= MAX_ATTEMPTS {
            return self.give_up(learning).await;
        }
        let pause = RETRY_PAUSE * 2_u32.saturating_pow(u32::try_from(learning.attempts).unwrap_or(0));
        self.put_off(Learning { due: now() + millis(pause), attempts, ..learning.clone() }).await;
    }

    async fn put_off(&self, later: Learning) {
        let thread = later.thread.clone();
        if let Err(error) = self.0.db.keep_learning(later).await {
            tracing::warn!(%thread, %error, "failed to put off learning");
        }
    }

    async fn give_up(&self, learning: &Learning) {
        if let Err(error) = self.0.db.drop_learning(learning).await {
            tracing::warn!(thread = %learning.thread, %error, "failed to give up learning");
        }
    }

    async fn read_conversation(&self, learning: &Learning, memory: &MemorySetup) -> Result<(), LearnError> {
        let db = &self.0.db;
        let state =
            self.state(&learning.thread).await.map_err(|error| LearnError::Thread(error.to_string()))?;
        let read = db.learnt_up_to(learning).await?;
        let Some(last) = state.messages.keys().last().map(ToString::to_string) else {
            return Ok(db.drop_learning(learning).await?);
        };
        let new = since(&state, read.as_deref());
        let agent = Some(learning.agent.clone()).filter(|agent| !agent.is_empty());
        let of = MemoryOf { user: learning.user.clone(), agent };
        if !db.is_memory_off(&of.user).await? {
            db.index(&turns(&of, learning, &new)).await?;
            if let Some(transcript) = Transcript::of(&new.iter().filter_map(turn).collect::<Vec<_>>()) {
                let told = notes(&state).map(|note| note.text.clone()).collect();
                self.extract(learning, memory, &of, transcript, told).await?;
            }
        }
        Ok(db.learnt(learning, &last).await?)
    }

    /// Has the model read a conversation, and keeps what holds of what it proposes.
    async fn extract(
        &self,
        learning: &Learning,
        memory: &MemorySetup,
        of: &MemoryOf,
        transcript: Transcript,
        recalled: Vec<String>,
    ) -> Result<(), LearnError> {
        let document = self.remembered(of).await?;
        let options = memory.rules.options.clone();
        let offered = OfferedFacts::of(&document, &options, now());
        let asked = prompt(&document, &transcript, &offered);
        let request = Request {
            system: asked.system.to_owned(),
            messages: vec![Arc::new(Message::Human(Human::guiding("memory", asked.user)))],
            ..Request::default()
        };
        let (thread, run) = (learning.thread.clone(), learning.run.clone());
        let meter = Meter::new(self, thread, run, learning.spender.clone());
        let model = metered(memory.model.clone(), &meter);
        let mut spending = SpendingTally::default();
        let answer = side_call(&*model, request, ModelCaller::Memory, &mut spending, |_| {}).await;
        let proposal = Proposal::parse(&answer?)?;
        let thread = learning.thread.to_string();
        let committed = self
            .with_memory(of, move |store, scope, now| {
                store.change(&scope, now, |document: &MemoryDocument| {
                    let case = Extraction {
                        document,
                        transcript: &transcript,
                        offered: &offered,
                        recalled: &recalled,
                        thread: &thread,
                        options: &options,
                        now,
                    };
                    let applied = case.apply(&proposal);
                    for refused in &applied.refused {
                        tracing::info!(reason = ?refused.reason, "refused proposed fact");
                    }
                    Ok(applied.changes)
                })
            })
            .await?;
        self.index_facts(of, &committed).await?;
        let (thread, user, facts) = (&learning.thread, &learning.user, committed.added.len());
        tracing::info!(%thread, %user, facts, "learnt from conversation");
        Ok(())
    }
}

/// Returns the messages behind the one that was read last; all if that is not there any more.
fn since<'s>(state: &'s ThreadState, read: Option<&str>) -> Vec<&'s Message> {
    let at = state.messages.keys().position(|id| Some(id.as_str()) == read);
    state.messages.values().skip(at.map_or(0, |at| at + 1)).map(|message| &**message).collect()
}

fn turn(message: &&Message) -> Option<TranscriptTurn> {
    let (by, text, id) = match message {
        Message::Human(human) => {
            let id = human.person.clone().unwrap_or_default();
            (SaidBy::Person(Person { id, name: human.sender.clone(), is_self: true }), &human.text, &human.id)
        }
        Message::Assistant(reply) if reply.calls.is_empty() => (SaidBy::Assistant, &reply.text, &reply.id),
        Message::Assistant(_) | Message::Tool(_) | Message::Reminder(_) => return None,
    };
    let (text, message) = (text.clone(), Some(id.to_string()));
    Some(TranscriptTurn { by, text, message, hidden: false, answers_question: false, forwarded: false })
}

/// Returns people's words as entries of the index.
fn turns(of: &MemoryOf, learning: &Learning, new: &[&Message]) -> Vec<RecallEntry> {
    let turn = |message: &&Message| match message {
        Message::Human(human) if !human.text.trim().is_empty() => Some(RecallEntry {
            scope: of.indexed(),
            kind: RecallKind::Turn,
            doc: human.id.to_string(),
            thread: learning.thread.to_string(),
            author: human.sender.clone().unwrap_or_default(),
            at: now(),
            confidence: 1.0,
            text: human.text.clone(),
        }),
        _ => None,
    };
    new.iter().filter_map(turn).collect()
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
