//! A fact as a Markdown file: YAML front matter between two `---` lines, a headline, and the text, in DeerFlow's
//! format.
//!
//! Values are written as JSON, which is also YAML. Strings are always quoted, so that none is parsed as a time.

use crate::{
    fact::{Fact, FactCategory, FactId, FactSource, headline, normalize_content},
    scope::MemoryScope,
    time::FactTime,
};
use indexmap::IndexMap;
use pudu_base::UserId;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use serde_saphyr::{budget, options};

/// Maximum size of a fact's file, in bytes.
pub(crate) const MAX_FACT_FILE_BYTES: usize = 256 * 1024;
/// The only allowed state of a fact's file.
const ACTIVE: &str = "active";
/// Version of the format.
const SCHEMA_VERSION: u32 = 2;

/// Front matter of a fact file, in key order.
pub(crate) type FactFrontMatter = IndexMap<String, Value>;

/// Parses a fact's file.
///
/// # Errors
/// If the file is not a valid fact for this name, user and agent. The error gives the reason.
pub(crate) fn read(bytes: &[u8], stem: &str, scope: &MemoryScope) -> Result<Fact, String> {
    let (mut head, body) = split(bytes)?;
    match take_text(&mut head, "status")?.as_deref() {
        None | Some(ACTIVE) => {}
        Some(status) => return Err(format!("`status` is `{status}`, but must be `{ACTIVE}`")),
    }
    fact(head, body, stem, scope)
}

/// Parses the file of a superseded fact. The keys that give the reason are kept in `extra`.
pub(crate) fn read_superseded(bytes: &[u8], stem: &str, scope: &MemoryScope) -> Result<Fact, String> {
    let (mut head, body) = split(bytes)?;
    head.shift_remove("status");
    fact(head, body, stem, scope)
}

fn split(bytes: &[u8]) -> Result<(FactFrontMatter, &str), String> {
    if bytes.len() > MAX_FACT_FILE_BYTES {
        return Err(format!("it is larger than {} KiB", MAX_FACT_FILE_BYTES / 1024));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let missing = || "it does not begin with front matter between two `---` lines".to_owned();
    let (first, rest) = text.split_once('\n').ok_or_else(missing)?;
    if first.trim_end() != "---" {
        return Err(missing());
    }
    let mut end = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            let (head, body) = rest.split_at_checked(end).ok_or_else(missing)?;
            return Ok((yaml(head)?, body.strip_prefix(line).unwrap_or(body)));
        }
        end += line.len();
    }
    Err(missing())
}

fn yaml(text: &str) -> Result<FactFrontMatter, String> {
    let mut head: FactFrontMatter = parse(text)?;
    if TEXT_KEYS.iter().any(|key| head.get(*key).is_some_and(is_misread)) {
        let texts: TextHead = parse(text)?;
        texts.put_into(&mut head);
    }
    Ok(head)
}

fn parse<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let budget = budget! { max_depth: 16, max_nodes: 10_000, max_documents: 1 };
    let options = options! { emit_comments: false, with_snippet: false, budget: budget };
    serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| format!("its front matter is not valid YAML ({error})"))
}

/// Keys whose values are or contain strings.
const TEXT_KEYS: [&str; 9] = [
    "id",
    "category",
    "categoryExtension",
    "topics",
    "source",
    "consolidatedFrom",
    "sourceError",
    "user_id",
    "agent_name",
];

/// Whether a string was parsed as another type. Programs that write YAML 1.1, such as DeerFlow, do not quote strings
/// such as `1e3` and `0o17`, which are numbers in YAML 1.2.
fn is_misread(value: &Value) -> bool {
    match value {
        Value::Number(_) | Value::Bool(_) => true,
        Value::Array(items) => items.iter().any(is_misread),
        Value::Object(items) => items.values().any(is_misread),
        Value::Null | Value::String(_) => false,
    }
}

