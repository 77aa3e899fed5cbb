//! SQLite and PostgreSQL, and their differences.

/// Kind of database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DbEngine {
    Sqlite,
    Postgres,
}

impl DbEngine {
    /// Returns the statement that begins a writing transaction. SQLite takes the lock at once, because a transaction
    /// that reads first cannot wait for the lock later.
    pub(crate) fn begin(self) -> &'static str {
        match self {
            Self::Sqlite => "BEGIN IMMEDIATE",
            Self::Postgres => "BEGIN",
        }
    }

    /// Returns the type of a key that the database assigns to a row and never reuses.
    pub(crate) fn item_id(self) -> &'static str {
        match self {
            Self::Sqlite => "INTEGER PRIMARY KEY AUTOINCREMENT",
            Self::Postgres => "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        }
    }

    /// Returns the type of a key whose value comes from another table. Only a column with SQLite's exact type name is
    /// the rowid and needs no separate index.
    pub(crate) fn row_key(self) -> &'static str {
        match self {
            Self::Sqlite => "INTEGER PRIMARY KEY",
            Self::Postgres => "BIGINT PRIMARY KEY",
        }
    }

    /// Returns the statements that create the full-text index of recall. Words are split and stemmed before they are
    /// indexed, so neither engine tokenizes them: SQLite's `ascii` treats every non-ASCII character as part of a word,
    /// and PostgreSQL's vectors are built from arrays. Part of a migration, so never change it after a release.
    pub(crate) fn recall_index(self) -> &'static str {
        match self {
            Self::Sqlite => {
                "CREATE VIRTUAL TABLE recall_index USING fts5(tokens, content = '', columnsize = 0, detail = none,
                    tokenize = 'ascii');
                INSERT INTO recall_index (recall_index, rank) VALUES ('secure-delete', 1);"
            }
            Self::Postgres => {
                "ALTER TABLE recall_docs ADD COLUMN tokens TSVECTOR;
                CREATE INDEX recall_docs_tokens ON recall_docs USING GIN (tokens);"
            }
        }
    }

    /// Returns the statements that prepare a writing connection. The server's keep-alives end the session of a daemon
    /// that is gone, so that another one can claim the database. On our side each call has a timeout. SQLite overwrites
    /// deleted data, so that forgotten data does not remain in free pages of the file.
    pub(crate) fn writing(self) -> &'static str {
        match self {
            Self::Sqlite => {
                "PRAGMA page_size = 8192; PRAGMA busy_timeout = 10000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; \
                 PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -1024; PRAGMA secure_delete = ON;"
            }
            Self::Postgres => {
                "SET client_min_messages = warning; SET search_path TO pudu; SET tcp_keepalives_idle = 15; \
                 SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3; SET tcp_user_timeout = 30000;"
            }
        }
    }

    /// Returns the statements that prepare a reading connection. SQLite's busy timeout is short, because the wait
    /// blocks a thread of the runtime; a file is busy only for a moment, when its write-ahead log begins.
    pub(crate) fn reading(self) -> &'static str {
        match self {
            Self::Sqlite => "PRAGMA busy_timeout = 100; PRAGMA query_only = ON; PRAGMA cache_size = -512;",
            Self::Postgres => "SET search_path TO pudu; SET default_transaction_read_only = on;",
        }
    }
}
