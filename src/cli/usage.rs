//! `pudu usage`: lists model spending and remaining budgets, from the daemon of this folder, or from the store if there
//! is no daemon.

use super::{remote, run};
use anyhow::{Context, Result, anyhow};
use pudu_client::net::reqwest::Method;
use pudu_config::{LoadedConfig, Start};
use pudu_daemon::store;
use pudu_gateway as gateway;
use pudu_kit::home;
use pudu_people::rights;
use serde_json::Value;
use std::fmt::Write;

/// Sections of the table: keys and titles.
const PARTS: [(&str, &str); 5] = [
    ("people", "People"),
    ("rooms", "Rooms"),
    ("accounts", "Accounts"),
    ("models", "Models"),
    ("callers", "Purposes"),
];

/// Lists the spending of a number of days, including today.
pub(super) async fn usage(start: &Start, days: u32, json: bool) -> Result<String> {
    let loaded = run::load(start).map_err(|_| anyhow!("the configuration cannot be used"))?;
    let facts = facts(start, &loaded, days).await?;
    if json {
        return Ok(serde_json::to_string_pretty(&facts)?);
    }
    Ok(table(&facts))
}

/// Returns the spending and the use of budgets.
pub(super) async fn facts(start: &Start, loaded: &LoadedConfig, days: u32) -> Result<Value> {
    let fixed = &loaded.config.fixed;
    if home::running_url(&fixed.home).is_some() {
        let days = days.to_string();
        return remote::call(start, Method::GET, &["usage"], &[("days", &days)]).await;
    }
    if !store::has_store(&fixed.database.backend) {
        return Ok(Value::Null);
    }
    let db = store::open(&fixed.database, &fixed.home).await?;
    let hot = &loaded.config.hot;
    let facts = async {
        let known = rights::known(&db, &fixed.home, hot.timing.unpaired).await?;
        gateway::usage::facts(&db, &hot.budgets, &known, days).await.context("the store cannot be read")
    };
    let facts = facts.await;
    db.close().await;
    facts
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
    for (key, title) in PARTS {
        let rows: Vec<String> = list(facts, key).map(|row| spent_line(row, key)).collect();
        if !rows.is_empty() {
            // Writing into a string cannot fail.
            let _ = writeln!(text, "{title}\n{}\n", rows.join("\n"));
        }
    }
    let budgets: Vec<String> = list(facts, "budgets").map(budget_line).collect();
    if !budgets.is_empty() {
        let _ = writeln!(text, "Budgets\n{}\n", budgets.join("\n"));
    }
    if text.is_empty() {
        return "Nothing was spent.".to_owned();
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
        "  {}: {} tokens read, {} written{costs}, in {} calls{estimated}",
        name(row, part),
        number("input_tokens"),
        number("output_tokens"),
        number("calls"),
    )
}

fn budget_line(budget: &Value) -> String {
    let text = |key: &str| budget.get(key).and_then(Value::as_str).unwrap_or_default();
    let amount = |key: &str| budget.get(key).map(Value::to_string).unwrap_or_default();
    let used_up = if budget.get("used_up") == Some(&Value::Bool(true)) { ", used up" } else { "" };
    let whose = match text("scope") {
        "everybody" => "everybody".to_owned(),
        scope => format!("{scope} {}", name(budget, if scope == "person" { "people" } else { scope })),
    };
    format!(
        "  {whose}, this {}: {} of {} {} spent{used_up}; it resets at {}",
        text("period"),
        amount("spent"),
        amount("limit"),
        text("unit"),
        text("opens"),
    )
}

/// Returns a printable name. Spending of deleted users has no name, nor does that of programs that embed pudu.
fn name(row: &Value, part: &str) -> String {
    let text = |key: &str| -> String {
        let text = row.get(key).and_then(Value::as_str).unwrap_or_default();
        let text: String = text.chars().flat_map(char::escape_debug).collect();
        text.replace("\\'", "'").replace("\\\"", "\"")
    };
    match (text("name"), text("who"), part) {
        (name, _, "people") if name.is_empty() => "(forgotten people)".to_owned(),
        (name, _, _) if name.is_empty() => "(none)".to_owned(),
        (name, who, _) if who.is_empty() => name,
        (name, who, _) => format!("{who} ({name})"),
    }
}
