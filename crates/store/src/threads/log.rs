//! Thread logs: an append-only log per thread, and a snapshot if it makes loads faster.
//!
//! An append writes its rows and checks only the position. A load reads the newest snapshot and the rows after it. A
//! snapshot is stored when most of the rows read are history (replaced, removed or ended): the cost of a load is then
//! that of the thread's current state, and the snapshot is smaller than the rows that it lets a load skip. A thread
//! that only grows gets no snapshot, which would be a second copy of the thread. Rows are never deleted for a snapshot,
//! so it is never the only copy.
//!
//! Deliberately absent: a cache. Callers that run threads keep their state between runs.

use crate::{
    Db, Result, StoreError, clock, crash,
    engines::{Tx, query},
    error::unreadable,
    json::to_json,
    threads,
};
use pudu_base::{BoxFuture, LogError, RunId, Seq, ThreadId, ThreadLog, ThreadState, Update};

/// How far the rows after a snapshot must exceed its size for a new one, in bytes. Reading less is faster than writing
/// a snapshot.
const FLOOR: usize = 64 * 1024;

const THREAD_MOVED_ON: StoreError = StoreError::Conflict("the thread has moved on");

impl ThreadLog for Db {
    fn load<'a>(&'a self, thread: &'a ThreadId) -> BoxFuture<'a, Result<(Seq, ThreadState), LogError>> {
        Box::pin(async move { self.load_past(thread, FLOOR).await.map_err(|error| failure(&error, 0)) })
    }

    fn append<'a>(
        &'a self,
        thread: &'a ThreadId,
        run: &'a RunId,
        at: Seq,
        updates: &'a [Update],
    ) -> BoxFuture<'a, Result<Seq, LogError>> {
        Box::pin(
            async move { self.extend(thread, run, at, updates).await.map_err(|error| failure(&error, at)) },
        )
    }
}

fn failure(error: &StoreError, at: Seq) -> LogError {
    match error {
        StoreError::Conflict(_) => LogError::Conflict { at },
        other => LogError::Store(other.to_string()),
    }
}

/// Rows to append to a thread.
pub(crate) struct LogRows {
    thread: ThreadId,
    run: RunId,
    at: Seq,
    now: i64,
    bodies: Vec<String>,
}

impl LogRows {
    pub(crate) fn new(thread: &ThreadId, run: &RunId, at: Seq, now: i64, updates: &[Update]) -> Result<Self> {
        let bodies = updates.iter().map(to_json).collect::<Result<_, _>>()?;
        Ok(Self { thread: thread.clone(), run: run.clone(), at, now, bodies })
    }
}

/// A thread that is being loaded.
#[derive(Default)]
struct LoadedThread {
    seq: Seq,
    state: ThreadState,
    /// Size of the newest snapshot, in bytes; 0 if there is none.
    snapshot_bytes: usize,
    /// Size of the rows after the snapshot, in bytes.
    tail_bytes: usize,
    /// Number of entries read: those of the snapshot, and the rows after it.
    read: usize,
}

impl Db {
    async fn extend(&self, thread: &ThreadId, run: &RunId, at: Seq, updates: &[Update]) -> Result<Seq> {
        let rows = LogRows::new(thread, run, at, clock::now(), updates)?;
        self.write(&crash::APPEND, move |tx| append(tx, &rows)).await
    }

    /// Loads a thread, and stores a snapshot if it is worthwhile and the rows after the earlier one exceed it by
    /// `floor` bytes.
    async fn load_past(&self, thread: &ThreadId, floor: usize) -> Result<(Seq, ThreadState)> {
        let id = thread.clone();
        let loaded = self
            .read_much(move |tx| {
                let mut loaded = newest_snapshot(tx, &id)?;
                let sql = "SELECT seq, body FROM log WHERE thread = $1 AND seq > $2 ORDER BY seq";
                let query = query(sql).bind(id.as_str()).bind(loaded.seq);
                query.each(tx, |(seq, body): (Seq, String)| loaded.apply_row(seq, &body))?;
                Ok(loaded)
            })
            .await?;
        if loaded.worth_keeping(floor) {
            self.keep_snapshot(thread, &loaded).await;
        }
        Ok((loaded.seq, loaded.state))
    }

