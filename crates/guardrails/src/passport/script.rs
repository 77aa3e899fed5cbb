//! Parses the subset of the shell language in which the executed programs are certain, and rejects everything else.
//!
//! Deliberately different from the parser of [`pudu_base::danger`], which has to interpret any script to ask users
//! about it. This parser may reject a script, so that a program cannot be hidden from it.

use std::mem::take;

/// Maximum length of a script, in bytes.
const MAX_PLAIN_BYTES: usize = 10_000;
/// Maximum depth of nested brackets.
const MAX_BRACKETS: usize = 16;
/// Keywords before a command that run nothing themselves.
const STEPS: [&str; 12] = ["if", "then", "elif", "else", "fi", "while", "until", "do", "done", "!", "{", "}"];
/// Keywords of unsupported constructs.
const UNREAD: [&str; 5] = ["case", "select", "function", "coproc", "esac"];
/// Operators between a variable's name and a plain text, in braces.
const CHANGES: [&str; 8] = [":-", "-", "%%", "%", "##", "#", "//", "/"];

/// A parsed value, or the unsupported construct.
pub(super) type PlainResult<T> = Result<T, &'static str>;

/// A word of a plain command.
#[derive(Debug, Default)]
pub(super) struct PlainWord {
    /// Text without quotes; a part that is substituted at run time begins with `$`.
    pub(super) text: String,
    pub(super) is_quoted: bool,
    /// Whether a part is substituted at run time.
    pub(super) is_open: bool,
    /// Whether it may expand to several words, or none, at run time.
    pub(super) is_split: bool,
    /// Length of its unquoted literal beginning, in bytes.
    bare: usize,
}

impl PlainWord {
    /// Returns whether the word is exactly its text.
    pub(super) fn is_fixed(&self) -> bool {
        !self.is_open && !self.is_split
    }

    /// Returns the name of the variable that this word assigns.
    pub(super) fn variable(&self) -> Option<&str> {
        let (name, _) = self.text.split_once('=').filter(|(name, _)| name.len() < self.bare)?;
        let name = name.strip_suffix('+').unwrap_or(name);
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        (name.starts_with(|c: char| !c.is_ascii_digit()) && name.chars().all(is_name)).then_some(name)
    }

    fn push(&mut self, c: char) {
        let is_bare = !self.is_quoted && !self.is_open;
        self.text.push(c);
        if is_bare {
            self.bare = self.text.len();
        }
    }

    /// Adds a part that is substituted at run time.
    fn open(&mut self, in_quotes: bool) {
        self.is_open = true;
        self.is_split |= !in_quotes;
        self.text.push('$');
    }
}

/// A command, or the head of a loop.
#[derive(Debug, Default)]
pub(super) struct PlainCommand {
    pub(super) words: Vec<PlainWord>,
    /// Number of redirections.
    pub(super) arrows: usize,
}

/// A here-document after its command's line.
struct PlainText {
    mark: String,
    is_quoted: bool,
    has_tabs: bool,
}

/// A position in a script, and the commands before it.
pub(super) struct PlainReader {
    chars: Vec<char>,
    at: usize,
    brackets: usize,
    texts: Vec<PlainText>,
    found: Vec<PlainCommand>,
}

impl PlainReader {
    /// Returns the commands of a script.
    pub(super) fn read(script: &str) -> PlainResult<Vec<PlainCommand>> {
        if script.len() > MAX_PLAIN_BYTES {
            return Err("too much text");
        }
        let mut reader = Self::new(script);
        reader.commands()?;
        Ok(reader.found)
    }

    fn new(script: &str) -> Self {
        let chars = script.chars().collect();
        Self { chars, at: 0, brackets: 0, texts: Vec::new(), found: Vec::new() }
    }

    fn peek_at(&self, by: usize) -> Option<char> {
        self.chars.get(self.at + by).copied()
    }

    fn peek(&self) -> Option<char> {
        self.peek_at(0)
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += 1;
        Some(c)
    }

