// Entry point of the page: signs in, and connects the sidebar, the open conversation and the composer.

import './theme.js';
import { call, get, post } from './api.js';
import { accountMenu, showChannels } from './account.js';
import { clearGoal, completions, loadCommands, nameOf, perform, readGoal, showAnswer } from './commands.js';
import { Composer } from './composer.js';
import { Conversation, agentOf } from './conversation.js';
import { $, storage, pause } from './dom.js';
import { listFiles, openFile } from './files.js';
import { showHelp } from './help.js';
import { showCosts, showGoal, showTodos, showNotice } from './notices.js';
import { Sidebar, titleOf } from './sidebar.js';
import { enter } from './signin.js';
import { Transcript } from './transcript.js';
import { t } from './words.js';

let conversation = null;
let suggestions = { enabled: false };
let offlineTimer = 0;

const linked = up => {
  clearTimeout(offlineTimer);
  // Short interruptions are not shown.
  if (up) $('link').hidden = true;
  else offlineTimer = setTimeout(() => { $('link').hidden = false; }, 800);
};

/** Runs an action and shows a notice if it fails. */
const attempt = async (work, what = t`That did not work`) => {
  try { await work(); } catch (error) { if (error.name !== 'AbortError') showNotice(t`${what}: ${error.message}.`); }
};

const actions = {
  say: text => attempt(() => say(text, []), t`Not sent`),
  answer: text => attempt(() => composer.answer(text)),
  attach: files => composer.attach(files),
  edit: (turn, text) => attempt(() => conversation.edit(turn, text, composer.options())),
  regenerate: turn => attempt(() => conversation.regenerate(turn, composer.options())),
  // A retry after a partial answer would leave that answer in the model's context.
  retry: turn => attempt(() => (turn.items.at(-1)?.kind === 'ai' ? conversation.regenerate(turn, composer.options()) : conversation.retry(composer.options()))),
  branch: turn => attempt(async () => {
    const branch = await conversation.branch(turn);
    await sidebar.refresh();
    location.hash = `#/t/${branch}`;
  }),
  decide: (id, approved) => attempt(() => conversation.decide(id, approved), t`The decision could not be saved`),
  rate: (turn, rating) => attempt(() => rate(turn, rating)),
  unqueue: entry => attempt(() => conversation.unqueue(entry)),
  openFile: file => openFile(conversation.id, file),
  loadTask,
};

const transcript = new Transcript(actions);
const sidebar = new Sidebar({
  found,
  linked,
  gone: id => { if (conversation?.id === id) location.hash = '#/'; },
  failed: text => showNotice(text),
});
const composer = new Composer({
  say, ready: () => conversation.line, stop: () => attempt(() => conversation.stop()), failed: text => showNotice(text),
  place: async () => { await conversation.make(); return conversation.id; },
  commands: text => completions(text, composer.models, composer.agents),
  agent: () => ({ name: conversation?.agent ?? null, isFixed: Boolean(conversation) && !conversation.isNew }),
  choose: agent => { conversation.agent = agent; },
  own: () => conversation.thread.order.map(id => conversation.thread.messages.get(id)).filter(message => message.kind === 'human').map(message => message.text).reverse(),
});

/** Opens the conversation of the current URL, or a new one. */
async function route() {
  const id = /^#\/t\/([A-Za-z0-9_-]{1,64})$/.exec(location.hash)?.[1] ?? null;
  if (conversation && id === conversation.id) return;
  leave();
  showNotice('');
  const opened = new Conversation(id, {
    changed: () => { if (conversation === opened) changed(); },
    asked: request => { if (conversation === opened) asked(request); },
    linked, ended: run => { if (conversation === opened) ended(run); },
    problem: (text, mayTry) => { if (conversation === opened) showNotice(text, mayTry && (() => opened.again?.abort())); },
  });
  conversation = opened;
  opened.agent = agentOf(sidebar.threads.find(thread => thread.thread_id === id)?.assistant_id);
  composer.turnTo(id ?? 'new');
  sidebar.choose(id);
  transcript.show(opened);
  setTitle(id ? sidebar.title(id) : '');
  changed();
  showTotals();
  if (!matchMedia('(pointer: coarse)').matches) $('box').focus();
  $('app').classList.remove('drawer');
  if (!id) return;
  $('turns').setAttribute('aria-busy', 'true');
  try {
    await opened.open();
  } catch (error) {
    if (conversation !== opened || error.name === 'AbortError') return;
    showNotice(error.status === 404 ? t`This conversation does not exist.` : t`This conversation could not be loaded: ${error.message}.`, error.status !== 404 && (() => { conversation = null; route(); }));
  }
  $('turns').setAttribute('aria-busy', 'false');
}

