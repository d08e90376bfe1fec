import { ipFamily } from './address.js';

/** Of SIP over TLS (RFC 3261 §19.1.2). */
export const DEFAULT_SIPS_PORT = 5061;
const SCHEME = /^sips?:/i;
// RFC 3261 §25.1 `user`: unreserved, escaped, user-unreserved. A password (`user:secret@`) is not accepted.
const USER = String.raw`(?:[A-Za-z0-9_.!~*'()&=+$,;?/-]|%[0-9A-Fa-f]{2}){1,64}`;
// RFC 3261 §25.1 `uri-parameters`.
const PARAMETER_TEXT = String.raw`(?:[A-Za-z0-9_.!~*'()\[\]/:&+$-]|%[0-9A-Fa-f]{2})+`;
const PARAMETERS = `(?:;${PARAMETER_TEXT}(?:=${PARAMETER_TEXT})?)*`;
const HOST_PORT = String.raw`(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+)(?::([0-9]{1,5}))?`;
const ONLY_USER = new RegExp(`^${USER}$`);
const ONLY_PARAMETERS = new RegExp(`^${PARAMETERS}$`);
const ONLY_HOST_PORT = new RegExp(`^${HOST_PORT}$`);

/** What every endpoint has, as a pattern. Which hosts and ports there can be is not in it. */
export const SIP_ENDPOINT_PATTERN = `^(?:[Ss][Ii][Pp][Ss]?:(?:${USER}@)?${HOST_PORT}${PARAMETERS}|${HOST_PORT})$`;
export const MAX_SIP_ENDPOINT = 256;
const LABEL = /^[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/;

/**
 * What is wrong with a SIP endpoint as a sentence without its subject, or `null` when it is one. Good are `sip:` and `sips:`
 * URIs without password and headers, and a bare `host[:port]`; at most 256 characters, printable ASCII, no space.
 */
export function sipEndpointProblem(text: string): string | null {
  if (text.length === 0) return 'must not be empty';
  if (text.length > MAX_SIP_ENDPOINT) return `must be at most ${String(MAX_SIP_ENDPOINT)} characters`;
  if (!/^[\x21-\x7e]+$/.test(text)) return 'must be printable ASCII without spaces or line breaks';
  const scheme = SCHEME.exec(text);
  const problem = scheme === null ? hostPortProblem(text) : uriProblem(text.slice(scheme[0].length));
  return problem === null ? null : `must be a sip: or sips: URI or host[:port]: ${problem}`;
}

/** The parts of a SIP endpoint that has no problem. @param port left out: the endpoint names none */
export function sipEndpointParts(endpoint: string): { readonly isSips: boolean; readonly host: string; readonly port?: number } {
  const [, scheme = '', host = '', port] = /^(sips?:)?(?:[^@]*@)?(\[[^\]]+\]|[^:;?]+)(?::(\d+))?/i.exec(endpoint) ?? [];
  return { isSips: scheme.toLowerCase() === 'sips:', host, ...(port === undefined ? {} : { port: Number(port) }) };
}

function uriProblem(rest: string): string | null {
  const at = rest.lastIndexOf('@');
  if (at >= 0 && !ONLY_USER.test(rest.slice(0, at))) return 'the part before @ is not a user name (a password is not accepted)';
  const target = rest.slice(at + 1);
  if (target.includes('?')) return 'headers after ? are not accepted';
  const semicolon = target.indexOf(';');
  const parameters = semicolon < 0 ? '' : target.slice(semicolon);
  if (!ONLY_PARAMETERS.test(parameters)) return 'its parameters are malformed';
  return hostPortProblem(semicolon < 0 ? target : target.slice(0, semicolon));
}

function hostPortProblem(text: string): string | null {
  const parts = ONLY_HOST_PORT.exec(text);
  if (parts?.[1] === undefined) return 'the host is not a name or an address';
  if (parts[2] !== undefined && !isPort(parts[2])) return 'the port must be 1 to 65535';
  return isHost(parts[1]) ? null : 'the host is not a name or an address';
}

function isPort(text: string): boolean {
  const port = Number(text);
  return port >= 1 && port <= 65_535;
}

function isHost(host: string): boolean {
  if (host.startsWith('[')) return ipFamily(host.slice(1, -1)) === 6;
  const labels = host.split('.');
  // A name whose last label is a number is an address or nothing (RFC 1123 §2.1).
  if (/^\d+$/.test(labels.at(-1) ?? '')) return ipFamily(host) === 4;
  return host.length <= 253 && labels.every((label) => LABEL.test(label));
}
