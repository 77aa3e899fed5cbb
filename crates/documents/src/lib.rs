//! Converts documents sent by users to Markdown that a model can read.
//!
//! [`convert`] works in the calling process and applies all limits except those on time and memory. [`Converter`] can
//! do the same in a child process, which a document may crash. That process has limited memory and time, only the
//! request in its environment, and only the document as its input. Libraries parse the formats; this crate selects the
//! format by content, applies the limits, marks pages, slides and sheets, and builds the outline.
//!
//! Deliberately absent: pictures, text recognition, and any file or network access on behalf of a document.

mod archive;
mod child;
mod converter;
mod document;
mod draft;
mod epub;
mod error;
mod grid;
mod html;
mod kind;
mod limits;
mod mail;
mod markup;
mod mathml;
mod odf;
mod ods;
mod office;
mod outline;
mod package;
mod pdf;
mod rtf;
mod separated;
pub mod text;
mod workbook;
mod xml;

pub use archive::member;
pub use child::serve;
pub use converter::Converter;
pub use document::Document;
pub use error::Error;
pub use kind::DocumentKind;
pub use limits::DocumentLimits;
pub use outline::{Heading, outline};

/// Stack size of a converting thread, in bytes. Usually little is used.
const STACK: usize = 64 * 1024 * 1024;

/// Converts a document. The content determines the kind; `name` matters only for formats without a signature. Blocks,
/// without the time limit that [`Converter`] adds.
///
/// # Errors
/// When the bytes are not a document or cannot be read; see [`Error`].
pub fn convert(bytes: &[u8], name: &str, limits: &DocumentLimits) -> Result<Document, Error> {
    // A separate thread has enough stack for nested data, and a panic in it is contained.
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("document".to_owned()).stack_size(STACK);
        let work = thread.spawn_scoped(scope, || convert_bytes(bytes, name, limits));
        work.map_err(|error| Error::Unavailable(error.to_string()))?.join().unwrap_or(Err(Error::Broke))
    })
}

fn convert_bytes(bytes: &[u8], name: &str, limits: &DocumentLimits) -> Result<Document, Error> {
    if bytes.len() as u64 > limits.input {
        return Err(Error::TooLarge(format!("it has {} bytes; the limit is {}", bytes.len(), limits.input)));
    }
    let kind = DocumentKind::detect(bytes, name)?;
    let draft = match kind {
        DocumentKind::Pdf => pdf::read(bytes, limits),
        DocumentKind::Docx | DocumentKind::Pptx => {
            archive::examine(bytes, limits)?;
            office::read(bytes, kind, limits)
        }
        DocumentKind::Doc | DocumentKind::Ppt => office::read(bytes, kind, limits),
        DocumentKind::Xlsx | DocumentKind::Xlsb => {
            archive::examine(bytes, limits)?;
            workbook::read(bytes, kind, limits)
        }
        DocumentKind::Xls => workbook::read(bytes, kind, limits),
        DocumentKind::Ods => ods::read(bytes, limits),
        DocumentKind::Odt | DocumentKind::Odp => odf::read(bytes, kind, limits),
        DocumentKind::Eml => mail::read(bytes, limits),
        DocumentKind::Msg => mail::read_outlook(bytes, limits),
        DocumentKind::Html => html::read(bytes, limits),
        DocumentKind::Csv => separated::read(bytes, b',', limits),
        DocumentKind::Tsv => separated::read(bytes, b'\t', limits),
        DocumentKind::Epub => epub::read(bytes, limits),
        DocumentKind::Rtf => rtf::read(bytes, limits),
    }?;
    draft.finish(kind)
}

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;
