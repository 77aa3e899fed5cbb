//! Content of Word, PowerPoint and Excel other than plain text.

use super::{check, read};
use crate::{
    DocumentKind,
    fixture::{cell, docx_with, paragraph, pptx, relationships, with_files, xlsx},
};

const DIAGRAM: &str = "<dgm:dataModel xmlns:dgm=\"d\" xmlns:a=\"a\"><dgm:ptLst><dgm:pt modelId=\"0\"><dgm:t><a:p><a:r><a:t>APPLY | \
     first</a:t></a:r></a:p></dgm:t></dgm:pt><dgm:pt modelId=\"1\"><dgm:t><a:p><a:r><a:t>REVIEW</a:t></a:r></a:p></dgm:t>\
     </dgm:pt></dgm:ptLst><dgm:cxnLst><dgm:cxn srcId=\"0\" destId=\"1\" srcOrd=\"0\"/></dgm:cxnLst></dgm:dataModel>";
const FORMULA: &str = "<m:oMath xmlns:m=\"m\"><m:r><m:t>r=</m:t></m:r><m:f><m:num><m:r><m:t>a|b_1</m:t></m:r></m:num><m:den><m:r>\
     <m:t>12</m:t></m:r></m:den></m:f></m:oMath>";

fn run(text: &str) -> String {
    format!("<w:r><w:t xml:space=\"preserve\">{text}</w:t></w:r>")
}

fn smart_art(id: &str) -> String {
    format!(
        "<w:r><w:drawing><a:graphic><a:graphicData uri=\"d\"><dgm:relIds r:dm=\"{id}\" r:lo=\"x\"/></a:graphicData></a:graphic>\
         </w:drawing></w:r>"
    )
}

pub(super) fn rich_docx() -> Vec<u8> {
    let body = [
        paragraph(1, "Rules"),
        format!("<w:p>{}{FORMULA}{}</w:p>", run("The rate "), run(" holds.")),
        format!("<w:p><m:oMathPara>{FORMULA}</m:oMathPara></w:p>"),
        format!("<w:p>{}</w:p>", smart_art("part1")),
        format!(
            "<w:tbl><w:tr><w:tc><w:p>{FORMULA}</w:p></w:tc><w:tc><w:p>{}</w:p></w:tc></w:tr></w:tbl>",
            smart_art("part1")
        ),
        format!("<w:p>{}<w:r><w:commentReference w:id=\"7\"/></w:r>{}</w:p>", run("price"), run(" is high")),
    ];
    let comments = "<w:comments xmlns:w=\"w\"><w:comment w:id=\"7\" w:author=\"Ada\" w:date=\"2026-03-01T10:00:00Z\"><w:p><w:r><w:t>check \
         this</w:t></w:r></w:p><w:p><w:r><w:t>please</w:t></w:r></w:p></w:comment></w:comments>";
    docx_with(
        &body.concat(),
        &[("diagramData", "diagrams/data1.xml", DIAGRAM), ("comments", "comments.xml", comments)],
    )
}

#[test]
fn formulas_diagrams_and_comments_keep_their_position() {
    let formula = "r=\\frac{a\\vert b\\_1}{12}";
    let diagram = "[diagram: APPLY \\| first (REVIEW)]";
    let expect = format!(
        "# Rules\n\nThe rate ${formula}$ holds.\n\n$${formula}$$\n\n{diagram}\n\n| ${formula}$ | {diagram} |\n| --- | --- |\n\n\
         price[^comment1] is high\n\n[^comment1]: Comment by Ada, 2026-03-01: check this please\n"
    );
    let document = check(&rich_docx(), "x", DocumentKind::Docx, &expect, &[(1, 1, "Rules")]);
    assert!(document.warnings.is_empty(), "{:?}", document.warnings);
}

