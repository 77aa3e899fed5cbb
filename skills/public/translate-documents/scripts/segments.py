#!/usr/bin/env python3
"""Takes the text of a document out in pieces, and puts their translations back.

    segments.py extract offer.docx offer.json
    segments.py apply offer.docx offer.json offer.de.docx

Knows docx, pptx, xlsx, html, md, srt, vtt and txt. Needs Python 3.9 and nothing else.
"""

import argparse
import html
import json
import re
import sys
import zipfile
from pathlib import Path

LARGEST = 100 * 1024 * 1024
LARGEST_INSIDE = 400 * 1024 * 1024
MOST = 50_000
MARK = re.compile("⟦(\\d+)⟧")
# What stays as it is, whatever the format: code, addresses, placeholders.
KEPT = re.compile(r"`[^`]+`|https?://[^\s)>\]\"']+|\{\{?[\w.]+\}?\}|%\(\w+\)[sd]|%[sd]|\$\{\w+\}|<[^<>]+>|&[a-z]+;")
PARTS = {
    ".docx": (r"word/(?:document|footnotes|endnotes|header\d*|footer\d*)\.xml", "w:p", "w:r", "w:t"),
    ".pptx": (r"ppt/(?:slides/slide|notesSlides/notesSlide)\d+\.xml", "a:p", "a:r", "a:t"),
    ".xlsx": (r"xl/sharedStrings\.xml", "si", "r", "t"),
}


def fail(words):
    sys.exit(f"error: {words}")


def is_text(text):
    """Tells whether there is anything to translate: a letter outside of marks."""
    return any(letter.isalpha() for letter in MARK.sub("", text))


def plain(text):
    """The source's own brackets must not look like marks."""
    return text.replace("⟦", "[").replace("⟧", "]")


def protect(text, marks):
    """Puts marks in place of what stays, behind those that are there; returns the text and what they stand for."""
    kept = []

    def mark(found):
        kept.append(found.group(0))
        return f"⟦{marks + len(kept)}⟧"

    return KEPT.sub(mark, text), kept


def restore(text, kept, marks):
    """Puts back what stays. Marks up to `marks` are the caller's; any other that was never made goes."""

    def back(found):
        number = int(found.group(1))
        if 0 < number <= marks:
            return found.group(0)
        return kept[number - marks - 1] if marks < number <= marks + len(kept) else ""

    return MARK.sub(back, text)


class Pieces:
    """The pieces of a document: collected while it is taken apart, given out while it is put together."""

    def __init__(self, targets=None):
        self.found, self.targets = [], targets

    def swap(self, text, marks=0):
        """Takes a piece that has so many marks already, or gives its translation."""
        source, kept = protect(text if marks else plain(text), marks)
        if not is_text(source):
            return text
        lead, trail = source[: len(source) - len(source.lstrip())], source[len(source.rstrip()) :]
        self.found.append(source.strip())
        if len(self.found) > MOST:
            fail(f"more than {MOST} pieces: cut the document first")
        if self.targets is None:
            return text
        target = self.targets[len(self.found) - 1] if len(self.found) <= len(self.targets) else ""
        return lead + restore(target or source.strip(), kept, marks) + trail


def office(path, ending, pieces, out):
    pattern, paragraph, run, text = PARTS[ending]
    try:
        book = zipfile.ZipFile(path)
    except zipfile.BadZipFile:
        fail(f"{path} is no {ending} file")
    if sum(info.file_size for info in book.infolist()) > LARGEST_INSIDE:
        fail("the document is too large when it is unpacked")
    made = zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) if out else None
    number = lambda info: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", info.filename)]
    parts = sorted((info for info in book.infolist() if re.fullmatch(pattern, info.filename)), key=number)
    new = {info.filename: paragraphs(book.read(info).decode("utf-8"), paragraph, run, text, pieces) for info in parts}
    if made:
        for info in book.infolist():
            data = new[info.filename].encode("utf-8") if info.filename in new else book.read(info)
            made.writestr(info.filename, data)
        made.close()


