import { describe, expect, it } from 'vitest';
import { FairTurns } from '../../../src/lib/fair-turns.js';
import { VirtualClock } from '../../support/virtual-clock.js';
import { turn } from '../../support/turn.js';

function newTurns(atOnce: number, maxSize = 10, rest = 0, atOnceOfOne = 1) {
  const clock = new VirtualClock();
  const turns = new FairTurns({ atOnce, atOnceOfOne, maxSize, rest }, clock);
  const started: string[] = [];
  const ends = new Map<string, () => void>();
  const run = (owner: string, name: string, size = 1) =>
    turns.run(owner, size, () => {
      started.push(name);
      return new Promise<string>((resolve) => ends.set(name, () => resolve(name)));
    });
  const end = async (name: string): Promise<void> => {
    ends.get(name)?.();
    await turn();
  };
  return { clock, run, started, end };
}

describe('fair turns', () => {
  it('let an owner who comes later wait for one piece of work of the other', async () => {
    const { run, started, end } = newTurns(1);
    for (const name of ['a1', 'a2', 'a3']) void run('a', name);
    void run('b', 'b1');
    await turn();
    expect(started).toEqual(['a1']);
    for (const name of ['a1', 'b1', 'a2', 'a3']) await end(name);
    expect(started).toEqual(['a1', 'b1', 'a2', 'a3']);
  });

  it('run several owners at the same time, and one piece of each', async () => {
    const { run, started } = newTurns(2);
    for (const name of ['a1', 'a2']) void run('a', name);
    for (const owner of ['b', 'c']) void run(owner, `${owner}1`);
    await turn();
    expect(started).toEqual(['a1', 'b1']);
  });

  it('run two pieces of one owner at the same time where that is allowed, and leave the rest to another', async () => {
    const { run, started, end } = newTurns(3, 10, 0, 2);
    for (const name of ['a1', 'a2', 'a3']) void run('a', name);
    for (const name of ['b1', 'b2']) void run('b', name);
    await turn();
    expect(started).toEqual(['a1', 'a2', 'b1']);
    await end('a1');
    expect(started).toEqual(['a1', 'a2', 'b1', 'b2']);
  });

  it('let an owner rest as long as its work took, which does not delay the result', async () => {
    const { clock, run, started, end } = newTurns(1, 10, 2);
    const first = run('a', 'a1');
    void run('a', 'a2');
    await turn();
    clock.advance(100);
    await end('a1');
    expect(await first).toBe('a1');
    void run('b', 'b1');
    await clock.advanceAsync(199);
    expect(started).toEqual(['a1', 'b1']);
    await end('b1');
    await clock.advanceAsync(1);
    await turn();
    expect(started).toEqual(['a1', 'b1', 'a2']);
  });

  it('refuse too much work of one owner, until some of it has ended', async () => {
    const { run, end } = newTurns(1, 3);
    const first = run('a', 'a1', 2);
    expect(run('a', 'a2', 2)).toBeNull();
    expect(run('b', 'b1', 2)).not.toBeNull();
    await turn();
    await end('a1');
    expect(await first).toBe('a1');
    expect(run('a', 'a3', 3)).not.toBeNull();
  });
});
