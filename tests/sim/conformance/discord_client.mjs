// Drives the simulated Discord with discord.js, and prints a line for each check. The arguments: the address
// of the API, the bot's token, and the folder in which discord.js is installed.
import { createRequire } from "node:module";
import assert from "node:assert/strict";

const [api, token, folder] = process.argv.slice(2);
const require = createRequire(`${folder}/`);
const {
  Client, GatewayIntentBits: Intent, Partials, Events, REST, Routes, ActionRowBuilder, ButtonBuilder,
  ButtonStyle, MessageFlags, AttachmentBuilder, DiscordAPIError,
} = require("discord.js");

const people = api.replace(/\/api$/, "/sim");
const act = async (what, body) => {
  const answer = await fetch(`${people}/${what}`, body && {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(`${what}: ${await answer.text()}`);
  return answer.json();
};
const shown = async (chat) => (await act(`shown/${chat}`)).messages;
const within = (promise, what, ms = 8000) => Promise.race([
  promise,
  new Promise((_, fail) => setTimeout(() => fail(new Error(`${what} did not come`)), ms)),
]);
const next = (client, event, wanted = () => true) => within(new Promise((resolve) => {
  const hear = (...told) => {
    if (!wanted(...told)) return;
    client.off(event, hear);
    resolve(told[0]);
  };
  client.on(event, hear);
}), event);
const refused = async (call, code, status) => {
  try {
    await call();
  } catch (error) {
    assert.ok(error instanceof DiscordAPIError, String(error));
    assert.equal(error.code, code);
    if (status) assert.equal(error.status, status);
    return error;
  }
  assert.fail("it was not refused");
};

const ALL = [Intent.Guilds, Intent.GuildMessages, Intent.DirectMessages, Intent.MessageContent];
const connect = async (intents = ALL) => {
  const client = new Client({ intents, partials: [Partials.Channel, Partials.Message], rest: { api } });
  client.on("error", () => {});
  const ready = next(client, Events.ClientReady);
  await client.login(token);
  await ready;
  return client;
};

const ada = await act("people", { name: "Ada" });
const bob = await act("people", { name: "Bob" });
const group = (await act("groups", { title: "team", members: [ada.user, bob.user] })).chat;
const client = await connect();
const me = client.user.id;
const write = (chat, text, more = {}) => act("write", { chat, from: ada.user, text, ...more });
const heard = async (chat, text, more) => {
  const message = next(client, Events.MessageCreate, (message) => message.author.id === ada.user);
  await write(chat, text, more);
  return message;
};

const checks = {
  "the bot logs in, and knows the server, its channel and its own role": async () => {
    const guild = client.guilds.cache.first();
    assert.equal(guild.name, "Simulated");
    assert.equal(guild.channels.cache.get(group).name, "team");
    assert.ok(guild.roles.botRoleFor(me));
    assert.equal(client.application.id, me);
  },
  "a wrong token is refused": async () => {
    const rest = new REST({ api }).setToken("wrong");
    await assert.rejects(rest.get(Routes.user()), (error) => error.status === 401);
  },
  "without the privileged intent the content is empty, except in private and where the bot is named": async () => {
    const poor = await connect(ALL.slice(0, 3));
    const message = next(poor, Events.MessageCreate);
    await write(group, "for all");
    assert.equal((await message).content, "");
    const named = next(poor, Events.MessageCreate);
    await write(group, "for you", { to_bot: true });
    assert.match((await named).content, /for you$/);
    const direct = next(poor, Events.MessageCreate);
    await write(ada.chat, "in private");
    assert.equal((await direct).content, "in private");
    await poor.destroy();
  },
  "a private message comes, and is answered": async () => {
    const message = await heard(ada.chat, "hello");
    assert.equal(message.guildId, null);
    assert.equal(message.author.globalName, "Ada");
    const answer = await message.reply({ content: "hello **Ada**" });
    const last = (await shown(ada.chat)).at(-1);
    assert.equal(last.text, "hello Ada");
    assert.equal(last.answers, message.id);
    assert.equal(last.pings, true, "an answer calls, unless it is told not to");
    assert.equal(answer.author.id, me);
  },
  "a mention in a channel is one": async () => {
    const message = await heard(group, "what is new?", { to_bot: true });
    assert.ok(message.mentions.has(client.user));
    assert.equal(message.channel.name, "team");
    assert.equal(message.guild.name, "Simulated");
  },
  "a message is changed and deleted, and the bot hears of its own": async () => {
    const channel = await client.channels.fetch(group);
    const message = await channel.send("one");
    const update = next(client, Events.MessageUpdate);
    await message.edit("two");
    assert.equal((await update).id, message.id);
    assert.deepEqual(await act(`history/${group}/${message.id}`), ["one", "two"]);
    await message.delete();
    await refused(() => message.edit("three"), 10008, 404);
  },
  "people change and take back what they wrote": async () => {
    const message = await heard(group, "frist");
    const update = next(client, Events.MessageUpdate, (_, now) => now.id === message.id);
    await act("edit", { chat: group, message: message.id, text: "first" });
    await update;
    assert.equal(message.content, "first");
    assert.ok(message.editedTimestamp > 0);
    const gone = next(client, Events.MessageDelete);
    await act("recall", { chat: group, message: message.id });
    assert.equal((await gone).id, message.id);
  },
  "the same nonce makes one message": async () => {
    const channel = await client.channels.fetch(group);
    const send = () => channel.send({ content: "once", nonce: "abc-123", enforceNonce: true });
    assert.equal((await send()).id, (await send()).id);
  },
  "who may be called is up to the sender": async () => {
    const channel = await client.channels.fetch(group);
    const text = `@everyone <@${ada.user}>`;
    await channel.send({ content: text, allowedMentions: { parse: [] } });
    assert.equal((await shown(group)).at(-1).pings, false);
    await channel.send({ content: text });
    assert.equal((await shown(group)).at(-1).pings, true);
  },
  "what is too long, empty or unknown is refused in the form of a form": async () => {
    const channel = await client.channels.fetch(group);
    const error = await refused(() => channel.send("x".repeat(2001)), 50035, 400);
    assert.ok(JSON.stringify(error.rawError.errors.content).includes("BASE_TYPE_MAX_LENGTH"));
    await refused(() => client.rest.post(Routes.channelMessages(group), { body: { content: "" } }), 50006);
    await refused(() => client.rest.get(Routes.channel("1")), 10003, 404);
    await refused(() => client.rest.get("/nothing"), 0, 404);
  },
  "files go both ways": async () => {
    const message = await heard(ada.chat, "", { files: [["a b.txt", "content"]] });
    const file = message.attachments.first();
    assert.equal(file.name, "a_b.txt");
    assert.equal(await (await fetch(file.url)).text(), "content");
    const attachment = new AttachmentBuilder(Buffer.from("# Report"), { name: "report.md" });
    const sent = await message.channel.send({ content: "here", files: [attachment] });
    assert.equal(sent.attachments.first().name, "report.md");
    assert.deepEqual((await shown(ada.chat)).at(-1).files, [["report.md", 8]]);
  },
  "the history is read from a message on": async () => {
    const channel = await client.channels.fetch(group);
    const first = await write(group, "a");
    await write(group, "b");
    await write(group, "c");
    const after = await channel.messages.fetch({ after: first.message });
    assert.deepEqual(after.map((message) => message.content), ["c", "b"]);
    const oldest = await channel.messages.fetch({ after: first.message, limit: 1 });
    assert.deepEqual(oldest.map((message) => message.content), ["b"], "the oldest of what is newer");
  },
  "a thread begins from a message, once": async () => {
    const message = await heard(group, "a long story", { to_bot: true });
    const created = next(client, Events.ThreadCreate);
    const thread = await message.startThread({ name: "story" });
    assert.equal((await created).id, message.id);
    assert.equal(thread.id, message.id);
    assert.equal(thread.parentId, group);
    await thread.send("once upon a time");
    const last = (await shown(group)).at(-1);
    assert.equal(last.answers, message.id);
    await refused(() => client.rest.post(Routes.threads(group, message.id), { body: { name: "x" } }), 160004);
    const inside = await heard(group, "and then?", { answers: last.id });
    assert.equal(inside.channelId, thread.id);
  },
  "no thread in private": async () => {
    const message = await heard(ada.chat, "hello");
    await refused(() => client.rest.post(Routes.threads(ada.chat, message.id), { body: { name: "x" } }), 50024);
  },
  "typing and reactions": async () => {
    const message = await heard(ada.chat, "hello");
    await message.channel.sendTyping();
    await message.react("👀");
    assert.equal((await message.fetch()).reactions.cache.first().emoji.name, "👀");
  },
  "a button is pressed, and the answer changes the message": async () => {
    const channel = await client.channels.fetch(group);
    const button = (id) => new ButtonBuilder().setCustomId(id).setLabel(id).setStyle(ButtonStyle.Secondary);
    const row = (...ids) => new ActionRowBuilder().addComponents(...ids.map(button));
    await refused(() => channel.send({ content: "x", components: [row("a", "a")] }), 50035);
    const message = await channel.send({ content: "choose", components: [row("stop", "go")] });
    assert.deepEqual((await shown(group)).at(-1).buttons, ["stop", "go"]);
    const pressed = next(client, Events.InteractionCreate);
    await act("press", { chat: group, from: bob.user, message: message.id, button: "go" });
    const interaction = await pressed;
    assert.ok(interaction.isButton());
    assert.equal(interaction.customId, "go");
    assert.equal(interaction.user.id, bob.user);
    assert.equal(interaction.message.id, message.id);
    await interaction.deferUpdate();
    await refused(() => client.rest.post(Routes.interactionCallback(interaction.id, interaction.token), { body: { type: 6 }, auth: false }), 40060);
    await interaction.editReply({ content: "gone", components: [] });
    assert.equal((await shown(group)).at(-1).text, "gone");
  },
  "a command is registered, taken, deferred and answered": async () => {
    await client.application.commands.set([{
      name: "status", description: "How it is", options: [{ type: 3, name: "words", description: "More" }],
    }]);
    assert.equal((await client.application.commands.fetch()).size, 1);
    await assert.rejects(client.application.commands.set([{ name: "UPPER", description: "x" }]));
    const taken = next(client, Events.InteractionCreate);
    await act("command", { chat: ada.chat, from: ada.user, command: "status", words: "now" });
    const interaction = await taken;
    assert.ok(interaction.isChatInputCommand());
    assert.equal(interaction.options.getString("words"), "now");
    await interaction.deferReply();
    assert.equal((await shown(ada.chat)).at(-1).growing, true);
    await interaction.editReply("well");
    const last = (await shown(ada.chat)).at(-1);
    assert.deepEqual([last.text, last.growing], ["well", false]);
    assert.equal((await interaction.fetchReply()).content, "well");
    await interaction.followUp({ content: "and so on", flags: MessageFlags.SuppressEmbeds });
    assert.equal((await shown(ada.chat)).at(-1).text, "and so on");
    await interaction.deleteReply();
    await refused(() => interaction.fetchReply(), 10008);
  },
  "an interaction that is answered too late is not known any more": async () => {
    const taken = next(client, Events.InteractionCreate);
    await act("command", { chat: ada.chat, from: ada.user, command: "status" });
    const interaction = await taken;
    await new Promise((resolve) => setTimeout(resolve, 3200));
    await refused(() => interaction.reply("late"), 10062, 404);
  },
  "limits tell how long to wait, and the client keeps to them": async () => {
    await act("pace", { on: true });
    const channel = await client.channels.fetch(group);
    const begun = Date.now();
    for (let n = 0; n < 7; n += 1) await channel.send(`fast ${n}`);
    assert.ok(Date.now() - begun >= 3500, `${Date.now() - begun} ms`);
    await act("pace", { on: false });
    await act("fail", { method: "message.create", fault: { too_many: 1 } });
    await channel.send("after the wait");
    assert.equal((await shown(group)).at(-1).text, "after the wait");
  },
  "a missing permission is told by its code": async () => {
    await act("permission", { name: "SEND_MESSAGES", given: false });
    const channel = await client.channels.fetch(group);
    await refused(() => channel.send("no"), 50013, 403);
    await act("permission", { name: "SEND_MESSAGES", given: true });
  },
  "a broken connection is resumed, and what was missed comes": async () => {
    const message = next(client, Events.MessageCreate, (message) => message.content === "missed");
    const resumed = next(client, Events.ShardResume);
    await act("drop", {});
    await write(ada.chat, "missed");
    await resumed;
    await message;
  },
  "a wish to reconnect is followed": async () => {
    const resumed = next(client, Events.ShardResume);
    await act("gateway", { say: "reconnect" });
    await resumed;
    assert.equal((await heard(ada.chat, "still there?")).content, "still there?");
  },
  "an event that is told again is the same message": async () => {
    const message = await heard(ada.chat, "twice");
    // The library keeps the second one from its listeners.
    const again = next(client, Events.Raw, ({ t, d }) => t === "MESSAGE_CREATE" && d.id === message.id);
    await act("redeliver", { chat: ada.chat, message: message.id });
    assert.equal((await again).d.content, "twice");
  },
  "a session that is not valid any more is begun anew": async () => {
    const ready = next(client, Events.ShardReady);
    await act("gateway", { say: "invalid" });
    await ready;
    assert.equal((await heard(ada.chat, "anew")).content, "anew");
  },
  "no call was unknown": async () => {
    const calls = await act("calls");
    const unknown = calls.filter((call) => call.method === "unknown" && call.params.path !== "nothing");
    assert.deepEqual(unknown, []);
  },
};

let failed = 0;
for (const [sentence, check] of Object.entries(checks)) {
  try {
    await within(check(), "the end of the check", 20000);
    console.log(`ok      discord.js: ${sentence}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED  discord.js: ${sentence}`);
    console.error(error);
  }
}
const count = Object.keys(checks).length;
console.log(`${count - failed} of ${count} discord.js checks held`);
await client.destroy();
process.exit(failed ? 1 : 0);
