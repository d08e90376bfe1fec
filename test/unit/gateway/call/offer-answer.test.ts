import { describe, expect, it } from 'vitest';
import { resumable } from '../../../../src/gateway/call/machine.js';
import type { CallEvent, CallState } from '../../../../src/gateway/call/state.js';
import type { Reason } from '../../../../src/gateway/model/reasons.js';
import {
  ANSWER,
  CALL,
  effect,
  FACTS,
  INSIDE,
  kinds,
  LATE_CALL,
  LATE_FACTS,
  OTHER_INSIDE,
  OTHER_OUTSIDE,
  OUTSIDE,
  play,
  playOn,
  RELAY_LOST,
  RELAY_LOST_FOR_GOOD,
  type Played,
} from '../../../support/call-machine.js';
import { KEY, offerSdp, OTHER_KEY } from '../../../support/sdp.js';

const talking = play(CALL).state;
const HELD = offerSdp({ direction: 'sendonly' });
const MOVED = offerSdp({ address: '198.51.100.7', port: 44_000 });
const NEXT = (sdp: string, requestId = 1, method: 'INVITE' | 'UPDATE' = 'INVITE'): CallEvent => ({
  type: 'reoffered',
  requestId,
  method,
  sdp,
});
const MOVED_INSIDE = { address: '127.0.0.1', rtpPort: 51_000, rtcpPort: 51_001, crypto: { tag: '1', inline: KEY, mki: null } };
const ACK = (sdp = ''): CallEvent => ({ type: 'acknowledged', sdp });

/** rtpengine takes the change. */
const RELAYED: readonly CallEvent[] = [
  { type: 'relay-offered', sdp: INSIDE, attempt: 1 },
  { type: 'relay-answered', sdp: OUTSIDE, attempt: 1 },
];

const change = (sdp: string, before: CallState = talking): Played => playOn(before, [NEXT(sdp), ...RELAYED]);
const MOVING: readonly CallEvent[] = [
  RELAY_LOST,
  { type: 'relay-offered-to-carrier', sdp: OTHER_OUTSIDE, attempt: 1 },
  { type: 'reinvite-answered', status: 200, sdp: ANSWER, retryAfterMs: 0, attempt: 1 },
  { type: 'relay-answered-from-carrier', sdp: OTHER_INSIDE, attempt: 1 },
];

