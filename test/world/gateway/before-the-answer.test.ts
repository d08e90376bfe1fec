import { describe, expect, it } from 'vitest';
import { HandMadeCall } from '../../support/hand-made-call.js';
import { offerSdp } from '../../support/sdp.js';
import type { SipPeer, WireMessage } from '../../support/sip-peer.js';
import { withWorld } from '../with-world.js';
import type { World } from '../world.js';

const NUMBER = '+15550100100';
const RATE = 8;
const RINGING_AFTER_MS = 500;

let gateway: World;
let peer: SipPeer;
withWorld((site) => ({ gateway, peer } = site), { TRUNKLINE_ADMISSION_MAX_CALLS_PER_SECOND: String(RATE) });

const provisionalOf = (call: HandMadeCall): WireMessage[] =>
  peer.received.filter(({ status, text }) => status > 100 && status < 200 && text.includes(call.callId));

/** A call that rings: rtpengine accepted the offer, and its answer to ours is kept back. */
async function ringing(extra: readonly string[] = []): Promise<{ call: HandMadeCall; early: WireMessage }> {
  gateway.rtpengine.hold('answer');
  const call = new HandMadeCall(peer, NUMBER);
  call.invite(offerSdp(), extra);
  const early = await peer.next('180', (message) => message.status === 180 && message.header('Call-ID') === call.callId);
  return { call, early };
}

async function nothingLeft(call: HandMadeCall): Promise<void> {
  gateway.rtpengine.goOn();
  expect(await gateway.record(call.callId)).toMatchObject({ reason: 'CALLER_CANCELLED', sip_status: 487, answered_at: null });
  expect(gateway.rtpengine.sessions.size).toBe(0);
}

describe('a call that the gateway does not answer at once', () => {
  it('[3261 §12.1.1] [3261 §21.1.2] gets 180 with tag and Contact and without SDP, then the 200 of the same dialog', async () => {
    const { call, early } = await ringing();
    expect([early.body, early.header('Contact')]).toEqual(['', expect.stringMatching(/^<sip:.*;transport=tls>$/)]);
    gateway.rtpengine.goOn();
    const ok = await call.final();
    expect([ok.status, ok.header('To')]).toEqual([200, early.header('To')]);
    expect(ok.header('To')).toMatch(/;tag=.+/);
    call.ack(ok);
    await call.hangUp(ok);
    expect(await gateway.record(call.callId)).toMatchObject({ timings: { ring_ms: RINGING_AFTER_MS } });
  });

  it('[3262 §3] gets no 180 when its caller requires reliable provisional responses, and still gets the 200', async () => {
    gateway.rtpengine.hold('answer');
    const call = new HandMadeCall(peer, NUMBER);
    call.invite(offerSdp(), ['Require: 100rel']);
    await gateway.until(() => gateway.rtpengine.heldCount === 1);
    // Another call rings meanwhile: the time for a 180 of the first has passed by then.
    const { call: other } = await ringing();
    gateway.rtpengine.goOn();
    const [ok, otherOk] = [await call.final(), await other.final()];
    expect([ok.status, provisionalOf(call)]).toEqual([200, []]);
    for (const [each, answer] of [
      [call, ok],
      [other, otherOk],
    ] as const) {
      each.ack(answer);
      await each.hangUp(answer);
    }
  });

  it('[3261 §9.2] gets 487 after a CANCEL that follows the 180, and leaves nothing', async () => {
    const { call, early } = await ringing();
    call.cancel();
    const answer = await call.final();
    expect([answer.status, answer.header('To')]).toEqual([487, early.header('To')]);
    await nothingLeft(call);
  });

  it('[3261 §15.1.2] gets 200 to a BYE on the early dialog and 487 to the INVITE, and leaves nothing', async () => {
    const { call, early } = await ringing();
    await call.hangUp(early);
    expect((await call.final()).status).toBe(487);
    await nothingLeft(call);
  });

  it('[3311 §5.2] gets 500 with Retry-After to an UPDATE before its offer is answered, and 481 to a PRACK of nothing', async () => {
    const { call, early } = await ringing();
    const update = await call.request('UPDATE', early, offerSdp({ direction: 'sendonly' }));
    expect([update.status, /^\d+$/.test(update.header('Retry-After') ?? '')]).toEqual([500, true]);
    expect((await call.request('INFO', early)).status).toBe(500);
    expect((await call.request('PRACK', early, '', ['RAck: 1 1 INVITE'])).status).toBe(481);
    gateway.rtpengine.goOn();
    const ok = await call.final();
    expect(ok.status).toBe(200);
    call.ack(ok);
    await call.hangUp(ok);
  });
});

describe('an INVITE above the rate that the trunk takes', () => {
  it('[3261 §21.5.4] gets 503 OVERLOADED with Retry-After', async () => {
    await gateway.pass(1_000);
    const calls = Array.from({ length: 3 * RATE }, () => new HandMadeCall(peer, '+15550199999'));
    for (const call of calls) call.invite(offerSdp());
    const answers = await Promise.all(calls.map((call) => call.final()));
    const refused = answers.filter(({ status }) => status === 503);
    expect(answers.map(({ status }) => status)).toEqual([...Array<number>(RATE).fill(404), ...Array<number>(2 * RATE).fill(503)]);
    expect(refused.every((answer) => answer.header('Warning')?.includes('"OVERLOADED: ') === true)).toBe(true);
    expect(refused.every((answer) => /^(?:[1-9]|10)$/.test(answer.header('Retry-After') ?? ''))).toBe(true);
  });
});
