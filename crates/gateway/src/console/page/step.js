// A step of an answer: a thought, a tool call, a sub-agent. Its content is rendered when it is opened.

import { icon, make, plain, revealed } from './dom.js';
import { markdown } from './markup.js';
import { t } from './words.js';

/** Icon, label and main argument of the common tools. Others are shown by name. */
const TOOLS = {
  bash: ['i-terminal', t`Run a command`, 'command'],
  read_file: ['i-file', t`Read`, 'path'],
  write_file: ['i-pencil', t`Write`, 'path'],
  str_replace: ['i-pencil', t`Edit`, 'path'],
  ls: ['i-folder', t`List`, 'path'],
  glob: ['i-search', t`Find files`, 'pattern'],
  grep: ['i-search', t`Search in files`, 'pattern'],
  web_search: ['i-globe', t`Search the web`, 'query'],
  image_search: ['i-globe', t`Search for images`, 'query'],
  web_fetch: ['i-globe', t`Read`, 'url'],
  view_image: ['i-image', t`View image`, 'path'],
  present_files: ['i-file', t`Share files`, ''],
  write_todos: ['i-list', t`Update the to-do list`, ''],
  ask_clarification: ['i-help', t`Ask`, 'question'],
  task: ['i-people', t`Sub-agent`, 'description'],
  invoke_acp_agent: ['i-people', t`Other agent`, 'agent'],
};

/** Exit code in the last line of a command's result. */
const EXIT_CODE = /(?:^|\n)Exit Code: (-?\d+)\s*$/;
/** States of sub-agent steps without a report, by the state of the task. */
const TASK_ENDS = { failed: 'failed', 'out of time': 'failed', 'timed out': 'failed', stopped: 'stopped', cancelled: 'stopped' };

/** Maximum characters of a result that are shown at first. */
const SHOWN_CHARS = 12_000;

export class StepView {
  constructor(look) {
    this.look = look;
    this.title = make('span', { className: 'step-title', dir: 'auto' });
    this.state = make('span', { className: 'step-state' });
    this.mark = make('span', { className: 'step-mark' });
    this.body = make('div', { className: 'step-body' });
    const summary = make('summary', {}, this.mark, this.title, this.state, icon('i-chevron', 'icon step-chevron'));
    this.node = make('details', { className: 'step' }, summary, this.body);
    this.node.addEventListener('toggle', () => { if (this.node.open) this.fill(); });
  }

  update(step) {
    const signature = JSON.stringify([step.state, step.note, step.title, step.detail, step.version]);
    if (signature === this.signature) return;
    Object.assign(this, { signature, step });
    this.node.className = `step ${step.state}`;
    this.mark.replaceChildren(step.state === 'running' ? make('span', { className: 'spinner' }) : icon(step.state === 'failed' ? 'i-alert' : step.icon));
    this.title.replaceChildren(step.title, ...(step.detail ? [' ', make('span', { className: 'step-detail', textContent: plain(step.detail) })] : []));
    this.state.textContent = step.note || ({ running: t`running`, failed: t`failed`, stopped: t`stopped` }[step.state] ?? '');
    if (this.node.open) this.fill();
  }

  fill() {
    const body = this.step.body(() => this.node.open && this.fill());
    this.body.replaceChildren(...body);
  }
}

/** Creates the step of a thought. */
export const thought = (text, isDone) => ({
  state: isDone ? 'done' : 'running', icon: 'i-spark', title: isDone ? t`Thought` : t`Thinking`, version: text.length,
  body: () => [markdown(text)],
});

/** Creates the step of a tool call. `result` is the tool's message, if there is one. */
export function call({ name, args, isBroken }, { result, isLive, task, load }) {
  const [symbol, verb, key] = TOOLS[name] ?? ['i-tool', name, ''];
  const description = typeof args.description === 'string' && name !== 'task' ? args.description : '';
  const detail = firstLine(args[key] ?? (TOOLS[name] ? '' : Object.values(args).find(value => typeof value === 'string')));
  const state = result?.isError ? 'failed' : TASK_ENDS[task?.state ?? result?.task?.state] ?? (result ? 'done' : isLive ? 'running' : 'stopped');
  const code = name === 'bash' && EXIT_CODE.exec(result?.text ?? '')?.[1];
  const step = { state: code && state === 'done' ? 'wrong' : state, icon: symbol, title: description || verb, detail: description ? '' : detail, note: code ? t`exit code ${code}` : '' };
  step.version = `${result?.text.length ?? -1} ${task?.steps.length ?? 0} ${task?.state ?? ''}`;
  const hasSteps = name === 'task' || name === 'invoke_acp_agent';
  if (hasSteps) {
    if (name === 'task' && task?.agent) step.title = t`Sub-agent ${task.agent}`;
    if (state === 'running' && task) step.detail = activity(task) || detail;
  }
  step.body = again => {
    const parts =
      hasSteps ? [...subagent(args, task, again, { load, ended: result?.task })] : isEdit(name, args) ? [edit(args)] : [argsBlock(name, args, isBroken)];
    if (result && name !== 'task') parts.push(text(t`Result`, result.text, result.isError));
    return parts;
  };
  return step;
}

