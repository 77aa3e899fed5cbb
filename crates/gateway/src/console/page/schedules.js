// Dialogs of scheduled tasks: the list, the runs of a task, and the form to create or edit one.

import { call, get, post } from './api.js';
import { confirmed, labelled, panel, show } from './dialogs.js';
import { dateText, make } from './dom.js';
import { times, timesText } from './times.js';
import { language, t } from './words.js';

const PATH = '/api/scheduled-tasks';
const RUNS = 10;

const STATES = { enabled: t`On`, paused: t`Paused`, running: t`Running`, completed: t`Done`, failed: t`Failed`, cancelled: t`Cancelled` };
const RUN_STATES = {
  queued: t`Waiting`, running: t`Running`, success: t`Succeeded`, failed: t`Failed`, skipped: t`Skipped`, interrupted: t`Stopped`,
};

const hint = text => make('p', { className: 'hint', textContent: text });
const button = (label, onclick, className = 'button') => make('button', { type: 'button', className, textContent: label, onclick });

/** Opens the list of the user's scheduled tasks. `thread` is the id of the open conversation, or null. */
export async function showSchedules(thread) {
  const list = make('div', { className: 'tasks', tabIndex: 0, role: 'region', 'aria-label': t`Scheduled tasks` }, hint(t`Loading…`));
  const wrong = make('p', { className: 'wrong', role: 'alert', hidden: true });
  const refresh = async () => {
    const tasks = await get(PATH);
    list.replaceChildren(...(tasks.length ? tasks.map(task => row(task, { attempt, refresh, thread })) : [hint(t`You have no scheduled tasks.`)]));
  };
  const attempt = async work => {
    wrong.hidden = true;
    try { await work(); } catch (error) { Object.assign(wrong, { hidden: false, textContent: error.message }); }
  };
  const create = button(t`New task`, () => openForm(null, thread, () => attempt(refresh)), 'button main');
  const dialog = panel(t`Scheduled tasks`, wrong, list, make('div', { className: 'row' }, create));
  // A link to a conversation closes the dialog.
  dialog.addEventListener('click', event => { if (event.target.closest('a')) dialog.close(); });
  await attempt(refresh);
}

function row(task, { attempt, refresh, thread }) {
  const path = `${PATH}/${encodeURIComponent(task.id)}`;
  const isEnded = ['completed', 'cancelled'].includes(task.status);
  const act = (name, request) => button(name, () => attempt(async () => { await request(); await refresh(); }));
  const remove = async () => {
    const text = t`Its runs and conversations are kept.`;
    if (await confirmed({ title: t`Delete “${task.title}”?`, text, ok: t`Delete`, danger: true })) await call('DELETE', path);
  };
  const runs = make('div', { className: 'task-runs' });
  const history = make('details', { ontoggle: () => { if (history.open) attempt(async () => runs.replaceChildren(...await runsOf(path))); } },
    make('summary', { textContent: t`Runs` }), runs);
  return make('article', { className: 'task', 'aria-label': task.title },
    make('h3', { dir: 'auto', textContent: task.title }),
    make('p', { className: 'hint' }, `${STATES[task.status] ?? task.status} · ${timesText(task)}`, task.next_run_at ? ` · ${t`next: ${dateText(task.next_run_at)}`}` : ''),
    task.target ? hint(t`Answers are sent to a chat on ${task.target.account}.`) : '',
    task.notice ? hint(task.notice) : '',
    task.last_error ? make('p', { className: 'wrong', textContent: task.last_error }) : '',
    make('div', { className: 'row wraps' },
      act(t`Run now`, () => post(`${path}/trigger`)),
      task.status === 'paused' ? act(t`Resume`, () => post(`${path}/resume`)) : !isEnded && act(t`Pause`, () => post(`${path}/pause`)),
      button(t`Edit`, () => openForm(task, thread, () => attempt(refresh))),
      act(t`Delete`, remove)),
    history);
}

async function runsOf(path) {
  const runs = await get(`${path}/runs?limit=${RUNS}`);
  if (!runs.length) return [hint(t`This task has not run yet.`)];
  return [make('ul', {}, ...runs.map(run => make('li', {},
    `${dateText(run.scheduled_for)} · ${RUN_STATES[run.status] ?? run.status} `,
    run.thread_id ? make('a', { href: `#/t/${run.thread_id}`, textContent: t`Open` }) : '',
    run.error ? make('span', { className: 'wrong', textContent: ` ${run.error}` }) : '')))];
}

/** Opens the form of a task, or of a new one if `task` is null. */
function openForm(task, thread, done) {
  const title = make('input', { className: 'input', required: true, maxLength: 200, dir: 'auto', value: task?.title ?? '' });
  const prompt = make('textarea', { className: 'input', required: true, rows: 4, dir: 'auto', value: task?.prompt ?? '' });
  const when = times(task);
  const zone = make('input', { className: 'input', required: true, value: task?.timezone ?? Intl.DateTimeFormat(language).resolvedOptions().timeZone });
  zone.setAttribute('list', 'time-zones');
  const zones = make('datalist', { id: 'time-zones' }, ...Intl.supportedValuesOf('timeZone').map(value => make('option', { value })));
  const own = task?.thread_id ?? thread;
  const reuse = make('input', { type: 'checkbox', checked: Boolean(task?.thread_id) });
  const wrong = make('p', { className: 'wrong', role: 'alert', hidden: true });
  const save = make('button', { className: 'button main', textContent: task ? t`Save` : t`Create task` });
  const form = make('form', {}, make('h2', { textContent: task ? t`Edit task` : t`New task` }),
    labelled(t`Title`, title), labelled(t`Message for the agent`, prompt), ...when.nodes, labelled(t`Time zone`, zone), zones,
    own && !task?.target ? make('label', { className: 'check' }, reuse, task?.thread_id ? t`Run in the same conversation` : t`Run in the open conversation`) : '',
    wrong, make('div', { className: 'row' }, button(t`Cancel`, () => dialog.close()), save));
  const dialog = make('dialog', { className: 'dialog', 'aria-label': task ? t`Edit task` : t`New task` }, form);
  form.onsubmit = async event => {
    event.preventDefault();
    const { kind, spec } = when.value();
    const context = own ? { context_mode: reuse.checked ? 'reuse_thread' : 'fresh_thread_per_run', ...(reuse.checked && { thread_id: own }) } : {};
    const body = { title: title.value.trim(), prompt: prompt.value.trim(), schedule_spec: spec, timezone: zone.value.trim(), ...(!task?.target && context) };
    save.disabled = true;
    try {
      if (task) await call('PATCH', `${PATH}/${encodeURIComponent(task.id)}`, body);
      else await post(PATH, { ...body, schedule_type: kind });
      dialog.close();
      done();
    } catch (error) {
      Object.assign(wrong, { hidden: false, textContent: error.message });
    }
    save.disabled = false;
  };
  show(dialog);
  title.focus();
}
