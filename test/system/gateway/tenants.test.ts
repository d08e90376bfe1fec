import { afterAll, beforeAll, expect, it } from 'vitest';
import type { RedisStores } from '../../../src/gateway/store/redis/redis-stores.js';
import { CarrierCall } from '../../support/carrier-call.js';
import { RunningGateway } from '../../support/gateway.js';
import { NoisyTenant, PRIVATE_PEERS, quietTenant, storesOf } from '../../support/noisy-tenant.js';

// Three organizations, of which one uses all that its key allows: no call of the others is refused, and none is unheard.

const QUIET = ['+15550166001', '+15550166002'] as const;
const CALLS_EACH = 12;

let gateway: RunningGateway;
let stores: RedisStores;
let noisy: NoisyTenant;

beforeAll(async () => {
  gateway = await RunningGateway.start(PRIVATE_PEERS);
  stores = await storesOf(gateway);
  for (const [index, number] of QUIET.entries()) await quietTenant(stores, `quiet ${String(index)}`, number);
  noisy = await NoisyTenant.create(gateway, stores, '+15550166000');
});

afterAll(async () => {
  await noisy.stop();
  await stores.close();
  await gateway.destroy();
});

it('no tenant starves another', async () => {
  noisy.start();
  // Rejects with the answer when the call is refused, and when nothing is heard.
  const placeCalls = async (number: string): Promise<number> => {
    let heard = 0;
    for (; heard < CALLS_EACH; heard += 1) {
      const call = await CarrierCall.talking(gateway, number);
      await call.request('BYE');
      call.close();
    }
    return heard;
  };
  expect(await Promise.all(QUIET.map(placeCalls))).toEqual([CALLS_EACH, CALLS_EACH]);
  // It did use what it has: the API without a pause, as far as it gets a turn, and more calls than it may have.
  expect(noisy.answers.get(200)).toBeGreaterThan(5);
  expect([...noisy.answers.keys()].filter((status) => ![200, 429, 504].includes(status))).toEqual([]);
  expect(noisy.calls.get(486) ?? 0, JSON.stringify([...noisy.calls])).toBeGreaterThan(0);
  expect([...noisy.calls.keys()].filter((status) => ![200, 480, 486].includes(status))).toEqual([]);
});