/// The values of `TEXT_KEYS`, parsed as strings.
#[derive(Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
struct TextHead {
    id: Option<String>,
    category: Option<String>,
    category_extension: Option<String>,
    topics: Option<Vec<String>>,
    source: Option<SourceHead>,
    consolidated_from: Option<Vec<String>>,
    source_error: Option<String>,
    #[serde(rename = "user_id")]
    user_id: Option<String>,
    #[serde(rename = "agent_name")]
    agent_name: Option<String>,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
struct SourceHead {
    r#type: Option<String>,
    thread_id: Option<String>,
}

impl TextHead {
    fn put_into(self, head: &mut FactFrontMatter) {
        let Ok(Value::Object(texts)) = serde_json::to_value(self) else { return };
        for (key, value) in texts {
            if head.get(&key).is_some_and(is_misread) {
                head.insert(key, value);
            }
        }
    }
}

fn fact(mut head: FactFrontMatter, body: &str, stem: &str, scope: &MemoryScope) -> Result<Fact, String> {
    let raw_user = check_owner(&mut head, stem, scope)?;
    head.shift_remove("schemaVersion");
    let (title, content) = body_of(body);
    if content.is_empty() {
        return Err("it has no text".to_owned());
    }
    let category = take_text(&mut head, "category")?.unwrap_or_default();
    let extension = take_text(&mut head, "categoryExtension")?;
    let created = take_time(&mut head, "createdAt")?;
    let updated = take_time(&mut head, "updatedAt")?;
    let id = FactId::new(stem).map_err(|error| error.to_string())?;
    let created_at = created.or(updated).unwrap_or_default();
    Ok(Fact {
        category: FactCategory::parse(&category, extension.as_deref()),
        title: title.filter(|title| *title != headline(&content)),
        topics: take_list(&mut head, "topics")?,
        confidence: take_confidence(&mut head)?,
        updated_at: updated.unwrap_or(created_at),
        source: take_source(&mut head)?,
        source_error: take_text(&mut head, "sourceError")?,
        expected_valid_days: take_number(&mut head, "expected_valid_days")?
            .and_then(|n| u32::try_from(n).ok()),
        last_confirmed_at: take_time(&mut head, "lastConfirmedAt")?,
        confirmation_count: take_number(&mut head, "confirmationCount")?.and_then(|n| u32::try_from(n).ok()),
        consolidated_from: take_list(&mut head, "consolidatedFrom")?,
        consolidated_at: take_time(&mut head, "consolidatedAt")?,
        revision: take_number(&mut head, "revision")?.unwrap_or(1).max(1),
        raw_user,
        extra: head,
        ..Fact::new(id, &content, FactCategory::Context, 0.0, created_at)
    })
}

/// Checks that a file's owner and name match its path, and returns the user's raw id.
fn check_owner(
    head: &mut FactFrontMatter,
    stem: &str,
    scope: &MemoryScope,
) -> Result<Option<String>, String> {
    let Some(Value::String(id)) = head.shift_remove("id") else { return Err("`id` is missing".to_owned()) };
    if id != stem {
        return Err(format!("`id` is `{id}`, but the file is named `{stem}`"));
    }
    let user = take_text(head, "user_id")?;
    let owns = |raw: &String| UserId::from_raw(raw).is_ok_and(|user| user == *scope.user());
    if !user.as_ref().is_none_or(owns) {
        return Err("`user_id` is another user's".to_owned());
    }
    let agent = take_text(head, "agent_name")?;
    if !agent.is_none_or(|agent| agent.eq_ignore_ascii_case(scope.agent())) {
        return Err("`agent_name` is another agent's".to_owned());
    }
    Ok(user)
}

/// Splits the headline from the text.
fn body_of(body: &str) -> (Option<String>, String) {
    let body = normalize_content(body.trim_start_matches(['\n', '\r']));
    match body.strip_prefix("# ") {
        Some(rest) => {
            let (title, content) = rest.split_once('\n').unwrap_or((rest, ""));
            let title = title.trim();
            (Some(title.to_owned()).filter(|title| !title.is_empty()), normalize_content(content))
        }
        None => (None, body),
    }
}

fn take_text(head: &mut FactFrontMatter, key: &str) -> Result<Option<String>, String> {
    match head.shift_remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("`{key}` must be a string")),
    }
}

fn take_time(head: &mut FactFrontMatter, key: &str) -> Result<Option<FactTime>, String> {
    let text = take_text(head, key)?.filter(|text| !text.trim().is_empty());
    text.map(|text| FactTime::parse(&text).ok_or_else(|| format!("`{key}` is not a valid time"))).transpose()
}

fn take_number(head: &mut FactFrontMatter, key: &str) -> Result<Option<u64>, String> {
    match head.shift_remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value.as_u64().map(Some).ok_or_else(|| format!("`{key}` is not a whole number")),
    }
}

fn take_confidence(head: &mut FactFrontMatter) -> Result<f64, String> {
    let value = head.shift_remove("confidence").unwrap_or(json!(0.5));
    let number = value.as_f64().filter(|number| (0.0..=1.0).contains(number));
    number.ok_or_else(|| "`confidence` must be a number from 0 to 1".to_owned())
}

