//! `pudu users`, `pudu export` and `pudu forget`: the users, and the data of one user. The commands go to the daemon of
//! this folder, or run in this process if there is none.

use super::{remote, run};
use anyhow::{Context, Result, anyhow, bail};
use pudu_client::{
    PersonData, PersonError,
    base::UserId,
    net::reqwest::Method,
    sandbox::Folders,
    store::{Claim, Db},
};
use pudu_config::{Backend, LoadedConfig, Start};
use pudu_daemon::{self as daemon, store};
use pudu_kit::home::{self, Home};
use pudu_people::rights::{self, KnownUser};
use serde_json::{Value, json};
use std::{
    io::{self, BufRead, IsTerminal, Write},
    path::{Path, PathBuf},
    time::Duration,
};

/// Timeout of a request to the daemon.
const TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// Lists users with stored data.
pub(super) async fn users(start: &Start, json: bool) -> Result<String> {
    let users = all(start).await?;
    if json {
        return Ok(serde_json::to_string_pretty(&users)?);
    }
    let lines: Vec<String> = users.iter().map(line).collect();
    Ok(if lines.is_empty() { "Nothing is stored of anybody yet.".to_owned() } else { lines.join("\n") })
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
    let fixed = &loaded.config.fixed;
    let exact = UserId::from_raw(wanted).ok().filter(|user| user.as_str() == wanted);
    if let Some(user) = exact
        && (user == UserId::local() || fixed.home.join("users").join(wanted).is_dir())
    {
        return Ok(user);
    }
    let known = if home::running_url(&fixed.home).is_some() {
        all(start).await?.iter().filter_map(KnownUser::read).collect()
    } else if store::has_store(&fixed.database.backend) {
        let db = store::open(&fixed.database, &fixed.home).await?;
        let known = rights::known(&db, &fixed.home, loaded.config.hot.timing.unpaired).await;
        db.close().await;
        known?
    } else {
        Vec::new()
    };
    let known = match what {
        Belonging::Common => known,
        Belonging::Secrets => rights::with_own_secrets(known),
    };
    Ok(rights::pick(&known, wanted)?.user.clone())
}

async fn all(start: &Start) -> Result<Vec<Value>> {
    if home::running_url(&start.home()).is_some() {
        let told = remote::call(start, Method::GET, &["users"], &[]).await?;
        return Ok(told.get("users").and_then(Value::as_array).cloned().unwrap_or_default());
    }
    let Some(alone) = Alone::open(start).await? else { return Ok(Vec::new()) };
    let known = alone.known_users().await;
    alone.close().await;
    Ok(known?.iter().map(KnownUser::to_json).collect())
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
        bail!("{} is there already: name another file with --out", out.display());
    }
    if home::running_url(&start.home()).is_some() {
        remote::download(start, TIMEOUT, &["users", wanted, "export"], &out).await?;
        return Ok(format!("Wrote everything of {wanted} into {}.", out.display()));
    }
    let Some(alone) = Alone::open(start).await? else { bail!("nothing is stored of anybody yet") };
    let exported = alone.export(wanted, &out).await;
    alone.close().await;
    exported?;
    Ok(format!("Wrote everything of {wanted} into {}.", out.display()))
}

