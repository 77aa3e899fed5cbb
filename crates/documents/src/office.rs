//! Word and PowerPoint, of today and as before 2007. Slides are under their marks, with their notes.

use crate::{DocumentLimits, Error, draft::DocumentDraft};
use undoc::{FormatType, ResourceType, SectionMarkerStyle, parse_bytes, render};

pub(crate) fn read(bytes: &[u8], limits: &DocumentLimits) -> Result<DocumentDraft, Error> {
    let document = parse_bytes(bytes).map_err(|error| failed(&error))?;
    let options = render::RenderOptions::new().with_images(false);
    let options = options.with_section_markers(SectionMarkerStyle::Comment);
    let markdown = render::to_markdown(&document, &options).map_err(|error| failed(&error))?;
    let mut draft = DocumentDraft::new(limits.output);
    draft.push(&markdown);
    draft.set_title(document.metadata.title.as_deref());
    if matches!(document.format, FormatType::Pptx | FormatType::Ppt) {
        draft.set_parts(document.sections.len());
    }
    let images =
        document.resources.values().filter(|found| found.resource_type == ResourceType::Image).count();
    if images > 0 {
        draft.warn(format!("{images} pictures in it are not shown"));
    }
    Ok(draft)
}

fn failed(error: &undoc::Error) -> Error {
    match error {
        undoc::Error::Encrypted => Error::Protected,
        undoc::Error::UnsupportedFormat(what) => Error::Refused(format!("it is not read: {what}")),
        other => Error::Damaged(other.to_string()),
    }
}
