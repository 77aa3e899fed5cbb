#!/usr/bin/env python3
"""Maps a change: which files, how much, in which order to read, and which added lines are worth a look.

    diff_map.py change.patch
    diff_map.py --tree FOLDER

Reads unified diffs (git diff, git format-patch, diff -u). Needs Python 3.9 and nothing else.
"""

import argparse
import re
import sys
from pathlib import Path

LARGEST = 20 * 1024 * 1024
MOST_MARKS = 200
MOST_FILES = 5000
# Put together of two halves, so that this file does not mark itself.
HINTS = [
    ("secret", r"(?i)(?:api[_-]?key|secret|passw(?:or)?d|token)\w*\s*[:=]\s*['\"][^'\"\s]{8,}['\"]|AKIA[0-9A-Z]{16}|-----BEGIN [A-Z ]*PRIVATE KEY|\bgh[pousr]_[A-Za-z0-9]{30,}|\bxox[abp]-[A-Za-z0-9-]{10,}"),
    ("leftover", r"\bconsole\.log\(|\bdbg!\(|\bdebugger\b|\bpdb\.set_trace\(|\bbreakpoint\(\)|\bprintln!\(\s*\"(?:debug|here)|\b(?:TO" + r"DO|FIX" + r"ME|XXX|HACK)\b"),
    ("swallowed error", r"except\s*(?:Exception|BaseException)?\s*:\s*(?:pass\b|$)|catch\s*\([^)]*\)\s*\{\s*\}|\.catch\(\s*\(\s*\w*\s*\)\s*=>\s*\{\s*\}|\blet _ = .*\?|_ = err\b"),
    ("put together from text", r"(?i)(?:execute|query|raw)\w*\(\s*(?:f['\"]|['\"][^'\"]*['\"]\s*(?:%|\+|\.format))|(?:os\.system|subprocess\.\w+|exec|spawn)\([^)]*(?:shell\s*=\s*True|\+\s*\w)|`[^`]*(?:select|insert|delete|update)\s[^`]*\$\{"),
    ("check switched off", r"(?i)verify\s*=\s*False|InsecureSkipVerify\s*:\s*true|rejectUnauthorized\s*:\s*false|danger_accept_invalid|# ?no" + r"qa\b|eslint-disable|#\[allow\(|@ts-ignore|@SuppressWarnings|\bskip\(|#\[ignore"),
    ("may stop the process", r"\.unwrap\(\)|\.expect\(|\bpanic!\(|\bprocess\.exit\(|\bos\._exit\(|!!\."),
    ("deserialises anything", r"\bpickle\.loads?\(|\byaml\.load\((?![^)]*Safe)|\bmarshal\.loads\(|ObjectInputStream|\beval\("),
    ("no limit on time", r"requests\.(?:get|post|put|delete|request)\((?![^)]*timeout)|\burlopen\((?![^)]*timeout)|while\s+(?:True|true|\(true\)|1)\s*[:{]"),
    ("floats for money or equality", r"(?i)\bfloat\s+\w*(?:price|amount|total|balance)|==\s*\d+\.\d+\b"),
]
HINTS = [(name, re.compile(pattern)) for name, pattern in HINTS]
GENERATED = re.compile(r"(?:^|/)(?:package-lock\.json|yarn\.lock|pnpm-lock\.yaml|Cargo\.lock|poetry\.lock|go\.sum|.*\.min\.(?:js|css)|.*\.map|.*_pb2?\.py|dist/.*|vendor/.*|node_modules/.*)$")
SOURCES = {".py", ".rs", ".js", ".ts", ".tsx", ".jsx", ".go", ".java", ".kt", ".c", ".h", ".cpp", ".cs", ".rb", ".php", ".swift", ".scala", ".sh", ".sql", ".vue"}


def order(path):
    """What has to be understood first comes first."""
    low = path.lower()
    if GENERATED.search(path):
        return 9, "generated"
    if re.search(r"(?:^|[/_.])(?:tests?|specs?|__tests__)(?:[/_.]|$)", low):
        return 7, "test"
    if re.search(r"migrations?/|\.sql$|schema|\.proto$|openapi|\.graphql$", low):
        return 1, "data and schema"
    if re.search(r"(?:^|/)(?:dockerfile|.*\.ya?ml|.*\.toml|.*\.json|.*\.tf|\.github/.*|makefile)$", low):
        return 2, "configuration"
    if re.search(r"auth|login|permission|crypt|token|session|payment", low):
        return 3, "rights and money"
    if re.search(r"api|route|handler|controller|interface|types?\.|models?[./]", low):
        return 4, "interface"
    if low.endswith((".md", ".rst", ".txt")):
        return 8, "words"
    return 5, "code"