def paragraphs(xml, paragraph, run, text, pieces):
    """Goes through the innermost paragraphs. A change of style inside of one becomes a mark."""
    inner = re.compile(rf"<{paragraph}(?:\s[^>]*)?>(?:(?!<{paragraph}[\s>]).)*?</{paragraph}>", re.S)
    words = re.compile(rf"(<{text}(?:\s[^>]*)?>)(.*?)(</{text}>)", re.S)

    def one(found):
        block = found.group(0)
        texts = list(words.finditer(block))
        joined, kept, styles = "", [], []
        for at, part in enumerate(texts):
            between = block[texts[at - 1].end() if at else 0 : part.start()]
            style = re.findall(r"<(?:w:rPr|a:rPr|rPr)\b.*?(?:/>|</(?:w:rPr|a:rPr|rPr)>)", between, re.S)
            changes = at > 0 and style[-1:] != styles[-1:]
            styles = style or styles
            if at and (changes or re.search(r"<w:(?:tab|br|drawing|footnoteReference)\b|<a:br\b|hyperlink", between)):
                kept.append(at)
                joined += f"⟦{len(kept)}⟧"
            joined += plain(html.unescape(part.group(2)))
        if not is_text(joined):
            return block
        target = pieces.swap(joined, len(kept))
        if pieces.targets is None or target == joined:
            return block
        # The words between two marks go into the first text behind the mark; the others are emptied.
        share = {0: ""}
        place = 0
        for token in re.split("(⟦\\d+⟧)", target):
            mark = MARK.fullmatch(token)
            if mark and int(mark.group(1)) <= len(kept):
                place = kept[int(mark.group(1)) - 1]
            else:
                share[place] = share.get(place, "") + token
        out, end = [], 0
        for at, part in enumerate(texts):
            opening = part.group(1)
            if "xml:space" not in opening:
                opening = opening[:-1] + ' xml:space="preserve">' if not opening.startswith("<a:t") else opening
            out += [block[end : part.start()], opening, html.escape(share.get(at, ""), quote=False), part.group(3)]
            end = part.end()
        return "".join(out) + block[end:]

    return inner.sub(one, xml)


def page(text, pieces):
    """HTML: what stands between tags, outside of scripts and styles, and the words of some attributes."""
    out = []
    for part in re.split(r"(<!--.*?-->|<(?:script|style|pre|code)\b.*?</(?:script|style|pre|code)>|<[^>]+>)", text, flags=re.S | re.I):
        if part.startswith("<!--") or re.match(r"<(?:script|style|pre|code)\b", part, re.I):
            out.append(part)
        elif part.startswith("<"):
            attribute = lambda found: found.group(1) + html.escape(pieces.swap(html.unescape(found.group(2)))) + found.group(3)
            out.append(re.sub(r'(\s(?:alt|title|placeholder|aria-label)=")([^"]+)(")', attribute, part))
        else:
            out.append(html.escape(pieces.swap(html.unescape(part)), quote=False) if part.strip() else part)
    return "".join(out)


def lines(text, pieces, ending):
    """Line by line: Markdown, subtitles, plain text. What is structure stays."""
    out, fenced, head = [], False, text.startswith("---\n")
    for at, line in enumerate(text.split("\n")):
        if ending == ".md":
            if line.lstrip().startswith(("```", "~~~")):
                fenced = not fenced
                out.append(line)
                continue
            if head:
                key = re.match(r"(title|subtitle|description):(\s*)(.*)", line)
                out.append(f"{key.group(1)}:{key.group(2)}{pieces.swap(key.group(3))}" if key else line)
                head = not (at > 0 and line.strip() == "---")
                continue
            if fenced or re.fullmatch(r"[\s|:-]*", line):
                out.append(line)
                continue
            if line.count("|") >= 2:
                out.append("|".join(pieces.swap(cell) for cell in line.split("|")))
                continue
            lead = re.match(r"\s*(?:#{1,6}\s+|[-*+]\s+(?:\[[ xX]\]\s+)?|\d+[.)]\s+|>\s*)*", line).group(0)
            # The words of a link are translated, its address is not.
            rest = re.sub(r"\]\(([^)]*)\)", lambda found: f"]⟪{found.group(1)}⟫", line[len(lead) :])
            rest = pieces.swap_link(rest)
            out.append(lead + rest)
        elif ending in (".srt", ".vtt") and ("-->" in line or line.strip().isdigit() or line.startswith(("WEBVTT", "NOTE", "STYLE"))):
            out.append(line)
        else:
            out.append(pieces.swap(line) if line.strip() else line)
    return "\n".join(out)


