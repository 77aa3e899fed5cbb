//! The cells of a sheet, up to a size limit, and their table.

use crate::{DocumentLimits, draft::DocumentDraft};
use std::collections::{BTreeMap, BTreeSet};

/// Size of the Markdown around each cell in a table, in bytes.
const AROUND: usize = 3;

/// Error for a grid without room for another cell.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct GridFull;

/// The cells of a sheet. Empty ones take no room.
pub(crate) struct Grid {
    rows: BTreeMap<usize, Vec<(usize, String)>>,
    columns: BTreeSet<usize>,
    room: usize,
    most_rows: usize,
    most_columns: usize,
    /// Whether rows and columns were omitted.
    cut: (bool, bool),
}

impl Grid {
    /// Creates a grid whose table has at most `room` bytes.
    pub(crate) fn new(room: usize, limits: &DocumentLimits) -> Self {
        Self {
            rows: BTreeMap::new(),
            columns: BTreeSet::new(),
            room,
            most_rows: limits.rows,
            most_columns: limits.columns,
            cut: (false, false),
        }
    }

    /// Adds a value. `row` and `column` count from 0. After an error, the caller should stop.
    pub(crate) fn put(&mut self, row: usize, column: usize, value: &str) -> Result<(), GridFull> {
        let value = value.trim();
        if value.is_empty() {
            return Ok(());
        }
        if column >= self.most_columns {
            self.cut.1 = true;
            return Ok(());
        }
        let new = !self.rows.contains_key(&row);
        let cost = value.len() + AROUND;
        if cost > self.room || (new && self.rows.len() >= self.most_rows) {
            self.cut.0 = true;
            return Err(GridFull);
        }
        self.room -= cost;
        self.columns.insert(column);
        self.rows.entry(row).or_default().push((column, escaped(value)));
        Ok(())
    }

    /// Returns the range that contains values, in spreadsheet notation.
    pub(crate) fn extent(&self) -> Option<String> {
        let rows = self.rows.keys().next().zip(self.rows.keys().next_back())?;
        let columns = self.columns.first().zip(self.columns.last())?;
        Some(format!("{}{}:{}{}", letters(*columns.0), rows.0 + 1, letters(*columns.1), rows.1 + 1))
    }

    /// Writes the table without empty rows and columns. The first row is the head.
    pub(crate) fn write(mut self, draft: &mut DocumentDraft, what: &str) {
        let columns: Vec<usize> = std::mem::take(&mut self.columns).into_iter().collect();
        for (index, cells) in std::mem::take(&mut self.rows).into_values().enumerate() {
            draft.push(&line(&columns, cells));
            if index == 0 {
                draft.push(&format!("|{}\n", " --- |".repeat(columns.len())));
            }
            if draft.room() == 0 {
                break;
            }
        }
        if self.cut.0 {
            draft.push(&format!("\n[… {what} continues below …]\n"));
            draft.warn(format!("only the first rows of {what} are included: it is longer"));
        }
        if self.cut.1 {
            let last_column = letters(self.most_columns.saturating_sub(1));
            draft.warn(format!("columns of {what} beyond {last_column} are left out"));
        }
    }
}

fn line(columns: &[usize], mut cells: Vec<(usize, String)>) -> String {
    cells.sort_by_key(|(column, _)| *column);
    let mut cells = cells.into_iter().peekable();
    let mut line = String::from("|");
    for column in columns {
        line.push(' ');
        while let Some((_, value)) = cells.next_if(|(at, _)| at == column) {
            line.push_str(&value);
        }
        line.push_str(" |");
    }
    line.push('\n');
    line
}

/// Escapes characters that would end a cell or a row.
fn escaped(value: &str) -> String {
    let lines = value.replace("\r\n", "\n").replace(['\n', '\r'], "<br>");
    lines.replace('|', "\\|")
}

/// Returns a column's name as in spreadsheets: A to Z, then AA and so on.
pub(crate) fn letters(column: usize) -> String {
    let mut name = Vec::new();
    let mut left = column + 1;
    while left > 0 {
        let digit = u8::try_from((left - 1) % 26).unwrap_or_default();
        name.insert(0, char::from(b'A' + digit));
        left = (left - 1) / 26;
    }
    name.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(
        cells: &[(usize, usize, &str)],
        room: usize,
        limits: &DocumentLimits,
    ) -> (Option<String>, String) {
        let (mut grid, mut draft) = (Grid::new(room, limits), DocumentDraft::new(1000));
        for (row, column, value) in cells {
            if grid.put(*row, *column, value).is_err() {
                break;
            }
        }
        let extent = grid.extent();
        draft.push("\n");
        grid.write(&mut draft, "it");
        (extent, draft.finish(crate::DocumentKind::Csv).map(|document| document.markdown).unwrap_or_default())
    }

    #[test]
    fn empty_rows_and_columns_are_left_out_of_the_table() {
        let cells = [(1, 1, "a"), (1, 27, "b|c"), (1_048_575, 1, "x\ny"), (1_048_575, 2, " ")];
        let (extent, text) = table(&cells, 1000, &DocumentLimits::default());
        assert_eq!(extent.as_deref(), Some("B2:AB1048576"));
        assert_eq!(text, "| a | b\\|c |\n| --- | --- |\n| x<br>y |  |\n");
    }

    #[test]
    fn omissions_are_reported() {
        let cells = [(0, 0, "a"), (0, 9, "far"), (1, 0, "b"), (2, 0, "c")];
        let few = DocumentLimits { rows: 2, columns: 5, ..DocumentLimits::default() };
        assert_eq!(table(&cells, 1000, &few).1, "| a |\n| --- |\n| b |\n\n[… it continues below …]\n");
        assert_eq!(table(&cells, 5, &few).1, "| a |\n| --- |\n\n[… it continues below …]\n");
    }

    #[test]
    fn columns_are_named_by_letters() {
        let check = |column, expect: &str| assert_eq!(letters(column), expect);
        check(0, "A");
        check(25, "Z");
        check(26, "AA");
        check(16_383, "XFD");
    }
}
