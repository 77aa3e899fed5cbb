// Calls of the official JavaScript client that both servers get, a record of those that were made, and those that are refused.

const said = (content) => ({ messages: [{ type: "human", content }] });
const HELLO = said("hello");

// Lists every call that the client has, as `threads.get_state`.
export function callsOf(client) {
  const found = [];
  for (const [part, calls] of Object.entries(client)) {
    if (part.startsWith("_") || calls === null || typeof calls !== "object") continue;
    const own = Object.getOwnPropertyNames(Object.getPrototypeOf(calls)).filter((name) => name !== "constructor" && !name.startsWith("_"));
    found.push(...own.map((name) => named(part, name)));
  }
  return found;
}

const named = (part, name) => `${part.replace("~", "")}.${name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}`;

// Wraps a client so that the calls made are entered in a set.
export function recorded(client, made) {
  const wrap = (part, calls) =>
    new Proxy(calls, {
      get(target, name) {
        const value = Reflect.get(target, name);
        if (typeof value !== "function") return value;
        return (...given) => {
          made.add(named(part, String(name)));
          return value.apply(target, given);
        };
      },
    });
  const parts = Object.entries(client).filter(([, calls]) => calls !== null && typeof calls === "object");
  return Object.fromEntries(parts.map(([part, calls]) => [part, wrap(part, calls)]));
}

async function client(on) {
  const thread = await on.sdk("client threads.create", (client) => client.threads.create({ metadata: { herd: "client" } }));
  const id = on.call(thread.thread_id, "thread");
  await on.sdk("client threads.get", (client) => client.threads.get(id));
  await on.sdk("client threads.update", (client) => client.threads.update(id, { metadata: { colour: "red" } }));
  await on.sdk("client threads.search", (client) => client.threads.search({ ids: [id], select: ["thread_id", "metadata"] }));
  await on.sdk("client threads.count", (client) => client.threads.count({ metadata: { herd: "client" } }));
  const frames = [];
  let created;
  const options = { input: HELLO, streamMode: ["values", "updates"], onRunCreated: (run) => (created = run) };
  await on.sdk("client runs.stream", async (client) => {
    for await (const { event, data } of client.runs.stream(id, "lead_agent", options)) frames.push({ event, data });
    return frames;
  });
  const run = on.call(created.run_id, "run");
  await on.sdk("client runs.join_stream", async (client) => {
    const names = [];
    for await (const { event } of client.runs.joinStream(id, run, { streamMode: ["values"] })) names.push(event);
    return names;
  });
  await on.sdk("client runs.get", (client) => client.runs.get(id, run));
  await on.sdk("client runs.list", (client) => client.runs.list(id, { limit: 5, select: ["run_id", "status"] }));
  await on.sdk("client runs.join", (client) => client.runs.join(id, run));
  await on.sdk("client runs.wait", (client) => client.runs.wait(id, "lead_agent", { input: HELLO }));
  await on.sdk("client runs.wait, fails", (client) => client.runs.wait(id, "lead_agent", { input: said("status 401"), raiseError: false }).then((values) => Object.keys(values)));
  const begun = await on.sdk("client runs.create", (client) => client.runs.create(id, "lead_agent", { input: HELLO }));
  await on.sdk("client runs.join, begun", (client) => client.runs.join(id, on.call(begun.run_id, "begun run")).then(Object.keys));
  await on.sdk("client runs.delete", (client) => client.runs.delete(id, begun.run_id));
  await on.sdk("client runs.get, deleted", (client) => client.runs.get(id, begun.run_id));
  await on.sdk("client threads.get_state", (client) => client.threads.getState(id).then((state) => Object.keys(state).sort()));
  await on.sdk("client threads.update_state", (client) => client.threads.updateState(id, { values: { todos: [] } }).then((told) => told.checkpoint));
  await on.sdk("client threads.get_history", (client) => client.threads.getHistory(id, { limit: 2 }).then((past) => past.map((one) => [one.next, one.metadata.step])));
  await on.sdk("client assistants.get_schemas", (client) => client.assistants.getSchemas("lead_agent").then((told) => Object.keys(told).sort()));
  await on.sdk("client threads.copy", (client) => client.threads.copy(id));
  await on.sdk("client assistants.search", (client) => client.assistants.search({ limit: 1, includePagination: true }));
  await on.sdk("client assistants.count", (client) => client.assistants.count());
  await on.sdk("client assistants.get", (client) => client.assistants.get("lead_agent"));
  await on.sdk("client assistants.get_graph", (client) => client.assistants.getGraph("lead_agent"));
  await on.sdk("client assistants.get_subgraphs", (client) => client.assistants.getSubgraphs("lead_agent"));
  const slow = await on.sdk("client runs.create, slow", (client) =>
    client.runs.create(id, "lead_agent", { input: HELLO, context: { model_name: "slow" } }).then(({ run_id, status }) => ({ run_id, status })));
  await on.sdk("client runs.cancel", (client) => client.runs.cancel(id, slow.run_id, true));
  await on.sdk("client threads.delete", (client) => client.threads.delete(id));
  await on.sdk("client threads.get, deleted", (client) => client.threads.get(id));
}

