//! Word and PowerPoint, in the current formats and in those before 2007. Each slide has a marker and its notes.
//! Elements that the library would ignore are rewritten before it reads the document.

mod diagram;
mod math;
mod slides;
mod word;

use crate::package::Package;
use crate::{DocumentKind, DocumentLimits, Error, draft::DocumentDraft};
use slides::Slide;
use std::collections::{BTreeMap, BTreeSet};
use undoc::{FormatType, ResourceType, SectionMarkerStyle, parse_bytes, render};
use word::{Inserts, WordPart};

/// Maximum number of embedded files that are named.
const MAX_NAMED_FILES: usize = 10;

pub(crate) fn read(
    bytes: &[u8],
    kind: DocumentKind,
    limits: &DocumentLimits,
) -> Result<DocumentDraft, Error> {
    match kind {
        DocumentKind::Docx => read_word(bytes, limits),
        DocumentKind::Pptx => read_slides(bytes, limits),
        _ => Ok(render(bytes, limits, |markdown| markdown)?.0),
    }
}

fn read_word(bytes: &[u8], limits: &DocumentLimits) -> Result<DocumentDraft, Error> {
    let mut package = Package::open(bytes, limits)?;
    let mut inserts = Inserts::default();
    let comments =
        package.names().find(|name| name.ends_with("/comments.xml")).and_then(|part| package.text(&part));
    let comments = comments.map(|xml| word::comments(&xml)).unwrap_or_default();
    let labels: BTreeMap<_, _> = comments.iter().map(|(id, label, _)| (id.clone(), label.clone())).collect();
    for name in package.names().filter(|name| is_story(name)) {
        let Some(xml) = package.text(&name) else { continue };
        let relationships = package.relationships(&name);
        let diagrams = |part: &str| package.text(part);
        let part = WordPart { relationships, diagrams: &diagrams, comments: &labels };
        if let Some(changed) = part.rewrite(&xml, &mut inserts) {
            package.change(&name, changed);
        }
    }
    let changed = package.changed()?;
    let notes: String = comments.iter().map(|(_, _, text)| format!("\n\n{text}")).collect();
    let (mut draft, _) = render(changed.as_deref().unwrap_or(bytes), limits, |markdown| {
        inserts.fill(&without_page_numbers(&markdown)) + &notes
    })?;
    warn(&mut draft, &inserts, &package);
    Ok(draft)
}

/// Removes page headers and footers without letters, such as page numbers.
fn without_page_numbers(markdown: &str) -> String {
    let is_number = |line: &&str| {
        let text = line.strip_prefix("> *Header: ").or_else(|| line.strip_prefix("> *Footer: "));
        text.is_some_and(|text| !text.contains(|c: char| c.is_alphabetic() || c == '\u{FDD0}'))
    };
    markdown.lines().filter(|line| !is_number(line)).flat_map(|line| [line, "\n"]).collect()
}

/// Returns whether a part has text that readers see.
fn is_story(name: &str) -> bool {
    let parts = ["document", "header", "footer", "footnotes", "endnotes"];
    let file = name.strip_prefix("word/").filter(|name| name.ends_with(".xml") && !name.contains('/'));
    file.is_some_and(|file| parts.iter().any(|part| file.starts_with(part)))
}

fn read_slides(bytes: &[u8], limits: &DocumentLimits) -> Result<DocumentDraft, Error> {
    let mut package = Package::open(bytes, limits)?;
    let mut inserts = Inserts::default();
    let slides: Vec<Slide> = slides::rewrite(&mut package, &mut inserts);
    let changed = package.changed()?;
    let (mut draft, count) = render(changed.as_deref().unwrap_or(bytes), limits, |markdown| {
        slides::annotate(&inserts.fill(&markdown), &slides)
    })?;
    if count < slides.len() {
        draft.warn(format!("{} of {} slides could not be read", slides.len() - count, slides.len()));
    }
    warn(&mut draft, &inserts, &package);
    Ok(draft)
}

/// Renders a document with the library, and also returns the number of its sections.
fn render(
    bytes: &[u8],
    limits: &DocumentLimits,
    finish: impl FnOnce(String) -> String,
) -> Result<(DocumentDraft, usize), Error> {
    let document = parse_bytes(bytes).map_err(|error| failed(&error))?;
    let options = render::RenderOptions::new().with_images(false);
    let options =
        options.with_include_headers_footers(true).with_section_markers(SectionMarkerStyle::Comment);
    let markdown = render::to_markdown(&document, &options).map_err(|error| failed(&error))?;
    let mut draft = DocumentDraft::new(limits.output);
    draft.push(&finish(markdown));
    draft.set_title(document.metadata.title.as_deref());
    if matches!(document.format, FormatType::Pptx | FormatType::Ppt) {
        draft.set_parts(document.sections.len());
    }
    let images =
        document.resources.values().filter(|found| found.resource_type == ResourceType::Image).count();
    if images > 0 {
        draft.warn(format!("{images} pictures in it are not shown"));
    }
    Ok((draft, document.sections.len()))
}

/// Adds warnings about content that is missing from the text.
fn warn(draft: &mut DocumentDraft, inserts: &Inserts, package: &Package<'_>) {
    for (count, what) in [
        (
            inserts.deletions,
            "deleted or moved parts of tracked changes are left out, as if all changes were accepted",
        ),
        (inserts.unread_diagrams, "diagrams could not be read"),
        (inserts.unread_symbols, "characters of symbol fonts are left out"),
        (inserts.unread_chunks, "embedded documents are not shown"),
    ] {
        if count > 0 {
            draft.warn(format!("{count} {what}"));
        }
    }
    package.warn(draft);
    let files = embedded_files(package);
    if !files.is_empty() {
        let listed: Vec<&str> = files.iter().take(MAX_NAMED_FILES).map(String::as_str).collect();
        draft.warn(format!("{} embedded files are not shown: {}", files.len(), listed.join(", ")));
    }
}

/// Returns the names of embedded files, without the data of charts.
fn embedded_files(package: &Package<'_>) -> Vec<String> {
    let charts = package.names().filter(|name| name.contains("/charts/") && name.ends_with(".xml"));
    let data: BTreeSet<String> = charts
        .flat_map(|chart| package.relationships(&chart).into_values())
        .map(|part| part.target)
        .collect();
    let files = package.names().filter(|name| name.contains("/embeddings/") && !data.contains(name));
    files.filter_map(|name| name.rsplit('/').next().map(str::to_owned)).collect()
}

fn failed(error: &undoc::Error) -> Error {
    match error {
        undoc::Error::Encrypted => Error::Protected,
        undoc::Error::UnsupportedFormat(what) => Error::Refused(format!("it is not supported: {what}")),
        other => Error::Damaged(other.to_string()),
    }
}
