// Renders Markdown blocks as elements, and updates them while the text grows.

import { copyButton, grow, make, revealed } from './dom.js';
import { draw } from './draw.js';
import { formula, inline, noteLink } from './inline.js';
import { blocks } from './markdown.js';
import { t } from './words.js';

/** Maximum characters of a code block and rows of a table that are shown at first. */
const CODE_CHARS = 40_000;
const TABLE_ROWS = 200;

/** View of a Markdown text that may grow. */
export class MarkdownView {
  constructor(node, files) {
    Object.assign(this, { node, files, text: '', tailAt: 0, fixed: 0, finished: 0, level: 2, cost: 0, drawn: 0, timer: 0 });
  }

  /** Shows a text. While it grows, the update rate adapts to the time that rendering takes. */
  update(text, isDone) {
    if (text !== this.text || this.timer) {
      clearTimeout(this.timer);
      this.timer = 0;
      const wait = this.cost * 6 - (performance.now() - this.drawn);
      if (!isDone && wait > 8) this.timer = setTimeout(() => this.draw(text), wait);
      else this.draw(text);
    }
    if (!isDone) return;
    this.finish(this.node.children.length);
    unlink(this.node);
  }

  /** Renders the code, formulas and diagrams of the blocks before `until`, which no longer change. */
  finish(until) {
    const blocks = [...this.node.children].slice(this.finished, until);
    this.finished = Math.max(this.finished, until);
    if (blocks.length) draw(blocks);
  }

  draw(text) {
    this.timer = 0;
    const begun = performance.now();
    if (!text.startsWith(this.text)) Object.assign(this, { tailAt: 0, fixed: 0, level: 2 });
    this.text = text;
    this.finished = Math.min(this.finished, this.fixed);
    // Blocks before the last one no longer change.
    const tail = text.slice(this.tailAt);
    const found = blocks(tail);
    const fresh = document.createDocumentFragment();
    const context = { files: this.files, level: this.level };
    for (const block of found) {
      this.level = context.level;
      fresh.append(shown(block, context));
    }
    const old = [...this.node.children].slice(this.fixed);
    [...fresh.children].forEach((node, at) => {
      const had = old[at];
      if (had) had.raw = node.raw;
      if (!had) this.node.append(node);
      else if (had.isEqualNode(node)) return;
      else if (had.cloneNode(false).isEqualNode(node.cloneNode(false))) grow(had, node);
      else had.replaceWith(node);
    });
    old.slice(found.length).forEach(node => node.remove());
    if (found.length > 1) {
      this.fixed += found.length - 1;
      this.tailAt += offset(tail, found.at(-1).at);
    }
    this.finish(this.fixed);
    this.drawn = performance.now();
    this.cost = this.drawn - begun;
  }
}

/** Returns the offset of a line. */
function offset(text, line) {
  let at = 0;
  for (let count = 0; count < line; count += 1) at = text.indexOf('\n', at) + 1;
  return at;
}

/** Replaces references to missing footnotes by plain text. */
function unlink(node) {
  const known = new Set([...node.querySelectorAll('.note')].map(({ dataset }) => dataset.note));
  for (const mark of node.querySelectorAll('.footnote')) if (!known.has(mark.dataset.note)) mark.replaceWith(`[^${mark.dataset.note}]`);
}

/** Renders a complete text. */
export function markdown(text, files) {
  const node = make('div', { className: 'words' });
  const context = { files, level: 2 };
  for (const block of blocks(text)) node.append(shown(block, context));
  unlink(node);
  draw([...node.children]);
  return node;
}

function shown(block, context) {
  const words = (tag, properties = {}) => make(tag, { dir: 'auto', ...properties }, inline(block.text, context.files));
  switch (block.kind) {
    case 'heading':
      // Screen readers expect heading levels without gaps.
      context.level = Math.min(block.level + 2, context.level + 1, 6);
      return words(`h${context.level}`, { className: `h${block.level}` });
    case 'rule': return make('hr');
    case 'code': return code(block);
    case 'formula': return make('p', {}, formula(block.text, true));
    case 'quote': return make('blockquote', { dir: 'auto' }, ...block.blocks.map(inner => shown(inner, context)));
    case 'list': return list(block, context);
    case 'details':
      return make('details', { className: 'folded-part', open: block.isOpen }, make('summary', { dir: 'auto' }, block.summary ? inline(block.summary, context.files) : t`Details`),
        ...block.blocks.map(inner => shown(inner, context)));
    case 'table': return table(block, context);
    case 'note':
      return make('div', { className: 'note', dir: 'auto', tabIndex: -1, dataset: { note: block.id } }, noteLink(block.id, '.footnote', t`Back to the reference`, block.id),
        make('div', {}, ...block.blocks.map(inner => shown(inner, context))));
    default: return words('p');
  }
}

function list({ ordered, start, loose, items }, context) {
  const node = make(ordered ? 'ol' : 'ul', { dir: 'auto', className: items.some(item => item.checked !== undefined) ? 'tasks' : '' });
  if (ordered && start !== 1) node.start = start;
  for (const { blocks: inner, checked } of items) {
    const item = make('li');
    if (checked !== undefined) item.append(make('input', { type: 'checkbox', disabled: true, defaultChecked: checked, 'aria-label': checked ? t`done` : t`to do` }), ' ');
    for (const block of inner) {
      if (block.kind === 'paragraph' && !loose) item.append(inline(block.text, context.files));
      else item.append(shown(block, context));
    }
    node.append(item);
  }
  return node;
}

function table({ head, aligns, rows }, context) {
  const row = (cells, tag) => make('tr', {}, ...aligns.map((align, at) =>
    make(tag, { dir: 'auto', className: align ? `to-${align}` : '', scope: tag === 'th' ? 'col' : undefined }, inline(cells[at] ?? '', context.files))));
  const body = make('tbody', {}, ...rows.slice(0, TABLE_ROWS).map(cells => row(cells, 'td')));
  const wide = make('div', { className: 'wide', tabIndex: 0, role: 'region', 'aria-label': t`Table` },
    make('table', {}, make('thead', {}, row(head, 'th')), body));
  if (rows.length > TABLE_ROWS) {
    wide.append(more(t`Show all ${rows.length} rows`, () => body.append(...rows.slice(TABLE_ROWS).map(cells => row(cells, 'td')))));
  }
  return wide;
}

function more(label, work) {
  const button = make('button', { type: 'button', className: 'small-button', textContent: label });
  button.onclick = () => { button.remove(); work(); };
  return button;
}

function code({ language, text }) {
  const body = make('code', { textContent: revealed(text.slice(0, CODE_CHARS)) });
  const pre = make('pre', { tabIndex: 0, role: 'region', 'aria-label': language ? t`Code, ${language}` : t`Code`, dir: 'ltr' }, body);
  const bar = make('div', {}, make('span', { textContent: language }), copyButton(t`Copy code`, () => block.raw));
  const block = make('div', { className: 'code', raw: text, dataset: { language: language.toLowerCase() } }, bar, pre);
  if (text.length > CODE_CHARS) {
    block.append(more(t`Show all ${Math.ceil(text.length / 1000)} thousand characters`, () => { body.textContent = revealed(block.raw); }));
  }
  return block;
}
