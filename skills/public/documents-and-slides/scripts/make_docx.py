#!/usr/bin/env python3
"""Makes a Word document of Markdown.

    make_docx.py proposal.md proposal.docx
"""

import argparse
import sys
import zipfile
from pathlib import Path

import markdown
from markdown import xml

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
# English Metric Units: so many to an inch; text is 6.3 inches wide.
EMU, TEXT_WIDTH = 914_400, int(6.3 * 914_400)

STYLES = f"""<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<w:styles xmlns:w="{W}"><w:docDefaults><w:rPrDefault><w:rPr><w:rFonts w:ascii="Calibri" w:hAnsi="Calibri" w:cs="Calibri" w:eastAsia="Microsoft YaHei"/><w:sz w:val="22"/></w:rPr></w:rPrDefault>
<w:pPrDefault><w:pPr><w:spacing w:after="140" w:line="276" w:lineRule="auto"/></w:pPr></w:pPrDefault></w:docDefaults>
<w:style w:type="paragraph" w:default="1" w:styleId="Normal"><w:name w:val="Normal"/></w:style>
<w:style w:type="paragraph" w:styleId="Title"><w:name w:val="Title"/><w:basedOn w:val="Normal"/><w:pPr><w:spacing w:after="60"/></w:pPr><w:rPr><w:b/><w:sz w:val="48"/></w:rPr></w:style>
<w:style w:type="paragraph" w:styleId="Subtitle"><w:name w:val="Subtitle"/><w:basedOn w:val="Normal"/><w:pPr><w:spacing w:after="320"/></w:pPr><w:rPr><w:color w:val="595959"/><w:sz w:val="26"/></w:rPr></w:style>
%s
<w:style w:type="paragraph" w:styleId="Quote"><w:name w:val="Quote"/><w:basedOn w:val="Normal"/><w:pPr><w:ind w:left="560" w:right="560"/></w:pPr><w:rPr><w:i/><w:color w:val="404040"/></w:rPr></w:style>
<w:style w:type="paragraph" w:styleId="Code"><w:name w:val="Code"/><w:basedOn w:val="Normal"/><w:pPr><w:shd w:val="clear" w:color="auto" w:fill="F3F3F3"/><w:spacing w:after="0" w:line="240" w:lineRule="auto"/></w:pPr><w:rPr><w:rFonts w:ascii="Consolas" w:hAnsi="Consolas" w:cs="Consolas"/><w:sz w:val="19"/></w:rPr></w:style>
<w:style w:type="paragraph" w:styleId="Caption"><w:name w:val="caption"/><w:basedOn w:val="Normal"/><w:rPr><w:i/><w:sz w:val="19"/></w:rPr></w:style>
<w:style w:type="paragraph" w:styleId="ListParagraph"><w:name w:val="List Paragraph"/><w:basedOn w:val="Normal"/><w:pPr><w:spacing w:after="60"/></w:pPr></w:style>
<w:style w:type="character" w:styleId="Hyperlink"><w:name w:val="Hyperlink"/><w:rPr><w:color w:val="0563C1"/><w:u w:val="single"/></w:rPr></w:style>
<w:style w:type="table" w:styleId="Grid"><w:name w:val="Table Grid"/><w:tblPr><w:tblBorders>%s</w:tblBorders><w:tblCellMar><w:left w:w="100" w:type="dxa"/><w:right w:w="100" w:type="dxa"/></w:tblCellMar></w:tblPr></w:style>
</w:styles>""" % (
    "".join(
        f'<w:style w:type="paragraph" w:styleId="Heading{n}"><w:name w:val="heading {n}"/><w:basedOn w:val="Normal"/><w:next w:val="Normal"/>'
        f'<w:pPr><w:keepNext/><w:spacing w:before="{before}" w:after="100"/><w:outlineLvl w:val="{n - 1}"/></w:pPr><w:rPr><w:b/><w:color w:val="1F3864"/><w:sz w:val="{size}"/></w:rPr></w:style>'
        for n, size, before in ((1, 34, 400), (2, 28, 300), (3, 24, 220))
    ),
    "".join(f'<w:{side} w:val="single" w:sz="4" w:color="BFBFBF"/>' for side in ("top", "left", "bottom", "right", "insideH", "insideV")),
)


