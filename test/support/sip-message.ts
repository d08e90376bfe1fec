import type { WireMessage, WirePeer } from './wire-peer.js';

// What a hand-made peer sends: nothing of the product's own SIP takes part.

export interface Parts {
  /** Further header fields. */
  readonly extra?: readonly string[];
  readonly body?: string;
}

interface Request {
  readonly method: string;
  readonly uri: string;
  readonly branch: string;
  /** With its tag. */
  readonly from: string;
  readonly to: string;
  readonly callId: string;
  readonly cseq: number;
  /** In the order in which the request visits them. */
  readonly routes?: readonly string[];
}

export function contactOf(peer: WirePeer, port = peer.localPort): string {
  return `<sip:peer@127.0.0.1:${String(port)};transport=${peer.transport.toLowerCase()}>`;
}

/** The fields that every request has (RFC 3261 §8.1.1), and its route set. */
export function requestLines(peer: WirePeer, { method, uri, branch, from, to, callId, cseq, routes = [] }: Request): string[] {
  return [
    `${method} ${uri} SIP/2.0`,
    ...routes.map((route) => `Route: ${route}`),
    `Via: SIP/2.0/${peer.transport} 127.0.0.1:${String(peer.localPort)};branch=${branch};rport`,
    'Max-Forwards: 70',
    `From: ${from}`,
    `To: ${to}`,
    `Call-ID: ${callId}`,
    `CSeq: ${String(cseq)} ${method}`,
  ];
}

/** Answers a request; `tag` is put on the To that has none. */
export function respond(peer: WirePeer, request: WireMessage, status: string, parts: Parts & { readonly tag?: string } = {}): void {
  const to = request.header('To') ?? '';
  const tag = parts.tag === undefined || to.includes(';tag=') ? '' : `;tag=${parts.tag}`;
  const vias = request.text.split('\r\n').filter((line) => /^(via|record-route):/i.test(line));
  const copied = ['From', 'Call-ID', 'CSeq'].map((name) => `${name}: ${request.header(name) ?? ''}`);
  const contact = /^[12]/.test(status) ? [`Contact: ${contactOf(peer)}`] : [];
  peer.send([`SIP/2.0 ${status}`, ...vias, ...copied, `To: ${to}${tag}`, ...contact, ...(parts.extra ?? []), ...typeOf(parts)], parts.body);
}

/** The Content-Type of a body that is a session description, unless it is told. */
export function typeOf({ body = '', extra = [] }: Parts): string[] {
  return body.startsWith('v=0') && !extra.some((line) => /^content-type/i.test(line)) ? ['Content-Type: application/sdp'] : [];
}
