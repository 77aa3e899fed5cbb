#!/usr/bin/env python3
"""Checks a table of actions, and makes a CSV and a calendar file of it.

    actions.py actions.md --meeting "Weekly" --date 2026-05-11 --out /mnt/user-data/outputs

The table is Markdown with the columns What, Owner, Due and, if wanted, From. An unknown owner or date is "?".
Ends with 0 if nothing has to be mended. Needs Python 3.9 and nothing else.
"""

import argparse
import csv
import hashlib
import re
import sys
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

VAGUE = {"look", "think", "consider", "maybe", "discuss", "talk", "try", "hopefully", "we", "it", "there", "should"}
UNKNOWN = {"", "?", "tbd", "tba", "unknown", "-"}
MOST = 500


def table(text):
    """Returns the rows as dicts, by the names of the first line in small letters."""
    lines = [line for line in text.splitlines() if "|" in line]
    cells = lambda line: [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
    if not lines:
        sys.exit("error: there is no table: begin it with `| What | Owner | Due |`")
    head = [name.lower() for name in cells(lines[0])]
    for name in ("what", "owner", "due"):
        if name not in head:
            sys.exit(f"error: the table has no column {name.capitalize()}")
    rows = [cells(line) for line in lines[1:] if not re.fullmatch(r"[\s|:-]+", line)]
    if len(rows) > MOST:
        sys.exit(f"error: {len(rows)} actions; {MOST} is the most")
    return [dict(zip(head, row + [""] * len(head))) for row in rows]


def due(text):
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def check(rows, held):
    """Returns (what to mend, what is not known yet)."""
    mend, unknown, seen = [], [], {}
    for number, row in enumerate(rows, 1):
        what, owner, when = row["what"], row["owner"], row["due"]
        say = lambda words, number=number: mend.append(f"row {number}: {words}")
        if len(what.split()) < 2:
            say("say what is there when it is done")
        elif what.split()[0].lower() in VAGUE:
            say(f'"{what.split()[0]}" cannot be finished: begin with what is done')
        if re.search(r";|\b(?:and also|as well as)\b", what):
            say("more than one thing: make it two rows")
        if len(what) > 200:
            say("longer than 200 characters")
        if owner.lower() in UNKNOWN:
            unknown.append(f"row {number}: who does it? ({what})")
        elif re.search(r",|/|&|\band\b|\bteam\b|\beverybody\b|\ball\b", owner, re.I):
            say(f'"{owner}" is more than one person: name the one who answers for it')
        if when.lower() in UNKNOWN:
            unknown.append(f"row {number}: until when? ({what})")
        elif due(when) is None:
            say(f'"{when}" is no date: write it as 2026-05-15')
        elif due(when) < held:
            say(f"{when} is before the meeting")
        elif due(when).weekday() >= 5:
            say(f"{when} is a {due(when):%A}: is that meant?")
        key = re.sub(r"\W+", " ", what).lower().strip()
        if key in seen:
            say(f"the same as row {seen[key]}")
        seen.setdefault(key, number)
    return mend, unknown


def fold(line):
    """Cuts a line of a calendar file at 75 bytes, never inside of a character."""
    out, part = [], b""
    for letter in line:
        data = letter.encode()
        if len(part) + len(data) > 73:
            out.append(part)
            part = b" "
        part += data
    return b"\r\n".join(out + [part]) + b"\r\n"


def calendar(rows, meeting, stamp):
    escape = lambda text: text.replace("\\", "\\\\").replace(";", "\\;").replace(",", "\\,").replace("\n", "\\n")
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//pudu//meeting-notes//EN"]
    for row in rows:
        day = due(row["due"])
        if day is None:
            continue
        uid = hashlib.sha256(f"{meeting}|{row['what']}|{row['owner']}".encode()).hexdigest()[:24]
        lines += [
            "BEGIN:VEVENT",
            f"UID:{uid}@pudu",
            f"DTSTAMP:{stamp}",
            f"DTSTART;VALUE=DATE:{day:%Y%m%d}",
            f"DTEND;VALUE=DATE:{day + timedelta(days=1):%Y%m%d}",
            f"SUMMARY:{escape(row['owner'] + ': ' + row['what'])}",
            f"DESCRIPTION:{escape(meeting)}",
            "TRANSP:TRANSPARENT",
            "END:VEVENT",
        ]
    return b"".join(fold(line) for line in lines + ["END:VCALENDAR"])


def main():
    parser = argparse.ArgumentParser(description="Checks a table of actions, and makes a CSV and a calendar file.")
    parser.add_argument("table", type=Path)
    parser.add_argument("--meeting", required=True, help="its name")
    parser.add_argument("--date", required=True, type=date.fromisoformat, help="the day of the meeting, 2026-05-11")
    parser.add_argument("--out", required=True, type=Path, help="the folder for actions.csv and actions.ics")
    args = parser.parse_args()
    try:
        rows = table(args.table.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        sys.exit(f"error: {args.table} cannot be read: {error}")
    mend, unknown = check(rows, args.date)
    rows.sort(key=lambda row: (due(row["due"]) is None, row["due"], row["owner"]))
    args.out.mkdir(parents=True, exist_ok=True)
    with (args.out / "actions.csv").open("w", newline="", encoding="utf-8-sig") as out:
        writer = csv.writer(out)
        writer.writerow(["What", "Owner", "Due", "Meeting", "From"])
        # A cell that begins like a formula is a text to a spreadsheet.
        safe = lambda text: "'" + text if text[:1] in "=+-@" and len(text) > 1 else text
        writer.writerows([[safe(row["what"]), safe(row["owner"]), row["due"], args.meeting, safe(row.get("from", ""))] for row in rows])
    stamp = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    (args.out / "actions.ics").write_bytes(calendar(rows, args.meeting, stamp))
    dated = sum(due(row["due"]) is not None for row in rows)
    print(f"{len(rows)} actions, {dated} with a date: actions.csv and actions.ics are in {args.out}")
    for line in mend:
        print(f"MEND: {line}")
    for line in unknown:
        print(f"ASK: {line}")
    return 1 if mend else 0


if __name__ == "__main__":
    sys.exit(main())
