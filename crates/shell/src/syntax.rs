//! Parts of a script, and the reader with its position.

/// Maximum nesting of brackets in a script whose effect is certain.
const MAX_CERTAIN_BRACKETS: usize = 16;

/// Reason why a script cannot be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnreadScript {
    /// A quote is not closed.
    Quotes,
    /// A bracket is not closed.
    Brackets,
    /// The script is nested too deeply.
    Deep,
    /// The script is too long.
    Long,
}

/// Result of parsing a part of a script.
pub(crate) type ScriptResult<T> = Result<T, UnreadScript>;

/// A parsed script.
pub(crate) struct ParsedScript {
    pub(crate) commands: Vec<ParsedCommand>,
    /// The first construct that a shell may parse differently.
    pub(crate) uncertain: Option<&'static str>,
}

/// One simple command of a script, or the head of a loop.
#[derive(Debug, Default)]
pub(crate) struct ParsedCommand {
    pub(crate) words: Vec<ShellWord>,
    /// Paths that its output is written to.
    pub(crate) targets: Vec<String>,
    /// Paths that its input is read from.
    pub(crate) sources: Vec<String>,
    /// Text passed as its input.
    pub(crate) input: Option<String>,
    /// Commands that are substituted in its input or in the names of its files.
    pub(crate) inner: Vec<ParsedCommand>,
    /// Whether its output is piped into the next command.
    pub(crate) piped: bool,
    /// Whether the command has a redirection.
    pub(crate) redirected: bool,
}

impl ParsedCommand {
    pub(crate) fn is_empty(&self) -> bool {
        let Self { words, targets, sources, input, inner, piped: _, redirected: _ } = self;
        words.is_empty() && targets.is_empty() && sources.is_empty() && input.is_none() && inner.is_empty()
    }

    /// Returns the commands that are substituted in this one.
    pub(crate) fn nested(&self) -> impl Iterator<Item = &[ParsedCommand]> {
        self.words.iter().map(|word| word.inner.as_slice()).chain([self.inner.as_slice()])
    }
}

/// A word of a command.
#[derive(Debug, Default)]
pub(crate) struct ShellWord {
    /// The word without quotes. Parts that are inserted at run time are kept as written.
    pub(crate) text: String,
    /// Position of the first quote in the text, in bytes.
    quoted_at: Option<usize>,
    /// Position of the first part that is inserted at run time, in bytes.
    opened_at: Option<usize>,
    /// Whether the word may expand to several words or none at run time.
    pub(crate) is_split: bool,
    /// Commands that are substituted in the word.
    pub(crate) inner: Vec<ParsedCommand>,
}

impl ShellWord {
    pub(crate) fn new(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }

    /// Creates the word of a process substitution.
    pub(crate) fn process(inner: Vec<ParsedCommand>) -> Self {
        Self { inner, opened_at: Some(0), is_split: true, ..Self::new("/dev/fd/63") }
    }

    /// Marks the start of a quote.
    pub(crate) fn quote(&mut self) {
        self.quoted_at.get_or_insert(self.text.len());
    }

    /// Marks the start of a part that is inserted at run time.
    pub(crate) fn open(&mut self, in_quotes: bool) {
        self.opened_at.get_or_insert(self.text.len());
        self.is_split |= !in_quotes;
    }

    pub(crate) fn is_quoted(&self) -> bool {
        self.quoted_at.is_some()
    }

    /// Returns whether a part of the word is inserted at run time.
    pub(crate) fn is_open(&self) -> bool {
        self.opened_at.is_some()
    }

    /// Returns whether the word is exactly its text at run time.
    pub(crate) fn is_fixed(&self) -> bool {
        !self.is_open() && !self.is_split
    }

    /// Returns whether the word begins with a literal character that does not begin an option.
    pub(crate) fn begins_fixed(&self) -> bool {
        self.opened_at != Some(0) && !self.text.starts_with(['-', '$'])
    }

    /// Returns whether the word is this keyword, unquoted.
    pub(crate) fn is_keyword(&self, keyword: &str) -> bool {
        self.text == keyword && !self.is_quoted()
    }

