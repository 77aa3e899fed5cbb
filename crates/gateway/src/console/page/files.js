// Files of a thread: viewer, list and uploads.

import { fileUrl, get, request, upload } from './api.js';
import { freshId, icon, make, plain, revealed, sizeText } from './dom.js';
import { panel } from './dialogs.js';
import { colouredText } from './draw.js';
import { markdown } from './markup.js';
import { fileCard, isImage } from './turn.js';
import { t } from './words.js';

/** Maximum length of a text preview: bytes of a file, characters of a document. */
const PREVIEW_BYTES = 256 * 1024;
const TEXT_NAME = /\.(?:txt|md|markdown|csv|tsv|json|jsonl|ya?ml|toml|ini|cfg|conf|log|xml|html?|css|m?js|ts|tsx|jsx|py|rs|go|java|kt|c|h|cc|cpp|hpp|cs|rb|php|pl|sh|bash|sql|r|tex|diff|patch|srt|env)$/i;

/** Documents whose text the daemon extracts. */
const DOCUMENT = /\.(?:pdf|docx?|pptx?|xlsx|xlsb|xls|odt|odp|ods|eml|msg|epub|rtf)$/i;
const PAGE = /\.(?:html?|xhtml)$/i;

const hint = text => make('p', { className: 'hint', textContent: text });

/** Opens a dialog with the views of a file and a download button. */
export async function openFile(thread, { name, size, path }) {
  const shown = plain(name).trim();
  const download = make('a', { className: 'button main', href: fileUrl(thread, path, 'download'), download: shown, textContent: t`Download` });
  const body = make('div', { className: 'preview', tabIndex: 0, role: 'region', 'aria-label': shown });
  const views = viewsOf(thread, shown, path);
  const tabs = views.length > 1 ? make('div', { className: 'tabs', role: 'group', 'aria-label': t`View` }) : '';
  panel(shown, tabs, body, make('div', { className: 'row' }, make('span', { className: 'hint', textContent: sizeText(size) }), download));
  let chosen = null;
  const show = async view => {
    chosen = view;
    for (const [at, button] of [...(tabs.children ?? [])].entries()) button.setAttribute('aria-pressed', String(views[at] === view));
    body.replaceChildren(hint(t`Loading…`));
    const node = await view.render();
    if (chosen === view) body.replaceChildren(node);
  };
  if (tabs) tabs.append(...views.map(view => make('button', { type: 'button', className: 'tab', textContent: view.label, onclick: () => show(view) })));
  show(views[0]);
}

/** Returns the views of a file, the preferred one first. */
function viewsOf(thread, name, path) {
  const view = (label, render) => ({ label, render });
  const source = view(t`Text`, () => textOf(thread, name, path));
  const words = view(t`Text`, () => documentText(thread, path));
  if (isImage(name)) {
    const picture = view(t`Preview`, () => {
      const image = make('img', { src: fileUrl(thread, path), alt: name });
      image.onerror = async () => image.replaceWith(await imageFailure(thread, path));
      return image;
    });
    return /\.svg$/i.test(name) ? [picture, source] : [picture];
  }
  if (PAGE.test(name)) return [view(t`Preview`, () => framedPage(thread, name, path)), source];
  // The browser's PDF viewer does not run in a frame with the attribute `sandbox`. The response has a sandbox policy instead.
  if (/\.pdf$/i.test(name) && navigator.pdfViewerEnabled) return [view(t`Preview`, () => framedDocument(thread, name, path)), words];
  if (DOCUMENT.test(name)) return [words];
  if (/\.(?:md|markdown)$/i.test(name)) return [view(t`Preview`, () => textOf(thread, name, path, true)), source];
  return [TEXT_NAME.test(name) ? source : view('', () => hint(t`There is no preview for this file type. Download the file to open it.`))];
}

const frame = (src, title, more = {}) => make('iframe', { className: 'framed', title, src, ...more });

/** Shows an HTML file in a sandboxed frame. Its own scripts run; it has no network access. */
const framedPage = (thread, name, path) => make('div', {}, frame(fileUrl(thread, path, 'preview'), name, { sandbox: 'allow-scripts' }),
  hint(t`The preview does not load images or scripts from other addresses.`));

