import { describe, expect, it } from 'vitest';
import { ReorderBuffer } from '../../../src/rtp/reorder-buffer.js';

const SSRC = 7;
const SILENCE = 0xff;

/** A listener with a tick each 20 ms of a clock that the test moves; packet i holds 160 times the byte i. */
function open() {
  const heard: { readonly atMs: number; readonly first: number; readonly bytes: Buffer }[] = [];
  let nowMs = 0;
  let nextTickMs = 20;
  const reorderBuffer = new ReorderBuffer('PCMU', (buffer, offset, length) => {
    const bytes = Buffer.from(buffer.subarray(offset, offset + length));
    heard.push({ atMs: nowMs, first: bytes[0] ?? 0, bytes });
  });
  reorderBuffer.start(0);
  const until = (ms: number): void => {
    for (; nextTickMs <= ms; nextTickMs += 20) {
      nowMs = nextTickMs;
      reorderBuffer.tick(nowMs);
    }
    nowMs = ms;
  };
  const push = (i: number, atMs: number, options: { ssrc?: number; timestamp?: number; length?: number } = {}): void => {
    until(atMs);
    const length = options.length ?? 160;
    const datagram = Buffer.alloc(12 + length, i);
    reorderBuffer.push(options.ssrc ?? SSRC, (options.timestamp ?? 1_000 + i * 160) >>> 0, datagram, 12, length, nowMs);
  };
  /** This process stands still, and does then what was due: timers come before packets. */
  const stall = (ms: number): void => {
    for (nowMs += ms; nextTickMs <= nowMs; nextTickMs += 20) reorderBuffer.tick(nowMs);
  };
  return { reorderBuffer, heard, push, until, stall, order: () => heard.map(({ first }) => first) };
}

