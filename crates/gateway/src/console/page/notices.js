// Notices, the goal and the to-do list above the composer; the costs in the header.

import { $, countText, icon, iconButton, make } from './dom.js';
import { panel } from './dialogs.js';
import { language, t } from './words.js';

/** Shows a text or an element. `again` adds a retry button. */
export function showNotice(text, again) {
  const notice = $('notice');
  notice.hidden = !text;
  notice.replaceChildren(text instanceof Node ? text : make('span', { textContent: text }), again ? make('button', { type: 'button', className: 'link', textContent: t`Try now`, onclick: again }) : '',
    text ? iconButton('i-close', t`Dismiss`, () => showNotice('')) : '');
}

export function showGoal(goal, clear) {
  const node = $('goal');
  node.hidden = !goal;
  if (!goal) return;
  node.replaceChildren(icon('i-goal'), make('span', { className: 'goal-text', dir: 'auto', textContent: goal.objective, title: goal.last_evaluation?.reason ?? '' }),
    iconButton('i-close', t`Clear the goal`, clear));
}

const MARKS = { completed: 'i-check', in_progress: 'i-dot', pending: 'i-circle' };

/** Shows the agent's to-do list while a run is active or an entry is open. */
export function showTodos(todos, isRunning) {
  const node = $('todos');
  const done = todos.filter(todo => todo.status === 'completed').length;
  node.hidden = !todos.length || (!isRunning && done === todos.length);
  const signature = JSON.stringify(todos);
  if (node.hidden || node.dataset.shown === signature) return;
  node.dataset.shown = signature;
  const now = todos.find(todo => todo.status === 'in_progress') ?? todos.find(todo => todo.status === 'pending');
  const summary = make('summary', {}, icon('i-list'), make('span', { textContent: t`${done} of ${todos.length} done` }),
    now ? make('span', { className: 'todo-now', dir: 'auto', textContent: now.content }) : '', icon('i-chevron', 'icon step-chevron'));
  const list = make('ul', {}, ...todos.map(todo => make('li', { className: todo.status }, icon(MARKS[todo.status] ?? 'i-circle'), make('span', { dir: 'auto', textContent: todo.content }))));
  node.replaceChildren(summary, list);
}

/** Formats an amount of money with two decimal places, or two significant digits below 0.01. */
function costText(amount) {
  const small = Math.abs(amount) < 0.01;
  return amount.toLocaleString(language, small ? { maximumSignificantDigits: 2 } : { minimumFractionDigits: 2, maximumFractionDigits: 2 });
}

/** Shows the tokens of the thread, and their cost if prices are configured. */
export function showCosts(usage) {
  const button = $('costs');
  button.hidden = !usage?.total_tokens;
  if (button.hidden) return;
  const money = Object.entries(usage.costs ?? {}).map(([currency, amount]) => `${costText(amount)} ${currency}`).join(', ');
  button.textContent = t`${countText(usage.total_tokens)} tokens` + (money ? ` · ${money}` : '');
  const callers = { lead_agent: t`Agent`, subagent: t`Sub-agents`, middleware: t`Summaries and titles` };
  const rows = [[t`Input tokens`, usage.total_input_tokens], [t`Output tokens`, usage.total_output_tokens],
    ...Object.entries(usage.by_model ?? {}).map(([name, { tokens }]) => [name, tokens]),
    ...Object.entries(usage.by_caller ?? {}).filter(([, tokens]) => tokens).map(([name, tokens]) => [callers[name] ?? name, tokens]), [t`Runs`, usage.total_runs],
    ...Object.entries(usage.costs ?? {}).map(([currency, amount]) => [t`Cost in ${currency}`, costText(amount)])];
  const list = rows.flatMap(([label, value]) => [make('dt', { textContent: label }), make('dd', { textContent: value.toLocaleString(language, { maximumFractionDigits: 6 }) })]);
  button.onclick = () => panel(t`Tokens of this conversation`, make('dl', { className: 'costs' }, ...list));
}
