//! Users and rooms, the owners of memory, files and limits.
//!
//! A platform identity is a separate user until it is linked to another user: then both platforms share one user. A
//! room is a user too, with its own files and memory. Users are identified only by the platform's IDs, never by a name
//! or a text.

use pudu_base::UserId;
use pudu_config::{LOCAL, UnpairedPeople};
use pudu_langgraph::thread::API_ACCOUNT;
use pudu_store::{Db, Identity, StoreError, unpaired_user};
use std::{
    collections::HashMap,
    sync::{PoisonError, RwLock},
};

/// Platform identities and the users that they are linked to, as stored.
#[derive(Default)]
pub struct Users(RwLock<HashMap<(String, String), UserId>>);

impl Users {
    /// Reads the links.
    pub async fn read(db: &Db) -> Result<Self, StoreError> {
        let identities = db.identities().await?.into_iter();
        let joined = identities.map(|Identity { account, person, user, .. }| ((account, person), user));
        Ok(Self(RwLock::new(joined.collect())))
    }

    /// Returns the user of a platform identity.
    pub fn user_for(&self, account: &str, person: &str, unpaired: UnpairedPeople) -> UserId {
        let joined = self.0.read().unwrap_or_else(PoisonError::into_inner);
        match joined.get(&(account.to_owned(), person.to_owned())) {
            Some(user) => user.clone(),
            // The API identifies people by their user IDs.
            None if account == API_ACCOUNT => {
                UserId::from_raw(person).unwrap_or_else(|_| unpaired_user(account, person))
            }
            None if account == LOCAL || unpaired == UnpairedPeople::Shared => UserId::local(),
            None => unpaired_user(account, person),
        }
    }

    /// Returns the separate user that a linked platform identity was before, unless another identity is that user now.
    pub fn former(&self, account: &str, person: &str) -> Option<UserId> {
        let joined = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let own = unpaired_user(account, person);
        let is_theirs = joined.contains_key(&(account.to_owned(), person.to_owned()))
            && joined.values().all(|user| *user != own);
        is_theirs.then_some(own)
    }

    /// Returns the user that other identities are linked to when they join this one. It is never the user that unpaired
    /// identities share.
    pub fn own(&self, account: &str, person: &str) -> UserId {
        self.user_for(account, person, UnpairedPeople::Own)
    }

    /// Links a platform identity to a user.
    pub fn join(&self, account: &str, person: &str, user: UserId) {
        let mut joined = self.0.write().unwrap_or_else(PoisonError::into_inner);
        joined.insert((account.to_owned(), person.to_owned()), user);
    }

    /// Unlinks a platform identity, which becomes a separate user again.
    pub fn part(&self, account: &str, person: &str) {
        let mut joined = self.0.write().unwrap_or_else(PoisonError::into_inner);
        joined.remove(&(account.to_owned(), person.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn identities_are_separate_users_until_they_join_another() {
        let users = Users::default();
        let of = |account, person| users.user_for(account, person, UnpairedPeople::Own);
        let ada = of("slack", "U1");
        assert!(ada.as_str().starts_with("slack-U1-"), "{ada}");
        assert_eq!(of("slack", "U1"), ada);
        assert_eq!(of(LOCAL, "local"), UserId::local());
        users.join("telegram", "7", ada.clone());
        assert_eq!(of("telegram", "7"), ada);
        assert_eq!(users.former("telegram", "7"), Some(unpaired_user("telegram", "7")));
        assert_eq!(users.former("slack", "U1"), None, "the ID belongs to that user or to another one");
        users.part("telegram", "7");
        assert_ne!(of("telegram", "7"), ada);
        assert_eq!(users.former("telegram", "7"), None);
    }

    #[test]
    fn unlinked_identities_share_one_user_if_so_configured() {
        let users = Users::default();
        let of = |account, person| users.user_for(account, person, UnpairedPeople::Shared);
        assert_eq!(of("slack", "U1"), UserId::local());
        users.join("slack", "U1", UserId::from_raw("ada").unwrap());
        assert_eq!(of("slack", "U1").as_str(), "ada");
    }

    #[test]
    fn no_two_people_or_rooms_are_the_same_user() {
        let ids = ["a", "b", "a-b", "a:b", "room", "../a", "", " ", "A", "ä", "a\u{301}"];
        let pairs = ids.iter().flat_map(|one| ids.iter().map(move |other| (*one, *other)));
        let all: Vec<UserId> =
            pairs.flat_map(|(one, other)| [unpaired_user(one, other), UserId::room(one, other)]).collect();
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
        assert!(!all.contains(&UserId::local()));
    }
}
