//! Names of people, which lists show in place of ids.

use pudu_client::{
    store::{Db, StoreError},
    wire::thread::API_ACCOUNT,
};
use std::collections::HashMap;

/// The addresses by which users sign in, by their ids.
pub struct UserNames(HashMap<String, String>);

impl UserNames {
    /// Reads the names of all accounts.
    pub async fn read(db: &Db) -> Result<Self, StoreError> {
        let accounts = db.user_accounts().await?.into_iter();
        Ok(Self(accounts.map(|account| (account.user.to_string(), account.email)).collect()))
    }

    /// Returns a text that begins with a user's id, as `ID (token ci)`, with their address in its place.
    pub fn named(&self, by: &str) -> String {
        let id = by.split(' ').next().unwrap_or_default();
        match self.0.get(id) {
            Some(email) => format!("{email}{}", by.strip_prefix(id).unwrap_or_default()),
            None => by.to_owned(),
        }
    }
}

/// The names of users, and of the people of chats.
pub struct PeopleNames {
    users: UserNames,
    people: HashMap<(String, String), String>,
}

impl PeopleNames {
    /// Reads the names of all known people.
    pub async fn read(db: &Db) -> Result<Self, StoreError> {
        let people = db.account_people().await?.into_iter();
        let people = people.map(|person| ((person.account, person.person), person.name)).collect();
        Ok(Self { users: UserNames::read(db).await?, people })
    }

    /// Returns the name of a person of an account: in a chat the one that they have there, else a user's address.
    pub fn of(&self, account: &str, person: &str) -> Option<&str> {
        let name = match account {
            "" | API_ACCOUNT => self.users.0.get(person),
            _ => self.people.get(&(account.to_owned(), person.to_owned())),
        };
        name.map(String::as_str).filter(|name| !name.is_empty())
    }

    /// Returns a verdict of an account with the name of its author. People of chats decide under their names.
    pub fn verdict(&self, account: &str, verdict: &str) -> String {
        match verdict.split_once(" by ").filter(|_| account == API_ACCOUNT) {
            Some((word, by)) => format!("{word} by {}", self.users.named(by)),
            None => verdict.to_owned(),
        }
    }
}
