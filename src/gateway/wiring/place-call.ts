import { mayDial } from '../admission/dial-guard.js';
import type { PlaceCall } from '../api/schemas/place-call.js';
import type { Inbound } from '../drachtio/inbound.js';
import { err, ok } from '../../lib/result.js';

/** Places calls through this gateway. What the API refuses at once is judged again when the INVITE leaves. */
export function callPlacer(
  inbound: Pick<Inbound, 'place' | 'notReady' | 'isConnected'>,
  isTrunkHost: (host: string) => boolean,
): PlaceCall {
  return {
    refusal: ({ org, number, to }) => {
      if (!inbound.isConnected || inbound.notReady !== null) return { code: 'NOT_READY', message: 'The gateway places no calls now' };
      const allowed = mayDial({ org, number }, to);
      if (!allowed.ok) return { code: 'DIAL_NOT_ALLOWED', message: `Not dialled: ${allowed.error}` };
      const host = /^(?:sips?:)?(?:[^@]*@)?(\[[^\]]+\]|[^:;?]+)/i.exec(number.outbound?.sip_endpoint ?? '')?.[1] ?? '';
      if (isTrunkHost(host)) return null;
      return { code: 'DIAL_NOT_ALLOWED', message: `Not dialled: the trunk ${host} is at a private, loopback or reserved address` };
    },
    place: (request) => {
      const reason = inbound.place(request);
      return reason === null ? ok(request.callId) : err(reason);
    },
  };
}
