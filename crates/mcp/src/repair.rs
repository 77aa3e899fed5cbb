//! Repairs servers' results, so that an invalid field does not affect the others.

use pudu_net::json as foreign;
use rmcp::model::{ClientRequest, ContentBlock, InitializeResult};
use serde_json::{Map, Value, json};

/// Key in a repaired list of tools that contains descriptions of invalid entries.
pub(crate) const UNUSABLE: &str = "pudu/unusable";
/// Maximum number of descriptions of invalid entries.
const MAX_UNUSABLE: usize = 20;
/// Keys that servers use for the schema of a tool's arguments, beginning with the protocol's own.
const SCHEMA_KEYS: [&str; 4] = ["inputSchema", "input_schema", "parameters", "schema"];

/// Kind of a request, which determines how its result is repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestKind {
    /// Lists tools.
    List,
    /// Calls a tool.
    Call,
    /// Lists resources.
    Resources,
    /// Lists prompts.
    Prompts,
    /// Initializes the session, or any other request.
    Other,
}

impl RequestKind {
    pub(crate) fn from_request(request: &ClientRequest) -> Self {
        match request {
            ClientRequest::ListToolsRequest(_) => Self::List,
            ClientRequest::CallToolRequest(_) => Self::Call,
            ClientRequest::ListResourcesRequest(_) => Self::Resources,
            ClientRequest::ListPromptsRequest(_) => Self::Prompts,
            _ => Self::Other,
        }
    }
}

/// Repairs a result according to the kind of its request.
pub(crate) fn result(kind: RequestKind, result: Value) -> Value {
    match kind {
        RequestKind::List => tool_list(result),
        RequestKind::Call => call_result(result),
        RequestKind::Resources => resource_list(&result),
        RequestKind::Prompts => prompt_list(&result),
        RequestKind::Other => initialization(result),
    }
}

/// Repairs an error: its code becomes a number and its message a string.
pub(crate) fn error(error: Value) -> Value {
    let Value::Object(mut error) = error else {
        return json!({ "code": -32603, "message": text_of(error) });
    };
    let code = error.remove("code");
    let code = code.as_ref().and_then(|code| code.as_i64().or_else(|| code.as_str()?.parse().ok()));
    let code = code.and_then(|code| i32::try_from(code).ok()).unwrap_or(-32603);
    let message = match error.remove("message") {
        Some(Value::String(message)) => message,
        Some(Value::Null) | None => match error.get("data") {
            Some(data) if !data.is_null() => text_of(data.clone()),
            _ => "it refused without a reason".to_owned(),
        },
        Some(message) => text_of(message),
    };
    json!({ "code": code, "message": message })
}

/// Repairs the result of an initialization. Any other object is returned unchanged.
fn initialization(result: Value) -> Value {
    let Value::Object(map) = &result else { return json!({}) };
    if !map.contains_key("protocolVersion")
        || serde_json::from_value::<InitializeResult>(result.clone()).is_ok()
    {
        return result;
    }
    let text = |value: Option<&Value>, other: &str| {
        json!(value.and_then(Value::as_str).filter(|text| !text.is_empty()).unwrap_or(other))
    };
    let info = map.get("serverInfo");
    let mut capabilities = json!({ "tools": {} });
    for key in ["resources", "prompts"] {
        let capability = map.get("capabilities").and_then(|capability| capability.get(key));
        if capability.is_some_and(Value::is_object) {
            capabilities[key] = json!({});
        }
    }
    json!({
        "protocolVersion": text(map.get("protocolVersion"), "2024-11-05"),
        "capabilities": capabilities,
        "serverInfo": {
            "name": text(info.and_then(|info| info.get("name")), "unknown"),
            "version": text(info.and_then(|info| info.get("version")), "unknown"),
        },
    })
}

/// Reduces a list of resources to the fields that the agent uses. An entry without a URI is omitted, and one without a
/// name gets its URI as name.
fn resource_list(result: &Value) -> Value {
    let text = |entry: &Value, key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
    let entries = result.get("resources").or(Some(result)).and_then(Value::as_array).into_iter().flatten();
    let resources = entries.filter_map(|entry| {
        let uri = text(entry, "uri")?;
        let name = text(entry, "name").unwrap_or_else(|| uri.clone());
        let mut resource = json!({ "uri": uri, "name": name });
        for key in ["title", "description", "mimeType"] {
            if let Some(value) = text(entry, key) {
                resource[key] = json!(value);
            }
        }
        Some(resource)
    });
    let mut list = json!({ "resources": resources.collect::<Vec<_>>() });
    if let Some(cursor) = text(result, "nextCursor") {
        list["nextCursor"] = json!(cursor);
    }
    list
}

