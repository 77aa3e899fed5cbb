//! Rewrites slides into forms that the reader supports: diagrams become text boxes, formulas become text. Also reads
//! hidden slides and comments.

use super::{diagram, math, word::Inserts};
use crate::{
    package::{Package, Relationship},
    xml::{Element, attribute},
};
use quick_xml::{
    Reader, Writer,
    events::{BytesText, Event},
};
use std::collections::BTreeMap;

const PRESENTATION: &str = "ppt/presentation.xml";

/// Slide of a presentation.
pub(crate) struct Slide {
    /// Whether the slide is skipped when the presentation is shown.
    pub(crate) is_hidden: bool,
    /// Comments on the slide.
    pub(crate) comments: Vec<String>,
}

/// Rewrites all slides, and returns them in order.
pub(crate) fn rewrite(package: &mut Package<'_>, inserts: &mut Inserts) -> Vec<Slide> {
    let targets = package.relationships(PRESENTATION);
    let deck = Element::parse(&package.text(PRESENTATION).unwrap_or_default());
    let authors = authors(package);
    let mut slides = Vec::new();
    for entry in deck.all("sldId") {
        // The entry has an `id` of its own in addition to the relationship's.
        let part = entry.attributes_named("id").find_map(|id| targets.get(id));
        let Some(part) = part else { continue };
        let Some(xml) = package.text(&part.target) else { continue };
        let relationships = package.relationships(&part.target);
        slides.push(Slide {
            is_hidden: is_hidden(&xml),
            comments: comments(package, &relationships, &authors),
        });
        if ["oMath", ":relIds"].iter().any(|mark| xml.contains(mark))
            && let Some(changed) = rewrite_slide(&xml, package, &relationships, inserts)
        {
            package.change(&part.target, changed);
        }
    }
    slides
}

fn is_hidden(xml: &str) -> bool {
    let mut reader = Reader::from_str(xml);
    loop {
        match reader.read_event() {
            Ok(Event::Start(tag) | Event::Empty(tag)) => {
                return attribute(&tag, "show").is_some_and(|show| matches!(show.as_str(), "0" | "false"));
            }
            Ok(Event::Eof) | Err(_) => return false,
            Ok(_) => {}
        }
    }
}

/// Returns the names of comment authors by ID.
fn authors(package: &Package<'_>) -> BTreeMap<String, String> {
    let parts =
        ["ppt/commentAuthors.xml", "ppt/authors.xml"].into_iter().filter_map(|part| package.text(part));
    let mut authors = BTreeMap::new();
    for part in parts {
        let tree = Element::parse(&part);
        for author in tree.all("cmAuthor").into_iter().chain(tree.all("author")) {
            let id_and_name = author.attribute("id").zip(author.attribute("name"));
            authors.extend(id_and_name.map(|(id, name)| (id.to_owned(), name.to_owned())));
        }
    }
    authors
}

fn comments(
    package: &Package<'_>,
    relationships: &BTreeMap<String, Relationship>,
    authors: &BTreeMap<String, String>,
) -> Vec<String> {
    let parts = relationships.values().filter(|part| part.kind == "comments");
    let texts = parts.filter_map(|part| package.text(&part.target));
    let mut comments = Vec::new();
    for text in texts {
        for comment in Element::parse(&text).all("cm") {
            let author = comment.attribute("authorId").and_then(|id| authors.get(id));
            let author = author.map_or("unknown", String::as_str);
            comments.push(format!("Comment by {author}: {}", comment.joined_text()));
        }
    }
    comments
}

