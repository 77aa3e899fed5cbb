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
    let text = |key: &str| deed.get(key).and_then(Value::as_str).unwrap_or_default();
    let end =
        match (deed.get("code").and_then(Value::as_i64), deed.get("ended").is_some_and(|at| !at.is_null())) {
            (Some(code), _) => format!("exit {code}"),
            (None, true) => "over".to_owned(),
            (None, false) => "not ended".to_owned(),
        };
    // One deed is one line, whatever a command has in it.
    let detail: String = text("detail").chars().map(plain).collect();
    let (account, person) = (text("account"), text("person"));
    format!("{}  {account}:{person}  {}  {}  {end}  {detail}", text("at"), text("action"), text("verdict"))
}

/// Writes what would not be seen as a program writes it; quotes need not be.
fn plain(c: char) -> String {
    if matches!(c, '"' | '\'') { c.to_string() } else { c.escape_debug().to_string() }
}
