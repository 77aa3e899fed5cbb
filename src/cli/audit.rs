//! `pudu audit`: what agents did with their sandboxes, and who approved it.

use super::remote;
use crate::config::Start;
use anyhow::Result;
use pudu_client::net::reqwest::Method;
use serde_json::Value;

/// Lists the newest deeds, the newest last.
pub(super) async fn audit(start: &Start, thread: Option<&str>, most: u32) -> Result<String> {
    let most = most.to_string();
    let mut query = vec![("limit", most.as_str())];
    query.extend(thread.map(|thread| ("thread", thread)));
    let told = remote::call(start, Method::GET, &["audit"], &query).await?;
    let deeds = told.get("deeds").and_then(Value::as_array).cloned().unwrap_or_default();
    if deeds.is_empty() {
        return Ok("Nothing was done yet.".to_owned());
    }
    Ok(deeds.iter().rev().map(line).collect::<Vec<_>>().join("\n"))
}

fn line(deed: &Value) -> String {
    // One deed is one line, whatever a command has in it.
    let text = |key: &str| -> String {
        deed.get(key).and_then(Value::as_str).unwrap_or_default().chars().map(plain).collect()
    };
    let [at, account, person, thread] = ["at", "account", "person", "thread"].map(text);
    let [action, verdict, detail] = ["action", "verdict", "detail"].map(text);
    format!("{at}  {account}:{person}  {thread}  {action}  {verdict}  {}  {detail}", end(deed))
}

fn end(deed: &Value) -> String {
    let code = deed.get("code").and_then(Value::as_i64);
    match (code, deed.get("killed").and_then(Value::as_str)) {
        (_, Some(why)) => format!("killed: {why}"),
        (Some(code), None) => format!("exit {code}"),
        (None, None) if deed.get("ended").is_some_and(|at| !at.is_null()) => "over".to_owned(),
        (None, None) => "not ended".to_owned(),
    }
}

/// Writes what would not be seen as a program writes it; quotes need not be.
fn plain(c: char) -> String {
    if matches!(c, '"' | '\'') { c.to_string() } else { c.escape_debug().to_string() }
}
