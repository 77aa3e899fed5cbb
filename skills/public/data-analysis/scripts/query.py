#!/usr/bin/env python3
"""Asks tables by SQL (SQLite's). Each file is a table with its name.

    query.py sales.csv customers.xlsx --sql "select region, sum(amount) total from sales group by 1"
"""

import argparse
import csv
import json
import re
import sqlite3
import sys
from pathlib import Path

import tables

SHOWN = 50


def plain(name):
    name = re.sub(r"\W+", "_", name.strip().lower()).strip("_") or "column"
    return f"_{name}" if name[0].isdigit() else name


def load(db, path, sheet):
    names, rows, _ = tables.read(path, sheet)
    table, columns = plain(Path(path).stem), []
    for name in map(plain, names):
        while name in columns:
            name += "_2"
        columns.append(name)
    convert = []
    for at in range(len(columns)):
        kind, to = tables.kind([row[at] for row in rows])
        convert.append((kind, to))
    types = {"number": "REAL"}
    fields = ", ".join(f'"{c}" {types.get(kind, "TEXT")}' for c, (kind, _) in zip(columns, convert))
    db.execute(f'create table "{table}" ({fields})')

    def cell(text, kind, to):
        if tables.missing(text):
            return None
        value = to(text)
        if value is None:
            return text
        return int(value) if kind == "number" and value.is_integer() and abs(value) < 2**53 else value

    marks = ", ".join("?" * len(columns))
    data = ([cell(text, *way) for text, way in zip(row, convert)] for row in rows)
    db.executemany(f'insert into "{table}" values ({marks})', data)
    return table, columns


def main():
    parser = argparse.ArgumentParser(description="Asks tables by SQL.")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--sql", required=True)
    parser.add_argument("--sheet", help="the sheet of an Excel workbook")
    parser.add_argument("--out", type=Path, help="write the whole result to this CSV file")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    args = parser.parse_args()
    db = sqlite3.connect(":memory:")
    try:
        known = [load(db, path, args.sheet) for path in args.files]
    except (tables.TableError, OSError, sqlite3.Error) as error:
        tables.fail(error)
    try:
        found = db.execute(args.sql)
        head = [column[0] for column in found.description or []]
        rows = found.fetchall()
    except sqlite3.Error as error:
        there = "; ".join(f"{table}({', '.join(columns)})" for table, columns in known)
        tables.fail(f"{error}\nthere are: {there}")
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        with args.out.open("w", newline="", encoding="utf-8") as out:
            csv.writer(out).writerows([head] + rows)
    if args.json:
        print(json.dumps([dict(zip(head, row)) for row in rows], ensure_ascii=False))
        return
    writer = csv.writer(sys.stdout, delimiter="|", lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows[:SHOWN])
    more = f", the first {SHOWN} are shown" if len(rows) > SHOWN else ""
    print(f"({len(rows)} rows{more}{f'; all are in {args.out}' if args.out else ''})")


if __name__ == "__main__":
    main()
