import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TelephoneEventReceiver, type DtmfDigit } from '../../../../src/rtp/dtmf/telephone-event-receiver.js';
import { TelephoneEventSender, type EventPacket } from '../../../../src/rtp/dtmf/telephone-event-sender.js';
import { digitOfEvent, eventOfDigit, writeTelephoneEvent } from '../../../../src/rtp/dtmf/telephone-event.js';
import { addTicks } from '../../../../src/rtp/rtp-packet.js';
import { telephoneEvent } from '../../../support/media/packets.js';

const SSRC = 0x1234;

interface Sent {
  readonly at: number;
  readonly ts: number;
  readonly payload: Uint8Array;
  readonly ssrc?: number;
}

/** The packets of one press: every 20 ms, the end three times. */
function press(event: number, startMs: number, rtpTimestamp: number, frames = 5, ends = 3): Sent[] {
  return Array.from({ length: frames - 1 + ends }, (_, i) => ({
    at: startMs + 20 * (i + 1),
    ts: rtpTimestamp,
    payload: telephoneEvent(event, Math.min(i + 1, frames) * 160, i + 1 >= frames),
  }));
}

function receive(packets: readonly Sent[], receiver = new TelephoneEventReceiver()): DtmfDigit[] {
  const presses: DtmfDigit[] = [];
  for (const { at, ts, payload, ssrc } of packets) {
    const lost = receiver.poll(at);
    if (lost !== undefined) presses.push(lost);
    presses.push(...receiver.receive(ssrc ?? SSRC, ts, payload, 0, payload.length, at));
  }
  const lost = receiver.poll(1e9);
  return lost === undefined ? presses : [...presses, lost];
}

describe('the telephone-event receiver', () => {
  it('[4733 §2.5.1.4] reports a digit once though the end packet came three times', () => {
    expect(receive(press(5, 0, 1_000))).toEqual([{ event: 5, durationMs: 100 }]);
  });

  it('[4733 §2.5.1.4] reports a digit when all three end packets are lost, once its time is over', () => {
    const receiver = new TelephoneEventReceiver();
    expect(receive(press(5, 0, 1_000, 5, 0), receiver)).toEqual([{ event: 5, durationMs: 80 }]);
    const watched = new TelephoneEventReceiver();
    for (const { at, ts, payload } of press(5, 0, 1_000, 5, 0)) watched.receive(SSRC, ts, payload, 0, 4, at);
    expect(watched.deadlineMs).toBe(280);
    expect(watched.poll(279)).toBeUndefined();
    expect(watched.poll(280)).toEqual({ event: 5, durationMs: 80 });
    // The end packets were late, not lost.
    expect(watched.receive(SSRC, 1_000, telephoneEvent(5, 800, true), 0, 4, 400)).toEqual([]);
    expect(watched.deadlineMs).toBeUndefined();
  });

  it('[4733 §2.5.1.2] reports a digit with one end packet left', () => {
    expect(receive(press(9, 0, 1_000).slice(-1))).toEqual([{ event: 9, durationMs: 100 }]);
  });

  it('[4733 §2.5.1.1] reports the same digit twice when the timestamps differ', () => {
    expect(receive([...press(7, 0, 1_000), ...press(7, 200, 2_600)])).toEqual([
      { event: 7, durationMs: 100 },
      { event: 7, durationMs: 100 },
    ]);
  });

  it('ends a press whose end was lost at the next one, in order', () => {
    expect(receive([...press(1, 0, 1_000, 5, 0), ...press(2, 100, 1_800)]).map((result) => result.event)).toEqual([1, 2]);
  });

  it('[4733 §2.5.1.3] reports a press longer than the 16-bit duration as one, with its whole length', () => {
    const sender = new TelephoneEventSender();
    sender.send(3, 12 * 8_000);
    const sent: Sent[] = [];
    for (let frame = 0; !sender.isIdle; frame += 1) {
      const packet = sender.next((0xfffff000 + frame * 160) >>> 0);
      if (packet !== undefined) sent.push({ at: frame * 20, ts: packet.rtpTimestamp, payload: bytesOf(packet) });
    }
    expect(new Set(sent.map((packet) => packet.ts)).size).toBe(2);
    expect(receive(sent)).toEqual([{ event: 3, durationMs: 12_000 }]);
    // Also when the packets around the turn are lost.
    expect(receive(sent.filter((_, i) => i < 405 || i > 412))).toEqual([{ event: 3, durationMs: 12_000 }]);
  });

  it('distinguishes presses by SSRC and timestamp', () => {
    const other = press(4, 200, 1_000).map((packet) => ({ ...packet, ssrc: 99 }));
    expect(receive([...press(4, 0, 1_000), ...other])).toHaveLength(2);
  });

  it('needs no order: it finds ten presses in reordered, doubled and thinned packets', () => {
    const digits = [1, 2, 3, 4, 5, 6, 7, 8, 9, 0];
    fc.assert(
      fc.property(fc.array(fc.record({ drop: fc.nat(3), delay: fc.nat(3) }), { minLength: 70, maxLength: 70 }), (noise) => {
        const packets = digits.flatMap((digit, i) => press(digit, i * 300, 5_000 + i * 2_400));
        const arrived = packets.flatMap((packet, i) => {
          const { drop, delay } = noise[i]!;
          // One packet of each press is sure to arrive.
          if (drop === 0 && i % 7 !== 3) return [];
          const late = { ...packet, at: packet.at + delay * 20 };
          return drop === 1 ? [late, late] : [late];
        });
        expect(receive(arrived.sort((a, b) => a.at - b.at)).map((result) => result.event)).toEqual(digits);
      }),
    );
  });

  it('[4733 §2.5.1.5] reports two events in one packet as two presses, and zeros behind an event not as digit 0', () => {
    const packed = Buffer.concat([telephoneEvent(1, 400, true), telephoneEvent(2, 800, true)]);
    expect(receive([{ at: 0, ts: 10, payload: packed }])).toEqual([
      { event: 1, durationMs: 50 },
      { event: 2, durationMs: 100 },
    ]);
    const padded = Buffer.concat([telephoneEvent(1, 400, true), Buffer.alloc(8)]);
    expect(receive([{ at: 0, ts: 10, payload: padded }])).toEqual([{ event: 1, durationMs: 50 }]);
  });

  it('[4733 §3.2] accepts 0 to 15, nothing else, and nothing from a payload of three bytes', () => {
    for (let event = 0; event < 256; event += 1) expect(receive(press(event, 0, 1))).toHaveLength(event <= 15 ? 1 : 0);
    expect(receive([{ at: 0, ts: 1, payload: new Uint8Array(3) }])).toEqual([]);
  });

  it('counts durations at the clock rate of the payload type', () => {
    const packet = telephoneEvent(1, 4_800, true);
    expect(new TelephoneEventReceiver(48_000).receive(SSRC, 1, packet, 0, 4, 0)).toEqual([{ event: 1, durationMs: 100 }]);
  });
});

