import { signal } from '@preact/signals';
import { BASE } from './routes.js';

// The address bar as a signal, and links that stay within the page.

export const place = signal({ pathname: location.pathname, search: location.search });

export function navigate(to: string): void {
  history.pushState(null, '', to);
  arrive();
  scrollTo(0, 0);
}

/** Another query on the same page: nothing to go back to. */
export function replaceSearch(search: string): void {
  history.replaceState(null, '', `${location.pathname}${search === '' ? '' : `?${search}`}`);
  arrive();
}

function arrive(): void {
  place.value = { pathname: location.pathname, search: location.search };
}

export function followLinks(): void {
  addEventListener('popstate', arrive);
  document.addEventListener('click', (event) => {
    const link = event.target instanceof Element ? event.target.closest('a') : null;
    const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (link === null || !isPlain || link.target !== '' || link.origin !== location.origin) return;
    if (!link.pathname.startsWith(BASE) || link.hash !== '') return;
    event.preventDefault();
    navigate(link.pathname + link.search);
  });
}
