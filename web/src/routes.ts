// Which page a path is.

export type Page =
  | { readonly name: 'calls' }
  | { readonly name: 'call'; readonly id: string }
  | { readonly name: 'live' }
  | { readonly name: 'numbers' }
  | { readonly name: 'agents' }
  | { readonly name: 'tools' }
  | { readonly name: 'batches' }
  | { readonly name: 'batch'; readonly id: string }
  | { readonly name: 'unknown' };

export const BASE = '/console';

const LISTS = ['calls', 'live', 'numbers', 'agents', 'tools', 'batches'] as const;

export function pageOf(pathname: string): Page {
  const [first = '', id = '', more] = pathname.slice(BASE.length).split('/').filter(Boolean).map(decoded);
  if (first === '') return { name: 'calls' };
  if (more !== undefined) return { name: 'unknown' };
  if (first === 'calls' && id !== '') return { name: 'call', id };
  if (first === 'batches' && id !== '') return { name: 'batch', id };
  const list = LISTS.find((name) => name === first);
  return list === undefined || id !== '' ? { name: 'unknown' } : { name: list };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function callPath(callId: string): string {
  return `${BASE}/calls/${encodeURIComponent(callId)}`;
}

export function batchPath(batchId: string): string {
  return `${BASE}/batches/${encodeURIComponent(batchId)}`;
}