    fn skip_sign(&mut self, sign: &str) -> bool {
        let found = sign.chars().enumerate().all(|(by, c)| self.peek_at(by) == Some(c));
        self.at += if found { sign.len() } else { 0 };
        found
    }

    fn eat_while(&mut self, fits: impl Fn(char) -> bool) -> String {
        let eaten: String = self.chars.iter().skip(self.at).copied().take_while(|c| fits(*c)).collect();
        self.at += eaten.chars().count();
        eaten
    }

    /// Parses commands to the end, or to the closing bracket.
    fn commands(&mut self) -> PlainResult<()> {
        let mut command = PlainCommand::default();
        while let Some(c) = self.peek() {
            match (c, self.peek_at(1)) {
                (' ' | '\t', _) => self.at += 1,
                ('\n', _) => {
                    self.at += 1;
                    self.end(&mut command);
                    self.bodies()?;
                }
                ('#', _) if self.brackets > 0 => return Err("a comment in brackets"),
                ('#', _) => drop(self.eat_while(|c| c != '\n')),
                ('\\', Some('\n')) => self.next_line()?,
                ('<' | '>', Some('(')) => self.word(&mut command)?,
                ('<' | '>', _) | ('&', Some('>')) => self.arrow(&mut command)?,
                (';' | '&' | '|', _) => {
                    self.at += 1;
                    self.end(&mut command);
                }
                (')', _) if self.brackets > 0 => {
                    self.at += 1;
                    self.end(&mut command);
                    return Ok(());
                }
                ('(', Some('(')) => return Err("a calculation"),
                ('(', _) if command.words.is_empty() && command.arrows == 0 => {
                    self.at += 1;
                    self.inner()?;
                }
                ('(' | ')', _) => return Err("a function or a bracket that is not paired"),
                _ => self.word(&mut command)?,
            }
        }
        self.end(&mut command);
        if self.brackets > 0 { Err("brackets that do not close") } else { Ok(()) }
    }

    /// Parses the commands in brackets.
    fn inner(&mut self) -> PlainResult<()> {
        if !self.texts.is_empty() {
            return Err("brackets beside a here-document");
        }
        if self.brackets == MAX_BRACKETS {
            return Err("too many brackets within each other");
        }
        self.brackets += 1;
        self.commands()?;
        self.brackets -= 1;
        Ok(())
    }

    /// Continues in the next line if the line break can only be read as a space.
    fn next_line(&mut self) -> PlainResult<()> {
        let before = self.at.checked_sub(1).and_then(|at| self.chars.get(at));
        let is_plain =
            matches!(before, Some(' ' | '\t')) && self.peek_at(2) != Some('#') && self.texts.is_empty();
        self.at += 2;
        if is_plain { Ok(()) } else { Err("a backslash at the end of a line within a word") }
    }

    fn end(&mut self, command: &mut PlainCommand) {
        self.found.push(take(command));
    }

    /// Parses a word of a command, or a number before a redirection.
    fn word(&mut self, command: &mut PlainCommand) -> PlainResult<()> {
        let word = self.part_of_line()?;
        if matches!(self.peek(), Some('<' | '>')) {
            if word.text.starts_with('{') {
                return Err("a variable before an arrow");
            }
            if !word.is_quoted && word.text.chars().all(|c| c.is_ascii_digit()) {
                return Ok(());
            }
        }
        let begins = command.words.is_empty() && command.arrows == 0 && !word.is_quoted;
        if begins && UNREAD.contains(&word.text.as_str()) {
            return Err("a choice, a function or a coprocess");
        }
        if !(begins && STEPS.contains(&word.text.as_str())) {
            command.words.push(word);
        }
        Ok(())
    }

