//! `pudu audit`: lists sandbox actions of agents and their approvals, from the daemon of this folder, or from the store
//! if there is no daemon.

use super::{remote, run};
use anyhow::{Context, Result, anyhow};
use pudu_client::{
    base::ThreadId,
    net::reqwest::Method,
    store::{ABANDONED, AuditEntry, StoreError},
};
use pudu_config::{Backend, Start};
use pudu_daemon::store;
use pudu_dispatch::bus::STORE_TIMEOUT;
use pudu_gateway as gateway;
use pudu_kit::home;
use pudu_people::names::PeopleNames;
use serde_json::Value;

/// Lists the newest entries, oldest first.
pub(super) async fn audit(start: &Start, thread: Option<ThreadId>, most: u32, json: bool) -> Result<String> {
    let mut entries = match home::running_url(&start.home()) {
        Some(_) => asked(start, thread.as_ref(), most).await?,
        None => read(start, thread.as_ref(), most).await?,
    };
    entries.reverse();
    if json {
        return Ok(serde_json::to_string_pretty(&entries)?);
    }
    if entries.is_empty() {
        return Ok(match thread {
            Some(thread) => format!(
                "Nothing was done in a thread {thread}; `pudu audit` names those in which something was."
            ),
            None => "Nothing was done yet.".to_owned(),
        });
    }
    Ok(entries.iter().map(line).collect::<Vec<_>>().join("\n"))
}

async fn asked(start: &Start, thread: Option<&ThreadId>, most: u32) -> Result<Vec<Value>> {
    let most = most.to_string();
    let mut query = vec![("limit", most.as_str())];
    query.extend(thread.map(|thread| ("thread", thread.as_str())));
    let told = remote::call(start, Method::GET, &["audit"], &query).await?;
    Ok(told.get("deeds").and_then(Value::as_array).cloned().unwrap_or_default())
}

async fn read(start: &Start, thread: Option<&ThreadId>, most: u32) -> Result<Vec<Value>> {
    let loaded = run::load(start).map_err(|_| anyhow!("the configuration cannot be used"))?;
    let fixed = &loaded.config.fixed;
    if !store::has_store(&fixed.database.backend) {
        return Ok(Vec::new());
    }
    let db = store::open(&fixed.database, &fixed.home).await?;
    let read = async {
        let db = db.within(STORE_TIMEOUT);
        Ok::<_, StoreError>((db.audit_entries(thread, most).await?, PeopleNames::read(&db).await?))
    };
    let read = read.await.context("the store cannot be read");
    db.close().await;
    let (entries, names) = read?;
    // No daemon is running, so open entries were abandoned. The next daemon marks them.
    let alone = matches!(fixed.database.backend, Backend::Sqlite { .. }) && !home::is_taken(&fixed.home);
    let close = |entry: AuditEntry| match entry.ended {
        None if alone => AuditEntry { code: Some(ABANDONED), ..entry },
        _ => entry,
    };
    Ok(entries.into_iter().map(close).map(|entry| gateway::audit::to_json(&entry, &names)).collect())
}

fn line(entry: &Value) -> String {
    // Each entry is one line, whatever its command contains.
    let text = |key: &str| -> String {
        entry.get(key).and_then(Value::as_str).unwrap_or_default().chars().map(plain).collect()
    };
    let [at, account, thread] = ["at", "account", "thread"].map(text);
    let named = entry.get("name").is_some_and(|name| !name.is_null());
    let person = text(if named { "name" } else { "person" });
    let [action, verdict, detail] = ["action", "verdict", "detail"].map(text);
    format!("{at}  {account}:{person}  {thread}  {action}  {verdict}  {}  {detail}", end(entry))
}

fn end(entry: &Value) -> String {
    let code = entry.get("code").and_then(Value::as_i64);
    match (code, entry.get("killed").and_then(Value::as_str)) {
        (_, Some(why @ ("stopped" | "the daemon ended"))) => why.to_owned(),
        (_, Some(why)) => format!("killed: {why}"),
        (Some(code), None) => format!("exit {code}"),
        (None, None) if entry.get("ended").is_some_and(|at| !at.is_null()) => "over".to_owned(),
        (None, None) => "not ended".to_owned(),
    }
}

/// Escapes invisible characters; quotes are unchanged.
fn plain(c: char) -> String {
    if matches!(c, '"' | '\'') { c.to_string() } else { c.escape_debug().to_string() }
}
