//! Draws a table in fixed-width characters.

use pulldown_cmark::Alignment;
use unicode_width::UnicodeWidthStr;

/// A table while its cells come in, header row first.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) columns: Vec<Alignment>,
    pub(super) rows: Vec<Vec<String>>,
    /// The cell that is being written.
    pub(super) cell: String,
}

/// A drawn table: its text, and how many bytes of it are header.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Drawn {
    pub(super) text: String,
    pub(super) header: usize,
}

impl Table {
    pub(super) fn new(columns: Vec<Alignment>) -> Self {
        Self { columns, ..Self::default() }
    }

    pub(super) fn start_row(&mut self) {
        self.rows.push(Vec::new());
    }

    pub(super) fn end_cell(&mut self) {
        let words: Vec<&str> = self.cell.split_whitespace().collect();
        let cell = words.join(" ");
        self.cell.clear();
        if let Some(row) = self.rows.last_mut() {
            row.push(cell);
        }
    }

    pub(super) fn draw(&self) -> Drawn {
        let widths: Vec<usize> = (0..self.columns.len()).map(|column| self.width(column)).collect();
        let mut rows = self.rows.iter().map(|row| self.line(row, &widths));
        let rule = widths.iter().map(|width| "─".repeat(*width)).collect::<Vec<_>>().join("─┼─");
        let mut text = format!("{}\n{rule}", rows.next().unwrap_or_default());
        let header = text.len() + 1;
        for row in rows {
            text.push('\n');
            text.push_str(&row);
        }
        Drawn { header: header.min(text.len()), text }
    }

    fn width(&self, column: usize) -> usize {
        self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width()).max().unwrap_or(0)
    }

    fn line(&self, row: &[String], widths: &[usize]) -> String {
        let cell = |(column, width): (usize, &usize)| {
            let text = row.get(column).map_or("", String::as_str);
            pad(text, *width, self.columns.get(column).copied().unwrap_or(Alignment::None))
        };
        let cells: Vec<String> = widths.iter().enumerate().map(cell).collect();
        cells.join(" │ ").trim_end().to_owned()
    }
}

fn pad(text: &str, width: usize, alignment: Alignment) -> String {
    let space = width.saturating_sub(text.width());
    let left = match alignment {
        Alignment::None | Alignment::Left => 0,
        Alignment::Center => space / 2,
        Alignment::Right => space,
    };
    format!("{}{text}{}", " ".repeat(left), " ".repeat(space - left))
}
