import { parseNameAddr } from './message/name-addr.js';
import { parseSipUri } from './message/uri.js';
import type { Target, TransportName } from './transport/flow.js';

/** The transport, host and port that a URI names (RFC 3263 §4.1, §4.2, without NAPTR and SRV); `undefined`: none that we speak. `usual`: where it names no transport. */
export function resolveTarget(uriOrNameAddr: string, usual: TransportName = 'UDP'): Target | undefined {
  const uri = parseSipUri(parseNameAddr(uriOrNameAddr)?.uri ?? uriOrNameAddr);
  if (uri === undefined) return undefined;
  const named = uri.params.get('transport')?.toUpperCase();
  const transport = uri.scheme === 'sips' || named === 'TLS' ? 'TLS' : (named ?? usual);
  if (!isTransport(transport)) return undefined;
  const host = uri.params.get('maddr') ?? uri.host;
  return { transport, host, port: uri.port ?? (transport === 'TLS' ? 5061 : 5060) };
}

function isTransport(text: string): text is TransportName {
  return text === 'TLS' || text === 'TCP' || text === 'UDP';
}
