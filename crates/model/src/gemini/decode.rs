//! Decodes replies of the wire into deltas. A stream has no final event, and parts may follow a finish reason: a reply
//! is complete when its bytes end after a finish reason or a refusal of the prompt. Four of 241 recorded streams had
//! neither; such a reply counts as truncated and is retried.

mod arguments;
mod chunk;

pub(super) use self::chunk::SIGNATURE;
use self::{
    arguments::StreamedCall,
    chunk::{CandidatePart, ContentChunk, ContentUsage, FunctionCallPart, ReplyCandidate},
};
use crate::{
    ModelSettings,
    calls::{CallPiece, PartialCalls},
    finish::finish,
    media::ReplyMedia,
    order::ReplyOrder,
    paragraphs::Paragraphs,
    refusal,
    wire::{self, EventDecoder, cut, garbled},
};
use pudu_base::{Delta, Finish, ModelError, Usage};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Maximum size of the chunks whose parts are kept unchanged, in bytes.
const MAX_KEPT_BYTES: usize = 16 * 1024 * 1024;

/// Decodes the chunks of one reply, or the single document of a server that does not stream.
#[derive(Debug, Default)]
pub(super) struct ContentDecoder {
    origin: String,
    calls: PartialCalls,
    call_count: u64,
    /// The call whose arguments are arriving in pieces.
    streamed: Option<StreamedCall>,
    /// Indexes of calls with incomplete arguments.
    unfinished: BTreeSet<usize>,
    order: ReplyOrder,
    paragraphs: Paragraphs,
    kept_bytes: usize,
    usage: Option<ContentUsage>,
    media: ReplyMedia,
    finish: Option<Finish>,
}

impl ContentDecoder {
    pub(super) fn new(settings: &ModelSettings) -> Self {
        Self { origin: settings.origin(), ..Self::default() }
    }

