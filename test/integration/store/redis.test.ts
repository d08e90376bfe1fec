import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { silentLog } from '../../../src/lib/log.js';
import { openRedisStores, type RedisStores } from '../../../src/store/redis-stores.js';
import { startRedis, startRedisCluster, type TestRedis } from '../../support/redis.js';
import { VirtualClock } from '../../support/virtual-clock.js';
import { describeAgentChanges } from '../../unit/store/agents-contract.js';
import { describeLogs, TEST_BATCH_RETENTION } from '../../unit/store/batches-contract.js';
import { describeCallsInProgress } from '../../unit/store/calls-contract.js';
import { describeOutbox } from '../../unit/store/outbox-contract.js';
import { describePages } from '../../unit/store/pages-contract.js';
import { describeStores, TEST_RETENTION } from '../../unit/store/store-contract.js';
import { describeThroughput } from '../../unit/store/throughput-contract.js';

const alone = (node: TestRedis) => ({ url: node.url, nodes: [node], close: () => node.close() });

for (const cluster of [false, true]) {
  describe(cluster ? 'a Redis Cluster of three nodes' : 'redis-server', () => {
    // Redis expires keys by its own clock, so the virtual one starts now.
    const clock = new VirtualClock(Date.now());
    let redis: { readonly url: string; readonly nodes: readonly TestRedis[]; readonly close: () => Promise<void> };
    let stores: RedisStores;
    beforeAll(async () => {
      redis = cluster ? await startRedisCluster() : alone(await startRedis());
      stores = openRedisStores({
        url: redis.url,
        cluster,
        clock,
        log: silentLog,
        callRetention: TEST_RETENTION,
        batchRetention: TEST_BATCH_RETENTION,
        instance: 'gw-1',
      });
      await stores.ready(5000);
    });
    afterAll(async () => {
      await stores.close();
      await redis.close();
    });
    describeStores('stores in Redis', () => ({ clock, stores }));
    describePages('stores in Redis', () => ({ clock, stores }));
    describeCallsInProgress('stores in Redis', () => ({ clock, stores }));
    describeOutbox('stores in Redis', () => ({ clock, stores }));
    describeAgentChanges('stores in Redis', () => ({ clock, stores }));
    describeLogs('stores in Redis', () => ({ clock, stores }));
    describeThroughput('stores in Redis', () => ({ clock, stores }));

    it('keeps the digest of a key only', async () => {
      const { key } = await stores.keys.create('org', 'ci');
      const dump = (await Promise.all(redis.nodes.map((node) => node.command('KEYS *')))).join('');
      expect(dump).toContain('key:{');
      expect(dump).not.toContain(key);
    });
  });
}
