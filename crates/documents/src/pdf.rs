//! PDF, a page at a time, each under its mark.

use crate::{DocumentLimits, Error, draft::DocumentDraft};
use unpdf::{PageMarkerStyle, ParseOptions, RenderOptions, parse_bytes_with_options, render};

/// Maximum depth of arrays and dictionaries: their reader calls itself for each. In a picture's bytes,
/// brackets come by chance, and far fewer more of one kind than of the other.
const MAX_NESTING_DEPTH: i64 = 5_000;

pub(crate) fn read(bytes: &[u8], limits: &DocumentLimits) -> Result<DocumentDraft, Error> {
    if seems_deep(bytes) {
        return Err(Error::TooLarge(format!("its objects are nested more than {MAX_NESTING_DEPTH} deep")));
    }
    // One thread: a child process has few, and several documents may be read at once.
    let how = ParseOptions::new().lenient().with_resources(false).sequential();
    let pdf = parse_bytes_with_options(bytes, how).map_err(|error| failed(&error))?;
    let shown = RenderOptions::new().with_page_markers(PageMarkerStyle::Comment);
    let markdown = render::to_markdown(&pdf, &shown).map_err(|error| failed(&error))?;
    let mut draft = DocumentDraft::new(limits.output);
    draft.push(&markdown);
    draft.set_title(pdf.metadata.title.as_deref());
    draft.set_parts(pdf.pages.len());
    let bare = pdf.pages.iter().filter(|page| page.elements.is_empty()).count();
    if bare > 0 && bare < pdf.pages.len() {
        draft.warn(format!("{bare} of {} pages have no text, perhaps pictures only", pdf.pages.len()));
    }
    if let Some(warning) = pdf.extraction_quality.warning_message() {
        draft.warn(warning);
    }
    Ok(draft)
}

/// Whether more brackets are open at once than anybody writes. Sees nothing of what is compressed.
fn seems_deep(bytes: &[u8]) -> bool {
    let mut depth = 0_i64;
    bytes.windows(3).any(|window| {
        match window {
            [b'[', ..] | [b'<', b'<', _] => depth += 1,
            [b']', ..] | [b'>', b'>', _] => depth = (depth - 1).max(0),
            b"obj" => depth = 0,
            _ => {}
        }
        depth > MAX_NESTING_DEPTH
    })
}

fn failed(error: &unpdf::Error) -> Error {
    match error {
        unpdf::Error::Encrypted | unpdf::Error::InvalidPassword => Error::Protected,
        other => Error::Damaged(other.to_string()),
    }
}
