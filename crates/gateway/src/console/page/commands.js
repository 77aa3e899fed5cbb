// Slash commands: what the page can do by itself, and skills, which are a message to the agent.

import { call, get, post } from './api.js';
import { t } from './words.js';

/** Commands of the page. Their help is the daemon's, in the words of the chats. */
const OWN = ['new', 'stop', 'retry', 'models', 'agent', 'goal', 'skills', 'usage', 'compact', 'help'];

let help = new Map();
let skills = [];

export async function loadCommands() {
  const [commands, known] = await Promise.all([get('/api/commands').catch(() => null), get('/api/skills').catch(() => null)]);
  help = new Map((commands?.commands ?? []).map(row => [row.name, row]));
  skills = (known?.skills ?? []).filter(skill => skill.enabled);
}

const describe = name => ({ name, argument: help.get(name)?.argument ?? '', help: help.get(name)?.help ?? '' });

/** Returns the skills that can be asked for by their names: `{name, help}` each. */
export const listedSkills = () => skills.map(skill => ({ name: skill.name, help: firstSentence(skill.description) }));

/** Returns what a beginning may be completed to: `{text, label, help}` each. */
export function completions(text, models, agents) {
  const [, name, argument] = /^\/([\w-]*)(?:\s+(\S*))?$/.exec(text) ?? [];
  if (name === undefined) return [];
  if (/\s/.test(text)) {
    if (name === 'goal') return 'clear'.startsWith(argument) ? [{ text: '/goal clear', label: 'clear', help: '' }] : [];
    const known = { models, agent: agents }[name] ?? [];
    return known.filter(one => one.name.startsWith(argument)).map(one => ({ text: `/${name} ${one.name}`, label: one.name, help: one.description ?? '' }));
  }
  const all = [...OWN.map(describe), ...listedSkills().map(skill => ({ ...skill, argument: '' }))];
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
    case 'agent': deeds.agent(words); return true;
    case 'retry': await deeds.retry(); return true;
    case 'skills': deeds.skills(); return true;
    case 'usage': deeds.usage(); return true;
    case 'compact': await deeds.compact(); return true;
    case 'goal':
      // A goal that is set begins a run as any message does.
      if (words && words !== 'clear') return false;
      await deeds.goal(words === 'clear');
      return true;
    default:
      if (name && !await isSkill(name, deeds)) throw new Error(help.has(name) ? t`/${name} works in chats and in the terminal, not on this page` : unknown(name));
      return false;
  }
}

/** Whether a name is for the agent: a skill's, also of one that is new, or what the model without a model is called by. */
async function isSkill(name, { isOffline }) {
  const isKnown = () => skills.some(skill => skill.name === name) || (name === 'tool' && isOffline());
  if (!isKnown()) await loadCommands();
  // Where nobody tells which commands there are, the agent may know.
  return isKnown() || !help.size;
}

/** Returns the answer to a command that nobody knows, with the nearest one. */
function unknown(name) {
  const all = [...OWN, ...skills.map(skill => skill.name)];
  const [near] = all.map(known => ({ known, off: distance(known, name) })).filter(({ off }) => off <= 2 && off < name.length)
    .sort((one, other) => one.off - other.off || other.known.startsWith(name) - one.known.startsWith(name));
  const own = OWN.map(known => `/${known}`).join(', ');
  return near ? t`there is no command /${name}. Did you mean /${near.known}? Here are ${own}, and skills by their names` : t`there is no command /${name}. Here are ${own}, and skills by their names`;
}

/** Counts the letters in which two words differ. */
function distance(one, other) {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (const [line, letter] of [...one].entries()) {
    const next = [line + 1];
    for (let at = 0; at < other.length; at += 1) next.push(Math.min(next[at] + 1, row[at + 1] + 1, row[at] + (letter === other[at] ? 0 : 1)));
    row = next;
  }
  return row.at(-1);
}

export const readGoal = thread => get(`/api/threads/${thread}/goal`).then(told => told.goal);
export const clearGoal = thread => call('DELETE', `/api/threads/${thread}/goal`);
export const compact = thread => post(`/api/threads/${thread}/compact`, {}, { timeout: 180_000 });