fn rewrite_slide(
    xml: &str,
    package: &Package<'_>,
    relationships: &BTreeMap<String, Relationship>,
    inserts: &mut Inserts,
) -> Option<String> {
    let mut reader = Reader::from_str(xml);
    reader.config_mut().check_end_names = false;
    let mut writer = Writer::new(Vec::new());
    loop {
        let start = usize::try_from(reader.buffer_position()).ok()?;
        let event = reader.read_event().ok()?;
        let text = match &event {
            Event::Eof => break,
            Event::Start(tag) if matches!(tag.local_name().as_ref(), "oMath" | "oMathPara") => {
                let formula = math::latex(&Element::read(&mut reader, tag));
                format!("<a:r><a:t>{}</a:t></a:r>", inserts.placeholder(formula))
            }
            // Wrapper of a formula in a paragraph.
            Event::Start(tag) if tag.name().as_ref() == "a14:m" => continue,
            Event::End(tag) if tag.name().as_ref() == "a14:m" => continue,
            Event::Start(tag) if tag.name().as_ref() == "p:graphicFrame" => {
                let mut ahead = reader.clone();
                ahead.read_to_end(tag.name()).ok()?;
                let raw = xml.get(start..usize::try_from(ahead.buffer_position()).ok()?)?;
                match text_box(raw, package, relationships, inserts) {
                    Some(text_box) => {
                        reader = ahead;
                        text_box
                    }
                    None => {
                        writer.write_event(event).ok()?;
                        continue;
                    }
                }
            }
            _ => {
                writer.write_event(event).ok()?;
                continue;
            }
        };
        writer.write_event(Event::Text(BytesText::from_escaped(text))).ok()?;
    }
    String::from_utf8(writer.into_inner()).ok()
}

/// Returns a text box with the texts of the diagram in a frame.
fn text_box(
    raw: &str,
    package: &Package<'_>,
    relationships: &BTreeMap<String, Relationship>,
    inserts: &mut Inserts,
) -> Option<String> {
    if !raw.contains(":relIds") {
        return None;
    }
    let tree = Element::parse(raw);
    let diagram = tree.all("relIds").first().copied()?;
    let part = diagram.attribute("dm").and_then(|id| relationships.get(id));
    let texts = part.and_then(|part| package.text(&part.target)).map(|data| diagram::texts(&data));
    let texts = texts.unwrap_or_default();
    if texts.is_empty() {
        inserts.unread_diagrams += 1;
        return None;
    }
    let transform = raw.find("<p:xfrm").zip(raw.find("</p:xfrm>"));
    let transform =
        transform.and_then(|(from, to)| raw.get(from..to)).and_then(|transform| transform.split_once('>'));
    let transform =
        transform.map(|(_, transform)| format!("<a:xfrm>{transform}</a:xfrm>")).unwrap_or_default();
    let paragraph = |(level, text): &(usize, String)| {
        let text = BytesText::new(text).into_inner().into_owned();
        format!(
            "<a:p><a:pPr lvl=\"{level}\"><a:buChar char=\"•\"/></a:pPr><a:r><a:t>{text}</a:t></a:r></a:p>"
        )
    };
    let paragraphs: String = texts.iter().map(paragraph).collect();
    Some(format!(
        "<p:sp><p:nvSpPr><p:cNvPr id=\"0\" name=\"diagram\"/><p:cNvSpPr txBox=\"1\"/><p:nvPr/></p:nvSpPr>\
         <p:spPr>{transform}</p:spPr><p:txBody><a:bodyPr/>{paragraphs}</p:txBody></p:sp>"
    ))
}

/// Marks hidden slides, and adds the comments to each slide.
pub(crate) fn annotate(markdown: &str, slides: &[Slide]) -> String {
    let (mut text, mut current) = (String::new(), None);
    for line in markdown.lines() {
        match slides.iter().enumerate().find(|(at, _)| is_mark(line, at + 1)) {
            Some((at, slide)) => {
                push_comments(&mut text, current);
                current = Some(slide);
                let number = format!("<!-- slide {}", at + 1);
                let hidden = if slide.is_hidden { ", hidden" } else { "" };
                text.push_str(&format!(
                    "{number}{hidden}{}\n",
                    line.strip_prefix(&number).unwrap_or_default()
                ));
            }
            None => text.extend([line, "\n"]),
        }
    }
    push_comments(&mut text, current);
    text
}

fn is_mark(line: &str, number: usize) -> bool {
    let rest = line.strip_prefix("<!-- slide ").and_then(|line| line.strip_prefix(&number.to_string()));
    rest.is_some_and(|rest| rest.starts_with([':', ' ']))
}

fn push_comments(text: &mut String, slide: Option<&Slide>) {
    for comment in slide.map(|slide| &slide.comments).into_iter().flatten() {
        text.push_str(&format!("\n> {comment}\n"));
    }
}
