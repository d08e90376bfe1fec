import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { E164 } from '../../../src/gateway/model/e164.js';
import { brokenLimit, NO_USAGE } from '../../../src/gateway/admission/admission.js';
import { newUuid } from '../../../src/lib/ids.js';
import { numberLeasesKey, numberRecentKey, orgLeasesKey, orgLiveCallsKey, orgLiveKey } from '../../../src/gateway/store/redis/keys.js';
import type { RedisStores, RedisStoresOptions } from '../../../src/gateway/store/redis/redis-stores.js';
import { begun } from '../../support/begun-call.js';
import { expectExpiry } from '../../support/expiry.js';
import { leaseEnd, startRedis, startRedisCluster, type AnyRedis } from '../../support/redis.js';
import { LEASE_MS, leasePasses } from '../../support/lease.js';
import { openStores } from '../../support/redis-stores.js';
import { VirtualClock } from '../../support/virtual-clock.js';
import { workerRedis, workerRedisCluster } from '../../support/worker-redis.js';
import { freshNumber, inboundSetting } from '../../unit/gateway/store/store-contract.js';
import { eventually } from '../api/http-fixture.js';

/** Resolves when a ping is answered. */
const answersAgain = (stores: RedisStores): Promise<boolean> =>
  eventually(
    () =>
      stores.ping().then(
        () => true,
        () => false,
      ),
    Boolean,
  );

const what = (cluster: boolean): string => (cluster ? 'a Redis Cluster of three nodes' : 'redis-server');

