//! Finds dangerous commands in a skill, however they are spelled, with the same shell parser as approvals.
//!
//! Deliberately absent: heuristics for commands in other text. The scan covers shell scripts, code blocks of a page
//! that are marked as shell, and inline code of a page.

use super::finding::{
    Finding,
    FindingSeverity::{self, Block, Warn},
    display_text,
};
use pudu_shell::{
    MAX_SCRIPT_BYTES,
    danger::{self, Danger},
};

/// Extensions of shell scripts, which are also the names of shells.
const SHELLS: [&str; 7] = ["sh", "bash", "zsh", "ksh", "dash", "ash", "fish"];
/// Names of code blocks that contain commands.
const BLOCKS: [&str; 3] = ["shell", "terminal", "shellscript"];
/// Names of code blocks that contain shell sessions: commands after a prompt, and their output.
const SESSIONS: [&str; 3] = ["console", "shell-session", "shellsession"];
/// Maximum number of reported findings per file.
const MAX_FINDINGS: usize = 100;

/// Lines that are parsed together.
struct ScannedScript {
    /// Number of the first line, starting at 1.
    line: usize,
    text: String,
    /// Whether unparsable text is reported.
    whole: bool,
}

/// Content of a code block.
#[derive(Clone, Copy, PartialEq)]
enum BlockKind {
    Commands,
    Session,
    Other,
}

/// Finds the dangerous commands in a file that are not already in `known`.
pub(super) fn findings(file: &str, text: &str, known: &[Finding]) -> Vec<Finding> {
    let scripts = match file.to_lowercase().ends_with(".md") {
        true => of_page(text),
        false if is_shell(file, text) => vec![ScannedScript { line: 1, text: text.to_owned(), whole: true }],
        false => Vec::new(),
    };
    let found = scripts.iter().flat_map(pieces).flat_map(|piece| scan_script(file, &piece, known));
    found.take(MAX_FINDINGS).collect()
}

/// Returns whether a file is a shell script, judging by its name or its first line.
fn is_shell(file: &str, text: &str) -> bool {
    let ending = file.rsplit_once('.').map_or("", |(_, ending)| ending).to_lowercase();
    let first = text.lines().next().and_then(|line| line.strip_prefix("#!")).unwrap_or_default();
    let mut words = first.split(|c: char| c == '/' || c.is_whitespace());
    SHELLS.contains(&ending.as_str()) || words.any(|word| SHELLS.contains(&word))
}

/// Returns the commands of a page.
fn of_page(text: &str) -> Vec<ScannedScript> {
    let mut scripts = Vec::new();
    let mut open: Option<(String, BlockKind, ScannedScript)> = None;
    for (line, row) in (1..).zip(text.lines()) {
        let bare = row.trim_start();
        match &mut open {
            Some((fence, ..)) if closes(fence, bare) => {
                scripts.extend(open.take().map(|(.., script)| script))
            }
            Some((_, kind, script)) => {
                let prompt = bare.strip_prefix("$ ").or_else(|| bare.strip_prefix("# "));
                script.text.push_str(match kind {
                    BlockKind::Commands => row,
                    BlockKind::Session => prompt.unwrap_or_default(),
                    BlockKind::Other => "",
                });
                script.text.push('\n');
            }
            None => match fence(bare) {
                Some((fence, kind)) => {
                    let script = ScannedScript {
                        line: line + 1,
                        text: String::new(),
                        whole: kind == BlockKind::Commands,
                    };
                    open = Some((fence, kind, script));
                }
                None => scripts.extend(spans(line, row)),
            },
        }
    }
    scripts.extend(open.map(|(.., script)| script));
    scripts
}

