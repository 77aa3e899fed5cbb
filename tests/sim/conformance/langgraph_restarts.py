"""Kills a gateway again and again while the official Python client of LangGraph works with it, and holds that no run and no
frame is lost or doubled.

Usage: langgraph_restarts.py PUDU PUDU_SIM [SEED]
"""

import asyncio
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
import warnings

import httpx
from langgraph_sdk import get_client

from checks import check, run as run_checks

CLIENTS = 20
KILLS = 4
BUDGET = 50
# What a restart looks like: a refused connection, a cut body, or a client that gave up on its own attempts.
CUT = (httpx.HTTPError, ConnectionError, ValueError)


def holds(claim, is_true, seen=""):
    if not is_true:
        raise AssertionError(f"{claim}: {str(seen)[:3000]}")


def started(command, pattern, **options):
    """Starts a program and returns it with what it printed where the pattern is found."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **options)
    said = ""
    for line in process.stdout:
        said += line
        if found := re.search(pattern, line):
            return process, found[1]
    raise AssertionError(f"{command[0]} did not start:\n{said}")


class Gateway:
    """A daemon at a fixed address that is killed and started again, and the models behind it."""

    def __init__(self, pudu, sim):
        self.home = tempfile.mkdtemp(prefix="pudu-restarts-")
        sims = [sim, "--telegram-port", "0", "--model-port", "0"]
        self.quick, quick = started(sims, r"^model (\S+)$")
        self.slow, slow = started([*sims, "--words", "25", "--words-ms", "1500"], r"^model (\S+)$")
        entry = '  - {{name: {}, use: "langchain_openai:ChatOpenAI", model: sim-1, base_url: "{}", api_key: sk-simulated}}\n'
        with open(f"{self.home}/config.yaml", "w") as file:
            file.write("config_version: 34\nmodels:\n" + entry.format("slow", slow) + entry.format("quick", quick))
        self.pudu, self.bind, self.up = pudu, "127.0.0.1:0", asyncio.Event()
        self.start()
        self.bind = self.address.removeprefix("http://")

    def start(self):
        environment = {**os.environ, "DEER_FLOW_HOME": self.home}
        command = [self.pudu, "--bind", self.bind]
        self.daemon, self.address = started(command, r"page +(http://[0-9.:]+)", cwd=self.home, env=environment)
        self.up.set()

    async def kill_again_and_again(self, chance):
        for _ in range(KILLS):
            await asyncio.sleep(chance.uniform(0.4, 1.8))
            self.up.clear()
            self.daemon.send_signal(signal.SIGKILL)
            self.daemon.wait()
            await asyncio.sleep(chance.uniform(0, 0.3))
            await asyncio.to_thread(self.start)

    def close(self):
        for process in (self.daemon, self.quick, self.slow):
            process.kill()
            process.wait()
        shutil.rmtree(self.home, ignore_errors=True)


class Follower:
    """One client: its runs, and the frames that it saw of them over however many connections."""

    def __init__(self, gateway, number):
        self.gateway, self.number = gateway, number
        self.client = get_client(url=f"{gateway.address}/api", timeout=20)
        self.thread, self.runs, self.unanswered = str(uuid.uuid4()), {}, 0

    async def insist(self, call):
        """Makes a call that changes nothing, or whose repetition does not, until it is answered."""
        while True:
            await self.gateway.up.wait()
            try:
                return await call()
            except CUT as error:
                status = getattr(getattr(error, "response", None), "status_code", 503)
                if status < 500:
                    raise
                await asyncio.sleep(0.1)

    def options(self, tool):
        text = f"client {self.number} says {len(self.runs) + self.unanswered}"
        context = {"model_name": "slow"}
        if tool:
            command = f"echo {self.number} >> /mnt/user-data/outputs/once.txt"
            text = f'tool bash {{"description": "notes it", "command": "{command}"}}'
            context = {"model_name": "quick"}
        return {
            "input": {"messages": [{"type": "human", "content": text}]}, "context": context,
            "multitask_strategy": "enqueue",
        }

    async def stream(self, thread, tool=False):
        """Begins a run and follows it to its end, however often the connection breaks."""
        frames, place = [], {}
        created = lambda run: place.update(run)
        modes = ["messages-tuple", "values"]
        options = {**self.options(tool), "stream_mode": modes, "stream_resumable": True, "on_disconnect": "continue"}
        source = self.client.runs.stream(thread, "lead_agent", on_run_created=created, **options)
        while True:
            try:
                await self.gateway.up.wait()
                async for part in source:
                    frames.append(part)
                if frames and frames[-1].event == "end":
                    break
            except CUT:
                pass
            if not place:
                self.unanswered += 1
                return
            last = next((part.id for part in reversed(frames) if part.id), "-1")
            source = self.client.runs.join_stream(
                place["thread_id"], place["run_id"], stream_mode=modes, last_event_id=last
            )
            await asyncio.sleep(0.05)
        self.runs[place["run_id"]] = (place["thread_id"], frames)

    async def background(self):
        """Begins a run that nobody follows, and waits for it."""
        try:
            await self.gateway.up.wait()
            run = await self.client.runs.create(self.thread, "lead_agent", **self.options(False))
        except CUT:
            self.unanswered += 1
            return
        await self.insist(lambda: self.client.runs.join(self.thread, run["run_id"]))
        self.runs[run["run_id"]] = (self.thread, None)

    async def waits(self):
        """Begins a run and waits for its values."""
        place = {}
        options = {**self.options(False), "on_disconnect": "continue", "on_run_created": lambda run: place.update(run)}
        try:
            await self.gateway.up.wait()
            await self.client.runs.wait(self.thread, "lead_agent", **options)
        except CUT:
            if not place:
                self.unanswered += 1
                return
            await self.insist(lambda: self.client.runs.join(self.thread, place["run_id"]))
        self.runs[place["run_id"]] = (self.thread, None)

    async def work(self):
        create = lambda: self.client.threads.create(thread_id=self.thread, if_exists="do_nothing")
        await self.insist(create)
        deeds = [lambda: self.stream(self.thread), lambda: self.stream(None), self.background, self.waits]
        deeds.append(lambda: self.stream(self.thread, tool=True))
        for at in range(2):
            await deeds[(self.number + at) % len(deeds)]()


def check_frames(run, frames, answer):
    """Holds that a follower saw a run from its beginning to its end, and nothing twice."""
    names = [part.event for part in frames]
    holds("metadata comes once, first", names[0] == "metadata" and names.count("metadata") == 1, names)
    holds("the end comes once, last", names[-1] == "end" and names.count("end") == 1, names)
    at, pieces, known, behind_gap = (0, -1), "", [], False
    for part in frames:
        if part.id:
            # Row, event, and how many of the event's frames are left: the last one says none.
            seq, event, *left = part.id.split("-")
            event = float("inf") if event == "end" else int(event)
            position = (int(seq), event, -int(left[0]) if left else 1)
            holds("ids never go back", position >= at or part.event == "gap", (at, position, part))
            at = position
        if part.event == "gap":
            pieces, behind_gap = "", True
        elif part.event == "messages" and part.data[0]["id"] == answer["id"]:
            pieces += part.data[0]["content"]
        elif part.event == "values":
            ids = [message["id"] for message in part.data["messages"]]
            holds("values only grow", ids[: len(known)] == known, (known, ids))
            # The values behind a gap have what was said before it, which does not come in pieces any more.
            if behind_gap and answer["id"] in ids:
                pieces = answer["content"]
            known, behind_gap = ids, False
    holds(f"the pieces are the answer ({names.count('gap')} gaps)", pieces == answer["content"], (pieces, answer, [(p.event, p.id) for p in frames]))
    holds("the values have the answer", known and answer["id"] in known, (known, answer))


async def check_thread(follower, thread, runs):
    """Holds that each run of a thread ended once and is answered once, and returns how many there are."""
    client = follower.client
    listed = await client.runs.list(thread, limit=100)
    told = {run["run_id"]: run["status"] for run in listed}
    holds("each accepted run is there, ended well", all(told.get(run) == "success" for run in runs), (runs, told))
    holds("no run is left at work", set(told.values()) == {"success"}, told)
    messages = (await client.threads.get_state(thread))["values"]["messages"]
    answers = [message for message in messages if message["type"] == "ai" and not message["tool_calls"]]
    questions = [message for message in messages if message["type"] == "human"]
    holds("each run has one question", len(questions) == len(told), [message["content"] for message in messages])
    holds("and one answer", len(answers) == len(told), [(message["type"], message["content"]) for message in messages])
    for run, (_, frames) in runs.items():
        if frames:
            page = await follower.client.http.get(f"/threads/{thread}/runs/{run}/messages?limit=100")
            rows = [row["content"] for row in page["data"]]
            own = [message for message in rows if message["type"] == "ai" and not message.get("tool_calls")]
            check_frames(run, frames, own[-1])
    return len(told)


@check("each run that was accepted ends once, and who follows it sees the whole")
async def restarts(gateway, kept):
    chance = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 7)
    followers = [Follower(gateway, number) for number in range(CLIENTS)]
    kills = asyncio.create_task(gateway.kill_again_and_again(chance))
    await asyncio.wait_for(asyncio.gather(kills, *(follower.work() for follower in followers)), BUDGET)
    runs = lines = 0
    for follower in followers:
        by_thread = {}
        for run, (thread, frames) in follower.runs.items():
            by_thread.setdefault(thread, {})[run] = (thread, frames)
        for thread, own in by_thread.items():
            runs += await check_thread(follower, thread, own)
        lines += await check_deeds(follower)
    print(f"        {runs} runs, {KILLS} kills, {sum(f.unanswered for f in followers)} requests cut before an answer, {lines} deeds")
    holds("there were runs", runs >= CLIENTS, runs)


async def check_deeds(follower):
    """Holds that a command was not given twice."""
    messages = (await follower.client.threads.get_state(follower.thread))["values"]["messages"]
    calls = sum(len(message["tool_calls"]) for message in messages if message["type"] == "ai")
    async with httpx.AsyncClient(base_url=follower.gateway.address) as http:
        answer = await http.get(f"/api/threads/{follower.thread}/artifacts/mnt/user-data/outputs/once.txt")
    lines = answer.text.count("\n") if answer.status_code == 200 else 0
    holds("a command is given once a call at most", lines <= calls, (lines, calls))
    return lines


warnings.simplefilter("ignore")
begun = time.monotonic()
gateway = Gateway(*map(os.path.abspath, sys.argv[1:3]))
try:
    status = asyncio.run(run_checks("restarts", gateway, {}))
finally:
    gateway.close()
print(f"        {time.monotonic() - begun:.0f} s")
sys.exit(status)
