//! The two engines and their differences.

/// Which database it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DbEngine {
    Sqlite,
    Postgres,
}

impl DbEngine {
    /// Begins a transaction that will write. SQLite takes the lock at once: a transaction that reads
    /// first and then wants to write could not wait for it.
    pub(crate) fn begin(self) -> &'static str {
        match self {
            Self::Sqlite => "BEGIN IMMEDIATE",
            Self::Postgres => "BEGIN",
        }
    }

    /// The type of a number that the database gives to a row and never gives again.
    pub(crate) fn item_id(self) -> &'static str {
        match self {
            Self::Sqlite => "INTEGER PRIMARY KEY AUTOINCREMENT",
            Self::Postgres => "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        }
    }

    /// The type of a number that comes from another table and is a row's key. SQLite finds rows by it at once only under
    /// this name.
    pub(crate) fn row_key(self) -> &'static str {
        match self {
            Self::Sqlite => "INTEGER PRIMARY KEY",
            Self::Postgres => "BIGINT PRIMARY KEY",
        }
    }

    /// Makes the full-text index of recall. The words come split and stemmed, so neither engine's own splitter has a say:
    /// SQLite's `ascii` takes every character beyond ASCII for a part of a word, and PostgreSQL's vectors are made of
    /// arrays. Part of a migration: a released one never changes.
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

    /// Prepares a connection that writes. The server's own keep-alives end the session of a daemon that vanished:
    /// another one can then have its place. On this side each call has a timeout. Deleted data in a file is
    /// overwritten, so that forgotten data cannot be read in its free pages.
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

    /// Prepares a connection that reads. A file's is busy for a moment at most, while its log begins, and waits in a thread
    /// of the runtime.
    pub(crate) fn reading(self) -> &'static str {
        match self {
            Self::Sqlite => "PRAGMA busy_timeout = 100; PRAGMA query_only = ON; PRAGMA cache_size = -512;",
            Self::Postgres => "SET search_path TO pudu; SET default_transaction_read_only = on;",
        }
    }
}
