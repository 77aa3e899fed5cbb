//! Records of all runs: those of chats, API clients and embedding programs. A run belongs to the process that executes
//! it. A starting process takes over the unfinished runs of its predecessor.

use crate::{
    Db, Result, StoreError, crash,
    engines::{Column, ColumnValue, Row, Statement, Tx, from_row, query},
    spending::total,
    threads,
};
use pudu_base::{Outcome, RunId, ThreadFolder, ThreadId, UserId};

/// A run requested by a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewClientRun {
    /// Its id.
    pub id: RunId,
    /// The thread, with its owner in case it is new.
    pub folder: ThreadFolder,
    /// The `account` of a new thread.
    pub account: String,
    /// Its source: a client or a scheduled task.
    pub origin: RunOrigin,
    /// The requesting user.
    pub user: UserId,
    /// The assistant's name.
    pub assistant: String,
    /// The request, JSON.
    pub request: String,
    /// The client's metadata, JSON.
    pub metadata: String,
    /// LangGraph's multitask strategy, which determines the fate of an active run on the thread.
    pub multitask: String,
    /// Whether its thread is deleted after the run.
    pub deletes_thread: bool,
    /// Runs that this strategy stops, and the action that stops them.
    pub cancels: Option<(CancelAction, Vec<RunId>)>,
    /// The current time, in milliseconds since 1970.
    pub now: i64,
}

/// How a run was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelAction {
    /// The messages so far are kept.
    Interrupt,
    /// The thread is reset to its state before the run.
    Rollback,
}

impl CancelAction {
    /// Returns LangGraph's name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Interrupt => "interrupt",
            Self::Rollback => "rollback",
        }
    }

    /// Parses LangGraph's name.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Interrupt, Self::Rollback].into_iter().find(|action| action.as_str() == word)
    }
}

/// Source of a run, which also receives its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunOrigin {
    /// A turn of a chat.
    Chat,
    /// A client of the HTTP API.
    Api,
    /// A scheduled task with a thread.
    Schedule,
    /// A program that embeds the agent.
    Embedded,
}

impl RunOrigin {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Api => "api",
            Self::Schedule => "schedule",
            Self::Embedded => "embedded",
        }
    }

    fn parse(word: &str) -> Result<Self> {
        let known = [Self::Chat, Self::Api, Self::Schedule, Self::Embedded]
            .into_iter()
            .find(|origin| origin.as_str() == word);
        known.ok_or_else(|| StoreError::Corrupt(format!("unknown origin of a run: {word}")))
    }
}

/// A run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRow {
    /// Its id.
    pub id: RunId,
    /// The thread.
    pub thread: ThreadId,
    /// Its source.
    pub origin: RunOrigin,
    /// The requesting user; empty for runs of chats.
    pub user: String,
    /// The assistant's name.
    pub assistant: String,
    /// The model's name; empty until the run begins.
    pub model: String,
    /// The request, JSON; empty for runs of chats.
    pub request: String,
    /// The client's metadata, JSON, or empty.
    pub metadata: String,
    /// LangGraph's multitask strategy.
    pub multitask: String,
    /// Time of the request, in milliseconds since 1970.
    pub created: i64,
    /// Time when it began.
    pub begun: Option<i64>,
    /// Time when it ended.
    pub ended: Option<i64>,
    /// Its outcome, JSON.
    pub outcome: Option<String>,
    /// How it was cancelled.
    pub cancelled: Option<CancelAction>,
    /// Whether its process was shut down gracefully while the run was unfinished.
    pub suspended: bool,
    /// Number of times that it was resumed after a crash.
    pub resumed: i64,
    /// Whether people cleared its goal.
    pub goal_dropped: bool,
    /// The limit that ended it.
    pub stop_reason: String,
    /// The beginning of the question.
    pub first_words: String,
    /// The beginning of the answer.
    pub last_words: String,
    /// Number of messages that it added to the thread.
    pub messages: i64,
}

impl RunRow {
    /// Returns its outcome.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        serde_json::from_str(self.outcome.as_deref()?).ok()
    }
}

from_row!(RunRow {
    id,
    thread,
    origin,
    user: "user_id",
    assistant,
    model,
    request,
    metadata,
    multitask,
    created: "started",
    begun,
    ended,
    outcome,
    cancelled,
    suspended,
    resumed,
    goal_dropped,
    stop_reason,
    first_words,
    last_words,
    messages,
});