function leave() {
  if (!conversation) return;
  conversation.close();
  // Delete a thread that was created only for uploads that were never sent.
  if (conversation.isNew && conversation.made) conversation.made.then(() => call('DELETE', `/api/threads/${conversation.id}`), () => {});
}

/** Redraws the conversation. */
function changed() {
  transcript.change();
  composer.state(conversation.isRunning);
  composer.showAgent();
  showTodos(conversation.thread.todos, conversation.isRunning);
}

async function say(text, files) {
  showNotice('');
  transcript.suggest([]);
  if (!files.length && text.startsWith('/') && await command(text)) return;
  await send(text, files);
}

/** Sends a message to the agent. */
async function send(text, files) {
  transcript.toBottom();
  const said = conversation.say({ text, files, options: composer.options() });
  if (conversation.isNew) assignUrl();
  await said;
  sidebar.refresh();
  if (text.startsWith('/goal ')) showTotals();
}

/** Sets the URL of a new conversation without reloading it. */
function assignUrl() {
  history.replaceState(null, '', `#/t/${conversation.id}`);
  storage.set('draft.new', null);
  composer.key = conversation.id;
  sidebar.choose(conversation.id);
}

/** Runs a command. Returns false if the text is a message for the agent instead. */
async function command(text) {
  const shown = conversation;
  await shown.make();
  const answer = await perform(shown.id, text, { ...composer.options(), approvals: 'ask' });
  if (conversation !== shown) return true;
  const { thread_id: next, is_message: isMessage, settings } = answer;
  if (next !== shown.id) {
    location.hash = isMessage ? `#/t/${next}` : '#/';
    if (isMessage) setTimeout(() => attempt(() => send(text, []), t`Not sent`));
    return true;
  }
  if (isMessage) return false;
  choose(nameOf(text), settings);
  if (answer.run_id) {
    const last = shown.thread.turns().at(-1);
    if (last) shown.thread.remove(last.items.map(item => item.id));
    await shown.sync();
  }
  showAnswer(text, answer, action => attempt(() => command(action)));
  showTotals();
  return true;
}

/** Applies a setting that a command stored to the composer. */
function choose(name, { model, agent }) {
  if (name === '/models' && model) composer.choose('model', model);
  if (name === '/think') composer.choose('mode', null);
  if (name === '/agent') { conversation.agent = agent; composer.showAgent(); }
}

/** Loads and shows the costs and the goal of the conversation. */
async function showTotals() {
  const shown = conversation;
  if (shown.isNew) { showCosts(null); showGoal(null); return; }
  const [costs, goal] = await Promise.all([get(shown.path('/token-usage')).catch(() => null), readGoal(shown.id).catch(() => null)]);
  if (conversation !== shown) return;
  showCosts(costs);
  showGoal(goal, () => attempt(async () => { await clearGoal(shown.id); await showTotals(); }));
}

/** Announces a call that waits for approval. */
function asked(request) {
  $('spoken').textContent = t`Approval needed: ${request.slice(0, 500)}`;
  markTitle();
}

const markTitle = () => { if (document.hidden) document.title = `• ${document.title.replace(/^• /, '')}`; };

/** Announces the end of a run and refreshes the page. */
async function ended(run) {
  const { thread } = conversation;
  const last = thread.turns().at(-1);
  const text = last?.items.findLast(item => item.kind === 'ai')?.text ?? '';
  $('spoken').textContent = run.status === 'success' ? t`Answer complete: ${text.slice(0, 500)}` : t`The answer ended: ${run.error ?? run.status}`;
  markTitle();
  showTotals();
  await sidebar.refresh();
  // The title is generated after the run.
  setTimeout(() => sidebar.refresh(), 1500);
  if (suggestions.enabled && run.status === 'success' && !conversation.isRunning && !thread.openQuestion()) await suggest();
}

async function suggest() {
  const [shown, { thread }] = [conversation, conversation];
  const roles = { human: 'user', ai: 'assistant' };
  const messages = thread.order.map(id => thread.messages.get(id)).filter(message => roles[message.kind] && message.text).slice(-6)
    .map(message => ({ role: roles[message.kind], content: message.text.slice(0, 4000) }));
  const response = await post(shown.path('/suggestions'), { messages, n: suggestions.max_suggestions ?? 3 }, { timeout: 60_000 }).catch(() => null);
  if (response && conversation === shown && !shown.isRunning) transcript.suggest(response.suggestions ?? []);
}

