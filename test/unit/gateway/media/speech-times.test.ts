import { describe, expect, it } from 'vitest';
import type { LegAgent } from '../../../../src/gateway/media/leg-agent.js';
import { SlotClock } from '../../../../src/gateway/media/slot-clock.js';
import { MediaLeg } from '../../../../src/gateway/media/leg.js';
import { SpeechQueue } from '../../../../src/gateway/agents/stream/speech-queue.js';
import { parseRtcpCompound } from '../../../../src/rtp/rtcp-packet.js';
import { VirtualClock } from '../../../support/virtual-clock.js';

// When the frames of a leg leave whose agent speaks, and with which timestamps.

const SILENCE = 0xff;
const FRAME_MS = 20;

interface Piece {
  readonly atMs: number;
  readonly ms?: number;
  readonly isPause?: boolean;
}

interface Packet {
  readonly atMs: number;
  /** In frames since the first packet. */
  readonly slot: number;
  readonly hasMarker: boolean;
  /** The number of the piece that it begins with; `null`: silence. */
  readonly piece: number | null;
}

/** A leg whose agent says these pieces; each byte of one is its number, and 0 in a pause. A frame is due at 0 ms, and at each 20 ms after it. */
function speak(pieces: readonly Piece[], forMs: number, during: (leg: MediaLeg, clock: VirtualClock) => void = () => undefined) {
  const clock = new VirtualClock();
  const queue = new SpeechQueue(60_000, SILENCE, (byte) => byte === 0);
  const packets: Packet[] = [];
  const reports: Buffer[] = [];
  let first: number | undefined;
  const agent: LegAgent = {
    bufferedMs: 0,
    latePackets: 0,
    get speech() {
      return queue.speech;
    },
    connect: () => Promise.resolve(),
    start: () => undefined,
    digit: () => undefined,
    hear: () => undefined,
    fill: (payload) => queue.pull(payload),
    pass: () => undefined,
    notify: () => undefined,
    close: () => undefined,
  };
  const leg = new MediaLeg(
    { codec: 'PCMU', payloadType: 0, telephoneEventPayloadType: 101, srtp: null, carrierSuite: null },
    {
      clock,
      random32: () => 4_294_960_000,
      transport: {
        sendRtp: (buffer) => {
          const timestamp = Buffer.from(buffer).readUInt32BE(4);
          first ??= timestamp;
          const payload = buffer[12]!;
          packets.push({
            atMs: clock.nowMs(),
            slot: ((timestamp - first) >>> 0) / 160,
            hasMarker: buffer[1]! >> 7 === 1,
            piece: payload === SILENCE ? null : payload,
          });
        },
        sendRtcp: (buffer, length) => reports.push(Buffer.from(buffer.subarray(0, length))),
      },
      mediaTimeoutMs: 1e9,
      onEvent: () => undefined,
      agent: () => agent,
    },
  );
  const slots = new SlotClock(clock);
  slots.add(leg);
  pieces.forEach(({ atMs, ms = FRAME_MS, isPause = false }, index) =>
    clock.setTimer(atMs, () => {
      queue.push(new Uint8Array(8 * ms).fill(isPause ? 0 : 1 + (index % 200)));
      if (leg.speak()) queue.cameInTime();
    }),
  );
  leg.start();
  during(leg, clock);
  clock.advance(forMs - clock.nowMs());
  const spoken = packets.filter(({ piece }) => piece !== null);
  /** What each piece of a frame waited, in milliseconds. */
  const waits = spoken.map(({ atMs }, index) => atMs - (pieces[index]?.atMs ?? Number.NaN));
  return { packets, spoken, waits, reports, queue };
}

/** Silence between the first and the last speech. */
const gaps = ({ packets, spoken }: ReturnType<typeof speak>): number =>
  packets.filter(({ slot, piece }) => piece === null && slot > spoken[0]!.slot && slot < spoken.at(-1)!.slot).length;

/** A piece each 20 ms from so much on. */
const live = (fromMs: number, count: number, lateMs: (index: number) => number = () => 0): Piece[] =>
  Array.from({ length: count }, (_, index) => ({ atMs: fromMs + index * FRAME_MS + lateMs(index) }));

const phases = Array.from({ length: 20 }, (_, phase) => phase);

