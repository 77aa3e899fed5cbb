"""Which calls LangGraph's Python client has, which of them were made, and those that the documents say are refused."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[3] / "docs" / "http-api.md"
PARTS = ("assistants", "threads", "runs", "crons", "store")
NOBODY = "00000000-0000-4000-8000-000000000000"
CRON = {"schedule": "0 0 * * *"}


def calls_of(client):
    """Lists every call that a client has, as `threads.get_state`; calls of its transport are none."""
    unknown = [name for name in vars(client) if not name.startswith("_") and name not in (*PARTS, "http")]
    names = [f"{part}.{name}" for part in PARTS for name in dir(getattr(client, part)) if name[0] != "_"]
    return [*unknown, *(name for name in names if callable(getattr(getattr(client, name.split(".")[0]), name.split(".")[1])))]


class Recorded:
    """A client, or a part of one, whose calls are entered in a set."""

    def __init__(self, target, made, part=""):
        self._target, self._made, self._part = target, made, part

    def __getattr__(self, name):
        value = getattr(self._target, name)
        if not self._part:
            return Recorded(value, self._made, name) if name in PARTS else value
        self._made.add(f"{self._part}.{name}")
        return value


def refused_calls():
    """Reads the table of refused calls in the documents: each call with its status."""
    rows = re.findall(r"^\| (`[a-z]+\.[a-z_]+`.*?) \| (\d{3}) \|", DOCS.read_text(), re.MULTILINE)
    return {call: int(status) for calls, status in rows for call in re.findall(r"`([^`]+)`", calls)}


async def _joined(client):
    async for _ in await client.threads.join_stream(NOBODY):
        return


REFUSED = {
    "assistants.create": lambda client: client.assistants.create("lead_agent"),
    "assistants.update": lambda client: client.assistants.update("lead_agent", name="other"),
    "assistants.delete": lambda client: client.assistants.delete("lead_agent"),
    "crons.create": lambda client: client.crons.create("lead_agent", **CRON),
    "crons.create_for_thread": lambda client: client.crons.create_for_thread(NOBODY, "lead_agent", **CRON),
    "crons.update": lambda client: client.crons.update(NOBODY, **CRON),
    "crons.delete": lambda client: client.crons.delete(NOBODY),
    "crons.search": lambda client: client.crons.search(),
    "crons.count": lambda client: client.crons.count(),
    "store.put_item": lambda client: client.store.put_item(["a"], "k", {"v": 1}),
    "store.get_item": lambda client: client.store.get_item(["a"], "k"),
    "store.delete_item": lambda client: client.store.delete_item(["a"], "k"),
    "store.search_items": lambda client: client.store.search_items(["a"]),
    "store.list_namespaces": lambda client: client.store.list_namespaces(),
    "runs.create_batch": lambda client: client.runs.create_batch([{"assistant_id": "lead_agent"}]),
    "runs.cancel_many": lambda client: client.runs.cancel_many(thread_id=NOBODY, run_ids=[NOBODY]),
    "threads.prune": lambda client: client.threads.prune([NOBODY]),
    "threads.join_stream": _joined,
}


async def wrong_refusals(client):
    """Makes every refused call that the client has, and lists where the answer is not the one of the documents."""
    has, wrong = set(calls_of(client)), []
    for name, status in refused_calls().items():
        if name not in has:
            continue
        try:
            await REFUSED[name](client)
            answer = "success"
        except Exception as error:  # whatever a client raises, the status is what counts
            answer = getattr(getattr(error, "response", None), "status_code", repr(error))
        if answer != status and str(status) not in str(answer):
            wrong.append(f"{name}: {answer}, and not {status}")
    return wrong
