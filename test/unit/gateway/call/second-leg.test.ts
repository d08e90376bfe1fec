import { describe, expect, it } from 'vitest';
import type { Briefing, CallEffect, CallEvent, CallState, LegRules } from '../../../../src/gateway/call/state.js';
import { resumable, startCall } from '../../../../src/gateway/call/machine.js';
import { peerMissing } from '../../../../src/gateway/call/second-leg.js';
import { DEFAULT_INBOUND_OPTIONS, type Route } from '../../../../src/gateway/model/records.js';
import {
  ANSWER,
  CALL,
  effect,
  INSIDE,
  kinds,
  LATE_FACTS,
  LOCAL,
  OTHER_OUTSIDE,
  OUTSIDE,
  PERMITTED,
  play,
  type Played,
  playOn,
} from '../../../support/call-machine.js';
import { ROUTE } from '../../../support/route.js';
import { KEY, offerSdp, OTHER_KEY } from '../../../support/sdp.js';

const LEG = 'leg';
const TO = '+4930123456';
const SIDE = { address: '127.0.0.1', rtpPort: 35_000, rtcpPort: 35_001, crypto: null };
const FORMAT = { codec: { name: 'PCMA' as const, payloadType: 8 }, telephoneEvent: 96, events: '0-15' };
const RULES: LegRules = { callId: LEG, from: null, ringTimeoutMs: 60_000, timeLimitMs: null, briefing: null, afterwards: 'end' };
const DIALLING = {
  prices: { '+49': 0.02 },
  callers: [ROUTE.number.phone_number],
  max_calls_per_second: 1,
  max_concurrent_calls: 1,
  max_calls_per_day: 1,
  max_cost_per_day: 1,
};
const MAY_DIAL: Route = {
  ...ROUTE,
  org: { ...ROUTE.org, dialling: DIALLING },
  number: { ...ROUTE.number, outbound: { sip_endpoint: 'trunk.example' } },
};
const REFERLESS: Route = {
  ...MAY_DIAL,
  number: { ...MAY_DIAL.number, inbound: { agent_id: null, options: { ...DEFAULT_INBOUND_OPTIONS, refer: false } } },
};

const TALKING = play(CALL).state;
const talking = (route: Route): CallState => ({
  ...TALKING,
  facts: { ...TALKING.facts, transferHosts: ['pbx.example'], transferPrefixes: ['+49', '+81'] },
  route,
});
const asked = (leg: Partial<LegRules> = {}, to = TO): CallEvent => ({
  type: 'transfer-asked',
  requestId: 't',
  to,
  leg: { ...RULES, ...leg },
});
const refused = (status: number): CallEvent => ({ type: 'refer-answered', status, referId: 1 });
const ANSWERED: CallEvent = { type: 'leg-answered', callId: LEG, side: SIDE };
const offered = (sdp: string, attempt: number): CallEvent => ({ type: 'relay-offered-to-carrier', sdp, attempt });
const over = (attempt: number): CallEvent => ({ type: 'relay-answered-from-carrier', sdp: INSIDE, attempt });
const dialling = (): CallState => playOn(talking(REFERLESS), [asked()]).state;
const joined = (): CallState => playOn(dialling(), [ANSWERED, offered(OUTSIDE, 1), over(1)]).state;

/** What the last event does, aside from keeping the state. */
const done = ({ effects }: Played): readonly CallEffect[] => effects.filter((one) => one.do !== 'keep');

