import { PUBLIC_ONLY_HEADER, TRUNK_TLS_HEADER, writeTrunkTls } from '../../lib/own-headers.js';
import { ownTlsOf, type OutboundTrunk } from '../model/records.js';
import type { SrfHeaders } from '../ports/signalling.js';

/**
 * The settings of the connection to a trunk, for Trunkline's SIP server: each request has them, as it may need a new connection (ADR 9).
 * @param isPublicOnly it may be at a public address alone
 */
export function trunkHeaders(trunk: OutboundTrunk | null | undefined, isPublicOnly: boolean): SrfHeaders {
  const tls = trunk == null ? null : ownTlsOf(trunk);
  return {
    ...(tls === null ? {} : { [TRUNK_TLS_HEADER]: writeTrunkTls(tls) }),
    ...(isPublicOnly ? { [PUBLIC_ONLY_HEADER]: '1' } : {}),
  };
}
