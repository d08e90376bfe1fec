import { describe, expect, it } from 'vitest';
import { startCall, stepCall, type CallEffect, type CallEvent, type CallFacts, type CallState } from '../../../src/gateway/call/machine.js';
import { NO_LOAD } from '../../../src/gateway/policy/admission.js';
import { ROUTE } from '../../support/route.js';
import { offerSdp, OTHER_KEY } from '../../support/sdp.js';

const FACTS: CallFacts = { sourceAddress: '203.0.113.7', sdp: offerSdp(), sessionId: '7', maxDurationMs: 600_000, ringingAfterMs: 500 };
const LOCAL = { address: '127.0.0.1', rtpPort: 20_000, rtcpPort: 20_001 };

const PATH: readonly CallEvent[] = [
  { type: 'invited' },
  { type: 'routed', route: ROUTE, load: NO_LOAD },
  { type: 'relay-offered', sdp: offerSdp({ profile: 'RTP/AVP', crypto: [], port: 31_000, payloads: '0 101' }) },
  { type: 'leg-opened', local: LOCAL, insideKey: null },
  { type: 'relay-answered', sdp: offerSdp({ port: 30_000, payloads: '0 101', crypto: [`1 AES_CM_128_HMAC_SHA1_80 inline:${OTHER_KEY}`] }) },
  { type: 'acknowledged' },
];

function after(events: readonly CallEvent[], facts = FACTS): { state: CallState; effects: readonly CallEffect[]; all: CallEffect[] } {
  let state = startCall(facts);
  let effects: readonly CallEffect[] = [];
  const all: CallEffect[] = [];
  for (const event of events) {
    ({ state, effects } = stepCall(state, event));
    all.push(...effects);
  }
  return { state, effects, all };
}

const kinds = (effects: readonly CallEffect[]): string[] => effects.map((effect) => effect.do);