describe('a transfer that the carrier refuses', () => {
  it.each([405, 501, 603])('with %i becomes a call of ours, from the number of the call', (status) => {
    const played = playOn(talking(MAY_DIAL), [asked(), refused(status)]);
    expect(effect(played, 'dial-leg')).toMatchObject({
      leg: { callId: LEG, to: TO, from: null },
      joins: { legId: LEG, format: { telephoneEvent: 101 } },
    });
    expect(effect(played, 'notify-agent')?.answer).toMatchObject({ state: 'accepted', status: null });
  });

  it.each([
    ['the organization may dial nothing', ROUTE, TO, 603],
    ['it may not dial this number', MAY_DIAL, '+819012345678', 603],
    ['the target is not a number', MAY_DIAL, 'sip:sales@pbx.example', 603],
    ['the carrier may have lost the call', MAY_DIAL, TO, 481],
  ] as const)('fails as before when %s', (_what, route, to, status) => {
    const played = playOn(talking(route), [asked({}, to), refused(status)]);
    expect(kinds(played.all)).not.toContain('dial-leg');
    expect(played.all).toContainEqual({
      do: 'notify-agent',
      answer: { type: 'transfer-progress', requestId: 't', state: 'failed', status },
    });
  });

  it('sends no REFER where the number says that its carrier refuses it, or with a briefing', () => {
    expect(kinds(playOn(talking(REFERLESS), [asked()]).effects)).toEqual(['dial-leg', 'notify-agent']);
    const briefing = { text: 'Kim', language: 'ENG' };
    expect(kinds(playOn(talking(MAY_DIAL), [asked({ briefing })]).effects)).toEqual(['dial-leg', 'notify-agent']);
    expect(effect(playOn(talking(ROUTE), [asked({ briefing })]), 'notify-agent')?.answer).toMatchObject({ code: 'BRIEFING_NOT_POSSIBLE' });
    // Without permission a REFER is all that is left.
    expect(kinds(playOn(talking({ ...REFERLESS, org: ROUTE.org }), [asked()]).effects)).toEqual(['refer']);
  });

  it('is one at a time', () => {
    expect(effect(playOn(dialling(), [asked()]), 'notify-agent')?.answer).toMatchObject({ code: 'TRANSFER_PENDING' });
  });
});

describe('the change of media to a second leg', () => {
  it('sends the carrier nothing while rtpengine keeps its side, and ends the agent', () => {
    const played = playOn(dialling(), [ANSWERED, offered(OUTSIDE, 1), over(1)]);
    expect(kinds(played.all)).not.toContain('reinvite');
    expect(kinds(played.effects)).toEqual(['close-leg', 'start-timer', 'notify-call', 'keep']);
    expect(played.state).toMatchObject({ local: { rtpPort: 35_000 }, second: { phase: 'joined' }, agent: { isConnected: false } });
  });

  it('[3264 §8] sends a re-INVITE where rtpengine has another key for the carrier', () => {
    const played = playOn(dialling(), [ANSWERED, offered(OTHER_OUTSIDE, 1)]);
    expect(effect(played, 'reinvite')?.sdp).toContain('m=audio 50000 RTP/SAVP');
    const answered: CallEvent = { type: 'reinvite-answered', status: 200, sdp: ANSWER, retryAfterMs: 0, attempt: 1 };
    expect(playOn(played.state, [answered, over(1)]).state.second?.phase).toBe('joined');
  });

  it('[3261 §14.1] leaves the caller with the agent when its carrier refuses the re-INVITE', () => {
    const no: CallEvent = { type: 'reinvite-answered', status: 488, sdp: '', retryAfterMs: 0, attempt: 1 };
    const played = playOn(dialling(), [ANSWERED, offered(OTHER_OUTSIDE, 1), no]);
    expect(played.effects).toContainEqual({ do: 'notify-call', callId: LEG, event: { type: 'hangup', reason: 'PEER_HANGUP' } });
    expect(effect(played, 'notify-agent')?.answer).toMatchObject({ state: 'failed', status: 488, reason: 'MEDIA_LOST' });
    const back = playOn(played.state, [offered(OUTSIDE, 2), over(2)]);
    expect(back.state).toMatchObject({ name: 'Talking', second: null, local: { rtpPort: 20_000 }, agent: { isConnected: true } });
    // What the carrier refused is not what a refresh repeats.
    const refresh = playOn(back.state, [{ type: 'reoffered', requestId: 1, method: 'INVITE', sdp: offerSdp() }]);
    expect(effect(refresh, 'accept')?.sdp).toContain('m=audio 30000 RTP/SAVP');
  });

  it('makes another codec in a joined call refused, since the other carrier gets these packets', () => {
    const sdp = offerSdp({ payloads: '8', rtpmap: ['8 PCMA/8000'] });
    const played = playOn(joined(), [{ type: 'reoffered', requestId: 1, method: 'INVITE', sdp }]);
    expect(played.effects).toEqual([{ do: 'reject', requestId: 1, reason: 'NO_COMMON_CODEC' }]);
    const offered = playOn(joined(), [{ type: 'reoffered', requestId: 1, method: 'INVITE', sdp: '' }]);
    expect(effect(offered, 'accept')?.sdp).toContain('RTP/SAVP 0 101\r\n');
  });

  it('sends pings to a carrier whose media nobody watches', () => {
    const silent = playOn(joined(), [
      { type: 'timer', timer: 'held' },
      { type: 'pinged', isAnswered: false },
      { type: 'timer', timer: 'held' },
      { type: 'pinged', isAnswered: false },
    ]);
    expect(silent.state).toMatchObject({ name: 'Ended', reason: 'SESSION_EXPIRED' });
  });

  it('ignores events of the agent once it is gone', () => {
    for (const reason of ['AGENT_HANGUP', 'AGENT_LOST', 'MEDIA_TIMEOUT'] as const)
      expect(playOn(joined(), [{ type: 'hangup', reason }]).effects).toEqual([]);
  });
});

