mod left_out;
mod mails;
mod office;

use super::*;
use crate::fixture::{cell, docx, epub, odf, ods, pages, paragraph, pdf, pptx, xlsx, zip};
use proptest::prelude::*;
use std::sync::LazyLock;

fn read(bytes: &[u8], name: &str) -> Result<Document, Error> {
    convert(bytes, name, &DocumentLimits::default())
}

/// Converts a document and checks the whole result.
fn check(
    bytes: &[u8],
    name: &str,
    kind: DocumentKind,
    markdown: &str,
    headings: &[(usize, u8, &str)],
) -> Document {
    let document = read(bytes, name).unwrap();
    assert_eq!((document.kind, document.markdown.as_str()), (kind, markdown), "{name}");
    let outline: Vec<_> = document.outline.iter().map(|h| (h.line, h.level, h.text.as_str())).collect();
    assert_eq!(outline, headings, "{name}");
    document
}

fn table(columns: usize) -> String {
    let row = |row: usize| {
        let cell = |column| format!("<w:tc>{}</w:tc>", paragraph(0, &format!("r{row}c{column}")));
        format!("<w:tr>{}</w:tr>", (0..columns).map(cell).collect::<String>())
    };
    format!("<w:tbl>{}{}</w:tbl>", row(0), row(1))
}

fn sample_docx() -> Vec<u8> {
    docx(&(paragraph(1, "Report 报告") + &paragraph(0, "Words.") + &paragraph(2, "Numbers") + &table(2)))
}

fn sample_xlsx() -> Vec<u8> {
    let rows = format!(
        r#"<row r="1">{}{}</row><row r="2">{}<c r="B2"><v>42</v></c></row>"#,
        cell("A1", "name"),
        cell("B1", "value"),
        cell("A2", "贝|塔"),
    );
    xlsx(&[("Data", &rows), ("Empty", "")])
}

fn sample_ods() -> Vec<u8> {
    ods("<table:table table:name=\"Liste\"><table:table-row>\
         <table:table-cell table:number-columns-repeated=\"2\"><text:p>x</text:p></table:table-cell>\
         <table:table-cell><text:p>a &amp; <text:span>b</text:span></text:p><text:p>c</text:p></table:table-cell>\
         </table:table-row><table:table-row table:number-rows-repeated=\"1048574\">\
         <table:table-cell table:number-columns-repeated=\"16384\"/></table:table-row></table:table>")
}

fn sample_epub() -> Vec<u8> {
    epub(
        "A Book",
        &["<h1>One</h1><p><a id=\"x\"/>First 第一.</p>", "<h1>Two</h1><p>Second.<img src=\"x.png\"/></p>"],
    )
}

static ALL_KINDS: LazyLock<Vec<(&str, Vec<u8>)>> = LazyLock::new(|| {
    vec![
        ("a.docx", sample_docx()),
        ("a.pptx", pptx(&[("First", "Point"), ("Second", "More")], "Say hello.")),
        ("a.xlsx", sample_xlsx()),
        ("a.ods", sample_ods()),
        ("a.epub", sample_epub()),
        ("a.pdf", pages(&["Hello first page", "Second page"])),
        ("a.html", b"<!doctype html><title>T</title><h1>One</h1><table><tr><th>a<tr><td>b</table>".to_vec()),
        ("a.csv", "a,b\n1,2\n".into()),
        ("b.docx", office::rich_docx()),
        ("b.pptx", office::rich_pptx()),
        ("b.xlsx", office::rich_xlsx()),
        ("a.odt", left_out::sample_odt()),
        ("a.odp", left_out::sample_odp()),
        ("a.eml", mails::sample()),
    ]
});

#[test]
fn word_has_headings_and_tables() {
    let expect = "# Report 报告\n\nWords.\n\n## Numbers\n\n| r0c0 | r0c1 |\n| --- | --- |\n| r1c0 | r1c1 |\n";
    check(&sample_docx(), "x", DocumentKind::Docx, expect, &[(1, 1, "Report 报告"), (5, 2, "Numbers")]);
}

