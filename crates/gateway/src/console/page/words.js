// Texts of the page in the browser's language. English is in the code; other languages have a table each.

import { CHINESE } from './zh-hans.js';

const TABLES = { en: {}, zh: CHINESE };

/** The browser's first language with a table. */
export const language = (navigator.languages ?? []).map(tag => tag.split('-')[0].toLowerCase()).find(tag => TABLES[tag]) ?? 'en';

const table = TABLES[language];

/** Translates a text: t`${count} rows` is looked up as "{0} rows". */
export function t(parts, ...values) {
  const english = parts.reduce((text, part, at) => `${text}{${at - 1}}${part}`);
  return (table[english] ?? english).replace(/\{(\d)\}/g, (_, at) => values[at]);
}

/** Attributes with translatable texts. */
const ATTRIBUTES = ['title', 'aria-label', 'placeholder'];

/** Translates the texts of the document. */
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
