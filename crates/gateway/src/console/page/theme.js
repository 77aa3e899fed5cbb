// Theme: light, dark, or the system's setting.

import { storage } from './dom.js';
import { t } from './words.js';

export const THEMES = [['system', t`System`], ['light', t`Light`], ['dark', t`Dark`]];

export const theme = () => storage.get('theme') ?? 'system';

export function setTheme(name) {
  storage.set('theme', name === 'system' ? null : name);
  show();
}

function show() {
  const chosen = theme();
  if (chosen === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
}

show();
addEventListener('storage', event => { if (event.key === 'pudu.theme') show(); });