#[test]
fn tracked_changes_read_as_if_accepted() {
    let row = |properties: &str, text: &str| {
        format!("<w:tr><w:tblPrEx/>{properties}<w:tc>{}</w:tc></w:tr>", paragraph(0, text))
    };
    let body = [
        format!(
            "<w:p>{}<w:del w:id=\"1\"><w:r><w:delText>OLD</w:delText></w:r></w:del><w:ins w:id=\"2\">{}</w:ins></w:p>",
            run("a "),
            run("NEW")
        ),
        format!("<w:p>{}<w:moveFrom w:id=\"3\">{}</w:moveFrom></w:p>", run("b"), run("MOVED")),
        format!("<w:p>{}<w:moveTo w:id=\"4\">{}</w:moveTo></w:p>", run("c "), run("MOVED")),
        format!(
            "<w:p><w:pPr><w:rPr><w:moveFrom w:id=\"5\"/><w:del w:id=\"6\"/></w:rPr></w:pPr>{}</w:p>",
            run("d")
        ),
        format!(
            "<w:tbl>{}{}{}</w:tbl>",
            row("", "first"),
            row("<w:trPr><w:del w:id=\"7\"/></w:trPr>", "GONE"),
            row("<w:trPr><w:ins w:id=\"8\"/></w:trPr>", "last")
        ),
    ];
    let expect = "a NEW\n\nb\n\nc MOVED\n\nd\n\n| first |\n| --- |\n| last |\n";
    let document = check(&docx_with(&body.concat(), &[]), "x", DocumentKind::Docx, expect, &[]);
    let left_out =
        "3 deleted or moved parts of tracked changes are left out, as if all changes were accepted";
    assert_eq!(document.warnings, [left_out]);
}

#[test]
fn rows_have_the_cells_that_they_skip() {
    let cells = |texts: &[&str]| {
        texts.iter().map(|text| format!("<w:tc>{}</w:tc>", paragraph(0, text))).collect::<String>()
    };
    let rows = [
        format!("<w:tr>{}</w:tr>", cells(&["a", "b", "c"])),
        format!("<w:tr><w:trPr><w:gridBefore w:val=\"1\"/></w:trPr>{}</w:tr>", cells(&["d", "e"])),
        format!(
            "<w:tr><w:trPr><w:gridBefore w:val=\"1\"/><w:gridAfter w:val=\"1\"/></w:trPr>{}</w:tr>",
            cells(&["f"])
        ),
        format!("<w:tr><w:trPr><w:gridAfter w:val=\"999999999\"/></w:trPr>{}</w:tr>", cells(&["g"])),
    ];
    let table = format!(
        "<w:tbl><w:tblGrid><w:gridCol/><w:gridCol/><w:gridCol/></w:tblGrid>{}</w:tbl>",
        rows.concat()
    );
    let document = read(&docx_with(&table, &[]), "x").unwrap();
    let lines: Vec<String> =
        document.markdown.lines().map(|line| line.trim_end_matches([' ', '|']).to_owned()).collect();
    assert_eq!(lines[0], "| a | b | c");
    assert_eq!(lines[2..5], ["|  | d | e", "|  | f", "| g"]);
}

#[test]
fn words_within_other_elements_are_kept() {
    let wrapped = |name: &str| format!("<w:{name} w:uri=\"x\">{}</w:{name}>", run("Main"));
    for (content, expect) in [
        // pandoc #2242
        (wrapped("smartTag"), "void Main() {}"),
        (wrapped("customXml"), "void Main() {}"),
        (wrapped("hyperlink"), "void Main() {}"),
        (wrapped("fldSimple"), "void Main() {}"),
        (format!("<w:sdt><w:sdtContent>{}</w:sdtContent></w:sdt>", run("Main")), "void Main() {}"),
        // markitdown #1390
        (
            "<w:r><w:pict><v:shape xmlns:v=\"v\"><v:textpath string=\"A &amp; B\"/></v:shape></w:pict></w:r>".to_owned(),
            "void A & B() {}",
        ),
        ("<w:r><w:ruby><w:rt><w:r><w:t>かん</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>漢</w:t></w:r></w:rubyBase></w:ruby></w:r>".to_owned(), "void かん漢() {}"),
    ] {
        let body = format!("<w:p>{}{content}{}</w:p>", run("void "), run("() {}"));
        assert_eq!(read(&docx_with(&body, &[]), "x").unwrap().markdown, format!("{expect}\n"), "{content}");
    }
}

