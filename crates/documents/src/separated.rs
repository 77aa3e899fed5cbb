//! Values separated by commas, semicolons or tabs.

use crate::{
    DocumentLimits, Error,
    draft::DocumentDraft,
    grid::{Grid, GridFull},
    text,
};

/// Maximum number of lines read to detect the separator.
const SAMPLE_LINES: usize = 20;

pub(crate) fn read(bytes: &[u8], delimiter: u8, limits: &DocumentLimits) -> Result<DocumentDraft, Error> {
    let text = text::decode(bytes);
    let delimiter = if delimiter == b',' { detect_delimiter(&text) } else { delimiter };
    let mut reader = csv::ReaderBuilder::new();
    let reader = reader.has_headers(false).flexible(true).delimiter(delimiter);
    let mut draft = DocumentDraft::new(limits.output);
    let mut grid = Grid::new(draft.room(), limits);
    'rows: for (row, record) in reader.from_reader(text.as_bytes()).records().enumerate() {
        let record = record.map_err(|error| Error::Damaged(error.to_string()))?;
        for (column, value) in record.iter().enumerate() {
            if grid.put(row, column, value) == Err(GridFull) {
                break 'rows;
            }
        }
    }
    grid.write(&mut draft, "the table");
    Ok(draft)
}

/// Detects the separator of values. Countries with decimal commas use semicolons.
fn detect_delimiter(text: &str) -> u8 {
    let count = |delimiter: char| {
        text.lines().take(SAMPLE_LINES).map(|line| line.matches(delimiter).count()).sum::<usize>()
    };
    let (comma, semicolon, tab) = (count(','), count(';'), count('\t'));
    if semicolon > comma && semicolon >= tab {
        b';'
    } else if tab > comma {
        b'\t'
    } else {
        b','
    }
}