describe('a change of the session by the carrier', () => {
  it('[3264 §8] goes to rtpengine and gets an answer with the next o= version when our side changed', () => {
    const held = change(HELD);
    expect(effect(held, 'accept')?.sdp).toMatch(/^o=trunkline 7 2 /m);
    expect(effect(held, 'accept')?.sdp).toContain('a=recvonly\r\n');
    expect(kinds(held.effects)).toEqual(['direct-leg', 'start-timer', 'accept', 'keep']);
  });

  it('[3264 §8] keeps the version of o= when only the carrier moved', () => {
    const moved = change(MOVED);
    expect(effect(moved, 'accept')?.sdp).toBe(talking.session?.sentSdp);
    expect(playOn(talking, [NEXT(MOVED)]).effects).toContainEqual(
      expect.objectContaining({ do: 'offer-relay', media: expect.objectContaining({ address: '198.51.100.7', port: 44_000 }) as unknown }),
    );
  });

  it('gets the same answer, byte by byte, when the offer is unchanged, without rtpengine', () => {
    const again = playOn(talking, [NEXT(offerSdp())]);
    expect(again.effects).toEqual([{ do: 'accept', requestId: 1, sdp: talking.session?.sentSdp }]);
    const held = change(HELD).state;
    expect(playOn(held, [NEXT(HELD, 2)]).effects).toEqual([{ do: 'accept', requestId: 2, sdp: held.session?.sentSdp }]);
  });

  it('resumes a call from hold, with another version', () => {
    const resumed = playOn(change(HELD).state, [
      NEXT(offerSdp(), 2),
      { type: 'relay-offered', sdp: INSIDE, attempt: 2 },
      { type: 'relay-answered', sdp: OUTSIDE, attempt: 2 },
    ]);
    expect(resumed.effects).toContainEqual({ do: 'direct-leg', direction: 'sendrecv', isHeld: false });
    expect(effect(resumed, 'accept')?.sdp).toMatch(/^o=trunkline 7 3 /m);
  });

  it('[3311 §5.2] may be an UPDATE with an offer; one without an offer changes nothing', () => {
    expect(kinds(playOn(talking, [NEXT(HELD, 1, 'UPDATE'), ...RELAYED]).effects)).toContain('accept');
    const refresh = playOn(talking, [NEXT('', 1, 'UPDATE')]);
    expect(refresh.effects).toEqual([{ do: 'accept', requestId: 1, sdp: null }]);
    expect(refresh.state).toBe(talking);
    // Not even one that is not agreed yet.
    expect(playOn(play(LATE_CALL.slice(0, 5), LATE_FACTS).state, [NEXT('', 1, 'UPDATE')]).effects).toEqual(refresh.effects);
  });

  it.each([
    ['a codec that is not ours', offerSdp({ payloads: '9 101' }), 'NO_COMMON_CODEC'],
    ['no SRTP', offerSdp({ profile: 'RTP/AVP', crypto: [] }), 'SRTP_REQUIRED'],
    ['an IPv6 address', offerSdp().replaceAll('IN IP4 127.0.0.1', 'IN IP6 2001:db8::7'), 'ADDRESS_FAMILY_UNSUPPORTED'],
    ['T.38', 'v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=image 5000 udptl t38\r\n', 'BAD_SDP'],
  ])('to %s is refused, and the call continues as it was', (_what, sdp, reason) => {
    const refused = playOn(talking, [NEXT(sdp)]);
    expect(refused.effects).toEqual([{ do: 'reject', requestId: 1, reason }]);
    expect(refused.state).toEqual(talking);
  });

  it('[3261 §14.2] gets 500 with Retry-After when it comes before the first is answered', () => {
    const second = playOn(talking, [NEXT(HELD), NEXT(MOVED, 2)]);
    expect(second.effects).toEqual([{ do: 'reject', requestId: 2, reason: 'EXCHANGE_PENDING' }]);
    const third = playOn(talking, [NEXT(HELD), RELAYED[0]!, NEXT(MOVED, 2, 'UPDATE')]);
    expect(third.effects).toEqual([{ do: 'reject', requestId: 2, reason: 'EXCHANGE_PENDING' }]);
  });

  it('gets 500 when rtpengine fails, and the call continues as it was', () => {
    const failed = playOn(talking, [NEXT(HELD), { type: 'failed', reason: 'MEDIA_UNAVAILABLE', attempt: 1 }]);
    expect(failed.effects).toEqual([{ do: 'reject', requestId: 1, reason: 'INTERNAL_ERROR' }, { do: 'keep' }]);
    expect(failed.state).toEqual({ ...talking, attempt: 1 });
  });

  it('never gets a key that rtpengine did not give', () => {
    const failed = playOn(talking, [NEXT(HELD), RELAYED[0]!, { type: 'relay-answered', sdp: INSIDE, attempt: 1 }]);
    expect(failed.effects).toContainEqual({ do: 'reject', requestId: 1, reason: 'SRTP_SUITE_UNSUPPORTED' });
  });

  it('is accepted before the ACK of the 200 too, since the session is agreed', () => {
    const awaiting = play(CALL.slice(0, 6)).state;
    const held = change(HELD, awaiting);
    expect(kinds(held.effects)).toContain('accept');
    expect(playOn(held.state, [ACK()]).state.name).toBe('Talking');
    expect(kinds(playOn(held.state, [ACK()]).effects)).toEqual(['start-leg', 'direct-leg', 'start-timer', 'keep']);
  });

  it('gets an answer, once, when the call ends while it waits for rtpengine', () => {
    for (const end of [
      { type: 'bye', reason: 'CALLER_HANGUP' },
      { type: 'hangup', reason: 'AGENT_HANGUP' },
    ] as const) {
      const ended = playOn(talking, [NEXT(HELD), end]);
      expect(ended.effects.filter((one) => one.do === 'reject')).toEqual([{ do: 'reject', requestId: 1, reason: 'NO_DIALOG' }]);
      expect(playOn(ended.state, RELAYED).all).toEqual([]);
    }
    expect(playOn(play([...CALL, { type: 'bye', reason: 'CALLER_HANGUP' }]).state, [NEXT(HELD)]).effects).toEqual([
      { do: 'reject', requestId: 1, reason: 'NO_DIALOG' },
    ]);
  });

  it('moves the endpoint’s leg when rtpengine moved its inside', () => {
    const moved = playOn(talking, [NEXT(MOVED), { type: 'relay-offered', sdp: OTHER_INSIDE, attempt: 1 }, RELAYED[1]!]);
    expect(effect(moved, 'change-leg')?.agentFacing).toEqual(MOVED_INSIDE);
  });
});

