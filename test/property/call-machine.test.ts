import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { startCall, stepCall, type CallEffect, type CallEvent } from '../../src/gateway/call/machine.js';
import { NO_LOAD } from '../../src/gateway/policy/admission.js';
import { ROUTE } from '../support/route.js';
import { offerSdp, OTHER_KEY } from '../support/sdp.js';

const FACTS = { sourceAddress: '203.0.113.7', sdp: offerSdp(), sessionId: '7', maxDurationMs: 600_000, ringingAfterMs: 500 };

const EVENTS: readonly CallEvent[] = [
  { type: 'routed', route: ROUTE, load: NO_LOAD },
  { type: 'routed', route: null, load: NO_LOAD },
  { type: 'relay-offered', sdp: offerSdp({ profile: 'RTP/AVP', crypto: [], port: 31_000, payloads: '0 101' }) },
  { type: 'relay-offered', sdp: 'garbage' },
  { type: 'leg-opened', local: { address: '127.0.0.1', rtpPort: 20_000, rtcpPort: 20_001 }, insideKey: null },
  { type: 'relay-answered', sdp: offerSdp({ port: 30_000, payloads: '0 101', crypto: [`1 AES_CM_128_HMAC_SHA1_80 inline:${OTHER_KEY}`] }) },
  { type: 'relay-answered', sdp: offerSdp({ crypto: [] }) },
  { type: 'failed', reason: 'STORE_UNAVAILABLE' },
  { type: 'failed', reason: 'MEDIA_UNAVAILABLE' },
  { type: 'failed', reason: 'INTERNAL_ERROR' },
  { type: 'answer-failed', reason: 'CALLER_CANCELLED' },
  { type: 'cancelled' },
  { type: 'acknowledged' },
  { type: 'bye', reason: 'CALLER_HANGUP' },
  { type: 'bye', reason: 'ACK_TIMEOUT' },
  { type: 'hangup', reason: 'AGENT_HANGUP' },
  { type: 'hangup', reason: 'API_STOPPED' },
  { type: 'hangup', reason: 'SHUTDOWN' },
  { type: 'timer', timer: 'ringing' },
  { type: 'timer', timer: 'max-duration' },
];

// The usual way is drawn more often, so that schedules get beyond the look-up.
const schedule = fc.array(
  fc.oneof(
    { weight: 1, arbitrary: fc.constantFrom(...EVENTS) },
    { weight: 2, arbitrary: fc.constantFrom(...EVENTS.slice(0, 6), EVENTS[12]!) },
  ),
  {
    maxLength: 25,
  },
);

describe('the call machine under any order of events', () => {
  it('finishes once, answers the INVITE at most once, sends BYE only after the ACK', () => {
    fc.assert(
      fc.property(schedule, (events) => {
        let state = startCall(FACTS);
        const effects: CallEffect[] = [...stepCall(state, { type: 'invited' }).effects];
        let isAcknowledged = false;
        for (const event of [...events, { type: 'hangup', reason: 'SHUTDOWN' } as const, { type: 'bye', reason: 'ACK_TIMEOUT' } as const]) {
          const wasAnswered = effects.some((effect) => effect.do === 'answer');
          const step = stepCall(state, event);
          state = step.state;
          if (event.type === 'acknowledged' && wasAnswered) isAcknowledged = true;
          if (step.effects.some((effect) => effect.do === 'bye')) expect(isAcknowledged).toBe(true);
          effects.push(...step.effects);
        }
        const count = (kind: CallEffect['do']): number => effects.filter((effect) => effect.do === kind).length;
        expect(state.name).toBe('Ended');
        expect(count('finish')).toBe(1);
        expect(effects.at(-1)?.do).toBe('finish');
        expect(count('answer') + count('refuse')).toBeLessThanOrEqual(1);
        expect(count('bye')).toBeLessThanOrEqual(1);
        if (count('ring') > 0)
          expect(effects.findIndex((e) => e.do === 'ring')).toBeGreaterThan(effects.findIndex((e) => e.do === 'offer-relay'));
      }),
      { numRuns: 5_000 },
    );
  });
});
