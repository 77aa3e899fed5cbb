// Syntax highlighting, formulas and diagrams. Their libraries are loaded when an answer needs them.

import { icon, iconButton, make, revealed } from './dom.js';
import { panel } from './dialogs.js';
import { t } from './words.js';

/** Maximum length of highlighted code and of a diagram, in characters. */
const COLOURED_CHARS = 40_000;
const DIAGRAM_CHARS = 20_000;
/** Timeout of a diagram. */
const DIAGRAM_MS = 20_000;
/** Time after which the loop yields to the browser. */
const BUSY_MS = 12;

/** Languages outside the library's main file, with their aliases. */
const LANGUAGES = {
  clojure: ['clj', 'edn'], cmake: [], dart: [], dockerfile: ['docker', 'containerfile'], elixir: ['ex', 'exs'], erlang: ['erl'], fsharp: ['fs', 'f#'],
  groovy: ['gradle'], haskell: ['hs'], http: ['https'], julia: ['jl'], latex: ['tex'], matlab: [], nginx: ['nginxconf'], ocaml: ['ml'], powershell: ['ps1', 'ps', 'pwsh'],
  protobuf: ['proto'], scala: [], verilog: ['v', 'sv', 'systemverilog'], vim: ['viml'], x86asm: ['asm', 'nasm'],
};
const FILES = new Map(Object.entries(LANGUAGES).flatMap(([file, others]) => [file, ...others].map(name => [name, file])));

const address = path => new URL(`vendor/${path}`, import.meta.url).href;

/** Returns a function that loads a resource once. A failed load is repeated on the next call. */
function once(load) {
  let loaded = null;
  return () => {
    loaded ??= load().catch(error => { loaded = null; throw error; });
    return loaded;
  };
}

/** Renders the code, formulas and diagrams of Markdown blocks. On failure the source text remains. */
export async function draw(blocks) {
  const within = selector => blocks.flatMap(block => (block.matches(selector) ? [block] : [...block.querySelectorAll(selector)]));
  const codes = within('.code').filter(block => block.dataset.language && block.raw !== undefined);
  for (const block of codes.filter(({ dataset }) => dataset.language === 'mermaid')) whenNear(block, diagram);
  await each(within('code.formula'), formulas, formula);
  await each(codes.filter(({ dataset, raw }) => dataset.language !== 'mermaid' && raw.length <= COLOURED_CHARS), highlighter, colour);
}

async function each(nodes, library, work) {
  if (!nodes.length) return;
  try {
    const loaded = await library();
    let begun = performance.now();
    for (const node of nodes) {
      try {
        await work(node, loaded);
      } catch (error) {
        console.warn('not drawn', error);
      }
      if (performance.now() - begun < BUSY_MS) continue;
      await new Promise(go => setTimeout(go));
      begun = performance.now();
    }
  } catch (error) {
    console.warn('not drawn', error);
  }
}

const highlighter = once(async () => (await import(address('highlight/highlight.min.js'))).default);

async function colour(block, library) {
  const language = await grammar(block.dataset.language, library);
  const body = block.querySelector('pre > code');
  if (language && body) body.replaceChildren(coloured(library, block.raw, language));
}

/** Loads the grammar of a language and returns its name, or undefined. */
async function grammar(name, library) {
  if (library.getLanguage(name)) return name;
  const file = FILES.get(name);
  if (!file) return undefined;
  if (!library.getLanguage(file)) library.registerLanguage(file, (await import(address(`highlight/languages/${file}.min.js`))).default);
  return file;
}

/** Returns a highlighted text for an element other than a code block, or null. */
export async function colouredText(text, extension) {
  try {
    const library = await highlighter();
    const language = text.length <= COLOURED_CHARS && await grammar(extension.toLowerCase(), library);
    return language ? coloured(library, text, language) : null;
  } catch { return null; }
}

