//! Login accounts and tokens for the command line and the HTTP API: the checks before a change is stored, and their
//! JSON.

use crate::{
    passwords::{self, Passwords},
    rights,
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use pudu_base::{UserId, digest};
use pudu_config::UnpairedPeople;
use pudu_kit::clock;
use pudu_store::{
    AddedAccount, Adoption, ApiToken, AuditEntry, ChangedPassword, Db, MAX_USER_TOKENS, PasswordChange,
    RemovedAccount, StoreError, UserAccount,
};
use secrecy::SecretString;
use serde_json::{Value, json};
use uuid::Uuid;

/// Actor of changes from the command line, or with the operator's token.
pub const OPERATOR: &str = "operator";
/// The role of administrators.
pub const ADMIN: &str = "admin";
/// The role of all other users.
pub const USER: &str = "user";
/// Prefix of every token.
pub const TOKEN_PREFIX: &str = "pudu_";
/// All scopes of tokens.
pub const SCOPES: &[&str] =
    &["threads:read", "threads:write", "threads:delete", "runs:create", "runs:read", "runs:cancel"];

/// Maximum length of an e-mail address, in bytes.
const MAX_EMAIL_BYTES: usize = 320;
/// Maximum length of a token's name, in characters.
const MAX_NAME_CHARS: usize = 128;
/// Maximum age of a token, in days.
pub const MAX_TOKEN_DAYS: i64 = 3650;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Reason why an account or a token was not created or changed.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    /// The e-mail address is invalid.
    #[error("\"{0}\" is not a valid e-mail address")]
    NoEmail(String),
    /// The password is too weak.
    #[error("{0}")]
    Password(&'static str),
    /// The address is in use.
    #[error("the address {0} is already in use")]
    Taken(String),
    /// No account has this address or ID.
    #[error("no account signs in as \"{0}\"; `pudu user list` lists the accounts")]
    Unknown(String),
    /// No other administrator would be left.
    #[error("{0} is the last administrator: create another one first, or remove the other accounts first")]
    LastAdministrator(String),
    /// The token's settings are invalid.
    #[error("{0}")]
    Token(String),
    /// The token does not exist.
    #[error("token not found")]
    NoToken,
    /// The store failed.
    #[error("the store cannot be used")]
    Store(#[from] StoreError),
    /// Something else failed.
    #[error(transparent)]
    Failed(#[from] anyhow::Error),
}

/// Normalizes an e-mail address: the domain becomes lower case. `None` if it is invalid.
pub fn email(text: &str) -> Option<String> {
    let text = text.trim();
    let (local, domain) = text.rsplit_once('@')?;
    let odd = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '"' | ',' | ';' | '<' | '>' | '@');
    let labels = domain.split('.').all(|label| !label.is_empty());
    let plain =
        !local.is_empty() && domain.contains('.') && labels && !text.replacen('@', "", 1).contains(odd);
    (plain && text.len() <= MAX_EMAIL_BYTES).then(|| format!("{local}@{}", domain.to_lowercase()))
}

/// Creates a new account that is not stored yet.
pub async fn fresh(
    passwords: &Passwords,
    address: &str,
    password: &SecretString,
    role: &str,
) -> Result<UserAccount, AccountError> {
    let email = email(address).ok_or_else(|| AccountError::NoEmail(address.to_owned()))?;
    if let Some(why) = passwords::objection(password) {
        return Err(AccountError::Password(why));
    }
    let hash = passwords.hash(password).await?;
    Ok(UserAccount { password_hash: Some(hash), ..without_password(email, role)? })
}

fn without_password(email: String, role: &str) -> anyhow::Result<UserAccount> {
    Ok(UserAccount {
        user: UserId::from_raw(&Uuid::new_v4().to_string())?,
        email,
        password_hash: None,
        role: role.to_owned(),
        needs_setup: false,
        token_version: 0,
        oauth_provider: None,
        oauth_id: None,
        created: clock::now(),
    })
}

/// Creates an account for a user of an identity provider. It is not stored yet.
pub fn fresh_of_provider(
    email: String,
    role: &str,
    provider: &str,
    subject: &str,
) -> anyhow::Result<UserAccount> {
    Ok(UserAccount {
        oauth_provider: Some(provider.to_owned()),
        oauth_id: Some(subject.to_owned()),
        ..without_password(email, role)?
    })
}

/// A change to an account, for the audit.
#[derive(Clone, Copy, Debug)]
pub enum AccountChange {
    /// Create the account.
    Add,
    /// Set another password.
    SetPassword,
    /// Take over threads.
    Adopt,
    /// Remove the account.
    Remove,
    /// Create a token.
    AddToken,
    /// Revoke a token.
    RevokeToken,
}

impl AccountChange {
    fn action(self) -> &'static str {
        match self {
            Self::Add => "add account",
            Self::SetPassword => "set password",
            Self::Adopt => "adopt threads",
            Self::Remove => "remove account",
            Self::AddToken => "add token",
            Self::RevokeToken => "revoke token",
        }
    }
}

/// Changes an account and writes an audit entry with the actor, the change, and the affected user or token. The entry
/// has no further data, so that users can be deleted.
pub async fn audited<T, E: From<StoreError>>(
    db: &Db,
    by: &str,
    change: AccountChange,
    affected: &str,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let entry = rights::audit_entry(change.action(), affected.to_owned());
    let entry = db.begin_audit_entry(AuditEntry { person: by.to_owned(), ..entry }).await?;
    let done = work.await;
    db.end_audit_entry(entry, Some(i64::from(done.is_err())), clock::now()).await?;
    done
}

/// Adds an account.
pub async fn add(
    db: &Db,
    by: &str,
    passwords: &Passwords,
    address: &str,
    password: &SecretString,
    role: &str,
) -> Result<UserAccount, AccountError> {
    let account = fresh(passwords, address, password, role).await?;
    audited(db, by, AccountChange::Add, account.user.as_str(), async {
        match db.add_account(account.clone()).await? {
            AddedAccount::Added => Ok(account.clone()),
            AddedAccount::Taken | AddedAccount::Late => Err(AccountError::Taken(account.email.clone())),
        }
    })
    .await
}

/// Finds an account by e-mail address or user ID.
pub async fn find(db: &Db, wanted: &str) -> Result<UserAccount, AccountError> {
    if let Some(account) = db.account_with(wanted.trim()).await? {
        return Ok(account);
    }
    let user = UserId::from_raw(wanted).ok().filter(|user| user.as_str() == wanted);
    let account = match user {
        Some(user) => db.account_of(&user).await?,
        None => None,
    };
    account.ok_or_else(|| AccountError::Unknown(wanted.to_owned()))
}

/// Sets a password on behalf of the operator; all sessions and tokens end.
pub async fn set_password(
    db: &Db,
    by: &str,
    passwords: &Passwords,
    wanted: &str,
    password: &SecretString,
) -> Result<UserAccount, AccountError> {
    let account = find(db, wanted).await?;
    if let Some(why) = passwords::objection(password) {
        return Err(AccountError::Password(why));
    }
    let hash = passwords.hash(password).await?;
    let (user, token_version) = (account.user.clone(), account.token_version);
    let change = PasswordChange { user, token_version, hash, email: None, revokes_tokens: true };
    audited(db, by, AccountChange::SetPassword, account.user.as_str(), async {
        match db.change_password(change).await? {
            ChangedPassword::Changed { .. } => Ok(account.clone()),
            ChangedPassword::Taken | ChangedPassword::Stale => Err(AccountError::Unknown(wanted.to_owned())),
        }
    })
    .await
}

/// Transfers the data held without an account to an account.
pub async fn adopt(
    db: &Db,
    by: &str,
    wanted: &str,
    unpaired: UnpairedPeople,
) -> Result<UserAccount, AccountError> {
    let account = find(db, wanted).await?;
    audited(db, by, AccountChange::Adopt, account.user.as_str(), async {
        db.adopt(adoption(account.user.clone(), unpaired)).await.map(|()| account.clone())
    })
    .await
    .map_err(Into::into)
}

/// Describes how an account takes over the data held without one.
pub fn adoption(target: UserId, unpaired: UnpairedPeople) -> Adoption {
    let is_one_person = unpaired == UnpairedPeople::Own;
    Adoption { source: UserId::local(), target, at: clock::now(), is_one_person }
}

/// Removes an account with its sessions and tokens.
pub async fn remove(db: &Db, by: &str, wanted: &str) -> Result<UserAccount, AccountError> {
    let account = find(db, wanted).await?;
    audited(db, by, AccountChange::Remove, account.user.as_str(), async {
        match db.remove_account(&account.user).await? {
            RemovedAccount::Removed => Ok(account.clone()),
            RemovedAccount::Missing => Err(AccountError::Unknown(wanted.to_owned())),
            RemovedAccount::LastAdministrator => Err(AccountError::LastAdministrator(account.email.clone())),
        }
    })
    .await
}

/// Returns an account as JSON, as DeerFlow's frontend expects it.
pub fn to_json(account: &UserAccount) -> Value {
    json!({
        "id": account.user,
        "email": account.email,
        "system_role": account.role,
        "needs_setup": account.needs_setup,
        "oauth_provider": account.oauth_provider,
    })
}

/// Returns an account as JSON with its creation time.
pub fn listed(account: &UserAccount) -> Value {
    let mut shown = to_json(account);
    shown["created_at"] = clock::text(account.created).into();
    shown
}

/// Settings of a new token.
#[derive(Clone, Debug)]
pub struct TokenOrder {
    /// Name of the token.
    pub name: String,
    /// Scopes; an empty list is an error.
    pub scopes: Vec<String>,
    /// Days until it expires; `None` means never.
    pub days: Option<i64>,
}

/// Creates a token for a user; returns it with its secret, which is not stored.
pub async fn add_token(
    db: &Db,
    by: &str,
    user: &UserId,
    order: TokenOrder,
) -> Result<(ApiToken, String), AccountError> {
    let wrong = |what: String| Err(AccountError::Token(what));
    let name = order.name.trim();
    if name.is_empty() || name.chars().count() > MAX_NAME_CHARS || name.chars().any(char::is_control) {
        return wrong(format!("the name must have 1 to {MAX_NAME_CHARS} characters"));
    }
    if let Some(unknown) = order.scopes.iter().find(|scope| !SCOPES.contains(&scope.as_str())) {
        return wrong(format!("unknown scope \"{unknown}\"; the scopes are {}", SCOPES.join(", ")));
    }
    let scopes: Vec<&str> =
        SCOPES.iter().copied().filter(|scope| order.scopes.iter().any(|other| other == scope)).collect();
    if scopes.is_empty() {
        return wrong("a token needs at least one scope".to_owned());
    }
    if order.days.is_some_and(|days| !(1..=MAX_TOKEN_DAYS).contains(&days)) {
        return wrong(format!("a token must expire after 1 to {MAX_TOKEN_DAYS} days"));
    }
    let mut bytes = [0u8; 32];
    getrandom::fill(&mut bytes)
        .map_err(|error| anyhow::anyhow!("the system's random number generator failed: {error}"))?;
    let text = format!("{TOKEN_PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes));
    let now = clock::now();
    let token = ApiToken {
        id: Uuid::new_v4().to_string(),
        user: user.clone(),
        name: name.to_owned(),
        scopes: scopes.join(" "),
        created: now,
        expires: order.days.map(|days| now + days * DAY_MS),
        used: None,
    };
    let hash = digest(&text);
    audited(db, by, AccountChange::AddToken, user.as_str(), async {
        match db.add_api_token(token.clone(), &hash).await? {
            true => Ok((token.clone(), text)),
            false => wrong(format!("a user can have at most {MAX_USER_TOKENS} tokens: revoke some")),
        }
    })
    .await
}

/// Revokes a token. If a user is given, it must belong to them.
pub async fn revoke_token(db: &Db, by: &str, id: &str, user: Option<&UserId>) -> Result<(), AccountError> {
    audited(db, by, AccountChange::RevokeToken, id, async {
        match db.revoke_api_token(id, user).await? {
            true => Ok(()),
            false => Err(AccountError::NoToken),
        }
    })
    .await
}

/// Returns a token as JSON without its secret.
pub fn shown_token(token: &ApiToken) -> Value {
    json!({
        "id": token.id,
        "name": token.name,
        "scopes": token.scopes.split(' ').collect::<Vec<_>>(),
        "expires_at": token.expires.map(clock::text),
        "last_used_at": token.used.map(clock::text),
        "created_at": clock::text(token.created),
        "revoked_at": null,
    })
}

/// Returns a token as JSON with its user.
pub fn shown_token_of(token: &ApiToken) -> Value {
    let mut shown = shown_token(token);
    shown["user"] = token.user.as_str().into();
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn email_addresses_need_a_local_part_and_a_domain() {
        for (text, expected) in [
            ("ada@example.org", Some("ada@example.org")),
            (" Ada.L+x@Example.ORG ", Some("Ada.L+x@example.org")),
            ("ada@localhost", None),
            ("ada", None),
            ("@example.org", None),
            ("ada@example..org", None),
            ("ada@b@example.org", None),
            ("ada\n@example.org", None),
            ("<ada@example.org>", None),
        ] {
            assert_eq!(email(text).as_deref(), expected, "{text:?}");
        }
    }
}
