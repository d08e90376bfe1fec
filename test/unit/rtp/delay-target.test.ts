import { describe, expect, it } from 'vitest';
import { DelayTarget } from '../../../src/rtp/jitter-buffer.js';

const LEAST = 160;
const MOST = 1_600;

/** The target after a frame with each of these transits, in ticks beyond that of the first packet. */
function targetAfter(transits: readonly number[]): number {
  const target = new DelayTarget(LEAST, MOST);
  target.restart(0);
  for (const transit of transits) {
    target.onPacket(transit);
    target.onFrameTick();
  }
  return target.targetDelay();
}

const even = (count: number): number[] => Array.from({ length: count }, () => 0);

describe('the delay target for jitter', () => {
  // 50 frames are a second.
  it.each([
    ['less than a second: none', 46, 720],
    ['a second: one', 47, 640],
    ['two seconds: two', 97, 320],
    ['ten seconds: no more than two', 497, 320],
  ])('leaves out the worst frames of %s', (_, count, slowest) => {
    expect(targetAfter([...even(count), 320, 720, 640])).toBe(slowest + LEAST);
  });

  it('counts a frame by its worst packet, and a burst after a stall as one frame', () => {
    const target = new DelayTarget(LEAST, MOST);
    target.restart(0);
    for (const burst of [[0], [800, 640, 480, 320, 160, 0]]) {
      for (const transit of burst) target.onPacket(transit);
      target.onFrameTick();
    }
    expect(target.framesSeen).toBe(2);
    expect(target.targetDelay()).toBe(800 + LEAST);
  });

  it('forgets a frame after ten seconds', () => {
    const stalls = [720, 640, 320];
    expect(targetAfter([...stalls, ...even(497)])).toBe(320 + LEAST);
    expect(targetAfter([...stalls, ...even(498)])).toBe(0 + LEAST);
  });

  it('never exceeds the fastest packet by more than the bound', () => {
    expect(targetAfter([0, 4_000])).toBe(MOST);
    expect(targetAfter([-200, 4_000])).toBe(MOST - 200);
  });

  it('reaches the bound for packets that are almost too late', () => {
    expect(targetAfter([0, MOST - LEAST - 1])).toBe(MOST - 1);
  });

  it('counts the current frame, and no frame without a packet', () => {
    const target = new DelayTarget(LEAST, MOST);
    target.restart(0);
    for (const transit of [100, 400, 200]) target.onPacket(transit);
    expect([target.framesSeen, target.targetDelay()]).toEqual([0, 400 + LEAST]);
    target.onFrameTick();
    target.onFrameTick();
    target.onPacket(-300);
    expect([target.framesSeen, target.targetDelay()]).toEqual([1, 400 + LEAST]);
  });

  it('counts ten seconds of frames at most, and none after a restart', () => {
    const target = new DelayTarget(LEAST, MOST);
    target.restart(0);
    for (let frame = 0; frame < 501; frame += 1) {
      target.onPacket(900);
      target.onFrameTick();
    }
    expect(target.framesSeen).toBe(500);
    target.restart(7);
    target.onPacket(7);
    expect([target.framesSeen, target.targetDelay()]).toEqual([0, 7 + LEAST]);
  });

  it('works across the wrap of the timestamp', () => {
    const target = new DelayTarget(LEAST, MOST);
    target.restart(0x7fff_ff00);
    target.onPacket((0x7fff_ff00 + 400) | 0);
    expect(target.targetDelay()).toBe((0x7fff_ff00 + 400 + LEAST) | 0);
  });
});
