//! YAML as it was typed: a tree in which every key and every value has its position in the file.
//!
//! serde-saphyr parses it, with YAML 1.1 booleans and merge keys like DeerFlow's PyYAML, and its `Spanned` gives the
//! position of each node. The budget below limits the cost of a hostile file. The meaning of keys, the set of known
//! keys and the values of `$NAME` are not known here.

use super::problem::{Pos, Problem, join};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Error, Location, Spanned, budget, options, options::DuplicateKeyPolicy};
use std::{collections::HashMap, fmt};

/// Maximum size of a file, in bytes. DeerFlow's example, which is mostly comments, has 120 KB.
pub(crate) const MAX_BYTES: u64 = 1024 * 1024;

/// Maximum nesting depth of lists and mappings.
const MAX_DEPTH: usize = 48;

/// Maximum number of values in a file after its aliases are expanded.
const MAX_NODES: usize = 50_000;

/// A value and its position.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    /// Position of its start; for an alias, the position of the alias.
    pub at: Pos,
    /// The value.
    pub value: NodeValue,
}

/// A value, as it was typed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum NodeValue {
    /// Nothing, `null` or `~`.
    Null,
    /// `true`, `yes`, `on`, or the opposite.
    Bool(bool),
    /// A whole number.
    Int(i128),
    /// Any other number.
    Float(f64),
    /// Text, quoted or not, including `$NAME`.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A mapping in the order of the file, including duplicate keys.
    Map(Vec<MappingEntry>),
}

/// A key, its position and its value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MappingEntry {
    /// The key as text, even if it looks like a number.
    pub key: String,
    /// Position of the key.
    pub at: Pos,
    /// Its value.
    pub node: Node,
}

impl Node {
    /// Returns the entries of a mapping; other values have none.
    pub(crate) fn entries(&self) -> &[MappingEntry] {
        match &self.value {
            NodeValue::Map(entries) => entries,
            _ => &[],
        }
    }

    /// Returns the entry of a key, the last one if there are duplicates.
    pub(crate) fn entry(&self, key: &str) -> Option<&MappingEntry> {
        self.entries().iter().rev().find(|entry| entry.key == key)
    }
}

/// Parses a whole file. Returns the tree and the problems of its YAML. There is no tree if the file cannot be parsed.
pub(crate) fn parse(bytes: &[u8]) -> (Option<Node>, Vec<Problem>) {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text.strip_prefix('\u{feff}').unwrap_or(text),
        Err(error) => return (None, vec![not_text(bytes, error.valid_up_to())]),
    };
    match read(text, DuplicateKeyPolicy::Error) {
        Ok(root) => (Some(root), Vec::new()),
        Err(error @ Error::DuplicateMappingKey { .. }) => tolerate_duplicates(text, &error),
        Err(error) => (None, vec![syntax(text, &error)]),
    }
}

/// Parses a file with duplicate keys, so that all problems are reported at once.
fn tolerate_duplicates(text: &str, first: &Error) -> (Option<Node>, Vec<Problem>) {
    match read(text, DuplicateKeyPolicy::LastWins) {
        Ok(root) => {
            let mut problems = Vec::new();
            duplicates(&root, "", &mut problems);
            // If the keys are equal integers, the parser passes on only one.
            if problems.is_empty() {
                problems.push(syntax(text, first));
            }
            (Some(root), problems)
        }
        Err(error) => (None, vec![syntax(text, first), syntax(text, &error)]),
    }
}

fn read(text: &str, duplicate_keys: DuplicateKeyPolicy) -> Result<Node, Error> {
    let mut options = options! {
        // Comments are not needed, and there may be many.
        emit_comments: false,
        with_snippet: false,
        duplicate_keys: duplicate_keys,
        budget: budget! { max_depth: MAX_DEPTH, max_nodes: MAX_NODES, max_documents: 2, flow_nesting_limit: MAX_DEPTH },
    };
    options.alias_limits.max_total_replayed_events = MAX_NODES;
    serde_saphyr::from_str_with_options(text, options)
}

