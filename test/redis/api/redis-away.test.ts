import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { StoreUnavailableError } from '../../../src/gateway/ports/ports.js';
import { startRedis, type TestRedis } from '../../support/redis.js';
import { freshNumber, inboundSetting } from '../../unit/gateway/store/store-contract.js';
import { eventually, openHttpApi, type HttpApi } from './http-fixture.js';

// The limit is 500 ms for one answer; the rest is what a busy machine may add.
const LIMIT_MS = 800;

describe('Redis goes away and comes back', () => {
  let redis: TestRedis;
  let api: HttpApi;
  let orgId: string;
  let key: string;
  beforeAll(async () => {
    redis = await startRedis();
    api = await openHttpApi(redis.url);
    orgId = (await api.stores.orgs.create({ name: 'one', sip_enabled: true })).org_id;
    key = (await api.stores.keys.create(orgId, 'k')).key;
  });
  afterAll(async () => {
    await api.close();
    await redis.close();
  });

  async function expectAway(number: Parameters<HttpApi['stores']['routes']['lookup']>[0]): Promise<void> {
    const startedMs = performance.now();
    await expect(api.stores.routes.lookup(number, null)).rejects.toBeInstanceOf(StoreUnavailableError);
    expect(performance.now() - startedMs).toBeLessThan(LIMIT_MS);
    const answer = await api.request('GET', '/sip', key);
    expect([answer.status, answer.failure.errors[0]?.error]).toEqual([503, 'STORE_UNAVAILABLE']);
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
    const ready = await api.request('GET', '/readyz', key);
    expect(ready.status).toBe(503);
    expect(ready.failure).toMatchObject({ status: 'error', data: null, parts: { redis: false } });
    expect((await api.request('GET', '/healthz', key)).status).toBe(200);
  }

  it('stopped: 503 at once; started again: numbers and keys are there, without a new connection by hand', async () => {
    const number = freshNumber();
    const attached = await api.request('POST', '/sip/attach', key, { phone_number: number, directions: ['inbound'], service: 'sip' });
    const route = await api.stores.routes.lookup(number, null);
    await redis.stopServer();
    await expectAway(number);
    await redis.startServer();
    const answer = await eventually(
      () => api.request('GET', `/sip?inbound_id=${number}`, key),
      ({ status }) => status !== 503,
    );
    expect([answer.status, answer.record]).toEqual([200, attached.record]);
    expect(await api.stores.routes.lookup(number, null)).toEqual(route);
    // The script cache of the server went with it.
    const update = { phone_number: number, updates: { type: 'outbound', sip_endpoint: 'a.example' } };
    expect((await api.request('POST', '/sip/update', key, update)).status).toBe(200);
  });

  it('frozen: a connection that stays open and says nothing is no reason to wait', async () => {
    const number = freshNumber();
    await api.stores.numbers.attach(orgId, number, { inbound: inboundSetting() });
    const looked = await api.stores.routes.lookup(number, null);
    expect(looked.route?.org.org_id).toBe(orgId);
    redis.freeze();
    try {
      await expectAway(number);
      const startedMs = performance.now();
      const many = await Promise.allSettled(Array.from({ length: 50 }, () => api.stores.routes.lookup(number, null)));
      expect(many.every((one) => one.status === 'rejected' && one.reason instanceof StoreUnavailableError)).toBe(true);
      expect(performance.now() - startedMs).toBeLessThan(LIMIT_MS);
    } finally {
      redis.thaw();
    }
    await eventually(
      () => api.request('GET', '/readyz', key),
      ({ status }) => status === 200,
    );
    expect(await api.stores.routes.lookup(number, null)).toEqual(looked);
  });
});
