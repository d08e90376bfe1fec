import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { E164 } from '../../../src/gateway/model/e164.js';
import { brokenLimit, NO_USAGE } from '../../../src/gateway/admission/admission.js';
import { newUuid } from '../../../src/lib/ids.js';
import { silentLog } from '../../../src/lib/log.js';
import { systemClock } from '../../../src/lib/system-clock.js';
import { numberLeasesKey, numberRecentKey, orgLeasesKey, orgLiveCallsKey, orgLiveKey } from '../../../src/gateway/store/redis/keys.js';
import { openRedisStores, type RedisStores, type RedisStoresOptions } from '../../../src/gateway/store/redis/redis-stores.js';
import { begun } from '../../support/begun-call.js';
import { endLease, leaseEnd, startRedis, startRedisCluster, type TestRedisCluster } from '../../support/redis.js';
import { VirtualClock } from '../../support/virtual-clock.js';
import { freshNumber, inboundSetting } from '../../unit/gateway/store/store-contract.js';
import { eventually } from '../api/http-fixture.js';
import { HANG_GUARD_MS } from '../../support/hang-guard.js';

for (const cluster of [false, true]) {
  describe(`places of calls over several gateways, ${cluster ? 'a Redis Cluster of three nodes' : 'redis-server'}`, () => {
    let redis: Omit<TestRedisCluster, 'nodes'>;
    let orgId: string;
    const opened: RedisStores[] = [];
    let gateways: readonly RedisStores[];
    beforeAll(async () => {
      redis = cluster ? await startRedisCluster() : await startRedis();
    });
    beforeEach(async () => {
      gateways = await Promise.all(['gw-1', 'gw-2'].map((instance) => gateway({ instance })));
      orgId = (await gateways[0]!.orgs.create({ name: 'one', sip_enabled: true })).org_id;
    });
    afterAll(async () => {
      await Promise.all(opened.map((stores) => stores.close()));
      await redis.close();
    });

    async function gateway(options: Partial<RedisStoresOptions>): Promise<RedisStores> {
      const stores = openRedisStores({
        commandTimeoutMs: HANG_GUARD_MS,
        url: redis.url,
        cluster,
        clock: systemClock,
        log: silentLog,
        ...options,
      });
      opened.push(stores);
      await stores.ready(HANG_GUARD_MS);
      return stores;
    }

    async function attached(limit: number | null = null): Promise<E164> {
      const number = freshNumber();
      await gateways[0]!.numbers.attach(orgId, number, { inbound: inboundSetting({ max_concurrent_calls: limit }) });
      return number;
    }

    /** Looks 200 calls up at once, on both gateways; resolves with the ids of those that no limit refuses. */
    async function flood(numbers: readonly E164[]): Promise<string[]> {
      const calls = Array.from({ length: 200 }, (_, index) => ({ id: newUuid(), index }));
      const admitted = await Promise.all(
        calls.map(async ({ id, index }) => {
          const { route, load } = await gateways[index % 2]!.routes.lookup(numbers[index % numbers.length]!, begun(id));
          return route !== null && brokenLimit(route, load) === null ? [id] : [];
        }),
      );
      return admitted.flat();
    }

    /** What the refused calls of both gateways gave back of the other limit is through: a ping is answered behind it. */
    async function refusedGaveBack(): Promise<void> {
      // On a busy machine the nodes of the cluster take one another for dead now and then; a ping says so.
      const isAnswered = (stores: RedisStores): Promise<boolean> =>
        stores.ping().then(
          () => true,
          () => false,
        );
      for (const stores of gateways) await eventually(() => isAnswered(stores), Boolean);
    }

    const callsOf = async (number: E164): Promise<number> => (await gateways[1]!.routes.lookup(number, null)).load.numberCalls;

    it('of 200 calls at once 50 get the 50 places of a number, known to the gateways before or not', async () => {
      const number = await attached(50);
      const first = await flood([number]);
      expect([first.length, await callsOf(number)]).toEqual([50, 50]);
      for (const id of first) for (const { routes } of gateways) routes.release(id);
      await eventually(
        () => callsOf(number),
        (calls) => calls === 0,
      );
      // Each gateway that knows the number admits one call at most before Redis has confirmed it (docs/interface.md).
      const second = await flood([number]);
      expect(second.length).toBeGreaterThanOrEqual(50);
      expect(second.length).toBeLessThanOrEqual(50 + gateways.length);
      await refusedGaveBack();
      const { load } = await gateways[0]!.routes.lookup(number, null);
      expect(load).toMatchObject({ numberCalls: second.length, orgCalls: second.length });
    });

    it('of 200 calls at once to seven numbers 50 get the 50 places of their organization', async () => {
      const numbers = await Promise.all(Array.from({ length: 7 }, () => attached()));
      await gateways[0]!.orgs.change(orgId, { max_concurrent_calls: 50 });
      const admitted = await flood(numbers);
      expect(admitted.length).toBeGreaterThanOrEqual(50);
      expect(admitted.length).toBeLessThanOrEqual(50 + gateways.length);
      await refusedGaveBack();
      const counts = await Promise.all(numbers.map(callsOf));
      expect(counts.reduce((sum, count) => sum + count, 0)).toBe(admitted.length);
    });

    it('the places of a gateway that died are free when its lease is over', async () => {
      const number = await attached();
      const dying = await gateway({ instance: 'gw-3' });
      const callId = newUuid();
      await dying.routes.lookup(number, begun(callId));
      await dying.close();
      expect(await callsOf(number)).toBe(1);
      for (const key of [numberLeasesKey(number), orgLeasesKey(orgId)]) await endLease(redis, key, callId);
      expect((await gateways[1]!.routes.lookup(number, null)).load).toMatchObject({ numberCalls: 0, orgCalls: 0 });
    });

    it('a place is renewed, and taken again when Redis lost it with its scripts', async () => {
      const clock = new VirtualClock();
      const stores = await gateway({ instance: 'gw-4', clock, leaseMs: 30_000 });
      const number = await attached();
      const callId = newUuid();
      await stores.routes.lookup(number, begun(callId));
      for (const key of [numberLeasesKey(number), orgLeasesKey(orgId)]) await endLease(redis, key, callId);
      const renewedMs = Date.now();
      clock.advance(10_000);
      for (const key of [numberLeasesKey(number), orgLeasesKey(orgId)]) {
        const ends = await eventually(
          () => leaseEnd(redis, key, callId),
          (ms) => ms > 1,
        );
        // For 30 s more, from when it was renewed.
        expect(ends).toBeGreaterThanOrEqual(renewedMs + 30_000);
        expect(ends).toBeLessThanOrEqual(Date.now() + 30_000);
      }
      await redis.command('SCRIPT FLUSH');
      for (const key of [numberLeasesKey(number), orgLeasesKey(orgId)]) await redis.command(`DEL ${key}`);
      clock.advance(10_000);
      await eventually(
        () => gateways[1]!.routes.lookup(number, null),
        ({ load }) => load.numberCalls === 1 && load.orgCalls === 1,
      );
      stores.routes.release(callId);
      await eventually(
        () => callsOf(number),
        (calls) => calls === 0,
      );
      clock.advance(10_000);
      // Answered behind the renewal that would have brought it back.
      await stores.ping();
      expect(await callsOf(number)).toBe(0);
    });

    it('a call of a gateway that died is taken off the list by whoever reads it', async () => {
      const number = await attached();
      const dying = await gateway({ instance: 'gw-5' });
      const [kept, lost] = [newUuid(), newUuid()];
      await dying.routes.lookup(number, begun(lost));
      await gateways[0]!.routes.lookup(number, begun(kept));
      const listed = async (): Promise<string[]> =>
        (await gateways[1]!.live.list(orgId, { limit: 10 })).calls.map(({ call_id: callId, gateway: name }) => `${callId} ${name}`);
      expect(await listed()).toHaveLength(2);
      await dying.close();
      expect(await listed()).toHaveLength(2);
      await endLease(redis, orgLeasesKey(orgId), lost);
      expect(await listed()).toEqual([`${kept} gw-1`]);
      for (const command of [`ZCARD ${orgLiveKey(orgId)}`, `HLEN ${orgLiveCallsKey(orgId)}`])
        expect(await redis.command(command)).toBe(':1\r\n');
    });

    it('a call that began while Redis was away, or that Redis lost, is listed at the next renewal', async () => {
      const clock = new VirtualClock();
      const stores = await gateway({ instance: 'gw-6', clock, leaseMs: 30_000 });
      const number = await attached();
      const callId = newUuid();
      await stores.routes.lookup(number, begun(callId));
      for (const key of [orgLiveKey(orgId), orgLiveCallsKey(orgId), orgLeasesKey(orgId)]) await redis.command(`DEL ${key}`);
      expect(await gateways[1]!.live.get(orgId, callId)).toBeNull();
      clock.advance(10_000);
      const found = await eventually(
        () => gateways[1]!.live.get(orgId, callId),
        (call) => call !== null,
      );
      expect(found).toMatchObject({ gateway: 'gw-6', to: number });
      stores.routes.release(callId);
      await eventually(
        () => gateways[1]!.live.list(orgId, { limit: 1 }),
        ({ calls }) => calls.length === 0,
      );
      for (const key of [orgLiveKey(orgId), orgLiveCallsKey(orgId)]) expect(await redis.command(`EXISTS ${key}`)).toBe(':0\r\n');
    });

    it('keeps the calls of the last second only under a limit, and no more of them than that', async () => {
      const [free, rated] = [await attached(), freshNumber()];
      await gateways[0]!.numbers.attach(orgId, rated, { inbound: inboundSetting({ max_calls_per_second: 3 }) });
      await flood([free]);
      await flood([rated]);
      expect(await redis.command(`EXISTS ${numberRecentKey(free)}`)).toBe(':0\r\n');
      const kept = Number(/:(\d+)/.exec(await redis.command(`ZCARD ${numberRecentKey(rated)}`))?.[1]);
      expect(kept).toBeLessThanOrEqual(3);
    });

    it('looks up after a restart of Redis, whose scripts and places are gone', async () => {
      const number = await attached(1);
      const [first, second] = [newUuid(), newUuid()];
      await gateways[0]!.routes.lookup(number, begun(first));
      await redis.command('SCRIPT FLUSH');
      const { route, load } = await gateways[1]!.routes.lookup(number, begun(second));
      expect(route === null || brokenLimit(route, load)).toBe('NUMBER_CALL_LIMIT');
      await redis.stopServer();
      await redis.startServer();
      for (const stores of gateways) {
        await eventually(
          () =>
            stores.ping().then(
              () => true,
              () => false,
            ),
          (isThere) => isThere,
        );
      }
      gateways[0]!.routes.release(first);
      await gateways[0]!.ping();
      expect((await gateways[1]!.routes.lookup(number, begun(second))).load).toEqual(NO_USAGE);
    });
  });
}
