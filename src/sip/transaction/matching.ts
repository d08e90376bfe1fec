import type { CoreHeaders } from '../message/core-headers.js';
import { MAGIC_COOKIE } from '../message/via.js';

/**
 * The key of the server transaction that a request belongs to (RFC 3261 §17.2.3): branch, sent-by and method, where ACK and
 * CANCEL find the INVITE when `method` says so. Without the magic cookie, the RFC 2543 rules.
 */
export function serverTransactionKey(core: CoreHeaders, method: string, requestUri: string): string {
  const { branch } = core.topVia;
  const sentBy = `${core.topVia.host}:${String(core.topVia.port ?? '')}`;
  if (branch.startsWith(MAGIC_COOKIE) && branch.length > MAGIC_COOKIE.length) return `${branch}|${sentBy}|${method}`;
  return `2543|${requestUri}|${core.callId}|${String(core.cseq.number)}|${core.fromTag ?? ''}|${sentBy}|${branch}|${method}`;
}

/** The key of the client transaction that a response belongs to (RFC 3261 §17.1.3). */
export function clientTransactionKey(core: CoreHeaders): string {
  return `${core.topVia.branch}|${core.cseq.method}`;
}

/** Requests with one key and different branches are one request that came by two ways (RFC 3261 §8.2.2.2). */
export function mergeKey(core: CoreHeaders): string {
  return `${core.callId}|${core.fromTag ?? ''}|${String(core.cseq.number)}|${core.cseq.method}`;
}
