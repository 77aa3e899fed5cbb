//! What the model answers: an answer in chunks, an error, or silence, and what goes wrong on the way.

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
    /// The request is taken and nothing ever comes back.
    Silence,
    /// The connection closes without an answer.
    Cut,
}

/// Text and tool calls, and how they come.
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
    /// Its id; made up when empty.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments as written by the model, which may be broken.
    pub arguments: String,
}

/// Tokens used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Read by the model.
    pub input: u64,
    /// Written by it.
    pub output: u64,
}

/// What goes wrong in a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The connection closes.
    Cut,
    /// An event comes that is no JSON, then the stream goes on.
    Garbage,
    /// Nothing more comes, and the connection stays.
    Stall,
    /// The provider reports an error inside the stream and ends it.
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

/// What providers refuse a request for, each with a status and words of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Too many requests.
    RateLimit,
    /// The provider has too much to do.
    Overloaded,
    /// The request is longer than the model's context.
    Overflow,
}

/// The two ways in which servers say how long to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAfter {
    /// `Retry-After`, whole seconds.
    Seconds(u64),
    /// `retry-after-ms`.
    Millis(u64),
}

impl Reply {
    /// A text, a chunk a word.
    #[must_use]
    pub fn text(text: &str) -> Answer {
        Answer { chunks: split(text, 1), ..Answer::default() }
    }

    /// So many words, evenly over a time, the last one at its end.
    #[must_use]
    pub fn words(count: u32, over: Duration) -> Self {
        let text: Vec<_> = (1..=count).map(|n| format!("word{n}")).collect();
        Self::text(&text.join(" ")).every(over / count.max(1)).into()
    }

    /// A call of a tool.
    #[must_use]
    pub fn tool(name: &str, arguments: &Value) -> Answer {
        Answer::default().tool(name, arguments)
    }

    /// An error status with the provider's form of body.
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

    /// A refusal in the provider's own words.
    #[must_use]
    pub fn refused(cause: Cause) -> Refusal {
        Refusal { cause: Some(cause), ..Self::status(0) }
    }
}

impl Answer {
    /// Comes in exactly these chunks.
    #[must_use]
    pub fn chunks<S: Into<String>>(mut self, chunks: impl IntoIterator<Item = S>) -> Self {
        self.chunks = chunks.into_iter().map(Into::into).collect();
        self
    }

    /// So many words a chunk.
    #[must_use]
    pub fn words_per_chunk(mut self, words: usize) -> Self {
        self.chunks = split(&self.chunks.concat(), words);
        self
    }

    /// Thinks first, a chunk a word, where the request asks for thoughts; over chat completions always, as
    /// `reasoning_content`.
    #[must_use]
    pub fn reasoning(mut self, text: &str) -> Self {
        self.reasoning = split(text, 1);
        self
    }

    /// Draws an image, by its `data:` address; over chat completions only.
    #[must_use]
    pub fn image(mut self, address: &str) -> Self {
        self.images.push(address.to_owned());
        self
    }

    /// Calls a tool.
    #[must_use]
    pub fn tool(self, name: &str, arguments: &Value) -> Self {
        self.raw_tool(name, &arguments.to_string())
    }

    /// Calls a tool with arguments that need not be JSON. A wire whose arguments are an object tells of a call that
    /// could not be read instead, as its provider does.
    #[must_use]
    pub fn raw_tool(mut self, name: &str, arguments: &str) -> Self {
        let call = ToolCall { id: String::new(), name: name.to_owned(), arguments: arguments.to_owned() };
        self.tools.push(call);
        self
    }

    /// Waits before anything is sent, the head included.
    #[must_use]
    pub fn after(mut self, first_delay: Duration) -> Self {
        self.first_delay = first_delay;
        self
    }

    /// Waits so long before each chunk.
    #[must_use]
    pub fn every(mut self, chunk_delay: Duration) -> Self {
        self.chunk_delay = chunk_delay;
        self
    }

    /// Ends for this reason, and not for `stop` or `tool_calls`. Reasons are chat completions' and are told in each wire's
    /// own words.
    #[must_use]
    pub fn finish(mut self, reason: &str) -> Self {
        self.finish = Some(reason.to_owned());
        self
    }

    /// Says that it used so many tokens; otherwise it counts words.
    #[must_use]
    pub fn usage(mut self, input: u64, output: u64) -> Self {
        self.usage = Some(Usage { input, output });
        self
    }

    /// Goes wrong after so many chunks of the stream, the opening one with the role not counted.
    #[must_use]
    pub fn trouble(mut self, chunks: usize, trouble: Trouble) -> Self {
        self.trouble = Some((chunks, trouble));
        self
    }

    /// The connection closes after so many chunks.
    #[must_use]
    pub fn cut_after(self, chunks: usize) -> Self {
        self.trouble(chunks, Trouble::Cut)
    }

    /// Nothing more comes after so many chunks.
    #[must_use]
    pub fn stall_after(self, chunks: usize) -> Self {
        self.trouble(chunks, Trouble::Stall)
    }

    /// Why it ends.
    pub(crate) fn reason(&self) -> &str {
        match &self.finish {
            Some(reason) => reason,
            None if self.tools.is_empty() => "stop",
            None => "tool_calls",
        }
    }
}

impl Refusal {
    /// Says how long to wait.
    #[must_use]
    pub fn retry_after(mut self, wait: RetryAfter) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// How long to wait.
    pub(crate) fn wait(&self) -> Option<Duration> {
        self.retry_after.map(|wait| match wait {
            RetryAfter::Seconds(seconds) => Duration::from_secs(seconds),
            RetryAfter::Millis(millis) => Duration::from_millis(millis),
        })
    }

    /// As this wire's provider says it.
    pub(crate) fn of(mut self, wire: Wire) -> Self {
        if let Some(cause) = self.cause.take() {
            let (status, message, code) = errors::cause(wire, cause);
            self.status = status;
            self.message = message.to_owned();
            self.code = code;
        }
        self
    }

    /// With this message.
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

/// Cuts before every nth word; the space stays with the word after it, as tokens have it.
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
