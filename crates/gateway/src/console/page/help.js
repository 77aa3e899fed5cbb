// The help dialog: keys and commands.

import { make } from './dom.js';
import { listedCommands } from './commands.js';
import { panel } from './dialogs.js';
import { t } from './words.js';

const MAC = /Mac|iPhone|iPad/.test(navigator.platform);
const COMMAND = MAC ? '⌘' : 'Ctrl';

const KEYS = [
  ['Enter', t`Send`], ['Shift Enter', t`New line`], ['Escape', t`Stop the answer or close the open window`],
  [`${COMMAND} Shift O`, t`New conversation`], [`${COMMAND} K`, t`Search`], ['↑', t`Your earlier messages, if the box is empty`],
  ['?', t`Show this help`],
];

const rows = (list, tag) => make('dl', {}, ...list.flatMap(([key, words]) => [
  make('dt', {}, ...key.split(' ').map(part => make(tag, { textContent: part }))), make('dd', { textContent: words })]));

export function showHelp() {
  const commands = [...listedCommands().map(({ name, help }) => [`/${name}`, help]), ['/skill', t`Use a skill by name`]];
  panel(t`Keys and commands`, make('div', { className: 'help', tabIndex: 0 }, rows(KEYS, 'kbd'), rows(commands, 'code')));
}
