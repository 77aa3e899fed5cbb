//! Brings an older file up to this version, as text: keys that the file lacks are added as comments, and
//! `config_version` is raised. Comments, order and formatting stay, and no value changes: the new text is read
//! again and compared before anybody sees it.
//!
//! A key that stands in the file as a comment counts as there, so upgrading twice changes nothing.

use super::{
    VERSION,
    problem::{Problem, Report, join},
    raw::{Entry, Node, Value, parse},
};
use std::ops::Range;

/// An upgraded file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Upgraded {
    /// The new text.
    pub(crate) text: String,
    /// The version that the file had.
    pub(crate) from: i128,
    /// The keys that were added as comments.
    pub(crate) added: Vec<String>,
    /// Sections that lack keys and are written on one line, where a comment cannot be put.
    pub(crate) left: Vec<String>,
}

/// Upgrades a file's text with what the example has.
pub(crate) fn upgrade(text: &str, example: &str) -> Result<Upgraded, Report> {
    let (mark, body) = match text.strip_prefix('\u{feff}') {
        Some(body) => ("\u{feff}", body),
        None => ("", text),
    };
    let before = tree(body)?;
    let from = version(&before);
    let mut edit = Edit { lines: body.split_inclusive('\n').map(str::to_owned).collect(), ..Edit::default() };
    if from <= i128::from(VERSION) {
        edit.top(&before, &blocks(&example.lines().collect::<Vec<_>>(), 0));
        edit.version(&before);
    }
    let after = edit.finish();
    match tree(&after) {
        Ok(read) if same(&before, &read, true) => {
            Ok(Upgraded { text: format!("{mark}{after}"), from, added: edit.added, left: edit.left })
        }
        _ => {
            let what = "the new keys cannot be put into this file without changing what it says";
            let mend = "add them by hand, from config.example.yaml";
            Err(Report::new(None, vec![Problem::error(None, "", what, mend)]))
        }
    }
}

fn tree(text: &str) -> Result<Node, Report> {
    match parse(text.as_bytes()) {
        (Some(root), problems) if problems.is_empty() => Ok(root),
        (_, problems) => Err(Report::new(None, problems)),
    }
}

fn version(root: &Node) -> i128 {
    match root.entry("config_version").map(|entry| &entry.node.value) {
        Some(Value::Int(version)) => *version,
        _ => 0,
    }
}

/// Compares what two files say; at the top `config_version` may differ.
fn same(old: &Node, new: &Node, top: bool) -> bool {
    let counts = |entry: &&Entry| !(top && entry.key == "config_version");
    match (&old.value, &new.value) {
        (Value::Map(_) | Value::Null, Value::Map(_)) if top => {
            let pairs = |node: &Node| node.entries().iter().filter(counts).cloned().collect::<Vec<_>>();
            let (old, new) = (pairs(old), pairs(new));
            old.len() == new.len()
                && old.iter().zip(&new).all(|(a, b)| a.key == b.key && same(&a.node, &b.node, false))
        }
        (Value::Map(old), Value::Map(new)) => {
            old.len() == new.len()
                && old.iter().zip(new).all(|(a, b)| a.key == b.key && same(&a.node, &b.node, false))
        }
        (Value::List(old), Value::List(new)) => {
            old.len() == new.len() && old.iter().zip(new).all(|(a, b)| same(a, b, false))
        }
        (old, new) => old == new,
    }
}

/// A key of the example with the comment above it and all below it.
#[derive(Debug)]
struct Block {
    key: String,
    /// How far its key, or the `#` in front of it, is indented.
    indent: usize,
    lines: Vec<String>,
    /// Whether it is in use, not a comment.
    active: bool,
    /// The keys inside, if it is in use.
    inside: Vec<Block>,
}

