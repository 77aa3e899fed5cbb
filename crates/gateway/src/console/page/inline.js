// Inline Markdown as nodes: emphasis, code, links. Source text becomes text nodes only, never HTML.

import { make, plain } from './dom.js';
import { t } from './words.js';

/** Maximum length of a formatted text. A longer one is shown as plain text. */
const MAX_CHARS = 50_000;
/** Maximum number of unmatched emphasis marks and brackets. */
const MAX_MARKS = 400;

const PUNCTUATION = /[!-/:-@[-`{-~]/;
const SPECIAL = /[\\`*_~[\]!<\n$]|https?:\/\//g;
/** Chinese, Japanese and Korean characters. Emphasis next to them needs no spaces. */
const CJK = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Bopomofo}\u3000-\u303f\ufe30-\ufe4f\uff00-\uffef]/u;
const FORMULA = /\\\(([^]{1,2000}?)\\\)|\\\[([^]{1,4000}?)\\\]|\$\$([^$]{1,4000})\$\$/y;
/** A formula between single dollar signs, without adjacent spaces inside or letters and digits outside, as in amounts of money. */
const DOLLARS = /\$((?:[^\s$\\]|\\.)(?:(?:[^$\\\n]|\\.){0,400}(?:[^\s$\\]|\\.))?)\$(?![A-Za-z0-9$])/y;
/** Matches text that looks like a formula: symbols, digits, or at most two characters. */
const IS_FORMULA = /[\d\\^_=+\-*/<>{}|]|^\s*\S{1,2}\s*$/;
const FOOTNOTE = /\[\^(\d{1,4}|[A-Za-z]\w{0,31})\]/y;
const AUTOLINK = /<((?:https?:\/\/|mailto:)[^\s<>]{1,2000})>/y;
const BREAK = /<br\s{0,3}\/?>/iy;
const BARE = /https?:\/\/[^\s<>"`|\\\]]{1,2000}/y;
const TARGET = /\(\s{0,9}(?:<([^<>\n]{0,2000})>|((?:[^\s()\\]|\\.|\([^\s()]{0,500}\)){0,2000}))(?:\s{1,9}(?:"[^"]{0,500}"|'[^']{0,500}'))?\s{0,9}\)/y;

/** Converts inline Markdown to nodes. `files` returns a link or an image for a path of the agent, or null. */
export function inline(text, files) {
  const out = document.createDocumentFragment();
  if (text.length > MAX_CHARS) { out.append(text); return out; }
  new Line(text, out, files).read();
  return out;
}

class Line {
  constructor(text, out, files) {
    Object.assign(this, { text, out, files, at: 0, marks: [], brackets: [], unclosed: new Set(), links: 0 });
  }

  read() {
    while (this.at < this.text.length) {
      SPECIAL.lastIndex = this.at;
      const found = SPECIAL.exec(this.text);
      const until = found ? found.index : this.text.length;
      if (until > this.at) this.out.append(this.text.slice(this.at, until));
      this.at = until;
      if (found) this.special(found[0][0]);
    }
    this.emphasize(0);
  }

  special(mark) {
    if (mark === '\\' || mark === '$') return this.formula() || this.escape();
    if (mark === '`') return this.code();
    if (mark === '\n') return this.add(make('br'), 1);
    if (mark === '<') return this.angle();
    if (mark === 'h') return this.bare();
    if (mark === '!' && this.text[this.at + 1] === '[') return this.open('![');
    if (mark === '[') return this.footnote() || this.open('[');
    if (mark === ']') return this.close();
    if (mark === '!') return this.add('!', 1);
    return this.delimiters(mark);
  }

  add(node, length) { this.out.append(node); this.at += length; }

  /** Adds a formula if one starts here, and returns whether it did. */
  formula() {
    FORMULA.lastIndex = DOLLARS.lastIndex = this.at;
    const found = FORMULA.exec(this.text);
    const body = found && (found[1] ?? found[2] ?? found[3]);
    if (found && IS_FORMULA.test(body)) {
      this.add(formula(body, found[2] !== undefined), found[0].length);
      return true;
    }
    const single = !/[A-Za-z0-9$\\]/.test(this.text[this.at - 1] ?? ' ') && DOLLARS.exec(this.text);
    if (!single || !isMath(single[1])) return false;
    this.add(formula(single[1], false), single[0].length);
    return true;
  }

  /** Adds a footnote reference if one starts here, and returns whether it did. */
  footnote() {
    FOOTNOTE.lastIndex = this.at;
    const found = FOOTNOTE.exec(this.text);
    if (!found) return false;
    this.add(noteLink(found[1], '.note', t`Footnote ${found[1]}`, found[1]), found[0].length);
    return true;
  }

  escape() {
    if (this.text[this.at] === '$') return this.add('$', 1);
    const next = this.text[this.at + 1];
    if (next === '\n') return this.add(make('br'), 2);
    if (next && PUNCTUATION.test(next)) return this.add(next, 2);
    return this.add('\\', 1);
  }

  run(mark) {
    let end = this.at;
    while (this.text[end] === mark) end += 1;
    return end - this.at;
  }

  code() {
    const length = this.run('`');
    const fence = '`'.repeat(length);
    let end = this.unclosed.has(length) ? -1 : this.text.indexOf(fence, this.at + length);
    while (end >= 0 && this.text[end + length] === '`') {
      let past = end + length;
      while (this.text[past] === '`') past += 1;
      end = this.text.indexOf(fence, past);
    }
    if (end < 0) {
      this.unclosed.add(length);
      return this.add(fence, length);
    }
    const body = this.text.slice(this.at + length, end).replaceAll('\n', ' ');
    const trimmed = /^ .*[^ ].* $/.test(body) ? body.slice(1, -1) : body;
    this.out.append(make('code', { textContent: trimmed }));
    this.at = end + length;
  }

  angle() {
    BREAK.lastIndex = AUTOLINK.lastIndex = this.at;
    const line = BREAK.exec(this.text);
    if (line) return this.add(make('br'), line[0].length);
    const link = AUTOLINK.exec(this.text);
    if (link) return this.add(createLink(link[1], [link[1]]), link[0].length);
    return this.add('<', 1);
  }

  bare() {
    BARE.lastIndex = this.at;
    const found = BARE.exec(this.text);
    const before = this.text[this.at - 1];
    if (!found || (before && /[\p{L}\p{N}]/u.test(before))) return this.add('http', 4);
    let url = found[0].replace(/[.,;:!?'"*_~]+$/, '');
    // A URL in parentheses, such as "(https://y)", does not include the closing one.
    while (url.endsWith(')') && url.split(')').length > url.split('(').length) url = url.slice(0, -1);
    return this.add(createLink(url, [url]), url.length);
  }

  open(mark) {
    const node = document.createTextNode(mark);
    this.brackets.push({ node, image: mark === '![', marks: this.marks.length, from: this.at + mark.length });
    if (this.brackets.length > MAX_MARKS) this.brackets.shift();
    this.add(node, mark.length);
  }

  close() {
    const opener = this.brackets.pop();
    TARGET.lastIndex = this.at + 1;
    const target = opener && TARGET.exec(this.text);
    if (!target) return this.add(']', 1);
    this.emphasize(opener.marks);
    const inner = [];
    for (let node = opener.node.nextSibling; node; node = node.nextSibling) inner.push(node);
    const url = (target[1] ?? target[2] ?? '').replace(/\\([!-/:-@[-`{-~])/g, '$1');
    const own = this.files?.(url, opener.image, this.text.slice(opener.from, this.at));
    if (own) inner.forEach(node => node.remove());
    opener.node.replaceWith(own ?? createLink(url, inner));
    this.at += 1 + target[0].length;
  }

  delimiters(mark) {
    const length = this.run(mark);
    const before = [...this.text.slice(Math.max(0, this.at - 2), this.at)].at(-1) ?? ' ';
    const after = String.fromCodePoint(this.text.codePointAt(this.at + length) ?? 32);
    const node = document.createTextNode(mark.repeat(length));
    const [opens, closes] = flanks(mark, before, after);
    if ((mark !== '~' || length === 2) && (opens || closes) && this.marks.length < MAX_MARKS) {
      this.marks.push({ node, mark, opens, closes, left: length });
    }
    this.add(node, length);
  }

  /** Converts pairs of marks, from index `from` on, to emphasis. */
  emphasize(from) {
    for (let at = from; at < this.marks.length; at += 1) {
      const closer = this.marks[at];
      while (closer.closes && closer.left > 0) {
        let by = at - 1;
        while (by >= from && !fits(this.marks[by], closer)) by -= 1;
        if (by < from) break;
        const opener = this.marks[by];
        const used = closer.mark === '~' ? 2 : Math.min(2, opener.left, closer.left);
        const tag = closer.mark === '~' ? 'del' : used === 2 ? 'strong' : 'em';
        wrap(opener.node, closer.node, make(tag));
        for (const side of [opener, closer]) {
          side.left -= used;
          side.node.data = side.node.data.slice(used);
        }
        this.marks.splice(by + 1, at - by - 1);
        at = by + 1;
      }
    }
    this.marks.length = from;
  }
}

/** Creates a link between a footnote and its reference. It leads to the first matching `kind` in the same text. */
export function noteLink(id, kind, label, text) {
  const link = make('button', { type: 'button', className: 'link', title: label, 'aria-label': label, textContent: text });
  link.onclick = () => {
    const found = [...link.closest('.words').querySelectorAll(kind)].find(node => node.dataset.note === id);
    found?.scrollIntoView({ block: 'nearest' });
    (found?.matches('.note') ? found : found?.querySelector('button'))?.focus();
  };
  return make('sup', { className: 'footnote', dataset: { note: id } }, link);
}

/** Creates an element with the source of a formula, which `draw.js` renders. */
export const formula = (text, isBlock) => make('code', { className: 'formula', textContent: text.trim(), dataset: isBlock ? { display: 'block' } : {} });

/** Returns whether a text between single dollar signs is mathematics and not prose. */
function isMath(text) {
  if (/\\[A-Za-z]/.test(text) || !/[A-Za-z]{3}/.test(text)) return true;
  return /[\^_=]/.test(text) && !/[A-Za-z]{3,}\s+[A-Za-z]{2}/.test(text);
}

const fits = (opener, closer) => opener.opens && opener.left > 0 && opener.mark === closer.mark
  && !((opener.closes || closer.opens) && (opener.left + closer.left) % 3 === 0 && closer.mark !== '~' && opener.left % 3 !== 0);

function flanks(mark, before, after) {
  const [blankBefore, blankAfter] = [/\s/.test(before), /\s/.test(after)];
  const [markBefore, markAfter] = [/[\p{P}\p{S}]/u.test(before), /[\p{P}\p{S}]/u.test(after)];
  const [cjkBefore, cjkAfter] = [CJK.test(before), CJK.test(after)];
  const left = !blankAfter && (!markAfter || cjkAfter || blankBefore || markBefore || cjkBefore);
  const right = !blankBefore && (!markBefore || cjkBefore || blankAfter || markAfter || cjkAfter);
  return mark === '_' ? [left && (!right || markBefore), right && (!left || markAfter)] : [left, right];
}

function wrap(opener, closer, element) {
  while (opener.nextSibling !== closer) element.append(opener.nextSibling);
  opener.after(element);
}

/** Creates a link for an `http`, `https` or `mailto` URL, and plain text for others. */
function createLink(url, inner) {
  // Links cannot be nested.
  inner = inner.map(node => (node.tagName === 'A' ? node.textContent : node));
  if (!/^(?:https?:\/\/|mailto:)/i.test(url)) return make('span', {}, ...inner);
  const link = make('a', { href: url, target: '_blank', rel: 'noopener noreferrer', title: plain(url) }, ...inner);
  // The prefix `citation:` is for programs only.
  const first = link.firstChild;
  if (first?.nodeType === Node.TEXT_NODE) first.data = first.data.replace(/^citation:\s*/i, '');
  return link;
}
