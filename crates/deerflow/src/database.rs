//! Reads DeerFlow's database, which is SQLite or PostgreSQL, opened read-only.
//!
//! An SQLite file with a write-ahead log is copied first, because reading it in place would write next to it. A file
//! that is being written to is refused, because DeerFlow has to be stopped first.

use crate::{error::ImportError, row::SourceRow};
use futures_util::TryStreamExt;
use rusqlite::OpenFlags;
use sqlx::{Connection, PgConnection};
use std::{
    collections::BTreeSet,
    fmt, fs,
    path::{Path, PathBuf},
    time::SystemTime,
};
use tempfile::TempDir;

/// Location of the database.
#[derive(Clone)]
pub enum SourceDatabase {
    /// A file.
    Sqlite(PathBuf),
    /// A server.
    Postgres {
        /// The server's URL, with the password.
        url: String,
        /// Schema of DeerFlow's tables, if it is not the default one.
        schema: Option<String>,
    },
}

/// Omits the URL, which contains a password.
impl fmt::Debug for SourceDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(file) => f.debug_tuple("Sqlite").field(file).finish(),
            Self::Postgres { schema, .. } => {
                f.debug_struct("Postgres").field("schema", schema).finish_non_exhaustive()
            }
        }
    }
}

/// Maximum size of a value, in bytes. The statements below contain the same number.
const MAX_VALUE_BYTES: usize = 32 * 1024 * 1024;

/// Maximum size of a text in other rows, in bytes.
const MAX_TEXT_BYTES: usize = 1024 * 1024;
/// Maximum number of values per thread.
pub(crate) const MAX_THREAD_VALUES: usize = 200_000;
/// Maximum size of a thread's values, in bytes.
pub(crate) const MAX_THREAD_BYTES: usize = 256 * 1024 * 1024;

/// A read-only connection to the database.
pub(crate) struct SourceReader {
    connection: SourceConnection,
    tables: BTreeSet<String>,
    /// The file and its state when it was opened, to detect writes.
    watched: Option<(PathBuf, FileMarks)>,
    /// Number of values and bytes that may still be read for the current thread.
    left: (usize, usize),
    _copy: Option<TempDir>,
}

enum SourceConnection {
    Sqlite(rusqlite::Connection),
    Postgres(PgConnection),
}

/// Sizes and modification times of a database file and its log.
type FileMarks = [Option<(u64, SystemTime)>; 2];

/// A serialized value.
pub(crate) struct StoredValue {
    /// Type tag of the serializer.
    pub(crate) kind: String,
    /// The bytes; `None` if there are too many.
    pub(crate) bytes: Option<Vec<u8>>,
}

/// A checkpoint of a thread.
pub(crate) struct CheckpointRow {
    pub(crate) id: String,
    pub(crate) parent: Option<String>,
    pub(crate) value: StoredValue,
}

impl SourceReader {
    pub(crate) async fn open(database: &SourceDatabase) -> Result<Self, ImportError> {
        match database {
            SourceDatabase::Sqlite(file) => Self::file(file).await,
            SourceDatabase::Postgres { url, schema } => {
                let mut connection = PgConnection::connect(url).await.map_err(ImportError::database)?;
                let only = "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY";
                sqlx::raw_sql(only).execute(&mut connection).await.map_err(ImportError::database)?;
                if let Some(schema) = schema {
                    let set = sqlx::query("SELECT SET_CONFIG('search_path', $1, false)");
                    let quoted = format!("\"{}\"", schema.replace('"', "\"\""));
                    set.bind(quoted).execute(&mut connection).await.map_err(ImportError::database)?;
                }
                Self::with(SourceConnection::Postgres(connection), None, None).await
            }
        }
    }

