//! Reads settings from the tree, and records all problems.
//!
//! A setting is read by one expression with its key, its type and its default (`declare.rs`). There is no other list of
//! keys: a key that no reader requested is unknown.
//!
//! Reading does not stop at the first error: a wrong value is reported and treated as absent, and the caller gets all
//! errors at the end. The types of values are in `setting.rs`.

use super::{
    declaration::KeyDeclaration,
    env::{self, Env},
    problem::{Pos, Problem, join},
    raw::{MappingEntry, Node, NodeValue},
};
use indexmap::IndexMap;
use pudu_net::scrub;
use secrecy::SecretString;
use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash, Hasher},
};

/// Reader of one file.
pub(super) struct ConfigReader<'a> {
    root: &'a Node,
    env: &'a Env,
    log: RefCell<Log>,
}

/// Result of reading a file.
#[derive(Debug, Default)]
pub(super) struct Log {
    /// Problems that were found.
    pub(super) problems: Vec<Problem>,
    /// The requested keys, by their path in this file.
    pub(super) keys: IndexMap<String, Key>,
    /// Known keys without an effect yet.
    pub(super) unused: BTreeSet<String>,
    /// Keys whose values have a different unit than in DeerFlow, each with its unit.
    pub(super) differing: BTreeSet<String>,
    /// Secrets in the configuration.
    pub(super) secrets: Vec<SecretString>,
    /// Values of variables and their names. Such a value is never shown in a problem.
    expanded: BTreeSet<(String, String)>,
    /// The known keys of each section that was read.
    pub(super) sections: BTreeMap<String, BTreeSet<String>>,
    /// The descriptions of sections, by their paths with `[]` and examples of names.
    pub(super) about: BTreeMap<String, &'static str>,
    /// The sections whose names the operator chooses, by the same paths.
    pub(super) named: BTreeSet<String>,
}

/// A requested key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    /// Its path, with `[]` for an index in a list, and the platform in place of a bot's name.
    pub(super) pattern: String,
    /// Its declaration.
    pub(super) declared: KeyDeclaration,
    /// Its other names.
    pub(super) aliases: Vec<&'static str>,
    /// When a change takes effect.
    pub(super) effect: Effect,
    /// Fingerprint of its value, so that values can be compared without being stored.
    pub(super) value: u64,
    /// Position of its value, or of its section if it is absent.
    pub(super) at: Option<Pos>,
    /// Whether the file sets it.
    pub(super) said: bool,
}

/// When a change takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// After a restart of pudu.
    Restart,
    /// Soon, after its bot has reconnected.
    Reconnect,
    /// From the next message on.
    NextMessage,
}

impl<'a> ConfigReader<'a> {
    /// Creates a reader of a tree.
    pub(super) fn new(root: &'a Node, env: &'a Env) -> Self {
        Self { root, env, log: RefCell::default() }
    }

    /// Returns the top section, for settings that need a restart.
    pub(super) fn fixed(&self) -> Section<'_> {
        let top = Section {
            reader: self,
            node: Some(self.root),
            at: None,
            path: String::new(),
            pattern: String::new(),
            aliases: &[],
            needed: true,
            effect: Effect::Restart,
            older: None,
        };
        top.check_shape();
        top
    }

    /// Returns the top section, for settings whose change makes one bot reconnect.
    pub(super) fn accounts(&self) -> Section<'_> {
        Section { effect: Effect::Reconnect, ..self.fixed() }
    }

    /// Returns the top section, for settings that apply from the next message on.
    pub(super) fn live(&self) -> Section<'_> {
        Section { effect: Effect::NextMessage, ..self.fixed() }
    }

    /// Returns the result, and replaces values of variables in its problems.
    pub(super) fn finish(&self) -> Log {
        let mut log = self.log.take();
        for Problem { what, help, .. } in &mut log.problems {
            *what = named(what, &log.expanded);
            *help = named(help, &log.expanded);
        }
        log
    }
}

/// A mapping in the file, which may be absent.
#[derive(Clone)]
pub(super) struct Section<'r> {
    pub(super) reader: &'r ConfigReader<'r>,
    node: Option<&'r Node>,
    at: Option<Pos>,
    pub(super) path: String,
    pattern: String,
    aliases: &'static [(&'static str, &'static str)],
    needed: bool,
    effect: Effect,
    /// The section that contains the same keys in older files.
    older: Option<&'r Section<'r>>,
}

