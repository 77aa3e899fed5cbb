// State of the open thread: loads it, and starts, follows and stops its runs. Rendering is elsewhere.

import { ApiError, get, post, request } from './api.js';
import { freshId, storage, pause } from './dom.js';
import { MODES, follow } from './stream.js';
import { Thread } from './thread.js';
import { t } from './words.js';

/** Number of messages per page. */
const PAGE = 40;
/** Number of recent runs that are fetched for their status and errors. */
const RUNS = 20;

const isOpen = run => run.status === 'pending' || run.status === 'running';

export class Conversation {
  /** `handlers` are called on events: `changed()`, `asked(request)`, `linked(up)`, `ended(run)`, `problem(text, mayTry)`. */
  constructor(id, handlers) {
    Object.assign(this, { thread: new Thread(id ?? freshId()), isNew: !id, made: id ? Promise.resolve() : null, handlers });
    // The custom agent of the thread, or null for the lead agent.
    this.agent = null;
    Object.assign(this, { following: null, queue: [], takenBack: new Set(), syncs: 0, synced: null, unsent: null, line: Promise.resolve(), life: new AbortController() });
  }

  get id() { return this.thread.id; }
  get isRunning() { return this.following !== null; }
  path(rest) { return `/api/threads/${this.id}${rest}`; }

  close() { this.life.abort(); }

  /** Loads the thread and follows its active runs. */
  async open() {
    const unsent = storage.json('unsent');
    try {
      await this.sync();
    } catch (error) {
      if (error.status !== 404 || unsent?.thread !== this.id) throw error;
      this.made = null;
    }
    // The daemon may have stored the message although its response was lost.
    if (unsent?.thread === this.id) await this.take({ ...unsent, wasSent: true });
  }

  /** Loads the current state from the daemon. */
  sync() {
    this.syncs += 1;
    this.synced = this.fetchState(this.syncs);
    return this.synced;
  }

  async fetchState(number) {
    const limit = { signal: this.life.signal };
    const [page, runs] = await Promise.all([
      get(this.path(`/messages/page?limit=${PAGE}`), limit), get(this.path(`/runs?limit=${RUNS}`), limit)]);
    // A later request supersedes this one.
    if (number !== this.syncs) return this.synced;
    this.thread.takeNewest(page, this.following?.run);
    for (const run of runs) this.thread.runs.set(run.run_id, run);
    if (runs.length) this.agent = agentOf(runs[0].kwargs?.context?.agent_name ?? runs[0].assistant_id);
    if (runs.some(isOpen)) await this.readApprovals();
    this.join(runs.filter(isOpen).reverse());
    this.handlers.changed();
    return undefined;
  }

  /** Loads the tool calls that wait for approval. */
  async readApprovals() {
    const open = await get(this.path('/approvals'), { signal: this.life.signal }).catch(() => []);
    for (const asked of open) this.thread.ask(asked);
  }

  /** Approves or denies a tool call. */
  async decide(id, approved) {
    const { status, decided_by: by } = await post(this.path(`/approvals/${id}`), { approved });
    this.thread.decide(asked => asked.id === id, { status, by });
    this.handlers.changed();
  }

  /** Loads the previous page of messages and returns whether there was one. */
  async older() {
    if (this.thread.oldest === null) return false;
    const page = await get(this.path(`/messages/page?limit=${PAGE}&before_seq=${this.thread.oldest}`), { signal: this.life.signal });
    this.thread.takeOlder(page);
    return true;
  }

  /** Follows the first of the active runs and queues the others. */
  join(open) {
    // The list may be older than a cancellation.
    const known = new Set([this.following?.run, ...this.queue.map(one => one.run), ...this.takenBack]);
    for (const run of open.filter(run => !known.has(run.run_id))) this.queue.push({ run: run.run_id, message: questionOf(run) });
    this.next();
  }

  next() {
    if (this.following || !this.queue.length) return;
    const { run, message } = this.queue.shift();
    if (message && !this.thread.messages.has(message.id)) this.thread.put({ ...message, run, isUnsaved: true });
    this.follow(run);
  }