describe('the second leg', () => {
  const CONSULTING: CallEvent = { type: 'leg-consulting', callId: LEG };
  const LEFT: CallEvent = { type: 'leg-left' };
  const RINGS: CallEvent = { type: 'leg-ringing', callId: LEG };
  const ended = (callId = LEG): CallEvent => ({ type: 'leg-ended', callId, reason: 'BUSY', status: 486 });
  const step = (which: 'conference' | 'complete' | 'cancel'): CallEvent => ({ type: 'transfer-step', requestId: 's', step: which });
  const moved = (callId: string): CallEvent => ({ type: 'side-changed', callId, side: { ...SIDE, rtpPort: 36_000 } });

  const hangUp = (callId = LEG) => ({ do: 'notify-call', callId, event: { type: 'hangup', reason: 'PEER_HANGUP' } });
  const toldOf = (requestId: string, state: string, more: object = {}) => ({
    do: 'notify-agent',
    answer: { type: 'transfer-progress', requestId, state, status: null, ...more },
  });
  const ringBack = (isOn: boolean) => ({ do: 'ring-back', isOn });
  const failed = toldOf('t', 'failed', { status: 486, reason: 'BUSY' });

  /** A call in each phase. */
  const begun = (afterwards: LegRules['afterwards'] = 'end') => playOn(talking(REFERLESS), [asked({ afterwards })]).state;
  const consulting = () => playOn(begun(), [CONSULTING]).state;
  const joining = () => playOn(begun(), [ANSWERED]).state;
  const joinedUntil = (afterwards: LegRules['afterwards']) => playOn(begun(afterwards), [ANSWERED, offered(OUTSIDE, 1), over(1)]).state;
  const leaving = () => playOn(joinedUntil('go-on'), [ended()]).state;

  it('makes the caller hear ringback while it rings, and no longer', () => {
    expect(done(playOn(begun(), [RINGS]))).toEqual([ringBack(true)]);
    for (const state of [TALKING, consulting(), joining(), joined()]) expect(done(playOn(state, [RINGS]))).toEqual([]);
    expect(done(playOn(begun(), [{ type: 'leg-ringing', callId: 'another' }]))).toEqual([]);
    expect(playOn(begun(), [ANSWERED]).all).toContainEqual(ringBack(false));
  });

  it('lets the agent talk with the callee, once', () => {
    const played = playOn(begun(), [CONSULTING]);
    expect(done(played)).toEqual([ringBack(false), toldOf('t', 'answered')]);
    expect(played.state.second).toMatchObject({ phase: 'consulting', callId: LEG });
    for (const state of [played.state, joining(), joined()]) expect(done(playOn(state, [CONSULTING]))).toEqual([]);
  });

  it.each([
    ['consulting', CONSULTING],
    ['answered', ANSWERED],
  ])('is hung up when nobody waits for it any more and it is %s', (_what, event) => {
    for (const state of [TALKING, leaving()]) expect(done(playOn(state, [event]))).toEqual([hangUp()]);
    const played = playOn(begun(), [{ ...event, callId: 'another' }]);
    expect(done(played)).toEqual([hangUp('another')]);
    expect(played.state.second).toMatchObject({ phase: 'dialling' });
  });

  it.each([
    ['conference', [{ do: 'three-way' }, toldOf('s', 'accepted')], { phase: 'consulting' }],
    ['complete', [{ do: 'notify-call', callId: LEG, event: { type: 'briefed' } }, toldOf('s', 'accepted')], { phase: 'consulting' }],
    ['cancel', [hangUp(), toldOf('s', 'accepted')], null],
  ] as const)('takes the step %s while the agent talks with the callee', (which, effects, second) => {
    const played = playOn(consulting(), [step(which)]);
    expect(done(played)).toEqual(effects);
    expect(played.state).toMatchObject({ name: 'Talking', second });
  });

  it.each(['conference', 'complete', 'cancel'] as const)('refuses the step %s before and after', (which) => {
    for (const state of [TALKING, begun(), joining()]) {
      const played = playOn(state, [step(which)]);
      expect(done(played)).toEqual([
        {
          do: 'notify-agent',
          answer: expect.objectContaining({
            type: 'refused',
            requestId: 's',
            request: 'transfer',
            code: 'TRANSFER_NOT_ANSWERED',
          }) as unknown,
        },
      ]);
      expect(played.state.second).toEqual(state.second);
    }
  });

  it.each([
    ['rings', begun],
    ['talks with the agent', consulting],
  ])('leaves the caller with the agent when it ends while it %s', (_what, state) => {
    const played = playOn(state(), [ended()]);
    expect(done(played)).toEqual([ringBack(false), failed]);
    expect(played.state).toMatchObject({ name: 'Talking', second: null });
  });

  it('returns the media when it ends while the media moves', () => {
    const played = playOn(playOn(joining(), [offered(OUTSIDE, 1)]).state, [ended()]);
    expect(played.all).toContainEqual(failed);
    expect(played.state).toMatchObject({ name: 'Talking', second: { phase: 'leaving' }, wantedSide: { local: { rtpPort: 20_000 } } });
  });

  it('ends the call when it ends after both were joined', () => {
    const played = playOn(joinedUntil('end'), [ended()]);
    expect(played.state).toMatchObject({ name: 'Ended', reason: 'PEER_HANGUP', second: null });
    expect(kinds(played.effects)).toContain('bye');
    expect(played.effects).not.toContainEqual(hangUp());
  });

  it('may instead return the caller to the document, with a port pair again and without pings', () => {
    const played = playOn(joinedUntil('go-on'), [ended()]);
    expect(done(played)).toEqual([
      { do: 'reserve-leg' },
      { do: 'stop-timer', timer: 'held' },
      toldOf('t', 'ended', { status: 486, reason: 'BUSY' }),
    ]);
    expect(played.state).toMatchObject({ name: 'Talking', second: { phase: 'leaving' }, isLegDue: true });
    const back = playOn(played.state, [{ type: 'leg-reserved', local: { ...LOCAL, rtpPort: 22_000 }, agentSideKey: null }]);
    expect(back.state.wantedSide).toEqual({ local: { ...LOCAL, rtpPort: 22_000 }, key: null });
    expect(kinds(back.effects)).toEqual(['offer-to-carrier']);
  });

  it('has no effect when another call ends, or one that was left', () => {
    for (const state of [TALKING, joined(), leaving()]) {
      const played = playOn(state, [ended(state.second?.phase === 'leaving' ? LEG : 'another')]);
      expect(done(played)).toEqual([]);
      expect(played.state.second).toEqual(state.second);
    }
  });

  it.each([
    ['rings', begun, [ringBack(false), hangUp()], null],
    ['talks with the agent', consulting, [ringBack(false), hangUp()], null],
    ['is joined', joined, [hangUp(), { do: 'reserve-leg' }, { do: 'stop-timer', timer: 'held' }], { phase: 'leaving' }],
  ] as const)('is hung up for a new document while it %s', (_what, state, effects, second) => {
    const played = playOn(state(), [LEFT]);
    expect(done(played)).toEqual(effects);
    expect(played.state).toMatchObject({ name: 'Talking', second });
    expect(done(playOn(played.state, [LEFT]))).toEqual([]);
  });

  it('is hung up for a new document while the media moves, which returns', () => {
    const played = playOn(joining(), [LEFT]);
    expect(played.effects).toContainEqual(hangUp());
    expect(played.state).toMatchObject({ second: { phase: 'leaving' }, wantedSide: { local: { rtpPort: 20_000 } } });
    expect(done(playOn(TALKING, [LEFT]))).toEqual([]);
  });

  it.each([
    ['is joined', joined],
    ['is being joined', joining],
  ])('is followed to another relay while it %s', (_what, state) => {
    expect(playOn(state(), [moved(LEG)]).state.wantedSide).toMatchObject({ local: { rtpPort: 36_000 } });
    expect(playOn(state(), [moved('another')]).state.wantedSide?.local.rtpPort).not.toBe(36_000);
  });

  it('is followed when it reports its media again, without another message', () => {
    const again: CallEvent = { type: 'leg-answered', callId: LEG, side: { ...SIDE, rtpPort: 36_000 } };
    const played = playOn(joined(), [again]);
    expect(played.state).toMatchObject({ second: { phase: 'joined' }, wantedSide: { local: { rtpPort: 36_000 } } });
    expect(kinds(done(played))).toEqual(['offer-to-carrier']);
  });

  it('gets packets with the key of its relay, under the tag of its own', () => {
    const crypto = { tag: '7', suite: 'AES_CM_128_HMAC_SHA1_80', inline: OTHER_KEY, mki: null };
    const side = { ...SIDE, crypto };
    const keyOf = (state: CallState) => playOn(state, [{ type: 'leg-answered', callId: LEG, side }]).state.wantedSide?.key;
    expect(keyOf(begun())).toEqual({ tag: '1', inline: OTHER_KEY, mki: null });
    const own = { ...SIDE, crypto: { ...crypto, tag: '4', inline: KEY } };
    expect(keyOf({ ...begun(), agentFacing: own })).toEqual({ tag: '4', inline: OTHER_KEY, mki: null });
  });

  it('is not dialled where the call has no media to join', () => {
    const played = playOn({ ...talking(REFERLESS), agentFacing: null }, [asked()]);
    expect(done(played)).toEqual([toldOf('t', 'failed')]);
    expect(played.state.second).toBeNull();
  });

  it('leaves a carrier that holds the call with its pings when it ends', () => {
    const held = offerSdp({ payloads: '0 101', direction: 'sendonly' });
    const holding = playOn(joinedUntil('go-on'), [
      { type: 'reoffered', requestId: 1, method: 'INVITE', sdp: held },
      { type: 'relay-offered', sdp: INSIDE, attempt: 2 },
      { type: 'relay-answered', sdp: OUTSIDE, attempt: 2 },
    ]);
    expect(holding.state.session?.media.isHeld).toBe(true);
    expect(kinds(done(playOn(holding.state, [ended()])))).toEqual(['reserve-leg', 'notify-agent']);
  });

  it('is reported once when it ends before the carrier refuses its media', () => {
    const over = playOn(joining(), [offered(OTHER_OUTSIDE, 1), ended()]);
    const no: CallEvent = { type: 'reinvite-answered', status: 488, sdp: '', retryAfterMs: 0, attempt: 1 };
    const played = playOn(over.state, [no]);
    expect(over.all).toContainEqual(failed);
    expect(kinds(played.all)).not.toContain('notify-agent');
    expect(kinds(played.all)).not.toContain('notify-call');
  });

  it('does not prevent the API from ending a joined call', () => {
    expect(playOn(joined(), [{ type: 'hangup', reason: 'API_STOPPED' }]).state).toMatchObject({ name: 'Ended', reason: 'API_STOPPED' });
  });

  it('is not followed when it rings, or was left', () => {
    for (const state of [begun(), consulting(), leaving()]) expect(playOn(state, [moved(LEG)]).state.wantedSide).toEqual(state.wantedSide);
  });

  it('is hung up when this call ends first, unless it was left', () => {
    const bye: CallEvent = { type: 'bye', reason: 'CALLER_HANGUP' };
    for (const state of [begun(), consulting(), joined()]) expect(done(playOn(state, [bye]))).toContainEqual(hangUp());
    for (const state of [TALKING, leaving()]) expect(done(playOn(state, [bye]))).not.toContainEqual(hangUp());
  });

  it('continues in another process only when it was joined', () => {
    expect(resumable(joined()).second).toMatchObject({ phase: 'joined', callId: LEG });
    for (const state of [begun(), consulting(), joining(), leaving()]) expect(resumable(state).second).toBeNull();
  });

  it('counts as ended by a restart when this gateway does not have it', () => {
    expect(peerMissing(joined())).toEqual({ type: 'leg-ended', callId: LEG, reason: 'GATEWAY_RESTARTED', status: null });
    const facts = { ...LATE_FACTS, joins: { callId: 'c', legId: LEG, side: SIDE, format: FORMAT, briefing: null } };
    expect(peerMissing({ ...TALKING, facts })).toEqual({ type: 'hangup', reason: 'PEER_HANGUP' });
  });
});

