//! Sign-in accounts.
//!
//! Deliberately absent: passwords and their hashing, which are left to the caller.

use crate::{
    Adoption, Db, Result, UserAccount, crash,
    engines::{Tx, from_row, query},
    threads::adoption,
};
use pudu_base::UserId;

/// Outcome of adding an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddedAccount {
    /// The account was added.
    Added,
    /// The address is taken.
    Taken,
    /// The account was meant to be the first administrator's, but an administrator exists.
    Late,
}

/// Change of a password.
#[derive(Clone)]
pub struct PasswordChange {
    /// The user.
    pub user: UserId,
    /// Version of the session that requested the change.
    pub token_version: i64,
    /// The new hash.
    pub hash: String,
    /// A new address.
    pub email: Option<String>,
    /// Whether the user's API tokens are also revoked.
    pub revokes_tokens: bool,
}

/// Outcome of changing a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangedPassword {
    /// The password was changed. All earlier sessions have ended; new ones have this version.
    Changed {
        /// Version of the sessions.
        token_version: i64,
    },
    /// Another account has the new address.
    Taken,
    /// The account is gone, or its password was changed in the meantime.
    Stale,
}

/// Outcome of removing an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemovedAccount {
    /// The account is gone.
    Removed,
    /// There is no such account.
    Missing,
    /// The account belongs to the last administrator, and other accounts exist.
    LastAdministrator,
}

pub(super) const COLUMNS: &str =
    "SELECT id, email, password_hash, system_role, needs_setup, token_version, oauth_provider, oauth_id,
        created FROM users";

impl Db {
    /// Returns whether there is any account.
    pub async fn has_accounts(&self) -> Result<bool> {
        self.finds(query("SELECT 1 FROM users LIMIT 1")).await
    }

    /// Returns whether an administrator has an account.
    pub async fn has_administrator(&self) -> Result<bool> {
        self.finds(query("SELECT 1 FROM users WHERE system_role = 'admin' LIMIT 1")).await
    }

    /// Returns a user's account.
    pub async fn account_of(&self, user: &UserId) -> Result<Option<UserAccount>> {
        let sql = format!("{COLUMNS} WHERE id = $1");
        self.find(query(sql).bind(user.as_str())).await
    }

    /// Returns the account with an address, ignoring case. An exact match takes precedence.
    pub async fn account_with(&self, email: &str) -> Result<Option<UserAccount>> {
        let sql = format!(
            "{COLUMNS} WHERE email = $1 OR LOWER(email) = $2 ORDER BY CASE WHEN email = $3 THEN 0 ELSE 1 END, id"
        );
        let lowercase = email.to_lowercase();
        self.find(query(sql).bind(email).bind(&lowercase).bind(email)).await
    }

    /// Lists all accounts, sorted by address.
    pub async fn user_accounts(&self) -> Result<Vec<UserAccount>> {
        let sql = format!("{COLUMNS} ORDER BY email");
        self.all(query(sql)).await
    }

    /// Adds an account.
    pub async fn add_account(&self, account: UserAccount) -> Result<AddedAccount> {
        self.write(&crash::ADD_ACCOUNT, move |tx| add(tx, &account, false)).await
    }

    /// Adds the first administrator's account and begins the adoption. Only one of several concurrent calls succeeds,
    /// and none if an administrator exists.
    pub async fn add_first_administrator(
        &self,
        account: UserAccount,
        adoption: Option<Adoption>,
    ) -> Result<AddedAccount> {
        self.write(&crash::ADD_ACCOUNT, move |tx| {
            let added = add(tx, &account, true)?;
            if let (AddedAccount::Added, Some(adoption)) = (added, &adoption) {
                adoption::begin(tx, adoption)?;
            }
            Ok(added)
        })
        .await
    }

    /// Changes a password, which ends all sessions.
    pub async fn change_password(&self, change: PasswordChange) -> Result<ChangedPassword> {
        self.write(&crash::CHANGE_PASSWORD, move |tx| change_password(tx, &change)).await
    }

