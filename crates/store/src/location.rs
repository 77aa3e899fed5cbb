//! Location of the database.

use crate::{Result, StoreError};
use std::{fmt, path::PathBuf};
use url::Url;

/// Location of the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DbLocation {
    /// In the memory of this process, lost when it ends.
    Memory,
    /// In this SQLite file. The file and its parent folders are created if missing.
    Sqlite(PathBuf),
    /// In this existing PostgreSQL database. pudu's tables are in its schema `pudu`.
    Postgres(PostgresUrl),
}

/// The address of a PostgreSQL database. It may contain a password, so it is never displayed in full.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresUrl(Url);

impl PostgresUrl {
    /// Parses `postgres://user:password@host:port/database?options`.
    pub fn parse(text: &str) -> Result<Self> {
        let url = Url::parse(text).map_err(|error| StoreError::Refused(format!("the URL: {error}")))?;
        match url.scheme() {
            "postgres" | "postgresql" => Ok(Self(url)),
            other => Err(StoreError::Refused(format!("the URL starts with {other}:, not postgres:"))),
        }
    }

    /// Returns the full address including secrets, for connecting and not for display.
    pub(crate) fn reveal(&self) -> &str {
        self.0.as_str()
    }
}

/// Displays user, host and database. Omits the password, and the options, which may contain a password.
impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("postgres://")?;
        if !self.0.username().is_empty() {
            write!(f, "{}@", self.0.username())?;
        }
        f.write_str(self.0.host_str().unwrap_or_default())?;
        if let Some(port) = self.0.port() {
            write!(f, ":{port}")?;
        }
        f.write_str(self.0.path())
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgresUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::{DbLocation, PostgresUrl};

    #[test]
    fn an_address_never_shows_its_password() {
        let text = "postgres://pudu:hunter2@db.example:6432/chats?password=hunter3&sslmode=require";
        let url = PostgresUrl::parse(text).unwrap();
        assert_eq!(url.to_string(), "postgres://pudu@db.example:6432/chats");
        let location = format!("{:?}", DbLocation::Postgres(url.clone()));
        assert_eq!(location, "Postgres(PostgresUrl(postgres://pudu@db.example:6432/chats))");
        assert_eq!(url.reveal(), text);
    }

    #[test]
    fn a_wrong_address_is_refused_without_repeating_it() {
        let error = |text| PostgresUrl::parse(text).unwrap_err().to_string();
        assert_eq!(
            error("mysql://root:hunter2@db/x"),
            "the database cannot be opened: the URL starts with mysql:, not postgres:"
        );
        assert_eq!(
            error("postgres://u:hunter2@db:port/x"),
            "the database cannot be opened: the URL: invalid port number"
        );
    }
}