describe('a carrier that holds the call', () => {
  const held = change(HELD).state;
  const tick: CallEvent = { type: 'timer', timer: 'held' };
  const probed = (isAnswered: boolean): CallEvent => ({ type: 'pinged', isAnswered });

  it('gets a ping each 60 s as long as it holds', () => {
    expect(change(HELD).effects).toContainEqual({ do: 'start-timer', timer: 'held', delayMs: 60_000 });
    expect(playOn(held, [tick]).effects).toEqual([{ do: 'ping', isHeld: true }]);
    expect(playOn(held, [tick, probed(true)]).effects).toEqual([{ do: 'start-timer', timer: 'held', delayMs: 60_000 }]);
    expect(playOn(talking, [tick]).effects).toEqual([]);
    expect(playOn(talking, [probed(false), probed(false)]).state).toEqual(talking);
  });

  it('gets BYE when it did not answer two pings in a row', () => {
    const silent = playOn(held, [tick, probed(false), tick, probed(false)]);
    expect(silent.state).toMatchObject({ name: 'Ended', reason: 'SESSION_EXPIRED' });
    expect(silent.effects).toContainEqual({ do: 'bye', reason: 'SESSION_EXPIRED' });
    expect(playOn(held, [tick, probed(false), tick, probed(true), tick, probed(false)]).state.name).toBe('Talking');
  });
});

describe('a change of what the packets carry', () => {
  const changes = [
    ['the codec', '8 101', ['8 PCMA/8000', '101 telephone-event/8000'], { codec: { name: 'PCMA', payloadType: 8 }, telephoneEvent: 101 }],
    ['the payload type', '97 101', ['97 PCMU/8000', '101 telephone-event/8000'], { codec: { name: 'PCMU', payloadType: 97 } }],
    ['the type of events', '0 96', ['0 PCMU/8000', '96 telephone-event/8000'], { telephoneEvent: 96 }],
    ['no telephone-event', '0', ['0 PCMU/8000'], { telephoneEvent: null }],
  ] as const;
  it.each(changes)('[3264 §8.3.2] to %s reaches rtpengine, the endpoint and the answer', (_what, payloads, rtpmap, media) => {
    const next = change(offerSdp({ payloads, rtpmap }));
    expect(effect(next, 'change-leg')?.media).toMatchObject(media);
    expect(effect(next, 'accept')?.sdp).toContain(`RTP/SAVP ${payloads}\r\n`);
    expect(effect(next, 'accept')?.sdp).toMatch(/^o=trunkline 7 2 /m);
    const answer = expect.stringContaining(`m=audio 20000 RTP/AVP ${payloads}\r\n`) as string;
    expect(next.all).toContainEqual({ do: 'answer-relay', attempt: 1, sdp: answer });
  });

  it('[3264 §6.1] to recvonly reaches the endpoint, and counts as no hold', () => {
    const listens = change(offerSdp({ direction: 'recvonly' }));
    expect(listens.effects).toContainEqual({ do: 'direct-leg', direction: 'recvonly', isHeld: null });
    const first = play(CALL, { ...FACTS, sdp: offerSdp({ direction: 'recvonly' }) });
    expect(first.effects).toContainEqual({ do: 'direct-leg', direction: 'recvonly', isHeld: null });
  });
});

