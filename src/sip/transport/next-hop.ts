import { parseNameAddr } from '../message/name-addr.js';
import { parseSipUri } from '../message/uri.js';
import type { Target, TransportName } from './flow.js';

/** The transport, host and port that a URI names (RFC 3263 §4.1, without NAPTR); `undefined`: none that we speak. `usual`: where it names no transport. */
export function resolveTarget(uriOrNameAddr: string, usual: TransportName = 'UDP'): Target | undefined {
  // Without angle brackets parseNameAddr would take the URI's parameters for the header's, and transport among them.
  const uri = parseSipUri(uriOrNameAddr.includes('<') ? (parseNameAddr(uriOrNameAddr)?.uri ?? '') : uriOrNameAddr);
  if (uri === undefined) return undefined;
  const named = uri.params.get('transport')?.toUpperCase();
  const transport = uri.scheme === 'sips' || named === 'TLS' ? 'TLS' : (named ?? usual);
  if (!isTransport(transport)) return undefined;
  const host = uri.params.get('maddr') ?? uri.host;
  return { transport, host, port: uri.port };
}

/** RFC 3261 §18.1.1, where the MTU of the path is not known. */
const MAX_DATAGRAM_BYTES = 1_300;

/** Where a request goes that is too long for UDP; `undefined`: it is not, or the URI names its transport. */
export function insteadOfUdp(uriOrNameAddr: string, lengthBytes: number): Target | undefined {
  if (lengthBytes <= MAX_DATAGRAM_BYTES || resolveTarget(uriOrNameAddr)?.transport !== 'UDP') return undefined;
  const target = resolveTarget(uriOrNameAddr, 'TCP');
  return target?.transport === 'TCP' ? { ...target, isAttempt: true } : undefined;
}

function isTransport(text: string): text is TransportName {
  return text === 'TLS' || text === 'TCP' || text === 'UDP';
}
