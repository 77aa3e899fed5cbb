//! Platform identities that share a user with others. An identity that is not listed is a separate user.
//!
//! For each identity that joined, the issuer of the code is stored. When the issuer separates, all identities that
//! joined with the issuer's codes separate as well, and their codes become invalid.

use crate::{
    Db, Result, crash,
    engines::{Tx, from_row, query},
    memory::merge,
    schedules,
};
use pudu_base::UserId;

/// A code that lets another identity become the same user as the issuer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinCode {
    /// The code's hash.
    pub hash: String,
    /// The issuer's bot.
    pub account: String,
    /// The platform's id of the issuer.
    pub issuer: String,
    /// Facts about the issuer to show to the person who uses the code, JSON.
    pub offer: String,
    /// Time of its expiry, in milliseconds since 1970.
    pub expires: i64,
}

/// A platform identity and its user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The account.
    pub account: String,
    /// The platform's id of the person.
    pub person: String,
    /// The user.
    pub user: UserId,
    /// The displayed name.
    pub name: String,
    /// Time when it was linked to the user, in milliseconds since 1970.
    pub at: i64,
}

/// An identity that is a separate user again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartedPerson {
    /// The account.
    pub account: String,
    /// The platform's id of the person.
    pub person: String,
    /// The address for notifying the person, as passed to [`Db::join`]; empty if unknown.
    pub route: String,
}

/// Returns the separate user of an identity. Neither a bot's name nor an id contains a NUL, so two identities never
/// get the same user.
#[must_use]
pub fn unpaired_user(account: &str, person: &str) -> UserId {
    UserId::from_raw(&format!("{account}\0{person}")).unwrap_or_default()
}

from_row!(Identity { account, person, user: "user_id", name, at });
from_row!(PartedPerson { account, person, route });

impl Db {
    /// Assigns an identity to a user, replacing its earlier user.
    pub async fn identify(&self, identity: Identity) -> Result<()> {
        self.write(&crash::IDENTIFY, move |tx| identify(tx, &identity)).await
    }

    /// Stores a join code, replacing the issuer's earlier code.
    pub async fn offer_join(&self, code: JoinCode) -> Result<()> {
        self.write(&crash::OFFER_JOIN, move |tx| {
            drop_codes(tx, &code.account, &code.issuer)?;
            let sql = "INSERT INTO pairing_codes (hash, account, expires, issuer, offer)
                VALUES ($1, $2, $3, $4, $5)";
            let insert = query(sql).bind(&code.hash).bind(&code.account).bind(code.expires);
            insert.bind(&code.issuer).bind(&code.offer).execute(tx).map(drop)
        })
        .await
    }

    /// Returns the facts about a code's issuer, JSON, if the code is valid.
    pub async fn join_offer(&self, hash: &str, now: i64) -> Result<Option<String>> {
        let sql = "SELECT offer FROM pairing_codes
            WHERE hash = $1 AND issuer IS NOT NULL AND person IS NULL AND expires > $2";
        self.find(query(sql).bind(hash).bind(now)).await
    }

    /// Assigns the identity that uses a code to the issuer's user. The same identity may use the code again, because
    /// platforms redeliver events. If the identity's former user is given as `brings` and no other identity belongs to
    /// that user, that user's memory is recorded for merging. `route` is the address for notifying the person if the
    /// identities part later. Returns false if the code is invalid or expired, or if the issuer's user has changed
    /// since the code was made.
    pub async fn join(
        &self,
        hash: &str,
        shows: Identity,
        issuer: Identity,
        brings: Option<UserId>,
        route: &str,
    ) -> Result<bool> {
        let (hash, route) = (hash.to_owned(), route.to_owned());
        self.write(&crash::JOIN, move |tx| {
            let sql = "SELECT user_id FROM identities WHERE account = $1 AND person = $2";
            let user = query(sql).bind(&issuer.account).bind(&issuer.person).fetch_optional::<UserId>(tx)?;
            if user.unwrap_or_else(|| unpaired_user(&issuer.account, &issuer.person)) != issuer.user {
                return Ok(false);
            }
            let sql =
                "UPDATE pairing_codes SET person = $1 WHERE hash = $2 AND issuer IS NOT NULL AND expires > $3
                    AND (person IS NULL OR person = $1)";
            let joined = mark(&shows.account, &shows.person);
            if query(sql).bind(&joined).bind(&hash).bind(shows.at).execute(tx)? == 0 {
                return Ok(false);
            }
            identify_if_new(tx, &issuer)?;
            identify(tx, &shows)?;
            let sql = "UPDATE identities SET via = $3, route = $4 WHERE account = $1 AND person = $2";
            let via = mark(&issuer.account, &issuer.person);
            query(sql).bind(&shows.account).bind(&shows.person).bind(&via).bind(&route).execute(tx)?;
            // The identity's own codes were for its former user.
            drop_codes(tx, &shows.account, &shows.person)?;
            if let Some(source) = &brings {
                merge::begin(tx, source, &shows.user)?;
            }
            Ok(true)
        })
        .await
    }

