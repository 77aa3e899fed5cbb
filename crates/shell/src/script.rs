//! Parses a shell script as far as needed to find its commands: groups, conditions, loops, comments, here-documents,
//! and substitutions in words.
//!
//! This is not a shell: nothing is expanded, and a script that a shell would refuse may be accepted.

use crate::syntax::{
    ParsedCommand, ParsedScript, ScriptReader, ScriptResult, ShellWord, UnreadScript, is_name,
};

/// Keywords of constructs whose effect is uncertain.
const UNCERTAIN: [&str; 5] = ["case", "select", "function", "coproc", "esac"];

/// Parses a script whose commands are nested at most `depth` levels deep.
pub(crate) fn read(script: &str, depth: usize) -> ScriptResult<ParsedScript> {
    let mut reader = ScriptReader::new(script, depth);
    let commands = reader.commands(false)?;
    Ok(ParsedScript { commands, uncertain: reader.uncertain })
}

impl ScriptReader {
    /// Parses commands up to the end, or up to the bracket that closes them.
    pub(crate) fn commands(&mut self, inside: bool) -> ScriptResult<Vec<ParsedCommand>> {
        let mut level = Level::default();
        if inside {
            self.open_bracket();
        }
        while let Some(c) = self.peek() {
            if inside && c == ')' && !level.expects_bracket() {
                self.at += 1;
                self.brackets -= 1;
                level.end(false);
                return Ok(level.commands);
            }
            self.step(c, &mut level)?;
        }
        level.end(false);
        self.note_if(self.brackets > 0, "unclosed brackets");
        if inside { Err(UnreadScript::Brackets) } else { Ok(level.commands) }
    }

    fn step(&mut self, c: char, level: &mut Level) -> ScriptResult<()> {
        if level.tests() && "()<>|&;\n".contains(c) {
            self.note("a symbol in a test");
            self.at += 1;
            return Ok(());
        }
        match c {
            '\n' => {
                self.at += 1;
                level.end(false);
                return self.documents(level);
            }
            c if c.is_whitespace() => {
                self.note_if(!matches!(c, ' ' | '\t'), "white space that a shell does not recognise");
                self.at += 1;
            }
            '#' => {
                self.note_if(self.brackets > 0, "a comment in brackets");
                self.eat_while(|c| c != '\n');
            }
            '\\' if self.peek_at(1) == Some('\n') => self.next_line(),
            '&' if self.peek_at(1) == Some('>') => {
                self.at += 1;
                self.note_if(self.at_process(), "a function, a list or a pattern in brackets");
                return self.redirect(level);
            }
            ';' | '&' | '|' => self.separate(level),
            '(' => return self.open(level),
            ')' => {
                self.at += 1;
                let closes = level.close_bracket();
                self.brackets -= usize::from(closes);
                self.note_if(!closes, "a function or an unbalanced bracket");
            }
            '<' | '>' => return self.redirect(level),
            _ => {
                let word = self.word()?;
                let number = !word.is_quoted() && word.text.chars().all(|c| c.is_ascii_digit());
                let arrow = matches!(self.peek(), Some('<' | '>'));
                self.note_if(arrow && word.text.starts_with('{'), "a variable before a redirection");
                // The number in `2>` is part of the redirection.
                if !(number && arrow) {
                    self.add(word, level);
                }
            }
        }
        Ok(())
    }

    /// Adds a word to the current command.
    fn add(&mut self, word: ShellWord, level: &mut Level) {
        let count = level.command.words.len();
        let uncertain = count == 0 && UNCERTAIN.iter().any(|keyword| word.is_keyword(keyword));
        self.note_if(uncertain, "a choice, a function or a coprocess");
        level.word(word);
        let skipped = level.command.words.len() == count;
        self.note_if(skipped && level.command.redirected, "a keyword after a redirection");
    }

    /// Skips an escaped line break. Notes it if a shell may not treat it as a blank.
    fn next_line(&mut self) {
        let before = self.at.checked_sub(1).and_then(|at| self.chars.get(at));
        let is_blank =
            matches!(before, Some(' ' | '\t')) && self.peek_at(2) != Some('#') && !self.has_document;
        self.note_if(!is_blank, "a backslash at the end of a line within a word");
        self.at += 2;
    }

