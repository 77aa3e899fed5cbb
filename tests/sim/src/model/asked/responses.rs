//! Requests of responses: items instead of messages, and encrypted reasoning that is sent back.

use super::{
    Ask, Asked, Refusal, add_call, bad, called, content, image_part, list, result, said, text, text_part,
};
use crate::model::{Reply, seal};
use serde_json::Value;
use std::collections::BTreeSet;

pub(super) fn read(body: &Value) -> Asked {
    let mut messages = Vec::new();
    if let Some(instructions) = body["instructions"].as_str() {
        messages.push(said("system", instructions));
    }
    if let Some(words) = body["input"].as_str() {
        messages.push(said("user", words));
    }
    for item in list(&body["input"]) {
        match kind(item) {
            "message" => {
                let role = if item["role"] == "developer" { "system" } else { text(&item["role"]) };
                messages.push(said(role, words(&item["content"])));
            }
            "function_call" => {
                add_call(
                    &mut messages,
                    called(text(&item["call_id"]), &item["name"], item["arguments"].clone()),
                );
            }
            "function_call_output" => messages.push(result(&item["call_id"], words(&item["output"]))),
            _ => {}
        }
    }
    let tools = list(&body["tools"]).iter().map(|tool| text(&tool["name"]).to_owned());
    Asked { messages, tools: tools.collect() }
}

/// An item without a type but with a role is a message.
fn kind(item: &Value) -> &str {
    match item["type"].as_str() {
        Some(kind) => kind,
        None if item["role"].is_string() => "message",
        None => "",
    }
}

fn words(value: &Value) -> Value {
    let Some(parts) = value.as_array() else { return value.clone() };
    let part = |part: &Value| match text(&part["type"]) {
        "input_image" => image_part(text(&part["image_url"])),
        "refusal" => text_part(text(&part["refusal"])),
        _ => text_part(text(&part["text"])),
    };
    content(parts.iter().map(part).collect())
}

pub(super) fn check(ask: &Ask) -> Result<(), Refusal> {
    if ask.headers.get("authorization").is_none_or(|value| value.len() <= "Bearer ".len()) {
        let told = "You didn't provide an API key. You need to provide your API key in an Authorization header using \
                    Bearer auth (i.e. Authorization: Bearer YOUR_KEY).";
        return Err(Reply::status(401).message(told));
    }
    if ask.model().is_empty() {
        return bad("you must provide a model parameter");
    }
    let input = &ask.body["input"];
    if input.is_null() || list(input).is_empty() && !input.is_string() {
        return bad(
            "One of \"input\" or \"previous_response_id\" or 'prompt' or 'conversation_id' must be provided.",
        );
    }
    if let Some(id) = ask.body["previous_response_id"].as_str() {
        // Nothing is stored here.
        let refusal = Reply::status(400).message(&format!("Previous response with id '{id}' not found."));
        return Err(Refusal { code: Some("previous_response_not_found"), ..refusal });
    }
    if let Some(parameter) =
        ["messages", "max_tokens", "reasoning_effort"].iter().find(|key| !ask.body[**key].is_null())
    {
        let refusal = Reply::status(400).message(&format!("Unknown parameter: '{parameter}'."));
        return Err(Refusal { code: Some("unknown_parameter"), ..refusal });
    }
    check_items(list(input))?;
    check_tools(list(&ask.body["tools"]))
}

/// Checks that calls and outputs are paired, reasoning precedes its result, and encrypted content is unchanged.
fn check_items(items: &[Value]) -> Result<(), Refusal> {
    let mut open = BTreeSet::new();
    for (at, item) in items.iter().enumerate() {
        match kind(item) {
            "message" => {}
            "function_call" => {
                if !item["arguments"].is_string() {
                    return bad(format!("Invalid type for 'input[{at}].arguments': expected a string."));
                }
                open.insert(text(&item["call_id"]));
            }
            "function_call_output" => {
                let id = text(&item["call_id"]);
                if !open.remove(id) {
                    return bad(format!("No tool call found for function call output with call_id {id}."));
                }
            }
            "reasoning" => check_reasoning(item, items.get(at + 1))?,
            "item_reference" => {
                let id = text(&item["id"]);
                return Err(Reply::status(404).message(&format!("Item with id '{id}' not found.")));
            }
            other => {
                let refusal = Reply::status(400).message(&format!("Invalid value: '{other}'."));
                return Err(Refusal { code: Some("invalid_value"), ..refusal });
            }
        }
    }
    match open.first() {
        Some(id) => bad(format!("No tool output found for function call {id}.")),
        None => Ok(()),
    }
}

fn check_reasoning(item: &Value, next: Option<&Value>) -> Result<(), Refusal> {
    let id = item["id"].as_str();
    let named = id.unwrap_or_default();
    if !item["summary"].is_array() {
        return bad(format!("Missing required parameter: 'summary' of the reasoning item {named}."));
    }
    if let Some(encrypted) = item["encrypted_content"].as_str() {
        if !seal::is_item(encrypted, id) {
            let told = format!(
                "The encrypted content for item {named} could not be verified. Reason: Encrypted content could not be \
                 decrypted or parsed."
            );
            return Err(Refusal {
                code: Some("invalid_encrypted_content"),
                ..Reply::status(400).message(&told)
            });
        }
    } else {
        // Without `store` the server does not have it.
        return Err(Reply::status(404).message(&format!(
            "Item with id '{named}' not found. Items are not persisted when `store` is set to false. Try again with \
             `store` set to true, or remove this item from your input."
        )));
    }
    let follows = next.is_some_and(|next| match kind(next) {
        "function_call" | "reasoning" => true,
        _ => next["role"] == "assistant",
    });
    if !follows {
        return bad(format!(
            "Item '{named}' of type 'reasoning' was provided without its required following item."
        ));
    }
    Ok(())
}

fn check_tools(tools: &[Value]) -> Result<(), Refusal> {
    for (at, tool) in tools.iter().enumerate() {
        if tool["type"] != "function" || !tool["name"].is_string() {
            let refusal =
                Reply::status(400).message(&format!("Missing required parameter: 'tools[{at}].name'."));
            return Err(Refusal { code: Some("missing_required_parameter"), ..refusal });
        }
    }
    Ok(())
}
