//! The database section: storage of durable state.
//!
//! DeerFlow's older `checkpointer` section is read if there is no `database` section. In DeerFlow both can be in
//! effect, one for threads and one for everything else. pudu stores everything in one place, so `database` takes
//! precedence.

use super::{Start, reader::Section};
use secrecy::SecretString;
use std::path::{Path, PathBuf};

/// The database.
#[derive(Clone, Debug)]
pub struct Database {
    /// Its kind and location.
    pub backend: Backend,
}

/// Kind and location of a database.
#[derive(Clone, Debug)]
pub enum Backend {
    /// In memory, lost when the process ends.
    Memory,
    /// A file in this folder.
    Sqlite {
        /// The folder.
        dir: PathBuf,
    },
    /// A server.
    Postgres {
        /// Its URL with the password.
        url: SecretString,
    },
}

#[derive(Clone, Copy, PartialEq)]
enum Name {
    Memory,
    Sqlite,
    Postgres,
}

const NAMES: &[(&str, Name)] =
    &[("memory", Name::Memory), ("sqlite", Name::Sqlite), ("postgres", Name::Postgres)];

const SERVER: &str =
    "write postgresql://user:password@host:5432/name, preferably as a variable: $DATABASE_URL";

const UNSUPPORTED_KEYS: &[&str] = &[
    "checkpoint_cache",
    "checkpoint_channel_mode",
    "checkpoint_delta",
    "checkpoint_graph_cache",
    "command_timeout",
    "echo_sql",
    "pool_recycle",
    "pool_size",
    "postgres_schema",
];

pub(super) fn read(top: &Section<'_>, start: &Start) -> Option<Database> {
    let usual = start.home().join("data");
    let section = top.section("database").about("Store of pudu's persistent data.");
    section.note_unused(UNSUPPORTED_KEYS);
    settings! { section =>
        /// Type of store: sqlite needs nothing, postgres a server, memory loses everything at exit.
        name as "backend" = choice(NAMES).or(Name::Sqlite);
        /// Folder of the SQLite file.
        dir as "sqlite_dir" = text().eg(".pudu/data").optional("`data` in the home folder");
    }
    let server = section.clone().needed(name == Name::Postgres);
    settings! { server =>
        /// URL of the PostgreSQL server.
        url as "postgres_url" = secret().eg("$DATABASE_URL")
            .required_if(name == Name::Postgres, SERVER, "required for postgres");
    }
    let legacy = checkpointer(top, start, !section.exists());
    let backend = match name {
        Name::Memory => Some(Backend::Memory),
        Name::Sqlite => Some(Backend::Sqlite { dir: dir.map_or(usual, |dir| start.dir.join(dir)) }),
        Name::Postgres => url.map(|url| Backend::Postgres { url }),
    };
    Some(Database { backend: legacy.or(backend)? })
}

fn checkpointer(top: &Section<'_>, start: &Start, counts: bool) -> Option<Backend> {
    let section = top
        .section("checkpointer")
        .about("DeerFlow's older section; it counts only without a `database` section.");
    section.note_unused(&["postgres_schema"]);
    if section.exists() && !counts {
        top.warn(
            "checkpointer",
            "this has no effect, because `database` is set",
            "remove it; pudu keeps everything in one store",
        );
    }
    let section = section.clone().needed(counts && section.exists());
    settings! { section =>
        /// Type of store.
        name as "type" = choice(NAMES).eg("sqlite").optional("none");
    }
    let needed = section.is_needed() && name == Some(Name::Postgres);
    let server = section.clone().needed(needed);
    settings! { server =>
        /// URL of the PostgreSQL server, or a file in the folder for SQLite.
        url as "connection_string" = secret().eg(".pudu/data/checkpoints.db")
            .required_if(needed, SERVER, "required for postgres");
    }
    if !section.is_needed() {
        return None;
    }
    match name? {
        Name::Memory => Some(Backend::Memory),
        Name::Sqlite => Some(Backend::Sqlite { dir: folder(&section, start) }),
        Name::Postgres => url.map(|url| Backend::Postgres { url }),
    }
}

/// Returns the folder of DeerFlow's checkpoint file, where pudu also stores its own file.
fn folder(section: &Section<'_>, start: &Start) -> PathBuf {
    let file = section.text("connection_string").foreign().map(PathBuf::from);
    let parent = file.as_deref().and_then(Path::parent).map(Path::to_path_buf);
    let parent = parent.filter(|dir| !dir.as_os_str().is_empty());
    parent.map_or_else(|| start.home().join("data"), |dir| start.dir.join(dir))
}
