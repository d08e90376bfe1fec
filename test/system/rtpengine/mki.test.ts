import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RelayPool } from '../../../src/gateway/relay/pool.js';
import { HANG_GUARD_MS } from '../../support/hang-guard.js';
import { CallEnd } from '../../support/media/call-end.js';
import { hearEachOther, negotiate } from '../../support/relayed-call.js';
import { RunningRtpengine } from '../../support/rtpengine.js';

let rtpengine: RunningRtpengine;
let pool: RelayPool;

beforeAll(async () => {
  rtpengine = await RunningRtpengine.start(100);
  pool = rtpengine.pool();
});

afterAll(async () => {
  pool.close();
  await rtpengine.stop();
});

const mkiOf = (lengthBytes: number, value = 1): Buffer => Buffer.alloc(lengthBytes).fill(value, Math.max(0, lengthBytes - 1));

/**
 * A call whose carrier's key has an MKI, with packets both ways and reports of both.
 * @param isTaken else what the carrier sends should not arrive: it is not waited for
 */
async function callWith(offerer: 'carrier' | 'agent', named: Buffer, sent: Buffer, isTaken = true) {
  const withinMs = isTaken ? HANG_GUARD_MS : 500;
  const call = {
    relayId: `mki-${offerer}-${String(named.length)}-${String(sent.length)}-${String(sent.at(-1))}`,
    agentSideSrtp: false,
    carrierSideSrtp: true,
  };
  const [carrier, agent] = [await CallEnd.open({ mki: named }), await CallEnd.open({ key: null })];
  const { outside } = await negotiate(pool, offerer, call, carrier, agent);
  carrier.peer.secure({ receive: carrier.key!, send: Buffer.from(outside.crypto!.inline, 'base64') }, sent);
  const isHeard = await hearEachOther(carrier, agent, withinMs).catch(() => false);
  carrier.peer.sendReport();
  const isReported = await agent.peer
    .until(() => agent.peer.reports.length === 1, withinMs)
    .then(
      () => true,
      () => false,
    );
  const bytesToCarrier = new Set(carrier.peer.received.map(({ lengthBytes }) => lengthBytes));
  const figures = await pool.delete(call.relayId);
  await Promise.all([carrier.close(), agent.close()]);
  return { isHeard, isReported, outside: outside.crypto, bytesToCarrier: [...bytesToCarrier], figures };
}

describe('a key of the carrier with an MKI', () => {
  it.each([1, 4, 16, 127, 128].flatMap((lengthBytes) => [['carrier', lengthBytes] as const, ['agent', lengthBytes] as const]))(
    '[3711 §3.1] of the %s, %i bytes long, admits SRTP and SRTCP with it; ours have none, as our key says',
    async (offerer, lengthBytes) => {
      const seen = await callWith(offerer, mkiOf(lengthBytes), mkiOf(lengthBytes));
      expect(seen).toMatchObject({
        isHeard: true,
        isReported: true,
        outside: { tag: '1', mki: null },
        bytesToCarrier: [12 + 160 + 10],
      });
      expect(seen.figures?.fromCarrier).toMatchObject({ packets: 10, errors: 0 });
    },
  );

  it('admits packets with another MKI of the same length, since rtpengine does not check it', async () => {
    expect(await callWith('carrier', mkiOf(4), mkiOf(4, 2))).toMatchObject({ isHeard: true, isReported: true });
  });

  it.each([
    ['no MKI', 0],
    ['a shorter one', 1],
    ['a longer one', 8],
  ])('admits no packets with %s', async (_what, lengthBytes) => {
    const seen = await callWith('carrier', mkiOf(4), mkiOf(lengthBytes), false);
    expect(seen).toMatchObject({ isHeard: false, isReported: false });
    // All of them came.
    expect(seen.figures?.fromCarrier).toMatchObject({ packets: 0, errors: 10 });
  });
});
