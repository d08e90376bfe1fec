import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { StoreUnavailableError } from '../../../src/gateway/ports/ports.js';
import { silentLog } from '../../../src/lib/log.js';
import { systemClock } from '../../../src/lib/system-clock.js';
import { gatewayChannel } from '../../../src/gateway/store/redis/keys.js';
import { RedisConnection } from '../../../src/gateway/store/redis/redis.js';
import type { RedisStores, RedisStoresOptions } from '../../../src/gateway/store/redis/redis-stores.js';
import { startRedis, startRedisCluster, type AnyRedis } from '../../support/redis.js';
import { openStores } from '../../support/redis-stores.js';
import { VirtualClock } from '../../support/virtual-clock.js';
import { workerRedis, workerRedisCluster } from '../../support/worker-redis.js';
import { recordingLog, type LogLine } from '../../unit/gateway/api/api-fixture.js';
import { eventually } from '../api/http-fixture.js';
import { HANG_GUARD_MS } from '../../support/hang-guard.js';

/** How long an answer is waited for. */
const LIMIT_MS = 2_000;

for (const cluster of [false, true]) {
  const what = cluster ? 'a Redis Cluster of three nodes' : 'redis-server';
  describe(`requests between gateways, ${what}`, () => {
    let redis: AnyRedis;
    let clock: VirtualClock;
    let lines: LogLine[];
    let asker: RedisStores;
    let answerer: RedisStores;
    const opened: RedisStores[] = [];

    async function gateway(instance: string, options: Partial<RedisStoresOptions> = {}): Promise<RedisStores> {
      const stores = await openStores(redis, { clock, instance, ...options });
      opened.push(stores);
      await eventually(
        () => redis.command(`PUBSUB NUMSUB ${gatewayChannel(instance)}`),
        (answer) => answer.includes(':1\r\n'),
      );
      return stores;
    }

    beforeAll(async () => {
      redis = cluster ? await workerRedisCluster() : await workerRedis();
    });
    beforeEach(async () => {
      lines = [];
      clock = new VirtualClock();
      asker = await gateway('asks');
      answerer = await gateway('answers', { log: recordingLog(lines) });
    });
    afterEach(async () => {
      for (const stores of opened.splice(0)) await stores.close();
    });

    it('get an answer of the gateway that was asked, at the one that asked', async () => {
      answerer.bus.onRequest((body) => Promise.resolve({ heard: body }));
      asker.bus.onRequest(() => ({ heard: 'by the wrong one' }));
      const answers = await Promise.all([1, 2, 3].map((n) => asker.bus.request('answers', { n }, LIMIT_MS)));
      expect(answers).toEqual([1, 2, 3].map((n) => ({ heard: { n } })));
    });

    it('get none from a gateway that is not there, or whose handler fails', async () => {
      answerer.bus.onRequest(() => Promise.reject(new Error('a bug')));
      const answers = ['nobody', 'answers'].map((instance) => asker.bus.request(instance, {}, LIMIT_MS));
      await eventually(
        () => Promise.resolve(lines),
        (logged) => logged.some(({ event }) => event === 'gateway.bus.not_answered'),
      );
      clock.advance(LIMIT_MS);
      expect(await Promise.all(answers)).toEqual([null, null]);
    });

    it('survive messages that are garbled, too long or an answer to nothing', async () => {
      let requests = 0;
      answerer.bus.onRequest(() => ({ requests: (requests += 1) }));
      const id = '0f8fad5b-d9cb-469f-a165-70867728950e';
      const connection = new RedisConnection({ commandTimeoutMs: HANG_GUARD_MS, url: redis.url, clock: systemClock, log: silentLog });
      await connection.ready(HANG_GUARD_MS);
      const garbled = ['{', '1', '{"type":"request"}', `{"type":"shout","id":"${id}","from":"x","body":{}}`, 'x'.repeat(300_000)];
      const toNobody = `{"type":"answer","id":"${id}","from":"x","body":1}`;
      for (const text of [...garbled, toNobody]) await connection.client.publish(gatewayChannel('answers'), text);
      await connection.close();
      expect(await asker.bus.request('answers', {}, LIMIT_MS)).toEqual({ requests: 1 });
      clock.advance(1_000);
      const reports = lines.filter(({ event }) => event === 'gateway.bus.ignored');
      expect(reports.map(({ fields }) => fields)).toEqual([{ messages: 5 }]);
    });

    it('reject when they are too long', async () => {
      await expect(asker.bus.request('answers', 'x'.repeat(300_000), LIMIT_MS)).rejects.toThrow('more than');
    });
  });

  it(`a request without ${what} rejects with StoreUnavailableError`, async () => {
    const redis = cluster ? await startRedisCluster() : await startRedis();
    const asker = await openStores(redis, { instance: 'asks' });
    await redis.stopServer();
    await expect(asker.bus.request('answers', {}, LIMIT_MS)).rejects.toThrow(StoreUnavailableError);
    await asker.close();
    await redis.close();
  });
}
