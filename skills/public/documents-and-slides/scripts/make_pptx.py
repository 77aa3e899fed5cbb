#!/usr/bin/env python3
"""Makes slides of Markdown: each `##` begins one.

    make_pptx.py deck.md deck.pptx
"""

import argparse
import sys
import zipfile
from pathlib import Path

import markdown
from markdown import xml

A = "http://schemas.openxmlformats.org/drawingml/2006/main"
P = "http://schemas.openxmlformats.org/presentationml/2006/main"
R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
NAMES = f'xmlns:a="{A}" xmlns:r="{R}" xmlns:p="{P}"'
BEGIN = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
# English Metric Units: a slide of 13.33 by 7.5 inches.
WIDTH, HEIGHT, MARGIN = 12_192_000, 6_858_000, 640_000
INK, ACCENT, GREY = "1F2937", "1F3864", "6B7280"
# What fits on a slide without being too small to read.
MOST_POINTS, LONGEST_POINT, LONGEST_TITLE, MOST_ROWS = 6, 110, 90, 8


class Slide:
    def __init__(self, kind, title):
        self.kind, self.title, self.blocks, self.notes = kind, title, [], []


def slides(head, blocks):
    found = []
    if head.get("title"):
        first = Slide("title", head["title"])
        under = " · ".join(head[key] for key in ("subtitle", "author", "date") if head.get(key))
        first.blocks = [{"kind": "text", "text": under}] if under else []
        found.append(first)
    for block in blocks:
        if block["kind"] == "heading" and block["level"] <= 2:
            found.append(Slide("section" if block["level"] == 1 else "slide", block["text"]))
        elif block["kind"] == "notes":
            if found:
                found[-1].notes.append(block["text"])
        elif block["kind"] != "break":
            if not found:
                found.append(Slide("slide", "Untitled"))
            found[-1].blocks.append(block)
    return found


def runs(text, size, colour=INK, bold=False):
    out = []
    for words, strong, italic, code, _ in markdown.runs(text, bold):
        marks = (' b="1"' if strong else "") + (' i="1"' if italic else "")
        font = '<a:latin typeface="Consolas"/>' if code else ""
        out.append(f'<a:r><a:rPr lang="en-US" sz="{size}"{marks} dirty="0"><a:solidFill><a:srgbClr val="{colour}"/></a:solidFill>{font}</a:rPr><a:t>{xml(words)}</a:t></a:r>')
    return "".join(out)


def point(text, size, level=0, sign="•", bold=False, colour=INK):
    indent = f'marL="{(level + 1) * 300_000}" indent="-260000"' if sign else 'marL="0" indent="0"'
    bullet = f'<a:buChar char="{sign}"/>' if sign and sign != "1" else '<a:buAutoNum type="arabicPeriod"/>' if sign else "<a:buNone/>"
    return f'<a:p><a:pPr {indent}><a:spcBef><a:spcPts val="700"/></a:spcBef>{bullet}</a:pPr>{runs(text, size, colour, bold)}</a:p>'


def box(n, name, place, paragraphs, kind="", anchor="t"):
    x, y, w, h = place
    holder = f'<p:nvPr><p:ph type="{kind}"/></p:nvPr>' if kind else "<p:nvPr/>"
    return (
        f'<p:sp><p:nvSpPr><p:cNvPr id="{n}" name="{name}"/><p:cNvSpPr/>{holder}</p:nvSpPr><p:spPr><a:xfrm><a:off x="{x}" y="{y}"/><a:ext cx="{w}" cy="{h}"/></a:xfrm><a:prstGeom prst="rect"><a:avLst/></a:prstGeom></p:spPr>'
        f'<p:txBody><a:bodyPr wrap="square" lIns="0" tIns="0" rIns="0" bIns="0" anchor="{anchor}"><a:normAutofit/></a:bodyPr><a:lstStyle/>{paragraphs or "<a:p/>"}</p:txBody></p:sp>'
    )


