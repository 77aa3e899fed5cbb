//! Checks Block Kit like the platform: types, required fields and sizes.

use super::error::{Answer, Refusal};
use serde_json::Value;

/// Maximum number of blocks in a message.
const MAX_BLOCKS: usize = 50;
/// Maximum length of a section's text, in characters.
const SECTION: usize = 3000;
/// Maximum total length of Markdown blocks, in characters.
const MARKDOWN: usize = 12_000;
/// Maximum total length of all blocks, in characters; measured, not documented.
const TOGETHER: usize = 13_200;
/// Maximum length of a button's label, value and ID, in characters.
const BUTTON: usize = 75;
const VALUE: usize = 2000;
const ACTION_ID: usize = 255;
/// Maximum number of elements in a row of actions.
const ELEMENTS: usize = 25;

/// Returns the error of blocks, if any.
pub(crate) fn check(blocks: &[Value]) -> Answer<()> {
    if blocks.len() > MAX_BLOCKS {
        return Err(invalid(&format!("no more than {MAX_BLOCKS} items allowed [json-pointer:/blocks]")));
    }
    for (at, block) in blocks.iter().enumerate() {
        check_one(block).map_err(|why| invalid(&format!("{why} [json-pointer:/blocks/{at}]")))?;
    }
    check_ids(blocks)?;
    let sizes = |kind: &str| -> usize {
        blocks.iter().filter(|block| kind.is_empty() || block["type"] == kind).map(text_len).sum()
    };
    if sizes("markdown") > MARKDOWN || sizes("") > TOGETHER {
        return Err(Refusal::new("msg_blocks_too_long"));
    }
    Ok(())
}

fn invalid(why: &str) -> Refusal {
    Refusal::argument("invalid_blocks", why)
}

fn text_len(block: &Value) -> usize {
    let text = &block["text"];
    text.as_str().or_else(|| text["text"].as_str()).map_or(0, |text| text.chars().count())
}

fn check_one(block: &Value) -> Result<(), String> {
    match block["type"].as_str() {
        Some("section") => text(&block["text"], SECTION),
        Some("markdown") if block["text"].is_string() => Ok(()),
        Some("context") => block["elements"]
            .as_array()
            .ok_or("missing required field: elements")?
            .iter()
            .try_for_each(|element| text(element, SECTION)),
        Some("actions") => {
            let elements = block["elements"].as_array().ok_or("missing required field: elements")?;
            if elements.is_empty() || elements.len() > ELEMENTS {
                return Err(format!("must have between 1 and {ELEMENTS} items"));
            }
            elements.iter().try_for_each(button)
        }
        Some("divider") => Ok(()),
        other => Err(format!("unsupported type: {}", other.unwrap_or("missing"))),
    }
}

fn text(text: &Value, most: usize) -> Result<(), String> {
    if !matches!(text["type"].as_str(), Some("mrkdwn" | "plain_text")) {
        return Err("missing required field: text".to_owned());
    }
    let length = text["text"].as_str().map_or(0, |text| text.chars().count());
    match length {
        0 => Err("must be more than 0 characters".to_owned()),
        n if n > most => Err(format!("must be less than {} characters", most + 1)),
        _ => Ok(()),
    }
}

fn button(button: &Value) -> Result<(), String> {
    if button["type"] != "button" || button["text"]["type"] != "plain_text" {
        return Err("only buttons with plain_text are known here".to_owned());
    }
    text(&button["text"], BUTTON)?;
    let fits = |name: &str, most: usize| {
        button[name].as_str().is_none_or(|text| (1..=most).contains(&text.chars().count()))
    };
    if !fits("value", VALUE) || !fits("action_id", ACTION_ID) {
        return Err("value or action_id is too long or empty".to_owned());
    }
    if let Some(style) = button.get("style")
        && !matches!(style.as_str(), Some("primary" | "danger"))
    {
        return Err("invalid style".to_owned());
    }
    Ok(())
}

/// Checks that IDs of actions are unique in a message.
fn check_ids(blocks: &[Value]) -> Answer<()> {
    let elements = blocks.iter().filter_map(|block| block["elements"].as_array()).flatten();
    let mut ids: Vec<&str> = elements.filter_map(|element| element["action_id"].as_str()).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    if ids.len() == all { Ok(()) } else { Err(invalid("`action_id` already exists")) }
}

/// Returns every button: its label, and the whole element.
pub(crate) fn buttons(blocks: &[Value]) -> impl Iterator<Item = (&str, &Value)> {
    let rows = blocks.iter().filter(|block| block["type"] == "actions");
    let all = rows.filter_map(|block| block["elements"].as_array()).flatten();
    all.filter_map(|button| Some((button["text"]["text"].as_str()?, button)))
}
