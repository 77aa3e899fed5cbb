// Drives a running gateway with the official JavaScript client of LangGraph, and goes on after a cut connection.
//
// Usage: langgraph_client.mjs BASE_URL NODE_FOLDER
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [base, folder] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${folder}/package.json`));
const { Client } = await import(pathToFileURL(require.resolve("@langchain/langgraph-sdk")));
const { RemoteGraph } = await import(pathToFileURL(require.resolve("@langchain/langgraph/remote")));

let failed = 0;
async function check(sentence, work) {
  try {
    await work();
    console.log(`ok      langgraph-sdk (js): ${sentence}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED  langgraph-sdk (js): ${sentence}\n${error.stack}`);
  }
}
function holds(claim, isTrue, seen) {
  if (!isTrue) throw new Error(`${claim}: ${JSON.stringify(seen)?.slice(0, 2000)}`);
}

const client = new Client({ apiUrl: base });
const said = (text) => ({ messages: [{ type: "human", content: text }] });
const tool = said('/tool ls {"path": "/mnt/user-data"}');
let thread;

await check("a thread is made, found and shown", async () => {
  thread = await client.threads.create({ metadata: { by: "js" } });
  const found = await client.threads.search({ metadata: { by: "js" }, limit: 1 });
  holds("it is found", found[0].thread_id === thread.thread_id, found);
  holds("it is idle", (await client.threads.get(thread.thread_id)).status === "idle");
});

await check("a stream has pieces, values and its end, and tells the run", async () => {
  let created;
  const names = [];
  let text = "";
  let last;
  const stream = client.runs.stream(thread.thread_id, "lead_agent", {
    input: tool,
    streamMode: ["messages-tuple", "values", "updates", "custom"],
    streamResumable: true,
    onRunCreated: (run) => (created = run),
  });
  for await (const part of stream) {
    names.push(part.event);
    if (part.event === "messages" && part.data[0].type === "AIMessageChunk") text += part.data[0].content;
    if (part.event === "values") last = part.data;
  }
  holds("the run is told", created?.run_id && created.thread_id === thread.thread_id, created);
  holds("metadata is first", names[0] === "metadata", names);
  holds("pieces make the answer", text === last.messages.at(-1).content, [text, last]);
  const again = [];
  for await (const part of client.runs.joinStream(thread.thread_id, created.run_id, { lastEventId: "-1" })) {
    again.push(part.event);
  }
  holds("it is followed from the beginning", again[0] === "metadata" && again.includes("values"), again);
});

await check("a run is waited for, joined, listed and cancelled", async () => {
  const values = await client.runs.wait(thread.thread_id, "lead_agent", { input: said("hello") });
  holds("it answers", values.messages.at(-1).type === "ai", values);
  const slow = await client.runs.create(thread.thread_id, "lead_agent", {
    input: said('/tool bash {"command": "sleep 30"}'),
  });
  await client.runs.cancel(thread.thread_id, slow.run_id, true);
  const run = await client.runs.get(thread.thread_id, slow.run_id);
  holds("it is interrupted", run.status === "interrupted", run);
  const runs = await client.runs.list(thread.thread_id);
  holds("all are listed", runs.length === 3, runs.length);
});

await check("state and history are read and written", async () => {
  await client.threads.updateState(thread.thread_id, { values: { title: "Named" } });
  const state = await client.threads.getState(thread.thread_id);
  holds("the title is there", state.values.title === "Named", state.values.title);
  const past = await client.threads.getHistory(thread.thread_id, { limit: 5 });
  holds("the past has five", past.length === 5 && past[0].checkpoint.checkpoint_id, past.length);
  await client.threads.delete(thread.thread_id);
});

const text = (message) =>
  typeof message.content === "string" ? message.content : message.content.map((block) => block.text ?? "").join("");

await check("a thread is streamed in the newest protocol", async () => {
  const session = client.threads.stream({ assistantId: "lead_agent" });
  const [messages, tools, values] = [[], [], []];
  const read = async (from, into) => {
    for await (const one of from) into.push(one);
  };
  const readers = [read(session.messages, messages), read(session.toolCalls, tools), read(session.values, values)];
  await session.run.start({ input: tool });
  await Promise.all(readers);
  const state = (await client.threads.getState(session.threadId)).values.messages;
  holds("the state is there", state.map((one) => one.type).join() === "human,ai,tool,ai", state);
  const ids = (list) => list.map((one) => one.id).join();
  holds("values end in it", ids(values.at(-1).messages) === ids(state), values.at(-1));
  const said = await Promise.all(messages.map((message) => message.text));
  holds("messages have their text", JSON.stringify(said) === JSON.stringify([text(state[1]), text(state[3])]), said);
  holds("the call has its result", (await tools[0].output) === state[2].content, [tools, state]);
  const tree = await session.agent.getTree();
  holds("the run is over", tree.tree.status === "completed", tree);
  const got = await session.state.get({ namespace: [], keys: ["messages"] });
  holds("the state is read", got.values.messages.length === 4, got);
  const { checkpoints } = await session.state.listCheckpoints({ limit: 2 });
  holds("checkpoints are listed", checkpoints[0].id === got.checkpoint.id, checkpoints);
  await session.close();
});

await check("a remote graph is invoked and streamed", async () => {
  const graph = new RemoteGraph({ graphId: "lead_agent", url: base });
  const values = await graph.invoke(said("hello"));
  holds("it answers", values.messages.at(-1).type === "ai", values);
  const parts = [];
  for await (const part of await graph.stream(tool, { streamMode: ["updates", "values"] })) parts.push(part);
  holds("it is streamed", parts.some(([mode]) => mode === "updates") && parts.some(([mode]) => mode === "values"), parts);
});

process.exit(failed ? 1 : 0);
