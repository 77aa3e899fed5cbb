// Where one writes: the box, its menu of commands, files, model and mode.

import { $, icon, kept, make } from './dom.js';
import { menu } from './dialogs.js';
import { Attachments } from './files.js';
import { t } from './words.js';

/** Modes by their names in the API, and what a run does in each. The last two are for models that think more or less. */
const MODES = {
  flash: { label: 'Flash', hint: t`Answers at once`, thinking_enabled: false, reasoning_effort: 'minimal' },
  thinking: { label: t`Thinking`, hint: t`Thinks before it answers`, thinking_enabled: true, reasoning_effort: 'low' },
  pro: { label: 'Pro', hint: t`Thinks longer`, thinking_enabled: true, reasoning_effort: 'medium', is_plan_mode: true, byEffort: true },
  ultra: { label: 'Ultra', hint: t`Thinks longest`, thinking_enabled: true, reasoning_effort: 'high', is_plan_mode: true, subagent_enabled: true, byEffort: true },
};

/** The agent that answers where nobody chose another one. */
const LEAD = { label: 'pudu', hint: t`Does everything` };

const modesOf = model => Object.keys(MODES).filter(name => model?.supports_thinking && (model.supports_reasoning_effort || !MODES[name].byEffort));

export class Composer {
  /** `hears`: `say(text, files)`, `ready()` once what was said before is taken, `stop()`, `place()` for the thread of files, `commands(text)`, `own()` for one's messages, `failed(text)`,
   *  `agent()` for `{name, isFixed}` of the conversation, and `choose(agent)`. */
  constructor(hears) {
    Object.assign(this, { hears, models: [], agents: [], offered: [], chosen: 0, past: -1, isRunning: false, key: 'new' });
    [this.box, this.list] = ['box', 'menu'].map($);
    this.files = new Attachments($('attached'), { changed: () => this.state(), failed: text => hears.failed(text) });
    this.box.addEventListener('input', () => { this.past = -1; this.typed(); });
    this.box.addEventListener('keydown', event => this.keydown(event));
    this.box.addEventListener('blur', () => this.hide());
    // Who scrolls in the menu writes on.
    this.list.addEventListener('mousedown', event => event.preventDefault());
    $('composer').addEventListener('submit', event => { event.preventDefault(); this.submit(); });
    $('stop').onclick = () => hears.stop();
    $('attach').onclick = () => $('picker').click();
    $('picker').onchange = event => { this.attach(event.target.files); event.target.value = ''; };
    $('model').onclick = () => this.pickModel();
    $('mode').onclick = () => this.pickMode();
    $('agent').onclick = () => this.pickAgent();
    this.takeDrops();
  }

  get text() { return this.box.value.trim(); }

  /** Takes files that are pasted into the box, or dropped anywhere. */
  takeDrops() {
    const shade = $('drop');
    const has = event => [...event.dataTransfer?.types ?? []].includes('Files');
    this.box.addEventListener('paste', event => {
      if (!event.clipboardData.files.length) return;
      event.preventDefault();
      this.attach(event.clipboardData.files);
    });
    addEventListener('dragover', event => { if (has(event)) { event.preventDefault(); shade.hidden = false; } });
    addEventListener('dragleave', event => { if (!event.relatedTarget) shade.hidden = true; });
    addEventListener('drop', event => {
      shade.hidden = true;
      if (!has(event)) return;
      event.preventDefault();
      this.attach(event.dataTransfer.files);
    });
  }

  attach(files) {
    this.files.add(files, () => this.hears.place());
    this.box.focus();
  }

  /** Turns to another thread, with what was begun to be written there. */
  turnTo(key) {
    this.key = key;
    this.files.clear();
    this.write(kept.get(`draft.${key}`) ?? '');
    this.hide();
  }

  write(text) {
    this.box.value = text;
    this.typed();
  }

  typed() {
    this.box.style.height = 'auto';
    this.box.style.height = `${this.box.scrollHeight}px`;
    if (this.past < 0) kept.set(`draft.${this.key}`, this.box.value);
    this.state();
    this.offer();
  }

  /** Shows what can be done. */
  state(isRunning = this.isRunning) {
    this.isRunning = isRunning;
    const isEmpty = !this.text && !this.files.files.length;
    $('send').disabled = isEmpty || this.files.isBusy;
    $('stop').hidden = !isRunning;
    $('send').hidden = isRunning && isEmpty;
    $('send').title = isRunning ? t`Send after this answer (Enter)` : t`Send (Enter)`;
  }

  async submit() {
    if ($('send').disabled || this.isWaiting) return;
    this.hide();
    this.isWaiting = true;
    await this.hears.ready().catch(() => {});
    this.isWaiting = false;
    const [text, files, key] = [this.text, this.files.files, this.key];
    if (!text && !files.length) return;
    const draft = this.box.value;
    this.write('');
    this.past = -1;
    const said = await this.hears.say(text, files).then(() => true, error => { this.hears.failed(t`Not sent: ${error.message}.`); return false; });
    // What was refused is not lost.
    if (!said && !this.box.value && key === this.key) this.write(draft);
    if (said) this.files.clear();
  }

  // ---- Model and mode ----

  setModels(models) {
    this.models = models;
    this.showChoices();
  }

  get model() { return this.models.find(model => model.name === kept.get('model')) ?? this.models[0]; }

  get mode() {
    const mode = kept.get('mode');
    return modesOf(this.model).includes(mode) ? mode : null;
  }

