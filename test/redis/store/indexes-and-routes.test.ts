import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { newUuid } from '../../../src/lib/ids.js';
import { inboundIdKey, numberKey, orgNumbersKey } from '../../../src/gateway/store/redis/keys.js';
import type { RedisStores } from '../../../src/gateway/store/redis/redis-stores.js';
import { begun } from '../../support/begun-call.js';
import { openStores } from '../../support/redis-stores.js';
import { workerRedis, type WorkerRedis } from '../../support/worker-redis.js';
import { agentOf, freshNumber, inboundSetting } from '../../unit/gateway/store/store-contract.js';

let redis: WorkerRedis;
let stores: RedisStores;
let orgId: string;
beforeAll(async () => {
  redis = await workerRedis();
  stores = await openStores(redis, { maxRememberedRoutes: 2 });
});
beforeEach(async () => {
  orgId = (await stores.orgs.create({ name: 'one', sip_enabled: true })).org_id;
});
afterAll(() => stores.close());

describe('an index that a crash left behind', () => {
  const listed = async (take = 100, skip = 0) => (await stores.numbers.list(orgId, { take, skip })).map((record) => record.phone_number);

  it('loses an entry that names nothing when it is read, and the page is full all the same', async () => {
    const numbers = [freshNumber(), freshNumber(), freshNumber()];
    for (const number of numbers) await stores.numbers.attach(orgId, number, { inbound: inboundSetting() });
    await redis.command(`DEL ${numberKey(numbers[0]!)}`);
    expect(await listed(2)).toEqual(numbers.slice(1));
    expect(await redis.command(`ZCARD ${orgNumbersKey(orgId)}`)).toBe(':2\r\n');
  });

  it('regains a missing entry when the number is read', async () => {
    const number = freshNumber();
    await stores.numbers.attach(orgId, number, { inbound: inboundSetting() });
    await redis.command(`DEL ${orgNumbersKey(orgId)}`);
    expect(await listed()).toEqual([]);
    await stores.numbers.get(orgId, number);
    expect(await listed()).toEqual([number]);
  });

  it('gains what is missing and loses what is stale in the sweep', async () => {
    const [missing, stale] = [freshNumber(), freshNumber()];
    const attached = await stores.numbers.attach(orgId, missing, { inbound: inboundSetting() });
    if (!attached.ok) throw new Error('not attached');
    await redis.command(`DEL ${orgNumbersKey(orgId)}`);
    await redis.command(`DEL ${inboundIdKey(attached.value.inbound_id)}`);
    await redis.command(`ZADD ${orgNumbersKey(orgId)} 0 ${stale}`);
    expect(await stores.numbers.getByInboundId(orgId, attached.value.inbound_id)).toBeNull();
    expect(await stores.numbers.sweep()).toMatchObject({ added: 1, removed: 1 });
    expect(await listed()).toEqual([missing]);
    expect(await stores.numbers.getByInboundId(orgId, attached.value.inbound_id)).toEqual(attached.value);
    expect(await stores.numbers.sweep()).toMatchObject({ added: 0, removed: 0 });
  });
});

describe('the look-up of a call', () => {
  /** How often Redis read from its sockets and found something: a pipeline is one. */
  async function readsOf(work: () => Promise<unknown>): Promise<number> {
    const reads = async () => Number(/total_reads_processed:(\d+)/.exec(await redis.command('INFO stats'))?.[1]);
    const before = await reads();
    await work();
    const after = await reads();
    // An INFO command and the end of its connection lie between.
    const idle = await reads();
    return after - before - (idle - after);
  }

  it('takes one round trip without a subscription to changes, cached number or not, with the slots of the call', async () => {
    const number = freshNumber();
    const agent = agentOf(orgId);
    await stores.agents.put(agent);
    await stores.numbers.attach(orgId, number, { inbound: inboundSetting({}, agent.agent_id) });
    // Redis has the script from now on.
    await stores.routes.lookup(freshNumber(), null);
    expect(await readsOf(() => stores.routes.lookup(number, begun(newUuid())))).toBe(1);
    expect(await readsOf(() => stores.routes.lookup(number, begun(newUuid())))).toBe(1);
  });

  it('drops routes over its bound and is still right', async () => {
    const numbers = [freshNumber(), freshNumber(), freshNumber()];
    for (const number of numbers) await stores.numbers.attach(orgId, number, { inbound: inboundSetting() });
    for (const number of [...numbers, ...numbers])
      expect((await stores.routes.lookup(number, null)).route?.number.phone_number).toBe(number);
    for (const number of [numbers[0]!, numbers[0]!]) expect(await readsOf(() => stores.routes.lookup(number, null))).toBe(1);
  });
});