def table(n, rows, place):
    x, y, w, h = place
    width, height = w // len(rows[0]), min(h // len(rows), 520_000)
    edge = "".join(f'<a:{side} w="6350"><a:solidFill><a:srgbClr val="D1D5DB"/></a:solidFill></a:{side}>' for side in ("lnL", "lnR", "lnT", "lnB"))
    cell = lambda text, head: (
        f'<a:tc><a:txBody><a:bodyPr/><a:lstStyle/><a:p>{runs(text, 1600, "FFFFFF" if head else INK, head)}</a:p></a:txBody>'
        f'<a:tcPr anchor="ctr">{edge}<a:solidFill><a:srgbClr val="{ACCENT if head else "FFFFFF"}"/></a:solidFill></a:tcPr></a:tc>'
    )
    lines = "".join(f'<a:tr h="{height}">{"".join(cell(text, at == 0) for text in row)}</a:tr>' for at, row in enumerate(rows))
    return (
        f'<p:graphicFrame><p:nvGraphicFramePr><p:cNvPr id="{n}" name="Table {n}"/><p:cNvGraphicFramePr/><p:nvPr/></p:nvGraphicFramePr><p:xfrm><a:off x="{x}" y="{y}"/><a:ext cx="{w}" cy="{height * len(rows)}"/></p:xfrm>'
        f'<a:graphic><a:graphicData uri="http://schemas.openxmlformats.org/drawingml/2006/table"><a:tbl><a:tblPr firstRow="1"/><a:tblGrid>{f"<a:gridCol w={chr(34)}{width}{chr(34)}/>" * len(rows[0])}</a:tblGrid>{lines}</a:tbl></a:graphicData></a:graphic></p:graphicFrame>'
    )


