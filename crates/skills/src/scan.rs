//! A static scan of an untrusted skill.
//!
//! Blocks content that no honest skill has, and reports content that a user should review. It gives no guarantee: a
//! determined author can hide malicious content. Only the sandbox limits a skill's effects.

mod commands;
mod finding;
mod rules;

pub use finding::{Finding, FindingSeverity};

use crate::{magic, names};
use finding::display_text;
use std::{
    fmt, fs,
    io::{self, Read},
    path::Path,
};

/// Maximum number of bytes of a text that are scanned.
const MAX_SCANNED_BYTES: u64 = 2 * 1024 * 1024;
/// Maximum number of reported findings.
const MAX_FINDINGS: usize = 100;
/// Comments for formatters, which would otherwise match the pattern for instructions to a model.
const HONEST: [&str; 3] = ["<!-- prettier-ignore", "<!-- prettier-ignore-start", "<!-- prettier-ignore-end"];

/// Verdict on a skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanVerdict {
    /// Nothing was found.
    Allow,
    /// The skill may be installed. The findings are reported.
    Warn,
    /// The skill must not be installed.
    Block,
}

/// All findings, most severe first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScanReport {
    /// The findings.
    pub findings: Vec<Finding>,
}

impl ScanReport {
    /// Returns the verdict on the skill.
    #[must_use]
    pub fn verdict(&self) -> ScanVerdict {
        match self.findings.iter().map(|finding| finding.severity).max() {
            None => ScanVerdict::Allow,
            Some(FindingSeverity::Warn) => ScanVerdict::Warn,
            Some(FindingSeverity::Block) => ScanVerdict::Block,
        }
    }
}

impl fmt::Display for ScanReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, finding) in self.findings.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            let Finding { severity, file, line, rule, what } = finding;
            let word = match severity {
                FindingSeverity::Warn => "warn ",
                FindingSeverity::Block => "BLOCK",
            };
            write!(f, "  {word}  {}:{line}  {rule}: {what}", file.escape_debug())?;
        }
        Ok(())
    }
}

/// Scans a folder.
///
/// # Errors
/// When the folder cannot be read.
pub fn scan(folder: &Path) -> io::Result<ScanReport> {
    let mut findings = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().into_owned();
            file(&path, &name, &mut findings)?;
        }
    }
    let order = |finding: &Finding| (std::cmp::Reverse(finding.severity), finding.file.clone(), finding.line);
    findings.sort_by_key(order);
    findings.truncate(MAX_FINDINGS);
    Ok(ScanReport { findings })
}

fn file(path: &Path, name: &str, findings: &mut Vec<Finding>) -> io::Result<()> {
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(MAX_SCANNED_BYTES + 1).read_to_end(&mut bytes)?;
    let file_finding = |rule, what: &str| Finding {
        severity: FindingSeverity::Warn,
        file: name.to_owned(),
        line: 0,
        rule,
        what: what.to_owned(),
    };
    if bytes.len() as u64 > MAX_SCANNED_BYTES {
        findings.push(file_finding("large", "only its first 2 MiB were scanned"));
    }
    if let Some(kind) = magic::program(&bytes) {
        let what = format!("an executable ({kind})");
        findings.push(Finding { severity: FindingSeverity::Block, ..file_finding("program", &what) });
    }
    match String::from_utf8(bytes) {
        Ok(text) => findings.extend(text_findings(name, &text)),
        Err(error) if is_media(name) => drop(error),
        Err(error) => {
            findings.push(file_finding(
                "binary",
                "it is neither text nor a picture or font, so it cannot be reviewed",
            ));
            findings.extend(text_findings(name, &String::from_utf8_lossy(error.as_bytes())));
        }
    }
    Ok(())
}

/// Returns whether files of this type are normally binary.
fn is_media(name: &str) -> bool {
    const ENDINGS: [&str; 20] = [
        "png", "jpg", "jpeg", "gif", "webp", "ico", "ttf", "otf", "woff", "woff2", "pdf", "docx", "pptx",
        "xlsx", "odt", "ods", "odp", "mp3", "mp4", "wav",
    ];
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending).to_lowercase();
    ENDINGS.contains(&ending.as_str())
}

/// Scans a text.
pub(crate) fn text_findings(file: &str, text: &str) -> Vec<Finding> {
    let mut findings = unseen(file, text);
    // Joins lines continued by a backslash. Spaces keep all positions unchanged.
    let joined = text.replace("\\\r\n", "   ").replace("\\\n", "  ");
    let prose = file.to_lowercase().ends_with(".md");
    if prose {
        findings.extend(comments(file, text));
    }
    for rule in rules::all().iter().filter(|rule| prose || !rule.prose) {
        for found in rule.pattern.find_iter(&joined).take(MAX_FINDINGS) {
            let line = line(text, found.start());
            let what = format!("{}: {}", rule.what, display_text(found.as_str()));
            findings.push(Finding {
                severity: rule.severity,
                file: file.to_owned(),
                line,
                rule: rule.name,
                what,
            });
        }
        if findings.len() > MAX_FINDINGS {
            break;
        }
    }
    let commands = commands::findings(file, text, &findings);
    findings.extend(commands);
    findings
}

/// Finds comments with instructions to the model, which are invisible in the rendered page. An unclosed comment hides
/// everything after it.
fn comments(file: &str, text: &str) -> Vec<Finding> {
    let (mut findings, mut at) = (Vec::new(), 0);
    while let Some(start) = text.get(at..).and_then(|rest| rest.find("<!--")).map(|found| at + found) {
        let rest = text.get(start..).unwrap_or_default();
        let comment = rest.find("-->").and_then(|end| rest.get(..end)).unwrap_or(rest);
        at = start + comment.len();
        let honest = HONEST.contains(&comment.trim_end());
        if !honest && rules::for_models().is_some_and(|words| words.is_match(comment)) {
            let what = format!(
                "a comment with instructions that is invisible on the page: {}",
                display_text(comment)
            );
            let line = line(text, start);
            findings.push(Finding {
                severity: FindingSeverity::Block,
                file: file.to_owned(),
                line,
                rule: "hidden-comment",
                what,
            });
        }
        if findings.len() >= MAX_FINDINGS {
            break;
        }
    }
    findings
}

/// Finds characters that are invisible to users but not to models.
fn unseen(file: &str, text: &str) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for (at, row) in text.lines().enumerate() {
        let start = usize::from(at == 0 && row.starts_with('\u{feff}'));
        let chars: Vec<char> = row.chars().skip(start).collect();
        let odd = chars.iter().enumerate().find(|(place, c)| {
            let between =
                || place.checked_sub(1).and_then(|before| chars.get(before)).is_some_and(|c| !c.is_ascii());
            // Joiners are used in emoji and in some scripts.
            names::hidden(**c) && !(matches!(**c, '\u{200c}' | '\u{200d}') && between())
        });
        let Some((_, c)) = odd else { continue };
        // Direction marks are legitimate in right-to-left text, and a soft hyphen in any text.
        let harmless =
            matches!(c, '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{00ad}' | '\u{200c}' | '\u{200d}');
        let severity = if harmless { FindingSeverity::Warn } else { FindingSeverity::Block };
        let what = format!("an invisible character: U+{:04X}", u32::from(*c));
        findings.push(Finding {
            severity,
            file: file.to_owned(),
            line: at + 1,
            rule: "hidden-characters",
            what,
        });
        if findings.len() >= MAX_FINDINGS {
            break;
        }
    }
    findings
}

fn line(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests;
