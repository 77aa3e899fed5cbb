//! `pudu usage`: lists model spending and remaining budgets.

use super::remote::ApiRequest;
use anyhow::Result;
use pudu_config::{LoadedConfig, Start};
use serde_json::Value;
use std::fmt::Write;

/// Table sections: JSON key and heading.
const SECTIONS: [(&str, &str); 5] = [
    ("people", "People"),
    ("rooms", "Groups"),
    ("accounts", "Bots"),
    ("models", "Models"),
    ("callers", "Purposes"),
];

/// Lists the spending of a number of days, including today.
pub(super) async fn usage(start: &Start, days: u32, json: bool) -> Result<String> {
    let report = facts(start, None, days).await?;
    if json {
        return Ok(serde_json::to_string_pretty(&report)?);
    }
    Ok(table(&report))
}

/// Fetches model spending and budget usage. Returns null if there is no store.
pub(super) async fn facts(start: &Start, loaded: Option<&LoadedConfig>, days: u32) -> Result<Value> {
    let request = ApiRequest::get(&["usage"]).query("days", &days).loaded(loaded);
    Ok(request.send_to_store(start).await?.unwrap_or_default())
}

/// Returns one line per exhausted budget.
pub(super) fn used_up(facts: &Value) -> Vec<String> {
    let budgets = list(facts, "budgets");
    budgets.filter(|budget| budget.get("used_up") == Some(&Value::Bool(true))).map(budget_line).collect()
}

fn list<'f>(facts: &'f Value, key: &str) -> impl Iterator<Item = &'f Value> {
    facts.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn table(facts: &Value) -> String {
    let mut text = String::new();
    for (key, title) in SECTIONS {
        let rows: Vec<String> = list(facts, key).map(|row| spent_line(row, key)).collect();
        if !rows.is_empty() {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{title}\n{}\n", rows.join("\n"));
        }
    }
    let budgets: Vec<String> = list(facts, "budgets").map(budget_line).collect();
    if !budgets.is_empty() {
        let _ = writeln!(text, "Budgets\n{}\n", budgets.join("\n"));
    }
    if text.is_empty() {
        return "There is no spending yet.".to_owned();
    }
    text.trim_end().to_owned()
}

fn spent_line(row: &Value, part: &str) -> String {
    let number = |key: &str| row.get(key).and_then(Value::as_i64).unwrap_or(0);
    let costs = row.get("costs").and_then(Value::as_object).into_iter().flatten();
    let costs: String = costs.map(|(currency, amount)| format!(", {currency} {amount}")).collect();
    let estimated = match number("estimated_calls") {
        0 => String::new(),
        calls => format!(" ({calls} estimated)"),
    };
    format!(
        "  {}: {} input tokens, {} output tokens{costs}, {} calls{estimated}",
        name(row, part),
        number("input_tokens"),
        number("output_tokens"),
        number("calls"),
    )
}

fn budget_line(budget: &Value) -> String {
    let text = |key: &str| budget.get(key).and_then(Value::as_str).unwrap_or_default();
    let amount = |key: &str| budget.get(key).map(Value::to_string).unwrap_or_default();
    let used_up = if budget.get("used_up") == Some(&Value::Bool(true)) { ", exhausted" } else { "" };
    let subject = match text("scope") {
        "everybody" => "everybody".to_owned(),
        scope => format!("{scope} {}", name(budget, if scope == "person" { "people" } else { scope })),
    };
    format!(
        "  {subject}, this {}: {} of {} {} spent{used_up}; it resets at {}",
        text("period"),
        amount("spent"),
        amount("limit"),
        text("unit"),
        text("opens"),
    )
}

/// Returns a printable name. Spending of deleted users and of programs that embed pudu has no name.
fn name(row: &Value, part: &str) -> String {
    let text = |key: &str| -> String {
        let text = row.get(key).and_then(Value::as_str).unwrap_or_default();
        let text: String = text.chars().flat_map(char::escape_debug).collect();
        text.replace("\\'", "'").replace("\\\"", "\"")
    };
    match (text("name"), text("who"), part) {
        (name, _, "people") if name.is_empty() => "(deleted users)".to_owned(),
        (name, _, _) if name.is_empty() => "(none)".to_owned(),
        (name, who, _) if who.is_empty() => name,
        (name, who, _) => format!("{who} ({name})"),
    }
}
