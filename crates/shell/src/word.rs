//! Parses one word of a script, with its quotes and substituted commands.

use crate::syntax::{ParsedCommand, ScriptReader, ScriptResult, ShellWord, UnreadScript, is_name};

/// Maximum length of an arithmetic expression, in characters. A longer one is parsed as commands.
const MAX_ARITHMETIC_CHARS: usize = 1_000;
/// Descriptions of uncertain constructs that are noted in several places.
const IN_BRACKETS: &str = "a function, a list or a pattern in brackets";
const BESIDE_DOCUMENT: &str = "a quote next to a here-document";
/// Operators between a variable's name and a plain text within braces.
const CHANGES: [&str; 8] = [":-", "-", "%%", "%", "##", "#", "//", "/"];

impl ScriptReader {
    /// Parses a word, which is empty if no word begins here.
    pub(crate) fn word(&mut self) -> ScriptResult<ShellWord> {
        let mut word = ShellWord::default();
        let start = self.at;
        while let Some(c) = self.peek() {
            match c {
                '(' if word.text.ends_with('=') && !word.is_quoted() => self.list(&mut word)?,
                ';' | '&' | '|' | '(' | ')' | '<' | '>' => break,
                c if c.is_whitespace() => break,
                _ => self.part(&mut word)?,
            }
        }
        if self.at > start {
            self.note_if(self.peek() == Some('('), IN_BRACKETS);
            if self.at_process() {
                word.open(false);
            }
        }
        // These words are literal.
        if !word.is_open() && matches!(word.text.as_str(), "{}" | "{" | "}" | "[" | "]" | "[[" | "]]") {
            word.is_split = false;
        }
        Ok(word)
    }

    /// Reads an unquoted character, or a whole quote or substitution.
    fn part(&mut self, word: &mut ShellWord) -> ScriptResult<()> {
        match self.peek() {
            Some('\'') => self.single(word, false),
            Some('"') => self.double(word),
            Some('`') => self.backticks(word),
            Some('$') => self.dollar(word, false),
            Some('\\') => {
                self.at += 1;
                // A backslash at the end of a line continues the line and does not quote anything.
                if let Some(c) = self.next().filter(|c| *c != '\n') {
                    word.quote();
                    word.text.push(c);
                } else {
                    self.note("a backslash at the end of a line within a word");
                }
                Ok(())
            }
            _ => {
                let next = self.next();
                let is_control = next.is_some_and(|c| c.is_control() || c.is_whitespace());
                self.note_if(is_control, "white space that a shell does not recognise");
                word.is_split |= next.is_some_and(|c| "*?[]{}".contains(c));
                word.text.extend(next);
                Ok(())
            }
        }
    }

    /// Reads the values of an array, which are not commands.
    fn list(&mut self, word: &mut ShellWord) -> ScriptResult<()> {
        self.at += 1;
        self.note(IN_BRACKETS);
        let values = self.deeper(|reader| reader.commands(true))?;
        let words = values.into_iter().flat_map(|command| command.words);
        word.inner.extend(words.flat_map(|word| word.inner));
        Ok(())
    }

    fn single(&mut self, word: &mut ShellWord, escapes: bool) -> ScriptResult<()> {
        self.at += 1;
        word.quote();
        while let Some(c) = self.next() {
            match c {
                '\'' => return Ok(()),
                '\\' if escapes => word.text.extend(self.next()),
                c => {
                    self.note_if(c == '\n' && self.has_document, BESIDE_DOCUMENT);
                    word.text.push(c);
                }
            }
        }
        Err(UnreadScript::Quotes)
    }

    fn double(&mut self, word: &mut ShellWord) -> ScriptResult<()> {
        self.at += 1;
        word.quote();
        while let Some(c) = self.peek() {
            match c {
                '"' => {
                    self.at += 1;
                    return Ok(());
                }
                '`' => self.backticks(word)?,
                '$' => self.dollar(word, true)?,
                '\\' => self.escape(word),
                c => {
                    self.note_if(c == '\n' && self.has_document, BESIDE_DOCUMENT);
                    self.at += 1;
                    word.text.push(c);
                }
            }
        }
        Err(UnreadScript::Quotes)
    }

    fn escape(&mut self, word: &mut ShellWord) {
        self.at += 1;
        match self.next() {
            Some('\n') | None => self.note("a backslash at the end of a line in a text"),
            Some(c) => {
                word.text.extend(Some('\\').filter(|_| !"\"$`\\".contains(c)));
                word.text.push(c);
            }
        }
    }

    fn backticks(&mut self, word: &mut ShellWord) -> ScriptResult<()> {
        self.at += 1;
        self.note("backticks");
        word.open(false);
        let mut script = String::new();
        loop {
            match self.next().ok_or(UnreadScript::Quotes)? {
                '`' => break,
                '\\' if matches!(self.peek(), Some('`' | '\\' | '$')) => script.extend(self.next()),
                c => script.push(c),
            }
        }
        let inner = self.apart(&script, |reader| reader.commands(false))?;
        put(word, inner);
        Ok(())
    }

