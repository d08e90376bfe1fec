import { describe, expect, it } from 'vitest';
import { startCall } from '../../../../src/gateway/call/machine.js';
import { reasonOf } from '../../../../src/gateway/call/placing.js';
import type { CallEvent, CallFacts } from '../../../../src/gateway/call/state.js';
import {
  AGENT_FAILED,
  ANSWER,
  effect,
  INSIDE,
  kinds,
  LATE_FACTS,
  OUTSIDE,
  PLACED,
  playOn,
  type Played,
  RELAY_LOST,
} from '../../../support/call-machine.js';

const END = ['stop-timer', 'stop-timer', 'stop-timer', 'stop-timer'];
const STOP: CallEvent = { type: 'hangup', reason: 'API_STOPPED' };
const ANSWERED: CallEvent = { type: 'dial-answered', sdp: ANSWER };

const place = (events: readonly CallEvent[], facts: Partial<CallFacts> = {}): Played =>
  playOn(startCall({ ...LATE_FACTS, ...facts }, 60_000), events);
/** Up to the INVITE; up to its 200. */
const DIALLED = PLACED.slice(0, 4);
const CONNECTING = PLACED.slice(0, 6);

describe('a call that is placed', () => {
  it('is permitted, offered and dialled, and only then connects the agent', () => {
    const played = place(PLACED);
    expect(played.state.name).toBe('Talking');
    expect(kinds(played.all)).toEqual([
      ...['permit', 'reserve-leg', 'offer-to-carrier', 'keep', 'dial', 'start-timer', 'stop-timer', 'start-timer', 'connect-agent'],
      ...['answer-from-carrier', 'open-leg', 'acknowledge', 'start-leg', 'keep'],
    ]);
  });

  it('is acknowledged when both the agent and the leg are ready, whichever comes first', () => {
    const [leg, agent] = PLACED.slice(7);
    for (const order of [
      [leg!, agent!],
      [agent!, leg!],
    ]) {
      const before = place([...CONNECTING, { type: 'relay-answered-from-carrier', sdp: INSIDE, attempt: 0 }, order[0]!]);
      expect(kinds(before.effects)).toEqual([]);
      expect(kinds(playOn(before.state, [order[1]!]).effects)).toEqual(['acknowledge', 'start-leg', 'keep']);
    }
  });

  it('is not dialled without permission', () => {
    const played = place([PLACED[0]!, { type: 'not-permitted', reason: 'DIAL_NOT_ALLOWED', detail: 'no' }]);
    expect(kinds(played.effects)).toEqual([...END, 'finish']);
    expect(played.state).toMatchObject({ name: 'Ended', reason: 'DIAL_NOT_ALLOWED' });
  });

  it.each(['DIAL_NOT_ALLOWED', 'STORE_UNAVAILABLE'] as const)(
    'ends with %s, and counts as not dialled, when its turn was not confirmed before its INVITE',
    (reason) => {
      const refusal = { type: 'not-permitted', reason, detail: 'it came too late' } as const;
      const played = place([...DIALLED, refusal]);
      expect(kinds(played.effects)).toEqual([...END, 'finish']);
      expect(played.state).toMatchObject({ name: 'Ended', reason, lateOffer: null });
      const stopped = place([...DIALLED, STOP, refusal]);
      expect(stopped.state).toMatchObject({ name: 'Ended', reason: 'API_STOPPED' });
    },
  );

  it('is not dialled while the store is away', () => {
    const played = place([PLACED[0]!, { type: 'failed', reason: 'STORE_UNAVAILABLE', attempt: null }]);
    expect(played.state).toMatchObject({ name: 'Ended', reason: 'STORE_UNAVAILABLE' });
    expect(kinds(played.all)).not.toContain('dial');
  });

  it.each([1, 2, 3])('ends at once when it is stopped after %i events, before its INVITE', (count) => {
    const played = place([...PLACED.slice(0, count), STOP]);
    expect(kinds(played.effects)).toEqual([...END, 'finish']);
    const late = playOn(played.state, PLACED.slice(count));
    expect(kinds(late.all).filter((kind) => kind !== 'acknowledge' && kind !== 'bye')).toEqual([]);
  });

  it.each([
    ['stopped', STOP, 'API_STOPPED'],
    ['not answered', { type: 'timer', timer: 'unanswered' }, 'NO_ANSWER'],
    ['without its relay', RELAY_LOST, 'MEDIA_UNAVAILABLE'],
    ['in a gateway that shuts down', { type: 'hangup', reason: 'DRAINING' }, 'SHUTDOWN'],
  ] as const)('[3261 §9.1] that is %s is cancelled once, and ends with its final response', (_what, event, reason) => {
    const cancelled = place([...DIALLED, event]);
    expect(cancelled.effects.filter(({ do: kind }) => kind === 'cancel-dial')).toEqual([{ do: 'cancel-dial', reason }]);
    const twice = playOn(cancelled.state, [STOP]);
    expect(kinds(twice.effects)).toEqual([]);
    expect(playOn(twice.state, [{ type: 'dial-refused', status: 487, isLocal: false }]).state).toMatchObject({ name: 'Ended', reason });
    // Nobody knows whether a number rang that should have: without a response to its CANCEL it is in doubt.
    const unheard = reason === 'NO_ANSWER' ? 'DIAL_AMBIGUOUS' : reason;
    expect(playOn(twice.state, [{ type: 'timer', timer: 'cancelling' }]).state).toMatchObject({ name: 'Ended', reason: unheard });
    const local = playOn(twice.state, [{ type: 'dial-refused', status: 408, isLocal: true }]);
    expect(local.state).toMatchObject({ name: 'Ended', reason: unheard });
  });

  it('ends unanswered as NO_ANSWER by the trunk’s 408 to its CANCEL, and as TRUNK_UNREACHABLE without a connection', () => {
    const cancelled = place([...DIALLED, { type: 'timer', timer: 'unanswered' }]);
    const ended = (status: number, isLocal: boolean) => playOn(cancelled.state, [{ type: 'dial-refused', status, isLocal }]).state.reason;
    expect(ended(408, false)).toBe('NO_ANSWER');
    expect(ended(500, false)).toBe('DIAL_AMBIGUOUS');
    expect(ended(503, true)).toBe('TRUNK_UNREACHABLE');
  });

  it('[3261 §13.2.2.4] gets ACK and BYE when it is answered after it was cancelled', () => {
    const crossed = place([...DIALLED, STOP, ANSWERED]);
    expect(kinds(crossed.effects)).toEqual([...END, 'acknowledge', 'bye', 'finish']);
    const late = place([...DIALLED, STOP, { type: 'timer', timer: 'cancelling' }, ANSWERED]);
    expect(late.effects).toEqual([{ do: 'acknowledge' }, { do: 'bye', reason: 'API_STOPPED' }]);
  });

  it.each([
    ['no description', ''],
    ['another key tag', ANSWER.replace('a=crypto:1', 'a=crypto:2')],
    ['an address of another family', ANSWER.replaceAll('IN IP4 127.0.0.1', 'IN IP6 ::1')],
  ])('[3264 §6] gets ACK and BYE when it is answered with %s', (_what, sdp) => {
    const played = place([...DIALLED, { type: 'dial-answered', sdp }]);
    expect(kinds(played.effects)).toEqual([...END, 'acknowledge', 'bye', 'finish']);
    expect(played.state.reason).toBe('BAD_ANSWER');
  });

  it('gets a stand-in, or ends, when its agent cannot be reached', () => {
    const alone = place([...CONNECTING, AGENT_FAILED]);
    expect(kinds(alone.effects)).toEqual([...END, 'acknowledge', 'bye', 'finish']);
    expect(alone.state.reason).toBe('AGENT_UNAVAILABLE');
    const helped = place([...CONNECTING, AGENT_FAILED], { standIn: 'sentence' });
    expect(helped.effects).toEqual([{ do: 'connect-agent', choice: 'sentence' }]);
    expect(playOn(helped.state, [AGENT_FAILED]).state).toMatchObject({ name: 'Ended', reason: 'AGENT_UNAVAILABLE' });
  });

  it('gets its ACK when its leg cannot be opened, or its callee hangs up before', () => {
    const lost = place([...CONNECTING, { type: 'relay-answered-from-carrier', sdp: 'garbage', attempt: 0 }]);
    expect(kinds(lost.effects)).toEqual([...END, 'acknowledge', 'bye', 'finish']);
    const gone = place([...CONNECTING, { type: 'bye', reason: 'CALLER_HANGUP' }]);
    expect(kinds(gone.effects)).toEqual([...END, 'acknowledge', 'finish']);
    expect(gone.state.reason).toBe('CALLEE_HANGUP');
  });

  it('ends as CALLEE_HANGUP when its callee hangs up, but not when its session expires', () => {
    const { state } = place(PLACED);
    expect(playOn(state, [{ type: 'bye', reason: 'CALLER_HANGUP' }]).state.reason).toBe('CALLEE_HANGUP');
    expect(playOn(state, [{ type: 'bye', reason: 'SESSION_EXPIRED' }]).state.reason).toBe('SESSION_EXPIRED');
  });

  it('[3261 §14.2] refuses a re-INVITE before its ACK', () => {
    const played = place([...CONNECTING, { type: 'reoffered', requestId: 1, method: 'INVITE', sdp: ANSWER }]);
    expect(effect(played, 'reject')).toEqual({ do: 'reject', requestId: 1, reason: 'REQUEST_PENDING' });
  });

  it('lasts for its agent’s maximum duration, from the answer on', () => {
    expect(effect(place(CONNECTING), 'start-timer')).toMatchObject({ timer: 'max-duration', delayMs: LATE_FACTS.maxDurationMs });
    expect(place([...PLACED, { type: 'timer', timer: 'max-duration' }]).state).toMatchObject({ name: 'Ended', reason: 'MAX_DURATION' });
  });

  it('transfers only to numbers that the organization may dial', () => {
    for (const to of ['+4930123456', 'sip:a@example.com']) {
      const played = place([...PLACED, { type: 'transfer-asked', requestId: 't', to }]);
      expect(effect(played, 'notify-agent')?.answer).toMatchObject({ code: 'TRANSFER_NOT_ALLOWED' });
    }
  });

  it('needs an offer of the relay with a key', () => {
    expect(place([...PLACED.slice(0, 3), { type: 'relay-offered-to-carrier', sdp: INSIDE, attempt: 0 }]).state.reason).toBe(
      'MEDIA_UNAVAILABLE',
    );
    expect(place([...PLACED.slice(0, 3), { type: 'relay-offered-to-carrier', sdp: OUTSIDE, attempt: 0 }]).state.name).toBe('Dialling');
  });
});

it.each([
  [486, false, false, 'BUSY'],
  [600, false, true, 'BUSY'],
  [408, false, true, 'DIAL_AMBIGUOUS'],
  [500, false, false, 'DIAL_AMBIGUOUS'],
  [504, false, false, 'DIAL_AMBIGUOUS'],
  [480, false, true, 'NO_ANSWER'],
  [487, false, true, 'NO_ANSWER'],
  [603, false, true, 'CALLEE_DECLINED'],
  [607, false, true, 'CALLEE_DECLINED'],
  [608, false, true, 'CALLEE_DECLINED'],
  [302, false, false, 'TRUNK_REFUSED'],
  [403, false, false, 'TRUNK_REFUSED'],
  [502, false, true, 'TRUNK_REFUSED'],
  [503, false, false, 'TRUNK_REFUSED'],
  [503, true, false, 'TRUNK_UNREACHABLE'],
  [503, true, true, 'DIAL_AMBIGUOUS'],
  [408, true, false, 'DIAL_AMBIGUOUS'],
] as const)('a final status %i (the SIP server’s own: %s; after a provisional one: %s) is %s', (status, isLocal, isProceeding, reason) => {
  expect(reasonOf(status, isLocal, isProceeding)).toBe(reason);
});
