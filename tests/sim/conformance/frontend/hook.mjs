// The frontend's conversation: `useStream` with its options, in a component that shows nothing and records everything.

const LONG = 30_000;

export function holds(claim, isTrue, seen) {
  if (!isTrue) throw new Error(`${claim}: ${JSON.stringify(seen)?.slice(0, 2000)}`);
}

// Makes a document to render into, and returns what mounts the hook on one of the gateways.
export async function browser(load, page) {
  const { Window } = await load("happy-dom");
  const window = new Window({ url: page });
  // `fetch` stays Node's: a stand-in for the network would prove nothing.
  for (const [name, value] of Object.entries({ window, document: window.document, navigator: window.navigator })) {
    Object.defineProperty(globalThis, name, { value, configurable: true });
  }
  const [{ createElement, useState }, { createRoot }, { Client }, { useStream }] = await Promise.all(
    ["react", "react-dom/client", "@langchain/langgraph-sdk", "@langchain/langgraph-sdk/react"].map(load),
  );
  return (root, threadId = null) => new Mount({ createElement, useState, createRoot, Client, useStream }, root, threadId);
}

// A tab of the browser with a conversation.
class Mount {
  constructor(parts, root, threadId) {
    Object.assign(this, { renders: [], updates: [], customs: [], errors: [], requests: [], waiting: [] });
    this.connections = new AbortController();
    const client = new parts.Client({ apiUrl: `${root}/api/langgraph`, callerOptions: { fetch: this.fetch.bind(this), maxRetries: 0 } });
    const View = () => {
      const [thread, setThread] = parts.useState(threadId);
      const stream = parts.useStream({
        client,
        assistantId: "lead_agent",
        threadId: thread,
        onThreadId: setThread,
        reconnectOnMount: true,
        fetchStateHistory: { limit: 1 },
        onCreated: (meta) => (this.created = meta),
        onUpdateEvent: (update) => this.updates.push(update),
        onCustomEvent: (event) => this.customs.push(event),
        onFinish: (state) => (this.finished = state),
        onError: (error) => this.errors.push(error),
      });
      Object.assign(this, { stream, thread });
      this.renders.push({ messages: stream.messages, todos: stream.values.todos, loading: stream.isLoading });
      queueMicrotask(() => this.look());
      return null;
    };
    this.root = parts.createRoot(document.createElement("div"));
    this.root.render(parts.createElement(View));
  }

  fetch(url, init = {}) {
    this.requests.push({ method: init.method ?? "GET", url: String(url), body: init.body && JSON.parse(init.body), headers: new Headers(init.headers) });
    const signals = [this.connections.signal, init.signal].filter(Boolean);
    return fetch(url, { ...init, signal: AbortSignal.any(signals) });
  }

  look() {
    this.waiting = this.waiting.filter(({ is, done }) => !(is() && (done(), true)));
  }

  // Waits until something holds after a render.
  until(claim, is) {
    return new Promise((done, failed) => {
      const late = setTimeout(() => failed(new Error(`never: ${claim}: ${JSON.stringify([this.texts(), this.errors.map(String)])}`)), LONG);
      this.waiting.push({ is, done: () => (clearTimeout(late), done()) });
      setTimeout(() => this.look());
    });
  }

  texts() {
    return this.stream?.messages.map((message) => [message.type, text(message)]);
  }

  // Sends a message as the frontend does, which shows it before the server has it.
  send(words, more = {}) {
    const message = { type: "human", content: [{ type: "text", text: words }], additional_kwargs: {} };
    return this.stream.submit(
      { messages: [message] },
      {
        streamSubgraphs: true,
        streamResumable: true,
        config: { recursion_limit: 1000 },
        context: { mode: "flash", thinking_enabled: false, is_plan_mode: false, subagent_enabled: true, ...more },
        streamMode: ["messages-tuple", "values", "updates", "custom"],
        optimisticValues: (prev) => ({ ...prev, messages: [...(prev.messages ?? []), { ...message, id: "optimistic" }] }),
      },
    );
  }

  ends() {
    return this.until("the run ends", () => !this.stream.isLoading && this.stream.messages.at(-1)?.type === "ai");
  }

  // Closes the tab: its connections end, its session storage stays.
  close() {
    this.root.unmount();
    this.connections.abort();
  }
}

