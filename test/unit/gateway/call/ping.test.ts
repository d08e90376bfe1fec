import { beforeEach, describe, expect, it } from 'vitest';
import { RunnerBench } from '../../../support/runner-bench.js';

let bench: RunnerBench;
const asked = (): number => bench.pending.filter(({ name }) => name === 'OPTIONS').length;
const settle = (succeeds: boolean): Promise<void> =>
  bench.settle(
    bench.pending.findIndex(({ name }) => name === 'OPTIONS'),
    succeeds,
  );

beforeEach(async () => {
  bench = new RunnerBench(false);
  await bench.connect('');
  bench.runner.serverBack(0);
});

describe('the ping to the carrier after a time without the SIP server', () => {
  it('is repeated until it is sent: another host may have had the call, or the carrier was unreachable', async () => {
    const delays: number[] = [];
    for (let attempt = 0; attempt < 7; attempt += 1) {
      bench.answersWith = 503;
      await settle(attempt % 2 === 0);
      let delayMs = 0;
      for (; asked() === 0; delayMs += 500) bench.clock.advance(500);
      delays.push(delayMs);
    }
    expect(delays).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 32_000]);
    bench.answersWith = 200;
    await settle(true);
    bench.clock.advance(100_000);
    expect([asked(), bench.byes, bench.records]).toEqual([0, 0, []]);
  });

  it('is not repeated once the call has ended', async () => {
    await settle(false);
    bench.say('destroy');
    await bench.drain();
    bench.clock.advance(100_000);
    expect([asked(), bench.records.length]).toEqual([0, 1]);
  });

  it.each([408, 481])('ends the call when the carrier answers %d', async (status) => {
    bench.answersWith = status;
    await settle(true);
    bench.answersWith = 200;
    await bench.drain();
    expect(bench.records.map(({ reason }) => reason)).toEqual(['INTERNAL_ERROR']);
  });
});
