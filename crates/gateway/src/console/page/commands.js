// Slash commands. The daemon runs them on the thread, as it does in chats; the page shows the answers.

import { call, get, post } from './api.js';
import { panel } from './dialogs.js';
import { make } from './dom.js';
import { markdown } from './markup.js';
import { tell } from './notices.js';
import { t } from './words.js';

/** Commands and skills: `{name, argument, help, kind}` each. */
let rows = [];

export async function loadCommands() {
  const list = await get('/api/commands').catch(() => null);
  if (list) rows = list.commands.filter(row => row.works_on_threads);
}

/** Returns the commands, without the skills. */
export const listedCommands = () => rows.filter(row => row.kind === 'command');

/** Returns completions of a beginning: `{text, label, help}` each. */
export function completions(text, models, agents) {
  const [, name, argument] = /^\/([\w-]*)(?:\s+(\S*))?$/.exec(text) ?? [];
  if (name === undefined) return [];
  if (/\s/.test(text)) {
    const known = { models, agent: agents, goal: [{ name: 'clear' }] }[name] ?? [];
    return known.filter(one => one.name.startsWith(argument)).map(one => ({ text: `/${name} ${one.name}`, label: one.name, help: one.description ?? '' }));
  }
  return rows.filter(row => row.name.startsWith(name.toLowerCase()))
    .map(row => ({ text: `/${row.name}${row.argument ? ' ' : ''}`, label: `/${row.name} ${row.argument}`.trimEnd(), help: row.help }));
}

/** Runs a command on a thread. A summary takes as long as a model does. */
export async function perform(thread, text, context) {
  const slow = setTimeout(() => tell(t`Working on ${nameOf(text)}…`), 800);
  try {
    return await post(`/api/threads/${thread}/slash-commands`, { text, context }, { timeout: 180_000 });
  } finally {
    clearTimeout(slow);
    tell('');
  }
}

/** Returns the command of a text, with its slash. */
export const nameOf = text => text.split(/\s/, 1)[0];

/** Shows an answer: one line as a notice, more in a dialog. A pressed button runs its command. */
export function showAnswer(command, { text, choices, files }, run) {
  if (!text && !choices.length && !files.length) return;
  if (!choices.length && !files.length && !text.includes('\n')) { tell(markdown(text)); return; }
  const press = ({ label, action }) => make('button', { type: 'button', className: 'button', textContent: label, onclick: () => { dialog.close(); run(action); } });
  const save = ({ name, content }) => make('a', { className: 'button main', download: name, textContent: t`Save ${name}`, href: URL.createObjectURL(new Blob([content])) });
  const buttons = [...choices.map(press), ...files.map(save)];
  const dialog = panel(nameOf(command), make('div', { className: 'answer', tabIndex: 0 }, markdown(text)), buttons.length ? make('div', { className: 'row wraps' }, ...buttons) : '');
}

export const readGoal = thread => get(`/api/threads/${thread}/goal`).then(told => told.goal);
export const clearGoal = thread => call('DELETE', `/api/threads/${thread}/goal`);