#[test]
fn symbols_headers_and_embedded_files_are_shown_or_counted() {
    let header =
        format!("<w:hdr xmlns:w=\"w\" xmlns:m=\"m\"><w:p>{}{FORMULA}</w:p></w:hdr>", run("CONFIDENTIAL "));
    let footer = format!("<w:ftr xmlns:w=\"w\"><w:p>{}</w:p></w:ftr>", run("– 2 –"));
    let body = [
        "<w:p><w:r><w:sym w:font=\"Wingdings\" w:char=\"F0FE\"/></w:r><w:r><w:sym w:font=\"Webdings\" w:char=\"F099\"/></w:r><w:r><w:t> \
         agreed</w:t></w:r></w:p>".to_owned(),
        format!("<w:p>{}</w:p>", smart_art("missing")),
        "<w:altChunk r:id=\"x\"/>".to_owned(),
        "<w:sectPr><w:headerReference w:type=\"default\" r:id=\"part1\"/><w:footerReference w:type=\"default\" r:id=\"part3\"/></w:sectPr>"
            .to_owned(),
    ];
    let parts = [
        ("header", "header1.xml", header.as_str()),
        ("package", "embeddings/Budget.xlsx", "x"),
        ("footer", "footer1.xml", &footer),
    ];
    let document = read(&docx_with(&body.concat(), &parts), "x").unwrap();
    let formula = "$r=\\frac{a\\vert b\\_1}{12}$";
    assert_eq!(document.markdown, format!("> *Header: CONFIDENTIAL {formula}*\n\n☑ agreed\n"));
    let expect = [
        "1 diagrams could not be read",
        "1 characters of symbol fonts are left out",
        "1 embedded documents are not shown",
        "1 embedded files are not shown: Budget.xlsx",
    ];
    assert_eq!(document.warnings, expect);
}

pub(super) fn rich_pptx() -> Vec<u8> {
    let deck = pptx(&[("First", "Point"), ("Second", "More")], "Say hello.");
    let names = "xmlns:a=\"http://schemas.openxmlformats.org/drawingml/2006/main\" xmlns:p=\"http://schemas.openxmlformats.org/presentationml/2006/main\" \
         xmlns:r=\"http://schemas.openxmlformats.org/officeDocument/2006/relationships\" xmlns:a14=\"a14\" xmlns:dgm=\"d\"";
    let text = format!(
        "<p:sp><p:nvSpPr><p:cNvPr id=\"2\" name=\"t\"/><p:cNvSpPr/><p:nvPr/></p:nvSpPr><p:spPr/><p:txBody><a:bodyPr/><a:p><a:r><a:t>Rate \
         </a:t></a:r><a14:m>{FORMULA}</a14:m></a:p></p:txBody></p:sp>"
    );
    let frame = "<p:graphicFrame><p:nvGraphicFramePr><p:cNvPr id=\"3\" name=\"f\"/></p:nvGraphicFramePr><p:xfrm><a:off x=\"1\" y=\"9\"/>\
         </p:xfrm><a:graphic><a:graphicData uri=\"d\"><dgm:relIds r:dm=\"rId2\"/></a:graphicData></a:graphic></p:graphicFrame>";
    let slide =
        format!("<p:sld {names} show=\"0\"><p:cSld><p:spTree>{text}{frame}</p:spTree></p:cSld></p:sld>");
    let links = relationships(&[
        ("rId2", "diagramData", "../diagrams/data1.xml"),
        ("rId3", "comments", "../comments/comment1.xml"),
    ]);
    let comments = "<p:cmLst xmlns:p=\"p\"><p:cm authorId=\"0\" dt=\"2026-03-01\"><p:text>too long</p:text></p:cm></p:cmLst>";
    let authors = "<p:cmAuthorLst xmlns:p=\"p\"><p:cmAuthor id=\"0\" name=\"Bob\"/></p:cmAuthorLst>";
    with_files(
        &deck,
        &[
            ("ppt/slides/slide2.xml", &slide),
            ("ppt/slides/_rels/slide2.xml.rels", &links),
            ("ppt/diagrams/data1.xml", DIAGRAM),
            ("ppt/comments/comment1.xml", comments),
            ("ppt/commentAuthors.xml", authors),
        ],
    )
}

#[test]
fn slides_have_formulas_diagrams_and_comments_and_are_marked_as_hidden() {
    let document = read(&rich_pptx(), "x").unwrap();
    let (first, second) = document.markdown.split_once("<!-- slide 2, hidden: ").expect(&document.markdown);
    assert!(first.starts_with("<!-- slide 1: ") && first.contains("Say hello."), "{first}");
    for words in ["Rate $r=\\frac{a\\vert b\\_1}{12}$", "APPLY", "REVIEW", "\n> Comment by Bob: too long\n"] {
        assert!(second.contains(words), "{words}: {second}");
    }
    assert_eq!((document.parts, document.warnings), (Some(2), vec![]));
}