    fn part_of_line(&mut self) -> PlainResult<PlainWord> {
        let mut word = PlainWord::default();
        while let Some(c) = self.peek() {
            match (c, self.peek_at(1)) {
                ('<' | '>', Some('(')) => {
                    self.at += 2;
                    word.open(false);
                    self.inner()?;
                }
                (' ' | '\t' | '\n' | ';' | '&' | '|' | ')' | '<' | '>', _) => break,
                ('(', _) => return Err("a function, a list or a pattern in brackets"),
                ('\'', _) => self.single(&mut word)?,
                ('"', _) => {
                    self.at += 1;
                    word.is_quoted = true;
                    self.double(&mut word, true)?;
                }
                ('$', _) => self.dollar(&mut word, false)?,
                ('`', _) => return Err("backticks"),
                ('\\', None | Some('\n')) => return Err("a backslash at the end of a line within a word"),
                ('\\', Some(c)) => {
                    self.at += 2;
                    word.is_quoted = true;
                    word.push(c);
                }
                (c, _) if c.is_control() || c.is_whitespace() => {
                    return Err("a blank that is none for a shell");
                }
                (c, _) => {
                    self.at += 1;
                    word.is_split |= "*?[]{}".contains(c);
                    word.push(c);
                }
            }
        }
        // These are literal.
        if !word.is_open && matches!(word.text.as_str(), "{}" | "{" | "}" | "[" | "]" | "[[" | "]]") {
            word.is_split = false;
        }
        Ok(word)
    }

    fn single(&mut self, word: &mut PlainWord) -> PlainResult<()> {
        self.at += 1;
        word.is_quoted = true;
        while let Some(c) = self.next() {
            match c {
                '\'' => return Ok(()),
                '\n' if !self.texts.is_empty() => return Err("a quote beside a here-document"),
                c => word.push(c),
            }
        }
        Err("quotes that do not close")
    }

    /// Parses text with substitutions up to its closing quote or the end.
    fn double(&mut self, word: &mut PlainWord, to_quote: bool) -> PlainResult<()> {
        while let Some(c) = self.peek() {
            match (c, self.peek_at(1)) {
                ('"', _) if to_quote => {
                    self.at += 1;
                    return Ok(());
                }
                ('`', _) => return Err("backticks"),
                ('$', _) => self.dollar(word, true)?,
                ('\n', _) if !self.texts.is_empty() => return Err("a quote beside a here-document"),
                ('\\', None | Some('\n')) => return Err("a backslash at the end of a line in a text"),
                ('\\', Some(c)) => {
                    self.at += 2;
                    word.text.extend(Some('\\').filter(|_| !"$`\"\\".contains(c)));
                    word.text.push(c);
                }
                (c, _) => {
                    self.at += 1;
                    word.push(c);
                }
            }
        }
        if to_quote { Err("quotes that do not close") } else { Ok(()) }
    }

    fn dollar(&mut self, word: &mut PlainWord, in_quotes: bool) -> PlainResult<()> {
        self.at += 1;
        match (self.peek(), self.peek_at(1)) {
            (Some('('), Some('(')) => {
                self.sum()?;
                word.open(in_quotes);
            }
            (Some('('), _) => {
                self.at += 1;
                self.inner()?;
                word.open(in_quotes);
            }
            (Some('{'), _) => {
                self.at += 1;
                self.braces()?;
                word.open(in_quotes);
            }
            (Some('?'), _) => {
                self.at += 1;
                word.open(in_quotes);
            }
            (Some(c), _) if c.is_ascii_alphabetic() || c == '_' => {
                self.eat_while(is_name);
                word.open(in_quotes);
            }
            (Some('\'' | '"'), _) if !in_quotes => return Err("quotes behind a $"),
            (Some(c), _) if c.is_ascii_digit() || "@*#!$-[\\`".contains(c) => {
                return Err("a sign behind a $ that is not read here");
            }
            // It is literal, but this need not be relied on.
            _ => word.open(in_quotes),
        }
        Ok(())
    }

