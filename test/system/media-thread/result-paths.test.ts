import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ThreadedResultPaths as Threaded } from '../../../src/gateway/agents/result-paths.js';
import { ThreadedResultPaths } from '../../support/built.js';
import { VirtualClock } from '../../support/virtual-clock.js';

// 50 paths through an answer that takes each of them long, and gives it nothing.
const HOSTILE_PATHS = Object.fromEntries(Array.from({ length: 50 }, (_none, at) => [`n${String(at)}`, '$..nothing']));
const HOSTILE = JSON.stringify(Array(160_000).fill([]));

let clock: VirtualClock;
let paths: Threaded;
beforeEach(() => {
  clock = new VirtualClock();
  paths = new ThreadedResultPaths(clock);
});
afterEach(() => paths.close());

describe('result paths', () => {
  it('are applied in a thread', async () => {
    expect(await paths.pick('a', { id: '$.id' }, '{"id":[1]}')).toEqual({ ok: true, value: { id: [1] } });
    expect(await paths.pick('a', { id: '$.id' }, 'x')).toEqual({ ok: false, error: 'it is not JSON' });
  });

  it('fail when they take longer than a second, and the next ones get a new thread', async () => {
    const hostile = paths.pick('a', HOSTILE_PATHS, HOSTILE);
    const behind = paths.pick('b', { id: '$.id' }, '{"id":1}');
    // Two turns of promises before it begins.
    await clock.advanceAsync(0);
    clock.advance(1_000);
    expect(await hostile).toEqual({ ok: false, error: 'searching it took longer than 1000 ms' });
    expect(await behind).toEqual({ ok: true, value: { id: 1 } });
  });

  it('of one organization wait for each other, and another organization waits for one of them', async () => {
    const order: string[] = [];
    const note = (name: string) => (): void => void order.push(name);
    const all = [
      ...[1, 2, 3].map((count) => paths.pick('a', { id: '$' }, '1').then(note(`a${String(count)}`))),
      paths.pick('b', { id: '$' }, '1').then(note('b1')),
    ];
    await Promise.all(all);
    expect(order).toEqual(['a1', 'b1', 'a2', 'a3']);
  });

  it('fail when too many of an organization wait', async () => {
    const all = Array.from({ length: 30 }, () => paths.pick('a', { id: '$' }, '1'));
    const refused = (await Promise.all(all)).filter(({ ok }) => !ok);
    expect(refused).toHaveLength(9);
    expect(refused[0]).toEqual({ ok: false, error: 'too many responses of the organization wait to be searched' });
  });
});
