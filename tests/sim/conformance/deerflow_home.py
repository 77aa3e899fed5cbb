#!/usr/bin/env python3
"""Writes a DeerFlow home with the libraries that DeerFlow itself stores with: LangGraph, its savers and its serializer.

    deerflow_home.py FOLDER [--threads N] [--messages N] [--postgres URL] [--dump]

FOLDER gets `config.yaml`, `extensions_config.json` and `.deer-flow`. Without --threads it is a small home with one of
each kind of thing; with it, one of many like threads. --postgres puts the tables there instead of into a file, --dump
writes the file as SQL text and leaves links out.
"""

import argparse
import base64
import json
import pathlib
import sqlite3
import uuid
from datetime import datetime, timedelta, timezone
from typing import Annotated, Any, NotRequired, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages

ADA = "0b9f4d3e-1111-4aaa-8bbb-000000000001"
BO = "0b9f4d3e-2222-4aaa-8bbb-000000000002"
BEGAN = datetime(2026, 3, 1, 9, 0, tzinfo=timezone.utc)
PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()


def fold(old: list, writes: list) -> list:
    for write in writes:
        old = add_messages(old, write)
    return old


def union(old: list | None, new: list | None) -> list:
    return list(dict.fromkeys([*(old or []), *(new or [])]))


class Channels(TypedDict):
    sandbox: NotRequired[dict | None]
    thread_data: NotRequired[dict | None]
    title: NotRequired[str | None]
    artifacts: Annotated[list[str], union]
    todos: NotRequired[list | None]
    uploaded_files: NotRequired[list[dict] | None]
    viewed_images: NotRequired[dict | None]
    goal: NotRequired[dict | None]
    delegations: NotRequired[list | None]
    summary_text: NotRequired[str | None]
    script: NotRequired[Any]


class Full(Channels):
    messages: Annotated[list[AnyMessage], add_messages]


class Delta(Channels):
    messages: Annotated[list[AnyMessage], DeltaChannel(fold, list, snapshot_frequency=3)]


def graph(saver, shape, script: list):
    """A graph whose one node says what the script has next, until it has nothing."""

    def model(_state):
        return script.pop(0) if script else {}

    built = StateGraph(shape)
    built.add_node("model", model)
    built.add_edge(START, "model")
    built.add_conditional_edges("model", lambda _: "model" if script else END)
    return built.compile(checkpointer=saver)


def talk(saver, thread: str, turns: list, shape=Full) -> None:
    """Each turn is what is put in, and what the model's node writes then."""
    for given, said in turns:
        config = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}, "recursion_limit": 100}
        graph(saver, shape, list(said)).invoke(given, config)


def note(text: str, mark: str) -> SystemMessage:
    kwargs = {"hide_from_ui": True, mark: True}
    return SystemMessage(id=f"{mark}-1", content=text, additional_kwargs=kwargs)


def ai(id: str, text: Any = "", **more) -> AIMessage:
    usage = {"input_tokens": 120, "output_tokens": 30, "total_tokens": 150,
             "input_token_details": {"cache_read": 100}, "output_token_details": {"reasoning": 12}}
    meta = {"model_name": "gpt-4o", "finish_reason": "stop"}
    return AIMessage(id=id, content=text, usage_metadata=usage, response_metadata=meta, **more)


