#!/usr/bin/env python3
"""Checks the citations of a Markdown report, and numbers them anew on request.

    check_citations.py report.md [--fix]

A citation is [1], [1][2] or [1, 2] in the text; a source is a line "[1] …" below the heading "Sources".
Ends with 0 and "OK" if nothing is wrong, with 1 otherwise. Needs Python 3.8 and nothing else.
"""

import argparse
import re
import sys
from pathlib import Path

CITE = re.compile(r"\[(\d+(?:\s*,\s*\d+)*)\](?![(:])")
SOURCE = re.compile(r"^\s*(?:[-*]\s*)?\[(\d+)\][.:]?\s+(\S.*)$")
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*\s*$")
NAMES = {"sources", "references", "quellen", "fuentes", "références", "参考资料", "来源", "出典"}
# A figure that somebody could doubt: a percentage, money, a year, a large number.
FIGURE = re.compile(r"\d+(?:[.,]\d+)*\s*(?:%|percent|€|\$|£|million|billion|bn)|[€$£]\s*\d|\b(?:19|20)\d\d\b|\b\d{1,3}(?:,\d{3})+\b")


def split(lines):
    """Returns the line number at which the sources begin, or the end."""
    for at, line in enumerate(lines):
        heading = HEADING.match(line)
        if heading and heading.group(1).strip().lower().rstrip(":") in NAMES:
            return at
    return len(lines)


def prose(lines):
    """Yields (number, line) of what is neither code nor a heading."""
    fenced = False
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
            continue
        if not fenced and not HEADING.match(line):
            yield number, line


def without_code(line):
    return re.sub(r"`[^`]*`", "", line)


def cited(line):
    for found in CITE.finditer(without_code(line)):
        for number in found.group(1).split(","):
            yield int(number)


def place(text):
    """What tells one source from another: its address, or its words."""
    address = re.search(r"https?://[^\s)>\]]+", text)
    if address:
        plain = re.sub(r"^https?://(www\.)?", "", address.group(0)).rstrip("/.,")
        return plain.split("#")[0].lower()
    return re.sub(r"\W+", " ", text).strip().lower()


def check(lines):
    start = split(lines)
    body, tail = lines[:start], lines[start:]
    problems, order, sources = [], [], {}
    for number, line in prose(body):
        numbers = list(cited(line))
        order += [n for n in numbers if n not in order]
        sentence = without_code(line)
        if FIGURE.search(sentence) and not numbers and not sentence.lstrip().startswith("|--"):
            problems.append(f"line {number}: a figure without a citation: {line.strip()[:80]}")
    places = {}
    for offset, line in enumerate(tail[1:], start + 2):
        found = SOURCE.match(line)
        if not found:
            continue
        number, text = int(found.group(1)), found.group(2)
        if number in sources:
            problems.append(f"line {offset}: there are two sources [{number}]")
        sources[number] = text
        if place(text) in places:
            problems.append(f"line {offset}: [{number}] is the same as [{places[place(text)]}]")
        places.setdefault(place(text), number)
    if start == len(lines):
        problems.append('there is no heading "Sources"')
    problems += [f"[{n}] is cited and is no source" for n in order if n not in sources]
    problems += [f"[{n}] is a source that nobody cites" for n in sources if n not in order]
    return problems, order, sources, start


def renumber(lines, order, sources, start):
    """Numbers sources in the order in which they are cited; those that nobody cites come last."""
    new = {old: at for at, old in enumerate([n for n in order if n in sources] + [n for n in sources if n not in order], 1)}

    def swap(found):
        numbers = [int(n) for n in found.group(1).split(",")]
        return "".join(f"[{new.get(n, n)}]" for n in numbers)

    fenced, out = False, []
    for line in lines[:start]:
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        if not fenced:
            parts = re.split(r"(`[^`]*`)", line)
            line = "".join(part if part.startswith("`") else CITE.sub(swap, part) for part in parts)
        out.append(line)
    rest = [line for line in lines[start + 1 :] if not SOURCE.match(line)]
    listed = [f"[{new[n]}] {sources[n]}" for n in sorted(sources, key=lambda n: new[n])]
    body = "\n\n".join(listed)
    tail = "\n".join(rest).strip("\n")
    return "\n".join(out + [lines[start], "", body] + (["", tail] if tail else [])) + "\n"


def main():
    parser = argparse.ArgumentParser(description="Checks the citations of a Markdown report.")
    parser.add_argument("report", type=Path)
    parser.add_argument("--fix", action="store_true", help="number the citations anew")
    args = parser.parse_args()
    try:
        lines = args.report.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        sys.exit(f"error: {args.report} cannot be read: {error}")
    problems, order, sources, start = check(lines)
    if args.fix and start < len(lines) and len(set(sources)) == len(sources):
        args.report.write_text(renumber(lines, order, sources, start), encoding="utf-8")
        problems, order, sources, start = check(args.report.read_text(encoding="utf-8").splitlines())
    for problem in problems:
        print(problem)
    print(f"{len(order)} citations of {len(sources)} sources: {'OK' if not problems else f'{len(problems)} to mend'}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
