// Times of a scheduled task: form fields and text.

import { labelled } from './dialogs.js';
import { make } from './dom.js';
import { language, t } from './words.js';

/** Some Sunday, for the names of the weekdays. */
const SUNDAY = Date.UTC(2023, 0, 1);
const DAYS = [0, 1, 2, 3, 4, 5, 6].map(day => new Intl.DateTimeFormat(language, { weekday: 'long', timeZone: 'UTC' }).format(SUNDAY + day * 86_400_000));

/** Kinds of cron expressions with their own fields: a pattern, and a function that builds the expression. */
const KINDS = {
  daily: { label: t`Every day`, pattern: /^(\d+) (\d+) \* \* \*$/, cron: (minute, hour) => `${minute} ${hour} * * *` },
  weekdays: { label: t`Monday to Friday`, pattern: /^(\d+) (\d+) \* \* 1-5$/, cron: (minute, hour) => `${minute} ${hour} * * 1-5` },
  weekly: { label: t`Every week`, pattern: /^(\d+) (\d+) \* \* ([0-6])$/, cron: (minute, hour, day) => `${minute} ${hour} * * ${day}` },
  monthly: { label: t`Every month`, pattern: /^(\d+) (\d+) (\d+) \* \*$/, cron: (minute, hour, day) => `${minute} ${hour} ${day} * *` },
};

/** Converts a stored time to the value of a `datetime-local` field, in the task's time zone. */
function civil(time, zone) {
  if (!/(?:Z|[+-]\d\d:?\d\d)$/.test(time)) return time.slice(0, 16);
  // The Swedish format is like ISO 8601.
  return new Date(time).toLocaleString('sv-SE', { timeZone: zone }).replace(' ', 'T').slice(0, 16);
}

const clock = (hour, minute) => `${String(hour).padStart(2, '0')}:${String(minute).padStart(2, '0')}`;

/** Returns the kind, time and day of a cron expression. The kind is `cron` for expressions without their own fields. */
function read(cron) {
  for (const [kind, { pattern }] of Object.entries(KINDS)) {
    const [, minute, hour, day] = pattern.exec(cron) ?? [];
    if (hour !== undefined) return { kind, at: clock(hour, minute), day };
  }
  return { kind: 'cron' };
}

/** Describes the times of a task. */
export function timesText({ schedule_spec: spec, timezone: zone }) {
  if (spec.run_at) return t`Once`;
  const { kind, at, day } = read(spec.cron);
  const texts = { daily: t`every day at ${at}`, weekdays: t`Monday to Friday at ${at}`, weekly: t`${DAYS[day]} at ${at}`, monthly: t`day ${day} of the month at ${at}` };
  return `${texts[kind] ?? spec.cron} (${zone})`;
}

/** Creates the fields for the times of a task. `value()` returns the kind and the specification for the API. The kind of an existing task cannot be changed. */
export function times(task) {
  const spec = task?.schedule_spec ?? {};
  const known = spec.run_at ? { kind: 'once' } : spec.cron ? read(spec.cron) : { kind: 'daily' };
  const options = [...Object.entries(KINDS).map(([value, { label }]) => [value, label]), ['cron', t`Cron expression`]];
  const offered = !task ? [['once', t`Once`], ...options] : spec.run_at ? [['once', t`Once`]] : options;
  const kind = make('select', { className: 'input' }, ...offered.map(([value, textContent]) => make('option', { value, textContent })));
  kind.value = known.kind;
  const once = make('input', { className: 'input', type: 'datetime-local', value: spec.run_at ? civil(spec.run_at, task.timezone) : '' });
  const at = make('input', { className: 'input', type: 'time', value: known.at ?? '09:00' });
  const day = make('select', { className: 'input' }, ...DAYS.map((textContent, value) => make('option', { value, textContent })));
  const date = make('input', { className: 'input', type: 'number', min: 1, max: 31, value: 1 });
  const cron = make('input', { className: 'input', placeholder: '0 9 * * 1-5', value: spec.cron ?? '' });
  day.value = known.kind === 'weekly' ? known.day : 1;
  if (known.kind === 'monthly') date.value = known.day;
  const fields = [
    [once, t`Date and time`, ['once']], [day, t`Day`, ['weekly']], [date, t`Day of the month`, ['monthly']],
    [at, t`Time`, ['daily', 'weekdays', 'weekly', 'monthly']], [cron, t`Cron expression`, ['cron']],
  ].map(([input, label, kinds]) => ({ input, kinds, node: labelled(label, input) }));
  const change = () => fields.forEach(({ input, kinds, node }) => {
    node.hidden = !kinds.includes(kind.value);
    input.required = !node.hidden;
    input.disabled = node.hidden;
  });
  kind.onchange = change;
  change();
  const value = () => {
    if (kind.value === 'once') return { kind: 'once', spec: { run_at: once.value } };
    if (kind.value === 'cron') return { kind: 'cron', spec: { cron: cron.value.trim() } };
    const [hour, minute] = at.value.split(':').map(Number);
    return { kind: 'cron', spec: { cron: KINDS[kind.value].cron(minute, hour, kind.value === 'weekly' ? day.value : date.value) } };
  };
  return { nodes: [labelled(t`Repeats`, kind), ...fields.map(field => field.node)], value };
}