  showChoices() {
    const { model, mode } = this;
    $('model').hidden = !model;
    $('model').replaceChildren(make('span', { className: 'pick-name', textContent: model?.display_name || model?.name || '' }), icon('i-chevron'));
    $('model').setAttribute('aria-label', t`Model: ${model?.display_name || model?.name}`);
    $('mode').hidden = !model?.supports_thinking;
    $('mode').replaceChildren(MODES[mode]?.label ?? t`Mode`, icon('i-chevron'));
    $('mode').setAttribute('aria-label', t`Mode: ${MODES[mode]?.label ?? t`as configured`}`);
  }

  setAgents(agents) {
    this.agents = agents;
    this.showAgent();
  }

  /** Shows the agent of the conversation, which is chosen before its first message. */
  showAgent() {
    const { name, isFixed } = this.hears.agent();
    $('agent').hidden = isFixed ? !name : !this.agents.length;
    if (name === this.shownAgent && isFixed === $('agent').disabled) return;
    this.shownAgent = name;
    $('agent').disabled = isFixed;
    $('agent').title = isFixed ? t`The agent of this conversation` : '';
    $('agent').setAttribute('aria-label', t`Agent: ${name ?? LEAD.label}`);
    $('agent').replaceChildren(make('span', { className: 'pick-name', textContent: name ?? LEAD.label }), isFixed ? '' : icon('i-chevron'));
  }

  pickAgent() {
    const { name } = this.hears.agent();
    const entry = (agent, label, hint) => ({ label, hint, checked: agent === name, run: () => { this.hears.choose(agent); this.showAgent(); this.box.focus(); } });
    menu($('agent'), [entry(null, LEAD.label, LEAD.hint), ...this.agents.map(agent => entry(agent.name, agent.name, agent.description ?? ''))], t`Agent`);
  }

  choose(what, name) {
    kept.set(what, name);
    this.showChoices();
    this.box.focus();
  }

  pickModel() {
    menu($('model'), this.models.map(model => ({
      label: model.display_name || model.name, hint: model.description ?? '', checked: model === this.model, run: () => this.choose('model', model.name),
    })), t`Model`);
  }

  pickMode() {
    const entries = modesOf(this.model).map(name => ({ label: MODES[name].label, hint: MODES[name].hint, checked: name === this.mode, run: () => this.choose('mode', name) }));
    menu($('mode'), [{ label: t`As configured`, hint: t`What the model does by itself`, checked: !this.mode, run: () => this.choose('mode', null) }, ...entries], t`Mode`);
  }

  /** The options of a run, in the API's words. */
  options() {
    const { model, mode } = this;
    const { name: agent } = this.hears.agent();
    const options = { ...(kept.get('model') && model ? { model_name: model.name } : {}), ...(agent ? { agent_name: agent } : {}) };
    if (!mode) return options;
    const { label: _, hint: __, byEffort: ___, reasoning_effort: effort, ...rest } = MODES[mode];
    return { ...options, mode, ...rest, ...(model.supports_reasoning_effort ? { reasoning_effort: effort } : {}) };
  }

  // ---- The menu of commands ----

  offer() {
    this.offered = this.box.value.startsWith('/') ? this.hears.commands(this.box.value) : [];
    if (this.offered.length === 1 && this.offered[0].text.trimEnd() === this.box.value) this.offered = [];
    this.list.hidden = !this.offered.length;
    this.list.replaceChildren(...this.offered.map((row, at) => {
      const item = make('li', { id: `offer-${at}`, role: 'option' }, make('b', { textContent: row.label }), make('span', { textContent: row.help }));
      item.addEventListener('mousedown', event => { event.preventDefault(); this.chosen = at; this.take(); });
      return item;
    }));
    this.mark(0);
  }

  mark(at) {
    if (this.list.hidden) { this.box.removeAttribute('aria-activedescendant'); return; }
    this.chosen = (at + this.offered.length) % this.offered.length;
    [...this.list.children].forEach((item, index) => item.setAttribute('aria-selected', String(index === this.chosen)));
    this.list.children[this.chosen].scrollIntoView({ block: 'nearest' });
    this.box.setAttribute('aria-activedescendant', `offer-${this.chosen}`);
  }

  hide() {
    this.list.hidden = true;
    this.box.removeAttribute('aria-activedescendant');
  }

  take() { this.write(this.offered[this.chosen].text); this.box.focus(); }

  /** Handles a key while the menu is open; Enter sends what is complete already. */
  inMenu({ key }) {
    if (key === 'ArrowDown') this.mark(this.chosen + 1);
    else if (key === 'ArrowUp') this.mark(this.chosen - 1);
    else if (key === 'Escape') this.hide();
    else if (key === 'Tab') this.take();
    else if (key === 'Enter' && this.offered.every(row => row.text.trimEnd() !== this.box.value.trimEnd())) this.take();
    else return false;
    return true;
  }

  keydown(event) {
    if (event.isComposing || event.keyCode === 229) return;
    const bare = !event.shiftKey && !event.altKey && !event.ctrlKey && !event.metaKey;
    if (bare && !this.list.hidden && this.inMenu(event)) { event.preventDefault(); event.stopPropagation(); return; }
    if (!bare) return;
    if (event.key === 'Enter') { event.preventDefault(); this.submit(); }
    if (event.key === 'ArrowUp' && this.recall(1)) event.preventDefault();
    if (event.key === 'ArrowDown' && this.recall(-1)) event.preventDefault();
  }

  /** Walks through one's own messages; only from an empty box, or one that shows such a message. */
  recall(step) {
    if (this.box.value && this.past < 0) return false;
    const own = this.hears.own();
    const next = Math.min(this.past + step, own.length - 1);
    if (this.past < 0 && next < 0) return false;
    this.past = Math.max(next, -1);
    this.write(own[this.past] ?? '');
    this.hide();
    return true;
  }
}