export const TALKS = { client };

// The calls that the documents say are refused, as they are made.
const REFUSED = {
  "assistants.create": (client) => client.assistants.create({ graphId: "lead_agent" }),
  "assistants.update": (client) => client.assistants.update("lead_agent", { name: "other" }),
  "assistants.delete": (client) => client.assistants.delete("lead_agent"),
  "assistants.get_versions": (client) => client.assistants.getVersions("lead_agent"),
  "assistants.set_latest": (client) => client.assistants.setLatest("lead_agent", 1),
  "crons.create": (client) => client.crons.create("lead_agent", { schedule: "0 0 * * *" }),
  "crons.create_for_thread": (client, thread) => client.crons.createForThread(thread, "lead_agent", { schedule: "0 0 * * *" }),
  "crons.update": (client, id) => client.crons.update(id, {}),
  "crons.delete": (client, id) => client.crons.delete(id),
  "crons.search": (client) => client.crons.search(),
  "crons.count": (client) => client.crons.count(),
  "store.put_item": (client) => client.store.putItem(["a"], "k", { v: 1 }),
  "store.get_item": (client) => client.store.getItem(["a"], "k"),
  "store.delete_item": (client) => client.store.deleteItem(["a"], "k"),
  "store.search_items": (client) => client.store.searchItems(["a"]),
  "store.list_namespaces": (client) => client.store.listNamespaces(),
  "runs.create_batch": (client) => client.runs.createBatch([{ assistantId: "lead_agent", input: HELLO }]),
  "runs.cancel_many": (client, thread) => client.runs.cancelMany({ threadId: thread, runIds: [thread] }),
  "threads.prune": (client, thread) => client.threads.prune([thread]),
  "threads.join_stream": async (client, thread) => {
    for await (const _ of client.threads.joinStream(thread)) break;
  },
  "threads.stream": async (client, thread) => {
    const stream = client.threads.stream(thread, { assistantId: "lead_agent", maxReconnectAttempts: 0 });
    try {
      await stream.run.start({ input: HELLO });
    } finally {
      await stream.close?.();
    }
  },
  "threads.patch_state": (client, thread) => client.threads.patchState(thread, {}),
  "ui.get_component": async (client) => {
    const page = await client["~ui"].getComponent("lead_agent", "lead_agent");
    const { detail } = JSON.parse(page);
    throw Object.assign(new Error(detail), { status: 404 });
  },
};

// Reads the table of refused calls in the documents: each call with its status.
export function refusedCalls(text) {
  const rows = text.split("\n").map((line) => /^\| (`[a-z]+\.[a-z_]+`.*?) \| (\d{3}) \|/.exec(line)).filter(Boolean);
  return new Map(rows.flatMap(([, calls, status]) => [...calls.matchAll(/`([^`]+)`/g)].map(([, call]) => [call, Number(status)])));
}

// Makes every refused call, and says where the answer is not the one of the documents.
export async function refusals(client, table) {
  const thread = "00000000-0000-4000-8000-000000000000";
  const wrong = [];
  for (const [name, status] of table) {
    const call = REFUSED[name];
    const answer = call ? await call(client, thread).then(() => "success", (error) => error.status ?? `${error}`) : "no such call";
    if (answer !== status && !String(answer).includes(`${status}`)) wrong.push(`${name}: ${answer}, and not ${status}`);
  }
  return wrong;
}
