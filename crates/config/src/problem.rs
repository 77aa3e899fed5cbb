//! Problems of a configuration, described so that a person can fix them.
//!
//! A problem has one line that editors can jump to (`file:line:column: error: key: what`) and one line with the fix. It
//! never contains values of secrets or of environment variables.

use pudu_net::scrub;
use std::{fmt, path::PathBuf};

/// A position in the file. Lines and columns count from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pos {
    /// The line.
    pub line: u64,
    /// The column.
    pub column: u64,
}

/// Severity of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It prevents the start.
    Error,
    /// It works, but possibly not as intended.
    Warning,
    /// Information.
    Note,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        })
    }
}

/// An error, a warning or a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Its severity.
    pub severity: Severity,
    /// Position in the file; `None` if the problem is about something missing from the file.
    pub at: Option<Pos>,
    /// The dotted key, or empty.
    pub key: String,
    /// The actual and the expected value.
    pub what: String,
    /// The fix, or empty.
    pub help: String,
}

impl Problem {
    /// Creates an error at a position.
    pub fn error(
        at: impl Into<Option<Pos>>,
        key: &str,
        what: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self {
            severity: Severity::Error,
            at: at.into(),
            key: key.to_owned(),
            what: what.into(),
            help: help.into(),
        }
    }

    /// Creates a warning at a position.
    pub fn warning(
        at: impl Into<Option<Pos>>,
        key: &str,
        what: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self { severity: Severity::Warning, ..Self::error(at, key, what, help) }
    }

    /// Creates a note about the whole file.
    pub fn note(what: impl Into<String>) -> Self {
        Self { severity: Severity::Note, ..Self::error(None, "", what, "") }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Pos { line, column }) = self.at {
            write!(f, "{line}:{column}: ")?;
        }
        write!(f, "{}: ", self.severity)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.what)?;
        match self.help.as_str() {
            "" => Ok(()),
            help => write!(f, "\n  help: {help}"),
        }
    }
}

/// All problems of one file, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The path of the file as it was given; `None` if there is no file.
    pub file: Option<PathBuf>,
    /// The problems, most severe first, then by position.
    pub problems: Vec<Problem>,
}

impl Report {
    /// Creates a report and sorts its problems.
    pub fn new(file: Option<PathBuf>, mut problems: Vec<Problem>) -> Self {
        problems.sort_by_key(|problem| (problem.severity, problem.at));
        Self { file, problems }
    }

    /// Returns whether the report has errors, which prevent the start.
    pub fn has_errors(&self) -> bool {
        self.problems.iter().any(|problem| problem.severity == Severity::Error)
    }

    /// Returns each problem as text, beginning with the file's name.
    pub fn lines(&self) -> impl Iterator<Item = (Severity, String)> {
        self.problems.iter().map(|problem| (problem.severity, self.line(problem)))
    }

    fn line(&self, problem: &Problem) -> String {
        // Secrets are hidden in each part separately, because next to the key's name a harmless text may look like one.
        let hidden = Problem {
            key: scrub::hide(&problem.key).into_owned(),
            what: unsecret(&problem.what),
            help: unsecret(&problem.help),
            ..problem.clone()
        };
        let shown = hidden.to_string();
        match &self.file {
            Some(file) if problem.at.is_some() => format!("{}:{shown}", file.display()),
            Some(file) => format!("{}: {shown}", file.display()),
            None => shown,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<_> = self.lines().map(|(_, line)| line).collect();
        f.write_str(&lines.join("\n"))
    }
}

/// Hides quoted texts of the file that look like an API key in the wrong place.
fn unsecret(text: &str) -> String {
    let text = scrub::hide(text);
    let parts = text.split('"').enumerate().map(|(at, part)| {
        let plain = !part.contains(['.', ':', ' ']);
        if at % 2 == 1 && plain && scrub::looks_secret(part) { scrub::HIDDEN } else { part }
    });
    parts.collect::<Vec<_>>().join("\"")
}

/// Returns the dotted path of a key in a section.
pub(crate) fn join(section: &str, key: &str) -> String {
    match section {
        "" => key.to_owned(),
        _ => format!("{section}.{key}"),
    }
}

/// Returns the known word that was probably meant, in which at most a third of the letters differ.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|other| (strsim::damerau_levenshtein(word, other), other))
        .filter(|(distance, other)| *distance <= (other.chars().count() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, other)| other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_similar_enough() {
        let known = ["bot_token", "allowed_users", "mode"];
        let cases = [
            ("bot_tokn", Some("bot_token")),
            ("bottoken", Some("bot_token")),
            ("allowed_user", Some("allowed_users")),
            ("mdoe", Some("mode")),
            ("colour", None),
            ("", None),
        ];
        for (word, expected) in cases {
            assert_eq!(nearest(word, known), expected, "{word}");
        }
    }

    #[test]
    fn a_report_is_in_the_order_of_the_file_with_errors_first() {
        let at = |line| Pos { line, column: 2 };
        let report = Report::new(
            Some("c.yaml".into()),
            vec![
                Problem::note("n"),
                Problem::warning(at(1), "b", "odd", "change it"),
                Problem::error(at(9), "z", "bad", ""),
                Problem::error(at(4), "a.x", "worse", "mend it"),
                Problem::error(None, "m", "missing", ""),
            ],
        );
        assert_eq!(
            report.to_string(),
            "c.yaml: error: m: missing\n\
             c.yaml:4:2: error: a.x: worse\n  help: mend it\n\
             c.yaml:9:2: error: z: bad\n\
             c.yaml:1:2: warning: b: odd\n  help: change it\n\
             c.yaml: note: n"
        );
    }
}