fn duplicates(node: &Node, path: &str, problems: &mut Vec<Problem>) {
    if let NodeValue::List(items) = &node.value {
        for (index, item) in items.iter().enumerate() {
            duplicates(item, &format!("{path}[{index}]"), problems);
        }
    }
    let mut seen = HashMap::new();
    for entry in node.entries() {
        let path = join(path, &entry.key);
        if let Some(first) = seen.insert(entry.key.as_str(), entry.at.line) {
            let what = format!("duplicate key; first used on line {first}");
            problems.push(Problem::error(entry.at, &path, what, "remove one of the two"));
        }
        duplicates(&entry.node, &path, problems);
    }
}

fn not_text(bytes: &[u8], valid: usize) -> Problem {
    let before = bytes.get(..valid).unwrap_or_default();
    let line = before.split(|byte| *byte == b'\n').count();
    let tail = before.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    let column = String::from_utf8_lossy(tail).chars().count() + 1;
    let at = Pos { line: line as u64, column: column as u64 };
    Problem::error(at, "", "this is not UTF-8 text", "save the file as UTF-8")
}

fn syntax(text: &str, error: &Error) -> Problem {
    let at = error.location().map_or(Pos { line: 1, column: 1 }, Pos::from);
    let (what, help) = match error {
        Error::DuplicateMappingKey { key, .. } => {
            let key = key.as_deref().unwrap_or("(not a text)");
            return Problem::error(at, key, "duplicate key", "remove one of the two");
        }
        Error::MultipleDocuments { .. } => {
            ("a second YAML document begins here".to_owned(), "remove the line `---` and everything below it")
        }
        _ => match without_place(&error.to_string()) {
            words if words.contains("limit exceeded") || words.contains("budget") => {
                ("too deeply nested, or too long after expanding its aliases".to_owned(), "simplify it")
            }
            words => (words, advice(text, at)),
        },
    };
    Problem::error(at, "", format!("invalid YAML: {what}"), help)
}

/// Removes the position from the parser's message, because the report already states it.
fn without_place(words: &str) -> String {
    words.split(" at line ").next().unwrap_or_default().to_owned()
}

fn advice(text: &str, at: Pos) -> &'static str {
    let line = usize::try_from(at.line).ok().and_then(|n| text.lines().nth(n.saturating_sub(1)));
    let indent = line.unwrap_or_default().chars().take_while(|c| c.is_whitespace());
    if indent.into_iter().any(|c| c == '\t') {
        return "indent with spaces, not with tabs";
    }
    let apart = |c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '%');
    let mut words = line.unwrap_or_default().split(apart);
    let word = words.find(|word| word.len() > 2 && word.starts_with('%') && word.ends_with('%'));
    if word.is_some() {
        return "write a variable as $NAME; %NAME% is how Windows writes it";
    }
    "check the indentation and the quotes on this line and the line above; text with `: ` or ` #` needs quotes"
}

impl From<Location> for Pos {
    fn from(at: Location) -> Self {
        Self { line: at.line(), column: at.column() }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let found = Spanned::<NodeValue>::deserialize(from)?;
        Ok(Self { at: found.referenced.into(), value: found.value })
    }
}

