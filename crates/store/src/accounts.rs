//! Accounts of people who sign in.
//!
//! Deliberately absent: passwords and how they are hashed, which is for the caller.

use crate::{
    Adoption, Db, StoreError, UserAccount, adoption, crash,
    statement::{Columns, FromColumns, Tx, query},
};
use pudu_base::UserId;

/// Outcome of adding an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddedAccount {
    /// The account is there now.
    Added,
    /// The address is taken.
    Taken,
    /// It was to be the first administrator's, and there is an administrator.
    Late,
}

/// Change of a password.
#[derive(Clone)]
pub struct PasswordChange {
    /// The user.
    pub user: UserId,
    /// Version of the sessions by which it was asked for.
    pub token_version: i64,
    /// The new hash.
    pub hash: String,
    /// A new address.
    pub email: Option<String>,
    /// Whether the user's tokens end, too.
    pub revokes_tokens: bool,
}

/// Outcome of changing a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangedPassword {
    /// All sessions before it are over; the new ones have this version.
    Changed {
        /// Version of the sessions.
        token_version: i64,
    },
    /// Another account has the new address.
    Taken,
    /// The account is gone, or its password was changed meanwhile.
    Stale,
}

/// Outcome of removing an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemovedAccount {
    /// The account is gone.
    Removed,
    /// There is none.
    Missing,
    /// It is the last administrator's, and others have accounts.
    LastAdministrator,
}

const COLUMNS: &str =
    "SELECT id, email, password_hash, system_role, needs_setup, token_version, oauth_provider, oauth_id,
    created FROM users";

impl Db {
    /// Returns whether there is any account.
    pub async fn has_accounts(&self) -> Result<bool, StoreError> {
        self.read((), |(), tx| Box::pin(any(tx, "SELECT COUNT(*) FROM users"))).await
    }

    /// Returns whether an administrator has an account.
    pub async fn has_administrator(&self) -> Result<bool, StoreError> {
        self.read((), |(), tx| Box::pin(any(tx, "SELECT COUNT(*) FROM users WHERE system_role = 'admin'")))
            .await
    }

    /// Returns a user's account.
    pub async fn account_of(&self, user: &UserId) -> Result<Option<UserAccount>, StoreError> {
        self.read(user, |user, tx| Box::pin(by_user(tx, user))).await
    }

    /// Returns the account with an address; case does not matter, unless two differ by nothing else.
    pub async fn account_with(&self, email: &str) -> Result<Option<UserAccount>, StoreError> {
        self.read_much(email, |email, tx| Box::pin(by_email(tx, email))).await
    }

    /// Lists all accounts by their address.
    pub async fn user_accounts(&self) -> Result<Vec<UserAccount>, StoreError> {
        self.read_much((), |(), tx| Box::pin(all(tx))).await
    }

    /// Adds an account.
    pub async fn add_account(&self, account: UserAccount) -> Result<AddedAccount, StoreError> {
        self.write(&crash::ADD_ACCOUNT, account, |account, tx| Box::pin(add(tx, account, false))).await
    }

    /// Adds the first administrator's account: of several calls one does it, and none where an administrator is there. What
    /// it adopts becomes theirs from then on.
    pub async fn add_first_administrator(
        &self,
        account: UserAccount,
        adoption: Option<Adoption>,
    ) -> Result<AddedAccount, StoreError> {
        self.write(&crash::ADD_ACCOUNT, (account, adoption), |(account, adoption), tx| {
            Box::pin(async move {
                let added = add(tx, account, true).await?;
                if let (AddedAccount::Added, Some(adoption)) = (added, adoption) {
                    adoption::begin(tx, adoption).await?;
                }
                Ok(added)
            })
        })
        .await
    }

    /// Changes a password, which ends all sessions.
    pub async fn change_password(&self, change: PasswordChange) -> Result<ChangedPassword, StoreError> {
        self.write(&crash::CHANGE_PASSWORD, change, |change, tx| Box::pin(change_password(tx, change))).await
    }

    /// Puts another hash of the same password in the place of one, unless that was changed meanwhile. Sessions go on.
    pub async fn rehash_password(&self, user: &UserId, old: &str, new: &str) -> Result<bool, StoreError> {
        let texts = [new, user.as_str(), old].map(str::to_owned);
        self.write(&crash::REHASH_PASSWORD, texts, |texts, tx| {
            Box::pin(async move {
                let sql = "UPDATE users SET password_hash = $1 WHERE id = $2 AND password_hash = $3";
                let update = texts.iter().fold(query(sql), |update, text| update.bind(text));
                Ok(update.execute(tx).await? > 0)
            })
        })
        .await
    }

    /// Removes an account, its sessions and its tokens. The other data of the user stays. The last administrator stays
    /// as long as others have accounts.
    pub async fn remove_account(&self, user: &UserId) -> Result<RemovedAccount, StoreError> {
        self.write(&crash::REMOVE_ACCOUNT, user.clone(), |user, tx| Box::pin(remove(tx, user))).await
    }
}

