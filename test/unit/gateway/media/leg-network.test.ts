import { describe, expect, it } from 'vitest';
import { MediaLeg } from '../../../../src/gateway/media/leg.js';
import { SampleLegAgent } from '../../../../src/gateway/media/sample-leg-agent.js';
import { parseRtcpCompound, type ReportBlock } from '../../../../src/rtp/rtcp-packet.js';
import { SlotClock } from '../../../../src/gateway/media/slot-clock.js';
import { rtpPacket } from '../../../support/media/packets.js';
import { packetStream, simulate, type Arrival, type NetworkOptions, type SentPacket } from '../../../support/media/simulated-network.js';
import { VirtualClock } from '../../../support/virtual-clock.js';

// A whole leg behind a simulated network, in virtual time: what it hears, and what it reports.

const MINUTE = 3_000;
const LOUD = 0x80;

interface Told {
  readonly atMs: number;
  readonly block: ReportBlock;
}

function run(frames: number, network: Partial<NetworkOptions>, seed: number) {
  const sent = packetStream(frames);
  // No packet arrives in the moment of a frame.
  const arrivals = simulate(sent, { delayMs: 23.3, ...network }, seed);
  const clock = new VirtualClock();
  const told: Told[] = [];
  const heard = { frames: 0, silent: 0, mostBufferedMs: 0 };
  const agent = new SampleLegAgent({
    connect: () => Promise.resolve(),
    start: () => undefined,
    digit: () => undefined,
    frame: (input) => {
      heard.frames += 1;
      if (input[80] === 0) heard.silent += 1;
      if (heard.frames % 50 === 0) heard.mostBufferedMs = Math.max(heard.mostBufferedMs, leg.view().bufferedMs);
    },
    notify: () => undefined,
    close: () => undefined,
  });
  let random = 1;
  const leg = new MediaLeg(
    { codec: 'PCMU', payloadType: 0, telephoneEventPayloadType: 101, srtp: null, carrierSuite: null },
    {
      clock,
      random32: () => (random = (Math.imul(random, 69_069) + 1) >>> 0),
      transport: {
        sendRtp: () => undefined,
        sendRtcp: (buffer, length) => {
          const parsed = parseRtcpCompound(Buffer.from(buffer.subarray(0, length)));
          for (const packet of parsed.ok ? parsed.value : []) {
            if (packet.type !== 'SR' && packet.type !== 'RR') continue;
            for (const block of packet.blocks) told.push({ atMs: clock.nowMs(), block });
          }
        },
      },
      mediaTimeoutMs: 60_000,
      onEvent: () => undefined,
      agent: () => agent,
    },
  );
  new SlotClock(clock).add(leg);
  leg.start();
  const payload = Buffer.alloc(160, LOUD);
  for (const { arrivalMs, index } of arrivals) {
    clock.advance(arrivalMs - clock.nowMs());
    const { seq, ts } = sent[index]!;
    leg.receiveRtp(rtpPacket({ sequenceNumber: seq, rtpTimestamp: ts, payload }));
  }
  return { sent, arrivals, told, heard, figures: leg.close() };
}

/** What a receiver has to say at a time, from RFC 3550 §6.4.1 and A.8, worked out from the list of arrivals in floating point. */
function truth(sent: readonly SentPacket[], arrivals: readonly Arrival[], atMs: number) {
  let jitter = 0;
  let lastTransit: number | undefined;
  let highest = -1;
  let received = 0;
  for (const { arrivalMs, index } of arrivals) {
    if (arrivalMs > atMs) break;
    received += 1;
    highest = Math.max(highest, index);
    const transit = arrivalMs * 8 - index * 160;
    if (lastTransit !== undefined) jitter += (Math.abs(transit - lastTransit) - jitter) / 16;
    lastTransit = transit;
  }
  return { cumulativeLost: highest + 1 - received, jitterTicks: jitter, highestSequence: sent[highest]!.seq };
}

describe('a media leg behind a network', () => {
  it.each([100, -100])('hears an hour of a clock that is %d ppm fast, with no more delay at the end than at the beginning', (driftPpm) => {
    const { heard, figures } = run(60 * MINUTE, { driftPpm }, 1);
    expect(figures).toMatchObject({ packetsReceived: 60 * MINUTE, packetsLost: 0 });
    // Silent before the first packet alone.
    expect(heard.silent).toBeLessThanOrEqual(4);
    expect(heard.mostBufferedMs).toBeLessThanOrEqual(60);
  });

  it.each<[string, Partial<NetworkOptions>]>([
    ['5 % of loss in bursts', { lossRate: 0.05, meanLossBurst: 3 }],
    ['jitter of up to 15 ms', { jitter: { kind: 'uniform', ms: 15 } }],
    ['a queue with long waits', { jitter: { kind: 'exponential', meanMs: 12 } }],
    [
      'loss, reordering and packets that come twice',
      { lossRate: 0.02, reorderRate: 0.02, duplicateRate: 0.02, jitter: { kind: 'normal', sigmaMs: 5 } },
    ],
  ])('[3550 §6.4.1 §A.3 §A.8] reports what the network did: %s', (_what, network) => {
    const { sent, arrivals, told, figures } = run(10 * MINUTE, network, 2);
    expect(told.length).toBeGreaterThan(60);
    let [lostBefore, expectedBefore] = [0, 0];
    for (const { atMs, block } of told) {
      const { cumulativeLost, jitterTicks, highestSequence } = truth(sent, arrivals, atMs);
      expect(block.cumulativeLost).toBe(cumulativeLost);
      expect(block.extendedHighestSequence & 0xffff).toBe(highestSequence);
      expect(Math.abs(block.jitterTicks - jitterTicks)).toBeLessThan(2 + 0.02 * jitterTicks);
      const expected = block.extendedHighestSequence - (sent[0]!.seq - 1);
      const fraction = Math.max(0, (cumulativeLost - lostBefore) / Math.max(1, expected - expectedBefore));
      expect(Math.abs(block.fractionLost / 256 - fraction)).toBeLessThan(1 / 256 + 1e-9);
      [lostBefore, expectedBefore] = [cumulativeLost, expected];
    }
    const end = truth(sent, arrivals, Infinity);
    expect(figures.packetsLost).toBe(Math.max(0, end.cumulativeLost));
    expect(figures.packetsReceived).toBe(arrivals.length);
  });

  it('keeps its reports as samples of the call’s quality', () => {
    const { told, figures } = run(5 * MINUTE, { lossRate: 0.05, meanLossBurst: 3 }, 3);
    // The last report is said with the BYE.
    expect(figures.samples).toHaveLength(told.length);
    const lost = figures.samples.map(({ from_caller: stream }) => stream?.lost_percent);
    expect(lost).toEqual(told.map(({ block }) => Math.round((block.fractionLost / 256) * 10_000) / 100));
    expect(figures.samples.every(({ from_caller: stream }) => stream !== null && stream.mos < (stream.lost_percent > 3 ? 4.2 : 4.5))).toBe(
      true,
    );
  });
});
