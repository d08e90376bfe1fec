import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NamedTimers, TimerQueue } from '../../../src/lib/timers.js';
import { VirtualClock } from '../../support/virtual-clock.js';

describe('TimerQueue', () => {
  it('fires each timer at its time, whatever the order of their starts', () => {
    const clock = new VirtualClock();
    const queue = new TimerQueue(clock);
    const fired: [number, number][] = [];
    for (const delay of [50, 10, 30, 10]) queue.start(delay, () => fired.push([delay, clock.nowMs()]));
    clock.advance(100);
    expect(fired.map(([delay]) => delay)).toEqual([10, 10, 30, 50]);
    for (const [delay, at] of fired) expect(Math.abs(at - delay)).toBeLessThanOrEqual(1);
  });

  it('fires no stopped timer, and leaves no real timer when it is empty', () => {
    const clock = new VirtualClock();
    const queue = new TimerQueue(clock);
    const timer = queue.start(10, () => expect.unreachable());
    queue.stop(timer);
    queue.stop(timer);
    expect([queue.size, clock.pendingTimers]).toEqual([0, 0]);
    clock.advance(20);
  });

  it('drops every timer, including those of rare delays', () => {
    const clock = new VirtualClock();
    const queue = new TimerQueue(clock);
    for (let delayMs = 1; delayMs <= 40; delayMs += 1) queue.start(delayMs, () => expect.unreachable());
    expect(queue.size).toBe(40);
    queue.clear();
    expect([queue.size, clock.pendingTimers]).toEqual([0, 0]);
    clock.advance(50);
  });

  it('allows a firing timer to start and stop timers', () => {
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

  it('has one real timer for all of the usual delays, and one for each of the rare ones', () => {
    const clock = new VirtualClock();
    const queue = new TimerQueue(clock);
    const fired: number[] = [];
    const start = (delayMs: number) => queue.start(delayMs, () => fired.push(delayMs));
    for (let delayMs = 100; delayMs < 116; delayMs += 1) for (let times = 0; times < 3; times += 1) start(delayMs);
    expect([queue.size, clock.pendingTimers]).toEqual([48, 1]);
    const rare = start(200);
    for (const delayMs of [-5, 250]) start(delayMs);
    expect([queue.size, clock.pendingTimers]).toEqual([51, 4]);
    queue.stop(rare);
    expect([queue.size, clock.pendingTimers]).toEqual([50, 3]);
    clock.advance(0);
    expect([fired, queue.size, clock.pendingTimers]).toEqual([[-5], 49, 2]);
    // The first delay is not usual any more, and leaves its place to another.
    clock.advance(103);
    start(300);
    expect(clock.pendingTimers).toBe(2);
    clock.advance(300);
    expect([fired.length, ...fired.slice(-2), queue.size, clock.pendingTimers]).toEqual([51, 250, 300, 0, 0]);
  });

  it('fires with a timer what is due a millisecond later, and nothing after that', () => {
    const clock = new VirtualClock();
    const queue = new TimerQueue(clock);
    const fired: [number, number][] = [];
    for (const delay of [10, 11, 12]) queue.start(delay, () => fired.push([delay, clock.nowMs()]));
    clock.advance(20);
    expect(fired).toEqual([
      [10, 10],
      [11, 10],
      [12, 12],
    ]);
  });

  it('stops any one of several with the same delay', () => {
    for (const stopped of [0, 1, 2]) {
      const clock = new VirtualClock();
      const queue = new TimerQueue(clock);
      const fired: number[] = [];
      const timers = [0, 1, 2].map((id) => queue.start(10, () => fired.push(id)));
      queue.stop(timers[stopped]!);
      queue.start(10, () => fired.push(3));
      clock.advance(20);
      expect(fired).toEqual([0, 1, 2, 3].filter((id) => id !== stopped));
    }
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

describe('the named timers of a state machine', () => {
  type Name = 'A' | 'B' | 'C';
  /** What fired of A, B and C, due after 10, 20 and 30 ms. */
  const firedAfter = (change: (timers: NamedTimers<Name>, clock: VirtualClock) => void): string[] => {
    const clock = new VirtualClock();
    const queue = new TimerQueue(clock);
    const fired: string[] = [];
    const timers = new NamedTimers<Name>(queue, (name) => fired.push(`${name} at ${String(clock.nowMs())}`));
    for (const [name, delayMs] of [
      ['A', 10],
      ['B', 20],
      ['C', 30],
    ] as const)
      timers.start(name, delayMs);
    change(timers, clock);
    clock.advance(100);
    expect([queue.size, clock.pendingTimers]).toEqual([0, 0]);
    return fired;
  };

  it('fire by their names', () => {
    expect(firedAfter(() => undefined)).toEqual(['A at 10', 'B at 20', 'C at 30']);
  });

  it.each([
    ['A', ['B at 20', 'C at 30']],
    ['B', ['A at 10', 'C at 30']],
    ['C', ['A at 10', 'B at 20']],
  ] as const)('without the stopped %s fire the others', (name, fired) => {
    expect(firedAfter((timers) => timers.stop(name))).toEqual(fired);
  });

  it.each([
    ['A', ['B at 20', 'C at 30', 'A at 50']],
    ['B', ['A at 10', 'C at 30', 'B at 50']],
    ['C', ['A at 10', 'B at 20', 'C at 50']],
  ] as const)('can be restarted: %s', (name, fired) => {
    expect(firedAfter((timers) => timers.start(name, 50))).toEqual(fired);
  });

  it('can be started and stopped when others have fired', () => {
    expect(
      firedAfter((timers, clock) => {
        clock.advance(25);
        timers.stop('B');
        timers.start('A', 10);
        timers.stop('C');
      }),
    ).toEqual(['A at 10', 'B at 20', 'A at 35']);
  });

  it('are all stopped at the end', () => {
    expect(firedAfter((timers) => timers.close())).toEqual([]);
    expect(
      firedAfter((timers) => {
        timers.close();
        timers.start('A', 10);
        timers.close();
      }),
    ).toEqual([]);
  });
});