describe('a re-INVITE without an offer', () => {
  const offered = playOn(talking, [NEXT('')]);
  const { sentSdp, version } = offered.state.session!;
  /** As before, but for the description that we sent. */
  const unchanged = { ...talking, session: { ...talking.session, sentSdp, version } };

  it('[3261 §14.2] gets the offer of a new call with the current codec first; the same in the ACK changes nothing', () => {
    expect(effect(offered, 'accept')).toEqual({ do: 'accept', requestId: 1, sdp: sentSdp });
    expect(sentSdp).toMatch(/^o=trunkline 7 2 .*\r\n[\s\S]*m=audio 30000 RTP\/SAVP 0 8 101\r\n/m);
    const same = playOn(offered.state, [ACK(offerSdp())]);
    expect(kinds(same.effects)).toEqual(['keep']);
    expect(same.state).toEqual(unchanged);
  });

  it('[3261 §14.2] changes codec and telephone-event to those of its answer', () => {
    const plain = play(CALL, { ...FACTS, sdp: offerSdp({ payloads: '8', rtpmap: ['8 PCMA/8000'] }) }).state;
    const again = playOn(plain, [NEXT('')]);
    expect(effect(again, 'accept')?.sdp).toContain('m=audio 30000 RTP/SAVP 8 0 101\r\n');
    const other = playOn(again.state, [ACK(ANSWER)]);
    expect(effect(other, 'offer-relay')?.media).toMatchObject({ codec: { name: 'PCMU', payloadType: 0 }, telephoneEvent: 101 });
    const done = playOn(other.state, RELAYED);
    expect(effect(done, 'change-leg')?.media.codec.name).toBe('PCMU');
    expect(done.state).toMatchObject({ name: 'Talking', session: { media: { codec: { name: 'PCMU' } } } });
  });

  it('[3264 §8.3.2] keeps the payload types that the call has', () => {
    const mapped = { payloads: '101 96', rtpmap: ['101 PCMU/8000', '96 telephone-event/8000'] };
    const call = play(CALL, { ...FACTS, sdp: offerSdp(mapped) }).state;
    expect(effect(playOn(call, [NEXT('')]), 'accept')?.sdp).toContain('m=audio 30000 RTP/SAVP 101 8 96\r\n');
    const mute = play(CALL, { ...FACTS, sdp: offerSdp({ ...mapped, payloads: '101' }) }).state;
    expect(effect(playOn(mute, [NEXT('')]), 'accept')?.sdp).toContain('m=audio 30000 RTP/SAVP 101 8\r\n');
  });

  it('[6337 §5.2.5] opens all directions of a call on hold, so that the carrier can take it back', () => {
    const held = change(HELD).state;
    const again = playOn(held, [NEXT('', 2)]);
    expect(effect(again, 'accept')?.sdp).toMatch(/^o=trunkline 7 3 /m);
    expect(effect(again, 'accept')?.sdp).toContain('a=sendrecv\r\n');
    const back = playOn(again.state, [
      ACK(ANSWER),
      { type: 'relay-offered', sdp: INSIDE, attempt: 2 },
      { type: 'relay-answered', sdp: OUTSIDE, attempt: 2 },
    ]);
    expect(back.effects).toEqual([
      { do: 'direct-leg', direction: 'sendrecv', isHeld: false },
      { do: 'stop-timer', timer: 'held' },
      { do: 'keep' },
    ]);
    expect(back.state.session).toMatchObject({ version: 3, media: { isHeld: false } });
  });

  it('passes a changed address in the ACK to rtpengine', () => {
    const moved = playOn(offered.state, [ACK(ANSWER.replace('m=audio 40000', 'm=audio 46000'))]);
    expect(effect(moved, 'offer-relay')?.media.port).toBe(46_000);
    expect(playOn(moved.state, RELAYED).effects).toEqual([{ do: 'keep' }]);
  });

  it('leaves the session as it was when its ACK has no answer', () => {
    expect(playOn(offered.state, [ACK()]).state).toEqual(unchanged);
  });

  it('ends the call with BAD_ANSWER when its ACK has an invalid answer', () => {
    expect(playOn(offered.state, [ACK(ANSWER.replace('a=crypto:1 ', 'a=crypto:9 '))]).state).toMatchObject({
      name: 'Ended',
      reason: 'BAD_ANSWER',
    });
  });

  it('makes another change before the ACK get 491', () => {
    expect(playOn(offered.state, [NEXT(HELD, 2)]).effects).toEqual([{ do: 'reject', requestId: 2, reason: 'REQUEST_PENDING' }]);
    expect(playOn(offered.state, [NEXT('', 2, 'UPDATE')]).effects).toEqual([{ do: 'accept', requestId: 2, sdp: null }]);
  });

  it('also works in a call whose first INVITE had no offer', () => {
    const late = play(LATE_CALL, LATE_FACTS).state;
    const again = playOn(late, [NEXT('')]);
    expect(effect(again, 'accept')?.sdp).toContain('m=audio 30000 RTP/SAVP 0 8 101\r\n');
    expect(playOn(again.state, [ACK(ANSWER)]).state.name).toBe('Talking');
  });
});

