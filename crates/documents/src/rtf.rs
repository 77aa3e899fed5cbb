//! Rich text: paragraphs, tables, lists, footnotes and headings of Word and WordPad, in any of their encodings.
//!
//! A file is a tree of groups. A control word changes the state of its group; an unknown group marked by `\*` is
//! omitted.

mod words;

use crate::{DocumentLimits, Error, draft::DocumentDraft};
use encoding_rs::Encoding;
use std::collections::HashMap;
use words::{RtfDestination, code_page, destination, font_charset, symbol};

/// Maximum length of a control word, in bytes.
const MAX_WORD: usize = 32;

pub(crate) fn read(bytes: &[u8], limits: &DocumentLimits) -> Result<DocumentDraft, Error> {
    let mut reader = RtfReader::new(limits);
    reader.read(bytes)?;
    Ok(reader.finish())
}

/// State of a group.
#[derive(Clone, Copy, Debug)]
struct RtfGroup {
    destination: RtfDestination,
    /// Encoding of the font.
    encoding: &'static Encoding,
    /// Number of characters after a `\u` that are meant for older readers.
    fallback: usize,
    is_hidden: bool,
    /// Whether the group is a note with an open bracket.
    is_note: bool,
    is_cell: bool,
    level: Option<usize>,
}

struct RtfReader<'a> {
    limits: &'a DocumentLimits,
    draft: DocumentDraft,
    groups: Vec<RtfGroup>,
    group: RtfGroup,
    /// Encoding of the file.
    encoding: &'static Encoding,
    fonts: HashMap<i32, &'static Encoding>,
    /// Font in the font table whose character set comes next.
    font: i32,
    /// Bytes of text that have not been decoded yet.
    pending: Vec<u8>,
    /// First half of a surrogate pair.
    high: Option<u16>,
    /// Number of remaining characters to skip, which are meant for older readers.
    skipped: usize,
    paragraph: String,
    /// Bullet or number of the current list item.
    label: String,
    row: Vec<String>,
    rows: usize,
    title: String,
    pictures: usize,
    margins: usize,
    /// Number of hidden and deleted characters.
    hidden: usize,
}

impl<'a> RtfReader<'a> {
    fn new(limits: &'a DocumentLimits) -> Self {
        let encoding = encoding_rs::WINDOWS_1252;
        let group = RtfGroup {
            destination: RtfDestination::Text,
            encoding,
            fallback: 1,
            is_hidden: false,
            is_note: false,
            is_cell: false,
            level: None,
        };
        Self {
            limits,
            draft: DocumentDraft::new(limits.output),
            groups: Vec::new(),
            group,
            encoding,
            fonts: HashMap::new(),
            font: 0,
            pending: Vec::new(),
            high: None,
            skipped: 0,
            paragraph: String::new(),
            label: String::new(),
            row: Vec::new(),
            rows: 0,
            title: String::new(),
            pictures: 0,
            margins: 0,
            hidden: 0,
        }
    }

    fn read(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let mut rest = bytes;
        while let Some((first, behind)) = rest.split_first() {
            rest = behind;
            match first {
                b'{' => self.open()?,
                b'}' => self.close(),
                b'\\' => rest = self.control(behind),
                b'\r' | b'\n' | 0 => {}
                byte => self.byte(*byte),
            }
            if self.draft.room() == 0 {
                break;
            }
        }
        self.flush();
        self.end_paragraph();
        Ok(())
    }

    fn finish(mut self) -> DocumentDraft {
        self.draft.set_title(Some(&self.title));
        for (count, what) in [
            (self.pictures, "pictures"),
            (self.margins, "page headers and footers"),
            (self.hidden, "hidden or deleted characters"),
        ] {
            if count > 0 {
                self.draft.warn(format!("{count} {what} in it are not shown"));
            }
        }
        self.draft
    }

    fn open(&mut self) -> Result<(), Error> {
        self.flush();
        self.skipped = 0;
        if self.groups.len() >= self.limits.depth {
            return Err(Error::TooLarge(format!(
                "its groups are nested more than {} deep",
                self.limits.depth
            )));
        }
        self.groups.push(self.group);
        self.group.is_note = false;
        Ok(())
    }

    fn close(&mut self) {
        self.flush();
        self.skipped = 0;
        let Some(outer) = self.groups.pop() else { return };
        let ended = std::mem::replace(&mut self.group, outer);
        if ended.is_note {
            self.paragraph.push(']');
        }
        if ended.destination == RtfDestination::Label && outer.destination != RtfDestination::Label {
            self.end_label(ended.is_hidden);
        }
    }