fn take_list(head: &mut FactFrontMatter, key: &str) -> Result<Vec<String>, String> {
    let wrong = || format!("`{key}` must be a list of strings");
    match head.shift_remove(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => {
            items.into_iter().map(|item| item.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
        }
        Some(_) => Err(wrong()),
    }
}

fn take_source(head: &mut FactFrontMatter) -> Result<FactSource, String> {
    match head.shift_remove("source") {
        None | Some(Value::Null) => Ok(FactSource::parse("unknown")),
        Some(Value::String(text)) => Ok(FactSource::parse(&text)),
        Some(Value::Object(source)) => {
            let text = |key: &str| source.get(key).and_then(Value::as_str).map(str::to_owned);
            Ok(FactSource {
                kind: text("type").unwrap_or_else(|| "unknown".to_owned()),
                thread: text("threadId"),
            })
        }
        Some(_) => Err("`source` must be text or a map".to_owned()),
    }
}

/// Renders a fact's file, and checks that it can be parsed.
///
/// # Errors
/// When it cannot be parsed: it is too large, or unknown keys are nested too deeply.
pub(crate) fn write(fact: &Fact, scope: &MemoryScope) -> Result<String, String> {
    let text = render(fact, scope, ACTIVE, &[]);
    read(text.as_bytes(), fact.id.as_str(), scope)?;
    Ok(text)
}

/// Renders the file of a superseded fact, with additional keys for the reason.
pub(crate) fn write_superseded(fact: &Fact, scope: &MemoryScope, why: &[(&str, Value)]) -> String {
    render(fact, scope, "superseded", why)
}

fn render(fact: &Fact, scope: &MemoryScope, status: &str, more: &[(&str, Value)]) -> String {
    let mut head = String::new();
    for (key, value) in keys(fact, scope, status) {
        line(&mut head, key, &value);
    }
    for (key, value) in &fact.extra {
        if !more.iter().any(|(other, _)| other == key) {
            line(&mut head, key, value);
        }
    }
    for (key, value) in more {
        line(&mut head, key, value);
    }
    format!("---\n{head}---\n\n# {}\n\n{}\n", fact.headline().replace('\n', " "), fact.content)
}

/// Lists the known keys in DeerFlow's order, without optional ones that have no value.
fn keys(fact: &Fact, scope: &MemoryScope, status: &str) -> Vec<(&'static str, Value)> {
    let time = |time: FactTime| json!(time.to_string());
    let mut keys = vec![
        ("id", json!(fact.id.as_str())),
        ("category", json!(fact.category.name())),
        ("confidence", json!(fact.confidence)),
        ("createdAt", time(fact.created_at)),
        ("source", json!({"type": fact.source.kind, "threadId": fact.source.thread})),
        ("schemaVersion", json!(SCHEMA_VERSION)),
    ];
    keys.extend(fact.category.extension().map(|extension| ("categoryExtension", json!(extension))));
    keys.extend([
        ("status", json!(status)),
        ("topics", json!(fact.topics)),
        ("consolidatedFrom", json!(fact.consolidated_from)),
        ("updatedAt", time(fact.updated_at)),
        ("revision", json!(fact.revision)),
        ("user_id", json!(fact.raw_user.as_deref().unwrap_or(scope.user().as_str()))),
        ("agent_name", json!(scope.agent())),
    ]);
    keys.extend(fact.source_error.as_ref().map(|text| ("sourceError", json!(text))));
    keys.extend(fact.expected_valid_days.map(|days| ("expected_valid_days", json!(days))));
    keys.extend(fact.last_confirmed_at.map(|at| ("lastConfirmedAt", time(at))));
    keys.extend(fact.confirmation_count.map(|count| ("confirmationCount", json!(count))));
    keys.extend(fact.consolidated_at.map(|at| ("consolidatedAt", time(at))));
    keys
}

fn line(head: &mut String, key: &str, value: &Value) {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let bare = key.starts_with(|c: char| c.is_ascii_alphabetic()) && key.chars().all(plain);
    let key = if bare { key.to_owned() } else { printable(&json!(key)) };
    head.push_str(&format!("{key}: {}\n", printable(value)));
}

/// Writes JSON that is also YAML: characters that YAML does not allow are escaped, and small numbers have no exponent.
fn printable(value: &Value) -> String {
    if let Some(number) = value.as_f64().filter(|_| value.is_f64()) {
        let text = number.to_string();
        return if text.contains('.') { text } else { format!("{text}.0") };
    }
    let text = value.to_string();
    let hidden = |c: char| matches!(u32::from(c), 0x7F..=0x9F | 0x2028 | 0x2029 | 0xFEFF | 0xFFFE | 0xFFFF);
    text.chars().fold(String::new(), |mut text, c| {
        if hidden(c) {
            text.push_str(&format!("\\u{:04x}", u32::from(c)))
        } else {
            text.push(c)
        }
        text
    })
}

#[cfg(test)]
mod tests;