    /// Parses an arithmetic expression of numbers: the values of variables would be evaluated.
    fn sum(&mut self) -> PlainResult<()> {
        let inside = self.eat_while(|c| c.is_ascii_digit() || " +-*/%()<>=!".contains(c));
        // The brackets of the expression are the outermost ones, and no others follow.
        let (mut open, mut length) = (0_usize, 0_usize);
        for c in inside.chars() {
            length += 1;
            open = if c == '(' { open + 1 } else { open.saturating_sub(usize::from(c == ')')) };
            if open == 0 {
                break;
            }
        }
        let sum: String = inside.chars().take(length).collect();
        self.at -= inside.chars().count() - length;
        if open == 0 && sum.ends_with("))") { Ok(()) } else { Err("a calculation with variables") }
    }

    /// Parses a variable in braces.
    fn braces(&mut self) -> PlainResult<()> {
        let is_length = self.skip_sign("#");
        let name = self.eat_while(is_name);
        if !is_length && CHANGES.iter().any(|sign| self.skip_sign(sign)) {
            self.eat_while(|c| c.is_ascii_alphanumeric() || "_.,/*?-".contains(c));
        }
        let is_plain = name.starts_with(|c: char| !c.is_ascii_digit()) && self.skip_sign("}");
        if is_plain { Ok(()) } else { Err("a variable in braces that is not read here") }
    }

    fn arrow(&mut self, command: &mut PlainCommand) -> PlainResult<()> {
        command.arrows += 1;
        if self.skip_sign("<<<") {
            return self.operand();
        }
        if self.skip_sign("<<") {
            return self.mark();
        }
        let _ = self.skip_sign("&");
        let more: &[&str] = if self.skip_sign("<") { &[">", "&"] } else { &[">", "|", "&"] };
        // The second character of an output redirection.
        let _ = self.skip_sign(">");
        let _ = more.iter().any(|sign| self.skip_sign(sign));
        self.operand()
    }

    fn operand(&mut self) -> PlainResult<()> {
        self.eat_while(|c| c == ' ' || c == '\t');
        let word = self.part_of_line()?;
        if word.text.is_empty() && !word.is_quoted { Err("an arrow without a file") } else { Ok(()) }
    }

    /// Parses the delimiter of a here-document.
    fn mark(&mut self) -> PlainResult<()> {
        if self.brackets > 0 {
            return Err("a here-document in brackets");
        }
        let has_tabs = self.skip_sign("-");
        self.eat_while(|c| c == ' ' || c == '\t');
        let quote = self.peek().filter(|c| matches!(c, '\'' | '"'));
        self.at += usize::from(quote.is_some());
        let mark = self.eat_while(is_name);
        let is_closed = quote.is_none_or(|quote| self.next() == Some(quote));
        let is_apart = self.peek().is_none_or(|c| " \t\n;&|<>".contains(c));
        if mark.is_empty() || !is_closed || !is_apart {
            return Err("a here-document with an unusual mark");
        }
        self.texts.push(PlainText { mark, is_quoted: quote.is_some(), has_tabs });
        Ok(())
    }

    /// Parses the here-documents after a line.
    fn bodies(&mut self) -> PlainResult<()> {
        for text in take(&mut self.texts) {
            let body = self.body(&text);
            if text.is_quoted {
                continue;
            }
            if body.contains("\\\n") {
                return Err("a backslash at the end of a line in a here-document");
            }
            let mut reader = Self::new(&body);
            reader.double(&mut PlainWord::default(), false)?;
            self.found.append(&mut reader.found);
        }
        Ok(())
    }

    fn body(&mut self, text: &PlainText) -> String {
        let mut body = String::new();
        while self.peek().is_some() {
            let line = self.eat_while(|c| c != '\n');
            self.at += 1;
            let line = if text.has_tabs { line.trim_start_matches('\t') } else { line.as_str() };
            if line == text.mark {
                break;
            }
            body.push_str(line);
            body.push('\n');
        }
        body
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
