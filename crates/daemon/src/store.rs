//! Locates and opens the store.

use anyhow::{Context, Result};
use pudu_config::{Backend, Database};
use pudu_store::{Db, DbLocation, PostgresUrl, StoreError};
use secrecy::ExposeSecret;

/// Name of the store's file.
pub const STORE: &str = "pudu.db";

/// The store cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot open the store ({store}): {cause}; {remedy}")]
pub struct UnusableStore {
    store: String,
    /// The cause.
    pub cause: StoreError,
    /// The fix for the operator.
    pub remedy: &'static str,
}

/// Opens the store.
///
/// # Errors
/// If the store cannot be opened.
pub async fn open(database: &Database) -> Result<Db, UnusableStore> {
    let backend = &database.backend;
    let opened = async {
        Db::open(&match backend {
            Backend::Memory => DbLocation::Memory,
            Backend::Sqlite { dir } => DbLocation::Sqlite(dir.join(STORE)),
            Backend::Postgres { url } => DbLocation::Postgres(PostgresUrl::parse(url.expose_secret())?),
        })
        .await
    };
    opened.await.map_err(|cause| {
        let remedy = remedy(backend, &cause);
        UnusableStore { store: describe(backend), cause, remedy }
    })
}

/// Returns the fix for an error of a store.
pub fn remedy(backend: &Backend, error: &StoreError) -> &'static str {
    match (error, backend) {
        (StoreError::Newer { .. }, _) => "install a newer pudu",
        (StoreError::Corrupt(_), _) => "restore a backup (docs/deploy.md)",
        (_, Backend::Postgres { .. }) => {
            "check `database` (docs/configuration.md), and that the server is running"
        }
        (StoreError::Refused(_), _) => "give pudu's user write access",
        _ => "free some disk space, and stop other programs that use the file",
    }
}

/// Returns whether a store exists, without creating one.
///
/// # Errors
/// If its folder cannot be read.
pub fn has_store(backend: &Backend) -> Result<bool> {
    match backend {
        Backend::Memory => Ok(false),
        Backend::Sqlite { dir } => {
            let file = dir.join(STORE);
            file.try_exists().with_context(|| format!("cannot read the database {}", file.display()))
        }
        Backend::Postgres { .. } => Ok(true),
    }
}

/// Describes the store briefly.
pub fn describe(backend: &Backend) -> String {
    match backend {
        Backend::Memory => "memory: data is lost when this process ends".to_owned(),
        Backend::Sqlite { dir } => format!("SQLite in {}", dir.display()),
        Backend::Postgres { .. } => "PostgreSQL".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn refused(dir: &std::path::Path) -> String {
        let database = Database { backend: Backend::Sqlite { dir: dir.to_owned() } };
        open(&database).await.err().unwrap().to_string().replace(&dir.display().to_string(), "DIR")
    }

    #[tokio::test]
    async fn a_store_that_cannot_be_opened_is_named_with_a_remedy() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(STORE), "no database at all").unwrap();
        assert_eq!(
            refused(dir.path()).await,
            "cannot open the store (SQLite in DIR): the database is damaged: file is not a database; restore a backup \
             (docs/deploy.md)"
        );
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert_eq!(
            refused(&file).await,
            "cannot open the store (SQLite in DIR): the database cannot be opened: DIR/pudu.db: File exists (os error \
             17); give pudu's user write access"
        );
    }

    #[test]
    fn a_file_in_place_of_a_folder_is_not_an_empty_store() {
        let dir = tempfile::tempdir().unwrap();
        let at = |dir: std::path::PathBuf| {
            let found = has_store(&Backend::Sqlite { dir });
            found.map_err(|error| error.to_string())
        };
        assert_eq!(at(dir.path().join("missing")), Ok(false));
        std::fs::write(dir.path().join("file"), "").unwrap();
        let error = at(dir.path().join("file/data")).unwrap_err();
        assert!(
            error.ends_with("file/data/pudu.db") && error.starts_with("cannot read the database "),
            "{error}"
        );
    }
}