    /// Replaces a password's hash with another hash of the same password, unless it was changed in the meantime.
    /// Sessions continue.
    pub async fn rehash_password(&self, user: &UserId, old: &str, new: &str) -> Result<bool> {
        let sql = "UPDATE users SET password_hash = $1 WHERE id = $2 AND password_hash = $3";
        let update = query(sql).bind(new).bind(user).bind(old);
        Ok(self.execute(&crash::REHASH_PASSWORD, update).await? > 0)
    }

    /// Removes an account, its sessions and its tokens. The user's other data is kept. The last administrator cannot be
    /// removed while other accounts exist.
    pub async fn remove_account(&self, user: &UserId) -> Result<RemovedAccount> {
        let user = user.clone();
        self.write(&crash::REMOVE_ACCOUNT, move |tx| remove(tx, &user)).await
    }
}

from_row!(UserAccount {
    user: "id",
    email,
    password_hash,
    role: "system_role",
    needs_setup,
    token_version,
    oauth_provider,
    oauth_id,
    created,
});

fn add(tx: &mut Tx<'_>, account: &UserAccount, is_first: bool) -> Result<AddedAccount> {
    let sql = "SELECT COUNT(*) FROM users WHERE system_role = 'admin'";
    if is_first && query(sql).fetch_one::<i64>(tx)? > 0 {
        return Ok(AddedAccount::Late);
    }
    if is_taken(tx, &account.email, "")? || !crate::imports::put_user(tx, account)? {
        return Ok(AddedAccount::Taken);
    }
    Ok(AddedAccount::Added)
}

fn remove(tx: &mut Tx<'_>, user: &UserId) -> Result<RemovedAccount> {
    let count = |sql| query(sql).bind(user.as_str());
    let is_admin = "SELECT COUNT(*) FROM users WHERE id = $1 AND system_role = 'admin'";
    let others = "SELECT COUNT(*) FROM users WHERE id <> $1";
    let admins = "SELECT COUNT(*) FROM users WHERE id <> $1 AND system_role = 'admin'";
    if count(is_admin).fetch_one::<i64>(tx)? > 0
        && count(others).fetch_one::<i64>(tx)? > 0
        && count(admins).fetch_one::<i64>(tx)? == 0
    {
        return Ok(RemovedAccount::LastAdministrator);
    }
    for sql in [
        "DELETE FROM api_tokens WHERE user_id = $1",
        "DELETE FROM adoptions WHERE target = $1",
        "UPDATE scheduled_tasks SET status = 'paused' WHERE user_id = $1 AND status = 'enabled' AND account = ''",
    ] {
        query(sql).bind(user.as_str()).execute(tx)?;
    }
    let account = query("DELETE FROM users WHERE id = $1").bind(user.as_str());
    Ok(if account.execute(tx)? > 0 { RemovedAccount::Removed } else { RemovedAccount::Missing })
}

/// Returns whether an account other than `user`'s has an address.
pub(crate) fn is_taken(tx: &mut Tx<'_>, email: &str, user: &str) -> Result<bool> {
    let lower = email.to_lowercase();
    let duplicates = query("SELECT COUNT(*) FROM users WHERE LOWER(email) = $1 AND id <> $2").bind(&lower);
    Ok(duplicates.bind(user).fetch_one::<i64>(tx)? > 0)
}

fn change_password(tx: &mut Tx<'_>, change: &PasswordChange) -> Result<ChangedPassword> {
    let PasswordChange { user, token_version, hash, email, revokes_tokens } = change;
    if let Some(email) = email
        && is_taken(tx, email, user.as_str())?
    {
        return Ok(ChangedPassword::Taken);
    }
    let sql = "UPDATE users SET password_hash = $1, token_version = token_version + 1
        WHERE id = $2 AND token_version = $3";
    let update = query(sql).bind(hash).bind(user.as_str()).bind(*token_version);
    if update.execute(tx)? == 0 {
        return Ok(ChangedPassword::Stale);
    }
    if let Some(email) = email {
        let update = query("UPDATE users SET email = $1, needs_setup = 0 WHERE id = $2").bind(email);
        update.bind(user.as_str()).execute(tx)?;
    }
    if *revokes_tokens {
        query("DELETE FROM api_tokens WHERE user_id = $1").bind(user.as_str()).execute(tx)?;
    }
    Ok(ChangedPassword::Changed { token_version: token_version + 1 })
}
