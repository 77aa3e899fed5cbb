// The view of a turn: a user's message and its answer.

import { copyButton, dateText, icon, iconButton, make, plain, sizeText } from './dom.js';
import { fileUrl } from './api.js';
import { approval } from './approval.js';
import { changesBadge, mayChangeFiles } from './changes.js';
import { form } from './form.js';
import { MarkdownView } from './markup.js';
import { StepView, call, thought } from './step.js';
import { t } from './words.js';

const IMAGE = /\.(?:png|jpe?g|gif|webp|avif|bmp|svg)$/i;
export const isImage = name => IMAGE.test(name ?? '');

/** Maximum number of steps that stay unfolded after a run. */
const STEPS_IN_SIGHT = 3;

export class TurnView {
  /** `thread` contains the turn; `actions` are the handlers of its buttons. */
  constructor(thread, actions) {
    Object.assign(this, { thread, actions, parts: new Map(), edits: false });
    this.you = make('div', { className: 'you' });
    this.body = make('div', { className: 'body' });
    this.foot = make('div', { className: 'foot' });
    this.answer = make('div', { className: 'pudu' }, icon('deer', 'deer'), make('div', { className: 'answer' }, this.body, this.foot));
    this.node = make('article', { className: 'turn' }, this.you, this.answer);
  }

  update(turn, state) {
    Object.assign(this, { turn, state });
    this.node.setAttribute('aria-busy', String(state.isWorking));
    this.showQuestion();
    this.answer.hidden = !turn.items.length && !state.isWorking && !state.failure;
    this.showParts();
    this.showFoot();
  }

  showQuestion() {
    const { human } = this.turn;
    const mayEdit = this.state.isLast && !this.state.isBusy && human && !human.isUnsaved && (this.turn.run || human.hasRun === false);
    const signature = JSON.stringify([human?.id, human?.text, human?.files, mayEdit, this.edits]);
    if (signature === this.asked) return;
    this.asked = signature;
    if (!human) { this.you.replaceChildren(); return; }
    if (this.edits) { this.you.replaceChildren(this.editor(human)); return; }
    const files = make('div', { className: 'files' }, ...(human.files ?? []).map(file => fileCard(this.thread, file, this.actions)));
    const tools = make('div', { className: 'tools' }, copyButton(t`Copy message`, () => human.text),
      mayEdit && iconButton('i-pencil', t`Edit and send again`, () => this.edit(true), 'quiet-button edit'));
    this.you.replaceChildren(make('h2', { className: 'unseen', textContent: human.sender ? t`${plain(human.sender)} said` : t`You said` }),
      human.sender ? make('span', { className: 'sender', textContent: plain(human.sender), 'aria-hidden': 'true' }) : '',
      human.files?.length ? files : '',
      make('div', { className: 'said' }, tools, human.text && make('div', { className: 'bubble', dir: 'auto', textContent: human.text, title: human.at ? dateText(human.at) : '' })));
  }

  edit(on) {
    this.edits = on;
    this.showQuestion();
    if (on) this.you.querySelector('textarea').focus();
    else this.you.querySelector('.edit')?.focus();
  }