impl ColumnValue for RunOrigin {
    fn read(row: &Row<'_>, at: Column<'_>) -> Result<Option<Self>> {
        row.column::<Option<String>>(at)?.as_deref().map(Self::parse).transpose()
    }
}

impl ColumnValue for CancelAction {
    fn read(row: &Row<'_>, at: Column<'_>) -> Result<Option<Self>> {
        Ok(Self::parse(&row.column::<String>(at)?))
    }
}

/// Tokens spent by one caller of models in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunTokens {
    /// The run.
    pub run: RunId,
    /// The caller's name.
    pub caller: String,
    /// The model's name.
    pub model: String,
    /// Number of calls.
    pub calls: i64,
    /// Tokens of prompts.
    pub input: i64,
    /// Tokens of replies.
    pub output: i64,
}

from_row!(RunTokens { run, caller, model, calls, input, output });

macro_rules! rows {
    ($rest:literal) => {
        concat!(
            "SELECT id, thread, origin, user_id, assistant, model, request, metadata, multitask, started, begun, ended, outcome,
                cancelled, suspended, resumed, goal_dropped, stop_reason, first_words, last_words, messages FROM runs ",
            $rest
        )
    };
}

impl Db {
    /// Stores a run requested by a client, with its thread if it is new, and cancels the runs that it stops. Once
    /// stored, the run ends exactly once.
    pub async fn accept_run(&self, run: NewClientRun) -> Result<()> {
        let owner = self.process().to_owned();
        self.write(&crash::ACCEPT_RUN, move |tx| accept(tx, &run, &owner)).await
    }

    /// Records how to cancel an unfinished run. The first request is final.
    pub async fn cancel_run(&self, run: &RunId, action: CancelAction) -> Result<()> {
        self.execute(&crash::CANCEL_RUN, cancel(run, action)).await.map(drop)
    }

    /// Records that this process is shutting down gracefully, with its unfinished runs.
    pub async fn suspend_runs(&self) -> Result<()> {
        let owner = self.process();
        self.execute(
            &crash::SUSPEND_RUNS,
            query("UPDATE runs SET suspended = 1 WHERE ended IS NULL AND owner = $1").bind(owner),
        )
        .await
        .map(drop)
    }

    /// Takes over the unfinished runs of other processes and returns them: started runs, then waiting ones, each in the
    /// order of acceptance. The caller has exclusive use of the database, so no other process is working on them.
    pub async fn take_over_runs(&self) -> Result<Vec<RunRow>> {
        let owner = self.process().to_owned();
        self.write(&crash::TAKE_OVER_RUNS, move |tx| {
            let sql = rows!(
                "WHERE ended IS NULL AND (owner IS NULL OR owner <> $1)
                    ORDER BY CASE WHEN begun IS NULL THEN 1 ELSE 0 END, started, id"
            );
            let rows = query(sql).bind(&owner).fetch_all(tx)?;
            let sql = "UPDATE runs SET owner = $1 WHERE ended IS NULL AND (owner IS NULL OR owner <> $1)";
            query(sql).bind(&owner).execute(tx)?;
            Ok(rows)
        })
        .await
    }

    /// Records that a run resumes in this process. It is counted only after a crash, not after a graceful shutdown.
    pub async fn resume_run(&self, run: &RunId) -> Result<()> {
        let sql = "UPDATE runs SET resumed = resumed + 1 - suspended, suspended = 0 WHERE id = $1";
        self.execute(&crash::RESUME_RUN, query(sql).bind(run.as_str())).await.map(drop)
    }

    /// Returns a run.
    pub async fn run(&self, run: &RunId) -> Result<Option<RunRow>> {
        self.find(query(rows!("WHERE id = $1")).bind(run.as_str())).await
    }

    /// Returns a thread's runs, newest first.
    pub async fn thread_runs(&self, thread: &ThreadId, limit: i64, offset: i64) -> Result<Vec<RunRow>> {
        let sql = rows!("WHERE thread = $1 ORDER BY started DESC, id DESC LIMIT $2 OFFSET $3");
        self.all(query(sql).bind(thread.as_str()).bind(limit).bind(offset)).await
    }

