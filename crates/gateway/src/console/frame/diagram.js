// Renders diagrams for the page, which sends their text and receives SVG. The frame has an opaque origin and no network access.
'use strict';

const SETTINGS = {
  startOnLoad: false, securityLevel: 'strict', suppressErrorRendering: true, maxTextSize: 20_000, maxEdges: 500,
  // Not every browser renders HTML inside an SVG image.
  htmlLabels: false, flowchart: { htmlLabels: false, useMaxWidth: false }, class: { htmlLabels: false },
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif',
};

/** Diagram types whose labels are misplaced without HTML. */
const HTML_LABELS = /^\s*(?:mindmap|kanban|block)/m;

/** Renders a diagram as SVG with a fixed size. */
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

// The page sends one diagram at a time, as the library cannot render in parallel.
addEventListener('message', ({ source, data: { id, text, theme } }) => {
  if (source !== parent) return;
  draw(id, text, theme).then(
    svg => parent.postMessage({ id, svg }, location.origin),
    error => parent.postMessage({ id, error: String(error?.message ?? error) }, location.origin));
});

parent.postMessage({ ready: true }, location.origin);