const firstLine = value => (typeof value === 'string' ? value.split('\n', 1)[0].slice(0, 200) : '');

/** Returns the current activity of a sub-agent. */
function activity(task) {
  const last = task.steps.filter(Boolean).at(-1);
  const next = last?.calls?.[0];
  return next ? `${TOOLS[next.name]?.[1] ?? next.name} ${firstLine(next.args?.[TOOLS[next.name]?.[2]])}` : firstLine(last?.text);
}

const isEdit = (name, args) => name === 'str_replace' && typeof args.old_str === 'string' && typeof args.new_str === 'string';

/** Shows an edit as removed and added lines. */
function edit({ path, old_str: before, new_str: after }) {
  const lines = (kind, sign, words) => (words ? words.split('\n').map(line =>
    make('span', { className: `diff-line ${kind}`, textContent: `${sign} ${revealed(line)}\n` })) : []);
  const diff = most => [...lines('removed', '-', before.slice(0, most)), ...lines('added', '+', after.slice(0, most))];
  const pre = make('pre', { tabIndex: 0, role: 'region', 'aria-label': t`Diff`, dir: 'ltr' }, ...diff(SHOWN_CHARS));
  const box = make('div', { className: 'step-text' }, make('span', { className: 'step-label', textContent: plain(String(path ?? '')) }), pre);
  if (Math.max(before.length, after.length) > SHOWN_CHARS) box.append(showAll(() => pre.replaceChildren(...diff())));
  return box;
}

function argsBlock(name, args, isBroken) {
  const only = name === 'bash' && typeof args.command === 'string' ? args.command : null;
  return text(isBroken ? t`Invalid arguments` : only !== null ? t`Command` : t`Arguments`, only ?? formatArgs(args), isBroken);
}

const formatArgs = args => (typeof args === 'string' ? args : Object.entries(args)
  .map(([key, value]) => `${key}: ${typeof value === 'string' ? value : JSON.stringify(value, null, 1)}`).join('\n'));

/** Shows an argument or a result of a tool. */
export function text(label, whole, isError = false) {
  const pre = make('pre', { tabIndex: 0, role: 'region', 'aria-label': label, dir: 'auto', className: isError ? 'wrong' : '' }, revealed(whole.slice(0, SHOWN_CHARS)));
  const box = make('div', { className: 'step-text' }, make('span', { className: 'step-label', textContent: label }), pre);
  if (whole.length > SHOWN_CHARS) box.append(showAll(() => { pre.textContent = revealed(whole); }));
  return box;
}

/** Creates the button that shows the rest of a text. */
function showAll(show) {
  const button = make('button', { type: 'button', className: 'small-button', textContent: t`Show all` });
  button.onclick = () => { show(); button.remove(); };
  return button;
}

function* subagent(args, task, again, { load, ended }) {
  if (args.prompt) yield text(t`Task`, String(args.prompt));
  if (!task?.steps.length) {
    if (load) yield make('p', { className: 'step-label', textContent: t`Loading steps…` });
    load?.().then(found => found && again());
    if (ended?.end) yield text(t`Report`, ended.end, ended.state !== 'done');
    return;
  }
  for (const step of task.steps.filter(Boolean)) {
    if (step.kind === 'tool') yield text(step.tool ?? t`Result`, step.text, step.isError);
    else {
      if (step.text) yield markdown(step.text);
      for (const one of step.calls) yield text(TOOLS[one.name]?.[1] ?? one.name, formatArgs(one.args ?? {}));
    }
  }
  if (task.end && task.end !== task.steps.at(-1)?.text) yield text(t`Report`, task.end, task.state !== 'done');
}
