//! Decodes replies of the wire into deltas. Items are identified by index, because their IDs may differ between events.

use super::encode::{ITEMS, item_texts};
use crate::{
    ModelSettings,
    calls::{CallPiece, PartialCalls},
    finish::finish,
    media::ReplyMedia,
    paragraphs::PARAGRAPH,
    refusal,
    usage::{UsageReport, to_usage},
    wire::{self, EventDecoder, cut, garbled},
};
use pudu_base::{Delta, Finish, ModelError, ProviderParts, Usage};
use pudu_net::json::decode_strictly;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of items in a reply.
const MAX_ITEMS: usize = 1_000;
/// Maximum size of the events whose items are kept unchanged, in bytes.
const MAX_KEPT_BYTES: usize = 16 * 1024 * 1024;

/// Decodes the events of one reply, or the single document of a server that does not stream.
#[derive(Debug, Default)]
pub(super) struct ItemDecoder {
    origin: String,
    /// Whether the provider stores items, so that an ID is enough to refer to one.
    is_stored: bool,
    calls: PartialCalls,
    /// Index of each call, by item index.
    called: BTreeMap<u64, usize>,
    /// Indexes of items whose text has arrived.
    text_items: BTreeSet<u64>,
    /// Indexes of items whose thoughts have arrived.
    thought: BTreeSet<u64>,
    media: ReplyMedia,
    /// Complete items by index.
    items: BTreeMap<u64, Value>,
    kept_bytes: usize,
    usage: Option<Usage>,
    refused: bool,
    done: bool,
}

impl ItemDecoder {
    pub(super) fn new(settings: &ModelSettings) -> Self {
        Self {
            origin: settings.origin(),
            is_stored: settings.body.get("store").is_some_and(|store| *store == true),
            ..Self::default()
        }
    }

    /// Emits text of a message. Several messages in one response, such as a commentary and the answer, are separate
    /// paragraphs.
    fn push_text(&mut self, at: u64, words: &str, out: &mut Vec<Delta>) {
        if words.is_empty() {
            return;
        }
        let is_next = self.text_items.insert(at) && self.text_items.len() > 1;
        out.push(Delta::Text(if is_next { format!("{PARAGRAPH}{words}") } else { words.to_owned() }));
    }

    fn think(&mut self, at: u64, thought: &str, out: &mut Vec<Delta>) {
        if thought.is_empty() {
            return;
        }
        let is_next = self.thought.insert(at) && self.thought.len() > 1;
        out.push(Delta::Reasoning(if is_next {
            format!("{PARAGRAPH}{thought}")
        } else {
            thought.to_owned()
        }));
    }

    /// Adds a piece of a call, or begins one.
    fn call(&mut self, at: u64, item: &Value, arguments: &str) -> Result<usize, ModelError> {
        let mut piece =
            CallPiece { index: Some(at), arguments: arguments.to_owned(), ..CallPiece::default() };
        if !self.called.contains_key(&at) {
            piece.id = text(item, "call_id").to_owned();
            piece.name = text(item, "name").to_owned();
            piece.is_open = true;
        }
        let index = self.calls.push(piece)?;
        self.called.insert(at, index);
        Ok(index)
    }

    fn item_done(&mut self, at: u64, item: &Value, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        match text(item, "type") {
            "message" => {
                let parts = item["content"].as_array();
                self.refused |= parts.is_some_and(|parts| parts.iter().any(|part| part["type"] == "refusal"));
                if !self.text_items.contains(&at) {
                    self.push_text(at, &item_texts(item).collect::<String>(), out);
                }
            }
            "function_call" => {
                let id = text(item, "call_id");
                let index = match self.calls.find(id, self.called.get(&at).copied()) {
                    Some(index) => index,
                    None => self.call(at, item, "")?,
                };
                self.calls.complete(index, id, text(item, "name"));
                if let Some(arguments) = item["arguments"].as_str().filter(|text| !text.is_empty()) {
                    self.calls.set_arguments(index, arguments.to_owned())?;
                }
                self.calls.close(index);
            }
            "reasoning" if !self.thought.contains(&at) => {
                let parts = ["summary", "content"].into_iter().filter_map(|name| item[name].as_array());
                let texts: Vec<&str> = parts.flatten().filter_map(|part| part["text"].as_str()).collect();
                self.think(at, &texts.join(PARAGRAPH), out);
            }
            "image_generation_call" => {
                // A failed tool has no image.
                let result = text(item, "result");
                if !result.is_empty() {
                    self.media.take(result, out);
                }
            }
            _ => {}
        }
        let mut stored = item.clone();
        // The provider finds the image by the item's ID.
        if let Some(fields) = stored.as_object_mut().filter(|fields| fields.contains_key("result")) {
            fields.remove("result");
        }
        self.items.insert(at, stored);
        if self.items.len() > MAX_ITEMS { Err(garbled("too many items")) } else { Ok(()) }
    }