    async fn file(file: &Path) -> Result<Self, ImportError> {
        let marks = marks(file);
        let logged = matches!(marks, [_, Some((bytes, _))] if bytes > 0);
        let copy = if logged { Some(copied(file).map_err(|why| ImportError::io(file, why))?) } else { None };
        let path = copy.as_ref().map_or_else(|| file.to_owned(), |copy| copy.path().join("deerflow.db"));
        let url = url::Url::from_file_path(std::path::absolute(&path).unwrap_or(path));
        let url = url
            .map_err(|()| ImportError::Source(format!("{} is not a valid database path", file.display())))?;
        // The copy is private; the original must not be changed.
        let (how, access) = match logged {
            true => ("", OpenFlags::SQLITE_OPEN_READ_WRITE),
            false => ("?immutable=1", OpenFlags::SQLITE_OPEN_READ_ONLY),
        };
        let flags = access | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = rusqlite::Connection::open_with_flags(format!("file:{}{how}", url.path()), flags)?;
        let connection = SourceConnection::Sqlite(connection);
        let reader = Self::with(connection, Some((file.to_owned(), marks)), copy).await?;
        reader.check_unchanged()?;
        Ok(reader)
    }

    async fn with(
        connection: SourceConnection,
        watched: Option<(PathBuf, FileMarks)>,
        copy: Option<TempDir>,
    ) -> Result<Self, ImportError> {
        let left = (MAX_THREAD_VALUES, MAX_THREAD_BYTES);
        let mut reader = Self { connection, tables: BTreeSet::new(), watched, left, _copy: copy };
        let sql = match reader.is_postgres() {
            true => {
                "SELECT table_name::TEXT AS name FROM information_schema.tables
                    WHERE table_schema = ANY(current_schemas(false))"
            }
            false => "SELECT name FROM sqlite_master WHERE type = 'table'",
        };
        let mut tables = BTreeSet::new();
        let take = |row: SourceRow| {
            tables.extend(row.text("name"));
            true
        };
        reader.each(sql, &[], take).await?;
        reader.tables = tables;
        Ok(reader)
    }

    fn is_postgres(&self) -> bool {
        matches!(self.connection, SourceConnection::Postgres(_))
    }

