#!/usr/bin/env python3
"""Tells what is in a table, column by column, and what is odd about it.

    describe.py FILE [--sheet NAME] [--json]
"""

import argparse
import json
from collections import Counter

import tables


def describe(name, texts):
    """Returns what is known of a column."""
    kind, convert = tables.kind(texts)
    present = [text for text in texts if not tables.missing(text)]
    fact = {"column": name, "kind": kind, "missing": len(texts) - len(present), "distinct": len(set(present))}
    odd = []
    values = [convert(text) for text in present]
    spoilt = [text for text, value in zip(present, values) if value is None]
    if spoilt:
        odd.append(f"{len(spoilt)} cells are no {kind}: {', '.join(repr(text[:30]) for text in spoilt[:3])}")
    values = sorted(value for value in values if value is not None)
    if kind == "number" and values:
        at = lambda share: values[min(len(values) - 1, int(share * len(values)))]
        fact |= {"min": values[0], "median": at(0.5), "mean": sum(values) / len(values), "max": values[-1], "sum": sum(values)}
        low, high = at(0.25), at(0.75)
        far = [value for value in values if value < low - 3 * (high - low) or value > high + 3 * (high - low)]
        if far and high > low:
            odd.append(f"{len(far)} values are far off, up to {max(far, key=abs):g}")
        if tables.decimal_comma(present):
            odd.append("numbers have a decimal comma")
    elif kind == "date" and values:
        fact |= {"min": values[0], "max": values[-1]}
        if tables.month_first(present) is None:
            odd.append("day and month cannot be told apart; read as day/month")
    else:
        fact["top"] = Counter(present).most_common(5)
        folded = Counter(text.lower().strip() for text in set(present))
        twins = [text for text, count in folded.items() if count > 1]
        if twins:
            odd.append(f"spelt in several ways: {', '.join(twins[:3])}")
    if present and fact["distinct"] == 1 and len(texts) > 1:
        odd.append("always the same")
    if present and fact["distinct"] == len(texts) and len(texts) > 1:
        fact["key"] = True
    fact["odd"] = odd
    return fact


def show(value):
    return f"{value:,.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def main():
    parser = argparse.ArgumentParser(description="Tells what is in a table.")
    parser.add_argument("file")
    parser.add_argument("--sheet", help="the sheet of an Excel workbook")
    parser.add_argument("--json", action="store_true", help="for programs")
    args = parser.parse_args()
    try:
        names, rows, remarks = tables.read(args.file, args.sheet)
    except (tables.TableError, OSError) as error:
        tables.fail(error)
    duplicates = len(rows) - len(set(map(tuple, rows)))
    facts = [describe(name, [row[at] for row in rows]) for at, name in enumerate(names)]
    if args.json:
        print(json.dumps({"rows": len(rows), "duplicates": duplicates, "remarks": remarks, "columns": facts}, ensure_ascii=False))
        return
    print(f"{args.file}: {len(rows)} rows, {len(names)} columns ({'; '.join(remarks)})")
    if duplicates:
        print(f"  ODD: {duplicates} rows are there more than once")
    for fact in facts:
        words = [fact["kind"], f"{fact['distinct']} distinct"]
        words += [f"{fact['missing']} missing"] if fact["missing"] else []
        words += ["could be the key"] if fact.get("key") else []
        words += [f"{name} {show(fact[name])}" for name in ("min", "median", "mean", "max", "sum") if name in fact]
        if fact.get("top") and not fact.get("key"):
            words.append("most often " + ", ".join(f"{text[:24]!r} ×{count}" for text, count in fact["top"][:3]))
        print(f"  {fact['column']}: {', '.join(words)}")
        for odd in fact["odd"]:
            print(f"    ODD: {odd}")


if __name__ == "__main__":
    main()