    /// Processes the final response. `default` is its status if it contains none.
    fn conclude(&mut self, response: &Value, default: &str, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        self.usage = usage(&response["usage"]).or(self.usage);
        let status = response["status"].as_str().filter(|status| !status.is_empty()).unwrap_or(default);
        let error = &response["error"];
        if status == "failed" || !error.is_null() {
            let unknown = json!({"message": "the response failed"});
            return Err(refusal::in_stream(if error.is_null() { &unknown } else { error }));
        }
        let is_cut = status == "incomplete";
        let reason = if is_cut { text(&response["incomplete_details"], "reason") } else { status };
        let end = finish(reason)?.unwrap_or(if is_cut { Finish::Length } else { Finish::Complete });
        let has_streamed = !self.text_items.is_empty();
        // Streamed parts take precedence over the final list. Some servers omit it or leave it empty, and some report a
        // part only there.
        for (at, item) in (0..).zip(response["output"].as_array().into_iter().flatten()) {
            if self.is_news(at, item, has_streamed) {
                let is_used = self.items.contains_key(&at);
                let next = self.items.keys().next_back().map_or(0, |last| last.saturating_add(1));
                self.item_done(if is_used { next } else { at }, item, out)?;
            }
        }
        self.done = true;
        out.extend(self.parts().map(Delta::ProviderParts));
        let calls = self.calls.take(if is_cut { Finish::Length } else { end });
        out.extend(calls.into_iter().map(Delta::Call));
        out.extend(self.usage.take().map(Delta::Usage));
        out.push(Delta::Finish(if self.refused { Finish::Filtered } else { end }));
        Ok(())
    }

    /// Returns whether an item of the final list has not already arrived complete, at any index. If text was streamed,
    /// all messages have arrived.
    fn is_news(&self, at: u64, item: &Value, has_streamed: bool) -> bool {
        let has = |name: &str| self.items.values().any(|known| known[name] == item[name]);
        match text(item, "type") {
            "message" => !self.items.contains_key(&at) && (!has_streamed || self.text_items.contains(&at)),
            "function_call" => !has("call_id"),
            // Some gateways change the ID at the end.
            kind => !has("id") && self.items.get(&at).is_none_or(|known| known["type"] != kind),
        }
    }

    /// Returns the items if they include thoughts that can be sent back.
    fn parts(&mut self) -> Option<ProviderParts> {
        let is_thought = |item: &Value| item["type"] == "reasoning";
        // Thoughts without content have only an ID, which the provider does not keep.
        let is_full = |item: &Value| {
            item["encrypted_content"].as_str().is_some_and(|text| !text.is_empty())
                || item["content"].as_array().is_some_and(|parts| !parts.is_empty())
        };
        let is_image = |item: &Value| item["type"] == "image_generation_call";
        let is_sent_back =
            |item: &Value| self.is_stored || !is_image(item) && (!is_thought(item) || is_full(item));
        let items: Vec<Value> = std::mem::take(&mut self.items).into_values().filter(is_sent_back).collect();
        let origin = std::mem::take(&mut self.origin);
        items.iter().any(is_thought).then(|| ProviderParts { origin, parts: json!({ITEMS: items}) })
    }

