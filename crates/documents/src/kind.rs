//! Detects the kind of a file from its content. The name matters only for formats without a signature.

use crate::{Error, archive::Archive, text};
use serde::{Deserialize, Serialize};

/// Length of the beginning that reveals whether a file may be a document, in bytes.
const HEAD: usize = 4096;

/// Kind of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DocumentKind {
    /// PDF.
    Pdf,
    /// Word.
    Docx,
    /// Word, before 2007.
    Doc,
    /// PowerPoint.
    Pptx,
    /// PowerPoint, before 2007.
    Ppt,
    /// Excel.
    Xlsx,
    /// Excel, binary.
    Xlsb,
    /// Excel, before 2007.
    Xls,
    /// OpenDocument spreadsheet.
    Ods,
    /// OpenDocument text.
    Odt,
    /// OpenDocument presentation.
    Odp,
    /// E-mail.
    Eml,
    /// E-mail as stored by Outlook.
    Msg,
    /// A web page.
    Html,
    /// Comma-separated values.
    Csv,
    /// Tab-separated values.
    Tsv,
    /// An e-book.
    Epub,
    /// Rich text.
    Rtf,
}

const OLE: &[u8] = b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1";
const ZIP: &[u8] = b"PK\x03\x04";
/// Extensions of documents that cannot be text.
const ENDINGS: [&str; 13] =
    ["pdf", "docx", "doc", "pptx", "ppt", "xlsx", "xls", "ods", "odt", "odp", "epub", "eml", "msg"];
/// Name of a stream in Outlook's e-mails.
const OUTLOOK_STREAM: &str = "__properties_version1.0";
const OPEN_DOCUMENT: &str = "application/vnd.oasis.opendocument.";
/// Names of headers that an e-mail may begin with.
const HEADERS: [&str; 12] = [
    "from",
    "to",
    "subject",
    "date",
    "received",
    "return-path",
    "delivered-to",
    "mime-version",
    "message-id",
    "reply-to",
    "sender",
    "content-type",
];

const RTF: &[u8] = b"{\\rtf";

impl DocumentKind {
    /// Returns the display name.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Pdf => "PDF",
            Self::Docx | Self::Doc => "Word document",
            Self::Pptx | Self::Ppt => "PowerPoint presentation",
            Self::Xlsx | Self::Xlsb | Self::Xls => "Excel workbook",
            Self::Ods => "spreadsheet",
            Self::Odt => "OpenDocument text",
            Self::Odp => "OpenDocument presentation",
            Self::Eml | Self::Msg => "mail",
            Self::Html => "web page",
            Self::Csv | Self::Tsv => "table",
            Self::Epub => "book",
            Self::Rtf => "rich text",
        }
    }

    /// Describes a number of parts for users.
    #[must_use]
    pub fn parts(self, count: usize) -> String {
        let part = match self {
            Self::Pptx | Self::Ppt | Self::Odp => "slide",
            Self::Xlsx | Self::Xlsb | Self::Xls | Self::Ods => "sheet",
            Self::Epub => "chapter",
            _ => "page",
        };
        format!("{count} {part}{}", if count == 1 { "" } else { "s" })
    }

    /// Returns whether a file may be a document, judging by its first bytes and its name. Other files need not be read
    /// further.
    #[must_use]
    pub fn may_be_document(bytes: &[u8], name: &str) -> bool {
        let head = bytes.get(..HEAD).unwrap_or(bytes);
        let marked = [OLE, ZIP, RTF].iter().any(|mark| head.starts_with(mark));
        marked
            || is_pdf(head)
            || is_html(head, name)
            || is_mail(head, ending(name) == "eml")
            || separated(head, name).is_some()
            || named(name).is_some()
    }

    pub(crate) fn detect(bytes: &[u8], name: &str) -> Result<Self, Error> {
        let head = bytes.get(..HEAD).unwrap_or(bytes);
        if is_pdf(head) {
            return Ok(Self::Pdf);
        }
        if head.starts_with(ZIP) {
            return zipped(bytes);
        }
        if head.starts_with(OLE) {
            return compound(bytes);
        }
        if head.starts_with(RTF) {
            return Ok(Self::Rtf);
        }
        if is_mail(head, ending(name) == "eml") {
            return Ok(Self::Eml);
        }
        if is_html(head, name) {
            return Ok(Self::Html);
        }
        separated(head, name).ok_or_else(|| match named(name) {
            Some(ending) => Error::Refused(format!("its content does not match a .{ending} file")),
            None => Error::Unknown,
        })
    }
}

/// Returns the extension of a file if it belongs to a document format.
fn named(name: &str) -> Option<&'static str> {
    let ending = name.rsplit_once('.')?.1.to_ascii_lowercase();
    ENDINGS.into_iter().find(|known| *known == ending)
}