describe('[4028 §7.4] a re-INVITE that refreshes the session', () => {
  const DUE: CallEvent = { type: 'refresh-due' };
  const answered = (status: number, sdp = '', attempt = 1): CallEvent => ({
    type: 'reinvite-answered',
    status,
    sdp,
    retryAfterMs: 0,
    attempt,
  });

  it('sends the agreed offer, and changes nothing when the answer is the same', () => {
    const out = playOn(talking, [DUE]);
    expect(out.effects).toEqual([{ do: 'reinvite', sdp: talking.session?.sentSdp, attempt: 1 }]);
    const done = playOn(out.state, [answered(200, talking.session?.carrierSdp)]);
    expect([kinds(done.effects), done.state.exchange.name]).toEqual([['keep'], 'Idle']);
    expect(done.state.session).toEqual(talking.session);
  });

  it.each([408, 422, 488, 491, 500])('leaves the call as it is after %i', (status) => {
    const { state, effects } = playOn(talking, [DUE, answered(status)]);
    expect([kinds(effects), state.name, state.exchange.name]).toEqual([['keep'], 'Talking', 'Idle']);
  });

  it('passes another address of the carrier in the answer to rtpengine', () => {
    const { state, effects } = playOn(talking, [DUE, answered(200, MOVED)]);
    expect([kinds(effects), state.exchange.name]).toEqual([['stop-timer', 'offer-relay'], 'Offering']);
  });

  it('waits for an exchange, and makes others wait', () => {
    expect(playOn(talking, [NEXT(HELD), DUE]).effects).toEqual([]);
    const refused = playOn(talking, [DUE, NEXT(HELD)]);
    expect(effect(refused, 'reject')).toMatchObject({ reason: 'REQUEST_PENDING' });
    const lost = playOn(talking, [DUE, RELAY_LOST, answered(200, talking.session?.carrierSdp)]);
    expect(kinds(lost.effects)).toContain('leave-relay');
    const moved = playOn(talking, [DUE, RELAY_LOST, answered(200, MOVED)]);
    expect(kinds(moved.effects)).toContain('leave-relay');
    expect(moved.state.session?.carrierSdp).toBe(MOVED);
  });
});

