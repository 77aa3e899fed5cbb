"""Drives a running gateway with the official Python client of LangGraph: every call that it has for threads and runs.

Usage: langgraph_client.py BASE_URL
The model has to answer; what it says does not matter. `/tool ls {…}` must make pudu's built-in model call a tool.
"""

import asyncio
import re
import sys
import uuid
from urllib.parse import urlsplit, urlunsplit

import httpx
from langgraph.pregel.remote import RemoteGraph
from langgraph_sdk import get_client
from langgraph_sdk.errors import ConflictError, NotFoundError

from checks import check, run as run_checks
from langgraph_calls import Recorded, calls_of, refused_calls, wrong_refusals

def holds(claim, is_true, seen=""):
    """Fails when a claim does not hold, and says what was seen."""
    if not is_true:
        raise AssertionError(f"{claim}: {str(seen)[:2000]}")


HERD = str(uuid.uuid4())
ASK = {"messages": [{"type": "human", "content": "hello"}]}
TOOL = {"messages": [{"type": "human", "content": '/tool ls {"path": "/mnt/user-data"}'}]}
MODES = ["values", "messages-tuple", "updates", "custom", "tasks", "debug", "checkpoints", "events", "messages"]


@check("threads are made, found, counted and changed")
async def threads(client, base, kept):
    made = await client.threads.create(metadata={"project": HERD, "user_id": "forged"})
    holds("a thread is made", made["status"] == "idle" and made["metadata"] == {"project": HERD}, made)
    thread = made["thread_id"]
    again = await client.threads.create(thread_id=thread, if_exists="do_nothing")
    holds("made again it is the same", again["thread_id"] == thread, again)
    found = await client.threads.search(metadata={"project": HERD})
    holds("it is found by its notes", [one["thread_id"] for one in found] == [thread], found)
    holds("others are not", await client.threads.search(metadata={"project": "other"}) == [])
    holds("threads are counted", await client.threads.count(metadata={"project": HERD}) == 1)
    await client.threads.update(thread, metadata={"colour": "red"})
    got = await client.threads.get(thread)
    holds("notes are merged", got["metadata"] == {"project": HERD, "colour": "red"}, got)
    try:
        await client.threads.get("00000000-0000-0000-0000-000000000000")
        holds("an unknown thread is not found", False)
    except NotFoundError:
        holds("an unknown thread is not found", True)
    kept["thread"] = thread


@check("runs are waited for, joined, listed and deleted")
async def runs(client, base, kept):
    thread = kept["thread"]
    values = await client.runs.wait(thread, "lead_agent", input=ASK)
    kinds = [message["type"] for message in values["messages"]]
    holds("a run answers", kinds == ["human", "ai"], values)
    listed = await client.runs.list(thread)
    holds("it is listed", [run["status"] for run in listed] == ["success"], listed)
    run = await client.runs.get(thread, listed[0]["run_id"])
    holds("it is shown", run["kwargs"]["input"] == ASK and run["message_count"] == 2, run)
    joined = await client.runs.join(thread, run["run_id"])
    holds("it can be joined when it is over", joined["messages"] == values["messages"], joined)
    begun = await client.runs.create(thread, "lead_agent", input=ASK)
    holds("a run in the background is pending or more", begun["status"] in ("pending", "running"), begun)
    joined = await client.runs.join(thread, begun["run_id"])
    holds("and is joined", len(joined["messages"]) == 4, joined)
    await client.runs.delete(thread, begun["run_id"])
    holds("a run that is over is deleted", len(await client.runs.list(thread)) == 1)
    holds("a call without a thread answers", "messages" in await client.runs.wait(None, "lead_agent", input=ASK))


