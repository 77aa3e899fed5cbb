"""Drives the simulated Feishu with lark-oapi, the platform's own client; people are played over /sim/."""

import asyncio
import http.server
import json
import sys
import threading
import urllib.request

import lark_oapi as lark
import lark_oapi.ws.client as ws_client
from lark_oapi.api.cardkit.v1 import (
    Card,
    ContentCardElementRequest,
    ContentCardElementRequestBody,
    CreateCardRequest,
    CreateCardRequestBody,
    SettingsCardRequest,
    SettingsCardRequestBody,
    UpdateCardRequest,
    UpdateCardRequestBody,
)
from lark_oapi.api.im.v1 import (
    CreateFileRequest,
    CreateFileRequestBody,
    CreateImageRequest,
    CreateImageRequestBody,
    CreateMessageReactionRequest,
    CreateMessageReactionRequestBody,
    CreateMessageRequest,
    CreateMessageRequestBody,
    DeleteMessageReactionRequest,
    DeleteMessageRequest,
    Emoji,
    GetMessageRequest,
    GetMessageResourceRequest,
    ListMessageRequest,
    PatchMessageRequest,
    PatchMessageRequestBody,
    ReplyMessageRequest,
    ReplyMessageRequestBody,
    UpdateMessageRequest,
    UpdateMessageRequestBody,
)
from lark_oapi.core.token.manager import TokenManager
from lark_oapi.event.callback.model.p2_card_action_trigger import P2CardActionTriggerResponse

from checks import check, equal, run

PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)


