//! DeerFlow's database, SQLite or PostgreSQL, opened read-only.
//!
//! An SQLite file with a write-ahead log is copied first, because reading it in place would write next to it. A file
//! that is being written is refused: DeerFlow has to be stopped.

use crate::error::ImportError;
use futures_util::TryStreamExt;
use sqlx::{AnyConnection, ConnectOptions, Connection, Row, any::AnyConnectOptions, any::AnyRow};
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
        /// Its URL, with the password.
        url: String,
        /// Schema of DeerFlow's tables, if it is not the default one.
        schema: Option<String>,
    },
}

/// The URL contains a password.
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

/// Maximum size of a value, in bytes; the statements below contain the same number.
const MAX_VALUE_BYTES: i64 = 32 * 1024 * 1024;

/// Maximum size of a text in other rows, in bytes.
const MAX_TEXT_BYTES: usize = 1024 * 1024;
/// Maximum number of values per thread.
pub(crate) const MAX_THREAD_VALUES: usize = 200_000;
/// Maximum size of a thread's values, in bytes.
pub(crate) const MAX_THREAD_BYTES: usize = 256 * 1024 * 1024;

/// A read-only connection to the database.
pub(crate) struct SourceReader {
    connection: AnyConnection,
    tables: BTreeSet<String>,
    postgres: bool,
    /// The file and its state when it was opened, to detect writes.
    watched: Option<(PathBuf, FileMarks)>,
    /// Number of values and bytes that may still be read for the current thread.
    left: (usize, usize),
    _copy: Option<TempDir>,
}

/// Sizes and modification times of a database file and its log.
type FileMarks = [Option<(u64, SystemTime)>; 2];

