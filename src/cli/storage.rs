//! `pudu storage`: shows and prunes stored data, and deletes threads.

use super::{remote::ApiRequest, table::columns};
use anyhow::{Context, Result, bail};
use bytesize::ByteSize;
use clap::Subcommand;
use pudu_base::foreign;
use pudu_config::Start;
use pudu_gateway::{LISTED_THREADS, MAX_LISTED_THREADS, thread};
use pudu_net::reqwest::Method;
use serde_json::Value;

/// Maximum length of a listed title, in characters.
const MAX_TITLE_CHARS: usize = 60;

#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    /// Show how much data each bot stores, and how much the next prune will delete.
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
        && thread::parse(thread).is_none()
    {
        bail!("{}", thread::INVALID_ID);
    }
    let answer = answer(start, verb).await?;
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

async fn answer(start: &Start, verb: &Verb) -> Result<Value> {
    match verb {
        Verb::Show { .. } => ApiRequest::get(&["storage"]).long().send(start).await,
        Verb::Threads { account, limit, .. } => {
            let request = ApiRequest::get(&["threads"]).query("limit", limit);
            let request = account.iter().fold(request, |request, account| request.query("account", account));
            request.long().send(start).await
        }
        Verb::Prune => {
            let request = ApiRequest::change(Method::POST, &["storage", "prune"]).with_files();
            Ok(request.send_to_store(start).await?.unwrap_or_default())
        }
        Verb::Delete { thread } => {
            let request = ApiRequest::change(Method::DELETE, &["storage", "threads", thread]).with_files();
            request.send_to_store(start).await?.context("there is no such thread")
        }
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
        "{table}\n\nKEEPS: the limits of `retention:`. DUE: what `pudu storage prune` or the daemon will delete next."
    )
}

/// Parses the number of threads.
fn limit(text: &str) -> Result<usize, String> {
    let limit = text.parse().ok().filter(|limit| (1..=MAX_LISTED_THREADS).contains(limit));
    limit.ok_or_else(|| format!("must be between 1 and {MAX_LISTED_THREADS}"))
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

pub(super) fn several(count: u64, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

fn number(of: &Value, key: &str) -> u64 {
    of.get(key).and_then(Value::as_u64).unwrap_or(0)
}

/// Formats a size: `1.5 MiB`.
fn size(bytes: u64) -> String {
    ByteSize::b(bytes).display().iec().to_string()
}
