import type { JSX } from 'preact';
import { switchTheme, theme } from '../theme.js';

export function ThemeSwitch(): JSX.Element {
  const isDark = theme.value === 'dark';
  return (
    <button
      type="button"
      class="quiet icon"
      role="switch"
      aria-checked={isDark}
      aria-label="Dark colours"
      title="Dark colours"
      onClick={switchTheme}
    >
      <svg viewBox="0 0 20 20" width="20" height="20" aria-hidden="true">
        {isDark ? (
          <path d="M15.5 12.6A6.5 6.5 0 0 1 7.4 4.5a6.5 6.5 0 1 0 8.1 8.1Z" fill="currentColor" />
        ) : (
          <g stroke="currentColor" stroke-width="1.6" stroke-linecap="round">
            <circle cx="10" cy="10" r="3.4" fill="currentColor" />
            <path d="M10 2.2v1.6M10 16.2v1.6M2.2 10h1.6M16.2 10h1.6M4.5 4.5l1.1 1.1M14.4 14.4l1.1 1.1M15.5 4.5l-1.1 1.1M5.6 14.4l-1.1 1.1" />
          </g>
        )}
      </svg>
    </button>
  );
}

export function Mark(): JSX.Element {
  return (
    <svg class="mark" viewBox="0 0 32 32" width="26" height="26" aria-hidden="true">
      <rect width="32" height="32" rx="7" />
      <path d="M6 11h20M6 21h20M11 6v20M21 16v10M21 6v5" />
    </svg>
  );
}
