//! Encodes requests for the wire. Messages are borrowed: a long thread is serialized without being copied.
//!
//! Each request repeats the bytes of the previous one, except for the cache marks, which follow the newest turns.
//! Anthropic compares the content of blocks but not their marks, so the cache stays valid.

use super::options::options;
use crate::{
    CacheRules, Dialect, ModelSettings, SchemaForm,
    order::{OrderedPiece, in_order},
    parts::own_parts,
    turns::{SideTurn, TurnSide, TurnWriter, turns},
    wire,
};
use base64::prelude::{BASE64_STANDARD, Engine};
use pudu_base::{Assistant, ModelImage, Request, ToolCall, ToolResult, ToolSpec};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// Maximum number of cache marks that Anthropic accepts in a request.
const MAX_MARKS: usize = 4;

/// Serializes a request's body. The operator's keys override ours.
pub(super) fn body(settings: &ModelSettings, request: &Request) -> serde_json::Result<Vec<u8>> {
    let mut options = options(settings, request);
    let model = options.remove("model").unwrap_or_else(|| json!(settings.model));
    let tools = tools(options.remove("tools"), &request.tools, settings.dialect.schema);
    for ours in ["messages", "stream", "system"] {
        options.remove(ours);
    }
    let mut writer = BlockWriter { dialect: &settings.dialect, origin: settings.origin() };
    let mut messages = turns(&request.messages, &mut writer);
    end_cleanly(&mut messages);
    let system = (!request.system.trim().is_empty()).then(|| MarkedBlock::text(&request.system));
    let mut body =
        MessagesBody { model, options, stream: true, tools, system: system.into_iter().collect(), messages };
    body.mark(settings.cache);
    body.show(&request.images);
    wire::written(&body)
}

#[derive(Serialize)]
struct MessagesBody<'a> {
    model: Value,
    #[serde(flatten)]
    options: Map<String, Value>,
    stream: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<MarkedBlock<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<MarkedBlock<'a>>,
    /// Must be the last field, so that the bytes before it never change.
    #[serde(serialize_with = "write_turns")]
    messages: Vec<SideTurn<MarkedBlock<'a>>>,
}

impl<'a> MessagesBody<'a> {
    /// Marks the tools and the system prompt for the cache, and the newest user turns with the remaining marks. User
    /// turns contain only text and results; thoughts cannot be marked.
    fn mark(&mut self, rules: CacheRules) {
        if !rules.enabled {
            return;
        }
        // The operator may let Anthropic place one mark automatically.
        let mut left = MAX_MARKS - usize::from(self.options.contains_key("cache_control"));
        for block in self.tools.last_mut().into_iter().chain(self.system.last_mut()) {
            block.mark();
            left -= 1;
        }
        let user = self.messages.iter_mut().rev().filter(|turn| turn.side == TurnSide::User);
        let newest = user.filter_map(|turn| turn.parts.last_mut()).take(left.min(rules.newest));
        newest.for_each(MarkedBlock::mark);
    }

    /// Adds images after the newest message, each preceded by its path. They are not marked, because the next request
    /// does not repeat them.
    fn show(&mut self, images: &'a [ModelImage]) {
        if images.is_empty() {
            return;
        }
        let blocks = images.iter().flat_map(|shown| {
            let data = BASE64_STANDARD.encode(&shown.bytes);
            let source = ImageSource { r#type: "base64", media_type: &shown.image.mime, data };
            [MarkedBlock::text(&shown.image.path), MessageBlock::Image { source }.into()]
        });
        match self.messages.last_mut().filter(|turn| turn.side == TurnSide::User) {
            Some(turn) => turn.parts.extend(blocks),
            None => self.messages.push(SideTurn { side: TurnSide::User, parts: blocks.collect() }),
        }
    }
}

fn write_turns<S: serde::Serializer>(
    turns: &[SideTurn<MarkedBlock<'_>>],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct RoleMessage<'a> {
        role: &'static str,
        content: &'a [MarkedBlock<'a>],
    }
    serializer.collect_seq(turns.iter().map(|turn| RoleMessage {
        role: if turn.side == TurnSide::User { "user" } else { "assistant" },
        content: &turn.parts,
    }))
}

/// A block with an optional cache mark.
#[derive(Serialize)]
struct MarkedBlock<'a> {
    #[serde(flatten)]
    block: MessageBlock<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
struct CacheControl {
    r#type: &'static str,
}

impl<'a> MarkedBlock<'a> {
    fn text(text: &'a str) -> Self {
        MessageBlock::Text { text: text.into() }.into()
    }

