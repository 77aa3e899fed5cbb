//! Small generated documents.

use std::io::{Cursor, Write};
use zip::{ZipWriter, write::SimpleFileOptions};

/// Returns an archive of these files.
pub(crate) fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        zip.start_file(*name, SimpleFileOptions::default()).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

const RELS: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
const PACKAGE: &str = "http://schemas.openxmlformats.org/package/2006/relationships";
const TYPES: &str = r#"<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/></Types>"#;

fn rels(entries: &[(&str, &str, &str)]) -> String {
    let entry = |(id, kind, target): &(&str, &str, &str)| {
        format!(r#"<Relationship Id="{id}" Type="{RELS}/{kind}" Target="{target}"/>"#)
    };
    let entries: String = entries.iter().map(entry).collect();
    format!(r#"<?xml version="1.0"?><Relationships xmlns="{PACKAGE}">{entries}</Relationships>"#)
}

/// Returns a Word document with this body, in WordprocessingML.
pub(crate) fn docx(body: &str) -> Vec<u8> {
    docx_with(body, &[])
}

/// Returns a Word document with additional parts, each given as relationship type, name and text. The relationship IDs
/// are `part1` and so on.
pub(crate) fn docx_with(body: &str, parts: &[(&str, &str, &str)]) -> Vec<u8> {
    let namespaces = [
        ("w", "http://schemas.openxmlformats.org/wordprocessingml/2006/main"),
        ("r", RELS),
        ("m", "http://schemas.openxmlformats.org/officeDocument/2006/math"),
        ("a", "http://schemas.openxmlformats.org/drawingml/2006/main"),
        ("dgm", "http://schemas.openxmlformats.org/drawingml/2006/diagram"),
    ];
    let namespaces: String =
        namespaces.iter().map(|(name, uri)| format!(" xmlns:{name}=\"{uri}\"")).collect();
    let document =
        format!(r#"<?xml version="1.0"?><w:document{namespaces}><w:body>{body}</w:body></w:document>"#);
    let styles = r#"<?xml version="1.0"?><w:styles xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:style w:type="paragraph" w:styleId="Heading1"><w:name w:val="heading 1"/><w:pPr><w:outlineLvl w:val="0"/></w:pPr></w:style><w:style w:type="paragraph" w:styleId="Heading2"><w:name w:val="heading 2"/><w:pPr><w:outlineLvl w:val="1"/></w:pPr></w:style></w:styles>"#;
    let ids: Vec<String> = (1..=parts.len()).map(|number| format!("part{number}")).collect();
    let mut links = vec![("rId1", "styles", "styles.xml")];
    links.extend(ids.iter().zip(parts).map(|(id, (kind, name, _))| (id.as_str(), *kind, *name)));
    let package = rels(&[("rId1", "officeDocument", "word/document.xml")]);
    let links = rels(&links);
    let word_parts: Vec<(String, &str)> =
        parts.iter().map(|(_, name, text)| (format!("word/{name}"), *text)).collect();
    let mut files = vec![
        ("[Content_Types].xml", TYPES.as_bytes()),
        ("_rels/.rels", package.as_bytes()),
        ("word/_rels/document.xml.rels", links.as_bytes()),
        ("word/styles.xml", styles.as_bytes()),
        ("word/document.xml", document.as_bytes()),
    ];
    files.extend(word_parts.iter().map(|(name, text)| (name.as_str(), text.as_bytes())));
    zip(&files)
}

/// Returns a paragraph of a Word document, which is a heading if `level` is not 0.
pub(crate) fn paragraph(level: u8, text: &str) -> String {
    let style = match level {
        0 => String::new(),
        level => format!(r#"<w:pPr><w:pStyle w:val="Heading{level}"/></w:pPr>"#),
    };
    format!("<w:p>{style}<w:r><w:t>{text}</w:t></w:r></w:p>")
}

/// Returns a presentation with one slide per title and text. The first slide has a note.
pub(crate) fn pptx(slides: &[(&str, &str)], note: &str) -> Vec<u8> {
    let names = r#"xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships""#;
    let shape = |kind: &str, text: &str| {
        format!(
            r#"<p:sp><p:nvSpPr><p:cNvPr id="2" name="{kind}"/><p:cNvSpPr/><p:nvPr><p:ph type="{kind}"/></p:nvPr></p:nvSpPr><p:spPr/><p:txBody><a:bodyPr/><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"#
        )
    };
    let (mut files, mut ids, mut links) = (Vec::new(), String::new(), Vec::new());
    for (at, (title, text)) in slides.iter().enumerate() {
        let number = at + 1;
        let tree = shape("title", title) + &shape("body", text);
        let slide = format!("<p:sld {names}><p:cSld><p:spTree>{tree}</p:spTree></p:cSld></p:sld>");
        files.push((format!("ppt/slides/slide{number}.xml"), slide));
        ids.push_str(&format!(r#"<p:sldId id="{}" r:id="rId{number}"/>"#, 256 + at));
        links.push((format!("rId{number}"), format!("slides/slide{number}.xml")));
    }
    let notes = shape("body", note);
    let notes = format!("<p:notes {names}><p:cSld><p:spTree>{notes}</p:spTree></p:cSld></p:notes>");
    files.push(("ppt/notesSlides/notesSlide1.xml".to_owned(), notes));
    let link = rels(&[("rId1", "notesSlide", "../notesSlides/notesSlide1.xml")]);
    files.push(("ppt/slides/_rels/slide1.xml.rels".to_owned(), link));
    let deck = format!("<p:presentation {names}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>");
    files.push(("ppt/presentation.xml".to_owned(), deck));
    let links: Vec<_> = links.iter().map(|(id, target)| (id.as_str(), "slide", target.as_str())).collect();
    files.push(("ppt/_rels/presentation.xml.rels".to_owned(), rels(&links)));
    files.push(("_rels/.rels".to_owned(), rels(&[("rId1", "officeDocument", "ppt/presentation.xml")])));
    files.push(("[Content_Types].xml".to_owned(), TYPES.to_owned()));
    let files: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), text.as_bytes())).collect();
    zip(&files)
}

/// Returns an archive in which these files are added or replaced.
pub(crate) fn with_files(archive: &[u8], files: &[(&str, &str)]) -> Vec<u8> {
    let mut zip = zip::ZipArchive::new(Cursor::new(archive)).unwrap();
    let mut all: Vec<(String, Vec<u8>)> = Vec::new();
    for at in 0..zip.len() {
        let mut file = zip.by_index(at).unwrap();
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut file, &mut bytes).unwrap();
        all.push((file.name().unwrap().into_owned(), bytes));
    }
    all.retain(|(name, _)| files.iter().all(|(other, _)| other != name));
    all.extend(files.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())));
    let all: Vec<_> = all.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    self::zip(&all)
}

