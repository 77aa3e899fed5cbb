"""Drives the scripted model with OpenAI's own client. What the model does is asked for in words."""

import asyncio
import json
import sys

import openai

from checks import check, equal, run

TOOL = {"type": "function", "function": {"name": "ls", "parameters": {"type": "object", "properties": {}}}}


def user(text):
    return [{"role": "user", "content": text}]


@check("the models are listed")
def _(client):
    equal([model.id for model in client.models.list()], ["sim-1", "sim-2"])


@check("a text streams in chunks and ends with a reason")
def _(client):
    chunks = list(client.chat.completions.create(model="sim-1", messages=user("one two"), stream=True))
    contents = [chunk.choices[0].delta.content or "" for chunk in chunks]
    equal("".join(contents), "echo: one two")
    equal((chunks[0].choices[0].delta.role, chunks[-1].choices[0].finish_reason), ("assistant", "stop"))
    equal(len([content for content in contents if content]), 3)


@check("the usage comes last in a stream that asks for it")
def _(client):
    options = {"include_usage": True}
    stream = client.chat.completions.create(
        model="sim-1", messages=user("one two"), stream=True, stream_options=options
    )
    *rest, last = stream
    equal((last.choices, last.usage.prompt_tokens, last.usage.completion_tokens), ([], 2, 3))
    equal([chunk.usage for chunk in rest], [None] * len(rest))


@check("an answer without a stream is whole")
def _(client):
    answer = client.chat.completions.create(model="sim-2", messages=user("hi"))
    equal((answer.model, answer.choices[0].message.content, answer.usage.total_tokens), ("sim-2", "echo: hi", 3))


@check("a tool call joins from its pieces, and its result is read")
def _(client):
    arguments = {"path": "/tmp/größe"}
    messages = user(f"tool ls {json.dumps(arguments)}")
    with client.chat.completions.stream(model="sim-1", messages=messages, tools=[TOOL]) as stream:
        choice = stream.get_final_completion().choices[0]
    (call,) = choice.message.tool_calls
    found = (choice.finish_reason, call.function.name, json.loads(call.function.arguments))
    equal(found, ("tool_calls", "ls", arguments))
    asked = {"role": "assistant", "tool_calls": [call.model_dump(include={"id", "type", "function"})]}
    result = {"role": "tool", "tool_call_id": call.id, "content": "two files"}
    answer = client.chat.completions.create(model="sim-1", messages=[*messages, asked, result])
    equal(answer.choices[0].message.content, "the tool said: two files")


@check("429 is tried again after the wait that it names")
def _(client):
    answer = client.chat.completions.create(model="sim-1", messages=user("busy once"))
    equal(answer.choices[0].message.content, "echo: busy once")


@check("statuses become the errors that they mean")
def _(client):
    patient = client.with_options(max_retries=0)
    kinds = {401: openai.AuthenticationError, 429: openai.RateLimitError, 500: openai.InternalServerError}
    for code, kind in kinds.items():
        try:
            patient.chat.completions.create(model="sim-1", messages=user(f"status {code}"))
        except openai.APIStatusError as error:
            equal((type(error), error.status_code), (kind, code))
        else:
            raise AssertionError(f"{code} passed")


@check("a request without messages is refused")
def _(client):
    try:
        client.chat.completions.create(model="sim-1", messages=[])
    except openai.BadRequestError as error:
        equal(error.body["type"], "invalid_request_error")
    else:
        raise AssertionError("it passed")


async def main():
    client = openai.OpenAI(base_url=sys.argv[1], api_key="any")
    return await run("openai", client)


sys.exit(asyncio.run(main()))
