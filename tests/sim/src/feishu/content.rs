//! A message's content: whether the platform accepts it, and how users see it.

use super::{
    markdown,
    refusal::{Answer, Refusal},
};
use serde_json::{Value, json};

/// Maximum size of a text's body, in bytes.
const TEXT: usize = 150 * 1024;
/// Maximum size of a post's or a card's body, in bytes.
pub(crate) const CARD: usize = 30 * 1024;
/// Maximum number of tables in a card.
const TABLES: usize = 5;
/// Maximum number of elements in a card.
const ELEMENTS: usize = 200;
/// Maximum length of an element's name.
const ELEMENT_ID: usize = 20;

/// Visible content.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Face {
    pub(crate) text: String,
    pub(crate) buttons: Vec<(String, Value)>,
    pub(crate) pings: bool,
    pub(crate) growing: bool,
}

/// Checks whether the platform accepts this content.
pub(crate) fn check(kind: &str, content: &str) -> Answer<Value> {
    let json: Value = serde_json::from_str(content).map_err(|_| Refusal::params("content is not a JSON"))?;
    let need = |field: &str| match json.get(field).and_then(Value::as_str) {
        Some(text) if !text.is_empty() => Ok(()),
        _ => Err(Refusal::params(&format!("content has no {field}"))),
    };
    let too_long = || Refusal::new(230_025, "The length of the message content reaches its limit.");
    match kind {
        "text" => need("text")?,
        "post"
            if !json
                .as_object()
                .is_some_and(|locales| locales.values().all(|one| one["content"].is_array())) =>
        {
            return Err(Refusal::params("post content is invalid"));
        }
        "image" => need("image_key")?,
        "file" | "audio" | "media" => need("file_key")?,
        "post" | "interactive" => {}
        other => return Err(Refusal::params(&format!("invalid msg_type: {other}"))),
    }
    let most = if kind == "text" { TEXT } else { CARD };
    if content.len() > most {
        return Err(too_long());
    }
    Ok(json)
}

/// Checks a card.
pub(crate) fn check_card(card: &Value) -> Result<(), (i64, String)> {
    let new = card["schema"] == "2.0";
    let elements = if new { card.pointer("/body/elements") } else { card.get("elements") };
    if !elements.is_some_and(Value::is_array) {
        return Err((200_621, "parse card json err: no elements".to_owned()));
    }
    let mut count = Count::default();
    count.walk(card, new)?;
    if count.elements > ELEMENTS {
        return Err((11_310, "element exceeds the limit".to_owned()));
    }
    if count.tables > TABLES {
        return Err((11_310, "card table number over limit".to_owned()));
    }
    let mut ids = count.ids.clone();
    ids.sort_unstable();
    ids.dedup();
    if ids.len() != count.ids.len() {
        return Err((300_301, "element_id is not unique".to_owned()));
    }
    Ok(())
}

#[derive(Default)]
struct Count {
    elements: usize,
    tables: usize,
    ids: Vec<String>,
}

impl Count {
    fn walk(&mut self, node: &Value, new: bool) -> Result<(), (i64, String)> {
        match node {
            Value::Array(all) => all.iter().try_for_each(|one| self.walk(one, new)),
            Value::Object(fields) => {
                self.element(node, new)?;
                fields.values().try_for_each(|one| self.walk(one, new))
            }
            _ => Ok(()),
        }
    }

    fn element(&mut self, node: &Value, new: bool) -> Result<(), (i64, String)> {
        let tag = node["tag"].as_str().unwrap_or_default();
        if new && matches!(tag, "action" | "note") {
            return Err((200_621, format!("not support tag: {tag}")));
        }
        if tag == "form" {
            form(node)?;
        }
        self.elements += usize::from(!tag.is_empty() && tag != "plain_text" && tag != "lark_md");
        self.tables += usize::from(tag == "table");
        if tag == "markdown" {
            self.tables += markdown::tables(node["content"].as_str().unwrap_or_default());
        }
        if let Some(id) = node["element_id"].as_str() {
            let letters = id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if !letters || !id.starts_with(|c: char| c.is_ascii_alphabetic()) || id.len() > ELEMENT_ID {
                return Err((300_301, format!("element_id is invalid: {id}")));
            }
            self.ids.push(id.to_owned());
        }
        Ok(())
    }
}

