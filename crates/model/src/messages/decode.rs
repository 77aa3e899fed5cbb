//! Decodes replies of the wire into deltas.

mod event;

use self::event::{BlockDelta, MessageDocument, MessageEvent, MessageUsage};
use crate::{
    ModelSettings,
    calls::{CallPiece, PartialCalls},
    finish::finish,
    order::ReplyOrder,
    paragraphs::Paragraphs,
    refusal,
    wire::{self, EventDecoder, cut, garbled},
};
use pudu_base::{Delta, Finish, ModelError, ToolCall, Usage};
use pudu_net::json;
use serde_json::{Map, Value};

/// Maximum size of the events whose blocks are kept unchanged, in bytes.
const MAX_KEPT_BYTES: usize = 16 * 1024 * 1024;
/// Maximum number of blocks in a reply.
const MAX_BLOCKS: usize = 10_000;

/// Decodes the events of one reply, or the single document of a server that does not stream.
#[derive(Debug, Default)]
pub(super) struct MessageDecoder {
    origin: String,
    /// ID of the current message.
    message: Option<String>,
    blocks: Vec<PartialBlock>,
    paragraphs: Paragraphs,
    calls: PartialCalls,
    kept_bytes: usize,
    usage: Option<MessageUsage>,
    finish: Option<Finish>,
    done: bool,
}

#[derive(Debug)]
struct PartialBlock {
    /// Index in the reply.
    index: u64,
    /// Whether its end has not arrived.
    is_open: bool,
    content: BlockContent,
}

#[derive(Debug)]
enum BlockContent {
    /// Text, with its length so far in bytes.
    Words(usize),
    /// A call, with its index and the way its arguments arrived.
    Call { at: usize, arguments: BlockArguments },
    /// Any other block, which is sent back unchanged, with its input so far.
    Kept { block: Map<String, Value>, input: String },
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum BlockArguments {
    Missing,
    /// Arrived complete at the beginning of the block.
    Given,
    /// Arrived in pieces, which take precedence.
    Streamed,
}

impl MessageDecoder {
    pub(super) fn new(settings: &ModelSettings) -> Self {
        Self { origin: settings.origin(), ..Self::default() }
    }

    /// Begins the message. Some gateways send the beginning twice. Others insert another message into an open one; then
    /// neither the first message nor the mixture is a valid reply.
    fn begin(&mut self, message: MessageDocument) -> Result<(), ModelError> {
        self.count(message.usage);
        let id = message.id.unwrap_or_default();
        match &self.message {
            Some(open) if *open != id && !self.blocks.is_empty() => {
                Err(garbled("a message begins inside another one"))
            }
            _ => {
                self.message = Some(id);
                Ok(())
            }
        }
    }

    /// Begins a block whose event has `bytes` bytes.
    fn open(
        &mut self,
        index: u64,
        block: Map<String, Value>,
        bytes: usize,
        out: &mut Vec<Delta>,
    ) -> Result<(), ModelError> {
        let text = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let content = match text("type").as_str() {
            "text" => {
                let words = self.paragraphs.separate(text("text"));
                out.extend((!words.is_empty()).then(|| Delta::Text(words.clone())));
                BlockContent::Words(words.len())
            }
            "tool_use" => {
                let piece = CallPiece {
                    index: Some(index),
                    id: text("id"),
                    name: text("name"),
                    ..CallPiece::default()
                };
                let at = self.calls.push(piece)?;
                // Gateways that do not stream arguments send them at the beginning.
                let input_at_start =
                    block.get("input").filter(|input| input.as_object().is_some_and(|map| !map.is_empty()));
                if let Some(input) = input_at_start {
                    self.calls.set_arguments(at, input.to_string())?;
                }
                let arguments =
                    if input_at_start.is_some() { BlockArguments::Given } else { BlockArguments::Missing };
                BlockContent::Call { at, arguments }
            }
            kind => {
                if !kind.ends_with("thinking") {
                    self.paragraphs.interrupt();
                }
                think(text("thinking"), out);
                self.kept_bytes += bytes;
                BlockContent::Kept { block, input: String::new() }
            }
        };
        self.blocks.push(PartialBlock { index, is_open: true, content });
        self.check_size()
    }