    /// Returns the name of the variable that this word assigns.
    pub(crate) fn variable(&self) -> Option<&str> {
        let bare = self.quoted_at.into_iter().chain(self.opened_at).min().unwrap_or(self.text.len());
        let (name, _) = self.text.split_once('=').filter(|(name, _)| name.len() < bare)?;
        let name = name.strip_suffix('+').unwrap_or(name);
        (name.starts_with(|c: char| !c.is_ascii_digit()) && name.chars().all(is_name)).then_some(name)
    }
}

/// Returns whether a variable's name may contain a character.
pub(crate) fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Parser of a script, with its position and remaining depth.
pub(crate) struct ScriptReader {
    pub(crate) chars: Vec<char>,
    pub(crate) at: usize,
    depth: usize,
    /// Number of open brackets.
    pub(crate) brackets: usize,
    /// Whether a here-document follows the current line.
    pub(crate) has_document: bool,
    pub(crate) uncertain: Option<&'static str>,
}

impl ScriptReader {
    pub(crate) fn new(script: &str, depth: usize) -> Self {
        let chars = script.chars().collect();
        Self { chars, at: 0, depth, brackets: 0, has_document: false, uncertain: None }
    }

    /// Notes a construct that a shell may parse differently.
    pub(crate) fn note(&mut self, construct: &'static str) {
        self.uncertain.get_or_insert(construct);
    }

    pub(crate) fn note_if(&mut self, is_uncertain: bool, construct: &'static str) {
        if is_uncertain {
            self.note(construct);
        }
    }

    pub(crate) fn peek(&self) -> Option<char> {
        self.peek_at(0)
    }

    pub(crate) fn peek_at(&self, by: usize) -> Option<char> {
        self.chars.get(self.at + by).copied()
    }

    pub(crate) fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += 1;
        Some(c)
    }

    /// Skips an operator if it comes next. Returns whether it did.
    pub(crate) fn skip_sign(&mut self, sign: &str) -> bool {
        let found = sign.chars().enumerate().all(|(by, c)| self.peek_at(by) == Some(c));
        self.at += if found { sign.len() } else { 0 };
        found
    }

    /// Skips characters as long as `fits` accepts them, and returns them.
    pub(crate) fn eat_while(&mut self, fits: impl Fn(char) -> bool) -> String {
        let eaten: String = self.chars.iter().skip(self.at).copied().take_while(|c| fits(*c)).collect();
        self.at += eaten.chars().count();
        eaten
    }

    /// Returns the text from `start` to the current position.
    pub(crate) fn since(&self, start: usize) -> String {
        self.chars.get(start..self.at).unwrap_or_default().iter().collect()
    }

    /// Returns whether a process substitution begins here.
    pub(crate) fn at_process(&self) -> bool {
        matches!((self.peek(), self.peek_at(1)), (Some('<' | '>'), Some('(')))
    }

    /// Counts an opening bracket.
    pub(crate) fn open_bracket(&mut self) {
        self.note_if(self.has_document, "brackets next to a here-document");
        self.note_if(self.brackets == MAX_CERTAIN_BRACKETS, "too deeply nested brackets");
        self.brackets += 1;
    }

    /// Parses a nested part with a remaining depth of one less.
    pub(crate) fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> ScriptResult<T>) -> ScriptResult<T> {
        self.depth = self.depth.checked_sub(1).ok_or(UnreadScript::Deep)?;
        let inside = read(self);
        self.depth += 1;
        inside
    }

    /// Parses a nested text with a separate parser, one level deeper.
    pub(crate) fn apart<T>(
        &mut self,
        text: &str,
        read: impl FnOnce(&mut Self) -> ScriptResult<T>,
    ) -> ScriptResult<T> {
        self.deeper(|reader| {
            let mut inner = Self::new(text, reader.depth);
            let result = read(&mut inner);
            reader.uncertain = reader.uncertain.or(inner.uncertain);
            result
        })
    }
}