    fn dollar(&mut self, word: &mut ShellWord, quoted: bool) -> ScriptResult<()> {
        let next = self.peek_at(1);
        if let Some('\'' | '"') = next
            && !quoted
        {
            self.note("quotes after a $");
            self.at += 1;
            return if next == Some('"') { self.double(word) } else { self.single(word, true) };
        }
        word.open(quoted);
        if next == Some('{') {
            return self.deeper(|reader| reader.braces(word, quoted));
        }
        self.at += 1;
        if next == Some('(') {
            return self.substitution(word);
        }
        let is_special = next.is_some_and(|c| c.is_ascii_digit() || "@*#!$-[\\`".contains(c));
        self.note_if(is_special, "an unsupported symbol after a $");
        word.text.push('$');
        word.text.push_str(&if self.skip_sign("?") { "?".to_owned() } else { self.eat_while(is_name) });
        Ok(())
    }

    /// Reads `$(…)` or `$((…))` after its `$`.
    fn substitution(&mut self, word: &mut ShellWord) -> ScriptResult<()> {
        let Some(end) = self.sum() else {
            self.note_if(self.peek_at(1) == Some('('), "an arithmetic expansion with variables");
            self.at += 1;
            let inner = self.deeper(|reader| reader.commands(true))?;
            put(word, inner);
            return Ok(());
        };
        let inside = self.chars.get(self.at..end).unwrap_or_default();
        // The values of variables would be evaluated as well.
        let is_plain = inside.iter().all(|c| c.is_ascii_digit() || " +-*/%()<>=!".contains(*c));
        self.note_if(!is_plain, "an arithmetic expansion with variables");
        let inner = self.deeper(|reader| reader.within(end))?;
        word.inner.extend(inner);
        word.text.push_str("$(())");
        Ok(())
    }

    /// Reads `${…}`.
    fn braces(&mut self, word: &mut ShellWord, quoted: bool) -> ScriptResult<()> {
        self.at += 2;
        let (start, is_split) = (self.at, word.is_split);
        word.text.push_str("${");
        while let Some(c) = self.peek() {
            match c {
                '}' => {
                    let is_plain = is_plain_variable(&self.since(start));
                    self.note_if(!is_plain, "an unsupported variable in braces");
                    self.at += 1;
                    word.is_split = is_split;
                    word.text.push('}');
                    return Ok(());
                }
                '\'' if quoted => {
                    self.at += 1;
                    word.text.push(c);
                }
                _ => self.part(word)?,
            }
        }
        Err(UnreadScript::Brackets)
    }

    /// Returns the end of `((…))` if it is arithmetic rather than two nested groups.
    pub(crate) fn sum(&self) -> Option<usize> {
        (self.peek() == Some('(') && self.peek_at(1) == Some('(')).then_some(())?;
        let mut open = 0_usize;
        let mut inner = None;
        for (at, c) in self.chars.iter().enumerate().skip(self.at).take(MAX_ARITHMETIC_CHARS) {
            match c {
                '(' => open += 1,
                ')' => open -= 1,
                _ => {}
            }
            match open {
                0 => return (inner == Some(at - 1)).then_some(at + 1),
                1 if *c == ')' => inner = Some(at),
                _ => {}
            }
        }
        None
    }

    /// Skips to a position, and returns the commands that are substituted on the way.
    pub(crate) fn within(&mut self, end: usize) -> ScriptResult<Vec<ParsedCommand>> {
        let mut word = ShellWord::default();
        while self.at < end {
            match self.peek() {
                Some('\\') => self.at += 2,
                Some('`') => self.backticks(&mut word)?,
                Some('$') if self.peek_at(1) != Some('\'') => self.dollar(&mut word, true)?,
                _ => self.at += 1,
            }
        }
        self.at = self.at.min(self.chars.len());
        Ok(word.inner)
    }
}

/// Returns whether the text between `${` and `}` only names a variable, or changes its value only by a plain text.
fn is_plain_variable(text: &str) -> bool {
    let length = text.strip_prefix('#');
    let text = length.unwrap_or(text);
    let rest = text.trim_start_matches(is_name);
    let change = CHANGES.iter().find_map(|sign| rest.strip_prefix(sign)).filter(|_| length.is_none());
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.,/*?-".contains(c);
    text.len() > rest.len()
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && change.map_or(rest.is_empty(), |change| change.chars().all(is_plain))
}

/// Inserts a placeholder for the output of commands: `.` for `pwd`, and `$()` for any other.
fn put(word: &mut ShellWord, inner: Vec<ParsedCommand>) {
    let here = matches!(inner.as_slice(), [ParsedCommand { words, .. }] if matches!(words.as_slice(), [word] if word.text == "pwd"));
    word.text.push_str(if here { "." } else { "$()" });
    word.inner.extend(inner);
}
