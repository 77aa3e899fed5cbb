//! The wires for a scripted answer: its stream, piece by piece, in each provider's format.

mod chat;
mod gemini;
mod messages;
mod ollama;
mod responses;

pub(crate) use chat::models;

use super::{Answer, Ask, ToolCall, Usage};
use serde_json::Value;
use std::{collections::VecDeque, sync::Arc};

/// Number of pieces of a tool call's arguments, for providers that split them.
const PIECES: usize = 3;

/// API of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Wire {
    /// OpenAI's chat completions, `POST /v1/chat/completions`.
    Chat,
    /// OpenAI's responses, `POST /v1/responses`.
    Responses,
    /// Anthropic's messages, `POST /v1/messages`.
    Messages,
    /// Gemini's `POST /v1beta/models/{model}:generateContent` and `:streamGenerateContent`, also under `/v1`.
    Gemini,
    /// Ollama's `POST /api/chat`.
    Ollama,
}

impl Wire {
    /// All wires.
    pub const ALL: [Self; 5] = [Self::Chat, Self::Responses, Self::Messages, Self::Gemini, Self::Ollama];

    /// Returns the writer of one answer.
    pub(crate) fn writer(self, said: Said) -> Box<dyn Writer> {
        match self {
            Self::Chat => Box::new(chat::ChatWriter::new(said)),
            Self::Responses => Box::new(responses::ResponsesWriter::new(said)),
            Self::Messages => Box::new(messages::MessagesWriter::new(said)),
            Self::Gemini => Box::new(gemini::GeminiWriter::new(said)),
            Self::Ollama => Box::new(ollama::OllamaWriter::new(said)),
        }
    }

    /// Returns the media type of a stream.
    pub(crate) fn stream_type(self) -> &'static str {
        match self {
            Self::Gemini => "text/event-stream",
            Self::Ollama => "application/x-ndjson",
            _ => "text/event-stream; charset=utf-8",
        }
    }
}

/// One answer to one request, with the data for its writer.
pub(crate) struct Said {
    /// The number of the call, from 1.
    pub(crate) n: u64,
    /// Time in seconds since 1970.
    pub(crate) created: i64,
    pub(crate) ask: Arc<Ask>,
    pub(crate) answer: Answer,
    pub(crate) usage: Usage,
}

impl Said {
    pub(crate) fn new(n: u64, created: i64, ask: Arc<Ask>, answer: Answer) -> Self {
        let usage = usage(&ask, &answer);
        Self { n, created, ask, answer, usage }
    }

    /// Returns the text of all thinking.
    fn thoughts(&self) -> String {
        self.answer.reasoning.concat()
    }

    fn text(&self) -> String {
        self.answer.chunks.concat()
    }

    /// Returns the number of output tokens for thoughts.
    fn thought_tokens(&self) -> u64 {
        words(&self.thoughts()).min(self.usage.output)
    }

    /// Returns the seed of an ID in this answer.
    fn seed(&self, what: &str) -> String {
        format!("{what}-{}-{}", self.created, self.n)
    }

    /// Returns the pieces of a stream: the opening, then thoughts, text and calls. Arguments are split if the wire does
    /// so.
    fn pieces(&self, thoughts: bool, cut_calls: bool) -> VecDeque<Piece> {
        let mut pieces = VecDeque::from([Piece::Opening]);
        if thoughts {
            pieces.extend(self.answer.reasoning.iter().cloned().map(Piece::Thought));
        }
        pieces.extend(self.answer.chunks.iter().cloned().map(Piece::Text));
        for (index, call) in self.answer.tools.iter().enumerate() {
            pieces.push_back(Piece::Call(index));
            if cut_calls {
                pieces.extend(cut(&call.arguments).into_iter().map(|text| Piece::Arguments(index, text)));
            }
        }
        pieces
    }

    fn call(&self, index: usize) -> &ToolCall {
        &self.answer.tools[index]
    }

    /// Returns the ID of a call: the script's, or a generated one with this prefix and length.
    fn call_id(&self, index: usize, prefix: &str, length: usize) -> String {
        match self.call(index).id.as_str() {
            "" => format!("{prefix}{}", super::seal::letters(&self.seed(&format!("call{index}")), length)),
            id => id.to_owned(),
        }
    }
}

/// A piece of a stream. Scripts count from the one after the opening.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Opening,
    Thought(String),
    Text(String),
    /// Begins a call, by its index in the answer; complete on wires that do not split calls.
    Call(usize),
    Arguments(usize, String),
}

/// Writes one answer in a provider's format.
pub(crate) trait Writer: Send {
    /// Returns the pieces of the stream.
    fn pieces(&self) -> VecDeque<Piece>;
    /// Returns a piece with its opening and closing frames.
    fn piece(&mut self, piece: &Piece) -> String;
    /// Returns the end of a stream.
    fn tail(&mut self) -> String;
    /// Returns an error in the middle of a stream.
    fn error(&mut self, message: &str) -> String;
    /// Returns a part of the stream that is not JSON.
    fn garbage(&self) -> &'static str;
    /// Returns the complete answer.
    fn whole(&mut self) -> Value;
}

/// Splits anywhere between characters: a piece alone is rarely JSON.
fn cut(arguments: &str) -> Vec<String> {
    let chars: Vec<char> = arguments.chars().collect();
    let size = chars.len().div_ceil(PIECES).max(1);
    chars.chunks(size).map(|piece| piece.iter().collect()).collect()
}

/// Returns the reported usage, by default one token per word.
fn usage(ask: &Ask, answer: &Answer) -> Usage {
    let input = ask.messages().iter().map(|message| words(&message["content"].to_string())).sum();
    let output =
        words(&answer.chunks.concat()) + answer.tools.iter().map(|call| words(&call.arguments)).sum::<u64>();
    answer.usage.unwrap_or(Usage { input, output })
}

fn words(text: &str) -> u64 {
    u64::try_from(text.split_whitespace().count()).unwrap_or(u64::MAX)
}

/// Returns a server-sent event, with a name if the provider uses one.
fn event(value: &Value) -> String {
    match value["type"].as_str() {
        Some(name) => format!("event: {name}\ndata: {value}\n\n"),
        None => format!("data: {value}\n\n"),
    }
}
