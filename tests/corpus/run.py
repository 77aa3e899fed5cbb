#!/usr/bin/env python3
"""Documents as other programs write them, and what has to be found in the Markdown that pudu makes of each.

    tests/corpus/run.py [PROGRAM]       (target/debug/pudu)

LibreOffice, pandoc and Chromium write the documents, from the sources below; whatever of them is missing is
said, and fails only where PUDU_REQUIRE_CORPUS is set. Prints how long each document took, in its process.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from email.message import EmailMessage
from pathlib import Path

NAMES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{where}:1.0"'
    for name, where in [
        ("office", "office"), ("text", "text"), ("table", "table"), ("draw", "drawing"), ("style", "style"),
        ("presentation", "presentation"), ("svg", "svg-compatible"), ("number", "datastyle"),
        ("fo", "xsl-fo-compatible"),
    ]
) + ' xmlns:of="urn:oasis:names:tc:opendocument:xmlns:of:1.2"'


def flat(kind, body, styles=""):
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><office:document {NAMES} office:version="1.3" '
        f'office:mimetype="application/vnd.oasis.opendocument.{kind}">{styles}<office:body>{body}</office:body>'
        "</office:document>"
    )


def text_source():
    rows = [("Name", "Anzahl"), ("Äpfel", "42"), ("梨", "3,5")]
    cells = lambda row: "".join(f"<table:table-cell><text:p>{cell}</text:p></table:table-cell>" for cell in row)
    table = "".join(f"<table:table-row>{cells(row)}</table:table-row>" for row in rows)
    table = f'<table:table table:name="T"><table:table-column table:number-columns-repeated="2"/>{table}</table:table>'
    items = "".join(f"<text:list-item><text:p>point {n}</text:p></text:list-item>" for n in (1, 2))
    chapters = "".join(
        f'<text:h text:outline-level="2" text:style-name="Break">Chapter {n}</text:h>'
        f"<text:p>{' '.join([f'Words of chapter {n}.'] * 20)}</text:p>"
        for n in (1, 2, 3)
    )
    note = (
        '<text:note text:note-class="footnote"><text:note-citation>1</text:note-citation><text:note-body>'
        "<text:p>a remark below</text:p></text:note-body></text:note>"
    )
    body = (
        f'<text:h text:outline-level="1">Bericht 年度报告</text:h><text:p>Grüße &amp; 你好世界, ünïcödé.{note}</text:p>'
        f"{table}<text:list>{items}</text:list>{chapters}"
    )
    styles = (
        '<office:styles><style:style style:name="Heading_20_2" style:display-name="Heading 2" style:family="paragraph" '
        'style:default-outline-level="2"/></office:styles><office:automatic-styles><style:style style:name="Break" '
        'style:family="paragraph" style:parent-style-name="Heading_20_2">'
        '<style:paragraph-properties fo:break-before="page"/></style:style></office:automatic-styles>'
    )
    return flat("text", f"<office:text>{body}</office:text>", styles)


def sheet_source():
    word = lambda value: f'<table:table-cell office:value-type="string"><text:p>{value}</text:p></table:table-cell>'
    number = lambda value: f'<table:table-cell office:value-type="float" office:value="{value}"><text:p>{value}</text:p></table:table-cell>'
    sum_of = '<table:table-cell table:formula="of:=SUM([.B2:.B3])" office:value-type="float" office:value="45.5"><text:p>45.5</text:p></table:table-cell>'
    date = '<table:table-cell table:style-name="D" office:value-type="date" office:date-value="2026-03-01"><text:p>2026-03-01</text:p></table:table-cell>'
    row = lambda *cells: f"<table:table-row>{''.join(cells)}</table:table-row>"
    first = (
        row(word("Name"), word("Wert")) + row(word("Äpfel|Birnen"), number(42)) + row(word("梨"), number(3.5))
        + row(word("Summe"), sum_of, date)
    )
    second = row(word("only"), word("second"))
    styles = (
        '<office:automatic-styles><number:date-style style:name="N"><number:year number:style="long"/>'
        '<number:text>-</number:text><number:month number:style="long"/><number:text>-</number:text>'
        '<number:day number:style="long"/></number:date-style><style:style style:name="D" '
        'style:family="table-cell" style:data-style-name="N"/></office:automatic-styles>'
    )
    sheets = f'<table:table table:name="Daten">{first}</table:table><table:table table:name="汇总">{second}</table:table>'
    return flat("spreadsheet", f"<office:spreadsheet>{sheets}</office:spreadsheet>", styles)


def money_source():
    """Numbers in the formats of money, percent and codes with leading zeros."""
    formats = [
        ("P", 0.0725, '<number:percentage-style style:name="NP"><number:number number:decimal-places="2" number:min-decimal-places="2" '
         'number:min-integer-digits="1"/><number:text>%</number:text></number:percentage-style>'),
        ("E", 1234.5, '<number:number-style style:name="NE"><number:number number:decimal-places="2" number:min-decimal-places="2" '
         'number:min-integer-digits="1" number:grouping="true"/><number:text> €</number:text></number:number-style>'),
        ("Z", 1067, '<number:number-style style:name="NZ"><number:number number:decimal-places="0" number:min-integer-digits="5"/>'
         "</number:number-style>"),
    ]
    style = lambda name: f'<style:style style:name="{name}" style:family="table-cell" style:data-style-name="N{name}"/>'
    styles = "".join(code + style(name) for name, _, code in formats)
    cell = lambda name, value: f'<table:table-cell table:style-name="{name}" office:value-type="float" office:value="{value}"/>'
    rows = "".join(f"<table:table-row>{cell(name, value)}</table:table-row>" for name, value, _ in formats)
    table = f'<table:table table:name="M">{rows}</table:table>'
    return flat("spreadsheet", f"<office:spreadsheet>{table}</office:spreadsheet>",
                f"<office:automatic-styles>{styles}</office:automatic-styles>")


def mail():
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "Zoë <zoe@example.org>", "team@example.org", "季度报告"
    message.set_content("Hallo,\n\nGrüße\n")
    message.add_attachment(b"a;b\n", maintype="text", subtype="csv", filename="zahlen.csv")
    return message.as_bytes()


def slide_source():
    frame = lambda kind, words, y: (
        f'<draw:frame presentation:class="{kind}" svg:width="20cm" svg:height="4cm" svg:x="2cm" svg:y="{y}cm">'
        f"<draw:text-box><text:p>{words}</text:p></draw:text-box></draw:frame>"
    )
    note = lambda words: f"<presentation:notes>{frame('notes', words, 14)}</presentation:notes>"
    page = lambda n, title, words, spoken: (
        f'<draw:page draw:name="page{n}">{frame("title", title, 1)}{frame("subtitle", words, 6)}{note(spoken)}</draw:page>'
    )
    pages = page(1, "Ziele 目标", "Grow by half", "Say hello first") + page(2, "Kosten", "Forty two", "Mention the risk")
    return flat("presentation", f"<office:presentation>{pages}</office:presentation>")


PAGE = """<!doctype html><html><head><title>A page</title><style>p { color: red }</style></head><body>
<h1>Heading 标题</h1><p>Some <b>bold</b> words and <a href="https://example.org/x">a link</a>.</p>
<table><tr><th>Key</th><th>Value</th></tr><tr><td>one</td><td>1</td></tr></table>
<ul><li>first</li><li>second</li></ul><script>console.log("never")</script><h2>Second part</h2><p>The end.</p></body></html>"""

BOOK = """---\ntitle: A Book 书\nlang: en\n---\n\n# First chapter\n\nIt begins. 从前\n\n| a | b |\n|---|---|\n| 1 | 2 |\n
# Second chapter\n\n## Its part\n\nIt ends.\n"""