/// Cuts lines into the blocks of the keys at one depth.
fn blocks(lines: &[&str], indent: usize) -> Vec<Block> {
    let keys: Vec<_> =
        (0..lines.len()).filter_map(|at| Some((at, key_at(lines.get(at)?, indent)?))).collect();
    let begin = |at: usize| {
        let above = lines.iter().take(at).rev();
        at - above
            .take_while(|line| {
                line.trim_start().starts_with('#')
                    && indent_of(line) == indent
                    && key_at(line, indent).is_none()
            })
            .count()
    };
    let ends = keys.iter().skip(1).map(|(at, _)| begin(*at)).chain([lines.len()]);
    let block = |((at, key), end): (&(usize, (&str, bool)), usize)| {
        let (name, active) = *key;
        let below = lines.get(at + 1..end).unwrap_or_default();
        let deeper = below.iter().find(|line| !line.trim().is_empty()).map_or(0, |line| indent_of(line));
        let inside = if active && deeper > indent { blocks(below, deeper) } else { Vec::new() };
        let lines =
            lines.get(begin(*at)..end).unwrap_or_default().iter().map(|line| (*line).to_owned()).collect();
        Block { key: name.to_owned(), indent, lines: trimmed(lines), active, inside }
    };
    keys.iter().zip(ends).map(block).collect()
}

fn trimmed(mut lines: Vec<String>) -> Vec<String> {
    while lines.last().is_some_and(|line| line.trim().is_empty()) {
        lines.pop();
    }
    lines
}

/// Returns the key that stands at this depth of the line, and whether it is in use or a comment.
fn key_at(line: &str, indent: usize) -> Option<(&str, bool)> {
    if indent_of(line) != indent {
        return None;
    }
    let (text, active) = match line.trim_start().strip_prefix("# ") {
        Some(comment) => (comment, false),
        None => (line.trim_start(), true),
    };
    let (key, rest) = text.split_once(':')?;
    let word =
        !key.is_empty() && key.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    (word && (rest.is_empty() || rest.starts_with(' '))).then_some((key, active))
}

fn indent_of(line: &str) -> usize {
    line.chars().take_while(|c| *c == ' ').count()
}

/// Returns the block's lines as comments, as deep as the file has its keys.
fn commented(block: &Block, indent: usize) -> Vec<String> {
    let line = |line: &String| {
        let rest: String = line.chars().skip(block.indent).collect();
        let mark = if rest.starts_with('#') { "" } else { "# " };
        match rest.trim() {
            "" => String::new(),
            _ => format!("{}{mark}{rest}", " ".repeat(indent)),
        }
    };
    block.lines.iter().map(line).collect()
}

/// The changes to a file.
#[derive(Default)]
struct Edit {
    /// The file's lines with their line ends.
    lines: Vec<String>,
    /// New lines without line ends, and before which old line they go.
    new: Vec<(usize, Vec<String>)>,
    added: Vec<String>,
    left: Vec<String>,
}

impl Edit {
    fn top(&mut self, root: &Node, blocks: &[Block]) {
        let all = 0..self.lines.len();
        // A section that is a comment in the example too is an older way, which nobody should begin with.
        for block in blocks.iter().filter(|block| block.active && block.key != "config_version") {
            match root.entry(&block.key) {
                Some(entry) => self.section(entry, &block.key, block),
                None if self.has_comment(&all, &block.key) => {}
                None => {
                    let mut lines = vec![String::new()];
                    lines.extend(commented(block, 0));
                    self.new.push((all.end, lines));
                    self.added.push(block.key.clone());
                }
            }
        }
    }

    fn section(&mut self, entry: &Entry, path: &str, block: &Block) {
        let Some(first) = entry.node.entries().first() else { return };
        let indent = usize::try_from(first.at.column - 1).unwrap_or_default();
        let here = self.extent(entry, indent);
        let mut lines = Vec::new();
        for inside in &block.inside {
            let path = join(path, &inside.key);
            match entry.node.entry(&inside.key) {
                Some(entry) => self.section(entry, &path, inside),
                None if self.has_comment(&here, &inside.key) => {}
                None if first.at.line <= entry.at.line => self.left.push(path),
                None => {
                    lines.extend(commented(inside, indent));
                    self.added.push(path);
                }
            }
        }
        self.new.push((here.end, lines));
    }

    /// Finds the lines of a section, with the comments at its end that are as deep as its keys.
    fn extent(&self, entry: &Entry, indent: usize) -> Range<usize> {
        let start = usize::try_from(entry.at.line).unwrap_or_default();
        let mut end = start;
        for (number, line) in self.lines.iter().enumerate().skip(start) {
            let (blank, comment) = (line.trim().is_empty(), line.trim_start().starts_with('#'));
            if !blank && indent_of(line) >= indent {
                // A comment that is as deep ends the section only when nothing but comments follows.
                if !comment || end == number {
                    end = number + 1;
                }
            } else if !blank && !comment {
                break;
            }
        }
        start..end
    }

