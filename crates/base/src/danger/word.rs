//! Reads one word of a script: its quotes, and the commands that are run to make it up.

use super::{
    kind::Danger,
    syntax::{ParsedCommand, ScriptReader, ScriptResult, ShellWord},
};

/// Maximum length of an arithmetic expression, in characters; a longer one is read as commands.
const MAX_ARITHMETIC_CHARS: usize = 1_000;

impl ScriptReader {
    /// Reads a word; an empty one where none begins.
    pub(super) fn word(&mut self) -> ScriptResult<ShellWord> {
        let mut word = ShellWord::default();
        while let Some(c) = self.peek() {
            match c {
                '(' if word.text.ends_with('=') && !word.quoted => self.list(&mut word)?,
                ';' | '&' | '|' | '(' | ')' | '<' | '>' => break,
                c if c.is_whitespace() => break,
                _ => self.part(&mut word)?,
            }
        }
        Ok(word)
    }

    /// Reads a letter outside of quotes, or all that is quoted or substituted there.
    fn part(&mut self, word: &mut ShellWord) -> ScriptResult<()> {
        match self.peek() {
            Some('\'') => self.single(word, false),
            Some('"') => self.double(word),
            Some('`') => self.backticks(word),
            Some('$') => self.dollar(word, false),
            Some('\\') => {
                self.at += 1;
                // A backslash at the end of a line continues the line and is no quote.
                if let Some(c) = self.next().filter(|c| *c != '\n') {
                    word.quoted = true;
                    word.text.push(c);
                }
                Ok(())
            }
            _ => {
                word.text.extend(self.next());
                Ok(())
            }
        }
    }

    /// Reads the values of a list, which are no commands.
    fn list(&mut self, word: &mut ShellWord) -> ScriptResult<()> {
        self.at += 1;
        let values = self.deeper(|reader| reader.commands(true))?;
        let words = values.into_iter().flat_map(|command| command.words);
        word.inner.extend(words.flat_map(|word| word.inner));
        Ok(())
    }

    fn single(&mut self, word: &mut ShellWord, escapes: bool) -> ScriptResult<()> {
        self.at += 1;
        word.quoted = true;
        while let Some(c) = self.next() {
            match c {
                '\'' => return Ok(()),
                '\\' if escapes => word.text.extend(self.next()),
                c => word.text.push(c),
            }
        }
        Err(Danger::Quotes)
    }

    fn double(&mut self, word: &mut ShellWord) -> ScriptResult<()> {
        self.at += 1;
        word.quoted = true;
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
                    self.at += 1;
                    word.text.push(c);
                }
            }
        }
        Err(Danger::Quotes)
    }

    fn escape(&mut self, word: &mut ShellWord) {
        self.at += 1;
        match self.next() {
            Some('\n') | None => {}
            Some(c) => {
                word.text.extend(Some('\\').filter(|_| !"\"$`\\".contains(c)));
                word.text.push(c);
            }
        }
    }

    fn backticks(&mut self, word: &mut ShellWord) -> ScriptResult<()> {
        self.at += 1;
        let mut script = String::new();
        loop {
            match self.next().ok_or(Danger::Quotes)? {
                '`' => break,
                '\\' if matches!(self.peek(), Some('`' | '\\' | '$')) => script.extend(self.next()),
                c => script.push(c),
            }
        }
        let inner = self.nested(&script)?;
        put(word, inner);
        Ok(())
    }

    fn dollar(&mut self, word: &mut ShellWord, quoted: bool) -> ScriptResult<()> {
        match self.peek_at(1) {
            Some('(') => {
                self.at += 1;
                if let Some(end) = self.sum() {
                    let inner = self.deeper(|reader| reader.within(end))?;
                    word.inner.extend(inner);
                    word.text.push_str("$(())");
                } else {
                    self.at += 1;
                    let inner = self.deeper(|reader| reader.commands(true))?;
                    put(word, inner);
                }
                Ok(())
            }
            Some('{') => self.deeper(|reader| reader.braces(word, quoted)),
            Some('\'') if !quoted => {
                self.at += 1;
                self.single(word, true)
            }
            Some('"') if !quoted => {
                self.at += 1;
                self.double(word)
            }
            _ => {
                self.at += 1;
                word.text.push('$');
                Ok(())
            }
        }
    }

    /// Reads `${…}`.
    fn braces(&mut self, word: &mut ShellWord, quoted: bool) -> ScriptResult<()> {
        self.at += 2;
        word.text.push_str("${");
        while let Some(c) = self.peek() {
            match c {
                '}' => {
                    self.at += 1;
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
        Err(Danger::Brackets)
    }

    /// Returns where `((…))` ends, if it is a sum and not one group within another.
    pub(super) fn sum(&self) -> Option<usize> {
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

    /// Goes to a place, and returns the commands that are substituted on the way.
    pub(super) fn within(&mut self, end: usize) -> ScriptResult<Vec<ParsedCommand>> {
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

/// Inserts the output of commands: the folder where they run is known, the rest is not.
fn put(word: &mut ShellWord, inner: Vec<ParsedCommand>) {
    let here = matches!(inner.as_slice(), [ParsedCommand { words, .. }] if matches!(words.as_slice(), [word] if word.text == "pwd"));
    word.text.push_str(if here { "." } else { "$()" });
    word.inner.extend(inner);
}