describe('the call machine', () => {
  it('takes an INVITE from look-up to talking in one order', () => {
    const states = PATH.map((_event, index) => after(PATH.slice(0, index + 1)).state.name);
    expect(states).toEqual(['Routing', 'Offering', 'Opening', 'Answering', 'AwaitingAck', 'Talking']);
    expect(kinds(after(PATH).all)).toEqual([
      'start-timer',
      'route',
      'count',
      'offer-relay',
      'open-leg',
      'answer-relay',
      'stop-timer',
      'answer',
      'start-timer',
      'start-leg',
    ]);
  });

  it('answers with SAVP, the offered tag, RTCP on RTP+1 and no mux', () => {
    const answer = after(PATH.slice(0, 5)).effects.find((effect) => effect.do === 'answer');
    expect(answer?.sdp).toContain('m=audio 30000 RTP/SAVP 0 101\r\n');
    expect(answer?.sdp).toContain(`a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:${OTHER_KEY}\r\n`);
    expect(answer?.sdp).toContain('a=rtcp:30001\r\n');
  });

  it.each([
    ['an unknown number', { type: 'routed', route: null, load: NO_LOAD }, 'NUMBER_NOT_ATTACHED'],
    ['a store that is away', { type: 'failed', reason: 'STORE_UNAVAILABLE' }, 'STORE_UNAVAILABLE'],
  ] as const)('refuses %s before anything is allocated', (_what, event, reason) => {
    const { state, effects } = after([PATH[0]!, event]);
    expect(state).toMatchObject({ name: 'Ended', reason });
    expect(kinds(effects)).toEqual(['stop-timer', 'stop-timer', 'refuse', 'finish']);
  });

  it('never answers with a key that was not offered', () => {
    const wrong = {
      type: 'relay-answered',
      sdp: offerSdp({ port: 30_000, crypto: [`2 AES_CM_128_HMAC_SHA1_80 inline:${OTHER_KEY}`] }),
    } as const;
    expect(after([...PATH.slice(0, 4), wrong]).state).toMatchObject({ name: 'Ended', reason: 'SRTP_SUITE_UNSUPPORTED' });
    const none = { type: 'relay-answered', sdp: offerSdp({ port: 30_000, crypto: [] }) } as const;
    expect(after([...PATH.slice(0, 4), none]).state.name).toBe('Ended');
  });

  it('rings only after rtpengine has taken the call, so that a refusal never follows an 18x', () => {
    const due = { type: 'timer', timer: 'ringing' } as const;
    expect(kinds(after([...PATH.slice(0, 1), due]).effects)).toEqual([]);
    expect(kinds(after([...PATH.slice(0, 2), due, PATH[2]!]).effects)).toEqual(['ring', 'open-leg']);
    expect(kinds(after([...PATH.slice(0, 3), due]).effects)).toEqual(['ring']);
    expect(kinds(after([...PATH.slice(0, 5), due]).effects)).toEqual([]);
  });

  it('[3262 §3] never rings for a caller that requires reliable provisional answers', () => {
    expect(kinds(after([PATH[0]!], { ...FACTS, ringingAfterMs: null }).effects)).toEqual(['route']);
  });

  it('ends without a word to anybody when the SIP server has forgotten the call', () => {
    for (let length = 1; length <= PATH.length; length += 1) {
      const { state, effects } = after([...PATH.slice(0, length), { type: 'server-lost' }]);
      expect(state).toMatchObject({ name: 'Ended', reason: 'INTERNAL_ERROR' });
      expect(kinds(effects)).toEqual(['stop-timer', 'stop-timer', 'finish']);
    }
  });

  it('takes an INVITE once', () => {
    for (const event of [{ type: 'invited' }, { type: 'inadmissible', reason: 'BAD_BODY' }] as const) {
      expect(kinds(after([...PATH, event]).effects)).toEqual([]);
    }
  });

  it('ends as CALLER_CANCELLED at every state before the answer, without a second answer', () => {
    for (let length = 1; length <= 4; length += 1) {
      const { state, effects } = after([...PATH.slice(0, length), { type: 'cancelled' }]);
      expect(state).toMatchObject({ name: 'Ended', reason: 'CALLER_CANCELLED' });
      expect(kinds(effects)).not.toContain('refuse');
      expect(kinds(effects)).toContain('finish');
    }
  });

  it('[3261 §9.2] lets a CANCEL that crosses the 200 change nothing', () => {
    expect(after([...PATH.slice(0, 5), { type: 'cancelled' }]).state.name).toBe('AwaitingAck');
  });

  it('[3261 §15] holds the BYE until the ACK has come', () => {
    const hangup = { type: 'hangup', reason: 'AGENT_HANGUP' } as const;
    const waiting = after([...PATH.slice(0, 5), hangup]);
    expect(waiting.state.name).toBe('HangingUp');
    expect(kinds(waiting.effects)).toEqual([]);
    expect(kinds(after([...PATH.slice(0, 5), hangup, { type: 'acknowledged' }]).effects)).toEqual([
      'stop-timer',
      'stop-timer',
      'bye',
      'finish',
    ]);
    const given = after([...PATH.slice(0, 5), hangup, { type: 'bye', reason: 'ACK_TIMEOUT' }]);
    expect(given.state.reason).toBe('AGENT_HANGUP');
    expect(kinds(given.effects)).not.toContain('bye');
  });

  it.each([
    [{ type: 'bye', reason: 'CALLER_HANGUP' }, 'CALLER_HANGUP', false],
    [{ type: 'hangup', reason: 'AGENT_HANGUP' }, 'AGENT_HANGUP', true],
    [{ type: 'hangup', reason: 'MEDIA_TIMEOUT' }, 'MEDIA_TIMEOUT', true],
    [{ type: 'timer', timer: 'max-duration' }, 'MAX_DURATION', true],
    [{ type: 'hangup', reason: 'SHUTDOWN' }, 'SHUTDOWN', true],
  ] as const)('ends a call in progress at %j', (event, reason, sendsBye) => {
    const { state, effects } = after([...PATH, event]);
    expect(state).toMatchObject({ name: 'Ended', reason });
    expect(kinds(effects).includes('bye')).toBe(sendsBye);
  });

  it('counts the shorter of the agent’s and the gateway’s longest duration', () => {
    const agent = {
      agent_id: 'a',
      org_id: 'o',
      name: '',
      first_sentence: null,
      language: 'ENG',
      pronunciation_guide: [],
      max_duration: 2,
      created_at: '',
      updated_at: '',
    };
    const routed = { type: 'routed', route: { ...ROUTE, agent }, load: NO_LOAD } as const;
    const { effects } = after([PATH[0]!, routed, ...PATH.slice(2, 5)]);
    expect(effects).toContainEqual({ do: 'start-timer', timer: 'max-duration', delayMs: 120_000 });
  });
});
