//! Answers of the model: text in chunks, an error, or silence, and failures in between.

use super::{Wire, errors};
use serde_json::Value;
use std::time::Duration;

/// The answer to one request.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// Text and tool calls.
    Answer(Answer),
    /// An error status.
    Refusal(Refusal),
    /// The request is accepted but never answered.
    Silence,
    /// The connection closes without a response.
    Cut,
}

/// Text and tool calls, and their timing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    pub(crate) reasoning: Vec<String>,
    pub(crate) chunks: Vec<String>,
    pub(crate) tools: Vec<ToolCall>,
    pub(crate) images: Vec<String>,
    pub(crate) finish: Option<String>,
    pub(crate) usage: Option<Usage>,
    pub(crate) first_delay: Duration,
    pub(crate) chunk_delay: Duration,
    pub(crate) trouble: Option<(usize, Trouble)>,
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    /// ID; generated if empty.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Arguments as written by the model, possibly invalid.
    pub arguments: String,
}

/// Tokens used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the request.
    pub input: u64,
    /// Tokens of the answer.
    pub output: u64,
}

/// Failure in a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The connection closes.
    Cut,
    /// An event that is not JSON, after which the stream continues.
    Garbage,
    /// The stream stalls, and the connection stays open.
    Stall,
    /// The provider sends an error in the stream and ends it.
    Error(String),
}

/// An error status.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    pub(crate) status: u16,
    pub(crate) message: String,
    pub(crate) code: Option<&'static str>,
    pub(crate) cause: Option<Cause>,
    pub(crate) retry_after: Option<RetryAfter>,
}

/// Reasons for a refusal, each with its own status and message per provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Too many requests.
    RateLimit,
    /// The provider is overloaded.
    Overloaded,
    /// The request exceeds the model's context.
    Overflow,
}

/// The two ways in which servers send a retry delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAfter {
    /// `Retry-After`, whole seconds.
    Seconds(u64),
    /// `retry-after-ms`.
    Millis(u64),
}

impl Reply {
    /// Returns a text, one word per chunk.
    #[must_use]
    pub fn text(text: &str) -> Answer {
        Answer { chunks: split(text, 1), ..Answer::default() }
    }

    /// Returns this number of words, evenly over a time, the last one at its end.
    #[must_use]
    pub fn words(count: u32, over: Duration) -> Self {
        let text: Vec<_> = (1..=count).map(|n| format!("word{n}")).collect();
        Self::text(&text.join(" ")).every(over / count.max(1)).into()
    }

    /// Returns a tool call.
    #[must_use]
    pub fn tool(name: &str, arguments: &Value) -> Answer {
        Answer::default().tool(name, arguments)
    }

    /// Returns an error status with a body in the provider's format.
    #[must_use]
    pub fn status(status: u16) -> Refusal {
        Refusal {
            status,
            message: format!("scripted status {status}"),
            code: None,
            cause: None,
            retry_after: None,
        }
    }

    /// Returns a refusal in the provider's own format.
    #[must_use]
    pub fn refused(cause: Cause) -> Refusal {
        Refusal { cause: Some(cause), ..Self::status(0) }
    }
}