class Sim:
    """The people's side."""

    def __init__(self, url):
        self.url = url

    def post(self, path, **what):
        data = json.dumps(what).encode()
        request = urllib.request.Request(f"{self.url}/sim/{path}", data, {"content-type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def get(self, path):
        with urllib.request.urlopen(f"{self.url}/sim/{path}") as answer:
            return json.load(answer)

    def state(self):
        return self.get("feishu/state")

    def shown(self, chat):
        return self.get(f"shown/{chat}")["messages"]


class World:
    """The client for calls, the long connection, and what came over it."""

    def __init__(self, url, app_id, secret):
        self.sim = Sim(url)
        self.url, self.app_id, self.secret = url, app_id, secret
        self.client = lark.Client.builder().app_id(app_id).app_secret(secret).domain(url).build()
        self.messages, self.presses, self.recalls = [], [], []
        self.answer = {"toast": {"type": "info", "content": "got it"}}
        self.fail = False
        told = self.sim.post("people", name="Ada")
        self.ada, self.chat = told["user"], told["chat"]
        self.handler = self.handle("", "")
        self.socket = lark.ws.Client(
            app_id, secret, event_handler=self.handler, domain=url, log_level=lark.LogLevel.CRITICAL
        )

    def handle(self, key, token):
        builder = lark.EventDispatcherHandler.builder(key, token)
        builder.register_p2_im_message_receive_v1(self.on_message)
        builder.register_p2_im_message_recalled_v1(lambda data: self.recalls.append(data.event))
        builder.register_p2_card_action_trigger(self.on_press)
        return builder.build()

    def on_message(self, data):
        if self.fail:
            self.fail = False
            raise RuntimeError("not now")
        self.messages.append(data)

    def on_press(self, data):
        self.presses.append(data.event)
        return P2CardActionTriggerResponse(self.answer)

    async def next(self, kept=None):
        """Waits for the next event of a kind."""
        kept = self.messages if kept is None else kept
        for _ in range(400):
            if kept:
                return kept.pop(0)
            await asyncio.sleep(0.025)
        raise AssertionError("no event came")

    def send(self, kind, content, uuid=None, to=None):
        body = CreateMessageRequestBody.builder().receive_id(to or self.chat).msg_type(kind)
        body = body.content(content if isinstance(content, str) else json.dumps(content))
        if uuid:
            body = body.uuid(uuid)
        request = CreateMessageRequest.builder().receive_id_type("chat_id").request_body(body.build()).build()
        return self.client.im.v1.message.create(request)

    def say(self, content, **more):
        more.setdefault("chat", self.chat)
        more.setdefault("from", self.ada)
        return self.sim.post("feishu/say", content=content, **more)["message"]


def ok(response):
    """The call went through; returns its data."""
    equal((response.code, response.msg if response.code else ""), (0, ""))
    return getattr(response, "data", None)


def stream_card():
    config = {"streaming_mode": True, "summary": {"content": "short"}}
    body = {"elements": [{"tag": "markdown", "content": "…", "element_id": "text"}]}
    return {"schema": "2.0", "config": config, "body": body}


class Stream:
    """A card of CardKit, as the client sees it."""

    def __init__(self, w, card=None):
        self.client, self.w = w.client, w
        body = CreateCardRequestBody.builder().type("card_json").data(json.dumps(card or stream_card())).build()
        self.made = self.client.cardkit.v1.card.create(CreateCardRequest.builder().request_body(body).build())
        self.id = self.made.data.card_id if self.made.success() else None

    def show(self):
        return ok(self.w.send("interactive", {"type": "card", "data": {"card_id": self.id}})).message_id

    def text(self, text, sequence, uuid=None):
        body = ContentCardElementRequestBody.builder().content(text).sequence(sequence)
        if uuid:
            body = body.uuid(uuid)
        request = ContentCardElementRequest.builder().card_id(self.id).element_id("text")
        return self.client.cardkit.v1.card_element.content(request.request_body(body.build()).build())

    def settings(self, config, sequence):
        body = SettingsCardRequestBody.builder().settings(json.dumps({"config": config})).sequence(sequence).build()
        return self.client.cardkit.v1.card.settings(
            SettingsCardRequest.builder().card_id(self.id).request_body(body).build()
        )

    def update(self, card, sequence):
        card = Card.builder().type("card_json").data(json.dumps(card)).build()
        body = UpdateCardRequestBody.builder().card(card).sequence(sequence).build()
        return self.client.cardkit.v1.card.update(
            UpdateCardRequest.builder().card_id(self.id).request_body(body).build()
        )


@check("wrong credentials give no token")
async def _(w):
    wrong = lark.Client.builder().app_id(w.app_id).app_secret("wrong").domain(w.url).build()
    TokenManager.cache.set(f"self_tenant_token:{w.app_id}", "", 0)
    try:
        wrong.im.v1.message.get(GetMessageRequest.builder().message_id("om_1").build())
    except Exception as error:
        if "10014" not in str(getattr(error, "code", error)) and "10014" not in str(error):
            raise
        return
    raise AssertionError("it got a token")


@check("the long connection opens, and an event comes over it")
async def _(w):
    await w.socket._connect()
    w.pings = asyncio.get_running_loop().create_task(w.socket._ping_loop())
    message = w.say("hello")
    event = (await w.next()).event
    equal((event.message.message_id, json.loads(event.message.content)), (message, {"text": "hello"}))
    equal((event.message.chat_type, event.sender.sender_type, event.sender.sender_id.open_id), ("p2p", "user", w.ada))


@check("a pong changes the interval of pings")
async def _(w):
    w.sim.post("feishu/ping", seconds=1)
    await w.socket._write_message(ws_client._new_ping_frame(int(w.socket._service_id)).SerializeToString())
    for _ in range(100):
        if w.socket._ping_interval == 1:
            return
        await asyncio.sleep(0.02)
    raise AssertionError("the interval stayed")


@check("fragments in any order become one event")
async def _(w):
    for order in ("straight", "reversed", "shuffled"):
        w.sim.post("feishu/chunks", size=150, order=order)
        w.say("鹿" * 400)
        equal(json.loads((await w.next()).event.message.content)["text"], "鹿" * 400)
    w.sim.post("feishu/chunks", size=65536)


@check("an event that failed comes again, and a fragment that got lost brings the event again")
async def _(w):
    w.fail = True
    message = w.say("once more")
    equal((await w.next()).event.message.message_id, message)
    w.sim.post("feishu/chunks", size=700, lose=1)
    message = w.say("lost")
    equal((await w.next()).event.message.message_id, message)
    w.sim.post("feishu/chunks", size=65536)


@check("a mention is a placeholder with the person's ids")
async def _(w):
    group = w.sim.post("groups", title="Deer", members=[w.ada])["chat"]
    w.sim.post("write", chat=group, to_bot=True, text="hi", **{"from": w.ada})
    message = (await w.next()).event.message
    equal((json.loads(message.content)["text"], message.chat_type), ("@_user_1 hi", "group"))
    equal((message.mentions[0].key, message.mentions[0].id.open_id), ("@_user_1", w.sim.state()["bot"]))


@check("a message that is taken back is told of")
async def _(w):
    message = w.say("oops")
    await w.next()
    w.sim.post("recall", chat=w.chat, message=message)
    equal((await w.next(w.recalls)).message_id, message)


@check("a text is sent, answered with in a chain, edited, and taken back")
async def _(w):
    message = w.say("question")
    await w.next()
    body = ReplyMessageRequestBody.builder().msg_type("text").content('{"text":"answer"}').uuid("u-1").build()
    request = ReplyMessageRequest.builder().message_id(message).request_body(body).build()
    sent = ok(w.client.im.v1.message.reply(request))
    equal((sent.root_id, sent.parent_id, sent.thread_id), (message, message, None))
    equal(ok(w.client.im.v1.message.reply(request)).message_id, sent.message_id)
    body = UpdateMessageRequestBody.builder().msg_type("text").content('{"text":"better"}').build()
    ok(w.client.im.v1.message.update(UpdateMessageRequest.builder().message_id(sent.message_id).request_body(body).build()))
    equal(w.sim.get(f"history/{w.chat}/{sent.message_id}"), ["answer", "better"])
    ok(w.client.im.v1.message.delete(DeleteMessageRequest.builder().message_id(sent.message_id).build()))
    equal([one["id"] for one in w.sim.shown(w.chat) if one["id"] == sent.message_id], [])


@check("answers in a thread make one and stay there")
async def _(w):
    group = w.sim.post("groups", title="Threads", members=[w.ada])["chat"]
    message = w.say("topic", chat=group)
    await w.next()
    body = ReplyMessageRequestBody.builder().msg_type("text").content('{"text":"a"}').reply_in_thread(True).build()
    first = ok(w.client.im.v1.message.reply(ReplyMessageRequest.builder().message_id(message).request_body(body).build()))
    body = ReplyMessageRequestBody.builder().msg_type("text").content('{"text":"b"}').build()
    second = ok(w.client.im.v1.message.reply(ReplyMessageRequest.builder().message_id(first.message_id).request_body(body).build()))
    equal((first.thread_id is not None, second.thread_id), (True, first.thread_id))
    w.say("more", chat=group, answers=second.message_id)
    equal((await w.next()).event.message.thread_id, first.thread_id)


@check("a card is patched if it is shared, before and after")
async def _(w):
    card = {"config": {"update_multi": True}, "elements": [{"tag": "markdown", "content": "**one**"}]}
    sent = ok(w.send("interactive", card)).message_id

    def patch(message, content):
        body = PatchMessageRequestBody.builder().content(json.dumps(content)).build()
        return w.client.im.v1.message.patch(PatchMessageRequest.builder().message_id(message).request_body(body).build())

    card["elements"][0]["content"] = "two &lt;b"
    ok(patch(sent, card))
    equal(w.sim.get(f"history/{w.chat}/{sent}"), ["one", "two <b"])
    equal(patch(sent, {"elements": []}).code, 230099)
    alone = ok(w.send("interactive", {"elements": []})).message_id
    equal(patch(alone, card).code, 230099)


@check("what is too large is refused")
async def _(w):
    text = "x" * 31000
    equal(w.send("post", {"zh_cn": {"content": [[{"tag": "text", "text": text}]]}}).code, 230025)
    equal(w.send("interactive", {"elements": [{"tag": "markdown", "content": text}]}).code, 230025)
    ok(w.send("text", {"text": text}))
    equal(w.send("text", {"text": "x" * 160000}).code, 230025)
    tables = "\n\n".join(["|a|\n|-|\n|b|"] * 6)
    equal(w.send("interactive", {"elements": [{"tag": "markdown", "content": tables}]}).code, 230099)


@check("a card streams, each text whole, and closes")
async def _(w):
    card = Stream(w)
    message = card.show()
    ok(card.text("Hel", 1))
    equal([(m["text"], m["growing"]) for m in w.sim.shown(w.chat)][-1], ("Hel", True))
    ok(card.text("Hello", 2, "u"))
    equal(card.text("Hello!", 2).code, 300317)
    equal(card.text("Hello!", 3, "u").code, 200770)
    ok(card.settings({"streaming_mode": False, "summary": {"content": "Hello"}}, 3))
    equal(card.text("late", 4).code, 300309)
    equal([(m["text"], m["growing"]) for m in w.sim.shown(w.chat)][-1], ("Hello", False))
    whole = stream_card()
    whole["config"]["streaming_mode"] = False
    whole["body"]["elements"][0]["content"] = "**Hello**, all"
    ok(card.update(whole, 1000))
    equal(w.sim.get(f"history/{w.chat}/{message}"), ["…", "Hel", "Hello", "Hello, all"])


@check("a stream that is over says so twice, and opens again")
async def _(w):
    card = Stream(w)
    card.show()
    w.sim.post("feishu/expire")
    equal(card.text("x", 1).code, 200850)
    equal(card.text("x", 2).code, 300309)
    ok(card.settings({"streaming_mode": True}, 3))
    ok(card.text("x", 4))


@check("cards have limits: size, shared, one message, known elements")
async def _(w):
    card = Stream(w)
    equal(card.text("鹿" * 11000, 1).code, 200860)
    card.show()
    equal(w.send("interactive", {"type": "card", "data": {"card_id": card.id}}).code, 230099)
    alone = stream_card()
    alone["config"]["update_multi"] = False
    equal(Stream(w, alone).made.code, 300302)
    card.id = "1"
    equal(card.text("x", 1).code, 200740)


@check("a scope that is missing is named, and a token that died is replaced by the next call")
async def _(w):
    w.sim.post("feishu/scope", scope="cardkit:card:write")
    equal(Stream(w).made.code, 99991672)
    w.sim.post("feishu/scope", scope="cardkit:card:write", given=True)
    w.sim.post("feishu/revoke", code=99991663)
    equal(w.send("text", {"text": "x"}).code, 99991663)
    TokenManager.cache.set(f"self_tenant_token:{w.app_id}", "", 0)
    ok(w.send("text", {"text": "x"}))


@check("the gateway's limit comes as 400 and says in a header how long to wait")
async def _(w):
    w.sim.post("fail", method="im.message.create", fault={"too_many": 3})
    refused = w.send("text", {"text": "x"})
    headers = {name.lower(): value for name, value in refused.raw.headers.items()}
    equal((refused.code, refused.raw.status_code, headers["x-ogw-ratelimit-reset"]), (99991400, 400, "3"))


@check("a press reaches the bot, and its answer the person")
async def _(w):
    button = {"tag": "button", "text": {"tag": "plain_text", "content": "Stop"}, "value": {"action": "/stop"}}
    card = {"config": {"update_multi": True}, "elements": [{"tag": "action", "actions": [button]}]}
    sent = ok(w.send("interactive", card)).message_id
    w.sim.post("press", chat=w.chat, message=sent, button="Stop", **{"from": w.ada})
    event = await w.next(w.presses)
    equal((event.operator.open_id, event.action.value), (w.ada, {"action": "/stop"}))
    equal((event.context.open_message_id, event.context.open_chat_id), (sent, w.chat))
    for _ in range(100):
        if w.sim.state()["presses"][-1][1]:
            break
        await asyncio.sleep(0.02)
    equal(w.sim.state()["presses"][-1], [{"action": "/stop"}, w.answer])


@check("a reaction is put on once and taken away")
async def _(w):
    message = w.say("nice")
    await w.next()
    emoji = Emoji.builder().emoji_type("OK").build()
    body = CreateMessageReactionRequestBody.builder().reaction_type(emoji).build()
    request = CreateMessageReactionRequest.builder().message_id(message).request_body(body).build()
    reaction = ok(w.client.im.v1.message_reaction.create(request)).reaction_id
    equal(ok(w.client.im.v1.message_reaction.create(request)).reaction_id, reaction)
    request = DeleteMessageReactionRequest.builder().message_id(message).reaction_id(reaction).build()
    ok(w.client.im.v1.message_reaction.delete(request))
    equal(w.client.im.v1.message_reaction.delete(request).code, 231011)


@check("files go both ways, and not under another message")
async def _(w):
    import io

    body = CreateFileRequestBody.builder().file_type("stream").file_name("a.txt").file(io.BytesIO(b"hello")).build()
    key = ok(w.client.im.v1.file.create(CreateFileRequest.builder().request_body(body).build())).file_key
    ok(w.send("file", {"file_key": key}))
    equal(w.sim.shown(w.chat)[-1]["files"], [["a.txt", 5]])
    body = CreateFileRequestBody.builder().file_type("stream").file_name("e").file(io.BytesIO(b"")).build()
    equal(w.client.im.v1.file.create(CreateFileRequest.builder().request_body(body).build()).code, 234010)
    body = CreateImageRequestBody.builder().image_type("message").image(io.BytesIO(PNG)).build()
    key = ok(w.client.im.v1.image.create(CreateImageRequest.builder().request_body(body).build())).image_key
    ok(w.send("image", {"image_key": key}))
    message = w.sim.post("write", chat=w.chat, files=[["b.txt", "content"]], **{"from": w.ada})["message"]
    told = (await w.next()).event.message
    equal((told.message_id, told.message_type), (message, "file"))
    key = json.loads(told.content)["file_key"]

    def fetch(message):
        request = GetMessageResourceRequest.builder().message_id(message).file_key(key).type("file").build()
        return w.client.im.v1.message_resource.get(request)

    equal(fetch(message).file.read(), b"content")
    other = w.say("other")
    await w.next()
    # The client looks for `Content-Type` in capitals before it reads a refusal.
    equal(json.loads(fetch(other).raw.content)["code"], 234003)


@check("a forwarded bundle is looked up, and a chat's messages are listed by pages")
async def _(w):
    bundle = [[w.ada, "text", "first"], [w.ada, "text", "second"]]
    message = w.say({"content": "Merged and Forwarded Message"}, kind="merge_forward", bundle=bundle)
    await w.next()
    items = ok(w.client.im.v1.message.get(GetMessageRequest.builder().message_id(message).build())).items
    equal([item.upper_message_id for item in items], [None, message, message])
    equal([json.loads(item.body.content).get("text") for item in items[1:]], ["first", "second"])
    found, token = [], None
    while True:
        request = ListMessageRequest.builder().container_id_type("chat").container_id(w.chat).page_size(10)
        request = request.sort_type("ByCreateTimeDesc")
        page = ok(w.client.im.v1.message.list((request.page_token(token) if token else request).build()))
        found += page.items
        token = page.page_token
        if not page.has_more:
            break
    equal((found[0].message_id, len(found) > 10, len({one.message_id for one in found})), (message, True, len(found)))


@check("a broken connection is opened anew, and what came meanwhile is not lost")
async def _(w):
    w.sim.post("drop")
    message = w.say("while you were away")
    equal((await w.next()).event.message.message_id, message)


@check("sealed and signed posts are opened by the platform's own handler")
async def _(w):
    handler = w.handle("sim-encrypt-key", "sim-verification-token")
    statuses = []

    class Hook(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            request = lark.RawRequest()
            request.uri = self.path
            request.body = self.rfile.read(int(self.headers["content-length"]))
            request.headers = {name.title(): value for name, value in self.headers.items()}
            response = handler.do(request)
            statuses.append(response.status_code)
            self.send_response(response.status_code)
            self.end_headers()
            self.wfile.write(response.content)

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Hook)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    w.sim.post("feishu/webhook", url=f"http://127.0.0.1:{server.server_port}/hook")
    message = w.say("by post")
    equal((await w.next()).event.message.message_id, message)
    w.sim.post("feishu/webhook", url=None)
    equal(statuses, [200])
    server.shutdown()


@check("the client did nothing that the simulator calls a violation")
async def _(w):
    equal(w.sim.state()["violations"], [])


async def main():
    # The client takes its loop when it is imported.
    ws_client.loop = asyncio.get_running_loop()
    return await run("feishu", World(*sys.argv[1:4]))


sys.exit(asyncio.run(main()))
