//! `pudu user` and `pudu token`: login accounts for the HTTP API, and tokens for programs. The commands go to the
//! daemon of this folder, or run in this process if there is none.

use super::{remote, run, typed};
use anyhow::{Context, Result, anyhow};
use clap::Subcommand;
use pudu_client::{
    base::UserId,
    net::reqwest::Method,
    store::{ApiToken, Claim, Db, UserAccount},
};
use pudu_config::{Start, UnpairedPeople};
use pudu_daemon::{self as daemon, store};
use pudu_kit::home::{self, Home};
use pudu_people::{
    accounts::{self, TokenOrder},
    passwords::Passwords,
};
use serde_json::{Value, json};

#[derive(Debug, Subcommand)]
pub(super) enum UserCommand {
    /// Create an account. The password is read from the terminal or from the first line of standard input.
    Add {
        /// E-mail address to sign in with.
        email: String,
        /// Create an administrator.
        #[arg(long)]
        admin: bool,
    },
    /// List the accounts.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Set the password of an account and end its sessions.
    Password {
        /// E-mail address or user ID.
        email: String,
    },
    /// Give an account the conversations, files and memory that were created without sign-in.
    Adopt {
        /// E-mail address or user ID.
        email: String,
    },
    /// Remove an account with its sessions and tokens, but keep other data of the user (see `pudu forget`).
    Remove {
        /// E-mail address or user ID.
        email: String,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum TokenCommand {
    /// Create a token and print it once.
    Add {
        /// Name that identifies the token in `pudu token list`.
        name: String,
        /// E-mail address of the user that the token acts for (default: the local user of the web page and the
        /// terminal).
        #[arg(long, value_name = "EMAIL")]
        user: Option<String>,
        /// Comma-separated scopes: threads:read, threads:write, threads:delete, runs:create, runs:read, runs:cancel
        /// (default: all).
        #[arg(long, value_name = "SCOPES", value_delimiter = ',')]
        scope: Vec<String>,
        /// Days until the token expires (default: never).
        #[arg(long, value_name = "DAYS")]
        expires: Option<i64>,
    },
    /// List all tokens, without their secrets.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token immediately.
    Revoke {
        /// ID of the token, from `pudu token list`.
        id: String,
    },
}

/// Runs `pudu user`.
pub(super) async fn user(start: &Start, command: &UserCommand) -> Result<String> {
    let desk = AccountDesk::open(start).await?;
    let done = desk.user(start, command).await;
    desk.close().await;
    done
}

/// Runs `pudu token`.
pub(super) async fn token(start: &Start, command: &TokenCommand) -> Result<String> {
    let desk = AccountDesk::open(start).await?;
    let done = desk.token(start, command).await;
    desk.close().await;
    done
}

/// The process that changes accounts: the running daemon, or this one.
enum AccountDesk {
    Daemon,
    Own { db: Db, unpaired: UnpairedPeople, _claim: Claim, _home: Home },
}

impl AccountDesk {
    async fn open(start: &Start) -> Result<Self> {
        if home::running_url(&start.home()).is_some() {
            return Ok(Self::Daemon);
        }
        daemon::crash_point::arm(start);
        let loaded = run::load(start).map_err(|_| anyhow!("the configuration cannot be used"))?;
        let fixed = &loaded.config.fixed;
        let taken = Home::lock(&fixed.home)?;
        let db = store::open(&fixed.database, &fixed.home).await?;
        let claim = db.claim().await.context("cannot have the database alone")?;
        let unpaired = loaded.config.hot.timing.unpaired;
        Ok(Self::Own { db, unpaired, _claim: claim, _home: taken })
    }

    async fn close(self) {
        if let Self::Own { db, .. } = self {
            db.close().await;
        }
    }

    async fn user(&self, start: &Start, command: &UserCommand) -> Result<String> {
        Ok(match command {
            UserCommand::Add { email, admin } => {
                let password = typed::new_password()?;
                match self {
                    Self::Daemon => {
                        let order = json!({
                            "email": email, "password": typed::expose(&password), "admin": admin,
                        });
                        remote::post(start, &["accounts"], &[], &order).await?;
                    }
                    Self::Own { db, .. } => {
                        let role = if *admin { accounts::ADMIN } else { accounts::USER };
                        let passwords = Passwords::default();
                        accounts::add(db, accounts::OPERATOR, &passwords, email, &password, role).await?;
                    }
                }
                let role = if *admin { "an administrator" } else { "a user" };
                format!("{email} can sign in as {role}.")
            }
            UserCommand::List { json } => {
                let all = self.accounts(start).await?;
                match json {
                    true => serde_json::to_string_pretty(&all)?,
                    false if all.is_empty() => {
                        "Nobody signs in yet: `pudu user add EMAIL --admin`.".to_owned()
                    }
                    false => lines(&all, &["email", "system_role", "id"]),
                }
            }
            UserCommand::Password { email } => {
                let password = typed::new_password()?;
                match self {
                    Self::Daemon => {
                        let body = json!({ "password": typed::expose(&password) });
                        remote::put(start, &["accounts", email, "password"], &body).await?;
                    }
                    Self::Own { db, .. } => {
                        let passwords = Passwords::default();
                        accounts::set_password(db, accounts::OPERATOR, &passwords, email, &password).await?;
                    }
                }
                format!("{email} has a new password; all sessions have ended.")
            }
            UserCommand::Adopt { email } => match self {
                Self::Daemon => {
                    remote::post(start, &["accounts", email, "adopt"], &[], &json!({})).await?;
                    format!("{email} has what was held here without an account.")
                }
                Self::Own { db, unpaired, .. } => {
                    accounts::adopt(db, accounts::OPERATOR, email, *unpaired).await?;
                    format!("{email} gets what was held here without an account when pudu starts.")
                }
            },
            UserCommand::Remove { email } => {
                match self {
                    Self::Daemon => {
                        remote::call(start, Method::DELETE, &["accounts", email], &[]).await?;
                    }
                    Self::Own { db, .. } => {
                        accounts::remove(db, accounts::OPERATOR, email).await?;
                    }
                }
                format!("{email} cannot sign in any more.")
            }
        })
    }

    async fn accounts(&self, start: &Start) -> Result<Vec<Value>> {
        match self {
            Self::Daemon => list(&remote::call(start, Method::GET, &["accounts"], &[]).await?, "accounts"),
            Self::Own { db, .. } => {
                let all: Vec<UserAccount> = db.user_accounts().await?;
                Ok(all.iter().map(accounts::listed).collect())
            }
        }
    }

    async fn token(&self, start: &Start, command: &TokenCommand) -> Result<String> {
        Ok(match command {
            TokenCommand::Add { name, user, scope, expires } => {
                let all = || accounts::SCOPES.iter().map(|scope| (*scope).to_owned()).collect();
                let scopes = if scope.is_empty() { all() } else { scope.clone() };
                self.add_token(start, TokenOrder { name: name.clone(), scopes, days: *expires }, user).await?
            }
            TokenCommand::List { json } => {
                let all = self.tokens(start).await?;
                match json {
                    true => serde_json::to_string_pretty(&all)?,
                    false if all.is_empty() => "There are no tokens.".to_owned(),
                    false => lines(&all, &["id", "name", "user", "scopes", "expires_at"]),
                }
            }
            TokenCommand::Revoke { id } => {
                match self {
                    Self::Daemon => {
                        remote::call(start, Method::DELETE, &["tokens", id], &[]).await?;
                    }
                    Self::Own { db, .. } => {
                        accounts::revoke_token(db, accounts::OPERATOR, id, None).await?;
                    }
                }
                format!("{id} opens nothing any more.")
            }
        })
    }

    async fn add_token(&self, start: &Start, order: TokenOrder, user: &Option<String>) -> Result<String> {
        match self {
            Self::Daemon => {
                let body = json!({
                    "name": order.name, "scopes": order.scopes, "expires_in_days": order.days, "user": user,
                });
                let made = remote::post(start, &["tokens"], &[], &body).await?;
                let text = made.get("token").and_then(Value::as_str);
                Ok(text.context("the daemon's answer has no token")?.to_owned())
            }
            Self::Own { db, .. } => {
                let user = match user {
                    Some(who) => accounts::find(db, who).await?.user,
                    None => UserId::local(),
                };
                Ok(accounts::add_token(db, accounts::OPERATOR, &user, order).await?.1)
            }
        }
    }

    async fn tokens(&self, start: &Start) -> Result<Vec<Value>> {
        match self {
            Self::Daemon => list(&remote::call(start, Method::GET, &["tokens"], &[]).await?, "tokens"),
            Self::Own { db, .. } => {
                let all: Vec<ApiToken> = db.api_tokens(None).await?;
                Ok(all.iter().map(accounts::shown_token_of).collect())
            }
        }
    }
}

fn list(told: &Value, key: &str) -> Result<Vec<Value>> {
    let all = told.get(key).and_then(Value::as_array);
    Ok(all.context("the daemon's answer has no list")?.clone())
}

/// Formats one line per item, without control characters.
fn lines(all: &[Value], keys: &[&str]) -> String {
    let cell = |value: &Value| match value {
        Value::String(text) => text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect(),
        Value::Array(parts) => parts.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
        _ => "-".to_owned(),
    };
    let line = |one: &Value| keys.iter().map(|key| cell(&one[*key])).collect::<Vec<_>>().join("  ");
    all.iter().map(line).collect::<Vec<_>>().join("\n")
}
