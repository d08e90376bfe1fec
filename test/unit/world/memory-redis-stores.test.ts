import { afterAll, beforeAll, describe } from 'vitest';
import { openRedisStores, type RedisStores } from '../../../src/gateway/store/redis/redis-stores.js';
import { silentLog } from '../../../src/lib/log.js';
import { HANG_GUARD_MS } from '../../support/hang-guard.js';
import { serveRedis } from '../../support/memory-redis.js';
import { VirtualClock } from '../../support/virtual-clock.js';
import { MemoryRedis } from '../../world/redis/memory-redis.js';
import { describeAgentChanges } from '../gateway/store/agents-contract.js';
import { describeLogs, TEST_BATCH_RETENTION } from '../gateway/store/batches-contract.js';
import { describeCallsInProgress } from '../gateway/store/calls-contract.js';
import { describeOutbox } from '../gateway/store/outbox-contract.js';
import { describePages } from '../gateway/store/pages-contract.js';
import { describeStores, TEST_RETENTION } from '../gateway/store/store-contract.js';
import { describeThroughput } from '../gateway/store/throughput-contract.js';

// What holds for the stores on a redis-server (test/redis/store) holds on a Redis in memory.

describe('a Redis in memory', () => {
  const clock = new VirtualClock();
  let stores: RedisStores;
  beforeAll(async () => {
    stores = openRedisStores({
      commandTimeoutMs: HANG_GUARD_MS,
      url: serveRedis(new MemoryRedis(clock)),
      clock,
      log: silentLog,
      callRetention: TEST_RETENTION,
      batchRetention: TEST_BATCH_RETENTION,
      instance: 'gw-1',
    });
    await stores.ready(HANG_GUARD_MS);
  });
  afterAll(() => stores.close());

  const advance = (ms: number): Promise<void> => {
    clock.advance(ms);
    return Promise.resolve();
  };
  const open = () => ({ clock, stores, advance });
  describeStores('stores in a Redis in memory', open);
  describePages('stores in a Redis in memory', open);
  describeCallsInProgress('stores in a Redis in memory', open);
  describeOutbox('stores in a Redis in memory', open);
  describeAgentChanges('stores in a Redis in memory', open);
  describeLogs('stores in a Redis in memory', open);
  describeThroughput('stores in a Redis in memory', open);
});