describe('the frames of a leg', () => {
  it('leave each 20 ms with a timestamp of their own while the agent is silent, the first one at once', () => {
    const { packets } = speak([], 1_000);
    expect(packets[0]).toMatchObject({ atMs: 0, slot: 0, hasMarker: true });
    packets.slice(1).forEach(({ atMs, slot }, index) => expect([atMs, slot]).toEqual([FRAME_MS * (index + 2), index + 1]));
  });

  it.each(phases)('leave at once when the agent speaks in real time, %i ms after a frame is due', (phase) => {
    const result = speak(live(1_000 + phase, 100), 5_000);
    expect(result.waits).toEqual(Array<number>(100).fill(0));
    expect(gaps(result)).toBe(0);
    result.packets.forEach(({ slot }, index) => expect(slot).toBe(index));
  });

  it.each(phases)('leave at once when they come up to 15 ms late, with the timestamps that are theirs (phase %i)', (phase) => {
    const result = speak(
      live(1_000 + phase, 300, (index) => (index % 10 === 9 ? (index * 7) % 16 : 0)),
      8_000,
    );
    expect(Math.max(...result.waits)).toBe(0);
    expect(gaps(result)).toBe(0);
    const [{ atMs, slot } = { atMs: 0, slot: 0 }] = result.spoken;
    for (const packet of result.spoken) expect(Math.abs(packet.atMs - atMs - FRAME_MS * (packet.slot - slot))).toBeLessThanOrEqual(15);
  });

  it.each(phases)(
    'are replaced by one of silence when the agent is 36 to 40 ms late, and none after it waits a frame (phase %i)',
    (phase) => {
      const result = speak(
        live(1_000 + phase, 100, (index) => (index >= 50 ? 36 : 0)),
        5_000,
      );
      expect(gaps(result)).toBeLessThanOrEqual(2);
      expect(Math.max(...result.waits.slice(-40))).toBe(0);
    },
  );

  // At 0 ms two leave at once: one was still due.
  it.each(phases.slice(1))('leave each 20 ms when the agent speaks faster than that, the first at once (phase %i)', (phase) => {
    const result = speak([{ atMs: 1_000 + phase, ms: 200 }], 2_000);
    const [first = Number.NaN, ...rest] = result.spoken.map(({ atMs }) => atMs);
    expect(first).toBe(1_000 + phase);
    expect(rest).toEqual(Array.from({ length: 9 }, (_, index) => 1_020 + FRAME_MS * index));
    result.packets.forEach(({ slot }, index) => expect(slot).toBe(index));
  });

  it.each(phases)('leave as they come in pieces of 100 ms, too (phase %i)', (phase) => {
    const pieces = Array.from({ length: 20 }, (_, index) => ({ atMs: 1_000 + phase + 100 * index, ms: 100 }));
    const result = speak(pieces, 5_000);
    expect(gaps(result)).toBe(0);
    const begun = result.spoken.filter(({ piece }, index) => piece !== result.spoken[index - 1]?.piece);
    expect(begun.map(({ atMs }) => atMs)).toEqual(pieces.map(({ atMs }) => atMs));
  });

  it.each(phases)(
    'are silence again at most 15 ms after the one that would have been next, when the agent has finished (phase %i)',
    (phase) => {
      const result = speak(live(1_000 + phase, 50), 3_000);
      const last = result.spoken.at(-1)!;
      const after = result.packets.filter(({ slot }) => slot > last.slot);
      expect(after[0]!.atMs - last.atMs).toBeLessThanOrEqual(FRAME_MS + 20);
      after
        .slice(2)
        .forEach((packet, index) =>
          expect([packet.atMs - after[1]!.atMs, packet.slot - last.slot]).toEqual([FRAME_MS * (index + 1), index + 3]),
        );
    },
  );

  it('wait after a stall until the agent pauses, and no longer', () => {
    // The agent pauses for 100 ms in each second. After 200 ms of nothing all that was missed comes at once.
    const pieces = live(1_000, 1_000).map(({ atMs }, index) => ({
      atMs: index >= 310 && index < 320 ? 1_000 + 320 * FRAME_MS : atMs,
      isPause: index % 50 >= 45,
    }));
    const { spoken, queue } = speak(pieces, 30_000);
    expect(queue.skippedMs).toBe(200);
    expect(spoken.at(-1)!.atMs).toBe(pieces.at(-1)!.atMs);
    const words = spoken.flatMap(({ piece }) => (piece === 0 ? [] : [piece]));
    expect(words).toEqual(pieces.flatMap(({ isPause }, index) => (isPause ? [] : [1 + (index % 200)])));
  });

  it('follow the clock over a hold', () => {
    const { packets } = speak([], 3_000, (leg, clock) => {
      clock.advance(1_007);
      leg.setDirection('sendonly');
      clock.advance(1_000);
      leg.setDirection('sendrecv');
      leg.tick(0, 1);
    });
    for (const { atMs, slot } of packets) expect(Math.abs(atMs - FRAME_MS * slot)).toBeLessThanOrEqual(2 * FRAME_MS);
    packets.slice(1).forEach(({ slot }, index) => expect(slot).toBeGreaterThan(packets[index]!.slot));
  });

  it.each([0, 7, 13, 19])(
    '[3550 §6.4.1] have sender reports by the times at which they are due, not by those at which they leave (phase %i)',
    (phase) => {
      const { reports } = speak(live(1_000 + phase, 1_000), 60_000);
      const senders = reports.flatMap((packet) => {
        const parsed = parseRtcpCompound(packet);
        return parsed.ok ? parsed.value.flatMap((one) => (one.type === 'SR' ? [one.sender] : [])) : [];
      });
      expect(senders.length).toBeGreaterThan(5);
      const [{ ntp: firstNtp, rtpTimestamp: firstTimestamp } = senders[0]!] = senders;
      for (const { ntp, rtpTimestamp } of senders) {
        const elapsedMs = (ntp.seconds - firstNtp.seconds) * 1_000 + ((ntp.fraction - firstNtp.fraction) * 1_000) / 2 ** 32;
        expect(Math.abs(((rtpTimestamp - firstTimestamp) >>> 0) / 8 - elapsedMs)).toBeLessThanOrEqual(1);
      }
    },
  );
});
