//! Rewrites parts of a Word document into forms that the reader supports: formulas, diagrams and comments become text,
//! moved and deleted text is removed, and rows get the cells that they skip.

use super::{diagram, math};
use crate::{
    package::Relationship,
    xml::{Element, attribute},
};
use quick_xml::{
    Reader, Writer,
    events::{BytesStart, BytesText, Event},
};
use std::collections::BTreeMap;

/// Markup that requires rewriting a part.
const MARKS: [&str; 11] = [
    "oMath",
    ":relIds",
    "w:moveFrom",
    "w:moveTo",
    "w:commentReference",
    "w:gridBefore",
    "w:gridAfter",
    "<w:del ",
    "<w:sym ",
    "<w:altChunk",
    "<v:textpath ",
];
/// Maximum number of cells that a row skips.
const MAX_SKIPPED_CELLS: usize = 63;
/// Characters of the fonts Wingdings and Symbol that forms and lists use, by code.
const SYMBOLS: [(u32, &str); 22] = [
    (0x22, "∀"),
    (0x61, "α"),
    (0x62, "β"),
    (0x67, "γ"),
    (0x64, "δ"),
    (0x6C, "●"),
    (0x6E, "■"),
    (0x6F, "□"),
    (0x70, "□"),
    (0x71, "❑"),
    (0x76, "❖"),
    (0xA7, "▪"),
    (0xA8, "☐"),
    (0xB7, "•"),
    (0xD8, "➢"),
    (0xDF, "←"),
    (0xE0, "→"),
    (0xF0, "⇨"),
    (0xFB, "✗"),
    (0xFC, "✓"),
    (0xFD, "☒"),
    (0xFE, "☑"),
];

/// Texts for the placeholders in a document, and counts of omitted content.
#[derive(Default)]
pub(crate) struct Inserts {
    texts: Vec<String>,
    pub(crate) deletions: usize,
    pub(crate) unread_diagrams: usize,
    pub(crate) unread_symbols: usize,
    pub(crate) unread_chunks: usize,
}

impl Inserts {
    /// Returns a placeholder that the Markdown conversion leaves unchanged.
    pub(crate) fn placeholder(&mut self, text: String) -> String {
        self.texts.push(text);
        format!("\u{FDD0}{}\u{FDD1}", self.texts.len() - 1)
    }

    /// Replaces the placeholders with their texts.
    pub(crate) fn fill(&self, markdown: &str) -> String {
        let mut parts = markdown.split('\u{FDD0}');
        let mut filled = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            match part
                .split_once('\u{FDD1}')
                .and_then(|(at, rest)| Some((self.texts.get(at.parse::<usize>().ok()?)?, rest)))
            {
                Some((text, rest)) => filled.extend([text, rest]),
                None => filled.push_str(part),
            }
        }
        filled
    }
}

/// Part of a Word document.
pub(crate) struct WordPart<'a> {
    pub(crate) relationships: BTreeMap<String, Relationship>,
    /// Returns the text of a diagram's data part, given the part's name.
    pub(crate) diagrams: &'a dyn Fn(&str) -> Option<String>,
    /// Labels of comments, by comment ID.
    pub(crate) comments: &'a BTreeMap<String, String>,
}

impl WordPart<'_> {
    /// Rewrites a part. Returns `None` if nothing has to be rewritten, or the part is malformed.
    pub(crate) fn rewrite(&self, xml: &str, inserts: &mut Inserts) -> Option<String> {
        if !MARKS.iter().any(|mark| xml.contains(mark)) {
            return None;
        }
        let mut reader = Reader::from_str(xml);
        reader.config_mut().check_end_names = false;
        let mut rewriter = Rewriter {
            part: self,
            inserts,
            writer: Writer::new(Vec::new()),
            rows: Vec::new(),
            row: None,
            paragraphs: 0,
        };
        loop {
            let start = usize::try_from(reader.buffer_position()).ok()?;
            match reader.read_event().ok()? {
                Event::Eof => break,
                Event::Start(tag) => rewriter.start(tag, &mut reader, xml, start)?,
                Event::Empty(tag) => rewriter.empty(tag)?,
                Event::End(tag) => {
                    let name = tag.name();
                    rewriter.end(name.as_ref())?;
                    if name.as_ref() != "w:moveTo" {
                        rewriter.write(Event::End(tag.clone()))?;
                    }
                }
                event => rewriter.write(event)?,
            }
        }
        String::from_utf8(rewriter.writer.into_inner()).ok()
    }
}

