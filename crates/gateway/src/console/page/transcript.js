// The view of the conversation: turns, scroll position, loading of older pages.

import { $, make } from './dom.js';
import { TurnView } from './turn.js';
import { t } from './words.js';

/** Distance from the end within which new messages are scrolled into view. */
const NEAR_PX = 60;

/** Texts for runs that end without an answer, by status. */
const ENDS = { timeout: t`This took longer than allowed.`, error: t`Something went wrong.`, interrupted: t`Stopped.` };

export class Transcript {
  constructor(actions) {
    Object.assign(this, { actions, views: new Map(), conversation: null, frame: 0, atBottom: true, loading: false });
    [this.scroll, this.list, this.below] = ['scroll', 'turns', 'below'].map($);
    this.scroll.addEventListener('scroll', () => this.scrolled(), { passive: true });
    new ResizeObserver(() => this.stay()).observe(this.scroll);
    new ResizeObserver(() => this.stay()).observe(this.list);
    this.above = new IntersectionObserver(entries => entries.at(-1).isIntersecting && this.older(), { root: this.scroll, rootMargin: '600px 0px 0px' });
    this.above.observe($('older'));
    $('down').onclick = () => { this.toBottom(); $('box').focus(); };
  }

  /** Shows another conversation. */
  show(conversation) {
    this.conversation = conversation;
    this.list.replaceChildren();
    this.views.clear();
    this.below.replaceChildren();
    this.atBottom = true;
    this.change();
  }

  /** Redraws in the next animation frame. */
  change() {
    this.frame ||= requestAnimationFrame(() => { this.frame = 0; this.draw(); });
  }

  draw() {
    const { conversation } = this;
    if (!conversation) return;
    const turns = conversation.thread.turns();
    const keys = new Set(turns.map(turn => turn.key));
    for (const [key, view] of this.views) if (!keys.has(key)) { view.node.remove(); this.views.delete(key); }
    let before = null;
    turns.forEach((turn, at) => {
      let view = this.views.get(turn.key);
      if (!view) {
        view = new TurnView(conversation.thread, this.actions);
        this.views.set(turn.key, view);
      }
      const place = before ? before.nextSibling : this.list.firstChild;
      if (place !== view.node) this.list.insertBefore(view.node, place);
      this.update(view, turn, at === turns.length - 1);
      before = view.node;
    });
    this.showQueue();
    $('welcome').hidden = !conversation.isNew || turns.length > 0;
    $('older').hidden = conversation.thread.oldest === null;
    this.stay();
  }

  update(view, turn, isLast) {
    const { thread, isRunning } = this.conversation;
    const last = turn.items.at(-1);
    const isWorking = isRunning && isLast;
    const run = thread.runs.get(turn.run);
    const state = { isLast, isBusy: isRunning, isWorking, note: isLast ? thread.note : '', failure: isWorking ? null : failureOf(run, turn) };
    // Growing text and running tools already show activity.
    const results = new Set(turn.items.map(item => item.call));
    const grows = last?.done === false && (last.text || last.reasoning);
    state.quiet = Boolean(state.note) || !(grows || turn.items.some(item => item.calls?.some(call => !results.has(call.id))));
    const tasks = turn.items.flatMap(item => item.calls ?? []).map(call => thread.tasks.get(call.id)).filter(Boolean).map(task => `${task.state}${task.steps.length}`);
    const approvals = [...thread.approvals.values()].filter(asked => asked.run_id === turn.run).map(asked => asked.id + asked.status);
    const signature = JSON.stringify([state, tasks, approvals, turn.human?.text, turn.human?.isUnsaved, turn.run,
      turn.items.map(item => [item.id, item.text.length, item.reasoning?.length, item.calls?.length, item.done, item.rating, item.isError])]);
    if (signature === view.signature) return;
    view.signature = signature;
    view.update(turn, state);
  }

  /** Shows the queued messages. */
  showQueue() {
    const { queue } = this.conversation;
    $('queue').replaceChildren(...queue.filter(one => one.message).map(one => make('div', { className: 'waiting' },
      make('span', { className: 'bubble', dir: 'auto', textContent: one.message.text }),
      make('span', { className: 'hint' }, t`queued`, ' ', make('button', { type: 'button', className: 'link', textContent: t`Remove`, onclick: () => this.actions.unqueue(one) })))));
  }

  /** Shows suggested messages. */
  suggest(list) {
    this.below.replaceChildren(...list.map(text => make('button', { type: 'button', className: 'idea', dir: 'auto', textContent: text, onclick: () => this.actions.say(text) })));
    this.stay();
  }

  async older() {
    if (this.loading || !this.conversation || this.conversation.thread.oldest === null) return;
    this.loading = true;
    const [anchor, top] = [this.list.firstElementChild, this.list.firstElementChild?.getBoundingClientRect().top];
    try {
      if (await this.conversation.older()) {
        this.draw();
        // Keep the visible part in place.
        if (anchor?.isConnected) this.scroll.scrollTop += anchor.getBoundingClientRect().top - top;
      }
    } catch { /* Further scrolling retries. */ }
    this.loading = false;
    // The observer reports changes only. Observing again loads more if the top is still visible.
    this.above.unobserve($('older'));
    this.above.observe($('older'));
  }

  scrolled() {
    const { scrollHeight, scrollTop, clientHeight } = this.scroll;
    this.atBottom = scrollHeight - scrollTop - clientHeight < NEAR_PX;
    $('down').hidden = this.atBottom;
  }

  /** Stays at the end if the view was there. */
  stay() {
    if (this.atBottom) this.scroll.scrollTop = this.scroll.scrollHeight;
    else $('down').hidden = false;
  }

  toBottom() {
    this.atBottom = true;
    $('down').hidden = true;
    this.stay();
  }
}

/** Returns the failure text of a turn whose run did not succeed, or null. */
function failureOf(run, turn) {
  if (!run || run.status === 'success' || !ENDS[run.status]) return null;
  if (run.status === 'interrupted') return { text: ENDS.interrupted, isStop: true };
  // A rolled-back run has been replaced by another one.
  if (run.error === 'Rolled back by user') return turn.items.length ? null : { text: ENDS.interrupted, isStop: true };
  return { text: run.error || ENDS[run.status], isStop: false };
}
