import type { CallSnapshot } from '../../src/gateway/model/call-snapshot.js';
import type { BeginningCall, CallAnswer } from '../../src/gateway/model/live-calls.js';

/** A call that begins, for a look-up. */
export function begun(callId: string, fields: Partial<BeginningCall> = {}): BeginningCall {
  return {
    call_id: callId,
    sip_call_id: 'a@b',
    direction: 'inbound',
    from: '+15550001111',
    source: { ip: '203.0.113.7', port: 5061, transport: 'tls', tls_version: null, tls_cipher: null },
    started_at: '2026-01-01T00:00:00.000Z',
    ...fields,
  };
}

export const ANSWERED: CallAnswer = {
  answered_at: '2026-01-01T00:00:01.000Z',
  agent_id: null,
  agent_error: null,
  signalling_error: null,
  codec: 'PCMU',
  crypto_suite: null,
  resumed: 0,
};

/** What a gateway keeps of an answered call. */
export function snapshotOf(callId: string, orgId: string, number: string, state: unknown = {}): CallSnapshot {
  return { call_id: callId, org_id: orgId, phone_number: number, call: begun(callId), answer: ANSWERED, state };
}
