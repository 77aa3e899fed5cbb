//! Decodes bytes and encodes text in common encodings. All readers use this detection.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, GB18030, GBK, ISO_2022_JP, UTF_8, UTF_16BE, UTF_16LE};

/// Maximum size of the sample used to guess an encoding, in bytes.
const MAX_SAMPLE_BYTES: usize = 256 * 1024;
/// Length of the beginning that may declare an encoding, in bytes.
const DECLARATION_BYTES: usize = 2048;
/// Minimum number of valid multi-byte UTF-8 sequences per invalid one. A file with fewer has another encoding.
const VALID_PER_BROKEN: usize = 2;
const UTF8_BOM: &[u8] = b"\xEF\xBB\xBF";

/// A text file in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextFile {
    /// Bytes of the file; `None` if they equal the text's.
    bytes: Option<Vec<u8>>,
    /// Text without the byte order mark. Invalid sequences are U+FFFD.
    pub text: String,
    /// Encoding of the file.
    pub encoding: TextEncoding,
}

/// Encoding of a text file, with its byte order mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextEncoding {
    encoding: &'static Encoding,
    bom: bool,
}

/// Reason why a file is not text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotText {
    /// The file contains bytes that text does not have.
    #[error("it is binary")]
    Binary,
    /// The file's encoding is not supported.
    #[error("it is in UTF-32: convert it with `iconv -f UTF-32 -t UTF-8`")]
    Utf32,
}

/// Reason why a text cannot be written in a file's encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The encoding does not have this character.
    #[error(
        "its encoding, {encoding}, cannot represent {character:?}: omit the character, or convert the file to UTF-8 first"
    )]
    Character {
        /// The character.
        character: char,
        /// Name of the encoding.
        encoding: &'static str,
    },
    /// Bytes of the changed lines would not be preserved.
    #[error(
        "the lines to change contain bytes that are not valid {0} and would be lost: change the file with bash, or convert it first"
    )]
    Bytes(&'static str),
}

impl TextFile {
    /// Decodes a file according to its byte order mark, as UTF-8 if it is valid, according to its declaration, or by
    /// guessing.
    ///
    /// # Errors
    /// When the file is not text.
    pub fn read(bytes: Vec<u8>) -> Result<Self, NotText> {
        let encoding = detect(&bytes)?;
        if encoding.is_utf8() && !encoding.bom {
            return Ok(match String::from_utf8(bytes) {
                Ok(text) => Self { bytes: None, text, encoding },
                Err(error) => Self {
                    text: String::from_utf8_lossy(error.as_bytes()).into_owned(),
                    bytes: Some(error.into_bytes()),
                    encoding,
                },
            });
        }
        Ok(Self { text: encoding.decode(&bytes), bytes: Some(bytes), encoding })
    }

    /// Returns the bytes of the file.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.as_deref().unwrap_or(self.text.as_bytes())
    }

    /// Returns whether the file has bytes that are invalid in its encoding, which are U+FFFD in the text.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        self.bytes.as_deref().is_some_and(|bytes| !reads(self.encoding.encoding, bytes))
    }

    /// Returns the bytes for a new text in the file's encoding. Lines before and after the change keep their bytes.
    ///
    /// # Errors
    /// When the encoding cannot hold the text, or the changed lines would lose bytes.
    pub fn with_text(&self, text: &str) -> Result<Vec<u8>, EncodeError> {
        let kept = if self.encoding.keeps_line_feeds() {
            common_lines(&self.text, text)
        } else {
            Default::default()
        };
        let (head, old, tail) = split_lines(self.bytes(), kept);
        let (_, old_text, _) = split_lines(self.text.as_bytes(), kept);
        let (_, new_text, _) = split_lines(text.as_bytes(), kept);
        let bom = self.encoding.bom && head.is_empty();
        // Both are cut only at line feeds, so they are valid UTF-8.
        let (old_text, new_text) = (String::from_utf8_lossy(old_text), String::from_utf8_lossy(new_text));
        if self.encoding.encode(&old_text, bom).as_deref() != Ok(old) {
            return Err(EncodeError::Bytes(self.encoding.name()));
        }
        Ok([head, &self.encoding.encode(&new_text, bom)?, tail].concat())
    }
}

/// Returns the number of whole lines that two texts have in common at their beginning and at their end.
fn common_lines(old: &str, new: &str) -> (usize, usize) {
    let (old, new) = (old.as_bytes(), new.as_bytes());
    let line_feeds = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'\n').count();
    let before = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let (head, rest) = old.split_at(before);
    let room = rest.len().min(new.len() - before);
    let both = old.iter().rev().zip(new.iter().rev());
    let after = both.take(room).take_while(|(old, new)| old == new).count();
    (line_feeds(head), line_feeds(old.split_at(old.len() - after).1))
}

