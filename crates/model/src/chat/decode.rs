//! Decodes replies of the wire into deltas.

mod chunk;
mod details;

pub(super) use self::details::FIELD as DETAILS;
use self::{
    chunk::{CallPart, Chunk, CompletionChoice, ContentPart},
    details::ReasoningDetails,
};
use super::text_calls::TextCalls;
use crate::{
    ModelSettings,
    calls::{CallPiece, PartialCalls},
    finish::finish,
    inline_images::InlineImages,
    media::ReplyMedia,
    parts, refusal,
    think::{Said, ThinkHabit, ThinkSplitter},
    wire::{self, EventDecoder, cut},
};
use pudu_base::{Delta, Finish, ModelError, ProviderParts, ToolCall, Usage};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Decodes the chunks of one reply, or the single document of a server that does not stream.
#[derive(Debug, Default)]
pub(super) struct ChunkDecoder {
    origin: String,
    /// Parser of calls within the text, for engines that write them there.
    text_calls: Option<TextCalls>,
    split: ThinkSplitter,
    calls: PartialCalls,
    /// Data that the provider expects back with a call, by the call's index.
    call_extras: BTreeMap<usize, Value>,
    details: ReasoningDetails,
    usage: Option<Usage>,
    finish: Option<Finish>,
    refused: bool,
    media: ReplyMedia,
    inline_images: InlineImages,
    done: bool,
}

impl ChunkDecoder {
    pub(super) fn new(settings: &ModelSettings, habit: &ThinkHabit) -> Self {
        Self {
            origin: settings.origin(),
            text_calls: settings.dialect.text_calls.then(TextCalls::default),
            split: ThinkSplitter::new(habit),
            ..Self::default()
        }
    }

    fn choice(&mut self, choice: CompletionChoice, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        // The choices of a complete reply contain `message` instead of `delta`.
        let is_whole = choice.message.is_some();
        if let Some(usage) = choice.usage {
            self.usage.get_or_insert(usage.into());
        }
        if let Some(part) = choice.delta.or(choice.message) {
            self.part(part, out)?;
        }
        let reason = choice.finish_reason.as_ref().and_then(Value::as_str).unwrap_or_default();
        match finish(reason)? {
            Some(finish) => self.finish = Some(finish),
            // A document without a finish reason is complete.
            None if is_whole => self.finish = Some(Finish::Complete),
            None => {}
        }
        Ok(())
    }

    fn part(&mut self, part: ContentPart, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        let mut detailed = String::new();
        for detail in part.reasoning_details.into_iter().flatten() {
            detailed.push_str(&self.details.push(detail)?);
        }
        let (mut thoughts, words) = part.content.map(chunk::split_content).unwrap_or_default();
        // Gateways may send the same thoughts in several fields.
        let names = [part.reasoning_content.as_ref(), part.reasoning.as_ref()];
        let thought = names.into_iter().flatten().filter_map(Value::as_str).find(|text| !text.is_empty());
        thoughts.insert_str(0, thought.unwrap_or(&detailed));
        if !thoughts.is_empty()
            && let Some(said) = self.split.thinks_elsewhere()
        {
            self.push_piece(said, out)?;
        }
        think(thoughts, out);
        self.push_text(&words, out)?;
        for image in part.images.into_iter().flatten() {
            self.media.take_url(image["image_url"]["url"].as_str().unwrap_or_default(), out);
        }
        if let Some(refusal) = part.refusal.filter(|refusal| !refusal.is_empty()) {
            self.refused = true;
            out.push(Delta::Text(refusal));
        }
        part.tool_calls.into_iter().flatten().try_for_each(|call| self.call(call))
    }

    fn push_text(&mut self, words: &str, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        if words.is_empty() {
            return Ok(());
        }
        self.split.push(words).into_iter().try_for_each(|said| self.push_piece(said, out))
    }

    fn push_piece(&mut self, said: Said, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        match (said, &mut self.text_calls) {
            (Said::Thought(thought), _) => think(thought, out),
            (Said::Words(words), Some(calls)) => out.extend(calls.push(&words)?.map(Delta::Text)),
            (Said::Words(words), None) => self.inline_images.push(&words, &mut self.media, out),
            (Said::Retract, calls) => {
                if let Some(calls) = calls {
                    *calls = TextCalls::default();
                }
                self.inline_images = InlineImages::default();
                out.push(Delta::Retract);
            }
        }
        Ok(())
    }