    /// Returns the runs whose threads are deleted after them.
    pub async fn temporary_runs(&self) -> Result<Vec<(ThreadId, RunId)>> {
        let sql = "SELECT thread, id FROM runs WHERE deletes_thread <> 0 ORDER BY thread, id";
        self.all(query(sql)).await
    }

    /// Returns the spending of the runs of a thread, or of one run, by run, caller and model.
    pub async fn run_tokens(&self, thread: &ThreadId, run: Option<&RunId>) -> Result<Vec<RunTokens>> {
        let totals =
            ["calls", "input", "output"].map(|amount| format!("{} AS {amount}", total(amount))).join(", ");
        let sql = format!(
            "SELECT run, caller, model, {totals} FROM spending WHERE thread = $1 AND run = COALESCE($2, run)
                GROUP BY run, caller, model ORDER BY run, caller, model"
        );
        self.all(query(sql).bind(thread).bind(run)).await
    }

    /// Returns the runs of a thread, newest first, each with its user and its end.
    pub async fn run_ends(
        &self,
        thread: &ThreadId,
        limit: i64,
        offset: i64,
    ) -> Result<Vec<(RunId, UserId, Option<i64>)>> {
        let sql = "SELECT id, user_id, ended FROM runs WHERE thread = $1
            ORDER BY started DESC, id DESC LIMIT $2 OFFSET $3";
        self.all(query(sql).bind(thread.as_str()).bind(limit).bind(offset)).await
    }

    /// Returns the runs of a thread, each with its duration in milliseconds if it has ended.
    pub async fn run_times(&self, thread: &ThreadId) -> Result<Vec<(RunId, Option<i64>)>> {
        let sql = "SELECT id, ended - begun FROM runs WHERE thread = $1";
        self.all(query(sql).bind(thread)).await
    }

    /// Deletes the record of a run that has ended and whose answer is delivered. Its messages stay in the thread.
    /// Returns whether there was one.
    pub async fn delete_run(&self, thread: &ThreadId, run: &RunId) -> Result<bool> {
        let sql = "DELETE FROM runs WHERE thread = $1 AND id = $2 AND ended IS NOT NULL AND NOT EXISTS
            (SELECT 1 FROM turns WHERE turns.run = runs.id AND delivered IS NULL AND parked IS NULL)";
        Ok(self.execute(&crash::DELETE_RUN, query(sql).bind(thread.as_str()).bind(run.as_str())).await? > 0)
    }
}

/// Adds the record of a chat's run, unless it exists.
pub(crate) fn accept_of_chat(
    tx: &mut Tx<'_>,
    run: &RunId,
    thread: &ThreadId,
    owner: &str,
    now: i64,
) -> Result<()> {
    let sql = "INSERT INTO runs (id, thread, model, started, origin, owner) VALUES ($1, $2, '', $3, $4, $5)
        ON CONFLICT (id) DO NOTHING";
    let insert = query(sql).bind(run.as_str()).bind(thread.as_str()).bind(now);
    insert.bind(RunOrigin::Chat.as_str()).bind(owner).execute(tx).map(drop)
}

/// Stores a run requested by a client, with its thread if it is new.
pub(crate) fn accept(tx: &mut Tx<'_>, run: &NewClientRun, owner: &str) -> Result<()> {
    threads::used(tx, &run.folder, &run.account, run.now)?;
    let sql =
        "INSERT INTO runs (id, thread, model, started, user_id, assistant, request, metadata, multitask, deletes_thread,
                owner, origin)
            VALUES ($1, $2, '', $3, $4, $5, $6, $7, $8, $9, $10, $11)";
    let insert = query(sql).bind(run.id.as_str()).bind(run.folder.thread.as_str()).bind(run.now);
    let insert = insert.bind(run.user.as_str()).bind(run.assistant.as_str()).bind(run.request.as_str());
    let insert = insert.bind(run.metadata.as_str()).bind(run.multitask.as_str());
    insert.bind(i64::from(run.deletes_thread)).bind(owner).bind(run.origin.as_str()).execute(tx)?;
    if let Some((action, others)) = &run.cancels {
        for other in others {
            cancel(other, *action).execute(tx)?;
        }
    }
    Ok(())
}

fn cancel(run: &RunId, action: CancelAction) -> Statement<'_> {
    let sql = "UPDATE runs SET cancelled = $2 WHERE id = $1 AND ended IS NULL AND cancelled = ''";
    query(sql).bind(run).bind(action.as_str())
}
