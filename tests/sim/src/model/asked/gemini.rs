//! Requests of Gemini: parts, calls that the next turn must answer, signatures that must be sent back, and schemas with
//! few keywords.

use super::{
    Ask, Asked, Refusal, add_call, bad, called, content, inline_image, list, result, said, text, text_part,
};
use crate::model::{Reply, seal};
use serde_json::Value;

/// Allowed keywords of a schema.
const SCHEMA: &[&str] = &[
    "anyOf",
    "default",
    "description",
    "enum",
    "example",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "nullable",
    "pattern",
    "properties",
    "propertyOrdering",
    "required",
    "title",
    "type",
];

/// Google's documented values for calls without a signature.
const NO_SIGNATURE: &[&str] = &["skip_thought_signature_validator", "context_engineering_is_the_way_to_go"];

pub(super) fn read(body: &Value) -> Asked {
    let mut messages = Vec::new();
    if !body["systemInstruction"].is_null() {
        messages.push(said("system", words(&body["systemInstruction"]["parts"])));
    }
    for turn in list(&body["contents"]) {
        read_turn(&mut messages, turn);
    }
    let tools = list(&body["tools"]).iter().flat_map(|tool| list(&tool["functionDeclarations"]));
    Asked { messages, tools: tools.map(|tool| text(&tool["name"]).to_owned()).collect() }
}

/// Calls have no IDs on this wire: their names are used instead.
fn read_turn(messages: &mut Vec<Value>, turn: &Value) {
    let role = if turn["role"] == "model" { "assistant" } else { "user" };
    let parts = list(&turn["parts"]);
    let told = |part: &&Value| {
        part["thought"] != true && (!part["inlineData"].is_null() || !text(&part["text"]).is_empty())
    };
    for answer in parts.iter().map(|part| &part["functionResponse"]).filter(|answer| answer.is_object()) {
        messages.push(result(&answer["name"], output(&answer["response"])));
    }
    if parts.iter().any(|part| told(&part)) {
        messages.push(said(role, words(&turn["parts"])));
    }
    for call in parts.iter().map(|part| &part["functionCall"]).filter(|call| call.is_object()) {
        add_call(messages, called(text(&call["name"]), &call["name"], call["args"].to_string()));
    }
}

fn words(parts: &Value) -> Value {
    let part = |part: &Value| {
        if part["inlineData"].is_object() {
            return Some(inline_image(&part["inlineData"]["mimeType"], &part["inlineData"]["data"]));
        }
        (part["thought"] != true).then(|| part["text"].as_str().map(text_part)).flatten()
    };
    content(list(parts).iter().filter_map(part).collect())
}

/// Returns the text of a response: under Google's documented key, or all of it.
fn output(response: &Value) -> String {
    let told = ["output", "result", "error"].iter().find_map(|key| response[*key].as_str());
    told.map_or_else(|| response.to_string(), str::to_owned)
}

pub(super) fn check(ask: &Ask) -> Result<(), Refusal> {
    if !ask.headers.contains_key("x-goog-api-key") && !ask.query.contains("key=") {
        let told = "Method doesn't allow unregistered callers (callers without established identity). Please use API Key \
                    or other form of API consumer identity to call this API.";
        return Err(Reply::status(403).message(told));
    }
    if ask.wants_stream() && !ask.query.contains("alt=sse") {
        return bad("the simulator streams with alt=sse only");
    }
    check_turns(list(&ask.body["contents"]))?;
    for (at, tool) in list(&ask.body["tools"]).iter().enumerate() {
        for (n, function) in list(&tool["functionDeclarations"]).iter().enumerate() {
            check_function(function, &format!("tools[{at}].function_declarations[{n}]"))?;
        }
    }
    Ok(())
}

