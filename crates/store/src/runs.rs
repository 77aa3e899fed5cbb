//! The agent's runs, with their outcomes and costs.

pub(crate) mod approvals;
pub(crate) mod audit;
pub(crate) mod feedback;
pub(crate) mod records;

use crate::{
    Db, Result, StoreError, crash,
    engines::{Tx, query},
    json::to_json,
    schedules::history,
    spending::total,
    threads,
};
use pudu_base::{Outcome, RunId, ThreadId, Usage};

/// The end of a run, and its summary for lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnding {
    /// The outcome.
    pub outcome: Outcome,
    /// The limit that ended it; empty if none did.
    pub stop_reason: String,
    /// The beginning of the question.
    pub first_words: String,
    /// The beginning of the answer.
    pub last_words: String,
    /// Number of messages that it added to the thread.
    pub messages: i64,
}

impl From<&Outcome> for RunEnding {
    fn from(outcome: &Outcome) -> Self {
        let [stop_reason, first_words, last_words] = Default::default();
        Self { outcome: outcome.clone(), stop_reason, first_words, last_words, messages: 0 }
    }
}

/// Titles of the thread of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunTitles {
    /// The title at the start of the run.
    pub found: Option<String>,
    /// The title at the end of the run; while the run is in progress, the thread's current title.
    pub left: Option<String>,
}

impl Db {
    /// Records that a run begins, and sets the title of its thread if one is given and the thread has none. Does not
    /// change a run that continues after a restart. Committed with the next write or after a short delay.
    pub fn run_started(
        &self,
        id: &RunId,
        thread: &ThreadId,
        model: &str,
        title: Option<&str>,
        now: i64,
    ) -> impl Future<Output = Result<()>> + use<> {
        let texts = [id.as_str(), thread.as_str(), model, self.process()].map(str::to_owned);
        let title = title.map(str::to_owned);
        self.write_with_next(&crash::RUN_STARTED, move |tx| started(tx, &texts, title.as_deref(), now))
    }

    /// Records how a run ended, with its spending until then. Later ends of the same run are ignored.
    pub async fn run_ended(&self, id: &RunId, ending: impl Into<RunEnding>, now: i64) -> Result<()> {
        let RunEnding { outcome, stop_reason, first_words, last_words, messages } = ending.into();
        let [input, output] = ["input", "output"].map(total);
        let sql = format!(
            "UPDATE runs SET ended = $1, outcome = $2,
                input = (SELECT {input} FROM spending WHERE run = $3),
                output = (SELECT {output} FROM spending WHERE run = $3),
                stop_reason = $4, first_words = $5, last_words = $6, messages = $7,
                title_left = (SELECT title FROM threads WHERE threads.id = runs.thread)
                WHERE id = $3 AND ended IS NULL"
        );
        let (stored, id) = (to_json(&outcome)?, id.clone());
        self.write(&crash::RUN_ENDED, move |tx| {
            let update = query(sql.clone()).bind(now).bind(&stored).bind(&id);
            let update = update.bind_all([&stop_reason, &first_words, &last_words]).bind(messages);
            match update.execute(tx)? {
                0 => Ok(()),
                _ => history::ended(tx, &id, &outcome, now),
            }
        })
        .await
    }

    /// Returns how a run ended, if it has.
    pub async fn run_outcome(&self, id: &RunId) -> Result<Option<Outcome>> {
        let sql = "SELECT outcome FROM runs WHERE id = $1 AND outcome IS NOT NULL";
        let outcome: Option<String> = self.find(query(sql).bind(id.as_str())).await?;
        let read = |text: String| serde_json::from_str(&text).map_err(|e| StoreError::Corrupt(e.to_string()));
        outcome.map(read).transpose()
    }

    /// Returns the titles of the thread of a run. Falls back to the thread's current title for an unrecorded run.
    pub async fn run_titles(&self, thread: &ThreadId, run: &RunId) -> Result<RunTitles> {
        let sql = "SELECT COALESCE(runs.title_found, runs.title_left, threads.title),
            COALESCE(runs.title_left, threads.title)
            FROM threads LEFT JOIN runs ON runs.id = $2 AND runs.thread = threads.id WHERE threads.id = $1";
        let row: Option<(String, String)> = self.find(query(sql).bind(thread).bind(run)).await?;
        let (found, left) = row.unwrap_or_default();
        let title = |title: String| Some(title).filter(|title| !title.is_empty());
        Ok(RunTitles { found: title(found), left: title(left) })
    }

    /// Returns the usage of a thread's runs so far, and the number of runs that have begun.
    pub async fn usage(&self, thread: &ThreadId) -> Result<(Usage, i64)> {
        let [input, output] = ["input", "output"].map(total);
        let sql = format!("SELECT {input}, {output}, COUNT(begun) FROM runs WHERE thread = $1");
        let (input, output, runs): (i64, i64, i64) = self.one(query(sql).bind(thread)).await?;
        let [input, output] = [input, output].map(|tokens| u64::try_from(tokens).unwrap_or(0));
        Ok((Usage::plain(input, output), runs))
    }
}

fn started(tx: &mut Tx<'_>, texts: &[String; 4], title: Option<&str>, now: i64) -> Result<()> {
    // Only runs of embedding programs have no record at this point.
    let sql = "INSERT INTO runs (id, thread, model, owner, started, begun, origin, title_found)
        VALUES ($1, $2, $3, $4, $5, $5, 'embedded', (SELECT title FROM threads WHERE id = $2))
        ON CONFLICT (id) DO UPDATE SET model = excluded.model, begun = excluded.begun, title_found = excluded.title_found
        WHERE runs.begun IS NULL";
    let insert = query(sql).bind_all(texts);
    insert.bind(now).execute(tx)?;
    match title {
        Some(title) => threads::entitle(&texts[1], "", title).execute(tx).map(drop),
        None => Ok(()),
    }
}
