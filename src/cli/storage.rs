//! `pudu storage`: shows and prunes stored data, and deletes threads. The commands go to the daemon of this folder, or
//! run in this process if there is none.

use super::{remote, run};
use anyhow::{Context, Result, anyhow, bail};
use bytesize::ByteSize;
use clap::Subcommand;
use pudu_client::{
    AccountUsage, RetentionRules, Storage,
    base::{ThreadId, foreign},
    net::reqwest::Method,
    sandbox::Folders,
    store::{Db, Deletion, StoreError},
};
use pudu_config::{Backend, Start};
use pudu_daemon::store;
use pudu_gateway::{
    self as gateway,
    storage::{LISTED_THREADS, MAX_LISTED_THREADS},
};
use pudu_kit::{
    clock,
    home::{self, Home},
};
use serde_json::Value;
use std::time::Duration;
use unicode_width::UnicodeWidthStr;

/// Timeout of a deletion by the daemon.
const PRUNE_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// Error if the store cannot be read.
const UNREADABLE: &str = "the store cannot be read";
/// Maximum length of a listed title, in characters.
const MAX_TITLE_CHARS: usize = 60;

#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    /// Show the stored data of each bot, and the amount that the next pruning deletes.
    Show {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// List threads with their titles, most recently used first.
    Threads {
        /// Bot whose threads are listed (default: all).
        account: Option<String>,
        /// Maximum number of threads.
        #[arg(long, default_value_t = LISTED_THREADS, value_parser = limit)]
        limit: usize,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Delete data that exceeds `retention:` now; the daemon does so every 15 minutes.
    Prune,
    /// Delete a thread with its history, runs and files.
    Delete {
        /// ID of the thread, from `/status` in its chat or from `pudu audit`.
        thread: String,
    },
}

/// Runs `pudu storage`.
pub(super) async fn storage(start: &Start, verb: &Verb) -> Result<String> {
    if let Verb::Delete { thread } = verb
        && gateway::thread::read(thread).is_none()
    {
        bail!("{}", gateway::thread::WRONG);
    }
    let answer = match home::running_url(&start.home()) {
        Some(_) => ask(start, verb).await?,
        None => execute_offline(start, verb).await?,
    };
    Ok(match verb {
        Verb::Show { json: true } | Verb::Threads { json: true, .. } => {
            serde_json::to_string_pretty(&answer)?
        }
        Verb::Threads { json: false, .. } => listed(&answer),
        Verb::Show { json: false } => table(&answer),
        Verb::Prune => format!("Deleted {}.", pruned(&answer)),
        Verb::Delete { thread } => format!("Deleted the thread {thread}."),
    })
}

async fn ask(start: &Start, verb: &Verb) -> Result<Value> {
    let mut query = Vec::new();
    let (method, path): (_, &[&str]) = match verb {
        Verb::Threads { account, limit, .. } => {
            query.push(("limit", limit.to_string()));
            query.extend(account.clone().map(|account| ("account", account)));
            (Method::GET, &["threads"])
        }
        Verb::Show { .. } => (Method::GET, &["storage"]),
        Verb::Prune => (Method::POST, &["storage", "prune"]),
        Verb::Delete { thread } => (Method::DELETE, &["storage", "threads", thread]),
    };
    let query: Vec<(&str, &str)> = query.iter().map(|(key, value)| (*key, value.as_str())).collect();
    remote::call_within(start, PRUNE_TIMEOUT, method, path, &query).await
}

/// Opens the store of a home without a daemon and runs the command.
async fn execute_offline(start: &Start, verb: &Verb) -> Result<Value> {
    let loaded = run::load(start).map_err(|_| anyhow!("the configuration cannot be used"))?;
    let fixed = &loaded.config.fixed;
    if !store::has_store(&fixed.database.backend) {
        return match verb {
            Verb::Delete { .. } => bail!("there is no such thread"),
            Verb::Threads { .. } => Ok(gateway::storage::listed(&[])),
            Verb::Show { .. } | Verb::Prune => {
                Ok(gateway::storage::to_json(&[], &loaded.config.hot.retention))
            }
        };
    }
    let server = matches!(fixed.database.backend, Backend::Postgres { .. });
    if server
        && !matches!(verb, Verb::Show { .. } | Verb::Threads { .. })
        && !fixed.home.join("users").exists()
    {
        bail!("{} has no files of threads: run this where the daemon's home is", fixed.home.display());
    }
    let _home = Home::lock(&fixed.home)?;
    let db = store::open(&fixed.database, &fixed.home).await?;
    let storage = Storage::new(db.clone(), Folders::new(fixed.home.clone(), None));
    let rules = &loaded.config.hot.retention;
    let done = match verb {
        // A database server may belong to the daemon that has the files: reading changes nothing there.
        Verb::Show { .. } if server => {
            usage_to_json(storage.usage_as_stored(rules, clock::now()).await, rules)
        }
        Verb::Show { .. } => usage_to_json(storage.usage(rules, clock::now()).await, rules),
        Verb::Threads { account, limit, .. } => {
            let threads = storage.threads(account.as_deref(), *limit).await;
            Ok(gateway::storage::listed(&threads.context(UNREADABLE)?))
        }
        Verb::Prune | Verb::Delete { .. } => execute_locked(&db, &storage, rules, verb).await,
    };
    db.close().await;
    done
}

fn usage_to_json(usage: Result<Vec<AccountUsage>, StoreError>, rules: &RetentionRules) -> Result<Value> {
    Ok(gateway::storage::to_json(&usage.context(UNREADABLE)?, rules))
}

/// Deletes data, with the database locked.
async fn execute_locked(db: &Db, storage: &Storage, rules: &RetentionRules, verb: &Verb) -> Result<Value> {
    let _claim = db.claim().await.context("cannot have the database alone")?;
    let Verb::Delete { thread } = verb else {
        return Ok(gateway::storage::counts(&storage.prune(rules, clock::now()).await?));
    };
    match storage.delete(&ThreadId::from(thread.as_str())).await? {
        Deletion::Done => Ok(Value::Null),
        Deletion::InUse => bail!("the thread has a turn that is not done: start pudu and let it end"),
        Deletion::Unknown => bail!("there is no such thread"),
    }
}

fn table(answer: &Value) -> String {
    let accounts = answer.get("accounts").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if accounts.is_empty() {
        return match answer.get("retention") {
            Some(rules) => format!("Nothing is stored yet. `retention:` keeps {}.", keeps(rules)),
            None => "Nothing is stored yet.".to_owned(),
        };
    }
    let mut rows =
        vec![["ACCOUNT", "THREADS", "LOGS", "FILES", "AUDIT", "OLDEST", "KEEPS", "DUE"].map(str::to_owned)];
    rows.extend(accounts.iter().map(row));
    let table = columns(&rows);
    format!(
        "{table}\n\nKEEPS is what `retention:` keeps. DUE is what `pudu storage prune` deletes, and the daemon by itself."
    )
}

/// Parses the number of threads.
fn limit(text: &str) -> Result<usize, String> {
    let limit = text.parse().ok().filter(|limit| (1..=MAX_LISTED_THREADS).contains(limit));
    limit.ok_or_else(|| format!("it is 1 to {MAX_LISTED_THREADS}"))
}

/// Formats a list of threads.
fn listed(answer: &Value) -> String {
    let threads = answer.get("threads").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if threads.is_empty() {
        return "There are no threads.".to_owned();
    }
    let row = |thread: &Value| {
        let text = |key: &str| thread.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let used: String = text("updated").chars().take(16).collect();
        let size = size(number(thread, "log_bytes") + number(thread, "file_bytes"));
        let title = foreign::line(&text("title"), MAX_TITLE_CHARS);
        [text("id"), text("account"), used.replace('T', " "), size, title]
    };
    let mut rows = vec![["THREAD", "ACCOUNT", "USED", "SIZE", "TITLE"].map(str::to_owned)];
    rows.extend(threads.iter().map(row));
    columns(&rows)
}

fn row(account: &Value) -> [String; 8] {
    let text = |key: &str| account.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let name = text("account");
    let day: String = text("oldest").chars().take(10).collect();
    [
        if name.is_empty() { "(unknown)".to_owned() } else { name },
        number(account, "threads").to_string(),
        size(number(account, "log_bytes")),
        size(number(account, "file_bytes")),
        number(account, "audit_rows").to_string(),
        if day.is_empty() { "-".to_owned() } else { day },
        account.get("retention").map(keeps).unwrap_or_default(),
        account.get("due").map(pruned).unwrap_or_default(),
    ]
}

/// Describes the limits of stored data.
fn keeps(rules: &Value) -> String {
    let days = |key: &str| Some(number(rules, key)).filter(|days| *days > 0).map(|days| several(days, "day"));
    let bytes = |key: &str| Some(number(rules, key)).filter(|bytes| *bytes > 0).map(size);
    let rows =
        Some(number(rules, "audit_max_rows")).filter(|rows| *rows > 0).map(|rows| several(rows, "row"));
    let limits = [
        ("threads", [days("threads_max_age_days"), bytes("threads_max_bytes")]),
        ("files", [days("files_max_age_days"), bytes("files_max_bytes")]),
        ("audit", [days("audit_max_age_days"), rows]),
    ];
    let limited = limits.into_iter().filter_map(|(what, limits)| {
        let limits: Vec<String> = limits.into_iter().flatten().collect();
        (!limits.is_empty()).then(|| format!("{what} {}", limits.join(" and ")))
    });
    let limited: Vec<String> = limited.collect();
    if limited.is_empty() { "everything".to_owned() } else { limited.join(", ") }
}

/// Describes deleted data, or data to be deleted.
fn pruned(counts: &Value) -> String {
    let [threads, stripped, bytes, audit] =
        ["threads", "threads_without_files", "bytes", "audit_rows"].map(|key| number(counts, key));
    let mut parts = Vec::new();
    if threads > 0 {
        parts.push(several(threads, "thread"));
    }
    if stripped > 0 {
        parts.push(format!("the files of {}", several(stripped, "thread")));
    }
    if let Some(last) = parts.last_mut() {
        last.push_str(&format!(" ({})", size(bytes)));
    }
    if audit > 0 {
        parts.push(several(audit, "audit row"));
    }
    if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") }
}

fn several(count: u64, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

fn number(of: &Value, key: &str) -> u64 {
    of.get(key).and_then(Value::as_u64).unwrap_or(0)
}

/// Formats a size: `1.5 MiB`.
fn size(bytes: u64) -> String {
    ByteSize::b(bytes).display().iec().to_string()
}

/// Aligns rows in columns.
fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    let widths: [usize; N] = std::array::from_fn(|at| {
        rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.width()).max().unwrap_or(0)
    });
    let line = |row: &[String; N]| {
        let pad = |(cell, width): (&String, &usize)| format!("{cell}{}", " ".repeat(width - cell.width()));
        row.iter().zip(&widths).map(pad).collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}
