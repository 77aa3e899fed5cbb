// Calls about threads and runs that both servers get.
import { parse } from "./observer.mjs";

const said = (content) => ({ messages: [{ type: "human", content }] });
const HELLO = said("hello");
const TOOL = said('tool ls {"path": "/mnt/user-data/uploads"}');
const SLOW = { assistant_id: "lead_agent", input: HELLO, context: { model_name: "slow" } };
const lead = (input, more = {}) => ({ assistant_id: "lead_agent", input, ...more });
const UNKNOWN = "00000000-0000-4000-8000-000000000000";
const post = (on, what, path, body, headers) => on.ask(what, "POST", path, body, headers);

async function thread(on, name, body = {}) {
  const made = await (await on.fetch("POST", "/threads", body, {})).json();
  return on.call(made.thread_id, name);
}

// Begins a run that takes some seconds, says its id once its first words came, and leaves it to itself.
async function slowRun(on, path, name) {
  const leaving = new AbortController();
  const body = { ...SLOW, stream_mode: ["messages-tuple"], on_disconnect: "continue" };
  const answer = await fetch(`${on.root}${on.prefix}${path}/runs/stream`, {
    method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" }, signal: leaving.signal,
  });
  let text = "";
  for await (const chunk of answer.body) {
    text += new TextDecoder().decode(chunk);
    if (text.includes("word2")) break;
  }
  leaving.abort();
  return on.call(parse(text)[0].data.run_id, name);
}

async function status(on, thread, run, wanted) {
  let shown;
  for (let tries = 0; tries < 2400; tries += 1) {
    shown = await (await on.fetch("GET", `/threads/${thread}/runs/${run}`, undefined, {})).json();
    if (wanted.includes(shown.status)) return shown.status;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`the run never became ${wanted}: it is ${shown.status}`);
}

async function threads(on) {
  const made = await post(on, "threads create", "/threads", { metadata: { herd: "one" } });
  const id = on.call(made.thread_id, "thread");
  await post(on, "threads create again, do_nothing", "/threads", { thread_id: id, if_exists: "do_nothing" });
  await post(on, "threads create again, raise", "/threads", { thread_id: id, if_exists: "raise" });
  await post(on, "threads create again", "/threads", { thread_id: id });
  await on.ask("threads get", "GET", `/threads/${id}`);
  await post(on, "threads search", "/threads/search", { metadata: { herd: "one" } });
  await post(on, "threads search, none", "/threads/search", { metadata: { herd: "none" } });
  await post(on, "threads search, limit", "/threads/search", { metadata: { herd: "one" }, limit: 1 });
  await post(on, "threads search, ids", "/threads/search", { ids: [id] });
  await post(on, "threads search, status", "/threads/search", { ids: [id], status: "busy" });
  await post(on, "threads search, select", "/threads/search", { ids: [id], select: ["thread_id"] });
  await post(on, "threads search, values", "/threads/search", { ids: [id], values: { title: "none" } });
  await post(on, "threads count", "/threads/count", { metadata: { herd: "one" } });
  await on.ask("threads patch", "PATCH", `/threads/${id}`, { metadata: { colour: "red" } });
  await on.ask("state of a new thread", "GET", `/threads/${id}/state`);
  await post(on, "history of a new thread", `/threads/${id}/history`, {});
  await on.ask("runs list, none", "GET", `/threads/${id}/runs`);
  await on.ask("threads delete", "DELETE", `/threads/${id}`);
  await on.ask("threads get, deleted", "GET", `/threads/${id}`);
  await on.ask("threads delete again", "DELETE", `/threads/${id}`);
}