  editor(human) {
    const box = make('textarea', { className: 'edit-box', value: human.text, rows: Math.min(12, human.text.split('\n').length + 1), 'aria-label': t`Your message`, dir: 'auto' });
    const save = async () => {
      if (!box.value.trim() || box.value.trim() === human.text.trim()) { this.edit(false); return; }
      this.edits = false;
      await this.actions.edit(this.turn, box.value.trim());
    };
    box.onkeydown = event => {
      if (event.key === 'Escape') { event.preventDefault(); event.stopPropagation(); this.edit(false); }
      if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) { event.preventDefault(); save(); }
    };
    return make('form', { className: 'editor', onsubmit: event => { event.preventDefault(); save(); } }, box,
      make('div', { className: 'row' }, make('button', { type: 'button', className: 'button', textContent: t`Cancel`, onclick: () => this.edit(false) }),
        make('button', { className: 'button main', textContent: t`Send` })));
  }

  /** Shows the parts of the answer in order: steps, texts, files, questions. */
  showParts() {
    const wanted = partsOf(this.turn, this.state, this.thread, this.actions);
    const keys = new Set(wanted.map(part => part.key));
    for (const [key, part] of this.parts) if (!keys.has(key)) { part.node.remove(); this.parts.delete(key); }
    let before = null;
    for (const part of wanted) {
      let view = this.parts.get(part.key);
      if (!view) {
        view = PARTS[part.kind](this.thread, this.actions);
        this.parts.set(part.key, view);
      }
      if (before ? before.nextSibling !== view.node : this.body.firstChild !== view.node) {
        if (before) before.after(view.node); else this.body.prepend(view.node);
      }
      view.update(part, this.state);
      before = view.node;
    }
  }

  showFoot() {
    const { isWorking, isBusy, isLast, note, failure, quiet } = this.state;
    const { items } = this.turn;
    const run = this.turn.hasRun ? this.turn.run : null;
    const rating = items.findLast(item => item.kind === 'ai')?.rating ?? 0;
    const isStill = !isWorking && !items.some(item => item.kind === 'ai' && !item.done);
    const signature = JSON.stringify([isWorking, isBusy, isLast, note, failure, quiet, items.length, isStill, rating]);
    if (signature === this.footed) return;
    this.footed = signature;
    const parts = [];
    if (isWorking && quiet) parts.push(make('p', { className: 'activity', textContent: note || t`Thinking…` }));
    if (failure && !isWorking) parts.push(this.failure(failure));
    if (isStill && run && mayChangeFiles(items)) parts.push(this.changes(run));
    if (isStill && items.length) parts.push(this.tools(isLast && !isBusy, rating, run));
    this.foot.replaceChildren(...parts);
  }

  /** Returns the badge of a run, which is created once. */
  changes(run) {
    if (this.changed?.run !== run) this.changed = { run, badge: changesBadge(this.thread.id, run) };
    return this.changed.badge;
  }

  failure({ text, isStop }) {
    // A partial answer is regenerated instead of continued.
    const mayTry = this.state.isLast && !this.state.isBusy && !(isStop && this.turn.items.at(-1)?.kind === 'ai');
    const again = mayTry && make('button', { type: 'button', className: 'button', textContent: isStop ? t`Continue` : t`Try again`, onclick: () => this.actions.retry(this.turn) });
    return make('div', { className: isStop ? 'failure stopped' : 'failure' }, isStop ? '' : icon('i-alert'), make('p', { textContent: text }), again);
  }

  tools(mayRedo, rating, run) {
    const rate = (value, symbol, label) => {
      const button = iconButton(symbol, label, () => this.actions.rate(this.turn, rating === value ? 0 : value));
      button.setAttribute('aria-pressed', String(rating === value));
      return button;
    };
    const words = () => this.turn.items.filter(item => item.kind === 'ai' && item.text).map(item => item.text).join('\n\n');
    const seconds = this.turn.items.findLast(item => item.kind === 'ai')?.seconds;
    return make('div', { className: 'tools' }, copyButton(t`Copy answer`, words),
      mayRedo && iconButton('i-redo', t`Regenerate answer`, () => this.actions.regenerate(this.turn)),
      !this.state.isBusy && iconButton('i-branch', t`Branch from here`, () => this.actions.branch(this.turn)),
      run && rate(1, 'i-up', t`Good answer`), run && rate(-1, 'i-down', t`Bad answer`),
      seconds > 1 && make('span', { className: 'took', textContent: t`${seconds} s` }));
  }
}

/** Returns the parts of an answer: `{key, kind, …}` each. */
function partsOf({ items, run, hasRun }, state, thread, actions) {
  const results = new Map(items.filter(item => item.kind === 'tool').map(item => [item.call, item]));
  const [parts, handed] = [[], []];
  const step = (id, made) => {
    if (parts.at(-1)?.kind !== 'steps') parts.push({ key: `steps-${id}`, kind: 'steps', steps: [] });
    parts.at(-1).steps.push({ id, ...made });
  };
  for (const item of items) {
    if (item.kind === 'tool' && item.question) parts.push({ key: `ask-${item.id}`, kind: 'question', question: item.question, text: item.text });
    if (item.kind !== 'ai') continue;
    if (item.reasoning) step(`${item.id}-thought`, thought(item.reasoning, item.done || item.text || !state.isWorking));
    if (item.text) parts.push({ key: `words-${item.id}`, kind: 'words', text: item.text, isDone: item.done });
    if (item.done && CUTS[item.finish]) parts.push({ key: `cut-${item.id}`, kind: 'cut', text: CUTS[item.finish] });
    for (const one of item.calls) {
      const result = results.get(one.id);
      if (one.name === 'ask_clarification' && result?.question) continue;
      const more = { result, isLive: state.isWorking, task: thread.tasks.get(one.id), load: hasRun ? () => actions.loadTask(one.id, item.run ?? run) : undefined };
      step(one.id, call(one, more));
      thread.asked(one.id, result).forEach((asked, at) => {
        if (asked.status !== 'open' || state.isWorking) parts.push({ key: `approval-${one.id}-${at}`, kind: 'approval', asked });
      });
      const paths = one.name === 'present_files' && result && !result.isError && one.args.filepaths;
      if (Array.isArray(paths)) handed.push({ key: `files-${one.id}`, kind: 'files', files: paths.map(path => ({ name: String(path).split('/').pop(), path: String(path) })) });
    }
  }
  return [...parts, ...handed];
}