  async follow(run, first) {
    const stop = new AbortController();
    this.following = { run, stop };
    const signal = AbortSignal.any([this.life.signal, stop.signal]);
    let failed = null;
    const take = frame => {
      if (frame.name === 'gap') this.sync().catch(() => {});
      else if (this.thread.takeFrame(frame, run)) this.handlers.changed();
      if (frame.data?.type === 'approval_requested') this.handlers.asked(frame.data.request);
    };
    this.handlers.changed();
    try {
      await follow({ thread: this.id, run, first, take, linked: up => this.handlers.linked(up), signal });
    } catch (error) { failed = error; }
    if (signal.aborted) return;
    this.following = null;
    this.thread.note = '';
    await this.settle(run, failed);
  }

  /** Replaces the streamed messages of an ended run by the stored ones. */
  async settle(run, failed) {
    if (!failed) this.thread.dropUnfinished(run);
    try {
      await this.sync();
    } catch (error) {
      if (this.life.signal.aborted) return;
      failed = error;
    }
    if (failed) this.thread.runs.set(run, { ...this.thread.runs.get(run), status: 'error', error: failed.message });
    this.handlers.changed();
    this.handlers.ended(this.thread.runs.get(run) ?? { run_id: run, status: 'success' });
    this.next();
  }

  /** Creates the thread, once. */
  make() {
    const of = this.agent ? { assistant_id: this.agent } : {};
    this.made ??= post('/api/threads', { thread_id: this.id, ...of }).catch(error => { this.made = null; throw error; });
    return this.made;
  }

  /** Sends a message. `options` are the context of its run. */
  say({ text, files, options }) {
    const message = { id: freshId(), text, files: files.map(({ name, size, path }) => ({ name, size, path })) };
    return this.take({ thread: this.id, message, options });
  }

  /** Sends messages one after the other, so that their runs keep their order. */
  take(unsent) {
    const taken = this.line.catch(() => {}).then(() => this.resend(unsent));
    this.line = taken;
    taken.catch(() => {});
    return taken;
  }

  /** Sends a message until it is stored or rejected. Retries keep its id, so it is stored once. */
  async resend(unsent) {
    this.unsent = unsent;
    storage.set('unsent', JSON.stringify(unsent));
    const { message } = unsent;
    if (!this.isRunning && !this.thread.messages.has(message.id)) this.thread.put({ kind: 'human', done: true, isUnsaved: true, ...message });
    this.handlers.changed();
    for (let tries = 0; this.unsent === unsent && !this.life.signal.aborted; tries += 1) {
      try {
        await this.make();
        const mayBeTaken = tries > 0 || unsent.wasSent;
        if (mayBeTaken && await this.wasTaken(message.id)) await this.sync();
        else await this.begin(bodyOf(unsent), message);
        return this.settled();
      } catch (error) {
        if (!(error instanceof ApiError)) { if (this.life.signal.aborted) return undefined; throw error; }
        if (!error.isTransient) return this.refused(unsent, error);
        this.problem(t`Not sent yet: ${error.message}. Trying again…`, true);
        const wait = Math.max(error.wait * 1000, Math.min(1000 * 2 ** tries, 15_000));
        this.again = new AbortController();
        await pause(wait, AbortSignal.any([this.again.signal, this.life.signal]));
      }
    }
    return undefined;
  }

  settled() {
    this.unsent = null;
    storage.set('unsent', null);
    this.problem('', false);
  }

  refused({ message }, error) {
    this.settled();
    this.thread.remove([message.id]);
    this.handlers.changed();
    throw error;
  }

  problem(text, mayTry) { this.handlers.problem(text, mayTry); }

  /** Returns whether the daemon has a run for a message. */
  async wasTaken(id) {
    const runs = await get(this.path(`/runs?limit=${RUNS}`), { signal: this.life.signal });
    return runs.some(run => run.metadata?.message_id === id);
  }