/// Returns a part's relationships, each given as ID, type and target.
pub(crate) fn relationships(entries: &[(&str, &str, &str)]) -> String {
    rels(entries)
}

/// Returns a workbook. Each sheet is given as a name and cells in SpreadsheetML.
pub(crate) fn xlsx(sheets: &[(&str, &str)]) -> Vec<u8> {
    let names = r#"xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships""#;
    let (mut files, mut list, mut links) = (Vec::new(), String::new(), Vec::new());
    for (at, (name, rows)) in sheets.iter().enumerate() {
        let number = at + 1;
        let sheet = format!("<worksheet {names}><sheetData>{rows}</sheetData></worksheet>");
        files.push((format!("xl/worksheets/sheet{number}.xml"), sheet));
        list.push_str(&format!(r#"<sheet name="{name}" sheetId="{number}" r:id="rId{number}"/>"#));
        links.push((format!("rId{number}"), format!("worksheets/sheet{number}.xml")));
    }
    files.push((
        "xl/workbook.xml".to_owned(),
        format!("<workbook {names}><sheets>{list}</sheets></workbook>"),
    ));
    let links: Vec<_> = links.iter().map(|(id, to)| (id.as_str(), "worksheet", to.as_str())).collect();
    files.push(("xl/_rels/workbook.xml.rels".to_owned(), rels(&links)));
    files.push(("_rels/.rels".to_owned(), rels(&[("rId1", "officeDocument", "xl/workbook.xml")])));
    files.push(("[Content_Types].xml".to_owned(), TYPES.to_owned()));
    let files: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), text.as_bytes())).collect();
    zip(&files)
}

