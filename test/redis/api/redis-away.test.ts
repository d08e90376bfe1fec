import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { E164 } from '../../../src/gateway/model/e164.js';
import { StoreUnavailableError, type Lookup } from '../../../src/gateway/ports/ports.js';
import { startRedis, type TestRedis } from '../../support/redis.js';
import { freshNumber, inboundSetting } from '../../unit/gateway/store/store-contract.js';
import { eventually, openHttpApi, type HttpApi } from './http-fixture.js';

/** As long as a call waits for Redis. */
const LIMIT_MS = 500;

describe('the API, when Redis', () => {
  let redis: TestRedis;
  let api: HttpApi;
  /** Waits for Redis however long it takes. */
  let patient: HttpApi;
  let orgId: string;
  let key: string;
  beforeAll(async () => {
    redis = await startRedis();
    [api, patient] = await Promise.all([openHttpApi(redis.url, { commandTimeoutMs: LIMIT_MS }), openHttpApi(redis.url)]);
    orgId = (await patient.stores.orgs.create({ name: 'one', sip_enabled: true })).org_id;
    key = (await patient.stores.keys.create(orgId, 'k')).key;
  });
  afterAll(async () => {
    await Promise.all([api.close(), patient.close()]);
    await redis.close();
  });

  const lookedUp = (number: E164): Promise<Lookup> =>
    eventually(
      () => api.stores.routes.lookup(number, null).catch(() => null),
      (looked) => looked !== null,
    ) as Promise<Lookup>;

  /** @param why what is waited for: the connection, or the limit of one answer */
  async function expectAway(number: E164, why: RegExp): Promise<void> {
    const error: unknown = await api.stores.routes.lookup(number, null).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(StoreUnavailableError);
    expect(String(error)).toMatch(why);
    const answer = await api.request('GET', '/sip', key);
    expect([answer.status, answer.failure.errors[0]?.error]).toEqual([503, 'STORE_UNAVAILABLE']);
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
    const ready = await api.request('GET', '/readyz', key);
    expect(ready.status).toBe(503);
    expect(ready.failure).toMatchObject({ status: 'error', data: null, parts: { redis: false } });
    expect((await api.request('GET', '/healthz', key)).status).toBe(200);
  }

  it('stops, answers 503 at once; after its start numbers and keys are there on the same connection', async () => {
    const number = freshNumber();
    const attached = await patient.request('POST', '/sip/attach', key, { phone_number: number, directions: ['inbound'], service: 'sip' });
    const route = await lookedUp(number);
    await redis.stopServer();
    await expectAway(number, /^(?!.*no answer within)/);
    await redis.startServer();
    const answer = await eventually(
      () => api.request('GET', `/sip?inbound_id=${number}`, key),
      ({ status }) => status !== 503,
    );
    expect([answer.status, answer.record]).toEqual([200, attached.record]);
    expect(await lookedUp(number)).toEqual(route);
    // The script cache of the server went with it.
    const update = { phone_number: number, updates: { type: 'outbound', sip_endpoint: 'a.example' } };
    expect((await patient.request('POST', '/sip/update', key, update)).status).toBe(200);
  });

  it('freezes, does not wait for a connection that stays open and silent', async () => {
    const number = freshNumber();
    await patient.stores.numbers.attach(orgId, number, { inbound: inboundSetting() });
    const looked = await lookedUp(number);
    expect(looked.route?.org.org_id).toBe(orgId);
    redis.freeze();
    try {
      await expectAway(number, /no answer within 500 ms/);
      const many = await Promise.allSettled(Array.from({ length: 50 }, () => api.stores.routes.lookup(number, null)));
      expect(many.every((one) => one.status === 'rejected' && one.reason instanceof StoreUnavailableError)).toBe(true);
    } finally {
      redis.thaw();
    }
    await eventually(
      () => api.request('GET', '/readyz', key),
      ({ status }) => status === 200,
    );
    expect(await lookedUp(number)).toEqual(looked);
  });
});
