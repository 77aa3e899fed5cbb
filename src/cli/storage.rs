//! `pudu storage`: how much chats leave behind, pruning it, and deleting a thread. The daemon of this folder does it;
//! where none runs, this process takes its place for as long.

use super::{remote, run};
use crate::{
    clock,
    config::{Backend, Start},
    daemon, gateway,
    home::{self, Home},
};
use anyhow::{Context, Result, anyhow, bail};
use bytesize::ByteSize;
use clap::Subcommand;
use pudu_client::{
    RetentionRules, Storage,
    base::ThreadId,
    net::reqwest::Method,
    sandbox::Folders,
    store::{Db, Deletion},
};
use serde_json::{Value, json};
use std::time::Duration;
use unicode_width::UnicodeWidthStr;

/// How long the daemon may take to delete.
const PRUNE_TIMEOUT: Duration = Duration::from_secs(30 * 60);

#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    /// Show what each account leaves behind, and what the next pruning deletes of it.
    Show {
        /// Print JSON, for programs.
        #[arg(long)]
        json: bool,
    },
    /// Delete what `retention:` does not keep, now; a daemon does it by itself each quarter of an hour.
    Prune,
    /// Delete a thread with its log, its runs and its files.
    Delete {
        /// The thread's id; `pudu audit` tells it.
        thread: String,
    },
}

/// Does what is asked for and says it.
pub(super) async fn storage(start: &Start, verb: &Verb) -> Result<String> {
    let answer = match home::neighbour(&start.home()) {
        Some(_) => ask(start, verb).await?,
        None => work(start, verb).await?,
    };
    Ok(match verb {
        Verb::Show { json: true } => serde_json::to_string_pretty(&answer)?,
        Verb::Show { json: false } => table(&answer),
        Verb::Prune => format!("Deleted {}.", pruned(&answer)),
        Verb::Delete { thread } => format!("Deleted the thread {thread}."),
    })
}

async fn ask(start: &Start, verb: &Verb) -> Result<Value> {
    let (method, path): (_, &[&str]) = match verb {
        Verb::Show { .. } => (Method::GET, &["storage"]),
        Verb::Prune => (Method::POST, &["storage", "prune"]),
        Verb::Delete { thread } => (Method::DELETE, &["threads", thread]),
    };
    remote::call_within(start, PRUNE_TIMEOUT, method, path, &[]).await
}

/// Works on the store itself. It is claimed as a daemon would, so that none starts meanwhile.
async fn work(start: &Start, verb: &Verb) -> Result<Value> {
    let loaded = run::load(start).map_err(|_| anyhow!("the configuration cannot be used"))?;
    let fixed = &loaded.config.fixed;
    let nothing = match &fixed.database.backend {
        Backend::Memory => true,
        Backend::Sqlite { dir } => !dir.join(daemon::STORE).exists(),
        Backend::Postgres { .. } => false,
    };
    if nothing {
        // Asking makes no store.
        return match verb {
            Verb::Delete { thread } => bail!("there is no thread {thread}"),
            Verb::Show { .. } | Verb::Prune => Ok(json!({ "accounts": [] })),
        };
    }
    let _home = Home::take(&fixed.home)?;
    let db = daemon::open(&fixed.database, &fixed.home).await?;
    let done = alone(&db, Folders::new(fixed.home.clone(), None), &loaded.config.hot.retention(), verb).await;
    db.close().await;
    done
}

async fn alone(db: &Db, folders: Folders, rules: &RetentionRules, verb: &Verb) -> Result<Value> {
    let _claim = db.claim().await.context("cannot have the database alone")?;
    let storage = Storage::new(db.clone(), folders);
    match verb {
        Verb::Show { .. } => Ok(gateway::storage::told(&storage.usage(rules, clock::now()).await?)),
        Verb::Prune => Ok(gateway::storage::counts(&storage.prune(rules, clock::now()).await?)),
        Verb::Delete { thread } => match storage.delete(&ThreadId::from(thread.as_str())).await? {
            Deletion::Done => Ok(Value::Null),
            Deletion::InUse => bail!("the thread has a turn that is not done: start pudu and let it end"),
            Deletion::Unknown => bail!("there is no thread {thread}"),
        },
    }
}

fn table(answer: &Value) -> String {
    let accounts = answer.get("accounts").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if accounts.is_empty() {
        return "Nothing is stored yet.".to_owned();
    }
    let mut rows = vec![["ACCOUNT", "THREADS", "LOGS", "FILES", "AUDIT", "OLDEST", "DUE"].map(str::to_owned)];
    rows.extend(accounts.iter().map(row));
    let table = columns(&rows);
    format!(
        "{table}\n\nDUE is what `pudu storage prune` deletes, and the daemon by itself: `retention:` says what."
    )
}

fn row(account: &Value) -> [String; 7] {
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
        account.get("due").map(pruned).unwrap_or_default(),
    ]
}

/// Returns a description of the data that was deleted, or is to be deleted.
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

/// Writes a size for people: `1.5 MiB`.
fn size(bytes: u64) -> String {
    ByteSize::b(bytes).display().iec().to_string()
}

/// Sets rows in columns.
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
