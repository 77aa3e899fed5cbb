//! Names of users, shown in lists in place of IDs.

use pudu_langgraph::thread::API_ACCOUNT;
use pudu_store::{Db, StoreError};
use std::collections::HashMap;

/// E-mail addresses of users by user ID.
pub struct UserNames(HashMap<String, String>);

impl UserNames {
    /// Reads the addresses of all accounts.
    pub async fn read(db: &Db) -> Result<Self, StoreError> {
        let accounts = db.user_accounts().await?.into_iter();
        Ok(Self(accounts.map(|account| (account.user.to_string(), account.email)).collect()))
    }

    /// Replaces a user ID at the beginning of a text such as `ID (token ci)` with the user's address.
    pub fn named(&self, by: &str) -> String {
        let id = by.split(' ').next().unwrap_or_default();
        match self.0.get(id) {
            Some(email) => format!("{email}{}", by.strip_prefix(id).unwrap_or_default()),
            None => by.to_owned(),
        }
    }
}

/// Names of users and of platform identities.
pub struct PeopleNames {
    users: UserNames,
    people: HashMap<(String, String), String>,
}

impl PeopleNames {
    /// Reads all known names.
    pub async fn read(db: &Db) -> Result<Self, StoreError> {
        let people = db.account_people().await?.into_iter();
        let people = people.map(|person| ((person.account, person.person), person.name)).collect();
        Ok(Self { users: UserNames::read(db).await?, people })
    }

    /// Returns the name of a user of a bot: the name in the chat, or else the e-mail address.
    pub fn name(&self, account: &str, person: &str) -> Option<&str> {
        let name = match account {
            "" | API_ACCOUNT => self.users.0.get(person),
            _ => self.people.get(&(account.to_owned(), person.to_owned())),
        };
        name.map(String::as_str).filter(|name| !name.is_empty())
    }

    /// Returns a verdict with the name of its author in place of a user ID. Users of chats already appear by name.
    pub fn verdict(&self, account: &str, verdict: &str) -> String {
        match verdict.split_once(" by ").filter(|_| account == API_ACCOUNT) {
            Some((word, by)) => format!("{word} by {}", self.users.named(by)),
            None => verdict.to_owned(),
        }
    }
}
