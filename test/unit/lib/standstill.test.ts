import { beforeEach, expect, it } from 'vitest';
import { Standstill } from '../../../src/lib/standstill.js';
import { VirtualClock } from '../../support/virtual-clock.js';

let clock: VirtualClock;
let ticks: (number | null)[];
let standstill: Standstill;

beforeEach(() => {
  clock = new VirtualClock();
  ticks = [];
  standstill = new Standstill(clock, (wokeMs) => ticks.push(wokeMs));
});

it('the watch ticks four times a second, awake, until it is closed', () => {
  clock.advance(1_000);
  expect(ticks).toEqual([null, null, null, null]);
  standstill.close();
  clock.advance(1_000);
  expect([ticks.length, clock.pendingTimers]).toEqual([4, 0]);
});

it.each([
  [1_500, null],
  [1_501, 1_501],
  [60_000, 60_000],
])('after %i ms in which the process did not run, the watch has the wake-up time %s', (forMs, wokeMs) => {
  clock.standStill(forMs);
  expect(standstill.wokeMs).toBe(wokeMs);
});

it('the watch reports a suspension with each tick until it is confirmed after the wake-up', () => {
  clock.standStill(5_000);
  clock.advance(500);
  expect(ticks).toEqual([5_000, 5_000, 5_000]);
  standstill.confirm(4_999);
  expect(standstill.wokeMs).toBe(5_000);
  standstill.confirm(5_000);
  expect(standstill.wokeMs).toBeNull();
  clock.advance(1_000);
  expect([ticks.at(-1), standstill.wokeMs]).toEqual([null, null]);
});

it('the watch detects a second suspension, and not the same one twice', () => {
  clock.standStill(2_000);
  expect(standstill.wokeMs).toBe(2_000);
  standstill.confirm(2_000);
  clock.advance(250);
  expect(standstill.wokeMs).toBeNull();
  clock.standStill(2_000);
  expect(standstill.wokeMs).toBe(4_250);
  clock.standStill(2_000);
  expect(standstill.wokeMs).toBe(6_250);
});
