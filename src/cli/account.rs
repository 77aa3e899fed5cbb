//! `pudu user` and `pudu token`: login accounts for the HTTP API, and tokens for programs.

use super::{remote::ApiRequest, typed};
use anyhow::{Context, Result, bail};
use clap::Subcommand;
use pudu_config::Start;
use pudu_kit::home;
use pudu_net::reqwest::Method;
use pudu_people::accounts;
use serde_json::{Value, json};

/// Output of `pudu user list` without accounts.
const NO_ACCOUNTS: &str = "There are no accounts yet; create one with `pudu user add EMAIL --admin`.";

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
        /// ID or name of the token, from `pudu token list`.
        token: String,
    },
}

/// Runs `pudu user`.
pub(super) async fn user(start: &Start, command: &UserCommand) -> Result<String> {
    Ok(match command {
        UserCommand::Add { email, admin } => {
            let password = typed::new_password()?;
            let body = json!({ "email": email, "password": typed::expose(&password), "admin": admin });
            ApiRequest::change(Method::POST, &["accounts"]).body(body).send(start).await?;
            let role = if *admin { "an administrator" } else { "a user" };
            format!("{email} can sign in as {role}.")
        }
        UserCommand::List { json } => {
            let all = list(start, "accounts").await?;
            match json {
                true => serde_json::to_string_pretty(&all)?,
                false if all.is_empty() => NO_ACCOUNTS.to_owned(),
                false => lines(&all, &["email", "system_role", "id"]),
            }
        }
        UserCommand::Password { email } => {
            let password = typed::new_password()?;
            let body = json!({ "password": typed::expose(&password) });
            ApiRequest::change(Method::PUT, &["accounts", email, "password"]).body(body).send(start).await?;
            format!("{email} has a new password; all sessions have ended.")
        }
        UserCommand::Adopt { email } => {
            let is_running = home::running_url(&start.home()).is_some();
            ApiRequest::change(Method::POST, &["accounts", email, "adopt"]).send(start).await?;
            match is_running {
                true => format!("{email} now owns the data that was created without an account."),
                false => {
                    format!("{email} will own the data that was created without an account once pudu starts.")
                }
            }
        }
        UserCommand::Remove { email } => {
            ApiRequest::change(Method::DELETE, &["accounts", email]).send(start).await?;
            format!("{email} can no longer sign in.")
        }
    })
}

/// Runs `pudu token`.
pub(super) async fn token(start: &Start, command: &TokenCommand) -> Result<String> {
    Ok(match command {
        TokenCommand::Add { name, user, scope, expires } => {
            let all = || accounts::SCOPES.iter().map(|scope| (*scope).to_owned()).collect();
            let scopes: Vec<String> = if scope.is_empty() { all() } else { scope.clone() };
            let body = json!({ "name": name, "scopes": scopes, "expires_in_days": expires, "user": user });
            let created = ApiRequest::change(Method::POST, &["tokens"]).body(body).send(start).await?;
            let text = created.get("token").and_then(Value::as_str);
            text.context("the daemon's answer has no token")?.to_owned()
        }
        TokenCommand::List { json } => {
            let all = list(start, "tokens").await?;
            match json {
                true => serde_json::to_string_pretty(&all)?,
                false if all.is_empty() => "There are no tokens.".to_owned(),
                false => lines(&all, &["id", "name", "user", "scopes", "expires_at"]),
            }
        }
        TokenCommand::Revoke { token } => {
            let id = token_id(&list(start, "tokens").await?, token)?;
            ApiRequest::change(Method::DELETE, &["tokens", &id]).send(start).await?;
            format!("Revoked the token {token}.")
        }
    })
}

/// Returns the ID of the token with this ID, or else of the only token with this name.
fn token_id(tokens: &[Value], wanted: &str) -> Result<String> {
    let with = |key: &str| -> Vec<&str> {
        let found = tokens.iter().filter(|token| token[key] == wanted);
        found.filter_map(|token| token["id"].as_str()).collect()
    };
    let ids = [with("id"), with("name")].into_iter().find(|ids| !ids.is_empty()).unwrap_or_default();
    match ids.as_slice() {
        [id] => Ok((*id).to_owned()),
        [] => bail!("there is no token with the ID or name `{wanted}`; `pudu token list` lists the tokens"),
        ids => bail!("{} tokens have the name `{wanted}`; give an ID: {}", ids.len(), ids.join(", ")),
    }
}

/// Reads a list, whose key in the response is also its path.
async fn list(start: &Start, key: &str) -> Result<Vec<Value>> {
    let answer = ApiRequest::get(&[key]).send(start).await?;
    let all = answer.get(key).and_then(Value::as_array);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_found_by_its_id_or_its_only_name() {
        let tokens = [("1", "ci"), ("2", "bot"), ("3", "bot"), ("bot-4", "1")];
        let tokens = tokens.map(|(id, name)| json!({"id": id, "name": name}));
        let check = |wanted: &str, expected: Result<&str, &str>| {
            let found = token_id(&tokens, wanted).map_err(|error| error.to_string());
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{wanted}");
        };
        check("ci", Ok("1"));
        check("3", Ok("3"));
        check("1", Ok("1"));
        check("bot", Err("2 tokens have the name `bot`; give an ID: 2, 3"));
        let missing = "there is no token with the ID or name `x`; `pudu token list` lists the tokens";
        check("x", Err(missing));
    }
}
