import { describe, expect, it } from 'vitest';
import { agentOf } from '../store/store-contract.js';
import { DEFAULT_AGENT_SETTINGS } from '../../../../src/gateway/model/agent-record.js';
import type { CallEvent, CallState } from '../../../../src/gateway/call/state.js';
import { NO_USAGE } from '../../../../src/gateway/admission/admission.js';
import {
  AGENT_CONNECTED,
  AGENT_FAILED,
  ANSWER,
  CALL,
  effect,
  FACTS,
  INSIDE,
  kinds,
  LATE_CALL,
  LATE_FACTS,
  LOCAL,
  play,
  playOn,
  RELAY_LOST,
  ROUTED,
} from '../../../support/call-machine.js';
import { ROUTE } from '../../../support/route.js';
import { SUITE } from '../../../../src/gateway/sdp/sdp-read.js';
import { KEY, offerSdp, OTHER_KEY } from '../../../support/sdp.js';

const END = ['stop-timer', 'stop-timer', 'stop-timer', 'stop-timer'];
const ACK: CallEvent = { type: 'acknowledged', sdp: '' };

describe('the call machine', () => {
  it('takes an INVITE from look-up to talking in one order', () => {
    const states = CALL.map((_event, index) => play(CALL.slice(0, index + 1)).state.name);
    expect(states).toEqual(['Routing', 'Offering', 'Offering', 'Answering', 'Answering', 'AwaitingAck', 'Talking']);
    expect(kinds(play(CALL).all)).toEqual([
      'start-timer',
      'route',
      'connect-agent',
      'reserve-leg',
      'offer-relay',
      'open-leg',
      'answer-relay',
      'stop-timer',
      'answer',
      'start-timer',
      'start-leg',
      'keep',
    ]);
  });

  it('may delay the write after the ACK of its 200, unless the session changes with it', () => {
    expect(effect(play(CALL), 'keep')).toEqual({ do: 'keep', mayWait: true });
    expect(effect(play(LATE_CALL, LATE_FACTS), 'keep')).toEqual({ do: 'keep' });
  });

  it('opens the leg while rtpengine answers, once it has both the offer and a port, whichever comes first', () => {
    const [invited, routed, reserved, offered] = CALL;
    const first = play([invited!, routed!, offered!]);
    expect([first.state.name, first.effects]).toEqual(['Reserving', []]);
    const both = playOn(first.state, [reserved!]);
    expect(both).toEqual(playOn(play([invited!, routed!, reserved!]).state, [offered!]));
    const reservation = { local: LOCAL, agentSideKey: null };
    expect(both.effects).toMatchObject([{ do: 'open-leg', reserved: reservation }, { do: 'answer-relay' }]);
    expect(playOn(both.state, [{ type: 'leg-opened' }])).toMatchObject({ state: { name: 'Answering' }, effects: [] });
  });

  it('encrypts the agent side with its own key and the tag that rtpengine offered, if any', () => {
    const own = { tag: '1', inline: OTHER_KEY, mki: null };
    const withKey: CallEvent = { type: 'leg-reserved', local: LOCAL, agentSideKey: own };
    const offered = offerSdp({ port: 31_000, payloads: '0 101', crypto: [`7 ${SUITE} inline:${KEY}`] });
    const opened = (sdp: string) => effect(play([CALL[0]!, ROUTED, withKey, { type: 'relay-offered', sdp, attempt: 0 }]), 'open-leg');
    expect(opened(offered)?.reserved.agentSideKey).toEqual({ ...own, tag: '7' });
    expect(opened(INSIDE)?.reserved.agentSideKey).toBeNull();
  });

  it('hangs up when the leg cannot be opened after the 200', () => {
    const { effects } = play([...CALL, { type: 'failed', reason: 'MEDIA_UNAVAILABLE', attempt: null }]);
    expect(effects).toContainEqual({ do: 'bye', reason: 'MEDIA_LOST' });
  });

  it('answers with SAVP, the offered tag, RTCP on RTP+1 and no mux', () => {
    const answer = effect(play(CALL.slice(0, 6)), 'answer');
    expect(answer?.sdp).toContain('m=audio 30000 RTP/SAVP 0 101\r\n');
    expect(answer?.sdp).toContain(`a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:${OTHER_KEY}\r\n`);
    expect(answer?.sdp).toContain('a=rtcp:30001\r\n');
  });

  it.each([
    [
      'an unknown number',
      { type: 'routed', route: null, load: NO_USAGE, isStale: false, identity: null, credentials: null },
      'NUMBER_NOT_ATTACHED',
    ],
    ['a store that is away', { type: 'failed', reason: 'STORE_UNAVAILABLE', attempt: null }, 'STORE_UNAVAILABLE'],
  ] as const)('refuses %s before anything is allocated', (_what, event, reason) => {
    const { state, effects } = play([CALL[0]!, event]);
    expect(state).toMatchObject({ name: 'Ended', reason });
    expect(kinds(effects)).toEqual([...END, 'refuse', 'finish']);
  });

  it('refuses an offer of an address family that the relay does not have, and hangs up on such an answer', () => {
    const sdp = offerSdp().replaceAll('IN IP4 127.0.0.1', 'IN IP6 2001:db8::7');
    expect(play(CALL.slice(0, 6), { ...FACTS, sdp }).state).toMatchObject({ name: 'Ended', reason: 'ADDRESS_FAMILY_UNSUPPORTED' });
    expect(play(CALL.slice(0, 6), { ...FACTS, sdp: offerSdp({ address: '0.0.0.0' }) }).state.name).toBe('AwaitingAck');
    const late = play([...LATE_CALL.slice(0, 5), { type: 'acknowledged', sdp }], LATE_FACTS);
    expect(late.state).toMatchObject({ name: 'Ended', reason: 'BAD_ANSWER' });
  });

  it('never answers with a key that was not offered', () => {
    const wrong = offerSdp({ port: 30_000, crypto: [`2 AES_CM_128_HMAC_SHA1_80 inline:${OTHER_KEY}`] });
    expect(play([...CALL.slice(0, 4), { type: 'relay-answered', sdp: wrong, attempt: 0 }]).state).toMatchObject({
      name: 'Ended',
      reason: 'SRTP_SUITE_UNSUPPORTED',
    });
    const none = offerSdp({ port: 30_000, crypto: [] });
    expect(play([...CALL.slice(0, 4), { type: 'relay-answered', sdp: none, attempt: 0 }]).state.name).toBe('Ended');
  });

  it('rings only after rtpengine has accepted the call and the agent is connected, so no refusal follows an 18x', () => {
    const due = { type: 'timer', timer: 'ringing' } as const;
    const standIn = { ...FACTS, standIn: 'test-line' as const };
    const [invited, routed, reserved, offered, connected] = CALL;
    const ringsAfter = (events: readonly CallEvent[], facts = FACTS): readonly string[] => kinds(play(events, facts).effects);
    expect(ringsAfter([invited!, due])).toEqual([]);
    expect(ringsAfter([invited!, routed!, due, offered!])).toEqual([]);
    expect(ringsAfter([invited!, routed!, due, offered!], standIn)).toEqual(['ring']);
    expect(ringsAfter([invited!, routed!, reserved!, due, offered!], standIn)).toEqual(['ring', 'open-leg', 'answer-relay']);
    expect(ringsAfter([invited!, routed!, due, offered!, connected!])).toEqual(['ring']);
    expect(ringsAfter([invited!, routed!, due, connected!, offered!])).toEqual(['ring']);
    expect(ringsAfter([invited!, routed!, offered!, reserved!, due])).toEqual([]);
    expect(ringsAfter([invited!, routed!, offered!, reserved!, connected!, due])).toEqual(['ring']);
    expect(ringsAfter([invited!, routed!, offered!, connected!, due])).toEqual(['ring']);
    expect(ringsAfter([invited!, routed!, reserved!, connected!, due])).toEqual([]);
    expect(kinds(play([...CALL.slice(0, 6), due]).effects)).toEqual([]);
  });

  it('[3262 §3] never rings for a caller that requires reliable provisional responses', () => {
    expect(kinds(play([CALL[0]!], { ...FACTS, ringingAfterMs: null }).effects)).toEqual(['route']);
  });

  it('ends silently when the SIP server has lost the call', () => {
    for (let length = 1; length <= CALL.length; length += 1) {
      const { state, effects } = play([...CALL.slice(0, length), { type: 'server-lost', reason: 'INTERNAL_ERROR' }]);
      expect(state).toMatchObject({ name: 'Ended', reason: 'INTERNAL_ERROR' });
      expect(kinds(effects)).toEqual([...END, 'finish']);
    }
  });

  it('accepts an INVITE once', () => {
    for (const event of [{ type: 'invited' }, { type: 'inadmissible', reason: 'BAD_BODY', detail: null }] as const) {
      expect(kinds(play([...CALL, event]).effects)).toEqual([]);
    }
  });

  it('ends as CALLER_CANCELLED at every state before the answer, without a second answer', () => {
    const calls = [1, 2, 3, 4, 5].map((length) => play([...CALL.slice(0, length), { type: 'cancelled' }]));
    const late = [1, 2, 3, 4].map((length) => play([...LATE_CALL.slice(0, length), { type: 'cancelled' }], LATE_FACTS));
    for (const { state, effects } of [...calls, ...late]) {
      expect(state).toMatchObject({ name: 'Ended', reason: 'CALLER_CANCELLED' });
      expect(kinds(effects)).toEqual([...END, 'finish']);
    }
  });

  it('[3261 §9.2] ignores a CANCEL that crosses the 200', () => {
    expect(play([...CALL.slice(0, 6), { type: 'cancelled' }]).state.name).toBe('AwaitingAck');
  });

  it('[3261 §15] holds the BYE until the ACK has come', () => {
    const hangup = { type: 'hangup', reason: 'AGENT_HANGUP' } as const;
    const waiting = play([...CALL.slice(0, 6), hangup]);
    expect(waiting.state.name).toBe('HangingUp');
    expect(kinds(waiting.effects)).toEqual([]);
    expect(kinds(play([...CALL.slice(0, 6), hangup, ACK]).effects)).toEqual([...END, 'bye', 'finish']);
    const given = play([...CALL.slice(0, 6), hangup, { type: 'bye', reason: 'ACK_TIMEOUT' }]);
    expect(given.state.reason).toBe('AGENT_HANGUP');
    expect(kinds(given.effects)).not.toContain('bye');
  });

  it.each([
    [{ type: 'bye', reason: 'CALLER_HANGUP' }, 'CALLER_HANGUP', false],
    [{ type: 'hangup', reason: 'AGENT_HANGUP' }, 'AGENT_HANGUP', true],
    [{ type: 'hangup', reason: 'MEDIA_TIMEOUT' }, 'MEDIA_TIMEOUT', true],
    [{ type: 'hangup', reason: 'API_STOPPED' }, 'API_STOPPED', true],
    [{ type: 'timer', timer: 'max-duration' }, 'MAX_DURATION', true],
    [{ type: 'hangup', reason: 'SHUTDOWN' }, 'SHUTDOWN', true],
  ] as const)('ends a call in progress at %j', (event, reason, sendsBye) => {
    const { state, effects } = play([...CALL, event]);
    expect(state).toMatchObject({ name: 'Ended', reason });
    expect(kinds(effects).includes('bye')).toBe(sendsBye);
  });

  it.each([
    ['AGENT_HANGUP', 'AGENT_UNAVAILABLE'],
    ['API_STOPPED', 'DECLINED'],
    ['SHUTDOWN', 'DRAINING'],
  ] as const)('refuses a call that %s ends before the answer with %s', (reason, refusal) => {
    for (let length = 1; length <= 5; length += 1) {
      const { effects } = play([...CALL.slice(0, length), { type: 'hangup', reason }]);
      expect(effects).toContainEqual({ do: 'refuse', reason: refusal, detail: null });
    }
  });

  describe('for a call whose media thread died', () => {
    const LEG_LOST = { type: 'leg-lost' } as const;
    const OPENED: CallEvent = { type: 'leg-opened' };

    it('opens a leg at the same port, then connects its agent', () => {
      const talking = play(CALL).state;
      const lost = playOn(talking, [LEG_LOST]);
      expect(lost.effects).toEqual([
        {
          do: 'open-leg',
          media: talking.session!.media,
          agentFacing: talking.agentFacing,
          reserved: { local: talking.local, agentSideKey: null },
        },
      ]);
      const again = playOn(lost.state, [OPENED]);
      expect(kinds(again.effects)).toEqual(['start-leg', 'keep', 'connect-agent']);
      const connected = playOn(again.state, [{ type: 'agent-connected' }]);
      expect(kinds(connected.effects)).toEqual(['start-leg', 'keep']);
      expect(connected.state).toMatchObject({ name: 'Talking', isLegDue: false, agent: { choice: 'own', isConnected: true } });
    });

    it('ends the call when no leg can be opened, and when the agent does not come back', () => {
      const lost = play([...CALL, LEG_LOST]).state;
      expect(playOn(lost, [{ type: 'failed', reason: 'MEDIA_UNAVAILABLE', attempt: null }]).state.reason).toBe('MEDIA_LOST');
      const unavailable = playOn(lost, [OPENED, { type: 'failed', reason: 'AGENT_UNAVAILABLE', attempt: null }]);
      expect(unavailable.state.reason).toBe('AGENT_LOST');
    });

    it('ends the call at the fourth death', () => {
      const round = (state: CallState): CallState => playOn(state, [LEG_LOST, OPENED, { type: 'agent-connected' }]).state;
      const thrice = round(round(round(play(CALL).state)));
      expect(thrice.name).toBe('Talking');
      expect(round(thrice)).toMatchObject({ name: 'Ended', reason: 'MEDIA_LOST' });
    });

    it.each([1, 2, 3, 4, 5, 6])('refuses the call, or ends it before the ACK, after %i events', (length) => {
      const { state, effects } = play([...CALL.slice(0, length), LEG_LOST]);
      if (length < 6) expect(effects).toContainEqual({ do: 'refuse', reason: 'MEDIA_UNAVAILABLE', detail: null });
      else expect(state).toMatchObject({ name: 'HangingUp', reason: 'MEDIA_LOST' });
    });
  });

  it('ends a call at the shorter of the agent’s and the gateway’s maximum duration', () => {
    const agent = { ...DEFAULT_AGENT_SETTINGS, agent_id: 'a', org_id: 'o', name: '', max_duration: 2, created_at: '', updated_at: '' };
    const routed = {
      type: 'routed',
      route: { ...ROUTE, agent },
      load: NO_USAGE,
      isStale: false,
      identity: null,
      credentials: null,
    } as const;
    const { effects } = play([CALL[0]!, routed, ...CALL.slice(2, 6)]);
    expect(effects).toContainEqual({ do: 'start-timer', timer: 'max-duration', delayMs: 120_000 });
  });

  it('starts a call without audio that begins on hold', () => {
    const held = play(CALL, { ...FACTS, sdp: offerSdp({ direction: 'sendonly' }) });
    expect(kinds(held.effects)).toEqual(['start-leg', 'direct-leg', 'start-timer', 'keep']);
  });
});

