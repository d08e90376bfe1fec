import { mayDial, mayDialFrom } from '../admission/dial-guard.js';
import type { PlaceCall } from '../ports/place-call.js';
import type { Config } from '../../config/schema.js';
import type { Inbound } from '../drachtio/inbound.js';
import { trunkUri } from '../drachtio/outbound.js';
import { ownTlsOf, type OutboundTrunk } from '../model/records.js';
import { isAllowedHost } from '../net/guarded-lookup.js';
import { err, ok } from '../../lib/result.js';

/** What the operator says of hosts of trunks. */
export interface TrunkHosts {
  /** Whether calls may go there. */
  readonly isAllowed: (host: string) => boolean;
  /** Whether they may have P-Asserted-Identity (RFC 3325). */
  readonly isTrusted: (host: string) => boolean;
}

export function trunkHosts({ allow_private: allowPrivate, trusted_hosts: trusted }: Config['trunks']): TrunkHosts {
  const names = new Set(trusted.map((name) => name.toLowerCase()));
  return { isAllowed: (host) => isAllowedHost(host, allowPrivate), isTrusted: (host) => names.has(host.toLowerCase()) };
}

/** Places calls through this gateway. What the API refuses at once is judged again when the INVITE leaves. */
export function callPlacer(
  inbound: Pick<Inbound, 'place' | 'notReady' | 'isConnected' | 'isOwnServer'>,
  { isAllowed, isTrusted }: TrunkHosts,
): PlaceCall {
  const trunkRefusal = (trunk: OutboundTrunk): string | null => {
    const { host } = trunkUri(trunk.sip_endpoint, '');
    if (!isAllowed(host)) return `the trunk ${host} is at a private, loopback or reserved address`;
    if (trunk.caller_id_header === 'P-Asserted-Identity' && !isTrusted(host))
      return `the operator has not marked the trunk ${host} as trusted (trunks.trusted_hosts): no P-Asserted-Identity`;
    return ownTlsOf(trunk) === null || inbound.isOwnServer
      ? null
      : "ca, tls_names and client_certificate of the trunk need Trunkline's SIP server";
  };
  const fromRefusal: PlaceCall['fromRefusal'] = (from) => {
    const allowed = mayDialFrom(from);
    const { outbound } = from.number;
    const refusal = !allowed.ok ? allowed.error : outbound === null ? null : trunkRefusal(outbound);
    return refusal === null ? null : `Not dialled: ${refusal}`;
  };
  return {
    fromRefusal,
    refusal: ({ org, number, to }) => {
      if (!inbound.isConnected || inbound.notReady !== null) return { code: 'NOT_READY', message: 'The gateway places no calls now' };
      const allowed = mayDial({ org, number }, to);
      const message = allowed.ok ? fromRefusal({ org, number }) : `Not dialled: ${allowed.error}`;
      return message === null ? null : { code: 'DIAL_NOT_ALLOWED', message };
    },
    place: (request) => {
      if (trunkRefusal(request.trunk) !== null) return err('DIAL_NOT_ALLOWED');
      const reason = inbound.place(request);
      return reason === null ? ok(request.callId) : err(reason);
    },
  };
}
