import { splitOutside } from '../../lib/split-outside.js';

/** One value of an Identity header (RFC 8224 §4). */
export interface IdentityHeaderValue {
  /** The PASSporT: `header.payload.signature`, or `..signature` (the compact form). */
  readonly token: string;
  /** The certificate's URL. */
  readonly info: string;
  readonly alg: string;
  readonly ppt: string | null;
}

// Several PASSporTs in one request are usual (shaken, div, rph); hundreds are an attack.
const MAX_VALUES = 8;
const MAX_VALUE = 8_192;
const TOKEN = /^(?:[\w-]+\.[\w-]+|\.)\.[\w-]+$/;

/** The values of all Identity headers of a request, given as one text with commas between; `null` for a malformed one. */
export function identityHeaderValues(text: string): (IdentityHeaderValue | null)[] {
  if (text.length > MAX_VALUES * MAX_VALUE) return [null];
  return splitOutside(text, ',')
    .slice(0, MAX_VALUES)
    .map((value) => identityHeaderValue(value.trim()));
}

function identityHeaderValue(text: string): IdentityHeaderValue | null {
  const [token = '', ...params] = splitOutside(text, ';').map((part) => part.trim());
  if (text.length > MAX_VALUE || !TOKEN.test(token)) return null;
  const given = new Map<string, string>();
  for (const param of params) {
    const [, name = '', value = ''] = /^([\w-]+)\s*=\s*(.*)$/s.exec(param) ?? [];
    if (given.has(name.toLowerCase())) return null;
    given.set(name.toLowerCase(), value);
  }
  const info = /^<(.*)>$/s.exec(given.get('info') ?? '')?.[1];
  if (info === undefined) return null;
  const ppt = given.get('ppt');
  return { token, info, alg: unquoted(given.get('alg') ?? 'ES256'), ppt: ppt === undefined ? null : unquoted(ppt) };
}

function unquoted(value: string): string {
  return value.replace(/^"(.*)"$/s, '$1');
}
