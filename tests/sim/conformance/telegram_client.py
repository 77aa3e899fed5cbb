"""Drives the simulated Telegram with python-telegram-bot; people are played over /sim/."""

import asyncio
import json
import sys
import urllib.request

from telegram import Bot, InlineKeyboardButton, InlineKeyboardMarkup, LinkPreviewOptions, ReplyParameters
from telegram.constants import ChatAction, ParseMode
from telegram.error import BadRequest, Conflict, InvalidToken, NetworkError, RetryAfter
from telegram.request import HTTPXRequest

from checks import check, equal, run

PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)


class Sim:
    """The people's side."""

    def __init__(self, url):
        self.url = url

    def post(self, path, **what):
        data = json.dumps(what).encode()
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(f"{self.url}/sim/{path}", data, headers)
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def get(self, path):
        with urllib.request.urlopen(f"{self.url}/sim/{path}") as answer:
            return json.load(answer)

    def texts(self, chat):
        return [message["text"] for message in self.get(f"transcript/{chat}")["messages"]]


class World:
    """A bot, the people's side, one person, and the offset of the polls."""

    def __init__(self, url, token):
        self.sim = Sim(url)
        self.url = url
        self.token = token
        self.bot = self.make(token)
        self.offset = 0
        self.chat = self.sim.post("people", name="Ada", username="ada")["chat"]

    def make(self, token):
        return Bot(token, base_url=f"{self.url}/bot", base_file_url=f"{self.url}/file/bot")

    async def poll(self, timeout=0):
        updates = await self.bot.get_updates(offset=self.offset, timeout=timeout)
        if updates:
            self.offset = updates[-1].update_id + 1
        return updates


async def refused(kind, text, call):
    """The call fails with this kind of error and this text; returns the error."""
    try:
        await call
    except kind as error:
        equal(type(error), kind)
        if text not in str(error):
            raise AssertionError(f"{error} does not say {text!r}") from error
        return error
    raise AssertionError(f"nothing failed with {kind.__name__}")


@check("the bot knows itself")
async def _(w):
    me = await w.bot.get_me()
    equal((me.username, me.is_bot, me.can_join_groups), ("pudu_bot", True, True))


@check("a wrong token is refused")
async def _(w):
    await refused(InvalidToken, "", w.make("1:wrong").get_me())


@check("a long poll waits until somebody writes")
async def _(w):
    poll = asyncio.create_task(w.poll(timeout=20))
    await asyncio.sleep(0.2)
    equal(poll.done(), False)
    w.sim.post("say", chat=w.chat, text="/new@pudu_bot hello")
    (update,) = await poll
    message = update.message
    equal((message.text, message.chat.type, message.from_user.username), ("/new@pudu_bot hello", "private", "ada"))
    equal([(e.type, e.offset, e.length) for e in message.entities], [("bot_command", 0, 13)])


@check("an update comes again until a higher offset confirms it, and when it is delivered anew")
async def _(w):
    told = w.sim.post("say", chat=w.chat, text="again")
    first = await w.bot.get_updates(offset=w.offset)
    second = await w.bot.get_updates(offset=w.offset)
    equal([u.update_id for u in first], [u.update_id for u in second])
    await w.poll()
    equal(await w.poll(), ())
    w.sim.post("redeliver", update=told["update"])
    equal([u.update_id for u in await w.bot.get_updates(offset=w.offset)], [told["update"]])


@check("a second poll ends the first with 409")
async def _(w):
    first = asyncio.create_task(w.bot.get_updates(offset=w.offset, timeout=20))
    await asyncio.sleep(0.2)
    await w.make(w.token).get_updates(offset=w.offset, timeout=0)
    await refused(Conflict, "terminated by other getUpdates request", first)


@check("HTML becomes text and entities, in a reply")
async def _(w):
    to = w.sim.post("say", chat=w.chat, text="question")["messages"][0]
    sent = await w.bot.send_message(
        w.chat,
        '<b>bold</b> 🦌 <a href="https://a.example/">link</a>',
        parse_mode=ParseMode.HTML,
        reply_parameters=ReplyParameters(to, allow_sending_without_reply=True),
        link_preview_options=LinkPreviewOptions(is_disabled=True),
    )
    equal((sent.text, sent.reply_to_message.text), ("bold 🦌 link", "question"))
    equal([(e.type, sent.parse_entity(e)) for e in sent.entities], [("bold", "bold"), ("text_link", "link")])


@check("broken HTML is refused with its place")
async def _(w):
    call = w.bot.send_message(w.chat, "1 <p>", parse_mode=ParseMode.HTML)
    await refused(BadRequest, 'an\'t parse entities: unsupported start tag "p" at byte offset 2', call)


@check("an edit is seen, and one that changes nothing is refused")
async def _(w):
    sent = await w.bot.send_message(w.chat, "one")
    edited = await sent.edit_text("two")
    equal((edited.text, edited.edit_date is not None), ("two", True))
    await refused(BadRequest, "essage is not modified", sent.edit_text("two"))
    equal(w.sim.texts(w.chat)[-1], "two")
    shown = w.sim.get(f"history/{w.chat}/{sent.message_id}")
    equal([one["text"] for one in shown], ["one", "two"])
    await sent.delete()
    await refused(BadRequest, "essage to edit not found", sent.edit_text("three"))