describe('a second leg by itself', () => {
  const joins = { callId: 'c', legId: LEG, side: SIDE, briefing: null };
  const reserved: CallEvent = { type: 'leg-reserved', local: LOCAL, agentSideKey: null };
  const leg = (events: readonly CallEvent[], briefing: Briefing | null = null) =>
    playOn(startCall({ ...LATE_FACTS, joins: { ...joins, format: FORMAT, briefing } }, 60_000), [
      { type: 'placed' },
      PERMITTED,
      reserved,
      ...events,
    ]);
  const sdp = offerSdp({ payloads: '8 96', rtpmap: ['8 PCMA/8000', '96 telephone-event/8000'] });

  it('offers its trunk the format of the first call, and needs no agent', () => {
    const played = leg([offered(OUTSIDE, 0)]);
    expect(played.all).toContainEqual(
      expect.objectContaining({ do: 'offer-to-carrier', sdp: expect.stringContaining('m=audio 20000 RTP/AVP 8 96') as string }),
    );
    expect(effect(played, 'dial')?.sdp).toContain('RTP/SAVP 8 96\r\n');
    const answered = playOn(played.state, [{ type: 'dial-answered', sdp }, over(0)]);
    for (const kind of ['connect-agent', 'open-leg', 'start-leg']) expect(kinds(answered.all)).not.toContain(kind);
    expect(kinds(answered.effects)).toEqual(['acknowledge', 'offer-to-carrier']);
    expect(effect(answered, 'offer-to-carrier')?.sdp).toContain('m=audio 35000 RTP/AVP 8 96');
    expect(answered.state.name).toBe('Talking');
    const there = playOn(answered.state, [offered(OUTSIDE, 1), over(1)]);
    expect(kinds(there.effects)).toEqual(['close-leg', 'start-timer', 'notify-call', 'keep']);
    expect(effect(there, 'notify-call')?.event).toMatchObject({ type: 'leg-answered', callId: LEG });
  });

  describe('[3960] with early media', () => {
    const rings = (body: string, status = 183): CallEvent => ({ type: 'dial-proceeding', status, sdp: body });
    const ringing = (more: readonly CallEvent[] = [], briefing: Briefing | null = null) =>
      leg([offered(OUTSIDE, 0), rings(sdp), ...more], briefing);
    const OPENED: CallEvent = { type: 'leg-opened' };
    const CONNECTED: CallEvent = { type: 'agent-connected' };
    const answered = (port: number): CallEvent => ({ type: 'dial-answered', sdp: sdp.replace(/m=audio \d+/, `m=audio ${String(port)}`) });

    it('passes it to the caller, and sends nothing to the callee', () => {
      const played = ringing([over(0), OPENED, CONNECTED]);
      expect(kinds(played.all).slice(-4)).toEqual(['notify-call', 'answer-from-carrier', 'open-leg', 'connect-agent']);
      expect(played.all.at(-1)).toEqual({ do: 'connect-agent', choice: 'early-media' });
      expect(played.state).toMatchObject({ name: 'Dialling', agent: { isConnected: false } });
    });

    it('takes the first early dialog that has a description, until another answers', () => {
      const played = ringing([rings(sdp), rings('', 180)]);
      expect(kinds(played.all).filter((kind) => kind === 'answer-from-carrier')).toHaveLength(1);
      // What rtpengine said of the first comes late.
      const other = playOn(played.state, [answered(42_000), over(0)]);
      expect(other.all).toContainEqual({
        do: 'answer-from-carrier',
        media: expect.objectContaining({ port: 42_000 }) as unknown,
        attempt: 1,
      });
      expect(kinds(other.all)).not.toContain('acknowledge');
      expect(kinds(playOn(other.state, [over(1)]).effects)).toEqual(['acknowledge', 'offer-to-carrier']);
    });

    it.each([
      ['an invalid answer', leg([offered(OUTSIDE, 0), rings('garbage')])],
      ['a refusal of rtpengine', ringing([{ type: 'failed', reason: 'MEDIA_UNAVAILABLE', attempt: 0 }])],
      ['a refusal of the media thread', ringing([over(0), { type: 'failed', reason: 'AGENT_UNAVAILABLE', attempt: null }])],
      ['the death of its thread', ringing([over(0), OPENED, { type: 'leg-lost' }])],
    ])('keeps ringing when early media fails by %s', (_what, played) => {
      expect(played.state.name).toBe('Dialling');
      const { attempt } = playOn(played.state, [answered(41_000)]).state;
      expect(kinds(playOn(played.state, [answered(41_000), over(attempt)]).effects)).toEqual(['acknowledge', 'offer-to-carrier']);
    });

    it('changes the leg that it opened to the answer, before the briefing', () => {
      const early = ringing([over(0), OPENED, CONNECTED], { text: 'Kim', language: 'ENG' });
      const played = playOn(early.state, [answered(42_000), CONNECTED]);
      expect(kinds(played.all)).toEqual(['stop-timer', 'start-timer', 'connect-agent', 'answer-from-carrier']);
      const ready = playOn(played.state, [over(1)]);
      expect(kinds(ready.effects)).toEqual(['change-leg', 'acknowledge', 'start-leg', 'keep']);
    });

    it('waits for the leg that it opened', () => {
      const early = ringing([over(0)], { text: 'Kim', language: 'ENG' });
      const played = playOn(early.state, [answered(42_000), CONNECTED, over(1)]);
      expect(played.effects).toEqual([]);
      expect(kinds(playOn(played.state, [OPENED]).effects)).toEqual(['change-leg', 'acknowledge', 'start-leg', 'keep']);
    });

    it('passes none on in a call that an agent talks in', () => {
      const played = playOn(startCall(LATE_FACTS, 60_000), [
        { type: 'placed' },
        PERMITTED,
        reserved,
        offered(OUTSIDE, 0),
        rings(offerSdp()),
      ]);
      expect(kinds(played.effects)).toEqual([]);
    });
  });

  describe('with a briefing', () => {
    const TALKS: readonly CallEvent[] = [
      offered(OUTSIDE, 0),
      { type: 'dial-answered', sdp },
      over(0),
      { type: 'leg-opened' },
      { type: 'agent-connected' },
    ];
    const briefed = (briefing: Briefing = { text: 'Kim', language: 'ENG' }) => leg(TALKS, briefing);
    const moved: CallEvent = { type: 'side-changed', callId: LEG, side: { ...SIDE, rtpPort: 36_000 } };
    const portOf = ({ state }: Played) => state.wantedSide?.local.rtpPort;

    it('notifies the first call that the agent may talk, where the agent briefs', () => {
      const introduced = { do: 'notify-call', callId: 'c', event: { type: 'leg-consulting', callId: LEG } };
      expect(briefed('by-agent').all).toContainEqual(introduced);
      expect(kinds(briefed().all)).not.toContain('notify-call');
      expect(kinds(leg(TALKS.slice(0, 3)).all)).not.toContain('notify-call');
    });

    it.each<readonly [string, CallEvent]>([
      ['the first call says so', { type: 'briefed' }],
      ['the speech has ended', { type: 'hangup', reason: 'AGENT_HANGUP' }],
    ])('joins the caller once %s, and not before', (_what, event) => {
      expect(portOf(briefed())).toBeUndefined();
      const played = playOn(briefed().state, [event]);
      expect(portOf(played)).toBe(35_000);
      expect(kinds(played.effects)).toEqual(['offer-to-carrier']);
    });

    it('joins the caller where the first call is by then, before and after the briefing', () => {
      const before = playOn(briefed().state, [moved]);
      expect([portOf(before), done(before)]).toEqual([undefined, []]);
      expect(portOf(playOn(before.state, [{ type: 'briefed' }]))).toBe(36_000);
      expect(portOf(playOn(briefed().state, [{ type: 'briefed' }, moved]))).toBe(36_000);
      const joined = playOn(leg(TALKS.slice(0, 3)).state, [offered(OUTSIDE, 1), over(1), moved]);
      expect(portOf(joined)).toBe(36_000);
    });

    it('does not follow another call, and joins nothing in a call of its own', () => {
      expect(portOf(playOn(briefed().state, [{ ...moved, callId: 'another' }, { type: 'briefed' }]))).toBe(35_000);
      for (const state of [TALKING, leg(TALKS.slice(0, 1), 'by-agent').state]) {
        const played = playOn(state, [{ type: 'briefed' }]);
        expect([done(played), played.state]).toEqual([[], state]);
      }
    });
  });

  it.each<readonly [string, CallEvent, string, number | null]>([
    ['its trunk refused it', { type: 'dial-refused', status: 486, isLocal: false }, 'BUSY', 486],
    ['its relay is gone', { type: 'failed', reason: 'MEDIA_UNAVAILABLE', attempt: 0 }, 'MEDIA_UNAVAILABLE', null],
  ])('notifies the first call that %s', (_what, event, reason, status) => {
    const told = { do: 'notify-call', callId: 'c', event: { type: 'leg-ended', callId: LEG, reason, status } };
    expect(leg([...(status === null ? [] : [offered(OUTSIDE, 0)]), event]).all).toContainEqual(told);
  });

  it('[3264 §6] ends when it answers in another format, and notifies the first call', () => {
    const played = playOn(leg([offered(OUTSIDE, 0)]).state, [{ type: 'dial-answered', sdp: ANSWER }]);
    expect(kinds(played.effects).slice(-4)).toEqual(['acknowledge', 'bye', 'notify-call', 'finish']);
    expect(effect(played, 'notify-call')?.event).toMatchObject({ type: 'leg-ended', callId: LEG, reason: 'BAD_ANSWER' });
  });
});