    /// Stores a snapshot. A failure is only logged, because the next load tries again.
    async fn keep_snapshot(&self, thread: &ThreadId, loaded: &LoadedThread) {
        let Ok(body) = to_json(&loaded.state) else { return };
        let (id, seq) = (thread.clone(), loaded.seq);
        let saved = self.write(&crash::SNAPSHOT, move |tx| {
            // Skipped if the thread has been deleted. Of two concurrent loads, the one that read further wins.
            let sql = "INSERT INTO snapshots (thread, seq, body)
                SELECT CAST($1 AS TEXT), CAST($2 AS BIGINT), CAST($3 AS TEXT)
                WHERE EXISTS (SELECT 1 FROM threads WHERE id = $1 AND seq >= $2)
                ON CONFLICT (thread) DO UPDATE SET seq = excluded.seq, body = excluded.body
                WHERE snapshots.seq < excluded.seq";
            query(sql).bind(id.as_str()).bind(seq).bind(&body).execute(tx)?;
            Ok(())
        });
        if let Err(error) = saved.await {
            tracing::warn!(%thread, %error, "failed to store snapshot");
        }
    }
}

impl LoadedThread {
    fn apply_row(&mut self, seq: Seq, body: &str) -> Result<()> {
        if seq != self.seq + 1 {
            return Err(StoreError::Corrupt(format!("a thread lacks its row {}", self.seq + 1)));
        }
        self.state.apply(serde_json::from_str(body).map_err(|e| unreadable("a thread's row", &e))?);
        self.seq = seq;
        self.tail_bytes += body.len();
        self.read += 1;
        Ok(())
    }

    /// Returns whether more than half of the entries read are history, and the rows exceed the last snapshot by `floor`
    /// bytes.
    fn worth_keeping(&self, floor: usize) -> bool {
        self.tail_bytes > self.snapshot_bytes.saturating_add(floor) && self.read > 2 * self.entries()
    }

    fn entries(&self) -> usize {
        self.state.messages.len() + self.state.artifacts.len() + self.state.begun.len()
    }
}

fn newest_snapshot(tx: &mut Tx<'_>, thread: &ThreadId) -> Result<LoadedThread> {
    let sql = "SELECT seq, body FROM snapshots WHERE thread = $1";
    let row = query(sql).bind(thread.as_str()).fetch_optional(tx)?;
    let Some((seq, body)): Option<(Seq, String)> = row else { return Ok(LoadedThread::default()) };
    let state = serde_json::from_str(&body).map_err(|e| unreadable("a thread's snapshot", &e))?;
    let mut loaded = LoadedThread { seq, state, snapshot_bytes: body.len(), ..LoadedThread::default() };
    loaded.read = loaded.entries();
    Ok(loaded)
}

/// Returns the state of a thread's snapshot if it is not after a position, otherwise an empty state.
pub(crate) fn snapshot_until(tx: &mut Tx<'_>, thread: &ThreadId, until: Seq) -> Result<(Seq, ThreadState)> {
    let newest = newest_snapshot(tx, thread)?;
    Ok(if newest.seq <= until { (newest.seq, newest.state) } else { Default::default() })
}

/// Maximum number of rows inserted by one statement. SQLite allows 32,766 values in one.
const ROWS_AT_ONCE: usize = 500;