describe('the agent of a call in the machine', () => {
  const unconnected = (call: readonly CallEvent[]): CallEvent[] => call.filter((event) => event !== AGENT_CONNECTED);
  const READY = unconnected(CALL).slice(0, 5);
  const LATE_READY = unconnected(LATE_CALL).slice(0, 4);
  const FALLING_BACK = { ...FACTS, standIn: 'test-line' as const };
  const OWN = { do: 'connect-agent', choice: 'own' };
  const TEST_LINE = { do: 'connect-agent', choice: 'test-line' };

  it.each([
    ['with an offer', READY, FACTS],
    ['without an offer', LATE_READY, LATE_FACTS],
  ])('connects while the media of an INVITE %s gets ready, and the 200 waits for it', (_what, events, facts) => {
    expect(play(events.slice(0, 2), facts).effects[0]).toEqual(OWN);
    const waiting = play(events, facts);
    expect(waiting.state.name).toBe('AwaitingAgent');
    expect(kinds(waiting.all)).not.toContain('answer');
    const connected = play([...events, AGENT_CONNECTED], facts);
    expect(connected.state.name).toBe('AwaitingAck');
    expect(kinds(connected.effects)).toEqual(['stop-timer', 'answer', 'start-timer']);
  });

  it('refuses the call with 480 at any time before the answer when it cannot be reached', () => {
    for (let length = 2; length <= READY.length; length += 1) {
      const { state, effects } = play([...READY.slice(0, length), AGENT_FAILED]);
      expect(state).toMatchObject({ name: 'Ended', reason: 'AGENT_UNAVAILABLE' });
      expect(kinds(effects)).toEqual([...END, 'refuse', 'finish']);
    }
  });

  it('gives way to the test line once, where the operator set that', () => {
    for (let length = 2; length <= READY.length; length += 1) {
      const replaced = play([...READY.slice(0, length), AGENT_FAILED], FALLING_BACK);
      expect(replaced.effects).toEqual([TEST_LINE]);
      const rest = READY.slice(length);
      expect(play([...READY.slice(0, length), AGENT_FAILED, ...rest, AGENT_CONNECTED], FALLING_BACK).state.name).toBe('AwaitingAck');
      expect(play([...READY.slice(0, length), AGENT_FAILED, AGENT_FAILED], FALLING_BACK).state.reason).toBe('AGENT_UNAVAILABLE');
    }
  });

  it('delays the 180 until it is connected, unless the test line would stand in for it', () => {
    const due = { type: 'timer', timer: 'ringing' } as const;
    const early = (events: readonly CallEvent[]): readonly CallEvent[] => [events[0]!, due, ...events.slice(1)];
    for (const [events, facts] of [
      [READY, FACTS],
      [LATE_READY, LATE_FACTS],
    ] as const) {
      const rings = (played: readonly CallEvent[], mayFallBack: boolean): number =>
        kinds(play(played, { ...facts, standIn: mayFallBack ? 'test-line' : null }).all).filter((kind) => kind === 'ring').length;
      expect([rings([...events, due], false), rings(early(events), false)]).toEqual([0, 0]);
      expect([rings([...events, due], true), rings(early(events), true)]).toEqual([1, 1]);
    }
  });

  it('is awaited no longer after a CANCEL or the loss of the relay', () => {
    expect(play([...READY, { type: 'cancelled' }]).state.reason).toBe('CALLER_CANCELLED');
    expect(play([...READY, RELAY_LOST]).state.reason).toBe('MEDIA_UNAVAILABLE');
    expect(kinds(play([...READY, { type: 'cancelled' }, AGENT_CONNECTED]).effects)).toEqual([]);
  });

  it.each(['second-provider', 'sentence', 'transfer'] as const)('gives way to %s once when it is lost in the call', (standIn) => {
    const lost: CallEvent = { type: 'hangup', reason: 'AGENT_LOST' };
    const facts = { ...FACTS, standIn };
    const first = play([...CALL, lost], facts);
    expect(first.state).toMatchObject({ name: 'Talking', agent: { choice: standIn, isConnected: false } });
    expect(first.effects).toEqual([{ do: 'connect-agent', choice: standIn }]);
    expect(kinds(play([...CALL, lost, { type: 'agent-connected' }], facts).effects)).toEqual(['start-leg', 'keep']);
    const unavailable: CallEvent = { type: 'failed', reason: 'AGENT_UNAVAILABLE', attempt: null };
    for (const again of [lost, unavailable])
      expect(play([...CALL, lost, again], facts).state).toMatchObject({ name: 'Ended', reason: 'AGENT_LOST' });
    expect(play([...CALL, lost], { ...FACTS, standIn: 'test-line' }).state).toMatchObject({ name: 'Ended', reason: 'AGENT_LOST' });
  });

  it('may transfer as a stand-in regardless of transfer_list and model', () => {
    const asked: CallEvent = { type: 'transfer-asked', requestId: 'x', to: '+15550100300' };
    const lost: CallEvent[] = [{ type: 'hangup', reason: 'AGENT_LOST' }, { type: 'agent-connected' }];
    const route = { ...ROUTE, agent: agentOf('o', { transfer_list: ['+15550100301'], model: 'turbo' }) };
    const routed = CALL.map((event) => (event.type === 'routed' ? { ...event, route } : event));
    expect(kinds(play([...routed, ...lost, asked], { ...FACTS, standIn: 'transfer' }).effects)).toEqual(['refer']);
    expect(kinds(play([...routed, asked], FACTS).effects)).toEqual(['notify-agent']);
  });

  it.each(['second-provider', 'sentence', 'transfer'] as const)(
    'gives way to %s when it is lost between the 200 and the ACK, before or after which that connects',
    (standIn) => {
      const facts = { ...FACTS, standIn };
      const lost: CallEvent = { type: 'hangup', reason: 'AGENT_LOST' };
      const answered = CALL.slice(0, 6);
      const first = play([...answered, lost], facts);
      expect([first.state.name, first.effects]).toEqual(['AwaitingAck', [{ do: 'connect-agent', choice: standIn }]]);
      expect(kinds(play([...answered, lost, AGENT_CONNECTED], facts).effects)).toEqual([]);
      expect(kinds(play([...answered, lost, AGENT_CONNECTED, ACK], facts).effects)).toEqual(['start-leg', 'keep']);
      // Silence until it is there.
      expect(kinds(play([...answered, lost, ACK], facts).effects)).toEqual(['start-leg', 'keep']);
      expect(kinds(play([...answered, lost, ACK, AGENT_CONNECTED], facts).effects)).toEqual(['start-leg', 'keep']);
      expect(play([...answered, lost, lost], facts).state).toMatchObject({ name: 'HangingUp', reason: 'AGENT_LOST' });
      expect(play([...answered, lost], FACTS).state).toMatchObject({ name: 'HangingUp', reason: 'AGENT_LOST' });
    },
  );

  it('is not awaited after its connection broke before the 200: a stand-in connects, or the call is refused', () => {
    const away: CallEvent = { type: 'agent-away' };
    for (let length = 3; length <= 5; length += 1) {
      for (const gone of [away, { type: 'hangup', reason: 'AGENT_LOST' }] as const) {
        expect(play([...CALL.slice(0, length), gone]).state).toMatchObject({ name: 'Ended', reason: 'AGENT_UNAVAILABLE' });
        expect(play([...CALL.slice(0, length), gone], FALLING_BACK).effects).toEqual([TEST_LINE]);
      }
    }
    for (const length of [6, 7]) {
      const { state } = play(CALL.slice(0, length));
      expect(playOn(state, [away])).toMatchObject({ state, effects: [] });
    }
  });

  it('ends an answered call with AGENT_LOST when it is lost', () => {
    const { state, effects } = play([...CALL, { type: 'hangup', reason: 'AGENT_LOST' }]);
    expect(state.reason).toBe('AGENT_LOST');
    expect(kinds(effects)).toContain('bye');
  });
});