impl<'r> Section<'r> {
    /// Returns the section under a key, which may be absent.
    pub(super) fn section(&self, key: &str) -> Self {
        self.section_like(key, key)
    }

    /// Returns the section under a key whose keys are documented under another name.
    pub(super) fn section_like(&self, key: &str, pattern: &str) -> Self {
        let entry = self.entry(key);
        let section = Section {
            node: entry.map(|entry| &entry.node),
            at: entry.map(|entry| entry.at).or(self.at),
            path: join(&self.path, key),
            pattern: join(&self.pattern, pattern),
            aliases: &[],
            ..self.clone()
        };
        section.check_shape();
        section
    }

    /// Returns the section under a name chosen by the operator, whose keys are documented under an example of a name.
    pub(super) fn section_named(&self, name: &str, example: &str) -> Self {
        self.reader.log.borrow_mut().named.insert(join(&self.pattern, example));
        self.section_like(name, example)
    }

    /// Sets the description of the section.
    pub(super) fn about(self, about: &'static str) -> Self {
        self.reader.log.borrow_mut().about.insert(self.pattern.clone(), about);
        self
    }

    /// Sets the description of the list under a key.
    pub(super) fn about_list(&self, key: &str, about: &'static str) {
        self.reader.log.borrow_mut().about.insert(join(&self.pattern, key), about);
    }

    /// Returns the mappings in the list under a key.
    pub(super) fn items(&self, key: &str) -> Vec<Self> {
        let Some(entry) = self.entry(key) else { return Vec::new() };
        let NodeValue::List(items) = &entry.node.value else {
            let what = format!("found {}, expected a list", kind(&entry.node.value));
            self.note(Problem::error(
                entry.node.at,
                &join(&self.path, key),
                what,
                "begin each entry with `- `",
            ));
            return Vec::new();
        };
        let item = |(index, node): (usize, &'r Node)| {
            let section = Section {
                node: Some(node),
                at: Some(node.at),
                path: format!("{}[{index}]", join(&self.path, key)),
                pattern: format!("{}[]", join(&self.pattern, key)),
                aliases: &[],
                ..self.clone()
            };
            section.check_shape();
            section
        };
        // A value that is not a mapping is already reported, so its missing keys are not.
        let is_map = |section: &Self| {
            section.node.is_none_or(|node| matches!(node.value, NodeValue::Map(_) | NodeValue::Null))
        };
        items.iter().enumerate().map(item).filter(is_map).collect()
    }

    /// Sets another section in which older files have the keys.
    pub(super) fn or_in(self, older: &'r Self) -> Self {
        Self { older: Some(older), ..self }
    }

    /// Returns the section that contains a key.
    pub(super) fn at(&self, key: &str) -> &Self {
        self.older.filter(|older| older.entry(key).is_some() && self.entry(key).is_none()).unwrap_or(self)
    }

    /// Sets other names of keys, as pairs of an alias and its key.
    pub(super) fn also(self, aliases: &'static [(&'static str, &'static str)]) -> Self {
        aliases.iter().for_each(|(alias, _)| self.note_known(alias));
        Self { aliases, ..self }
    }

    /// Sets whether the section has an effect. If not, missing keys are not errors, but wrong types still are.
    pub(super) fn needed(self, needed: bool) -> Self {
        Self { needed: self.needed && needed, ..self }
    }

    /// Returns when a change of the section's keys takes effect.
    pub(super) fn effect(&self) -> Effect {
        self.effect
    }

    /// Returns whether a missing key of the section is an error.
    pub(super) fn is_needed(&self) -> bool {
        self.needed
    }

    /// Records known keys without an effect yet.
    pub(super) fn note_unused(&self, keys: &[&str]) {
        for key in keys {
            if self.entry(key).is_some() {
                self.reader.log.borrow_mut().unused.insert(join(&self.pattern, key));
            }
        }
    }

    /// Records a key whose value has a different unit than in DeerFlow, if the file has it.
    pub(super) fn differs(&self, key: &str, counts: &str) {
        if self.entry(key).is_some() {
            let note = format!("{} ({counts})", join(&self.path, key));
            self.reader.log.borrow_mut().differing.insert(note);
        }
    }

