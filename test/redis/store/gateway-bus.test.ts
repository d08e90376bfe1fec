import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { StoreUnavailableError } from '../../../src/gateway/ports/ports.js';
import { silentLog } from '../../../src/lib/log.js';
import { systemClock } from '../../../src/lib/system-clock.js';
import { gatewayChannel } from '../../../src/gateway/store/redis/keys.js';
import { RedisConnection } from '../../../src/gateway/store/redis/redis.js';
import { openRedisStores, type RedisStores } from '../../../src/gateway/store/redis/redis-stores.js';
import { startRedis, startRedisCluster, type TestRedisCluster } from '../../support/redis.js';
import { VirtualClock } from '../../support/virtual-clock.js';
import { recordingLog, type LogLine } from '../../unit/gateway/api/api-fixture.js';
import { eventually } from '../api/http-fixture.js';
import { HANG_GUARD_MS } from '../../support/hang-guard.js';

for (const cluster of [false, true]) {
  describe(`requests between gateways, ${cluster ? 'a Redis Cluster of three nodes' : 'redis-server'}`, () => {
    let redis: Omit<TestRedisCluster, 'nodes'>;
    let clock: VirtualClock;
    let lines: LogLine[];
    let asker: RedisStores;
    let answerer: RedisStores;
    const opened: RedisStores[] = [];

    async function gateway(instance: string, options: Partial<Parameters<typeof openRedisStores>[0]> = {}): Promise<RedisStores> {
      const stores = openRedisStores({
        commandTimeoutMs: HANG_GUARD_MS,
        url: redis.url,
        cluster,
        clock: systemClock,
        log: silentLog,
        instance,
        ...options,
      });
      opened.push(stores);
      await stores.ready(HANG_GUARD_MS);
      await eventually(
        () => redis.command(`PUBSUB NUMSUB ${gatewayChannel(instance)}`),
        (answer) => answer.includes(':1\r\n'),
      );
      return stores;
    }

    beforeAll(async () => {
      redis = cluster ? await startRedisCluster() : await startRedis();
    });
    beforeEach(async () => {
      for (const stores of opened.splice(0)) await stores.close();
      lines = [];
      clock = new VirtualClock();
      asker = await gateway('asks');
      answerer = await gateway('answers', { clock, log: recordingLog(lines) });
    });
    afterAll(async () => {
      for (const stores of opened) await stores.close();
      await redis.close();
    });

    it('each is answered to the one that asked, by the one that was asked', async () => {
      answerer.bus.onRequest((body) => Promise.resolve({ heard: body }));
      asker.bus.onRequest(() => ({ heard: 'by the wrong one' }));
      const answers = await Promise.all([1, 2, 3].map((n) => asker.bus.request('answers', { n }, HANG_GUARD_MS)));
      expect(answers).toEqual([1, 2, 3].map((n) => ({ heard: { n } })));
    });

    it('a gateway that is not there, or whose answer fails, gives none', async () => {
      expect(await asker.bus.request('nobody', {}, 50)).toBeNull();
      answerer.bus.onRequest(() => Promise.reject(new Error('a bug')));
      expect(await asker.bus.request('answers', {}, 50)).toBeNull();
    });

    it('what is garbled, too long or an answer to nothing is ignored, and the rest still works', async () => {
      let requests = 0;
      answerer.bus.onRequest(() => ({ requests: (requests += 1) }));
      const id = '0f8fad5b-d9cb-469f-a165-70867728950e';
      const connection = new RedisConnection({ commandTimeoutMs: HANG_GUARD_MS, url: redis.url, clock: systemClock, log: silentLog });
      await connection.ready(HANG_GUARD_MS);
      const garbled = ['{', '1', '{"type":"request"}', `{"type":"shout","id":"${id}","from":"x","body":{}}`, 'x'.repeat(300_000)];
      const toNobody = `{"type":"answer","id":"${id}","from":"x","body":1}`;
      for (const text of [...garbled, toNobody]) await connection.client.publish(gatewayChannel('answers'), text);
      await connection.close();
      expect(await asker.bus.request('answers', {}, HANG_GUARD_MS)).toEqual({ requests: 1 });
      clock.advance(1_000);
      const reports = lines.filter(({ event }) => event === 'gateway.bus.ignored');
      expect(reports.map(({ fields }) => fields)).toEqual([{ messages: 5 }]);
    });

    it('a request that is too long is a bug, and one without Redis says so', async () => {
      await expect(asker.bus.request('answers', 'x'.repeat(300_000), 50)).rejects.toThrow('more than');
      await redis.stopServer();
      await expect(asker.bus.request('answers', {}, HANG_GUARD_MS)).rejects.toThrow(StoreUnavailableError);
      await redis.startServer();
    });
  });
}
