import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { OrgChange } from '../../../src/gateway/ports/stores.js';
import { orgProviderDayKey, orgProviderSessionsKey } from '../../../src/gateway/store/redis/keys.js';
import type { RedisStores } from '../../../src/gateway/store/redis/redis-stores.js';
import { isoNow } from '../../../src/lib/clock.js';
import { newUuid } from '../../../src/lib/ids.js';
import { expectExpiry } from '../../support/expiry.js';
import { startRedis, type AnyRedis } from '../../support/redis.js';
import { LEASE_MS, leasePasses } from '../../support/lease.js';
import { openStores } from '../../support/redis-stores.js';
import { VirtualClock } from '../../support/virtual-clock.js';
import { workerRedis, workerRedisCluster } from '../../support/worker-redis.js';
import { eventually } from '../api/http-fixture.js';

/** How long the use of a day is kept. */
const DAY_KEPT_MS = 2 * 86_400_000;

for (const cluster of [false, true]) {
  describe(`sessions at providers over several gateways, ${cluster ? 'a Redis Cluster of three nodes' : 'redis-server'}`, () => {
    let redis: AnyRedis;
    let orgId: string;
    let one: RedisStores;
    let other: RedisStores;
    beforeAll(async () => {
      redis = cluster ? await workerRedisCluster() : await workerRedis();
      [one, other] = await Promise.all([openStores(redis, { instance: 'gw-1' }), openStores(redis, { instance: 'gw-2' })]);
    });
    beforeEach(async () => {
      orgId = (await one.orgs.create({ name: 'one', sip_enabled: true })).org_id;
    });
    afterAll(() => Promise.all([one.close(), other.close()]));

    async function limited(change: OrgChange) {
      const org = await one.orgs.change(orgId, change);
      if (org === null) throw new Error('there is no organization');
      return org;
    }

    const usage = () => one.providerUsage.usage(orgId);

    it('begin for as many of 100 concurrent calls as there are slots, on all gateways together', async () => {
      const org = await limited({ max_provider_sessions: 30 });
      const calls = Array.from({ length: 100 }, () => newUuid());
      const broken = await Promise.all(calls.map((id, index) => [one, other][index % 2]!.ofCalls.sessions.begin(org, id)));
      expect(broken.filter((limit) => limit === null)).toHaveLength(30);
      expect(new Set(broken)).toEqual(new Set([null, 'ORG_SESSION_LIMIT']));
      expect((await usage()).sessions).toBe(30);
      for (const id of calls) for (const { ofCalls } of [one, other]) ofCalls.sessions.end(id);
      await eventually(usage, ({ sessions }) => sessions === 0);
    });

    it('count for a call that continues after a restart, whatever the limit', async () => {
      const org = await limited({ max_provider_sessions: 0 });
      expect(await one.ofCalls.sessions.begin(org, 'a')).toBe('ORG_SESSION_LIMIT');
      expect(await one.ofCalls.sessions.begin(org, 'a', true)).toBe(null);
      expect((await usage()).sessions).toBe(1);
      one.ofCalls.sessions.end('a');
    });

    it('count tokens and time, and are refused when those are used up', async () => {
      const org = await limited({ max_provider_tokens_per_day: 100 });
      expect(await one.ofCalls.sessions.begin(org, 'a')).toBe(null);
      one.ofCalls.sessions.used('a', 60);
      one.ofCalls.sessions.used('a', 40);
      one.ofCalls.sessions.end('a');
      // It has ended: what a late message of the provider reports counts no more.
      one.ofCalls.sessions.used('a', 1);
      expect((await eventually(usage, ({ tokens }) => tokens > 0)).tokens).toBe(100);
      expect(await other.ofCalls.sessions.begin(org, 'b')).toBe('ORG_TOKEN_LIMIT');
      expect((await usage()).sessions).toBe(0);
      const minutes = await limited({ max_provider_tokens_per_day: null, max_provider_minutes_per_day: 0 });
      expect(await other.ofCalls.sessions.begin(minutes, 'b')).toBe('ORG_MINUTE_LIMIT');
    });

    it('renew slots and count their time while calls last; those of a gateway that died are free again', async () => {
      const org = await limited({ max_provider_sessions: 1 });
      const clock = new VirtualClock();
      const dying = await openStores(redis, { instance: 'gw-3', clock });
      const key = orgProviderSessionsKey(orgId);
      expect(await expectExpiry(redis, [key], LEASE_MS, () => dying.ofCalls.sessions.begin(org, 'a'))).toBe(null);
      const today = orgProviderDayKey(orgId, isoNow(clock).slice(0, 10));
      const renews = () => expectExpiry(redis, [key], LEASE_MS, () => leasePasses(redis, dying, clock));
      await expectExpiry(redis, [today], DAY_KEPT_MS, renews);
      expect((await dying.providerUsage.usage(orgId)).milliseconds).toBe(LEASE_MS);
      expect(await other.ofCalls.sessions.begin(org, 'b')).toBe('ORG_SESSION_LIMIT');
      await dying.close();
      await redis.advance(LEASE_MS);
      expect(await other.ofCalls.sessions.begin(org, 'b')).toBe(null);
      other.ofCalls.sessions.end('b');
      expect(key).toContain(`{${orgId}}`);
    });
  });
}

describe('a process whose Redis is away', () => {
  it('counts its own sessions at providers', async () => {
    const redis = await startRedis();
    const stores = await openStores(redis, { instance: 'gw' });
    const made = await stores.orgs.create({ name: 'one', sip_enabled: true });
    const org = { ...made, max_provider_sessions: 1, max_provider_tokens_per_day: 0 };
    await redis.stopServer();
    await eventually(
      () => Promise.resolve(stores.figures.isUp),
      (isUp) => !isUp,
    );
    const { sessions } = stores.ofCalls;
    expect(await sessions.begin({ ...org, max_provider_tokens_per_day: null }, 'a')).toBe(null);
    expect(await sessions.begin({ ...org, max_provider_tokens_per_day: null }, 'b')).toBe('ORG_SESSION_LIMIT');
    sessions.end('a');
    expect(await sessions.begin({ ...org, max_provider_tokens_per_day: null }, 'b')).toBe(null);
    await stores.close();
    await redis.close();
  });
});