@check("streams have every mode, and go on behind an id")
async def streams(client, base, kept):
    thread = kept["thread"]
    parts = [part async for part in client.runs.stream(thread, "lead_agent", input=TOOL, stream_mode=MODES)]
    names = [part.event for part in parts]
    holds("metadata comes first and end last", (names[0], names[-1]) == ("metadata", "end"), names)
    for name in ("values", "messages", "updates", "tasks", "debug", "checkpoints", "events", "messages/partial"):
        holds(f"there are {name} frames", name in names, sorted(set(names)))
    last = [part.data for part in parts if part.event == "values"][-1]
    kinds = [message["type"] for message in last["messages"]][-4:]
    holds("the call and its result are in the values", kinds == ["human", "ai", "tool", "ai"], kinds)
    pieces = [part.data[0] for part in parts if part.event == "messages"]
    answer = last["messages"][-1]
    said = "".join(piece["content"] for piece in pieces if piece["id"] == answer["id"])
    holds("pieces make the answer", said == answer["content"], (said, answer))
    calls = [chunk for piece in pieces for chunk in piece.get("tool_call_chunks", [])]
    holds("the call comes as a chunk", [call["name"] for call in calls] == ["ls"], calls)

    run = parts[0].data["run_id"]
    plain = [part.event async for part in client.runs.join_stream(thread, run)]
    holds("a run is followed as it was begun", plain[0] == "metadata" and "values" in plain and plain[-1] == "end", plain)
    again = [part async for part in client.runs.join_stream(thread, run, stream_mode=["values", "messages-tuple"])]
    holds("a run is followed once more", again[-1].event == "end" and again[-2].data == last, [p.event for p in again])
    holds("frames have ids", all(part.id for part in parts), len(parts))
    for at in (1, len(parts) // 2, len(parts) - 2):
        first = next(n for n, part in enumerate(parts) if part.id == parts[at].id)
        behind = client.runs.join_stream(thread, run, stream_mode=MODES, last_event_id=parts[at].id)
        rest = [(part.event, part.data) async for part in behind]
        wanted = [(part.event, part.data) for part in parts[first + 1 :]]
        for told in (rest, wanted):
            told[:] = [one for one in told if one[0] not in ("debug", "checkpoints")]
        holds("it goes on behind an id", rest == wanted, (parts[at].id, rest, wanted))
    stateless = [part.event async for part in client.runs.stream(None, "lead_agent", input=ASK)]
    holds("a stream without a thread", stateless[0] == "metadata" and stateless[-1] == "end", stateless)


async def line_that_breaks(base, words):
    """Listens in front of the gateway; the first stream that says these words breaks off there."""
    gateway, broken = urlsplit(base), []

    async def pass_on(reader, writer):
        said = b""
        while chunk := await reader.read(65536):
            said += chunk
            writer.write(chunk)
            await writer.drain()
            if not broken and b"text/event-stream" in said and words in said:
                broken.append(True)
                break
        writer.transport.abort()

    async def serve(reader, writer):
        behind, ahead = await asyncio.open_connection(gateway.hostname, gateway.port)
        head = await reader.readuntil(b"\r\n\r\n")
        own = f"{gateway.hostname}:{gateway.port}".encode()
        ahead.write(re.sub(rb"(?i)\r\nhost: [^\r]*", b"\r\nHost: " + own + b"\r\nConnection: close", head))
        sent = asyncio.create_task(pass_on(reader, ahead))
        try:
            await pass_on(behind, writer)
        except ConnectionError:
            pass
        sent.cancel()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    return server, urlunsplit(("http", f"127.0.0.1:{port}", gateway.path, "", "")), broken


@check("a stream whose line breaks goes on by itself")
async def breaks(client, base, kept):
    for base in (base, base + "/langgraph"):
        server, before, broken = await line_that_breaks(base, b"event: messages")
        async with server:
            client = get_client(url=before)
            thread = (await client.threads.create())["thread_id"]
            # Nobody follows the run until the client is back.
            options = {"stream_mode": ["values", "messages-tuple"], "on_disconnect": "continue"}
            stream = client.runs.stream(thread, "lead_agent", input=TOOL, **options)
            parts = [part async for part in stream]
        holds("it broke", broken == [True])
        holds("it is there to its end", parts[-1].event == "end", [part.event for part in parts])
        values = [part.data for part in parts if part.event == "values"]
        kinds = [message["type"] for message in values[-1]["messages"]]
        holds("nothing is missing", kinds == ["human", "ai", "tool", "ai"], kinds)
        answer = values[-1]["messages"][-1]
        pieces = [part.data[0] for part in parts if part.event == "messages"]
        said = "".join(piece["content"] for piece in pieces if piece["id"] == answer["id"])
        holds("nothing came twice", said == answer["content"], (said, answer))


@check("a thread's past is read, and a run goes on from it")
async def states(client, base, kept):
    thread = kept["thread"]
    state = await client.threads.get_state(thread)
    holds("a thread at rest has nothing next", state["next"] == [] and state["tasks"] == [], state["next"])
    past = await client.threads.get_history(thread, limit=20)
    holds("its past begins now", past[0]["checkpoint"]["checkpoint_id"] == state["checkpoint"]["checkpoint_id"])
    holds("and goes back", len(past) > 3, len(past))
    earlier = await client.threads.get_history(thread, before=past[1]["checkpoint"]["checkpoint_id"])
    holds("before pages", earlier[0]["checkpoint_id"] == past[2]["checkpoint_id"], earlier[0]["checkpoint_id"])
    old = await client.threads.get_state(thread, checkpoint_id=past[-1]["checkpoint_id"])
    holds("an old state is read", len(old["values"]["messages"]) < len(state["values"]["messages"]))
    by_object = await client.threads.get_state(thread, checkpoint=past[-1]["checkpoint"])
    holds("and by its object", by_object["values"] == old["values"])
    forked = await client.runs.wait(
        thread, "lead_agent", input=ASK, checkpoint_id=past[-1]["checkpoint_id"]
    )
    texts = [message["type"] for message in forked["messages"]]
    holds("a run goes on from there", texts == ["human", "human", "ai"], texts)
    await client.threads.update_state(thread, {"title": "Herd"})
    holds("a title is written", (await client.threads.get(thread))["values"]["title"] == "Herd")
    copy = await client.threads.copy(thread)
    if copy:
        holds("a copy has the messages", len((await client.threads.get(copy["thread_id"]))["values"]["messages"]) == 3)


@check("runs are rejected, queued, interrupted, rolled back and stopped")
async def stops(client, base, kept):
    thread = (await client.threads.create())["thread_id"]
    slow = {"messages": [{"type": "human", "content": '/tool bash {"command": "sleep 30"}'}]}
    run = await client.runs.create(thread, "lead_agent", input=slow)
    try:
        await client.runs.create(thread, "lead_agent", input=ASK)
        holds("a second run is rejected", False)
    except ConflictError:
        holds("a second run is rejected", True)
    holds("the thread is busy", (await client.threads.get(thread))["status"] == "busy")
    queued = await client.runs.create(thread, "lead_agent", input=ASK, multitask_strategy="enqueue")
    await client.runs.cancel(thread, run["run_id"], wait=True)
    holds("a run is stopped", (await client.runs.get(thread, run["run_id"]))["status"] == "interrupted")
    await client.runs.join(thread, queued["run_id"])
    holds("the queued one ran", (await client.runs.get(thread, queued["run_id"]))["status"] == "success")
    before = (await client.threads.get(thread))["values"]["messages"]
    run = await client.runs.create(thread, "lead_agent", input=slow)
    values = await client.runs.wait(thread, "lead_agent", input=ASK, multitask_strategy="rollback")
    holds("a run is rolled back", len(values["messages"]) == len(before) + 2, len(values["messages"]))
    holds("and says so", (await client.runs.get(thread, run["run_id"]))["status"] == "error")
    run = await client.runs.create(thread, "lead_agent", input=slow)
    await client.runs.wait(thread, "lead_agent", input=ASK, multitask_strategy="interrupt")
    holds("a run is interrupted", (await client.runs.get(thread, run["run_id"]))["status"] == "interrupted")
    async with httpx.AsyncClient(base_url=base) as http:
        refused = await http.post(f"/threads/{thread}/runs", json={"input": ASK, "webhook": "http://x"})
        holds("an option that is not obeyed is refused", refused.status_code == 422, refused.text)
        refused = await http.post(f"/threads/{thread}/runs", json={"surprise": 1})
        holds("an unknown key is refused", refused.status_code == 422, refused.text)
    await client.threads.delete(thread)
    try:
        await client.threads.get(thread)
        holds("a deleted thread is gone", False)
    except NotFoundError:
        holds("a deleted thread is gone", True)


def text_of(message):
    content = message["content"]
    return content if isinstance(content, str) else "".join(block.get("text", "") for block in content)


@check("a thread is streamed in the newest protocol")
async def protocol(client, base, kept):
    async with client.threads.stream(assistant_id="lead_agent") as session:
        begun = await session.run.start(input=TOOL)
        # One subscription: the SDK gives one that it opens after the end of a run no end.
        read, life = {"values": [], "messages": [], "tool_calls": []}, []
        async for name, one in session.interleave_projections(list(read)):
            read[name].append(one)
        values, messages, tools = read.values()
        output = await session.output
        holds("the output is the state", [one["type"] for one in output["messages"]] == ["human", "ai", "tool", "ai"], output)
        holds("values end in it", values[-1]["messages"] == output["messages"], values[-1])
        said = [await message.text for message in messages]
        holds("messages have their text", said == [text_of(output["messages"][at]) for at in (1, 3)], said)
        results = [(tool.name, (await tool.output)["tool_call_id"]) for tool in tools]
        holds("the call has its result", results == [("ls", output["messages"][2]["tool_call_id"])], results)
        thread = session.thread_id
        listed = await client.runs.list(thread)
        holds("it is a run like others", [run["run_id"] for run in listed] == [begun["run_id"]], listed)
        async for event in session.events:
            life.append(event)
            if event["method"] == "lifecycle" and event["params"]["data"]["event"] == "completed":
                break
        numbers = [event["seq"] for event in life]
        holds("numbers increase", numbers == sorted(set(numbers)), numbers)
        holds("events come again", {"values", "messages", "tools", "lifecycle"} <= {event["method"] for event in life}, life)
    async with client.threads.stream(thread, assistant_id="lead_agent") as session:
        await session.run.start(input=ASK)
        said = [await message.text for message in [message async for message in session.messages]]
        state = await client.threads.get_state(thread)
        holds("the next run goes on", len(state["values"]["messages"]) == 6, len(state["values"]["messages"]))
        holds("and its reader has it alone", said == [text_of(state["values"]["messages"][-1])], said)
        tree = await session.agent.get_tree()
        holds("the graph is there", tree["nodes"] == [], tree)
        try:
            await session.run.start(input={"messages": []})
            holds("an empty question is refused", False)
        except Exception as error:
            holds("an empty question is refused", "invalid_argument" in str(error), error)


@check("a reader of a thread goes on behind a broken connection")
async def broken_protocol(client, base, kept):
    server, before, broken = await line_that_breaks(base, b"content-block-delta")
    async with server:
        async with get_client(url=before).threads.stream(assistant_id="lead_agent") as session:
            await session.run.start(input=TOOL)
            messages = [message async for message in session.messages]
            said = [await message.text for message in messages]
            output = await session.output
        holds("it broke", broken == [True])
        holds("nothing is missing or comes twice", said == [text_of(output["messages"][at]) for at in (1, 3)], said)


@check("a remote graph is invoked, streamed and read")
async def remote(client, base, kept):
    graph = RemoteGraph("lead_agent", url=base)
    values = await graph.ainvoke(ASK)
    holds("it answers", values["messages"][-1]["type"] == "ai", values)
    config = {"configurable": {"thread_id": (await client.threads.create())["thread_id"]}}
    parts = [part async for part in graph.astream(TOOL, config, stream_mode=["updates", "values"])]
    holds("it is streamed", {part[0] for part in parts} == {"updates", "values"}, parts)
    state = await graph.aget_state(config)
    holds("its state is read", len(state.values["messages"]) == 4 and not state.next, state)
    past = [one async for one in graph.aget_state_history(config, limit=3)]
    holds("and its past", len(past) == 3, past)
    await graph.aupdate_state(config, {"title": "Remote"})
    holds("it is changed", (await graph.aget_state(config)).values["title"] == "Remote")
    async with await graph.astream_events(ASK, version="v3") as run:
        said = [await message.text for message in [message async for message in run.messages]]
        output = await run.output()
    holds("its events are streamed", said == [text_of(output["messages"][-1])], (said, output))


@check("assistants are found and shown")
async def assistants(client, base, kept):
    page = await client.assistants.search(limit=1, response_format="object")
    holds("the lead agent is first", page["assistants"][0]["assistant_id"] == "lead_agent", page)
    holds("they are counted", await client.assistants.count() >= 1)
    holds("one is shown", (await client.assistants.get("lead_agent"))["graph_id"] == "lead_agent")
    versions = await client.assistants.get_versions("lead_agent")
    holds("it has one version", [version["version"] for version in versions] == [1], versions)
    holds("which is the latest", (await client.assistants.set_latest("lead_agent", 1))["version"] == 1)
    for call in (client.assistants.get_graph, client.assistants.get_schemas, client.assistants.get_subgraphs):
        holds("what it is made of is an object", isinstance(await call("lead_agent"), dict), call)


@check("each call of the client was made, or is refused as the documents say")
async def calls(client, base, kept):
    refused = refused_calls()
    for name in calls_of(client):
        holds(f"{name} is made or refused", (name in made) != (name in refused))
    wrong = await wrong_refusals(get_client(url=base))
    holds("refused calls are answered as the documents say", not wrong, wrong)


base, made = sys.argv[1], set()
client = Recorded(get_client(url=base), made)
sys.exit(asyncio.run(run_checks("langgraph-sdk", client, base, {})))
