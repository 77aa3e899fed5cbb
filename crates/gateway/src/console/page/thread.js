// Messages of a thread in order, merged from stored pages and streamed events.

import { t } from './words.js';

/** Returns the text of a message's content. */
function textOf(content) {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.map(part => (typeof part === 'string' ? part : part?.text ?? '')).filter(Boolean).join('\n');
}

const KINDS = { human: 'human', ai: 'ai', AIMessageChunk: 'ai', tool: 'tool' };

const callOf = call => ({ id: call.id, name: call.name ?? 'tool', args: call.args ?? {}, isBroken: call.type === 'invalid_tool_call' });

/** Parses a message of the API. Returns null for hidden messages and for error messages: the failure of a run is shown below its turn, in
 *  the language of the page. */
function messageOf(sent, run) {
  const kind = KINDS[sent?.type];
  const extra = sent?.additional_kwargs ?? {};
  if (!kind || extra.hide_from_ui || extra.deerflow_error_fallback) return null;
  const message = { id: sent.id, kind, text: textOf(sent.content), run, done: true };
  if (kind === 'human') {
    message.files = (extra.files ?? []).map(file => ({ name: file.filename ?? file.name ?? '', size: file.size, path: file.path ?? file.virtual_path }));
    message.sender = sent.name;
  }
  if (kind === 'ai') {
    message.reasoning = extra.reasoning_content ?? '';
    message.calls = [...(sent.tool_calls ?? []), ...(sent.invalid_tool_calls ?? [])].map(callOf);
    message.finish = sent.response_metadata?.finish_reason;
    message.seconds = extra.turn_duration;
  }
  if (kind === 'tool') {
    Object.assign(message, { call: sent.tool_call_id, tool: sent.name, isError: sent.status === 'error' });
    message.question = sent.artifact?.human_input;
    if (extra.subagent_status) message.task = { state: taskState(extra.subagent_status), end: extra.subagent_result_brief ?? extra.subagent_error };
    message.approvals = (extra.approvals ?? []).map(decided => ({ ...decided, status: statusOf(decided) }));
  }
  return message;
}

const statusOf = ({ approved, by }) => (by ? (approved ? 'approved' : 'denied') : 'expired');

/** Events of sub-agents, with the resulting state of the task. */
const TASK_STATES = {
  task_started: 'running', task_running: 'running', task_completed: 'done', task_failed: 'failed',
  task_cancelled: 'stopped', task_timed_out: 'out of time',
};

/** Returns the task state for a stored status. */
const taskState = status => (status === 'completed' ? 'done' : status.replace('_', ' '));

export class Thread {
  constructor(id) {
    Object.assign(this, { id, messages: new Map(), order: [], oldest: null, tasks: new Map(), runs: new Map(), approvals: new Map(), judged: new Map() });
    Object.assign(this, { todos: [], artifacts: null, title: '', note: '' });
  }

  /** Merges the newest page. Messages that it no longer contains are removed, except those of the `followed` run, which may be newer than
   *  the page. */
  takeNewest({ data, next_before_seq: oldest }, followed) {
    const fresh = this.take(data);
    const meets = fresh.length ? this.order.indexOf(fresh[0]) : 0;
    if (meets < 0 || !this.order.length) this.oldest = oldest;
    const before = meets > 0 ? this.order.slice(0, meets) : [];
    const taken = new Set(fresh);
    // Keep messages that are not stored yet, and an answer that is still streaming.
    const isOpen = message => message?.isUnsaved || message?.done === false || (followed && message?.run === followed);
    const isKept = id => !taken.has(id) && isOpen(this.messages.get(id));
    const rest = meets > 0 ? this.order.slice(meets) : this.order;
    this.order = [...before, ...fresh, ...rest.filter(isKept)];
    const shown = new Set(this.order);
    for (const id of this.messages.keys()) if (!shown.has(id)) this.messages.delete(id);
    this.readTodos();
  }

  /** Prepends a page of older messages. */
  takeOlder({ data, next_before_seq: oldest }) {
    const known = new Set(this.order);
    this.order = [...this.take(data).filter(id => !known.has(id)), ...this.order];
    this.oldest = oldest;
  }

  /** Stores a rating given on this page, which a page loaded before does not contain. */
  judge(id, rating) {
    this.judged.set(id, rating);
    this.messages.get(id).rating = rating;
  }

  take(rows) {
    const ids = [];
    for (const row of rows) {
      const message = messageOf(row.content, row.run_id);
      if (!message) continue;
      // Messages copied from another thread have no run in this one.
      const rating = this.judged.has(message.id) ? this.judged.get(message.id) : row.feedback?.rating;
      Object.assign(message, { at: row.created_at, rating, hasRun: row.run_id !== null });
      // The reasoning of some providers is not stored, so keep the streamed one.
      message.reasoning ||= this.messages.get(message.id)?.reasoning ?? '';
      this.messages.set(message.id, message);
      ids.push(message.id);
    }
    return ids;
  }

  readTodos() {
    for (const id of this.order.toReversed()) {
      const call = this.messages.get(id)?.calls?.findLast(one => one.name === 'write_todos' && Array.isArray(one.args.todos));
      if (call) { this.todos = call.args.todos; return; }
    }
  }

  /** Appends a message, or updates the one with the same id. */
  put(message) {
    if (!this.messages.has(message.id)) this.order.push(message.id);
    const known = this.messages.get(message.id);
    this.messages.set(message.id, { ...known, ...message, reasoning: message.reasoning || known?.reasoning || '' });
  }

  remove(ids) {
    const gone = new Set(ids);
    this.order = this.order.filter(id => !gone.has(id));
    for (const id of gone) this.messages.delete(id);
  }

