//! Excel workbooks, converted sheet by sheet, each with a marker.

mod extras;
mod formats;

use crate::{
    DocumentKind, DocumentLimits, Error,
    draft::DocumentDraft,
    grid::{Grid, GridFull},
    package::Package,
};
use calamine::{Cell, Data, DataRef, ExcelDateTime, Reader, Sheet, SheetVisible, Xls, Xlsb, Xlsx};
use extras::SheetExtras;
use formats::Formats;
use std::{collections::BTreeMap, io::Cursor};

/// Minimum room for each sheet, in bytes, regardless of the number of sheets.
const LEAST: usize = 16 * 1024;
/// Largest whole number that a cell holds exactly.
const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;

pub(crate) fn read(
    bytes: &[u8],
    kind: DocumentKind,
    limits: &DocumentLimits,
) -> Result<DocumentDraft, Error> {
    let source = Cursor::new(bytes);
    match kind {
        DocumentKind::Xlsb => {
            let mut book = Xlsb::new(source).map_err(failed)?;
            let draft = sheets(book.sheets_metadata().to_vec(), limits, &BTreeMap::new(), |name, grid| {
                let mut cells = book.worksheet_cells_reader(name).map_err(failed)?;
                fill(grid, || cells.next_cell().map_err(failed)).map(|()| 0)
            });
            draft.map(unformatted)
        }
        DocumentKind::Xls => {
            let mut book = Xls::new(source).map_err(failed)?;
            let draft = sheets(book.sheets_metadata().to_vec(), limits, &BTreeMap::new(), |name, grid| {
                let range = book.worksheet_range(name).map_err(failed)?;
                let (top, left) = range.start().unwrap_or_default();
                for (row, column, value) in range.used_cells() {
                    if grid.put(row + top as usize, column + left as usize, &cell_text(value))
                        == Err(GridFull)
                    {
                        break;
                    }
                }
                Ok(0)
            });
            draft.map(unformatted)
        }
        _ => {
            let mut book = Xlsx::new(source).map_err(failed)?;
            let package = Package::open(bytes, limits)?;
            let extras = extras::read(&package);
            let charts: usize = extras.values().map(|sheet| sheet.charts).sum();
            let mut draft = sheets(book.sheets_metadata().to_vec(), limits, &extras, |name, grid| {
                if fill_formatted(&mut book, name, grid)? {
                    fill_formulas(&mut book, name, grid)
                } else {
                    Ok(0)
                }
            })?;
            if charts > 0 {
                draft.warn(format!("{charts} charts in it are not shown"));
            }
            package.warn(&mut draft);
            Ok(draft)
        }
    }
}

/// Warns that numbers lack their formats, which the library does not read in binary and old workbooks.
fn unformatted(mut draft: DocumentDraft) -> DocumentDraft {
    draft
        .warn("numbers are shown without their formats: 7% is 0.07, and amounts have no currency".to_owned());
    draft
}

/// Writes each sheet with a marker. An unreadable sheet does not affect others. `read` fills a grid, and returns the
/// number of formulas without a value.
fn sheets(
    sheets: Vec<Sheet>,
    limits: &DocumentLimits,
    extras: &BTreeMap<String, SheetExtras>,
    mut read: impl FnMut(&str, &mut Grid) -> Result<usize, Error>,
) -> Result<DocumentDraft, Error> {
    let mut draft = DocumentDraft::new(limits.output);
    let count = sheets.len();
    draft.set_parts(count);
    for (index, sheet) in sheets.into_iter().enumerate() {
        let mut grid = Grid::new(share(&draft, count - index), limits);
        let read = read(&sheet.name, &mut grid);
        let extras = extras.get(&sheet.name);
        let mut marks: Vec<&str> = Vec::new();
        if sheet.visible != SheetVisible::Visible {
            marks.push("hidden");
        }
        marks.extend(extras.into_iter().flat_map(|extras| extras.hidden.iter().map(String::as_str)));
        show(&mut draft, index, &sheet.name, &marks, grid);
        for remark in extras.into_iter().flat_map(|extras| &extras.remarks) {
            draft.push(&format!("- {remark}\n"));
        }
        match read {
            Err(Error::Protected) => return Err(Error::Protected),
            Err(error) => draft.warn(format!("the sheet {} could not be read completely: {error}", sheet.name)),
            Ok(0) => {}
            Ok(count) => draft.warn(format!(
                "{count} formulas of the sheet {} have no value in the file: the formulas themselves are shown",
                sheet.name
            )),
        }
    }
    Ok(draft)
}