describe('a call of another host', () => {
  const RESERVED: CallEvent = {
    type: 'leg-reserved',
    local: { address: '127.0.0.3', rtpPort: 61_000, rtcpPort: 61_001 },
    agentSideKey: null,
  };
  const attempt = 2;
  const invited = playOn(resumable(talking), [RESERVED, { type: 'relay-offered-to-carrier', sdp: OTHER_OUTSIDE, attempt }]);

  it('gets a relay and a leg here, by a re-INVITE with an o= above any version of its last owner', () => {
    expect(kinds(invited.all)).toEqual(['leave-relay', 'offer-to-carrier', 'reinvite']);
    const [, offer] = invited.all;
    expect(offer).toMatchObject({ sdp: expect.stringContaining('m=audio 61000 ') as unknown });
    expect(effect(invited, 'reinvite')?.sdp).toMatch(/^o=trunkline 7 11 /m);
    const moved = playOn(invited.state, [
      { type: 'reinvite-answered', status: 200, sdp: ANSWER, retryAfterMs: 0, attempt },
      { type: 'relay-answered-from-carrier', sdp: OTHER_INSIDE, attempt },
    ]);
    expect(effect(moved, 'open-leg')).toMatchObject({ agentFacing: { rtpPort: 51_000 }, reserved: { local: { rtpPort: 61_000 } } });
    const opened = playOn(moved.state, [{ type: 'leg-opened' }]);
    expect(kinds(opened.effects)).toEqual(['start-leg', 'keep']);
    expect(opened.state).toMatchObject({ name: 'Talking', isLegDue: false, exchange: { name: 'Idle' } });
  });

  it('gets 15 attempts, one each 2 s, when its carrier cannot be reached yet', () => {
    const unreached: CallEvent = { type: 'reinvite-answered', status: 503, sdp: '', retryAfterMs: 0, attempt };
    const tried = playOn(
      invited.state,
      Array.from({ length: 15 }, () => [unreached, { type: 'timer', timer: 'reinvite' } as const]).flat(),
    );
    expect(tried.all.slice(0, 2)).toEqual([
      { do: 'start-timer', timer: 'reinvite', delayMs: 2_000 },
      expect.objectContaining({ do: 'reinvite' }),
    ]);
    expect(tried.state.exchange.name).toBe('Inviting');
    expect(playOn(tried.state, [unreached]).state).toMatchObject({ name: 'Ended', reason: 'MEDIA_LOST' });
    expect(playOn(invited.state, [{ ...unreached, status: 481 }]).state).toMatchObject({ name: 'Ended', reason: 'MEDIA_LOST' });
  });
});

const reinviteAnswered = (status: number, sdp: string): CallEvent => ({
  type: 'reinvite-answered',
  status,
  sdp,
  retryAfterMs: 0,
  attempt: 1,
});

