//! Searches the threads that a user may read, with one statement, in the order that the client requests.

use crate::{
    ClientThread, Db, Result,
    engines::{BoundValue, FromRow, Row, Tx, query},
    threads::{client::rows, members::threads_of_member},
};
use pudu_base::{ThreadId, UserId};
use std::{collections::HashMap, fmt::Write, sync::Arc};

/// Status of a thread, as defined by LangGraph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadRunStatus {
    /// No run is active, and the newest one succeeded.
    Idle,
    /// A run is active or waiting.
    Busy,
    /// The newest run was stopped.
    Interrupted,
    /// The newest run failed.
    Error,
}

impl ThreadRunStatus {
    /// All states.
    pub const ALL: [Self; 4] = [Self::Idle, Self::Busy, Self::Interrupted, Self::Error];

    /// Returns LangGraph's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Busy => "busy",
            Self::Interrupted => "interrupted",
            Self::Error => "error",
        }
    }
}

/// Sort key of found threads. Threads with equal keys are sorted by whether they are pinned, then by last use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThreadOrder {
    /// Whether the thread is pinned, then the time of the last use.
    #[default]
    Updated,
    /// Time of creation.
    Created,
    /// The id.
    Id,
    /// The name of the status.
    Status,
}

/// Position of a thread in the order of [`ThreadOrder::Updated`]. A list can continue there regardless of later writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadCursor {
    /// Whether the thread was pinned.
    pub pinned: bool,
    /// Time of the thread's last use.
    pub updated: i64,
    /// The thread.
    pub id: String,
}

impl ThreadCursor {
    /// Returns the position after a thread.
    #[must_use]
    pub fn behind(thread: &ClientThread) -> Self {
        Self { pinned: thread.pinned, updated: thread.updated, id: thread.id.to_string() }
    }
}

/// Input of [`ThreadQuery::fits`].
#[derive(Debug)]
pub struct ThreadFacts {
    /// The title; may be empty.
    pub title: String,
    /// Metadata of clients, JSON, or empty.
    pub metadata: String,
    /// Whether the thread is pinned.
    pub pinned: bool,
}

/// Condition on a thread that SQL cannot express, such as one on its metadata.
pub type ThreadCondition = Arc<dyn Fn(&ThreadFacts) -> bool + Send + Sync>;

/// A client's search for threads.
#[derive(Clone, Default)]
pub struct ThreadQuery {
    /// Ids that the search is limited to.
    pub ids: Option<Vec<String>>,
    /// The required status.
    pub status: Option<ThreadRunStatus>,
    /// The threads with active runs.
    pub busy: Vec<ThreadId>,
    /// A further condition.
    pub fits: Option<ThreadCondition>,
    /// The order.
    pub order: ThreadOrder,
    /// Whether the smallest or oldest come first.
    pub ascending: bool,
    /// Position where the list continues. Valid only in the descending order of [`ThreadOrder::Updated`].
    pub after: Option<ThreadCursor>,
    /// Number of threads to skip.
    pub offset: usize,
    /// Maximum number of threads.
    pub limit: usize,
}

/// Result of a search.
#[derive(Debug, PartialEq, Eq)]
pub struct FoundThreads {
    /// The threads, in order.
    pub threads: Vec<ClientThread>,
    /// Whether there are more.
    pub has_more: bool,
}

/// A thread that SQL found, before the further condition.
struct ThreadCandidate(String, ThreadFacts);

impl FromRow for ThreadCandidate {
    fn from_row(row: &Row<'_>) -> Result<Self> {
        let facts = ThreadFacts {
            title: row.column("title")?,
            metadata: row.column("metadata")?,
            pinned: row.column::<i64>("pinned")? != 0,
        };
        Ok(Self(row.column("id")?, facts))
    }
}

impl Db {
    /// Finds threads that a user may read: the user's own, and room threads with the user as a member.
    pub async fn find_threads(&self, user: &UserId, filter: &ThreadQuery) -> Result<FoundThreads> {
        let (user, filter) = (user.clone(), filter.clone());
        self.read_much(move |tx| find(tx, &user, &filter)).await
    }

    /// Counts the threads that a filter finds, ignoring its limit and offset.
    pub async fn count_threads(&self, user: &UserId, filter: &ThreadQuery) -> Result<usize> {
        let (user, filter) = (user.clone(), filter.clone());
        self.read_much(move |tx| {
            let mut count = 0;
            let Select { sql, values } = Select::new("id, title, metadata, pinned", &user, &filter);
            let statement = query(sql).bind_all(values);
            statement.each(tx, |ThreadCandidate(_, facts)| {
                count += usize::from(filter.fits.as_ref().is_none_or(|fits| fits(&facts)));
                Ok(())
            })?;
            Ok(count)
        })
        .await
    }
}

