// A question with form fields: its draft and its answer.

import { storage, make } from './dom.js';
import { t } from './words.js';

/** Creates the form of a question. The draft is stored in the browser until it is sent. */
export function form({ request_id: id, fields }, actions) {
  const place = `form.${id}`;
  const draft = storage.json(place) ?? {};
  const rows = fields.map(field => row(field, draft[field.name], actions));
  const node = make('form', { className: 'form' }, ...rows.map(one => one.node),
    make('button', { type: 'submit', className: 'button main', textContent: t`Send answers` }));
  node.oninput = () => storage.set(place, JSON.stringify(Object.fromEntries(rows.map(({ name, value }) => [name, value()]))));
  node.onsubmit = event => {
    event.preventDefault();
    const lines = rows.map(({ label, text }) => [label, text()]).filter(([, text]) => text);
    storage.set(place, null);
    actions.answer(lines.map(([label, text]) => `${label}: ${text}`).join('\n'));
  };
  return node;
}

/** Creates the row of a field. `value()` returns the draft value, `text()` the answer for the message. */
function row(field, draft, actions) {
  const label = make('span', { textContent: field.label + (field.required ? ' *' : '') });
  const input = control(field, draft, actions);
  const tag = input.isGroup ? 'fieldset' : 'label';
  const node = make(tag, { className: field.type === 'checkbox' ? 'check' : 'field' }, ...(field.type === 'checkbox' ? [input.node, label] : [label, input.node]));
  return { ...input, name: field.name, label: field.label, node };
}

function control(field, draft, actions) {
  if (field.type === 'multi_select') return choices(field, draft ?? []);
  if (field.file) return file(field, actions);
  if (field.type === 'checkbox') {
    const node = make('input', { type: 'checkbox', required: field.required, checked: draft === true });
    return { node, value: () => node.checked, text: () => (node.checked ? t`yes` : t`no`) };
  }
  const node = single(field);
  if (draft) node.value = draft;
  return { node, value: () => node.value, text: () => node.value.trim() };
}

function single({ type, options = [], required, placeholder }) {
  const common = { className: 'input', required, dir: 'auto' };
  if (type === 'textarea') return make('textarea', { ...common, rows: 3, placeholder });
  if (type !== 'select') {
    return make('input', { ...common, type: { number: 'number', date: 'date' }[type] ?? 'text', step: type === 'number' ? 'any' : undefined, placeholder });
  }
  const option = ({ label, value }) => make('option', { value, textContent: label });
  return make('select', common, make('option', { value: '', textContent: placeholder ?? '' }), ...options.map(option));
}

function choices({ options = [], required, label }, draft) {
  const boxes = options.map(({ value }) => make('input', { type: 'checkbox', value, checked: draft.includes(value) }));
  const chosen = () => boxes.filter(box => box.checked).map(box => box.value);
  // HTML has no `required` for a group of checkboxes, so the first one carries the validity.
  const check = () => boxes[0]?.setCustomValidity(required && !chosen().length ? t`Choose at least one.` : '');
  const node = make('div', { className: 'choices', onchange: check, role: 'group', 'aria-label': label },
    ...options.map((option, at) => make('label', { className: 'check' }, boxes[at], make('span', { textContent: option.label }))));
  check();
  return { node, isGroup: true, value: chosen, text: () => chosen().join(', ') };
}

/** Creates a file field. Its files are attached to the message. */
function file({ required }, actions) {
  const node = make('input', { type: 'file', className: 'input', required, multiple: true });
  const names = () => [...node.files].map(({ name }) => name).join(', ');
  node.onchange = () => actions.attach(node.files);
  return { node, value: () => undefined, text: names };
}