for (const cluster of [false, true]) {
  describe(`slots of calls over several gateways, ${what(cluster)}`, () => {
    let redis: AnyRedis;
    let orgId: string;
    const opened: RedisStores[] = [];
    let gateways: readonly RedisStores[];
    beforeAll(async () => {
      redis = cluster ? await workerRedisCluster() : await workerRedis();
    });
    beforeEach(async () => {
      gateways = await Promise.all(['gw-1', 'gw-2'].map((instance) => gateway({ instance })));
      orgId = (await gateways[0]!.orgs.create({ name: 'one', sip_enabled: true })).org_id;
    });
    afterEach(() => Promise.all(opened.splice(0).map((stores) => stores.close())));

    async function gateway(options: Partial<RedisStoresOptions>): Promise<RedisStores> {
      const stores = await openStores(redis, options);
      opened.push(stores);
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
      for (const stores of gateways) await stores.ping();
    }

    const listOf = (): readonly string[] => [orgLiveKey(orgId), orgLiveCallsKey(orgId)];
    const leasesOf = (number: E164): readonly string[] => [numberLeasesKey(number), orgLeasesKey(orgId)];
    const callsOf = async (number: E164): Promise<number> => (await gateways[1]!.routes.lookup(number, null)).load.numberCalls;

    it('admit 50 of 200 concurrent calls to a number with a limit of 50, cached or not', async () => {
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

    it('admit 50 of 200 concurrent calls to seven numbers of an organization with a limit of 50', async () => {
      const numbers = await Promise.all(Array.from({ length: 7 }, () => attached()));
      await gateways[0]!.orgs.change(orgId, { max_concurrent_calls: 50 });
      const admitted = await flood(numbers);
      expect(admitted.length).toBeGreaterThanOrEqual(50);
      expect(admitted.length).toBeLessThanOrEqual(50 + gateways.length);
      await refusedGaveBack();
      const counts = await Promise.all(numbers.map(callsOf));
      expect(counts.reduce((sum, count) => sum + count, 0)).toBe(admitted.length);
    });

    it('are free again when the lease of a gateway that died is over', async () => {
      const number = await attached();
      const dying = await gateway({ instance: 'gw-3' });
      await expectExpiry(redis, [...leasesOf(number), ...listOf()], LEASE_MS, () => dying.routes.lookup(number, begun(newUuid())));
      await dying.close();
      expect(await callsOf(number)).toBe(1);
      await redis.advance(LEASE_MS);
      expect((await gateways[1]!.routes.lookup(number, null)).load).toMatchObject({ numberCalls: 0, orgCalls: 0 });
    });

    it('are renewed, and taken again when Redis lost them with its scripts', async () => {
      const clock = new VirtualClock();
      const stores = await gateway({ instance: 'gw-4', clock });
      const number = await attached();
      const callId = newUuid();
      await stores.routes.lookup(number, begun(callId));
      const begunMs = redis.now();
      await expectExpiry(redis, [...leasesOf(number), ...listOf()], LEASE_MS, () => leasePasses(redis, stores, clock));
      for (const key of leasesOf(number)) {
        // For another lease, from when it was renewed.
        const ends = await leaseEnd(redis, key, callId);
        expect(ends).toBeGreaterThanOrEqual(begunMs + 2 * LEASE_MS);
        expect(ends).toBeLessThanOrEqual(redis.now() + LEASE_MS);
      }
      await redis.command('SCRIPT FLUSH');
      for (const key of leasesOf(number)) await redis.command(`DEL ${key}`);
      await redis.advance(LEASE_MS / 3, clock);
      await stores.ping();
      expect((await gateways[1]!.routes.lookup(number, null)).load).toMatchObject({ numberCalls: 1, orgCalls: 1 });
      stores.routes.release(callId);
      await eventually(
        () => callsOf(number),
        (calls) => calls === 0,
      );
      await leasePasses(redis, stores, clock);
      expect(await callsOf(number)).toBe(0);
    });

    it('leave the list when any gateway reads the call of one that died', async () => {
      const number = await attached();
      const clock = new VirtualClock();
      const [living, dying] = [await gateway({ instance: 'gw-5', clock }), await gateway({ instance: 'gw-6', clock })];
      const [kept, lost] = [newUuid(), newUuid()];
      await dying.routes.lookup(number, begun(lost));
      await living.routes.lookup(number, begun(kept));
      const listed = async (): Promise<string[]> =>
        (await gateways[1]!.live.list(orgId, { limit: 10 })).calls.map(({ call_id: callId, gateway: name }) => `${callId} ${name}`);
      expect(await listed()).toHaveLength(2);
      await dying.close();
      expect(await listed()).toHaveLength(2);
      await leasePasses(redis, living, clock);
      expect(await listed()).toEqual([`${kept} gw-5`]);
      for (const command of [`ZCARD ${orgLiveKey(orgId)}`, `HLEN ${orgLiveCallsKey(orgId)}`])
        expect(await redis.command(command)).toBe(':1\r\n');
    });

    it('list a call that began while Redis was away, or that Redis lost, at the next renewal', async () => {
      const clock = new VirtualClock();
      const stores = await gateway({ instance: 'gw-7', clock });
      const number = await attached();
      const callId = newUuid();
      await stores.routes.lookup(number, begun(callId));
      for (const key of [...listOf(), orgLeasesKey(orgId)]) await redis.command(`DEL ${key}`);
      expect(await gateways[1]!.live.get(orgId, callId)).toBeNull();
      await redis.advance(LEASE_MS / 3, clock);
      // Answered behind the renewal.
      await stores.ping();
      expect(await gateways[1]!.live.get(orgId, callId)).toMatchObject({ gateway: 'gw-7', to: number });
      stores.routes.release(callId);
      await eventually(
        () => gateways[1]!.live.list(orgId, { limit: 1 }),
        ({ calls }) => calls.length === 0,
      );
      for (const key of listOf()) expect(await redis.command(`EXISTS ${key}`)).toBe(':0\r\n');
    });

    it('keep the calls of the last second only under a limit, and no more of them than that', async () => {
      const [free, rated] = [await attached(), freshNumber()];
      await gateways[0]!.numbers.attach(orgId, rated, { inbound: inboundSetting({ max_calls_per_second: 3 }) });
      await flood([free]);
      await flood([rated]);
      expect(await redis.command(`EXISTS ${numberRecentKey(free)}`)).toBe(':0\r\n');
      const kept = Number(/:(\d+)/.exec(await redis.command(`ZCARD ${numberRecentKey(rated)}`))?.[1]);
      expect(kept).toBeLessThanOrEqual(3);
    });
  });

  it(`look-ups work after a restart of ${what(cluster)}, whose scripts and slots are gone`, async () => {
    const redis = cluster ? await startRedisCluster() : await startRedis();
    const [first, second] = await Promise.all([openStores(redis, { instance: 'gw-1' }), openStores(redis, { instance: 'gw-2' })]);
    const { org_id: orgId } = await first.orgs.create({ name: 'one', sip_enabled: true });
    const number = freshNumber();
    await first.numbers.attach(orgId, number, { inbound: inboundSetting({ max_concurrent_calls: 1 }) });
    const [before, after] = [newUuid(), newUuid()];
    await first.routes.lookup(number, begun(before));
    await redis.command('SCRIPT FLUSH');
    const { route, load } = await second.routes.lookup(number, begun(after));
    expect(route === null || brokenLimit(route, load)).toBe('NUMBER_CALL_LIMIT');
    await redis.stopServer();
    await redis.startServer();
    for (const stores of [first, second]) await answersAgain(stores);
    first.routes.release(before);
    await first.ping();
    expect((await second.routes.lookup(number, begun(after))).load).toEqual(NO_USAGE);
    await Promise.all([first.close(), second.close()]);
    await redis.close();
  });
}
