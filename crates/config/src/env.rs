//! The environment. It is read from the process only here and passed on as a map, so that no other code depends on it
//! implicitly, and tests do not change the process.
//!
//! A `.env` file next to the config file adds variables but never overrides any. Only the common part of the `.env`
//! dialects is supported: `NAME=value`, `export`, comments, both kinds of quotes. Values are not expanded and do not
//! span lines.

use super::problem::{Pos, Problem};
use std::{collections::BTreeMap, fmt};

/// Environment variables.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Env(BTreeMap<String, String>);

impl Env {
    /// Reads the process's environment. Variables that are not UTF-8 are omitted.
    pub fn process() -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self(std::env::vars_os().filter_map(text).collect())
    }

    /// Returns all variables.
    pub fn all(&self) -> impl Iterator<Item = (String, String)> {
        self.0.iter().map(|(name, value)| (name.clone(), value.clone()))
    }

    /// Returns a variable, even if it is empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Returns the first of these variables that is not empty, with its name.
    pub fn first<'n>(&self, names: &[&'n str]) -> Option<(&'n str, &str)> {
        names.iter().find_map(|name| Some((*name, self.get(name).filter(|value| !value.is_empty())?)))
    }

    /// Adds the variables of a `.env` file that are not set yet. Returns the problems of invalid lines.
    pub fn add_file(&mut self, text: &str) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (line, number) in text.lines().zip(1..) {
            match assignment(line) {
                Ok(Some((name, value))) => {
                    self.0.entry(name.to_owned()).or_insert(value);
                }
                Ok(None) => {}
                Err(what) => {
                    let at = Pos { line: number, column: 1 };
                    problems.push(Problem::warning(at, "", what, "write NAME=value, each on its own line"));
                }
            }
        }
        problems
    }
}

/// Prints only names, because values may be secrets.
impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl FromIterator<(String, String)> for Env {
    fn from_iter<T: IntoIterator<Item = (String, String)>>(variables: T) -> Self {
        Self(variables.into_iter().collect())
    }
}

impl<const N: usize> From<[(&str, &str); N]> for Env {
    fn from(pairs: [(&str, &str); N]) -> Self {
        Self(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }
}

/// Returns whether this is a valid name of a variable.
pub(crate) fn is_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn assignment(line: &str) -> Result<Option<(&str, String)>, &'static str> {
    let line = line.trim_start_matches('\u{feff}').trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let line = line.strip_prefix("export ").unwrap_or(line);
    let (name, value) = line.split_once('=').ok_or("this line has no `=`")?;
    let name = name.trim();
    if !is_name(name) {
        return Err("the text before `=` is not a name");
    }
    Ok(Some((name, unquote(value.trim())?)))
}

fn unquote(value: &str) -> Result<String, &'static str> {
    let mut chars = value.chars();
    match chars.next() {
        Some('\'') => match chars.as_str().split_once('\'') {
            Some((inner, _)) => Ok(inner.to_owned()),
            None => Err("unclosed quote in this line"),
        },
        Some('"') => unescape(chars),
        Some('#') => Ok(String::new()),
        _ => Ok(value.split(" #").next().unwrap_or_default().trim_end().to_owned()),
    }
}

fn unescape(mut chars: std::str::Chars<'_>) -> Result<String, &'static str> {
    let mut out = String::new();
    while let Some(c) = chars.next() {
        match c {
            '"' => return Ok(out),
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some(other) => out.push(other),
                None => break,
            },
            _ => out.push(c),
        }
    }
    Err("unclosed quote in this line")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_adds_and_never_overrides() {
        let mut env = Env::from([("KEPT", "real")]);
        let text = "\u{feff}# keys\r\nKEPT=file\r\nexport A = plain value # said so\nB='it #1 $X'\nC=\"two\\nlines \\\"q\\\"\"\nD=\n\nE=a#b\nE=later\n";
        assert_eq!(env.add_file(text), []);
        let expected = Env::from([
            ("KEPT", "real"),
            ("A", "plain value"),
            ("B", "it #1 $X"),
            ("C", "two\nlines \"q\""),
            ("D", ""),
            ("E", "a#b"),
        ]);
        assert_eq!(env.0, expected.0);
    }

    #[test]
    fn an_invalid_line_is_reported_without_its_content() {
        let mut env = Env::default();
        let problems: Vec<_> =
            env.add_file("sk-secret\n2X=secret\nA=\"secret\n").iter().map(ToString::to_string).collect();
        let help = "\n  help: write NAME=value, each on its own line";
        assert_eq!(
            problems,
            [
                format!("1:1: warning: this line has no `=`{help}"),
                format!("2:1: warning: the text before `=` is not a name{help}"),
                format!("3:1: warning: unclosed quote in this line{help}"),
            ]
        );
    }

    #[test]
    fn debug_output_has_names_only() {
        assert_eq!(format!("{:?}", Env::from([("TOKEN", "secret")])), r#"{"TOKEN"}"#);
    }
}