def swap_link(self, text):
    """Like `swap`, with the addresses of links as marks as well."""
    addresses = []

    def mark(found):
        addresses.append(found.group(1))
        return f"<⟪{len(addresses)}⟫>"

    swapped = self.swap(re.sub("⟪([^⟫]*)⟫", mark, text))
    return re.sub("<⟪(\\d+)⟫>", lambda found: f"({addresses[int(found.group(1)) - 1]})", swapped)


Pieces.swap_link = swap_link


def walk(path, pieces, out=None):
    ending = path.suffix.lower()
    if not path.is_file():
        fail(f"{path} is not there")
    if path.stat().st_size > LARGEST:
        fail(f"{path} is larger than {LARGEST // 1024 // 1024} MiB")
    if out:
        out.parent.mkdir(parents=True, exist_ok=True)
    if ending in PARTS:
        return office(path, ending, pieces, out)
    if ending == ".pdf":
        fail("the text of a PDF cannot be put back: ask for the original file")
    if ending not in (".html", ".htm", ".md", ".srt", ".vtt", ".txt"):
        fail(f"{ending or 'this'} is not known: docx, pptx, xlsx, html, md, srt, vtt, txt are")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        fail(f"{path} is not UTF-8: convert it first")
    made = page(text, pieces) if ending in (".html", ".htm") else lines(text, pieces, ending)
    if out:
        out.write_text(made, encoding="utf-8")
    return None


def numbers(text):
    """The digits of each number, so that 1,234.5 and 1.234,5 are one."""
    found = re.findall(r"\d+(?:[.,'\u00a0\u202f]\d+)*", MARK.sub(" ", text))
    return sorted(re.sub(r"\D", "", number) for number in found)


def check(items):
    told = []
    for item in items:
        source, target = item["source"], item["target"]
        say = lambda words, item=item: told.append(f"{item['id']}: {words}: {item['source'][:60]}")
        if not target.strip():
            say("no translation; the source stays")
            continue
        if sorted(MARK.findall(source)) != sorted(MARK.findall(target)):
            say(f"marks differ ({' '.join(MARK.findall(source)) or 'none'} became {' '.join(MARK.findall(target)) or 'none'})")
        if numbers(source) != numbers(target):
            say("numbers differ")
        if target == source and len(source.split()) > 3:
            say("same as the source")
        if len(target) > 40 and len(target) > 1.8 * len(source):
            say("much longer than the source")
    return told


def main():
    parser = argparse.ArgumentParser(description="Takes the text of a document out, and puts translations back.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    extract = verbs.add_parser("extract")
    extract.add_argument("document", type=Path)
    extract.add_argument("pieces", type=Path)
    apply = verbs.add_parser("apply")
    apply.add_argument("document", type=Path)
    apply.add_argument("pieces", type=Path)
    apply.add_argument("out", type=Path)
    args = parser.parse_args()
    if args.verb == "extract":
        pieces = Pieces()
        walk(args.document, pieces)
        items = [{"id": at, "source": source, "target": ""} for at, source in enumerate(pieces.found, 1)]
        args.pieces.parent.mkdir(parents=True, exist_ok=True)
        args.pieces.write_text(json.dumps(items, ensure_ascii=False, indent=1), encoding="utf-8")
        print(f"{args.pieces}: {len(items)} pieces, {sum(len(item['source'].split()) for item in items)} words")
        return 0
    try:
        items = json.loads(args.pieces.read_text(encoding="utf-8"))
        targets = [str(item["target"]) for item in items]
    except (OSError, ValueError, KeyError, TypeError) as error:
        fail(f"{args.pieces} cannot be read: {error}")
    if args.out.resolve() == args.document.resolve():
        fail("the result would replace the original: give it another name")
    pieces = Pieces(targets)
    walk(args.document, pieces, args.out)
    if [item["source"] for item in items] != pieces.found:
        fail("the pieces are not those of this document: extract them anew")
    told = check(items)
    print(f"{args.out}: {len(items)} pieces put back")
    print("\n".join(f"LOOK: {line}" for line in told) or "nothing to look at")
    return 0


if __name__ == "__main__":
    sys.exit(main())