/// Returns the fence that begins a code block, and the block's kind.
fn fence(row: &str) -> Option<(String, BlockKind)> {
    let mark = row.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let fence: String = row.chars().take_while(|c| *c == mark).collect();
    let info = row.trim_start_matches(mark);
    let name = info.trim().trim_start_matches(['{', '.']).to_lowercase();
    let kind = match name.split(|c: char| c.is_whitespace() || "},".contains(c)).next().unwrap_or_default() {
        name if SHELLS.contains(&name) || BLOCKS.contains(&name) => BlockKind::Commands,
        name if SESSIONS.contains(&name) => BlockKind::Session,
        _ => BlockKind::Other,
    };
    (fence.len() >= 3 && !(mark == '`' && info.contains('`'))).then_some((fence, kind))
}

fn closes(fence: &str, row: &str) -> bool {
    row.starts_with(fence)
        && row.trim_end().trim_start_matches(fence.chars().next().unwrap_or('`')).is_empty()
}

/// Returns the inline code spans of a line. Single words are skipped, because they are names rather than commands.
fn spans(line: usize, row: &str) -> impl Iterator<Item = ScannedScript> {
    let code = row.split('`').skip(1).step_by(2).filter(|code| code.trim().contains(' '));
    code.map(move |code| ScannedScript { line, text: code.to_owned(), whole: false })
}

/// Splits a script at line breaks into pieces that are short enough to be parsed.
fn pieces(script: &ScannedScript) -> Vec<ScannedScript> {
    let piece = |line| ScannedScript { line, text: String::new(), whole: script.whole };
    let mut pieces = vec![piece(script.line)];
    for (line, row) in (script.line..).zip(script.text.split_inclusive('\n')) {
        if let Some(last) = pieces.last_mut() {
            if last.text.is_empty() || last.text.len() + row.len() <= MAX_SCRIPT_BYTES {
                last.text.push_str(row);
            } else {
                pieces.push(ScannedScript { text: row.to_owned(), ..piece(line) });
            }
        }
    }
    pieces
}

/// Scans a piece as a whole and line by line, so that findings have a line number, and a piece that cannot be parsed as
/// a whole is still scanned.
fn scan_script(file: &str, piece: &ScannedScript, known: &[Finding]) -> Vec<Finding> {
    let finding = |(line, words, danger): (usize, &str, Danger)| {
        let (rule, severity) = rule(danger);
        let what = format!("{}: {}", danger.describe(), display_text(words));
        Finding { severity, file: file.to_owned(), line, rule, what }
    };
    let rows = (piece.line..).zip(piece.text.lines());
    let found = rows.filter_map(|(line, row)| Some((line, row, danger::find(row)?)));
    let found = found.filter(|(.., danger)| !danger.is_unread()).map(finding);
    let same = |one: &Finding, other: &Finding| one.rule == other.rule && one.severity >= other.severity;
    let mut found: Vec<Finding> =
        found.filter(|new| !known.iter().any(|old| old.line == new.line && same(old, new))).collect();
    if let Some(danger) = danger::find(&piece.text).filter(|danger| piece.whole || !danger.is_unread()) {
        let new = finding((piece.line, &piece.text, danger));
        let lines = piece.line..piece.line + piece.text.lines().count();
        let mut earlier = known.iter().filter(|old| lines.contains(&old.line)).chain(&found);
        if !earlier.any(|old| same(old, &new)) {
            found.push(new);
        }
    }
    found
}

/// Returns the rule for a danger, and its severity in untrusted text.
fn rule(danger: Danger) -> (&'static str, FindingSeverity) {
    match danger {
        Danger::Fetches => ("download-and-run", Block),
        Danger::Hides => ("obfuscation", Block),
        Danger::Evaluates => ("obfuscation", Warn),
        Danger::Connects => ("exfiltration", Block),
        Danger::Secrets => ("secrets", Block),
        Danger::Later => ("persistence", Warn),
        Danger::Deletes | Danger::Multiplies => ("damage", Block),
        Danger::Overwrites
        | Danger::Writes
        | Danger::DeletesFound
        | Danger::Rights
        | Danger::Modes
        | Danger::Stops
        | Danger::Kills
        | Danger::Pushes => ("damage", Warn),
        Danger::Unread(_) => ("commands", Warn),
    }
}