    fn typed(&mut self, kind: &str, event: &Value, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        let at = event["output_index"].as_u64().unwrap_or(0);
        let (item, delta) = (&event["item"], text(event, "delta"));
        match kind {
            "response.output_item.added" if item["type"] == "function_call" => {
                self.call(at, item, "").map(drop)
            }
            "response.output_item.done" => self.item_done(at, item, out),
            "response.output_text.done" if !self.text_items.contains(&at) => {
                self.push_text(at, text(event, "text"), out);
                Ok(())
            }
            "response.function_call_arguments.done" => {
                let index = self.call(at, event, "")?;
                self.calls.set_arguments(index, text(event, "arguments").to_owned())?;
                self.calls.close(index);
                Ok(())
            }
            "response.completed" | "response.incomplete" | "response.failed" | "response.done" => {
                self.conclude(&event["response"], kind.trim_start_matches("response."), out)
            }
            _ => self.grow(kind, at, event, delta, out),
        }
    }

    /// Processes an event that extends an item: text, thoughts or arguments. Other events are ignored.
    fn grow(
        &mut self,
        kind: &str,
        at: u64,
        event: &Value,
        delta: &str,
        out: &mut Vec<Delta>,
    ) -> Result<(), ModelError> {
        match kind {
            "response.output_text.delta" => self.push_text(at, delta, out),
            "response.refusal.delta" => {
                self.refused = true;
                self.push_text(at, delta, out);
            }
            "response.function_call_arguments.delta" => drop(self.call(at, event, delta)?),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.think(at, delta, out)
            }
            // A new paragraph of the same thoughts begins.
            "response.reasoning_summary_part.added" if self.thought.contains(&at) => {
                out.push(Delta::Reasoning(PARAGRAPH.to_owned()));
            }
            _ => {}
        }
        Ok(())
    }
}

/// The most frequent event of a stream: a piece of an item.
#[derive(Deserialize)]
struct GrowthEvent<'a> {
    r#type: &'a str,
    output_index: u64,
    delta: String,
}

impl<'a> GrowthEvent<'a> {
    fn parse(data: &'a str) -> Option<Self> {
        let growth: Self = decode_strictly(data)?;
        growth.r#type.ends_with(".delta").then_some(growth)
    }
}

impl EventDecoder for ItemDecoder {
    fn event(&mut self, kind: &str, data: &str, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        if self.done || data.is_empty() || data == "[DONE]" {
            return Ok(());
        }
        if let Some(GrowthEvent { r#type: kind, output_index: at, delta }) = GrowthEvent::parse(data)
            && (kind != "response.function_call_arguments.delta" || self.called.contains_key(&at))
        {
            return self.grow(kind, at, &Value::Null, &delta, out);
        }
        let event: Value = wire::read(data)?;
        let kind = event["type"].as_str().unwrap_or(kind);
        if kind == "response.output_item.done" {
            self.kept_bytes += data.len();
            if self.kept_bytes > MAX_KEPT_BYTES {
                return Err(garbled("too large items"));
            }
        }
        if kind == "error" || (kind.is_empty() && !event["error"].is_null()) {
            return Err(refusal::in_stream(&event));
        }
        let is_document = event["object"] == "response" || event["output"].is_array();
        match is_document && !kind.starts_with("response.") {
            true => self.conclude(&event, "", out),
            false => self.typed(kind, &event, out),
        }
    }

    fn end(&mut self, _: &mut Vec<Delta>) -> Result<(), ModelError> {
        if self.done { Ok(()) } else { Err(cut()) }
    }

    fn usage(&mut self) -> Option<Usage> {
        self.usage.take()
    }

    fn media(&self) -> usize {
        self.media.left_out()
    }
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

fn usage(usage: &Value) -> Option<Usage> {
    let count = |value: &Value| value.as_u64().unwrap_or(0);
    let input = &usage["input_tokens_details"];
    let reported = Usage {
        cached: count(&input["cached_tokens"]),
        cache_writes: count(&input["cache_write_tokens"]),
        reasoning: count(&usage["output_tokens_details"]["reasoning_tokens"]),
        ..Usage::plain(count(&usage["input_tokens"]), count(&usage["output_tokens"]))
    };
    let total = usage["total_tokens"].as_u64();
    let audio = count(&input["audio_tokens"]);
    usage.is_object().then(|| to_usage(&UsageReport { reported, audio, total }))
}

#[cfg(test)]
mod tests;