  /** Removes the incomplete messages of a run. */
  dropUnfinished(run) {
    this.remove([...this.messages.values()].filter(message => message.run === run && !message.done).map(message => message.id));
  }

  /** Applies an event of a run and returns whether the view changes. */
  takeFrame({ name, data }, run) {
    if (name === 'messages') return this.takePiece(data[0], run);
    if (name === 'updates') return this.takeUpdates(data, run);
    if (name === 'custom') return this.takeCustom(data, run);
    if (name === 'error') this.runs.set(run, { ...this.runs.get(run), status: 'error', error: data?.message, kind: data?.name });
    return name === 'error';
  }

  takePiece(piece, run) {
    if (piece.type !== 'AIMessageChunk') {
      const message = messageOf(piece, run);
      if (message) this.put(message);
      return message !== null;
    }
    if (piece.additional_kwargs?.deerflow_error_fallback) return false;
    let message = this.messages.get(piece.id);
    // A repeated stream contains known messages.
    if (message?.done) return false;
    if (!message) {
      // A run writes one message at a time, so an unfinished earlier one was abandoned.
      this.dropUnfinished(run);
      message = { id: piece.id, kind: 'ai', text: '', reasoning: '', calls: [], run, done: false };
      this.put(message);
      message = this.messages.get(piece.id);
    }
    this.note = '';
    message.text += textOf(piece.content);
    message.reasoning += piece.additional_kwargs?.reasoning_content ?? '';
    if (piece.chunk_position === 'last') {
      message.done = true;
      message.calls = messageOf(piece, run).calls;
    }
    return true;
  }

  takeUpdates(data, run) {
    for (const update of Object.values(data ?? {})) {
      for (const sent of update?.messages ?? []) {
        const message = messageOf(sent, run);
        if (message) this.put(message);
      }
      if (update?.todos) this.todos = update.todos;
      if (update?.artifacts) this.artifacts = update.artifacts;
    }
    return true;
  }

  takeCustom(data, run) {
    if (data?.type === 'llm_retry') {
      // The retry discards the partial reply.
      for (const message of this.messages.values()) if (message.run === run && !message.done) Object.assign(message, { text: '', reasoning: '' });
      const seconds = Math.ceil((data.wait_ms ?? 0) / 1000);
      this.note = data.reason === 'rate_limited' ? t`Rate limited; retrying in ${seconds} s…` : t`The model did not respond; retrying…`;
    }
    if (data?.type === 'summarizing') this.note = t`Summarizing the conversation…`;
    if (data?.type === 'summarized') this.note = '';
    if (data?.type === 'approval_requested') this.ask({ ...data, id: data.key, run_id: run });
    if (data?.type === 'approval_decided') this.decide(asked => asked.run_id === run && asked.call_id === data.call_id, { ...data, status: statusOf(data) });
    if (TASK_STATES[data?.type]) this.takeTask(data);
    return true;
  }

  /** Adds a call that waits for approval, unless it is known already. */
  ask(asked) { if (!this.approvals.has(asked.id)) this.approvals.set(asked.id, { ...asked, status: 'open' }); }

  /** Stores the decision on the first open call that matches. */
  decide(isMeant, { status, by }) {
    const asked = [...this.approvals.values()].find(one => one.status === 'open' && isMeant(one));
    if (asked) Object.assign(asked, { status, by });
  }

  /** Returns the approvals of a call and of its sub-agent: the stored ones, or else the streamed ones. */
  asked(call, result) {
    if (result?.approvals.length) return result.approvals;
    return [...this.approvals.values()].filter(one => one.call_id === call || one.call_id.startsWith(`${call}/`));
  }

  takeTask(data) {
    const task = this.tasks.get(data.task_id) ?? { steps: [] };
    task.state = TASK_STATES[data.type];
    Object.assign(task, { agent: data.subagent_type ?? task.agent, model: data.model_name ?? task.model });
    if (data.message) task.steps[data.message_index ?? task.steps.length] = stepOf(data.message);
    if (data.result ?? data.error) task.end = data.result ?? data.error;
    this.tasks.set(data.task_id, task);
  }

  /** Loads a task from its stored events. */
  takeStoredTask(id, events) {
    const task = { steps: [], ...this.tasks.get(id) };
    for (const { event_type: kind, content } of events) {
      if (kind === 'subagent.start') Object.assign(task, { agent: content.subagent_type, model: content.model_name });
      if (kind === 'subagent.step') {
        const calls = content.tool_calls?.map(call => ({ ...call, id: call.id ?? '' }));
        task.steps[content.message_index] = stepOf({ type: content.kind, content: content.text, tool_calls: calls, name: content.tool_name, status: content.error ? 'error' : '' });
      }
      if (kind === 'subagent.end') Object.assign(task, { state: taskState(content.status), end: content.result ?? content.error });
    }
    this.tasks.set(id, task);
  }

  /** Returns the turns: a user's message with the messages that answer it. */
  turns() {
    const turns = [];
    for (const id of this.order) {
      const message = this.messages.get(id);
      if (message.kind === 'human') turns.push({ key: id, human: message, items: [], run: message.run });
      else {
        if (!turns.length) turns.push({ key: `before-${id}`, human: null, items: [], run: message.run });
        turns.at(-1).items.push(message);
        turns.at(-1).run = message.run ?? turns.at(-1).run;
        turns.at(-1).hasRun = message.hasRun !== false;
      }
    }
    return turns;
  }

  /** Returns the unanswered question of the agent, if there is one. */
  openQuestion() {
    const last = this.messages.get(this.order.at(-1));
    return last?.kind === 'tool' ? last.question : undefined;
  }
}

const stepOf = message => ({
  kind: message.type, text: textOf(message.content), tool: message.name, isError: message.status === 'error',
  calls: (message.tool_calls ?? []).map(callOf),
});
