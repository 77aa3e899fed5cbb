#!/usr/bin/env python3
"""Makes a wheel that carries the binary: wheel.py BINARY VERSION PLATFORM-TAG LEVEL FOLDER.

maturin would build the binary itself; a release has it already. The format is PEP 427's."""

import base64
import hashlib
import os
import pathlib
import sys
import time
import zipfile

binary, version, tag, level, folder = sys.argv[1:]
# On PyPI `pudu` is another project.
name = "pudu_agent"
info = f"{name}-{version}.dist-info"
readme = pathlib.Path("README.md").read_text()
files = {
    f"{name}-{version}.data/scripts/pudu": pathlib.Path(binary).read_bytes(),
    f"{info}/licenses/LICENSE": pathlib.Path("LICENSE").read_bytes(),
    f"{info}/METADATA": f"""\
Metadata-Version: 2.4
Name: pudu-agent
Version: {version}
Summary: A super-agent that lives in your team's chats: one fast daemon
License-Expression: MIT
License-File: LICENSE
Project-URL: Repository, https://github.com/pudu-agent/pudu
Description-Content-Type: text/markdown

{readme}""".encode(),
    f"{info}/WHEEL": f"""\
Wheel-Version: 1.0
Generator: pudu ({version})
Root-Is-Purelib: false
Tag: py3-none-{tag}
""".encode(),
}


def digest(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


rows = [f"{path},sha256={digest(content)},{len(content)}" for path, content in files.items()]
files[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,", ""]).encode()

# The format knows no time before 1980.
when = time.gmtime(max(int(os.environ["SOURCE_DATE_EPOCH"]), 315532800))[:6]
with zipfile.ZipFile(f"{folder}/{name}-{version}-py3-none-{tag}.whl", "w") as wheel:
    for path, content in files.items():
        entry = zipfile.ZipInfo(path, when)
        entry.external_attr = (0o100755 if "/scripts/" in path else 0o100644) << 16
        wheel.writestr(entry, content, zipfile.ZIP_DEFLATED, int(level))