fn find(tx: &mut Tx<'_>, user: &UserId, filter: &ThreadQuery) -> Result<FoundThreads> {
    let max_rows = filter.limit.saturating_add(1);
    let mut select = Select::new("id, title, metadata, pinned", user, filter);
    select.sort(filter);
    let (mut left_out, mut ids) = (0, Vec::new());
    if filter.fits.is_none() {
        select.sql.push_str(" LIMIT ");
        select.bind(to_i64(max_rows));
        select.sql.push_str(" OFFSET ");
        select.bind(to_i64(filter.offset));
        left_out = filter.offset;
    }
    let Select { sql, values } = select;
    let statement = query(sql).bind_all(values);
    statement.each(tx, |ThreadCandidate(id, facts)| {
        if ids.len() < max_rows && filter.fits.as_ref().is_none_or(|fits| fits(&facts)) {
            match left_out < filter.offset {
                true => left_out += 1,
                false => ids.push(id),
            }
        }
        Ok(())
    })?;
    let has_more = ids.len() > filter.limit;
    ids.truncate(filter.limit);
    Ok(FoundThreads { threads: whole(tx, &ids)?, has_more })
}

/// Reads complete threads in the order of `ids`.
fn whole(tx: &mut Tx<'_>, ids: &[String]) -> Result<Vec<ClientThread>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let mut select = Select { sql: rows!("WHERE id IN ").to_owned(), values: Vec::new() };
    select.list(ids.iter().map(String::as_str));
    let Select { sql, values } = select;
    let statement = query(sql).bind_all(values);
    let places: HashMap<&str, usize> = ids.iter().enumerate().map(|(at, id)| (id.as_str(), at)).collect();
    let mut threads: Vec<ClientThread> = statement.fetch_all(tx)?;
    threads.sort_by_key(|thread| places.get(thread.id.as_str()).copied());
    Ok(threads)
}

/// A statement under construction, and its values.
struct Select<'q> {
    sql: String,
    values: Vec<BoundValue<'q>>,
}

impl<'q> Select<'q> {
    /// Selects columns of the threads that match the conditions in SQL.
    fn new(columns: &str, user: &'q UserId, filter: &'q ThreadQuery) -> Self {
        let sql =
            format!("SELECT {columns} FROM threads WHERE (user_id = $1 OR id IN ({}))", threads_of_member!());
        let mut select = Self { sql, values: vec![user.as_str().into()] };
        if let Some(ids) = &filter.ids {
            select.sql.push_str(" AND id IN ");
            select.list(ids.iter().map(String::as_str));
        }
        if let Some(status) = filter.status {
            select.sql.push_str(" AND ");
            select.status(&filter.busy);
            select.sql.push_str(" = ");
            select.bind(status.name());
        }
        if let Some(after) = filter.after.as_ref().filter(|_| filter.order == ThreadOrder::Updated) {
            select.sql.push_str(" AND (pinned, updated, id) < (");
            select.bind(i64::from(after.pinned));
            select.sql.push_str(", ");
            select.bind(after.updated);
            select.sql.push_str(", ");
            select.bind(after.id.as_str());
            select.sql.push(')');
        }
        select
    }

    fn bind(&mut self, value: impl Into<BoundValue<'q>>) {
        self.values.push(value.into());
        // Writing to a string cannot fail.
        write!(self.sql, "${}", self.values.len()).ok();
    }

    /// Appends a list of texts that begins with an empty text, because SQL does not allow an empty list.
    fn list(&mut self, texts: impl Iterator<Item = &'q str>) {
        self.sql.push_str("(''");
        for text in texts {
            self.sql.push_str(", ");
            self.bind(text);
        }
        self.sql.push(')');
    }

    /// Appends the expression for a thread's status.
    fn status(&mut self, busy: &'q [ThreadId]) {
        self.sql.push_str("CASE WHEN id IN ");
        self.list(busy.iter().map(ThreadId::as_str));
        self.sql.push_str(" THEN 'busy' ");
        // The JSON of an outcome begins with its status.
        self.sql.push_str(
            "ELSE COALESCE((SELECT CASE WHEN outcome IS NULL OR outcome LIKE '{\"status\":\"success\"%' THEN 'idle'
                WHEN outcome LIKE '{\"status\":\"stopped\"%' THEN 'interrupted' ELSE 'error' END
                FROM runs WHERE runs.thread = threads.id ORDER BY started DESC, runs.id DESC LIMIT 1), 'idle') END",
        );
    }

    fn sort(&mut self, filter: &'q ThreadQuery) {
        let direction = if filter.ascending { "ASC" } else { "DESC" };
        self.sql.push_str(" ORDER BY ");
        match filter.order {
            ThreadOrder::Updated => {}
            ThreadOrder::Created => write!(self.sql, "created {direction}, ").unwrap_or_default(),
            ThreadOrder::Id => write!(self.sql, "id {direction}, ").unwrap_or_default(),
            ThreadOrder::Status => {
                self.status(&filter.busy);
                write!(self.sql, " {direction}, ").unwrap_or_default();
            }
        }
        write!(self.sql, "pinned {direction}, updated {direction}, id {direction}").ok();
    }
}

fn to_i64(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