@check("a text of 4096 UTF-16 units fits and one more does not")
async def _(w):
    await w.bot.send_message(w.chat, "🦌" * 2048)
    await refused(BadRequest, "essage is too long", w.bot.send_message(w.chat, "🦌" * 2048 + "x"))


@check("429 says how long to wait")
async def _(w):
    w.sim.post("fail", method="sendMessage", fault={"too_many": 3})
    error = await refused(RetryAfter, "", w.bot.send_message(w.chat, "x"))
    wait = error.retry_after
    equal(int(getattr(wait, "total_seconds", lambda: wait)()), 3)


@check("a connection cut after the effect leaves the message there")
async def _(w):
    w.sim.post("fail", method="sendMessage", fault="cut_after")
    await refused(NetworkError, "", w.bot.send_message(w.chat, "cut"))
    equal(w.sim.texts(w.chat)[-1], "cut")


@check("a button that is pressed reaches the bot, and its answer the person")
async def _(w):
    keyboard = InlineKeyboardMarkup([[InlineKeyboardButton("Yes", callback_data="y")]])
    sent = await w.bot.send_message(w.chat, "sure?", reply_markup=keyboard)
    await w.poll()
    w.sim.post("press", chat=w.chat, message=sent.message_id, button="Yes")
    (update,) = await w.poll()
    query = update.callback_query
    equal((query.data, query.message.message_id), ("y", sent.message_id))
    equal(await query.answer("fine"), True)
    await refused(BadRequest, "uery is too old", w.bot.answer_callback_query("7"))


@check("a file that a person sent is downloaded")
async def _(w):
    await w.poll()
    w.sim.post("say", chat=w.chat, text="see", file={"name": "a.txt", "text": "content"})
    (update,) = await w.poll()
    document = update.message.document
    equal((update.message.caption, document.file_name, document.file_size), ("see", "a.txt", 7))
    equal(bytes(await (await document.get_file()).download_as_bytearray()), b"content")


@check("a file over 20 MB is not handed out")
async def _(w):
    w.sim.post("say", chat=w.chat, file={"name": "big", "size": 20 * 1024 * 1024 + 1})
    (update,) = await w.poll()
    await refused(BadRequest, "ile is too big", update.message.document.get_file())


@check("files are uploaded, as document and as photo, and sent again by their id")
async def _(w):
    sent = await w.bot.send_document(w.chat, b"hello", filename="b.txt", caption="<i>c</i>", parse_mode="HTML")
    equal((sent.document.file_name, sent.caption), ("b.txt", "c"))
    again = await w.bot.send_document(w.chat, sent.document.file_id)
    equal(bytes(await (await again.document.get_file()).download_as_bytearray()), b"hello")
    photo = await w.bot.send_photo(w.chat, PNG)
    equal(photo.photo[-1].file_size, len(PNG))
    await refused(BadRequest, "mage_process_failed", w.bot.send_photo(w.chat, b"no picture"))


@check("typing is seen, and an unknown action refused")
async def _(w):
    equal(await w.bot.send_chat_action(w.chat, ChatAction.TYPING), True)
    equal(w.sim.get(f"transcript/{w.chat}")["action"], "typing")
    await refused(BadRequest, "rong parameter action", w.bot.send_chat_action(w.chat, "dancing"))


@check("a reaction is seen, and an unknown one refused")
async def _(w):
    message = w.sim.post("say", chat=w.chat, text="nice")["messages"][0]
    equal(await w.bot.set_message_reaction(w.chat, message, "👀"), True)
    equal(w.sim.get(f"transcript/{w.chat}")["messages"][-1]["reactions"], ["👀"])
    await refused(BadRequest, "eaction_invalid", w.bot.set_message_reaction(w.chat, message, "✅"))


@check("a forum's topics are kept apart, and one that is not there is refused")
async def _(w):
    await w.poll()
    forum = w.sim.post("groups", title="Forest", kind="forum", members=[w.chat])["chat"]
    topic = w.sim.post("topics", chat=forum, name="Antlers")["topic"]
    w.sim.post("say", chat=forum, **{"from": w.chat}, text="@pudu_bot hi", topic=topic)
    created, said = await w.poll()
    equal(created.message.forum_topic_created.name, "Antlers")
    equal((said.message.message_thread_id, said.message.is_topic_message), (topic, True))
    sent = await w.bot.send_message(forum, "hello", message_thread_id=topic)
    equal(sent.message_thread_id, topic)
    call = w.bot.send_message(forum, "x", message_thread_id=1)
    await refused(BadRequest, "essage thread not found", call)
    equal((await w.bot.get_chat(forum)).is_forum, True)


@check("commands are kept, and a webhook stops the polls")
async def _(w):
    await w.bot.set_my_commands([("new", "start over"), ("stop", "stop it")])
    equal([c.command for c in await w.bot.get_my_commands()], ["new", "stop"])
    await w.bot.set_webhook("http://127.0.0.1:9/hook", secret_token="s3cret")
    equal((await w.bot.get_webhook_info()).url, "http://127.0.0.1:9/hook")
    await refused(Conflict, "webhook is active", w.bot.get_updates())
    await w.bot.delete_webhook(drop_pending_updates=True)
    equal(await w.bot.get_updates(), ())


async def main():
    world = World(sys.argv[1], sys.argv[2])
    async with world.bot:
        return await run("telegram", world)


sys.exit(asyncio.run(main()))
