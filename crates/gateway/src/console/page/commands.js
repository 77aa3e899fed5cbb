// Slash commands. The daemon runs them on the thread, and the page shows the answers.

import { call, get, post } from './api.js';
import { panel } from './dialogs.js';
import { make } from './dom.js';
import { markdown } from './markup.js';
import { showNotice } from './notices.js';
import { t } from './words.js';

/** Commands and skills: `{name, argument, help, kind}` each. */
let rows = [];

export async function loadCommands() {
  const list = await get('/api/commands').catch(() => null);
  if (list) rows = list.commands.filter(row => row.works_on_threads);
}

/** Returns the commands without the skills. */
export const listedCommands = () => rows.filter(row => row.kind === 'command');

/** Returns the completions of a typed prefix: `{text, label, help}` each. */
export function completions(text, models, agents) {
  const [, name, argument] = /^\/([\w-]*)(?:\s+(\S*))?$/.exec(text) ?? [];
  if (name === undefined) return [];
  if (/\s/.test(text)) {
    const known = { models, agent: agents, goal: [{ name: 'clear' }] }[name] ?? [];
    return known.filter(one => one.name.startsWith(argument)).map(one => ({ text: `/${name} ${one.name}`, label: one.name, help: one.description ?? '' }));
  }
  return rows.filter(row => row.name.toLowerCase().startsWith(name.toLowerCase()))
    .map(row => ({ text: `/${row.name}${row.argument ? ' ' : ''}`, label: `/${row.name} ${row.argument}`.trimEnd(), help: row.help }));
}

/** Runs a command on a thread. Commands that call a model may take minutes. */
export async function perform(thread, text, context) {
  const slow = setTimeout(() => showNotice(t`Running ${nameOf(text)}…`), 800);
  try {
    return await post(`/api/threads/${thread}/slash-commands`, { text, context }, { timeout: 180_000 });
  } finally {
    clearTimeout(slow);
    showNotice('');
  }
}

/** Returns the command name of a text, with its slash. */
export const nameOf = text => text.split(/\s/, 1)[0];

/** Shows a command's answer: a single line as a notice, anything longer in a dialog. Its buttons run further commands. */
export function showAnswer(command, { text, choices, files }, run) {
  if (!text && !choices.length && !files.length) return;
  if (!choices.length && !files.length && !text.includes('\n')) { showNotice(markdown(text)); return; }
  const press = ({ label, action }) => make('button', { type: 'button', className: 'button', textContent: label, onclick: () => { dialog.close(); run(action); } });
  const save = ({ name, content }) => make('a', { className: 'button main', download: name, textContent: t`Save ${name}`, href: URL.createObjectURL(new Blob([content])) });
  const buttons = [...choices.map(press), ...files.map(save)];
  const dialog = panel(nameOf(command), make('div', { className: 'answer', tabIndex: 0 }, markdown(text)), buttons.length ? make('div', { className: 'row wraps' }, ...buttons) : '');
}

export const readGoal = thread => get(`/api/threads/${thread}/goal`).then(response => response.goal);
export const clearGoal = thread => call('DELETE', `/api/threads/${thread}/goal`);