/// Checks a form: names, and a button that submits it.
fn form(form: &Value) -> Result<(), (i64, String)> {
    let wrong = |why: &str| Err((200_621, format!("parse card json err: {why}")));
    let elements = form["elements"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut names = Vec::new();
    for element in elements {
        let tag = element["tag"].as_str().unwrap_or_default();
        if matches!(tag, "div" | "markdown") {
            continue;
        }
        let Some(name) = element["name"].as_str().filter(|name| !name.is_empty()) else {
            return wrong("an element of a form has no name");
        };
        names.push(name);
        let options = element["options"].as_array().map_or(0, Vec::len);
        match tag {
            "input" if element["max_length"].as_u64().is_none_or(|max| (1..=1000).contains(&max)) => {}
            "select_static" | "multi_select_static" if options > 0 => {}
            "date_picker" | "checker" | "button" => {}
            _ => return wrong("an element of a form is invalid"),
        }
    }
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    let submits = elements.iter().any(|element| element["form_action_type"] == "submit");
    if names.len() < all || form["name"].as_str().is_none_or(str::is_empty) || !submits {
        return wrong("a form needs unique names and a button that submits it");
    }
    Ok(())
}

/// Returns the visible content of a message.
pub(crate) fn face(kind: &str, content: &str) -> Face {
    let json: Value = serde_json::from_str(content).unwrap_or_default();
    match kind {
        "text" => {
            let raw = json["text"].as_str().unwrap_or_default();
            Face { text: markdown::tagged(raw), pings: markdown::pings(raw), ..Face::default() }
        }
        "post" => post(json.as_object().and_then(|locales| locales.values().next()).unwrap_or(&Value::Null)),
        "interactive" => card(&json),
        _ => Face::default(),
    }
}

fn post(post: &Value) -> Face {
    let mut face = Face::default();
    let mut lines: Vec<String> =
        post["title"].as_str().filter(|one| !one.is_empty()).map(str::to_owned).into_iter().collect();
    for line in post["content"].as_array().into_iter().flatten() {
        let mut text = String::new();
        for run in line.as_array().into_iter().flatten() {
            match run["tag"].as_str().unwrap_or_default() {
                "at" => {
                    face.pings = true;
                    text.push('@');
                    text.push_str(run["user_name"].as_str().or(run["user_id"].as_str()).unwrap_or_default());
                }
                "md" => {
                    let raw = run["text"].as_str().unwrap_or_default();
                    face.pings |= markdown::pings(raw);
                    text.push_str(&markdown::plain(raw));
                }
                _ => text.push_str(run["text"].as_str().unwrap_or_default()),
            }
        }
        lines.push(text);
    }
    face.text = lines.join("\n");
    face
}

/// Returns the visible content of a card.
pub(crate) fn card(card: &Value) -> Face {
    let mut face = Face::default();
    let mut lines = Vec::new();
    if let Some(title) = card.pointer("/header/title/content").and_then(Value::as_str) {
        lines.push(title.to_owned());
    }
    let elements = card.pointer("/body/elements").or_else(|| card.get("elements")).unwrap_or(&Value::Null);
    gather(elements, &mut face, &mut lines);
    face.text = lines.join("\n");
    face
}

fn gather(node: &Value, face: &mut Face, lines: &mut Vec<String>) {
    if let Some(all) = node.as_array() {
        return all.iter().for_each(|one| gather(one, face, lines));
    }
    if !node.is_object() {
        return;
    }
    let tag = node["tag"].as_str().unwrap_or_default();
    let raw = node["content"].as_str().or_else(|| node.pointer("/text/content").and_then(Value::as_str));
    match (tag, raw) {
        ("button", label) => {
            let label = label.unwrap_or_default().to_owned();
            let value = node.pointer("/behaviors/0/value").or_else(|| node.get("value"));
            face.buttons.push((label, value.cloned().unwrap_or(json!({}))));
        }
        ("markdown" | "lark_md", Some(raw)) => {
            face.pings |= markdown::pings(raw);
            lines.extend(Some(markdown::plain(raw)).filter(|text| !text.is_empty()));
        }
        ("div" | "plain_text", Some(raw)) => {
            let rich = node.pointer("/text/tag").is_some_and(|tag| tag == "lark_md");
            face.pings |= rich && markdown::pings(raw);
            let text = if rich { markdown::plain(raw) } else { raw.to_owned() };
            lines.extend(Some(text).filter(|text| !text.is_empty()));
        }
        _ => {}
    }
    for inner in ["elements", "columns", "actions"] {
        gather(&node[inner], face, lines);
    }
}