    /// Passes the rows of a statement to `take` until it returns `false`.
    async fn each(
        &mut self,
        sql: &str,
        values: &[&str],
        mut take: impl FnMut(SourceRow) -> bool,
    ) -> Result<(), ImportError> {
        match &mut self.connection {
            SourceConnection::Sqlite(connection) => {
                let mut statement = connection.prepare(sql)?;
                let columns: Vec<String> = statement.column_names().into_iter().map(str::to_owned).collect();
                let mut rows = statement.query(rusqlite::params_from_iter(values))?;
                while let Some(row) = rows.next()? {
                    if !take(SourceRow::of_sqlite(&columns, row)?) {
                        break;
                    }
                }
            }
            SourceConnection::Postgres(connection) => {
                let query = sqlx::query(sqlx::AssertSqlSafe(sql.to_owned()));
                let query = values.iter().fold(query, |query, value| query.bind(*value));
                let mut rows = query.fetch(connection);
                while let Some(row) = rows.try_next().await.map_err(ImportError::database)? {
                    if !take(SourceRow::of_postgres(&row)?) {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Checks that the file has not been written to since it was opened.
    pub(crate) fn check_unchanged(&self) -> Result<(), ImportError> {
        match &self.watched {
            Some((file, before)) if marks(file) != *before => Err(ImportError::InUse(file.clone())),
            _ => Ok(()),
        }
    }

    pub(crate) fn has(&self, table: &str) -> bool {
        self.tables.contains(table)
    }

    /// Resets the limits for another thread.
    pub(crate) fn begin_thread(&mut self) {
        self.left = (MAX_THREAD_VALUES, MAX_THREAD_BYTES);
    }

    /// Returns whether the limits of the current thread are exceeded.
    pub(crate) fn is_spent(&self) -> bool {
        self.left.0 == 0 || self.left.1 == 0
    }

    /// Returns the rows of a statement; none if the table does not exist. A text that is too large is null.
    pub(crate) async fn rows(
        &mut self,
        table: &str,
        sql: &'static str,
        values: &[&str],
    ) -> Result<Vec<SourceRow>, ImportError> {
        if !self.has(table) {
            return Ok(Vec::new());
        }
        let (sql, mut found) = (bounded(sql, self.is_postgres()), Vec::new());
        let take = |row| {
            found.push(row);
            true
        };
        self.each(&sql, values, take).await?;
        Ok(found)
    }

    /// Counts the rows of a DeerFlow table.
    pub(crate) async fn count(&mut self, table: &str, sql: &'static str) -> Result<usize, ImportError> {
        let rows = self.rows(table, sql, &[]).await?;
        let count = rows.first().map(SourceRow::first_number).transpose()?;
        Ok(count.and_then(|count| usize::try_from(count).ok()).unwrap_or_default())
    }

    /// Returns the newest checkpoint of a thread's root graph.
    pub(crate) async fn newest(&mut self, thread: &str) -> Result<Option<CheckpointRow>, ImportError> {
        let sql = match self.is_postgres() {
            true => {
                "SELECT checkpoint_id, parent_checkpoint_id, 'json' AS type,
                    CASE WHEN OCTET_LENGTH(checkpoint::TEXT) <= 33554432 THEN CONVERT_TO(checkpoint::TEXT, 'UTF8') END
                    AS value FROM checkpoints
                    WHERE thread_id = $1 AND checkpoint_ns = '' ORDER BY checkpoint_id DESC LIMIT 1"
            }
            false => {
                "SELECT CAST(checkpoint_id AS TEXT) AS checkpoint_id, CAST(parent_checkpoint_id AS TEXT) AS parent_checkpoint_id,
                    CAST(type AS TEXT) AS type,
                    CASE WHEN LENGTH(checkpoint) <= 33554432 THEN CAST(checkpoint AS BLOB) END AS value FROM checkpoints
                    WHERE thread_id = $1 AND checkpoint_ns = '' ORDER BY checkpoint_id DESC LIMIT 1"
            }
        };
        self.checkpoint(sql, &[thread]).await
    }

    /// Returns an older checkpoint of a thread.
    pub(crate) async fn older(
        &mut self,
        thread: &str,
        id: &str,
    ) -> Result<Option<CheckpointRow>, ImportError> {
        let sql = match self.is_postgres() {
            true => {
                "SELECT checkpoint_id, parent_checkpoint_id, 'json' AS type,
                    CASE WHEN OCTET_LENGTH(checkpoint::TEXT) <= 33554432 THEN CONVERT_TO(checkpoint::TEXT, 'UTF8') END
                    AS value FROM checkpoints
                    WHERE thread_id = $1 AND checkpoint_ns = '' AND checkpoint_id = $2"
            }
            false => {
                "SELECT CAST(checkpoint_id AS TEXT) AS checkpoint_id, CAST(parent_checkpoint_id AS TEXT) AS parent_checkpoint_id,
                    CAST(type AS TEXT) AS type,
                    CASE WHEN LENGTH(checkpoint) <= 33554432 THEN CAST(checkpoint AS BLOB) END AS value FROM checkpoints
                    WHERE thread_id = $1 AND checkpoint_ns = '' AND checkpoint_id = $2"
            }
        };
        self.checkpoint(sql, &[thread, id]).await
    }

    async fn checkpoint(
        &mut self,
        sql: &'static str,
        values: &[&str],
    ) -> Result<Option<CheckpointRow>, ImportError> {
        let rows = self.rows("checkpoints", sql, values).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let value = stored(row);
        let (id, parent) = (row.text("checkpoint_id").unwrap_or_default(), row.text("parent_checkpoint_id"));
        self.spend(&value);
        Ok(Some(CheckpointRow { id, parent, value }))
    }

    /// Returns the value of a channel at a version, which a PostgreSQL saver stores outside of its checkpoints.
    pub(crate) async fn blob(
        &mut self,
        thread: &str,
        channel: &str,
        version: &str,
    ) -> Result<Option<StoredValue>, ImportError> {
        let sql =
            "SELECT type, CASE WHEN LENGTH(blob) <= 33554432 THEN blob END AS value FROM checkpoint_blobs
            WHERE thread_id = $1 AND checkpoint_ns = '' AND channel = $2 AND version = $3";
        let rows = self.rows("checkpoint_blobs", sql, &[thread, channel, version]).await?;
        let value = rows.first().map(stored);
        Ok(value.filter(|value| value.kind != "empty"))
    }

    fn spend(&mut self, value: &StoredValue) {
        let bytes = value.bytes.as_ref().map_or(0, Vec::len);
        self.left = (self.left.0.saturating_sub(1), self.left.1.saturating_sub(bytes));
    }

    /// Returns the writes to a channel at a checkpoint, in order; `None` if there are too many.
    pub(crate) async fn writes(
        &mut self,
        thread: &str,
        checkpoint: &str,
        channel: &str,
    ) -> Result<Option<Vec<StoredValue>>, ImportError> {
        let (table, sql) = match self.is_postgres() {
            true => (
                "checkpoint_writes",
                "SELECT type, CASE WHEN LENGTH(blob) <= 33554432 THEN blob END AS value FROM checkpoint_writes
                    WHERE thread_id = $1 AND checkpoint_ns = '' AND checkpoint_id = $2 AND channel = $3
                    ORDER BY task_path COLLATE \"C\", task_id COLLATE \"C\", idx",
            ),
            false => (
                "writes",
                "SELECT CAST(type AS TEXT) AS type, CASE WHEN LENGTH(value) <= 33554432 THEN CAST(value AS BLOB) END AS value FROM writes
                    WHERE thread_id = $1 AND checkpoint_ns = '' AND checkpoint_id = $2 AND channel = $3
                    ORDER BY task_path, task_id, idx",
            ),
        };
        if !self.has(table) {
            return Ok(Some(Vec::new()));
        }
        let (sql, mut found) = (bounded(sql, self.is_postgres()), Vec::new());
        let (mut values, mut bytes) = self.left;
        let take = |row: SourceRow| {
            let value = stored(&row);
            values = values.saturating_sub(1);
            bytes = bytes.saturating_sub(value.bytes.as_ref().map_or(0, Vec::len));
            found.push(value);
            values > 0 && bytes > 0
        };
        self.each(&sql, &[thread, checkpoint, channel], take).await?;
        if values == 0 || bytes == 0 {
            return Ok(None);
        }
        self.left = (values, bytes);
        Ok(Some(found))
    }

    pub(crate) async fn close(self) {
        if let SourceConnection::Postgres(connection) = self.connection {
            connection.close().await.ok();
        }
    }
}

fn stored(row: &SourceRow) -> StoredValue {
    let bytes = row.bytes("value").filter(|bytes| bytes.len() <= MAX_VALUE_BYTES);
    StoredValue {
        kind: row.text("type").unwrap_or_else(|| "null".to_owned()),
        bytes: bytes.map(<[u8]>::to_vec),
    }
}

/// Limits the size of each `CAST(column AS TEXT)` in a statement. In a statement for SQLite, whose texts may be invalid
/// UTF-8, each cast returns bytes.
fn bounded(sql: &str, postgres: bool) -> String {
    const END: &str = " AS TEXT)";
    let (mut done, mut rest) = (String::new(), sql);
    while let Some((before, column, after)) = rest.split_once("CAST(").and_then(|(before, after)| {
        let (column, after) = after.split_once(')')?;
        Some((before, column.strip_suffix(END.trim_end_matches(')')), after))
    }) {
        done.push_str(before);
        match column {
            Some(column) if postgres => done.push_str(&format!(
                "CASE WHEN OCTET_LENGTH({column}::TEXT) <= {MAX_TEXT_BYTES} THEN {column}::TEXT END"
            )),
            Some(column) => done.push_str(&format!(
                "CASE WHEN LENGTH(CAST({column} AS BLOB)) <= {MAX_TEXT_BYTES} THEN CAST(CAST({column} AS TEXT) AS BLOB) END"
            )),
            None => {
                let cast = rest.get(before.len()..rest.len() - after.len()).unwrap_or_default();
                done.push_str(cast);
            }
        }
        rest = after;
    }
    done + rest
}

fn marks(file: &Path) -> FileMarks {
    let mark = |file: PathBuf| {
        let meta = fs::metadata(file).ok()?;
        Some((meta.len(), meta.modified().ok()?))
    };
    [mark(file.to_owned()), mark(log_of(file))]
}

/// Returns the path of a database's log.
fn log_of(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

/// Copies a database and its log to a temporary folder.
pub(crate) fn copied(file: &Path) -> std::io::Result<TempDir> {
    let folder = TempDir::new()?;
    let copy = folder.path().join("deerflow.db");
    fs::copy(file, &copy)?;
    let log = log_of(file);
    if log.exists() {
        fs::copy(log, log_of(&copy))?;
    }
    Ok(folder)
}
