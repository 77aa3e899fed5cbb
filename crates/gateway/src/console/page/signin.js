// Signing in: with an account, with the operator's token, or not at all where nobody is asked.

import { ApiError, get, onRefusal, post, request } from './api.js';
import { kept, make, plain } from './dom.js';
import { t } from './words.js';

const OPEN = { open: true, timeout: 20_000 };
const CHECK_MS = 5_000;

let who = null;      // the account that is signed in; null where nobody has one
let waiting = null;  // what waits for somebody to sign in
let lastCheck = -Infinity;  // when a refusal last asked whether there is a session

/** The account of this browser; null where nobody is asked. */
export const account = () => who;

/** Learns who uses this browser. */
export async function enter() {
  onRefusal(detail => admit(detail));
  await get('/api/models');
  await learn();
}

async function learn() {
  const known = await get('/api/v1/auth/me', OPEN).catch(() => null);
  const isOther = who && known && who.id !== known.id;
  who = known;
  // What stands on the page is the other one's.
  if (isOther) location.reload();
  if (known?.needs_setup) await door('settle');
}

/** Lets a person in whose request was refused; what they have typed stays where it is. */
function admit(detail) {
  waiting ??= letIn(detail).then(learn).then(() => true).finally(() => { waiting = null; });
  return waiting;
}

async function letIn(detail) {
  if (!detail?.code) return door('token');
  // A request that was on its way while the session changed is made again. Not twice in a row: the refusal may hold.
  const isRecent = performance.now() - lastCheck < CHECK_MS;
  lastCheck = performance.now();
  return (!isRecent && await get('/api/v1/auth/me', OPEN).catch(() => null)) || door('login');
}

const field = (name, label, type, autocomplete, more = {}) => ({ name, label, type, autocomplete, required: true, ...more });
const EMAIL = field('email', t`E-mail`, 'email', 'username');
const STAY = t`Stay signed in`;
const NEW_PASSWORD = field('fresh', t`New password`, 'password', 'new-password', { minLength: 8 });

/** The forms of the door: what is asked, and what is done with it. */
const FORMS = {
  login: {
    title: t`Sign in`, ok: t`Sign in`, fields: [EMAIL, field('password', t`Password`, 'password', 'current-password')], check: STAY,
    async send({ email, password, checked }) {
      const body = new URLSearchParams({ username: email, password, remember_me: String(checked) });
      const told = await (await request('POST', '/api/v1/auth/login/local', { ...OPEN, body })).json();
      given = told.needs_setup ? password : '';
    },
    others: { register: t`Create an account`, token: t`Use the operator’s token` },
  },
  register: {
    title: t`Create an account`, ok: t`Create account`, fields: [EMAIL, NEW_PASSWORD], check: STAY,
    send: ({ email, fresh, checked }) => post('/api/v1/auth/register', { email, password: fresh, remember_me: checked }, OPEN),
    others: { login: t`Sign in instead` },
  },
  token: {
    title: t`This pudu asks for its token`, ok: t`Open`, text: t`It is gateway.token in the configuration, or in the file gateway-token in pudu’s home.`,
    fields: [field('token', t`Token`, 'password', 'current-password')],
    send: ({ token }) => post('/api/session', { token }, OPEN),
    others: { login: t`Sign in with an account` },
  },
  initialize: {
    title: t`Make the first administrator`, ok: t`Make the account`, text: t`From then on everybody who uses this pudu signs in.`, mayClose: true, fields: [EMAIL, NEW_PASSWORD],
    check: t`Take over the conversations that were held here without an account`,
    send: async ({ email, fresh, checked }) => {
      await post('/api/v1/auth/initialize', { email, password: fresh, adopt: checked }, OPEN);
      // The conversation that is shown stays nobody's.
      if (!checked) location.hash = '#/';
    },
  },
  settle: {
    title: t`Set up your account`, ok: t`Save`, text: t`Choose an e-mail address and a password of your own.`, fields: [EMAIL, NEW_PASSWORD],
    send: ({ email, fresh }) => post('/api/v1/auth/change-password', { current_password: given, new_password: fresh, new_email: email }, OPEN),
  },
  password: {
    title: t`Change password`, ok: t`Change password`, text: t`All other sessions end.`, mayClose: true,
    fields: [field('password', t`Current password`, 'password', 'current-password'), NEW_PASSWORD],
    send: ({ password, fresh }) => post('/api/v1/auth/change-password', { current_password: password, new_password: fresh }, OPEN),
  },
};

