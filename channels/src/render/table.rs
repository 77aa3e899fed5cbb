//! Lays out a table: in fixed-width characters if it fits, otherwise row by row.

use super::{Rich, Style};
use comrak::nodes::TableAlignment;
use unicode_width::UnicodeWidthStr;

/// Separator of columns.
const BAR: &str = " │ ";
/// Prefixes of the first and further lines of a row written line by line.
const MARKERS: [&str; 2] = ["• ", "  "];

/// A table being read, header row first.
#[derive(Debug, Default)]
pub(super) struct Table {
    columns: Vec<TableAlignment>,
    rows: Vec<Vec<Rich>>,
}

/// A table in fixed-width characters, and the length of its header in bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DrawnTable {
    pub(super) text: String,
    pub(super) header: usize,
}

impl Table {
    pub(super) fn new(columns: Vec<TableAlignment>) -> Self {
        Self { columns, rows: Vec::new() }
    }

    pub(super) fn start_row(&mut self) {
        self.rows.push(Vec::new());
    }

    pub(super) fn add_cell(&mut self, cell: Rich) {
        if let Some(row) = self.rows.last_mut() {
            row.push(cell);
        }
    }

    /// Draws the table, if it is at most `max` characters wide. Tables with right-to-left text are not drawn, because
    /// clients would reorder the columns.
    pub(super) fn grid(&self, max: usize) -> Option<DrawnTable> {
        let rows: Vec<Vec<String>> = self.rows.iter().map(|row| row.iter().map(plain).collect()).collect();
        let width =
            |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width()).max();
        let widths: Vec<usize> = (0..self.columns.len()).map(|column| width(column).unwrap_or(0)).collect();
        let bars = BAR.width() * widths.len().saturating_sub(1);
        if widths.iter().sum::<usize>() + bars > max
            || rows.iter().flatten().any(|cell| cell.contains(is_rtl))
        {
            return None;
        }
        let mut lines = rows.iter().map(|row| self.line(row, &widths));
        let rule = widths.iter().map(|width| "─".repeat(*width)).collect::<Vec<_>>().join("─┼─");
        let mut text = format!("{}\n{rule}", lines.next().unwrap_or_default());
        let header = text.len() + 1;
        for line in lines {
            text.push('\n');
            text.push_str(&line);
        }
        Some(DrawnTable { header: header.min(text.len()), text })
    }

    fn line(&self, row: &[String], widths: &[usize]) -> String {
        let cell = |(column, width): (usize, &usize)| {
            let text = row.get(column).map_or("", String::as_str);
            pad(text, *width, self.columns.get(column).copied().unwrap_or(TableAlignment::None))
        };
        let cells: Vec<String> = widths.iter().enumerate().map(cell).collect();
        cells.join(BAR).trim_end().to_owned()
    }

    /// Writes each row as a list of its cells, each prefixed with the name of its column. Leaves out empty cells.
    pub(super) fn stack(&self) -> Rich {
        let (names, rows) = self.rows.split_first().map_or((&[][..], &[][..]), |(names, rows)| (names, rows));
        let mut out = Rich::default();
        if rows.is_empty() {
            for name in names.iter().filter(|name| !name.text.is_empty()) {
                out.add_line(MARKERS[0], &Rich::default(), name);
            }
        }
        for row in rows {
            let mut markers = MARKERS.iter();
            for (column, cell) in row.iter().enumerate().filter(|(_, cell)| !cell.text.is_empty()) {
                let name = names.get(column).cloned().unwrap_or_default();
                out.add_line(markers.next().unwrap_or(&MARKERS[1]), &name, cell);
            }
        }
        out
    }
}

impl Rich {
    fn add_line(&mut self, marker: &str, name: &Rich, cell: &Rich) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(marker);
        if !name.text.is_empty() {
            let start = self.text.len();
            self.text.push_str(&name.text);
            self.text.push_str(if name.text.ends_with([':', '：', '?', '？']) { "" } else { ":" });
            self.mark(start, Style::Bold);
            self.text.push(' ');
        }
        self.append(cell);
    }
}

/// Returns a cell as plain text. The URL of a link follows its text.
fn plain(cell: &Rich) -> String {
    let mut text = String::new();
    let mut at = 0;
    for span in &cell.spans {
        let Style::Link(url) = &span.style else { continue };
        text.push_str(cell.part(at..span.range.end));
        at = span.range.end;
        if cell.part(span.range.clone()) != url {
            text.push_str(&format!(" ({url})"));
        }
    }
    text.push_str(cell.part(at..cell.text.len()));
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns whether a character belongs to a right-to-left script.
fn is_rtl(c: char) -> bool {
    matches!(c, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefe}' | '\u{10800}'..='\u{10fff}' | '\u{1e800}'..='\u{1efff}')
}

fn pad(text: &str, width: usize, alignment: TableAlignment) -> String {
    let space = width.saturating_sub(text.width());
    let left = match alignment {
        TableAlignment::None | TableAlignment::Left => 0,
        TableAlignment::Center => space / 2,
        TableAlignment::Right => space,
    };
    format!("{}{text}{}", " ".repeat(left), " ".repeat(space - left))
}
