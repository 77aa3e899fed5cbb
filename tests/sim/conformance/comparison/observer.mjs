// Asks one server, and keeps what it answers in a form in which two servers can be compared: ids have names, times and counts
// of tokens are all the same, and pieces of an answer are put together.

const KEPT_HEADERS = ["content-type", "content-location", "location", "cache-control", "x-pagination-total", "x-pagination-next"];
const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;
const TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)/g;
const COUNTS = /(_tokens|_token_details|^(cache_read|cache_creation|reasoning|audio|duration))$/;

export class Observer {
  constructor({ root, prefix, client, seen }) {
    Object.assign(this, { root, prefix, client, seen, names: new Map() });
  }

  // Calls an id by a name from now on, so that another id in its place is seen.
  call(id, name) {
    if (typeof id !== "string") throw new Error(`${name} is no id: ${JSON.stringify(id)}`);
    this.names.set(id, `<${name}>`);
    return id;
  }

  keep(what, value) {
    if (this.seen.has(what)) throw new Error(`two answers are called ${what}`);
    this.seen.set(what, this.plain(value));
  }

  // Asks over plain HTTP, and keeps status, headers and body.
  async ask(what, method, path, body, headers = {}) {
    const answer = await this.fetch(method, path, body, headers);
    const text = await answer.text();
    const told = { status: answer.status, headers: kept(answer.headers), body: read(text) };
    this.keep(what, told);
    return told.body;
  }

  // Asks for a stream, and keeps its frames.
  async stream(what, method, path, body, headers = {}) {
    const answer = await this.fetch(method, path, body, headers);
    const told = { status: answer.status, headers: kept(answer.headers) };
    const frames = parse(await answer.text());
    this.keep(what, { ...told, ids: ids(frames), frames: fold(frames) });
    return frames;
  }

  // Calls the official client, and keeps what it returns or throws.
  async sdk(what, work) {
    let value;
    try {
      value = await work(this.client);
      this.keep(what, { value });
    } catch (error) {
      if (error.status === undefined) throw error;
      this.keep(what, { error: error.name, status: error.status });
    }
    return value;
  }

  fetch(method, path, body, headers) {
    const raw = typeof body === "string";
    return fetch(`${this.root}${this.prefix}${path}`, {
      method,
      headers: body === undefined ? headers : { "content-type": "application/json", ...headers },
      body: body === undefined || raw ? body : JSON.stringify(body),
      signal: AbortSignal.timeout(120_000),
    });
  }

  plain(value, key = "") {
    if (typeof value === "string") return this.text(value, key);
    if (typeof value === "number") return COUNTS.test(key) ? "<count>" : value;
    if (Array.isArray(value)) return value.map((one) => this.plain(one, key));
    if (value === null || typeof value !== "object") return value;
    const entries = Object.entries(value).filter(([, one]) => one !== undefined);
    return Object.fromEntries(entries.map(([name, one]) => [this.text(name), this.plain(one, name)]));
  }

  text(text, key) {
    if (this.names.has(text)) return this.names.get(text);
    if (/^(id|message_id)$/.test(key) && !text.startsWith("call_")) return "<id>";
    if (/^word1( word\d+)*$/.test(text)) return "<words>";
    const [host, path] = [new URL(this.root).host, `${this.prefix}/`];
    return text
      .replaceAll(host, "<host>")
      .replace(new RegExp(`^${path}(?=threads|runs)`), "/")
      .replace(UUID, (id) => this.names.get(id) ?? "<uuid>")
      .replace(TIME, "<time>")
      .replace(/chatcmpl-sim\d+/g, "<uuid>")
      .replace(/call_sim\d+_\d+/g, "<call>");
  }
}

function kept(headers) {
  return Object.fromEntries(KEPT_HEADERS.map((name) => [name, headers.get(name)]).filter(([, value]) => value !== null));
}

function read(text) {
  try {
    return text === "" ? "" : JSON.parse(text);
  } catch {
    return text;
  }
}

// Reads frames of server-sent events.
export function parse(text) {
  const frames = text.split(/\r?\n\r?\n/).map((block) => {
    const frame = {};
    for (const line of block.split(/\r?\n/)) {
      const [, field, value] = /^(event|data|id): ?(.*)$/.exec(line) ?? [];
      if (field) frame[field] = field === "data" ? (frame.data ?? "") + value : value;
    }
    return { ...frame, data: read(frame.data ?? "") };
  });
  return frames.filter((frame) => frame.event);
}

function ids(frames) {
  const count = frames.filter((frame) => frame.id).length;
  return count === 0 ? "none" : count === frames.length ? "all" : frames.at(-1).id ? "some" : "all but the last";
}