    fn separate(&mut self, level: &mut Level) {
        if self.skip_sign(";;&") || self.skip_sign(";;") || self.skip_sign(";&") {
            level.end(false);
            level.pattern = matches!(level.open.last(), Some(OpenGroup { kind: GroupKind::Case, .. }));
        } else if self.skip_sign("||") || self.skip_sign("&&") {
            level.end(false);
        } else {
            let piped = self.skip_sign("|&") || self.skip_sign("|");
            self.at += usize::from(!piped);
            if !(piped && level.pattern) {
                level.end(piped);
            }
        }
    }

    fn open(&mut self, level: &mut Level) -> ScriptResult<()> {
        self.note_if(self.peek_at(1) == Some('('), "an arithmetic expansion");
        let has_command = level.command.redirected || !level.command.is_empty();
        self.note_if(has_command, "a function or an unbalanced bracket");
        if level.begins_sum()
            && let Some(end) = self.sum()
        {
            level.command.inner.extend(self.within(end)?);
            return Ok(());
        }
        self.at += 1;
        if !level.pattern {
            level.end(false);
            level.begin(GroupKind::Bracket);
            self.open_bracket();
        }
        Ok(())
    }

    fn redirect(&mut self, level: &mut Level) -> ScriptResult<()> {
        if self.at_process() {
            self.at += 2;
            let inner = self.deeper(|reader| reader.commands(true))?;
            let apart = self.peek().is_none_or(|c| c.is_whitespace() || ";&|)<>".contains(c));
            self.note_if(!apart, "a word after a bracket");
            level.word(ShellWord::process(inner));
            return Ok(());
        }
        level.command.redirected = true;
        if self.skip_sign("<<<") {
            let word = self.operand()?;
            level.command.input = Some(word.text);
            level.command.inner.extend(word.inner);
            return Ok(());
        }
        if self.skip_sign("<<") {
            let tabs = self.skip_sign("-");
            let mark = self.mark()?;
            level.command.input = Some(String::new());
            level.documents.push(HereDocument { command: level.commands.len(), tabs, mark });
            return Ok(());
        }
        let reads = self.peek() == Some('<') && self.peek_at(1) != Some('>');
        self.at += 1;
        self.note_if(reads && self.peek() == Some('|'), "a redirection without a file");
        let copies = self.skip_sign("&");
        let _ = copies || self.skip_sign(">") || self.skip_sign("|");
        self.note_if(matches!(self.peek(), Some('>' | '|' | '&')), "a redirection without a file");
        let word = self.operand()?;
        level.command.inner.extend(word.inner);
        if copies && word.text.chars().all(|c| c.is_ascii_digit() || c == '-') {
            return Ok(());
        }
        let files = if reads { &mut level.command.sources } else { &mut level.command.targets };
        files.push(word.text);
        Ok(())
    }

    /// Reads the word after a redirection operator.
    fn operand(&mut self) -> ScriptResult<ShellWord> {
        self.eat_while(|c| c == ' ' || c == '\t');
        let word = self.word()?;
        let is_missing = word.text.is_empty() && !word.is_quoted() && !self.at_process();
        self.note_if(is_missing, "a redirection without a file");
        Ok(word)
    }

    /// Reads the delimiter of a here-document.
    fn mark(&mut self) -> ScriptResult<ShellWord> {
        self.note_if(self.brackets > 0, "a here-document in brackets");
        self.has_document = true;
        self.eat_while(|c| c == ' ' || c == '\t');
        let start = self.at;
        let mark = self.word()?;
        let name = self.since(start);
        let quoted = |quote| name.strip_prefix(quote).and_then(|name| name.strip_suffix(quote));
        let name = quoted('\'').or(quoted('"')).unwrap_or(&name);
        let is_usual = !name.is_empty() && name.chars().all(is_name);
        let is_apart = self.peek().is_none_or(|c| " \t\n;&|<>".contains(c));
        self.note_if(!is_usual || !is_apart, "a here-document with an unusual delimiter");
        Ok(mark)
    }

    /// Reads the bodies of a line's here-documents.
    fn documents(&mut self, level: &mut Level) -> ScriptResult<()> {
        self.has_document = false;
        for HereDocument { command, tabs, mark } in std::mem::take(&mut level.documents) {
            let body = self.document(tabs, &mark.text);
            let inner = if mark.is_quoted() { Vec::new() } else { self.substituted(&body)? };
            if let Some(command) = level.commands.get_mut(command) {
                command.input = Some(body);
                command.inner.extend(inner);
            }
        }
        Ok(())
    }

    /// Reads lines up to the delimiter.
    fn document(&mut self, tabs: bool, mark: &str) -> String {
        let mut body = String::new();
        while self.peek().is_some() {
            let line = self.eat_while(|c| c != '\n');
            self.at += 1;
            let line = if tabs { line.trim_start_matches('\t') } else { line.as_str() };
            if line == mark {
                break;
            }
            body.push_str(line);
            body.push('\n');
        }
        body
    }