#[test]
fn presentations_have_slides_and_notes() {
    let document = read(&pptx(&[("First", "Point"), ("Second", "More")], "Say hello."), "x").unwrap();
    assert_eq!((document.kind, document.parts), (DocumentKind::Pptx, Some(2)));
    for words in ["<!-- slide 1", "<!-- slide 2", "First", "Point", "Say hello.", "Second", "More"] {
        assert!(document.markdown.contains(words), "{words}: {}", document.markdown);
    }
}

#[test]
fn sheets_are_tables_under_their_names() {
    let expect = "<!-- sheet 1: Data, A1:B2 -->\n\n## Data\n\n| name | value |\n| --- | --- |\n| 贝\\|塔 | 42 |\n\n\
         <!-- sheet 2: Empty, empty -->\n\n## Empty\n";
    let document =
        check(&sample_xlsx(), "x", DocumentKind::Xlsx, expect, &[(3, 2, "Data"), (11, 2, "Empty")]);
    assert_eq!((document.parts, document.warnings), (Some(2), vec![]));
    let expect =
        "<!-- sheet 1: Liste, A1:C1 -->\n\n## Liste\n\n| x | x | a & b<br>c |\n| --- | --- | --- |\n";
    check(&sample_ods(), "x", DocumentKind::Ods, expect, &[(3, 2, "Liste")]);
}

#[test]
fn books_have_chapters_in_order() {
    let expect = "<!-- chapter 1: ch%200.xhtml -->\n\n# One\n\nFirst 第一.\n\n\
         <!-- chapter 2: ch%201.xhtml -->\n\n# Two\n\nSecond.\n";
    let document = check(&sample_epub(), "x", DocumentKind::Epub, expect, &[(3, 1, "One"), (9, 1, "Two")]);
    assert_eq!((document.title.as_deref(), document.parts), (Some("A Book"), Some(2)));
}

#[test]
fn pages_have_marks() {
    let expect = "<!-- page 1 -->\n\nHello first page\n\n<!-- page 2 -->\n\nSecond page\n";
    let document = check(&pages(&["Hello first page", "Second page"]), "x", DocumentKind::Pdf, expect, &[]);
    assert_eq!(document.parts, Some(2));
}

#[test]
fn web_pages_and_tables_of_text_are_read() {
    let page = "<html><head><title>T \n x</title><style>p{}</style></head><body><h2>H</h2><script>no</script>\
         <p>a <b>b</b><img src='data:image/png;base64,AAAA' alt='pic'></p></body></html>";
    let document = check(page.as_bytes(), "x", DocumentKind::Html, "## H\n\na **b**\n", &[(1, 2, "H")]);
    assert_eq!(document.title.as_deref(), Some("T x"));
    let expect = "| name | value |\n| --- | --- |\n| B, b | 1 |\n| c |  |\n";
    check(b"name,value\n\"B, b\",1\nc\n", "t.CSV", DocumentKind::Csv, expect, &[]);
    check(b"name;value\n\"B, b\";1\nc\n", "t.csv", DocumentKind::Csv, expect, &[]);
    check(b"name\tvalue\nB, b\t1\nc\n", "t.tsv", DocumentKind::Tsv, expect, &[]);
}