/** Texts for truncated answers, by finish reason. */
const CUTS = { length: t`This answer was cut off at the model’s output limit.`, content_filter: t`This answer was cut off by the provider’s content filter.` };

const PARTS = {
  approval,

  cut() {
    const words = make('p');
    return { node: make('div', { className: 'failure cut' }, icon('i-alert'), words), update: ({ text }) => { words.textContent = text; } };
  },

  words(thread, actions) {
    const node = make('div', { className: 'words' });
    const view = new MarkdownView(node, (url, isImageLink, label) => fileLink(thread, actions, url, isImageLink, label));
    return { node, update: ({ text, isDone }, { isWorking }) => view.update(text, isDone || !isWorking) };
  },

  steps() {
    const [list, views] = [make('div', { className: 'step-list' }), new Map()];
    const toggle = make('button', { type: 'button', className: 'steps-toggle', 'aria-expanded': 'false' });
    const node = make('div', { className: 'steps' }, toggle, list);
    let chosen = null;
    const update = ({ steps }, { isWorking }) => {
      for (const step of steps) {
        if (!views.has(step.id)) { views.set(step.id, new StepView()); list.append(views.get(step.id).node); }
        views.get(step.id).update(step);
      }
      const mayFold = !isWorking && steps.length > STEPS_IN_SIGHT;
      const isOpen = chosen ?? !mayFold;
      toggle.hidden = !mayFold;
      list.hidden = !isOpen;
      toggle.setAttribute('aria-expanded', String(isOpen));
      const failed = steps.filter(({ state }) => state === 'failed' || state === 'wrong').length;
      toggle.classList.toggle('failed', failed > 0);
      toggle.replaceChildren(icon('i-chevron'), failed ? t`${steps.length} steps, ${failed} failed` : t`${steps.length} steps`);
      toggle.onclick = () => { chosen = list.hidden; update({ steps }, { isWorking }); };
    };
    return { node, update };
  },

  files(thread, actions) {
    const node = make('div', { className: 'files handed' });
    return { node, update({ files }) { if (!node.childElementCount) node.append(...files.map(file => fileCard(thread, file, actions))); } };
  },

  question(thread, actions) {
    const words = make('div', { className: 'words' });
    const options = make('div', { className: 'options' });
    const view = new MarkdownView(words);
    let fields = null;
    const update = ({ question, text }, { isLast, isBusy }) => {
      view.update(question.question || text, true);
      if (question.fields?.length) {
        fields ??= form(question, actions);
        // Keep the form, as it may have a draft.
        if (!isLast || isBusy) fields.remove();
        else if (!fields.isConnected) options.after(fields);
        return;
      }
      const choices = isLast && !isBusy ? question.options ?? [] : [];
      options.replaceChildren(...choices.map(({ label, value }) =>
        make('button', { type: 'button', className: 'button option', dir: 'auto', textContent: plain(label), onclick: () => actions.say(value ?? label) })));
      if (choices.length) options.append(make('span', { className: 'hint', textContent: t`or type an answer below` }));
    };
    return { node: make('div', { className: 'question' }, words, options), update };
  },
};

/** Creates a button for a file: an image, or its name and size. */
export function fileCard(thread, { name, size, path }, actions, asPicture = isImage(name)) {
  const open = () => path && actions.openFile({ name, size, path });
  if (path && asPicture) {
    const image = make('img', { src: fileUrl(thread.id, path), alt: plain(name), loading: 'lazy' });
    const button = make('button', { type: 'button', className: 'picture', title: plain(name), onclick: open }, image);
    image.onerror = () => button.replaceWith(fileCard(thread, { name, size, path }, actions, false));
    return button;
  }
  return make('button', { type: 'button', className: 'file', onclick: open, title: plain(name) }, icon('i-file'),
    make('span', { className: 'file-name', textContent: plain(name) }), size >= 0 ? make('span', { className: 'file-size', textContent: sizeText(size) }) : '');
}

/** Creates a link to a file of the agent, or an image of it. Returns null for other URLs. */
function fileLink(thread, actions, url, asImage, label) {
  const path = /^(?:sandbox:)?(\/mnt\/user-data\/(?:outputs|uploads)\/.+)$/.exec(url)?.[1];
  if (!path) return null;
  const name = path.split('/').pop();
  if (asImage && isImage(name)) return fileCard(thread, { name, path }, actions);
  return make('button', { type: 'button', className: 'link', textContent: plain(label) || name, onclick: () => actions.openFile({ name, path }) });
}
