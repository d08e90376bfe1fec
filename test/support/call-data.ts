import { callerIdentity } from '../../src/gateway/admission/parties.js';
import { beginningCall, type Call } from '../../src/gateway/call/call.js';
import { startCall } from '../../src/gateway/call/machine.js';
import type { Route } from '../../src/gateway/model/records.js';
import { FACTS } from './call-machine.js';

/** A call that came in at time 0, from this number. */
export function callFrom(number: string, route: Route | null = null): Call {
  const origin = {
    callId: 'c',
    sipCallId: 's',
    direction: 'inbound',
    to: '+15550100001',
    caller: { ...callerIdentity({ get: () => undefined, names: [] }), number },
    source: { ip: '203.0.113.7', port: 5061, transport: 'tls', tls_version: null, tls_cipher: null },
    startedAtMs: 0,
  } as const;
  const own = { contact: '<sip:gw>', warningHost: 'gw', peerHost: 'carrier' };
  return beginningCall(origin, own, { ...startCall(FACTS), route }, null);
}
