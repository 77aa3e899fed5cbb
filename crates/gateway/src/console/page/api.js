// Calls of the daemon's API.

import { t } from './words.js';

/** An answer that is no success; status 0 means that nobody answered. */
export class ApiError extends Error {
  constructor(status, detail, wait = 0) {
    super(wordsOf(status, detail));
    Object.assign(this, { status, detail, wait });
  }

  /** Whether the same request may be answered later. */
  get passes() { return this.status === 0 || this.status === 429 || this.status >= 500; }
}

function wordsOf(status, detail) {
  if (typeof detail === 'string' && detail) return detail;
  if (detail?.message) return detail.message;
  if (Array.isArray(detail) && detail[0]?.msg) return detail.map(one => one.msg).join('; ');
  return status === 0 ? t`pudu cannot be reached` : t`error ${status}`;
}

let admit = async () => false;

/** Tells who lets people in: called with the detail of a refusal, it returns whether the request may be made again. */
export function onRefusal(gate) { admit = gate; }

const cookie = name => document.cookie.match(new RegExp(`(?:^|; )${name}=([^;]*)`))?.[1] ?? '';

/** Headers of a request that changes something. */
const proof = () => ({ 'x-csrf-token': cookie('csrf_token') });

async function send(method, path, { body, headers = {}, signal, timeout = 30_000 } = {}) {
  const limits = [signal, timeout && AbortSignal.timeout(timeout)].filter(Boolean);
  const options = { method, headers: { ...headers }, signal: limits.length ? AbortSignal.any(limits) : undefined };
  if (method !== 'GET') Object.assign(options.headers, proof());
  if (body instanceof URLSearchParams) options.body = body;
  else if (body !== undefined) {
    options.headers['content-type'] = 'application/json';
    options.body = JSON.stringify(body);
  }
  try {
    return await fetch(path, options);
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0);
  }
}

async function failure(response) {
  const told = await response.json().catch(() => ({}));
  return new ApiError(response.status, told.detail ?? told.message, Number(response.headers.get('retry-after')) || 0);
}

/** Asks, and signs in again where that is needed; returns the response of a success. */
export async function request(method, path, options = {}) {
  for (;;) {
    const response = await send(method, path, options);
    if (response.ok) return response;
    const error = await failure(response);
    if (error.status === 401 && !options.open && await admit(error.detail)) continue;
    throw error;
  }
}

/** Asks and returns the JSON of the answer. */
export async function call(method, path, body, options = {}) {
  const response = await request(method, path, { ...options, body });
  if (response.status === 204) return null;
  return response.json().catch(() => null);
}

export const get = (path, options) => call('GET', path, undefined, options);
export const post = (path, body = {}, options) => call('POST', path, body, options);

/** Sends files, and tells how far that is, from 0 to 1. */
export function upload(path, files, progress, signal) {
  const attempt = () => new Promise((resolve, reject) => {
    const form = new FormData();
    for (const file of files) form.append('files', file, file.name);
    const sending = new XMLHttpRequest();
    sending.open('POST', path);
    for (const [name, value] of Object.entries(proof())) sending.setRequestHeader(name, value);
    sending.responseType = 'json';
    sending.upload.onprogress = event => event.lengthComputable && progress(event.loaded / event.total);
    sending.onload = () => {
      if (sending.status < 300) resolve(sending.response);
      else reject(new ApiError(sending.status, sending.response?.detail));
    };
    sending.onerror = () => reject(new ApiError(0));
    sending.onabort = () => reject(new DOMException('taken back', 'AbortError'));
    signal?.addEventListener('abort', () => sending.abort(), { once: true });
    sending.send(form);
  });
  return attempt().catch(async error => {
    if (error.status === 401 && await admit(error.detail)) return attempt();
    throw error;
  });
}

/** Returns the address of a file of a thread by the agent's path. */
export function fileUrl(thread, path, how = '') {
  const parts = path.replace(/^\/+/, '').split('/').map(encodeURIComponent).join('/');
  return `/api/threads/${encodeURIComponent(thread)}/artifacts/${parts}${how && `?${how}=true`}`;
}