/// Reduces a list of prompts to the fields that people see. An entry or an argument without a name is omitted.
fn prompt_list(result: &Value) -> Value {
    let text = |entry: &Value, key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
    let list =
        |entry: &Value, key: &str| entry.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let argument = |argument: &Value| {
        let required = argument.get("required").and_then(Value::as_bool).unwrap_or_default();
        Some(json!({ "name": text(argument, "name")?, "required": required }))
    };
    let prompts = list(result, "prompts").into_iter().filter_map(|entry| {
        let arguments: Vec<Value> = list(&entry, "arguments").iter().filter_map(argument).collect();
        let mut prompt = json!({ "name": text(&entry, "name")?, "arguments": arguments });
        for key in ["title", "description"] {
            if let Some(value) = text(&entry, key) {
                prompt[key] = json!(value);
            }
        }
        Some(prompt)
    });
    let mut list = json!({ "prompts": prompts.collect::<Vec<_>>() });
    if let Some(cursor) = text(result, "nextCursor") {
        list["nextCursor"] = json!(cursor);
    }
    list
}

/// Reduces a list of tools to the fields that the agent uses. Invalid entries are described separately.
fn tool_list(result: Value) -> Value {
    let mut result = match result {
        Value::Object(result) => result,
        // Some servers return only the list.
        Value::Array(tools) => Map::from_iter([("tools".to_owned(), Value::Array(tools))]),
        _ => Map::new(),
    };
    let mut unusable = Vec::new();
    let entries: Vec<(Option<String>, Value)> = match result.remove("tools") {
        Some(Value::Array(entries)) => entries.into_iter().map(|entry| (None, entry)).collect(),
        Some(Value::Object(entries)) => {
            entries.into_iter().map(|(name, entry)| (Some(name), entry)).collect()
        }
        _ => {
            unusable.push("its answer has no list of tools".to_owned());
            Vec::new()
        }
    };
    let mut tools = Vec::new();
    for (at, (name, entry)) in entries.into_iter().enumerate() {
        match tool(name, entry) {
            Some(tool) => tools.push(tool),
            None if unusable.len() < MAX_UNUSABLE => {
                unusable.push(format!("entry {} of its list has no name", at + 1));
            }
            None => {}
        }
    }
    let mut list = json!({ "tools": tools });
    match result.remove("nextCursor") {
        Some(Value::String(cursor)) => list["nextCursor"] = json!(cursor),
        Some(Value::Number(cursor)) => list["nextCursor"] = json!(cursor.to_string()),
        _ => {}
    }
    if !unusable.is_empty() {
        list["_meta"] = json!({ UNUSABLE: unusable });
    }
    list
}

fn tool(name: Option<String>, entry: Value) -> Option<Value> {
    let Value::Object(mut entry) = entry else { return None };
    // The format for tools in requests to model providers.
    if let Some(Value::Object(function)) = entry.remove("function") {
        entry = function;
    }
    let name = match entry.remove("name") {
        Some(Value::String(name)) => Some(name),
        _ => name,
    };
    let name = name.filter(|name| !name.trim().is_empty())?;
    let title = entry.get("annotations").and_then(|annotations| annotations.get("title")).cloned();
    let descriptions = [entry.remove("description"), entry.remove("title"), title];
    let description = descriptions.into_iter().flatten().map(lines_of).find(|text| !text.trim().is_empty());
    let schema = SCHEMA_KEYS.iter().find_map(|key| entry.remove(*key)).filter(|schema| !schema.is_null());
    let schema = match schema {
        Some(Value::Object(schema)) => Value::Object(schema),
        // A schema encoded as a string.
        Some(Value::String(text)) => {
            foreign::parse(text.as_bytes()).ok().filter(Value::is_object).unwrap_or_default()
        }
        _ => Value::Null,
    };
    let schema = if schema.is_object() { schema } else { json!({ "type": "object", "properties": {} }) };
    Some(json!({ "name": name, "description": description.unwrap_or_default(), "inputSchema": schema }))
}

/// Returns a string; the items of a list become lines.
fn lines_of(value: Value) -> String {
    match value {
        Value::Array(items) => items.into_iter().map(lines_of).collect::<Vec<_>>().join("\n"),
        Value::Null => String::new(),
        value => text_of(value),
    }
}