struct Rewriter<'a, 'i> {
    part: &'a WordPart<'a>,
    inserts: &'i mut Inserts,
    writer: Writer<Vec<u8>>,
    /// Number of cells that each open row skips at its end.
    rows: Vec<usize>,
    /// Start tag of a row whose properties have not been read yet.
    row: Option<BytesStart<'a>>,
    /// Number of open paragraphs.
    paragraphs: usize,
}

impl<'a> Rewriter<'a, '_> {
    fn write(&mut self, event: Event<'_>) -> Option<()> {
        if let Some(row) = self.row.take() {
            self.writer.write_event(Event::Start(row)).ok()?;
            self.rows.push(0);
        }
        self.writer.write_event(event).ok()
    }

    fn start(
        &mut self,
        tag: BytesStart<'a>,
        reader: &mut Reader<&'a [u8]>,
        xml: &'a str,
        start: usize,
    ) -> Option<()> {
        match tag.name().as_ref() {
            "w:moveFrom" | "w:del" => {
                self.inserts.deletions += 1;
                reader.read_to_end(tag.name()).ok().map(drop)
            }
            "w:moveTo" => Some(()),
            "w:tblPrEx" => reader.read_to_end(tag.name()).ok().map(drop),
            "w:tr" => {
                // A row without properties inside another row.
                self.write(Event::Text(BytesText::new("")))?;
                self.row = Some(tag);
                Some(())
            }
            "w:trPr" => {
                let properties = Element::read(reader, &tag);
                let end = usize::try_from(reader.buffer_position()).ok()?;
                self.row_properties(&properties, reader, xml.get(start..end)?)
            }
            "w:commentReference" => {
                self.comment(&tag)?;
                reader.read_to_end(tag.name()).ok().map(drop)
            }
            _ if matches!(tag.local_name().as_ref(), "oMath" | "oMathPara") => {
                let formula = math::latex(&Element::read(reader, &tag));
                self.run(formula)
            }
            name => {
                self.paragraphs += usize::from(name == "w:p");
                self.write(Event::Start(tag.clone()))
            }
        }
    }

    fn empty(&mut self, tag: BytesStart<'a>) -> Option<()> {
        match tag.name().as_ref() {
            "w:commentReference" => self.comment(&tag),
            "w:sym" => self.symbol(&tag),
            "w:moveFrom" | "w:moveTo" | "w:tblPrEx" => Some(()),
            "v:textpath" => self.word_art(&tag),
            "w:altChunk" => {
                self.inserts.unread_chunks += 1;
                Some(())
            }
            _ if tag.local_name().as_ref() == "relIds" => self.diagram(&tag),
            _ => self.write(Event::Empty(tag)),
        }
    }

    fn end(&mut self, name: &str) -> Option<()> {
        match name {
            "w:p" => self.paragraphs = self.paragraphs.saturating_sub(1),
            "w:tr" => {
                self.write(Event::Text(BytesText::new("")))?;
                let skipped = self.rows.pop().unwrap_or(0);
                self.cells(skipped)?;
            }
            _ => {}
        }
        Some(())
    }

    /// Writes the properties of a row, and the cells that it skips at its beginning. A deleted row is omitted.
    fn row_properties(
        &mut self,
        properties: &Element,
        reader: &mut Reader<&'a [u8]>,
        raw: &str,
    ) -> Option<()> {
        if properties.child("del").is_some()
            && let Some(row) = self.row.take()
        {
            self.inserts.deletions += 1;
            return reader.read_to_end(row.name()).ok().map(drop);
        }
        let skipped = |name| {
            let count =
                properties.child(name).and_then(|cells| cells.attribute("val")?.parse::<usize>().ok());
            count.unwrap_or(0).min(MAX_SKIPPED_CELLS)
        };
        self.write(Event::Text(BytesText::from_escaped(raw)))?;
        if let Some(after) = self.rows.last_mut() {
            *after = skipped("gridAfter");
        }
        self.cells(skipped("gridBefore"))
    }

    fn cells(&mut self, count: usize) -> Option<()> {
        self.write(Event::Text(BytesText::from_escaped("<w:tc><w:p/></w:tc>".repeat(count))))
    }

    /// Writes a text that the Markdown conversion leaves unchanged, as a separate run.
    fn run(&mut self, text: String) -> Option<()> {
        let placeholder = self.inserts.placeholder(text);
        let run = format!("<w:r><w:t xml:space=\"preserve\">{placeholder}</w:t></w:r>");
        let run = if self.paragraphs == 0 { format!("<w:p>{run}</w:p>") } else { run };
        self.write(Event::Text(BytesText::from_escaped(run)))
    }

    /// Writes a text that the Markdown conversion leaves unchanged, inside a run.
    fn inside(&mut self, text: String) -> Option<()> {
        let placeholder = self.inserts.placeholder(text);
        let text = format!("<w:t xml:space=\"preserve\">{placeholder}</w:t>");
        self.write(Event::Text(BytesText::from_escaped(text)))
    }

    fn comment(&mut self, tag: &BytesStart<'_>) -> Option<()> {
        let label = attribute(tag, "id").and_then(|id| self.part.comments.get(&id));
        label.map_or(Some(()), |label| self.inside(format!("[^{label}]")))
    }

    fn diagram(&mut self, tag: &BytesStart<'_>) -> Option<()> {
        let part = attribute(tag, "dm").and_then(|id| self.part.relationships.get(&id));
        let texts =
            part.and_then(|part| (self.part.diagrams)(&part.target)).map(|data| diagram::texts(&data));
        match texts.filter(|texts| !texts.is_empty()) {
            Some(texts) => {
                let line = diagram::line(&texts).replace('|', "\\|");
                self.inside(format!("[diagram: {line}]"))
            }
            None => {
                self.inserts.unread_diagrams += 1;
                Some(())
            }
        }
    }

    /// Writes the text of WordArt.
    fn word_art(&mut self, tag: &BytesStart<'_>) -> Option<()> {
        let words = attribute(tag, "string").unwrap_or_default();
        let words = BytesText::new(&words).into_inner().into_owned();
        self.write(Event::Text(BytesText::from_escaped(format!("<w:t xml:space=\"preserve\">{words}</w:t>"))))
    }

    fn symbol(&mut self, tag: &BytesStart<'_>) -> Option<()> {
        let code = attribute(tag, "char").and_then(|code| u32::from_str_radix(&code, 16).ok()).unwrap_or(0);
        // The characters of symbol fonts may also be in the private use area.
        let code = if (0xF000..=0xF0FF).contains(&code) { code - 0xF000 } else { code };
        match SYMBOLS.iter().find(|(known, _)| *known == code) {
            Some((_, text)) => self.write(Event::Text(BytesText::from_escaped(format!("<w:t>{text}</w:t>")))),
            None => {
                self.inserts.unread_symbols += 1;
                Some(())
            }
        }
    }
}

/// Returns the comments of a document, each with its ID, its label, and its text for the end of the Markdown.
pub(crate) fn comments(xml: &str) -> Vec<(String, String, String)> {
    let tree = Element::parse(xml);
    let comments = tree.all("comment");
    let described = comments.iter().enumerate().map(|(at, comment)| {
        let label = format!("comment{}", at + 1);
        let author = comment.attribute("author").filter(|author| !author.is_empty()).unwrap_or("unknown");
        let date = comment.attribute("date").and_then(|date| date.get(..10)).map(|date| format!(", {date}"));
        let text =
            format!("[^{label}]: Comment by {author}{}: {}", date.unwrap_or_default(), comment.joined_text());
        (comment.attribute("id").unwrap_or_default().to_owned(), label, text)
    });
    described.collect()
}
