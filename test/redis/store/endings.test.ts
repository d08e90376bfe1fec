import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import type { E164 } from '../../../src/gateway/model/e164.js';
import { endingCallKey } from '../../../src/gateway/store/redis/keys.js';
import { Endings } from '../../../src/gateway/store/redis/leases/endings.js';
import type { RedisStores } from '../../../src/gateway/store/redis/redis-stores.js';
import { newUuid } from '../../../src/lib/ids.js';
import { begun } from '../../support/begun-call.js';
import { expectExpiry } from '../../support/expiry.js';
import { LEASE_MS } from '../../support/lease.js';
import { openStores } from '../../support/redis-stores.js';
import { VirtualClock } from '../../support/virtual-clock.js';
import { workerRedis, type WorkerRedis } from '../../support/worker-redis.js';
import { freshNumber, inboundSetting } from '../../unit/gateway/store/store-contract.js';
import { eventually } from '../api/http-fixture.js';

/** How long a call that has ended is known until its record is written. */
const KEPT_MS = 30_000;
const clock = new VirtualClock(Date.now());
let redis: WorkerRedis;
let stores: RedisStores;
let orgId: string;
let number: E164;
beforeAll(async () => {
  redis = await workerRedis();
  stores = await openStores(redis, { clock, instance: 'gw-1' });
  orgId = (await stores.orgs.create({ name: 'one', sip_enabled: true })).org_id;
  number = freshNumber();
  const directions = { inbound: inboundSetting(), outbound: { sip_endpoint: 'a.example' } };
  await stores.numbers.attach(orgId, number, directions);
  const limits = { max_calls_per_second: 10, max_concurrent_calls: 10, max_calls_per_day: 10, max_cost_per_day: 10 };
  await stores.orgs.change(orgId, { dialling: { prices: { '+49': 0.02 }, callers: [number], ...limits } });
});
afterEach(() => takeWrites());
afterAll(() => stores.close());

const KINDS: readonly (readonly [string, (callId: string) => Promise<unknown>, (callId: string) => void])[] = [
  ['that came in', (callId) => stores.routes.lookup(number, begun(callId)), (callId) => stores.routes.release(callId)],
  [
    'that the gateway placed',
    (callId) =>
      stores.ofCalls.dials.reserve({
        orgId,
        from: number,
        to: '+4930123456' as E164,
        maxDurationMs: 60_000,
        endpoint: 'a.example',
        call: begun(callId, { direction: 'outbound' }),
      }),
    (callId) => stores.ofCalls.dials.settle(callId, 1_000),
  ],
];

/** Redis takes no writes until `takeWrites`: it lacks a replica. */
const refuseWrites = (): Promise<string> => redis.command('CONFIG SET min-replicas-to-write 1');
const takeWrites = (): Promise<string> => redis.command('CONFIG SET min-replicas-to-write 0');

async function begins(begin: (callId: string) => Promise<unknown>): Promise<string> {
  const callId = newUuid();
  await begin(callId);
  await isLive(callId, true);
  return callId;
}

const isLive = (callId: string, wanted: boolean): Promise<unknown> =>
  eventually(
    () => stores.live.get(orgId, callId),
    (call) => (call !== null) === wanted,
  );

/** The end is written in the next turn, and a ping after it is answered behind it. */
async function isRefused(): Promise<void> {
  await new Promise(setImmediate);
  await stores.ping();
}

it.each(KINDS)('a call %s and ends while Redis accepts no writes leaves the list a second after Redis does', async (_kind, begin, end) => {
  const callId = await begins(begin);
  await refuseWrites();
  end(callId);
  await isRefused();
  clock.advance(1_000);
  await isRefused();
  await takeWrites();
  expect(await stores.live.get(orgId, callId)).not.toBeNull();
  expect(await stores.live.ending(orgId, callId)).toBeNull();
  await expectExpiry(redis, [endingCallKey(orgId, callId)], KEPT_MS, async () => {
    clock.advance(1_000);
    await isLive(callId, false);
  });
  expect(await stores.live.ending(orgId, callId)).toMatchObject({ call_id: callId });
  expect((await stores.throughput.read(orgId)).inProgress).toBe(0);
  await redis.advance(KEPT_MS, clock);
  expect(await stores.live.ending(orgId, callId)).toBeNull();
});

it.each(KINDS)('a call %s and ends is given up when its lease is over', async (_kind, begin, end) => {
  const callId = await begins(begin);
  await refuseWrites();
  end(callId);
  for (let second = 0; second < LEASE_MS / 1_000; second += 1) {
    await isRefused();
    clock.advance(1_000);
  }
  await takeWrites();
  clock.advance(1_000);
  await isRefused();
  // In the time of Redis its lease lasts.
  expect(await stores.live.get(orgId, callId)).not.toBeNull();
});

it('the writer of ends sends nothing again once it is closed, whenever that failed', async () => {
  let sent = 0;
  const write = (): Promise<void> => Promise.reject(new Error(String((sent += 1))));
  const endings = new Endings({ write } as never, LEASE_MS, clock);
  endings.write([]);
  await new Promise(setImmediate);
  clock.advance(1_000);
  expect(sent).toBe(2);
  endings.close();
  await new Promise(setImmediate);
  clock.advance(1_000);
  expect(sent).toBe(2);
});
