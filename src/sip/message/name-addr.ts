import { trimLws } from './header-name.js';
import { parseParams } from './uri.js';

/** A From, To, Contact, Route or Record-Route value (RFC 3261 §20.10). */
export interface NameAddr {
  /** As written, quotes included; '' when there is none. */
  readonly displayName: string;
  readonly uri: string;
  /** Header parameters, names in lower case. */
  readonly params: ReadonlyMap<string, string>;
}

/** Reads one value (no list). In the form without angle brackets every parameter belongs to the header (§20.10). */
export function parseNameAddr(text: string): NameAddr | undefined {
  const value = trimLws(text);
  const bracket = openBracket(value);
  if (bracket === undefined) return undefined;
  if (bracket < 0) {
    const semicolon = value.indexOf(';');
    const uri = trimLws(semicolon < 0 ? value : value.slice(0, semicolon));
    if (uri === '' || /[ \t",]/.test(uri)) return undefined;
    return { displayName: '', uri, params: parseParams(semicolon < 0 ? '' : value.slice(semicolon)) };
  }
  const close = value.indexOf('>', bracket);
  if (close < 0) return undefined;
  const uri = trimLws(value.slice(bracket + 1, close));
  const rest = trimLws(value.slice(close + 1));
  if (uri === '' || (rest !== '' && !rest.startsWith(';'))) return undefined;
  return { displayName: trimLws(value.slice(0, bracket)), uri, params: parseParams(rest) };
}

/** Where `<` opens outside a quoted string; -1: nowhere; `undefined`: the quotes are not closed. */
function openBracket(value: string): number | undefined {
  let quoted = false;
  for (let index = 0; index < value.length; index += 1) {
    const char = value[index];
    if (quoted) {
      if (char === '\\') index += 1;
      else if (char === '"') quoted = false;
    } else if (char === '"') quoted = true;
    else if (char === '<') return index;
  }
  return quoted ? undefined : -1;
}

/** The tag of a From or To value, or `undefined`. */
export function tagOf(value: string): string | undefined {
  // Most values end in `>;tag=…`; the general parser is for the others.
  const quick = /^[^"]*>;tag=([^; \t]+)$/.exec(value);
  if (quick !== null) return quick[1];
  const tag = parseNameAddr(value)?.params.get('tag');
  return tag === '' ? undefined : tag;
}

/** Whether a From or To has a tag. */
export function hasTag(value: string): boolean {
  const bracket = value.lastIndexOf('>');
  // What follows the last bracket is parameters, when it holds no quotes.
  if (bracket === value.length - 1) return false;
  return bracket >= 0 && value.startsWith(';tag=', bracket + 1) ? value.length > bracket + 6 : tagOf(value) !== undefined;
}