const SIGNS = { '&amp;': '&', '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#x27;': "'" };
const unescaped = text => text.replace(/&(?:amp|lt|gt|quot|#x27);/g, sign => SIGNS[sign]);

/** Converts the library's markup, which consists of spans with classes and escaped text, to nodes. */
function coloured(library, text, language) {
  const markup = library.highlight(revealed(text), { language, ignoreIllegals: true }).value;
  const out = document.createDocumentFragment();
  const open = [out];
  for (const part of markup.split(/(<span class="[^"<>]*">|<\/span>)/)) {
    const begin = /^<span class="([^"<>]*)">$/.exec(part);
    if (begin) {
      const span = make('span', { className: begin[1] });
      open.at(-1).append(span);
      open.push(span);
    } else if (part === '</span>') {
      if (open.length > 1) open.pop();
    } else if (part) open.at(-1).append(unescaped(part));
  }
  return out;
}

const formulas = once(async () => {
  await Promise.all([import(address('katex/katex.min.js')), style(address('katex/katex.min.css'))]);
  return self.katex;
});

const style = href => new Promise((loaded, failed) => {
  document.head.append(make('link', { rel: 'stylesheet', href, onload: loaded, onerror: () => failed(new Error(`${href} could not be loaded`)) }));
});

/** Renders a formula. The library creates elements and sets style properties, which the content security policy allows. */
function formula(node, katex) {
  const displayMode = node.dataset.display === 'block';
  const drawn = make('span', { className: displayMode ? 'formula display' : 'formula' });
  try {
    katex.render(node.textContent, drawn, { displayMode, throwOnError: true, strict: 'ignore', trust: false, maxSize: 20, maxExpand: 300 });
  } catch { return; }
  node.replaceWith(drawn);
  if (displayMode && drawn.scrollWidth > drawn.clientWidth) Object.assign(drawn, { tabIndex: 0, role: 'group', ariaLabel: t`Formula` });
}

/** Runs `work` on a node once it is near the viewport. */
function whenNear(node, work) {
  const watcher = new IntersectionObserver(entries => {
    if (!entries.some(entry => entry.isIntersecting)) return;
    watcher.disconnect();
    work(node);
  }, { rootMargin: '600px' });
  watcher.observe(node);
}

/** The frame that renders diagrams, one at a time. A frame that times out is replaced. */
const frame = { node: null, started: null, ready: null, answer: null, count: 0, before: Promise.resolve() };

addEventListener('message', ({ source, data }) => {
  if (!frame.node || source !== frame.node.contentWindow) return;
  if (data.ready) frame.ready();
  else if (data.id === frame.count) frame.answer(data);
});

/** Returns the frame's window once it is ready. */
const started = () => frame.started ??= new Promise(ready => {
  frame.ready = () => ready(frame.node.contentWindow);
  frame.node = make('iframe', { className: 'renderer', sandbox: 'allow-scripts', src: new URL('frame/diagram.html', import.meta.url).href, title: t`Diagrams`, tabIndex: -1, 'aria-hidden': 'true' });
  document.body.append(frame.node);
});

/** Renders a diagram to `{svg}` or `{error}`. */
function picture(text, theme) {
  const drawn = frame.before.then(() => drawing(text, theme));
  frame.before = drawn.catch(() => {});
  return drawn;
}

function drawing(text, theme) {
  const id = frame.count += 1;
  return new Promise(answer => {
    const late = setTimeout(() => {
      frame.node?.remove();
      frame.started = null;
      answer({ error: t`it took too long` });
    }, DIAGRAM_MS);
    frame.answer = data => { clearTimeout(late); answer(data); };
    // A sandboxed frame has an opaque origin, so the target origin must be "*".
    started().then(target => target.postMessage({ id, text, theme }, '*'));
  });
}

const isDark = () => getComputedStyle(document.documentElement).colorScheme === 'dark';

async function diagram(block) {
  const [bar, pre] = block.children;
  const hint = make('p', { className: 'hint diagram-hint', role: 'status', textContent: t`Drawing…` });
  block.append(hint);
  const flaw = !block.raw.trim() ? t`it is empty` : block.raw.length > DIAGRAM_CHARS ? t`it is too long` : '';
  const { svg, error } = flaw ? { error: flaw } : await picture(block.raw, isDark() ? 'dark' : 'default');
  if (!svg) {
    hint.textContent = t`This diagram could not be drawn: ${error.split('\n')[0].replace(/:$/, '')}`;
    return;
  }
  block.drawn = svg;
  const image = svgImage(svg);
  const shown = make('button', { type: 'button', className: 'diagram', title: t`Enlarge`, onclick: () => enlarge(block.drawn) }, image);
  const toggle = iconButton('i-code', t`Show the text`, () => {
    [pre.hidden, shown.hidden] = [shown.hidden, pre.hidden];
    toggle.replaceChildren(icon(pre.hidden ? 'i-code' : 'i-image'));
    toggle.title = pre.hidden ? t`Show the text` : t`Show the diagram`;
    toggle.setAttribute('aria-label', toggle.title);
  });
  pre.hidden = true;
  bar.lastElementChild.before(toggle);
  hint.replaceWith(shown);
  for (const old of drawnDiagrams) if (!old.isConnected) drawnDiagrams.delete(old);
  drawnDiagrams.add(block);
}

const enlarge = svg => panel(t`Diagram`, make('div', { className: 'preview diagram-large', tabIndex: 0, role: 'region', 'aria-label': t`Diagram` }, svgImage(svg)));

/** Creates an image element, in which the SVG cannot run scripts. */
function svgImage(svg) {
  const src = URL.createObjectURL(new Blob([svg], { type: 'image/svg+xml' }));
  return make('img', { alt: t`Diagram`, src, onload: () => URL.revokeObjectURL(src) });
}

/** Blocks with a diagram. A change of the theme redraws them. */
const drawnDiagrams = new Set();

async function redraw() {
  for (const block of drawnDiagrams) {
    const image = block.querySelector('.diagram > img');
    if (!block.isConnected || !image) { drawnDiagrams.delete(block); continue; }
    const { svg } = await picture(block.raw, isDark() ? 'dark' : 'default');
    if (!svg) continue;
    block.drawn = svg;
    image.replaceWith(svgImage(svg));
  }
}

matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
new MutationObserver(redraw).observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] });
