//! Excel's workbooks, a sheet at a time, each under its mark.

use crate::{
    DocumentKind, DocumentLimits, Error,
    draft::DocumentDraft,
    grid::{Grid, GridFull},
};
use calamine::{Cell, Data, DataRef, ExcelDateTime, Reader, Sheet, SheetVisible, Xls, Xlsb, Xlsx};
use std::io::Cursor;

/// Every sheet has so much room at least, in bytes, however many there are.
const LEAST: usize = 16 * 1024;

pub(crate) fn read(
    bytes: &[u8],
    kind: DocumentKind,
    limits: &DocumentLimits,
) -> Result<DocumentDraft, Error> {
    let source = Cursor::new(bytes);
    match kind {
        DocumentKind::Xlsb => {
            let mut book = Xlsb::new(source).map_err(failed)?;
            sheets(book.sheets_metadata().to_vec(), limits, |name, grid| {
                let mut cells = book.worksheet_cells_reader(name).map_err(failed)?;
                fill(grid, || cells.next_cell().map_err(failed))
            })
        }
        DocumentKind::Xls => {
            let mut book = Xls::new(source).map_err(failed)?;
            sheets(book.sheets_metadata().to_vec(), limits, |name, grid| {
                let range = book.worksheet_range(name).map_err(failed)?;
                let (top, left) = range.start().unwrap_or_default();
                for (row, column, value) in range.used_cells() {
                    if grid.put(row + top as usize, column + left as usize, &words(value)) == Err(GridFull) {
                        break;
                    }
                }
                Ok(())
            })
        }
        _ => {
            let mut book = Xlsx::new(source).map_err(failed)?;
            sheets(book.sheets_metadata().to_vec(), limits, |name, grid| {
                let mut cells = book.worksheet_cells_reader(name).map_err(failed)?;
                fill(grid, || cells.next_cell().map_err(failed))
            })
        }
    }
}

/// Writes each sheet under its mark. A sheet that cannot be read costs only itself.
fn sheets(
    sheets: Vec<Sheet>,
    limits: &DocumentLimits,
    mut read: impl FnMut(&str, &mut Grid) -> Result<(), Error>,
) -> Result<DocumentDraft, Error> {
    let mut draft = DocumentDraft::new(limits.output);
    let count = sheets.len();
    draft.set_parts(count);
    for (index, sheet) in sheets.into_iter().enumerate() {
        let mut grid = Grid::new(share(&draft, count - index), limits);
        let read = read(&sheet.name, &mut grid);
        let hidden = sheet.visible != SheetVisible::Visible;
        show(&mut draft, index, &sheet.name, hidden, grid);
        match read {
            Err(Error::Protected) => return Err(Error::Protected),
            Err(error) => draft.warn(format!("the sheet {} could not be read whole: {error}", sheet.name)),
            Ok(()) => {}
        }
    }
    Ok(draft)
}

/// How much room a sheet gets, so that those after it have some, too.
pub(crate) fn share(draft: &DocumentDraft, left: usize) -> usize {
    (draft.room() / left.max(1)).max(LEAST).min(draft.room())
}

/// Writes a sheet under its mark.
pub(crate) fn show(draft: &mut DocumentDraft, index: usize, name: &str, hidden: bool, grid: Grid) {
    let plain = name.replace(['\n', '\r'], " ").replace("--", "- -");
    let extent = grid.extent().unwrap_or_else(|| "empty".to_owned());
    let word = if hidden { ", hidden" } else { "" };
    draft.push(&format!("<!-- sheet {}: {plain}, {extent}{word} -->\n\n## {plain}\n\n", index + 1));
    grid.write(draft, &format!("the sheet {plain}"));
    draft.push("\n");
}

fn fill<'a>(
    grid: &mut Grid,
    mut next: impl FnMut() -> Result<Option<Cell<DataRef<'a>>>, Error>,
) -> Result<(), Error> {
    while let Some(cell) = next()? {
        let (row, column) = cell.get_position();
        let value = Data::from(cell.get_value().clone());
        if grid.put(row as usize, column as usize, &words(&value)) == Err(GridFull) {
            break;
        }
    }
    Ok(())
}

fn words(value: &Data) -> String {
    match value {
        Data::Empty => String::new(),
        Data::String(text) | Data::DateTimeIso(text) | Data::DurationIso(text) => text.clone(),
        Data::Int(number) => number.to_string(),
        Data::Float(number) => decimal(*number),
        Data::Bool(yes) => if *yes { "TRUE" } else { "FALSE" }.to_owned(),
        Data::DateTime(when) => date(when),
        Data::Error(error) => error.to_string(),
    }
}

/// A number with the fifteen digits that spreadsheets show.
fn decimal(number: f64) -> String {
    let rounded = format!("{number:.14e}").parse::<f64>().unwrap_or(number);
    if rounded.abs() >= 1e15 { format!("{rounded:e}") } else { rounded.to_string() }
}

/// A date, a time or both, as far as there is such; a duration in hours.
fn date(when: &ExcelDateTime) -> String {
    let (year, month, day, hour, minute, second, milli) = when.to_ymd_hms_milli();
    if when.is_duration() {
        let seconds = when.as_f64() * 86_400.0;
        let (sign, seconds) = (if seconds < 0.0 { "-" } else { "" }, seconds.abs().round());
        let (hours, rest) = ((seconds / 3600.0).floor(), seconds % 3600.0);
        return format!("{sign}{hours}:{:02}:{:02}", (rest / 60.0).floor(), rest % 60.0);
    }
    let time = match (hour, minute, second, milli) {
        (0, 0, 0, 0) => String::new(),
        (_, _, 0, 0) => format!("{hour:02}:{minute:02}"),
        _ => format!("{hour:02}:{minute:02}:{second:02}"),
    };
    if when.as_f64() < 1.0 && !time.is_empty() {
        return time;
    }
    format!("{year:04}-{month:02}-{day:02} {time}").trim_end().to_owned()
}

fn failed(error: impl Into<calamine::Error>) -> Error {
    let error = error.into();
    let password = matches!(
        &error,
        calamine::Error::Xlsx(calamine::XlsxError::Password)
            | calamine::Error::Xlsb(calamine::XlsbError::Password)
            | calamine::Error::Xls(calamine::XlsError::Password)
    );
    if password { Error::Protected } else { Error::Damaged(error.to_string()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use calamine::ExcelDateTimeType;

    #[test]
    fn values_read_as_spreadsheets_show_them() {
        let when =
            |serial: f64| Data::DateTime(ExcelDateTime::new(serial, ExcelDateTimeType::DateTime, false));
        let lasting = Data::DateTime(ExcelDateTime::new(1.5, ExcelDateTimeType::TimeDelta, false));
        for (value, expect) in [
            (Data::Float(42.0), "42"),
            (Data::Float(0.1 + 0.2), "0.3"),
            (Data::Float(1e21), "1e21"),
            (Data::Bool(true), "TRUE"),
            (Data::Error(calamine::CellErrorType::Div0), "#DIV/0!"),
            (when(45_292.0), "2024-01-01"),
            (when(45_292.75), "2024-01-01 18:00"),
            (when(0.5), "12:00"),
            (lasting, "36:00:00"),
        ] {
            assert_eq!(words(&value), expect);
        }
    }
}