/// Splits text after its line feed number `before`, and after its line feed number `after` from the end.
fn split_lines(bytes: &[u8], (before, after): (usize, usize)) -> (&[u8], &[u8], &[u8]) {
    let nth = |count: usize| bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').nth(count);
    let nth_back =
        |count: usize| bytes.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n').nth(count);
    let start = before.checked_sub(1).and_then(nth).map_or(0, |(at, _)| at + 1);
    let end = after.checked_sub(1).and_then(nth_back).map_or(bytes.len(), |(at, _)| at + 1);
    let (rest, tail) = bytes.split_at(end.max(start));
    let (head, middle) = rest.split_at(start);
    (head, middle, tail)
}

impl TextEncoding {
    /// Returns the name of the encoding.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.encoding.name()
    }

    /// Returns whether the encoding is UTF-8, with or without a byte order mark.
    #[must_use]
    pub fn is_utf8(self) -> bool {
        self.encoding == UTF_8
    }

    /// Encodes text that is appended to a file.
    ///
    /// # Errors
    /// When the encoding cannot hold the text.
    pub fn encode_addition(self, text: &str) -> Result<Vec<u8>, EncodeError> {
        self.encode(text, false)
    }

    fn decode(self, bytes: &[u8]) -> String {
        self.encoding.decode_with_bom_removal(bytes).0.into_owned()
    }

    fn encode(self, text: &str, bom: bool) -> Result<Vec<u8>, EncodeError> {
        let wide = |bytes: fn(u16) -> [u8; 2]| {
            let mark = bom.then_some('\u{FEFF}');
            let units = mark.into_iter().chain(text.chars()).flat_map(|c| {
                let mut units = [0; 2];
                c.encode_utf16(&mut units).to_vec()
            });
            units.flat_map(bytes).collect::<Vec<u8>>()
        };
        if self.encoding == UTF_16LE {
            return Ok(wide(u16::to_le_bytes));
        }
        if self.encoding == UTF_16BE {
            return Ok(wide(u16::to_be_bytes));
        }
        if self.encoding == UTF_8 {
            return Ok([if bom { UTF8_BOM } else { &[] }, text.as_bytes()].concat());
        }
        let (bytes, _, unmappable) = self.encoding.encode(text);
        if unmappable {
            let character = text.chars().find(|c| self.encoding.encode(c.encode_utf8(&mut [0; 4])).2);
            let character = character.unwrap_or(char::REPLACEMENT_CHARACTER);
            return Err(EncodeError::Character { character, encoding: self.encoding.name() });
        }
        Ok(bytes.into_owned())
    }

    /// Returns whether a byte 0x0A is always a line feed, so that lines can be decoded separately.
    fn keeps_line_feeds(self) -> bool {
        ![UTF_16LE, UTF_16BE, ISO_2022_JP].contains(&self.encoding)
    }
}