def small(saver) -> None:
    call = {"name": "bash", "args": {"command": "wc -l notes.txt"}, "id": "call_1", "type": "tool_call"}
    memory = HumanMessage(id="m1__memory", content="<memory>User Context</memory>", additional_kwargs={"hide_from_ui": True})
    asked = HumanMessage(
        id="m1__user", name="user-input",
        content="<uploaded_files>\n- notes.txt\n</uploaded_files>\n\nHow many lines has notes.txt?",
        additional_kwargs={
            "original_user_content": "How many lines has notes.txt?",
            "files": [{"filename": "notes.txt", "size": 12, "path": "/mnt/user-data/uploads/notes.txt"}],
        },
    )
    talk(saver, "thread-ada", [
        ({"messages": [note("<system-reminder>", "dynamic_context_reminder"), memory, asked],
          "uploaded_files": [{"filename": "notes.txt", "size": 12}],
          "thread_data": {"workspace_path": "/srv/x"}},
         [{"messages": [ai("a1", tool_calls=[call], additional_kwargs={"reasoning_content": "Count them."})],
           "title": "Lines of notes"},
          {"messages": [ToolMessage(id="r1", content="3 notes.txt", tool_call_id="call_1", name="bash")]},
          {"messages": [ai("a2", "It has **3** lines.")],
           "artifacts": ["/mnt/user-data/outputs/report.md"],
           "todos": [{"content": "count", "status": "completed"}, {"content": "tell", "status": "in_progress"}]}]),
        ({"messages": [HumanMessage(id="m2__user", content=[{"type": "text", "text": "Thanks"}])]},
         [{"messages": [ai("a3", [{"type": "thinking", "thinking": "Polite.", "signature": "c2ln"},
                                  {"type": "text", "text": "You are welcome."}])],
           "summary_text": "Ada had the lines of a file counted.", "delegations": [{"id": "d1", "status": "completed"}]}]),
    ])
    image = [{"type": "text", "text": "这是什么？"},
             {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}]
    broken = {"name": "ls", "args": "{\"path\":", "id": "call_2", "error": "bad JSON", "type": "invalid_tool_call"}
    talk(saver, "thread-im", [
        ({"messages": [HumanMessage(id="im1", content=image)],
          "goal": {"objective": "Find what it is", "status": "active", "created_at": BEGAN.isoformat(),
                   "continuation_count": 1, "max_continuations": 5, "no_progress_count": 0}},
         [{"messages": [ai("im2", invalid_tool_calls=[broken])]},
          {"messages": [ToolMessage(id="im3", content=[{"type": "text", "text": "no such folder"}],
                                    tool_call_id="call_2", name="ls", status="error")]},
          {"messages": [ai("im4", "一张图片。")]}]),
    ])
    turns = [({"messages": [HumanMessage(id=f"d{n}", content=f"question {n}")]},
              [{"messages": [ai(f"e{n}", f"answer {n}")]}]) for n in range(5)]
    turns.append(({"messages": [RemoveMessage(id="d1"), HumanMessage(id="d0", content="question 0, edited")]},
                  [{"messages": [ai("e9", "the last answer")], "title": "Deltas"}]))
    talk(saver, "thread-delta", turns, Delta)
    talk(saver, "thread-alone", [({"messages": [HumanMessage(id="x", content="hello?")]}, [{}])])
    talk(saver, "thread-cut", [({"messages": [HumanMessage(id="y", content="cut")]}, [{}])])