async function runs(on) {
  const id = await thread(on, "thread");
  await post(on, "runs wait", `/threads/${id}/runs/wait`, lead(HELLO));
  await post(on, "runs wait, tool", `/threads/${id}/runs/wait`, lead(TOOL));
  const listed = await (await on.fetch("GET", `/threads/${id}/runs`, undefined, {})).json();
  listed.sort((a, b) => a.created_at.localeCompare(b.created_at));
  const [hello, tool] = [on.call(listed[0].run_id, "run"), on.call(listed[1].run_id, "tool run")];
  on.keep("runs list, oldest first", listed);
  await on.ask("runs list, limit", "GET", `/threads/${id}/runs?limit=1&select=run_id`);
  await on.ask("runs list, offset", "GET", `/threads/${id}/runs?limit=1&offset=1&select=run_id`);
  await on.ask("runs list, status", "GET", `/threads/${id}/runs?status=error`);
  await on.ask("runs list, select", "GET", `/threads/${id}/runs?limit=5&select=thread_id&select=status`);
  await on.ask("runs get", "GET", `/threads/${id}/runs/${hello}`);
  await on.ask("runs join", "GET", `/threads/${id}/runs/${tool}/join`);
  await on.ask("threads get, after runs", "GET", `/threads/${id}`);
  await post(on, "threads search, after runs", "/threads/search", { ids: [id] });
  await on.ask("runs cancel, ended", "POST", `/threads/${id}/runs/${hello}/cancel`);
  await on.ask("runs delete", "DELETE", `/threads/${id}/runs/${hello}`);
  await on.ask("runs get, deleted", "GET", `/threads/${id}/runs/${hello}`);
  const begun = await post(on, "runs create", `/threads/${id}/runs`, lead(HELLO, { metadata: { why: "test" } }));
  on.call(begun.run_id, "begun run");
  await on.ask("runs join, at work", "GET", `/threads/${id}/runs/${begun.run_id}/join`);
  await on.ask("runs get, with metadata", "GET", `/threads/${id}/runs/${begun.run_id}`);
}

async function states(on) {
  const id = await thread(on, "thread");
  await (await on.fetch("POST", `/threads/${id}/runs/wait`, lead(TOOL), {})).text();
  const state = await on.ask("state get", "GET", `/threads/${id}/state`);
  on.call(state.checkpoint.checkpoint_id, "newest checkpoint");
  const past = await post(on, "history", `/threads/${id}/history`, { limit: 20 });
  await on.ask("history by GET", "GET", `/threads/${id}/history?limit=2`);
  // The checkpoint behind the question: the oldest that has a message.
  const begun = past.findLast((one) => one.values.messages?.[0]?.type === "human");
  const old = on.call(begun.checkpoint.checkpoint_id, "old checkpoint");
  await post(on, "history, limit", `/threads/${id}/history`, { limit: 1 });
  await post(on, "history, before", `/threads/${id}/history`, { limit: 1, before: state.checkpoint.checkpoint_id });
  await on.ask("state at", "GET", `/threads/${id}/state/${old}`);
  await post(on, "state at checkpoint", `/threads/${id}/state/checkpoint`, { checkpoint: { checkpoint_id: old, checkpoint_ns: "" } });
  await post(on, "state update", `/threads/${id}/state`, { values: { title: "Herd" } });
  await on.ask("state after its update", "GET", `/threads/${id}/state`);
  await post(on, "state update, as a node", `/threads/${id}/state`, {
    values: { messages: [{ type: "ai", content: "written", id: "written-1" }] }, as_node: "model",
  });
  await on.ask("state after a message", "GET", `/threads/${id}/state`);
  await post(on, "state update, nothing", `/threads/${id}/state`, { values: null });
  const copy = await post(on, "threads copy", `/threads/${id}/copy`, undefined);
  on.call(copy.thread_id, "copy");
  await on.ask("state of the copy", "GET", `/threads/${copy.thread_id}/state`);
  await post(on, "runs wait, from a checkpoint", `/threads/${id}/runs/wait`, lead(HELLO, { checkpoint_id: old }));
  await post(on, "runs wait, from a checkpoint object", `/threads/${id}/runs/wait`, lead(HELLO, { checkpoint: { checkpoint_id: old, checkpoint_ns: "" } }));
}

const MODES = ["values", "updates", "messages-tuple", "messages", "custom", "tasks", "checkpoints", "debug", "events"];