MATH = r"""The rate is $r=\frac{0.07}{12}$ for each month.

$$x=\frac{-b\pm\sqrt{b^2-4ac}}{2a}$$

$$\sum_{i=1}^{n} i^2$$
"""

REPORT = ["# Bericht 年度报告", "Grüße & 你好世界, ünïcödé.", "| Name | Anzahl |", "| Äpfel | 42 |", "| 梨 | 3,5 |",
          "point 1", "## Chapter 1", "## Chapter 3", "Words of chapter 2."]
SHEETS = ["## Daten", "## 汇总", "| Name | Wert |", "Äpfel\\|Birnen | 42 |", "| 梨 | 3.5 |", "Summe | 45.5 | 2026-03-01 |",
          "| only | second |"]
SLIDES = ["Ziele 目标", "Grow by half", "Kosten", "Forty two"]
NOTES = ["Say hello first", "Mention the risk"]
WEB = ["# Heading 标题", "**bold**", "[a link](https://example.org/x)", "| one | 1 |", "first", "## Second part"]
BOOKED = ["# First chapter", "从前", "| 1 | 2 |", "# Second chapter", "## Its part", "It ends."]

FORMULAS = ["$r=\\frac{0.07}{12}$", "\\frac{−b±\\sqrt{b^{2}−4ac}}{2a}", "\\sum_{i=1}^{n}"]

