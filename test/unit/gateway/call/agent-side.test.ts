import { describe, expect, it } from 'vitest';
import {
  agentSideOf,
  asAgentSide,
  atHome,
  HELD_PING_MS,
  isSameRelaySide,
  isSameSide,
  isUnwatched,
  notifySide,
  sideDue,
  sideTaken,
} from '../../../../src/gateway/call/agent-side.js';
import type { AgentSide, CallState, JoinedCall, SecondLeg } from '../../../../src/gateway/call/state.js';
import type { RelaySide } from '../../../../src/gateway/sdp/sdp-read.js';
import { CALL, play } from '../../../support/call-machine.js';

const TALKING = play(CALL).state;
const KEYED = { tag: '1', inline: 'inline:one', mki: null };
const HOME: AgentSide = { local: { address: '127.0.0.1', rtpPort: 11_000, rtcpPort: 11_001 }, key: KEYED };
const THERE: RelaySide = { address: '127.0.0.1', rtpPort: 35_000, rtcpPort: 35_001, crypto: null };
const AWAY: AgentSide = { local: { address: '127.0.0.1', rtpPort: 35_000, rtcpPort: 35_001 }, key: null };
const JOINS: JoinedCall = {
  callId: 'first',
  legId: 'leg',
  side: THERE,
  briefing: null,
  format: { codec: { name: 'PCMU', payloadType: 0 }, telephoneEvent: 101, events: '0-15' },
};
const second = (phase: SecondLeg['phase'], afterwards: SecondLeg['afterwards'] = 'end'): SecondLeg => ({
  callId: 'leg',
  requestId: null,
  afterwards,
  phase,
});
const at = (change: Partial<CallState>): CallState => ({ ...TALKING, local: HOME.local, agentSideKey: HOME.key, ...change });
const joining = (change: Partial<CallState> = {}): CallState => at({ facts: { ...TALKING.facts, joins: JOINS }, ...change });
const held = (isHeld: boolean): CallState['session'] =>
  TALKING.session && { ...TALKING.session, media: { ...TALKING.session.media, isHeld } };

describe('a call whose media the gateway does not watch', () => {
  it('is on hold or joined with another', () => {
    expect([at({ session: held(false) }), at({ session: held(true) }), at({ second: second('joined') })].map(isUnwatched)).toEqual([
      false,
      true,
      true,
    ]);
    expect([at({ second: second('joining') }), at({ session: null })].map(isUnwatched)).toEqual([false, false]);
    expect(isUnwatched(at({ name: 'Ended', session: held(true) }))).toBe(false);
  });

  it('gets a ping each minute', () => expect(HELD_PING_MS).toBe(60_000));
});

describe('two agent sides', () => {
  it('are the same by address, both ports and key', () => {
    expect(isSameSide(HOME, { local: { ...HOME.local }, key: { ...KEYED, tag: '9' } })).toBe(true);
    for (const change of [{ address: '127.0.0.2' }, { rtpPort: 1 }, { rtcpPort: 1 }])
      expect(isSameSide(HOME, { ...HOME, local: { ...HOME.local, ...change } })).toBe(false);
    expect(isSameSide(HOME, { ...HOME, key: { ...KEYED, inline: 'inline:two' } })).toBe(false);
    expect([isSameSide(HOME, { ...HOME, key: null }), isSameSide({ ...HOME, key: null }, { ...HOME, key: null })]).toEqual([false, true]);
  });

  it('are compared for rtpengine, too; a missing one equals none', () => {
    const crypto = { tag: 1, inline: 'inline:one' } as unknown as NonNullable<RelaySide['crypto']>;
    expect([isSameRelaySide(THERE, { ...THERE }), isSameRelaySide(null, THERE)]).toEqual([true, false]);
    expect([isSameRelaySide(THERE, { ...THERE, crypto }), isSameRelaySide({ ...THERE, crypto }, THERE)]).toEqual([false, false]);
    expect(isSameRelaySide({ ...THERE, crypto }, { ...THERE, crypto: { ...crypto } })).toBe(true);
    expect(isSameRelaySide(THERE, { ...THERE, rtcpPort: 1 })).toBe(false);
  });
});

describe('the agent side of a call', () => {
  it('is that of its leg, where it has one', () => {
    expect(agentSideOf(at({}))).toEqual(HOME);
    expect(agentSideOf(at({ local: null }))).toBeNull();
  });

  it('is built from another call’s side of rtpengine, with its key', () => {
    expect(asAgentSide(THERE, '2')).toEqual(AWAY);
    const crypto = { inline: 'inline:one' } as NonNullable<RelaySide['crypto']>;
    expect(asAgentSide({ ...THERE, crypto }, '2').key).toEqual({ tag: '2', inline: 'inline:one', mki: null });
  });

  it('has to change only when another is wanted', () => {
    expect(sideDue(at({ wantedSide: null }))).toBeNull();
    expect(sideDue(at({ wantedSide: { ...HOME } }))).toBeNull();
    expect(sideDue(at({ wantedSide: AWAY }))).toBe(AWAY);
    expect(sideDue(at({ wantedSide: HOME, local: null }))).toBe(HOME);
  });
});