    /// Begins a list item. A bullet becomes a hyphen, because many bullets are symbols in a font that only the author
    /// has.
    fn end_label(&mut self, is_hidden: bool) {
        let label = std::mem::take(&mut self.label);
        let label = label.trim();
        let is_number = label.contains(char::is_alphanumeric);
        // LibreOffice writes an empty label before a heading.
        if !is_hidden && !label.is_empty() {
            self.paragraph.push_str(if is_number { label } else { "-" });
            self.paragraph.push(' ');
        }
    }

    /// Adds a byte of text.
    fn byte(&mut self, byte: u8) {
        if self.skipped > 0 {
            self.skipped -= 1;
        } else {
            self.pending.push(byte);
        }
    }

    /// Decodes the pending bytes. A character in an Asian encoding may consist of several bytes.
    fn flush(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let bytes = std::mem::take(&mut self.pending);
        let (text, _) = self.group.encoding.decode_without_bom_handling(&bytes);
        self.write(&text);
    }

    fn write(&mut self, text: &str) {
        match self.group.destination {
            RtfDestination::Title => self.title.push_str(text),
            RtfDestination::Label => self.label.push_str(text),
            RtfDestination::Text | RtfDestination::Footnote if self.group.is_hidden => {
                self.hidden += text.chars().filter(|sign| !sign.is_whitespace()).count();
            }
            RtfDestination::Text | RtfDestination::Footnote => self.paragraph.push_str(text),
            _ => {}
        }
    }