def numbering(lists):
    """Bullets are list 1; each numbered list is one of its own, so that it begins at 1."""
    level = lambda n, form, text: (
        f'<w:lvl w:ilvl="{n}"><w:start w:val="1"/><w:numFmt w:val="{form}"/><w:lvlText w:val="{text}"/><w:lvlJc w:val="left"/>'
        f'<w:pPr><w:ind w:left="{(n + 1) * 400}" w:hanging="320"/></w:pPr></w:lvl>'
    )
    bullets = "".join(level(n, "bullet", sign) for n, sign in enumerate("•–▪"))
    numbers = "".join(level(n, form, f"%{n + 1}.") for n, form in enumerate(("decimal", "lowerLetter", "lowerRoman")))
    nums = "".join(
        f'<w:num w:numId="{n}"><w:abstractNumId w:val="1"/><w:lvlOverride w:ilvl="0"><w:startOverride w:val="1"/></w:lvlOverride></w:num>'
        for n in range(2, lists + 2)
    )
    return (
        f'<?xml version="1.0" encoding="UTF-8" standalone="yes"?><w:numbering xmlns:w="{W}"><w:abstractNum w:abstractNumId="0">{bullets}</w:abstractNum>'
        f'<w:abstractNum w:abstractNumId="1">{numbers}</w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>{nums}</w:numbering>'
    )


