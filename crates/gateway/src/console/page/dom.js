// Helpers: elements, icons, storage, ids, formats of times and sizes.

import { language, t } from './words.js';

export const $ = id => document.getElementById(id);

/** Creates an element. Keys with a dash, `role` and `for` become attributes, all others properties. */
export function make(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (key === 'dataset') Object.assign(node.dataset, value);
    else if (key.includes('-') || key === 'role' || key === 'for') node.setAttribute(key, value);
    else node[key] = value;
  }
  node.append(...children.filter(child => child !== null && child !== undefined && child !== false));
  return node;
}

const SVG = 'http://www.w3.org/2000/svg';

/** Creates an icon from the document's sprite. */
export function icon(name, kind = 'icon') {
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('class', kind);
  svg.setAttribute('aria-hidden', 'true');
  const use = document.createElementNS(SVG, 'use');
  use.setAttribute('href', `#${name}`);
  svg.append(use);
  return svg;
}

/** Creates a button with an icon. `label` is its tooltip and accessible name. */
export function iconButton(name, label, onclick, className = 'quiet-button') {
  return make('button', { type: 'button', className, title: label, 'aria-label': label, onclick }, icon(name));
}

/** Updates `old` to equal `fresh` and changes only nodes that differ, so that a growing text keeps its selection and scroll position. Also updates `raw`, the text
 *  that a code block copies. */
export function grow(old, fresh) {
  const [had, wanted] = [[...old.childNodes], [...fresh.childNodes]];
  wanted.forEach((node, at) => {
    const before = had[at];
    if (before && node.raw !== undefined) before.raw = node.raw;
    if (!before) old.append(node);
    else if (before.isEqualNode(node)) return;
    else if (before.nodeType === Node.TEXT_NODE && node.nodeType === Node.TEXT_NODE) extend(before, node.data);
    else if (before.cloneNode(false).isEqualNode(node.cloneNode(false))) grow(before, node);
    else before.replaceWith(node);
  });
  had.slice(wanted.length).forEach(node => node.remove());
}

function extend(node, data) {
  if (data.startsWith(node.data)) node.appendData(data.slice(node.data.length));
  else node.data = data;
}

// Fallback for browsers that block `localStorage`, for example in private windows.
const own = new Map();

/** Values stored in this browser. */
export const storage = {
  get(name) {
    try { return localStorage.getItem(`pudu.${name}`); } catch { return own.get(name) ?? null; }
  },
  set(name, value) {
    try {
      if (value === null || value === '') localStorage.removeItem(`pudu.${name}`);
      else localStorage.setItem(`pudu.${name}`, value);
    } catch { own.set(name, value); }
  },
  /** Removes all values whose names start with a prefix. */
  removeAll(prefix) {
    try {
      for (const key of Object.keys(localStorage)) if (key.startsWith(`pudu.${prefix}`)) localStorage.removeItem(key);
    } catch { own.clear(); }
  },
  json(name) {
    try { return JSON.parse(this.get(name) ?? 'null'); } catch { return null; }
  },
};

/** Creates a UUID. `crypto.randomUUID` is missing on plain HTTP. */
export function freshId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = Array.from(bytes, byte => byte.toString(16).padStart(2, '0')).join('');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

const DIRECTIONS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Removes bidirectional control characters, which could reorder the surrounding text. */
export const plain = text => String(text ?? '').replace(DIRECTIONS, '');

/** Makes bidirectional control characters visible. */
export const revealed = text => text.replace(/[\u202a-\u202e\u2066-\u2069]/g, mark => `\u27e8U+${mark.codePointAt(0).toString(16).toUpperCase()}\u27e9`);

/** Copies a text and returns whether that succeeded. */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // `navigator.clipboard` is missing on plain HTTP.
    const area = make('textarea', { className: 'unseen', value: text, 'aria-hidden': 'true' });
    document.body.append(area);
    area.select();
    const copied = document.execCommand('copy');
    area.remove();
    return copied;
  }
}

/** Creates a copy button that briefly shows the result. */
export function copyButton(label, text, className = 'quiet-button') {
  const button = iconButton('i-copy', label, async () => {
    const copied = await copyText(text());
    button.replaceChildren(icon(copied ? 'i-check' : 'i-close'));
    button.title = copied ? t`Copied` : t`Copying failed`;
    setTimeout(() => { button.replaceChildren(icon('i-copy')); button.title = label; }, 1500);
  }, className);
  return button;
}

export function sizeText(bytes) {
  if (!(bytes >= 0)) return '';
  const units = [t`bytes`, 'KB', 'MB', 'GB'];
  let [value, unit] = [bytes, 0];
  while (value >= 1000 && unit < 3) { value /= 1000; unit += 1; }
  return `${unit ? value.toFixed(value < 10 ? 1 : 0) : value} ${units[unit]}`;
}

export const countText = count => Intl.NumberFormat(language, { notation: count >= 10_000 ? 'compact' : 'standard', maximumFractionDigits: 1 }).format(count);

const startOfDay = time => new Date(time).setHours(0, 0, 0, 0);

/** Returns the heading under which the sidebar lists a time. */
export function dayGroup(iso) {
  const days = Math.round((startOfDay(Date.now()) - startOfDay(iso)) / 86_400_000);
  if (days <= 0) return t`Today`;
  if (days === 1) return t`Yesterday`;
  if (days < 7) return t`Last 7 days`;
  if (days < 30) return t`Last 30 days`;
  return new Intl.DateTimeFormat(language, { month: 'long', year: 'numeric' }).format(new Date(iso));
}

export const dateText = iso => new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'short' }).format(new Date(iso));

/** Waits for `ms` milliseconds or until the signal is aborted. */
export const pause = (ms, signal) => new Promise(resolve => {
  const timer = setTimeout(resolve, ms);
  signal?.addEventListener('abort', () => { clearTimeout(timer); resolve(); }, { once: true });
});

/** Returns a function that runs `work` after `ms` milliseconds without another call. */
export function debounced(work, ms) {
  let timer = 0;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...args), ms);
  };
}
