//! `pudu import`: imports the home of another program. The source stays unchanged, and no daemon may use this home
//! during the import.

use super::run;
use anyhow::{Context, Result, anyhow, bail};
use clap::Subcommand;
use pudu_agent::agents::Agents;
use pudu_base::UserId;
use pudu_channels::Address;
use pudu_config::{self as config, Backend, Fixed, LoadedConfig, Start, extensions, upgrade::comment_out};
use pudu_daemon::{self as daemon, store};
use pudu_deerflow::{
    DeerFlowHome, ImportReport, ImportTarget, ItemKind, ItemOutcome, Place, ReportItem, SourceDatabase,
    import as move_in, read_plain,
};
use pudu_kit::{clock, home::Home};
use pudu_people::rights;
use pudu_store::{Db, DbLocation};
use secrecy::ExposeSecret;
use serde::Deserialize;
use std::{
    fs,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};
use tempfile::TempDir;

/// Platforms on which DeerFlow's topic ID in a group is the message that started a reply chain.
const CHAINS: [&str; 3] = ["telegram", "feishu", "dingtalk"];

/// Name of the file with the session key, in both homes.
const SESSION_KEY: &str = ".jwt_secret";
/// Minimum size of a session key, in bytes.
const MIN_SESSION_KEY_BYTES: usize = 16;
/// Maximum size of a session key, in bytes.
const MAX_SESSION_KEY_BYTES: u64 = 64 * 1024;
/// Maximum size of a copied configuration file, in bytes.
const MAX_COPIED_BYTES: u64 = 16 * 1024 * 1024;

/// Configuration keys for folders that pudu keeps in its home.
const PLACES: [(&str, &str); 3] =
    [("checkpointer", "connection_string"), ("database", "sqlite_dir"), ("skills", "path")];

/// Name of the file with MCP servers and skill switches.
const EXTENSIONS: &str = "extensions_config.json";

