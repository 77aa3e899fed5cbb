"""Drives the scripted model's Ollama API with Ollama's own client."""

import asyncio
import sys

import httpx
import ollama

from checks import check, equal, raises, run

TOOL = {"type": "function", "function": {"name": "ls", "parameters": {"type": "object", "properties": {}}}}


def user(text):
    return [{"role": "user", "content": text}]


@check("the models are listed and described")
def _(client):
    equal([model.model for model in client.list().models], ["sim-1", "sim-2"])
    shown = client.show("sim-1")
    equal((shown.modelinfo["sim.context_length"], "tools" in shown.capabilities), (32768, True))
    equal(raises(ollama.ResponseError, lambda: client.show("none")).status_code, 404)


@check("an answer without a stream is whole")
def _(client):
    answer = client.chat("sim-1", user("hi there"))
    found = (answer.message.content, answer.done_reason, answer.prompt_eval_count, answer.eval_count)
    equal(found, ("echo: hi there", "stop", 2, 3))


@check("a text streams line by line, and the last one counts")
def _(client):
    lines = list(client.chat("sim-1", user("one two"), stream=True))
    equal("".join(line.message.content for line in lines), "echo: one two")
    equal([line.done for line in lines], [False, False, False, True])
    equal((lines[-1].prompt_eval_count, lines[-1].eval_count), (2, 3))


@check("thoughts are told to who asks")
def _(client):
    lines = list(client.chat("sim-1", user("think one"), stream=True, think=True))
    equal("".join(line.message.thinking or "" for line in lines), "let me see")
    equal(client.chat("sim-1", user("think one")).message.thinking, None)


@check("a call comes whole, comes back and is answered")
def _(client):
    asked = user('tool ls {"path": "/tmp/größe"}')
    lines = list(client.chat("sim-1", asked, tools=[TOOL], stream=True))
    (message,) = [line.message for line in lines if line.message.tool_calls]
    call = message.tool_calls[0].function
    equal((call.name, call.arguments), ("ls", {"path": "/tmp/größe"}))
    result = {"role": "tool", "tool_name": "ls", "content": "two files"}
    equal(client.chat("sim-1", [*asked, message, result]).message.content, "the tool said: two files")


@check("a call that the server cannot read is an error")
def _(client):
    error = raises(ollama.ResponseError, lambda: client.chat("sim-1", user("tool ls {broken"), tools=[TOOL]))
    equal((error.status_code, error.error.startswith("error parsing tool call")), (500, True))
    raises(ollama.ResponseError, lambda: list(client.chat("sim-1", user("tool ls {broken"), stream=True)))


@check("statuses and refusals become errors")
def _(client):
    asked = {"refuse ratelimit": 429, "refuse overloaded": 503, "refuse overflow": 400, "status 404": 404}
    for words, code in asked.items():
        equal(raises(ollama.ResponseError, lambda: client.chat("sim-1", user(words))).status_code, code)
    raises(ollama.ResponseError, lambda: client.chat("sim-1", [{"role": "developer", "content": "hi"}]))
    call = {"function": {"name": "ls", "arguments": "{}"}}
    body = {"model": "sim-1", "messages": [{"role": "assistant", "tool_calls": [call]}]}
    answer = httpx.post(f"{sys.argv[1]}/api/chat", json=body)
    equal((answer.status_code, "cannot unmarshal string" in answer.json()["error"]), (400, True))


@check("a stream that breaks is an error, and one that fails says why")
def _(client):
    error = raises(Exception, lambda: list(client.chat("sim-1", user("cut"), stream=True)))
    equal("peer closed connection" in str(error) or "incomplete" in str(error), True)
    error = raises(ollama.ResponseError, lambda: list(client.chat("sim-1", user("fail"), stream=True)))
    equal(error.error, "Overloaded")


async def main():
    return await run("ollama", ollama.Client(host=sys.argv[1]))


sys.exit(asyncio.run(main()))
