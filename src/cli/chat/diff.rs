//! Renders the changed files of a run on a terminal, as a coloured diff below the answer.

use super::paint::{Paint, TextLook, tame};

/// Maximum number of lines shown. File names after these lines are shown as well.
const MAX_LINES: usize = 80;

/// Formats unified diffs, each after the line with its file name.
pub(super) fn lines(diff: &str, paint: Paint) -> Vec<String> {
    let (shown, rest): (Vec<_>, Vec<_>) =
        diff.lines().enumerate().partition(|(at, line)| *at < MAX_LINES || names_file(line));
    let (before, after): (Vec<_>, Vec<_>) = shown.into_iter().partition(|(at, _)| *at < MAX_LINES);
    let cut = (!rest.is_empty()).then(|| paint.text(TextLook::DIM, &format!("… {}", more_lines(rest.len()))));
    let paint_line = |(_, line): (usize, &str)| painted(line, paint);
    before.into_iter().map(paint_line).chain(cut).chain(after.into_iter().map(paint_line)).collect()
}

fn more_lines(count: usize) -> String {
    match count {
        1 => "1 more line".to_owned(),
        _ => format!("{count} more lines"),
    }
}

/// Returns whether a line names a file. A line of a hunk never begins with a letter.
fn names_file(line: &str) -> bool {
    ["A ", "M ", "D ", "L "].iter().any(|status| line.starts_with(status))
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

    #[test]
    fn files_behind_a_long_diff_are_named() {
        let long = format!("M a +90 -0\n{}M b +1 -1\n@@ -1 +1 @@\n-old\n+new\nA c.png\n", "+x\n".repeat(90));
        let shown = lines(&long, Paint::new(Some("1")));
        assert_eq!(shown[80..], ["… 14 more lines", "M b +1 -1", "A c.png"]);
    }
}