    /// Records secrets.
    pub(super) fn know_secret<'a>(&self, secrets: impl IntoIterator<Item = &'a SecretString>) {
        self.reader.log.borrow_mut().secrets.extend(secrets.into_iter().cloned());
    }

    /// Accepts keys that have no effect.
    pub(super) fn know_all(&self, keys: &[&str]) {
        keys.iter().for_each(|key| self.note_known(key));
    }

    /// Accepts all remaining keys.
    pub(super) fn ignore_rest(&self) {
        self.present().for_each(|entry| self.note_known(&entry.key));
    }

    /// Returns the entry of a key or its aliases, unless it is absent or null.
    pub(super) fn entry(&self, key: &str) -> Option<&'r MappingEntry> {
        self.note_known(key);
        let node = self.node?;
        let set = |name: &str| node.entry(name).filter(|entry| entry.node.value != NodeValue::Null);
        set(key).or_else(|| self.aliases_of(key).find_map(set))
    }

    fn aliases_of<'k>(&self, key: &'k str) -> impl Iterator<Item = &'static str> + use<'k> {
        self.aliases.iter().filter(move |(_, name)| *name == key).map(|(alias, _)| *alias)
    }

    /// Returns the section's entries in the file.
    pub(super) fn present(&self) -> impl Iterator<Item = &'r MappingEntry> {
        self.node.map(Node::entries).unwrap_or_default().iter()
    }

    /// Returns whether the file has this section.
    pub(super) fn exists(&self) -> bool {
        self.node.is_some()
    }

    /// Reports a problem.
    pub(super) fn note(&self, problem: Problem) {
        let problems = &mut self.reader.log.borrow_mut().problems;
        // A section with both kinds of keys is read twice.
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }

    /// Reports an error in a key's value.
    pub(super) fn refuse(&self, key: &str, what: impl Into<String>, help: impl Into<String>) {
        self.note(Problem::error(self.place(key), &join(&self.path, key), what, help));
    }

    /// Reports an error in the section as a whole.
    pub(super) fn refuse_here(&self, what: impl Into<String>, help: impl Into<String>) {
        self.note(Problem::error(self.at, &self.path, what, help));
    }

    /// Reports a warning about a key's value.
    pub(super) fn warn(&self, key: &str, what: impl Into<String>, help: impl Into<String>) {
        self.note(Problem::warning(self.place(key), &join(&self.path, key), what, help));
    }

    /// Reports a warning about the section as a whole.
    pub(super) fn warn_here(&self, what: impl Into<String>, help: impl Into<String>) {
        self.note(Problem::warning(self.at, &self.path, what, help));
    }

    fn place(&self, key: &str) -> Option<Pos> {
        self.entry(key).map(|entry| entry.node.at).or(self.at)
    }

    /// Records a requested key, and a fingerprint of its effective value.
    pub(super) fn record(&self, key: &str, declared: KeyDeclaration, effect: Effect, value: &str) {
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        let read_key = Key {
            pattern: join(&self.pattern, key),
            declared,
            aliases: self.aliases_of(key).collect(),
            effect,
            value: hasher.finish(),
            at: self.place(key),
            said: self.entry(key).is_some(),
        };
        // If two passes request a key, the first one counts: it reads the settings that need a restart.
        self.reader.log.borrow_mut().keys.entry(join(&self.path, key)).or_insert(read_key);
    }

    /// Expands the variable in a text. Returns `None` if the variable has no value, which is reported if the section
    /// has an effect.
    pub(super) fn expand(&self, key: &str, at: Pos, text: &str) -> Option<String> {
        if let Some(name) = windows_variable(text) {
            let what = format!("%{name}% is how Windows writes a variable");
            let help =
                format!("write ${name}; for this literal text, set a variable to it and use the variable");
            self.note(Problem::error(at, key, what, help));
            return None;
        }
        let Some(rest) = text.strip_prefix('$') else { return Some(text.to_owned()) };
        if let Some(literal) = rest.strip_prefix('$') {
            return Some(format!("${literal}"));
        }
        let Some(name) = variable(text) else {
            let help = "write $NAME or ${NAME}; for a literal dollar sign at the beginning write `$$`";
            self.note(Problem::error(
                at,
                key,
                "a text that begins with `$` must be the name of a variable",
                help,
            ));
            return None;
        };
        let value = self.reader.env.get(name);
        if value.is_none() && self.needed {
            let what = format!("the environment variable {name} is not set");
            let help = format!("set {name}, or add {name}=… to the file .env beside this one");
            self.note(Problem::error(at, key, what, help));
        }
        let value = value?;
        self.reader.log.borrow_mut().expanded.insert((value.to_owned(), name.to_owned()));
        Some(value.to_owned())
    }

    /// Returns the name of the variable in a key's value.
    pub(super) fn variable(&self, key: &str) -> Option<&'r str> {
        match &self.entry(key)?.node.value {
            NodeValue::Text(text) => variable(text),
            _ => None,
        }
    }

    fn note_known(&self, key: &str) {
        let mut log = self.reader.log.borrow_mut();
        log.sections.entry(self.path.clone()).or_default().insert(key.to_owned());
    }

    fn check_shape(&self) {
        match self.node {
            Some(Node { value: NodeValue::Map(_) | NodeValue::Null, .. }) | None => {}
            Some(Node { value, at }) => {
                let what = format!("found {}, expected a mapping", kind(value));
                self.note(Problem::error(*at, &self.path, what, self.shape(value)));
            }
        }
    }
}

