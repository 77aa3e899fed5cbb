//! Location of the database.

use crate::{Result, StoreError};
use std::{fmt, path::PathBuf};
use url::Url;

/// Location of the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DbLocation {
    /// In this process's memory; gone with it.
    Memory,
    /// In this SQLite file, made if missing together with the folders above it.
    Sqlite(PathBuf),
    /// In this PostgreSQL database, which exists already; pudu's tables are in its schema `pudu`.
    Postgres(PostgresUrl),
}

/// The address of a PostgreSQL database. It may carry a password, so it never shows itself whole.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresUrl(Url);

impl PostgresUrl {
    /// Reads `postgres://user:password@host:port/database?options`.
    pub fn parse(text: &str) -> Result<Self> {
        let url = Url::parse(text).map_err(|error| StoreError::Refused(format!("the URL: {error}")))?;
        match url.scheme() {
            "postgres" | "postgresql" => Ok(Self(url)),
            other => Err(StoreError::Refused(format!("the URL starts with {other}:, not postgres:"))),
        }
    }

    /// Returns the whole address, secrets included: for connecting, not for showing.
    pub(crate) fn reveal(&self) -> &str {
        self.0.as_str()
    }
}

/// Shows who and where. The password is left out, and so are the options: a password may be one.
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