impl<'de> Deserialize<'de> for NodeValue {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = NodeValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<NodeValue, E> {
        Ok(NodeValue::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<NodeValue, E> {
        Ok(NodeValue::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<NodeValue, E> {
        Ok(NodeValue::Int(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<NodeValue, E> {
        Ok(NodeValue::Int(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<NodeValue, E> {
        Ok(NodeValue::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<NodeValue, E> {
        Ok(NodeValue::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<NodeValue, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = from.next_element()? {
            items.push(item);
        }
        Ok(NodeValue::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<NodeValue, A::Error> {
        let mut entries = Vec::new();
        while let Some((key, node)) = from.next_entry::<Spanned<String>, Node>()? {
            entries.push(MappingEntry { key: key.value, at: key.referenced.into(), node });
        }
        Ok(NodeValue::Map(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Writes a tree as `path@line:column=value` lines.
    fn flat(node: &Node, path: &str, out: &mut Vec<String>) {
        match &node.value {
            NodeValue::Map(entries) => {
                for entry in entries {
                    let path = join(path, &entry.key);
                    out.push(format!("{path}@{}:{}", entry.at.line, entry.at.column));
                    flat(&entry.node, &path, out);
                }
            }
            NodeValue::List(items) => {
                items.iter().enumerate().for_each(|(i, item)| flat(item, &format!("{path}[{i}]"), out));
            }
            value => out.push(format!("{path}={value:?}@{}:{}", node.at.line, node.at.column)),
        }
    }

    fn check(text: &str, expected: &[&str]) {
        let (root, problems) = parse(text.as_bytes());
        let mut out: Vec<_> = problems.iter().map(ToString::to_string).collect();
        if let Some(root) = root {
            flat(&root, "", &mut out);
        }
        assert_eq!(out, expected, "{text:?}");
    }

    #[test]
    fn every_key_and_value_has_its_position() {
        check(
            "a: 1\nb:\n  - x: yes\n    y: [no, '3', 1.5, ~]\n",
            &[
                "a@1:1",
                "a=Int(1)@1:4",
                "b@2:1",
                "b[0].x@3:5",
                "b[0].x=Bool(true)@3:8",
                "b[0].y@4:5",
                "b[0].y[0]=Bool(false)@4:9",
                "b[0].y[1]=Text(\"3\")@4:13",
                "b[0].y[2]=Float(1.5)@4:18",
                "b[0].y[3]=Null@4:23",
            ],
        );
    }

    #[test]
    fn a_byte_order_mark_and_windows_line_ends_change_nothing() {
        check(
            "\u{feff}a: x\r\nb:\r\n  c: z\r\n",
            &["a@1:1", "a=Text(\"x\")@1:4", "b@2:1", "b.c@3:3", "b.c=Text(\"z\")@3:6"],
        );
    }

    #[test]
    fn merged_and_aliased_values_are_written_out() {
        check(
            "a: &a {x: 1}\nb: {<<: *a}\nc: *a\n",
            &[
                "a@1:1",
                "a.x@1:8",
                "a.x=Int(1)@1:11",
                "b@2:1",
                "b.x@2:9",
                "b.x=Int(1)@2:9",
                "c@3:1",
                "c.x@3:4",
                "c.x=Int(1)@3:4",
            ],
        );
    }

    #[test]
    fn every_duplicate_key_is_reported_and_the_last_value_counts() {
        check(
            "a: 1\na: 2\nb:\n  c: 1\n  c: 2\n",
            &[
                "2:1: error: a: duplicate key; first used on line 1\n  help: remove one of the two",
                "5:3: error: b.c: duplicate key; first used on line 4\n  help: remove one of the two",
                "a@1:1",
                "a=Int(1)@1:4",
                "a@2:1",
                "a=Int(2)@2:4",
                "b@3:1",
                "b.c@4:3",
                "b.c=Int(1)@4:6",
                "b.c@5:3",
                "b.c=Int(2)@5:6",
            ],
        );
    }

    #[test]
    fn bad_input_is_a_clear_error_and_never_a_hang() {
        let bomb: String = (1..12).fold("a0: &a0 [x,x,x,x,x,x,x,x]\n".to_owned(), |text, i| {
            text + &format!("a{i}: &a{i} [{}]\n", vec![format!("*a{}", i - 1); 8].join(","))
        });
        let cases: [(&[u8], &str); 8] = [
            (b"a:\n\tb: 1\n", "2:2: error: invalid YAML: tabs disallowed"),
            (b"a: 1\nb: \xff\n", "2:4: error: this is not UTF-8 text"),
            (b"\xff\xfea\0:\0 \x001\0", "1:1: error: this is not UTF-8 text"),
            (b"a: b: c\n", "1:5: error: invalid YAML: mapping values are not allowed"),
            (b"a: 1\n---\nb: 2\n", "3:1: error: invalid YAML: a second YAML document begins here"),
            (b"1: a\n1: b\n", "2:1: error: 1: duplicate key"),
            (&b"[".repeat(100_000), "1:49: error: invalid YAML: too deeply nested"),
            (bomb.as_bytes(), "error: invalid YAML: too deeply nested"),
        ];
        for (bytes, expected) in cases {
            let (_, problems) = parse(bytes);
            let first = problems.first().map(ToString::to_string).unwrap_or_default();
            assert!(first.contains(expected), "{first}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_cause_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = parse(&bytes);
        }

        #[test]
        fn no_yaml_looking_text_makes_it_panic(text in "([a-c?*&!|>{}\\[\\],:#'\"%@`<~ \t\r\n-]|: |- |<<: ){0,120}") {
            let _ = parse(text.as_bytes());
        }
    }
}
