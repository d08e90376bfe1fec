import { afterEach, beforeEach, expect, it } from 'vitest';
import { negotiate, newEnd, type CallEnd } from '../../support/relayed-call.js';
import { RunningRtpengine } from '../../support/rtpengine.js';

let rtpengine: RunningRtpengine;
let carrier: CallEnd;
let agent: CallEnd;

beforeEach(async () => {
  rtpengine = await RunningRtpengine.start(20);
  [carrier, agent] = await Promise.all([newEnd(true), newEnd(false)]);
});

afterEach(() => Promise.all([rtpengine.stop(), carrier.peer.close(), agent.peer.close()]));

/** Loopback is quicker than the milliseconds in which the peers tell their delay. */
const NETWORK_MS = 20;

it('[3550 §6.4] counts both sides’ RTP, and with reports that answer each other knows loss, jitter, round trip and MOS', async () => {
  const pool = rtpengine.pool();
  await negotiate(pool, 'carrier', { relayId: 'figures', agentSideSrtp: false, carrierSideSrtp: true }, carrier, agent);
  for (let round = 0; round < 8; round += 1) {
    await Promise.all([carrier.peer.speak(new Int16Array(1_600)), agent.peer.speak(new Int16Array(3_200))]);
    // Each answers what the other said a round ago.
    for (const { peer } of [carrier, agent]) peer.sendReport(NETWORK_MS);
    for (const { peer } of [carrier, agent]) await peer.until(() => peer.reports.length > round);
  }
  const figures = await pool.delete('figures');
  expect(figures).toMatchObject({
    fromCarrier: { packets: 80, bytes: 80 * 172, errors: 0, lost: 0, jitterMs: 0 },
    fromAgent: { packets: 160, bytes: 160 * 172, errors: 0, lost: 0, jitterMs: 0 },
  });
  for (const { mos, roundTripMs } of [figures!.fromCarrier, figures!.fromAgent]) {
    expect(mos).toBeGreaterThan(4);
    expect(mos).toBeLessThanOrEqual(4.5);
    // The sum of both legs.
    expect(roundTripMs).toBeGreaterThan(2 * NETWORK_MS - 3);
    expect(roundTripMs).toBeLessThan(100);
  }
  pool.close();
});
