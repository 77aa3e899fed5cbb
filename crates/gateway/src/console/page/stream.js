// Follows the event stream of a run and reconnects after lost connections.

import { ApiError, request } from './api.js';
import { pause } from './dom.js';

export const MODES = ['messages-tuple', 'updates', 'custom'];

/** Silence after which a connection counts as lost. The daemon sends a heartbeat every 15 seconds. */
const SILENCE_MS = 40_000;

/** Parses server-sent events: `{name, data, id}` each. */
async function* events(response, signal) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const stop = () => reader.cancel().catch(() => {});
  signal.addEventListener('abort', stop, { once: true });
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await withTimeout(reader.read(), SILENCE_MS);
      if (done) return;
      rest += value;
      const parts = rest.split('\n\n');
      rest = parts.pop();
      for (const part of parts) {
        const event = parseEvent(part);
        if (event) yield event;
      }
    }
  } finally {
    signal.removeEventListener('abort', stop);
    stop();
  }
}

function withTimeout(promise, ms) {
  let timer;
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new ApiError(0)), ms); });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

function parseEvent(part) {
  const event = { name: '', data: '', id: '' };
  for (const line of part.split('\n')) {
    const colon = line.indexOf(': ');
    if (colon <= 0) continue;
    const [key, value] = [line.slice(0, colon), line.slice(colon + 2)];
    if (key === 'event') event.name = value;
    else if (key === 'data') event.data += value;
    else if (key === 'id') event.id = value;
  }
  if (!event.name) return null;
  return { ...event, data: JSON.parse(event.data || 'null') };
}

/** Follows a run to its end and passes each event to `take`. `first` is an open response of the stream, if there is one; `linked` is
 *  called with the state of the connection. */
export async function follow({ thread, run, first, take, linked, signal }) {
  let [response, last, tries] = [first, '-1', 0];
  const path = `/api/threads/${thread}/runs/${run}/stream?stream_mode=${MODES.join(',')}`;
  while (!signal.aborted) {
    try {
      response ??= await request('GET', path, { headers: { 'last-event-id': last }, signal, timeout: 0 });
      linked(true);
      for await (const event of events(response, signal)) {
        tries = 0;
        if (event.id) last = event.id;
        take(event);
        if (event.name === 'end') return;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiError && !error.isTransient) throw error;
    }
    response = null;
    if (signal.aborted) return;
    linked(false);
    await pause(Math.min(250 * 2 ** tries++, 8000), signal);
  }
}