# A document, what has to be in its Markdown, and how many parts it has; or what it is refused with.
EXPECTED = [
    ("report.docx", REPORT + ["a remark below"], None),
    ("report.doc", REPORT, None),
    ("report.pdf", ["Bericht 年度报告", "你好世界", "Äpfel", "42", "Chapter 1", "<!-- page 2 -->", "<!-- page 4 -->"], 4),
    ("report.html", REPORT[:2] + ["Äpfel", "## Chapter 1"], None),
    ("sheets.xlsx", SHEETS, 2),
    ("sheets.xls", SHEETS, 2),
    ("sheets.ods", SHEETS, 2),
    ("sheets.csv", ["| Name | Wert |", "| 梨 | 3.5 |"], None),
    ("slides.pptx", SLIDES + NOTES + ["<!-- slide 1", "<!-- slide 2"], 2),
    ("slides.ppt", SLIDES + ["<!-- slide 2"], 2),
    ("slides.pdf", ["目标", "Kosten", "<!-- page 2 -->"], 2),
    ("page.html", WEB, None),
    ("page-chromium.pdf", ["Heading 标题", "one", "Second part", "<!-- page 1 -->"], 1),
    ("page-pandoc.docx", WEB[1:2] + ["Heading 标题", "one", "Second part"], None),
    ("book.epub", BOOKED + ["<!-- chapter"], None),
    ("book2.epub", BOOKED, None),
    ("book.pptx", ["It begins. 从前", "It ends."], None),
    ("gbk.csv", ["| 名称 | 数值 |", "| 苹果 | 42 |"], None),
    ("large.xlsx", ["| row 1 | 1 |", "| row 50000 | 50000 |"], 1),
    ("locked.pdf", "protected", None),
    ("locked.docx", "protected", None),
    ("report.odt", REPORT + ["[^1]: a remark below"], None),
    ("slides.odp", SLIDES + NOTES + ["<!-- slide 1", "<!-- slide 2"], 2),
    ("math.docx", FORMULAS, None),
    ("math.pptx", FORMULAS, None),
    ("math.odt", ["$r=\\frac{0.07}{12}$", "\\sqrt{", "{b}^{2}"], None),
    ("report-utf16.txt", "unknown", None),
    ("utf16.csv", ["| 名称 | 数值 |", "| 苹果 | 42 |"], None),
    ("money.xlsx", ["| 7.25% |", "| 1,234.50 € |", "| 01067 |"], None),
    ("mail.eml", ["# 季度报告", "- From: Zoë <zoe@example.org>", "- Attachments: zahlen.csv", "Grüße"], None),
    ("report.rtf", REPORT + ["- point 1", "a remark below"], None),
    ("half.pdf", None, None),
    ("half.docx", "damaged", None),
]


