//! `pudu users`, `pudu export` and `pudu forget`: the users, and the data of one user.

use super::remote::ApiRequest;
use anyhow::{Context, Result, bail};
use pudu_base::UserId;
use pudu_config::{LoadedConfig, Start};
use pudu_net::reqwest::Method;
use pudu_people::rights::{self, KnownUser};
use serde_json::Value;
use std::{
    io::{self, BufRead, IsTerminal, Write},
    path::{Path, PathBuf},
};

/// Error if there is no store.
const NOTHING: &str = "no user data is stored yet";

/// Lists users with stored data.
pub(super) async fn users(start: &Start, json: bool) -> Result<String> {
    let users = all(start, None).await?;
    if json {
        return Ok(serde_json::to_string_pretty(&users)?);
    }
    let lines: Vec<String> = users.iter().map(line).collect();
    Ok(if lines.is_empty() { "No user data is stored yet.".to_owned() } else { lines.join("\n") })
}

/// Kind of data that a command works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Belonging {
    /// Data that users share if configured.
    Common,
    /// Secrets, which are never shared.
    Secrets,
}

/// Finds the user given by `--user`: `default`, or a user with stored data. An unknown name is an error.
pub(super) async fn named(
    start: &Start,
    loaded: &LoadedConfig,
    wanted: &str,
    what: Belonging,
) -> Result<UserId> {
    let folders = loaded.config.fixed.home.join("users");
    let exact = UserId::from_raw(wanted).ok().filter(|user| user.as_str() == wanted);
    if let Some(user) = exact
        && (user == UserId::local() || folders.join(wanted).is_dir())
    {
        return Ok(user);
    }
    let known = all(start, Some(loaded)).await?.iter().filter_map(KnownUser::read).collect();
    let known = match what {
        Belonging::Common => known,
        Belonging::Secrets => rights::with_own_secrets(known),
    };
    Ok(rights::pick(&known, wanted)?.user.clone())
}

async fn all(start: &Start, loaded: Option<&LoadedConfig>) -> Result<Vec<Value>> {
    let request = ApiRequest::get(&["users"]).loaded(loaded);
    let answer = request.send_to_store(start).await?.unwrap_or_default();
    Ok(answer.get("users").and_then(Value::as_array).cloned().unwrap_or_default())
}

/// Formats a user as one line, without control characters.
fn line(user: &Value) -> String {
    let text = |of: &Value, key: &str| of.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let people = |key: &'static str, behind: &'static str| {
        let people = user.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        people.iter().map(move |person| {
            let name = text(person, "name");
            let name = if name.is_empty() { name } else { format!(" ({name})") };
            format!("{}:{}{name}{behind}", text(person, "account"), text(person, "id"))
        })
    };
    let names = people("people", "").chain(people("secrets_only", ", secrets only"));
    let names: Vec<String> =
        Some(text(user, "email")).filter(|email| !email.is_empty()).into_iter().chain(names).collect();
    let line = format!("{}  {}", text(user, "user"), names.join(", "));
    line.trim_end().chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// Exports all data of a user as an archive.
pub(super) async fn export(start: &Start, wanted: &str, out: Option<&Path>) -> Result<String> {
    let out = out.map_or_else(|| PathBuf::from("pudu-export.zip"), Path::to_path_buf);
    let out = start.dir.join(out);
    if out.exists() {
        bail!("{} already exists; choose another file with --out", out.display());
    }
    let request = ApiRequest::get(&["users", wanted, "export"]).with_files();
    request.download(start, &out).await?.context(NOTHING)?;
    Ok(format!("Wrote all data of {wanted} to {}.", out.display()))
}

/// Deletes all data of a user.
pub(super) async fn forget(start: &Start, wanted: &str, yes: bool) -> Result<String> {
    if !yes {
        confirm(wanted)?;
    }
    let request = ApiRequest::change(Method::DELETE, &["users", wanted]).with_files();
    let forgotten = request.send_to_store(start).await?.context(NOTHING)?;
    let number = |key: &str| forgotten.get(key).and_then(Value::as_u64).unwrap_or_default();
    let list = |key: &str| {
        let list = forgotten.get(key).and_then(Value::as_array).into_iter().flatten();
        list.filter_map(Value::as_str).collect::<Vec<_>>()
    };
    let (left, unreadable) = (list("left"), list("unreadable"));
    let mut text = format!(
        "Forgot {wanted}: {} threads, {} messages in groups, {} facts of groups.",
        number("threads"),
        number("room_messages"),
        number("room_facts")
    );
    if !left.is_empty() {
        text.push_str(&format!(
            "\nThese threads of groups keep their summary of the whole conversation; delete them if it mentions the \
             user: {}",
            left.join(", ")
        ));
    }
    if !unreadable.is_empty() {
        text.push_str(&format!(
            "\nThe memory of these users cannot be read and may have facts from this user: {}. Fix it and run this \
             again.",
            unreadable.join(", ")
        ));
    }
    Ok(text)
}

fn confirm(wanted: &str) -> Result<()> {
    let mut input = io::stdin().lock();
    if !io::stdin().is_terminal() {
        bail!("this cannot be undone; confirm with --yes");
    }
    eprint!("This permanently deletes all data of {wanted}. Type {wanted} to continue: ");
    io::stderr().flush()?;
    let mut typed = String::new();
    input.read_line(&mut typed)?;
    if typed.trim() != wanted {
        bail!("nothing was deleted");
    }
    Ok(())
}
