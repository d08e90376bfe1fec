import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { TrunkRegistration } from '../../../src/gateway/model/records.js';
import { registrarKey, registrationKey } from '../../../src/gateway/store/redis/keys.js';
import type { RedisStores } from '../../../src/gateway/store/redis/redis-stores.js';
import { expectExpiry } from '../../support/expiry.js';
import { openStores } from '../../support/redis-stores.js';
import { workerRedis, type WorkerRedis } from '../../support/worker-redis.js';
import { freshNumber } from '../../unit/gateway/store/store-contract.js';

const DAY_MS = 86_400_000;
let redis: WorkerRedis;
let gateways: readonly [RedisStores, RedisStores];

beforeAll(async () => {
  redis = await workerRedis();
  gateways = await Promise.all([openStores(redis, { instance: 'a' }), openStores(redis, { instance: 'b' })]);
});
afterAll(async () => {
  await Promise.all(gateways.map((stores) => stores.close()));
});

describe('registrations of trunks', () => {
  it('belong to one gateway at a time, until it releases them or its time is over', async () => {
    const [one, other] = gateways.map(({ registrations }) => registrations);
    expect(await one!.claim('account', 60_000)).toBe(true);
    expect(await other!.claim('account', 60_000)).toBe(false);
    await other!.release('account');
    expect(await one!.claim('account', 60_000)).toBe(true);
    expect(await other!.claim('account', 60_000)).toBe(false);
    await one!.release('account');
    expect(await expectExpiry(redis, [registrarKey('account')], 60_000, () => other!.claim('account', 60_000))).toBe(true);
    expect(await one!.claim('account', 60_000)).toBe(false);
    await redis.advance(60_000);
    expect(await one!.claim('account', 60_000)).toBe(true);
  });

  it('exist for the numbers whose trunk has a registrar, whatever changes', async () => {
    const [{ numbers, registrations }] = gateways;
    const number = freshNumber();
    const registering = async (): Promise<unknown[]> => (await registrations.registering()).map(({ outbound }) => outbound?.registrar);
    await numbers.attach('org', number, { outbound: { sip_endpoint: 'trunk.test', username: 'acme' } });
    expect(await registering()).toEqual([]);
    for (const registrar of ['one.test', 'two.test']) {
      await numbers.update('org', number, { type: 'outbound', sip_endpoint: 'trunk.test', registrar });
      expect(await registering()).toEqual([registrar]);
    }
    await numbers.update('org', number, { type: 'outbound', sip_endpoint: 'trunk.test', registrar: null });
    expect(await registering()).toEqual([]);
    await numbers.update('org', number, { type: 'outbound', sip_endpoint: 'trunk.test', registrar: 'three.test' });
    await numbers.detach('org', number, ['outbound']);
    expect(await registering()).toEqual([]);
  });

  it('have a state that every gateway reads, for a day', async () => {
    const state: TrunkRegistration = { state: 'refused', status: 403, expires_at: null, changed_at: '2026-01-01T00:00:00.000Z' };
    await expectExpiry(redis, [registrationKey('shown')], DAY_MS, () => gateways[0].registrations.note('shown', state));
    expect(await gateways[1].registrations.states(['shown', 'unknown'])).toEqual([state, null]);
    await redis.advance(DAY_MS);
    expect(await gateways[1].registrations.states(['shown', 'unknown'])).toEqual([null, null]);
  });
});
