import { newTag } from '../../lib/ids.js';
import { formatHostPort } from '../../lib/address.js';
import { cseqNumber } from '../message/core-headers.js';
import { getHeader, getHeaders, hasHeader, header, type Header, type RequestParts, type SipRequest } from '../message/message.js';
import { parseNameAddr } from '../message/uri.js';
import type { Endpoint, TransportName } from '../transport/flow.js';

/** Address in our Via and Contact for a transport. */
export interface OwnTransport extends Endpoint {
  readonly transport: TransportName;
}

/** Headers that the user agent sets, overriding the request's parts. */
export interface FixedHeaders {
  readonly uri: string;
  readonly from: string;
  readonly to: string;
  readonly callId: string;
  readonly cseq: number;
  /** `null`: add none. */
  readonly contact: string | null;
  readonly route: readonly Header[];
}

const FIXED = new Set(['via', 'route', 'from', 'to', 'call-id', 'cseq']);

/** Our Via, with a new branch. */
export function viaOf(own: OwnTransport): Header {
  const rport = own.transport === 'TLS' ? '' : ';rport';
  return header('Via', `SIP/2.0/${own.transport} ${formatHostPort(own.address, own.port)}${rport};branch=${newBranch()}`);
}

/** A complete request (RFC 3261 §8.1.1) with a new branch. */
export function composeRequest(own: OwnTransport, parts: RequestParts, fixed: FixedHeaders): SipRequest {
  const headers: Header[] = [
    viaOf(own),
    ...fixed.route,
    ...(hasHeader(parts, 'max-forwards') ? [] : [header('Max-Forwards', '70')]),
    header('From', fixed.from),
    header('To', fixed.to),
    header('Call-ID', fixed.callId),
    header('CSeq', `${String(fixed.cseq)} ${parts.method}`),
    ...(fixed.contact === null || hasHeader(parts, 'contact') ? [] : [header('Contact', fixed.contact)]),
    ...parts.headers.filter(({ id }) => !FIXED.has(id)),
  ];
  return { kind: 'request', method: parts.method, uri: fixed.uri, headers, body: parts.body };
}

/** RFC 3261 §9.1: the INVITE's Request-URI, top Via, Route, To, From, Call-ID and CSeq number. */
export function cancelOf(invite: SipRequest, extra: readonly Header[]): SipRequest {
  const headers = [
    header('Via', getHeader(invite, 'via') ?? ''),
    header('Max-Forwards', '70'),
    ...['from', 'to', 'call-id'].map((id) => header(id, getHeader(invite, id) ?? '')),
    header('CSeq', `${String(cseqNumber(invite))} CANCEL`),
    ...getHeaders(invite, 'route').map((value) => header('Route', value)),
    ...extra,
  ];
  return { kind: 'request', method: 'CANCEL', uri: invite.uri, headers, body: '' };
}

/** Our default Contact, as drachtio-server writes it. */
export function contactOf(own: OwnTransport, isSecure: boolean): string {
  const hostPort = formatHostPort(own.address, own.port);
  if (own.transport === 'UDP') return `<sip:${hostPort}>`;
  return `<${isSecure && own.transport === 'TLS' ? 'sips' : 'sip'}:${hostPort};transport=${own.transport.toLowerCase()}>`;
}

export function branchOf(request: SipRequest): string {
  return /;branch=([^;,\s]+)/.exec(getHeader(request, 'via') ?? '')?.[1] ?? '';
}

/** A From or To without parameters. */
export function withoutTag(value: string): string {
  const parsed = parseNameAddr(value);
  return parsed === undefined ? value : `${parsed.displayName === '' ? '' : `${parsed.displayName} `}<${parsed.uri}>`;
}

/** A globally unique branch (RFC 3261 §8.1.1.7). */
export function newBranch(): string {
  return `z9hG4bK${newTag()}`;
}
