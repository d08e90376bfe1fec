import { expect } from 'vitest';
import { readCoreHeaders } from '../../src/sip/message/core-headers.js';
import { getHeader, getHeaders, hasHeader, header, type SipMessage, serialize } from '../../src/sip/message/message.js';
import { parseMessage } from '../../src/sip/message/parse.js';
import { parseFast } from '../../src/sip/message/fast-path-parser.js';
import { received, type Peer, type Reception } from '../../src/sip/message/reception.js';

// Two readers of one language: the quick one must never say anything else than the one that knows all of it.

export const LIMITS = { maxHeaders: 30, maxHeaderBytes: 300, maxBodyBytes: 300 };

export const RECEPTION: Reception = {
  limits: LIMITS,
  own: {
    ids: new Set(['x-own']),
    of: ({ tlsIdentity = '' }, method, toTag) =>
      method === 'INVITE' && toTag === undefined && tlsIdentity !== '' ? [header('X-Own', tlsIdentity)] : [],
  },
};
/** A peer behind a NAT with a certificate, two at the sent-by address, one of them with a certificate, and one over IPv6. */
export const PEERS: readonly Peer[] = [
  { remote: { address: '198.51.100.7', port: 40_000 }, tlsIdentity: 'carrier.example' },
  { remote: { address: '192.0.2.1', port: 5061 } },
  { remote: { address: '192.0.2.1', port: 5061 }, tlsIdentity: 'near.example' },
  { remote: { address: '2001:db8::1', port: 9 }, tlsIdentity: 'other.example' },
];
export const [PEER] = PEERS as [Peer];

export const PLAIN = [
  'INVITE sip:+15550100100@gw.example:5061;transport=tls SIP/2.0',
  'Via: SIP/2.0/TLS 192.0.2.1:5061;branch=z9hG4bKabc;rport',
  'Max-Forwards: 70',
  'Record-Route: <sip:p1.example;lr>',
  'From: "Caller" <sip:a@carrier.example>;tag=from1',
  'To: <sip:+15550100100@gw.example>',
  'Call-ID: abc.1@carrier.example',
  'CSeq: 1 INVITE',
  'Contact: <sip:a@192.0.2.1:5061;transport=tls>',
  'Supported: timer, 100rel',
  'User-Agent: SBC 7.2',
  'X-Other: value',
  'Content-Type: application/sdp',
  'Content-Length: 5',
];
const BODY = 'v=0\r\n';
export const text = (lines: readonly string[]): string => `${lines.join('\r\n')}\r\n\r\n${BODY}`;
export const RESPONSE = ['SIP/2.0 200 OK', ...PLAIN.slice(1)];

const TRACKED = [
  ...['via', 'from', 'to', 'call-id', 'cseq', 'contact', 'max-forwards', 'content-length', 'content-type', 'user-agent', 'route'],
  ...['record-route', 'require', 'supported', 'session-expires', 'subscription-state', 'rack', 'rseq', 'expires', 'timestamp'],
  ...['x-other', 'allow'],
];

/** Whether the quick reader takes it; then it says what the whole one says. */
export function isQuick(whole: string, peer: Peer): boolean {
  const plain = parseFast(whole, peer, RECEPTION);
  if (plain === undefined) return false;
  const parsed = parseMessage(whole, LIMITS);
  if (!parsed.ok) return expect.unreachable(`taken for plain: ${JSON.stringify(whole)}`);
  const { message } = plain;
  const slow = asKept(parsed.value, peer);
  expect({ ...plain.core, topVia: via(plain.core.topVia) }).toEqual(core(slow));
  for (const id of TRACKED) {
    expect([id, getHeader(message, id), hasHeader(message, id)]).toEqual([id, getHeader(slow, id), hasHeader(slow, id)]);
    expect(getHeaders(message, id)).toEqual(getHeaders(slow, id));
  }
  expect([message.kind, values(message), message.body]).toEqual([slow.kind, values(slow), slow.body]);
  if (message.kind === 'request' && slow.kind === 'request') expect([message.method, message.uri]).toEqual([slow.method, slow.uri]);
  const again = parseMessage(serialize(message), { ...LIMITS, maxHeaders: 31, maxHeaderBytes: 400 });
  expect(again.ok && values(again.value)).toEqual(values(slow));
  if (message.kind === 'response') expect(serialize(message)).toBe(whole);
  return true;
}

/** The message as its receiver keeps it, by the long way. */
function asKept(message: SipMessage, peer: Peer): SipMessage {
  const read = readCoreHeaders(message);
  if (!read.ok) throw new Error(read.error);
  return message.kind === 'request' ? received(message, peer, read.value, RECEPTION.own) : message;
}

const values = ({ headers }: SipMessage): string[] => headers.map(({ id, value }) => `${id}: ${value}`);

function core(message: Parameters<typeof readCoreHeaders>[0]): unknown {
  const read = readCoreHeaders(message);
  if (!read.ok) throw new Error(read.error);
  return { ...read.value, topVia: via(read.value.topVia) };
}

function via(value: {
  readonly text: string;
  transport: string;
  host: string;
  port: number | null;
  branch: string;
  params: ReadonlyMap<string, string>;
}): unknown {
  const { text: whole, transport, host, port, branch, params } = value;
  return { whole, transport, host, port, branch, params: [...params] };
}
