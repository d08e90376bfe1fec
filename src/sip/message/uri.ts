import { trimLws } from './message.js';

/** A SIP or SIPS URI (RFC 3261 §19.1). Parts as received; the host in lower case. */
export interface SipUri {
  readonly scheme: 'sip' | 'sips';
  readonly user: string | null;
  readonly password: string | null;
  /** Without the brackets of an IPv6 reference. */
  readonly host: string;
  readonly port: number | null;
  /** Names in lower case; '' for a parameter without a value. */
  readonly params: ReadonlyMap<string, string>;
  /** The part after `?`, or ''. */
  readonly headers: string;
}

const HOSTNAME = /^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*\.?$/i;
/** White space, control characters, and what would end a URI in brackets. */
const NOT_IN_URI = /[^!-~\x80-\xff]|[<>"]/;
const IPV6 = /^[0-9a-f:.]{2,45}$/i;

/** The scheme of an absolute URI in lower case, or ''. */
export function uriScheme(text: string): string {
  const match = /^([a-z][a-z0-9+.-]*):/i.exec(text);
  return match?.[1]?.toLowerCase() ?? '';
}

export function parseSipUri(text: string): SipUri | undefined {
  const match = /^(sips?):([\s\S]*)$/i.exec(text);
  if (match === null || text.length > 4096 || NOT_IN_URI.test(text)) return undefined;
  const scheme = match[1]?.toLowerCase() === 'sips' ? 'sips' : 'sip';
  const rest = match[2] ?? '';
  // The user part may contain `;` and `?` (RFC 3261 §25.1, user-unreserved): the last `@` before the host ends it.
  const at = rest.lastIndexOf('@', rest.indexOf('?', rest.indexOf('@')) < 0 ? undefined : rest.indexOf('?', rest.indexOf('@')));
  const userInfo = at < 0 ? null : rest.slice(0, at);
  if (userInfo === '') return undefined;
  const hostAndMore = rest.slice(at + 1);
  const question = hostAndMore.indexOf('?');
  const beforeHeaders = question < 0 ? hostAndMore : hostAndMore.slice(0, question);
  const semicolon = beforeHeaders.indexOf(';');
  const hostPort = parseHostPort(semicolon < 0 ? beforeHeaders : beforeHeaders.slice(0, semicolon));
  if (hostPort === undefined) return undefined;
  const colon = userInfo === null ? -1 : userInfo.indexOf(':');
  return {
    scheme,
    user: userInfo === null ? null : colon < 0 ? userInfo : userInfo.slice(0, colon),
    password: userInfo === null || colon < 0 ? null : userInfo.slice(colon + 1),
    host: hostPort.host,
    port: hostPort.port,
    params: parseParams(semicolon < 0 ? '' : beforeHeaders.slice(semicolon)),
    headers: question < 0 ? '' : hostAndMore.slice(question + 1),
  };
}

export interface HostPort {
  readonly host: string;
  readonly port: number | null;
}

/** `host`, `host:port`, `[v6]`, `[v6]:port`. */
export function parseHostPort(text: string): HostPort | undefined {
  const match = /^(?:\[([^\]]+)\]|([^:[\] \t]+))(?:[ \t]*:[ \t]*(\d{1,5}))?$/.exec(text);
  if (match === null) return undefined;
  const host = match[1] ?? match[2] ?? '';
  if (match[1] === undefined ? !HOSTNAME.test(host) : !(IPV6.test(host) && host.includes(':'))) return undefined;
  const port = match[3] === undefined ? null : Number(match[3]);
  if (port !== null && (port < 1 || port > 65_535)) return undefined;
  return { host: host.toLowerCase(), port };
}

/** Parses `;name=value;name`, white space around separators allowed. Quoted values keep their quotes. */
export function parseParams(text: string): Map<string, string> {
  const params = new Map<string, string>();
  if (text === '') return params;
  for (const part of text.match(/;(?:"(?:[^"\\]|\\.)*"|[^;"])*/g) ?? []) {
    const equals = part.indexOf('=');
    const name = trimLws(equals < 0 ? part.slice(1) : part.slice(1, equals)).toLowerCase();
    if (name !== '' && !params.has(name)) params.set(name, equals < 0 ? '' : trimLws(part.slice(equals + 1)));
  }
  return params;
}

/** A From, To, Contact, Route or Record-Route value (RFC 3261 §20.10). */
export interface NameAddr {
  /** As written, quotes included; '' if absent. */
  readonly displayName: string;
  readonly uri: string;
  /** Header parameters, names in lower case. */
  readonly params: ReadonlyMap<string, string>;
}

/** Parses one value (no list). Without angle brackets every parameter belongs to the header (§20.10). */
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

/** Position of `<` outside quoted strings; -1: none; `undefined`: unclosed quotes. */
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
  // Fast path: most values end in `>;tag=…`.
  const quick = /^[^"]*>;tag=([^; \t]+)$/.exec(value);
  if (quick !== null) return quick[1];
  const tag = parseNameAddr(value)?.params.get('tag');
  return tag === '' ? undefined : tag;
}

export function hasTag(value: string): boolean {
  return !value.endsWith('>') && tagOf(value) !== undefined;
}
