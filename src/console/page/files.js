// Files of a thread: looked at, listed, sent.

import { fileUrl, get, request, upload } from './api.js';
import { freshId, icon, make, plain, sizeText } from './dom.js';
import { panel } from './dialogs.js';
import { markdown } from './markup.js';
import { fileCard, isImage } from './turn.js';
import { t } from './words.js';

/** So much of a text is looked at. */
const PREVIEW_BYTES = 256 * 1024;
const TEXT = /^(?:text\/|application\/(?:json|xml|yaml|toml|javascript|x-sh|sql))/;
const TEXT_NAME = /\.(?:txt|md|markdown|csv|tsv|json|jsonl|ya?ml|toml|ini|cfg|conf|log|xml|html?|css|m?js|ts|tsx|jsx|py|rs|go|java|kt|c|h|cc|cpp|hpp|cs|rb|php|pl|sh|bash|sql|r|tex|diff|patch|srt|env)$/i;

/** Shows a file: a picture, the text, or a way to download it. */
export async function openFile(thread, { name, size, path }) {
  const download = make('a', { className: 'button main', href: fileUrl(thread, path, true), download: plain(name).trim(), textContent: t`Download` });
  const body = make('div', { className: 'preview' });
  panel(plain(name).trim(), body, make('div', { className: 'row' }, make('span', { className: 'hint', textContent: sizeText(size) }), download));
  if (isImage(name)) {
    body.append(make('img', { src: fileUrl(thread, path), alt: plain(name) }));
    return;
  }
  body.append(make('p', { className: 'hint', textContent: t`Loading…` }));
  body.replaceChildren(await preview(thread, name, path));
}

async function preview(thread, name, path) {
  const nothing = text => make('p', { className: 'hint', textContent: text });
  if (!TEXT_NAME.test(name)) return nothing(t`This kind of file cannot be shown here. Download it to open it.`);
  try {
    const response = await request('GET', fileUrl(thread, path), { headers: { range: `bytes=0-${PREVIEW_BYTES - 1}` } });
    const kind = response.headers.get('content-type') ?? '';
    if (!TEXT.test(kind) && kind && !TEXT_NAME.test(name)) return nothing(t`This file is no text.`);
    const text = await response.text();
    const whole = Number(response.headers.get('content-range')?.split('/')[1] ?? 0);
    const shown = /\.(?:md|markdown)$/i.test(name) ? markdown(text) : make('pre', { tabIndex: 0, role: 'region', 'aria-label': t`Text of the file`, dir: 'auto', textContent: text });
    return whole > PREVIEW_BYTES ? make('div', {}, shown, nothing(t`Only the beginning is shown.`)) : shown;
  } catch (error) {
    // An empty file has no range.
    return nothing(error.status === 416 ? t`This file is empty.` : error.status === 404 ? t`This file is not there any more.` : t`This file could not be loaded: ${error.message}.`);
  }
}

/** Lists the files of a thread. */
export async function listFiles(thread, actions) {
  const body = make('div', { className: 'file-lists' }, make('p', { className: 'hint', textContent: t`Loading…` }));
  panel(t`Files`, body);
  const [uploads, known] = await Promise.all([
    get(`/api/threads/${thread.id}/uploads/list`).catch(() => ({ files: [] })), get(`/api/threads/${thread.id}`).catch(() => ({}))]);
  const made = (known.values?.artifacts ?? []).map(path => ({ name: path.split('/').pop(), path }));
  const sent = uploads.files.map(file => ({ name: file.filename, size: file.size, path: file.virtual_path ?? file.path }));
  const part = (title, files, none) => make('section', {}, make('h3', { textContent: title }),
    files.length ? make('div', { className: 'files' }, ...files.map(file => fileCard(thread, file, actions))) : make('p', { className: 'hint', textContent: none }));
  body.replaceChildren(part(t`From pudu`, made, t`None yet.`), part(t`From you`, sent, t`None yet.`));
}

/** Files that go along with the next message: sent as soon as they are chosen. */
export class Attachments {
  constructor(node, hears) {
    Object.assign(this, { node, hears, entries: [], limits: null });
  }

  get isBusy() { return this.entries.some(entry => entry.progress < 1); }
  get files() { return this.entries.map(entry => entry.file).filter(Boolean); }

  /** Takes files; `place` resolves with the thread's id once the thread is made. */
  async add(files, place) {
    const list = [...files];
    if (!list.length) return;
    this.limits ??= await get('/api/threads/new/uploads/limits').catch(() => null);
    const { max_files: most = 10, max_file_size: largest = Infinity } = this.limits ?? {};
    if (this.entries.length + list.length > most) { this.hears.failed(t`At most ${most} files may go along.`); return; }
    for (const file of list) {
      if (file.size > largest) this.hears.failed(t`${plain(file.name)} is too large: at most ${sizeText(largest)}.`);
      else this.send(file, place);
    }
  }

  async send(file, place) {
    const entry = { id: freshId(), name: file.name || 'pasted.png', size: file.size, progress: 0, stop: new AbortController() };
    if (file.type.startsWith('image/')) entry.preview = URL.createObjectURL(file);
    this.entries.push(entry);
    this.draw();
    try {
      const thread = await place();
      const named = file.name ? file : new File([file], entry.name, { type: file.type });
      const answer = await upload(`/api/threads/${thread}/uploads`, [named], part => { entry.progress = Math.min(part, 0.99); this.draw(); }, entry.stop.signal);
      const [stored] = answer.files;
      Object.assign(entry, { progress: 1, file: { name: stored.filename, size: stored.size, path: stored.virtual_path } });
    } catch (error) {
      this.entries = this.entries.filter(one => one !== entry);
      if (error.name !== 'AbortError') this.hears.failed(t`${plain(entry.name)} was not sent: ${error.message}.`);
    }
    this.draw();
  }

  remove(entry) {
    entry.stop.abort();
    this.entries = this.entries.filter(one => one !== entry);
    this.draw();
  }

  clear() {
    for (const entry of this.entries) if (entry.preview) URL.revokeObjectURL(entry.preview);
    this.entries = [];
    this.draw();
  }

  draw() {
    this.node.hidden = !this.entries.length;
    this.node.replaceChildren(...this.entries.map(entry => this.chip(entry)));
    this.hears.changed();
  }

  chip(entry) {
    const remove = make('button', { type: 'button', className: 'chip-close', 'aria-label': t`Remove ${plain(entry.name)}`, onclick: () => this.remove(entry) }, icon('i-close'));
    const bar = make('progress', { max: 1, value: entry.progress, 'aria-label': t`Sending ${plain(entry.name)}` });
    return make('div', { className: 'chip' }, entry.preview ? make('img', { src: entry.preview, alt: '' }) : icon('i-file'),
      make('span', { className: 'file-name', textContent: plain(entry.name) }), entry.progress < 1 ? bar : make('span', { className: 'file-size', textContent: sizeText(entry.size) }), remove);
  }
}
