// Words of the page in the language of the browser. English stands in the code; other languages have a table each.

import { CHINESE } from './zh-hans.js';

const TABLES = { en: {}, zh: CHINESE };

/** The first language of the browser for which there are words. */
export const language = (navigator.languages ?? []).map(tag => tag.split('-')[0].toLowerCase()).find(tag => TABLES[tag]) ?? 'en';

const table = TABLES[language];

/** Returns a text in that language: t`${count} rows` is looked up as "{0} rows". */
export function t(parts, ...values) {
  const english = parts.reduce((text, part, at) => `${text}{${at - 1}}${part}`);
  return (table[english] ?? english).replace(/\{(\d)\}/g, (_, at) => values[at]);
}

/** Attributes that people read or hear. */
const ATTRIBUTES = ['title', 'aria-label', 'placeholder'];

/** Puts what stands in the document into that language. */
function translate() {
  document.documentElement.lang = language === 'zh' ? 'zh-Hans' : language;
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const node = texts.currentNode;
    const english = node.data.trim();
    if (table[english]) node.data = node.data.replace(english, table[english]);
  }
  for (const name of ATTRIBUTES) {
    for (const node of document.querySelectorAll(`[${name}]`)) node.setAttribute(name, table[node.getAttribute(name)] ?? node.getAttribute(name));
  }
}

translate();