class Deck:
    def __init__(self, source):
        self.source, self.media, self.warnings = source, [], []

    def warn(self, number, what):
        self.warnings.append(f"slide {number}: {what}")

    def shapes(self, slide, number):
        """Returns the slide's shapes and the pictures that it shows."""
        if len(markdown.plain(slide.title)) > LONGEST_TITLE:
            self.warn(number, f"the title has more than {LONGEST_TITLE} characters")
        if slide.kind != "slide":
            words = "".join(point(b["text"], 2200, sign="", colour=GREY) for b in slide.blocks if "text" in b)
            title = box(2, "Title", (MARGIN, 2_200_000, WIDTH - 2 * MARGIN, 1_500_000), point(slide.title, 4400 if slide.kind == "title" else 3800, sign="", bold=True, colour=ACCENT), "ctrTitle" if slide.kind == "title" else "title", "b")
            return title + box(3, "Subtitle", (MARGIN, 3_860_000, WIDTH - 2 * MARGIN, 1_400_000), words), []
        out = [box(2, "Title", (MARGIN, 420_000, WIDTH - 2 * MARGIN, 1_000_000), point(slide.title, 2800, sign="", bold=True, colour=ACCENT), "title", "ctr")]
        texts = [b for b in slide.blocks if b["kind"] not in ("table", "picture")]
        others = [b for b in slide.blocks if b["kind"] in ("table", "picture")]
        top, room = 1_640_000, HEIGHT - 1_640_000 - 520_000
        points = sum(b["kind"] in ("item", "text", "quote") for b in texts)
        if points > MOST_POINTS:
            self.warn(number, f"{points} points; {MOST_POINTS} is the most that is read")
        for block in texts:
            if len(markdown.plain(block.get("text", ""))) > LONGEST_POINT:
                self.warn(number, f"a point has more than {LONGEST_POINT} characters: {block['text'][:40]}…")
        if len(others) > 1:
            self.warn(number, "more than one table or picture; only the first is shown")
        height = room if not others else min(room * 2 // 5, 460_000 * max(points, 1)) if texts else 0
        if texts:
            size = 2200 if points <= 5 else 1800
            out.append(box(3, "Text", (MARGIN, top, WIDTH - 2 * MARGIN, height), "".join(self.paragraphs(b, size) for b in texts), "body"))
        media = []
        if others:
            place = (MARGIN, top + height + 100_000, WIDTH - 2 * MARGIN, room - height - 100_000)
            if others[0]["kind"] == "table":
                if len(others[0]["rows"]) > MOST_ROWS:
                    self.warn(number, f"the table has {len(others[0]['rows'])} rows; {MOST_ROWS} is the most that is read")
                out.append(table(4, others[0]["rows"], place))
            else:
                out.append(self.picture(others[0], place, number, media))
        return "".join(out), media

    def paragraphs(self, block, size):
        if block["kind"] == "item":
            return point(block["text"], size - 200 * block["level"], block["level"], "1" if block["ordered"] else "•–▪"[block["level"]])
        if block["kind"] == "code":
            return "".join(f'<a:p><a:r><a:rPr lang="en-US" sz="1400"><a:latin typeface="Consolas"/></a:rPr><a:t>{xml(line)}</a:t></a:r></a:p>' for line in block["lines"])
        return point(block["text"], size, sign="", bold=block["kind"] == "heading", colour=GREY if block["kind"] == "quote" else INK)

    def picture(self, block, place, number, media):
        found = markdown.picture(block["path"], self.source)
        if not found or not found[2] or not found[3]:
            self.warn(number, f"the picture {block['path']} is not there, or is neither PNG nor JPEG")
            return ""
        data, ending, width, height = found
        self.media.append((data, ending))
        media.append(f"image{len(self.media)}.{ending}")
        x, y, w, h = place
        scale = min(w / width, h / height)
        cx, cy = int(width * scale), int(height * scale)
        return (
            f'<p:pic><p:nvPicPr><p:cNvPr id="5" name="Picture" descr="{xml(block["text"])}"/><p:cNvPicPr/><p:nvPr/></p:nvPicPr><p:blipFill><a:blip r:embed="rMedia1"/><a:stretch><a:fillRect/></a:stretch></p:blipFill>'
            f'<p:spPr><a:xfrm><a:off x="{x + (w - cx) // 2}" y="{y + (h - cy) // 2}"/><a:ext cx="{cx}" cy="{cy}"/></a:xfrm><a:prstGeom prst="rect"><a:avLst/></a:prstGeom></p:spPr></p:pic>'
        )


TREE = '<p:nvGrpSpPr><p:cNvPr id="1" name=""/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr><p:grpSpPr/>'
COLOURS = "".join(
    f'<a:{name}><a:srgbClr val="{value}"/></a:{name}>'
    for name, value in zip(
        ("dk1", "lt1", "dk2", "lt2", "accent1", "accent2", "accent3", "accent4", "accent5", "accent6", "hlink", "folHlink"),
        (INK, "FFFFFF", ACCENT, "F3F4F6", ACCENT, "D55E00", "009E73", "CC79A7", "E69F00", "56B4E9", "0563C1", "954F72"),
    )
)
FILLS = '<a:solidFill><a:schemeClr val="phClr"/></a:solidFill>' * 3
LINES = '<a:ln w="6350"><a:solidFill><a:schemeClr val="phClr"/></a:solidFill></a:ln>' * 3
THEME = (
    f'{BEGIN}<a:theme xmlns:a="{A}" name="Plain"><a:themeElements><a:clrScheme name="Plain">{COLOURS}</a:clrScheme><a:fontScheme name="Plain">'
    + "".join(f'<a:{kind}Font><a:latin typeface="Calibri"/><a:ea typeface="Microsoft YaHei"/><a:cs typeface=""/></a:{kind}Font>' for kind in ("major", "minor"))
    + f'</a:fontScheme><a:fmtScheme name="Plain"><a:fillStyleLst>{FILLS}</a:fillStyleLst><a:lnStyleLst>{LINES}</a:lnStyleLst><a:effectStyleLst>{"<a:effectStyle><a:effectLst/></a:effectStyle>" * 3}</a:effectStyleLst><a:bgFillStyleLst>{FILLS}</a:bgFillStyleLst></a:fmtScheme></a:themeElements></a:theme>'
)
MAP = '<p:clrMap bg1="lt1" tx1="dk1" bg2="lt2" tx2="dk2" accent1="accent1" accent2="accent2" accent3="accent3" accent4="accent4" accent5="accent5" accent6="accent6" hlink="hlink" folHlink="folHlink"/>'


def rels(*entries):
    lines = "".join(f'<Relationship Id="{i}" Type="{R}/{kind}" Target="{target}"/>' for i, kind, target in entries)
    return f'{BEGIN}<Relationships xmlns="{PACKAGE}/relationships">{lines}</Relationships>'


def save(path, head, deck, made):
    part = "application/vnd.openxmlformats-officedocument.presentationml"
    notes = [n for n, (slide, _, _) in enumerate(made, 1) if slide.notes]
    types = [("/ppt/presentation.xml", "presentation.main"), ("/ppt/slideMasters/slideMaster1.xml", "slideMaster"), ("/ppt/slideLayouts/slideLayout1.xml", "slideLayout")]
    types += [(f"/ppt/slides/slide{n}.xml", "slide") for n in range(1, len(made) + 1)]
    types += [("/ppt/notesMasters/notesMaster1.xml", "notesMaster")] if notes else []
    types += [(f"/ppt/notesSlides/notesSlide{n}.xml", "notesSlide") for n in notes]
    overrides = "".join(f'<Override PartName="{name}" ContentType="{part}.{kind}+xml"/>' for name, kind in types)
    themes = "".join(f'<Override PartName="/ppt/theme/theme{n}.xml" ContentType="application/vnd.openxmlformats-officedocument.theme+xml"/>' for n in ((1, 2) if notes else (1,)))
    ids = "".join(f'<p:sldId id="{255 + n}" r:id="rSlide{n}"/>' for n in range(1, len(made) + 1))
    with_notes = '<p:notesMasterIdLst><p:notesMasterId r:id="rNotes"/></p:notesMasterIdLst>' if notes else ""
    files = {
        "[Content_Types].xml": f'{BEGIN}<Types xmlns="{PACKAGE}/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Default Extension="png" ContentType="image/png"/><Default Extension="jpeg" ContentType="image/jpeg"/>{overrides}{themes}<Override PartName="/docProps/core.xml" ContentType="application/vnd.openxmlformats-package.core-properties+xml"/></Types>',
        "_rels/.rels": f'{BEGIN}<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="r1" Type="{R}/officeDocument" Target="ppt/presentation.xml"/><Relationship Id="r2" Type="{PACKAGE}/relationships/metadata/core-properties" Target="docProps/core.xml"/></Relationships>',
        "docProps/core.xml": f'{BEGIN}<cp:coreProperties xmlns:cp="{PACKAGE}/metadata/core-properties" xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{xml(head.get("title", ""))}</dc:title><dc:creator>{xml(head.get("author", ""))}</dc:creator></cp:coreProperties>',
        "ppt/presentation.xml": f'{BEGIN}<p:presentation {NAMES}><p:sldMasterIdLst><p:sldMasterId id="2147483648" r:id="rMaster"/></p:sldMasterIdLst>{with_notes}<p:sldIdLst>{ids}</p:sldIdLst><p:sldSz cx="{WIDTH}" cy="{HEIGHT}"/><p:notesSz cx="6858000" cy="9144000"/></p:presentation>',
        "ppt/_rels/presentation.xml.rels": rels(("rMaster", "slideMaster", "slideMasters/slideMaster1.xml"), ("rTheme", "theme", "theme/theme1.xml"), *([("rNotes", "notesMaster", "notesMasters/notesMaster1.xml")] if notes else []), *((f"rSlide{n}", "slide", f"slides/slide{n}.xml") for n in range(1, len(made) + 1))),
        "ppt/theme/theme1.xml": THEME,
        "ppt/slideMasters/slideMaster1.xml": f'{BEGIN}<p:sldMaster {NAMES}><p:cSld><p:bg><p:bgRef idx="1001"><a:schemeClr val="bg1"/></p:bgRef></p:bg><p:spTree>{TREE}</p:spTree></p:cSld>{MAP}<p:sldLayoutIdLst><p:sldLayoutId id="2147483649" r:id="rLayout"/></p:sldLayoutIdLst></p:sldMaster>',
        "ppt/slideMasters/_rels/slideMaster1.xml.rels": rels(("rLayout", "slideLayout", "../slideLayouts/slideLayout1.xml"), ("rTheme", "theme", "../theme/theme1.xml")),
        "ppt/slideLayouts/slideLayout1.xml": f'{BEGIN}<p:sldLayout {NAMES} type="blank"><p:cSld name="Plain"><p:spTree>{TREE}</p:spTree></p:cSld><p:clrMapOvr><a:masterClrMapping/></p:clrMapOvr></p:sldLayout>',
        "ppt/slideLayouts/_rels/slideLayout1.xml.rels": rels(("rMaster", "slideMaster", "../slideMasters/slideMaster1.xml")),
    }
    if notes:
        files["ppt/theme/theme2.xml"] = THEME
        files["ppt/notesMasters/notesMaster1.xml"] = f'{BEGIN}<p:notesMaster {NAMES}><p:cSld><p:bg><p:bgRef idx="1001"><a:schemeClr val="bg1"/></p:bgRef></p:bg><p:spTree>{TREE}</p:spTree></p:cSld>{MAP}</p:notesMaster>'
        files["ppt/notesMasters/_rels/notesMaster1.xml.rels"] = rels(("rTheme", "theme", "../theme/theme2.xml"))
    for n, (slide, shapes, media) in enumerate(made, 1):
        files[f"ppt/slides/slide{n}.xml"] = f'{BEGIN}<p:sld {NAMES}><p:cSld><p:spTree>{TREE}{shapes}</p:spTree></p:cSld><p:clrMapOvr><a:masterClrMapping/></p:clrMapOvr></p:sld>'
        more = [(f"rMedia{m}", "image", f"../media/{name}") for m, name in enumerate(media, 1)]
        more += [("rNotes", "notesSlide", f"../notesSlides/notesSlide{n}.xml")] if slide.notes else []
        files[f"ppt/slides/_rels/slide{n}.xml.rels"] = rels(("rLayout", "slideLayout", "../slideLayouts/slideLayout1.xml"), *more)
        if slide.notes:
            words = "".join(f"<a:p><a:r><a:rPr lang=\"en-US\"/><a:t>{xml(text)}</a:t></a:r></a:p>" for text in slide.notes)
            files[f"ppt/notesSlides/notesSlide{n}.xml"] = f'{BEGIN}<p:notes {NAMES}><p:cSld><p:spTree>{TREE}<p:sp><p:nvSpPr><p:cNvPr id="2" name="Notes"/><p:cNvSpPr/><p:nvPr><p:ph type="body" idx="1"/></p:nvPr></p:nvSpPr><p:spPr/><p:txBody><a:bodyPr/><a:lstStyle/>{words}</p:txBody></p:sp></p:spTree></p:cSld><p:clrMapOvr><a:masterClrMapping/></p:clrMapOvr></p:notes>'
            files[f"ppt/notesSlides/_rels/notesSlide{n}.xml.rels"] = rels(("rMaster", "notesMaster", "../notesMasters/notesMaster1.xml"), ("rSlide", "slide", f"../slides/slide{n}.xml"))
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for name, text in files.items():
            out.writestr(name, text)
        for n, (data, ending) in enumerate(deck.media, 1):
            out.writestr(f"ppt/media/image{n}.{ending}", data)


def main():
    parser = argparse.ArgumentParser(description="Makes slides of Markdown.")
    parser.add_argument("source", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    head, blocks = markdown.read(args.source)
    found = slides(head, blocks)
    if not found:
        sys.exit("error: there is nothing to show: begin a slide with `## Its title`")
    deck = Deck(args.source)
    made = [(slide, *deck.shapes(slide, number)) for number, slide in enumerate(found, 1)]
    save(args.out, head, deck, made)
    print(f"{args.out}: {len(made)} slides, {sum(bool(slide.notes) for slide in found)} with notes")
    for warning in deck.warnings:
        print(f"WARNING: {warning}")


if __name__ == "__main__":
    sys.exit(main())
