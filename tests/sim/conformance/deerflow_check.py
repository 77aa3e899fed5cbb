#!/usr/bin/env python3
"""Has pudu move in homes that LangGraph's own libraries just wrote, and compares its threads with what those libraries read.

    deerflow_check.py PUDU [POSTGRES_URL]

The URL may also be in PUDU_TEST_POSTGRES.
"""

import asyncio
import contextlib
import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile

from checks import check, equal, run
from langgraph.checkpoint.sqlite import SqliteSaver

import deerflow_home

HERE = pathlib.Path(__file__).parent


def words(content) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if part.get("type") == "text")


def visible(messages) -> list:
    """What people see of LangGraph's messages, by id."""
    kept = [m for m in messages if m.type != "system" and not m.additional_kwargs.get("hide_from_ui")]
    return [(m.id, m.additional_kwargs.get("original_user_content") or words(m.content)) for m in kept]


def theirs(saver, thread: str) -> list:
    shape = deerflow_home.Delta if thread == "thread-delta" else deerflow_home.Full
    state = deerflow_home.graph(saver, shape, []).get_state({"configurable": {"thread_id": thread}})
    return visible(state.values["messages"])


def ours(database: pathlib.Path, thread: str) -> list:
    messages: dict = {}
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as store:
        for (body,) in store.execute("SELECT body FROM log WHERE thread = ? ORDER BY seq", (thread,)):
            update = json.loads(body)
            if update["op"] == "message" and update["value"]["role"] != "reminder":
                messages[update["value"]["id"]] = update["value"].get("text", "")
    return list(messages.items())


THREADS = ["thread-ada", "thread-im", "thread-delta", "thread-alone"]


def moved(pudu: str, work: pathlib.Path, arguments: list) -> dict:
    """Writes a home and has it moved in twice; returns what the second import took."""
    subprocess.run([sys.executable, HERE / "deerflow_home.py", work / "deer", *arguments], check=True)
    if arguments:
        # The configuration that is in use counts: pudu's own database is a file.
        (work / "config.yaml").write_text("config_version: 34\n")
    environment = {"PATH": os.environ["PATH"], "HOME": str(work)}
    command = [pudu, "import", "deerflow", "deer", "--json"]
    for _ in range(2):
        told = subprocess.run(command, cwd=work, env=environment, check=True, capture_output=True, text=True)
    return [item for item in json.loads(told.stdout)["items"] if item["outcome"] == "taken"]


@check("every thread of an SQLite home says what LangGraph says, and a second import takes nothing")
def sqlite_home(pudu, _server):
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        equal(moved(pudu, work, []), [])
        connection = sqlite3.connect(work / "deer/.deer-flow/data/deerflow.db", check_same_thread=False)
        for thread in THREADS:
            equal(ours(work / ".pudu/data/pudu.db", thread), theirs(SqliteSaver(connection), thread))


@check("so does every thread of a PostgreSQL home, where there is a server")
def postgres_home(pudu, server):
    if not server:
        return
    import psycopg
    from langgraph.checkpoint.postgres import PostgresSaver

    name = f"deerflow_{os.getpid()}"
    url = server.rsplit("/", 1)[0] + "/" + name
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
    try:
        with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
            work = pathlib.Path(folder)
            equal(moved(pudu, work, ["--postgres", url]), [])
            saver = stack.enter_context(PostgresSaver.from_conn_string(url))
            for thread in THREADS:
                equal(ours(work / ".pudu/data/pudu.db", thread), theirs(saver, thread))
    finally:
        with psycopg.connect(server, autocommit=True) as admin:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


if __name__ == "__main__":
    server = sys.argv[2] if len(sys.argv) > 2 else os.environ.get("PUDU_TEST_POSTGRES")
    sys.exit(asyncio.run(run("moving in from DeerFlow", os.path.abspath(sys.argv[1]), server)))
