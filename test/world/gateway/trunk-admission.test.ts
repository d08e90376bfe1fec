import { describe, expect, it } from 'vitest';
import { HandMadeCall } from '../../support/hand-made-call.js';
import { offerSdp } from '../../support/sdp.js';
import type { SipPeer, WireMessage } from '../../support/sip-peer.js';
import { addressed } from '../../support/wire-peer.js';
import { withWorld } from '../with-world.js';
import type { World } from '../world.js';

const NUMBER = '+15550100100';

let gateway: World;
let peer: SipPeer;
withWorld((site) => ({ gateway, peer } = site), { TRUNKLINE_ADMISSION_MAX_CALLS: '2' });

const codeOf = (answer: WireMessage): string => /"(\w+):/.exec(answer.header('Warning') ?? '')?.[1] ?? '';

async function invited(): Promise<WireMessage> {
  const call = new HandMadeCall(peer, NUMBER);
  call.invite(offerSdp());
  const answer = await call.final();
  if (answer.status === 200) {
    call.ack(answer);
    await call.hangUp(answer);
  }
  // It is freed.
  await gateway.time.settle();
  return answer;
}

const options = (): Promise<WireMessage> => new HandMadeCall(peer, 'sip:127.0.0.1').request('OPTIONS', addressed('<sip:127.0.0.1>'));

describe('an INVITE, as OPTIONS,', () => {
  it('[3261 §21.5.4] gets 503 OVERLOADED with Retry-After at max_calls in progress', async () => {
    const calls = await Promise.all(
      [1, 2].map(async () => {
        const call = new HandMadeCall(peer, NUMBER);
        return { call, ok: await call.answered(offerSdp()) };
      }),
    );
    for (const answer of [await invited(), await options()]) {
      expect([answer.status, codeOf(answer)]).toEqual([503, 'OVERLOADED']);
      expect(answer.header('Warning')).toContain('Calls in progress: 2, limit 2.');
      expect(answer.header('Reason')).toBe('Q.850;cause=42;text="OVERLOADED"');
      expect(answer.header('Retry-After')).toMatch(/^(?:[1-9]|10)$/);
    }
    for (const { call, ok } of calls) {
      await call.hangUp(ok);
    }
    await gateway.time.settle();
    expect((await options()).status).toBe(200);
    expect((await invited()).status).toBe(200);
  });

  it('[3261 §21.5.4] gets 503 MEDIA_UNAVAILABLE without a media relay, and 200 when it is back', async () => {
    gateway.rtpengine.kill();
    await gateway.until(async () => (await options()).status === 503);
    for (const answer of [await invited(), await options()]) {
      expect([answer.status, codeOf(answer)]).toEqual([503, 'MEDIA_UNAVAILABLE']);
      expect(answer.header('Retry-After')).toMatch(/^(?:[1-9]|10)$/);
    }
    gateway.rtpengine.start();
    await gateway.until(async () => (await options()).status === 200);
    expect((await invited()).status).toBe(200);
  });

  // The last one: the gateway ends with it.
  it('[3261 §21.5.4] gets 503 with Retry-After while the gateway drains, and a call in progress continues to its end', async () => {
    const call = new HandMadeCall(peer, NUMBER);
    const ok = await call.answered(offerSdp());
    const stopped = gateway.stopGateway('drain');
    await gateway.time.settle();
    for (const answer of [await invited(), await options()]) {
      // By the SIP server itself: no gateway that it has asks for them any more.
      expect(answer.status).toBe(503);
      expect(answer.header('Retry-After')).toMatch(/^(?:[1-9]|10)$/);
    }
    expect((await call.request('INVITE', ok, offerSdp({ direction: 'sendonly' }))).status).toBe(200);
    await call.hangUp(ok);
    await stopped;
    // Nothing was left for the gateway to hang up.
    expect(peer.received.filter(({ startLine }) => startLine.startsWith('BYE '))).toEqual([]);
  });
});
