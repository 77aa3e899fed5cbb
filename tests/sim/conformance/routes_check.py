#!/usr/bin/env python3
"""Calls every route of DeerFlow on a running pudu, with a good and with a bad input, and compares status and shape.

    routes_check.py PUDU PUDU_SIM

deerflow_routes.yaml has the routes, the calls and the differences with their reasons. A call, a key or a difference that the
table does not have fails, and so does a listed difference that is not there.
"""

import asyncio
import collections
import contextlib
import datetime
import hashlib
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import zipfile

import httpx
import yaml

from checks import check, equal, run

TABLE = yaml.safe_load((pathlib.Path(__file__).parent / "deerflow_routes.yaml").read_text())
ROUTES = TABLE["routes"]
# Keys of a call; others are mistakes of the table.
CALL = {"as", "path", "json", "form", "upload", "headers", "prepare", "status", "body", "type", "location", "events", "pudu", "save", "method"}
TOKEN = "conformance"
PASSWORD = "correct horse battery"
# Time limit of what happens outside of a request, in seconds.
SOON = 30
CONFIG = """\
config_version: 34
models:
  - {{name: quick, use: "langchain_openai:ChatOpenAI", model: sim-1, base_url: "{quick}", api_key: sk-simulated}}
  - {{name: slow, use: "langchain_openai:ChatOpenAI", model: sim-1, base_url: "{slow}", api_key: sk-simulated}}
gateway: {{token: {token}}}
agents_api: {{enabled: true}}
summarization: {{enabled: true, keep: {{type: messages, value: 2}}}}
scheduler: {{enabled: true}}
auth:
  local: {{allow_registration: true}}
  oidc:
    enabled: true
    providers:
      acme: {{display_name: Acme, issuer: "{oidc}", client_id: "{oidc-client}", client_secret: "{oidc-secret}"}}
channels:
  telegram: {{enabled: true, bot_token: "{token_of_bot}", api_url: "{telegram}"}}
"""


