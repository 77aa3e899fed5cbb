#!/usr/bin/env python3
"""Fetches the page's libraries from npm and writes them below `files/`, compressed, with their digests in `manifest.json`.

    crates/gateway/src/console/vendor/refresh.py                   fetches the versions of the manifest again
    crates/gateway/src/console/vendor/refresh.py katex@0.19.2      fetches another version of one package

It needs npm, which checks each archive against the registry's integrity. A version that the manifest knows already must have
the integrity that is written there. The build needs neither npm nor a network.
"""

import base64
import gzip
import hashlib
import json
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
# Fonts are compressed already.
STORED = {".woff2"}


def main():
    manifest_path = HERE / "manifest.json"
    manifest = json.loads(manifest_path.read_text())
    wanted = dict(argument.rsplit("@", 1) for argument in sys.argv[1:])
    unknown = set(wanted) - {package["name"] for package in manifest["packages"]}
    if unknown:
        sys.exit(f"the manifest has no package {', '.join(sorted(unknown))}")
    shutil.rmtree(HERE / "files", ignore_errors=True)
    for package in manifest["packages"]:
        known = package.get("integrity")
        version = wanted.get(package["name"], package["version"])
        if version != package["version"]:
            known = None
        package["version"] = version
        fetch(package, known)
    manifest_path.write_text(json.dumps(manifest, indent=2) + "\n")


def fetch(package, known):
    with tempfile.TemporaryDirectory() as folder:
        name = f"{package['name']}@{package['version']}"
        told = subprocess.run(["npm", "pack", "--json", "--silent", name], cwd=folder, check=True, capture_output=True, text=True)
        archive = pathlib.Path(folder) / json.loads(told.stdout)[0]["filename"]
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
        if known not in (None, integrity):
            sys.exit(f"{name} is not the archive that the manifest knows")
        with tarfile.open(archive) as tar:
            read = lambda path: tar.extractfile(f"package/{path}").read()
            package["license"] = json.loads(read("package.json"))["license"]
            package["integrity"] = integrity
            package["files"] = [store(package["folder"], entry, read(entry["from"])) for entry in package["files"]]


def store(folder, entry, content):
    target = HERE / "files" / folder / entry["name"]
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.suffix in STORED:
        target.write_bytes(content)
    else:
        target.with_name(target.name + ".gz").write_bytes(gzip.compress(content, 9, mtime=0))
    return {"name": entry["name"], "from": entry["from"], "sha256": hashlib.sha256(content).hexdigest()}


if __name__ == "__main__":
    main()