def large_workbook(path):
    cells = lambda n: f'<c r="A{n}" t="inlineStr"><is><t>row {n}</t></is></c><c r="B{n}"><v>{n}</v></c>'
    rows = "".join(f'<row r="{n}">{cells(n)}</row>' for n in range(1, 50_001))
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    link = lambda kind, target: (
        f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" Type="{office}/{kind}" Target="{target}"/></Relationships>'
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("[Content_Types].xml", f'<Types xmlns="{package}/content-types"/>')
        book.writestr("_rels/.rels", link("officeDocument", "xl/workbook.xml"))
        book.writestr("xl/_rels/workbook.xml.rels", link("worksheet", "worksheets/sheet1.xml"))
        sheet = '<sheet name="Large" sheetId="1" r:id="r1"/>'
        book.writestr("xl/workbook.xml", f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets>{sheet}</sheets></workbook>')
        book.writestr("xl/worksheets/sheet1.xml", f'<worksheet xmlns="{main}"><sheetData>{rows}</sheetData></worksheet>')


def run(*command, cwd):
    done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout.decode(errors='replace')}")


def make(folder, chromium):
    for name, text in [("report.fodt", text_source()), ("sheets.fods", sheet_source()), ("slides.fodp", slide_source()),
                       ("money.fods", money_source()), ("page.html", PAGE), ("book.md", BOOK), ("math.md", MATH)]:
        (folder / name).write_text(text, encoding="utf-8")
    office = ["soffice", f"-env:UserInstallation=file://{folder}/profile", "--headless", "--convert-to"]
    for source, endings in [("report.fodt", "docx doc pdf html odt rtf"), ("sheets.fods", "xlsx xls ods"),
                            ("slides.fodp", "pptx ppt pdf odp"), ("money.fods", "xlsx")]:
        for ending in endings.split():
            run(*office, ending, source, cwd=folder)
    run(*office, "csv:Text - txt - csv (StarCalc):44,34,76", "sheets.fods", cwd=folder)
    locked = '{"EncryptFile":{"type":"boolean","value":"true"},"DocumentOpenPassword":{"type":"string","value":"x"}}'
    shutil.copy(folder / "report.fodt", folder / "locked.fodt")
    run(*office, f"pdf:writer_pdf_Export:{locked}", "locked.fodt", cwd=folder)
    run("pandoc", "page.html", "-o", "page-pandoc.docx", cwd=folder)
    for target, how in [("book.epub", "epub3"), ("book2.epub", "epub2"), ("book.pptx", "pptx")]:
        run("pandoc", "book.md", "-t", how, "-o", target, cwd=folder)
    for ending in ["docx", "pptx", "odt"]:
        run("pandoc", "math.md", "-o", f"math.{ending}", cwd=folder)
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
    # A browser that phones home waits for an answer.
    flags += ["--no-proxy-server", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
    flags += [f"--user-data-dir={folder}/chromium", f"--print-to-pdf={folder}/page-chromium.pdf"]
    run(chromium, *flags, (folder / "page.html").as_uri(), cwd=folder)
    (folder / "gbk.csv").write_bytes("名称,数值\n苹果,42\n香蕉,7\n".encode("gb18030"))
    (folder / "utf16.csv").write_bytes("名称\t数值\r\n苹果\t42\r\n".encode("utf-16"))
    (folder / "report-utf16.txt").write_bytes("Grüße 你好\r\n".encode("utf-16"))
    (folder / "mail.eml").write_bytes(mail())
    large_workbook(folder / "large.xlsx")
    # What Office seals with a password is a compound file that holds the sealed package.
    (folder / "locked.docx").write_bytes(sealed())
    for name in ["report.pdf", "report.docx"]:
        whole = (folder / name).read_bytes()
        (folder / name.replace("report", "half")).write_bytes(whole[: len(whole) // 2])


def sealed():
    """The smallest compound file with a stream named EncryptedPackage."""
    sector = lambda values: b"".join(value.to_bytes(4, "little") for value in values).ljust(512, b"\xff")
    end, free, table = 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFD
    head = bytes.fromhex("d0cf11e0a1b11ae1") + bytes(16) + bytes.fromhex("3e000300feff0900060000000000000000000000")
    head = head[:44] + b"".join(n.to_bytes(4, "little") for n in [1, 1, 0, 4096, end, 0, end, 0, 0])
    head = head.ljust(512, b"\xff")

    def entry(name, kind, child, start, size):
        words = name.encode("utf-16-le")
        ids = b"".join(n.to_bytes(4, "little") for n in [free, free, child])
        fixed = words.ljust(64, b"\0") + (len(words) + 2).to_bytes(2, "little") + bytes([kind, 1]) + ids
        return fixed + bytes(36) + start.to_bytes(4, "little") + size.to_bytes(8, "little")

    stream = bytes(4096)
    chain = [table, end] + [2 + n + 1 for n in range(7)] + [end]
    folder = entry("Root Entry", 5, 1, end, 0) + entry("EncryptedPackage", 2, free, 2, len(stream))
    folder += (bytes(66) + b"\0\0" + b"\xff" * 12 + bytes(48)) * 2
    return head + sector(chain) + folder + stream


def convert(program, path):
    wish = {"name": path.name, "limits": {}}
    begun = time.monotonic()
    done = subprocess.run(
        [program, "read-document"], stdin=path.open("rb"), capture_output=True, timeout=120,
        env={"PUDU_DOCUMENT": json.dumps(wish)},
    )
    took = time.monotonic() - begun
    if done.returncode:
        return {"Err": f"it ended with {done.returncode}: {done.stderr.decode(errors='replace')[-500:]}"}, took
    return json.loads(done.stdout), took


def judge(answer, expected, parts):
    """What is wrong with an answer."""
    if expected is None:
        return []
    if isinstance(expected, str):
        error = answer.get("Err", answer)
        kind = error if isinstance(error, str) else next(iter(error))
        return [] if kind == expected else [f"expected {expected}, got {json.dumps(answer, ensure_ascii=False)[:300]}"]
    if "Err" in answer:
        return [f"refused: {answer['Err']}"]
    document = answer["Ok"]
    wrong = [f"{words!r} is not there" for words in expected if words not in document["markdown"]]
    if parts is not None and document.get("parts") != parts:
        wrong.append(f"{document.get('parts')} parts, expected {parts}")
    lines = document["markdown"].split("\n")
    wrong += [f"heading {h} is elsewhere" for h in document["outline"] if not lines[h["line"] - 1].startswith("#")]
    return wrong


def main():
    program = Path(sys.argv[1] if len(sys.argv) > 1 else "target/debug/pudu").resolve()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    missing = [name for name in ("soffice", "pandoc") if not shutil.which(name)]
    missing += [] if chromium else ["chromium"]
    missing += [] if program.exists() else [str(program)]
    if missing:
        print(f"skipped: {', '.join(missing)} is not here")
        return 1 if os.environ.get("PUDU_REQUIRE_CORPUS") else 0
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        begun = time.monotonic()
        make(folder, chromium)
        print(f"{len(EXPECTED)} documents, made in {time.monotonic() - begun:.0f} s")
        for name, expected, parts in EXPECTED:
            answer, took = convert(program, folder / name)
            wrong = judge(answer, expected, parts)
            size = (folder / name).stat().st_size
            print(f"{'FAILED' if wrong else 'ok':6} {took * 1000:7.0f} ms {size:9} bytes  {name}")
            for line in wrong:
                print(f"       {line}")
            if wrong and "Ok" in answer:
                print("       | " + answer["Ok"]["markdown"][:2000].replace("\n", "\n       | "))
            failures += bool(wrong)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
