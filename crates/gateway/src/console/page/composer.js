// The composer: text box, command menu, attachments, model and mode.

import { $, icon, storage, make } from './dom.js';
import { menu } from './dialogs.js';
import { Attachments } from './files.js';
import { t } from './words.js';

/** Modes by their API names, with the run options of each. `byEffort` modes need a model with a reasoning effort. */
const MODES = {
  flash: { label: 'Flash', hint: t`Answers immediately`, thinking_enabled: false, reasoning_effort: 'minimal' },
  thinking: { label: t`Thinking`, hint: t`Thinks before answering`, thinking_enabled: true, reasoning_effort: 'low' },
  pro: { label: 'Pro', hint: t`Thinks longer`, thinking_enabled: true, reasoning_effort: 'medium', is_plan_mode: true, byEffort: true },
  ultra: { label: 'Ultra', hint: t`Thinks longest`, thinking_enabled: true, reasoning_effort: 'high', is_plan_mode: true, subagent_enabled: true, byEffort: true },
};

/** The default agent. */
const LEAD = { label: 'pudu', hint: t`General-purpose agent` };

const modesOf = model => Object.keys(MODES).filter(name => model?.supports_thinking && (model.supports_reasoning_effort || !MODES[name].byEffort));

export class Composer {
  /** `handlers`: `say(text, files)`; `ready()`, which resolves once the previous message is stored; `stop()`; `place()`, which returns the thread for uploads;
   *  `commands(text)`; `own()`, which returns the user's earlier messages; `failed(text)`; `agent()`, which returns `{name, isFixed}`; `choose(agent)`. */
  constructor(handlers) {
    Object.assign(this, { handlers, models: [], agents: [], offered: [], chosen: 0, past: -1, isRunning: false, key: 'new' });
    [this.box, this.list] = ['box', 'menu'].map($);
    this.files = new Attachments($('attached'), { changed: () => this.state(), failed: text => handlers.failed(text) });
    this.box.addEventListener('input', () => { this.past = -1; this.typed(); });
    this.box.addEventListener('keydown', event => this.keydown(event));
    this.box.addEventListener('blur', () => this.hide());
    // Keep the focus in the box while the menu is scrolled.
    this.list.addEventListener('mousedown', event => event.preventDefault());
    $('composer').addEventListener('submit', event => { event.preventDefault(); this.submit(); });
    $('stop').onclick = () => handlers.stop();
    $('attach').onclick = () => $('picker').click();
    $('picker').onchange = event => { this.attach(event.target.files); event.target.value = ''; };
    $('model').onclick = () => this.pickModel();
    $('mode').onclick = () => this.pickMode();
    $('agent').onclick = () => this.pickAgent();
    this.takeDrops();
  }

  get text() { return this.box.value.trim(); }

  /** Attaches files that are pasted into the box or dropped on the page. */
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
    this.files.add(files, () => this.handlers.place());
    this.box.focus();
  }

  /** Switches to another thread and restores its draft. */
  turnTo(key) {
    this.key = key;
    this.files.clear();
    this.write(storage.get(`draft.${key}`) ?? '');
    this.hide();
  }

  write(text) {
    this.box.value = text;
    this.typed();
  }

  typed() {
    this.box.style.height = 'auto';
    this.box.style.height = `${this.box.scrollHeight}px`;
    if (this.past < 0) storage.set(`draft.${this.key}`, this.box.value);
    this.state();
    this.offer();
  }

  /** Updates the buttons. */
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
    await this.handlers.ready().catch(() => {});
    this.isWaiting = false;
    const [text, files, key] = [this.text, this.files.files, this.key];
    if (!text && !files.length) return;
    const draft = this.box.value;
    this.write('');
    this.past = -1;
    // Restore the draft of a rejected message.
    if (!await this.send(text, files) && !this.box.value && key === this.key) this.write(draft);
  }

  /** Sends the answers of a form with the attached files. The draft stays in the box. */
  answer(text) { return this.send(text, this.files.files); }

  /** Sends a message and returns whether the daemon stored it. */
  async send(text, files) {
    const said = await this.handlers.say(text, files).then(() => true, error => { this.handlers.failed(t`Not sent: ${error.message}.`); return false; });
    if (said) this.files.clear();
    return said;
  }

  // ---- Model and mode ----

  setModels(models) {
    this.models = models;
    this.showChoices();
  }

  get model() { return this.models.find(model => model.name === storage.get('model')) ?? this.models[0]; }

  get mode() {
    const mode = storage.get('mode');
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

  /** Shows the agent of the conversation. It can be changed until the first message. */
  showAgent() {
    const { name, isFixed } = this.handlers.agent();
    $('agent').hidden = isFixed ? !name : !this.agents.length;
    if (name === this.shownAgent && isFixed === $('agent').disabled) return;
    this.shownAgent = name;
    $('agent').disabled = isFixed;
    $('agent').title = isFixed ? t`The agent cannot be changed after the first message` : '';
    $('agent').setAttribute('aria-label', t`Agent: ${name ?? LEAD.label}`);
    $('agent').replaceChildren(make('span', { className: 'pick-name', textContent: name ?? LEAD.label }), isFixed ? '' : icon('i-chevron'));
  }

  pickAgent() {
    const { name } = this.handlers.agent();
    const entry = (agent, label, hint) => ({ label, hint, checked: agent === name, run: () => { this.handlers.choose(agent); this.showAgent(); this.box.focus(); } });
    menu($('agent'), [entry(null, LEAD.label, LEAD.hint), ...this.agents.map(agent => entry(agent.name, agent.name, agent.description ?? ''))], t`Agent`);
  }

  choose(what, name) {
    storage.set(what, name);
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
    menu($('mode'), [{ label: t`As configured`, hint: t`Uses the configured settings`, checked: !this.mode, run: () => this.choose('mode', null) }, ...entries], t`Mode`);
  }

  /** Returns the context of a run for the API. */
  options() {
    const { model, mode } = this;
    const { name: agent } = this.handlers.agent();
    const options = { ...(storage.get('model') && model ? { model_name: model.name } : {}), ...(agent ? { agent_name: agent } : {}) };
    if (!mode) return options;
    const { label: _, hint: __, byEffort: ___, reasoning_effort: effort, ...rest } = MODES[mode];
    return { ...options, mode, ...rest, ...(model.supports_reasoning_effort ? { reasoning_effort: effort } : {}) };
  }

  // ---- Command menu ----

  offer() {
    this.offered = this.box.value.startsWith('/') ? this.handlers.commands(this.box.value) : [];
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

  /** Handles a key while the menu is open and returns whether it was used. Enter submits a complete command. */
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

  /** Steps through the user's earlier messages, starting from an empty box. */
  recall(step) {
    if (this.box.value && this.past < 0) return false;
    const own = this.handlers.own();
    const next = Math.min(this.past + step, own.length - 1);
    if (this.past < 0 && next < 0) return false;
    this.past = Math.max(next, -1);
    this.write(own[this.past] ?? '');
    this.hide();
    return true;
  }
}