    /// Makes an identity a separate user again, together with all identities that have this separate user or joined
    /// through its codes. If there are any, and the identity itself did not use a code, it stays unchanged. Returns all
    /// identities whose user changed; none if the identity was a separate user.
    pub async fn part(&self, account: &str, person: &str) -> Result<Vec<PartedPerson>> {
        let texts = [account, person].map(str::to_owned);
        self.write(&crash::PART, move |tx| part(tx, &texts)).await
    }

    /// Returns the assigned user of an identity, if any.
    pub async fn identity_of(&self, account: &str, person: &str) -> Result<Option<UserId>> {
        let sql = "SELECT user_id FROM identities WHERE account = $1 AND person = $2";
        self.find(query(sql).bind(account).bind(person)).await
    }

    /// Returns a bot and the address, JSON, at which a user gets notices, from the newest link that has one.
    pub async fn notice_route(&self, user: &UserId) -> Result<Option<(String, String)>> {
        let sql = "SELECT account, route FROM identities WHERE user_id = $1 AND route <> '' ORDER BY at DESC LIMIT 1";
        self.find(query(sql).bind(user)).await
    }

    /// Returns all identities that were assigned to a user, sorted by bot and platform id.
    pub async fn identities(&self) -> Result<Vec<Identity>> {
        let sql = "SELECT account, person, user_id, name, at FROM identities ORDER BY account, person";
        self.all(query(sql)).await
    }
}

pub(crate) fn identify(tx: &mut Tx<'_>, identity: &Identity) -> Result<()> {
    let sql = "INSERT INTO identities (account, person, user_id, name, at) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (account, person) DO UPDATE SET user_id = excluded.user_id, name = excluded.name, at = excluded.at";
    let insert = query(sql).bind(&identity.account).bind(&identity.person).bind(identity.user.as_str());
    insert.bind(&identity.name).bind(identity.at).execute(tx)?;
    schedules::belong(tx, &identity.account, &identity.person, &identity.user)
}

/// Assigns an identity to a user unless it is already assigned. Returns whether it was assigned now.
pub(crate) fn identify_if_new(tx: &mut Tx<'_>, identity: &Identity) -> Result<bool> {
    let sql = "INSERT INTO identities (account, person, user_id, name, at) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (account, person) DO NOTHING";
    let insert = query(sql).bind(&identity.account).bind(&identity.person).bind(identity.user.as_str());
    Ok(insert.bind(&identity.name).bind(identity.at).execute(tx)? > 0)
}

fn part(tx: &mut Tx<'_>, [account, person]: &[String; 2]) -> Result<Vec<PartedPerson>> {
    drop_codes(tx, account, person)?;
    merge::cancel(tx, &unpaired_user(account, person))?;
    let sql = "SELECT via, route, name FROM identities WHERE account = $1 AND person = $2";
    let own: Option<(String, String, String)> = query(sql).bind(account).bind(person).fetch_optional(tx)?;
    let sql = "WITH RECURSIVE gone(account, person) AS (
            SELECT account, person FROM identities WHERE via = $1 OR user_id = $2
            UNION SELECT other.account, other.person FROM identities other
                JOIN gone ON other.via = gone.account || '\n' || gone.person)
        SELECT known.account, known.person, known.route FROM identities known
            JOIN gone ON gone.account = known.account AND gone.person = known.person
        ORDER BY known.account, known.person";
    let (via, user) = (mark(account, person), unpaired_user(account, person));
    let mut parted: Vec<PartedPerson> = query(sql).bind(&via).bind(&user).fetch_all(tx)?;
    parted.retain(|one| (&one.account, &one.person) != (account, person));
    if let Some((via, route, _)) = own
        && (parted.is_empty() || !via.is_empty())
    {
        parted.push(PartedPerson { account: account.clone(), person: person.clone(), route });
    }
    for PartedPerson { account, person, .. } in &parted {
        drop_codes(tx, account, person)?;
        merge::cancel(tx, &unpaired_user(account, person))?;
        let sql = "DELETE FROM identities WHERE account = $1 AND person = $2";
        query(sql).bind(account).bind(person).execute(tx)?;
        schedules::belong(tx, account, person, &unpaired_user(account, person))?;
    }
    Ok(parted)
}

/// Deletes the codes of an identity, including used ones, so that they cannot be used again.
fn drop_codes(tx: &mut Tx<'_>, account: &str, person: &str) -> Result<()> {
    let sql = "DELETE FROM pairing_codes WHERE account = $1 AND issuer = $2";
    query(sql).bind(account).bind(person).execute(tx).map(drop)
}

/// Returns an identity as one text.
fn mark(account: &str, person: &str) -> String {
    format!("{account}\n{person}")
}
