"""Drives the simulated DingTalk with dingtalk-stream, the vendor's own client; people are played over /sim/."""

import asyncio
import json
import os
import sys
import urllib.error
import urllib.parse
import urllib.request

URL, CLIENT_ID, SECRET, TEMPLATE = sys.argv[1:5]
# The client reads its endpoint when it is imported.
os.environ["DINGTALK_OPENAPI_ENDPOINT"] = URL

import dingtalk_stream  # noqa: E402
from dingtalk_stream import AckMessage, CallbackHandler, ChatbotHandler, ChatbotMessage  # noqa: E402
from dingtalk_stream.card_callback import Card_Callback_Router_Topic, CardCallbackMessage  # noqa: E402
from dingtalk_stream.card_replier import AICardReplier  # noqa: E402

from checks import check, equal, run  # noqa: E402


def http(method, url, body=None, headers=None):
    """Returns the status and the JSON of a call."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"content-type": "application/json", "accept": "application/json"} | (headers or {})
    request = urllib.request.Request(url, data, headers, method=method)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refused:
        return refused.code, json.load(refused)


def sim(path, **what):
    """The people's side."""
    return http("POST", f"{URL}/sim/{path}", what)[1]


def look(path):
    return http("GET", f"{URL}/sim/{path}")[1]


class Bot(ChatbotHandler):
    """Puts what the client understood into a queue."""

    def __init__(self):
        super().__init__()
        self.heard = asyncio.Queue()

    async def process(self, callback):
        self.heard.put_nowait(callback.data)
        return AckMessage.STATUS_OK, "OK"


class Presses(CallbackHandler):
    def __init__(self):
        super().__init__()
        self.heard = asyncio.Queue()

    async def process(self, callback):
        self.heard.put_nowait(callback.data)
        return AckMessage.STATUS_OK, {}


# The client runs a bot's handler in a thread of its own; here the queue's loop is the one that counts.
Bot.raw_process = CallbackHandler.raw_process


class World:
    def __init__(self):
        credential = dingtalk_stream.Credential(CLIENT_ID, SECRET)
        self.client = dingtalk_stream.DingTalkStreamClient(credential)
        self.bot, self.presses = Bot(), Presses()
        self.client.register_callback_handler(ChatbotMessage.TOPIC, self.bot)
        self.client.register_callback_handler(Card_Callback_Router_Topic, self.presses)
        made = sim("people", name="Ada")
        self.ada, self.chat = made["user"], made["chat"]
        self.group = sim("groups", title="Team", members=[self.ada])["chat"]

    async def hear(self, within=5):
        data = await asyncio.wait_for(self.bot.heard.get(), within)
        return ChatbotMessage.from_dict(data)

    async def say(self, **words):
        sim("write", **{"chat": self.chat, "from": self.ada} | words)
        return await self.hear()

    def call(self, method, path, **body):
        token = self.client.get_access_token()
        return http(method, URL + path, body, {"x-acs-dingtalk-access-token": token})

    async def quick(self, function, *given, **named):
        """Runs one of the client's blocking calls beside the loop."""
        return await asyncio.to_thread(function, *given, **named)


@check("a socket opens with an escaped ticket, and a message arrives whole")
async def _(w):
    message = await w.say(text="hello")
    equal((message.text.content, message.sender_staff_id, message.conversation_type), ("hello", w.ada, "1"))
    equal((message.robot_code, message.sender_nick, message.message_type), (CLIENT_ID, "Ada", "text"))


@check("an answer to a message at its own address is seen, as text and as Markdown")
async def _(w):
    message = await w.say(text="again")
    equal((await w.quick(w.bot.reply_text, "as text", message))["errcode"], 0)
    equal((await w.quick(w.bot.reply_markdown, "title", "**as** Markdown", message))["errcode"], 0)
    shown = look(f"shown/{w.chat}")["messages"]
    equal([one["text"] for one in shown], ["as text", "as Markdown"])