/// Repairs the result of a call.
fn call_result(result: Value) -> Value {
    let mut map = match result {
        Value::Object(map) => map,
        // Some servers return only the content.
        Value::Array(items) if items.iter().all(|item| item.get("type").is_some_and(Value::is_string)) => {
            Map::from_iter([("content".to_owned(), Value::Array(items))])
        }
        Value::Null => return json!({ "content": [] }),
        other => return json!({ "content": [text_block(other)] }),
    };
    // The server asks for input or is still working. The protocol's parser handles these results.
    if map.get("resultType").is_some_and(|kind| kind.is_string() && kind != "complete") {
        return Value::Object(map);
    }
    // The format in the protocol's first version.
    if let Some(Value::Object(inner)) = map.get("toolResult") {
        map = inner.clone();
    }
    let known = ["content", "structuredContent", "isError"];
    if !known.iter().any(|key| map.contains_key(*key)) {
        map.remove("_meta");
        let rest = if map.is_empty() { None } else { Some(json!({ "type": "json", "json": map })) };
        return json!({ "content": blocks(rest) });
    }
    let mut repaired = json!({ "content": blocks(map.remove("content")) });
    if let Some(structured) = map.remove("structuredContent").filter(|value| !value.is_null()) {
        repaired["structuredContent"] = structured;
    }
    let is_error = map.remove("isError");
    if is_error.is_some_and(|is_error| is_error == true || is_error == "true") {
        repaired["isError"] = json!(true);
    }
    repaired
}

fn blocks(content: Option<Value>) -> Vec<Value> {
    match content {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(items)) => items.into_iter().filter_map(block).collect(),
        Some(other) => block(other).into_iter().collect(),
    }
}

/// Returns a valid content block. A block that cannot be repaired becomes its JSON as text.
fn block(value: Value) -> Option<Value> {
    let Value::Object(mut map) = value else {
        return (!value.is_null()).then(|| text_block(value));
    };
    map.remove("annotations");
    map.remove("_meta");
    let kind = map.get("type").and_then(Value::as_str).unwrap_or_default();
    let repaired = match kind {
        "text" => Some(text_block(map.get("text").cloned().unwrap_or_default())),
        "image" | "audio" => media(kind, &map),
        "image_url" => image_url(&map),
        "resource" => resource(map.get("resource")),
        "resource_link" => resource_link(&map),
        "" if map.get("text").is_some_and(Value::is_string) => map.remove("text").map(text_block),
        "json" => map.get("json").cloned().map(text_block),
        _ => None,
    };
    let is_known = |block: &Value| serde_json::from_value::<ContentBlock>(block.clone()).is_ok();
    Some(repaired.filter(is_known).unwrap_or_else(|| text_block(Value::Object(map))))
}

fn media(kind: &str, map: &Map<String, Value>) -> Option<Value> {
    // Anthropic's format for images has the data in `source`.
    let source = map.get("source").and_then(Value::as_object).unwrap_or(map);
    let data = source.get("data").and_then(Value::as_str)?;
    let mime = ["mimeType", "mime_type", "media_type"].iter().find_map(|key| source.get(*key)?.as_str());
    Some(base64_block(kind, data, mime))
}

/// Converts OpenAI's format for images: to an image if the URL contains the data, otherwise to a link.
fn image_url(map: &Map<String, Value>) -> Option<Value> {
    let url = map.get("image_url")?;
    let url = url.as_str().or_else(|| url.get("url")?.as_str())?;
    Some(match url.starts_with("data:") {
        true => base64_block("image", url, None),
        false => json!({ "type": "resource_link", "name": "image", "uri": url }),
    })
}

/// Returns a block with base64 data, without the prefix of a `data:` URL.
fn base64_block(kind: &str, data: &str, mime: Option<&str>) -> Value {
    let (address, data) = match data.strip_prefix("data:").and_then(|rest| rest.split_once(',')) {
        Some((head, data)) => (head.split(';').next(), data),
        None => (None, data),
    };
    let mime = mime.or(address).filter(|mime| !mime.is_empty()).unwrap_or("unknown type");
    json!({ "type": kind, "data": data, "mimeType": mime })
}

fn resource(value: Option<&Value>) -> Option<Value> {
    let map = value?.as_object()?;
    let uri = map.get("uri").and_then(Value::as_str).unwrap_or("resource");
    let mime = map.get("mimeType").and_then(Value::as_str);
    let mut contents = json!({ "uri": uri });
    if let Some(mime) = mime {
        contents["mimeType"] = json!(mime);
    }
    match (map.get("text"), map.get("blob").and_then(Value::as_str)) {
        (Some(text), _) if !text.is_null() => contents["text"] = json!(text_of(text.clone())),
        (_, Some(blob)) => contents["blob"] = json!(blob),
        _ => return None,
    }
    Some(json!({ "type": "resource", "resource": contents }))
}

fn resource_link(map: &Map<String, Value>) -> Option<Value> {
    let text = |key: &str| map.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let uri = text("uri").or_else(|| text("url"))?;
    let mut link = json!({ "type": "resource_link", "uri": uri });
    link["name"] = json!(text("title").or_else(|| text("name")).unwrap_or(uri));
    for key in ["description", "mimeType"] {
        if let Some(value) = text(key) {
            link[key] = json!(value);
        }
    }
    Some(link)
}

fn text_block(value: Value) -> Value {
    json!({ "type": "text", "text": text_of(value) })
}

/// Returns a string unchanged, null as an empty string, and any other value as JSON.
fn text_of(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Null => String::new(),
        value => value.to_string(),
    }
}
