import { afterAll, beforeAll, expect, it } from 'vitest';
import { startRedis, type TestRedis } from '../../support/redis.js';
import { freshNumber } from '../../unit/gateway/store/store-contract.js';
import { eventually, openHttpApi, type HttpApi } from './http-fixture.js';

let redis: TestRedis;
let api: HttpApi;
let key: string;
beforeAll(async () => {
  redis = await startRedis();
  api = await openHttpApi(redis.url);
  key = (await api.stores.keys.create((await api.stores.orgs.create({ name: 'one', sip_enabled: true })).org_id, 'k')).key;
});
afterAll(async () => {
  await api.close();
  await redis.close();
});

const attach = (number: string) =>
  api.request('POST', '/sip/attach', key, { phone_number: number, directions: ['inbound'], service: 'sip' });

it.each([
  ['full', ['CONFIG SET maxmemory 100kb'], ['CONFIG SET maxmemory 0'], 'OOM command not allowed'],
  ['read-only', ['REPLICAOF 127.0.0.1 9', 'CONFIG SET replica-serve-stale-data yes'], ['REPLICAOF NO ONE'], "READONLY You can't write"],
])('a Redis that is %s is not ready, and the API passes on what it said; nothing changed', async (_what, spoil, mend, said) => {
  const number = freshNumber();
  for (const command of spoil) await redis.command(command);
  const refused = await attach(number);
  expect([refused.status, refused.failure.errors[0]?.error, refused.failure.message]).toEqual([
    503,
    'STORE_UNAVAILABLE',
    expect.stringContaining(`Redis says: ${said}`),
  ]);
  const ready = await eventually(
    () => api.request('GET', '/readyz', key),
    ({ failure }) => JSON.stringify(failure).includes(said),
  );
  expect([ready.status, ready.failure]).toMatchObject([503, { message: 'Not ready: redis', parts: { redis: false } }]);
  for (const command of mend) await redis.command(command);
  await eventually(
    () => api.request('GET', '/readyz', key),
    ({ status }) => status === 200,
  );
  expect((await api.request('GET', `/sip?inbound_id=${number}`, key)).record).toBeNull();
  expect((await attach(number)).status).toBe(200);
});