#[test]
fn other_files_are_distinguished_from_unreadable_documents() {
    let refused = |text: &str| Error::Refused(text.to_owned());
    let drawing = odf("graphics", "", "");
    for (bytes, name, expect) in [
        (&b""[..], "", Error::Unknown),
        (b"words", "a", Error::Unknown),
        (b"words", "a.docx", refused("its content does not match a .docx file")),
        (b"\x89PNG\r\n", "A.PDF", refused("its content does not match a .pdf file")),
        (b"", "a.pdf", refused("its content does not match a .pdf file")),
        (b"a\0b", "a.csv", Error::Unknown),
        (&zip(&[("a.txt", b"x")]), "a.docx", Error::Unknown),
        (&drawing, "a", refused("this kind of OpenDocument is not supported: save it as .odt, .odp or PDF")),
        (b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1 no mail", "a.msg", Error::Unknown),
        (b"no mail", "a.msg", refused("its content does not match a .msg file")),
        (b"hello", "a.eml", refused("its content does not match a .eml file")),
        (b"From: here\nto there", "a.txt", Error::Unknown),
        (&docx(""), "a", Error::Empty),
        (b",,\n,", "a.csv", Error::Empty),
    ] {
        assert_eq!(read(bytes, name), Err(expect), "{name}");
    }
    assert!(
        !DocumentKind::may_be_document(b"\x89PNG", "a.png")
            && DocumentKind::may_be_document(&sample_docx(), "a")
    );
}

#[test]
fn long_documents_are_cut_with_a_note() {
    let body: String = (0..200).map(|n| paragraph(0, &format!("Paragraph {n}."))).collect();
    let limits = DocumentLimits { output: 1000, ..DocumentLimits::default() };
    let document = convert(&docx(&body), "x", &limits).unwrap();
    assert!(
        document.markdown.ends_with("\n\n[… cut here: the document continues …]\n"),
        "{}",
        document.markdown
    );
    assert!(document.markdown.len() < 1100 && document.markdown.contains("Paragraph 40."));
    assert_eq!(document.warnings, ["only the first 1000 bytes of its text are included: it is longer"]);
}

#[test]
fn limits_are_enforced() {
    let limits = |change: fn(&mut DocumentLimits)| {
        let mut limits = DocumentLimits::default();
        change(&mut limits);
        limits
    };
    let big = |error: &Error| matches!(error, Error::TooLarge(_));
    let zeros = vec![b' '; 17 * 1024 * 1024];
    let bomb = zip(&[("word/document.xml", &zeros)]);
    assert!(bomb.len() < 100_000, "the archive is a bomb");
    let nested = format!("{}{}", "<w:sdt>".repeat(100_000), "</w:sdt>".repeat(100_000));
    let entities = b"<!DOCTYPE x [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;&a;\">]><x>&b;</x>";
    let declared = zip(&[("word/document.xml", entities)]);
    for (what, bytes, limits) in [
        ("size", sample_docx(), limits(|l| l.input = 10)),
        ("files", sample_docx(), limits(|l| l.entries = 2)),
        ("unpacked", sample_docx(), limits(|l| l.expanded = 100)),
        ("ratio", bomb, DocumentLimits::default()),
        ("depth", docx(&nested), DocumentLimits::default()),
    ] {
        let answer = convert(&bytes, "x", &limits);
        assert!(answer.as_ref().is_err_and(big), "{what}: {answer:?}");
    }
    assert!(matches!(read(&declared, "x"), Err(Error::Refused(_))), "entities");
}

#[test]
fn sheets_claiming_a_million_rows_are_read_up_to_their_last_cell() {
    let rows =
        format!(r#"<row r="1">{}</row><row r="1048576">{}</row>"#, cell("A1", "a"), cell("XFD1048576", "z"));
    let document = read(&xlsx(&[("Wide", &rows)]), "x").unwrap();
    assert_eq!(document.warnings, ["columns of the sheet Wide beyond ALL are left out"]);
    let full = "<table:table table:name=\"F\"><table:table-row table:number-rows-repeated=\"1048576\">\
         <table:table-cell table:number-columns-repeated=\"16384\"><text:p>x</text:p></table:table-cell>\
         </table:table-row></table:table>";
    let limits = DocumentLimits { output: 100_000, ..DocumentLimits::default() };
    let document = convert(&ods(full), "x", &limits).unwrap();
    assert!(document.markdown.len() < 101_000 && document.warnings.len() == 2, "{:?}", document.warnings);
}

#[test]
fn deep_pages_keep_their_text() {
    let deep = format!("<html>{}word{}", "<div>".repeat(2_000), "</div>".repeat(2_000));
    let document = read(deep.as_bytes(), "x").unwrap();
    assert_eq!(document.markdown, "word\n");
    assert_eq!(document.warnings.len(), 1);
}

#[test]
fn endlessly_nested_documents_are_not_parsed() {
    let big = |bytes: &[u8]| assert!(matches!(read(bytes, "x"), Err(Error::TooLarge(_))));
    for tag in ["div", "ul><li", "blockquote", "table><tr><td", "svg", "x-y"] {
        big(format!("<html>{}", format!("<{tag}>").repeat(10_000)).as_bytes());
    }
    let arrays = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    big(&pdf(&["<< /Type /Catalog /Pages 2 0 R >>".to_owned(), arrays]));
    // These elements need no end tag.
    let flat = format!("<html>{}", "<li>a<p>b<br><font size=1>".repeat(2_000));
    assert!(read(flat.as_bytes(), "x").is_ok());
}

#[test]
fn cyclic_pages_terminate() {
    let object = |text: &str| text.to_owned();
    let own_child = pdf(&[
        object("<< /Type /Catalog /Pages 2 0 R >>"),
        object("<< /Type /Pages /Kids [2 0 R] /Count 1 >>"),
    ]);
    let own_length = pdf(&[
        object("<< /Type /Catalog /Pages 2 0 R >>"),
        object("<< /Type /Pages /Kids [3 0 R] /Count 9999999 >>"),
        object("<< /Type /Page /Parent 3 0 R /Contents 4 0 R /Resources 3 0 R >>"),
        object("<< /Length 4 0 R >>\nstream\nBT (x) Tj ET\nendstream"),
    ]);
    let own_form = pdf(&[
        object("<< /Type /Catalog /Pages 2 0 R >>"),
        object("<< /Type /Pages /Kids [3 0 R] /Count 1 >>"),
        object(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R /Resources << /XObject << /F 5 0 R >> >> >>",
        ),
        object("<< /Length 5 >>\nstream\n/F Do\nendstream"),
        object(
            "<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /F 5 0 R >> >> /Length 11 >>\nstream\n/F Do /F Do\nendstream",
        ),
    ]);
    for (bytes, expect) in
        [(own_child, None), (own_length, Some(("<!-- page 1 -->\n\nx\n", true))), (own_form, None)]
    {
        let document = read(&bytes, "x").ok();
        let found = document.as_ref().map(|found| (found.markdown.as_str(), !found.warnings.is_empty()));
        assert_eq!(found, expect);
    }
}

#[test]
fn truncated_and_garbled_documents_give_a_result() {
    for (name, bytes) in ALL_KINDS.iter() {
        assert!(read(bytes, name).is_ok(), "{name}");
        for part in 0..16 {
            let cut = bytes.get(..bytes.len() * part / 16).unwrap();
            said(name, read(cut, name));
            let mut garbled = bytes.clone();
            garbled.iter_mut().skip(bytes.len() * part / 16).step_by(7).for_each(|byte| *byte ^= 0x55);
            said(name, read(&garbled, name));
        }
    }
}

#[test]
fn a_valid_signature_before_garbage_gives_a_result() {
    let garbage: Vec<u8> = (0..20_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    for mark in [&b"%PDF-1.7\n"[..], b"PK\x03\x04", b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", b"<html>", b"{\\rtf"]
    {
        said("garbage", read(&[mark, &garbage].concat(), "x"));
    }
    for member in ["word/document.xml", "ppt/presentation.xml", "xl/workbook.xml", "xl/workbook.bin"] {
        said(member, read(&zip(&[(member, &garbage)]), "x"));
    }
}

/// The result is a text within the limits, or an error with a message.
fn said(what: &str, answer: Result<Document, Error>) {
    match answer {
        Ok(document) => assert!(document.markdown.len() < DocumentLimits::default().output + 100, "{what}"),
        Err(error) => assert!(!error.to_string().is_empty(), "{what}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_change_of_any_document_gives_a_result(
        which in 0_usize..14,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
    ) {
        let (name, mut bytes) = ALL_KINDS[which].clone();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        said(name, read(&bytes, name));
    }
}
