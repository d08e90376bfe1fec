import type { Refusal } from '../admission/admission.js';
import { mayDialFrom, mayLeave } from '../admission/dial-guard.js';
import { unsetLimits } from '../model/dialling.js';
import { REASONS } from '../model/reasons.js';
import type { OrgRecord } from '../model/records.js';
import type { PlaceCall } from '../ports/place-call.js';
import type { Config } from '../../config/schema.js';
import type { Inbound } from '../drachtio/inbound.js';
import type { TrunkHosts } from '../drachtio/outbound.js';
import { isAllowedHost } from '../net/guarded-lookup.js';
import { err, ok } from '../../lib/result.js';

export function trunkHosts({ allow_private: allowPrivate, trusted_hosts: trusted }: Config['trunks']): TrunkHosts {
  const names = new Set(trusted.map((name) => name.toLowerCase()));
  return { isAllowed: (host) => isAllowedHost(host, allowPrivate), isTrusted: (host) => names.has(host.toLowerCase()) };
}

/** A batch waits until the operator sets the limits; a single call is refused in the answer. */
function noCalls({ dialling }: OrgRecord): string | null {
  const unset = dialling === null ? [] : unsetLimits(dialling);
  return unset.length === 0 ? null : `Not dialled: the operator has allowed no calls yet: ${unset.join(', ')} is 0 (org set-dialling)`;
}

/** Names the state, such as OVERLOADED, and its figure: whether to wait or to look for a fault depends on it. */
function notReadyMessage({ reason, detail }: Refusal): string {
  return `The gateway places no calls now: ${reason}. ${REASONS[reason].explanation}${detail === null ? '' : ` (${detail})`}`;
}

/** Places calls through this gateway. What the API refuses at once is judged again when the INVITE leaves. */
export function callPlacer(inbound: Pick<Inbound, 'place' | 'kept' | 'notReady' | 'isConnected' | 'trunkRefusal'>): PlaceCall {
  const fromRefusal: PlaceCall['fromRefusal'] = (from) => {
    const allowed = mayDialFrom(from);
    const { outbound } = from.number;
    const refusal = !allowed.ok ? allowed.error : outbound === null ? null : inbound.trunkRefusal(outbound);
    return refusal === null ? null : `Not dialled: ${refusal}`;
  };
  const priceOf: PlaceCall['priceOf'] = ({ to, ...from }) => {
    const allowed = mayLeave({ kind: 'number', number: to }, { door: 'placed-call', from });
    return !allowed.ok ? allowed : ok(allowed.value.by === 'price' ? allowed.value.price : 0);
  };
  return {
    fromRefusal,
    priceOf,
    refusal: ({ org, number, to }) => {
      if (!inbound.isConnected)
        return { code: 'NOT_READY', message: 'The gateway places no calls now: it has no connection to its SIP server' };
      if (inbound.notReady !== null) return { code: 'NOT_READY', message: notReadyMessage(inbound.notReady) };
      const allowed = priceOf({ org, number, to });
      const message = allowed.ok ? (fromRefusal({ org, number }) ?? noCalls(org)) : `Not dialled: ${allowed.error}`;
      return message === null ? null : { code: 'DIAL_NOT_ALLOWED', message };
    },
    place: (request) => {
      const reason = inbound.place(request);
      return reason === null ? ok(request.callId) : err(reason);
    },
    kept: (callId) => inbound.kept(callId),
  };
}
