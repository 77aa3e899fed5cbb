"""Drives the scripted model's messages API with Anthropic's own client."""

import asyncio
import json
import sys

import anthropic
import httpx

from checks import check, equal, raises, run

TOOL = {"name": "ls", "description": "lists", "input_schema": {"type": "object", "properties": {}}}
THINKING = {"type": "enabled", "budget_tokens": 1024}


def ask(client, content, **more):
    messages = content if isinstance(content, list) else [{"role": "user", "content": content}]
    return client.messages.create(model="sim-1", max_tokens=2048, messages=messages, **more)


@check("the models are listed")
def _(client):
    equal([model.id for model in client.models.list()], ["sim-1", "sim-2"])


@check("an answer without a stream is whole")
def _(client):
    answer = ask(client, "hi there", system="be kind")
    equal((answer.content[0].text, answer.stop_reason, answer.usage.input_tokens), ("echo: hi there", "end_turn", 4))


@check("a text streams in blocks, with its usage")
def _(client):
    with client.messages.stream(model="sim-1", max_tokens=10, messages=[{"role": "user", "content": "one two"}]) as stream:
        equal("".join(stream.text_stream), "echo: one two")
        final = stream.get_final_message()
    equal((final.stop_reason, final.usage.input_tokens, final.usage.output_tokens), ("end_turn", 2, 3))
    kinds = [event.type for event in ask(client, "one", stream=True)]
    inside = ["content_block_start", "content_block_delta", "content_block_delta", "content_block_stop"]
    equal(kinds, ["message_start", *inside, "message_delta", "message_stop"])


@check("thinking is signed, and a call with it comes back and is answered")
def _(client):
    arguments = {"path": "/tmp/größe"}
    asked = {"role": "user", "content": f"think tool ls {json.dumps(arguments)}"}
    with client.messages.stream(
        model="sim-1", max_tokens=2048, messages=[asked], tools=[TOOL], thinking=THINKING
    ) as stream:
        final = stream.get_final_message()
    thought, call = final.content
    equal((thought.type, thought.thinking, final.stop_reason), ("thinking", "let me see", "tool_use"))
    equal((call.name, call.input), ("ls", arguments))
    blocks = [block.model_dump(include={"type", "thinking", "signature", "id", "name", "input"}) for block in final.content]
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "two files"}]}
    told = [asked, {"role": "assistant", "content": blocks}, result]
    equal(ask(client, told, tools=[TOOL], thinking=THINKING).content[0].text, "the tool said: two files")

    for change in ({"thinking": "let me lie"}, {"signature": "A" + thought.signature[1:]}):
        altered = [{**blocks[0], **change}, blocks[1]]
        error = raises(
            anthropic.BadRequestError,
            lambda: ask(client, [asked, {"role": "assistant", "content": altered}, result], thinking=THINKING),
        )
        equal("Invalid `signature` in `thinking` block" in str(error), True)
    for broken in ([asked, told[1]], [asked, told[1], asked], [asked, result], [told[1], result]):
        raises(anthropic.BadRequestError, lambda: ask(client, broken))


@check("nobody thinks unasked")
def _(client):
    equal([block.type for block in ask(client, "think hi").content], ["text"])


@check("statuses and refusals become the errors that they mean")
def _(client):
    kinds = {
        "status 401": anthropic.AuthenticationError,
        "refuse ratelimit": anthropic.RateLimitError,
        "refuse overloaded": anthropic.InternalServerError,
        "refuse overflow": anthropic.BadRequestError,
    }
    for asked, kind in kinds.items():
        error = raises(kind, lambda: ask(client, asked))
        equal(error.request_id.startswith("req_"), True)
        if asked == "refuse overloaded":
            equal((error.status_code, error.body["error"]["type"]), (529, "overloaded_error"))
    raises(anthropic.BadRequestError, lambda: client.messages.create(model="sim-1", max_tokens=0, messages=[]))


@check("a request without key, version or limit is refused")
def _(client):
    body = {"model": "sim-1", "max_tokens": 1, "messages": [{"role": "user", "content": "hi"}]}
    heads = {"x-api-key": "any", "anthropic-version": "2023-06-01"}

    def status(body, heads):
        return httpx.post(f"{sys.argv[1]}/v1/messages", json=body, headers=heads).status_code

    equal(status(body, heads), 200)
    equal(status(body, {"anthropic-version": "2023-06-01"}), 401)
    equal(status(body, {"x-api-key": "any"}), 400)
    equal(status({key: body[key] for key in ("model", "messages")}, heads), 400)


@check("a stream that breaks is an error, and one that fails says why")
def _(client):
    error = raises(Exception, lambda: list(ask(client, "cut", stream=True)))
    equal("peer closed connection" in str(error) or "incomplete" in str(error), True)
    error = raises(anthropic.APIStatusError, lambda: list(ask(client, "fail", stream=True)))
    equal(error.body["error"]["type"], "overloaded_error")


async def main():
    return await run("anthropic", anthropic.Anthropic(base_url=sys.argv[1], api_key="any", max_retries=0))


sys.exit(asyncio.run(main()))
