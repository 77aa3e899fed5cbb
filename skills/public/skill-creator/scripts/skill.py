#!/usr/bin/env python3
"""Begins, checks and packs a skill.

    skill.py new NAME --in FOLDER
    skill.py check FOLDER
    skill.py pack FOLDER --out FOLDER

Needs Python 3.9 and nothing else.
"""

import argparse
import re
import sys
import unicodedata
import zipfile
from pathlib import Path

KEYS = {"name", "description", "license", "allowed-tools", "metadata", "compatibility", "version", "author", "required-secrets", "secrets-autonomous"}
COMMANDS = {"new", "stop", "retry", "status", "models", "mode", "skills", "usage", "memory", "connect", "help", "start", "bootstrap", "goal", "agent"}
MOST_FILES, LARGEST, LARGEST_SKILL, LONG = 4096, 512 * 1024 * 1024, 128 * 1024, 250
PROGRAMS = (b"\x7fELF", b"MZ", b"\xfe\xed\xfa", b"\xce\xfa\xed\xfe", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"\0asm")
OUTLINE = """---
name: {name}
description: [what it does, and when to use it, in the words that people use]
---
# {title}

[One sentence: what a good result is.]

## 1. Settle

[What to ask, once, and what to assume if nobody answers.]

## 2. Do

[Steps, each with what comes out of it.]

## 3. Check

[How one notices that something is wrong.]

## 4. Hand over

[Which files in /mnt/user-data/outputs, handed over with present_files, and what stands in the chat.]
"""


def check_name(name):
    if not re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*", name) or len(name) > 64:
        return f'"{name}" is no name: small letters, digits and single hyphens inside, 64 at most'
    if name in COMMANDS:
        return f'"{name}" is a command already'
    return None


def head(text):
    """Returns the head's keys with their text, and the words below; None if there is no head."""
    found = re.match(r"\ufeff?---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|$)(.*)", text, re.S)
    if not found:
        return None, text
    keys, last = {}, None
    for line in found.group(1).splitlines():
        pair = re.match(r"([A-Za-z][\w-]*):\s*(.*)", line)
        if pair:
            last = pair.group(1)
            keys[last] = pair.group(2).strip()
        elif last and line.startswith((" ", "\t", "-")):
            keys[last] = f"{keys[last]} {line.strip()}".strip()
    return keys, found.group(2)


def files(folder):
    for path in sorted(folder.rglob("*")):
        below = path.relative_to(folder)
        if any(part.startswith(".") or part == "__pycache__" for part in below.parts):
            continue
        yield path, below.as_posix()


def check(folder):
    """Returns (what an installation refuses, what makes it weak)."""
    wrong, weak = [], []
    try:
        text = (folder / "SKILL.md").read_text(encoding="utf-8")
    except FileNotFoundError:
        return [f"{folder} has no SKILL.md"], []
    except UnicodeDecodeError:
        return ["SKILL.md is not UTF-8 text"], []
    keys, body = head(text)
    if keys is None:
        return ["SKILL.md does not begin with a line `---`, its head, and another line `---`"], []
    wrong += [f"`{key}` is no key of a skill's head" for key in keys if key not in KEYS]
    name, about = keys.get("name", "").strip("\"'"), keys.get("description", "")
    wrong += [problem for problem in [check_name(name)] if problem]
    quoted = about[:1] in "\"'" and about[-1:] == about[:1]
    plain = about[1:-1] if quoted else about.lstrip(">|- ")
    if not plain:
        wrong.append("`description` is missing: say what it does and when to use it")
    if len(plain) > 1024:
        wrong.append(f"`description` has {len(plain)} characters; 1024 is the most")
    if "<" in plain or ">" in plain:
        wrong.append("`description` has angle brackets")
    if not quoted and about[:1] not in ">|" and re.search(r": |\s#|^[\[{&*!%@`]", about):
        wrong.append("`description` has `: ` or ` #` in it, or begins with a sign of YAML: put it in quotes")
    if len(text.encode()) > LARGEST_SKILL:
        wrong.append("SKILL.md is larger than 128 KiB")
    if "use " not in plain.lower() and "when" not in plain.lower():
        weak.append("`description` does not say when to use it")
    if len(body.splitlines()) > LONG:
        weak.append(f"SKILL.md has more than {LONG} lines: move what is seldom needed to references/")
    if re.search(r"^\s*\[[A-Z][^\]\n]*\]\s*$", body, re.M) or plain.startswith("[what it does"):
        weak.append("there are places of the outline to fill in")
    seen, total, count = {}, 0, 0
    for path, below in files(folder):
        count += 1
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            wrong.append(f"{below} is a link, or neither a file nor a folder")
            continue
        folded = unicodedata.normalize("NFKC", below).casefold()
        if folded in seen:
            wrong.append(f"{below} and {seen[folded]} are one name on some machines")
        seen[folded] = below
        if ":" in below or "\\" in below or any(ord(c) < 32 for c in below):
            wrong.append(f"{below!r} has a sign in its name that is not taken")
        if path.is_dir():
            continue
        total += path.stat().st_size
        with path.open("rb") as data:
            if data.read(4).startswith(PROGRAMS):
                wrong.append(f"{below} is a program of the machine")
        if path.name.lower() == "skill.md" and below != "SKILL.md":
            wrong.append(f"{below} is a second SKILL.md")
        if below.startswith("scripts/") and path.suffix in (".py", ".sh") and path.name not in text and not any(path.stem in other.read_text(errors="replace") for other in (folder / "scripts").glob("*.py") if other != path):
            weak.append(f"{below} is not named in SKILL.md")
    if total > LARGEST or count > MOST_FILES:
        wrong.append(f"{count} files with {total} bytes; {MOST_FILES} and {LARGEST} are the most")
    for named in re.findall(r"(?:scripts|references)/[\w./-]+\.\w+", re.sub(r"/mnt/skills/(?!custom/" + re.escape(name) + r"/)\S+", "", text)):
        if not (folder / named).exists():
            weak.append(f"SKILL.md names {named}, which is not there")
    return wrong, weak


def told(folder):
    wrong, weak = check(folder)
    for line in wrong:
        print(f"MEND: {line}")
    for line in weak:
        print(f"BETTER: {line}")
    return not wrong


def main():
    parser = argparse.ArgumentParser(description="Begins, checks and packs a skill.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    new = verbs.add_parser("new")
    new.add_argument("name")
    new.add_argument("--in", dest="where", type=Path, required=True)
    verbs.add_parser("check").add_argument("folder", type=Path)
    pack = verbs.add_parser("pack")
    pack.add_argument("folder", type=Path)
    pack.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    if args.verb == "new":
        problem = check_name(args.name)
        folder = args.where / args.name
        if problem or folder.exists():
            sys.exit(f"error: {problem or f'{folder} is there already'}")
        folder.mkdir(parents=True)
        title = args.name.replace("-", " ").capitalize()
        (folder / "SKILL.md").write_text(OUTLINE.format(name=args.name, title=title), encoding="utf-8")
        print(folder / "SKILL.md")
        return 0
    if not told(args.folder):
        return 1
    if args.verb == "check":
        print("OK")
        return 0
    name = head((args.folder / "SKILL.md").read_text(encoding="utf-8"))[0]["name"].strip("\"'")
    args.out.mkdir(parents=True, exist_ok=True)
    made = args.out / f"{name}.skill"
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as out:
        for path, below in files(args.folder):
            if path.is_file():
                out.write(path, f"{name}/{below}")
    print(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