// Puts the pieces of an answer together: how many there are is the model's business.
function fold(frames) {
  const folded = [];
  for (const { event, data } of frames) {
    const piece = pieceOf(event, data);
    const last = folded.at(-1);
    if (piece && last?.piece && last.event === event && last.id === piece.id) {
      last.text += piece.text;
      last.last = piece.message;
    } else if (piece) {
      folded.push({ event, piece: true, id: piece.id, text: piece.text, first: piece.message, last: piece.message, place: piece.place });
    } else folded.push({ event, data });
  }
  return folded.map((frame) => {
    if (!frame.piece) return frame;
    const { event, text, place } = frame;
    const [first, last] = [frame.first, frame.last].map((message) => ({ ...message, content: typeof message.content }));
    return { event, text, first, last, place };
  });
}

function pieceOf(event, data) {
  if (event === "messages" && data[0]?.tool_call_chunks) {
    return { id: data[0].id, text: data[0].content, message: data[0], place: data[1] };
  }
  if (event === "messages/partial") return { id: data[0].id, text: "", message: data[0] };
  if (event === "events" && data.event === "on_chat_model_stream") {
    const { chunk } = data.data;
    return { id: chunk.id ?? chunk.kwargs?.id, text: chunk.content ?? chunk.kwargs?.content, message: chunk, place: { ...data, data: undefined } };
  }
}

// Finds the fields in which two kept answers differ. Frames and checkpoints are compared with those of the same label, as one
// server may have some that the other has not.
export function differences(what, first, second) {
  const found = [];
  walk("", first, second);
  return found;
  function walk(path, a, b) {
    if (Array.isArray(a) && Array.isArray(b)) {
      const labelled = [a, b].map((list) => list.map(label));
      if (labelled.flat().some((name) => name === undefined)) inOrder(path, a, b);
      else aligned(path, a, b, labelled);
    } else if (isObject(a) && isObject(b)) {
      for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) walk(path ? `${path}.${key}` : key, a[key], b[key]);
    } else if (JSON.stringify(a) !== JSON.stringify(b)) found.push({ what, path, first: a, second: b });
  }
  function inOrder(path, a, b) {
    if (a.length !== b.length) found.push({ what, path: `${path}.length`, first: a.length, second: b.length });
    for (let at = 0; at < Math.min(a.length, b.length); at += 1) walk(`${path}[${at}]`, a[at], b[at]);
  }
  function aligned(path, a, b, [ours, theirs]) {
    let [i, j] = [0, 0];
    for (const [x, y] of [...common(ours, theirs), [a.length, b.length]]) {
      for (; i < x; i += 1) found.push({ what, path: `${path}(${ours[i]})`, first: a[i], second: undefined });
      for (; j < y; j += 1) found.push({ what, path: `${path}(${theirs[j]})`, first: undefined, second: b[j] });
      if (x < a.length) walk(`${path}(${ours[x]})`, a[x], b[y]);
      [i, j] = [x + 1, y + 1];
    }
  }
}

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

// Names what a frame or a checkpoint is about; nothing else has a name.
function label(one) {
  if (!isObject(one)) return undefined;
  if (Array.isArray(one.next)) return `next:${one.next.join()}`;
  if (one.event === undefined) return undefined;
  const told = one.data?.payload ?? one.data ?? {};
  const parts = [one.event, one.text === undefined ? undefined : "pieces", one.data?.event ?? one.place?.event, one.data?.type];
  if (["tasks", "debug"].includes(one.event)) parts.push(told.name, "result" in told ? "result" : undefined);
  if (Array.isArray(told.next)) parts.push(`next:${told.next.join()}`);
  if (Array.isArray(told) && told[0]?.type) parts.push(told[0].type);
  if (one.event === "updates") parts.push(...Object.keys(told));
  return parts.filter((part) => part !== undefined).join(" ");
}

// Finds the longest common subsequence of two lists: pairs of places.
function common(a, b) {
  const length = Array.from({ length: a.length + 1 }, () => new Array(b.length + 1).fill(0));
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      length[i][j] = a[i] === b[j] ? length[i + 1][j + 1] + 1 : Math.max(length[i + 1][j], length[i][j + 1]);
    }
  }
  const pairs = [];
  for (let [i, j] = [0, 0]; i < a.length && j < b.length; ) {
    if (a[i] === b[j]) pairs.push([i++, j++]);
    else if (length[i + 1][j] >= length[i][j + 1]) i += 1;
    else j += 1;
  }
  return pairs;
}
