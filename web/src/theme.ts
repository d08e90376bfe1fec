import { effect, signal } from '@preact/signals';

const STORED = 'trunkline.theme';
export type Theme = 'light' | 'dark';

const preferred = matchMedia('(prefers-color-scheme: dark)');
const chosen = localStorage.getItem(STORED);

/** What is shown; the system's choice until somebody chooses. */
export const theme = signal<Theme>(chosen === 'light' || chosen === 'dark' ? chosen : preferred.matches ? 'dark' : 'light');

preferred.addEventListener('change', ({ matches }) => {
  if (localStorage.getItem(STORED) === null) theme.value = matches ? 'dark' : 'light';
});
effect(() => {
  document.documentElement.dataset['theme'] = theme.value;
});

export function switchTheme(): void {
  theme.value = theme.value === 'dark' ? 'light' : 'dark';
  localStorage.setItem(STORED, theme.value);
}
