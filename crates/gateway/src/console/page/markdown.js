// Parses Markdown into a tree of blocks, which `markup.js` renders. Does not use the DOM.
//
// Nesting and the number of times that a line is read are bounded, so no input takes long.

const MAX_DEPTH = 16;

const FENCE = /^( {0,3})(`{3,}|~{3,})[ \t]*([^`]*)$/;
const RULE = /^ {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const ITEM = /^( *)([-+*]|\d{1,9}[.)])(?:( +)(.*))?$/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]+(.*))?$/;
const QUOTE = /^ {0,3}> ?/;
const ROW_RULE = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;
const DETAILS = /^ {0,3}<details(\s+open(?:=(?:""|''|"open"|'open'|open))?)?\s*>/i;
const SUMMARY = /<summary>([^]{0,2000}?)<\/summary>/i;
const FORMULA = /^ {0,3}(?:(\$\$)|(\\\[)|\\begin\{((?:equation|align|aligned|alignat|gather|gathered|cases|split|CD|[bpvBV]?matrix|smallmatrix|array)\*?)\})/;
const NOTE = /^ {0,3}\[\^(\d{1,4}|[A-Za-z]\w{0,31})\]:[ \t]+(.*)$/;
/** Maximum number of lines of a formula. */
const FORMULA_LINES = 200;
const UNDERLINE = /^ {0,3}(=+|-+)[ \t]*$/;

const isRule = line => line.length < 1000 && RULE.test(line);
const isBlank = line => !line.trim();
const indent = line => line.length - line.trimStart().length;

/** Parses a text into blocks. Each has `at`, the number of its first line. */
export function blocks(text) {
  return read(text.replaceAll('\t', '    ').split('\n'), 0);
}

function read(lines, depth) {
  const found = [];
  let at = 0;
  while (at < lines.length) {
    if (isBlank(lines[at])) { at += 1; continue; }
    const { next, ...block } = one(lines, at, depth);
    found.push({ ...block, at });
    at = next;
  }
  return found;
}

/** Parses the block that starts at a line. `next` is the line after it. */
function one(lines, at, depth) {
  const line = lines[at];
  const fence = FENCE.exec(line);
  if (fence) return fenced(lines, at, fence);
  if (indent(line) >= 4) return indented(lines, at);
  const heading = HEADING.exec(line);
  if (heading) {
    const text = (heading[2] ?? '').trim().replace(/(^|[ \t])#+$/, '').trim();
    return { kind: 'heading', level: heading[1].length, text, next: at + 1 };
  }
  if (isRule(line)) return { kind: 'rule', next: at + 1 };
  if (depth < MAX_DEPTH) {
    if (QUOTE.test(line)) return quote(lines, at, depth);
    if (ITEM.test(line)) return list(lines, at, depth);
    if (DETAILS.test(line)) return details(lines, at, depth);
  }
  const footnote = NOTE.exec(line);
  if (footnote && depth < MAX_DEPTH) return note(lines, at, depth, footnote);
  const mathematics = formula(lines, at);
  if (mathematics) return mathematics;
  if (isTable(lines, at)) return table(lines, at);
  return paragraph(lines, at, depth);
}

/** Parses a footnote with its continuation lines, and indented lines after a blank one. */
function note(lines, at, depth, [, id, first]) {
  const body = [first];
  let next = at + 1;
  for (; next < lines.length; next += 1) {
    const line = lines[next];
    const isMore = isBlank(line) ? next + 1 < lines.length && indent(lines[next + 1]) >= 2 : indent(line) >= 2 || (!isBlank(lines[next - 1]) && !begins(lines, next));
    if (!isMore || NOTE.test(line)) break;
    body.push(line.slice(Math.min(indent(line), 4)));
  }
  return { kind: 'note', id, blocks: read(body, depth + 1), next };
}

/** Parses a formula on lines of its own, or returns null. A formula between `$$` may be unclosed while the text grows. */
function formula(lines, at) {
  const found = FORMULA.exec(lines[at]);
  if (!found) return null;
  const [mark, dollars, bracket, environment] = found;
  const close = dollars ?? (bracket ? '\\]' : `\\end{${environment}}`);
  const first = lines[at].slice(environment ? 0 : mark.length);
  const body = [];
  const last = Math.min(lines.length, at + FORMULA_LINES);
  for (let next = at; next < last; next += 1) {
    const line = next === at ? first : lines[next];
    const end = line.indexOf(close);
    if (end < 0) { body.push(line); continue; }
    if (line.slice(end + close.length).trim()) return null;
    body.push(line.slice(0, environment ? end + close.length : end));
    const text = body.join('\n').trim();
    return text && (!bracket || /[\d\\^_=+\-*/<>{}|]|^\S{1,2}$/.test(text)) ? { kind: 'formula', text, next: next + 1 } : null;
  }
  const grows = last === lines.length && dollars && !first.trim() && body.length > 1;
  return grows ? { kind: 'formula', text: body.join('\n').trim(), next: last } : null;
}

function fenced(lines, at, [, space, mark, info]) {
  const close = new RegExp(`^ {0,3}${mark[0]}{${mark.length},}[ ]*$`);
  const body = [];
  let next = at + 1;
  while (next < lines.length && !close.test(lines[next])) {
    const line = lines[next];
    body.push(line.slice(Math.min(indent(line), space.length)));
    next += 1;
  }
  const closed = next < lines.length;
  if (/^math\b/i.test(info)) return { kind: 'formula', text: body.join('\n'), next: closed ? next + 1 : next };
  return { kind: 'code', language: info.trim().split(/\s/)[0], text: body.join('\n'), closed, next: closed ? next + 1 : next };
}

function indented(lines, at) {
  let next = at;
  while (next < lines.length && (isBlank(lines[next]) || indent(lines[next]) >= 4)) next += 1;
  const body = lines.slice(at, next).map(line => line.slice(4));
  while (body.length && isBlank(body.at(-1))) body.pop();
  return { kind: 'code', language: '', text: body.join('\n'), closed: true, next };
}

function quote(lines, at, depth) {
  let next = at;
  const body = [];
  while (next < lines.length && QUOTE.test(lines[next])) body.push(lines[next++].replace(QUOTE, ''));
  return { kind: 'quote', blocks: read(body, depth + 1), next };
}

/** Parses a `<details>` element. An unclosed one extends to the end of the text and is shown open. */
function details(lines, at, depth) {
  let [next, open] = [at, 0];
  do {
    open += (lines[next].match(/<details\b/gi) ?? []).length - (lines[next].match(/<\/details>/gi) ?? []).length;
    next += 1;
  } while (next < lines.length && open > 0);
  const whole = lines.slice(at, next).join('\n').replace(DETAILS, '').replace(/<\/details>\s*$/i, '');
  const summary = SUMMARY.exec(whole);
  const body = (summary ? whole.replace(summary[0], '') : whole).split('\n');
  const isOpen = open > 0 || DETAILS.exec(lines[at])[1] !== undefined;
  return { kind: 'details', isOpen, summary: summary ? summary[1].replace(/<[^>]{1,100}>/g, '').trim() : '', blocks: read(body, depth + 1), next };
}

function list(lines, at, depth) {
  const [, space, mark] = ITEM.exec(lines[at]);
  const base = space.length;
  const ordered = /\d/.test(mark);
  const items = [];
  let [next, loose, gap] = [at, false, false];
  while (next < lines.length) {
    const found = ITEM.exec(lines[next]);
    const isNext = found && found[1].length < base + 2 && /\d/.test(found[2]) === ordered
      && found[2].at(-1) === mark.at(-1) && !isRule(lines[next]);
    if (!isNext) break;
    loose ||= gap;
    const item = itemBody(lines, next);
    items.push(task(item.body));
    ({ gap, next } = item);
  }
  for (const item of items) item.blocks = read(item.body, depth + 1);
  loose ||= items.some(item => item.blocks.filter(block => block.kind === 'paragraph').length > 1);
  return { kind: 'list', ordered, start: ordered ? parseInt(mark, 10) : undefined, loose, items, next };
}

/** Collects the lines of a list item: indented lines, and continuation lines without a blank line before. */
function itemBody(lines, at) {
  const [, space, mark, gap = '', first = ''] = ITEM.exec(lines[at]);
  const width = space.length + mark.length + (gap.length > 4 || !first ? 1 : gap.length || 1);
  const body = [gap.length > 4 ? gap.slice(1) + first : first];
  let [next, blank] = [at + 1, false];
  while (next < lines.length) {
    const line = lines[next];
    if (isBlank(line)) { blank = true; body.push(''); next += 1; continue; }
    const deep = indent(line);
    // Many texts indent nested lists by two spaces, whatever the width of the marker.
    const belongs = deep >= width || (deep >= space.length + 2 && ITEM.test(line));
    const continues = !blank && !begins(lines, next) && !ITEM.test(line);
    if (!belongs && !continues) break;
    body.push(line.slice(Math.min(deep, width)));
    blank = false;
    next += 1;
  }
  while (body.length > 1 && isBlank(body.at(-1))) body.pop();
  return { body, next, gap: blank };
}

function task(body) {
  const box = /^\[([ xX])\] /.exec(body[0]);
  return box ? { checked: box[1] !== ' ', body: [body[0].slice(4), ...body.slice(1)] } : { body };
}

const isTable = (lines, at) => lines[at].includes('|') && at + 1 < lines.length && lines[at + 1].includes('-')
  && ROW_RULE.test(lines[at + 1]) && cells(lines[at]).length === cells(lines[at + 1]).length;

function table(lines, at) {
  const aligns = cells(lines[at + 1]).map(cell => [cell.startsWith(':'), cell.endsWith(':')])
    .map(([left, right]) => (left && right ? 'center' : right ? 'right' : ''));
  let next = at + 2;
  const rows = [];
  while (next < lines.length && !isBlank(lines[next]) && !begins(lines, next)) rows.push(cells(lines[next++]).slice(0, aligns.length));
  return { kind: 'table', head: cells(lines[at]), aligns, rows, next };
}

/** Splits a table row at its bars, except escaped ones and those in code. */
function cells(line) {
  const found = [];
  let [cell, inCode] = ['', false];
  const text = line.trim().replace(/^\|/, '');
  for (let at = 0; at < text.length; at += 1) {
    const mark = text[at];
    if (mark === '\\' && text[at + 1] === '|') { cell += '|'; at += 1; continue; }
    if (mark === '`') inCode = !inCode;
    if (mark === '|' && !inCode) { found.push(cell.trim()); cell = ''; } else cell += mark;
  }
  if (cell.trim()) found.push(cell.trim());
  return found;
}

/** Returns whether a block other than a paragraph starts at a line. */
function begins(lines, at) {
  const line = lines[at];
  const item = ITEM.exec(line);
  return FENCE.test(line) || HEADING.test(line) || isRule(line) || QUOTE.test(line) || DETAILS.test(line) || NOTE.test(line) || formula(lines, at) !== null
    || (item !== null && item[4] !== undefined && (!/\d/.test(item[2]) || parseInt(item[2], 10) === 1));
}

function paragraph(lines, at, depth) {
  const body = [lines[at].trimStart()];
  let next = at + 1;
  while (next < lines.length && !isBlank(lines[next])) {
    const underline = UNDERLINE.exec(lines[next]);
    if (underline) return { kind: 'heading', level: underline[1][0] === '=' ? 1 : 2, text: body.join('\n').trim(), next: next + 1 };
    if ((depth < MAX_DEPTH && begins(lines, next)) || isTable(lines, next)) break;
    body.push(lines[next].trimStart());
    next += 1;
  }
  return { kind: 'paragraph', text: body.join('\n').trimEnd(), next };
}
