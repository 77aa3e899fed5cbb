//! Errors of the store.

/// Result of a call to the store.
pub(crate) type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Failures of the store, grouped by how the caller can react.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The store was closed, or another process has claimed the database. All further calls fail.
    #[error("the database was closed")]
    Closed,
    /// The database is busy, full or unreachable: retry later.
    #[error("the database is not available: {0}")]
    Unavailable(String),
    /// The address, the credentials or the permissions are wrong: fix the configuration.
    #[error("the database cannot be opened: {0}")]
    Refused(String),
    /// A newer version of pudu has migrated the database: run that version.
    #[error("the database has schema version {found}, this pudu knows {known}: run a newer pudu")]
    Newer {
        /// The version in the database.
        found: i64,
        /// The newest version that this program knows.
        known: i64,
    },
    /// The record has changed in the meantime: read it again, or stop.
    #[error("{0}")]
    Conflict(&'static str),
    /// A stored record cannot be read: restore a backup.
    #[error("the database is damaged: {0}")]
    Corrupt(String),
    /// The database rejected a statement: a bug in pudu.
    #[error("the database rejected a statement: {0}")]
    Rejected(String),
}

/// The error when a change arrives for a turn that can no longer change.
pub(crate) const SETTLED: StoreError = StoreError::Conflict("the turn is unknown or settled");

impl StoreError {
    /// Returns whether the database is unavailable, in which case the call should be retried.
    pub(crate) fn is_outage(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Refused(_))
    }

    pub(crate) fn late(limit: std::time::Duration) -> Self {
        Self::Unavailable(format!("no answer within {} s", limit.as_secs()))
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        use sqlx::Error as E;
        let text = error.to_string();
        match error {
            E::Database(cause) => by_sqlstate(&cause.code().unwrap_or_default(), cause.message().to_owned()),
            E::Io(_) | E::Tls(_) | E::Protocol(_) | E::PoolTimedOut | E::PoolClosed | E::WorkerCrashed => {
                Self::Unavailable(text)
            }
            E::Configuration(_) => Self::Refused(text),
            E::Decode(_) | E::ColumnDecode { .. } => Self::Corrupt(text),
            _ => Self::Rejected(text),
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::Error as E;
        let text = error.to_string();
        match error {
            E::SqliteFailure(cause, _) => by_sqlite(cause.extended_code.unsigned_abs() & 0xff, text),
            E::FromSqlConversionFailure(..) | E::IntegralValueOutOfRange(..) | E::InvalidColumnType(..) => {
                Self::Corrupt(text)
            }
            _ => Self::Rejected(text),
        }
    }
}

/// The primary result codes of <https://www.sqlite.org/rescode.html>.
fn by_sqlite(primary: u32, text: String) -> StoreError {
    match primary {
        // BUSY, LOCKED, NOMEM, INTERRUPT, IOERR, FULL, PROTOCOL
        5 | 6 | 7 | 9 | 10 | 13 | 15 => StoreError::Unavailable(text),
        // PERM, READONLY, CANTOPEN, AUTH
        3 | 8 | 14 | 23 => StoreError::Refused(text),
        // CORRUPT, NOTADB
        11 | 26 => StoreError::Corrupt(text),
        _ => StoreError::Rejected(text),
    }
}

/// The classes of <https://www.postgresql.org/docs/current/errcodes-appendix.html>.
fn by_sqlstate(code: &str, text: String) -> StoreError {
    match code.get(..2).unwrap_or_default() {
        // connection, transaction rollback, resources, operator intervention, system
        "08" | "40" | "53" | "57" | "58" => StoreError::Unavailable(text),
        // authorization, catalog name, schema name
        "28" | "3D" | "3F" => StoreError::Refused(text),
        "42" if code == "42501" => StoreError::Refused(text),
        // read_only_sql_transaction: the server became a standby.
        "25" if code == "25006" => StoreError::Unavailable(text),
        "23" if code == "23505" => StoreError::Conflict("another instance wrote the same row first"),
        "XX" => StoreError::Corrupt(text),
        _ => StoreError::Rejected(text),
    }
}

/// Wraps an error from parsing stored JSON.
pub(crate) fn unreadable(what: &str, error: &serde_json::Error) -> StoreError {
    StoreError::Corrupt(format!("{what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::{StoreError, by_sqlite, by_sqlstate};

    #[test]
    fn errors_are_grouped_by_how_the_caller_can_react() {
        let text = || "why".to_owned();
        let table = [
            (5, StoreError::Unavailable(text())),
            (13, StoreError::Unavailable(text())),
            (14, StoreError::Refused(text())),
            (11, StoreError::Corrupt(text())),
            (26, StoreError::Corrupt(text())),
            (19, StoreError::Rejected(text())),
        ];
        for (code, expected) in table {
            assert_eq!(by_sqlite(code, text()), expected, "{code}");
        }
        let table = [
            ("40001", StoreError::Unavailable(text())),
            ("57P01", StoreError::Unavailable(text())),
            ("25006", StoreError::Unavailable(text())),
            ("28P01", StoreError::Refused(text())),
            ("42501", StoreError::Refused(text())),
            ("42601", StoreError::Rejected(text())),
            ("23505", StoreError::Conflict("another instance wrote the same row first")),
            ("XX001", StoreError::Corrupt(text())),
        ];
        for (code, expected) in table {
            assert_eq!(by_sqlstate(code, text()), expected, "{code}");
        }
    }
}
