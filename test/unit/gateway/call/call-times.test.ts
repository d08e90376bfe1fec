import { expect, it } from 'vitest';
import { RunnerBench } from '../../../support/runner-bench.js';

const HOUR_MS = 3_600_000;

it.each([
  ['forwards', HOUR_MS],
  ['back', -HOUR_MS],
])('a wall clock that is set an hour %s during a call leaves its measured length unchanged', async (_how, byMs) => {
  const bench = new RunnerBench(false);
  await bench.connect('');
  bench.clock.advance(2_000);
  bench.clock.setWall(byMs);
  bench.clock.advance(3_000);
  bench.say('destroy');
  await bench.drain();
  const [record] = bench.records;
  expect(record?.timings.talk_ms).toBe(5_000);
  expect(Date.parse(record?.ended_at ?? '') - Date.parse(record?.answered_at ?? '')).toBe(5_000);
});