impl Answer {
    /// Sets the exact chunks.
    #[must_use]
    pub fn chunks<S: Into<String>>(mut self, chunks: impl IntoIterator<Item = S>) -> Self {
        self.chunks = chunks.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the number of words per chunk.
    #[must_use]
    pub fn words_per_chunk(mut self, words: usize) -> Self {
        self.chunks = split(&self.chunks.concat(), words);
        self
    }

    /// Adds reasoning, one word per chunk, if the request asks for it; over chat completions always, as
    /// `reasoning_content`.
    #[must_use]
    pub fn reasoning(mut self, text: &str) -> Self {
        self.reasoning = split(text, 1);
        self
    }

    /// Adds an image, by its `data:` URL; only over chat completions.
    #[must_use]
    pub fn image(mut self, address: &str) -> Self {
        self.images.push(address.to_owned());
        self
    }

    /// Adds a tool call.
    #[must_use]
    pub fn tool(self, name: &str, arguments: &Value) -> Self {
        self.raw_tool(name, &arguments.to_string())
    }

    /// Adds a tool call with arguments that need not be JSON. On a wire with object arguments this is an error for an
    /// unreadable call, like from its provider.
    #[must_use]
    pub fn raw_tool(mut self, name: &str, arguments: &str) -> Self {
        let call = ToolCall { id: String::new(), name: name.to_owned(), arguments: arguments.to_owned() };
        self.tools.push(call);
        self
    }

    /// Delays the response, including its head.
    #[must_use]
    pub fn after(mut self, first_delay: Duration) -> Self {
        self.first_delay = first_delay;
        self
    }

    /// Delays each chunk.
    #[must_use]
    pub fn every(mut self, chunk_delay: Duration) -> Self {
        self.chunk_delay = chunk_delay;
        self
    }

    /// Sets the finish reason instead of `stop` or `tool_calls`. Reasons are those of chat completions, translated for
    /// each wire.
    #[must_use]
    pub fn finish(mut self, reason: &str) -> Self {
        self.finish = Some(reason.to_owned());
        self
    }

    /// Sets the reported usage; by default words are counted.
    #[must_use]
    pub fn usage(mut self, input: u64, output: u64) -> Self {
        self.usage = Some(Usage { input, output });
        self
    }

    /// Sets a failure after this number of chunks, excluding the opening one with the role.
    #[must_use]
    pub fn trouble(mut self, chunks: usize, trouble: Trouble) -> Self {
        self.trouble = Some((chunks, trouble));
        self
    }

    /// Closes the connection after this number of chunks.
    #[must_use]
    pub fn cut_after(self, chunks: usize) -> Self {
        self.trouble(chunks, Trouble::Cut)
    }

    /// Stalls after this number of chunks.
    #[must_use]
    pub fn stall_after(self, chunks: usize) -> Self {
        self.trouble(chunks, Trouble::Stall)
    }

    /// Returns the finish reason.
    pub(crate) fn reason(&self) -> &str {
        match &self.finish {
            Some(reason) => reason,
            None if self.tools.is_empty() => "stop",
            None => "tool_calls",
        }
    }
}

impl Refusal {
    /// Sets the retry delay.
    #[must_use]
    pub fn retry_after(mut self, wait: RetryAfter) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// Returns the retry delay.
    pub(crate) fn wait(&self) -> Option<Duration> {
        self.retry_after.map(|wait| match wait {
            RetryAfter::Seconds(seconds) => Duration::from_secs(seconds),
            RetryAfter::Millis(millis) => Duration::from_millis(millis),
        })
    }

    /// Returns the refusal in the format of this wire's provider.
    pub(crate) fn of(mut self, wire: Wire) -> Self {
        if let Some(cause) = self.cause.take() {
            let (status, message, code) = errors::cause(wire, cause);
            self.status = status;
            self.message = message.to_owned();
            self.code = code;
        }
        self
    }

    /// Sets the message.
    #[must_use]
    pub fn message(mut self, message: &str) -> Self {
        self.message = message.to_owned();
        self
    }
}

impl From<Answer> for Reply {
    fn from(answer: Answer) -> Self {
        Self::Answer(answer)
    }
}

impl From<Refusal> for Reply {
    fn from(refusal: Refusal) -> Self {
        Self::Refusal(refusal)
    }
}

/// Splits before every nth word; the space stays with the next word, as in tokens.
fn split(text: &str, words: usize) -> Vec<String> {
    let mut chunks: Vec<String> = Vec::new();
    let mut count = 0;
    let mut spaces = true;
    for c in text.chars() {
        let starts = c.is_whitespace() && !spaces;
        count += usize::from(starts);
        spaces = c.is_whitespace();
        match chunks.last_mut() {
            Some(chunk) if !(starts && count % words.max(1) == 0) => chunk.push(c),
            _ => chunks.push(c.to_string()),
        }
    }
    chunks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_before_its_words_and_nothing_is_lost() {
        let check = |text: &str, words, expected: &[&str]| {
            assert_eq!(split(text, words), expected);
            assert_eq!(split(text, words).concat(), text);
        };
        check("", 1, &[]);
        check("one", 1, &["one"]);
        check("one two  three\n", 1, &["one", " two", "  three", "\n"]);
        check("one two three four five", 2, &["one two", " three four", " five"]);
        check(" x", 1, &[" x"]);
    }
}