async function streams(on) {
  for (const mode of MODES) {
    for (const [name, input] of [["hello", HELLO], ["tool", TOOL]]) {
      const id = await thread(on, "thread");
      const frames = await on.stream(`stream ${mode}, ${name}`, "POST", `/threads/${id}/runs/stream`, lead(input, { stream_mode: [mode] }));
      on.call(frames[0].data.run_id, "run");
    }
  }
  const id = await thread(on, "thread");
  const several = lead(TOOL, { stream_mode: ["values", "messages-tuple", "updates", "custom"], stream_resumable: true });
  const frames = await on.stream("stream, several modes", "POST", `/threads/${id}/runs/stream`, several);
  const run = on.call(frames[0].data.run_id, "run");
  await on.stream("stream, no mode", "POST", `/threads/${id}/runs/stream`, lead(HELLO));
  await on.stream("join stream, ended, from the beginning", "GET", `/threads/${id}/runs/${run}/stream`, undefined, { "last-event-id": "-1" });
  await on.stream("stream, todos", "POST", `/threads/${id}/runs/stream`, lead(
    said('tool write_todos {"todos": [{"content": "graze", "status": "completed"}]}'), { stream_mode: ["values", "updates"] },
  ));
  const failed = await on.stream("stream, model fails", "POST", `/threads/${id}/runs/stream`, lead(said("status 401"), { stream_mode: ["values"] }));
  const failedRun = on.call(failed[0].data.run_id, "failed run");
  await on.ask("threads get, after a failure", "GET", `/threads/${id}`);
  await on.ask("runs get, failed", "GET", `/threads/${id}/runs/${failedRun}`);
  await on.ask("runs join, failed", "GET", `/threads/${id}/runs/${failedRun}/join`);
  await post(on, "runs wait, model fails", `/threads/${id}/runs/wait`, lead(said("status 401")));
}

// Follows a run at work, is cut off, and goes on behind the last frame that came.
async function resumed(on) {
  const id = await thread(on, "thread");
  const path = `/threads/${id}/runs`;
  const body = { ...SLOW, stream_mode: ["values", "messages-tuple"], stream_resumable: true, on_disconnect: "continue" };
  const reading = new AbortController();
  const answer = await fetch(`${on.root}${on.prefix}${path}/stream`, {
    method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" }, signal: reading.signal,
  });
  let text = "";
  for await (const chunk of answer.body) {
    text += new TextDecoder().decode(chunk);
    if (parse(text).filter((frame) => frame.event === "messages").length > 5) break;
  }
  reading.abort();
  const before = parse(text.slice(0, text.lastIndexOf("\n\n")));
  const run = on.call(before[0].data.run_id, "run");
  const after = parse(await (await on.fetch("GET", `${path}/${run}/stream?stream_mode=values&stream_mode=messages-tuple`, undefined, { "last-event-id": before.at(-1).id })).text());
  const pieces = (frames) => frames.filter((frame) => frame.event === "messages").map((frame) => frame.data[0].content);
  const state = await (await on.fetch("GET", `/threads/${id}/state`, undefined, {})).json();
  const whole = [...pieces(before), ...pieces(after)].join("");
  on.keep("stream, cut and gone on with", {
    "pieces are the answer": whole === state.values.messages.at(-1).content,
    "begins again with metadata": after[0]?.event === "metadata",
    "names behind the cut": [...new Set(after.map((frame) => frame.event))],
  });
}

async function multitask(on) {
  for (const strategy of ["reject", "interrupt", "rollback", "enqueue"]) {
    const id = await thread(on, "thread");
    const first = await slowRun(on, `/threads/${id}`, "first run");
    if (strategy === "reject") {
      await on.ask("threads get, busy", "GET", `/threads/${id}`);
      await on.ask("state, busy", "GET", `/threads/${id}/state`);
      await post(on, "state update, busy", `/threads/${id}/state`, { values: { todos: [] } });
    }
    const second = await post(on, `multitask ${strategy}`, `/threads/${id}/runs`, lead(HELLO, { multitask_strategy: strategy }));
    if (strategy === "reject") {
      await on.ask("runs cancel, wait", "POST", `/threads/${id}/runs/${first}/cancel?wait=1`);
    } else await on.ask(`multitask ${strategy}, joined`, "GET", `/threads/${id}/runs/${on.call(second.run_id, "second run")}/join`);
    const shown = await (await on.fetch("GET", `/threads/${id}/runs/${first}`, undefined, {})).json();
    on.keep(`multitask ${strategy}, the first run`, { status: shown.status, detail: shown.detail });
    await on.ask(`multitask ${strategy}, the thread`, "GET", `/threads/${id}`);
  }
}