def printed(command, pattern, **options):
    """Starts a program, and returns it with its lines up to the one with the pattern."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **options)
    lines = []
    for line in process.stdout:
        lines.append(line.rstrip("\n"))
        if re.search(pattern, line):
            return process, lines
    raise SystemExit(f"{command[0]} did not start:\n" + "\n".join(lines))


def until(condition):
    """Waits until a condition of another process holds, and returns its value."""
    end = time.monotonic() + SOON
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.05)
    raise AssertionError("this did not happen in time")


class Installation:
    """A daemon with the simulated platforms, users of all roles, and everything that the routes name."""

    def __init__(self, pudu, sim, work):
        self.processes = []
        facts = self.sim([sim, "--telegram-port", "0", "--model-port", "0", "--oidc-port", "0"], "^model ")
        slow = self.sim([sim, "--telegram-port", "0", "--model-port", "0", "--words", "40", "--words-ms", "4000"], "^model ")
        self.platform = facts["telegram"]
        facts |= {"quick": facts["model"], "slow": slow["model"], "token_of_bot": facts["token"], "token": TOKEN}
        (work / "config.yaml").write_text(CONFIG.format_map(facts))
        servers = {"mcpServers": {"demo": {"enabled": False, "type": "http", "url": "http://127.0.0.1:9/mcp"}}}
        (work / "extensions_config.json").write_text(json.dumps(servers))
        environment = {key: value for key, value in os.environ.items() if not key.endswith("_API_KEY")}
        environment |= {"DEER_FLOW_HOME": str(work / "home")}
        daemon, lines = printed([pudu, "--bind", "127.0.0.1:0"], r"page +http", cwd=work, env=environment)
        self.processes.append(daemon)
        self.root = re.search(r"http://[0-9.:]+", lines[-1])[0]
        self.callers = {name: httpx.Client(base_url=self.root, timeout=SOON) for name in ("operator", "anonymous", "admin", "user")}
        self.callers["operator"].headers["authorization"] = f"Bearer {TOKEN}"
        self.names = {"password": PASSWORD}

    def sim(self, command, pattern):
        process, lines = printed(command, pattern)
        self.processes.append(process)
        return dict(line.split(" ", 1) for line in lines)

    def close(self):
        for process in self.processes:
            process.kill()
            process.wait()

    def send(self, call, method, path):
        caller = self.callers[call.get("as", "admin")]
        headers = dict(call.get("headers", {}))
        if token := caller.cookies.get("csrf_token"):
            headers["x-csrf-token"] = token
        given = {}
        if "json" in call:
            given["json"] = call["json"]
        if "form" in call:
            given["data"] = call["form"]
        if "upload" in call:
            given["files"] = [("files", (name, self.content(name))) for name in call["upload"]]
        if call.get("upload") == []:
            headers["content-type"] = "multipart/form-data; boundary=end"
            given["content"] = b"--end--\r\n"
        return caller.request(method, path, headers=headers, **given)

    @staticmethod
    def content(name):
        if not name.endswith(".skill"):
            return b"three little words\n"
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as file:
            file.writestr("offers/SKILL.md", "---\nname: offers\ndescription: Writes offers.\n---\n\nWrite an offer.\n")
        return archive.getvalue()

    def ask(self, method, path, body=None, caller="admin"):
        answer = self.send({"as": caller} | ({} if body is None else {"json": body}), method, path)
        assert answer.status_code < 300, (method, path, answer.status_code, answer.text)
        return answer.json() if answer.content else None

    # Preparations, which the table names.

    def thread(self, text="hello"):
        """Makes a thread with a turn."""
        thread = self.ask("POST", "/api/threads", {})["thread_id"]
        self.turn(thread, text)
        return thread

    def turn(self, thread, text, model="quick"):
        said = {"messages": [{"type": "human", "content": text}]}
        self.ask("POST", f"/api/threads/{thread}/runs/wait", {"input": said, "context": {"model_name": model}})

    def prepare_talk(self):
        """Makes a thread with three turns, an output and an upload."""
        thread = self.thread("first question")
        call = {"description": "writes", "command": "echo draft > /mnt/user-data/outputs/a.md"}
        self.turn(thread, f"tool bash {json.dumps(call)}")
        self.turn(thread, "last question")
        runs = self.ask("GET", f"/api/threads/{thread}/runs")
        rows = self.ask("GET", f"/api/threads/{thread}/messages")
        said = lambda kind: [row["content"]["id"] for row in rows if row["content"].get("type") == kind]
        self.names |= {
            "thread": thread, "run": runs[0]["run_id"], "changing_run": runs[1]["run_id"], "asked": said("human")[-1],
            "answer": said("ai")[-1], "old_answer": said("ai")[0], "old_question": said("human")[0],
            "sha256": hashlib.sha256(b"draft\n").hexdigest(),
        }
        self.send({"upload": ["note.txt", "offers.skill"]}, "POST", f"/api/threads/{thread}/uploads").raise_for_status()

    def prepare_long_talk(self):
        """Makes a thread that is long enough for a summary."""
        thread = self.thread("turn 0")
        for number in range(1, 13):
            self.turn(thread, f"turn {number}")
        self.names["long_thread"] = thread

    def prepare_thread(self):
        """Makes a thread without a turn."""
        self.names["new_thread"] = self.ask("POST", "/api/threads", {})["thread_id"]

    def prepare_active_run(self):
        """Starts a run that takes some seconds on a thread of its own."""
        thread = self.ask("POST", "/api/threads", {})["thread_id"]
        said = {"messages": [{"type": "human", "content": "hello"}]}
        begun = self.ask("POST", f"/api/threads/{thread}/runs", {"input": said, "context": {"model_name": "slow"}})
        self.names |= {"active_thread": thread, "active_run": begun["run_id"]}

    def prepare_feedback(self):
        self.ask("PUT", filled("/api/threads/{thread}/runs/{run}/feedback", self.names), {"rating": 1})

    def prepare_memory(self):
        self.names["memory"] = self.ask("GET", "/api/memory/export")

    def prepare_servers(self):
        self.names["servers"] = self.ask("GET", "/api/mcp/config")["mcp_servers"]

    def prepare_link(self):
        """Links a chat user to the administrator."""
        post = lambda path, body: httpx.post(self.platform + path, json=body).raise_for_status().json()
        read = lambda: httpx.get(f"{self.platform}/sim/transcript/{chat}").json()["messages"]
        chat = post("/sim/people", {"name": "Ada", "username": "ada"})["chat"]
        code = self.ask("POST", "/api/channels/telegram/connect", {})["code"]
        for command in (f"/connect {code}", f"/connect {code} yes"):
            seen = len(read())
            post("/sim/say", {"chat": chat, "text": command})
            until(lambda: [message for message in read()[seen + 1 :] if message["from"] == "bot"])
        found = until(lambda: self.ask("GET", "/api/channels/connections")["connections"])
        self.names["connection"] = found[0]["id"]

    def prepare_sign_in(self):
        """Goes to the provider of single sign-on and back, up to the callback."""
        browser = self.callers["browser"] = httpx.Client(base_url=self.root, timeout=SOON)
        answer = browser.get("/api/v1/auth/oauth/acme?next=/workspace")
        back = httpx.get(answer.headers["location"]).headers["location"]
        self.names["callback"] = back.split("?", 1)[1]


def filled(value, names):
    """Replaces the names in braces. A text that is one name becomes its value."""
    if isinstance(value, str):
        whole = re.fullmatch(r"\{(\w+)\}", value)
        return names[whole[1]] if whole else re.sub(r"\{(\w+)\}", lambda found: str(names[found[1]]), value)
    if isinstance(value, dict):
        return {key: filled(below, names) for key, below in value.items()}
    return [filled(below, names) for below in value] if isinstance(value, list) else value


def is_time(value):
    with contextlib.suppress(ValueError, TypeError):
        return isinstance(value, str) and datetime.datetime.fromisoformat(value).tzinfo is not None
    return False


TYPES = {
    "any": lambda value: True,
    "text": lambda value: isinstance(value, str),
    "time": is_time,
    "int": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "bool": lambda value: isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "list": lambda value: isinstance(value, list),
    "null": lambda value: value is None,
}


def differences(value, shape, place="answer"):
    """Yields where a value has not its shape.

    A shape is the name of a type or of a shape of the table, several of them with `|`, a list with the shape of its
    entries (`[X]` has some, `[X, maybe]` may have none), or a mapping. Its key `*` is for any names; `key~` may be absent, `key+` is an
    addition of pudu, `key-` is one that pudu lacks, with the reason in place of the shape.
    """
    if isinstance(shape, list):
        if not isinstance(value, list) or (not value and len(shape) == 1):
            yield f"{place} is {value!r}, not a list with entries"
            return
        for number, entry in enumerate(value):
            yield from differences(entry, shape[0], f"{place}[{number}]")
    elif isinstance(shape, dict):
        if not isinstance(value, dict):
            yield f"{place} is {value!r}, not an object"
            return
        left = dict(value)
        for key, below in shape.items():
            name, mark = (key[:-1], key[-1]) if key[-1] in "~+-" else (key, "")
            if key == "*":
                for other in list(left):
                    yield from differences(left.pop(other), below, f"{place}.{other}")
            elif mark == "-" and name in left:
                yield f"{place}.{name} is there, but listed as missing: {below}"
            elif name in left:
                yield from differences(left.pop(name), below, f"{place}.{name}")
            elif mark not in ("~", "-"):
                yield f"{place} has no key {name}"
        for key in left:
            yield f"{place} has the unlisted key {key}"
    else:
        options = shape.split("|")
        for option in options:
            below = TABLE["shapes"].get(option)
            if (TYPES[option](value) if below is None else not list(differences(value, below, place))):
                return
        below = TABLE["shapes"].get(options[0])
        if below is not None:
            yield from differences(value, below, place)
        else:
            yield f"{place} is {str(value)[:200]!r}, not {shape}"


def problems(installation, route, call):
    """Makes a call, and yields where the answer is not that of the table."""
    unknown = set(call) - CALL
    if unknown:
        yield f"the table has the unknown keys {sorted(unknown)}"
        return
    for preparation in call.get("prepare", []):
        getattr(installation, f"prepare_{preparation}")()
    method, path = route.split(" ")
    call = call | filled({key: call[key] for key in ("path", "json", "form", "headers") if key in call}, installation.names)
    path = filled(call.get("path", path), installation.names)
    answer = installation.send(call, call.get("method", method), path)
    # pudu's own status and shape, where the table has a reason for them.
    expected = {key: value for key, value in call.items() if key in ("status", "body", "type", "location", "events")}
    own = dict(call.get("pudu", {}))
    if own:
        reason = own.pop("why", "")
        if len(reason) < 10 or not own or own.items() <= expected.items():
            yield "a difference needs a reason, and must differ"
        expected |= own
    text = f"{answer.status_code} {answer.text[:300]!r}"
    if answer.status_code != expected["status"]:
        yield f"{method} {path}: expected {expected['status']}, found {text}"
        return
    if answer.status_code == 404 and "detail" not in answer.json():
        yield f"{method} {path}: 404 without a reason: {text}"
    kind = answer.headers.get("content-type", "").split(";")[0]
    if "type" in expected and kind != expected["type"]:
        yield f"{method} {path}: the media type is {kind}, not {expected['type']}"
    if "location" in expected and not re.search(expected["location"], answer.headers.get("location", "")):
        yield f"{method} {path}: it leads to {answer.headers.get('location')}"
    if expected.get("events"):
        names = re.findall(r"^event: (.+)$", answer.text, re.MULTILINE)
        if [name for name in expected["events"] if name not in names] or names[-1] != expected["events"][-1]:
            yield f"{method} {path}: the events are {names}"
    body = None
    if "body" in expected:
        try:
            body = answer.json()
        except ValueError:
            yield f"{method} {path}: the body is not JSON: {text}"
            return
        for difference in differences(body, expected["body"]):
            yield f"{method} {path}: {difference}"
    elif answer.status_code >= 400:
        for difference in differences(answer.json(), "Coded" if answer.status_code == 401 else "Refusal"):
            yield f"{method} {path}: {difference}"
    elif not set(expected) & {"events", "type", "location"} and answer.content:
        yield f"{method} {path}: the table has no shape for {text}"
    for name, where in call.get("save", {}).items():
        found = body
        for part in where.split("."):
            found = found[int(part)] if isinstance(found, list) else found[part]
        installation.names[name] = found


@check("the table has each of DeerFlow's 133 routes once, with two calls or a reason")
def whole_table(installation):
    names = [name for group in ROUTES.values() for name in group["routes"]]
    equal([name for name, times in collections.Counter(names).items() if times > 1], [])
    equal({name: len(group["routes"]) for name, group in ROUTES.items()}, {name: group["count"] for name, group in ROUTES.items()})
    equal(len(names), 133)
    page = (pathlib.Path(__file__).parents[3] / "docs" / "moving.md").read_text()
    for title, group in ROUTES.items():
        answered = sum("absent" not in row for row in group["routes"].values())
        assert f"| {title} | {group['count']} | {answered} |" in page, f"docs/moving.md has other numbers for {title}"
        for name, row in group["routes"].items():
            if set(row) == {"absent", "says"}:
                assert len(row["absent"]) >= 10, name
            else:
                assert set(row) - {"others"} == {"good", "bad"} and row["good"]["status"] < 400, name
                assert row["bad"]["status"] >= 400 or "error=" in row["bad"]["location"], name


def row_calls(row):
    """Returns the calls of a row, none for a missing route."""
    return [] if "absent" in row else [row["good"], row["bad"], *row.get("others", [])]


@check("each route answers good and bad input with DeerFlow's status and shape, or differs as listed")
def calls(installation):
    wrong, made = [], 0
    for group in ROUTES.values():
        for name, row in group["routes"].items():
            for call in row_calls(row):
                made += 1
                try:
                    wrong += [f"{name}: {problem}" for problem in problems(installation, name, call)]
                except Exception as error:
                    wrong.append(f"{name}: {error!r}")
    print(f"        {made} calls")
    assert not wrong, "\n".join(["", *wrong])


@check("a route that is listed as missing answers 404 and says why, and the OpenAPI document agrees")
def absent(installation):
    document = installation.ask("GET", "/openapi.json")
    plain = lambda path: re.sub(r"\{[^}]*\}", "{}", path)
    served = {(method.upper(), plain(path)) for path, methods in document["paths"].items() for method in methods}
    missing = [re.compile(re.sub(r"\\\{[^}]*\\\}", ".+", re.escape(path)) + "$") for path in document["x-not-there"]]
    wrong = []
    for group in ROUTES.values():
        for name, row in group["routes"].items():
            method, path = name.split(" ")
            if "absent" not in row:
                if (method, plain(path)) not in served and (method, plain(path).rstrip("/")) not in served:
                    wrong.append(f"{name} is not in the document")
                continue
            answer = installation.send({"json": {}} if method != "GET" else {}, method, re.sub(r"\{\w+\}", "demo", path))
            if answer.status_code != 404 or answer.json() != {"detail": row["says"]}:
                wrong.append(f"{name}: {answer.status_code} {answer.text[:200]}")
            if not any(pattern.match(path) for pattern in missing):
                wrong.append(f"{name} is not among the missing ones of the document")
    assert not wrong, "\n".join(["", *wrong])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        programs = [str(pathlib.Path(program).resolve()) for program in sys.argv[1:3]]
        installation = Installation(*programs, pathlib.Path(folder))
        try:
            status = asyncio.run(run("DeerFlow's routes", installation))
        finally:
            installation.close()
    raise SystemExit(status)