/// Returns the room for a sheet, which leaves some for the sheets after it.
pub(crate) fn share(draft: &DocumentDraft, left: usize) -> usize {
    (draft.room() / left.max(1)).max(LEAST).min(draft.room())
}

/// Writes a sheet with its marker.
pub(crate) fn show(draft: &mut DocumentDraft, index: usize, name: &str, marks: &[&str], grid: Grid) {
    let plain = name.replace(['\n', '\r'], " ").replace("--", "- -");
    let extent = grid.extent().unwrap_or_else(|| "empty".to_owned());
    let marks: String = marks.iter().map(|mark| format!(", {mark}")).collect();
    draft.push(&format!("<!-- sheet {}: {plain}, {extent}{marks} -->\n\n## {plain}\n\n", index + 1));
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
        if grid.put(row as usize, column as usize, &cell_text(&value)) == Err(GridFull) {
            break;
        }
    }
    Ok(())
}

/// Fills a grid with values as their cells display them. Returns whether any cell has no value.
fn fill_formatted(book: &mut Xlsx<Cursor<&[u8]>>, name: &str, grid: &mut Grid) -> Result<bool, Error> {
    let mut cells = book.worksheet_cells_reader(name).map_err(failed)?;
    let formats = Formats::new(cells.styles());
    let mut any_empty = false;
    while let Some((cell, style)) = cells.next_cell_with_style_id().map_err(failed)? {
        let (row, column) = cell.get_position();
        let value = Data::from(cell.get_value().clone());
        let shown = match value {
            Data::Float(number) => formats.show(number, style),
            #[allow(clippy::cast_precision_loss, reason = "cells hold floating-point numbers")]
            Data::Int(number) => formats.show(number as f64, style),
            _ => None,
        };
        let shown = shown.unwrap_or_else(|| cell_text(&value));
        any_empty |= shown.trim().is_empty();
        if grid.put(row as usize, column as usize, &shown) == Err(GridFull) {
            break;
        }
    }
    Ok(any_empty)
}

/// Puts formulas without a value, which programs that do not compute values write, into a grid. Returns their number.
fn fill_formulas(book: &mut Xlsx<Cursor<&[u8]>>, name: &str, grid: &mut Grid) -> Result<usize, Error> {
    let mut cells = book.worksheet_cells_reader(name).map_err(failed)?;
    let mut count = 0;
    while let Some(cell) = cells.next_cell_with_formula().map_err(failed)? {
        let Some(formula) = cell.formula.filter(|formula| !formula.is_empty()) else { continue };
        if cell_text(&Data::from(cell.value)).trim().is_empty() {
            let (row, column) = cell.pos;
            if grid.put(row as usize, column as usize, &format!("={formula}")) == Err(GridFull) {
                break;
            }
            count += 1;
        }
    }
    Ok(count)
}

fn cell_text(value: &Data) -> String {
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

/// Formats a number with the fifteen digits that spreadsheets display, or a whole number with all digits.
fn decimal(number: f64) -> String {
    if number.fract() == 0.0 && number.abs() < MAX_EXACT_INTEGER {
        return number.to_string();
    }
    let rounded = format!("{number:.14e}").parse::<f64>().unwrap_or(number);
    if rounded.abs() >= 1e15 { format!("{rounded:e}") } else { rounded.to_string() }
}

/// Formats a date, a time or both, depending on which parts are set, or a duration in hours.
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
    fn values_are_formatted_as_spreadsheets_show_them() {
        let when =
            |serial: f64| Data::DateTime(ExcelDateTime::new(serial, ExcelDateTimeType::DateTime, false));
        let lasting = Data::DateTime(ExcelDateTime::new(1.5, ExcelDateTimeType::TimeDelta, false));
        for (value, expect) in [
            (Data::Float(42.0), "42"),
            (Data::Float(0.1 + 0.2), "0.3"),
            (Data::Float(1e21), "1e21"),
            (Data::Float(123_456_789_012_345.0), "123456789012345"),
            (Data::Float(1_234_567_890_123_456.0), "1234567890123456"),
            (Data::Float(123_456_789.123), "123456789.123"),
            (Data::Bool(true), "TRUE"),
            (Data::Error(calamine::CellErrorType::Div0), "#DIV/0!"),
            (when(45_292.0), "2024-01-01"),
            (when(45_292.75), "2024-01-01 18:00"),
            (when(0.5), "12:00"),
            (lasting, "36:00:00"),
        ] {
            assert_eq!(cell_text(&value), expect);
        }
    }
}
