import { expect, it } from 'vitest';
import { boundedLog } from '../../../src/lib/bounded-log.js';
import { silentLog, type Log } from '../../../src/lib/log.js';
import { VirtualClock } from '../../support/virtual-clock.js';

it('the log writes a bounded number of lines of an event a second, and then how many it left out', () => {
  const lines: [object, string][] = [];
  const written: Log = { ...silentLog, info: (fields, event) => lines.push([fields, event]) };
  const clock = new VirtualClock();
  const log = boundedLog(written, clock, 3);
  for (let index = 0; index < 10; index += 1) log.info({ index }, 'often');
  log.info({}, 'another');
  expect(lines).toEqual([
    [{ index: 0 }, 'often'],
    [{ index: 1 }, 'often'],
    [{ index: 2 }, 'often'],
    [{}, 'another'],
  ]);
  clock.advance(1_000);
  log.info({ index: 10 }, 'often');
  log.info({ index: 11 }, 'often');
  expect(lines.slice(4)).toEqual([
    [{ index: 10, leftOut: 7 }, 'often'],
    [{ index: 11 }, 'often'],
  ]);
});

it.each(['debug', 'info', 'warn', 'error'] as const)('the log keeps the level %s, and counts the lines of a child separately', (level) => {
  const lines: string[] = [];
  const named = (name: string): Log => ({
    ...silentLog,
    [level]: (_fields: object, event: string) => lines.push(`${name} ${event}`),
    child: ({ id }) => named(String(id)),
  });
  const clock = new VirtualClock();
  clock.advance(600);
  const log = boundedLog(named('all'), clock, 1);
  const child = log.child({ id: 'call' });
  for (const one of [log, child, log, child]) one[level]({}, 'often');
  expect(lines).toEqual(['all often', 'call often']);
});
