import { type CoreHeaders, parseVia, stampVia, type Via } from './core-headers.js';
import { changed, header, splitList, type Header, type SipRequest } from './message.js';
import type { MessageLimits } from './parse.js';

/** Where a message came from: a flow of the transport layer. */
export interface Peer {
  readonly remote: { readonly address: string; readonly port: number };
  /** The name in the peer's verified certificate; '' or unset: no verified certificate. */
  readonly tlsIdentity?: string;
  /** `null` or none: no TLS. */
  readonly tls?: { readonly version: string; readonly cipher: string } | null;
}

/** Headers that the stack adds to requests of peers, for their user. What a peer sends under these names is removed. */
export interface OwnHeaders {
  /** Long form, in lower case. */
  readonly ids: ReadonlySet<string>;
  /** What is true of this request; `toTag` is unset for one outside of any dialog. */
  of(peer: Peer, method: string, toTag: string | undefined): readonly Header[];
}

/** What a receiver does with each message. */
export interface Reception {
  readonly limits: MessageLimits;
  readonly own: OwnHeaders;
}

/** A request as its receiver keeps it: `received` and `rport` in its top Via, and the receiver's own headers. */
export function received(request: SipRequest, peer: Peer, core: CoreHeaders, own: OwnHeaders): SipRequest {
  const stamped = stampTopVia(request, peer, core.topVia);
  const headers = [...stamped.headers.filter(({ id }) => !own.ids.has(id)), ...own.of(peer, request.method, core.toTag)];
  return changed(stamped, { headers });
}

/** `known`: the top Via, where it was read already. One that cannot be read stays as it is. */
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
