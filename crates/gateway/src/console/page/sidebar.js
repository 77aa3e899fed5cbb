// The sidebar: threads by day, with search, rename, pin and delete.

import { post, call } from './api.js';
import { $, dateText, dayGroup, debounced, icon, iconButton, make, plain } from './dom.js';
import { askedText, confirmed, menu } from './dialogs.js';
import { t } from './words.js';

/** Number of threads per page. */
const PAGE = 40;
/** Interval between refreshes of the list. */
const REFRESH_MS = 5000;

export class Sidebar {
  /** `handlers`: `found(threads)` after each refresh, `gone(id)` after a thread was deleted, `failed(text)`, `linked(up)`. */
  constructor(handlers) {
    Object.assign(this, { handlers, threads: [], current: null, wanted: PAGE, more: false, query: '', refreshes: 0, shown: '' });
    [this.list, this.search] = ['threads', 'search'].map($);
    this.search.addEventListener('input', debounced(() => { this.query = this.search.value.trim(); this.wanted = PAGE; this.refresh(); }, 150));
    this.search.addEventListener('keydown', event => this.keys(event));
    this.list.addEventListener('keydown', event => this.keys(event));
    new IntersectionObserver(entries => { if (entries.at(-1).isIntersecting && this.more) { this.wanted += PAGE; this.refresh(); } }, { root: $('history') }).observe($('history-end'));
    setInterval(() => document.hidden || this.refresh(), REFRESH_MS);
    document.addEventListener('visibilitychange', () => document.hidden || this.refresh());
  }

  /** Loads the list of threads; resolves once the newest list is shown. */
  refresh() {
    this.refreshed = this.fetchThreads(++this.refreshes);
    return this.refreshed;
  }

  async fetchThreads(number) {
    const asked = { limit: Math.min(this.wanted + 1, 1000), ...(this.query ? { query: this.query } : {}) };
    let threads;
    try {
      threads = await post('/api/threads/search', asked);
      this.handlers.linked(true);
    } catch (error) {
      if (error.status === 0) this.handlers.linked(false);
      return undefined;
    }
    // A later request supersedes this one.
    if (number !== this.refreshes) return this.refreshed;
    this.more = threads.length > this.wanted;
    this.threads = threads.slice(0, this.wanted);
    this.draw();
    this.handlers.found(this.threads);
    return undefined;
  }

  choose(id) {
    this.current = id;
    this.draw();
  }

  title(id) { return titleOf(this.threads.find(thread => thread.thread_id === id)); }

  draw() {
    const now = this.threads.map(thread => [thread.thread_id, titleOf(thread), thread.status, thread.updated_at, thread.metadata?.deerflow_pinned]);
    const signature = JSON.stringify([now, this.current, this.query, this.more, new Date().toDateString()]);
    if (signature === this.shown) return;
    this.shown = signature;
    const focused = this.list.contains(document.activeElement) ? document.activeElement.dataset.id : null;
    const groups = new Map();
    for (const thread of this.threads) {
      const group = thread.metadata?.deerflow_pinned ? t`Pinned` : dayGroup(thread.updated_at);
      groups.set(group, [...(groups.get(group) ?? []), thread]);
    }
    this.list.replaceChildren(...[...groups].map(([name, threads]) => {
      const heading = make('h3', { textContent: name });
      return make('section', { 'aria-label': name }, heading, make('ul', {}, ...threads.map(thread => this.row(thread))));
    }));
    if (!this.threads.length) this.list.append(make('p', { className: 'hint', textContent: this.query ? t`No matching conversations.` : t`Your conversations appear here.` }));
    if (focused) this.list.querySelector(`a[data-id="${CSS.escape(focused)}"]`)?.focus();
  }

  row(thread) {
    const { thread_id: id, status, updated_at: updated } = thread;
    const channel = thread.metadata?.terminal ? 'local' : thread.channel;
    const link = make('a', { href: `#/t/${id}`, dataset: { id }, title: `${titleOf(thread)} · ${dateText(updated)}`, 'aria-current': id === this.current ? 'page' : undefined },
      make('span', { className: 'thread-title', dir: 'auto', textContent: titleOf(thread) }),
      channel ? make('span', { className: 'origin', textContent: originOf(channel) }) : '',
      status === 'busy' ? make('span', { className: 'spinner', role: 'img', 'aria-label': t`running`, title: t`running` }) : '');
    if (thread.read_only) return make('li', {}, link);
    const more = iconButton('i-more', t`Actions for ${titleOf(thread)}`, () => this.offer(more, thread));
    more.setAttribute('aria-haspopup', 'menu');
    return make('li', {}, link, more);
  }

  /** Opens the menu of a thread. */
  offer(button, thread) {
    const pinned = Boolean(thread.metadata?.deerflow_pinned);
    menu(button, [
      { label: pinned ? t`Unpin` : t`Pin`, icon: icon('i-pin'), run: () => this.change(call('PATCH', this.path(thread), { metadata: { deerflow_pinned: !pinned } })) },
      { label: t`Rename`, icon: icon('i-pencil'), run: () => this.rename(thread) },
      { label: t`Delete`, icon: icon('i-trash'), danger: true, run: () => this.remove(thread) },
    ]);
  }

  path(thread) { return `/api/threads/${thread.thread_id}`; }

  async change(done) {
    try { await done; } catch (error) { this.handlers.failed(t`That did not work: ${error.message}.`); }
    await this.refresh();
  }

  async rename(thread) {
    const title = await askedText({ title: t`Rename`, label: t`Title`, value: thread.values?.title ?? '', ok: t`Rename` });
    if (title) await this.change(post(`${this.path(thread)}/state`, { values: { title } }));
  }

  async remove(thread) {
    const sure = await confirmed({ title: t`Delete this conversation?`, text: t`“${titleOf(thread)}” is deleted with its files. This cannot be undone.`, ok: t`Delete`, danger: true });
    if (!sure) return;
    await this.change(call('DELETE', this.path(thread)).then(() => this.handlers.gone(thread.thread_id)));
  }

  /** Handles the arrow keys, which move between the search and the list, and Escape. */
  keys(event) {
    if (event.key === 'Escape' && event.target === this.search) {
      if (this.search.value) {
        this.search.value = this.query = '';
        this.refresh();
      } else $('box').focus();
      event.preventDefault();
      event.stopPropagation();
    }
    if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return;
    const links = [...this.list.querySelectorAll('a')];
    const at = links.indexOf(document.activeElement) + (event.key === 'ArrowDown' ? 1 : -1);
    (at < 0 ? this.search : links[Math.min(at, links.length - 1)])?.focus();
    event.preventDefault();
  }
}

/** Returns the display name of a channel. `local` is the terminal and earlier versions of the page. */
const originOf = channel => (channel === 'local' ? t`Terminal` : channel[0].toUpperCase() + channel.slice(1));

export const titleOf = thread => plain(thread?.values?.title) || t`Untitled`;
