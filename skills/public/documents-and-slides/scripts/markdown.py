"""Reads the Markdown that these scripts turn into documents: head, blocks, and what is bold or a link in a line.

Needs Python 3.9 and nothing else.
"""

import re
import struct
import sys
from pathlib import Path

LARGEST = 4 * 1024 * 1024
NOTES = re.compile(r"<!--\s*notes?:\s*(.*?)-->", re.S | re.I)
INLINE = re.compile(
    r"(?P<code>`[^`]+`)|\*\*(?P<bold>(?:[^*]|\*(?!\*))+)\*\*|__(?P<bold2>[^_]+)__"
    r"|\*(?P<it>[^*\s](?:[^*]*[^*\s])?)\*|(?<!\w)_(?P<it2>[^_\s](?:[^_]*[^_\s])?)_(?!\w)"
    r"|\[(?P<text>[^\]]+)\]\((?P<url>[^)\s]+)\)"
)


def read(path):
    """Returns (head, blocks). A block is a dict with `kind`."""
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        sys.exit(f"error: {path} cannot be read: {error}")
    if len(data) > LARGEST:
        sys.exit(f"error: {path} is larger than {LARGEST // 1024 // 1024} MiB")
    lines = data.decode("utf-8-sig", errors="replace").splitlines()
    head = {}
    if lines and lines[0].strip() == "---" and "---" in [line.strip() for line in lines[1:40]]:
        end = [line.strip() for line in lines].index("---", 1)
        for line in lines[1:end]:
            key, colon, value = line.partition(":")
            if colon:
                head[key.strip().lower()] = value.strip().strip("\"'")
        lines = lines[end + 1 :]
    return head, blocks("\n".join(lines))


def blocks(text):
    marked = NOTES.sub(lambda found: "\n\n\0notes " + " ".join(found.group(1).split()) + "\n\n", text)
    lines = re.sub(r"<!--.*?-->", "", marked, flags=re.S).split("\n")
    found, at = [], 0
    while at < len(lines):
        line = lines[at]
        heading = re.match(r"(#{1,6})\s+(.*?)\s*#*$", line)
        item = re.match(r"(\s*)([-*+]|\d+[.)])\s+(.*)", line)
        picture = re.match(r"\s*!\[([^\]]*)\]\(([^)\s]+)\)\s*$", line)
        if not line.strip():
            at += 1
        elif line.startswith("\0notes "):
            found.append({"kind": "notes", "text": line[7:]})
            at += 1
        elif line.lstrip().startswith(("```", "~~~")):
            fence, code = line.lstrip()[:3], []
            at += 1
            while at < len(lines) and not lines[at].lstrip().startswith(fence):
                code.append(lines[at])
                at += 1
            at += 1
            found.append({"kind": "code", "lines": code})
        elif heading:
            found.append({"kind": "heading", "level": len(heading.group(1)), "text": heading.group(2)})
            at += 1
        elif picture:
            found.append({"kind": "picture", "text": picture.group(1), "path": picture.group(2)})
            at += 1
        elif re.fullmatch(r"\s*(?:-{3,}|\*{3,}|_{3,})\s*", line):
            found.append({"kind": "break"})
            at += 1
        elif "|" in line and at + 1 < len(lines) and re.fullmatch(r"\s*\|?[\s:|-]*-[\s:|-]*", lines[at + 1]):
            rows = [row(line)]
            at += 2
            while at < len(lines) and "|" in lines[at] and lines[at].strip():
                rows.append(row(lines[at]))
                at += 1
            width = len(rows[0])
            found.append({"kind": "table", "rows": [(cells + [""] * width)[:width] for cells in rows]})
        elif item:
            level = min(len(item.group(1).replace("\t", "    ")) // 2, 2)
            text, at = item.group(3), at + 1
            while at < len(lines) and lines[at].startswith("  ") and not re.match(r"\s*([-*+]|\d+[.)])\s", lines[at]) and lines[at].strip():
                text += " " + lines[at].strip()
                at += 1
            found.append({"kind": "item", "level": level, "ordered": item.group(2)[0].isdigit(), "text": text})
        elif line.lstrip().startswith(">"):
            quoted = []
            while at < len(lines) and lines[at].lstrip().startswith(">"):
                quoted.append(lines[at].lstrip()[1:].strip())
                at += 1
            found.append({"kind": "quote", "text": " ".join(quoted)})
        else:
            words = []
            while at < len(lines) and lines[at].strip() and not re.match(r"#{1,6}\s|\s*([-*+]|\d+[.)])\s|```|~~~|>|\0notes |\s*!\[[^\]]*\]\([^)]*\)\s*$", lines[at]):
                words.append(lines[at].strip())
                at += 1
            if not words:
                words, at = [line.strip()], at + 1
            found.append({"kind": "text", "text": " ".join(words)})
    return found


def row(line):
    line = line.strip()
    line = line[1:] if line.startswith("|") else line
    line = line[:-1] if line.endswith("|") and not line.endswith("\\|") else line
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)]


def runs(text, bold=False):
    """Yields (words, bold, italic, code, url) of a line."""
    at = 0
    for found in INLINE.finditer(text):
        if found.start() > at:
            yield text[at : found.start()], bold, False, False, None
        group = found.groupdict()
        if group["code"]:
            yield group["code"][1:-1], bold, False, True, None
        elif group["text"]:
            yield group["text"], bold, False, False, group["url"]
        elif group["bold"] or group["bold2"]:
            yield group["bold"] or group["bold2"], True, False, False, None
        else:
            yield group["it"] or group["it2"], bold, True, False, None
        at = found.end()
    if at < len(text):
        yield text[at:], bold, False, False, None


def plain(text):
    return "".join(words for words, *_ in runs(text))


def xml(text):
    """Escapes text for XML, and leaves out what XML cannot hold."""
    text = "".join(c for c in text if c in "\t\n" or ord(c) >= 32 and not 0xD800 <= ord(c) <= 0xDFFF and ord(c) not in (0xFFFE, 0xFFFF))
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def picture(path, base):
    """Returns (bytes, ending, width, height) of a PNG or JPEG, or None."""
    file = Path(path) if Path(path).is_absolute() else Path(base).parent / path
    try:
        data = file.read_bytes()
    except OSError:
        return None
    if data[:8] == b"\x89PNG\r\n\x1a\n" and len(data) > 24:
        return (data, "png", *struct.unpack(">II", data[16:24]))
    if data[:2] == b"\xff\xd8":
        at = 2
        while at + 9 < len(data) and data[at] == 0xFF:
            mark, length = data[at + 1], struct.unpack(">H", data[at + 2 : at + 4])[0]
            if 0xC0 <= mark <= 0xCF and mark not in (0xC4, 0xC8, 0xCC):
                height, width = struct.unpack(">HH", data[at + 5 : at + 9])
                return data, "jpeg", width, height
            at += 2 + length
    return None