describe('a changed side of rtpengine', () => {
  const event = (callId: string): object => ({ type: 'side-changed', callId, side: THERE });

  it('is sent to the other call: the second leg, or the first one', () => {
    expect(notifySide(at({ second: second('joined') }), THERE)).toEqual([{ do: 'notify-call', callId: 'leg', event: event('leg') }]);
    expect(notifySide(joining(), THERE)).toEqual([{ do: 'notify-call', callId: 'first', event: event('leg') }]);
  });

  it('is sent to no call when there is no other', () => expect(notifySide(at({}), THERE)).toEqual([]));
});

describe('a completed change of sides', () => {
  const TOLD = [{ do: 'start-timer', timer: 'ringing', delayMs: 1 }] as const;
  const PING = { do: 'start-timer', timer: 'held', delayMs: 60_000 };
  const agentFacing: RelaySide = { ...THERE, rtpPort: 36_000 };

  it('leaves a call as it is when another is wanted by then', () => {
    const state = at({ wantedSide: AWAY, second: second('joining'), agentFacing });
    expect(sideTaken(state, TOLD)).toEqual({ state, effects: TOLD });
  });

  it('notifies the endpoint of a call that is joined with none', () => {
    const state = at({ wantedSide: { ...HOME }, agentFacing });
    expect(sideTaken(state, TOLD)).toEqual({ state: { ...state, wantedSide: null }, effects: TOLD });
    const consulting = at({ second: second('consulting'), agentFacing });
    expect(sideTaken(consulting, TOLD)).toEqual({ state: { ...consulting, wantedSide: null }, effects: TOLD });
  });

  it('joins the two calls: the leg is closed, the other call is notified, and the carrier gets a ping each minute', () => {
    const there = at({ local: AWAY.local, agentSideKey: null, wantedSide: AWAY, second: second('joining'), agentFacing, isLegDue: true });
    const { state, effects } = sideTaken(there, TOLD);
    expect(state).toEqual({
      ...there,
      wantedSide: null,
      isLegDue: false,
      second: second('joined'),
      agent: { ...there.agent, isConnected: false },
    });
    expect(effects).toEqual([
      { do: 'close-leg' },
      PING,
      { do: 'notify-call', callId: 'leg', event: { type: 'side-changed', callId: 'leg', side: agentFacing } },
    ]);
    expect(sideTaken({ ...there, second: second('joining', 'go-on') }, TOLD).state.agent.isConnected).toBe(true);
  });

  it('joins no calls before rtpengine has a side for them', () => {
    const there = at({ second: second('joining'), agentFacing: null });
    expect(sideTaken(there, TOLD)).toEqual({ state: { ...there, wantedSide: null }, effects: TOLD });
  });

  it('ends the second leg of a call that has returned', () => {
    const state = at({ second: second('leaving'), agentFacing });
    expect(sideTaken(state, TOLD)).toEqual({ state: { ...state, wantedSide: null, second: null }, effects: TOLD });
  });

  it('ends a briefing: the first call gets the callee', () => {
    const briefed = joining({ isBriefing: true, local: AWAY.local, agentSideKey: null, agentFacing, isLegDue: true });
    const { state, effects } = sideTaken(briefed, TOLD);
    expect(state).toEqual({
      ...briefed,
      wantedSide: null,
      isBriefing: false,
      isLegDue: false,
      agent: { ...briefed.agent, isConnected: false },
    });
    expect(effects).toEqual([
      { do: 'close-leg' },
      PING,
      { do: 'notify-call', callId: 'first', event: { type: 'leg-answered', callId: 'leg', side: agentFacing } },
    ]);
    expect(sideTaken({ ...briefed, local: null }, TOLD).state.isBriefing).toBe(false);
  });

  it.each([
    ['there is none', { isBriefing: false, local: AWAY.local }],
    ['the media has not moved yet', { isBriefing: true, local: HOME.local }],
    ['rtpengine has no side for it', { isBriefing: true, local: AWAY.local, agentFacing: null }],
  ])('ends no briefing when %s', (_what, change) => {
    const state = joining({ agentFacing, ...change });
    expect(sideTaken(state, TOLD)).toEqual({ state: { ...state, wantedSide: null }, effects: TOLD });
  });
});

describe('a call whose other one ended', () => {
  it('before the media moved stays at home', () => {
    const leaving = at({ second: second('leaving'), wantedSide: AWAY, isLegDue: false });
    expect(atHome(leaving)).toEqual({ ...leaving, second: null, wantedSide: null });
    for (const change of [{ second: second('joining') }, { second: null }, { wantedSide: null }, { isLegDue: true }])
      expect(atHome({ ...leaving, ...change })).toEqual({ ...leaving, ...change });
  });
});