    fn has_comment(&self, lines: &Range<usize>, key: &str) -> bool {
        let says = |line: &String| {
            let text = line.trim_start().strip_prefix('#').map(|text| text.trim_start_matches(['#', ' ']));
            text.and_then(|text| text.strip_prefix(key)).is_some_and(|rest| rest.starts_with(':'))
        };
        self.lines.get(lines.clone()).unwrap_or_default().iter().any(says)
    }

    fn version(&mut self, root: &Node) {
        let Some(entry) = root.entry("config_version") else {
            let lines = vec![String::new(), format!("config_version: {VERSION}")];
            return self.new.push((self.lines.len(), lines));
        };
        let at = (usize::try_from(entry.node.at.line - 1), usize::try_from(entry.node.at.column - 1));
        let (Ok(line), Ok(column), Value::Int(_)) = (at.0, at.1, &entry.node.value) else {
            return self.left.push("config_version".to_owned());
        };
        if let Some(line) = self.lines.get_mut(line) {
            let before: String = line.chars().take(column).collect();
            let after: String = line.chars().skip(column).skip_while(char::is_ascii_digit).collect();
            *line = format!("{before}{VERSION}{after}");
        }
    }

    /// Puts the new lines in, with the line ends that the file has.
    fn finish(&mut self) -> String {
        let end = if self.lines.iter().any(|line| line.ends_with("\r\n")) { "\r\n" } else { "\n" };
        let mut new = std::mem::take(&mut self.new);
        new.retain(|(_, lines)| !lines.is_empty());
        if let (false, Some(last)) =
            (new.is_empty(), self.lines.last_mut().filter(|line| !line.ends_with('\n')))
        {
            last.push_str(end);
        }
        // Later places first, so that no place moves before its turn; of one place the later lines first.
        new.sort_by_key(|(at, _)| *at);
        for (at, lines) in new.into_iter().rev() {
            self.lines.splice(at..at, lines.into_iter().map(|line| line + end));
        }
        self.lines.concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NEW: &str = "# About the file: nothing.\n\n# Its version.\nconfig_version: 34\n\n\
        # The door.\ngateway:\n  # The name.\n  host: here\n  # The port.\n  port: 1\n  # Who may.\n  # token: $T\n  \
        # Deeper.\n  tls:\n    # A file.\n    cert: x\n\n\
        # Those who answer.\nmodels:\n  # Its name.\n  # - name: a\n  #   # Its class.\n  #   use: b\n\n\
        # The old way.\n# checkpointer:\n#   # What.\n#   type: x\n";

    fn check(old: &str, new: &str, added: &[&str], left: &[&str]) {
        let upgraded = upgrade(old, NEW).unwrap();
        assert_eq!(upgraded.text, new, "{old:?}");
        assert_eq!((upgraded.added, upgraded.left), (words(added), words(left)), "{old:?}");
        let again = upgrade(new, NEW).unwrap();
        assert_eq!((again.text.as_str(), again.added), (new, Vec::new()), "a second time: {old:?}");
    }

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    const MODELS: &str = "\n# Those who answer.\n# models:\n#   # Its name.\n#   # - name: a\n#   #   # Its class.\n#   #   use: b\n";

    #[test]
    fn what_is_missing_comes_as_comments_and_nothing_else_moves() {
        let old = "config_version: 30 # said me

gateway:   # mine
    port:   7  # odd
    tls: {cert: \"y\"}

    # last words

# models next
models: []
";
        let new = "config_version: 34 # said me

gateway:   # mine
    port:   7  # odd
    tls: {cert: \"y\"}
    # The name.
    # host: here
    # Who may.
    # token: $T

    # last words

# models next
models: []
";
        check(old, new, &["gateway.host", "gateway.token"], &[]);
    }

    #[test]
    fn a_file_without_a_version_gets_one() {
        let gateway = "\n# The door.\n# gateway:\n#   # The name.\n#   host: here\n#   # The port.\n#   port: 1\n#   # Who may.\n#   # token: $T\n#   # Deeper.\n#   tls:\n#     # A file.\n#     cert: x\n";
        check("", &format!("{gateway}{MODELS}\nconfig_version: 34\n"), &["gateway", "models"], &[]);
    }

    #[test]
    fn line_ends_and_the_mark_at_the_start_stay() {
        let old = "\u{feff}config_version: 4\r\nmodels: []\r\ngateway:\r\n  host: h\r\n  token: t\r\n  tls: {cert: x}";
        let new = "\u{feff}config_version: 34\r\nmodels: []\r\ngateway:\r\n  host: h\r\n  token: t\r\n  tls: {cert: x}\r\n  \
                   # The port.\r\n  # port: 1\r\n";
        check(old, new, &["gateway.port"], &[]);
    }

    #[test]
    fn a_section_on_one_line_is_left_alone_and_told() {
        let rest = "config_version: 34\nmodels: []\n";
        let left = ["gateway.host", "gateway.token", "gateway.tls"];
        check(&format!("gateway: {{port: 3}}\n{rest}"), &format!("gateway: {{port: 3}}\n{rest}"), &[], &left);
    }

    #[test]
    fn block_text_that_looks_like_a_comment_is_not_touched() {
        let rest = "models: []\nconfig_version: 34\n";
        check(
            &format!(
                "gateway:\n  port: 1\n  token: t\n  tls: {{cert: x}}\n  note: |\n    a\n    # b\n\n{rest}"
            ),
            &format!(
                "gateway:\n  port: 1\n  token: t\n  tls: {{cert: x}}\n  note: |\n    a\n    # b\n  # The name.\n  # host: here\n\n{rest}"
            ),
            &["gateway.host"],
            &[],
        );
    }

    #[test]
    fn a_newer_file_is_left_as_it_is() {
        let newer = "config_version: 99\n";
        let expected = Upgraded { text: newer.to_owned(), from: 99, added: Vec::new(), left: Vec::new() };
        assert_eq!(upgrade(newer, NEW), Ok(expected));
    }

    #[test]
    fn a_file_that_cannot_be_read_is_refused() {
        let report = upgrade("a: b: c\n", NEW).unwrap_err();
        assert!(report.to_string().starts_with("1:5: error: this is not YAML"), "{report}");
    }

    #[test]
    fn a_file_whose_words_would_change_is_refused() {
        let expected = "error: the new keys cannot be put into this file without changing what it says\n  \
                        mend: add them by hand, from config.example.yaml";
        for text in ["a: 1\n...\n", "config_version: 34\nlast: |+\n  lines at the end count\n"] {
            assert_eq!(upgrade(text, NEW).unwrap_err().to_string(), expected, "{text:?}");
        }
    }

    /// A file whose sections are known or not, written in many ways, with comments between.
    fn file() -> impl Strategy<Value = String> {
        let comment = "(|# (host|port|gateway|models|odd): x\n| {2}# deep\n|#\n|\n|    # deeper\n)";
        let value = "(1|x|'# no'|\\[\\]|\\{a: 1\\}|\\|\n {6}# text\n {6}more\n|>-\n\n {6}a\n|\n {6}- 1\n {6}# c\n {6}- 2)";
        let inner = prop::collection::btree_map("(host|port|token|tls|odd)", (value, comment), 0..4)
            .prop_map(|keys| {
                keys.iter().fold(String::new(), |text, (key, (value, note))| {
                    format!("{text}    {key}: {value}\n{note}")
                })
            });
        let section = ("(gateway|models|config_version|other)", inner, "(| # why)", comment);
        prop::collection::btree_map(0..9u8, section, 0..4).prop_map(|sections| {
            let mut seen = std::collections::BTreeSet::new();
            let kept = sections.into_values().filter(|(key, ..)| seen.insert(key.clone()));
            kept.fold(String::new(), |text, (key, inner, why, note)| {
                format!("{text}{note}{key}:{why}\n{inner}")
            })
        })
    }

    proptest! {
        #[test]
        fn no_value_changes_and_the_second_time_nothing_does(text in file()) {
            let Ok(before) = tree(&text) else { return Ok(()) };
            let Ok(once) = upgrade(&text, NEW) else { return Ok(()) };
            prop_assert!(same(&before, &tree(&once.text).unwrap(), true));
            let kept: Vec<_> = once.text.lines().filter(|line| text.lines().any(|old| old == *line)).collect();
            prop_assert!(text.lines().filter(|l| !l.starts_with("config_version")).all(|line| kept.contains(&line)));
            prop_assert_eq!(upgrade(&once.text, NEW).map(|twice| twice.text), Ok(once.text));
        }
    }
}
