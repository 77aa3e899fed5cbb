// Slash commands: what the page can do by itself, and skills, which are a message to the agent.

import { call, get, post } from './api.js';

/** Commands of the page. Their help is the daemon's, in the words of the chats. */
const OWN = ['new', 'stop', 'models', 'goal', 'compact', 'help'];

let help = new Map();
let skills = [];

export async function loadCommands() {
  const [commands, known] = await Promise.all([get('/api/commands').catch(() => null), get('/api/skills').catch(() => null)]);
  help = new Map((commands?.commands ?? []).map(row => [row.name, row]));
  skills = (known?.skills ?? []).filter(skill => skill.enabled);
}

const describe = name => ({ name, argument: help.get(name)?.argument ?? '', help: help.get(name)?.help ?? '' });

/** Returns what a beginning may be completed to: `{text, label, help}` each. */
export function completions(text, models) {
  const [, name, argument] = /^\/([\w-]*)(?:\s+(\S*))?$/.exec(text) ?? [];
  if (name === undefined) return [];
  if (/\s/.test(text)) {
    if (name === 'goal') return 'clear'.startsWith(argument) ? [{ text: '/goal clear', label: 'clear', help: '' }] : [];
    return name === 'models' ? models.filter(model => model.name.startsWith(argument)).map(model => ({ text: `/models ${model.name}`, label: model.name, help: model.description ?? '' })) : [];
  }
  const all = [...OWN.map(describe), ...skills.map(skill => ({ name: skill.name, argument: '', help: firstSentence(skill.description) }))];
  return all.filter(row => row.name.startsWith(name.toLowerCase()))
    .map(row => ({ text: `/${row.name}${row.argument ? ' ' : ''}`, label: `/${row.name} ${row.argument}`.trimEnd(), help: row.help }));
}

const firstSentence = text => String(text ?? '').split(/\.\s/, 1)[0].slice(0, 160);

/** Does what a command says; returns whether it was one of the page's. `deeds` is what the page can do. */
export async function perform(text, deeds) {
  const [, name, argument = ''] = /^\/([\w-]+)(?:\s+([\s\S]*))?$/.exec(text) ?? [];
  const words = argument.trim();
  switch (name) {
    case 'new': deeds.fresh(words); return true;
    case 'stop': await deeds.stop(); return true;
    case 'help': deeds.help(); return true;
    case 'models': deeds.model(words); return true;
    case 'compact': await deeds.compact(); return true;
    case 'goal':
      // A goal that is set begins a run as any message does.
      if (words && words !== 'clear') return false;
      await deeds.goal(words === 'clear');
      return true;
    default:
      if (help.has(name) && !skills.some(skill => skill.name === name)) throw new Error(`/${name} works in chats and in the terminal, not on this page`);
      return false;
  }
}

export const readGoal = thread => get(`/api/threads/${thread}/goal`).then(told => told.goal);
export const clearGoal = thread => call('DELETE', `/api/threads/${thread}/goal`);
export const compact = thread => post(`/api/threads/${thread}/compact`, {}, { timeout: 180_000 });
