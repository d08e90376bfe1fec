import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { startCall, stepCall } from '../../src/gateway/call/machine.js';
import type { CallEffect, CallEvent } from '../../src/gateway/call/state.js';
import { AGENT_FAILED, ANSWER, INSIDE, LATE_FACTS, PLACED, RELAY_LOST, RELAY_LOST_FOR_GOOD } from '../support/call-machine.js';

/** Whatever may happen to a call that is placed, in any order. */
const EVENTS: readonly CallEvent[] = [
  ...PLACED,
  AGENT_FAILED,
  { type: 'not-permitted', reason: 'DO_NOT_CALL', detail: '' },
  { type: 'dial-answered', sdp: 'garbage' },
  { type: 'dial-refused', status: 486, isLocal: false },
  { type: 'dial-refused', status: 487, isLocal: false },
  { type: 'dial-refused', status: 503, isLocal: true },
  { type: 'relay-answered-from-carrier', sdp: 'garbage', attempt: 0 },
  { type: 'failed', reason: 'STORE_UNAVAILABLE', attempt: null },
  { type: 'failed', reason: 'MEDIA_UNAVAILABLE', attempt: null },
  { type: 'hangup', reason: 'API_STOPPED' },
  { type: 'hangup', reason: 'AGENT_LOST' },
  { type: 'hangup', reason: 'SHUTDOWN' },
  RELAY_LOST,
  RELAY_LOST_FOR_GOOD,
  { type: 'leg-lost' },
  { type: 'relay-offered-to-carrier', sdp: INSIDE, attempt: 0 },
  { type: 'reoffered', requestId: 1, method: 'INVITE', sdp: ANSWER },
  { type: 'bye', reason: 'CALLER_HANGUP' },
  { type: 'server-lost', reason: 'INTERNAL_ERROR' },
  { type: 'pinged', isAnswered: false },
  { type: 'transfer-asked', requestId: 't', to: '+15550100300' },
  ...(['unanswered', 'cancelling', 'max-duration', 'held', 'transfer', 'reinvite', 'ringing'] as const).map((timer) => ({
    type: 'timer' as const,
    timer,
  })),
];

/** The usual course, in which others come in between. */
const courses = fc
  .tuple(
    fc.nat({ max: PLACED.length }),
    fc.array(fc.tuple(fc.nat({ max: PLACED.length }), fc.constantFrom(...EVENTS)), { maxLength: 12 }),
    fc.constantFrom(null, 'sentence' as const),
  )
  .map(([length, others, standIn]) => {
    const events: CallEvent[] = PLACED.slice(0, length);
    for (const [at, event] of others) events.splice(Math.min(at, events.length), 0, event);
    return { events, standIn };
  });

describe('a call that is placed', () => {
  it('is dialled and cancelled at most once, acknowledged before its BYE, and ended once, in any order of events', () => {
    fc.assert(
      fc.property(courses, ({ events, standIn }) => {
        let state = startCall({ ...LATE_FACTS, standIn }, 60_000);
        const done: CallEffect['do'][] = [];
        let answers = 0;
        // No request reaches the callee any more: the SIP server ends the call by itself.
        let isCutOff = false;
        for (const event of events) {
          const wasOver = state.name === 'Ended';
          // A 2xx comes only to an INVITE that went out, and once.
          if (event.type === 'dial-answered' && (!done.includes('dial') || answers > 0)) continue;
          if (event.type === 'dial-answered') answers += 1;
          const step = stepCall(state, event);
          state = step.state;
          const kinds = step.effects.map((effect) => effect.do);
          isCutOff ||= event.type === 'server-lost' && !wasOver;
          if (wasOver) expect(kinds.filter((kind) => !['acknowledge', 'bye', 'reject'].includes(kind))).toEqual([]);
          done.push(...kinds);
        }
        const times = (kind: CallEffect['do']): number => done.filter((one) => one === kind).length;
        expect(times('dial')).toBeLessThanOrEqual(1);
        expect(times('cancel-dial')).toBeLessThanOrEqual(1);
        expect(times('finish')).toBe(state.name === 'Ended' ? 1 : 0);
        // The caller waits for nothing: what was answered is acknowledged as soon as the call talks, or is over.
        if (!isCutOff && (state.name === 'Ended' || state.name === 'Talking')) expect(times('acknowledge')).toBe(answers);
        expect(times('bye')).toBeLessThanOrEqual(answers);
        if (times('bye') > 0) expect(done.indexOf('acknowledge')).toBeLessThan(done.indexOf('bye'));
        expect(times('refuse') + times('ring') + times('answer')).toBe(0);
      }),
      { numRuns: 3_000 },
    );
  });
});