@check("a client that names its reader pings them, and the record says so")
async def _(w):
    equal(look(f"shown/{w.chat}")["messages"][0]["pings"], True)


@check("in a group the robot hears what mentions it, with the space that the mention leaves")
async def _(w):
    sim("write", **{"chat": w.group, "from": w.ada, "text": "not to the bot"})
    message = await w.say(chat=w.group, text="to the bot", to_bot=True)
    equal((message.text.content, message.conversation_type), (" to the bot", "2"))
    equal((message.conversation_id, message.is_in_at_list), (w.group, True))


@check("pictures among words are understood and can be fetched by their code")
async def _(w):
    message = await w.say(text="see", files=[["a.png", "pixels"]])
    equal((message.message_type, message.get_text_list()), ("richText", ["see"]))
    (code,) = message.get_image_list()
    url = await w.quick(w.bot.get_image_download_url, code)
    with urllib.request.urlopen(url) as answer:
        equal(answer.read(), b"pixels")
    message = await w.say(text="", files=[["b.png", "more"]])
    equal((message.message_type, len(message.get_image_list())), ("picture", 1))


@check("a file is a message of its own")
async def _(w):
    message = await w.say(text="", files=[["a.txt", "content"]])
    equal((message.message_type, message.extensions["content"]["fileName"]), ("file", "a.txt"))


@check("an acknowledged message does not come again, and a repeated one is the same message")
async def _(w):
    sent = sim("write", **{"chat": w.chat, "from": w.ada, "text": "once"})["message"]
    equal((await w.hear()).message_id, sent)
    sim("redeliver", chat=w.chat, message=sent)
    equal((await w.hear()).message_id, sent)


@check("a card is made, delivered, streamed into, and finished by the client")
async def _(w):
    message = await w.say(text="card please")
    replier = AICardReplier(w.client, message)
    card = await w.quick(replier.create_and_deliver_card, TEMPLATE, {"content": ""})
    (shown,) = [one for one in look(f"shown/{w.chat}")["messages"] if one["id"] == card]
    equal((shown["text"], shown["growing"]), ("", True))
    await w.quick(replier.streaming, card, "content", "one", False, False, False)
    await w.quick(replier.streaming, card, "content", "one **two**", False, True, False)
    (shown,) = [one for one in look(f"shown/{w.chat}")["messages"] if one["id"] == card]
    equal((shown["text"], shown["growing"]), ("one two", False))
    history = look(f"history/{w.chat}/{card}")
    equal(history, ["one", "one two"])


@check("the client's two-step card and its status words work as well")
async def _(w):
    message = await w.say(chat=w.group, text="card in two steps", to_bot=True)
    replier = AICardReplier(w.client, message)
    card = await w.quick(replier.start, TEMPLATE, {"content": "first"})
    await w.quick(replier.finish, card, {"content": "last"})
    (shown,) = look(f"shown/{w.group}")["messages"]
    equal((shown["id"], shown["text"], shown["growing"]), (card, "last", False))


@check("a press on a card's button comes over the stream and the client understands it")
async def _(w):
    message = await w.say(text="buttons please")
    replier = AICardReplier(w.client, message)
    buttons = json.dumps([{"text": "Stop", "id": "/stop", "color": "gray"}])
    card = await w.quick(replier.create_and_deliver_card, TEMPLATE, {"content": "x", "buttons": buttons})
    sim("press", **{"chat": w.chat, "from": w.ada, "message": card, "button": "Stop"})
    press = CardCallbackMessage.from_dict(await asyncio.wait_for(w.presses.heard.get(), 5))
    equal((press.card_instance_id, press.user_id), (card, w.ada))
    equal(press.content["cardPrivateData"]["actionIds"], ["/stop"])


