// The small help: keys, and what can be typed.

import { make } from './dom.js';
import { listedCommands } from './commands.js';
import { panel } from './dialogs.js';
import { t } from './words.js';

const MAC = /Mac|iPhone|iPad/.test(navigator.platform);
const COMMAND = MAC ? '⌘' : 'Ctrl';

const KEYS = [
  ['Enter', t`Send`], ['Shift Enter', t`New line`], ['Escape', t`Stop the answer, or close what is open`],
  [`${COMMAND} Shift O`, t`New conversation`], [`${COMMAND} K`, t`Search`], ['↑', t`Earlier messages of yours, from an empty box`],
  ['?', t`This help`],
];

const rows = (list, tag) => make('dl', {}, ...list.flatMap(([key, words]) => [
  make('dt', {}, ...key.split(' ').map(part => make(tag, { textContent: part }))), make('dd', { textContent: words })]));

export function showHelp() {
  const commands = [...listedCommands().map(({ name, help }) => [`/${name}`, help]), ['/skill', t`Ask for a skill by its name`]];
  panel(t`Keys and commands`, make('div', { className: 'help', tabIndex: 0 }, rows(KEYS, 'kbd'), rows(commands, 'code')));
}
