#!/usr/bin/env python3
"""Draws a chart of a table as SVG, with nothing but Python.

    chart.py FILE --kind bar --x region --y total --title "Revenue, 2025 (EUR)" --out chart.svg [--png]
"""

import argparse
import math
import shutil
import subprocess
import sys
from html import escape
from pathlib import Path

import tables

WIDTH, HEIGHT = 960, 540
LEFT, RIGHT, TOP, BOTTOM = 96, 32, 72, 84
# Told apart by people who see fewer colours, too.
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f"]
FONT = "font-family='system-ui,Helvetica,Arial,sans-serif'"


def ticks(low, high, count=5):
    """Returns round marks that hold both ends."""
    if high <= low:
        high = low + (abs(low) or 1)
    raw = (high - low) / count
    power = 10 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw * 0.999)
    first = math.floor(low / step) * step
    marks = [first]
    while marks[-1] < high - step * 1e-9:
        marks.append(first + len(marks) * step)
    return marks


def short(value):
    for size, sign in ((1e9, "bn"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            scale = 1e3 if sign == "k" else size
            return f"{value / scale:,.1f}".rstrip("0").rstrip(".") + sign
    return f"{value:,.2f}".rstrip("0").rstrip(".")


def cut(text, most):
    return text if len(text) <= most else text[: most - 1] + "…"


class Page:
    def __init__(self, title):
        self.parts = [
            f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {HEIGHT}' width='{WIDTH}' height='{HEIGHT}' role='img'>",
            f"<title>{escape(title)}</title><rect width='{WIDTH}' height='{HEIGHT}' fill='#fff'/>",
        ]
        self.text(LEFT, 40, cut(title, 84), size=22, weight=600)

    def text(self, x, y, words, size=14, anchor="start", weight=400, turn=None, fill="#222"):
        turned = f" transform='rotate({turn} {x:.1f} {y:.1f})'" if turn else ""
        self.parts.append(
            f"<text x='{x:.1f}' y='{y:.1f}' font-size='{size}' {FONT} font-weight='{weight}' text-anchor='{anchor}' fill='{fill}'{turned}>{escape(words)}</text>"
        )

    def line(self, x1, y1, x2, y2, colour="#ddd", width=1):
        self.parts.append(f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}' stroke='{colour}' stroke-width='{width}'/>")

    def rect(self, x, y, w, h, colour, words):
        self.parts.append(f"<rect x='{x:.1f}' y='{y:.1f}' width='{max(w, 0):.1f}' height='{max(h, 0):.1f}' fill='{colour}'><title>{escape(words)}</title></rect>")

    def add(self, part):
        self.parts.append(part)

    def legend(self, names):
        x = LEFT
        for at, name in enumerate(names):
            self.rect(x, 52, 12, 12, COLOURS[at % len(COLOURS)], name)
            self.text(x + 18, 63, cut(name, 24), size=13)
            x += 34 + 8 * len(cut(name, 24))

    def scale(self, low, high):
        """Draws the marks of the upright axis; returns what turns a value into a place."""
        marks = ticks(low, high)
        bottom, top = marks[0], marks[-1]
        place = lambda value: HEIGHT - BOTTOM - (value - bottom) / (top - bottom) * (HEIGHT - TOP - BOTTOM)
        for mark in marks:
            self.line(LEFT, place(mark), WIDTH - RIGHT, place(mark), "#999" if mark == 0 else "#e3e3e3")
            self.text(LEFT - 10, place(mark) + 5, short(mark), anchor="end", size=13)
        return place

    def done(self):
        return "\n".join(self.parts) + "\n</svg>\n"


def bar(page, labels, series, names):
    values = [value for one in series for value in one if value is not None]
    place = page.scale(min(0, *values), max(0, *values))
    room = (WIDTH - LEFT - RIGHT) / len(labels)
    width = room * 0.76 / len(series)
    for at, label in enumerate(labels):
        for n, one in enumerate(series):
            if one[at] is None:
                continue
            x = LEFT + at * room + room * 0.12 + n * width
            y, zero = place(one[at]), place(0)
            page.rect(x, min(y, zero), width * 0.94, abs(zero - y), COLOURS[n % len(COLOURS)], f"{label}: {one[at]:g}")
            if len(series) == 1 and len(labels) <= 14:
                page.text(x + width / 2, min(y, zero) - 6, short(one[at]), anchor="middle", size=12)
        under(page, LEFT + (at + 0.5) * room, label, room)


def under(page, x, label, room):
    if room > 9 * len(label):
        page.text(x, HEIGHT - BOTTOM + 22, label, anchor="middle", size=13)
    else:
        page.text(x, HEIGHT - BOTTOM + 16, cut(label, 16), anchor="end", size=12, turn=-35)


def line(page, labels, series, names):
    values = [value for one in series for value in one if value is not None]
    place = page.scale(min(values), max(values))
    step = (WIDTH - LEFT - RIGHT) / max(len(labels) - 1, 1)
    for n, one in enumerate(series):
        colour, run = COLOURS[n % len(COLOURS)], []
        for at, value in enumerate(one + [None]):
            if value is not None:
                run.append(f"{LEFT + at * step:.1f},{place(value):.1f}")
                continue
            # A gap in the data is a gap in the line.
            if run:
                page.add(f"<polyline points='{' '.join(run)}' fill='none' stroke='{colour}' stroke-width='2.5' stroke-linejoin='round'/>")
            if len(run) == 1:
                x, y = run[0].split(",")
                page.add(f"<circle cx='{x}' cy='{y}' r='4' fill='{colour}'/>")
            run = []
    every = max(1, math.ceil(len(labels) / 10))
    for at in range(0, len(labels), every):
        under(page, LEFT + at * step, labels[at], step * every)


def scatter(page, labels, series, names):
    xs = [tables.number(label) for label in labels]
    pairs = [(x, y) for x, y in zip(xs, series[0]) if x is not None and y is not None]
    if not pairs:
        tables.fail("a scatter chart needs numbers on both axes")
    place = page.scale(min(y for _, y in pairs), max(y for _, y in pairs))
    marks = ticks(min(x for x, _ in pairs), max(x for x, _ in pairs), 8)
    across = lambda x: LEFT + (x - marks[0]) / (marks[-1] - marks[0]) * (WIDTH - LEFT - RIGHT)
    for mark in marks:
        page.text(across(mark), HEIGHT - BOTTOM + 22, short(mark), anchor="middle", size=13)
    for x, y in pairs:
        page.add(f"<circle cx='{across(x):.1f}' cy='{place(y):.1f}' r='4.5' fill='{COLOURS[0]}' fill-opacity='.6'/>")


def hist(page, values, bins):
    marks = ticks(min(values), max(values), bins)
    step = marks[1] - marks[0]
    counts = [0] * max(len(marks) - 1, 1)
    for value in values:
        counts[min(int((value - marks[0]) / step), len(counts) - 1)] += 1
    place = page.scale(0, max(counts))
    room = (WIDTH - LEFT - RIGHT) / len(counts)
    for at, count in enumerate(counts):
        x = LEFT + at * room
        page.rect(x + 1, place(count), room - 2, place(0) - place(count), COLOURS[0], f"{short(marks[at])} to {short(marks[at] + step)}: {count}")
        page.text(x, HEIGHT - BOTTOM + 22, short(marks[at]), anchor="middle", size=12)


def pie(page, labels, values):
    total, angle, x, y, r = sum(values), -math.pi / 2, 320, HEIGHT / 2 + 24, 190
    if total <= 0 or min(values) < 0:
        tables.fail("a pie chart needs parts that are not negative, and not all zero")
    for at, (label, value) in enumerate(zip(labels, values)):
        share, colour = value / total, COLOURS[at % len(COLOURS)]
        end = angle + share * 2 * math.pi
        p = lambda a: f"{x + r * math.cos(a):.1f} {y + r * math.sin(a):.1f}"
        if share > 0.9999:
            page.add(f"<circle cx='{x}' cy='{y}' r='{r}' fill='{colour}'/>")
        elif share > 0:
            page.add(f"<path d='M {x} {y} L {p(angle)} A {r} {r} 0 {int(share > 0.5)} 1 {p(end)} Z' fill='{colour}' stroke='#fff' stroke-width='2'/>")
        page.rect(590, 130 + at * 34, 18, 18, colour, label)
        page.text(618, 145 + at * 34, f"{cut(label, 24)}: {short(value)} ({share:.1%})", size=16)
        angle = end


def prepare(args):
    """Returns the labels, the columns of values, and their names."""
    names, rows, _ = tables.read(args.file, args.sheet)

    def column(name):
        at = next((at for at, known in enumerate(names) if known.lower() == name.lower()), None)
        if at is None:
            tables.fail(f"there is no column {name}; there are: {', '.join(names)}")
        return [row[at] for row in rows]

    labels = column(args.x)
    if args.kind == "hist":
        return labels, [], []
    if not args.y:
        tables.fail("--y says which column is drawn")
    series = []
    for name in args.y:
        texts = column(name)
        comma = tables.decimal_comma(texts)
        series.append([tables.number(text, comma) for text in texts])
        if all(value is None for value in series[-1]):
            tables.fail(f"the column {name} has no numbers")
    order = list(range(len(labels)))
    if args.kind in ("bar", "pie") and not args.keep_order and len(series) == 1:
        order.sort(key=lambda at: -(series[0][at] if series[0][at] is not None else -math.inf))
    if args.kind == "line" and not args.keep_order:
        kind, to = tables.kind(labels)
        if kind in ("date", "number"):
            order.sort(key=lambda at: (to(labels[at]) is None, to(labels[at]) or 0 if kind == "number" else to(labels[at]) or ""))
    labels, series = [labels[at] for at in order], [[one[at] for at in order] for one in series]
    most = args.top or (7 if args.kind == "pie" else 40 if args.kind == "bar" else None)
    if most and len(labels) > most and len(series) == 1 and args.kind in ("bar", "pie"):
        rest = sum(value or 0 for value in series[0][most - 1 :])
        labels, series = labels[: most - 1] + ["other"], [series[0][: most - 1] + [rest]]
    return labels, series, args.y


def draw(args):
    labels, series, names = prepare(args)
    page = Page(args.title)
    if not labels:
        tables.fail("the table has no rows")
    if args.kind == "hist":
        comma = tables.decimal_comma(labels)
        values = [value for value in (tables.number(text, comma) for text in labels) if value is not None]
        if not values:
            tables.fail(f"the column {args.x} has no numbers")
        hist(page, values, args.bins)
    elif args.kind == "pie":
        pie(page, labels, [value or 0 for value in series[0]])
    else:
        if len(series) > 1:
            page.legend(names)
        {"bar": bar, "line": line, "scatter": scatter}[args.kind](page, labels, series, names)
    if args.kind != "pie":
        page.text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, args.x_title or args.x, anchor="middle", size=14, fill="#555")
    return page.done()


def png(svg):
    """Makes a PNG beside the SVG with whatever is there."""
    out = svg.with_suffix(".png")
    try:
        import cairosvg

        cairosvg.svg2png(url=str(svg), write_to=str(out))
        return out
    except ImportError:
        pass
    ways = [
        ["rsvg-convert", "-o", str(out), str(svg)],
        ["inkscape", str(svg), f"--export-filename={out}"],
        ["chromium", "--headless", "--no-sandbox", f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={out}", svg.resolve().as_uri()],
    ]
    for way in ways:
        if shutil.which(way[0]) and subprocess.run(way, capture_output=True, timeout=120).returncode == 0 and out.is_file():
            return out
    return None


def main():
    parser = argparse.ArgumentParser(description="Draws a chart of a table as SVG.")
    parser.add_argument("file")
    parser.add_argument("--kind", required=True, choices=["bar", "line", "scatter", "hist", "pie"])
    parser.add_argument("--x", required=True, help="the column of the labels; for hist, of the numbers")
    parser.add_argument("--y", action="append", help="a column of numbers; may be there several times")
    parser.add_argument("--title", required=True, help="what is shown, with unit and period")
    parser.add_argument("--x-title", help="words below the chart")
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--sheet", help="the sheet of an Excel workbook")
    parser.add_argument("--top", type=int, help="so many bars at most; the rest becomes one")
    parser.add_argument("--bins", type=int, default=12, help="about so many columns of a hist")
    parser.add_argument("--keep-order", action="store_true")
    parser.add_argument("--png", action="store_true", help="make a PNG as well")
    args = parser.parse_args()
    try:
        picture = draw(args)
    except (tables.TableError, OSError) as error:
        tables.fail(error)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(picture, encoding="utf-8")
    print(args.out)
    if args.png:
        made = png(args.out)
        print(made if made else "no PNG: none of cairosvg, rsvg-convert, inkscape, chromium is here; send the SVG")


if __name__ == "__main__":
    sys.exit(main())