const text = ({ content }) => (typeof content === "string" ? content : content.map((block) => block.text ?? "").join(""));
const ids = (messages) => messages.map((message) => message.id);
const once = (messages) => new Set(ids(messages)).size === messages.length;
// The lengths of the last answer, as they were shown.
const lengths = (renders, place) => [...new Set(renders.map(({ messages }) => (messages[place]?.type === "ai" ? text(messages[place]).length : 0)))];
const rises = (numbers) => numbers.every((number, at) => at === 0 || number > numbers[at - 1]);

async function state(root, thread) {
  return (await (await fetch(`${root}/api/threads/${thread}/state`)).json()).values;
}

export async function hook(check, { mount, quick, slow, words }) {
  const count = (message) => text(message).split(/\s+/).length;
  let tab = mount(slow);
  let thread;

  await check("words appear as a growing message, behind the question that was shown at once", async () => {
    await tab.until("the hook is there", () => tab.stream);
    tab.send("tell me");
    await tab.until("the question is shown", () => tab.stream.messages[0]?.id === "optimistic");
    await tab.ends();
    thread = tab.thread;
    const grown = lengths(tab.renders, 1);
    holds("it grows", grown.length > words / 4 && rises(grown), grown);
    holds("each message once", tab.stream.messages.length === 2 && once(tab.stream.messages), tab.texts());
    holds("the question shown at once is replaced", !ids(tab.stream.messages).includes("optimistic"), ids(tab.stream.messages));
    holds("all words", count(tab.stream.messages[1]) === words, tab.texts());
    holds("the run is told", tab.created?.run_id && tab.created.thread_id === thread, tab.created);
    holds("the end has the state", tab.finished?.values.messages.length === 2, tab.finished);
    holds("no id changes with the end", ids(tab.stream.messages).join() === ids((await state(slow, thread)).messages).join());
    const run = tab.requests.find(({ url }) => url.endsWith("/runs/stream"));
    holds("it lives on without a reader", run.body.on_disconnect === "continue" && run.body.context.mode === "flash", run.body);
    const history = tab.requests.filter(({ url }) => url.endsWith("/history"));
    holds("one checkpoint is fetched", history.length > 0 && history.every(({ body }) => body.limit === 1), history);
    holds("nothing failed", tab.errors.length === 0, tab.errors.map(String));
  });

  await check("a second turn stands behind the first", async () => {
    const before = tab.renders.length;
    tab.send("and more");
    await tab.until("the question is shown", () => tab.stream.messages.length > 2);
    await tab.until("the run ends", () => !tab.stream.isLoading && tab.stream.messages.length === 4);
    holds("in order, each once", tab.stream.messages.map(({ type }) => type).join() === "human,ai,human,ai" && once(tab.stream.messages), tab.texts());
    holds("it grows", rises(lengths(tab.renders.slice(before), 3)), lengths(tab.renders.slice(before), 3));
    holds("what was said stays", tab.renders.slice(before).every(({ messages }) => messages.length >= 2), tab.texts());
  });

  await check("a stop keeps what was said, and the thread goes on", async () => {
    tab.send("at length");
    await tab.until("some words", () => tab.stream.messages.length === 6 && count(tab.stream.messages[5]) > 5);
    const run = tab.created.run_id;
    await tab.stream.stop();
    await tab.until("it stops", () => !tab.stream.isLoading);
    const cancelled = tab.requests.find(({ url }) => url.includes(`/runs/${run}/cancel`));
    holds("it is cancelled", cancelled?.url.includes("wait=0") && cancelled.url.includes("action=interrupt"), cancelled?.url);
    const joined = await fetch(`${slow}/api/threads/${thread}/runs/${run}/join`);
    const values = await joined.json();
    const kept = count(values.messages[5]);
    holds("the partial answer stays", kept > 5 && kept < words, kept);
    const told = await (await fetch(`${slow}/api/threads/${thread}/runs/${run}`)).json();
    holds("it is interrupted", told.status === "interrupted", told.status);
    tab.send("go on");
    await tab.until("it answers", () => !tab.stream.isLoading && tab.stream.messages.length === 8);
    holds("each once", once(tab.stream.messages) && count(tab.stream.messages[7]) === words, tab.texts());
  });

  await check("a tab that is opened while a run works joins it, and sees everything exactly once", async () => {
    tab.send("once more");
    await tab.until("some words", () => tab.stream.messages.length === 10 && count(tab.stream.messages[9]) > 5);
    const run = tab.created.run_id;
    tab.close();
    tab = mount(slow, thread);
    await tab.until("it joins", () => tab.stream?.isLoading && tab.stream.messages.length === 10);
    await tab.until("the run ends", () => !tab.stream.isLoading && count(tab.stream.messages[9]) === words);
    const joined = tab.requests.filter(({ url, method }) => method === "GET" && url.includes(`/runs/${run}/stream`));
    holds("from the beginning", joined.length === 1 && joined[0].headers.get("last-event-id") === "-1", joined);
    holds("each once", tab.stream.messages.length === 10 && once(tab.stream.messages), tab.texts());
    const grown = lengths(tab.renders, 9).filter(Boolean);
    holds("it grows on", grown.length > 5 && rises(grown), grown);
    const stored = (await state(slow, thread)).messages;
    holds("as it is stored", JSON.stringify(stored.map(text)) === JSON.stringify(tab.stream.messages.map(text)), stored);
    holds("nothing is left to join", window.sessionStorage.getItem(`lg:stream:${thread}`) === null);
  });

  await check("a tab that is opened later shows the conversation, and joins nothing", async () => {
    tab.close();
    tab = mount(slow, thread);
    await tab.until("it shows the conversation", () => tab.stream?.messages.length === 10 && !tab.stream.isLoading);
    holds("it joins nothing", !tab.requests.some(({ url }) => url.includes("/stream")), tab.requests.map(({ url }) => url));
    tab.close();
  });

  await check("two tabs, a stop and a reload lose no turn of each other", async () => {
    const [one, other] = [mount(slow, thread), mount(slow, thread)];
    for (const tab of [one, other]) await tab.until("it shows the conversation", () => tab.stream?.messages.length === 10 && !tab.stream.isLoading);
    one.send("from one tab");
    await one.until("it answers", () => !one.stream.isLoading && one.stream.messages.length === 12);
    // The other tab knows nothing of that turn.
    other.send("from the other tab");
    await other.until("some words", () => other.stream.isLoading && count(other.stream.messages.at(-1)) > 5 && other.stream.messages.at(-1).type === "ai");
    await other.stream.stop();
    await other.until("it stops", () => !other.stream.isLoading);
    await fetch(`${slow}/api/threads/${thread}/runs/${other.created.run_id}/join`).then((answer) => answer.text());
    one.send("from the first tab again");
    await one.until("it answers", () => !one.stream.isLoading && one.stream.messages.at(-1)?.type === "ai" && one.stream.messages.length >= 14);
    one.close();
    other.close();
    const stored = (await state(slow, thread)).messages;
    const said = stored.filter(({ type }) => type === "human").map(text).slice(5);
    holds("each turn is there", said.join() === "from one tab,from the other tab,from the first tab again" && stored.length === 16, stored.map(text));
    tab = mount(slow, thread);
    await tab.until("a reload shows all", () => tab.stream?.messages.length === 16 && !tab.stream.isLoading);
    tab.close();
  });

  await check("tools, to-dos, updates and the work of sub-agents are seen", async () => {
    tab = mount(quick);
    await tab.until("the hook is there", () => tab.stream);
    const turn = async (words) => {
      const before = tab.stream.messages.length;
      tab.send(words, { is_plan_mode: true });
      await tab.until(words, () => !tab.stream.isLoading && tab.stream.messages.length >= before + 4);
    };
    await turn('/tool ls {"description": "look", "path": "/mnt/user-data"}');
    const [call] = tab.stream.toolCalls;
    holds("the call has its result", call?.call.name === "ls" && call.result?.content.includes("workspace"), tab.stream.toolCalls);
    const nodes = new Set(tab.updates.flatMap(Object.keys));
    holds("updates are told", nodes.has("model") && nodes.has("tools"), [...nodes]);
    await turn('/tool write_todos {"todos": [{"content": "graze", "status": "in_progress"}]}');
    holds("the to-dos are values", tab.stream.values.todos?.[0]?.content === "graze", tab.stream.values.todos);
    holds("and were so while it worked", tab.renders.some(({ todos, loading }) => loading && todos?.length === 1));
    await turn('/tool task {"description": "graze", "prompt": "eat", "subagent_type": "general-purpose"}');
    const kinds = tab.customs.map(({ type }) => type);
    holds("sub-agents are told", kinds.includes("task_started") && kinds.includes("task_completed"), tab.customs);
    holds("nothing failed", tab.errors.length === 0, tab.errors.map(String));
    tab.close();
  });
}
