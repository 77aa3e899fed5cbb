// The account menu and the status of the channels.

import { get } from './api.js';
import { $, icon, make, plain } from './dom.js';
import { menu } from './dialogs.js';
import { showHelp } from './help.js';
import { showSchedules } from './schedules.js';
import { account, openAccountForm, needsAdministrator, signOut } from './signin.js';
import { setTheme, theme, THEMES } from './theme.js';
import { t } from './words.js';

/** User id of callers without an account. */
const LOCAL = 'default';
const REFRESH_MS = 20_000;

export async function accountMenu(button, thread) {
  const user = account();
  const hasSession = user && user.id !== LOCAL;
  const mayBegin = !hasSession && await needsAdministrator();
  menu(button, [
    ...THEMES.map(([name, label]) => ({ label, checked: theme() === name, run: () => setTheme(name) })), null,
    { label: t`Scheduled tasks…`, icon: icon('i-clock'), run: () => showSchedules(thread) },
    { label: t`Keys and commands`, icon: icon('i-help'), run: showHelp },
    ...(mayBegin ? [{ label: t`Set up accounts…`, hint: t`Everyone then has to sign in`, icon: icon('i-key'), run: () => openAccountForm('initialize').then(done => done && location.reload()) }] : []),
    ...(hasSession ? [{ label: t`Change password…`, icon: icon('i-key'), run: () => openAccountForm('password') }] : []),
    ...(user ? [{ label: t`Sign out`, icon: icon('i-out'), run: signOut }] : []),
  ], t`Settings`);
}

/** Shows the signed-in user and the status of the channels, which is refreshed at intervals. */
export async function showChannels() {
  const user = account();
  $('who').textContent = user && user.id !== LOCAL ? plain(user.email) : user ? t`Operator` : t`This machine`;
  await refreshChannels();
  setInterval(() => document.hidden || refreshChannels(), REFRESH_MS);
}

async function refreshChannels() {
  const status = await get('/api/channels').catch(() => null);
  // The channel `local` is this page and the terminal.
  const entries = Object.entries(status?.channels ?? {}).filter(([name]) => name !== 'local').sort(([a], [b]) => a.localeCompare(b));
  $('channels').hidden = !entries.length;
  $('channels').replaceChildren(...entries.map(([name, { state, last_error: error }]) => make('li', { className: state, title: error ?? state.replace('_', ' ') },
    make('i', { 'aria-hidden': 'true' }), state === 'ready' ? name : `${name}: ${state.replace('_', ' ')}`)));
}