/// A serialized value.
pub(crate) struct StoredValue {
    /// Type tag of the serializer.
    pub(crate) kind: String,
    /// Its bytes; `None` if there are too many.
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
        sqlx::any::install_default_drivers();
        match database {
            SourceDatabase::Sqlite(file) => Self::file(file).await,
            SourceDatabase::Postgres { url, schema } => {
                let options: AnyConnectOptions = url.parse().map_err(ImportError::database)?;
                let mut connection = options.connect().await.map_err(ImportError::database)?;
                let only = "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY";
                sqlx::raw_sql(only).execute(&mut connection).await.map_err(ImportError::database)?;
                if let Some(schema) = schema {
                    let set = sqlx::query("SELECT SET_CONFIG('search_path', $1, false)");
                    let quoted = format!("\"{}\"", schema.replace('"', "\"\""));
                    set.bind(quoted).execute(&mut connection).await.map_err(ImportError::database)?;
                }
                Self::with(connection, true, None, None).await
            }
        }
    }

    async fn file(file: &Path) -> Result<Self, ImportError> {
        let marks = marks(file);
        let logged = matches!(marks, [_, Some((bytes, _))] if bytes > 0);
        let copy = if logged { Some(copied(file).map_err(|why| ImportError::io(file, why))?) } else { None };
        let place = copy.as_ref().map_or_else(|| file.to_owned(), |copy| copy.path().join("deerflow.db"));
        let url = url::Url::from_file_path(std::path::absolute(&place).unwrap_or(place));
        let url = url.map_err(|()| ImportError::Source(format!("{} cannot be a file", file.display())))?;
        // The copy is private; the original must not be changed.
        let how = if logged { "" } else { "?mode=ro&immutable=true" };
        let options: AnyConnectOptions =
            format!("sqlite://{}{how}", url.path()).parse().map_err(ImportError::database)?;
        let connection = options.connect().await.map_err(ImportError::database)?;
        let reader = Self::with(connection, false, Some((file.to_owned(), marks)), copy).await?;
        reader.check_unchanged()?;
        Ok(reader)
    }

    async fn with(
        mut connection: AnyConnection,
        postgres: bool,
        watched: Option<(PathBuf, FileMarks)>,
        copy: Option<TempDir>,
    ) -> Result<Self, ImportError> {
        let sql = match postgres {
            true => {
                "SELECT CAST(table_name AS TEXT) FROM information_schema.tables
                    WHERE table_schema = ANY(current_schemas(false))"
            }
            false => "SELECT CAST(name AS TEXT) FROM sqlite_master WHERE type = 'table'",
        };
        let tables: Vec<String> =
            sqlx::query_scalar(sql).fetch_all(&mut connection).await.map_err(ImportError::database)?;
        let tables = tables.into_iter().collect();
        let left = (MAX_THREAD_VALUES, MAX_THREAD_BYTES);
        Ok(Self { connection, tables, postgres, watched, left, _copy: copy })
    }

    /// Checks that the file was not written since it was opened.
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

    /// Returns the rows of a statement; none if the table does not exist. A text that is too large is null, and invalid
    /// text is converted by [`text`].
    pub(crate) async fn rows(
        &mut self,
        table: &str,
        sql: &'static str,
        values: &[&str],
    ) -> Result<Vec<AnyRow>, ImportError> {
        if !self.has(table) {
            return Ok(Vec::new());
        }
        let sql = sqlx::AssertSqlSafe(bounded(sql, self.postgres));
        let query = values.iter().fold(sqlx::query(sql), |query, value| query.bind((*value).to_owned()));
        query.fetch_all(&mut self.connection).await.map_err(ImportError::database)
    }

    /// Counts the rows of a DeerFlow table.
    pub(crate) async fn count(&mut self, table: &str, sql: &'static str) -> Result<usize, ImportError> {
        let rows = self.rows(table, sql, &[]).await?;
        let count =
            rows.first().map(|row| row.try_get::<i64, _>(0)).transpose().map_err(ImportError::database)?;
        Ok(count.and_then(|count| usize::try_from(count).ok()).unwrap_or_default())
    }

    /// Returns the newest checkpoint of a thread's root graph.
    pub(crate) async fn newest(&mut self, thread: &str) -> Result<Option<CheckpointRow>, ImportError> {
        let sql = match self.postgres {
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
        let sql = match self.postgres {
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
        let value = stored(row)?;
        let (id, parent) =
            (text(row, "checkpoint_id")?.unwrap_or_default(), text(row, "parent_checkpoint_id")?);
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
        let value = rows.first().map(stored).transpose()?;
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
        let (table, sql) = match self.postgres {
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
        let sql = sqlx::AssertSqlSafe(bounded(sql, self.postgres));
        let query =
            [thread, checkpoint, channel].iter().fold(sqlx::query(sql), |query, value| query.bind(*value));
        let (mut rows, mut found) = (query.fetch(&mut self.connection), Vec::new());
        let (mut values, mut bytes) = self.left;
        while let Some(row) = rows.try_next().await.map_err(ImportError::database)? {
            let value = stored(&row)?;
            values = values.saturating_sub(1);
            bytes = bytes.saturating_sub(value.bytes.as_ref().map_or(0, Vec::len));
            if values == 0 || bytes == 0 {
                return Ok(None);
            }
            found.push(value);
        }
        drop(rows);
        self.left = (values, bytes);
        Ok(Some(found))
    }

    pub(crate) async fn close(self) {
        self.connection.close().await.ok();
    }
}

fn stored(row: &AnyRow) -> Result<StoredValue, ImportError> {
    let kind = text(row, "type")?;
    let bytes: Option<Vec<u8>> = row.try_get("value").map_err(ImportError::database)?;
    let bytes = bytes.filter(|bytes| i64::try_from(bytes.len()).is_ok_and(|bytes| bytes <= MAX_VALUE_BYTES));
    Ok(StoredValue { kind: kind.unwrap_or_else(|| "null".to_owned()), bytes })
}

/// Reads a text; invalid UTF-8, and characters that PostgreSQL cannot store, are replaced.
pub(crate) fn text(row: &AnyRow, column: &str) -> Result<Option<String>, ImportError> {
    let text = match row.try_get::<Option<String>, _>(column) {
        Ok(text) => text,
        Err(_) => {
            let bytes: Option<Vec<u8>> = row.try_get(column).map_err(ImportError::database)?;
            bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        }
    };
    Ok(text.map(|text| text.replace('\0', "\u{fffd}")))
}

/// Limits the size of each `CAST(column AS TEXT)` in a statement. For an SQLite file, whose texts may be invalid, it
/// returns bytes.
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
