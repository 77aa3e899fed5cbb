#!/usr/bin/env python3
"""Makes one file of a web page, and checks it.

    bundle.py page/index.html page.html

Ends with 0 and "OK" if nothing has to be mended. Needs Python 3.9 and nothing else.
"""

import argparse
import base64
import mimetypes
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LARGEST_PART = 20 * 1024 * 1024
LARGE = 8 * 1024 * 1024
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
# Their end may be left out.
LOOSE = {"li", "p", "dt", "dd", "option", "tr", "td", "th", "thead", "tbody", "tfoot", "html", "head", "body", "colgroup"}


class Bundle:
    def __init__(self, base):
        self.base, self.problems = base.resolve(), []

    def read(self, address):
        """Returns the bytes of a part of the page, or None."""
        split = urlsplit(address)
        if split.scheme in ("data", "blob", "about"):
            return None
        if split.scheme or address.startswith("//"):
            self.problems.append(f"{address[:80]} would be loaded from elsewhere: put a copy beside the page")
            return None
        path = (self.base / unquote(split.path).lstrip("/")).resolve()
        if self.base not in path.parents:
            self.problems.append(f"{address} lies outside of the page's folder")
        elif not path.is_file():
            self.problems.append(f"{address} is not there")
        elif path.stat().st_size > LARGEST_PART:
            self.problems.append(f"{address} is larger than {LARGEST_PART // 1024 // 1024} MiB")
        else:
            return path.read_bytes()
        return None

    def data(self, address):
        found = self.read(address)
        if found is None:
            return address
        kind = mimetypes.guess_type(urlsplit(address).path)[0] or "application/octet-stream"
        return f"data:{kind};base64,{base64.b64encode(found).decode()}"

    def css(self, text, depth=0):
        def imported(found):
            inner = self.read(found.group(1)) if depth < 5 else None
            return self.css(inner.decode("utf-8", "replace"), depth + 1) if inner else ""

        text = re.sub(r"@import\s+(?:url\()?['\"]?([^'\")\s;]+)['\"]?\)?\s*;", imported, text)
        inline = lambda found: f"url({self.data(found.group(1))})" if not found.group(1).startswith(("data:", "#")) else found.group(0)
        return re.sub(r"url\(\s*['\"]?([^'\")]+?)['\"]?\s*\)", inline, text)

    def page(self, text):
        def sheet(found):
            tag = found.group(0)
            address = attribute(tag, "href")
            if "stylesheet" in (attribute(tag, "rel") or "").lower() and address:
                inner = self.read(address)
                return f"<style>\n{self.css(inner.decode('utf-8', 'replace'))}\n</style>" if inner is not None else tag
            if "icon" in (attribute(tag, "rel") or "").lower() and address:
                return tag.replace(address, self.data(address))
            if address and urlsplit(address).scheme in ("http", "https") and "canonical" not in tag:
                self.problems.append(f"{address[:80]} would be loaded from elsewhere")
            return tag

        def script(found):
            address = attribute(found.group(1), "src")
            inner = self.read(address) if address else None
            if inner is None:
                return found.group(0)
            words = inner.decode("utf-8", "replace").replace("</script", "<\\/script")
            kind = ' type="module"' if attribute(found.group(1), "type") == "module" else ""
            return f"<script{kind}>\n{words}\n</script>"

        def media(found):
            tag = found.group(0)
            for name in ("src", "poster"):
                address = attribute(tag, name)
                if address and not address.startswith("data:"):
                    tag = tag.replace(address, self.data(address), 1)
            if "srcset" in tag:
                self.problems.append("srcset is not put into the file: use src")
            return tag

        text = re.sub(r"<link\b[^>]*>", sheet, text, flags=re.I)
        text = re.sub(r"(<script\b[^>]*>)\s*</script>", script, text, flags=re.I)
        text = re.sub(r"<(?:img|video|audio|source|input|embed)\b[^>]*>", media, text, flags=re.I)
        return re.sub(r"(<style\b[^>]*>)(.*?)(</style>)", lambda found: found.group(1) + self.css(found.group(2)) + found.group(3), text, flags=re.S | re.I)


def attribute(tag, name):
    found = re.search(rf"""\s{name}\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>]+))""", tag, re.I)
    return next((value for value in found.groups() if value is not None), "") if found else None


