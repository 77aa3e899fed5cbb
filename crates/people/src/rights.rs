//! Finds the user whose data is exported or deleted. The command line and the HTTP API share this code.

use crate::{
    Users,
    person::{ExportedPerson, ForgottenPerson, PersonData, PersonError},
};
use anyhow::{Context, Result, bail};
use pudu_base::{UserId, digest};
use pudu_config::UnpairedPeople;
use pudu_kit::clock;
use pudu_store::{AccountPerson, AuditEntry, Db, PersonKeys};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

/// JSON pointer to the sender's ID in a stored event.
const EVENT_SENDER: &str = "/sender/id";
/// JSON pointer to the author's ID in the target of a stored reply.
const REPLY_SENDER: &str = "/sender";
/// Length of the digest that identifies a deleted user, in hexadecimal digits.
const MARK_CHARS: usize = 16;

/// A user with the known e-mail address and platform identities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownUser {
    /// The user.
    pub user: UserId,
    /// E-mail address of the login account.
    pub email: Option<String>,
    /// Users that the platform identities were before they were linked to this one.
    pub former: Vec<UserId>,
    /// Platform identities of the user.
    pub people: Vec<AccountPerson>,
    /// Platform identities whose secrets belong to this user, although all their other data is shared
    /// (`unpaired_people: shared`).
    pub secrets_only: Vec<AccountPerson>,
}

/// Lists all users with stored data.
pub async fn known(db: &Db, home: &Path, unpaired: UnpairedPeople) -> Result<Vec<KnownUser>> {
    let users = Users::read(db).await.context("the store cannot be read")?;
    let mut known: BTreeMap<UserId, KnownUser> = BTreeMap::new();
    for (user, email) in db.known_users().await? {
        entry_for(&mut known, user).email = email;
    }
    for entry in std::fs::read_dir(home.join("users")).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if let Some(user) =
            name.to_str().and_then(|name| UserId::from_raw(name).ok().filter(|user| user.as_str() == name))
        {
            entry_for(&mut known, user);
        }
    }
    for person in db.account_people().await? {
        let user = users.user_for(&person.account, &person.person, unpaired);
        let own = users.own(&person.account, &person.person);
        if own != user {
            entry_for(&mut known, own).secrets_only.push(person.clone());
        }
        let one = entry_for(&mut known, user);
        one.former.extend(users.former(&person.account, &person.person));
        one.people.push(person);
    }
    Ok(known.into_values().collect())
}

fn entry_for(known: &mut BTreeMap<UserId, KnownUser>, user: UserId) -> &mut KnownUser {
    let unknown = |user| KnownUser {
        user,
        email: None,
        former: Vec::new(),
        people: Vec::new(),
        secrets_only: Vec::new(),
    };
    known.entry(user.clone()).or_insert_with(|| unknown(user))
}

/// Finds the requested user: by user ID, by e-mail address, by a platform's ID with or without the bot, or by name.
pub fn pick<'k>(known: &'k [KnownUser], wanted: &str) -> Result<&'k KnownUser> {
    if let Some(exact) = known.iter().find(|one| one.user.as_str() == wanted) {
        return Ok(exact);
    }
    let is_meant = |person: &AccountPerson| {
        person.person == wanted
            || format!("{}:{}", person.account, person.person) == wanted
            || (!person.name.is_empty() && person.name.to_lowercase() == wanted.to_lowercase())
    };
    let found: Vec<&KnownUser> = known
        .iter()
        .filter(|one| one.email.as_deref() == Some(wanted) || one.people.iter().any(is_meant))
        .collect();
    match found.as_slice() {
        [] => bail!("nothing is stored about a user \"{wanted}\"; `pudu users` lists the users"),
        [one] if one.user == UserId::local() => bail!(
            "they share the user `default` with others, and their data there cannot be distinguished; \
             `--user default` means all of it"
        ),
        [one] => Ok(one),
        several => {
            let ids: Vec<&str> = several.iter().map(|one| one.user.as_str()).collect();
            bail!("\"{wanted}\" may be any of these users: {}; say which by its id", ids.join(", "))
        }
    }
}

/// Regroups users by their secrets, which are never shared: each platform identity with its own secrets is a user.
pub fn with_own_secrets(mut known: Vec<KnownUser>) -> Vec<KnownUser> {
    let own: Vec<AccountPerson> = known.iter().flat_map(|one| one.secrets_only.iter().cloned()).collect();
    for one in &mut known {
        one.people.retain(|person| !own.contains(person));
        one.people.append(&mut one.secrets_only);
    }
    known
}

impl KnownUser {
    /// Parses a user from the API's JSON.
    pub fn read(value: &Value) -> Option<Self> {
        let text = |of: &Value, key: &str| Some(of.get(key)?.as_str()?.to_owned());
        let person = |of: &Value| {
            Some(AccountPerson {
                account: text(of, "account")?,
                person: text(of, "id")?,
                name: text(of, "name").unwrap_or_default(),
            })
        };
        let people = |key: &str| {
            value.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(person).collect()
        };
        Some(Self {
            user: UserId::from_raw(&text(value, "user")?).ok()?,
            email: text(value, "email"),
            former: Vec::new(),
            people: people("people"),
            secrets_only: people("secrets_only"),
        })
    }

    /// Returns a name for display: an e-mail address, or the names on the platforms.
    pub fn label(&self) -> Option<String> {
        const MAX_NAMES: usize = 3;
        if self.user == UserId::local() {
            return Some("the page, the terminal and the operator".to_owned());
        }
        let names: BTreeSet<&str> =
            self.people.iter().map(|person| person.name.as_str()).filter(|name| !name.is_empty()).collect();
        let names: Vec<&str> = names.into_iter().take(MAX_NAMES).collect();
        self.email.clone().or_else(|| (!names.is_empty()).then(|| names.join(", ")))
    }

