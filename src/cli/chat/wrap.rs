//! Wraps styled text into lines that fit the terminal.

use super::paint::{Paint, TextLook};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// One visible character and its look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StyledChar {
    text: String,
    look: TextLook,
}

/// Splits a text into styled characters.
pub(super) fn cells(text: &str, look: TextLook) -> impl Iterator<Item = StyledChar> {
    text.graphemes(true).map(move |text| StyledChar { text: text.replace('\t', "    "), look })
}

/// Returns the width of characters, in columns.
pub(super) fn width(cells: &[StyledChar]) -> usize {
    cells.iter().map(|cell| cell.text.width()).sum()
}

/// Wraps a line at spaces so that each part fits. A word that is too long is split. Parts after the first begin with
/// `indent` spaces.
pub(super) fn wrap(line: &[StyledChar], room: usize, indent: usize) -> Vec<Vec<StyledChar>> {
    let (mut parts, mut rest, mut hung) = (Vec::new(), line, 0);
    while !rest.is_empty() && width(rest) + hung > room {
        let (part, tail) = rest.split_at(break_at(rest, room.saturating_sub(hung).max(1)));
        parts.push(hang(part, hung));
        rest = tail;
        hung = indent;
    }
    if !rest.is_empty() || parts.is_empty() {
        parts.push(hang(rest, hung));
    }
    parts
}

/// Returns the number of characters before a line break.
fn break_at(line: &[StyledChar], room: usize) -> usize {
    let mut width = 0;
    let fits = line.iter().take_while(|cell| {
        width += cell.text.width();
        width <= room
    });
    let fits = fits.count().max(1);
    let blank = |cell: &StyledChar| cell.text == " ";
    if line.get(fits).is_some_and(blank) {
        return fits + 1;
    }
    let mut inside = line.iter().take(fits);
    match inside.rposition(blank) {
        Some(at) if !line.iter().take(at).all(blank) => at + 1,
        _ => fits,
    }
}

/// Indents a part and removes its trailing spaces.
fn hang(part: &[StyledChar], indent: usize) -> Vec<StyledChar> {
    let end = part.iter().rposition(|cell| cell.text != " ").map_or(0, |at| at + 1);
    let space = StyledChar { text: " ".to_owned(), look: TextLook::default() };
    let mut hung = vec![space; if end == 0 { 0 } else { indent }];
    hung.extend(part.iter().take(end).cloned());
    hung
}

/// Cuts a line to a width.
pub(super) fn clip(line: &str, room: usize) -> String {
    let mut width = 0;
    let fits = line.graphemes(true).take_while(|cell| {
        width += cell.width();
        width <= room
    });
    fits.collect()
}

/// Renders characters as one line.
pub(super) fn write(cells: &[StyledChar], paint: Paint) -> String {
    let runs = cells.chunk_by(|a, b| a.look == b.look);
    let run = |run: &[StyledChar]| {
        let text: String = run.iter().map(|cell| cell.text.as_str()).collect();
        run.first().map_or_else(String::new, |first| paint.text(first.look, &text))
    };
    runs.map(run).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_spaces_and_hang() {
        let check = |text: &str, room: usize, indent: usize, expect: &[&str]| {
            let line: Vec<StyledChar> = cells(text, TextLook::default()).collect();
            let parts = wrap(&line, room, indent);
            let parts: Vec<String> = parts.iter().map(|part| write(part, Paint::new(Some("1")))).collect();
            assert_eq!(parts, expect, "{text:?} in {room}");
        };
        check("", 5, 0, &[""]);
        check("one two", 7, 0, &["one two"]);
        check("one two", 6, 0, &["one", "two"]);
        check("one two", 3, 0, &["one", "two"]);
        check("• one two", 6, 2, &["• one", "  two"]);
        check("abcdefgh", 3, 0, &["abc", "def", "gh"]);
        check("漢字漢字", 5, 0, &["漢字", "漢字"]);
        check("👩‍👩‍👧 x y", 3, 0, &["👩‍👩‍👧", "x y"]);
        check("a b", 0, 4, &["a", "    b"]);
    }
}
