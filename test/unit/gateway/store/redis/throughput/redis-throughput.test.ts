import { describe, expect, it } from 'vitest';
import { StoreUnavailableError } from '../../../../../../src/gateway/ports/ports.js';
import type { RedisCommand, RedisConnection } from '../../../../../../src/gateway/store/redis/redis.js';
import { RedisThroughput } from '../../../../../../src/gateway/store/redis/throughput/redis-throughput.js';
import { VirtualClock } from '../../../../../support/virtual-clock.js';

describe('the throughput in Redis', () => {
  const clock = new VirtualClock();
  const pipelines: (readonly RedisCommand[])[] = [];
  let isAway = false;
  // Nothing else of the connection is used.
  const redis = {
    pipeline: (commands: readonly RedisCommand[]) => {
      if (isAway) return Promise.reject(new StoreUnavailableError('away'));
      pipelines.push(commands);
      return Promise.resolve([]);
    },
  } as unknown as RedisConnection;
  const throughput = new RedisThroughput(redis, redis, clock);
  const written = () => pipelines.splice(0).map((commands) => commands.map(([name, , field, calls]) => [name, field, calls]));

  it('adds the counts of a second in one pipeline, and sends nothing while nothing happens', async () => {
    for (let call = 0; call < 3; call += 1) throughput.count('org', 'begun');
    throughput.count('org', 'refused');
    expect(written()).toEqual([]);
    await clock.advanceAsync(1_000);
    const field = String(clock.epochMs);
    expect(written()).toEqual([
      [
        ['hincrby', `${field}:begun`, 3],
        ['hincrby', `${field}:refused`, 1],
        ['expire', 1_200, undefined],
      ],
    ]);
    expect(clock.pendingTimers).toBe(0);
  });

  it('keeps what it could not write until Redis is back, but no longer than any query covers', async () => {
    isAway = true;
    throughput.count('org', 'ended');
    await clock.advanceAsync(1_000);
    throughput.count('org', 'ended');
    await clock.advanceAsync(5_000);
    isAway = false;
    await clock.advanceAsync(1_000);
    expect(written()[0]?.[0]).toEqual(['hincrby', `${String(clock.epochMs)}:ended`, 2]);

    isAway = true;
    throughput.count('org', 'ended');
    await clock.advanceAsync(880_000);
    expect(clock.pendingTimers).toBe(1);
    await clock.advanceAsync(30_000);
    isAway = false;
    await clock.advanceAsync(2_000);
    expect([written(), clock.pendingTimers]).toEqual([[], 0]);
  });
});
