"""Reads tables: CSV and TSV of any separator, Excel (.xlsx), JSON (a list of objects) and JSON lines.

What the other scripts of this skill share. Needs Python 3.9 and nothing else.
"""

import csv
import io
import json
import re
import sys
import zipfile
from datetime import date, datetime, timedelta
from pathlib import Path
from xml.etree import ElementTree

LARGEST = 200 * 1024 * 1024
MOST_ROWS = 2_000_000
NS = {"m": "http://schemas.openxmlformats.org/spreadsheetml/2006/main"}
REL = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
EMPTY = {"", "-", "n/a", "na", "null", "none", "nan", "#n/a"}


class TableError(Exception):
    """A table that cannot be read; the text says what to do."""


def read(path, sheet=None):
    """Returns (column names, rows as lists of texts, remarks)."""
    path = Path(path)
    if not path.is_file():
        raise TableError(f"{path} is not there")
    if path.stat().st_size > LARGEST:
        raise TableError(f"{path} is larger than {LARGEST // 1024 // 1024} MiB; cut it first")
    ending = path.suffix.lower()
    if ending in (".xlsx", ".xlsm"):
        return xlsx(path, sheet)
    if ending == ".xls":
        raise TableError("this is the old Excel format: save it as .xlsx or .csv")
    text, remarks = decode(path.read_bytes())
    if ending in (".json", ".jsonl", ".ndjson"):
        return from_json(text, remarks)
    return from_csv(text, remarks)


def decode(data):
    for encoding in ("utf-8-sig", "utf-16") if data[:2] in (b"\xff\xfe", b"\xfe\xff") else ("utf-8-sig",):
        try:
            return data.decode(encoding), [f"encoding {encoding.replace('-sig', '')}"]
        except UnicodeDecodeError:
            pass
    return data.decode("cp1252", errors="replace"), ["encoding is not UTF-8; read as Windows-1252"]


def from_csv(text, remarks):
    sample = text[:64 * 1024]
    counts = {sep: [line.count(sep) for line in sample.splitlines()[:50] if line.strip()] for sep in ",;\t|"}
    # The separator that most lines have equally often.
    best = max(counts, key=lambda sep: (bool(counts[sep]) and min(counts[sep]) > 0, sum(counts[sep])))
    remarks.append("separator " + {"\t": "tab"}.get(best, best))
    csv.field_size_limit(10_000_000)
    rows = []
    for row in csv.reader(io.StringIO(text, newline=""), delimiter=best):
        if any(cell.strip() for cell in row):
            rows.append(row)
        if len(rows) > MOST_ROWS:
            raise TableError(f"more than {MOST_ROWS} rows; cut it first")
    if not rows:
        raise TableError("the file has no rows")
    return tidy(rows, remarks)


def from_json(text, remarks):
    try:
        items = json.loads(text)
        if isinstance(items, dict):
            lists = [value for value in items.values() if isinstance(value, list)]
            items = lists[0] if len(lists) == 1 else [items]
    except ValueError:
        try:
            items = [json.loads(line) for line in text.splitlines() if line.strip()]
            remarks.append("JSON lines")
        except ValueError as error:
            raise TableError(f"this is neither JSON nor JSON lines: {error}")
    if not items or not all(isinstance(item, dict) for item in items):
        raise TableError("the JSON is no list of objects")
    names = list(dict.fromkeys(key for item in items for key in item))
    cell = lambda value: "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return tidy([names] + [[cell(item.get(name)) for name in names] for item in items], remarks)


def xlsx(path, sheet):
    try:
        book = zipfile.ZipFile(path)
        if sum(info.file_size for info in book.infolist()) > LARGEST * 4:
            raise TableError("the workbook is too large when it is unpacked")
        return tidy(*cells(book, sheet))
    except (zipfile.BadZipFile, KeyError, ElementTree.ParseError) as error:
        raise TableError(f"this is no Excel workbook: {error}")


def cells(book, sheet):
    parse = lambda name: ElementTree.fromstring(book.read(name))
    names = set(book.namelist())
    shared = []
    if "xl/sharedStrings.xml" in names:
        shared = ["".join(t.text or "" for t in item.iter("{%s}t" % NS["m"])) for item in parse("xl/sharedStrings.xml")]
    dates = date_styles(parse("xl/styles.xml")) if "xl/styles.xml" in names else set()
    targets = {rel.get("Id"): rel.get("Target") for rel in parse("xl/_rels/workbook.xml.rels")}
    sheets = [(item.get("name"), targets.get(item.get(REL))) for item in parse("xl/workbook.xml").iterfind(".//m:sheet", NS)]
    if not sheets:
        raise TableError("the workbook has no sheets")
    chosen = next(((name, target) for name, target in sheets if sheet in (None, name)), None)
    if chosen is None:
        raise TableError(f"there is no sheet {sheet}; there are: {', '.join(name for name, _ in sheets)}")
    remarks = [f"sheet {chosen[0]} of {len(sheets)}"]
    target = chosen[1].lstrip("/")
    root = parse(target if target.startswith("xl/") else "xl/" + target)
    rows = []
    for row in root.iterfind(".//m:sheetData/m:row", NS):
        out = []
        for cell in row.iterfind("m:c", NS):
            at = column(cell.get("r", "")) if cell.get("r") else len(out)
            out += [""] * (at - len(out)) + [value(cell, shared, dates)]
        if any(cell.strip() for cell in out):
            rows.append(out)
        if len(rows) > MOST_ROWS:
            raise TableError(f"more than {MOST_ROWS} rows; cut it first")
    if not rows:
        raise TableError(f"the sheet {chosen[0]} is empty")
    return rows, remarks


