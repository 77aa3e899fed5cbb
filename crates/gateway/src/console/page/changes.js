// The file changes of a run: a badge below its answer, which opens a dialog with the diffs.

import { get } from './api.js';
import { icon, make, plain } from './dom.js';
import { panel } from './dialogs.js';
import { t } from './words.js';

/** Tools that may change files. */
const WRITERS = new Set(['bash', 'write_file', 'str_replace', 'task']);

const STATUS = { created: t`new`, modified: t`changed`, deleted: t`deleted`, symlink_created: t`new link` };
const REASONS = {
  binary: t`This is not a text file.`, large: t`This file is too large to compare.`, sensitive: t`This file may contain a secret, so its changes are not shown.`,
  truncated: t`There were too many changes to record this one.`, symlink: t`Links are not followed.`,
};

const hint = text => make('p', { className: 'hint', textContent: text });
const lines = ({ additions, deletions }) => `+${additions} −${deletions}`;

/** Returns whether a tool call of an answer may have changed files. */
export const mayChangeFiles = items => items.some(item => item.calls?.some(call => WRITERS.has(call.name)));

/** Creates the badge of a run. It stays hidden if no file changed. */
export function changesBadge(thread, run) {
  const address = `/api/threads/${thread}/runs/${run}/workspace-changes`;
  const badge = make('button', { type: 'button', className: 'changes', hidden: true, onclick: () => openChanges(address) });
  get(`${address}?include_files=false`).then(({ available, summary }) => {
    const files = summary.created + summary.modified + summary.deleted + summary.symlink_created;
    badge.hidden = !available || !files;
    badge.replaceChildren(icon('i-pencil'), files === 1 ? t`1 file changed, ${lines(summary)}` : t`${files} files changed, ${lines(summary)}`);
  }).catch(() => { /* The badge is optional. */ });
  return badge;
}

async function openChanges(address) {
  const body = make('div', { className: 'changed-files preview' }, hint(t`Loading…`));
  panel(t`File changes`, body);
  try {
    const { files, summary } = await get(`${address}?include_diff=true`);
    body.replaceChildren(...files.map(file), summary.truncated ? hint(t`Not all changes are shown.`) : '');
  } catch (error) {
    body.replaceChildren(hint(t`The changes could not be loaded: ${error.message}.`));
  }
}

function file(change) {
  const name = make('span', { className: 'file-name', dir: 'auto', textContent: plain(change.path.replace('/mnt/user-data/', '')) });
  const counts = change.diff === null ? '' : lines(change);
  const summary = make('summary', {}, name, make('span', { className: 'file-size', textContent: `${STATUS[change.status]} ${counts}`.trim() }));
  const diff = () => make('pre', { tabIndex: 0, role: 'region', 'aria-label': t`Diff`, dir: 'auto' }, ...change.diff.split('\n').slice(2, -1).map(line));
  const node = make('details', { className: 'changed-file' }, summary);
  // A long diff is rendered when the entry is opened.
  node.addEventListener('toggle', () => {
    if (node.childElementCount > 1) return;
    node.append(change.diff === null ? hint(REASONS[change.diff_unavailable_reason] ?? '') : change.diff ? diff() : hint(t`This file is empty.`));
    if (change.diff_truncated) node.append(hint(t`The rest was not recorded.`));
  });
  return node;
}

const KINDS = { '+': 'added', '-': 'removed', '@': 'place' };
const line = text => make('span', { className: `diff-line ${KINDS[text[0]] ?? ''}`, textContent: `${text}\n` });
