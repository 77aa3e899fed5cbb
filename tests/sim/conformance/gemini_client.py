"""Drives the scripted model's Gemini API with Google's own client."""

import asyncio
import json
import sys

from google import genai
from google.genai import errors, types

from checks import check, equal, raises, run

TOOL = types.Tool(
    function_declarations=[types.FunctionDeclaration(name="ls", parameters=types.Schema(type="OBJECT", properties={}))]
)
NOT_ALONE = types.AutomaticFunctionCallingConfig(disable=True)


def config(**more):
    return types.GenerateContentConfig(automatic_function_calling=NOT_ALONE, **more)


def ask(client, contents, **more):
    return client.models.generate_content(model="sim-1", contents=contents, config=config(**more))


def streamed(client, contents, **more):
    return list(client.models.generate_content_stream(model="sim-1", contents=contents, config=config(**more)))


@check("the models are listed")
def _(client):
    equal([model.name for model in client.models.list()], ["models/sim-1", "models/sim-2"])


@check("an answer without a stream is whole")
def _(client):
    answer = ask(client, "hi there", system_instruction="be kind")
    usage = answer.usage_metadata
    found = (answer.text, answer.candidates[0].finish_reason.name, usage.prompt_token_count, usage.total_token_count)
    equal(found, ("echo: hi there", "STOP", 4, 7))


@check("a text streams, and each event counts all tokens so far")
def _(client):
    chunks = streamed(client, "one two")
    equal("".join(chunk.text or "" for chunk in chunks), "echo: one two")
    equal([chunk.usage_metadata.candidates_token_count for chunk in chunks], [1, 2, 3, 3])
    equal(chunks[-1].candidates[0].finish_reason.name, "STOP")


@check("thoughts are shown to who asks, and the end of a thoughtful answer is signed")
def _(client):
    chunks = streamed(client, "think one", thinking_config=types.ThinkingConfig(include_thoughts=True))
    parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts]
    equal("".join(part.text for part in parts if part.thought), "let me see")
    equal(parts[-1].thought_signature is not None, True)
    equal([part.thought for part in ask(client, "think one").candidates[0].content.parts], [None])


@check("a call is signed, comes back and is answered")
def _(client):
    arguments = {"path": "/tmp/größe"}
    asked = types.Content(role="user", parts=[types.Part(text=f"tool ls {json.dumps(arguments)}")])
    call = next(chunk.candidates[0].content for chunk in streamed(client, [asked], tools=[TOOL]))
    function = call.parts[0].function_call
    equal((function.name, function.args), ("ls", arguments))
    response = types.Part.from_function_response(name="ls", response={"result": "two files"})
    result = types.Content(role="user", parts=[response])
    equal(ask(client, [asked, call, result], tools=[TOOL]).text, "the tool said: two files")

    def resigned(signature):
        part = call.parts[0].model_copy(update={"thought_signature": signature})
        return types.Content(role="model", parts=[part])

    for signature, told in ((None, "missing a thought_signature"), (b"forged", "signature is not valid")):
        error = raises(errors.ClientError, lambda: ask(client, [asked, resigned(signature), result]))
        equal((error.status, told in error.message), ("INVALID_ARGUMENT", True))
    for broken in ([asked, call], [asked, call, asked], [asked, result], []):
        raises((errors.ClientError, ValueError), lambda: ask(client, broken))


@check("a schema with a word that Google does not know is refused")
def _(client):
    declaration = {"name": "ls", "parameters": {"type": "OBJECT", "properties": {}, "additionalProperties": False}}
    body = {"contents": [{"parts": [{"text": "hi"}]}], "tools": [{"functionDeclarations": [declaration]}]}
    error = raises(
        errors.ClientError,
        lambda: client._api_client.request("post", "models/sim-1:generateContent", body),
    )
    equal("Unknown name \"additionalProperties\"" in error.message, True)


@check("a call that the server cannot read ends the turn for that reason")
def _(client):
    last = streamed(client, "tool ls {broken", tools=[TOOL])[-1]
    equal((last.candidates[0].finish_reason.name, last.function_calls), ("MALFORMED_FUNCTION_CALL", None))


@check("statuses and refusals become the errors that they mean")
def _(client):
    kinds = {
        "status 403": (errors.ClientError, "PERMISSION_DENIED"),
        "refuse ratelimit": (errors.ClientError, "RESOURCE_EXHAUSTED"),
        "refuse overloaded": (errors.ServerError, "UNAVAILABLE"),
        "refuse overflow": (errors.ClientError, "INVALID_ARGUMENT"),
    }
    for asked, (kind, status) in kinds.items():
        equal(raises(kind, lambda: ask(client, asked)).status, status)
        equal(raises(kind, lambda: streamed(client, asked)).status, status)


@check("a stream that breaks is an error, and one that fails says why")
def _(client):
    error = raises(Exception, lambda: streamed(client, "cut"))
    equal("peer closed connection" in str(error) or "incomplete" in str(error), True)
    equal(raises(errors.ServerError, lambda: streamed(client, "fail")).status, "UNAVAILABLE")


async def main():
    options = types.HttpOptions(base_url=sys.argv[1], retry_options=types.HttpRetryOptions(attempts=1))
    return await run("gemini", genai.Client(api_key="any", http_options=options))


sys.exit(asyncio.run(main()))
