//! Requests of Anthropic's messages: blocks, calls that the next message must answer, and signed thinking.

use super::{
    Ask, Asked, Refusal, add_call, bad, called, content, inline_image, list, result, said, text, text_part,
};
use crate::model::{Reply, seal};
use serde_json::Value;
use std::collections::BTreeSet;

pub(super) fn read(body: &Value) -> Asked {
    let mut messages = Vec::new();
    if !body["system"].is_null() {
        messages.push(said("system", words(&body["system"])));
    }
    for message in list(&body["messages"]) {
        read_message(&mut messages, text(&message["role"]), &message["content"]);
    }
    let tools = list(&body["tools"]).iter().map(|tool| text(&tool["name"]).to_owned());
    Asked { messages, tools: tools.collect() }
}

fn read_message(messages: &mut Vec<Value>, role: &str, blocks: &Value) {
    let kind = |block: &Value| text(&block["type"]).to_owned();
    for block in list(blocks).iter().filter(|block| kind(block) == "tool_result") {
        messages.push(result(&block["tool_use_id"], words(&block["content"])));
    }
    let shown = |block: &&Value| matches!(text(&block["type"]), "text" | "image");
    if blocks.is_string() || list(blocks).iter().any(|block| shown(&block)) {
        messages.push(said(role, words(blocks)));
    }
    for block in list(blocks).iter().filter(|block| kind(block) == "tool_use") {
        add_call(messages, called(text(&block["id"]), &block["name"], block["input"].to_string()));
    }
}

fn words(blocks: &Value) -> Value {
    if blocks.is_string() {
        return blocks.clone();
    }
    let part = |block: &Value| match text(&block["type"]) {
        "text" => Some(text_part(text(&block["text"]))),
        "image" => Some(inline_image(&block["source"]["media_type"], &block["source"]["data"])),
        _ => None,
    };
    content(list(blocks).iter().filter_map(part).collect())
}

pub(super) fn check(ask: &Ask) -> Result<(), Refusal> {
    let header = |name: &str| ask.headers.get(name).is_some_and(|value| !value.is_empty());
    if !header("x-api-key") && !header("authorization") {
        return Err(Reply::status(401).message("x-api-key header is required"));
    }
    if !header("anthropic-version") {
        return bad("anthropic-version: header is required");
    }
    for field in ["max_tokens", "messages", "model"] {
        if ask.body[field].is_null() {
            return bad(format!("{field}: Field required"));
        }
    }
    if ask.body["max_tokens"].as_u64().is_none_or(|most| most == 0) {
        return bad("max_tokens: Input should be greater than or equal to 1");
    }
    check_thinking(&ask.body)?;
    check_tools(list(&ask.body["tools"]))?;
    check_messages(list(&ask.body["messages"]))
}

fn check_thinking(body: &Value) -> Result<(), Refusal> {
    let thinking = &body["thinking"];
    match text(&thinking["type"]) {
        "enabled" => {
            let Some(budget) = thinking["budget_tokens"].as_u64() else {
                return bad("thinking.enabled.budget_tokens: Field required");
            };
            if budget < 1024 {
                return bad("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024");
            }
            if body["max_tokens"].as_u64().is_some_and(|most| most <= budget) {
                return bad("`max_tokens` must be greater than `thinking.budget_tokens`.");
            }
        }
        "adaptive" => {}
        _ => return Ok(()),
    }
    if body["temperature"].as_f64().is_some_and(|heat| (heat - 1.0).abs() > f64::EPSILON) {
        return bad("`temperature` may only be set to 1 when thinking is enabled.");
    }
    Ok(())
}

fn check_tools(tools: &[Value]) -> Result<(), Refusal> {
    let mut names = BTreeSet::new();
    for (at, tool) in tools.iter().enumerate() {
        let name = text(&tool["name"]);
        if !plain(name, 128) {
            return bad(format!(
                "tools.{at}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
            ));
        }
        if tool["input_schema"]["type"] != "object" {
            return bad(format!("tools.{at}.custom.input_schema.type: Input should be 'object'"));
        }
        for word in ["oneOf", "allOf", "anyOf"] {
            if !tool["input_schema"][word].is_null() {
                return bad(format!(
                    "tools.{at}.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level"
                ));
            }
        }
        if !names.insert(name) {
            return bad("tools: Tool names must be unique.");
        }
    }
    Ok(())
}

