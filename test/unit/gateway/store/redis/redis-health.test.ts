import { describe, expect, it } from 'vitest';
import { fullest, memoryOf, redisWarnings, type RedisHealth } from '../../../../../src/gateway/store/redis/redis-health.js';

const MIB = 1 << 20;
const FINE: RedisHealth = { refusal: null, tookMs: 0.4, usedBytes: 50 * MIB, maxBytes: 100 * MIB, policy: 'noeviction' };

describe('the memory figures of INFO', () => {
  it('are read, and a limit of 0 is null', () => {
    const info = '# Memory\r\nused_memory:1048576\r\nused_memory_human:1.00M\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n';
    expect(memoryOf(info)).toEqual({ usedBytes: MIB, maxBytes: null, policy: 'noeviction' });
    expect(memoryOf(info.replace('maxmemory:0', 'maxmemory:2097152')).maxBytes).toBe(2 * MIB);
  });

  it('may be missing', () => {
    expect(memoryOf('')).toEqual({ usedBytes: null, maxBytes: null, policy: null });
    expect(fullest([])).toEqual({ usedBytes: null, maxBytes: null, policy: null });
  });

  it('are those of the fullest node of a cluster', () => {
    const node = (usedBytes: number, maxBytes: number | null) => ({ usedBytes, maxBytes, policy: 'noeviction' });
    expect(fullest([node(90, 1_000), node(60, 100), node(5_000, null)])).toEqual(node(60, 100));
  });
});

describe('a Redis that accepts writes', () => {
  it('gives no warning while it is fast and has space', () => {
    expect(redisWarnings(FINE)).toEqual([]);
    expect(redisWarnings({ ...FINE, usedBytes: null, maxBytes: null, policy: null })).toEqual([]);
    // Without a limit it deletes nothing.
    expect(redisWarnings({ ...FINE, maxBytes: null, policy: 'allkeys-lru' })).toEqual([]);
  });

  it.each([
    [{ tookMs: 312.4 }, 'Redis is slow: a write took 312 ms'],
    [{ usedBytes: 95 * MIB }, 'Redis is nearly full: 95 of 100 MB are used, and a full one takes no writes'],
    [{ policy: 'volatile-ttl' }, 'Redis deletes keys when it is full: its maxmemory-policy is volatile-ttl, and must be noeviction'],
  ])('gives a warning where an operator should act: %j', (changes, warning) => {
    expect(redisWarnings({ ...FINE, ...changes })).toEqual([warning]);
  });
});