fn check_turns(turns: &[Value]) -> Result<(), Refusal> {
    if turns.is_empty() {
        return bad("* GenerateContentRequest.contents: contents is not specified\n");
    }
    let has =
        |turn: &Value, key: &str| list(&turn["parts"]).iter().filter(|part| part[key].is_object()).count();
    // The current turn begins with the user's last message.
    let begins = turns.iter().rposition(|turn| turn["role"] != "model" && has(turn, "functionResponse") == 0);
    for (at, turn) in turns.iter().enumerate() {
        let role = text(&turn["role"]);
        if !["user", "model", "function", ""].contains(&role) {
            return bad("Please use a valid role: user, model.");
        }
        if list(&turn["parts"]).is_empty() {
            return bad(format!(
                "* GenerateContentRequest.contents[{at}].parts: contents.parts must not be empty.\n"
            ));
        }
        check_parts(at, turn, begins.is_some_and(|begins| at > begins))?;
        let calls = has(turn, "functionCall");
        let answers = turns.get(at + 1).map_or(0, |next| has(next, "functionResponse"));
        if calls > 0 && at > 0 && turns[at - 1]["role"] == "model" || calls > 0 && at == 0 {
            return bad(
                "Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
            );
        }
        if calls != answers {
            return bad(
                "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.",
            );
        }
    }
    if has(&turns[0], "functionResponse") > 0 {
        return bad(
            "Please ensure that function response turn comes immediately after a function call turn.",
        );
    }
    Ok(())
}

fn check_parts(at: usize, turn: &Value, current: bool) -> Result<(), Refusal> {
    const DATA: &[&str] = &["text", "inlineData", "fileData", "functionCall", "functionResponse"];
    let mut first = true;
    for (n, part) in list(&turn["parts"]).iter().enumerate() {
        if DATA.iter().all(|key| part[*key].is_null()) {
            return bad(format!(
                "* GenerateContentRequest.contents[{at}].parts[{n}].data: required oneof field 'data' must have one \
                 initialized field\n"
            ));
        }
        let response = &part["functionResponse"];
        if response.is_object() && (!response["response"].is_object() || text(&response["name"]).is_empty()) {
            return bad(format!(
                "* GenerateContentRequest.contents[{at}].parts[{n}].function_response.name: Name cannot be empty.\n"
            ));
        }
        let calls = part["functionCall"].is_object();
        if let Some(signature) = part["thoughtSignature"].as_str() {
            // Bytes may be sent back in either alphabet of base64; Google's Python client changes it.
            let plain = signature.replace('-', "+").replace('_', "/");
            if !NO_SIGNATURE.contains(&signature) && !seal::holds("thought", "", &plain) {
                return bad("Thought signature is not valid");
            }
        } else if calls && first && current {
            let name = text(&part["functionCall"]["name"]);
            return bad(format!(
                "Function call is missing a thought_signature in functionCall parts. This is required for tools to work \
                 correctly, and missing thought_signature may lead to degraded model performance. Additional data, \
                 function call `default_api:{name}` , position {}. Please refer to \
                 https://ai.google.dev/gemini-api/docs/thought-signatures for more details.",
                at + 1
            ));
        }
        first &= !calls;
    }
    Ok(())
}

fn check_function(function: &Value, place: &str) -> Result<(), Refusal> {
    let name = text(&function["name"]);
    let fits = |c: char| c.is_ascii_alphanumeric() || "_.:-".contains(c);
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if !begins || name.len() > 64 || !name.chars().all(fits) {
        return bad(format!(
            "* GenerateContentRequest.{place}.name: [Invalid function name. Must start with a letter or an underscore. \
             Must be alphameric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum \
             length of 64.]\n"
        ));
    }
    check_schema(&function["parameters"], &format!("{place}.parameters"))
}

fn check_schema(schema: &Value, place: &str) -> Result<(), Refusal> {
    let Some(words) = schema.as_object() else { return Ok(()) };
    if let Some(word) = words.keys().find(|word| !SCHEMA.contains(&word.as_str())) {
        return bad(format!(
            "Invalid JSON payload received. Unknown name \"{word}\" at '{place}': Cannot find field."
        ));
    }
    if schema["type"].is_array() {
        return bad(format!(
            "Invalid JSON payload received. Unknown name \"type\" at '{place}': Proto field is not repeating, cannot start list."
        ));
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        check_schema(property, &format!("{place}.properties[{name}].value"))?;
    }
    for (at, choice) in list(&schema["anyOf"]).iter().enumerate() {
        check_schema(choice, &format!("{place}.any_of[{at}]"))?;
    }
    check_schema(&schema["items"], &format!("{place}.items"))
}