function bytesOf(packet: EventPacket): Uint8Array {
  const bytes = new Uint8Array(4);
  writeTelephoneEvent(bytes, 0, packet);
  return bytes;
}

describe('the telephone-event sender', () => {
  function send(sender: TelephoneEventSender, frames: number, start = 1_000): (EventPacket | undefined)[] {
    return Array.from({ length: frames }, (_, i) => sender.next(addTicks(start, i * 160)));
  }

  it('[4733 §2.5.1.2 §2.5.1.4] sends one timestamp, growing durations, the marker once, and the end three times', () => {
    const sender = new TelephoneEventSender();
    sender.send(11, 640);
    const packets = send(sender, 8).filter((packet) => packet !== undefined);
    expect(packets.map(({ rtpTimestamp }) => rtpTimestamp)).toEqual([1_000, 1_000, 1_000, 1_000, 1_000, 1_000]);
    expect(packets.map(({ durationTicks }) => durationTicks)).toEqual([160, 320, 480, 640, 640, 640]);
    expect(packets.map(({ marker }) => marker)).toEqual([true, false, false, false, false, false]);
    expect(packets.map(({ isEnd }) => isEnd)).toEqual([false, false, false, true, true, true]);
    expect(bytesOf(packets[3]!)).toEqual(Uint8Array.of(11, 0x80 | 10, 640 >> 8, 640 & 0xff));
    expect(sender.isIdle).toBe(true);
  });

  it('pauses between two presses, which the receiver distinguishes', () => {
    const sender = new TelephoneEventSender();
    sender.send(2, 320);
    sender.send(2, 320);
    const packets = send(sender, 20);
    const silent = packets.findIndex((packet, i) => i > 0 && packet === undefined);
    expect(packets.slice(silent, silent + 3)).toEqual([undefined, undefined, undefined]);
    const sent = packets.flatMap((packet, i) =>
      packet === undefined ? [] : [{ at: i * 20, ts: packet.rtpTimestamp, payload: bytesOf(packet) }],
    );
    expect(receive(sent)).toEqual([
      { event: 2, durationMs: 40 },
      { event: 2, durationMs: 40 },
    ]);
  });

  it('queues no more than 64 presses', () => {
    const sender = new TelephoneEventSender();
    expect(Array.from({ length: 65 }, () => sender.send(1, 160)).filter((taken) => taken)).toHaveLength(64);
  });

  it('digits and event codes convert both ways', () => {
    expect(['0', '1', '5', '9', '*', '#', 'A', 'D', 'd'].map(eventOfDigit)).toEqual([0, 1, 5, 9, 10, 11, 12, 15, 15]);
    expect(['x', '', '12'].map(eventOfDigit)).toEqual([undefined, undefined, undefined]);
    expect([0, 10, 11, 15, 16].map(digitOfEvent)).toEqual(['0', '*', '#', 'D', undefined]);
  });
});
