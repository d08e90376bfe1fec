import { expect, it } from 'vitest';
import { DelayLimit } from '../../../src/lib/delay-limit.js';

it('a limit on a delay admits a burst, then holds at a fifth of itself until two calm seconds have passed', () => {
  const limit = new DelayLimit(250);
  expect([limit.isExceeded(0, 0), limit.isExceeded(250, 10)]).toEqual([false, false]);
  expect(limit.isExceeded(251, 20)).toBe(true);
  expect([limit.isExceeded(51, 500), limit.isExceeded(50, 600)]).toEqual([true, false]);
  // Two seconds after the last excess, which was at 500.
  expect(limit.isExceeded(51, 2_499)).toBe(true);
  expect(limit.isExceeded(51, 4_499)).toBe(false);
});