impl Section<'_> {
    /// Returns advice on how to write the section. The advice quotes the word found there if that may be shown.
    fn shape(&self, value: &NodeValue) -> String {
        match value {
            NodeValue::Text(word) if self.path.starts_with("models[") && is_name(word) => {
                format!(
                    "write `- {{name: {word}, model: {word}}}`, and `use:` for a provider other than OpenAI"
                )
            }
            _ => "write `key: value` lines with the same indentation".to_owned(),
        }
    }
}

/// Replaces the values of variables with their names, unless they are parts of longer words.
fn named(text: &str, expanded: &BTreeSet<(String, String)>) -> String {
    const MIN_BYTES: usize = 5;
    let mut text = text.to_owned();
    for (value, name) in expanded.iter().rev().filter(|(value, _)| value.trim().len() >= MIN_BYTES) {
        let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        let mut rest = std::mem::take(&mut text);
        while let Some(at) = rest.find(value.as_str()) {
            let (before, found) = rest.split_at(at);
            let after = found.get(value.len()..).unwrap_or_default().to_owned();
            let is_separate =
                !is_part(before.chars().last().or(text.chars().last())) && !is_part(after.chars().next());
            text.push_str(before);
            text.push_str(&if is_separate { format!("${name}") } else { value.clone() });
            rest = after;
        }
        text.push_str(&rest);
    }
    text
}

/// Returns the name in `$NAME` or `${NAME}`.
fn variable(text: &str) -> Option<&str> {
    let rest = text.strip_prefix('$')?;
    let name = rest.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(rest);
    env::is_name(name).then_some(name)
}

/// Returns the name in `%NAME%`. Lower-case names are excluded, because a password may look like that.
fn windows_variable(text: &str) -> Option<&str> {
    let name = text.strip_prefix('%')?.strip_suffix('%')?;
    let is_capital = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    (name.starts_with(|c: char| c.is_ascii_uppercase()) && name.chars().all(is_capital)).then_some(name)
}

fn is_name(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._:/".contains(c);
    (1..=40).contains(&word.len()) && word.chars().all(plain) && !scrub::looks_secret(word)
}

/// Describes a value for a message. Truncates long text, and omits an address that may contain a password.
pub(super) fn describe(value: &NodeValue) -> String {
    match value {
        NodeValue::Bool(value) => format!("`{value}`"),
        NodeValue::Int(value) => format!("the number {value}"),
        NodeValue::Float(value) => format!("the number {value}"),
        NodeValue::Text(text) if text.contains("://") && text.contains('@') => {
            "an address with a name or a password in it".to_owned()
        }
        NodeValue::Text(text) if text.chars().count() > 40 => {
            format!("\"{}…\"", text.chars().take(40).collect::<String>())
        }
        NodeValue::Text(text) => format!("\"{text}\""),
        NodeValue::Null | NodeValue::List(_) | NodeValue::Map(_) => kind(value).to_owned(),
    }
}

/// Describes the kind of a value, for messages about values that may be secret.
pub(super) fn kind(value: &NodeValue) -> &'static str {
    match value {
        NodeValue::Null => "nothing",
        NodeValue::Bool(_) => "a yes or no",
        NodeValue::Int(_) | NodeValue::Float(_) => "a number",
        NodeValue::Text(_) => "text",
        NodeValue::List(_) => "a list",
        NodeValue::Map(_) => "a mapping",
    }
}
