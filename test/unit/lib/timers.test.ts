import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TimerQueue } from '../../../src/lib/timers.js';
import { VirtualClock } from '../../support/virtual-clock.js';

describe('TimerQueue', () => {
  it('fires each timer at its time, whatever the order in which they were started', () => {
    const clock = new VirtualClock();
    const queue = new TimerQueue(clock);
    const fired: [number, number][] = [];
    for (const delay of [50, 10, 30, 10]) queue.start(delay, () => fired.push([delay, clock.nowMs()]));
    clock.advance(100);
    expect(fired.map(([delay]) => delay)).toEqual([10, 10, 30, 50]);
    for (const [delay, at] of fired) expect(Math.abs(at - delay)).toBeLessThanOrEqual(1);
  });

  it('does not fire what was stopped, and leaves no real timer when nothing is left', () => {
    const clock = new VirtualClock();
    const queue = new TimerQueue(clock);
    const timer = queue.start(10, () => expect.unreachable());
    queue.stop(timer);
    queue.stop(timer);
    expect([queue.size, clock.pendingTimers]).toEqual([0, 0]);
    clock.advance(20);
  });

  it('drops every timer, those of rare delays too', () => {
    const clock = new VirtualClock();
    const queue = new TimerQueue(clock);
    for (let delayMs = 1; delayMs <= 40; delayMs += 1) queue.start(delayMs, () => expect.unreachable());
    expect(queue.size).toBe(40);
    queue.clear();
    expect([queue.size, clock.pendingTimers]).toEqual([0, 0]);
    clock.advance(50);
  });

  it('takes timers that are started and stopped by a timer that fires', () => {
    const clock = new VirtualClock();
    const queue = new TimerQueue(clock);
    const fired: string[] = [];
    const other = queue.start(10, () => fired.push('stopped'));
    queue.start(5, () => {
      queue.stop(other);
      queue.start(5, () => fired.push('second'));
    });
    clock.advance(20);
    expect(fired).toEqual(['second']);
  });

  it('fires as a sorted list would, whatever the delays, starts and stops', () => {
    const step = fc.record({
      delayMs: fc.oneof(fc.constantFrom(500, 4_000, 32_000), fc.nat(60_000)),
      stops: fc.boolean(),
      passMs: fc.nat(900),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const clock = new VirtualClock();
        const queue = new TimerQueue(clock);
        const fired: number[] = [];
        const due: { readonly id: number; readonly atMs: number }[] = [];
        steps.forEach(({ delayMs, stops, passMs }, id) => {
          const timer = queue.start(delayMs, () => fired.push(id));
          if (stops) queue.stop(timer);
          else due.push({ id, atMs: clock.nowMs() + delayMs });
          clock.advance(passMs);
        });
        clock.advance(100_000);
        // A timer may be taken along up to a millisecond early: within that, any order is right.
        expect([...fired].sort((one, other) => one - other)).toEqual(due.map(({ id }) => id).sort((one, other) => one - other));
        const atMs = new Map(due.map(({ id, atMs: at }) => [id, at]));
        fired.forEach((id, index) => expect(atMs.get(id) ?? 0).toBeGreaterThanOrEqual((atMs.get(fired[index - 1] ?? id) ?? 0) - 1));
        expect([queue.size, clock.pendingTimers]).toEqual([0, 0]);
      }),
    );
  });
});
