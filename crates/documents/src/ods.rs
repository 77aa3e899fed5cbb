//! OpenDocument spreadsheets, with a reader that does not expand a cell that is repeated a million times.

use crate::{
    DocumentLimits, Error,
    archive::{self, Archive},
    draft::DocumentDraft,
    grid::{Grid, GridFull},
    workbook::{share, show},
    xml::attribute,
};
use quick_xml::{
    Reader, XmlVersion,
    events::{BytesStart, Event},
};
use std::collections::BTreeSet;

/// Maximum number of times that a repeated row or cell is shown.
const REPEATS: usize = 1_000;

pub(crate) fn read(bytes: &[u8], limits: &DocumentLimits) -> Result<DocumentDraft, Error> {
    archive::examine(bytes, limits)?;
    let archive = Archive::open(bytes)?;
    if archive.read("META-INF/manifest.xml", limits.expanded).is_ok_and(|text| is_sealed(&text)) {
        return Err(Error::Protected);
    }
    let content = archive.read("content.xml", limits.expanded)?;
    let content = std::str::from_utf8(&content).map_err(|error| Error::Damaged(error.to_string()))?;
    let tables = content.matches("<table:table ").count();
    let mut draft = DocumentDraft::new(limits.output);
    let mut reader = Reader::from_str(content);
    let mut sheets = 0;
    let hidden_styles = hidden_styles(content);
    while let Some(event) = next(&mut reader)? {
        if let Event::Start(tag) = &event
            && tag.local_name().as_ref() == "table"
        {
            let name = attribute(tag, "name").unwrap_or_default();
            let hidden = attribute(tag, "style-name").is_some_and(|style| hidden_styles.contains(&style));
            let mut grid = Grid::new(share(&draft, tables.saturating_sub(sheets)), limits);
            rows(&mut reader, &mut grid)?;
            show(&mut draft, sheets, &name, if hidden { &["hidden"] } else { &[] }, grid);
            sheets += 1;
        }
    }
    draft.set_parts(sheets);
    Ok(draft)
}

/// Returns the names of the styles of hidden tables.
fn hidden_styles(content: &str) -> BTreeSet<String> {
    let (mut reader, mut style, mut hidden) = (Reader::from_str(content), None, BTreeSet::new());
    while let Ok(event) = reader.read_event() {
        match event {
            Event::Start(tag) if tag.local_name().as_ref() == "style" => style = attribute(&tag, "name"),
            Event::Start(tag) | Event::Empty(tag)
                if tag.local_name().as_ref() == "table-properties"
                    && attribute(&tag, "display").is_some_and(|display| display == "false") =>
            {
                hidden.extend(style.clone());
            }
            // Styles come before the tables.
            Event::Start(tag) if tag.local_name().as_ref() == "body" => break,
            Event::Eof => break,
            _ => {}
        }
    }
    hidden
}

pub(crate) fn is_sealed(manifest: &[u8]) -> bool {
    String::from_utf8_lossy(manifest).contains("manifest:encryption-data")
}

/// Reads a table to its end.
fn rows(reader: &mut Reader<&[u8]>, grid: &mut Grid) -> Result<(), Error> {
    let (mut row, mut wanted) = (0_usize, true);
    while let Some(event) = next(reader)? {
        match event {
            Event::Start(tag) if tag.local_name().as_ref() == "table-row" => {
                let times = repeats(&tag, "number-rows-repeated");
                let cells = cells(reader)?;
                // An empty row may be repeated to the end of the sheet.
                let shown = if cells.is_empty() { 0 } else { times.min(REPEATS) };
                for again in 0..shown {
                    wanted = wanted && put(grid, row.saturating_add(again), &cells).is_ok();
                }
                row = row.saturating_add(times);
            }
            Event::Empty(tag) if tag.local_name().as_ref() == "table-row" => {
                row = row.saturating_add(repeats(&tag, "number-rows-repeated"));
            }
            Event::End(tag) if tag.local_name().as_ref() == "table" => return Ok(()),
            _ => {}
        }
    }
    Ok(())
}

fn put(grid: &mut Grid, row: usize, cells: &[(usize, usize, String)]) -> Result<(), GridFull> {
    for (column, times, value) in cells {
        for again in 0..*times {
            grid.put(row, column.saturating_add(again), value)?;
        }
    }
    Ok(())
}

/// Reads a row to its end. Returns the position, number of repetitions and text of each value.
fn cells(reader: &mut Reader<&[u8]>) -> Result<Vec<(usize, usize, String)>, Error> {
    let (mut cells, mut column) = (Vec::new(), 0_usize);
    while let Some(event) = next(reader)? {
        match event {
            Event::Start(tag) if is_cell(&tag) => {
                let times = repeats(&tag, "number-columns-repeated");
                let value = read_cell(reader)?;
                if !value.trim().is_empty() {
                    cells.push((column, times.min(REPEATS), value));
                }
                column = column.saturating_add(times);
            }
            Event::Empty(tag) if is_cell(&tag) => {
                column = column.saturating_add(repeats(&tag, "number-columns-repeated"));
            }
            Event::End(tag) if tag.local_name().as_ref() == "table-row" => break,
            _ => {}
        }
    }
    Ok(cells)
}

fn is_cell(tag: &BytesStart<'_>) -> bool {
    matches!(tag.local_name().as_ref(), "table-cell" | "covered-table-cell")
}

/// Reads a cell to its end. Returns its paragraphs as displayed, without annotations.
fn read_cell(reader: &mut Reader<&[u8]>) -> Result<String, Error> {
    let (mut text, mut remark) = (String::new(), 0_usize);
    while let Some(event) = next(reader)? {
        match event {
            Event::Start(tag) if tag.local_name().as_ref() == "annotation" => remark += 1,
            Event::End(tag) if tag.local_name().as_ref() == "annotation" => remark = remark.saturating_sub(1),
            Event::End(tag) if matches!(tag.local_name().as_ref(), "table-cell" | "covered-table-cell") => {
                break;
            }
            _ if remark > 0 => {}
            Event::End(tag) if tag.local_name().as_ref() == "p" => text.push('\n'),
            Event::Empty(tag) => match tag.local_name().as_ref() {
                "s" | "tab" => text.push(' '),
                "line-break" => text.push('\n'),
                _ => {}
            },
            Event::Text(part) => text.push_str(&part.xml_content(XmlVersion::Implicit1_0)),
            Event::CData(part) => text.push_str(&part.xml_content(XmlVersion::Implicit1_0)),
            Event::GeneralRef(name) => match name.resolve_char_ref() {
                Ok(Some(c)) => text.push(c),
                _ => text.push_str(quick_xml::escape::resolve_xml_entity(&name).unwrap_or_default()),
            },
            _ => {}
        }
    }
    Ok(text)
}

fn next<'a>(reader: &mut Reader<&'a [u8]>) -> Result<Option<Event<'a>>, Error> {
    match reader.read_event() {
        Ok(Event::Eof) => Ok(None),
        Ok(event) => Ok(Some(event)),
        Err(error) => Err(Error::Damaged(error.to_string())),
    }
}

fn repeats(tag: &BytesStart<'_>, name: &str) -> usize {
    attribute(tag, name).and_then(|text| text.parse().ok()).unwrap_or(1).max(1)
}
