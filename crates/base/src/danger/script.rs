//! Reads a shell script as far as needed to know its commands: groups, conditions, loops, comments,
//! texts that follow a command, and substitutions within words.
//!
//! Deliberately no shell: nothing is expanded, and a text that a shell would refuse may be read here.

use super::{
    kind::Danger,
    syntax::{ParsedCommand, ScriptReader, ScriptResult, ShellWord},
};

/// Reads a script whose commands are nested at most `depth` deep.
pub(super) fn read(script: &str, depth: usize) -> ScriptResult<Vec<ParsedCommand>> {
    ScriptReader::new(script, depth).commands(false)
}

impl ScriptReader {
    /// Reads commands to the end, or to the bracket that closes them.
    pub(super) fn commands(&mut self, inside: bool) -> ScriptResult<Vec<ParsedCommand>> {
        let mut level = Level::default();
        while let Some(c) = self.peek() {
            if inside && c == ')' && !level.expects_bracket() {
                self.at += 1;
                level.end(false);
                return Ok(level.commands);
            }
            self.step(c, &mut level)?;
        }
        level.end(false);
        if inside { Err(Danger::Brackets) } else { Ok(level.commands) }
    }

    fn step(&mut self, c: char, level: &mut Level) -> ScriptResult<()> {
        if level.tests() && "()<>|&;\n".contains(c) {
            self.at += 1;
            return Ok(());
        }
        match c {
            '\n' => {
                self.at += 1;
                level.end(false);
                return self.documents(level);
            }
            c if c.is_whitespace() => self.at += 1,
            '#' => {
                while self.peek().is_some_and(|c| c != '\n') {
                    self.at += 1
                }
            }
            '\\' if self.skip_sign("\\\n") => {}
            '&' if self.peek_at(1) == Some('>') => {
                self.at += 1;
                return self.redirect(level);
            }
            ';' | '&' | '|' => self.separate(level),
            '(' => return self.open(level),
            ')' => {
                self.at += 1;
                level.close_bracket();
            }
            '<' | '>' => return self.redirect(level),
            _ => {
                let word = self.word()?;
                let number = !word.quoted && word.text.chars().all(|c| c.is_ascii_digit());
                // `2>` is a number that belongs to the arrow.
                if !(number && matches!(self.peek(), Some('<' | '>'))) {
                    level.word(word);
                }
            }
        }
        Ok(())
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
        }
        Ok(())
    }

    fn redirect(&mut self, level: &mut Level) -> ScriptResult<()> {
        if matches!((self.peek(), self.peek_at(1)), (Some('<' | '>'), Some('('))) {
            self.at += 2;
            let inner = self.deeper(|reader| reader.commands(true))?;
            level.word(ShellWord { inner, ..ShellWord::new("/dev/fd/63") });
            return Ok(());
        }
        if self.skip_sign("<<<") {
            let word = self.operand()?;
            level.command.input = Some(word.text);
            level.command.inner.extend(word.inner);
            return Ok(());
        }
        if self.skip_sign("<<") {
            let tabs = self.skip_sign("-");
            let mark = self.operand()?;
            level.command.input = Some(String::new());
            level.documents.push(HereDocument { command: level.commands.len(), tabs, mark });
            return Ok(());
        }
        let reads = self.peek() == Some('<') && self.peek_at(1) != Some('>');
        self.at += 1;
        let copies = self.skip_sign("&");
        let _ = copies || self.skip_sign(">") || self.skip_sign("|");
        let word = self.operand()?;
        level.command.inner.extend(word.inner);
        if copies && word.text.chars().all(|c| c.is_ascii_digit() || c == '-') {
            return Ok(());
        }
        let files = if reads { &mut level.command.sources } else { &mut level.command.targets };
        files.push(word.text);
        Ok(())
    }

    /// Reads the word behind an arrow.
    fn operand(&mut self) -> ScriptResult<ShellWord> {
        while matches!(self.peek(), Some(' ' | '\t')) {
            self.at += 1;
        }
        self.word()
    }

    /// Reads the texts that follow a line for its commands.
    fn documents(&mut self, level: &mut Level) -> ScriptResult<()> {
        for HereDocument { command, tabs, mark } in std::mem::take(&mut level.documents) {
            let body = self.document(tabs, &mark.text);
            let inner = if mark.quoted { Vec::new() } else { self.substituted(&body)? };
            if let Some(command) = level.commands.get_mut(command) {
                command.input = Some(body);
                command.inner.extend(inner);
            }
        }
        Ok(())
    }

    /// Reads lines up to the one that is the mark.
    fn document(&mut self, tabs: bool, mark: &str) -> String {
        let mut body = String::new();
        while self.peek().is_some() {
            let mut line = String::new();
            while let Some(c) = self.next().filter(|c| *c != '\n') {
                line.push(c);
            }
            let line = if tabs { line.trim_start_matches('\t') } else { line.as_str() };
            if line == mark {
                break;
            }
            body.push_str(line);
            body.push('\n');
        }
        body
    }

    /// Returns the commands that are substituted in a text.
    fn substituted(&mut self, body: &str) -> ScriptResult<Vec<ParsedCommand>> {
        self.deeper(|reader| {
            let mut text = Self::new(body, reader.depth);
            text.within(text.chars.len())
        })
    }

    /// Reads a script inside this one.
    pub(super) fn nested(&mut self, script: &str) -> ScriptResult<Vec<ParsedCommand>> {
        self.deeper(|reader| read(script, reader.depth))
    }
}

/// A text that follows its command's line.
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

/// A group that is open, and the first of its commands.
struct OpenGroup {
    kind: GroupKind,
    start: usize,
}

/// State of reading the commands between two brackets.
#[derive(Default)]
struct Level {
    commands: Vec<ParsedCommand>,
    command: ParsedCommand,
    open: Vec<OpenGroup>,
    /// The first command of a group that was closed just now.
    closed: Option<usize>,
    documents: Vec<HereDocument>,
    /// Whether the patterns of a `case` are read, which are no commands.
    pattern: bool,
}

impl Level {
    fn expects_bracket(&self) -> bool {
        self.pattern || self.open.iter().rev().any(|open| open.kind == GroupKind::Bracket)
    }

    /// Returns the first word, if it can mean something to the shell itself.
    fn first(&self) -> Option<&str> {
        self.command.words.first().filter(|word| !word.quoted).map(|word| word.text.as_str())
    }

    /// Whether this is within `[[ … ]]`, where signs compare.
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

    fn close_bracket(&mut self) {
        if std::mem::take(&mut self.pattern) {
            return;
        }
        self.end(false);
        if let Some(at) = self.open.iter().rposition(|open| open.kind == GroupKind::Bracket) {
            self.open.truncate(at + 1);
            self.close(&[GroupKind::Bracket]);
        }
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
        if self.command.words.is_empty() && !word.quoted && self.keyword(&word.text) {
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

    /// Takes a word before a command that is no command itself.
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