describe('a late offer', () => {
  it('[3261 §13.2.1] goes out in the 200; the answer comes in the ACK, and only then the leg is opened', () => {
    const states = LATE_CALL.map((_event, index) => play(LATE_CALL.slice(0, index + 1), LATE_FACTS).state.name);
    expect(states).toEqual([
      'Routing',
      'Reserving',
      'OfferingToCarrier',
      'OfferingToCarrier',
      'AwaitingAck',
      'Connecting',
      'Connecting',
      'Talking',
    ]);
    expect(kinds(play(LATE_CALL, LATE_FACTS).all)).toEqual([
      'start-timer',
      'route',
      'connect-agent',
      'reserve-leg',
      'offer-to-carrier',
      'stop-timer',
      'answer',
      'start-timer',
      'answer-from-carrier',
      'open-leg',
      'start-leg',
      'keep',
    ]);
  });

  it('has both codecs, telephone-event, and one key of rtpengine’s under a tag of its own', () => {
    const offer = effect(play(LATE_CALL.slice(0, 5), LATE_FACTS), 'answer');
    expect(offer?.sdp.split('\r\n').slice(5)).toEqual([
      'm=audio 30000 RTP/SAVP 0 8 101',
      'a=rtpmap:0 PCMU/8000',
      'a=rtpmap:8 PCMA/8000',
      'a=rtpmap:101 telephone-event/8000',
      'a=fmtp:101 0-15',
      `a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:${OTHER_KEY}`,
      'a=rtcp:30001',
      'a=ptime:20',
      'a=sendrecv',
      '',
    ]);
  });

  it.each([
    ['is missing', ''],
    ['is not SDP', 'hello'],
    ['has another tag', ANSWER.replace('a=crypto:1 ', 'a=crypto:2 ')],
    ['has no key', ANSWER.replace(/a=crypto:.*\r\n/, '')],
    ['has another profile', ANSWER.replace('RTP/SAVP', 'RTP/AVP')],
    ['has another codec', ANSWER.replace('RTP/SAVP 0 101', 'RTP/SAVP 18')],
    ['has one m-line more', `${ANSWER}m=audio 0 RTP/SAVP 0\r\n`],
    ['refuses the line', ANSWER.replace('m=audio 40000', 'm=audio 0')],
  ])('[3264 §6] ends in BYE with BAD_ANSWER when the answer in the ACK %s', (_what, sdp) => {
    const { state, effects } = play([...LATE_CALL.slice(0, 5), { type: 'acknowledged', sdp }], LATE_FACTS);
    expect(state).toMatchObject({ name: 'Ended', reason: 'BAD_ANSWER' });
    expect(kinds(effects)).toEqual([...END, 'bye', 'finish']);
  });

  it('becomes PCMA when the carrier answers with it', () => {
    const sdp = ANSWER.replace('RTP/SAVP 0 101', 'RTP/SAVP 8 101');
    const { state } = play([...LATE_CALL.slice(0, 5), { type: 'acknowledged', sdp }, ...LATE_CALL.slice(6)], LATE_FACTS);
    expect(state).toMatchObject({ name: 'Talking', session: { media: { codec: { name: 'PCMA', payloadType: 8 } } } });
  });

  it('ends at once when media is lost after the ACK', () => {
    const lost = play([...LATE_CALL.slice(0, 6), { type: 'failed', reason: 'MEDIA_UNAVAILABLE', attempt: 0 }], LATE_FACTS);
    expect(lost.state).toMatchObject({ name: 'Ended', reason: 'MEDIA_LOST' });
    expect(kinds(lost.effects)).toContain('bye');
  });

  it('[5407 §3.1.4] makes a change before the ACK get 491, since it is not answered yet', () => {
    const { effects } = play(
      [...LATE_CALL.slice(0, 5), { type: 'reoffered', requestId: 1, method: 'INVITE', sdp: offerSdp() }],
      LATE_FACTS,
    );
    expect(effects).toEqual([{ do: 'reject', requestId: 1, reason: 'REQUEST_PENDING' }]);
  });
});

it('the stored state of a call is plain data', () => {
  const { state } = play(CALL);
  expect(JSON.parse(JSON.stringify(state))).toEqual(state);
});
