//! Changes of files on a terminal: a coloured diff below the answer.

use super::paint::{Paint, TextLook, tame};

/// Maximum number of lines that are shown.
const MAX_LINES: usize = 80;

/// Lays out unified diffs, each behind the line that names its file.
pub(super) fn lines(diff: &str, paint: Paint) -> Vec<String> {
    let all = diff.lines().count();
    let mut out: Vec<String> = diff.lines().take(MAX_LINES).map(|line| painted(line, paint)).collect();
    if all > MAX_LINES {
        out.push(paint.text(TextLook::DIM, &format!("… {} more lines", all - MAX_LINES)));
    }
    out
}

fn painted(line: &str, paint: Paint) -> String {
    let look = match line.bytes().next() {
        Some(b'+') => TextLook::ADDED,
        Some(b'-') => TextLook::REMOVED,
        Some(b'@' | b'\\') => TextLook::DIM,
        Some(b' ') | None => TextLook::default(),
        Some(_) => TextLook::BOLD,
    };
    paint.text(look, &tame(line).replace('\t', "    "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_and_removed_lines_have_their_colours() {
        let shown = lines("M a.md +1 -1\n@@ -1,2 +1,2 @@\n same\n-old\x1b[2J\n+new\n", Paint::new(None));
        let expect = [
            "\x1b[1mM a.md +1 -1\x1b[0m",
            "\x1b[2m@@ -1,2 +1,2 @@\x1b[0m",
            " same",
            "\x1b[31m-old[2J\x1b[0m",
            "\x1b[32m+new\x1b[0m",
        ];
        assert_eq!(shown, expect);
        assert!(lines("", Paint::new(None)).is_empty());
    }

    #[test]
    fn a_long_diff_is_cut_with_a_count() {
        let shown = lines(&"+x\n".repeat(100), Paint::new(Some("1")));
        assert_eq!((shown.len(), shown.last().map(String::as_str)), (81, Some("… 20 more lines")));
    }
}
