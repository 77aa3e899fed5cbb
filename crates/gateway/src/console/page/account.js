// Who uses the page, how it looks, and how the channels do.

import { get } from './api.js';
import { $, icon, make, plain } from './dom.js';
import { menu } from './dialogs.js';
import { showHelp } from './help.js';
import { account, door, needsAdministrator, signOut } from './signin.js';
import { setTheme, theme, THEMES } from './theme.js';
import { t } from './words.js';

/** The id of whoever has no account. */
const LOCAL = 'default';
const LOOK_MS = 20_000;

export async function accountMenu(button) {
  const who = account();
  const hasSession = who && who.id !== LOCAL;
  const mayBegin = !hasSession && await needsAdministrator();
  menu(button, [
    ...THEMES.map(([name, label]) => ({ label, checked: theme() === name, run: () => setTheme(name) })), null,
    { label: t`Keys and commands`, icon: icon('i-help'), run: showHelp },
    ...(mayBegin ? [{ label: t`Make accounts…`, hint: t`Everybody signs in from then on`, icon: icon('i-key'), run: () => door('initialize').then(done => done && location.reload()) }] : []),
    ...(hasSession ? [{ label: t`Change password…`, icon: icon('i-key'), run: () => door('password') }] : []),
    ...(who ? [{ label: t`Sign out`, icon: icon('i-out'), run: signOut }] : []),
  ], t`Settings`);
}

/** Shows how the channels do, now and every while. */
export async function showChannels() {
  const who = account();
  $('who').textContent = who && who.id !== LOCAL ? plain(who.email) : who ? t`Operator` : t`This machine`;
  await look();
  setInterval(() => document.hidden || look(), LOOK_MS);
}

async function look() {
  const told = await get('/api/channels').catch(() => null);
  // `local` is this page and the terminal.
  const entries = Object.entries(told?.channels ?? {}).filter(([name]) => name !== 'local').sort(([a], [b]) => a.localeCompare(b));
  $('channels').hidden = !entries.length;
  $('channels').replaceChildren(...entries.map(([name, { state, last_error: error }]) => make('li', { className: state, title: error ?? state.replace('_', ' ') },
    make('i', { 'aria-hidden': 'true' }), state === 'ready' ? name : `${name}: ${state.replace('_', ' ')}`)));
}
