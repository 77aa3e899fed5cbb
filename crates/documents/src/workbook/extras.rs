//! Parts of a workbook other than its cells: comments, texts of drawings, and hidden rows and columns.

use crate::{
    grid::letters,
    package::Package,
    xml::{Element, attribute},
};
use quick_xml::{Reader, events::Event};
use std::collections::BTreeMap;

const WORKBOOK: &str = "xl/workbook.xml";
/// Maximum number of listed ranges.
const MAX_RANGES: usize = 20;

/// Parts of a sheet other than its cells.
#[derive(Default)]
pub(super) struct SheetExtras {
    /// Hidden rows and columns, as text.
    pub(super) hidden: Vec<String>,
    /// Comments and texts of drawings, as list items.
    pub(super) remarks: Vec<String>,
    /// Number of charts.
    pub(super) charts: usize,
}

/// Returns the parts of all sheets other than their cells, by sheet name.
pub(super) fn read(package: &Package<'_>) -> BTreeMap<String, SheetExtras> {
    let targets = package.relationships(WORKBOOK);
    let book = Element::parse(&package.text(WORKBOOK).unwrap_or_default());
    let people = people(package);
    let sheets = book.all("sheet").into_iter().filter_map(|sheet| {
        let part = sheet.attributes_named("id").find_map(|id| targets.get(id))?;
        Some((sheet.attribute("name")?.to_owned(), sheet_extras(package, &part.target, &people)))
    });
    sheets.collect()
}

/// Returns the names of comment authors by ID.
fn people(package: &Package<'_>) -> BTreeMap<String, String> {
    let parts = package.names().filter(|name| name.starts_with("xl/persons/"));
    let mut people = BTreeMap::new();
    for part in parts.filter_map(|part| package.text(&part)) {
        for person in Element::parse(&part).all("person") {
            let id_and_name = person.attribute("id").zip(person.attribute("displayName"));
            people.extend(id_and_name.map(|(id, name)| (id.to_owned(), name.to_owned())));
        }
    }
    people
}

fn sheet_extras(package: &Package<'_>, part: &str, people: &BTreeMap<String, String>) -> SheetExtras {
    let mut extras = SheetExtras::default();
    if let Some(xml) = package.text(part).filter(|xml| xml.contains(" hidden=")) {
        extras.hidden = hidden(&xml);
    }
    let mut comments = BTreeMap::new();
    for related in package.relationships(part).into_values() {
        let Some(xml) = package.text(&related.target) else { continue };
        match related.kind.as_str() {
            "comments" => legacy_comments(&xml).into_iter().for_each(|(place, text)| {
                comments.entry(place).or_insert(text);
            }),
            // Legacy comments repeat threaded ones for old programs.
            "threadedComment" => comments.extend(threaded_comments(&xml, people)),
            "drawing" => {
                let texts = Element::parse(&xml)
                    .all("txBody")
                    .iter()
                    .map(|text| text.joined_text())
                    .collect::<Vec<_>>();
                extras.remarks.extend(
                    texts.into_iter().filter(|text| !text.is_empty()).map(|text| format!("text box: {text}")),
                );
                extras.charts += package
                    .relationships(&related.target)
                    .values()
                    .filter(|part| part.kind == "chart")
                    .count();
            }
            _ => {}
        }
    }
    extras.remarks.extend(comments.into_iter().map(|(place, text)| format!("comment on {place}, {text}")));
    extras
}

/// Returns comments by cell.
fn legacy_comments(xml: &str) -> Vec<(String, String)> {
    let tree = Element::parse(xml);
    let authors: Vec<String> = tree.all("author").iter().map(|author| author.content()).collect();
    let comments = tree.all("comment").into_iter().filter_map(|comment| {
        let author = comment.attribute("authorId").and_then(|id| authors.get(id.parse::<usize>().ok()?));
        let author = author.filter(|author| !author.is_empty()).map_or("unknown", String::as_str);
        Some((comment.attribute("ref")?.to_owned(), format!("{author}: {}", comment.joined_text())))
    });
    comments.collect()
}

fn threaded_comments(xml: &str, people: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut threads: BTreeMap<String, String> = BTreeMap::new();
    for comment in Element::parse(xml).all("threadedComment") {
        let Some(place) = comment.attribute("ref") else { continue };
        let author =
            comment.attribute("personId").and_then(|id| people.get(id)).map_or("unknown", String::as_str);
        let thread = threads.entry(place.to_owned()).or_default();
        let between = if thread.is_empty() { "" } else { "; " };
        thread.push_str(&format!("{between}{author}: {}", comment.joined_text()));
    }
    threads
}

/// Lists the hidden columns and rows of a sheet.
fn hidden(xml: &str) -> Vec<String> {
    let mut reader = Reader::from_str(xml);
    let (mut columns, mut rows, mut row) = (Vec::new(), Vec::new(), 0_usize);
    while let Ok(event) = reader.read_event() {
        let (Event::Start(tag) | Event::Empty(tag)) = &event else {
            if matches!(event, Event::Eof) {
                break;
            }
            continue;
        };
        let number = |name| attribute(tag, name).and_then(|text| text.parse::<usize>().ok());
        let is_hidden = || attribute(tag, "hidden").is_some_and(|text| matches!(text.as_str(), "1" | "true"));
        match tag.local_name().as_ref() {
            "col" if is_hidden() => columns.extend(number("min").zip(number("max"))),
            "row" => {
                row = number("r").unwrap_or(row + 1);
                if is_hidden() {
                    rows.push((row, row));
                }
            }
            _ => {}
        }
    }
    let column = |number: usize| letters(number.saturating_sub(1));
    [("columns", ranges(columns, column)), ("rows", ranges(rows, |row| row.to_string()))]
        .into_iter()
        .filter(|(_, ranges)| !ranges.is_empty())
        .map(|(what, ranges)| format!("hidden {what} {ranges}"))
        .collect()
}

/// Lists ranges, joining adjacent ones.
fn ranges(ranges: Vec<(usize, usize)>, name: impl Fn(usize) -> String) -> String {
    let mut joined: Vec<(usize, usize)> = Vec::new();
    for (from, to) in ranges {
        match joined.last_mut() {
            Some(last) if last.1 + 1 == from => last.1 = to,
            _ => joined.push((from, to)),
        }
    }
    let more = if joined.len() > MAX_RANGES { " …" } else { "" };
    let listed = joined
        .into_iter()
        .take(MAX_RANGES)
        .map(|(from, to)| if from == to { name(from) } else { format!("{}–{}", name(from), name(to)) });
    listed.collect::<Vec<_>>().join(", ") + more
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_rows_and_columns_are_named() {
        let sheet = "<worksheet><cols><col hidden=\"1\" min=\"2\" max=\"2\"/><col min=\"3\" max=\"3\"/><col hidden=\"1\" \
            min=\"5\" max=\"28\"/></cols><sheetData><row r=\"1\"/><row hidden=\"1\"/><row r=\"3\" hidden=\"true\"/>\
            <row r=\"9\" hidden=\"1\"/></sheetData></worksheet>";
        assert_eq!(hidden(sheet), ["hidden columns B, E–AB", "hidden rows 2–3, 9"]);
        assert!(hidden("<worksheet><row hidden=\"0\"/>").is_empty());
    }
}