def many(saver, threads: int, messages: int) -> None:
    for number in range(threads):
        turns = [({"messages": [HumanMessage(id=f"h{n}", content=f"Question {n} of {number}: " + "word " * 30)]},
                  [{"messages": [ai(f"a{n}", f"Answer {n} of {number}: " + "word " * 60)], "title": f"Thread {number}"}])
                 for n in range(messages // 2)]
        talk(saver, f"thread-{number:05}", turns)


TABLES = [
    "CREATE TABLE threads_meta (thread_id VARCHAR(64) PRIMARY KEY, assistant_id VARCHAR(128), user_id VARCHAR(64),"
    " display_name VARCHAR(256), status VARCHAR(20), metadata_json JSON, created_at {time}, updated_at {time})",
    "CREATE TABLE users (id VARCHAR(36) PRIMARY KEY, email VARCHAR(320) NOT NULL, password_hash VARCHAR(128),"
    " system_role VARCHAR(16) NOT NULL, created_at {time} NOT NULL, oauth_provider VARCHAR(32), oauth_id VARCHAR(128),"
    " needs_setup BOOLEAN NOT NULL, token_version INTEGER NOT NULL)",
    "CREATE TABLE feedback (feedback_id VARCHAR(64) PRIMARY KEY, run_id VARCHAR(64), thread_id VARCHAR(64),"
    " user_id VARCHAR(64), message_id VARCHAR(64), rating INTEGER, comment TEXT, created_at {time})",
    "CREATE TABLE runs (run_id VARCHAR(64) PRIMARY KEY, thread_id VARCHAR(64), user_id VARCHAR(64), status VARCHAR(20))",
    "CREATE TABLE run_events (id INTEGER PRIMARY KEY, thread_id VARCHAR(64), run_id VARCHAR(64), seq INTEGER)",
    "CREATE TABLE channel_connections (id VARCHAR(64) PRIMARY KEY, owner_user_id VARCHAR(64), provider VARCHAR(32),"
    " status VARCHAR(32), external_account_id VARCHAR(128), external_account_name VARCHAR(256), workspace_id VARCHAR(128),"
    " created_at {time}, updated_at {time})",
    "CREATE TABLE channel_conversations (id VARCHAR(64) PRIMARY KEY, connection_id VARCHAR(64), owner_user_id VARCHAR(64),"
    " provider VARCHAR(32), external_conversation_id VARCHAR(128), external_topic_id VARCHAR(128), thread_id VARCHAR(64),"
    " created_at {time}, updated_at {time})",
]


def rows(threads: list[tuple]) -> list[tuple[str, list[tuple]]]:
    at = lambda minutes: (BEGAN + timedelta(minutes=minutes)).strftime("%Y-%m-%d %H:%M:%S.%f+00:00")
    meta = [(id, "lead_agent", user, name, "idle", json.dumps(data), at(n), at(n + 30))
            for n, (id, user, name, data) in enumerate(threads)]
    secret = "$dfv2$$2b$12$abcdefghijklmnopqrstuuJx7wC1Qh0Xy0m1wq3n4o5p6q7r8s9tu"
    return [
        ("threads_meta", meta),
        ("users", [(ADA, "ada@example.org", secret, "admin", at(0), None, None, False, 3),
                   (BO, "bo@example.org", None, "user", at(1), "acme", "bo-1", False, 0)]),
        ("feedback", [("f1", "run-1", "thread-ada", ADA, "a2", 1, "Good, and fast", at(5)),
                      ("f2", "run-2", "thread-ada", None, None, -1, None, at(6))]),
        ("runs", [("run-1", "thread-ada", ADA, "success")]),
        ("run_events", [(1, "thread-ada", "run-1", 1)]),
        ("channel_connections", [("c1", BO, "slack", "connected", "U777", "Bo", "T1", at(0), at(0)),
                                 ("c2", BO, "telegram", "revoked", "55", "Bo", "55", at(0), at(0))]),
        ("channel_conversations", [("k1", "c1", BO, "slack", "C100", "171.22", "thread-delta", at(0), at(9))]),
    ]


def fill(connection, mark: str, time: str, threads: list[tuple]) -> None:
    for table in TABLES:
        connection.execute(table.format(time=time))
    for table, lines in rows(threads):
        for line in lines:
            connection.execute(f"INSERT INTO {table} VALUES ({', '.join([mark] * len(line))})", line)


def write(path: pathlib.Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def fact(home: pathlib.Path, user: str, agent: str, id: str, text: str) -> None:
    import hashlib
    folder = home / "users" / user / "agents" / agent / "facts" / hashlib.sha256(id.encode()).hexdigest()[:2]
    at = "2026-03-02T10:00:00Z"
    write(folder / f"{id}.md", f"---\nid: {id}\ncategory: preference\nconfidence: 0.9\ncreatedAt: '{at}'\n"
          f"source:\n  type: conversation\n  threadId: thread-ada\nschemaVersion: 2\nstatus: active\ntopics: []\n"
          f"consolidatedFrom: []\nupdatedAt: '{at}'\nrevision: 1\nuser_id: {user}\nagent_name: {agent}\n---\n\n# {text}\n\n{text}\n")


def summaries(text: str) -> dict:
    part = lambda text: {"summary": text, "updatedAt": "2026-03-02T10:00:00Z" if text else ""}
    return {"user": {"workContext": part(text), "personalContext": part(""), "topOfMind": part("")},
            "history": {key: part("") for key in ("recentMonths", "earlierContext", "longTermBackground")}}


def files(home: pathlib.Path, links: bool) -> None:
    memory = {"version": "2.0", "revision": 4, "lastUpdated": "2026-03-02T10:00:00Z", **summaries("Ada runs a zoo.")}
    write(home / "users" / ADA / "memory.json", json.dumps(memory, indent=2))
    fact(home, ADA, "__default__", "fact_0a1b2c3d", "Ada prefers short answers")
    fact(home, ADA, "zoologist", "fact_11223344", "Ada keeps two okapis")
    old = {"version": "1.0", "lastUpdated": "2026-03-02T10:00:00Z", **summaries("Bo is a baker."),
           "facts": [{"id": "fact_deadbeef", "content": "Bo bakes with spelt", "category": "knowledge", "confidence": 0.8,
                      "createdAt": "2026-03-01T10:00:00Z", "source": "thread-delta"}]}
    write(home / "users" / BO / "memory.json", json.dumps(old, indent=2))
    write(home / "users" / "4242" / "memory.json", json.dumps(
        {"version": "2.0", "revision": 1, "lastUpdated": "2026-03-02T10:00:00Z", **summaries("Cy asks about pictures.")}, indent=2))
    agent = home / "users" / ADA / "agents" / "zoologist"
    write(agent / "config.yaml", "name: zoologist\ndescription: Knows animals\n")
    write(agent / "SOUL.md", "You know animals.\n")
    write(home / "users" / ADA / "skills" / "custom" / "count-things" / "SKILL.md",
          "---\nname: count-things\ndescription: Counts things in files.\n---\n\nCount with `wc`.\n")
    data = home / "users" / ADA / "threads" / "thread-ada" / "user-data"
    write(data / "uploads" / "notes.txt", "one\ntwo\nsix\n")
    write(data / "outputs" / "report.md", "# Report\n\n3 lines\n")
    write(home / "threads" / "thread-alone" / "user-data" / "workspace" / "old.txt", "from before users\n")
    if links:
        link = home / "users" / ADA / "threads" / "thread-ada" / "user-data" / "workspace" / "away"
        link.parent.mkdir(parents=True)
        link.symlink_to("/etc/passwd")
    at = BEGAN.timestamp()
    write(home / "channels" / "store.json", json.dumps({
        "telegram:4242": {"thread_id": "thread-im", "user_id": "4242", "created_at": at, "updated_at": at + 60},
        "telegram:-100200:17": {"thread_id": "thread-gone", "user_id": "4242", "created_at": at, "updated_at": at}}, indent=2))
    write(home / "SOUL.md", "You are the team's deer.\n")
    write(home / "USER.md", "The team is small.\n")


def main() -> None:
    args = argparse.ArgumentParser()
    args.add_argument("folder", type=pathlib.Path)
    args.add_argument("--threads", type=int, default=0)
    args.add_argument("--messages", type=int, default=20)
    args.add_argument("--postgres")
    args.add_argument("--dump", action="store_true")
    args = args.parse_args()
    home = args.folder / ".deer-flow"
    database = f"database:\n  backend: postgres\n  postgres_url: {args.postgres}\n" if args.postgres else ""
    write(args.folder / "config.yaml", "config_version: 34\nmodels:\n  - name: gpt\n    use: langchain_openai:ChatOpenAI\n"
          f"    model: gpt-4o\n    api_key: sk-example\n{database}")
    write(args.folder / "extensions_config.json", json.dumps(
        {"mcpServers": {"files": {"enabled": False, "type": "stdio", "command": "true"}}, "skills": {}}, indent=2))
    files(home, not args.dump)
    if args.threads:
        names = [(f"thread-{n:05}", ADA if n % 2 else BO, f"Thread {n}", {}) for n in range(args.threads)]
        work = lambda saver: many(saver, args.threads, args.messages)
    else:
        im = {"channel_source": {"type": "im_channel", "provider": "telegram", "chat_id": "4242"}}
        names = [("thread-ada", ADA, "Lines of notes", {}), ("thread-im", "default", None, im), ("thread-delta", BO, "Deltas", {}),
                 ("thread-cut", ADA, "Cut", {}), ("thread-empty", ADA, "Nothing yet", {}), ("../evil", ADA, "Evil", {})]
        work = small
    if args.postgres:
        import psycopg
        from langgraph.checkpoint.postgres import PostgresSaver
        with PostgresSaver.from_conn_string(args.postgres) as saver:
            saver.setup()
            work(saver)
        with psycopg.connect(args.postgres) as connection:
            fill(connection, "%s", "TIMESTAMPTZ", names)
            connection.execute("UPDATE checkpoint_blobs SET blob = substring(blob FROM 1 FOR 9) WHERE thread_id = 'thread-cut'")
        return
    file = home / "data" / "deerflow.db"
    file.parent.mkdir(parents=True)
    connection = sqlite3.connect(file, check_same_thread=False, isolation_level=None)
    saver = SqliteSaver(connection)
    saver.setup()
    connection.execute("PRAGMA synchronous=OFF")
    work(saver)
    connection.execute("BEGIN")
    fill(connection, "?", "DATETIME", names)
    connection.execute("UPDATE checkpoints SET checkpoint = substr(checkpoint, 1, 60) WHERE thread_id = 'thread-cut'")
    connection.execute("COMMIT")
    if args.dump:
        text = "\n".join(line for line in connection.iterdump())
        connection.close()
        for left in file.parent.iterdir():
            left.unlink()
        write(file.with_suffix(".sql"), text + "\n")


if __name__ == "__main__":
    main()