class Document:
    def __init__(self, source):
        self.source, self.body, self.links, self.media, self.lists = source, [], [], [], 0
        self.warnings, self.counts = [], {}

    def runs(self, text, bold=False):
        out = []
        for words, strong, italic, code, url in markdown.runs(text, bold):
            style = ("<w:b/>" if strong else "") + ("<w:i/>" if italic else "")
            style = ('<w:rFonts w:ascii="Consolas" w:hAnsi="Consolas"/>' if code else "") + style
            run = lambda inner: f'<w:r><w:rPr>{inner}</w:rPr><w:t xml:space="preserve">{xml(words)}</w:t></w:r>'
            if url and url.startswith(("http://", "https://", "mailto:")):
                self.links.append(url)
                out.append(f'<w:hyperlink r:id="rLink{len(self.links)}">{run("<w:rStyle w:val=%sHyperlink%s/>" % (chr(34), chr(34)))}</w:hyperlink>')
            else:
                out.append(run(style))
        return "".join(out)

    def paragraph(self, text, style=None, extra=""):
        style = f'<w:pStyle w:val="{style}"/>' if style else ""
        self.body.append(f"<w:p><w:pPr>{style}{extra}</w:pPr>{self.runs(text)}</w:p>")

    def add(self, block, before):
        kind = block["kind"]
        self.counts[kind] = self.counts.get(kind, 0) + 1
        if kind == "heading":
            self.paragraph(block["text"], f"Heading{min(block['level'], 3)}")
        elif kind == "text":
            self.paragraph(block["text"])
        elif kind == "quote":
            self.paragraph(block["text"], "Quote")
        elif kind == "item":
            same = before and before["kind"] == "item" and before["ordered"] == block["ordered"]
            if block["ordered"] and not same:
                self.lists += 1
            number = self.lists + 1 if block["ordered"] else 1
            self.paragraph(block["text"], "ListParagraph", f'<w:numPr><w:ilvl w:val="{block["level"]}"/><w:numId w:val="{number}"/></w:numPr>')
        elif kind == "code":
            for line in block["lines"] or [""]:
                self.body.append(f'<w:p><w:pPr><w:pStyle w:val="Code"/></w:pPr><w:r><w:t xml:space="preserve">{xml(line)}</w:t></w:r></w:p>')
            self.body.append("<w:p/>")
        elif kind == "break":
            self.body.append('<w:p><w:r><w:br w:type="page"/></w:r></w:p>')
        elif kind == "table":
            self.table(block["rows"])
        elif kind == "picture":
            self.picture(block)

    def table(self, rows):
        width = 9_070 // len(rows[0])
        out = ['<w:tbl><w:tblPr><w:tblStyle w:val="Grid"/><w:tblW w:w="5000" w:type="pct"/></w:tblPr><w:tblGrid>', f'<w:gridCol w:w="{width}"/>' * len(rows[0]), "</w:tblGrid>"]
        for at, cells in enumerate(rows):
            head = at == 0
            out.append("<w:tr>" + ("<w:trPr><w:tblHeader/></w:trPr>" if head else ""))
            shade = '<w:shd w:val="clear" w:color="auto" w:fill="E7ECF4"/>' if head else ""
            for cell in cells:
                out.append(f'<w:tc><w:tcPr><w:tcW w:w="{width}" w:type="dxa"/>{shade}</w:tcPr><w:p><w:pPr><w:spacing w:after="40"/></w:pPr>{self.runs(cell, head)}</w:p></w:tc>')
            out.append("</w:tr>")
        self.body.append("".join(out) + "</w:tbl><w:p/>")

    def picture(self, block):
        found = markdown.picture(block["path"], self.source)
        if not found or not found[2] or not found[3]:
            self.warnings.append(f"the picture {block['path']} is not there, or is neither PNG nor JPEG")
            self.paragraph(f"[picture: {block['text'] or block['path']}]")
            return
        data, ending, width, height = found
        self.media.append((data, ending))
        n, scale = len(self.media), min(TEXT_WIDTH / (width * 9_525), 1)
        cx, cy = int(width * 9_525 * scale), int(height * 9_525 * scale)
        drawing = "http://schemas.openxmlformats.org/drawingml/2006"
        self.body.append(
            f'<w:p><w:r><w:drawing><wp:inline xmlns:wp="{drawing}/wordprocessingDrawing"><wp:extent cx="{cx}" cy="{cy}"/><wp:docPr id="{n}" name="Picture {n}" descr="{xml(block["text"])}"/>'
            f'<a:graphic xmlns:a="{drawing}/main"><a:graphicData uri="{drawing}/picture"><pic:pic xmlns:pic="{drawing}/picture"><pic:nvPicPr><pic:cNvPr id="{n}" name="Picture {n}"/><pic:cNvPicPr/></pic:nvPicPr>'
            f'<pic:blipFill><a:blip r:embed="rMedia{n}"/><a:stretch><a:fillRect/></a:stretch></pic:blipFill><pic:spPr><a:xfrm><a:off x="0" y="0"/><a:ext cx="{cx}" cy="{cy}"/></a:xfrm><a:prstGeom prst="rect"><a:avLst/></a:prstGeom></pic:spPr></pic:pic></a:graphicData></a:graphic></wp:inline></w:drawing></w:r></w:p>'
        )
        if block["text"]:
            self.paragraph(block["text"], "Caption")

    def save(self, path, head):
        relations = [("rStyles", "styles", "styles.xml", ""), ("rNumbering", "numbering", "numbering.xml", "")]
        relations += [(f"rLink{n}", "hyperlink", xml(url), ' TargetMode="External"') for n, url in enumerate(self.links, 1)]
        relations += [(f"rMedia{n}", "image", f"media/image{n}.{ending}", "") for n, (_, ending) in enumerate(self.media, 1)]
        rels = "".join(f'<Relationship Id="{i}" Type="{R}/{kind}" Target="{target}"{mode}/>' for i, kind, target, mode in relations)
        begin = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
        page = '<w:sectPr><w:pgSz w:w="11906" w:h="16838"/><w:pgMar w:top="1418" w:right="1418" w:bottom="1418" w:left="1418" w:header="708" w:footer="708" w:gutter="0"/></w:sectPr>'
        part = "application/vnd.openxmlformats-officedocument.wordprocessingml"
        files = {
            "[Content_Types].xml": f'{begin}<Types xmlns="{PACKAGE}/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/>'
            f'<Default Extension="png" ContentType="image/png"/><Default Extension="jpeg" ContentType="image/jpeg"/><Override PartName="/word/document.xml" ContentType="{part}.document.main+xml"/>'
            f'<Override PartName="/word/styles.xml" ContentType="{part}.styles+xml"/><Override PartName="/word/numbering.xml" ContentType="{part}.numbering+xml"/><Override PartName="/docProps/core.xml" ContentType="application/vnd.openxmlformats-package.core-properties+xml"/></Types>',
            "_rels/.rels": f'{begin}<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="r1" Type="{R}/officeDocument" Target="word/document.xml"/><Relationship Id="r2" Type="{PACKAGE}/relationships/metadata/core-properties" Target="docProps/core.xml"/></Relationships>',
            "docProps/core.xml": f'{begin}<cp:coreProperties xmlns:cp="{PACKAGE}/metadata/core-properties" xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{xml(head.get("title", ""))}</dc:title><dc:creator>{xml(head.get("author", ""))}</dc:creator></cp:coreProperties>',
            "word/document.xml": f'{begin}<w:document xmlns:w="{W}" xmlns:r="{R}"><w:body>{"".join(self.body)}{page}</w:body></w:document>',
            "word/_rels/document.xml.rels": f'{begin}<Relationships xmlns="{PACKAGE}/relationships">{rels}</Relationships>',
            "word/styles.xml": STYLES,
            "word/numbering.xml": numbering(self.lists),
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
            for name, text in files.items():
                out.writestr(name, text)
            for n, (data, ending) in enumerate(self.media, 1):
                out.writestr(f"word/media/image{n}.{ending}", data)


def main():
    parser = argparse.ArgumentParser(description="Makes a Word document of Markdown.")
    parser.add_argument("source", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    head, blocks = markdown.read(args.source)
    document = Document(args.source)
    if head.get("title"):
        document.paragraph(head["title"], "Title")
        under = " · ".join(head[key] for key in ("subtitle", "author", "date") if head.get(key))
        document.paragraph(under, "Subtitle")
    before = None
    for block in blocks:
        document.add(block, before)
        before = block
    document.save(args.out, head)
    told = ", ".join(f"{count} {kind}{'s' if count != 1 else ''}" for kind, count in document.counts.items() if kind != "notes")
    print(f"{args.out}: {told or 'empty'}")
    for warning in document.warnings:
        print(f"WARNING: {warning}")


if __name__ == "__main__":
    sys.exit(main())
