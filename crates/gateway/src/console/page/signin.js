// Sign-in with an account or the gateway token, unless sign-in is disabled.

import { ApiError, get, onRefusal, post, request } from './api.js';
import { labelled } from './dialogs.js';
import { storage, make, plain } from './dom.js';
import { t } from './words.js';

const OPEN = { open: true, timeout: 20_000 };
const CHECK_MS = 5_000;

let signedIn = null;  // the signed-in account; null without accounts
let waiting = null;  // promise of the open sign-in
let lastCheck = -Infinity;  // time of the last session check after a 401

/** Returns the signed-in account, or null if sign-in is disabled. */
export const account = () => signedIn;

/** Signs in if needed and loads the account. */
export async function enter() {
  onRefusal(detail => admit(detail));
  await get('/api/models');
  await loadAccount();
}

async function loadAccount() {
  const known = await get('/api/v1/auth/me', OPEN).catch(() => null);
  const isOther = signedIn && known && signedIn.id !== known.id;
  signedIn = known;
  // The page still shows data of the previous account.
  if (isOther) location.reload();
  if (known?.needs_setup) await openAccountForm('settle');
}

/** Opens the sign-in after a 401 and resolves once it is done. Drafts stay unchanged. */
function admit(detail) {
  waiting ??= authenticate(detail).then(loadAccount).then(() => true).finally(() => { waiting = null; });
  return waiting;
}

async function authenticate(detail) {
  if (!detail?.code) return openAccountForm('token');
  // Repeat a request that was sent while the session changed. Not twice in a row, as the 401 may be permanent.
  const isRecent = performance.now() - lastCheck < CHECK_MS;
  lastCheck = performance.now();
  return (!isRecent && await get('/api/v1/auth/me', OPEN).catch(() => null)) || openAccountForm('login');
}

const field = (name, label, type, autocomplete, more = {}) => ({ name, label, type, autocomplete, required: true, ...more });
const EMAIL = field('email', t`E-mail`, 'email', 'username');
const STAY = t`Stay signed in`;
const NEW_PASSWORD = field('fresh', t`New password`, 'password', 'new-password', { minLength: 8 });

/** Forms of the sign-in dialog, with their fields and requests. */
const FORMS = {
  login: {
    title: t`Sign in`, ok: t`Sign in`, fields: [EMAIL, field('password', t`Password`, 'password', 'current-password')], check: STAY,
    async send({ email, password, checked }) {
      const body = new URLSearchParams({ username: email, password, remember_me: String(checked) });
      const session = await (await request('POST', '/api/v1/auth/login/local', { ...OPEN, body })).json();
      initialPassword = session.needs_setup ? password : '';
    },
    others: { register: t`Create an account`, token: t`Use the operator’s token` },
  },
  register: {
    title: t`Create an account`, ok: t`Create account`, fields: [EMAIL, NEW_PASSWORD], check: STAY,
    send: ({ email, fresh, checked }) => post('/api/v1/auth/register', { email, password: fresh, remember_me: checked }, OPEN),
    others: { login: t`Sign in instead` },
  },
  token: {
    title: t`Enter the operator’s token`, ok: t`Sign in`, text: t`You find it under gateway.token in the configuration, or in the file gateway-token in pudu’s home folder.`,
    fields: [field('token', t`Token`, 'password', 'current-password')],
    send: ({ token }) => post('/api/session', { token }, OPEN),
    others: { login: t`Sign in with an account` },
  },
  initialize: {
    title: t`Create the first administrator`, ok: t`Create account`, text: t`Everyone who uses this pudu then has to sign in.`, mayClose: true, fields: [EMAIL, NEW_PASSWORD],
    check: t`Keep the conversations started here without an account`,
    send: async ({ email, fresh, checked }) => {
      await post('/api/v1/auth/initialize', { email, password: fresh, adopt: checked }, OPEN);
      // The open conversation does not belong to the new account.
      if (!checked) location.hash = '#/';
    },
  },
  settle: {
    title: t`Set up your account`, ok: t`Save`, text: t`Choose your own e-mail address and password.`, fields: [EMAIL, NEW_PASSWORD],
    send: ({ email, fresh }) => post('/api/v1/auth/change-password', { current_password: initialPassword, new_password: fresh, new_email: email }, OPEN),
  },
  password: {
    title: t`Change password`, ok: t`Change password`, text: t`All other sessions are signed out.`, mayClose: true,
    fields: [field('password', t`Current password`, 'password', 'current-password'), NEW_PASSWORD],
    send: ({ password, fresh }) => post('/api/v1/auth/change-password', { current_password: password, new_password: fresh }, OPEN),
  },
};

let initialPassword = '';  // the user has to replace it

/** Texts of the error codes with which a provider's sign-in returns. */
const PROVIDER_ERRORS = {
  sso_account_exists: t`An account with this e-mail address already exists. Please ask your admin.`,
  sso_not_allowed: t`This account is not allowed to sign in here.`,
  sso_failed: t`The sign-in failed. Try again.`,
};

/** Returns the error text of a failed provider sign-in, once. */
function providerError() {
  if (location.pathname !== '/login') return '';
  const code = new URLSearchParams(location.search).get('error');
  history.replaceState(null, '', `/${location.hash}`);
  return code ? PROVIDER_ERRORS[code] ?? PROVIDER_ERRORS.sso_failed : '';
}

/** Creates the links of the OIDC providers. */
async function providerLinks() {
  const response = await get('/api/v1/auth/providers', OPEN).catch(() => null);
  return (response?.providers ?? []).map(({ id, display_name: name }) => make('a', {
    className: 'button', href: `/api/v1/auth/oauth/${encodeURIComponent(id)}?next=%2F`, textContent: t`Sign in with ${plain(name || id)}`,
  }));
}

/** Opens a form. Resolves with true after a successful request, or false if the dialog was closed. */
export function openAccountForm(name) {
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
  const inputs = fields.map(({ label, ...rest }) => labelled(label, make('input', { className: 'input', ...rest })));
  const box = make('input', { type: 'checkbox', defaultChecked: true, name: 'checked' });
  const wrong = make('p', { className: 'wrong', role: 'alert', hidden: true });
  const button = make('button', { className: 'button main', textContent: ok });
  const node = make('form', {}, make('h2', { textContent: title }), text ? make('p', { textContent: text }) : '',
    ...inputs, check ? make('label', { className: 'check' }, box, check) : '', wrong,
    make('div', { className: 'row' }, mayClose ? make('button', { type: 'button', className: 'button', textContent: t`Cancel`, onclick: () => dialog.close() }) : '', button));
  const error = providerError();
  if (error) Object.assign(wrong, { hidden: false, textContent: error });
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

/** Returns the alternatives that the daemon offers. */
async function offered(others) {
  const links = Object.entries(others);
  if (!links.length) return links;
  const state = await get('/api/v1/auth/setup-status', OPEN).catch(() => ({}));
  return links.filter(([name]) => (name === 'register' ? state.registration_enabled : name !== 'login' || state.needs_setup === false));
}

/** Returns whether no administrator account exists yet. */
export const needsAdministrator = () => get('/api/v1/auth/setup-status', OPEN).then(state => state.needs_setup, () => false);

export async function signOut() {
  await post('/api/v1/auth/logout', {}, OPEN);
  // The next account must not see these drafts.
  ['draft.', 'unsent'].forEach(name => storage.removeAll(name));
  location.reload();
}
