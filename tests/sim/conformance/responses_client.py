"""Drives the scripted model's responses API with OpenAI's own client."""

import asyncio
import json
import sys

import openai

from checks import check, equal, raises, run

TOOL = {"type": "function", "name": "ls", "parameters": {"type": "object", "properties": {}}, "strict": False}
THINKING = {
    "reasoning": {"effort": "low", "summary": "auto"},
    "include": ["reasoning.encrypted_content"],
    "store": False,
}


def streamed(client, **asked):
    return list(client.responses.create(model="sim-1", stream=True, **asked))


@check("an answer without a stream is whole")
def _(client):
    answer = client.responses.create(model="sim-2", input="hi there", instructions="be kind")
    found = (answer.model, answer.status, answer.output_text, answer.usage.input_tokens, answer.usage.total_tokens)
    equal(found, ("sim-2", "completed", "echo: hi there", 4, 7))


@check("a text streams in numbered events around its item")
def _(client):
    events = streamed(client, input=[{"role": "user", "content": "one two"}])
    equal([event.sequence_number for event in events], list(range(len(events))))
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    equal(text, "echo: one two")
    shown = [event.type for event in events if not event.type.endswith(".delta")]
    item = ["output_item.added", "content_part.added", "output_text.done", "content_part.done", "output_item.done"]
    equal(shown, ["response." + name for name in ["created", "in_progress", *item, "completed"]])
    equal(events[-1].response.output_text, "echo: one two")


@check("the client's own stream helper takes every event")
def _(client):
    with client.responses.stream(model="sim-1", input="think one two", **THINKING) as stream:
        kinds = {event.type for event in stream}
        final = stream.get_final_response()
    equal("response.reasoning_summary_text.delta" in kinds, True)
    equal([item.type for item in final.output], ["reasoning", "message"])
    equal(final.output[0].summary[0].text, "let me see")


@check("a tool call, with the reasoning before it, comes back and is answered")
def _(client):
    arguments = {"path": "/tmp/größe"}
    asked = [{"role": "user", "content": f"think tool ls {json.dumps(arguments)}"}]
    last = streamed(client, input=asked, tools=[TOOL], **THINKING)[-1]
    reasoning, call = last.response.output
    equal((call.type, call.name, json.loads(call.arguments)), ("function_call", "ls", arguments))
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "two files"}
    items = [reasoning.model_dump(exclude_none=True), call.model_dump(exclude_none=True)]
    answer = client.responses.create(model="sim-1", input=[*asked, *items, result], tools=[TOOL], **THINKING)
    equal(answer.output_text, "the tool said: two files")

    altered = {**items[0], "encrypted_content": items[0]["encrypted_content"][:-4] + "AAAA"}
    error = raises(
        openai.BadRequestError,
        lambda: client.responses.create(model="sim-1", input=[*asked, altered, items[1], result], **THINKING),
    )
    equal(error.code, "invalid_encrypted_content")
    for broken in ([*asked, *items], [*asked, result], [*asked, items[0], *asked]):
        raises(openai.BadRequestError, lambda: client.responses.create(model="sim-1", input=broken, **THINKING))


@check("statuses and refusals become the errors that they mean")
def _(client):
    kinds = {
        "status 401": openai.AuthenticationError,
        "refuse ratelimit": openai.RateLimitError,
        "refuse overloaded": openai.InternalServerError,
        "refuse overflow": openai.BadRequestError,
    }
    for asked, kind in kinds.items():
        error = raises(kind, lambda: client.responses.create(model="sim-1", input=asked))
        if asked == "refuse overflow":
            equal(error.code, "context_length_exceeded")
    nobody = {"Authorization": openai.Omit()}
    raises(
        openai.AuthenticationError,
        lambda: client.responses.create(model="sim-1", input="hi", extra_headers=nobody),
    )


@check("a stream that breaks is an error, and one that fails says why")
def _(client):
    raises(openai.APIConnectionError, lambda: streamed(client, input="cut"))
    error = raises(openai.APIError, lambda: streamed(client, input="fail"))
    equal(error.message, "Overloaded")


async def main():
    return await run("responses", openai.OpenAI(base_url=sys.argv[1], api_key="any", max_retries=0))


sys.exit(asyncio.run(main()))