#[derive(Debug, Subcommand)]
pub(super) enum ImportSource {
    /// Import a DeerFlow home: configuration, users, memory, agents, skills, threads and their files. Run it again to
    /// resume an interrupted import, or to import new data.
    Deerflow {
        /// DeerFlow's project folder, or its `.deer-flow`.
        dir: PathBuf,
        /// Report the result without writing anything.
        #[arg(long)]
        dry_run: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

/// Imports a home and reports the imported and skipped items, with reasons.
pub(super) async fn import(start: &Start, source: &ImportSource) -> Result<String> {
    let ImportSource::Deerflow { dir, dry_run, json } = source;
    let dir = std::path::absolute(start.dir.join(dir)).context("cannot find the folder")?;
    let report = deerflow(start, &dir, *dry_run).await?;
    Ok(if *json { serde_json::to_string_pretty(&report)? } else { report.text() })
}

async fn deerflow(start: &Start, dir: &Path, dry_run: bool) -> Result<ImportReport> {
    daemon::crash_point::arm(start);
    let source = DeerFlowHome::find(dir)?;
    let mut report = ImportReport { dry_run, items: Vec::new() };
    let database = database(start, dir, &source, &mut report);
    // Without a configuration here, DeerFlow's is used, and copied once it has no errors.
    let own = start.file()?;
    let chosen = Start { config: own.clone().or_else(|| source.config.clone()), ..start.clone() };
    let mut loaded =
        run::load(&chosen).map_err(|_| anyhow!("nothing was imported: the configuration is invalid"))?;
    let copied = source.config.as_deref().filter(|_| own.is_none());
    let in_home = copied.map(|file| in_one_home(file, &mut loaded.config.fixed));
    name_places(&loaded.config.fixed, &mut report);
    let fixed = &loaded.config.fixed;
    if matches!(fixed.database.backend, Backend::Memory) {
        bail!("the import would be lost, because `database.backend` is memory; set sqlite or postgres first");
    }
    let theirs = source.extensions.as_deref().filter(|theirs| {
        !start.dir.join(EXTENSIONS).exists() && matches!(read_plain(theirs, MAX_COPIED_BYTES), Ok(Some(_)))
    });
    if let Some(theirs) = theirs {
        extensions::check_copied(theirs, start)
            .map_err(|report| anyhow!("nothing was imported: {report}"))?;
    }
    let _home = match dry_run {
        true => None,
        false => Some(Home::lock(&fixed.home)?),
    };
    take_configuration(start, own.as_deref(), &source, &loaded, in_home, &mut report)?;
    take_session_key(&fixed.home, &source, &mut report)?;
    let (db, _copy) = match dry_run {
        true => copy_of_store(&fixed.database.backend, &mut report).await?,
        false => (store::open(&fixed.database).await?, None),
    };
    let done = written(&db, &source, database.as_ref(), &loaded, dry_run).await;
    db.close().await;
    report.items.extend(done?.items);
    mark_broken_agents(&mut report.items, &source);
    Ok(report)
}

/// Adds a note to agents that cannot answer.
fn mark_broken_agents(items: &mut [ReportItem], source: &DeerFlowHome) {
    let agents = Agents::new(source.folder.clone());
    for item in items.iter_mut().filter(|item| item.kind == ItemKind::Agent) {
        let user = item.user.as_deref().and_then(|user| UserId::from_raw(user).ok()).unwrap_or_default();
        let roster = if user == UserId::local() { agents.list() } else { agents.own_of(&user) };
        if let Some(agent) = roster.broken.iter().find(|agent| agent.name == item.item) {
            let why = format!("the agent does not answer until this is fixed: {}", agent.why);
            item.note = Some(item.note.take().map_or(why.clone(), |note| format!("{note}; {why}")));
        }
    }
}

/// Writes everything to the store and the home, with an audit entry.
async fn written(
    db: &Db,
    source: &DeerFlowHome,
    database: Option<&SourceDatabase>,
    loaded: &LoadedConfig,
    dry_run: bool,
) -> Result<ImportReport> {
    let _claim = match dry_run {
        true => None,
        false => Some(db.claim().await.context("cannot get exclusive use of the database")?),
    };
    let entry = rights::audit_entry("import", source.folder.display().to_string());
    let entry = db.begin_audit_entry(entry).await?;
    let memory =
        loaded.config.hot.memory.rules.as_ref().map(|rules| rules.options.clone()).unwrap_or_default();
    let home = loaded.config.fixed.home.clone();
    let target = ImportTarget { db: db.clone(), home, memory, place, dry_run };
    let report = move_in(source, database, &target, clock::now()).await?;
    db.end_audit_entry(entry, Some(0), clock::now()).await?;
    Ok(report)
}

/// Finds DeerFlow's database: the configured one, or the default file.
fn database(
    start: &Start,
    dir: &Path,
    source: &DeerFlowHome,
    report: &mut ImportReport,
) -> Option<SourceDatabase> {
    let usual = || Some(source.usual_database()).filter(|file| file.is_file());
    let from = Start { config: source.config.clone(), dir: dir.to_owned(), ..start.clone() };
    let named = source.config.as_ref().map(|_| config::load(&from));
    let file = match named {
        Some(Ok(loaded)) => match loaded.config.fixed.database.backend {
            Backend::Postgres { url } => {
                let schema = source.config.as_deref().and_then(|config| schema(config, report));
                return Some(SourceDatabase::Postgres { url: url.expose_secret().to_owned(), schema });
            }
            Backend::Sqlite { dir } => {
                Some(dir.join("deerflow.db")).filter(|file| file.is_file()).or_else(usual)
            }
            Backend::Memory => usual(),
        },
        Some(Err(error)) => {
            report.left(ItemKind::Config, "the location of DeerFlow's database", error.to_string());
            usual()
        }
        None => usual(),
    };
    if file.is_none() {
        report.left(ItemKind::Thread, "threads", "no DeerFlow database was found");
    }
    file.map(SourceDatabase::Sqlite)
}

/// The key in DeerFlow's configuration for the schema of its tables.
#[derive(Deserialize)]
struct TheirConfig {
    database: Option<TheirDatabase>,
    checkpointer: Option<TheirDatabase>,
}

#[derive(Deserialize)]
struct TheirDatabase {
    r#type: Option<String>,
    postgres_schema: Option<String>,
}

/// Reads the schema of DeerFlow's tables; failures are reported.
fn schema(config: &Path, report: &mut ImportReport) -> Option<String> {
    let bytes = read_plain(config, MAX_COPIED_BYTES).ok()??;
    let Ok(read) = serde_saphyr::from_str::<TheirConfig>(&String::from_utf8_lossy(&bytes)) else {
        report.left(ItemKind::Config, "database.postgres_schema", "DeerFlow's config.yaml is not valid YAML");
        return None;
    };
    let of = |section: Option<TheirDatabase>| section.and_then(|section| section.postgres_schema);
    let schema = of(read.database).or_else(|| of(read.checkpointer)).filter(|schema| !schema.is_empty())?;
    match schema.strip_prefix('$') {
        Some(name) => std::env::var(name).ok(),
        None => Some(schema),
    }
}

/// Copies the configuration and its files, if there is none yet.
fn take_configuration(
    start: &Start,
    own: Option<&Path>,
    source: &DeerFlowHome,
    loaded: &LoadedConfig,
    in_home: Option<(String, Vec<String>)>,
    report: &mut ImportReport,
) -> Result<()> {
    let Some(theirs) = &source.config else { return take_extensions(start, source, report) };
    match own {
        Some(own) if is_same(own, theirs) || is_shorter(own, theirs) => {
            report.add(ItemKind::Config, ItemOutcome::Unchanged, "config.yaml", None, None);
        }
        Some(own) => {
            let why = format!("{} already exists; add missing keys by hand", own.display());
            report.left(ItemKind::Config, "config.yaml", why);
        }
        None => {
            // Secrets are copied first, because a configuration must never exist without them.
            let secrets = theirs.with_file_name(".env");
            if secrets.symlink_metadata().is_ok() {
                copied(&secrets, &start.dir.join(".env"), ".env", report)?;
            }
            match in_home.filter(|(_, lost)| !lost.is_empty()) {
                None => copied(theirs, &start.dir.join("config.yaml"), "config.yaml", report)?,
                Some((text, lost)) => {
                    written_as(
                        text.as_bytes(),
                        &start.dir.join("config.yaml"),
                        "config.yaml",
                        report.dry_run,
                    )?;
                    let note = format!("without {}, because the data is in pudu's home", lost.join(" and "));
                    report.add(ItemKind::Config, ItemOutcome::Taken, "config.yaml", None, Some(note));
                }
            }
            for (_, line) in loaded.report.lines() {
                report.left(ItemKind::Config, "a setting", line.replace('\n', ";"));
            }
        }
    }
    take_extensions(start, source, report)
}

fn take_extensions(start: &Start, source: &DeerFlowHome, report: &mut ImportReport) -> Result<()> {
    let Some(theirs) = &source.extensions else { return Ok(()) };
    let name = EXTENSIONS;
    let own = start.dir.join(name);
    match own.exists() {
        true if is_same(&own, theirs) => {
            report.add(ItemKind::Extensions, ItemOutcome::Unchanged, name, None, None);
        }
        true => report.left(ItemKind::Extensions, name, format!("{} already exists", own.display())),
        false => return copied_as(ItemKind::Extensions, theirs, &own, name, report),
    }
    Ok(())
}

/// Copies the session key, so that browsers stay signed in. An existing key is kept for the sessions of this home.
fn take_session_key(home: &Path, source: &DeerFlowHome, report: &mut ImportReport) -> Result<()> {
    let (theirs, own) = (source.folder.join(SESSION_KEY), home.join(SESSION_KEY));
    let read = |file: &Path| -> Result<Option<String>, &str> {
        let bytes = read_plain(file, MAX_SESSION_KEY_BYTES)?;
        let text = bytes.map(|bytes| String::from_utf8(bytes).map_err(|_| "not UTF-8 text")).transpose()?;
        Ok(text.map(|text| text.trim().to_owned()))
    };
    let key = match read(&theirs) {
        Ok(key) => key,
        Err(why) => {
            report.left(ItemKind::Account, SESSION_KEY, format!("{why}; users must sign in again"));
            return Ok(());
        }
    };
    match (key, read(&own).ok().flatten()) {
        (None, _) => Ok(()),
        (Some(key), _) if key.len() < MIN_SESSION_KEY_BYTES => {
            report.left(ItemKind::Account, SESSION_KEY, "too short to be safe; users must sign in again");
            Ok(())
        }
        (Some(key), Some(known)) if key == known => {
            report.add(ItemKind::Account, ItemOutcome::Unchanged, SESSION_KEY, None, None);
            Ok(())
        }
        (Some(_), Some(_)) => {
            let why = format!("{} already exists; users must sign in again", own.display());
            report.left(ItemKind::Account, SESSION_KEY, why);
            Ok(())
        }
        (Some(_), None) => copied_as(ItemKind::Account, &theirs, &own, SESSION_KEY, report),
    }
}

/// Returns whether two files have the same contents.
fn is_same(one: &Path, other: &Path) -> bool {
    let read = |file| read_plain(file, MAX_COPIED_BYTES).ok().flatten();
    read(one).is_some_and(|bytes| read(other) == Some(bytes))
}

fn copied(from: &Path, to: &Path, name: &str, report: &mut ImportReport) -> Result<()> {
    if to.exists() {
        report.left(ItemKind::Config, name, format!("{} already exists", to.display()));
        return Ok(());
    }
    copied_as(ItemKind::Config, from, to, name, report)
}

/// Copies a file that may contain secrets atomically, readable only by its owner.
fn copied_as(kind: ItemKind, from: &Path, to: &Path, name: &str, report: &mut ImportReport) -> Result<()> {
    let bytes = match read_plain(from, MAX_COPIED_BYTES) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(()),
        Err(why) => {
            report.left(kind, name, why);
            return Ok(());
        }
    };
    written_as(&bytes, to, name, report.dry_run)
        .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    report.add(kind, ItemOutcome::Taken, name, None, None);
    Ok(())
}

/// Writes a file atomically, readable only by its owner.
fn written_as(bytes: &[u8], to: &Path, name: &str, dry_run: bool) -> Result<()> {
    if dry_run {
        return Ok(());
    }
    let part = to.with_file_name(format!(".{name}.part"));
    let mut options = fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&part)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    Ok(fs::rename(&part, to)?)
}

