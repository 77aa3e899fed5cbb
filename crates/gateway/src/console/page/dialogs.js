// Dialogs and menus.

import { make } from './dom.js';
import { t } from './words.js';

/** Opens a dialog with a form. Resolves with the result of `read`, or null if the dialog was closed. */
export function formDialog({ title, text, fields = [], ok, danger = false, read = () => true, className = '' }) {
  return new Promise(resolve => {
    let result = null;
    const heading = make('h2', { textContent: title });
    const buttons = make('div', { className: 'row' },
      make('button', { type: 'button', className: 'button', textContent: t`Cancel`, onclick: () => dialog.close() }),
      make('button', { className: `button ${danger ? 'danger' : 'main'}`, textContent: ok }));
    const form = make('form', {}, heading, text ? make('p', { textContent: text }) : '', ...fields, buttons);
    const dialog = make('dialog', { className: `dialog ${className}`, 'aria-label': title }, form);
    form.onsubmit = event => { event.preventDefault(); result = read(); dialog.close(); };
    show(dialog, () => resolve(result));
  });
}

/** Asks for confirmation. */
export const confirmed = options => formDialog(options);

/** Asks for a line of text. */
export async function askedText({ title, label, value = '', ok }) {
  const input = make('input', { className: 'input', value, maxLength: 200, required: true, 'aria-label': label });
  const given = formDialog({ title, ok, fields: [input], read: () => input.value.trim() });
  input.select();
  return given;
}

/** Creates a form field: an input with a label above it. */
export const labelled = (label, input) => make('label', { className: 'field' }, make('span', { textContent: label }), input);

/** Shows a dialog. On close it is removed and the focus returns to the previous element. */
export function show(dialog, closed = () => {}) {
  const before = document.activeElement;
  dialog.addEventListener('close', () => {
    dialog.remove();
    if (before?.isConnected) before.focus();
    closed();
  }, { once: true });
  dialog.addEventListener('click', event => { if (event.target === dialog) dialog.close(); });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** Opens a dialog with a title, content and a close button. */
export function panel(title, ...content) {
  const close = make('button', { type: 'button', className: 'button', textContent: t`Close` });
  const dialog = make('dialog', { className: 'dialog wide-dialog', 'aria-label': title }, make('div', { className: 'dialog-head' }, make('h2', { textContent: title }), close), ...content);
  close.onclick = () => dialog.close();
  return show(dialog);
}

let opened = null;

/** Opens a menu below or above a button. An item is `{label, hint, icon, run, checked, danger}`, or null for a separator. */
export function menu(button, items, label = button.getAttribute('aria-label') ?? button.textContent) {
  const isSame = opened?.button === button;
  opened?.close();
  if (isSame) return;
  const node = make('div', { className: 'menu', role: 'menu', 'aria-label': label, popover: 'manual' }, ...items.map(entry));
  (button.closest('nav, main, dialog') ?? document.body).append(node);
  node.showPopover();
  place(node, button);
  const close = (back = false) => {
    if (opened?.node !== node) return;
    opened = null;
    node.remove();
    button.setAttribute('aria-expanded', 'false');
    document.removeEventListener('pointerdown', outside, true);
    if (back) button.focus();
  };
  const outside = event => { if (!node.contains(event.target) && !button.contains(event.target)) close(); };
  document.addEventListener('pointerdown', outside, true);
  node.onkeydown = event => keys(event, node, close);
  node.onclick = event => { if (event.target.closest('[role^=menuitem]')) close(true); };
  node.addEventListener('focusout', event => { if (event.relatedTarget && !node.contains(event.relatedTarget)) close(); });
  button.setAttribute('aria-expanded', 'true');
  opened = { button, node, close };
  (node.querySelector('[aria-checked=true]') ?? node.querySelector('[role^=menuitem]'))?.focus();
}

function entry(item) {
  if (!item) return make('div', { className: 'menu-line', role: 'separator' });
  if (item.node) return item.node;
  const { label, hint, icon, run, checked, danger } = item;
  const role = checked === undefined ? 'menuitem' : 'menuitemradio';
  const words = make('span', { className: 'menu-words' }, make('span', { textContent: label, dir: 'auto' }), hint ? make('span', { className: 'menu-hint', textContent: hint }) : '');
  return make('button', { type: 'button', role, className: danger ? 'danger' : '', tabIndex: -1, 'aria-checked': checked === undefined ? undefined : String(checked), onclick: () => setTimeout(run) }, icon ?? '', words);
}

function place(node, button) {
  const [at, own] = [button.getBoundingClientRect(), node.getBoundingClientRect()];
  const below = at.bottom + 6 + own.height < innerHeight - 8 || at.top < own.height + 12;
  const top = below ? Math.min(at.bottom + 6, innerHeight - own.height - 8) : at.top - own.height - 6;
  const left = Math.max(8, Math.min(at.left, innerWidth - own.width - 8));
  Object.assign(node.style, { top: `${Math.max(8, top)}px`, left: `${left}px` });
}

function keys(event, node, close) {
  const all = [...node.querySelectorAll('[role^=menuitem]')];
  const at = all.indexOf(document.activeElement);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];
  if (to !== undefined) all.at(to % all.length)?.focus();
  else if (event.key === 'Escape' || event.key === 'Tab') close(true);
  else return;
  event.preventDefault();
  event.stopPropagation();
}