describe('a relay that is lost', () => {
  it('moves the call to another one by a re-INVITE with its address and key, the old tag and the next o= version', () => {
    const invited = playOn(talking, MOVING.slice(0, 2));
    expect(kinds(playOn(talking, [RELAY_LOST]).effects)).toEqual(['leave-relay', 'offer-to-carrier']);
    const sdp = effect(invited, 'reinvite')?.sdp ?? '';
    expect(sdp).toMatch(/^o=trunkline 7 2 /m);
    expect(sdp).toContain('m=audio 50000 RTP/SAVP 0 101\r\n');
    expect(sdp).toContain(`a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:${KEY}\r\n`);
    const moved = playOn(talking, MOVING);
    expect(moved.effects).toEqual([
      { do: 'change-leg', media: moved.state.session?.media, agentFacing: MOVED_INSIDE, agentSideKey: RELAY_LOST.newKey },
      { do: 'keep' },
    ]);
    expect(moved.state).toMatchObject({ name: 'Talking', exchange: { name: 'Idle' }, agentFacing: { rtpPort: 51_000 } });
    expect(moved.state.session?.carrierFacing.rtpPort).toBe(50_000);
  });

  it.each<[string, Reason, CallEvent[]]>([
    ['it may not move', 'MEDIA_LOST', [RELAY_LOST_FOR_GOOD]],
    ['the trunk takes no re-INVITE', 'MEDIA_MOVE_REFUSED', [...MOVING.slice(0, 2), reinviteAnswered(488, '')]],
    ['the trunk knows no such call', 'MEDIA_LOST', [...MOVING.slice(0, 2), reinviteAnswered(481, '')]],
    ['the trunk is away', 'MEDIA_LOST', [...MOVING.slice(0, 2), reinviteAnswered(408, '')]],
    ['the answer to the re-INVITE cannot be read', 'MEDIA_LOST', [...MOVING.slice(0, 2), reinviteAnswered(200, 'nonsense')]],
  ])('ends the call where %s: %s', (_where, reason, events) => {
    const { state, effects } = playOn(talking, events);
    expect(state).toMatchObject({ name: 'Ended', reason });
    expect(kinds(effects)).toContain('bye');
  });

  it('is replaced by another for 2 s when its successor fails, too, at its offer or its answer', () => {
    for (const begun of [1, 3]) {
      let state = playOn(talking, MOVING.slice(0, begun)).state;
      let waitedMs = 0;
      for (;;) {
        const failed = playOn(state, [{ type: 'failed', reason: 'MEDIA_UNAVAILABLE', attempt: state.attempt }]);
        if (failed.state.name === 'Ended') break;
        expect(failed.effects).toEqual([{ do: 'start-timer', timer: 'reinvite', delayMs: 400 }]);
        waitedMs += 400;
        const again = playOn(failed.state, [{ type: 'timer', timer: 'reinvite' }]);
        expect(kinds(again.effects)).toEqual(['leave-relay', 'offer-to-carrier']);
        ({ state } = again);
      }
      expect(waitedMs).toBe(2_000);
    }
  });

  it('is left although the successor failed once, and another loss gets all attempts again', () => {
    const failed = playOn(talking, [RELAY_LOST, { type: 'failed', reason: 'INTERNAL_ERROR', attempt: 1 }]);
    const moved = playOn(failed.state, [
      { type: 'timer', timer: 'reinvite' },
      ...MOVING.slice(1).map((event) => ({ ...event, attempt: 2 }) as CallEvent),
    ]);
    expect(moved.state).toMatchObject({ name: 'Talking', exchange: { name: 'Idle' }, agentFacing: { rtpPort: 51_000 }, moves: 0 });
  });

  it('with its successor moves the call on, after the answer to its re-INVITE', () => {
    for (const begun of [1, 3])
      expect(kinds(playOn(talking, [...MOVING.slice(0, begun), RELAY_LOST]).effects)).toEqual(['leave-relay', 'offer-to-carrier']);
    const inviting = playOn(talking, [...MOVING.slice(0, 2), RELAY_LOST]);
    expect(inviting.effects).toEqual([]);
    const answered = playOn(inviting.state, MOVING.slice(2, 3));
    expect(kinds(answered.effects)).toEqual(['leave-relay', 'offer-to-carrier']);
    expect(answered.state.session?.carrierFacing.rtpPort).toBe(50_000);
    const glare = { type: 'reinvite-answered', status: 491, sdp: '', retryAfterMs: 730, attempt: 1 } as const;
    const waited = playOn(inviting.state, [glare, { type: 'timer', timer: 'reinvite' }]);
    expect(kinds(waited.effects)).toEqual(['leave-relay', 'offer-to-carrier']);
  });

  it('[3261 §14.1] makes the re-INVITE go again after 491, or the call move with the carrier’s own', () => {
    const glare = playOn(talking, [
      ...MOVING.slice(0, 2),
      { type: 'reinvite-answered', status: 491, sdp: '', retryAfterMs: 730, attempt: 1 },
    ]);
    expect(glare.effects).toEqual([{ do: 'start-timer', timer: 'reinvite', delayMs: 730 }]);
    const again = playOn(glare.state, [{ type: 'timer', timer: 'reinvite' }]);
    expect(kinds(again.effects)).toEqual(['reinvite']);
    expect(playOn(again.state, MOVING.slice(2)).state.agentFacing?.rtpPort).toBe(51_000);
    const theirs = playOn(glare.state, [
      NEXT(MOVED),
      { type: 'relay-offered', sdp: OTHER_INSIDE, attempt: 2 },
      { type: 'relay-answered', sdp: OTHER_OUTSIDE, attempt: 2 },
    ]);
    expect(kinds(theirs.all)).toEqual(['stop-timer', 'offer-relay', 'answer-relay', 'change-leg', 'accept', 'keep']);
    expect(theirs.state.session?.carrierFacing.rtpPort).toBe(50_000);
    const offerless = playOn(glare.state, [NEXT(''), ACK(ANSWER)]);
    expect(kinds(offerless.effects)).toEqual(['answer-from-carrier']);
  });

  it('[3261 §14.2] makes the carrier’s change get 491 while the re-INVITE is pending', () => {
    for (const method of ['INVITE', 'UPDATE'] as const)
      expect(playOn(talking, [...MOVING.slice(0, 2), NEXT(HELD, 5, method)]).effects).toEqual([
        { do: 'reject', requestId: 5, reason: 'REQUEST_PENDING' },
      ]);
  });

  it('delays the re-INVITE until the ACK', () => {
    const awaiting = playOn(play(CALL.slice(0, 6)).state, [RELAY_LOST]);
    expect(awaiting.effects).toEqual([]);
    expect(kinds(playOn(awaiting.state, [ACK()]).effects)).toEqual(['start-leg', 'leave-relay', 'offer-to-carrier']);
    const offered = playOn(talking, [NEXT(''), RELAY_LOST]);
    expect(offered.effects).toEqual([]);
    expect(kinds(playOn(offered.state, [ACK()]).effects)).toEqual(['leave-relay', 'offer-to-carrier']);
  });

  it('makes a change in progress get 500 first', () => {
    expect(playOn(talking, [NEXT(HELD), RELAY_LOST]).effects.slice(0, 2)).toEqual([
      { do: 'reject', requestId: 1, reason: 'INTERNAL_ERROR' },
      { do: 'leave-relay' },
    ]);
  });

  it('refuses a call that is not answered yet with 503', () => {
    const [invited, routed, reserved, offered] = CALL;
    for (const before of [
      [invited!, routed!, offered!],
      [invited!, routed!, reserved!, offered!],
    ])
      expect(play([...before, RELAY_LOST]).effects).toContainEqual({ do: 'refuse', reason: 'MEDIA_UNAVAILABLE', detail: null });
    expect(play([invited!, routed!, reserved!, RELAY_LOST]).effects).toEqual([]);
  });

  it('ends a late offer’s call, half of whose session only its relay had', () => {
    const waiting = play([...LATE_CALL.slice(0, 5), RELAY_LOST], LATE_FACTS);
    expect(waiting.state).toMatchObject({ name: 'HangingUp', reason: 'MEDIA_LOST' });
    expect(play([...LATE_CALL.slice(0, 6), RELAY_LOST], LATE_FACTS).state.name).toBe('Ended');
  });
});

