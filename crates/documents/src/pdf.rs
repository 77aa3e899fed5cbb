//! PDF, page by page, each with a marker.

use crate::{DocumentLimits, Error, draft::DocumentDraft};
use std::borrow::Cow;
use unpdf::{PageMarkerStyle, ParseOptions, RenderOptions, parse_bytes_with_options, render};

/// Maximum depth of arrays and dictionaries, which the library reads recursively. Image data contains random brackets,
/// but their depth stays far below this.
const MAX_NESTING_DEPTH: i64 = 5_000;

pub(crate) fn read(bytes: &[u8], limits: &DocumentLimits) -> Result<DocumentDraft, Error> {
    if seems_deep(bytes) {
        return Err(Error::TooLarge(format!("its objects are nested more than {MAX_NESTING_DEPTH} deep")));
    }
    // Single-threaded, because a child process can have few threads and several documents may be read concurrently.
    let how = ParseOptions::new().lenient().with_resources(false).sequential();
    let bytes = with_known_encodings(bytes);
    let pdf = parse_bytes_with_options(&bytes, how).map_err(|error| failed(&error))?;
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

/// Returns whether more brackets are open at once than in any real file. Compressed data is not examined.
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

/// Replaces the encodings of Chinese, Japanese and Korean fonts that the library does not support with larger ones that
/// it supports. Names are replaced in place. Fonts in compressed objects are not changed.
fn with_known_encodings(bytes: &[u8]) -> Cow<'_, [u8]> {
    let key = b"/Encoding";
    let mut renamed: Option<Vec<u8>> = None;
    let mut at = 0;
    while let Some(found) =
        bytes.get(at..).and_then(|rest| rest.windows(key.len()).position(|part| part == key))
    {
        let start = at + found + key.len();
        let rest = bytes.get(start..).unwrap_or_default();
        let blanks = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let name = rest.get(blanks..).unwrap_or_default();
        let length =
            name.iter().skip(1).take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'-').count();
        let known = name.get(..=length).and_then(|name| known_encoding(name, blanks));
        if let Some(known) = known {
            let range = start..start + blanks + 1 + length;
            let padded =
                known.iter().copied().chain(std::iter::repeat(b' ')).take(range.len()).collect::<Vec<u8>>();
            if let Some(range) = renamed.get_or_insert_with(|| bytes.to_vec()).get_mut(range) {
                range.copy_from_slice(&padded);
            }
        }
        at = start;
    }
    renamed.map_or(Cow::Borrowed(bytes), Cow::Owned)
}

/// Returns the replacement for an encoding that the library does not support, if it fits in place.
fn known_encoding(name: &[u8], blanks: usize) -> Option<&'static [u8]> {
    let name = name.strip_prefix(b"/")?;
    let name = name.strip_suffix(b"-H").or_else(|| name.strip_suffix(b"-V"))?;
    let known: &[u8] = match name {
        b"GB-EUC" | b"GBpc-EUC" | b"GBKp-EUC" | b"GBK2K" => b"/GBK-EUC",
        b"B5pc" | b"HKscs-B5" | b"ETenms-B5" => b"/ETen-B5",
        b"90msp-RKSJ" | b"90pv-RKSJ" | b"83pv-RKSJ" | b"Add-RKSJ" | b"Ext-RKSJ" => b"/90ms-RKSJ",
        b"KSCpc-EUC" => b"/KSC-EUC",
        b"KSCms-UHC-HW" => b"/KSCms-UHC",
        _ => return None,
    };
    (known.len() <= name.len() + 3 + blanks).then_some(known)
}

fn failed(error: &unpdf::Error) -> Error {
    match error {
        unpdf::Error::Encrypted | unpdf::Error::InvalidPassword => Error::Protected,
        other => Error::Damaged(other.to_string()),
    }
}