class Check(HTMLParser):
    """Finds what people and their tools stumble over."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.problems, self.open, self.ids, self.links, self.labels, self.fields = [], [], set(), [], set(), []
        self.heading, self.ones, self.seen, self.title, self.lang, self.viewport = 0, 0, set(), "", False, False

    def say(self, words):
        self.problems.append(f"line {self.getpos()[0]}: {words}")

    def handle_starttag(self, tag, attrs):
        has = dict(attrs)
        if tag not in VOID:
            self.open.append((tag, self.getpos()[0]))
        if "id" in has:
            if has["id"] in self.ids:
                self.say(f'the id "{has["id"]}" is there twice')
            self.ids.add(has["id"])
        if re.fullmatch(r"h[1-6]", tag):
            level = int(tag[1])
            self.ones += level == 1
            if level > self.heading + 1:
                self.say(f"{tag} follows h{self.heading or ' nothing'}: a level is skipped" if self.heading else f"the first heading is {tag} and not h1")
            self.heading = level
        if tag == "img" and "alt" not in has:
            self.say("a picture without alt")
        if tag in ("input", "select", "textarea") and has.get("type") not in ("hidden", "submit", "button", "reset", "image"):
            inside = any(name == "label" for name, _ in self.open)
            if not (inside or has.get("aria-label") or has.get("aria-labelledby")):
                self.fields.append((has.get("id"), self.getpos()[0]))
        if tag == "label" and has.get("for"):
            self.labels.add(has["for"])
        if tag == "a":
            target = has.get("href")
            if target in (None, "", "#"):
                self.say("a link that leads nowhere: use a button, or give it an address")
            elif target.startswith("#"):
                self.links.append((target[1:], self.getpos()[0]))
            elif target.lower().startswith("javascript:"):
                self.say("a link with a script: use a button")
        if tag == "form" and (has.get("action") or "").startswith("http:"):
            self.say("a form that sends without encryption")
        if tag == "iframe":
            self.say("a frame loads a page from elsewhere")
        if tag == "html":
            self.lang = bool(has.get("lang"))
        if tag == "meta" and has.get("name") == "viewport":
            self.viewport = True
        for name in has:
            if name.startswith("on"):
                self.say(f"{name} in a tag: add the listener in the script")
        self.seen.add(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if tag in VOID:
            return
        while self.open and self.open[-1][0] in LOOSE and self.open[-1][0] != tag:
            self.open.pop()
        if self.open and self.open[-1][0] == tag:
            self.open.pop()
        elif tag in [name for name, _ in self.open]:
            name, line = self.open[-1]
            self.say(f"</{tag}> closes while <{name}> of line {line} is open")
            while self.open and self.open.pop()[0] != tag:
                pass
        elif tag not in LOOSE:
            self.say(f"</{tag}> closes nothing")

    def handle_data(self, data):
        if self.open and self.open[-1][0] == "title" and not any(name == "svg" for name, _ in self.open):
            self.title += data

    def finish(self):
        self.problems += [f"line {line}: <{name}> is not closed" for name, line in self.open if name not in LOOSE]
        self.problems += [f"line {line}: a field without a label" for known, line in self.fields if known not in self.labels]
        self.problems += [f"line {line}: nothing has the id {name!r} that a link leads to" for name, line in self.links if name not in self.ids and name != "top"]
        for good, words in (
            (self.lang, "<html> has no lang"),
            (self.title.strip(), "there is no title"),
            (self.viewport, 'there is no <meta name="viewport" content="width=device-width, initial-scale=1">'),
            (self.ones == 1, f"there are {self.ones} h1; one is right"),
            ("main" in self.seen, "there is no <main>"),
        ):
            if not good:
                self.problems.append(words)
        return self.problems


def main():
    parser = argparse.ArgumentParser(description="Makes one file of a web page, and checks it.")
    parser.add_argument("page", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    try:
        text = args.page.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        sys.exit(f"error: {args.page} cannot be read: {error}")
    check = Check()
    check.feed(text)
    check.close()
    bundle = Bundle(args.page.parent)
    made = bundle.page(text)
    if not re.match(r"\s*<!doctype html>", made, re.I):
        made = "<!doctype html>\n" + made
    problems = check.finish() + bundle.problems
    found = re.findall(r"fetch\(\s*['\"`](https?://[^'\"`]+)|XMLHttpRequest|new WebSocket\(", made)
    if found:
        problems.append("the script loads something from elsewhere: the page will not work offline")
    if len(made.encode()) > LARGE:
        problems.append(f"the file has {len(made.encode()) // 1024 // 1024} MiB: make its pictures smaller")
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(made, encoding="utf-8")
    print(f"{args.out}: {len(made.encode()) // 1024 + 1} KiB")
    for problem in problems:
        print(f"MEND: {problem}")
    print("OK" if not problems else f"{len(problems)} to mend")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
