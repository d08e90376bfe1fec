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

function isTransport(text: string): text is TransportName {
  return text === 'TLS' || text === 'TCP' || text === 'UDP';
}