    fn call(&mut self, call: CallPart) -> Result<(), ModelError> {
        let function = call.function.unwrap_or_default();
        let (arguments, replaces) = match function.arguments {
            Some(Value::String(piece)) => (piece, false),
            Some(object @ Value::Object(_)) => (object.to_string(), true),
            _ => (String::new(), false),
        };
        let piece = CallPiece {
            index: call.index,
            id: call.id.unwrap_or_default(),
            name: function.name.unwrap_or_default(),
            arguments: if replaces { String::new() } else { arguments.clone() },
            is_open: false,
        };
        let at = self.calls.push(piece)?;
        if replaces {
            self.calls.set_arguments(at, arguments)?;
        }
        if let Some(extra) = call.extra_content.filter(|extra| !extra.is_null()) {
            self.call_extras.insert(at, extra);
        }
        Ok(())
    }

    /// Handles an error inside the stream. After the finish reason for an exhausted output limit, OpenRouter also
    /// reports the limit as an error.
    fn failed(&self, error: ModelError) -> Result<(), ModelError> {
        if self.finish == Some(Finish::Length) { Ok(()) } else { Err(error) }
    }

    /// Ends the reply once its finish reason is known.
    fn conclude(&mut self, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        let Some(mut finish) = self.finish.filter(|_| !self.done) else { return Ok(()) };
        self.done = true;
        if let Some(said) = self.split.end() {
            self.push_piece(said, out)?;
        }
        self.inline_images.end(&mut self.media, out);
        if self.refused {
            finish = Finish::Filtered;
        }
        let mut calls = self.calls.take(finish);
        if let Some(text_calls) = self.text_calls.take() {
            let (rest, written) = text_calls.end(finish);
            out.extend(rest.map(Delta::Text));
            calls.extend(written);
        }
        out.extend(self.parts(&calls).map(Delta::ProviderParts));
        out.extend(calls.into_iter().map(Delta::Call));
        out.extend(self.usage.take().map(Delta::Usage));
        out.push(Delta::Finish(finish));
        Ok(())
    }

    fn parts(&mut self, calls: &[ToolCall]) -> Option<ProviderParts> {
        let mut parts_kept = Map::new();
        if let Some(details) = std::mem::take(&mut self.details).whole() {
            parts_kept.insert(DETAILS.to_owned(), details);
        }
        let extras = calls.iter().enumerate();
        let extras: Vec<Value> = extras
            .filter_map(|(at, call)| Some(parts::call_part(call, self.call_extras.get(&at)?)))
            .collect();
        if !extras.is_empty() {
            parts_kept.insert(parts::CALLS.to_owned(), Value::Array(extras));
        }
        let origin = std::mem::take(&mut self.origin);
        (!parts_kept.is_empty()).then_some(ProviderParts { origin, parts: Value::Object(parts_kept) })
    }
}

impl EventDecoder for ChunkDecoder {
    fn event(&mut self, kind: &str, data: &str, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        if self.done {
            return Ok(());
        }
        if data == "[DONE]" {
            // A server that sends the end marker without a finish reason has sent everything.
            self.finish.get_or_insert(Finish::Complete);
            return self.conclude(out);
        }
        if kind == "error" {
            return self.failed(refusal::in_stream_text(data));
        }
        let mut chunk: Chunk = wire::read(data)?;
        let usage = chunk.usage.take().or(chunk.x_groq.take().and_then(|groq| groq.usage));
        if let Some(usage) = usage {
            // Each report is a running total.
            self.usage = Some(usage.into());
        }
        if let Some(error) = chunk.failure() {
            return self.failed(refusal::in_stream(error));
        }
        if chunk.is_failure() {
            return self.failed(refusal::in_stream_text(data));
        }
        let first = chunk.choices.into_iter().flatten().find(|choice| choice.index.unwrap_or(0) == 0);
        first.map_or(Ok(()), |choice| self.choice(choice, out))
    }

    fn end(&mut self, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        // Some servers close the connection after the finish reason without the end marker.
        self.conclude(out)?;
        if self.done { Ok(()) } else { Err(cut()) }
    }

    fn usage(&mut self) -> Option<Usage> {
        self.usage.take()
    }

    fn media(&self) -> usize {
        self.media.left_out()
    }
}

fn think(thought: String, out: &mut Vec<Delta>) {
    if !thought.is_empty() {
        out.push(Delta::Reasoning(thought));
    }
}

#[cfg(test)]
mod tests;