/// Appends rows. Changes nothing if the position in the thread's row is not the expected one. The row's lock serializes
/// concurrent appends.
pub(crate) fn append(tx: &mut Tx<'_>, rows: &LogRows) -> Result<Seq> {
    let new = Seq::try_from(rows.bodies.len()).unwrap_or(Seq::MAX);
    let seq = rows.at.saturating_add(new);
    let bytes = rows.bodies.iter().map(String::len).sum();
    if !threads::move_on(tx, &rows.thread, rows.at..seq, bytes, rows.now)? {
        return Err(THREAD_MOVED_ON);
    }
    for (bodies, at) in rows.bodies.chunks(ROWS_AT_ONCE).zip((rows.at + 1..).step_by(ROWS_AT_ONCE)) {
        let sql = insert_rows(bodies.len());
        let mut insert = query(sql).bind(rows.thread.as_str()).bind(rows.now);
        insert = insert.bind(rows.run.as_str()).bind(at);
        insert = bodies.iter().fold(insert, |insert, body| insert.bind(body));
        insert.execute(tx)?;
    }
    Ok(seq)
}

/// Returns the statement that inserts `count` rows. Its values are thread, time, run, first position, then the bodies.
fn insert_rows(count: usize) -> String {
    let row = |n: usize| format!("($1, $4 + {n}, ${}, $2, $3)", n + 5);
    let rows = (0..count).map(row).collect::<Vec<_>>().join(", ");
    format!("INSERT INTO log (thread, seq, body, at, run) VALUES {rows}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DbLocation;
    use proptest::prelude::*;
    use pudu_base::{Human, Message, ToolResult};
    use std::sync::Arc;

    fn update() -> impl Strategy<Value = Update> {
        let id = || (0u8..6).prop_map(|n| n.to_string());
        // The store replaces NUL, which PostgreSQL refuses.
        let text = || ".{0,40}".prop_map(|text: String| text.replace('\0', "\u{fffd}"));
        let human = (id(), text()).prop_map(|(id, text)| Message::Human(Human::new(id.as_str(), text)));
        let tool = (id(), id(), text(), any::<bool>()).prop_map(|(id, call, text, error)| {
            let (id, call) = (id.as_str().into(), call.as_str().into());
            Message::Tool(ToolResult {
                id,
                call,
                tool: "bash".into(),
                text,
                error,
                question: None,
                images: Vec::new(),
                decision: None,
                decisions: Vec::new(),
                task: None,
            })
        });
        prop_oneof![
            human.prop_map(|message| Update::Message(Arc::new(message))),
            tool.prop_map(|message| Update::Message(Arc::new(message))),
            id().prop_map(|id| Update::Remove(id.as_str().into())),
            id().prop_map(|id| Update::Begin(id.as_str().into())),
            (id(), prop::collection::vec(id(), 0..3))
                .prop_map(|(run, paths)| Update::Artifacts { run: run.as_str().into(), paths }),
        ]
    }

    /// States compare equal regardless of the order of their messages; their JSON does not.
    fn json(state: &ThreadState) -> String {
        serde_json::to_string(state).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn loading_replays_the_log_and_snapshots_change_nothing(
            appends in prop::collection::vec(
                (prop::collection::vec(update(), 0..5), any::<bool>()), 0..12)
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let db = Db::open(&DbLocation::Memory).await.unwrap();
                let thread = ThreadId::from("thread");
                let (mut all, mut at) = (Vec::new(), 0);
                for (updates, with_snapshot) in appends {
                    at = db.append(&thread, &"run".into(), at, &updates).await.unwrap();
                    all.extend(updates);
                    let floor = if with_snapshot { 0 } else { usize::MAX };
                    let (seq, state) = db.load_past(&thread, floor).await.unwrap();
                    let folded = ThreadState::fold(all.clone());
                    assert_eq!((seq, json(&state)), (at, json(&folded)));
                }
            });
        }
    }

    #[tokio::test]
    async fn a_gap_in_a_log_is_corruption() {
        let db = Db::open(&DbLocation::Memory).await.unwrap();
        let thread = ThreadId::from("thread");
        let updates = [Update::Remove("1".into()), Update::Remove("2".into()), Update::Remove("3".into())];
        db.append(&thread, &"run".into(), 0, &updates).await.unwrap();
        db.read(|tx| query("DELETE FROM log WHERE seq = 2").execute(tx)).await.unwrap();
        let error = db.load_past(&thread, FLOOR).await.unwrap_err();
        assert_eq!(error, StoreError::Corrupt("a thread lacks its row 2".into()));
    }
}