    fn grow(
        &mut self,
        index: u64,
        delta: BlockDelta,
        data: &str,
        out: &mut Vec<Delta>,
    ) -> Result<(), ModelError> {
        let open = self.blocks.iter().rposition(|block| block.is_open && block.index == index);
        let Some(block) = open.and_then(|at| self.blocks.get_mut(at)) else {
            return Err(garbled("a piece of a block that was not started"));
        };
        match &mut block.content {
            BlockContent::Words(bytes) => {
                let words = self.paragraphs.separate(delta.text.unwrap_or_default());
                *bytes += words.len();
                out.extend((!words.is_empty()).then_some(Delta::Text(words)));
            }
            BlockContent::Call { at, arguments } => {
                let more = delta.partial_json.unwrap_or_default();
                if !more.is_empty()
                    && std::mem::replace(arguments, BlockArguments::Streamed) == BlockArguments::Given
                {
                    self.calls.set_arguments(*at, String::new())?;
                }
                self.calls.push(CallPiece { index: Some(index), arguments: more, ..CallPiece::default() })?;
            }
            BlockContent::Kept { block, input } => {
                self.kept_bytes += data.len();
                let thought = delta.thinking.clone();
                keep(block, input, delta, data);
                think(thought.unwrap_or_default(), out);
            }
        }
        self.check_size()
    }

    fn check_size(&self) -> Result<(), ModelError> {
        if self.kept_bytes > MAX_KEPT_BYTES || self.blocks.len() > MAX_BLOCKS {
            return Err(garbled("too many blocks, or too large ones"));
        }
        Ok(())
    }

    fn close(&mut self, index: u64) {
        let open = self.blocks.iter_mut().rev().find(|block| block.is_open && block.index == index);
        if let Some(block) = open {
            block.is_open = false;
        }
    }

    fn count(&mut self, usage: Option<MessageUsage>) {
        if let Some(usage) = usage {
            self.usage.get_or_insert_default().update(usage);
        }
    }

    fn stop(&mut self, reason: Option<&str>) -> Result<(), ModelError> {
        if let Some(finish) = finish(reason.unwrap_or_default())? {
            self.finish = Some(finish);
        }
        Ok(())
    }

    /// Decodes a reply that arrived as one document.
    fn whole(&mut self, message: MessageDocument, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        for (index, block) in (0..).zip(message.content.into_iter().flatten()) {
            self.open(index, block, 0, out)?;
            self.close(index);
        }
        self.stop(message.stop_reason.as_deref())?;
        self.count(message.usage);
        self.end_message(out);
        Ok(())
    }

    /// Ends the reply at its end marker. A reply without a finish reason is then complete.
    fn end_message(&mut self, out: &mut Vec<Delta>) {
        self.finish.get_or_insert(Finish::Complete);
        self.conclude(out);
    }

