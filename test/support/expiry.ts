import { expect } from 'vitest';
import type { AnyRedis } from './redis.js';

/** Does the work, after which each of the keys expires in so many ms: by the clock of the server, not sooner and not later. */
export async function expectExpiry<T>(
  redis: Pick<AnyRedis, 'expiresMs'>,
  keys: readonly string[],
  ms: number,
  work: () => Promise<T>,
): Promise<T> {
  const startedMs = Date.now();
  const done = await work();
  for (const key of keys) {
    const expiresMs = await redis.expiresMs(key);
    expect(expiresMs, `${key} expires too soon, or is not there`).toBeGreaterThanOrEqual(startedMs + ms);
    expect(expiresMs, `${key} expires too late`).toBeLessThanOrEqual(Date.now() + ms);
  }
  return done;
}