it('a new key of the carrier reaches the endpoint with SRTP inside, since rtpengine passes it through', () => {
  const key = (inline: string) => ({ tag: '1', inline, mki: null });
  const agentFacing = (inline: string) =>
    offerSdp({ port: 31_000, payloads: '0 101', crypto: [`1 AES_CM_128_HMAC_SHA1_80 inline:${inline}`] });
  const srtpInside: CallState = { ...talking, agentSideKey: key(OTHER_KEY), agentFacing: { ...talking.agentFacing!, crypto: key(KEY) } };
  const rekeyed = offerSdp({ crypto: [`1 AES_CM_128_HMAC_SHA1_80 inline:${OTHER_KEY}`] });
  const changed = playOn(srtpInside, [NEXT(rekeyed), { type: 'relay-offered', sdp: agentFacing(OTHER_KEY), attempt: 1 }, RELAYED[1]!]);
  expect(effect(changed, 'change-leg')?.agentFacing.crypto?.inline).toBe(OTHER_KEY);
  const same = playOn(srtpInside, [NEXT(HELD), { type: 'relay-offered', sdp: agentFacing(KEY), attempt: 1 }, RELAYED[1]!]);
  expect(kinds(same.effects)).toEqual(['direct-leg', 'start-timer', 'accept', 'keep']);
});