/** Shows a PDF in the browser's viewer. Scripts cannot detect a viewer that does not open in frames. */
const framedDocument = (thread, name, path) => make('div', {}, frame(fileUrl(thread, path), name),
  hint(t`If nothing appears here, switch to the text or download the file.`));

/** Adds a hint to a truncated text. */
const withTruncationHint = (shown, isCut) => (isCut ? make('div', {}, shown, hint(t`Only the beginning is shown.`)) : shown);

async function documentText(thread, path) {
  try {
    const response = await request('GET', fileUrl(thread, path, 'text'));
    const text = await response.text();
    return withTruncationHint(markdown(text.slice(0, PREVIEW_BYTES)), text.length > PREVIEW_BYTES);
  } catch (error) {
    return hint(failure(error));
  }
}

const failure = error => (error.status === 416 ? t`This file is empty.` : error.status === 404 ? t`This file no longer exists.`
  : error.status === 415 || error.status === 422 ? t`The text of this file cannot be read. Download the file to open it.` : t`This file could not be loaded: ${error.message}.`);

/** Shows the beginning of a text file, highlighted or as Markdown. */
async function textOf(thread, name, path, asMarkdown = false) {
  try {
    const response = await request('GET', fileUrl(thread, path), { headers: { range: `bytes=0-${PREVIEW_BYTES - 1}` } });
    const text = await response.text();
    const whole = Number(response.headers.get('content-range')?.split('/')[1] ?? 0);
    const shown = asMarkdown ? markdown(text)
      : make('pre', { tabIndex: 0, role: 'region', 'aria-label': t`Text of the file`, dir: 'auto' }, await colouredText(text, name.split('.').pop()) ?? revealed(text));
    return withTruncationHint(shown, whole > PREVIEW_BYTES);
  } catch (error) {
    // A range request for an empty file returns 416.
    return hint(failure(error));
  }
}

/** Returns a hint with the reason why an image is not shown. */
async function imageFailure(thread, path) {
  try {
    await request('GET', fileUrl(thread, path), { headers: { range: 'bytes=0-0' } });
    return hint(t`The browser cannot show this image. It is damaged or not an image.`);
  } catch (error) {
    return hint(failure(error));
  }
}

/** Opens a dialog with the files of a thread. */
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

/** Attachments of the next message. They are uploaded as soon as they are added. */
export class Attachments {
  constructor(node, handlers) {
    Object.assign(this, { node, handlers, entries: [], limits: null });
  }

  get isBusy() { return this.entries.some(entry => entry.progress < 1); }
  get files() { return this.entries.map(entry => entry.file).filter(Boolean); }

  /** Adds files. `place` creates the thread if needed and returns its id. */
  async add(files, place) {
    const list = [...files];
    if (!list.length) return;
    this.limits ??= await get('/api/threads/new/uploads/limits').catch(() => null);
    const { max_files: most = 10, max_file_size: largest = Infinity } = this.limits ?? {};
    if (this.entries.length + list.length > most) { this.handlers.failed(t`You can attach at most ${most} files.`); return; }
    for (const file of list) {
      if (file.size > largest) this.handlers.failed(t`${plain(file.name)} is too large. The limit is ${sizeText(largest)}.`);
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
      if (error.name !== 'AbortError') this.handlers.failed(t`${plain(entry.name)} was not uploaded: ${error.message}.`);
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
    this.handlers.changed();
  }

  chip(entry) {
    const remove = make('button', { type: 'button', className: 'chip-close', 'aria-label': t`Remove ${plain(entry.name)}`, onclick: () => this.remove(entry) }, icon('i-close'));
    const bar = make('progress', { max: 1, value: entry.progress, 'aria-label': t`Uploading ${plain(entry.name)}` });
    return make('div', { className: 'chip' }, entry.preview ? make('img', { src: entry.preview, alt: '' }) : icon('i-file'),
      make('span', { className: 'file-name', textContent: plain(entry.name) }), entry.progress < 1 ? bar : make('span', { className: 'file-size', textContent: sizeText(entry.size) }), remove);
  }
}
