import { describe, expect, it } from 'vitest';
import { PassingMap } from '../../../src/lib/passing-map.js';

describe('a map whose entries come and go', () => {
  it('answers as a Map does', () => {
    const map = new PassingMap<string, number | null>([['a', 1]]);
    map.set('b', null);
    map.set('a', 2);
    expect([map.size, map.get('a'), map.get('b'), map.get('c')]).toEqual([2, 2, null, undefined]);
    expect([map.has('a'), map.has('b'), map.has('c')]).toEqual([true, true, false]);
    expect([[...map], [...map.entries()], [...map.keys()], [...map.values()]]).toEqual([
      [
        ['a', 2],
        ['b', null],
      ],
      [
        ['a', 2],
        ['b', null],
      ],
      ['a', 'b'],
      [2, null],
    ]);
    const visited: unknown[] = [];
    map.forEach((value, key, of) => visited.push([value, key, of === map]));
    expect(visited).toEqual([
      [2, 'a', true],
      [null, 'b', true],
    ]);
  });

  it('removes an entry once', () => {
    const map = new PassingMap([['a', 1]]);
    expect([map.delete('a'), map.delete('a'), map.has('a'), map.get('a'), map.size, [...map]]).toEqual([
      true,
      false,
      false,
      undefined,
      0,
      [],
    ]);
  });

  it('adds a new entry without a look-up, and removes one by value', () => {
    const map = new PassingMap([['a', 1]]);
    map.add('b', 2);
    expect([map.get('b'), map.size]).toEqual([2, 2]);
    expect([map.deleteOnly('b', 1), map.get('b'), map.deleteOnly('c', 1)]).toEqual([false, 2, false]);
    expect([map.deleteOnly('b', 2), map.get('b'), map.deleteOnly('b', 2), map.size]).toEqual([true, undefined, false, 1]);
  });

  it('allows deletions and new entries while it is iterated', () => {
    const map = new PassingMap([
      ['a', 1],
      ['b', 2],
      ['c', 3],
    ]);
    const seen: string[] = [];
    for (const [key] of map) {
      seen.push(key);
      map.delete('b');
      if (key === 'a') map.set('d', 4);
    }
    expect(seen).toEqual(['a', 'c', 'd']);
  });

  it('is empty after clear', () => {
    const map = new PassingMap([
      ['a', 1],
      ['b', 2],
    ]);
    map.clear();
    expect([map.size, [...map], map.get('a')]).toEqual([0, [], undefined]);
  });
});