    fn mark(&mut self) {
        self.cache_control = Some(CacheControl { r#type: "ephemeral" });
    }
}

impl<'a> From<MessageBlock<'a>> for MarkedBlock<'a> {
    fn from(block: MessageBlock<'a>) -> Self {
        Self { block, cache_control: None }
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum MessageBlock<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Image {
        source: ImageSource<'a>,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: &'a str,
        input: &'a Value,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: &'a str,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
    /// An unchanged block of Anthropic's reply.
    #[serde(untagged)]
    Kept(&'a Value),
    #[serde(untagged)]
    Tool {
        name: &'a str,
        description: &'a str,
        input_schema: Cow<'a, Value>,
    },
    /// A tool that runs at the provider, as configured by the operator.
    #[serde(untagged)]
    OwnTool(Value),
}

#[derive(Serialize)]
struct ImageSource<'a> {
    r#type: &'static str,
    media_type: &'a str,
    data: String,
}

/// Encodes the operator's tools, which run at the provider, and ours.
fn tools<'a>(
    operators: Option<Value>,
    specs: &'a [std::sync::Arc<ToolSpec>],
    form: SchemaForm,
) -> Vec<MarkedBlock<'a>> {
    let operators = match operators {
        Some(Value::Array(tools)) => tools,
        _ => Vec::new(),
    };
    let ours = specs.iter().map(|spec| MessageBlock::Tool {
        name: &spec.name,
        description: &spec.description,
        input_schema: without_alternatives(form.reduce(&spec.parameters)),
    });
    operators.into_iter().map(MessageBlock::OwnTool).chain(ours).map(Into::into).collect()
}

/// Drops alternatives at the top level of a schema, the only place where Anthropic refuses them.
fn without_alternatives(schema: Cow<'_, Value>) -> Cow<'_, Value> {
    let refused = ["oneOf", "anyOf", "allOf"];
    if !refused.iter().any(|word| schema.get(word).is_some()) {
        return schema;
    }
    let mut schema = schema.into_owned();
    if let Value::Object(map) = &mut schema {
        map.retain(|word, _| !refused.contains(&word.as_str()));
    }
    Cow::Owned(schema)
}

/// Writes messages as blocks.
struct BlockWriter<'s> {
    dialect: &'s Dialect,
    origin: String,
}

impl<'a> TurnWriter<'a, MarkedBlock<'a>> for BlockWriter<'_> {
    fn text_part(&mut self, text: Cow<'a, str>) -> MarkedBlock<'a> {
        MessageBlock::Text { text }.into()
    }

    fn reply(&mut self, reply: &'a Assistant) -> Vec<MarkedBlock<'a>> {
        let pieces = own_parts(reply, &self.origin).and_then(|parts| in_order(reply, parts));
        let mut blocks = match pieces {
            Some(pieces) => pieces.into_iter().filter_map(|piece| self.piece(piece)).collect(),
            None => self.plain(reply),
        };
        // A turn must not end with thoughts.
        let end = blocks.iter().rposition(|block| !is_thought(block)).map_or(0, |at| at + 1);
        blocks.truncate(end);
        blocks.into_iter().map(Into::into).collect()
    }

    fn result(&mut self, result: &'a ToolResult) -> MarkedBlock<'a> {
        let tool_use_id = self.dialect.call_ids.form(result.call.as_str());
        MessageBlock::ToolResult { tool_use_id, content: &result.text, is_error: result.error }.into()
    }
}

impl BlockWriter<'_> {
    fn plain<'a>(&self, reply: &'a Assistant) -> Vec<MessageBlock<'a>> {
        let calls = reply.calls.iter().map(|call| self.call(call));
        text_block(&reply.text).into_iter().chain(calls).collect()
    }

    fn piece<'a>(&self, piece: OrderedPiece<'a>) -> Option<MessageBlock<'a>> {
        match piece {
            OrderedPiece::Words(text, _) => text_block(text),
            OrderedPiece::Call(call, _) => Some(self.call(call)),
            OrderedPiece::Part(block) => Some(MessageBlock::Kept(block)),
        }
    }

    fn call<'a>(&self, call: &'a ToolCall) -> MessageBlock<'a> {
        let id = self.dialect.call_ids.form(call.id.as_str());
        MessageBlock::ToolUse { id, name: &call.name, input: &call.args }
    }
}

/// Anthropic refuses blank text.
fn text_block(text: &str) -> Option<MessageBlock<'_>> {
    (!text.trim().is_empty()).then(|| MessageBlock::Text { text: text.into() })
}

fn is_thought(block: &MessageBlock<'_>) -> bool {
    let MessageBlock::Kept(block) = block else { return false };
    block.get("type").is_some_and(|kind| kind == "thinking" || kind == "redacted_thinking")
}

/// Trims the end of a thread that ends with the model's text, because Anthropic refuses trailing whitespace there.
fn end_cleanly(messages: &mut [SideTurn<MarkedBlock<'_>>]) {
    let last = messages.last_mut().filter(|turn| turn.side == TurnSide::Model);
    if let Some(MessageBlock::Text { text }) =
        last.and_then(|turn| turn.parts.last_mut()).map(|block| &mut block.block)
    {
        *text = Cow::Owned(text.trim_end().to_owned());
    }
}

#[cfg(test)]
mod tests;