    fn conclude(&mut self, out: &mut Vec<Delta>) {
        let Some(finish) = self.finish.filter(|_| !self.done) else { return };
        self.done = true;
        let mut calls = self.calls.take(finish);
        let mut order = ReplyOrder::default();
        for block in std::mem::take(&mut self.blocks) {
            block.end(&mut order, &mut calls);
        }
        out.extend(order.into_parts(std::mem::take(&mut self.origin)).map(Delta::ProviderParts));
        out.extend(calls.into_iter().map(Delta::Call));
        out.extend(self.usage.take().map(|usage| Delta::Usage(Usage::from(usage))));
        out.push(Delta::Finish(finish));
    }
}

/// Adds a piece to a block that is kept unchanged.
fn keep(block: &mut Map<String, Value>, input: &mut String, delta: BlockDelta, data: &str) {
    match delta.kind.as_deref() {
        Some("thinking_delta") => append(block, "thinking", &delta.thinking.unwrap_or_default()),
        Some("input_json_delta") => input.push_str(&delta.partial_json.unwrap_or_default()),
        Some("signature_delta") => {
            block.insert("signature".to_owned(), delta.signature.unwrap_or_default().into());
        }
        // In an unknown block, each string of the piece is appended to the block's string of the same name.
        _ => {
            let event = json::parse(data.as_bytes()).unwrap_or_default();
            let texts = event.get("delta").and_then(Value::as_object).into_iter().flatten();
            for (name, value) in texts.filter(|(name, _)| *name != "type") {
                match value {
                    Value::String(text) => append(block, name, text),
                    Value::Null => {}
                    value => {
                        block.insert(name.clone(), value.clone());
                    }
                }
            }
        }
    }
}

fn append(block: &mut Map<String, Value>, name: &str, more: &str) {
    match block.get_mut(name) {
        Some(Value::String(text)) => text.push_str(more),
        _ => {
            block.insert(name.to_owned(), more.into());
        }
    }
}

impl PartialBlock {
    /// Records the block's position in the order.
    fn end(self, order: &mut ReplyOrder, calls: &mut [ToolCall]) {
        match self.content {
            BlockContent::Words(bytes) => order.add_text(bytes, None),
            BlockContent::Call { at, arguments } => {
                let Some(call) = calls.get_mut(at) else { return };
                if self.is_open && arguments == BlockArguments::Missing {
                    // The missing arguments are unknown.
                    call.garbled.get_or_insert_default();
                }
                order.call(&call.name, None);
            }
            BlockContent::Kept { mut block, input } => {
                if let Ok(input) = json::parse(input.as_bytes()) {
                    block.insert("input".to_owned(), input);
                }
                let is_signed =
                    block.get("signature").and_then(Value::as_str).is_some_and(|text| !text.is_empty());
                // The provider would refuse a truncated part.
                if !self.is_open || is_signed {
                    order.part(block);
                }
            }
        }
    }
}

impl EventDecoder for MessageDecoder {
    fn event(&mut self, kind: &str, data: &str, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        if self.done || data == "[DONE]" {
            return Ok(());
        }
        if kind == "error" {
            return Err(refusal::in_stream_text(data));
        }
        let event: MessageEvent = wire::read(data)?;
        if let Some(error) = event.error.as_ref().filter(|error| !error.is_null()) {
            return Err(refusal::in_stream(error));
        }
        let index = event.index.unwrap_or(0);
        match event.kind.as_deref().unwrap_or(kind) {
            "message_start" => self.begin(event.message.unwrap_or_default())?,
            "content_block_start" => {
                let block = event.content_block.unwrap_or_default();
                self.open(index, block, data.len(), out)?;
            }
            "content_block_delta" => self.grow(index, event.delta.unwrap_or_default(), data, out)?,
            "content_block_stop" => self.close(index),
            "message_delta" => {
                self.count(event.usage);
                self.stop(event.delta.and_then(|delta| delta.stop_reason).as_deref())?;
            }
            "message_stop" => self.end_message(out),
            "message" => {
                self.whole(wire::read(data)?, out)?;
            }
            "error" => return Err(refusal::in_stream_text(data)),
            // Pings, and unknown events.
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        // Some servers close the connection after the finish reason without the last event.
        self.conclude(out);
        if self.done { Ok(()) } else { Err(cut()) }
    }

    fn usage(&mut self) -> Option<Usage> {
        self.usage.take().map(Usage::from)
    }
}

fn think(thought: String, out: &mut Vec<Delta>) {
    if !thought.is_empty() {
        out.push(Delta::Reasoning(thought));
    }
}

#[cfg(test)]
mod tests;