    fn read(&mut self, data: &str, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        let chunk: ContentChunk = wire::read(data)?;
        if let Some(usage) = chunk.usage_metadata {
            self.usage.get_or_insert_default().update(usage);
        }
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(refusal::in_stream(&error));
        }
        if chunk.prompt_feedback.is_some_and(|feedback| feedback.is_refusal()) {
            self.finish = Some(Finish::Filtered);
        }
        let first = chunk.candidates.into_iter().flatten().find(|one| one.index.unwrap_or(0) == 0);
        first.map_or(Ok(()), |candidate| self.candidate(candidate, data.len(), out))
    }

    fn candidate(
        &mut self,
        candidate: ReplyCandidate,
        bytes: usize,
        out: &mut Vec<Delta>,
    ) -> Result<(), ModelError> {
        for part in candidate.content.and_then(|content| content.parts).into_iter().flatten() {
            self.part(part, bytes, out)?;
        }
        if let Some(finish) = finish(candidate.finish_reason.as_deref().unwrap_or_default())? {
            self.finish = Some(finish);
        }
        Ok(())
    }

    fn part(&mut self, part: CandidatePart, bytes: usize, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        if part.thought == Some(true) {
            let thought = part.text.clone().filter(|text| !text.is_empty());
            out.extend(thought.map(Delta::Reasoning));
            return if part.signature.is_some() { self.keep(part.into_raw(), bytes) } else { Ok(()) };
        }
        // Images are too large to be sent back.
        if let Some(data) = part.rest.get("inlineData") {
            self.media.take(data["data"].as_str().unwrap_or_default(), out);
            return Ok(());
        }
        if part.signature.is_some() {
            self.count(bytes)?;
        }
        if let Some(call) = part.function_call {
            return self.call(call, part.signature);
        }
        match part.text {
            Some(text) => {
                let text = self.paragraphs.separate(text);
                if !text.is_empty() || part.signature.is_some() {
                    let extra = part.signature.map(|signature| extra([(SIGNATURE, Some(signature))]));
                    self.order.add_text(text.len(), extra.flatten());
                }
                out.extend((!text.is_empty()).then_some(Delta::Text(text)));
                Ok(())
            }
            None if part.rest.is_empty() => Ok(()),
            None => self.keep(part.into_raw(), bytes),
        }
    }

    fn keep(&mut self, part: Map<String, Value>, bytes: usize) -> Result<(), ModelError> {
        if part.get("thought").is_none() {
            self.paragraphs.interrupt();
        }
        self.order.part(part);
        self.count(bytes)
    }

    fn count(&mut self, bytes: usize) -> Result<(), ModelError> {
        self.kept_bytes += bytes;
        if self.kept_bytes > MAX_KEPT_BYTES {
            Err(garbled("too much data to keep for the provider"))
        } else {
            Ok(())
        }
    }

    /// Adds a call, or a piece of one.
    fn call(&mut self, call: FunctionCallPart, signature: Option<String>) -> Result<(), ModelError> {
        if self.streamed.as_ref().is_some_and(|open| open.is_followed_by(&call)) {
            // A call that is still open when another one begins is incomplete.
            self.end_streamed(false)?;
        }
        if !call.is_piece() && self.streamed.is_none() {
            if call.is_end() {
                return Ok(());
            }
            let args = call.args.unwrap_or_default();
            return self.whole_call(call.name.unwrap_or_default(), call.id, signature, &args, true);
        }
        let continues = call.is_continued();
        self.streamed.get_or_insert_default().grow(call, signature)?;
        if continues { Ok(()) } else { self.end_streamed(true) }
    }

    fn end_streamed(&mut self, is_whole: bool) -> Result<(), ModelError> {
        let Some(call) = self.streamed.take() else { return Ok(()) };
        let is_whole = is_whole && call.is_readable();
        self.whole_call(call.name, call.id, call.signature, &call.args, is_whole)
    }

    fn whole_call(
        &mut self,
        name: String,
        id: Option<String>,
        signature: Option<String>,
        args: &Value,
        is_whole: bool,
    ) -> Result<(), ModelError> {
        let extra = extra([(SIGNATURE, signature), ("id", id.clone())]);
        self.order.call(&name, extra);
        let arguments = if args.is_null() { "{}".to_owned() } else { args.to_string() };
        let id = id.unwrap_or_default();
        let at = self.calls.push(CallPiece {
            index: Some(self.call_count),
            id,
            name,
            arguments,
            is_open: false,
        })?;
        self.call_count += 1;
        if !is_whole {
            self.unfinished.insert(at);
        }
        Ok(())
    }

    fn conclude(&mut self, finish: Finish, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        self.end_streamed(false)?;
        let mut calls = self.calls.take(finish);
        for at in &self.unfinished {
            if let Some(call) = calls.get_mut(*at) {
                let args = std::mem::replace(&mut call.args, Value::Object(Map::new()));
                call.garbled.get_or_insert_with(|| args.to_string());
            }
        }
        let order = std::mem::take(&mut self.order);
        out.extend(order.into_parts(std::mem::take(&mut self.origin)).map(Delta::ProviderParts));
        out.extend(calls.into_iter().map(Delta::Call));
        out.extend(self.usage.take().map(|usage| Delta::Usage(Usage::from(usage))));
        out.push(Delta::Finish(finish));
        Ok(())
    }
}

/// Returns an object of the fields that are present; `None` if there are none.
fn extra<const N: usize>(fields: [(&str, Option<String>); N]) -> Option<Value> {
    let fields = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.into())));
    let fields: Map<String, Value> = fields.collect();
    (!fields.is_empty()).then_some(Value::Object(fields))
}

impl EventDecoder for ContentDecoder {
    fn event(&mut self, kind: &str, data: &str, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        if data == "[DONE]" {
            return Ok(());
        }
        if kind == "error" {
            return Err(refusal::in_stream_text(data));
        }
        if !data.starts_with('[') {
            return self.read(data, out);
        }
        // Without server-sent events, the whole stream is one list.
        let chunks: Vec<Value> = wire::read(data)?;
        chunks.iter().try_for_each(|chunk| self.read(&chunk.to_string(), out))
    }

    fn end(&mut self, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        match self.finish.take() {
            Some(finish) => self.conclude(finish, out),
            None => Err(cut()),
        }
    }

    fn usage(&mut self) -> Option<Usage> {
        self.usage.take().map(Usage::from)
    }

    fn media(&self) -> usize {
        self.media.left_out()
    }
}

#[cfg(test)]
mod tests;
