import { beforeEach, expect, it } from 'vitest';
import { SourceShares } from '../../../src/lib/source-rates.js';
import { VirtualClock } from '../../support/virtual-clock.js';

let clock: VirtualClock;
let shares: SourceShares;

beforeEach(() => {
  clock = new VirtualClock();
  shares = new SourceShares(clock);
});

function count(source: string, times: number): void {
  for (let time = 0; time < times; time += 1) shares.count(source);
}

it('a source is modest when it sent less than half of an equal share', () => {
  count('a', 10);
  count('b', 3);
  count('c', 2);
  // An equal share is 5.
  expect(['a', 'b', 'c', 'new'].map((source) => shares.isModest(source))).toEqual([false, false, true, true]);
});

it('a lone source is never modest, and no source is when none sent anything', () => {
  expect(shares.isModest('a')).toBe(false);
  count('a', 5);
  expect(shares.isModest('a')).toBe(false);
});

it('the second before counts for a second more, and no longer', () => {
  count('a', 9);
  count('b', 1);
  clock.advance(1_000);
  expect(['a', 'b'].map((source) => shares.isModest(source))).toEqual([false, true]);
  count('b', 9);
  expect(shares.isModest('b')).toBe(false);
  clock.advance(1_000);
  expect(['a', 'b'].map((source) => shares.isModest(source))).toEqual([true, false]);
  clock.advance(2_000);
  expect(['a', 'b'].map((source) => shares.isModest(source))).toEqual([false, false]);
});

it('a source beyond 10,000 in a second is not modest', () => {
  for (let number = 0; number < 10_000; number += 1) count(`source ${String(number)}`, 4);
  count('late', 1);
  count('source 7', 1);
  expect(['late', 'source 7'].map((source) => shares.isModest(source))).toEqual([false, false]);
});
