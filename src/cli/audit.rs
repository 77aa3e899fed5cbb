//! `pudu audit`: lists sandbox actions of agents and their approvals.

use super::{remote::ApiRequest, table::columns};
use anyhow::Result;
use pudu_config::Start;
use serde_json::Value;
use std::iter;

/// Lists the newest entries, oldest first.
pub(super) async fn audit(start: &Start, thread: Option<&str>, most: u32, json: bool) -> Result<String> {
    let request = ApiRequest::get(&["audit"]).query("limit", &most);
    let request = thread.iter().fold(request, |request, thread| request.query("thread", thread));
    let answer = request.send(start).await?;
    let mut entries = answer.get("deeds").and_then(Value::as_array).cloned().unwrap_or_default();
    entries.reverse();
    if json {
        return Ok(serde_json::to_string_pretty(&entries)?);
    }
    if entries.is_empty() {
        return Ok(match thread {
            Some(thread) => {
                format!("There are no entries for the thread {thread}; `pudu audit` lists all entries.")
            }
            None => "There are no entries yet.".to_owned(),
        });
    }
    let header = ["TIME", "USER", "THREAD", "ACTION", "DECISION", "RESULT", "DETAIL"].map(str::to_owned);
    let rows: Vec<_> = iter::once(header).chain(entries.iter().map(row)).collect();
    Ok(columns(&rows))
}

/// Returns the columns of an entry. Each entry is one line, even if its command contains line breaks.
fn row(entry: &Value) -> [String; 7] {
    let text = |key: &str| -> String {
        entry.get(key).and_then(Value::as_str).unwrap_or_default().chars().map(plain).collect()
    };
    let has_name = entry.get("name").is_some_and(|name| !name.is_null());
    let account_and_user = [text("account"), text(if has_name { "name" } else { "person" })];
    let user = account_and_user.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(":");
    let [at, thread, action, decision, detail] = ["at", "thread", "action", "verdict", "detail"].map(text);
    [at, user, thread, action, decision, end(entry), detail]
        .map(|cell| if cell.is_empty() { "-".to_owned() } else { cell })
}

fn end(entry: &Value) -> String {
    let code = entry.get("code").and_then(Value::as_i64);
    match (code, entry.get("killed").and_then(Value::as_str)) {
        (_, Some(why @ ("stopped" | "the daemon ended"))) => why.to_owned(),
        (_, Some(why)) => format!("killed: {why}"),
        (Some(code), None) => format!("exit {code}"),
        (None, None) if entry.get("ended").is_some_and(|at| !at.is_null()) => "ended".to_owned(),
        (None, None) => "not ended".to_owned(),
    }
}

/// Escapes invisible characters; quotes are unchanged.
fn plain(c: char) -> String {
    if matches!(c, '"' | '\'') { c.to_string() } else { c.escape_debug().to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_entry_has_a_text_in_each_column() {
        let check = |entry: Value, expected: [&str; 7]| assert_eq!(row(&entry), expected, "{entry}");
        check(
            json!({"at": "T", "account": "api", "person": "1", "name": "Ada", "thread": "t", "action": "exec",
                   "verdict": "allowed", "detail": "echo \"a\"\n", "code": 0}),
            ["T", "api:Ada", "t", "exec", "allowed", "exit 0", "echo \"a\"\\n"],
        );
        check(
            json!({"at": "T", "account": "api", "person": "", "name": null, "action": "import", "ended": "T"}),
            ["T", "api", "-", "import", "-", "ended", "-"],
        );
        check(json!({}), ["-", "-", "-", "-", "-", "not ended", "-"]);
    }
}