async fn any(tx: &mut Tx<'_>, sql: &'static str) -> Result<bool, StoreError> {
    Ok(query(sql).fetch_one::<i64>(tx).await? > 0)
}

async fn by_user(tx: &mut Tx<'_>, user: &UserId) -> Result<Option<UserAccount>, StoreError> {
    let sql = format!("{COLUMNS} WHERE id = $1");
    query(sql).bind(user.as_str()).fetch_optional(tx).await
}

async fn by_email(tx: &mut Tx<'_>, email: &str) -> Result<Option<UserAccount>, StoreError> {
    let sql = format!(
        "{COLUMNS} WHERE email = $1 OR LOWER(email) = $2 ORDER BY CASE WHEN email = $3 THEN 0 ELSE 1 END, id"
    );
    let lowercase = email.to_lowercase();
    query(sql).bind(email).bind(&lowercase).bind(email).fetch_optional(tx).await
}

async fn all(tx: &mut Tx<'_>) -> Result<Vec<UserAccount>, StoreError> {
    let sql = format!("{COLUMNS} ORDER BY email");
    query(sql).fetch_all(tx).await
}

impl FromColumns for UserAccount {
    fn from_columns(row: &impl Columns) -> Result<Self, StoreError> {
        let id: String = row.column("id")?;
        Ok(Self {
            user: UserId::from_raw(&id).map_err(|error| StoreError::Corrupt(error.to_string()))?,
            email: row.column("email")?,
            password_hash: row.column("password_hash")?,
            role: row.column("system_role")?,
            needs_setup: row.column::<i64, _>("needs_setup")? != 0,
            token_version: row.column("token_version")?,
            oauth_provider: row.column("oauth_provider")?,
            oauth_id: row.column("oauth_id")?,
            created: row.column("created")?,
        })
    }
}

async fn add(tx: &mut Tx<'_>, account: &UserAccount, is_first: bool) -> Result<AddedAccount, StoreError> {
    let sql = "SELECT COUNT(*) FROM users WHERE system_role = 'admin'";
    if is_first && query(sql).fetch_one::<i64>(tx).await? > 0 {
        return Ok(AddedAccount::Late);
    }
    if is_taken(tx, &account.email, "").await? || !crate::imports::put_user(tx, account).await? {
        return Ok(AddedAccount::Taken);
    }
    Ok(AddedAccount::Added)
}

async fn remove(tx: &mut Tx<'_>, user: &UserId) -> Result<RemovedAccount, StoreError> {
    let count = |sql| query(sql).bind(user.as_str());
    let is_admin = "SELECT COUNT(*) FROM users WHERE id = $1 AND system_role = 'admin'";
    let others = "SELECT COUNT(*) FROM users WHERE id <> $1";
    let admins = "SELECT COUNT(*) FROM users WHERE id <> $1 AND system_role = 'admin'";
    if count(is_admin).fetch_one::<i64>(tx).await? > 0
        && count(others).fetch_one::<i64>(tx).await? > 0
        && count(admins).fetch_one::<i64>(tx).await? == 0
    {
        return Ok(RemovedAccount::LastAdministrator);
    }
    for sql in ["DELETE FROM api_tokens WHERE user_id = $1", "DELETE FROM adoptions WHERE target = $1"] {
        query(sql).bind(user.as_str()).execute(tx).await?;
    }
    let account = query("DELETE FROM users WHERE id = $1").bind(user.as_str());
    Ok(if account.execute(tx).await? > 0 { RemovedAccount::Removed } else { RemovedAccount::Missing })
}

/// Returns whether an account other than `user` has an address.
pub(crate) async fn is_taken(tx: &mut Tx<'_>, email: &str, user: &str) -> Result<bool, StoreError> {
    let lower = email.to_lowercase();
    let taken = query("SELECT COUNT(*) FROM users WHERE LOWER(email) = $1 AND id <> $2").bind(&lower);
    Ok(taken.bind(user).fetch_one::<i64>(tx).await? > 0)
}

async fn change_password(tx: &mut Tx<'_>, change: &PasswordChange) -> Result<ChangedPassword, StoreError> {
    let PasswordChange { user, token_version, hash, email, revokes_tokens } = change;
    if let Some(email) = email
        && is_taken(tx, email, user.as_str()).await?
    {
        return Ok(ChangedPassword::Taken);
    }
    let sql = "UPDATE users SET password_hash = $1, token_version = token_version + 1
        WHERE id = $2 AND token_version = $3";
    let update = query(sql).bind(hash).bind(user.as_str()).bind(*token_version);
    if update.execute(tx).await? == 0 {
        return Ok(ChangedPassword::Stale);
    }
    if let Some(email) = email {
        let update = query("UPDATE users SET email = $1, needs_setup = 0 WHERE id = $2").bind(email);
        update.bind(user.as_str()).execute(tx).await?;
    }
    if *revokes_tokens {
        query("DELETE FROM api_tokens WHERE user_id = $1").bind(user.as_str()).execute(tx).await?;
    }
    Ok(ChangedPassword::Changed { token_version: token_version + 1 })
}