// The headers of what is waited for come before its end.
async function waiting(on) {
  const id = await thread(on, "thread");
  const answer = await on.fetch("POST", `/threads/${id}/runs/wait`, SLOW, {});
  const listed = await (await on.fetch("GET", `/threads/${id}/runs`, undefined, {})).json();
  on.keep("runs wait, the headers come first", { "content-location": answer.headers.has("content-location"), "at work": ["pending", "running"].includes(listed[0].status) });
  await answer.text();
}

async function cancelling(on) {
  for (const query of ["", "?wait=0&action=interrupt", "?wait=true&action=rollback"]) {
    const id = await thread(on, "thread");
    const run = await slowRun(on, `/threads/${id}`, "run");
    await on.ask(`runs cancel ${query}`, "POST", `/threads/${id}/runs/${run}/cancel${query}`);
    if (!query.includes("rollback")) on.keep(`runs cancel ${query}, status`, await status(on, id, run, ["interrupted", "error", "success"]));
  }
  const heldThread = await thread(on, "held thread");
  const held = await slowRun(on, `/threads/${heldThread}`, "held run");
  await on.ask("runs delete, at work", "DELETE", `/threads/${heldThread}/runs/${held}`);
  await on.ask("threads delete, at work", "DELETE", `/threads/${heldThread}`);
  await (await on.fetch("POST", `/threads/${heldThread}/runs/${held}/cancel?wait=1`, undefined, {})).text();
  const left = await thread(on, "left thread");
  for (const on_disconnect of ["cancel", "continue"]) {
    const leaving = new AbortController();
    const answer = await fetch(`${on.root}${on.prefix}/threads/${left}/runs/stream`, {
      method: "POST", signal: leaving.signal, headers: { "content-type": "application/json" },
      body: JSON.stringify({ ...SLOW, on_disconnect }),
    });
    const [{ value }] = [await answer.body.getReader().read()];
    const run = parse(new TextDecoder().decode(value))[0].data.run_id;
    leaving.abort();
    on.keep(`on_disconnect ${on_disconnect}, status`, await status(on, left, run, ["interrupted", "error", "success"]));
  }
}

async function stateless(on) {
  const told = await post(on, "stateless create", "/runs", lead(HELLO));
  on.call(told.run_id, "run");
  await post(on, "stateless wait", "/runs/wait", lead(HELLO));
  await on.stream("stateless stream", "POST", "/runs/stream", lead(HELLO, { stream_mode: ["values"] }));
  await post(on, "stateless wait, kept", "/runs/wait", lead(HELLO, { on_completion: "keep" }));
  await post(on, "stateless batch", "/runs/batch", [lead(HELLO), lead(HELLO)]);
  await post(on, "runs on no thread", `/threads/${UNKNOWN}/runs/wait`, lead(HELLO));
  const fresh = on.call(crypto.randomUUID(), "fresh thread");
  await post(on, "runs, if_not_exists create", `/threads/${fresh}/runs/wait`, lead(HELLO, { if_not_exists: "create" }));
  await post(on, "runs, if_not_exists reject", `/threads/${UNKNOWN}/runs/wait`, lead(HELLO, { if_not_exists: "reject" }));
}

// A question of the agent, and its answer.
async function questions(on) {
  const id = await thread(on, "thread");
  const asked = lead(said('tool ask_clarification {"question": "Which meadow?", "clarification_type": "missing_info"}'), { stream_mode: ["values", "updates"] });
  await on.stream("stream, a question", "POST", `/threads/${id}/runs/stream`, asked);
  await on.ask("threads get, asked", "GET", `/threads/${id}`);
  await on.ask("state, asked", "GET", `/threads/${id}/state`);
  await post(on, "runs wait, resumed", `/threads/${id}/runs/wait`, { assistant_id: "lead_agent", command: { resume: "the green one" } });
  await on.ask("threads get, answered", "GET", `/threads/${id}`);
}

export const TALKS = { threads, runs, states, streams, resumed, multitask, waiting, cancelling, stateless, questions };