    /// Returns the keys of the user's rows.
    pub fn keys(&self) -> PersonKeys {
        PersonKeys {
            user: self.user.clone(),
            former: self.former.clone(),
            people: self.people.clone(),
            event_sender: EVENT_SENDER,
            reply_sender: REPLY_SENDER,
        }
    }

    /// Returns the user as the API's JSON.
    pub fn to_json(&self) -> Value {
        let person = |person: &AccountPerson| json!({ "account": person.account, "id": person.person, "name": person.name });
        let [people, secrets_only] =
            [&self.people, &self.secrets_only].map(|people| people.iter().map(person).collect::<Vec<_>>());
        json!({ "user": self.user, "email": self.email, "people": people, "secrets_only": secrets_only })
    }
}

/// Returns a pseudonym of a user for the audit: it does not reveal a deleted user, and is the same in all entries.
fn mark(user: &UserId) -> String {
    let mark: String = digest(user.as_str()).chars().take(MARK_CHARS).collect();
    format!("person {mark}")
}

/// Writes an archive with all data of a user, and an audit entry with the user's pseudonym.
pub async fn export(db: &Db, data: &PersonData, who: &KnownUser, to: &Path) -> Result<ExportedPerson> {
    let entry = db.begin_audit_entry(audit_entry("export", mark(&who.user))).await?;
    let exported = data.export(&who.keys(), to).await;
    db.end_audit_entry(entry, Some(i64::from(exported.is_err())), clock::now()).await?;
    Ok(exported?)
}

/// Deletes a user by running `forget`, and writes an audit entry that does not name the user.
pub async fn forget(
    db: &Db,
    who: &KnownUser,
    forget: impl Future<Output = Result<ForgottenPerson, PersonError>>,
) -> Result<ForgottenPerson, PersonError> {
    let entry = db.begin_audit_entry(audit_entry("forget", mark(&who.user))).await?;
    let forgotten = forget.await;
    db.end_audit_entry(entry, Some(i64::from(forgotten.is_err())), clock::now()).await?;
    forgotten
}

/// Returns the counts of deleted data as the API's JSON.
pub fn forgotten_to_json(forgotten: &ForgottenPerson) -> Value {
    json!({
        "threads": forgotten.threads.len(),
        "room_messages": forgotten.room_messages,
        "room_facts": forgotten.room_facts,
        "rooms": forgotten.rooms,
        "left": forgotten.summarized,
        "unreadable": forgotten.unreadable,
    })
}

/// Returns an audit entry for an action of the operator.
pub fn audit_entry(action: &str, detail: String) -> AuditEntry {
    AuditEntry {
        at: clock::now(),
        thread: "".into(),
        run: "".into(),
        account: String::new(),
        person: "operator".to_owned(),
        action: action.to_owned(),
        detail,
        verdict: "allowed".to_owned(),
        code: None,
        ended: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(user: &str, email: Option<&str>, people: &[(&str, &str, &str)]) -> KnownUser {
        let person = |(account, person, name): &(&str, &str, &str)| AccountPerson {
            account: (*account).to_owned(),
            person: (*person).to_owned(),
            name: (*name).to_owned(),
        };
        let people = people.iter().map(person).collect();
        KnownUser {
            user: UserId::from_raw(user).unwrap(),
            email: email.map(str::to_owned),
            former: Vec::new(),
            people,
            secrets_only: Vec::new(),
        }
    }

    #[test]
    fn secrets_stay_separate_even_if_all_else_is_shared() {
        let mut own = one("telegram-7-x", None, &[]);
        own.secrets_only = one("x", None, &[("telegram", "7", "Ada")]).people;
        let shared = one("default", None, &[("telegram", "7", "Ada"), ("local", "local", "You")]);
        let known = [shared, own].map(|one| KnownUser::read(&one.to_json()).unwrap()).to_vec();
        assert!(pick(&known, "Ada").is_err());
        let known = with_own_secrets(known);
        for wanted in ["Ada", "telegram:7"] {
            assert_eq!(pick(&known, wanted).unwrap().user.as_str(), "telegram-7-x");
        }
        assert!(pick(&known, "ghost").is_err());
    }

    #[test]
    fn a_user_is_found_by_any_unambiguous_name() {
        let known = [
            one("ada", Some("ada@example.org"), &[("slack", "U1", "Ada"), ("telegram", "7", "Ada L")]),
            one("slack-U2-x", None, &[("slack", "U2", "Bob")]),
            one("discord-7-x", None, &[("discord", "7", "bob")]),
            one("default", None, &[("telegram", "9", "Cy")]),
        ];
        for (wanted, expect) in [
            ("ada", "ada"),
            ("ada@example.org", "ada"),
            ("U1", "ada"),
            ("ADA", "ada"),
            ("telegram:7", "ada"),
            ("discord:7", "discord-7-x"),
            ("default", "default"),
            ("7", "may be any of"),
            ("Bob", "may be any of"),
            ("Cy", "share the user `default`"),
            ("nobody", "nothing is stored"),
            ("", "nothing is stored"),
        ] {
            match pick(&known, wanted) {
                Ok(found) => assert_eq!(found.user.as_str(), expect, "{wanted}"),
                Err(error) => assert!(error.to_string().contains(expect), "{wanted}: {error}"),
            }
        }
    }
}