/// Deletes all data of a user.
pub(super) async fn forget(start: &Start, wanted: &str, yes: bool) -> Result<String> {
    if !yes {
        confirm(wanted)?;
    }
    let forgotten = match home::running_url(&start.home()) {
        Some(_) => remote::call_within(start, TIMEOUT, Method::DELETE, &["users", wanted], &[]).await?,
        None => {
            let Some(alone) = Alone::open(start).await? else { bail!("nothing is stored of anybody yet") };
            let forgotten = alone.forget(wanted).await;
            alone.close().await;
            forgotten?
        }
    };
    let number = |key: &str| forgotten.get(key).and_then(Value::as_u64).unwrap_or_default();
    let list = |key: &str| {
        let list = forgotten.get(key).and_then(Value::as_array).into_iter().flatten();
        list.filter_map(Value::as_str).collect::<Vec<_>>()
    };
    let (left, unreadable) = (list("left"), list("unreadable"));
    let mut text = format!(
        "Forgot {wanted}: {} threads, {} messages in rooms, {} facts of rooms.",
        number("threads"),
        number("room_messages"),
        number("room_facts")
    );
    if !left.is_empty() {
        text.push_str(&format!(
            "\nThese threads of rooms have a summary of the whole, which stays; delete them if it says something: {}",
            left.join(", ")
        ));
    }
    if !unreadable.is_empty() {
        text.push_str(&format!(
            "\nThe memory of these users cannot be read, and may have facts from them: {}; mend it and do this again.",
            unreadable.join(", ")
        ));
    }
    Ok(text)
}

fn confirm(wanted: &str) -> Result<()> {
    let mut input = io::stdin().lock();
    if !io::stdin().is_terminal() {
        bail!("this cannot be undone: say --yes");
    }
    eprint!("Everything of {wanted} is deleted, and nobody can bring it back. Type {wanted} to go on: ");
    io::stderr().flush()?;
    let mut typed = String::new();
    input.read_line(&mut typed)?;
    if typed.trim() != wanted {
        bail!("nothing was deleted");
    }
    Ok(())
}

/// Store and folders of a home without a running daemon.
struct Alone {
    db: Db,
    data: PersonData,
    loaded: LoadedConfig,
    _claim: Claim,
    _home: Home,
}

impl Alone {
    /// Locks and opens them; `None` if there is no store.
    async fn open(start: &Start) -> Result<Option<Self>> {
        daemon::crash_point::arm(start);
        let loaded = run::load(start).map_err(|_| anyhow!("the configuration cannot be used"))?;
        let fixed = &loaded.config.fixed;
        if !store::has_store(&fixed.database.backend) {
            return Ok(None);
        }
        if matches!(fixed.database.backend, Backend::Postgres { .. }) && !fixed.home.join("users").exists() {
            bail!("{} has no files of users: run this where the daemon's home is", fixed.home.display());
        }
        let taken = Home::lock(&fixed.home)?;
        let db = store::open(&fixed.database, &fixed.home).await?;
        let claim = db.claim().await.context("cannot have the database alone")?;
        let memory = loaded.config.hot.memory.rules.as_ref().map(|rules| rules.options.clone());
        let folders = Folders::new(fixed.home.clone(), None);
        let data = PersonData::new(db.clone(), folders, memory.unwrap_or_default());
        Ok(Some(Self { db, data, loaded, _claim: claim, _home: taken }))
    }

    async fn known_users(&self) -> Result<Vec<KnownUser>> {
        rights::known(&self.db, &self.loaded.config.fixed.home, self.loaded.config.hot.timing.unpaired).await
    }

    async fn export(&self, wanted: &str, out: &Path) -> Result<()> {
        let known = self.known_users().await?;
        rights::export(&self.db, &self.data, rights::pick(&known, wanted)?, out).await.map(drop)
    }

    async fn forget(&self, wanted: &str) -> Result<Value> {
        let known = self.known_users().await?;
        let Ok(who) = rights::pick(&known, wanted) else {
            // A crash may have happened between the rows and the file.
            self.data.compact().await?;
            return rights::pick(&known, wanted).map(|_| json!({}));
        };
        // No daemon is running, so open runs belong to one that died.
        self.data.end_left_work(&who.keys()).await?;
        match rights::forget(&self.db, who, self.data.forget(&who.keys())).await {
            Ok(forgotten) => Ok(rights::forgotten_to_json(&forgotten)),
            Err(PersonError::AtWork) => bail!(
                "no daemon runs, and one that died left an answer to others open where this person spoke, too: start \
                 pudu, let it end, and do this again"
            ),
            Err(error) => Err(error.into()),
        }
    }

    async fn close(self) {
        self.db.close().await;
    }
}