/// Returns DeerFlow's configuration without the keys for folders that pudu keeps in its home, and the removed keys.
/// Adjusts the settings accordingly.
fn in_one_home(config: &Path, fixed: &mut Fixed) -> (String, Vec<String>) {
    let Some((text, lost)) = shorter(config) else { return (String::new(), Vec::new()) };
    let lost_any = |keys: &[&str]| lost.iter().any(|lost| keys.contains(&lost.as_str()));
    if let Backend::Sqlite { dir } = &mut fixed.database.backend
        && lost_any(&["database.sqlite_dir", "checkpointer.connection_string"])
    {
        *dir = fixed.home.join("data");
    }
    if lost_any(&["skills.path"]) {
        fixed.skills.path = fixed.home.join("skills");
    }
    (text, lost)
}

/// Returns DeerFlow's configuration without the keys for folders, and the removed keys.
fn shorter(config: &Path) -> Option<(String, Vec<String>)> {
    let bytes = read_plain(config, MAX_COPIED_BYTES).ok()??;
    let text = String::from_utf8(bytes).ok()?;
    let of_server = serde_saphyr::from_str::<TheirConfig>(&text)
        .is_ok_and(|config| config.checkpointer.is_some_and(|of| of.r#type.as_deref() == Some("postgres")));
    let places = PLACES.iter().filter(|(section, _)| !(of_server && *section == "checkpointer"));
    Some(comment_out(&text, &places.copied().collect::<Vec<_>>(), "skipped by pudu import"))
}

/// Returns whether a file equals DeerFlow's without those keys.
fn is_shorter(own: &Path, theirs: &Path) -> bool {
    let own = read_plain(own, MAX_COPIED_BYTES).ok().flatten();
    own.is_some_and(|own| shorter(theirs).is_some_and(|(text, _)| text.as_bytes() == own))
}

/// Reports configured folders outside the home.
fn name_places(fixed: &Fixed, report: &mut ImportReport) {
    let mut name = |key: &str, folder: &Path| {
        if !folder.starts_with(&fixed.home) {
            let why = format!(
                "{} is outside of the home folder {}; remove the key to use the home folder",
                folder.display(),
                fixed.home.display()
            );
            report.left(ItemKind::Config, key, why);
        }
    };
    if let Backend::Sqlite { dir } = &fixed.database.backend {
        name("database.sqlite_dir", dir);
    }
    name("skills.path", &fixed.skills.path);
}

/// Opens a temporary copy of the store, for a dry run.
async fn copy_of_store(backend: &Backend, report: &mut ImportReport) -> Result<(Db, Option<TempDir>)> {
    let folder = TempDir::new().context("cannot create a folder for a copy of the store")?;
    let copy = folder.path().join(store::STORE);
    match backend {
        Backend::Sqlite { dir } => {
            let log = format!("{}-wal", store::STORE);
            for name in [store::STORE, log.as_str()] {
                match fs::copy(dir.join(name), folder.path().join(name)) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(error).context("cannot copy the store");
                    }
                    _ => {}
                }
            }
        }
        Backend::Postgres { .. } => {
            let why = "a dry run does not read pudu's database on the server, so every item counts as new";
            report.left(ItemKind::Other, "database", why);
        }
        Backend::Memory => {}
    }
    let db = Db::open(&DbLocation::Sqlite(copy)).await.context("cannot open a copy of the store")?;
    Ok((db, Some(folder)))
}