@check("what is wrong with a card is refused as the platform does")
async def _(w):
    def stream(**other):
        body = {"outTrackId": "c1", "guid": "g1", "key": "content", "content": "x", "isFull": True}
        return w.call("PUT", "/v1.0/card/streaming", **body | other)

    space = f"dtv1.card//IM_ROBOT.{w.ada}"
    card = {
        "cardTemplateId": TEMPLATE,
        "outTrackId": "c1",
        "callbackType": "STREAM",
        "cardData": {"cardParamMap": {"content": ""}},
        "openSpaceId": space,
        "imRobotOpenDeliverModel": {"spaceType": "IM_ROBOT"},
    }
    path = "/v1.0/card/instances/createAndDeliver"
    equal(stream()[0], 400)
    equal(w.call("POST", path, **card | {"cardTemplateId": "other.schema"})[0], 400)
    equal(w.call("POST", path, **card | {"cardData": {"cardParamMap": {"content": 1}}})[0], 400)
    status, answer = w.call("POST", path, **card | {"openSpaceId": "dtv1.card//IM_ROBOT.nobody"})
    equal((status, answer["result"]["deliverResults"][0]["success"]), (200, False))
    status, answer = w.call("POST", path, **card)
    equal((status, answer["result"]["deliverResults"][0]["success"]), (200, True))
    equal(stream(key="other")[1]["code"], "unknownError")
    equal(stream(isFull=False)[0], 400)
    equal(stream()[0], 200)
    equal(stream(content="y")[0], 200)
    equal(look(f"history/{w.chat}/c1"), ["x"])


@check("a robot's messages arrive, and who cannot be reached is named under HTTP 200")
async def _(w):
    body = {"robotCode": CLIENT_ID, "msgKey": "sampleText", "msgParam": json.dumps({"content": "hi"})}
    path = "/v1.0/robot/oToMessages/batchSend"
    status, answer = w.call("POST", path, userIds=[w.ada, "nobody"], **body)
    equal((status, answer["invalidStaffIdList"]), (200, ["nobody"]))
    key = answer["processQueryKey"]
    equal([one["id"] for one in look(f"shown/{w.chat}")["messages"]][-1], key)
    recall = "/v1.0/robot/otoMessages/batchRecall"
    equal(w.call("POST", recall, robotCode=CLIENT_ID, processQueryKeys=[key])[1]["successResult"], [key])
    equal(key in [one["id"] for one in look(f"shown/{w.chat}")["messages"]], False)
    equal(w.call("POST", path, userIds=[w.ada], **body | {"msgParam": "{}"})[0], 400)
    status, answer = w.call("POST", "/v1.0/robot/groupMessages/send", openConversationId=w.group, **body)
    equal((status, bool(answer["processQueryKey"])), (200, True))


@check("a wrong token is 401, too many calls are 403 with a code, and an unknown API is 404")
async def _(w):
    status, answer = http("PUT", URL + "/v1.0/card/streaming", {}, {"x-acs-dingtalk-access-token": "no"})
    equal((status, answer["code"]), (401, "InvalidAuthentication"))
    sim("fail", method="card/streaming", fault={"too_many": 1})
    status, answer = w.call("PUT", "/v1.0/card/streaming")
    equal((status, answer["code"]), (403, "Forbidden.AccessDenied.QpsLimitForAppkeyAndApi"))
    equal(w.call("POST", "/v1.0/no/such/api")[0], 404)


@check("the client changes to another socket when the end of its own is announced")
async def _(w):
    sim("disconnect")
    await asyncio.sleep(2)
    equal((await w.say(text="over")).text.content, "over")


@check("a broken connection is made anew by the client, and messages come again")
async def _(w):
    sim("drop")
    await asyncio.sleep(14)
    equal((await w.say(text="back")).text.content, "back")


async def main():
    world = World()
    asyncio.create_task(world.client.start())
    while world.client.websocket is None:
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.2)
    status = await run("dingtalk", world)
    # The client connects anew even when it is cancelled: only the end of the process ends it.
    sys.stdout.flush()
    os._exit(status)


asyncio.run(main())
