//! Content of OpenDocument and PDF that readers often omit.

use super::{check, read};
use crate::{
    DocumentKind,
    fixture::{odf, ods, pdf_in, with_files},
};
use encoding_rs::{BIG5, EUC_KR, Encoding, GBK, SHIFT_JIS};

pub(super) fn sample_odt() -> Vec<u8> {
    let body = "<text:tracked-changes><text:changed-region><text:deletion><text:p>GONE</text:p></text:deletion></text:changed-region></text:tracked-changes>\
         <text:h text:outline-level=\"2\">Report 报告</text:h>\
         <text:p>a<text:s text:c=\"2\"/>b<text:tab/><text:span>c</text:span><text:note><text:note-citation>1</text:note-citation><text:note-body>\
         <text:p>below</text:p></text:note-body></text:note><office:annotation><dc:creator>Ada</dc:creator><dc:date>2026-03-01T10:00:00</dc:date>\
         <text:p>check</text:p></office:annotation></text:p>\
         <text:list><text:list-item><text:p>one</text:p><text:list><text:list-item><text:p>deep</text:p></text:list-item></text:list></text:list-item>\
         <text:list-item><text:p>two</text:p></text:list-item></text:list>\
         <table:table><table:table-header-rows><table:table-row><table:table-cell><text:p>k</text:p></table:table-cell><table:table-cell><text:p>v|w</text:p>\
         </table:table-cell></table:table-row></table:table-header-rows><table:table-row><table:table-cell table:number-columns-spanned=\"2\"><text:p>x</text:p>\
         <text:p>y</text:p></table:table-cell><table:covered-table-cell/></table:table-row></table:table>\
         <text:p>Rate <draw:frame><draw:object xlink:href=\"./Object 1\" xmlns:xlink=\"x\"/></draw:frame> holds<draw:frame><draw:image/></draw:frame>.</text:p>\
         <text:p><draw:frame><draw:text-box><text:p>BOX</text:p></draw:text-box></draw:frame></text:p>\
         <draw:frame><draw:object xlink:href=\"./Object 2\" xmlns:xlink=\"x\"/></draw:frame>";
    let math = "<math xmlns=\"http://www.w3.org/1998/Math/MathML\"><mi>r</mi><mo>=</mo><mfrac><mn>7</mn><mn>12</mn></mfrac></math>";
    with_files(
        &odf("text", "", body),
        &[("Object 1/content.xml", math), ("meta.xml", "<m><dc:title>A Title</dc:title></m>")],
    )
}

#[test]
fn texts_of_opendocument_are_read_whole() {
    let expect = "## Report 报告\n\na  b c[^1][^comment1]\n\n- one\n  - deep\n- two\n\n| k | v\\|w |\n| --- | --- |\n| x<br>y |  |\n\n\
         Rate $r=\\frac{7}{12}$ holds.\n\nBOX\n\n[^1]: below\n\n[^comment1]: Comment by Ada, 2026-03-01: check\n";
    let document = check(&sample_odt(), "x", DocumentKind::Odt, expect, &[(1, 2, "Report 报告")]);
    assert_eq!(document.title.as_deref(), Some("A Title"));
    let left_out = [
        "1 pictures in it are not shown",
        "1 embedded objects, such as charts, are not shown",
        "1 deleted parts of tracked changes are left out, as if all changes were accepted",
    ];
    assert_eq!(document.warnings, left_out);
}

pub(super) fn sample_odp() -> Vec<u8> {
    let styles = "<style:style style:name=\"dp2\"><style:drawing-page-properties presentation:visibility=\"hidden\"/></style:style>";
    let frame = |class: &str, text: &str| {
        format!(
            "<draw:frame presentation:class=\"{class}\"><draw:text-box><text:p>{text}</text:p></draw:text-box></draw:frame>"
        )
    };
    let notes = format!("<presentation:notes>{}</presentation:notes>", frame("notes", "Say hello"));
    let pages = format!(
        "<draw:page draw:name=\"p1\" draw:style-name=\"dp1\">{}{}{notes}</draw:page><draw:page draw:name=\"p2\" draw:style-name=\"dp2\"><draw:g>{}\
         </draw:g></draw:page>",
        frame("title", "Aims 目标"),
        frame("outline", "Grow"),
        frame("x", "SECRET"),
    );
    odf("presentation", styles, &pages)
}

