"""Drives the simulated Slack with slack_sdk: its Web client, its Socket Mode client and its check of
signatures. People are played over /sim/."""

import asyncio
import http.server
import json
import queue
import sys
import threading
import time
import urllib.error
import urllib.request

from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError
from slack_sdk.signature import SignatureVerifier
from slack_sdk.socket_mode import SocketModeClient
from slack_sdk.socket_mode.response import SocketModeResponse

from checks import check, equal, run

SECRET = "0123456789abcdef0123456789abcdef"


class World:
    """The bot's clients, the people's side, one person and one channel."""

    def __init__(self, api, bot_token, app_token):
        self.api = api
        self.root = api.removesuffix("/api")
        self.token = bot_token
        self.web = WebClient(token=bot_token, base_url=f"{api}/")
        self.app_token = app_token
        self.envelopes = queue.Queue()
        self.silent = False
        ada = self.sim("people", name="Ada")
        self.ada, self.dm = ada["user"], ada["chat"]
        self.team = self.sim("groups", title="team", members=[self.ada])["chat"]
        self.socket = None

    def sim(self, path, **what):
        data = json.dumps(what).encode()
        request = urllib.request.Request(f"{self.root}/sim/{path}", data, {"content-type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def shown(self, chat):
        with urllib.request.urlopen(f"{self.root}/sim/shown/{chat}") as answer:
            return json.load(answer)["messages"]

    def say(self, chat, text, **more):
        return self.sim("write", chat=chat, **{"from": self.ada}, text=text, **more)["message"]

    def connect(self):
        self.socket = SocketModeClient(app_token=self.app_token, web_client=self.web)
        self.socket.socket_mode_request_listeners.append(self.take)
        self.socket.connect()

    def take(self, client, request):
        self.envelopes.put(request)
        if not self.silent:
            client.send_socket_mode_response(SocketModeResponse(envelope_id=request.envelope_id))

    def next(self, wanted=lambda request: True, within=10):
        deadline = time.time() + within
        while True:
            request = self.envelopes.get(timeout=max(0.01, deadline - time.time()))
            if wanted(request):
                return request

    def drain(self):
        time.sleep(0.3)
        while not self.envelopes.empty():
            self.envelopes.get()


def event(kind):
    return lambda request: request.type == "events_api" and request.payload["event"]["type"] == kind


def refused(error, call, *args, **kwargs):
    """The call fails with this error; returns the exception."""
    try:
        call(*args, **kwargs)
    except SlackApiError as failed:
        equal(failed.response["error"], error)
        return failed
    raise AssertionError(f"nothing failed with {error}")


def posted(posts, text):
    """The next post that bears this text."""
    while True:
        headers, body = posts.get(timeout=10)
        if text in body:
            return headers, body


@check("the bot knows itself and its scopes")
def _(w):
    me = w.web.auth_test()
    equal((me["user_id"], me["team_id"]), ("U0PUDUBOT1", "T0PUDU0001"))
    equal("chat:write" in me.headers["x-oauth-scopes"].split(","), True)


@check("a wrong token, none, and one of the other kind are refused")
def _(w):
    refused("invalid_auth", WebClient(token="xoxb-wrong", base_url=f"{w.api}/").auth_test)
    refused("not_allowed_token_type", w.web.apps_connections_open, app_token=w.token)
    refused("not_authed", WebClient(base_url=f"{w.api}/").auth_test)


@check("a mention comes over the socket as two events with one ts")
def _(w):
    w.connect()
    ts = w.say(w.team, "hello", to_bot=True)
    first, second = w.next(event("message")), w.next(event("app_mention"))
    equal([r.payload["event"]["ts"] for r in (first, second)], [ts, ts])
    equal(first.payload["event_id"] != second.payload["event_id"], True)
    equal(first.payload["event"]["text"], "<@U0PUDUBOT1> hello")


@check("what is not acknowledged comes again, and says so")
def _(w):
    w.drain()
    w.silent = True
    w.say(w.dm, "again")
    first = w.next(event("message"))
    equal((first.retry_attempt, first.payload["event"]["channel_type"]), (0, "im"))
    second = w.next(event("message"))
    equal((second.retry_attempt, second.payload["event_id"]), (1, first.payload["event_id"]))
    w.silent = False
    w.next(event("message"))


@check("an edit and a deletion are told")
def _(w):
    w.drain()
    ts = w.say(w.dm, "one")
    w.sim("edit", chat=w.dm, message=ts, text="two")
    changed = w.next(lambda r: r.payload["event"].get("subtype") == "message_changed").payload["event"]
    equal((changed["message"]["text"], changed["message"]["ts"]), ("two", ts))
    w.sim("recall", chat=w.dm, message=ts)
    gone = w.next(lambda r: r.payload["event"].get("subtype") == "message_deleted").payload["event"]
    equal(gone["deleted_ts"], ts)


@check("a message is posted in a thread, changed and deleted, and found again by its metadata")
def _(w):
    root = w.say(w.team, "question")
    metadata = {"event_type": "answer", "event_payload": {"key": "k1"}}
    sent = w.web.chat_postMessage(
        channel=w.team, thread_ts=root, text="*bold* &lt;x&gt;", metadata=metadata, unfurl_links=False
    )
    equal((w.shown(w.team)[-1]["text"], w.shown(w.team)[-1]["answers"]), ("bold <x>", root))
    w.web.chat_update(channel=w.team, ts=sent["ts"], text="two")
    equal(w.shown(w.team)[-1]["text"], "two")
    found = w.web.conversations_replies(channel=w.team, ts=root, include_all_metadata=True)["messages"]
    equal([m.get("metadata") for m in found], [None, metadata])
    plain = w.web.conversations_replies(channel=w.team, ts=root)["messages"]
    equal(plain[1].get("metadata"), None)
    w.web.chat_delete(channel=w.team, ts=sent["ts"])
    refused("message_not_found", w.web.chat_update, channel=w.team, ts=sent["ts"], text="x")


@check("history is newest first and leaves replies to the threads")
def _(w):
    chat = w.sim("groups", title="other", members=[w.ada])["chat"]
    one, two = w.say(chat, "one"), w.say(chat, "two")
    w.web.chat_postMessage(channel=chat, thread_ts=one, text="reply")
    history = w.web.conversations_history(channel=chat)["messages"]
    equal([m["ts"] for m in history], [two, one])
    equal((history[1]["reply_count"], history[0].get("reply_count")), (1, None))
    newer = w.web.conversations_history(channel=chat, oldest=one)["messages"]
    equal([m["ts"] for m in newer], [two])
    page = w.web.conversations_history(channel=chat, limit=1)
    equal((page["has_more"], [m["ts"] for m in page["messages"]]), (True, [two]))
    rest = w.web.conversations_history(channel=chat, limit=1, cursor=page["response_metadata"]["next_cursor"])
    equal([m["ts"] for m in rest["messages"]], [one])


@check("the SDK's own stream helper writes one message that grows and ends")
def _(w):
    root = w.say(w.team, "stream please")
    stream = w.web.chat_stream(
        channel=w.team, thread_ts=root, recipient_user_id=w.ada, recipient_team_id="T0PUDU0001", buffer_size=4
    )
    stream.append(markdown_text="one **two**")
    stream.append(markdown_text=" three")
    equal((w.shown(w.team)[-1]["text"], w.shown(w.team)[-1]["growing"]), ("one two three", True))
    stream.stop(markdown_text=" end")
    equal((w.shown(w.team)[-1]["text"], w.shown(w.team)[-1]["growing"]), ("one two three end", False))


@check("a stream in a channel needs its reader, a closed one takes nothing")
def _(w):
    root = w.say(w.team, "stream please")
    refused("missing_recipient_user_id", w.web.chat_startStream, channel=w.team, thread_ts=root)
    ts = w.web.chat_startStream(
        channel=w.team, thread_ts=root, recipient_user_id=w.ada, recipient_team_id="T0PUDU0001"
    )["ts"]
    refused("streaming_state_conflict", w.web.chat_update, channel=w.team, ts=ts, text="x")
    w.web.chat_stopStream(channel=w.team, ts=ts)
    refused("message_not_in_streaming_state", w.web.chat_appendStream, channel=w.team, ts=ts, markdown_text="x")


@check("a status is set, and a reaction put once")
def _(w):
    root = w.say(w.team, "work")
    w.web.assistant_threads_setStatus(channel_id=w.team, thread_ts=root, status="is thinking")
    w.web.reactions_add(channel=w.team, timestamp=root, name="eyes")
    refused("already_reacted", w.web.reactions_add, channel=w.team, timestamp=root, name="eyes")


@check("a button that is pressed and a command come over the socket")
def _(w):
    w.drain()
    button = {"type": "button", "text": {"type": "plain_text", "text": "Yes"}, "action_id": "a", "value": "y"}
    blocks = [
        {"type": "section", "text": {"type": "mrkdwn", "text": "sure?"}},
        {"type": "actions", "elements": [button]},
    ]
    sent = w.web.chat_postMessage(channel=w.dm, text="sure?", blocks=blocks)
    equal(w.shown(w.dm)[-1]["buttons"], ["Yes"])
    w.sim("press", chat=w.dm, **{"from": w.ada}, message=sent["ts"], button="Yes")
    pressed = w.next(lambda r: r.type == "interactive").payload
    equal((pressed["actions"][0]["value"], pressed["container"]["message_ts"]), ("y", sent["ts"]))
    w.sim("command", chat=w.dm, **{"from": w.ada}, command="/pudu", words="status now")
    command = w.next(lambda r: r.type == "slash_commands")
    equal((command.payload["command"], command.payload["text"]), ("/pudu", "status now"))
    equal(command.accepts_response_payload, True)


@check("blocks that are wrong or too large are refused")
def _(w):
    text = {"type": "section", "text": {"type": "mrkdwn", "text": "x" * 3001}}
    refused("invalid_blocks", w.web.chat_postMessage, channel=w.dm, text="x", blocks=[text])
    large = [{"type": "section", "text": {"type": "mrkdwn", "text": "x" * 2990}}] * 5
    refused("msg_blocks_too_long", w.web.chat_postMessage, channel=w.dm, text="x", blocks=large)


@check("a file is uploaded in the three steps and downloaded again with the token")
def _(w):
    w.drain()
    w.web.files_upload_v2(channel=w.dm, content="hello", filename="a.txt", initial_comment="see")
    equal((w.shown(w.dm)[-1]["text"], w.shown(w.dm)[-1]["files"]), ("see", [["a.txt", 5]]))
    w.say(w.dm, "mine", files=[["b.txt", "content"]])
    shared = w.next(lambda r: r.payload["event"].get("subtype") == "file_share" and "bot_id" not in r.payload["event"])
    (file,) = shared.payload["event"]["files"]
    equal((file["name"], file["size"]), ("b.txt", 7))
    url = file["url_private_download"]
    request = urllib.request.Request(url, headers={"authorization": f"Bearer {w.token}"})
    equal(urllib.request.urlopen(request).read(), b"content")
    page = urllib.request.urlopen(url)
    equal((page.status, page.headers["content-type"].split(";")[0]), (200, "text/html"))


@check("too many calls are told with how long to wait, other failures in the platform's form")
def _(w):
    w.sim("fail", method="chat.postMessage", fault={"too_many": 7})
    failed = refused("ratelimited", w.web.chat_postMessage, channel=w.dm, text="x")
    equal((failed.response.status_code, failed.response.headers["Retry-After"]), (429, "7"))
    w.sim("fail", method="chat.postMessage", fault={"refused": [200, "fatal_error"]})
    refused("fatal_error", w.web.chat_postMessage, channel=w.dm, text="x")
    w.sim("scope", scope="reactions:write", given=False)
    ts = w.say(w.dm, "x")
    failed = refused("missing_scope", w.web.reactions_add, channel=w.dm, timestamp=ts, name="eyes")
    equal(failed.response["needed"], "reactions:write")
    w.sim("scope", scope="reactions:write", given=True)


@check("a reading method does not see JSON")
def _(w):
    refused("invalid_arguments", w.web.api_call, "conversations.history", json={"channel": w.dm})


@check("people and channels are told of")
def _(w):
    equal(w.web.users_info(user=w.ada)["user"]["profile"]["display_name"], "Ada")
    equal(w.web.conversations_info(channel=w.team)["channel"]["name"], "team")
    kinds = w.web.conversations_list(types="im,public_channel")["channels"]
    equal({w.dm, w.team} <= {c["id"] for c in kinds}, True)


@check("a client that is told to go and one whose connection breaks come again, and nothing is lost")
def _(w):
    w.drain()
    w.sim("disconnect", reason="refresh_requested")
    w.say(w.dm, "after the refresh")
    w.next(lambda r: r.payload["event"].get("text") == "after the refresh", within=30)
    w.sim("drop")
    w.say(w.dm, "after the cut")
    w.next(lambda r: r.payload["event"].get("text") == "after the cut", within=60)
    w.socket.close()


@check("posted events bear the platform's signature and come again when they are not taken")
def _(w):
    posts = queue.Queue()
    refuse = [True]

    class Hook(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            posts.put((dict(self.headers), body))
            # What the closed socket left unconfirmed may come here first.
            ours = b"by post" in body
            self.send_response(500 if ours and refuse and refuse.pop() else 200)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    w.sim("post_events", url=f"http://127.0.0.1:{server.server_port}/events")
    w.say(w.dm, "by post")
    (headers, body), (again, same) = posted(posts, b"by post"), posted(posts, b"by post")
    equal(SignatureVerifier(SECRET).is_valid_request(body, headers), True)
    equal(SignatureVerifier("other").is_valid_request(body, headers), False)
    names = {name.lower(): value for name, value in again.items()}
    equal((same, names["x-slack-retry-num"]), (body, "1"))
    w.sim("post_events", url=None)
    server.shutdown()


async def main():
    return await run("slack", World(*sys.argv[1:4]))


sys.exit(asyncio.run(main()))
