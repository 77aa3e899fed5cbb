// Draws diagrams for the page: it sends their text and gets pictures back. This frame has an origin of its own and reaches no address.
'use strict';

const SETTINGS = {
  startOnLoad: false, securityLevel: 'strict', suppressErrorRendering: true, maxTextSize: 20_000, maxEdges: 500,
  // A picture has no HTML in it: not every browser draws that.
  htmlLabels: false, flowchart: { htmlLabels: false, useMaxWidth: false }, class: { htmlLabels: false },
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif',
};

/** Kinds whose text is misplaced without HTML. */
const HTML_LABELS = /^\s*(?:mindmap|kanban|block)/m;

/** Returns a diagram as a picture with a size of its own. */
async function draw(id, text, theme) {
  mermaid.initialize({ ...SETTINGS, theme, htmlLabels: HTML_LABELS.test(text) });
  const { svg } = await mermaid.render(`diagram-${id}`, text);
  const place = document.createElement('div');
  place.innerHTML = svg;
  const drawn = place.querySelector('svg');
  const { width, height } = drawn.viewBox.baseVal;
  if (width && height) {
    drawn.setAttribute('width', Math.ceil(width));
    drawn.setAttribute('height', Math.ceil(height));
    drawn.style.maxWidth = '';
  }
  return new XMLSerializer().serializeToString(drawn);
}

// The page sends one diagram at a time: the library draws no two at once.
addEventListener('message', ({ source, data: { id, text, theme } }) => {
  if (source !== parent) return;
  draw(id, text, theme).then(
    svg => parent.postMessage({ id, svg }, location.origin),
    error => parent.postMessage({ id, error: String(error?.message ?? error) }, location.origin));
});

parent.postMessage({ ready: true }, location.origin);
