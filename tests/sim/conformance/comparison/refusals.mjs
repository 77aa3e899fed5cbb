// Calls that are wrong, or about parts that one server or the other does not have, and assistants.

const UNKNOWN = "00000000-0000-4000-8000-000000000000";
const HELLO = { assistant_id: "lead_agent", input: { messages: [{ type: "human", content: "hello" }] } };

async function assistants(on) {
  await on.ask("assistants search", "POST", "/assistants/search", {});
  await on.ask("assistants search, graph", "POST", "/assistants/search", { graph_id: "none" });
  await on.ask("assistants search, name", "POST", "/assistants/search", { name: "LEAD", limit: 1 });
  await on.ask("assistants search, select", "POST", "/assistants/search", { select: ["name"], limit: 1 });
  await on.ask("assistants count", "POST", "/assistants/count", {});
  await on.ask("assistants get", "GET", "/assistants/lead_agent");
  await on.ask("assistants get, unknown", "GET", `/assistants/${UNKNOWN}`);
  await on.ask("assistants graph", "GET", "/assistants/lead_agent/graph");
  await on.sdk("assistants schemas", (client) => client.assistants.getSchemas("lead_agent"));
  await on.ask("assistants subgraphs", "GET", "/assistants/lead_agent/subgraphs");
  await on.ask("assistants versions", "POST", "/assistants/lead_agent/versions", {});
}

async function absent(on) {
  await on.ask("store put", "PUT", "/store/items", { namespace: ["a"], key: "k", value: { v: 1 } });
  await on.ask("store get", "GET", "/store/items?namespace=a&key=k");
  await on.ask("store search", "POST", "/store/items/search", { namespace_prefix: ["a"] });
  await on.ask("store namespaces", "POST", "/store/namespaces", {});
  await on.ask("crons search", "POST", "/runs/crons/search", {});
  await on.ask("ok", "GET", "/ok");
  await on.ask("info", "GET", "/info");
  await on.ask("nothing", "GET", "/nothing");
}

async function refused(on) {
  const made = await (await on.fetch("POST", "/threads", {}, {})).json();
  const thread = `/threads/${on.call(made.thread_id, "thread")}`;
  const runs = `${thread}/runs`;
  for (const [what, method, path, body] of [
    ["thread with a bad id", "GET", "/threads/not-a-uuid"],
    ["unknown thread", "GET", `/threads/${UNKNOWN}`],
    ["state of an unknown thread", "GET", `/threads/${UNKNOWN}/state`],
    ["history of an unknown thread", "POST", `/threads/${UNKNOWN}/history`, {}],
    ["runs of an unknown thread", "GET", `/threads/${UNKNOWN}/runs`],
    ["copy of an unknown thread", "POST", `/threads/${UNKNOWN}/copy`],
    ["patch of an unknown thread", "PATCH", `/threads/${UNKNOWN}`, { metadata: {} }],
    ["unknown run", "GET", `${runs}/${UNKNOWN}`],
    ["run with a bad id", "GET", `${runs}/not-a-uuid`],
    ["join of an unknown run", "GET", `${runs}/${UNKNOWN}/join`],
    ["stream of an unknown run", "GET", `${runs}/${UNKNOWN}/stream`],
    ["cancel of an unknown run", "POST", `${runs}/${UNKNOWN}/cancel`],
    ["delete of an unknown run", "DELETE", `${runs}/${UNKNOWN}`],
    ["cancel with a bad action", "POST", `${runs}/${UNKNOWN}/cancel?action=explode`],
    ["unknown checkpoint", "GET", `${thread}/state/${UNKNOWN}`],
    ["checkpoint with a bad id", "GET", `${thread}/state/nonsense`],
    ["thread, broken JSON", "POST", "/threads", "{broken"],
    ["thread, no object", "POST", "/threads", [1]],
    ["thread, metadata no object", "POST", "/threads", { metadata: 7 }],
    ["thread, id no text", "POST", "/threads", { thread_id: 7 }],
    ["thread, id no uuid", "POST", "/threads", { thread_id: "not a uuid!" }],
    ["thread, unknown if_exists", "POST", "/threads", { if_exists: "maybe" }],
    ["search, limit 0", "POST", "/threads/search", { limit: 0 }],
    ["search, limit too large", "POST", "/threads/search", { limit: 1001 }],
    ["search, limit no number", "POST", "/threads/search", { limit: "ten" }],
    ["search, negative offset", "POST", "/threads/search", { offset: -1 }],
    ["search, unknown status", "POST", "/threads/search", { status: "asleep" }],
    ["search, unknown sort_by", "POST", "/threads/search", { sort_by: "colour" }],
    ["search, unknown sort_order", "POST", "/threads/search", { sort_order: "sideways" }],
    ["search, ids no uuids", "POST", "/threads/search", { ids: ["x"] }],
    ["patch, metadata no object", "PATCH", thread, { metadata: "red" }],
    ["patch, nothing", "PATCH", thread, {}],
    ["history, limit no number", "POST", `${thread}/history`, { limit: "ten" }],
    ["history, unknown before", "POST", `${thread}/history`, { before: "x" }],
    ["state update, values no object", "POST", `${thread}/state`, { values: 7 }],
    ["state update, broken JSON", "POST", `${thread}/state`, "{"],
    ["run, broken JSON", "POST", runs, "{broken"],
    ["run, empty body", "POST", runs, ""],
    ["run, no assistant", "POST", `${runs}/wait`, { input: HELLO.input }],
    ["run, unknown assistant", "POST", runs, { ...HELLO, assistant_id: "nobody" }],
    ["run, unknown stream mode", "POST", `${runs}/stream`, { ...HELLO, stream_mode: ["sound"] }],
    ["run, stream mode no text", "POST", `${runs}/stream`, { ...HELLO, stream_mode: 7 }],
    ["run, unknown strategy", "POST", runs, { ...HELLO, multitask_strategy: "queue" }],
    ["run, unknown on_disconnect", "POST", runs, { ...HELLO, on_disconnect: "panic" }],
    ["run, unknown if_not_exists", "POST", runs, { ...HELLO, if_not_exists: "maybe" }],
    ["run, config no object", "POST", runs, { ...HELLO, config: [] }],
    ["run, metadata no object", "POST", runs, { ...HELLO, metadata: 7 }],
    ["run, message of no type", "POST", `${runs}/wait`, { ...HELLO, input: { messages: [{ type: "cat", content: "mew" }] } }],
    ["run, unknown key", "POST", `${runs}/wait`, { ...HELLO, surprise: 1 }],
    ["run, bad checkpoint", "POST", `${runs}/wait`, { ...HELLO, checkpoint_id: "x" }],
    ["another method", "PUT", "/threads/search", {}],
  ]) await on.ask(what, method, path, body);
  const noType = await on.fetch("POST", "/threads", undefined, { "content-type": "text/plain" });
  on.keep("thread, no JSON type", { status: noType.status });
  await noType.text();
}

export const TALKS = { assistants, absent, refused };