/// Returns the conversation's key, like the dispatcher.
fn place(account: &str, chat: &str, topic: Option<&str>) -> Place {
    let address = |topic: Option<&str>| Address {
        account: account.to_owned(),
        chat: chat.to_owned(),
        topic: topic.map(str::to_owned),
    };
    if CHAINS.contains(&account)
        && let Some(message) = topic
    {
        let key = format!("{}:m{message}", address(None).key());
        return Place { key, message: Some(message.to_owned()), room: None };
    }
    // On platforms with reply chains, only private chats have no topic. IDs of Slack's private chats begin with D.
    let is_private = CHAINS.contains(&account) || (account == "slack" && chat.starts_with('D'));
    let room = (!is_private).then(|| UserId::room(account, chat));
    Place { key: address(topic).key(), message: None, room }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_has_its_threads_and_a_person_their_private_chats_and_chains() {
        for (account, chat, topic, is_room) in [
            ("telegram", "4242", None, false),
            ("telegram", "-100", Some("17"), false),
            ("feishu", "oc_1", None, false),
            ("slack", "C1", Some("1700.1"), true),
            ("slack", "D1", Some("1700.1"), false),
            ("discord", "77", Some("78"), true),
        ] {
            let room = is_room.then(|| UserId::room(account, chat));
            assert_eq!(place(account, chat, topic).room, room, "{account} {chat}");
        }
    }
}