/// Returns whether a file is a PDF. Readers accept the signature anywhere in the first kilobyte.
fn is_pdf(head: &[u8]) -> bool {
    let head = head.get(..1024).unwrap_or(head);
    head.windows(5).any(|window| window == b"%PDF-")
}

fn is_html(head: &[u8], name: &str) -> bool {
    let text = String::from_utf8_lossy(head).replace('\0', "").to_ascii_lowercase();
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || "\u{feff}\u{fffd}".contains(c));
    let has_html_name = ["html", "htm", "xhtml"].contains(&ending(name).as_str());
    let marked = text.starts_with("<!doctype html") || text.starts_with("<html");
    marked || (text.starts_with('<') && (has_html_name || text.contains("<html")))
}

/// Detects separated values, which have no signature, by the name, unless the bytes contradict it.
fn separated(head: &[u8], name: &str) -> Option<DocumentKind> {
    let kind = match ending(name).as_str() {
        "csv" => DocumentKind::Csv,
        "tsv" | "tab" => DocumentKind::Tsv,
        _ => return None,
    };
    let wide =
        || head.starts_with(b"\xFF\xFE") || head.starts_with(b"\xFE\xFF") || text::utf16(head).is_some();
    (!head.contains(&0) || wide()).then_some(kind)
}

fn ending(name: &str) -> String {
    name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase()).unwrap_or_default()
}

fn zipped(bytes: &[u8]) -> Result<DocumentKind, Error> {
    let archive = Archive::open(bytes)?;
    match archive.names().find(|name| name == "mimetype").and_then(|_| archive.peek("mimetype")) {
        Some(mime) if mime.starts_with("application/epub+zip") => return Ok(DocumentKind::Epub),
        Some(mime) if mime.starts_with(OPEN_DOCUMENT) => {
            let kind = mime.strip_prefix(OPEN_DOCUMENT).unwrap_or_default();
            return match kind.trim_end_matches("-template") {
                kind if kind.starts_with("spreadsheet") => Ok(DocumentKind::Ods),
                kind if kind.starts_with("text") => Ok(DocumentKind::Odt),
                kind if kind.starts_with("presentation") => Ok(DocumentKind::Odp),
                _ => {
                    let text = "this kind of OpenDocument is not supported: save it as .odt, .odp or PDF";
                    Err(Error::Refused(text.to_owned()))
                }
            };
        }
        _ => {}
    }
    let mut names = archive.names();
    let found = names.find_map(|name| match name.as_str() {
        "word/document.xml" | "word/document2.xml" => Some(DocumentKind::Docx),
        "ppt/presentation.xml" => Some(DocumentKind::Pptx),
        "xl/workbook.xml" => Some(DocumentKind::Xlsx),
        "xl/workbook.bin" => Some(DocumentKind::Xlsb),
        "META-INF/container.xml" => Some(DocumentKind::Epub),
        _ => None,
    });
    found.ok_or(Error::Unknown)
}

fn compound(bytes: &[u8]) -> Result<DocumentKind, Error> {
    match undoc::detect_format_from_bytes(bytes) {
        Ok(undoc::FormatType::Doc) => Ok(DocumentKind::Doc),
        Ok(undoc::FormatType::Ppt) => Ok(DocumentKind::Ppt),
        Ok(undoc::FormatType::Xls) => Ok(DocumentKind::Xls),
        Err(undoc::Error::Encrypted) => Err(Error::Protected),
        _ if is_outlook(bytes) => Ok(DocumentKind::Msg),
        // An installer, or an unknown file.
        _ => Err(Error::Unknown),
    }
}

/// Returns whether a compound file is an Outlook e-mail.
fn is_outlook(bytes: &[u8]) -> bool {
    let name: Vec<u8> = OUTLOOK_STREAM.encode_utf16().flat_map(u16::to_le_bytes).collect();
    bytes.windows(name.len()).any(|window| window == name)
}

/// Returns whether a file begins like an e-mail. If its name is not an e-mail's, it must have headers that only e-mails
/// have.
fn is_mail(head: &[u8], has_mail_name: bool) -> bool {
    let head = String::from_utf8_lossy(head);
    let head = head.trim_start_matches('\u{FEFF}').trim_start();
    let known = |line: &str| {
        let name = line.split_once(':')?.0.to_ascii_lowercase();
        HEADERS.iter().copied().find(|header| *header == name)
    };
    let lines = head.lines().take_while(|line| !line.trim().is_empty());
    let headers: Vec<&str> = lines.filter(|line| !line.starts_with([' ', '\t'])).filter_map(known).collect();
    let has = |name: &str| headers.contains(&name);
    match has_mail_name {
        true => has("from") || has("received") || headers.len() > 1,
        false => {
            has("from") && (has("received") || has("message-id") || (has("mime-version") && has("date")))
        }
    }
}
