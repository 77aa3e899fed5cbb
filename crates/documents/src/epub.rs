//! E-books: their chapters in reading order, each with a marker.

use crate::{
    DocumentLimits, Error,
    archive::{self, Archive},
    draft::DocumentDraft,
    html::{HtmlPage, seems_deep},
    text,
};
use quick_xml::{
    Reader, Writer, XmlVersion,
    events::{BytesStart, Event},
};
use std::collections::HashMap;

/// Path of the file that names the book's package document.
const CONTAINER: &str = "META-INF/container.xml";
/// Maximum size of a chapter, in bytes.
const CHAPTER: u64 = 32 * 1024 * 1024;
/// Maximum number of chapters that are read.
const CHAPTERS: usize = 5_000;
/// Elements that are dropped from the text. Pictures are separate files in the book.
const SKIPPED: [&str; 9] =
    ["script", "style", "meta", "head", "noscript", "template", "svg", "iframe", "img"];
/// HTML elements without an end tag.
const VOID: [&str; 13] =
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"];

pub(crate) fn read(bytes: &[u8], limits: &DocumentLimits) -> Result<DocumentDraft, Error> {
    // Only sizes are checked, because chapters may have a document type.
    archive::measure(bytes, limits)?;
    let archive = Archive::open(bytes)?;
    let container = text::decode(&archive.read(CONTAINER, CHAPTER)?);
    let package_path = first(&container, "rootfile", "full-path").ok_or_else(|| missing_part(CONTAINER))?;
    let book = EpubMetadata::parse(&text::decode(&archive.read(&package_path, CHAPTER)?));
    let folder = package_path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut draft = DocumentDraft::new(limits.output);
    draft.set_title(book.title.as_deref());
    draft.set_parts(book.chapters.len());
    let mut flat = 0;
    for (index, chapter) in book.chapters.iter().enumerate() {
        if draft.room() == 0 {
            break;
        }
        let path = resolve(folder, chapter);
        draft.push(&format!("<!-- chapter {}: {} -->\n\n", index + 1, chapter.replace("--", "- -")));
        match archive.read(&path, CHAPTER) {
            Ok(bytes) => {
                let chapter = closed(&text::decode(&bytes));
                if seems_deep(&chapter) {
                    draft.warn(format!("chapter {} is nested too deeply to be read", index + 1));
                    continue;
                }
                let page = HtmlPage::parse(&chapter);
                let (markdown, is_complete) = page.markdown(&SKIPPED, limits.depth);
                flat += usize::from(!is_complete);
                draft.push(&format!("{markdown}\n\n"));
            }
            Err(error) => draft.warn(format!("chapter {} is missing: {error}", index + 1)),
        }
    }
    if flat > 0 {
        draft.warn(format!("{flat} chapters are nested too deeply: only their text is included"));
    }
    Ok(draft)
}

fn missing_part(what: &str) -> Error {
    Error::Damaged(format!("{what} in it is empty"))
}

/// Metadata of a book.
#[derive(Default)]
struct EpubMetadata {
    title: Option<String>,
    /// Files of the chapters, in order.
    chapters: Vec<String>,
}

impl EpubMetadata {
    fn parse(package: &str) -> Self {
        let (mut book, mut items, mut in_title) = (Self::default(), HashMap::new(), false);
        let mut reader = Reader::from_str(package);
        // A damaged file is read up to the damage.
        while let Ok(event) = reader.read_event() {
            match event {
                Event::Start(tag) | Event::Empty(tag) => match tag.local_name().as_ref() {
                    "title" => in_title = book.title.is_none(),
                    "item" => {
                        let item = attribute(&tag, "id").zip(attribute(&tag, "href"));
                        items.extend(item);
                    }
                    "itemref" if book.chapters.len() < CHAPTERS => {
                        let chapter = attribute(&tag, "idref").and_then(|id| items.get(&id).cloned());
                        book.chapters.extend(chapter);
                    }
                    _ => {}
                },
                Event::Text(text) if in_title => {
                    book.title = Some(text.xml_content(XmlVersion::Implicit1_0).into_owned());
                    in_title = false;
                }
                Event::Eof => break,
                _ => {}
            }
        }
        book
    }
}

/// Returns an attribute of the first element with this name.
fn first(text: &str, element: &str, name: &str) -> Option<String> {
    let mut reader = Reader::from_str(text);
    loop {
        match reader.read_event().ok()? {
            Event::Start(tag) | Event::Empty(tag) if tag.local_name().as_ref() == element => {
                return attribute(&tag, name);
            }
            Event::Eof => return None,
            _ => {}
        }
    }
}

fn attribute(tag: &BytesStart<'_>, name: &str) -> Option<String> {
    let found = tag.try_get_attribute(name).ok()??;
    found.normalized_value(XmlVersion::Implicit1_0).ok().map(Into::into)
}

/// Resolves the path of a file in the book. Names are percent-encoded and relative to the package document's folder.
fn resolve(folder: &str, href: &str) -> String {
    let href = href.split('#').next().unwrap_or_default();
    let href = percent_encoding::percent_decode_str(href).decode_utf8_lossy();
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in href.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Gives self-closing XML elements an end tag. HTML has no self-closing elements and would treat the following text as
/// their content.
fn closed(xhtml: &str) -> String {
    let mut writer = Writer::new(Vec::new());
    let mut reader = Reader::from_str(xhtml);
    reader.config_mut().check_end_names = false;
    loop {
        let written = match reader.read_event() {
            Ok(Event::Eof) => break,
            Ok(Event::Empty(tag)) if !VOID.contains(&tag.local_name().as_ref()) => {
                let end = tag.to_end().into_owned();
                writer.write_event(Event::Start(tag)).and_then(|()| writer.write_event(Event::End(end)))
            }
            Ok(event) => writer.write_event(event),
            // The chapter is not valid XML, but browsers would render it anyway.
            Err(_) => return xhtml.to_owned(),
        };
        if written.is_err() {
            return xhtml.to_owned();
        }
    }
    String::from_utf8(writer.into_inner()).unwrap_or_else(|_| xhtml.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chapters_are_found_from_the_package_document() {
        let check = |folder, href, expect: &str| assert_eq!(resolve(folder, href), expect, "{folder} {href}");
        check("OEBPS", "ch%201.xhtml#top", "OEBPS/ch 1.xhtml");
        check("", "a/../b.xhtml", "b.xhtml");
        check("a/b", "../../../../etc/passwd", "etc/passwd");
    }

    #[test]
    fn self_closing_elements_get_an_end_tag() {
        assert_eq!(
            closed("<p><a id=\"x\"/>Text<br/><title/></p>"),
            "<p><a id=\"x\"></a>Text<br/><title></title></p>"
        );
        assert_eq!(closed("<p>a & b</p"), "<p>a & b</p");
    }
}
