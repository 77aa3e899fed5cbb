// Light and dark: as the system has it, or as was chosen.

import { kept } from './dom.js';
import { t } from './words.js';

export const THEMES = [['system', t`Like the system`], ['light', t`Light`], ['dark', t`Dark`]];

export const theme = () => kept.get('theme') ?? 'system';

export function setTheme(name) {
  kept.set('theme', name === 'system' ? null : name);
  show();
}

function show() {
  const chosen = theme();
  if (chosen === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
}

show();
addEventListener('storage', event => { if (event.key === 'pudu.theme') show(); });
