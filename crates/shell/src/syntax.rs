//! Parts of a script, and the place where it is being read.

/// Maximum depth of nested brackets in a script whose effect is certain.
const MAX_CERTAIN_BRACKETS: usize = 16;

/// Reason why a script cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnreadScript {
    /// Its quotes do not close.
    Quotes,
    /// Its brackets do not close.
    Brackets,
    /// It is nested too deep.
    Deep,
    /// It is too long.
    Long,
}

/// Result of reading a part of a script.
pub(crate) type ScriptResult<T> = Result<T, UnreadScript>;

/// A script.
pub(crate) struct ParsedScript {
    pub(crate) commands: Vec<ParsedCommand>,
    /// The first construct that a shell may read differently.
    pub(crate) uncertain: Option<&'static str>,
}

/// One simple command of a script, or the head of a loop.
#[derive(Debug, Default)]
pub(crate) struct ParsedCommand {
    pub(crate) words: Vec<ShellWord>,
    /// Paths its output is written to.
    pub(crate) targets: Vec<String>,
    /// Paths its input is read from.
    pub(crate) sources: Vec<String>,
    /// The text that is its input.
    pub(crate) input: Option<String>,
    /// Commands that are run to make up its input or the names of its files.
    pub(crate) inner: Vec<ParsedCommand>,
    /// Whether its output goes into the next command.
    pub(crate) piped: bool,
    /// Whether it has a redirection.
    pub(crate) redirected: bool,
}

impl ParsedCommand {
    pub(crate) fn is_empty(&self) -> bool {
        let Self { words, targets, sources, input, inner, piped: _, redirected: _ } = self;
        words.is_empty() && targets.is_empty() && sources.is_empty() && input.is_none() && inner.is_empty()
    }

    /// Returns the commands that are run to make this one up.
    pub(crate) fn nested(&self) -> impl Iterator<Item = &[ParsedCommand]> {
        self.words.iter().map(|word| word.inner.as_slice()).chain([self.inner.as_slice()])
    }
}

/// A word of a command.
#[derive(Debug, Default)]
pub(crate) struct ShellWord {
    /// Without its quotes; parts inserted only at run time are kept as written.
    pub(crate) text: String,
    /// Start of the first quote, in bytes of the text.
    quoted_at: Option<usize>,
    /// Start of the first part that is inserted at run time, in bytes of the text.
    opened_at: Option<usize>,
    /// Whether it may expand to several words, or none, at run time.
    pub(crate) is_split: bool,
    /// Commands that are run to make it up.
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

    /// Returns whether a part is inserted at run time.
    pub(crate) fn is_open(&self) -> bool {
        self.opened_at.is_some()
    }

    /// Returns whether the word is exactly its text.
    pub(crate) fn is_fixed(&self) -> bool {
        !self.is_open() && !self.is_split
    }

    /// Returns whether the word begins with a literal character that is none of an option.
    pub(crate) fn begins_fixed(&self) -> bool {
        self.opened_at != Some(0) && !self.text.starts_with(['-', '$'])
    }

    /// Returns whether it is this word of the shell's language.
    pub(crate) fn is_keyword(&self, keyword: &str) -> bool {
        self.text == keyword && !self.is_quoted()
    }

    /// Returns the name of the variable that a shell assigns by this word.
    pub(crate) fn variable(&self) -> Option<&str> {
        let bare = self.quoted_at.into_iter().chain(self.opened_at).min().unwrap_or(self.text.len());
        let (name, _) = self.text.split_once('=').filter(|(name, _)| name.len() < bare)?;
        let name = name.strip_suffix('+').unwrap_or(name);
        (name.starts_with(|c: char| !c.is_ascii_digit()) && name.chars().all(is_name)).then_some(name)
    }
}

/// Returns whether a character may be in the name of a variable.
pub(crate) fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// A place in a script, and how much deeper it may go from there.
pub(crate) struct ScriptReader {
    pub(crate) chars: Vec<char>,
    pub(crate) at: usize,
    depth: usize,
    /// Number of open brackets.
    pub(crate) brackets: usize,
    /// Whether a here-document follows the line.
    pub(crate) has_document: bool,
    pub(crate) uncertain: Option<&'static str>,
}

impl ScriptReader {
    pub(crate) fn new(script: &str, depth: usize) -> Self {
        let chars = script.chars().collect();
        Self { chars, at: 0, depth, brackets: 0, has_document: false, uncertain: None }
    }

    /// Notes a construct that a shell may read differently.
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

    /// Skips a sign if it is the next one.
    pub(crate) fn skip_sign(&mut self, sign: &str) -> bool {
        let found = sign.chars().enumerate().all(|(by, c)| self.peek_at(by) == Some(c));
        self.at += if found { sign.len() } else { 0 };
        found
    }

    /// Skips the characters that fit, and returns them.
    pub(crate) fn eat_while(&mut self, fits: impl Fn(char) -> bool) -> String {
        let eaten: String = self.chars.iter().skip(self.at).copied().take_while(|c| fits(*c)).collect();
        self.at += eaten.chars().count();
        eaten
    }

    /// Returns the text from a place up to here.
    pub(crate) fn since(&self, start: usize) -> String {
        self.chars.get(start..self.at).unwrap_or_default().iter().collect()
    }

    /// Returns whether a process substitution begins here.
    pub(crate) fn at_process(&self) -> bool {
        matches!((self.peek(), self.peek_at(1)), (Some('<' | '>'), Some('(')))
    }

    /// Counts a bracket that opens.
    pub(crate) fn open_bracket(&mut self) {
        self.note_if(self.has_document, "brackets beside a here-document");
        self.note_if(self.brackets == MAX_CERTAIN_BRACKETS, "too many brackets within each other");
        self.brackets += 1;
    }

    /// Reads a nested part with one level less of the remaining depth.
    pub(crate) fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> ScriptResult<T>) -> ScriptResult<T> {
        self.depth = self.depth.checked_sub(1).ok_or(UnreadScript::Deep)?;
        let inside = read(self);
        self.depth += 1;
        inside
    }

    /// Reads a text of its own within this script.
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