pub(super) fn rich_xlsx() -> Vec<u8> {
    let rows = format!(
        r#"<row r="1">{}{}</row><row r="2" hidden="1"><c r="A2" s="1"><v>0.0725</v></c><c r="B2" s="2"><v>-1234.5</v></c></row><row r="3"><c r="A3" s="3"><v>46082</v></c><c r="B3"><f>A2*2</f><v></v></c></row><row r="4"><c r="A4" s="1"/><c r="B4"><f>1+1</f></c><c r="C4"><f>A2+1</f><v>1.0725</v></c></row>"#,
        cell("A1", "rate"),
        cell("B1", "money"),
    );
    let book = xlsx(&[("Data", &rows), ("Plain", &format!(r#"<row r="1">{}</row>"#, cell("A1", "x")))]);
    let main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
    let styles = format!(
        "<styleSheet xmlns=\"{main}\"><numFmts count=\"1\"><numFmt numFmtId=\"164\" formatCode=\"$#,##0.00;[Red]($#,##0.00)\"/></numFmts><cellXfs \
         count=\"4\"><xf numFmtId=\"0\"/><xf numFmtId=\"10\"/><xf numFmtId=\"164\"/><xf numFmtId=\"14\"/></cellXfs></styleSheet>"
    );
    let links = relationships(&[
        ("rId1", "worksheet", "worksheets/sheet1.xml"),
        ("rId2", "worksheet", "worksheets/sheet2.xml"),
        ("rId3", "styles", "styles.xml"),
    ]);
    let of_sheet = relationships(&[
        ("c", "comments", "../comments1.xml"),
        ("t", "threadedComment", "../threadedComments/threadedComment1.xml"),
        ("d", "drawing", "../drawings/drawing1.xml"),
    ]);
    let comments = format!(
        "<comments xmlns=\"{main}\"><authors><author>Ada</author></authors><commentList><comment ref=\"A1\" authorId=\"0\"><text><r><t>ask \
         finance</t></r></text></comment><comment ref=\"B1\" authorId=\"0\"><text><t>[Threaded comment]</t></text></comment></commentList></comments>"
    );
    let threaded = "<ThreadedComments><threadedComment ref=\"B1\" personId=\"p\"><text>why?</text></threadedComment><threadedComment ref=\"B1\" \
         personId=\"q\"><text>because</text></threadedComment></ThreadedComments>";
    let people = "<personList><person id=\"p\" displayName=\"Bob\"/></personList>";
    let drawing = "<xdr:wsDr xmlns:xdr=\"x\" xmlns:a=\"a\"><xdr:sp><xdr:txBody><a:p><a:r><a:t>DRAFT</a:t></a:r></a:p></xdr:txBody></xdr:sp></xdr:wsDr>";
    let of_drawing = relationships(&[("k", "chart", "../charts/chart1.xml")]);
    with_files(
        &book,
        &[
            ("xl/styles.xml", &styles),
            ("xl/_rels/workbook.xml.rels", &links),
            ("xl/worksheets/_rels/sheet1.xml.rels", &of_sheet),
            ("xl/comments1.xml", &comments),
            ("xl/threadedComments/threadedComment1.xml", threaded),
            ("xl/persons/person.xml", people),
            ("xl/drawings/drawing1.xml", drawing),
            ("xl/drawings/_rels/drawing1.xml.rels", &of_drawing),
            ("xl/charts/chart1.xml", "<c:chartSpace xmlns:c=\"c\"/>"),
        ],
    )
}

#[test]
fn sheets_have_values_as_displayed_formulas_and_comments() {
    let expect = "<!-- sheet 1: Data, A1:C4, hidden rows 2 -->\n\n## Data\n\n| rate | money |  |\n| --- | --- | --- |\n| 7.25% | ($1,234.50) |  \
         |\n| 2026-03-01 | =A2*2 |  |\n|  | =1+1 | 1.0725 |\n\n- text box: DRAFT\n- comment on A1, Ada: ask finance\n- comment on B1, Bob: why?; \
         unknown: because\n<!-- sheet 2: Plain, A1:A1 -->\n\n## Plain\n\n| x |\n| --- |\n";
    let document = check(&rich_xlsx(), "x", DocumentKind::Xlsx, expect, &[(3, 2, "Data"), (16, 2, "Plain")]);
    let formulas =
        "2 formulas of the sheet Data have no value in the file: the formulas themselves are shown";
    assert_eq!(document.warnings, [formulas, "1 charts in it are not shown"]);
}
