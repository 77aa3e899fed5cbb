// A tool call that waits for approval, and the decision on it.

import { icon, make, plain } from './dom.js';
import { MarkdownView } from './markup.js';
import { account } from './signin.js';
import { text } from './step.js';
import { language, t } from './words.js';

const OUTCOMES = { approved: t`Approved`, denied: t`Denied`, expired: t`Expired without a decision` };

/** Creates the part of an answer that asks for approval and later shows the decision. */
export function approval(_thread, actions) {
  const node = make('div', { className: 'approval', role: 'group' });
  let shown = null;
  const update = ({ asked }) => {
    if (shown === asked.status) return;
    const [hadFocus, isFirst] = [node.contains(document.activeElement), shown === null];
    shown = asked.status;
    node.className = shown === 'open' ? 'approval' : `approval decided ${shown}`;
    node.setAttribute('aria-label', shown === 'open' ? t`Approval needed` : t`Approval`);
    node.replaceChildren(...(shown === 'open' ? question(asked, actions) : outcome(asked)));
    if (hadFocus && !isFirst) Object.assign(node, { tabIndex: -1 }).focus();
  };
  return { node, update };
}

function question({ id, request, whole, deadline }, actions) {
  const button = (label, approved, className) => make('button', { type: 'button', className, textContent: label, onclick: () => actions.decide(id, approved) });
  const until = new Intl.DateTimeFormat(language, { timeStyle: 'short' }).format(new Date(deadline));
  return [make('h3', {}, icon('i-key'), t`May I do this?`), requested(request),
    whole ? make('details', {}, make('summary', { textContent: t`Show the full call` }), text(t`Full call`, whole)) : '',
    make('div', { className: 'options' }, button(t`Approve`, true, 'button main'), button(t`Deny`, false, 'button'),
      make('span', { className: 'hint', textContent: t`Denied automatically at ${until}` }))];
}

function outcome({ status, by, request }) {
  const isOther = by && ![account()?.id, account()?.email, 'default'].includes(by);
  return [make('b', { textContent: isOther ? t`${OUTCOMES[status]} by ${plain(by)}` : OUTCOMES[status] }), requested(request)];
}

function requested(request) {
  const words = make('div', { className: 'words' });
  new MarkdownView(words).update(request, true);
  return words;
}
