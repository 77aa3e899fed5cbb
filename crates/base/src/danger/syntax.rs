//! Parts of a script, and the place where it is being read.

use super::kind::Danger;

/// Result of reading a script: the value, or the reason why it cannot be read.
pub(super) type ScriptResult<T> = Result<T, Danger>;

/// One simple command of a script.
#[derive(Debug, Default)]
pub(super) struct ParsedCommand {
    pub(super) words: Vec<ShellWord>,
    /// Paths its output is written to.
    pub(super) targets: Vec<String>,
    /// Paths its input is read from.
    pub(super) sources: Vec<String>,
    /// The text that is its input.
    pub(super) input: Option<String>,
    /// Commands that are run to make up its input or the names of its files.
    pub(super) inner: Vec<ParsedCommand>,
    /// Whether its output goes into the next command.
    pub(super) piped: bool,
}

impl ParsedCommand {
    pub(super) fn is_empty(&self) -> bool {
        let Self { words, targets, sources, input, inner, piped: _ } = self;
        words.is_empty() && targets.is_empty() && sources.is_empty() && input.is_none() && inner.is_empty()
    }
}

/// A word of a command.
#[derive(Debug, Default)]
pub(super) struct ShellWord {
    /// Without its quotes; parts inserted only at run time are kept as written.
    pub(super) text: String,
    pub(super) quoted: bool,
    /// Commands that are run to make it up.
    pub(super) inner: Vec<ParsedCommand>,
}

impl ShellWord {
    pub(super) fn new(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }
}

/// A place in a script, and how much deeper it may go from there.
pub(super) struct ScriptReader {
    pub(super) chars: Vec<char>,
    pub(super) at: usize,
    pub(super) depth: usize,
}

impl ScriptReader {
    pub(super) fn new(script: &str, depth: usize) -> Self {
        Self { chars: script.chars().collect(), at: 0, depth }
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.peek_at(0)
    }

    pub(super) fn peek_at(&self, by: usize) -> Option<char> {
        self.chars.get(self.at + by).copied()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += 1;
        Some(c)
    }

    /// Goes on past a sign if it is the next one.
    pub(super) fn skip_sign(&mut self, sign: &str) -> bool {
        let found = sign.chars().enumerate().all(|(by, c)| self.peek_at(by) == Some(c));
        self.at += if found { sign.len() } else { 0 };
        found
    }

    /// Reads a nested part with one level less of the remaining depth.
    pub(super) fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> ScriptResult<T>) -> ScriptResult<T> {
        self.depth = self.depth.checked_sub(1).ok_or(Danger::Deep)?;
        let inside = read(self);
        self.depth += 1;
        inside
    }
}