/** Updates the title, and loads changes of the conversation that were made elsewhere. */
function found(threads) {
  const own = threads.find(thread => thread.thread_id === conversation?.id);
  if (!own) { if (conversation?.isNew) setTitle(''); return; }
  setTitle(titleOf(own));
  const isNews = conversation.seen !== undefined && conversation.seen !== own.updated_at;
  conversation.seen = own.updated_at;
  if (!conversation.isRunning && !conversation.unsent && (own.status === 'busy' || isNews)) conversation.sync().catch(() => {});
}

function setTitle(title) {
  $('title').textContent = title === t`Untitled` ? '' : title;
  document.title = title && title !== t`Untitled` ? `${title} · pudu` : 'pudu';
}

async function rate(turn, rating) {
  const path = conversation.path(`/runs/${turn.run}/feedback`);
  const last = turn.items.findLast(item => item.kind === 'ai');
  if (rating) await call('PUT', path, { rating });
  else await call('DELETE', path);
  conversation.thread.judge(last.id, rating);
  changed();
}

/** Loads the steps of a sub-agent and returns whether there are any. */
async function loadTask(id, run) {
  const shown = conversation;
  const kinds = 'subagent.start,subagent.step,subagent.end';
  const events = await get(shown.path(`/runs/${run}/events?event_types=${kinds}&task_id=${encodeURIComponent(id)}`)).catch(() => []);
  if (!events.length) return false;
  shown.thread.takeStoredTask(id, events);
  changed();
  return true;
}

// ---- Keys and buttons ----

function keydown(event) {
  const command = event.ctrlKey || event.metaKey;
  const inText = event.target.closest?.('input, textarea');
  if (document.querySelector('dialog[open]')) return;
  if (command && event.key.toLowerCase() === 'k') { event.preventDefault(); openDrawer(); $('search').focus(); $('search').select(); }
  else if (command && event.shiftKey && event.key.toLowerCase() === 'o') { event.preventDefault(); location.hash = '#/'; $('box').focus(); }
  else if ((command && event.key === '/') || (event.key === '?' && !inText)) { event.preventDefault(); showHelp(); }
  else if (event.key === 'Escape' && !event.defaultPrevented) escape(event);
}

function escape(event) {
  if ($('app').classList.contains('drawer')) closeDrawer();
  else if (conversation?.isRunning) { event.preventDefault(); attempt(() => conversation.stop()); }
}

const openDrawer = () => { $('app').classList.remove('folded'); $('app').classList.add('drawer'); };
const closeDrawer = () => { $('app').classList.remove('drawer'); $('open').focus(); };

function connectButtons() {
  $('open').onclick = () => { openDrawer(); storage.set('folded', null); $('fold').focus(); };
  $('fold').onclick = () => { $('app').classList.remove('drawer'); $('app').classList.add('folded'); storage.set('folded', '1'); $('open').focus(); };
  $('shade').onclick = closeDrawer;
  $('new').onclick = () => { location.hash = '#/'; $('app').classList.remove('drawer'); $('box').focus(); };
  $('files').onclick = () => listFiles(conversation.thread, actions);
  $('account').onclick = () => accountMenu($('account'), conversation?.isNew ? null : conversation?.id ?? null);
  $('help').onclick = showHelp;
  document.addEventListener('keydown', keydown);
  document.addEventListener('visibilitychange', () => { if (!document.hidden) document.title = document.title.replace(/^• /, ''); });
  addEventListener('hashchange', route);
  $('app').classList.toggle('folded', Boolean(storage.get('folded')));
}

async function start() {
  connectButtons();
  for (;;) {
    try { await enter(); break; } catch (error) {
      linked(false);
      if (error.status) showNotice(t`The page could not be loaded: ${error.message}.`);
      await pause(2000);
    }
  }
  linked(true);
  showNotice('');
  const [models, config, assistants] = await Promise.all([get('/api/models'), get('/api/suggestions/config').catch(() => suggestions),
    post('/api/assistants/search', { limit: 200 }).catch(() => []), loadCommands(), showChannels()]);
  suggestions = config;
  composer.setModels(models.models);
  composer.setAgents(assistants.filter(assistant => agentOf(assistant.assistant_id)));
  if (models.models[0]?.name === 'offline') $('hint').textContent = t`No language model is configured yet, so I can only repeat messages and call tools. The terminal where pudu runs shows how to add one.`;
  document.body.dataset.ready = 'true';
  await Promise.all([route(), sidebar.refresh()]);
}

start();