let given = '';      // the password that a person signed in with and has to replace

/** Words for what a provider's sign-in failed by, which the address tells. */
const FAULTS = {
  sso_account_exists: t`There is an account with this e-mail address already. Ask whoever runs this pudu.`,
  sso_not_allowed: t`This person may not sign in here.`,
  sso_failed: t`That sign-in did not work. Try again.`,
};

/** Returns what brought a browser back from a provider without a session, once. */
function fault() {
  if (location.pathname !== '/login') return '';
  const code = new URLSearchParams(location.search).get('error');
  history.replaceState(null, '', `/${location.hash}`);
  return code ? FAULTS[code] ?? FAULTS.sso_failed : '';
}

/** Makes links to the providers by which people sign in. */
async function providerLinks() {
  const told = await get('/api/v1/auth/providers', OPEN).catch(() => null);
  return (told?.providers ?? []).map(({ id, display_name: name }) => make('a', {
    className: 'button', href: `/api/v1/auth/oauth/${encodeURIComponent(id)}?next=%2F`, textContent: t`Sign in with ${plain(name || id)}`,
  }));
}

/** Opens a form; resolves with true once it is done, and with false if it was closed, where that may be. */
export function door(name) {
  return new Promise(resolve => {
    const dialog = make('dialog', { className: 'dialog door', id: 'door' });
    let done = false;
    const fill = async which => dialog.replaceChildren(await form(which, { fill, finish: () => { done = true; dialog.close(); }, dialog }));
    dialog.addEventListener('cancel', event => { if (!FORMS[dialog.dataset.form].mayClose) event.preventDefault(); });
    dialog.addEventListener('close', () => { dialog.remove(); resolve(done); }, { once: true });
    document.body.append(dialog);
    fill(name).then(() => dialog.showModal());
  });
}

async function form(name, { fill, finish, dialog }) {
  const { title, text, fields, ok, send, others = {}, mayClose, check } = FORMS[name];
  dialog.dataset.form = name;
  dialog.setAttribute('aria-label', title);
  const inputs = fields.map(({ label, ...rest }) => make('label', { className: 'field' }, make('span', { textContent: label }), make('input', { className: 'input', ...rest })));
  const box = make('input', { type: 'checkbox', defaultChecked: true, name: 'checked' });
  const wrong = make('p', { className: 'wrong', role: 'alert', hidden: true });
  const button = make('button', { className: 'button main', textContent: ok });
  const node = make('form', {}, make('h2', { textContent: title }), text ? make('p', { textContent: text }) : '',
    ...inputs, check ? make('label', { className: 'check' }, box, check) : '', wrong,
    make('div', { className: 'row' }, mayClose ? make('button', { type: 'button', className: 'button', textContent: t`Cancel`, onclick: () => dialog.close() }) : '', button));
  const told = fault();
  if (told) Object.assign(wrong, { hidden: false, textContent: told });
  if (name === 'login' || name === 'token') node.append(...await providerLinks());
  const links = await offered(others);
  node.append(...links.map(([other, words]) => make('button', { type: 'button', className: 'link', textContent: words, onclick: () => fill(other) })));
  node.onsubmit = async event => {
    event.preventDefault();
    button.disabled = true;
    const values = Object.fromEntries(inputs.map(label => [label.lastChild.name, label.lastChild.value]));
    try {
      await send({ ...values, checked: box.checked });
      finish();
    } catch (error) {
      wrong.hidden = false;
      wrong.textContent = error instanceof ApiError ? `${error.message[0].toUpperCase()}${error.message.slice(1)}.`.replace(/\.\.$/, '.') : String(error);
      inputs.at(-1).lastChild.select();
    }
    button.disabled = false;
  };
  return node;
}

/** Leaves out ways in that there are not. */
async function offered(others) {
  const links = Object.entries(others);
  if (!links.length) return links;
  const state = await get('/api/v1/auth/setup-status', OPEN).catch(() => ({}));
  return links.filter(([name]) => (name === 'register' ? state.registration_enabled : name !== 'login' || state.needs_setup === false));
}

/** Whether nobody administers this pudu yet. */
export const needsAdministrator = () => get('/api/v1/auth/setup-status', OPEN).then(state => state.needs_setup, () => false);

export async function signOut() {
  await post('/api/v1/auth/logout', {}, OPEN);
  // Whoever signs in next reads nothing of what was begun to be written.
  ['draft.', 'unsent'].forEach(name => kept.forget(name));
  location.reload();
}