    /// Reads a control word or symbol after its backslash. Returns the remaining bytes.
    fn control<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let letters = bytes.iter().take(MAX_WORD).take_while(|byte| byte.is_ascii_alphabetic()).count();
        let (word, after) = bytes.split_at(letters);
        if letters == 0 {
            return self.sign(bytes);
        }
        let is_negative = after.first() == Some(&b'-');
        let number = after.get(usize::from(is_negative)..).unwrap_or_default();
        let digits = number.iter().take(10).take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, mut rest) = if digits == 0 { (&[][..], after) } else { number.split_at(digits) };
        let digits = std::str::from_utf8(digits).unwrap_or_default();
        let value = digits.parse::<i32>().ok().map(|value| if is_negative { -value } else { value });
        if let Some((b' ', after)) = rest.split_first() {
            rest = after;
        }
        let word = std::str::from_utf8(word).unwrap_or_default();
        if word == "bin" {
            let count = usize::try_from(value.unwrap_or(0)).unwrap_or(0);
            return rest.get(count..).unwrap_or_default();
        }
        if self.skipped > 0 && word != "u" {
            self.skipped -= 1;
            return rest;
        }
        self.flush();
        self.word(word, value);
        rest
    }

    fn sign<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let Some((sign, rest)) = bytes.split_first() else { return bytes };
        match sign {
            b'\'' => {
                let digits = rest.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
                let Some(byte) = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) else {
                    return rest;
                };
                self.byte(byte);
                return rest.get(2..).unwrap_or_default();
            }
            b'*' => {
                self.flush();
                self.group.destination = RtfDestination::Unknown;
            }
            b'\\' | b'{' | b'}' => self.byte(*sign),
            b'~' => self.byte(b' '),
            b'_' => self.byte(b'-'),
            b'\r' | b'\n' => self.word("par", None),
            _ => {}
        }
        rest
    }

    fn word(&mut self, word: &str, value: Option<i32>) {
        if let Some(found) = destination(word) {
            return self.enter(found, word);
        }
        match (word, value) {
            ("u", Some(value)) => return self.unicode(value),
            ("uc", Some(count)) => self.group.fallback = usize::try_from(count).unwrap_or(1).min(16),
            ("ansicpg", Some(page)) => self.set_encoding(code_page(page)),
            ("mac", _) => self.set_encoding(Some(encoding_rs::MACINTOSH)),
            ("f", Some(font)) => {
                self.font = font;
                if self.group.destination != RtfDestination::Fonts {
                    self.group.encoding = self.fonts.get(&font).copied().unwrap_or(self.encoding);
                }
            }
            ("fcharset", Some(charset)) if self.group.destination == RtfDestination::Fonts => {
                if let Some(encoding) = font_charset(charset) {
                    self.fonts.insert(self.font, encoding);
                }
            }
            ("v" | "deleted", value) => self.group.is_hidden = value != Some(0),
            ("plain", _) => {
                self.group.is_hidden = false;
                self.group.encoding = self.encoding;
            }
            ("pard", _) => (self.group.level, self.group.is_cell) = (None, false),
            ("intbl", value) => self.group.is_cell = value != Some(0),
            ("outlinelevel", Some(level)) => self.group.level = usize::try_from(level).ok(),
            _ => {}
        }
        if let Some(text) = symbol(word) {
            self.write(text);
        } else if matches!(self.group.destination, RtfDestination::Text | RtfDestination::Footnote) {
            self.structure(word);
        }
        self.high = None;
    }

    fn set_encoding(&mut self, encoding: Option<&'static Encoding>) {
        if let Some(encoding) = encoding {
            (self.encoding, self.group.encoding) = (encoding, encoding);
        }
    }

    /// Begins a destination, unless it is inside an omitted one.
    fn enter(&mut self, found: RtfDestination, word: &str) {
        let outer = self.groups.last().map_or(RtfDestination::Text, |group| group.destination);
        // The text of a box is in a group with an unknown destination.
        let is_box = word == "shptxt" && outer != RtfDestination::Picture;
        if !is_box && !matches!(outer, RtfDestination::Text | RtfDestination::Footnote | RtfDestination::Info)
        {
            self.group.destination = outer;
            return;
        }
        match found {
            RtfDestination::Picture => self.pictures += 1,
            RtfDestination::Margin => self.margins += 1,
            RtfDestination::Footnote if !self.group.is_hidden && !self.group.is_note => {
                self.group.is_note = true;
                self.paragraph.push_str(if word == "annotation" { " [comment: " } else { " [footnote: " });
            }
            _ => {}
        }
        self.group.destination = found;
    }

    fn unicode(&mut self, value: i32) {
        // Numbers above 32767 are written as negative ones.
        let unit = u16::try_from(value.rem_euclid(0x1_0000)).unwrap_or_default();
        let units: Vec<u16> = self.high.take().into_iter().chain([unit]).collect();
        if (0xd800..0xdc00).contains(&unit) {
            self.high = Some(unit);
        } else {
            self.write(&String::from_utf16_lossy(&units));
        }
        self.skipped = self.group.fallback;
    }

    fn structure(&mut self, word: &str) {
        match word {
            "par" | "sect" | "page" if self.group.is_cell => self.paragraph.push(' '),
            "par" | "sect" | "page" => self.end_paragraph(),
            "line" => self.paragraph.push_str(if self.group.is_cell { " " } else { "\n" }),
            "cell" | "nestcell" => self.row.push(std::mem::take(&mut self.paragraph)),
            "row" => self.end_row(),
            _ => {}
        }
    }

    fn end_paragraph(&mut self) {
        self.end_table();
        let text = std::mem::take(&mut self.paragraph);
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        match self.group.level.filter(|level| *level < 6) {
            Some(level) => {
                let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
                self.draft.push(&format!("{} {words}\n\n", "#".repeat(level + 1)));
            }
            None => self.draft.push(&format!("{text}\n\n")),
        }
    }

    fn end_row(&mut self) {
        let cells = std::mem::take(&mut self.row);
        if cells.is_empty() {
            return;
        }
        let cell = |cell: &String| {
            format!(" {} |", cell.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|"))
        };
        let line: String = cells.iter().map(cell).collect();
        self.draft.push(&format!("|{line}\n"));
        if self.rows == 0 {
            self.draft.push(&format!("|{}\n", " --- |".repeat(cells.len())));
        }
        self.rows += 1;
    }

    fn end_table(&mut self) {
        if !self.row.is_empty() {
            self.end_row();
        }
        if std::mem::take(&mut self.rows) > 0 {
            self.draft.push("\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Document, DocumentKind, DocumentLimits, Error, convert};
    use proptest::prelude::*;

    fn read(text: &[u8]) -> Result<Document, Error> {
        convert(text, "a.rtf", &DocumentLimits::default())
    }

    fn check(rtf: &str, expect: &str) {
        let document = read(rtf.as_bytes()).unwrap();
        assert_eq!((document.kind, document.markdown.as_str()), (DocumentKind::Rtf, expect), "{rtf}");
    }

    #[test]
    fn paragraphs_headings_tables_lists_and_footnotes_are_read() {
        check(
            "{\\rtf1\\ansi{\\fonttbl{\\f0 Arial;}}{\\stylesheet{\\s1 heading;}}{\\info{\\title A}{\\author B}}\\pard\\outlinelevel0 Plan\\par\\pard One\\line two \\b bold\\b0 .\\par}",
            "# Plan\n\nOne\ntwo bold.\n",
        );
        check(
            "{\\rtf1 \\trowd\\intbl a\\cell b|c\\cell\\row\\trowd\\intbl 1\\par 2\\cell 3\\cell\\row\\pard after\\par}",
            "| a | b\\|c |\n| --- | --- |\n| 1 2 | 3 |\n\nafter\n",
        );
        check(
            "{\\rtf1 {\\listtext\\'95\\tab}first\\par{\\listtext 2.\\tab}second\\par{\\listtext (c)\\tab}third\\par}",
            "- first\n\n2. second\n\n(c) third\n",
        );
        check(
            "{\\rtf1 {\\listtext\\pard\\plain \\u-3913\\'3f\\tab}first\\par{\\v{\\pntext 3}}second\\par}",
            "- first\n\nsecond\n",
        );
        check("{\\rtf1 \\outlinelevel0{\\listtext\\pard\\plain \\tab}Plan\\par}", "# Plan\n");
        check("{\\rtf1 word{\\footnote {\\super 1} a note} more\\par}", "word [footnote: 1 a note] more\n");
        check(
            "{\\rtf1 word{\\*\\atnid A}{\\*\\annotation{\\*\\atnref 1}{a {\\b remark}}} more\\par}",
            "word [comment: a remark] more\n",
        );
        check(
            "{\\rtf1 word{\\footnote a{\\footnote b}c} more\\par}",
            "word [footnote: a [footnote: b]c] more\n",
        );
        check("{\\rtf1 word{\\v{\\footnote a}b} more\\par}", "word more\n");
        check(
            "{\\rtf1 see {\\field{\\*\\fldinst HYPERLINK \"https://example.org\"}{\\fldrslt the page}}.\\par}",
            "see the page.\n",
        );
        check(
            "{\\rtf1 a \\{b\\} \\\\ c\\emdash d{\\v hidden}{\\*\\shpinst{\\shptxt box}}\\par}",
            "a {b} \\ c—dbox\n",
        );
    }

    #[test]
    fn text_is_decoded_with_the_encoding_of_the_file_or_font() {
        check("{\\rtf1\\ansi\\ansicpg1252 Pr\\'fcfung 3 \\'80\\par}", "Prüfung 3 €\n");
        check("{\\rtf1\\ansi\\ansicpg936 \\'d4\\'a4\\'cb\\'e3\\par}", "预算\n");
        check(
            "{\\rtf1\\ansi\\ansicpg1252{\\fonttbl{\\f0\\fcharset0 A;}{\\f1\\fcharset128 B;}}\\f0 a\\f1\\'83\\'47\\'83\\'89\\f0 b\\par}",
            "aエラb\n",
        );
        check("{\\rtf1\\ansi\\ansicpg1251 \\'cf\\'eb\\'e0\\'ed\\par}", "План\n");
        check("{\\rtf1\\uc1 \\u39044?\\u-31639? \\u-10179?\\u-8704?\\par}", "预葩 😀\n");
        check("{\\rtf1\\uc2 a\\u8364\\'80xb{\\uc0\\u8364 c}\\par}", "a€b€c\n");
    }

    #[test]
    fn omitted_parts_are_counted() {
        let document =
            read(b"{\\rtf1{\\header top}{\\pict\\pngblip 8950}{\\pict\\bin3 }}}}{\\v not {\\b this}}{\\deleted gone}}words\\par}")
                .unwrap();
        assert_eq!(document.markdown, "words\n");
        assert_eq!(
            document.warnings,
            [
                "2 pictures in it are not shown",
                "1 page headers and footers in it are not shown",
                "11 hidden or deleted characters in it are not shown"
            ]
        );
        let word = read(b"{\\rtf1{\\*\\shppict{\\pict{\\*\\picprop{\\sp a}}\\pngblip 8950}}{\\nonshppict{\\pict\\wmetafile8 01}}words\\par}").unwrap();
        assert_eq!(
            (word.markdown.as_str(), word.warnings),
            ("words\n", vec!["1 pictures in it are not shown".to_owned()])
        );
        assert!(matches!(read(b"{\\rtf1{\\pict 8950}}"), Err(Error::Empty)));
        let deep = format!("{{\\rtf1 {}", "{".repeat(100_000));
        assert!(matches!(read(deep.as_bytes()), Err(Error::TooLarge(_))));
    }

    /// Symbols and control words of rich text.
    const PIECE: &str = concat!(
        r"\{|\}|words|\\(\*|~|\\|\n|'[0-9a-f]{0,2}|(ansicpg|mac|u|uc|bin|f|fonttbl|fcharset|v|deleted|plain",
        r"|pard|par|line|tab|intbl|cell|nestcell|row|outlinelevel|footnote|annotation|pict|shppict|nonshppict|shptxt",
        r"|header|info|title|fldinst|fldrslt)(-?[0-9]{1,10})? ?)"
    );

    proptest! {
        #[test]
        fn arbitrary_rich_text_is_read(parts in prop::collection::vec(prop_oneof![
            5 => PIECE.prop_map(String::into_bytes),
            1 => prop::collection::vec(any::<u8>(), 0..5),
        ], 0..100)) {
            let _ = read(&[&b"{\\rtf1"[..], &parts.concat()].concat());
        }
    }
}