fn check_messages(messages: &[Value]) -> Result<(), Refusal> {
    let Some(first) = messages.first() else { return bad("messages: at least one message is required") };
    if first["role"] != "user" {
        return bad("messages: first message must use the \"user\" role");
    }
    let merged = merge(messages)?;
    for (at, (role, blocks)) in merged.iter().enumerate() {
        let last = at + 1 == merged.len();
        if blocks.is_empty() && !(last && *role == "assistant") {
            return bad(format!(
                "messages.{at}: all messages must have non-empty content except for the optional final assistant message"
            ));
        }
        check_blocks(at, role, blocks)?;
        let before = at.checked_sub(1).map_or(&[][..], |at| &merged[at].1);
        let after = merged.get(at + 1).map_or(&[][..], |(_, blocks)| blocks);
        check_pairs(at, before, blocks, after)?;
    }
    match merged.last() {
        Some((role, blocks)) if *role == "assistant" => {
            let ends = blocks.last().map_or("", |block| text(&block["text"]));
            if ends.ends_with(char::is_whitespace) {
                return bad("messages: final assistant content cannot end with trailing whitespace");
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Merges consecutive turns of one role.
fn merge(messages: &[Value]) -> Result<Vec<(&str, Vec<Value>)>, Refusal> {
    let mut merged: Vec<(&str, Vec<Value>)> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let role = text(&message["role"]);
        if role != "user" && role != "assistant" {
            return bad(format!(
                "messages: Unexpected role \"{role}\". The Messages API accepts a top-level `system` parameter, not \
                 \"system\" as an input message role."
            ));
        }
        let blocks = match &message["content"] {
            Value::String(words) => vec![text_part(words)],
            Value::Array(blocks) => blocks.clone(),
            _ => return bad(format!("messages.{at}.content: Field required")),
        };
        match merged.last_mut() {
            Some((last, all)) if *last == role => all.extend(blocks),
            _ => merged.push((role, blocks)),
        }
    }
    Ok(merged)
}

fn check_blocks(at: usize, role: &str, blocks: &[Value]) -> Result<(), Refusal> {
    for (n, block) in blocks.iter().enumerate() {
        let place = format!("messages.{at}.content.{n}");
        match (text(&block["type"]), role) {
            ("text", _) if text(&block["text"]).is_empty() => {
                return bad("messages: text content blocks must be non-empty");
            }
            ("text" | "image", _) | ("document" | "tool_result", "user") => {}
            ("thinking", "assistant") => {
                if !seal::holds("thinking", text(&block["thinking"]), text(&block["signature"])) {
                    return bad(format!("{place}: Invalid `signature` in `thinking` block"));
                }
            }
            ("redacted_thinking", "assistant") => {
                if !seal::holds("redacted", "", text(&block["data"])) {
                    return bad(format!("{place}: Invalid `data` in `redacted_thinking` block"));
                }
            }
            ("tool_use", "assistant") => {
                if !plain(text(&block["id"]), usize::MAX) {
                    return bad(format!(
                        "{place}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
                    ));
                }
                if !block["input"].is_object() {
                    return bad(format!("{place}.tool_use.input: Input should be a valid dictionary"));
                }
            }
            (kind @ ("thinking" | "redacted_thinking" | "tool_use" | "tool_result"), _) => {
                return bad(format!("messages.{at}: `{kind}` blocks can not be in `{role}` messages"));
            }
            (kind, _) => {
                return bad(format!(
                    "{place}: Input tag '{kind}' found using 'type' does not match any of the expected tags"
                ));
            }
        }
    }
    Ok(())
}

/// Checks that each call is answered once, at the beginning of the next message.
fn check_pairs(at: usize, before: &[Value], blocks: &[Value], after: &[Value]) -> Result<(), Refusal> {
    let ids = |blocks: &[Value], kind: &str, key: &str| -> Vec<String> {
        let mine = blocks.iter().filter(|block| block["type"] == kind);
        mine.map(|block| text(&block[key]).to_owned()).collect()
    };
    let asked = ids(before, "tool_use", "id");
    let mut answered = BTreeSet::new();
    for (n, block) in blocks.iter().enumerate().filter(|(_, block)| block["type"] == "tool_result") {
        let id = text(&block["tool_use_id"]).to_owned();
        if !asked.contains(&id) {
            return bad(format!(
                "messages.{at}.content.{n}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each \
                 `tool_result` block must have a corresponding `tool_use` block in the previous message."
            ));
        }
        if !answered.insert(id.clone()) {
            return bad(format!(
                "messages.{at}.content.{n}: each tool_use must have a single result. Found multiple `tool_result` blocks \
                 with id: {id}"
            ));
        }
    }
    let calls = ids(blocks, "tool_use", "id");
    if calls.iter().collect::<BTreeSet<_>>().len() != calls.len() {
        return bad("messages: `tool_use` ids must be unique");
    }
    let results = after.iter().take_while(|block| block["type"] == "tool_result");
    let results: Vec<&str> = results.map(|block| text(&block["tool_use_id"])).collect();
    match calls.iter().find(|id| !results.contains(&id.as_str())) {
        Some(id) => bad(format!(
            "messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {id}. Each \
             `tool_use` block must have a corresponding `tool_result` block in the next message."
        )),
        None => Ok(()),
    }
}

fn plain(name: &str, most: usize) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !name.is_empty() && name.len() <= most && name.chars().all(fits)
}
