import { expect, it } from 'vitest';
import { LruMap } from '../../../src/lib/lru.js';

it('holds the entries used last and forgets the others', () => {
  const map = new LruMap<string, number>(2);
  map.set('a', 1);
  map.set('b', 2);
  expect(map.get('a')).toBe(1);
  map.set('c', 3);
  expect([map.get('a'), map.get('b'), map.get('c')]).toEqual([1, undefined, 3]);
  expect(map.size).toBe(2);
  map.delete('a');
  expect(map.get('a')).toBeUndefined();
});