/// Decodes any bytes as text. Invalid sequences become U+FFFD.
#[must_use]
pub fn decode(bytes: &[u8]) -> String {
    match detect(bytes) {
        Ok(encoding) => encoding.decode(bytes),
        Err(_) => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// Detects the encoding of a text.
fn detect(bytes: &[u8]) -> Result<TextEncoding, NotText> {
    if bytes.starts_with(b"\xFF\xFE\0\0") || bytes.starts_with(b"\0\0\xFE\xFF") {
        return Err(NotText::Utf32);
    }
    if let Some((encoding, _)) = Encoding::for_bom(bytes) {
        return Ok(TextEncoding { encoding, bom: true });
    }
    let plain = |encoding| Ok(TextEncoding { encoding, bom: false });
    let valid = std::str::from_utf8(bytes).is_ok();
    let nulls = bytes.iter().filter(|byte| **byte == 0).count();
    if nulls > 0 {
        return match utf16(bytes) {
            Some(encoding) => plain(encoding),
            None if valid && nulls.saturating_mul(100) <= bytes.len() => plain(UTF_8),
            None => Err(NotText::Binary),
        };
    }
    if valid {
        let shifted = ["\x1B$B", "\x1B$@"].iter().any(|escape| contains(bytes, escape.as_bytes()));
        return plain(if shifted && reads(ISO_2022_JP, bytes) { ISO_2022_JP } else { UTF_8 });
    }
    if is_binary(bytes) {
        return Err(NotText::Binary);
    }
    if is_mostly_utf8(bytes) {
        return plain(UTF_8);
    }
    let encoding =
        declared(bytes).filter(|encoding| reads(encoding, bytes)).unwrap_or_else(|| guessed(bytes));
    // Programs that support only GBK cannot read GB18030's additional characters.
    plain(if encoding == GBK && !comes_back(GBK, bytes) { GB18030 } else { encoding })
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Returns whether all sequences of a text are valid in an encoding.
fn reads(encoding: &'static Encoding, bytes: &[u8]) -> bool {
    encoding.decode_without_bom_handling_and_without_replacement(bytes).is_some()
}

fn comes_back(encoding: &'static Encoding, bytes: &[u8]) -> bool {
    let text = encoding.decode_without_bom_handling_and_without_replacement(bytes);
    text.is_some_and(|text| *encoding.encode(&text).0 == *bytes)
}

/// Returns whether bytes contain too many control characters for a text file.
fn is_binary(bytes: &[u8]) -> bool {
    let control = |byte: &&u8| matches!(**byte, 0x01..=0x06 | 0x0E..=0x1A | 0x1C..=0x1F | 0x7F);
    bytes.iter().filter(control).count().saturating_mul(100) > bytes.len()
}

/// Returns whether a text is UTF-8 with a few invalid sequences.
fn is_mostly_utf8(bytes: &[u8]) -> bool {
    let (mut valid, mut broken) = (0_usize, 0_usize);
    for chunk in bytes.utf8_chunks() {
        valid += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        broken += usize::from(!chunk.invalid().is_empty());
    }
    valid >= broken.saturating_mul(VALID_PER_BROKEN)
}

/// Detects UTF-16 without a byte order mark, in a text that has NUL bytes.
pub(crate) fn utf16(bytes: &[u8]) -> Option<&'static Encoding> {
    [UTF_16LE, UTF_16BE].into_iter().find(|encoding| {
        let text = encoding.decode_without_bom_handling_and_without_replacement(bytes);
        text.is_some_and(|text| is_prose(&text))
    })
}

/// Returns whether a text consists of characters from living scripts and includes ASCII characters.
fn is_prose(text: &str) -> bool {
    let usual = |c: char| {
        matches!(c, '\t' | '\n' | '\r' | ' '..='~' | '\u{A0}'..='\u{24F}' | '\u{370}'..='\u{5FF}'
            | '\u{600}'..='\u{6FF}' | '\u{900}'..='\u{97F}' | '\u{E00}'..='\u{E7F}' | '\u{1E00}'..='\u{1EFF}'
            | '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205E}' | '\u{20A0}'..='\u{20BF}' | '\u{2100}'..='\u{22FF}'
            | '\u{2460}'..='\u{27BF}' | '\u{3000}'..='\u{30FF}' | '\u{3200}'..='\u{33FF}' | '\u{4E00}'..='\u{9FFF}'
            | '\u{AC00}'..='\u{D7A3}' | '\u{FF01}'..='\u{FFEE}' | '\u{1F300}'..='\u{1FAFF}')
    };
    let (mut count, mut odd, mut ascii) = (0_usize, 0_usize, 0_usize);
    for c in text.chars() {
        count += 1;
        odd += usize::from(!usual(c));
        ascii += usize::from(c.is_ascii());
    }
    ascii > 0 && odd.saturating_mul(50) <= count
}

/// Returns the encoding that a page, a document or a program declares in its head.
fn declared(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = bytes.get(..DECLARATION_BYTES).unwrap_or(bytes);
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    ["charset", "coding"].iter().find_map(|word| {
        let (_, said) = head.split_once(word)?;
        let label = said.trim_start().strip_prefix(['=', ':'])?.trim_start_matches(['"', '\'', ' ']);
        let end = label.find(|c: char| !c.is_ascii_alphanumeric() && !"-_:.".contains(c));
        Encoding::for_label(label.get(..end.unwrap_or(label.len()))?.as_bytes())
    })
}

/// Guesses the encoding from the first non-ASCII part of a text.
fn guessed(bytes: &[u8]) -> &'static Encoding {
    let first = bytes.iter().position(|byte| !byte.is_ascii()).unwrap_or(0);
    let before = bytes.get(..first).unwrap_or_default();
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let rest = bytes.get(start..).unwrap_or_default();
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(rest.get(..MAX_SAMPLE_BYTES).unwrap_or(rest), rest.len() <= MAX_SAMPLE_BYTES);
    detector.guess(None, Utf8Detection::Allow)
}

#[cfg(test)]
mod tests;