def column(place):
    at = 0
    for letter in re.match(r"[A-Z]*", place).group(0):
        at = at * 26 + ord(letter) - 64
    return min(max(at - 1, 0), 16_383)


def date_styles(styles):
    custom = {int(f.get("numFmtId")): f.get("formatCode", "") for f in styles.iterfind(".//m:numFmt", NS)}
    plain = lambda code: re.sub(r'"[^"]*"|\[[^\]]*\]|\\.', "", code).lower()
    is_date = lambda n: 14 <= n <= 22 or 45 <= n <= 47 or any(c in plain(custom.get(n, "")) for c in "yd")
    formats = styles.findall("m:cellXfs/m:xf", NS)
    return {at for at, xf in enumerate(formats) if is_date(int(xf.get("numFmtId", 0)))}


def value(cell, shared, dates):
    kind = cell.get("t")
    if kind == "inlineStr":
        return "".join(t.text or "" for t in cell.iter("{%s}t" % NS["m"]))
    text = cell.findtext("m:v", "", NS)
    if kind == "s":
        return shared[int(text)] if text and int(text) < len(shared) else ""
    if kind == "b":
        return "true" if text == "1" else "false"
    if text and int(cell.get("s", 0)) in dates:
        try:
            moment = datetime(1899, 12, 30) + timedelta(days=float(text))
            return moment.date().isoformat() if float(text).is_integer() else moment.isoformat(" ", "seconds")
        except (ValueError, OverflowError):
            return text
    return text


def tidy(rows, remarks):
    """Makes column names unique and all rows equally long."""
    names, width = [], max(len(row) for row in rows)
    for at in range(width):
        name = rows[0][at].strip() if at < len(rows[0]) else ""
        name = name or f"column_{at + 1}"
        while name in names:
            name += "_2"
        names.append(name)
    ragged = sum(len(row) != len(rows[0]) for row in rows[1:])
    if ragged:
        remarks.append(f"{ragged} rows have more or fewer cells than the first line")
    return names, [[cell.strip() for cell in row] + [""] * (width - len(row)) for row in rows[1:]], remarks


def missing(text):
    return text.strip().lower() in EMPTY


def number(text, comma=False):
    """Returns the number that a text is, or None. `comma` reads 1.234,5 instead of 1,234.5."""
    text = re.sub(r"^[€$£¥]\s*|\s*[€$£¥%]$|[\s\u00a0_']", "", text.strip())
    if comma:
        if not re.fullmatch(r"[-+]?(\d{1,3}(\.\d{3})+|\d+)(,\d+)?", text):
            return None
        text = text.replace(".", "").replace(",", ".")
    elif re.fullmatch(r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?", text):
        text = text.replace(",", "")
    if not re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", text):
        return None
    return float(text)


def decimal_comma(texts):
    """Tells whether a column's numbers are written with a decimal comma."""
    texts = [text for text in texts if not missing(text)][:2000]
    plain = sum(number(text) is not None for text in texts)
    comma = sum(number(text, True) is not None for text in texts)
    return comma > plain


FORMS = ["%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y/%m/%d", "%d.%m.%Y", "%Y年%m月%d日"]
SLASHED = re.compile(r"(\d{1,2})[/-](\d{1,2})[/-](\d{4})$")


def day(text, month_first=False):
    """Returns a date in ISO form, or None."""
    text = re.sub(r"(\.\d+)?(Z|[+-]\d\d:?\d\d)$", "", text.strip())
    if not re.match(r"\d", text) or len(text) > 25:
        return None
    for form in FORMS:
        try:
            found = datetime.strptime(text, form)
            return found.date().isoformat() if "%H" not in form else found.isoformat(" ", "seconds")
        except ValueError:
            pass
    slashed = SLASHED.match(text)
    if slashed:
        first, second, year = map(int, slashed.groups())
        month, dom = (first, second) if month_first else (second, first)
        try:
            return date(year, month, dom).isoformat()
        except ValueError:
            return None
    return None


def month_first(texts):
    """Tells the order of dates with slashes: True, False, or None if nothing decides it."""
    pairs = [SLASHED.match(text.strip()) for text in texts[:5000]]
    firsts = [(int(p.group(1)), int(p.group(2))) for p in pairs if p]
    if any(first > 12 for first, _ in firsts):
        return False
    if any(second > 12 for _, second in firsts):
        return True
    return None if firsts else False


def kind(texts):
    """Returns (kind, converter) of a column: number, date, yes/no or text. Nine tenths decide."""
    texts = [text for text in texts if not missing(text)]
    if not texts:
        return "empty", lambda text: text
    probe = texts[:: max(1, len(texts) // 3000)]
    comma, order = decimal_comma(probe), month_first(probe)
    enough = lambda hits: sum(hits) >= 0.9 * len(probe)
    if enough(number(text, comma) is not None for text in probe):
        # Numbers with leading zeros are names: postcodes, article numbers.
        if any(re.match(r"0\d", text) for text in probe):
            return "text", lambda text: text
        return "number", lambda text: number(text, comma)
    if enough(day(text, bool(order)) is not None for text in probe):
        return "date", lambda text: day(text, bool(order))
    if enough(text.lower() in ("true", "false", "yes", "no", "ja", "nein", "y", "n", "是", "否") for text in probe):
        return "yes/no", lambda text: text
    return "text", lambda text: text


def fail(error):
    sys.exit(f"error: {error}")
