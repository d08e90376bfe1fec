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
])('a Redis that is %s is not ready, the API passes on its error, and nothing changes', async (_what, spoil, mend, said) => {
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

it.each([
  ['nearly full', ['CONFIG SET maxmemory USED'], /Redis is nearly full: \d+ of \d+ MB are used/],
  ['set to delete keys', ['CONFIG SET maxmemory 1gb', 'CONFIG SET maxmemory-policy allkeys-lru'], /its maxmemory-policy is allkeys-lru/],
])('a Redis that is %s is ready, with a warning', async (_what, commands, warning) => {
  const used = Number(/used_memory:(\d+)/.exec(await redis.command('INFO memory'))?.[1]);
  // Of this much 93 % are used.
  for (const command of commands) await redis.command(command.replace('USED', String(Math.round(used / 0.93))));
  const { status, body } = await eventually(
    () => api.request('GET', '/readyz', key),
    ({ text }) => warning.test(text),
  );
  expect([status, body.data]).toMatchObject([
    200,
    { parts: { redis: true }, warnings: expect.arrayContaining([expect.stringMatching(warning)]) as unknown },
  ]);
  for (const command of ['CONFIG SET maxmemory 0', 'CONFIG SET maxmemory-policy noeviction']) await redis.command(command);
});
