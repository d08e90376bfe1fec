import { beforeEach, describe, expect, it } from 'vitest';
import { HandMadeCall } from '../../support/hand-made-call.js';
import { parseExposition, type Exposition } from '../../support/prometheus-text.js';
import { offerSdp } from '../../support/sdp.js';
import type { SipPeer } from '../../support/sip-peer.js';
import { withWorld } from '../with-world.js';
import type { World } from '../world.js';

let gateway: World;
let peer: SipPeer;

withWorld((site) => ({ gateway, peer } = site));

async function scrape(): Promise<Exposition> {
  return parseExposition(await (await fetch(`${gateway.ready.http}/metrics`)).text());
}

describe('the metrics of a call', () => {
  let call: HandMadeCall;

  beforeEach(() => {
    call = new HandMadeCall(peer, gateway.ready.phone_number);
  });

  it('count it as answered when its 200 leaves, and not once more when it ends', async () => {
    const answered = async (): Promise<number | undefined> => (await scrape()).sum('trunkline_call_answer_seconds_count');
    const before = (await answered()) ?? 0;
    const ok = await call.answered(offerSdp());
    expect(await answered()).toBe(before + 1);
    await gateway.pass(20_000);
    await call.hangUp(ok);
    await gateway.record(call.callId);
    expect(await answered()).toBe(before + 1);
  });
});
