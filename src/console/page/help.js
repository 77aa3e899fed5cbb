// The small help: keys, and what can be typed.

import { make } from './dom.js';
import { panel } from './dialogs.js';

const MAC = /Mac|iPhone|iPad/.test(navigator.platform);
const COMMAND = MAC ? '⌘' : 'Ctrl';

const KEYS = [
  ['Enter', 'Send'], ['Shift Enter', 'New line'], ['Escape', 'Stop the answer, or close what is open'],
  [`${COMMAND} Shift O`, 'New conversation'], [`${COMMAND} K`, 'Search'], ['↑', 'Earlier messages of yours, from an empty box'],
  ['?', 'This help'],
];
const TYPED = [
  ['/new', 'Begin a new conversation'], ['/goal …', 'Work until this is reached; /goal clear ends it'], ['/compact', 'Summarize the conversation so far'],
  ['/models', 'Choose the model'], ['/agent', 'Choose the agent of a new conversation'], ['/retry', 'Make the newest answer anew'], ['/skill', 'Ask for a skill by its name'],
];

const rows = (list, tag) => make('dl', {}, ...list.flatMap(([key, words]) => [
  make('dt', {}, ...key.split(' ').map(part => make(tag, { textContent: part }))), make('dd', { textContent: words })]));

export function showHelp() {
  panel('Keys and commands', make('div', { className: 'help' }, rows(KEYS, 'kbd'), rows(TYPED, 'code')));
}
