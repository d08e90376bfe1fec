import { type CoreHeaders, parseVia, stampVia, type Via } from './core-headers.js';
import { changed, header, splitList, type Header, type SipRequest } from './message.js';
import type { MessageLimits } from './parse.js';

/** The source of a message: a flow of the transport layer. */
export interface Peer {
  readonly remote: { readonly address: string; readonly port: number };
  /** Name in the peer's verified certificate; '' or unset: none verified. */
  readonly tlsIdentity?: string;
  /** `null` or unset: no TLS. */
  readonly tls?: { readonly version: string; readonly cipher: string } | null;
}

/** Headers that the stack adds to received requests for the application. It removes those that a peer sends. */
export interface OwnHeaders {
  /** Long form, in lower case. */
  readonly ids: ReadonlySet<string>;
  /** The headers for this request; `toTag` is unset outside dialogs. */
  of(peer: Peer, method: string, toTag: string | undefined): readonly Header[];
}

/** How to receive a message. */
export interface Reception {
  readonly limits: MessageLimits;
  readonly own: OwnHeaders;
}

/** A request as received: `received` and `rport` in the top Via, and our own headers. */
export function received(request: SipRequest, peer: Peer, core: CoreHeaders, own: OwnHeaders): SipRequest {
  const stamped = stampTopVia(request, peer, core.topVia);
  const headers = [...stamped.headers.filter(({ id }) => !own.ids.has(id)), ...own.of(peer, request.method, core.toTag)];
  return changed(stamped, { headers });
}

/** `known`: the top Via, if already parsed. An unreadable one stays unchanged. */
export function stampTopVia(request: SipRequest, peer: Peer, known?: Via): SipRequest {
  const index = request.headers.findIndex((candidate) => candidate.id === 'via');
  const line = request.headers[index];
  if (line === undefined) return request;
  const [top = '', ...others] = splitList(line.value);
  const via = known ?? parseVia(top);
  const stamped = via === undefined ? top : stampVia(via, peer.remote);
  if (stamped === top) return request;
  const headers = [...request.headers];
  headers[index] = header('Via', [stamped, ...others].join(', '));
  return changed(request, { headers });
}
