import { mayDial, mayDialFrom } from '../admission/dial-guard.js';
import type { PlaceCall } from '../ports/place-call.js';
import type { Inbound } from '../drachtio/inbound.js';
import { err, ok } from '../../lib/result.js';

/** Places calls through this gateway. What the API refuses at once is judged again when the INVITE leaves. */
export function callPlacer(
  inbound: Pick<Inbound, 'place' | 'notReady' | 'isConnected'>,
  isTrunkHost: (host: string) => boolean,
): PlaceCall {
  const trunkRefusal = (endpoint: string): string | null => {
    const host = /^(?:sips?:)?(?:[^@]*@)?(\[[^\]]+\]|[^:;?]+)/i.exec(endpoint)?.[1] ?? '';
    return isTrunkHost(host) ? null : `Not dialled: the trunk ${host} is at a private, loopback or reserved address`;
  };
  const fromRefusal: PlaceCall['fromRefusal'] = (from) => {
    const allowed = mayDialFrom(from);
    return allowed.ok ? trunkRefusal(from.number.outbound?.sip_endpoint ?? '') : `Not dialled: ${allowed.error}`;
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
      const reason = inbound.place(request);
      return reason === null ? ok(request.callId) : err(reason);
    },
  };
}