  /** Starts a run, or queues it behind the active one. */
  async begin(body, message) {
    this.isNew = false;
    const options = { body, signal: this.life.signal, timeout: 0 };
    if (this.isRunning) {
      const { run_id: run } = await (await request('POST', this.path('/runs'), options)).json();
      this.queue.push({ run, message: { kind: 'human', done: true, ...message } });
      this.handlers.changed();
      return this.next();
    }
    const first = await request('POST', this.path('/runs/stream'), options);
    const run = first.headers.get('content-location')?.split('/').pop();
    if (message) this.thread.put({ id: message.id, run });
    this.follow(run, first);
    return undefined;
  }

  /** Starts a run without input, after one that ended without an answer. */
  retry(options) { return this.begin({ ...frame(options), input: null }); }

  /** Regenerates the newest answer. */
  async regenerate(turn, options) {
    const last = turn.items.findLast(item => item.kind === 'ai') ?? turn.items.at(-1);
    const prepared = await post(this.path('/runs/regenerate/prepare'), { message_id: last.id });
    return this.replay(prepared, turn, options);
  }

  /** Replaces the text of the newest message and regenerates its answer. */
  async edit(turn, text, options) {
    const prepared = await post(this.path('/runs/edit-regenerate/prepare'), { human_message_id: turn.human.id, replacement_text: text });
    return this.replay(prepared, turn, options);
  }

  async replay({ input, checkpoint, metadata }, turn, options) {
    const [question] = input.messages;
    const body = { ...frame(options), input, checkpoint, metadata };
    const gone = [...turn.items.map(item => item.id), ...(question.id === turn.human.id ? [] : [turn.human.id])];
    const { files, sender } = turn.human;
    this.thread.remove(gone);
    const text = question.content.map(part => part.text).join('\n');
    this.thread.put({ id: question.id, kind: 'human', text, files, sender, done: true, isUnsaved: true });
    this.handlers.changed();
    try {
      await this.begin(body, { id: question.id });
    } catch (error) {
      this.thread.remove([question.id]);
      await this.sync().catch(() => {});
      throw error;
    }
  }

  /** Copies the thread up to a turn and returns the id of the copy. */
  async branch(turn) {
    const last = turn.items.at(-1) ?? turn.human;
    const made = await post(this.path('/branches'), { message_id: last.id });
    return made.thread_id;
  }

  async stop(run = this.following?.run) {
    if (!run) return;
    try {
      await post(this.path(`/runs/${run}/cancel?wait=0&action=interrupt`), {});
    } catch (error) {
      // Status 409: the run has already ended.
      if (error.status !== 409) throw error;
    }
  }

  /** Cancels a queued run. */
  async unqueue(entry) {
    await this.stop(entry.run);
    this.takenBack.add(entry.run);
    this.queue = this.queue.filter(one => one !== entry);
    this.handlers.changed();
  }
}

/** Returns the custom agent of an assistant id, or null for the lead agent. */
export const agentOf = name => (name && !['lead_agent', 'lead-agent', 'agent'].includes(name) ? name : null);

/** Returns the fields common to all run requests. */
const frame = options => ({
  assistant_id: 'lead_agent', stream_mode: MODES, on_disconnect: 'continue', multitask_strategy: 'enqueue',
  config: { recursion_limit: 1000 }, context: { ...options, approvals: 'ask' },
});

function bodyOf({ message, options }) {
  const { id, text, files } = message;
  const extra = files.length ? { files: files.map(({ name, size, path }) => ({ filename: name, size, path, status: 'uploaded' })) } : {};
  const said = { type: 'human', id, content: [{ type: 'text', text }], additional_kwargs: extra };
  return { ...frame(options), input: { messages: [said] }, metadata: { message_id: id } };
}

/** Returns the input message of a run, or null. */
function questionOf(run) {
  const [said] = run.kwargs?.input?.messages ?? [];
  if (!said?.id) return null;
  const text = typeof said.content === 'string' ? said.content : (said.content ?? []).map(part => part.text ?? '').join('\n');
  const files = (said.additional_kwargs?.files ?? []).map(file => ({ name: file.filename, size: file.size, path: file.path }));
  return { id: said.id, kind: 'human', text, files, done: true };
}