def diff(text):
    """Returns {path: {added: [(line, text)], removed, kind}} of a unified diff."""
    files, path, line, left = {}, None, 0, [0, 0]
    for row in text.splitlines():
        if left[0] <= 0 and left[1] <= 0:
            if row.startswith("diff --git "):
                named = re.match(r"diff --git a/(.*) b/(.*)$", row)
                path = named.group(2) if named else row.split()[-1]
                files.setdefault(path, {"added": [], "removed": 0, "what": "changed"})
            elif row.startswith("+++ "):
                name = re.sub(r"^[ab]/", "", row[4:].split("\t")[0].strip().strip('"'))
                if name != "/dev/null":
                    path = name
                    files.setdefault(path, {"added": [], "removed": 0, "what": "changed"})
            elif path and row.startswith(("new file", "deleted file", "rename ", "Binary files", "GIT binary")):
                words = {"n": "new", "d": "deleted", "r": "moved", "B": "binary", "G": "binary"}
                files[path]["what"] = words[row[0]]
        hunk = re.match(r"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", row)
        if hunk and path:
            line = int(hunk.group(2))
            left = [int(hunk.group(1) or 1), int(hunk.group(3) or 1)]
        elif path and (left[0] > 0 or left[1] > 0):
            if row.startswith("+"):
                files[path]["added"].append((line, row[1:]))
                line, left[1] = line + 1, left[1] - 1
            elif row.startswith("-"):
                files[path]["removed"] += 1
                left[0] -= 1
            elif not row.startswith("\\"):
                line, left = line + 1, [left[0] - 1, left[1] - 1]
    return files


def tree(folder):
    files = {}
    for path in sorted(folder.rglob("*")):
        if len(files) >= MOST_FILES:
            print(f"NOTE: only the first {MOST_FILES} files are looked at")
            break
        below = path.relative_to(folder)
        if path.is_symlink() or not path.is_file() or any(part.startswith(".") for part in below.parts) or path.suffix not in SOURCES:
            continue
        if path.stat().st_size > LARGEST:
            continue
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        files[below.as_posix()] = {"added": list(enumerate(lines, 1)), "removed": 0, "what": "file"}
    return files


def main():
    parser = argparse.ArgumentParser(description="Maps a change.")
    parser.add_argument("patch", nargs="?", type=Path, help="a unified diff; - reads from standard input")
    parser.add_argument("--tree", type=Path, help="a folder of sources instead")
    args = parser.parse_args()
    if args.tree:
        files = tree(args.tree)
    elif args.patch:
        try:
            text = sys.stdin.read(LARGEST) if str(args.patch) == "-" else args.patch.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            sys.exit(f"error: {args.patch} cannot be read: {error}")
        if len(text) > LARGEST:
            sys.exit(f"error: the change is larger than {LARGEST // 1024 // 1024} MiB: nobody can review that in one go")
        files = diff(text)
    else:
        parser.error("name a patch, or a folder with --tree")
    if not files:
        sys.exit("error: there is no change in it; a unified diff has lines that begin with +++ and @@")
    added, removed = sum(len(f["added"]) for f in files.values()), sum(f["removed"] for f in files.values())
    print(f"{len(files)} files, +{added} -{removed}")
    tests = sum(len(f["added"]) for path, f in files.items() if order(path)[1] == "test")
    code = sum(len(f["added"]) for path, f in files.items() if order(path)[0] in (3, 4, 5))
    if code > 20 and not tests and not args.tree:
        print("NOTE: code is added and no test")
    if added > 800 and not args.tree:
        print("NOTE: more than 800 added lines: review it in parts, or ask for smaller changes")
    print("\nRead in this order:")
    for path in sorted(files, key=lambda path: (order(path)[0], path)):
        fact = files[path]
        print(f"  {order(path)[1]:16} +{len(fact['added']):<5} -{fact['removed']:<5} {fact['what']:8} {path}")
    marks = []
    for path in sorted(files, key=lambda path: (order(path)[0], path)):
        if order(path)[0] == 9:
            continue
        for number, text in files[path]["added"]:
            marks += [f"  {path}:{number}: {name}: {text.strip()[:100]}" for name, pattern in HINTS if pattern.search(text[:2000])]
    print(f"\nWorth a look ({len(marks)}):")
    print("\n".join(marks[:MOST_MARKS]) or "  nothing")
    if len(marks) > MOST_MARKS:
        print(f"  … and {len(marks) - MOST_MARKS} more")


if __name__ == "__main__":
    main()