describe('the reorder buffer', () => {
  it('conceals nothing of the time in which its process was suspended, and then plays silence for what did not come', () => {
    const { reorderBuffer, push, stall, until, order } = open();
    for (const i of [0, 1, 2]) push(i, 5 + 20 * i);
    stall(120);
    expect(order()).toEqual([0, 1, 2]);
    for (const i of [3, 4, 5, 6, 7, 8]) push(i, 165);
    expect(order()).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
    expect(reorderBuffer.figures).toMatchObject({ concealedBytes: 0, latePackets: 0 });
    stall(120);
    until(320);
    expect(reorderBuffer.figures.concealedBytes).toBeGreaterThan(3 * 160);
  });

  it('conceals a second at most: what a hold left out is counted, and audio passes at once again', () => {
    const { reorderBuffer, heard, push, order } = open();
    for (const i of [0, 1, 2]) push(i, 5 + 20 * i);
    expect(reorderBuffer.tick(60)).toBe(0);
    // The first tick after a pause only waits for the packets of that time.
    expect(reorderBuffer.tick(60_045)).toBe(0);
    expect(reorderBuffer.tick(60_065)).toBe(3_000);
    expect(heard).toHaveLength(3);
    for (const i of [3, 4, 5]) reorderBuffer.push(SSRC, 900_000 + i * 160, Buffer.alloc(160, i), 0, 160, 60_066 + 20 * i);
    expect(order()).toEqual([0, 1, 2, 3, 4, 5]);
    expect(reorderBuffer.figures).toMatchObject({ concealedBytes: 0, latePackets: 0, restarts: 0 });
  });

  it('holds 500 ms at most, and counts overlapping audio once', () => {
    const { reorderBuffer, push } = open();
    push(0, 5);
    // What is next is missing; behind it each packet says half of the one before again.
    for (let i = 0; i < 30; i += 1) push(1, 25, { timestamp: 1_000 + 320 + 80 * i });
    expect(reorderBuffer.heldMs).toBe((29 * 80 + 160) / 8);
    // One that begins within the 500 ms and ends behind them is a jump of the source.
    push(2, 25, { timestamp: 1_000 + 160 + 3_999, length: 1_600 });
    expect([reorderBuffer.heldMs, reorderBuffer.figures.restarts]).toEqual([0, 1]);
  });

  it('passes the next packet at once, of any length', () => {
    const { heard, push } = open();
    push(0, 5);
    push(1, 25);
    push(2, 44, { length: 240 });
    push(3, 76, { timestamp: 1_000 + 160 * 2 + 240, length: 80 });
    expect(heard.map(({ atMs, bytes }) => [atMs, bytes.length])).toEqual([
      [5, 160],
      [25, 160],
      [44, 240],
      [76, 80],
    ]);
  });

  it('holds a packet that overtook another until that comes', () => {
    const { heard, push, order } = open();
    push(0, 0);
    push(2, 21);
    push(3, 40);
    push(1, 45);
    push(4, 60);
    expect(order()).toEqual([0, 1, 2, 3, 4]);
    expect(heard.map(({ atMs }) => atMs)).toEqual([0, 45, 45, 45, 60]);
  });

  it('conceals a lost packet by the one before, quieter, when the others have waited 40 ms', () => {
    const { heard, push, order, until } = open();
    push(0x10, 0);
    push(0x12, 40);
    push(0x13, 60);
    push(0x14, 80);
    until(100);
    // The last frame once more, then what had waited.
    expect(order()).toEqual([0x10, 0x10, 0x12, 0x13, 0x14]);
    expect(heard[2]!.atMs).toBe(80);
    expect(heard.slice(1, 4).every(({ bytes }) => bytes.length === 160)).toBe(true);
  });

  it('fades to silence within 60 ms when nothing comes, and plays silence in real time from then on', () => {
    const { heard, push, until, reorderBuffer } = open();
    push(0x10, 0);
    until(1_000);
    const levels = heard.map(({ bytes }) => bytes[80]);
    expect(levels.slice(0, 2)).toEqual([0x10, 0x10]);
    expect(levels.slice(4).every((byte) => byte === SILENCE)).toBe(true);
    // The packet due at 20 ms is missing from 60 ms on.
    expect(heard).toHaveLength(1 + 48);
    expect(reorderBuffer.figures.concealedBytes).toBe(48 * 160);
  });

  it('plays silence from the start on while the caller sends nothing', () => {
    const { heard, until } = open();
    until(400);
    expect(heard.length).toBeGreaterThan(15);
    expect(heard.every(({ bytes }) => bytes.every((byte) => byte === SILENCE))).toBe(true);
  });

  it.each([
    ['continued', 50],
    ['stood still', 1],
    ['counted too fast', 80],
  ])('passes the first packet after a pause at once, when the source’s count %s', (_what, packets) => {
    const { push, order, reorderBuffer } = open();
    push(0, 0);
    push(packets, 1_000);
    push(packets + 1, 1_020);
    expect(order().slice(-2)).toEqual([packets, packets + 1]);
    expect(reorderBuffer.figures).toMatchObject({ latePackets: 0, restarts: 0 });
  });

  it('waits longer after packets were late, and less again when none were for long', () => {
    const { push, reorderBuffer, order } = open();
    let lost = 0;
    for (let i = 0; i < 200; i += 1) {
      // Every 20th packet is 100 ms late.
      if (i % 20 === 5) lost = i;
      else push(i & 0xff, i * 20, { timestamp: 1_000 + i * 160 });
      if (i === lost + 5 && lost > 0) push(lost & 0xff, i * 20 + 1, { timestamp: 1_000 + lost * 160 });
    }
    expect(reorderBuffer.waitMs).toBeGreaterThanOrEqual(100);
    // Only the first ones were missed.
    expect(reorderBuffer.figures.latePackets).toBeLessThan(3);
    expect(
      order()
        .slice(-150)
        .slice(1)
        .every((byte, i) => byte === ((order().at(-150)! + i + 1) & 0xff)),
    ).toBe(true);
    for (let i = 200; i < 12_000; i += 1) push(i & 0xff, i * 20, { timestamp: 1_000 + i * 160 });
    expect(reorderBuffer.waitMs).toBe(40);
  });

  it('follows a delay that changed for good, after three late packets', () => {
    const { push, order, reorderBuffer } = open();
    for (let i = 0; i < 10; i += 1) push(i, i * 20);
    for (let i = 10; i < 40; i += 1) push(i, i * 20 + 400);
    expect(order().slice(-28)).toEqual(Array.from({ length: 28 }, (_, i) => i + 12));
    expect(reorderBuffer.figures).toMatchObject({ latePackets: 0, restarts: 0 });
  });

  it('passes each packet once', () => {
    const { push, order, reorderBuffer } = open();
    for (let i = 0; i < 10; i += 1) {
      push(i, i * 20);
      push(i, i * 20 + 1);
    }
    push(12, 221);
    push(12, 222);
    expect(order()).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(reorderBuffer.figures.duplicatePackets).toBe(11);
  });

  it.each([
    ['another SSRC', { ssrc: 9, timestamp: 77 }],
    ['a jump of the timestamp ahead', { timestamp: 1_000_000 }],
    ['a jump of the timestamp back', { timestamp: 4_000_000_000 }],
  ])('restarts with %s', (_what, options) => {
    const { push, order, reorderBuffer } = open();
    for (let i = 0; i < 5; i += 1) push(i, i * 20);
    push(50, 100, options);
    push(51, 120, { ...options, timestamp: options.timestamp + 160 });
    expect(order()).toEqual([0, 1, 2, 3, 4, 50, 51]);
    expect(reorderBuffer.figures.restarts).toBe(1);
  });

  it('works across the wrap of the timestamp', () => {
    const { push, order } = open();
    for (let i = 0; i < 6; i += 1) push(i, i * 20, { timestamp: 2 ** 32 - 480 + i * 160 });
    expect(order()).toEqual([0, 1, 2, 3, 4, 5]);
  });

  it('holds no more than 32 packets', () => {
    const { push, reorderBuffer } = open();
    push(0, 0, { timestamp: 0 });
    // 10 ms each, all at once, behind a missing one.
    for (let i = 2; i < 40; i += 1) push(i, 1, { timestamp: 80 + i * 80, length: 80 });
    expect(reorderBuffer.heldMs).toBeLessThanOrEqual(320);
  });
});
