// Requests to the daemon's HTTP API.

import { t } from './words.js';

/** A failed request. Status 0 means that no response arrived. */
export class ApiError extends Error {
  constructor(status, detail, wait = 0) {
    super(errorText(status, detail));
    Object.assign(this, { status, detail, wait });
  }

  /** Whether the same request may succeed later. */
  get isTransient() { return this.status === 0 || this.status === 429 || this.status >= 500; }
}

function errorText(status, detail) {
  if (typeof detail === 'string' && detail) return detail;
  if (detail?.message) return detail.message;
  if (Array.isArray(detail) && detail[0]?.msg) return detail.map(one => one.msg).join('; ');
  return status === 0 ? t`pudu cannot be reached` : t`error ${status}`;
}

let admit = async () => false;

/** Sets the handler of 401 responses. It gets the response's detail and returns whether to repeat the request. */
export function onRefusal(gate) { admit = gate; }

const cookie = name => document.cookie.match(new RegExp(`(?:^|; )${name}=([^;]*)`))?.[1] ?? '';

/** Returns the headers that requests other than GET need. */
const csrfHeaders = () => ({ 'x-csrf-token': cookie('csrf_token') });

async function send(method, path, { body, headers = {}, signal, timeout = 30_000 } = {}) {
  const limits = [signal, timeout && AbortSignal.timeout(timeout)].filter(Boolean);
  const options = { method, headers: { ...headers }, signal: limits.length ? AbortSignal.any(limits) : undefined };
  if (method !== 'GET') Object.assign(options.headers, csrfHeaders());
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
  const body = await response.json().catch(() => ({}));
  return new ApiError(response.status, body.detail ?? body.message, Number(response.headers.get('retry-after')) || 0);
}

/** Sends a request, signs in again where that is needed, and returns a successful response. */
export async function request(method, path, options = {}) {
  for (;;) {
    const response = await send(method, path, options);
    if (response.ok) return response;
    const error = await failure(response);
    if (error.status === 401 && !options.open && await admit(error.detail)) continue;
    throw error;
  }
}

/** Sends a request and returns the JSON of the response. */
export async function call(method, path, body, options = {}) {
  const response = await request(method, path, { ...options, body });
  if (response.status === 204) return null;
  return response.json().catch(() => null);
}

export const get = (path, options) => call('GET', path, undefined, options);
export const post = (path, body = {}, options) => call('POST', path, body, options);

/** Uploads files and calls `progress` with the uploaded fraction. */
export function upload(path, files, progress, signal) {
  const attempt = () => new Promise((resolve, reject) => {
    const form = new FormData();
    for (const file of files) form.append('files', file, file.name);
    const sending = new XMLHttpRequest();
    sending.open('POST', path);
    for (const [name, value] of Object.entries(csrfHeaders())) sending.setRequestHeader(name, value);
    sending.responseType = 'json';
    sending.upload.onprogress = event => event.lengthComputable && progress(event.loaded / event.total);
    sending.onload = () => {
      if (sending.status < 300) resolve(sending.response);
      else reject(new ApiError(sending.status, sending.response?.detail));
    };
    sending.onerror = () => reject(new ApiError(0));
    sending.onabort = () => reject(new DOMException('cancelled', 'AbortError'));
    signal?.addEventListener('abort', () => sending.abort(), { once: true });
    sending.send(form);
  });
  return attempt().catch(async error => {
    if (error.status === 401 && await admit(error.detail)) return attempt();
    throw error;
  });
}

/** Returns the URL of a file in a thread. `path` is the path that the agent sees. */
export function fileUrl(thread, path, how = '') {
  const parts = path.replace(/^\/+/, '').split('/').map(encodeURIComponent).join('/');
  return `/api/threads/${encodeURIComponent(thread)}/artifacts/${parts}${how && `?${how}=true`}`;
}
