#!/usr/bin/env python3
"""Holds a running pudu to its own OpenAPI document, with schemathesis.

    openapi_check.py PUDU [FOLDER_FOR_REPORTS]

The daemon has a home of its own and its built-in model, which answers at once. Nothing is asked but the loopback address.
"""

import asyncio
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.request

from checks import check, run

HERE = pathlib.Path(__file__).parent
TOKEN = "conformance"
CONFIG = f"""\
gateway:
  token: {TOKEN}
agents_api:
  enabled: true
"""
# Seconds that the run may take. On two cores that were busy with other work it took 200.
LIMIT = 900
# What is checked of every answer.
CHECKS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "unsupported_method",
    "allow_header_conformance",
]


def ask(address, method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(address + path, data, headers, method=method)) as answer:
        return json.load(answer)


def start(pudu, work):
    """Starts the daemon in a home of its own, and returns it with its address."""
    (work / "config.yaml").write_text(CONFIG)
    environment = {key: value for key, value in os.environ.items() if not key.endswith("_API_KEY")}
    environment["DEER_FLOW_HOME"] = str(work / "home")
    log = (work / "log").open("w")
    daemon = subprocess.Popen([pudu, "--bind", "127.0.0.1:0"], cwd=work, env=environment, stdout=log, stderr=log)
    for _ in range(200):
        found = re.search(r"http://127\.0\.0\.1:\d+", (work / "log").read_text())
        if found:
            return daemon, found.group()
        time.sleep(0.1)
    daemon.kill()
    raise SystemExit((work / "log").read_text())


def furnish(address, work):
    """Makes threads and runs, so that there is something to ask for."""
    runs = []
    threads = [f"conformance-{number}" for number in range(6)]
    said = {"messages": [{"type": "human", "content": "hello"}]}
    for thread in threads:
        ask(address, "POST", "/api/threads", {"thread_id": thread})
        ask(address, "POST", f"/api/threads/{thread}/runs/wait", {"input": said})
        runs.append(ask(address, "GET", f"/api/threads/{thread}/runs")[0]["run_id"])
    ask(address, "POST", "/api/agents", {"name": "conformance", "description": "an agent to ask about"})
    for name, values in (("threads", threads), ("runs", runs)):
        (work / f"{name}.txt").write_text("\n".join(json.dumps(value) for value in values))


@check("every answer is as the document says, and bad requests are refused")
def conforms(address, work, daemon, reports):
    furnish(address, work)
    # Beside the lists of names that it reads.
    config = work / "schemathesis.toml"
    config.write_text((HERE / "schemathesis.toml").read_text())
    command = [
        str(pathlib.Path(sys.executable).parent / "st"), "--config-file", str(config), "--no-color", "run", f"{address}/openapi.json",
        "--header", f"Authorization: Bearer {TOKEN}", "--checks", ",".join(CHECKS),
    ]
    if reports:
        command += ["--report", "ndjson", "--report-dir", reports]
    subprocess.run(command, cwd=work, check=True, timeout=LIMIT)


@check("the daemon is well afterwards, and no handler panicked")
def survives(address, work, daemon, reports):
    assert ask(address, "GET", "/ready")["ready"] and daemon.poll() is None
    log = (work / "log").read_text()
    assert "panicked" not in log, log[-4000:]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        daemon, address = start(str(pathlib.Path(sys.argv[1]).resolve()), work)
        try:
            status = asyncio.run(run("OpenAPI", address, work, daemon, sys.argv[2] if len(sys.argv) > 2 else ""))
        finally:
            daemon.terminate()
            daemon.wait(30)
    raise SystemExit(status)