/// Returns a text cell of a workbook.
pub(crate) fn cell(place: &str, text: &str) -> String {
    format!(r#"<c r="{place}" t="inlineStr"><is><t>{text}</t></is></c>"#)
}

/// Returns an OpenDocument spreadsheet with these tables, given in OpenDocument markup.
pub(crate) fn ods(tables: &str) -> Vec<u8> {
    let names = "xmlns:office=\"urn:oasis:names:tc:opendocument:xmlns:office:1.0\" \
         xmlns:table=\"urn:oasis:names:tc:opendocument:xmlns:table:1.0\" \
         xmlns:text=\"urn:oasis:names:tc:opendocument:xmlns:text:1.0\"";
    let body = format!("<office:body><office:spreadsheet>{tables}</office:spreadsheet></office:body>");
    let content = format!("<office:document-content {names}>{body}</office:document-content>");
    zip(&[
        ("mimetype", b"application/vnd.oasis.opendocument.spreadsheet"),
        ("META-INF/manifest.xml", b"<manifest:manifest/>"),
        ("content.xml", content.as_bytes()),
    ])
}

/// Returns an OpenDocument file of this kind with these automatic styles and this body.
pub(crate) fn odf(kind: &str, styles: &str, body: &str) -> Vec<u8> {
    let namespaces = [
        ("office", "office"),
        ("text", "text"),
        ("table", "table"),
        ("draw", "drawing"),
        ("style", "style"),
        ("presentation", "presentation"),
    ];
    let uri = |(name, part): (&str, &str)| {
        format!(" xmlns:{name}=\"urn:oasis:names:tc:opendocument:xmlns:{part}:1.0\"")
    };
    let namespaces: String = namespaces.into_iter().map(uri).collect();
    let content = format!(
        "<office:document-content{namespaces} xmlns:dc=\"http://purl.org/dc/elements/1.1/\"><office:automatic-styles>{styles}\
         </office:automatic-styles><office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>"
    );
    zip(&[
        ("mimetype", format!("application/vnd.oasis.opendocument.{kind}").as_bytes()),
        ("META-INF/manifest.xml", b"<manifest:manifest/>"),
        ("content.xml", content.as_bytes()),
    ])
}

/// Returns an e-book with these chapters, given in XHTML.
pub(crate) fn epub(title: &str, chapters: &[&str]) -> Vec<u8> {
    let item = |(at, _): (usize, &&str)| {
        format!(r#"<item id="c{at}" href="ch%20{at}.xhtml" media-type="application/xhtml+xml"/>"#)
    };
    let items: String = chapters.iter().enumerate().map(item).collect();
    let spine: String = (0..chapters.len()).map(|at| format!(r#"<itemref idref="c{at}"/>"#)).collect();
    let package = format!(
        r#"<package xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata><dc:title>{title}</dc:title></metadata><manifest>{items}</manifest><spine>{spine}</spine></package>"#
    );
    let container = r#"<container><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>"#;
    let mut files = vec![
        ("mimetype".to_owned(), "application/epub+zip".to_owned()),
        ("META-INF/container.xml".to_owned(), container.to_owned()),
        ("OEBPS/book.opf".to_owned(), package),
    ];
    for (at, chapter) in chapters.iter().enumerate() {
        let page = format!(
            "<?xml version=\"1.0\"?><!DOCTYPE html><html><head><title/></head><body>{chapter}</body></html>"
        );
        files.push((format!("OEBPS/ch {at}.xhtml"), page));
    }
    let files: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), text.as_bytes())).collect();
    zip(&files)
}

/// Returns a PDF with these objects, which are numbered from 1. The first is the catalog.
pub(crate) fn pdf(objects: &[String]) -> Vec<u8> {
    let mut text = String::from("%PDF-1.4\n");
    let mut places = Vec::new();
    for (at, object) in objects.iter().enumerate() {
        places.push(text.len());
        text.push_str(&format!("{} 0 obj\n{object}\nendobj\n", at + 1));
    }
    let begin = text.len();
    text.push_str(&format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1));
    places.iter().for_each(|place| text.push_str(&format!("{place:010} 00000 n \n")));
    let size = objects.len() + 1;
    text.push_str(&format!("trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{begin}\n%%EOF\n"));
    text.into_bytes()
}

/// Returns a PDF with one text, given as character codes, in a font with this encoding and character collection.
pub(crate) fn pdf_in(encoding: &str, ordering: &str, codes: &[u8]) -> Vec<u8> {
    let codes: String = codes.iter().map(|byte| format!("{byte:02X}")).collect();
    let stream = format!("BT /F1 14 Tf 72 720 Td <{codes}> Tj ET");
    pdf(&[
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>"
            .to_owned(),
        format!("<< /Length {} >>\nstream\n{stream}\nendstream", stream.len()),
        format!("<</Type/Font/Subtype/Type0/BaseFont/F/Encoding{encoding}/DescendantFonts[6 0 R]>>"),
        format!(
            "<</Type/Font/Subtype/CIDFontType2/BaseFont/F/CIDSystemInfo<</Registry(Adobe)/Ordering({ordering})/Supplement 2>>\
             /DW 1000/FontDescriptor 7 0 R>>"
        ),
        "<</Type/FontDescriptor/FontName/F/Flags 6/FontBBox[0 -200 1000 900]/ItalicAngle 0/Ascent 880/Descent -120>>"
            .to_owned(),
    ])
}

/// Returns a PDF with a page for each text.
pub(crate) fn pages(texts: &[&str]) -> Vec<u8> {
    let kids: String = (0..texts.len()).map(|at| format!("{} 0 R ", 4 + 2 * at)).collect();
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!("<< /Type /Pages /Kids [{kids}] /Count {} >>", texts.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned(),
    ];
    for (at, text) in texts.iter().enumerate() {
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {} 0 R /Resources << /Font << /F1 3 0 R >> >> >>",
            5 + 2 * at
        ));
        let stream = format!("BT /F1 12 Tf 72 720 Td ({text}) Tj ET");
        objects.push(format!("<< /Length {} >>\nstream\n{stream}\nendstream", stream.len()));
    }
    pdf(&objects)
}