    /// Returns the commands that are substituted in a here-document's body.
    fn substituted(&mut self, body: &str) -> ScriptResult<Vec<ParsedCommand>> {
        let continues = body.contains("\\\n");
        self.note_if(continues, "a backslash at the end of a line in a here-document");
        self.apart(body, |text| text.within(text.chars.len()))
    }
}

/// A here-document whose body follows the current line.
struct HereDocument {
    command: usize,
    tabs: bool,
    mark: ShellWord,
}

#[derive(Clone, Copy, PartialEq)]
enum GroupKind {
    Bracket,
    Block,
    Case,
}

/// An open group with the index of its first command.
struct OpenGroup {
    kind: GroupKind,
    start: usize,
}

/// Parser state for the commands between two brackets.
#[derive(Default)]
struct Level {
    commands: Vec<ParsedCommand>,
    command: ParsedCommand,
    open: Vec<OpenGroup>,
    /// Index of the first command in the group that was just closed.
    closed: Option<usize>,
    documents: Vec<HereDocument>,
    /// Whether the parser is in the patterns of a `case`, which are not commands.
    pattern: bool,
}

impl Level {
    fn expects_bracket(&self) -> bool {
        self.pattern || self.open.iter().rev().any(|open| open.kind == GroupKind::Bracket)
    }

    /// Returns the first word, unless it is quoted and therefore not a keyword.
    fn first(&self) -> Option<&str> {
        self.command.words.first().filter(|word| !word.is_quoted()).map(|word| word.text.as_str())
    }

    /// Returns whether the parser is inside `[[ … ]]`, where operators do not separate commands.
    fn tests(&self) -> bool {
        self.first() == Some("[[") && self.command.words.last().is_none_or(|word| word.text != "]]")
    }

    fn begins_sum(&self) -> bool {
        matches!((self.first(), self.command.words.len()), (None, 0) | (Some("for"), 1))
    }

    fn begin(&mut self, kind: GroupKind) {
        self.open.push(OpenGroup { kind, start: self.commands.len() });
    }

    fn close(&mut self, kinds: &[GroupKind]) {
        if let Some(open) = self.open.pop_if(|open| kinds.contains(&open.kind)) {
            self.closed = Some(open.start);
        }
    }

    /// Closes the innermost group in brackets. Returns whether there was one.
    fn close_bracket(&mut self) -> bool {
        if std::mem::take(&mut self.pattern) {
            return false;
        }
        self.end(false);
        let group = self.open.iter().rposition(|open| open.kind == GroupKind::Bracket);
        if let Some(at) = group {
            self.open.truncate(at + 1);
            self.close(&[GroupKind::Bracket]);
        }
        group.is_some()
    }

    fn word(&mut self, word: ShellWord) {
        if self.pattern {
            if word.text == "esac" {
                self.pattern = false;
                self.close(&[GroupKind::Case]);
            }
            self.commands.extend(word.inner);
            return;
        }
        if self.command.words.is_empty() && !word.is_quoted() && self.keyword(&word.text) {
            return;
        }
        self.closed = None;
        let names = self.first() == Some("function") && word.text == "{";
        let chooses = self.first() == Some("case") && self.command.words.len() == 2 && word.text == "in";
        if names || chooses {
            self.end(false);
            self.begin(if names { GroupKind::Block } else { GroupKind::Case });
            self.pattern = chooses;
        } else {
            self.command.words.push(word);
        }
    }

    /// Handles a keyword that precedes or ends commands. Returns `false` if the word is part of a command.
    fn keyword(&mut self, word: &str) -> bool {
        match word {
            "if" | "while" | "until" | "{" => self.begin(GroupKind::Block),
            "fi" | "done" | "}" | "esac" => self.close(&[GroupKind::Block, GroupKind::Case]),
            "then" | "elif" | "else" | "do" | "!" | "coproc" => {}
            "for" | "select" => {
                self.begin(GroupKind::Block);
                return false;
            }
            _ => return false,
        }
        true
    }

    fn end(&mut self, piped: bool) {
        let command = std::mem::take(&mut self.command);
        let closed = self.closed.take();
        if !command.is_empty() {
            self.commands.push(ParsedCommand { piped, ..command });
        }
        if let Some(start) = closed.filter(|_| piped) {
            self.commands.iter_mut().skip(start).for_each(|command| command.piped = true);
        }
    }
}
