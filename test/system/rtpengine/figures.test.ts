import { afterEach, beforeEach, expect, it } from 'vitest';
import { CallEnd } from '../../support/media/call-end.js';
import { negotiate } from '../../support/relayed-call.js';
import { RunningRtpengine } from '../../support/rtpengine.js';

let rtpengine: RunningRtpengine;
let carrier: CallEnd;
let agent: CallEnd;

beforeEach(async () => {
  rtpengine = await RunningRtpengine.start(20);
  [carrier, agent] = await Promise.all([CallEnd.open(), CallEnd.open({ key: null })]);
});

afterEach(() => Promise.all([rtpengine.stop(), carrier.close(), agent.close()]));

/** Loopback is quicker than the milliseconds in which the peers tell their delay. */
const NETWORK_MS = 20;

it('[3550 §6.4] a real rtpengine counts both sides’ RTP, and computes loss, jitter, round trip and MOS from reports', async () => {
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
    fromCarrier: { packets: 80, bytes: 80 * 172, errors: 0, lost: 0 },
    fromAgent: { packets: 160, bytes: 160 * 172, errors: 0, lost: 0 },
  });
  for (const { mos, jitterMs, roundTripMs } of [figures!.fromCarrier, figures!.fromAgent]) {
    expect(jitterMs).toBeGreaterThanOrEqual(0);
    // The sum of both legs, and what this machine adds.
    expect(roundTripMs).toBeGreaterThan(2 * NETWORK_MS - 3);
    // As high as the delay allows: nothing is lost.
    expect(mos).toBeGreaterThan(roundTripMs! < 100 ? 4 : 1);
    expect(mos).toBeLessThanOrEqual(4.5);
  }
  pool.close();
});