#[test]
fn slides_of_opendocument_have_titles_notes_and_marks() {
    let expect = "<!-- slide 1: p1 -->\n\n## Aims 目标\n\nGrow\n\n> **Notes:**\n> Say hello\n\n<!-- slide 2, hidden: p2 -->\n\nSECRET\n";
    let document = check(&sample_odp(), "x", DocumentKind::Odp, expect, &[(3, 2, "Aims 目标")]);
    assert_eq!(document.parts, Some(2));
}

#[test]
fn hidden_sheets_of_opendocument_are_marked() {
    let table = |style: &str| {
        format!(
            "<table:table table:name=\"{style}\" table:style-name=\"{style}\"><table:table-row><table:table-cell><text:p>x</text:p></table:table-cell></table:table-row></table:table>"
        )
    };
    let plain = read(&ods(&(table("ta1") + &table("ta2"))), "x").unwrap();
    assert!(!plain.markdown.contains("hidden"));
    let content = format!(
        "<office:document-content xmlns:office=\"o\" xmlns:table=\"t\" xmlns:text=\"x\" xmlns:style=\"s\"><office:automatic-styles><style:style \
         style:name=\"ta2\"><style:table-properties table:display=\"false\"/></style:style></office:automatic-styles><office:body>\
         <office:spreadsheet>{}{}</office:spreadsheet></office:body></office:document-content>",
        table("ta1"),
        table("ta2")
    );
    let marked = read(&with_files(&ods(""), &[("content.xml", &content)]), "x").unwrap();
    let marks: Vec<&str> = marked.markdown.lines().filter(|line| line.starts_with("<!--")).collect();
    assert_eq!(marks, ["<!-- sheet 1: ta1, A1:A1 -->", "<!-- sheet 2: ta2, A1:A1, hidden -->"]);
}

#[test]
fn fonts_with_predefined_encodings_have_their_text() {
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<u8>>();
    let legacy = |encoding: &'static Encoding, text: &str| encoding.encode(text).0.into_owned();
    let (simple, full, kana, hangul) = ("会议纪要", "會議紀錄", "エラー接続", "회의록");
    for (name, ordering, bytes, expect) in [
        ("/UniGB-UCS2-H", "GB1", utf16(simple), simple),
        ("/UniGB-UTF16-V", "GB1", utf16(simple), simple),
        ("/GB-EUC-H", "GB1", legacy(GBK, simple), simple),
        ("/GBK-EUC-H", "GB1", legacy(GBK, simple), simple),
        ("/GBKp-EUC-V", "GB1", legacy(GBK, simple), simple),
        ("/GBpc-EUC-H", "GB1", legacy(GBK, simple), simple),
        (" /GBK2K-H", "GB1", legacy(GBK, simple), simple),
        ("/UniCNS-UCS2-H", "CNS1", utf16(full), full),
        ("/ETen-B5-H", "CNS1", legacy(BIG5, full), full),
        ("/ETenms-B5-H", "CNS1", legacy(BIG5, full), full),
        ("/HKscs-B5-H", "CNS1", legacy(BIG5, full), full),
        (" /B5pc-H", "CNS1", legacy(BIG5, full), full),
        ("/UniJIS-UCS2-H", "Japan1", utf16(kana), kana),
        ("/90ms-RKSJ-H", "Japan1", legacy(SHIFT_JIS, kana), kana),
        ("/90msp-RKSJ-H", "Japan1", legacy(SHIFT_JIS, kana), kana),
        ("/90pv-RKSJ-H", "Japan1", legacy(SHIFT_JIS, kana), kana),
        ("/83pv-RKSJ-H", "Japan1", legacy(SHIFT_JIS, kana), kana),
        ("/UniKS-UCS2-H", "Korea1", utf16(hangul), hangul),
        ("/KSC-EUC-H", "Korea1", legacy(EUC_KR, hangul), hangul),
        ("/KSCpc-EUC-H", "Korea1", legacy(EUC_KR, hangul), hangul),
        ("/KSCms-UHC-HW-H", "Korea1", legacy(EUC_KR, hangul), hangul),
    ] {
        let document = read(&pdf_in(name, ordering, &bytes), "x");
        let text = document.map(|document| document.markdown);
        assert_eq!(text, Ok(format!("<!-- page 1 -->\n\n{expect}\n")), "{name}");
    }
}
