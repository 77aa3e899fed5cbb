//! The store of a home: where it is, and opening it.

use anyhow::{Context, Result};
use pudu_client::store::{Db, DbLocation, PostgresUrl};
use pudu_config::{Backend, Database};
use secrecy::ExposeSecret;
use std::path::Path;

/// The store's file in its folder.
pub const STORE: &str = "pudu.db";

/// Opens the store.
pub async fn open(database: &Database, home: &Path) -> Result<Db> {
    let location = match &database.backend {
        Backend::Memory => DbLocation::Memory,
        Backend::Sqlite { dir } => DbLocation::Sqlite(dir.join(STORE)),
        Backend::Postgres { url } => DbLocation::Postgres(PostgresUrl::parse(url.expose_secret())?),
    };
    Db::open(&location).await.with_context(|| format!("cannot open the store (home is {})", home.display()))
}

/// Returns whether there is a store to open: the check makes none.
pub fn has_store(backend: &Backend) -> bool {
    match backend {
        Backend::Memory => false,
        Backend::Sqlite { dir } => dir.join(STORE).exists(),
        Backend::Postgres { .. } => true,
    }
}

/// Describes the store in a few words.
pub fn describe(backend: &Backend) -> String {
    match backend {
        Backend::Memory => "memory: nothing outlives this process".to_owned(),
        Backend::Sqlite { dir } => format!("SQLite in {}", dir.display()),
        Backend::Postgres { .. } => "PostgreSQL".to_owned(),
    }
}
