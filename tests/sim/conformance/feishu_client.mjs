// Drives the simulated Feishu with @larksuiteoapi/node-sdk, the platform's other client: the long connection and a
// streaming card. People are played over /sim/. Arguments: address, app id, app secret, where the client is installed.

import { createRequire } from "node:module";
import assert from "node:assert/strict";

const [url, appId, appSecret, installed] = process.argv.slice(2);
const lark = createRequire(`${installed}/`)("@larksuiteoapi/node-sdk");

const post = async (path, what) => {
  const headers = { "content-type": "application/json" };
  return (await fetch(`${url}/sim/${path}`, { method: "POST", headers, body: JSON.stringify(what) })).json();
};
const get = async (path) => (await fetch(`${url}/sim/${path}`)).json();

const came = { messages: [], presses: [] };
const next = async (kept) => {
  for (let tries = 0; tries < 400; tries += 1) {
    if (kept.length > 0) return kept.shift();
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  throw new Error("no event came");
};

const quiet = { level: 0, loggerLevel: lark.LoggerLevel.fatal };
const client = new lark.Client({ appId, appSecret, domain: url, ...quiet });
const socket = new lark.WSClient({ appId, appSecret, domain: url, ...quiet });
const handlers = {
  "im.message.receive_v1": (event) => void came.messages.push(event),
  "card.action.trigger": (event) => {
    came.presses.push(event);
    return { toast: { type: "info", content: "got it" } };
  },
};
const { user: ada, chat } = await post("people", { name: "Ada" });
const write = (text) => post("write", { chat, from: ada, text });

const checks = {
  "the long connection opens, and an event comes over it": async () => {
    await socket.start({ eventDispatcher: new lark.EventDispatcher(quiet).register(handlers) });
    for (let tries = 0; tries < 200 && (await get("feishu/state")).connections === 0; tries += 1) {
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    const { message } = await write("hello");
    const event = await next(came.messages);
    assert.equal(event.message.message_id, message);
    assert.equal(JSON.parse(event.message.content).text, "hello");
  },
  "fragments in any order become one event": async () => {
    for (const order of ["straight", "reversed", "shuffled"]) {
      await post("feishu/chunks", { size: 150, order });
      await write("鹿".repeat(300));
      assert.equal(JSON.parse((await next(came.messages)).message.content).text, "鹿".repeat(300));
    }
    await post("feishu/chunks", { size: 65536 });
  },
  "a card streams, closes, and answers a press": async () => {
    const button = {
      tag: "button",
      text: { tag: "plain_text", content: "Stop" },
      behaviors: [{ type: "callback", value: { action: "/stop" } }],
    };
    const elements = [{ tag: "markdown", content: "…", element_id: "text" }, button];
    const card = { schema: "2.0", config: { streaming_mode: true }, body: { elements } };
    const data = { type: "card_json", data: JSON.stringify(card) };
    const { card_id } = (await client.cardkit.v1.card.create({ data })).data;
    const content = JSON.stringify({ type: "card", data: { card_id } });
    const sent = await client.im.v1.message.create({
      params: { receive_id_type: "chat_id" },
      data: { receive_id: chat, msg_type: "interactive", content },
    });
    await client.cardkit.v1.cardElement.content({
      path: { card_id, element_id: "text" },
      data: { content: "Hello", sequence: 1 },
    });
    const shown = async () => (await get(`shown/${chat}`)).messages.at(-1);
    assert.deepEqual([(await shown()).text, (await shown()).growing], ["Hello", true]);
    const settings = JSON.stringify({ config: { streaming_mode: false } });
    await client.cardkit.v1.card.settings({ path: { card_id }, data: { settings, sequence: 2 } });
    assert.equal((await shown()).growing, false);
    await post("press", { chat, from: ada, message: sent.data.message_id, button: "Stop" });
    assert.deepEqual((await next(came.presses)).action.value, { action: "/stop" });
    let answer = null;
    for (let tries = 0; tries < 100 && answer === null; tries += 1) {
      answer = (await get("feishu/state")).presses.at(-1)[1];
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    assert.equal(answer?.toast?.content, "got it");
  },
  "the client did nothing that the simulator calls a violation": async () => {
    assert.deepEqual((await get("feishu/state")).violations, []);
  },
};

let failed = 0;
for (const [sentence, check] of Object.entries(checks)) {
  try {
    await check();
    console.log(`ok      feishu (node): ${sentence}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED  feishu (node): ${sentence}\n${error.stack}`);
  }
}
const total = Object.keys(checks).length;
console.log(`${total - failed} of ${total} feishu (node) checks held`);
process.exit(failed > 0 ? 1 : 0);
